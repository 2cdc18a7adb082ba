"""The cells of tests/test_corrupt_input.py: a damaged column x what the query does with it x how it comes in.

    python corrupt_cells.py ENTRY      tries all cells of an entry, names each before it begins

A process of its own, because what is tested is that it does not end before its time.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import forge
import pyarrow as pa
import pyarrow.compute as pc

import pystream as ps
from pystream.partials import Combine, Fold, PackedCombine, PackedFold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMES = [1, 2, 13]
COUNTS = [{"ts": 0, "n": 2}, {"ts": 10, "n": 1}]


class Rows:
    """A user's window that looks at everything."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def process_tuple(self, row: Any) -> None:
        self.rows.append(repr(row))

    def produce_out_tuple(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Use:
    """What a query does with column x: of which type it is said to be, and the query."""

    type: pa.DataType
    query: Callable[[], ps.Query]
    columns: str = "string"  # the damaged columns that it is tried with
    folds: bool = True
    refuses: bool = True


def _query(key: str | None = None, ts: str = "ts", **aggregates: Any) -> ps.Query:
    return ps.Query(ps.Window(10), key, {"n": ps.count(), **aggregates}, ts=ts)


def _filtered(where: pc.Expression) -> Callable[[], ps.Query]:
    return lambda: _query(some=ps.count(where=where))


X = pc.field("x")
USES: dict[str, Use] = {
    "key": Use(pa.string(), lambda: _query(key="x")),
    "key, large": Use(pa.large_string(), lambda: _query(key="x")),
    "key, by a dictionary": Use(pa.dictionary(pa.int32(), pa.string()), lambda: _query(key="x")),
    "least": Use(pa.string(), lambda: _query(least=ps.min("x"))),
    "first": Use(pa.string(), lambda: _query(first=ps.first("x"))),
    "in a filter": Use(pa.string(), _filtered(pc.match_substring(X, "a"))),
    "in a filter, by a dictionary": Use(pa.dictionary(pa.int32(), pa.string()), _filtered(X == "a")),
    "in a filter, a view": Use(pa.string_view(), _filtered(X.is_valid())),
    "in a row": Use(pa.string(), lambda: _query(rows=ps.udf(Rows)), folds=False),
    "not at all": Use(pa.string(), _query, refuses=False),
    "timestamp": Use(pa.int64(), lambda: _query(ts="x"), "number"),
    "key, a number": Use(pa.int64(), lambda: _query(key="x"), "number"),
    "sum": Use(pa.int64(), lambda: _query(total=ps.sum("x")), "number"),
    "number in a filter": Use(pa.int64(), _filtered(X > 1), "number"),
    "in a compiled function": Use(pa.int64(), lambda: _query(own=native()), "number", folds=False),
    "a number in a row": Use(pa.int64(), lambda: _query(rows=ps.udf(Rows)), "number", folds=False),
    "nested, in a row": Use(pa.string(), lambda: _query(rows=ps.udf(Rows)), "nested", folds=False),
    "lists in a filter": Use(pa.list_(pa.int64()), _filtered(pc.list_value_length(X) > 0), "list"),
    "structs in a filter": Use(pa.struct([("a", pa.string())]), _filtered(pc.struct_field(X, ["a"]) == "a"), "struct"),
}


#: A compiled function that does nothing; ctypes takes the GIL for it.
PROCESS = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(lambda *_: 0)
PRODUCE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(lambda *_: 0)


def native() -> ps.Aggregate:
    return ps.native_udf(PROCESS, PRODUCE, state_size=8, columns="x", type=pa.int64())


def damaged(use: Use) -> dict[str, Callable[[], pa.Array]]:
    if use.columns == "list":
        return {name: make for name, make in forge.NESTED.items() if "list" in name}
    if use.columns == "struct":
        return {name: make for name, make in forge.NESTED.items() if "struct" in name}
    return {"string": forge.STRINGS, "number": forge.NUMBERS, "nested": forge.NESTED}[use.columns]


def good(use: Use) -> pa.RecordBatch:
    values: list[Any] = TIMES
    if pa.types.is_list(use.type):
        values = [[1], [2], [3]]
    elif pa.types.is_struct(use.type):
        values = [{"a": "a"}] * 3
    elif use.columns in ("string", "nested"):
        values = ["a", "b", "c"]
    return pa.record_batch({"ts": pa.array(TIMES), "x": pa.array(values, use.type)})


# ---- how columns come in ----


class OnlyArray:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested: Any = None) -> Any:
        return self.batch.__arrow_c_array__(requested)


class OnlyStream:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self.table = pa.Table.from_batches([batch])

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested)


SHAPES: dict[str, Callable[[pa.RecordBatch], Any]] = {
    "batch": lambda batch: batch,
    "slice": lambda batch: batch.slice(0, 2),
    "two batches": lambda batch: [batch, batch],
    "table of two chunks": lambda batch: pa.Table.from_batches([batch, batch]),
    "dict": lambda batch: dict(zip(batch.schema.names, batch.columns, strict=True)),
    "dict of chunks": lambda batch: {name: pa.chunked_array([batch[name], batch[name]]) for name in ("ts", "x")},
    "array capsule": OnlyArray,
    "stream capsule": OnlyStream,
}


def added(shape: str, use: Use, bad: pa.RecordBatch) -> Exception | None:
    """Add good rows, the damaged ones, and good rows again: the operator goes on with the good ones."""
    fine = good(use)
    with ps.Operator(use.query(), 1, fine.schema) as op:
        op.add(0, fine.slice(0, 1))
        raised = caught(lambda: op.add(0, SHAPES[shape](bad)))
        op.add(0, fine.slice(1))
        op.close(0)
        counts = [{"ts": 0, "n": 0}, {"ts": 10, "n": 0}]
        for row in (row for batch in op for row in batch.to_pylist()):
            counts[row["ts"] // 10]["n"] += row["n"]
        assert not use.refuses or counts == COUNTS, counts
    return raised


def added_later(use: Use, bad: pa.RecordBatch) -> Exception | None:
    async def add(op: ps.Operator) -> None:
        await op.add_async(0, bad)

    with ps.Operator(use.query(), 1, good(use).schema) as op:
        raised = caught(lambda: asyncio.run(add(op)))
        op.close(0)
        assert not use.refuses or list(op) == []
    return raised


def folded(make: Any, use: Use, bad: pa.RecordBatch) -> Exception | None:
    fold = make(use.query(), good(use).schema, position="ts")
    raised = caught(lambda: fold.add(bad))
    given = [*fold.add(good(use)), *fold.finish()]
    assert given
    return raised


def combined(make: Any, use: Use, bad: pa.RecordBatch) -> Exception | None:
    combine = make(use.query(), good(use).schema, position="ts")
    raised = caught(lambda: combine.add_rows(bad))
    if use.refuses:
        combine.add_rows(good(use))
        assert sum(batch.num_rows for batch in combine.finish()) > 0
    return raised


def aggregated(shape: str, design: str, use: Use, bad: pa.RecordBatch) -> Exception | None:
    query = use.query()
    if any(a.function in ("udf", "native_udf", "first") for a in query.aggregates.values()):
        design = "auto"
    return caught(lambda: ps.aggregate(query, [good(use), SHAPES[shape](bad)], design=design))


def caught(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which one it is, is looked at later
        return error
    return None


ENTRIES: dict[str, Callable[[Use, pa.RecordBatch], Exception | None]] = {
    **{f"add, {shape}": partial(added, shape) for shape in SHAPES},
    "add_async": added_later,
    **{
        f"aggregate, {shape}": partial(aggregated, shape, "auto")
        for shape in ("batch", "two batches", "stream capsule")
    },
    "aggregate, mq": partial(aggregated, "batch", "mq"),
    "Fold.add": partial(folded, Fold),
    "PackedFold.add": partial(folded, PackedFold),
    "Combine.add_rows": partial(combined, Combine),
    "PackedCombine.add_rows": partial(combined, PackedCombine),
}


def cells(entry: str) -> Iterator[tuple[str, Use, Callable[[], pa.Array]]]:
    for name, use in USES.items():
        if use.folds or not entry.partition(".")[2]:
            for what, make in damaged(use).items():
                yield f"{entry} | {name} | {what}", use, make


def run(entry: str) -> None:
    """All cells of an entry. Where a column is used, it is a SchemaError that names it."""
    tried = 0
    for cell, use, make in cells(entry):
        sys.stdout.write(f"{cell}\n")
        sys.stdout.flush()
        array = make()
        ts = pa.array(TIMES)
        bad = pa.RecordBatch.from_arrays([ts, array], ["ts", "x"])
        if not use.refuses:  # one row, so that it can come twice
            bad = bad.slice(0, 1)
        error = ENTRIES[entry](use, bad)
        tried += 1
        if use.refuses:
            assert isinstance(error, ps.SchemaError), f"{cell}: {error!r}"
            assert "'x" in str(error) or "do not go together" in str(error), f"{cell}: {error}"
            assert "." in entry or "input" in str(error), f"{cell}: {error}"
        else:
            assert error is None or isinstance(error, ps.SchemaError), f"{cell}: {error!r}"
    sys.stdout.write(f"tried {tried}\n")


if __name__ == "__main__":
    run(sys.argv[1])
