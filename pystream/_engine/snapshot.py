"""An operator's state as bytes, and back: what is in them, and that nothing wrong in them gets through.

    magic, version, length and SHA-256 of the rest
    rest: parts, each with its length in front
        header     JSON: the query, the inputs' timestamps and positions, counters, how many parts of each kind follow;
                   before version 3 there are no positions
        schema     of the tuples
        types      of the results of user functions, as far as they are known
        windows    start, key, state, one column of bytes per user function
        slices     start, key, state; version 1 has none
        rows       finished and not yet read, any number of parts
        tuples     pending tuples, any number of parts per input

Tables are in Arrow's stream format. Nothing is unpickled; every number is checked before it is used, and tuples come in
by the same door as those that a user adds.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pystream._engine.engine import INPUTS_MAX
from pystream._engine.plan import Plan
from pystream._native import SAVED_WINDOWS, Fault, Offer, is_overlap
from pystream.errors import PystreamError, SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pystream._engine.engine import Engine
    from pystream.query import Query

MAGIC = b"pystream"
VERSION = 3
_HEAD = struct.Struct("<8sIQ32s")
_PART = struct.Struct("<Q")
_INT64_MAX = 2**63 - 1
_STATES = pa.schema(list(SAVED_WINDOWS)[:3])
_NO_SLICES = pa.RecordBatch.from_pylist([], _STATES)


@dataclass
class Input:
    """One input: what it has promised, its pending tuples, and how many rows it has taken, those included."""

    latest: int
    closed: bool
    tuples: list[pa.RecordBatch] = field(default_factory=list)
    position: int | None = None  # None: not known, in what goes back to a snapshot without positions


@dataclass
class Snapshot:
    """What is in the bytes."""

    query: dict[str, Any]
    schema: pa.Schema
    inputs: list[Input]
    windows: pa.RecordBatch
    slices: pa.RecordBatch
    start_next: int  # lowest start of a window that slices may be in
    rows: list[pa.RecordBatch]
    udf_types: pa.Schema
    tuples_in: int
    rows_out: int


def describe(query: Query, window: tuple[int, int]) -> dict[str, Any]:
    """The query as plain data: two queries that differ in anything that a snapshot depends on differ here."""
    return {
        "window": list(window),
        "ts": query.ts,
        "key": list(query.key),
        "aggregates": [
            {
                "name": name,
                "function": a.function,
                "column": a.column,
                "where": None if a.where is None else str(a.where),
                "factory": getattr(a.factory, "__qualname__", None),
                "type": None if a.type is None else str(a.type),
            }
            | ({"native": [a.native.state_size, *a.native.columns]} if a.native else {})
            | ({"by": a.by} if a.by else {})
            | ({"parameter": a.parameter} if a.parameter else {})
            | ({"options": _plain(a.options)} if a.options else {})
            for name, a in query.aggregates.items()
        ],
    }


def _plain(value: Any) -> Any:
    """With lists for tuples, as JSON has it."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


# ---- to bytes ----


def to_bytes(snapshot: Snapshot) -> bytes:
    """Write it down."""
    header = {
        "query": snapshot.query,
        "inputs": [
            {"latest": i.latest, "closed": i.closed, "tuples": len(i.tuples), "position": i.position}
            for i in snapshot.inputs
        ],
        "start_next": snapshot.start_next,
        "rows": len(snapshot.rows),
        "tuples_in": snapshot.tuples_in,
        "rows_out": snapshot.rows_out,
    }
    parts = [
        json.dumps(header).encode(),
        snapshot.schema.serialize().to_pybytes(),
        snapshot.udf_types.serialize().to_pybytes(),
        _table(snapshot.windows),
        _table(snapshot.slices),
        *map(_table, snapshot.rows),
        *(_table(batch) for one in snapshot.inputs for batch in one.tuples),
    ]
    rest = b"".join(_PART.pack(len(part)) + part for part in parts)
    return _HEAD.pack(MAGIC, VERSION, len(rest), hashlib.sha256(rest).digest()) + rest


def _table(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    result: bytes = sink.getvalue().to_pybytes()
    return result


# ---- from bytes ----


def from_bytes(blob: bytes) -> Snapshot:
    """Read it, or say what is wrong with it."""
    version, rest = _checked(blob)
    parts = _parts(rest)
    try:
        header = json.loads(next(parts))
        schema, types = [_readable(pa.ipc.read_schema(pa.py_buffer(next(parts)))) for _ in range(2)]
        windows = _batch(next(parts))
        slices = _batch(next(parts)) if version > 1 else _NO_SLICES
        start_next = _number(header["start_next"]) if version > 1 else 0
        rows = [_batch(next(parts)) for _ in range(_number(header["rows"]))]
        inputs = [_input(one, parts, version) for one in _list(header["inputs"])]
        counters = _number(header["tuples_in"]), _number(header["rows_out"])
        query = header["query"]
    except SnapshotError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError, StopIteration, OSError, pa.ArrowException) as error:
        raise SnapshotError(f"the snapshot is damaged: {type(error).__name__}: {error}") from error
    if next(parts, None) is not None:
        raise SnapshotError("the snapshot is damaged: something follows its last part")
    return Snapshot(query, schema, inputs, windows, slices, start_next, rows, types, *counters)


def _checked(blob: bytes) -> tuple[int, memoryview]:
    """The version, and what follows the head, once it is known to be whole."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"a snapshot is bytes, not {type(blob).__name__}")
    view = memoryview(blob).cast("B")
    if len(view) < _HEAD.size or bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotError("these bytes are no snapshot of a pystream operator")
    _, version, length, digest = _HEAD.unpack(view[: _HEAD.size])
    if not 1 <= version <= VERSION:
        raise SnapshotError(f"the snapshot has version {version}; this pystream reads versions up to {VERSION}")
    rest = view[_HEAD.size :]
    if len(rest) != length:
        raise SnapshotError(f"the snapshot is cut off: {len(rest)} bytes instead of {length}")
    if hashlib.sha256(rest).digest() != digest:
        raise SnapshotError("the snapshot is damaged: its checksum is wrong")
    return version, rest


def _parts(rest: memoryview) -> Iterator[bytes]:
    at = 0
    while at < len(rest):
        if len(rest) - at < _PART.size:
            raise SnapshotError("the snapshot is damaged: half a length")
        (length,) = _PART.unpack(rest[at : at + _PART.size])
        at += _PART.size
        if length > len(rest) - at:
            raise SnapshotError("the snapshot is damaged: a part is longer than what is left")
        yield bytes(rest[at : at + length])
        at += length


def _batch(part: bytes) -> pa.RecordBatch:
    """The one batch of a part."""
    with pa.ipc.open_stream(part) as reader:
        batch = reader.read_next_batch()
    _readable(batch.schema)
    batch.validate(full=True)
    return batch


def _readable(schema: pa.Schema) -> pa.Schema:
    """The schema, if its names are text, which Arrow does not check."""
    if not all(isinstance(name, str) for name in schema.names):
        raise TypeError("a column has no name")
    return schema


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is missing")
    return value


def _number(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= _INT64_MAX:
        raise ValueError(f"{value!r} is not a number of the right size")
    return value


def _input(one: Any, parts: Iterator[bytes], version: int) -> Input:
    if type(one["closed"]) is not bool:
        raise TypeError("closed is true or false")
    tuples = [_batch(next(parts)) for _ in range(_number(one["tuples"]))]
    known = version > 2 and one["position"] is not None
    return Input(_number(one["latest"], -1), one["closed"], tuples, _number(one["position"]) if known else None)


# ---- from and to a running operator ----


def take(engine: Engine) -> bytes:
    """The state of an operator, which stands still meanwhile and then goes on."""
    engine.user_windows.check_savable()
    return engine.output.box.hold(lambda: _take(engine))


def _take(engine: Engine) -> bytes:
    try:
        engine.handle.pause()
        engine.output.gather()
        blob = to_bytes(_of(engine))
        engine.output.mark_saved()
        return blob
    finally:
        engine.handle.resume()


def _of(engine: Engine) -> Snapshot:
    saved, counters = engine.handle.save_windows(), engine.counters()
    slices, start_next = engine.handle.save_slices()
    positions: Sequence[int | None] = engine.positions() or [None] * engine.inputs
    inputs = [
        Input(one["latest"], bool(one["closed"]), _pending(engine, i), positions[i])
        for i, one in enumerate(engine.input_stats())
    ]
    objects = engine.user_windows.save(saved.column("number").to_pylist())
    columns = [*saved.columns[:3], *(pa.array(b, pa.large_binary()) for b in objects.values())]
    windows = pa.RecordBatch.from_arrays(columns, [*saved.schema.names[:3], *objects])
    return Snapshot(
        describe(engine.query, engine.plan.window),
        engine.plan.schema,
        inputs,
        windows,
        slices.select(_STATES.names),
        start_next,
        engine.output.box.waiting(),
        engine.user_windows.known_types(),
        counters["tuples_in"],
        counters["rows_out"],
    )


def _pending(engine: Engine, input: int) -> list[pa.RecordBatch]:
    """The tuples that are in no window yet: as C has them or, for user code, as they were added."""
    saved = engine.handle.save_pending(input, engine.plan.saved_schema)
    if not saved.num_rows:
        return []
    if not engine.plan.udfs:
        return [saved.select(engine.plan.saved_schema.names)]
    batches: dict[int, list[int]] = {}
    for number, row in zip(saved.column("batch").to_pylist(), saved.column("row").to_pylist(), strict=True):
        batches.setdefault(number, []).append(row)
    return [engine.user_windows.batch(number).slice(rows[0], len(rows)) for number, rows in batches.items()]


def check(snapshot: Snapshot, query: Query) -> None:
    """Refuse a snapshot of another query, and one whose parts do not fit together."""
    try:
        plan = Plan(query, snapshot.schema)
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"the snapshot's tuples do not fit the query: {error}") from error
    own = describe(query, plan.window)
    if snapshot.query != own:
        raise SnapshotError(f"the snapshot is of another query: {_difference(snapshot.query, own)}")
    _require(1 <= len(snapshot.inputs) <= INPUTS_MAX, "its number of inputs is wrong")
    taken = _taken_before(snapshot)
    _require(taken is None or min(taken) >= 0, "an input has more tuples than it has taken")
    _require(taken is None or sum(taken) == snapshot.tuples_in - _rows(snapshot.inputs), "its positions do not add up")
    columns = pa.schema([*_STATES, *((name, pa.large_binary()) for name in plan.udfs)])
    for what, states, schema in (("windows", snapshot.windows, columns), ("slices", snapshot.slices, _STATES)):
        _require(states.schema.equals(schema), f"its {what} are not {what}")
        _require(all(column.null_count == 0 for column in states.columns), f"its {what} have holes")
    for batch in snapshot.rows:
        fields = zip(batch.schema, plan.out_schema, strict=False)
        fits = [f.nullable and (f.type == g.type or f.name in plan.udfs) for f, g in fields]
        _require(batch.schema.names == query.columns and all(fits), "its rows are not rows of the query")
    for name, type in zip(snapshot.udf_types.names, snapshot.udf_types.types, strict=True):
        _require(name in plan.udfs and plan.udfs[name].type in (None, type), "its types are not those of the query")
    if not plan.udfs:
        for batch in (batch for one in snapshot.inputs for batch in one.tuples):
            _require(batch.schema.equals(plan.saved_schema), "its tuples are not tuples of the query")
        _check_order(snapshot)


def _check_order(snapshot: Snapshot) -> None:
    """What is in slices was ready, so no input can send anything before the last of them, nor has it."""
    last = pc.max(snapshot.slices.column("start")).as_py()
    for one in snapshot.inputs if last is not None else ():
        _require(one.closed or one.latest >= last, "a slice is later than an input")
        starts = [pc.min(batch.column(0)).as_py() for batch in one.tuples]
        _require(all(ts is None or ts >= last for ts in starts), "a slice is later than a tuple")


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise SnapshotError(f"the snapshot is damaged: {otherwise}")


def _difference(saved: Any, own: dict[str, Any]) -> str:
    if isinstance(saved, dict):
        for name, value in own.items():
            if saved.get(name) != value:
                return f"{name} was {saved.get(name)!r} and is {value!r}"
    return "it says so"


def put(engine: Engine, snapshot: Snapshot) -> None:
    """Bring a new engine to the state of a snapshot that has been checked."""
    windows = snapshot.windows.select(_STATES.names)
    try:
        engine.handle.pause()
        engine.handle.load_windows(windows, snapshot.slices, snapshot.start_next)
    except Fault as fault:
        if is_overlap(fault):
            raise engine.overlap_error("the snapshot", fault) from None
        slice = fault.row - windows.num_rows
        what = f"window {fault.row}" if slice < 0 else f"slice {slice}"
        raise SnapshotError(f"the snapshot is damaged: {what} is wrong") from None
    finally:
        engine.handle.resume()
    engine.user_windows.load(
        {name: snapshot.windows.column(name).to_pylist() for name in engine.plan.udfs}, snapshot.udf_types
    )
    engine.output.box.put(snapshot.rows)
    engine.output.keep(snapshot.rows)
    for i, one in enumerate(snapshot.inputs):
        try:
            _put_input(engine, i, one)
        except (Fault, PystreamError, pa.ArrowException) as error:
            engine.output.fetch(0)  # says why, if the operator has ended by a failure of its own
            raise SnapshotError(f"the snapshot is damaged: input {i}: {error}") from error
    before = snapshot.tuples_in - _rows(snapshot.inputs)
    engine.continue_from(before, snapshot.rows_out, _taken_before(snapshot))
    engine.output.mark_saved()


def _rows(inputs: list[Input]) -> int:
    """How many tuples are pending."""
    return sum(batch.num_rows for one in inputs for batch in one.tuples)


def _taken_before(snapshot: Snapshot) -> list[int] | None:
    """How many rows each input has taken without its pending tuples, which it takes once more. None: not known."""
    taken = [one.position for one in snapshot.inputs]
    if taken == [None]:
        taken = [snapshot.tuples_in]  # of a single input
    known = [position for position in taken if position is not None]
    if len(known) < len(taken):
        return None
    return [position - _rows([one]) for position, one in zip(known, snapshot.inputs, strict=True)]


def _put_input(engine: Engine, input: int, one: Input) -> None:
    for batch in one.tuples:
        _put_tuples(engine, input, batch)
    _require(engine.handle.input_stats(input)["latest"] <= one.latest, "a tuple is later than its input")
    if one.latest >= 0:
        engine.handle.heartbeat(input, one.latest)
    if one.closed:
        engine.handle.close(input)


def _put_tuples(engine: Engine, input: int, batch: pa.RecordBatch) -> None:
    if engine.plan.udfs:
        engine.add(input, batch)
    else:
        engine.handle.add(input, 0, Offer(engine.plan.unsaved(batch)))
