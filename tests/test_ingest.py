"""What an input may be, and that nothing is copied that need not be."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream._engine.plan import Plan

QUERY = ps.Query(ps.Window(10), "k", {"n": ps.count(), "total": ps.sum("v")})
COLUMNS = {"ts": np.array([1, 2, 11]), "k": np.array([7, 7, 8]), "v": np.array([0.5, 0.25, 4.0])}
EXPECTED = [{"ts": 0, "k": 7, "n": 2, "total": 0.75}, {"ts": 10, "k": 8, "n": 1, "total": 4.0}]
TABLE = pa.table(COLUMNS)


class OnlyArray:
    """Speaks the Arrow PyCapsule interface for one array and nothing else."""

    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


class OnlyStream:
    """Speaks the Arrow PyCapsule interface for streams and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


SOURCES = {
    "table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(max_chunksize=1),
    "dict of numpy": lambda: COLUMNS,
    "dict of lists": lambda: {name: values.tolist() for name, values in COLUMNS.items()},
    "list of batches": lambda: TABLE.to_batches(max_chunksize=1),
    "generator of dicts": lambda: ({name: values[i : i + 1] for name, values in COLUMNS.items()} for i in range(3)),
    "array capsule": lambda: OnlyArray(TABLE.to_batches()[0]),
    "stream capsule": lambda: OnlyStream(TABLE),
    "polars": lambda: pl.from_arrow(TABLE),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "strided numpy": lambda: {name: np.repeat(values, 2)[::2] for name, values in COLUMNS.items()},
    "big-endian numpy": lambda: {
        name: values.astype(values.dtype.newbyteorder(">")).astype(values.dtype) for name, values in COLUMNS.items()
    },
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_sources(source):
    assert ps.aggregate(QUERY, [source()]).to_pylist() == EXPECTED


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_operator_takes_the_same_sources(source):
    with ps.Operator(QUERY, 1, TABLE.schema) as op:
        op.add(0, source())
        op.close(0)
        assert [row for batch in op for row in batch.to_pylist()] == EXPECTED


@pytest.mark.parametrize("source", [3, b"text", None, np.arange(3), [1, 2]])
def test_other_things_are_refused(source):
    with pytest.raises(ps.SchemaError, match="an input must be an Arrow table"):
        ps.aggregate(QUERY, [source])


def test_no_input_is_refused():
    with pytest.raises(ValueError, match="at least one input"):
        ps.aggregate(QUERY, [])


def test_columns_are_not_copied():
    query = ps.Query(ps.Window(10), ["k", "s"], {"total": ps.sum("v"), "low": ps.min("d")})
    batch = pa.RecordBatch.from_pydict(
        {"ts": [1, 2], "k": [1, 2], "s": ["a", "b"], "v": [1.0, 2.0], "d": [date(2020, 1, 1), None]},
    )
    prepared = Plan(query, batch.schema).prepare(batch)
    for name, column in zip(["ts", "k", "s", "v", "d"], prepared.columns, strict=True):
        mine = [b.address for b in batch.column(name).buffers() if b]
        assert [b.address for b in column.buffers() if b] == mine


# ---- timestamps ----


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Stockholm"])
def test_timestamp_columns(unit, zone):
    moments = [datetime(2020, 1, 1, 0, 0, s, tzinfo=UTC if zone else None) for s in (0, 29, 30)]
    ts = pa.array(moments, pa.timestamp(unit, zone))
    for window in (ps.Window("30s"), ps.Window(timedelta(seconds=30)), ps.Window(timedelta(seconds=30), "30s")):
        query = ps.Query(window, None, {"n": ps.count()}, ts="when")
        result = ps.aggregate(query, [pa.table({"when": ts})])
        assert result.schema.field("ts").type == pa.timestamp(unit, zone)
        assert result["n"].to_pylist() == [2, 1]
        assert result["ts"].to_pylist() == [
            moments[0].astimezone(result["ts"][0].as_py().tzinfo) if zone else moments[0],
            result["ts"][1].as_py(),
        ]
        assert (result["ts"][1].as_py() - result["ts"][0].as_py()) == timedelta(seconds=30)


def test_durations_need_timestamps_and_whole_units():
    with pytest.raises(ValueError, match="needs an Arrow timestamp column"):
        ps.aggregate(ps.Query(ps.Window("30s"), None, {"n": ps.count()}), [TABLE])
    seconds = pa.table({"ts": pa.array([1], pa.timestamp("s"))})
    with pytest.raises(ValueError, match="'250ms' is not a whole number of s"):
        ps.aggregate(ps.Query(ps.Window("250ms"), None, {"n": ps.count()}), [seconds])


@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.uint16(), pa.uint64()])
def test_integer_timestamps_of_any_width(type):
    result = ps.aggregate(QUERY, [TABLE.set_column(0, "ts", TABLE["ts"].cast(type))])
    assert result.to_pylist() == EXPECTED
    assert result.schema.field("ts").type == pa.int64()


def test_timestamps_that_are_none():
    with pytest.raises(
        ps.SchemaError, match="timestamp column 'ts' has type double; it must be an integer or a timestamp"
    ):
        ps.aggregate(QUERY, [TABLE.set_column(0, "ts", TABLE["ts"].cast(pa.float64()))])
    with pytest.raises(ps.SchemaError, match="input 0: column 'ts' has type uint64 where int64 is expected"):
        ps.aggregate(QUERY, [{**COLUMNS, "ts": np.array([1, 2, 2**63], "uint64")}])
    with pytest.raises(ps.DisorderError, match="input 0, row 0: timestamp 1969-12-31T23:59:55 is before 1970"):
        ps.aggregate(ps.Query(ps.Window(1), None, {"n": ps.count()}), [{"ts": pa.array([-5], pa.timestamp("s"))}])


# ---- types of keys and values ----

TYPES = [
    (pa.array([True, False, None]), [False, True, None]),
    (pa.array([3, -3, None], pa.int8()), [-3, 3, None]),
    (pa.array([2**64 - 1, 0, None], pa.uint64()), [0, 2**64 - 1, None]),
    (pa.array([1.5, -1.5, None], pa.float32()), [-1.5, 1.5, None]),
    (pa.array(np.array([1.5, -1.5, 0], "float16")), [-1.5, 0.0, 1.5]),
    (pa.array(["b", "a\0b", None]), ["a\0b", "b", None]),
    (pa.array(["b", "", None], pa.large_string()), ["", "b", None]),
    (pa.array(["b", "a" * 40, None], pa.string_view()), ["a" * 40, "b", None]),
    (pa.array([b"\xff\x00", b"\x00", None], pa.binary()), [b"\x00", b"\xff\x00", None]),
    (pa.array(["b", "a", None]).dictionary_encode(), ["a", "b", None]),
    (pa.array([date(2020, 1, 2), date(1960, 1, 1), None]), [date(1960, 1, 1), date(2020, 1, 2), None]),
    (
        pa.array([2, -1, None], pa.timestamp("us")),
        pa.array([-1, 2, None], pa.timestamp("us")).to_pylist(),
    ),
    (pa.array([2, 1, None], pa.duration("ms")), [timedelta(milliseconds=1), timedelta(milliseconds=2), None]),
    (pa.array([2, 1, None], pa.time32("s")), pa.array([1, 2, None], pa.time32("s")).to_pylist()),
    (pa.nulls(3), [None]),
]


@pytest.mark.parametrize(("array", "expected"), TYPES, ids=[str(a.type) for a, _ in TYPES])
def test_key_types_come_out_sorted_with_nulls_last(array, expected):
    query = ps.Query(ps.Window(10), "key", {"n": ps.count()})
    result = ps.aggregate(query, [{"ts": [0, 1, 2], "key": array}])
    assert result["key"].to_pylist() == expected
    values = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    assert result.schema.field("key").type == (pa.string() if values == pa.string_view() else values)


@pytest.mark.parametrize(("array", "expected"), TYPES, ids=[str(a.type) for a, _ in TYPES])
def test_value_types(array, expected):
    functions = {"low": ps.min("v"), "high": ps.max("v"), "first": ps.first("v"), "last": ps.last("v")}
    result = ps.aggregate(ps.Query(ps.Window(10), None, functions), [{"ts": [0, 1, 2], "v": array}])
    present = [v for v in expected if v is not None]
    given = [v.as_py() for v in array if v.as_py() is not None]
    assert result.drop_columns("ts").to_pylist() == [
        {
            "low": present[0] if present else None,
            "high": present[-1] if present else None,
            "first": given[0] if given else None,
            "last": given[-1] if given else None,
        },
    ]


def test_types_that_cannot_be_aggregated_are_refused_by_name():
    lists = pa.array([[1], [2]])
    with pytest.raises(ps.SchemaError, match=r"column 'v' has type list<.*>, which pystream cannot aggregate; cast it"):
        ps.aggregate(ps.Query(ps.Window(1), None, {"f": ps.first("v")}), [{"ts": [0, 1], "v": lists}])
    with pytest.raises(ps.SchemaError, match=r"total = sum\(v\): column of type string has no sum"):
        ps.aggregate(ps.Query(ps.Window(1), None, {"total": ps.sum("v")}), [{"ts": [0], "v": ["a"]}])
    with pytest.raises(ps.SchemaError, match="input 0: column 'v' is missing"):
        ps.aggregate(QUERY, [{"ts": [0], "k": [1]}])


def test_inputs_of_different_types_meet_in_the_wider_one():
    query = ps.Query(ps.Window(10), "k", {"low": ps.min("v")})
    a = {"ts": np.array([1]), "k": np.array([1], "int8"), "v": np.array([1], "int32")}
    b = {"ts": np.array([1]), "k": np.array([2**40]), "v": np.array([0.5])}
    for inputs in ([a, b], [b, a]):
        result = ps.aggregate(query, inputs)
        assert result.schema.types == [pa.int64(), pa.int64(), pa.float64()]
        assert result.to_pylist() == [{"ts": 0, "k": 1, "low": 1.0}, {"ts": 0, "k": 2**40, "low": 0.5}]
    with pytest.raises(ps.SchemaError, match="the inputs' columns do not go together"):
        ps.aggregate(query, [a, {**b, "v": ["x"]}])


# ---- inputs that hold nothing ----


def test_empty_inputs():
    empty = TABLE.slice(0, 0)
    assert ps.aggregate(QUERY, [empty, TABLE, [], iter(())]).to_pylist() == EXPECTED
    result = ps.aggregate(QUERY, [empty, []])
    assert (result.num_rows, result.schema.types) == (0, [pa.int64(), pa.int64(), pa.int64(), pa.float64()])
    assert ps.aggregate(QUERY, [[], []]).column_names == ["ts", "k", "n", "total"]


def test_no_empty_batches_in_the_output():
    with ps.Operator(QUERY, 1, TABLE.schema) as op:
        op.add(0, TABLE.slice(0, 0))
        op.close(0)
        assert list(op) == []


# ---- where ----


def test_where_counts_null_as_false_and_sees_every_column():
    query = ps.Query(
        ps.Window(10),
        None,
        {"all": ps.count(), "some": ps.count(where=pc.field("flag")), "v": ps.sum("v", where=pc.field("other") > 1)},
    )
    data = {"ts": [0, 1, 2], "flag": [True, None, False], "other": [1, 2, None], "v": [1, 2, 4]}
    assert ps.aggregate(query, [data]).to_pylist() == [{"ts": 0, "all": 3, "some": 1, "v": 2}]


def test_where_that_does_not_fit_is_refused_before_anything_runs():
    for where in (pc.field("nope") > 1, pc.field("k") > "text", pc.field("s")):
        query = ps.Query(ps.Window(10), None, {"n": ps.count(where=where)})
        with pytest.raises(ps.SchemaError, match="where="):
            ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())]))


def test_sliced_and_filtered_arrays_keep_their_offsets():
    flags = pa.array([True, False, None, True] * 10)
    table = pa.table({"ts": range(40), "k": pa.array([str(i % 3) for i in range(40)]), "flag": flags})
    query = ps.Query(ps.Window(7), "k", {"n": ps.count(where=pc.field("flag")), "f": ps.first("flag")})
    sliced = table.slice(3, 29)
    copied = pa.Table.from_pylist(sliced.to_pylist(), schema=sliced.schema)
    assert ps.aggregate(query, [sliced]).equals(ps.aggregate(query, [copied]))
