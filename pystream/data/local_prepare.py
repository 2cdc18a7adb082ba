"""`prepare` without Spark: the same rules, the same streams, the same order, to the bit."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream.data.local_times import kind_of, times_of
from pystream.data.raw_records import EARLY, END_S, FAR, MISSING, TS, TWICE, UNITS, UNREADABLE, Rules, told
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

#: Columns of floats whose -0.0 have a bit each, as on Spark; others are compared as nested ones are.
_BITS = 63

#: Dropped rows that are looked at for examples.
_LOOKED_AT = 10_000


@dataclass(frozen=True)
class LocalPrepared:
    """The streams, each sorted, and what was left out: reason -> rows, reason -> up to two of them as JSON."""

    streams: list[pa.Table]
    dropped: dict[str, int]
    examples: dict[str, list[str]]

    def __str__(self) -> str:
        return told(self.dropped)


def prepare_table(table: pa.Table, rules: Rules) -> LocalPrepared:
    """Turn raw records into streams, as `pystream.spark.prepare` does; `position` is a row's place in its stream."""
    rules.check_names(table.column_names)
    table = pa.table({name: _one(table[name]) for name in table.column_names})
    raw = _one(table[rules.ts])
    rules.check_time(kind_of(raw.type), raw.type)
    ticks, readable, type = times_of(raw, rules)
    others = table.drop_columns([rules.ts])
    why = _reasons(table, raw, ticks, readable, rules)
    good = np.flatnonzero(why < 0)
    number = _stream_numbers(table, rules)[good]
    order = np.lexsort((ticks[good], number))
    names = [rules.ts, *others.column_names] if _says_more(raw.type) else others.column_names
    rows, copies = _once(table.select(names), good[order], ticks, number[order])
    timed = others.add_column(0, pa.field(TS, type, nullable=False), pa.array(ticks).cast(type))
    numbers = np.full(table.num_rows, -1)
    numbers[good] = number
    borders = np.searchsorted(numbers[rows], np.arange(rules.streams + 1))
    streams = [timed.take(pa.array(rows[a:b])) for a, b in pairwise(borders)]
    return LocalPrepared(streams, *_report(table, why, copies, rules))


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


# ---- which are dropped ----


def _reasons(
    table: pa.Table, raw: pa.Array, ticks: NDArray[np.int64], readable: NDArray[np.bool_], rules: Rules
) -> NDArray[np.int64]:
    """The number of the reason, -1 if there is none."""
    there = np.asarray(raw.is_valid())
    if kind_of(raw.type) == "text":
        there = there & np.asarray(pc.fill_null(pc.not_equal(pc.utf8_trim(raw.cast(pa.string()), " "), ""), False))
    tests = {MISSING: ~there, UNREADABLE: ~readable, EARLY: ticks < 0, FAR: _far(raw, rules)}
    tests |= {f"without {name}": np.asarray(table[name].is_null()) for name in rules.require}
    why = np.full(table.num_rows, -1)
    for i, reason in reversed(list(enumerate(rules.reasons))):
        why[tests[reason]] = i
    return why


def _far(raw: pa.Array, rules: Rules) -> NDArray[np.bool_]:
    if rules.unit is None:
        return np.zeros(len(raw), bool)
    end = min(END_S * UNITS[rules.unit], (1 << 63) - 1)
    return np.asarray(pc.fill_null(pc.greater_equal(raw.cast(pa.int64()), end), False))


def _report(
    table: pa.Table, why: NDArray[np.int64], copies: NDArray[np.int64], rules: Rules
) -> tuple[dict[str, int], dict[str, list[str]]]:
    found = {reason: np.flatnonzero(why == i) for i, reason in enumerate(rules.reasons)}
    found = {reason: rows for reason, rows in sorted(found.items()) if len(rows)} | {TWICE: copies}
    examples = {reason: _examples(table, rows) for reason, rows in found.items() if len(rows)}
    return {reason: len(rows) for reason, rows in found.items()}, examples


def _examples(table: pa.Table, rows: NDArray[np.int64]) -> list[str]:
    records = table.take(pa.array(rows[:_LOOKED_AT])).to_pylist()
    texts = {
        json.dumps({k: v for k, v in r.items() if v is not None}, separators=(",", ":"), default=str) for r in records
    }
    return sorted({min(texts), max(texts)})


# ---- which are equal, and in which order ----


def _once(
    table: pa.Table,
    rows: NDArray[np.int64],
    ticks: NDArray[np.int64],
    number: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows, sorted by stream and time, with equal times in the order of contents and equal records once."""
    times = ticks[rows]
    same = (times[1:] == times[:-1]) & (number[1:] == number[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = np.cumsum(np.append(True, ~same))[tied] if len(rows) else tied
    chosen = table.take(pa.array(rows[tied]))
    names = table.column_names
    floats = [name for name in names if pa.types.is_floating(table[name].type)][:_BITS]
    codes = [_codes(_one(chosen[name]), by_key=name not in floats) for name in names]
    zeros = _zeros([_one(chosen[name]) for name in floats], len(tied))
    keys = [group, *codes, -zeros]
    inner = np.lexsort(keys[::-1])
    rows = rows.copy()
    rows[tied] = rows[tied][inner]
    repeated = np.ones(max(len(tied) - 1, 0), bool)
    for key in keys:
        repeated &= key[inner][1:] == key[inner][:-1]
    twice = tied[1:][repeated]
    return np.delete(rows, twice), rows[twice]


def _says_more(type: pa.DataType) -> bool:
    """Whether a raw time may tell records apart that have one time in microseconds."""
    return kind_of(type) != "instant" or type.unit == "ns"


def _zeros(columns: Iterable[pa.Array], rows: int) -> NDArray[np.int64]:
    """A bit for each column of floats that is -0.0."""
    total = np.zeros(rows, np.int64)
    for i, column in enumerate(columns):
        values = pc.fill_null(column.cast(pa.float64()), 1.0).to_numpy(zero_copy_only=False)
        total |= ((values == 0) & np.signbit(values)).astype(np.int64) << i
    return total


def _codes(column: pa.Array, *, by_key: bool) -> NDArray[np.int64]:
    """Integers in the order of the values: null first, NaN last. `by_key` tells -0.0 from 0.0."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    if pa.types.is_nested(column.type) or (pa.types.is_floating(column.type) and by_key):
        keys = [_key(value, column.type) for value in column.to_pylist()]
        rank = {key: i for i, key in enumerate(sorted(set(keys)))}
        return np.array([rank[key] for key in keys], np.int64)
    there = np.asarray(column.is_valid())
    if pa.types.is_floating(column.type):
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        return np.where(there, np.unique(values, return_inverse=True)[1], -1)
    encoded = column.dictionary_encode()
    rank_of = np.empty(len(encoded.dictionary) + 1, np.int64)
    rank_of[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    return np.where(there, rank_of[pc.fill_null(encoded.indices, 0).to_numpy()], -1)


def _key(value: Any, type: pa.DataType) -> tuple[Any, ...]:
    """What Python can compare, in Spark's order: null first, NaN last, text by its bytes, maps by sorted entries."""
    if value is None:
        return (0,)
    if pa.types.is_map(type):
        return 1, tuple(sorted((_key(k, type.key_type), _key(v, type.item_type)) for k, v in value))
    if pa.types.is_struct(type):
        return 1, tuple(_key(value[type.field(i).name], type.field(i).type) for i in range(type.num_fields))
    if pa.types.is_nested(type):
        return 1, tuple(_key(each, type.value_type) for each in value)
    if pa.types.is_floating(type):
        return (1, value != value, 0.0 if value != value else value, not (value == 0 and np.signbit(value)))  # noqa: PLR0124
    return 1, value.encode() if isinstance(value, str) else value


# ---- to which stream ----


def _decides(type: pa.DataType) -> bool:
    checks = ("string", "large_string", "string_view", "boolean", "date", "binary", "large_binary", "fixed_size_binary")
    whole = pa.types.is_integer(type) and type != pa.uint64()
    return whole or any(getattr(pa.types, f"is_{check}")(type) for check in checks)


def _stream_numbers(table: pa.Table, rules: Rules) -> NDArray[np.int64]:
    names = rules.stream or [name for name in table.column_names if name != rules.ts]
    for name in rules.stream or ():
        if not _decides(table[name].type):
            raise SchemaError(
                f"column {name!r} of type {table[name].type} cannot decide the stream: "
                "text, integers, booleans, dates and bytes can"
            )
    total = np.zeros(table.num_rows, np.int64)
    for i, name in enumerate(name for name in names if _decides(table[name].type)):
        total += _checksums(_one(table[name])) * (2 * i + 1)
    return total % rules.streams


def _checksums(column: pa.Array) -> NDArray[np.int64]:
    encoded = (
        column.cast(pa.date32()).cast(pa.int32()) if pa.types.is_date(column.type) else column
    ).dictionary_encode()
    known: NDArray[np.int64] = np.array(
        [zlib.crc32(_text(value)) for value in encoded.dictionary.to_pylist()] + [0], np.int64
    )
    found: NDArray[np.int64] = known[pc.fill_null(encoded.indices, len(known) - 1).to_numpy()]
    return found


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode()
