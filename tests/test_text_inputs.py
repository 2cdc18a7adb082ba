"""Text in any layout, fixed-size bytes and uuids: they mix between inputs and between batches of one."""

from __future__ import annotations

import itertools
import uuid

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps

TEXT_QUERY = ps.Query(
    ps.Window(10),
    "k",
    {"n": ps.count(), "low": ps.min("s"), "last": ps.last("s"), "some": ps.count(where=pc.field("w") == "b")},
)


def _dictionary(values, index=None, type=None):
    seen = list(dict.fromkeys(v for v in values if v is not None))
    indices = pa.array([None if v is None else seen.index(v) for v in values], index)
    return pa.DictionaryArray.from_arrays(indices, pa.array(seen, type))


def _run_ends(values):
    return pc.run_end_encode(pa.array(values))


LAYOUTS = {
    "string": pa.array,
    "large_string": lambda v: pa.array(v, pa.large_string()),
    "string_view": lambda v: pa.array(v, pa.string_view()),
    "dictionary": _dictionary,
    "dictionary of large_string": lambda v: _dictionary(v, pa.uint8(), pa.large_string()),
    "dictionary of string_view": lambda v: _dictionary(v, pa.uint32(), pa.string_view()),
    "run ends": _run_ends,
}


def _batch(layout, ts):
    k, s, w = ["x", None, "x"], ["b", "a", None], ["b", "b", None]
    return pa.RecordBatch.from_pydict({"ts": ts} | {n: LAYOUTS[layout](v) for n, v in (("k", k), ("s", s), ("w", w))})


def _rows(inputs):
    return [
        {"ts": 0, "k": "x", "n": 2 * inputs, "low": "b", "last": "b", "some": inputs},
        {"ts": 0, "k": None, "n": inputs, "low": "a", "last": "a", "some": inputs},
    ]


@pytest.mark.parametrize("pair", list(itertools.product(LAYOUTS, LAYOUTS)), ids="+".join)
def test_layouts_of_text_mix_between_inputs(pair):
    result = ps.aggregate(TEXT_QUERY, [_batch(layout, [1, 2, 3]) for layout in pair])
    assert result.to_pylist() == _rows(2)
    assert result.schema.field("k").type in (pa.string(), pa.large_string())


@pytest.mark.parametrize("pair", list(itertools.product(LAYOUTS, LAYOUTS)), ids="+".join)
def test_layouts_of_text_mix_between_batches(pair):
    parts = [_batch(pair[0], [1, 2, 3]), _batch(pair[1], [4, 5, 6])]
    assert ps.aggregate(TEXT_QUERY, [parts]).to_pylist() == _rows(2)
    for schema in (parts[0].schema, parts[1].schema):
        with ps.Operator(TEXT_QUERY, 1, schema) as op:
            op.add(0, parts[0])
            op.add(0, parts[1:])
            op.close(0)
            assert [row for batch in op for row in batch.to_pylist()] == _rows(2)
        with ps.Operator(TEXT_QUERY, 1, schema) as op:
            op.add(0, parts)  # as one batch
            op.close(0)
            assert [row for batch in op for row in batch.to_pylist()] == _rows(2)


def test_a_result_type_does_not_depend_on_the_order_of_inputs():
    inputs = [_batch(layout, [1, 2, 3]) for layout in LAYOUTS]
    assert ps.aggregate(TEXT_QUERY, inputs).schema == ps.aggregate(TEXT_QUERY, inputs[::-1]).schema


@pytest.mark.parametrize("type", [pl.Categorical, pl.Enum(["x", "a", "b"]), pl.String], ids=str)
def test_polars_categorical_and_enum(type):
    """Sorted by their text, not by their codes: the codes differ between frames."""
    frame = pl.DataFrame({"ts": [1, 2, 3], "k": ["x", None, "x"], "s": ["b", "a", None], "w": ["b", "b", None]})
    frame = frame.with_columns(pl.col("k", "s", "w").cast(type))
    assert ps.aggregate(TEXT_QUERY, [frame]).to_pylist() == _rows(1)
    assert ps.aggregate(TEXT_QUERY, [frame, _batch("string", [1, 2, 3])]).to_pylist() == _rows(2)
    with ps.Operator(TEXT_QUERY, 1, frame.to_arrow().schema) as op:
        op.add(0, frame)
        op.close(0)
        assert [row for batch in op for row in batch.to_pylist()] == _rows(1)


def test_pandas_categories():
    frame = pd.DataFrame({"ts": [1, 2, 3], "k": ["x", None, "x"], "s": ["b", "a", None], "w": ["b", "b", None]})
    frame = frame.astype(dict.fromkeys("ksw", "category"))
    assert ps.aggregate(TEXT_QUERY, [frame, _batch("large_string", [1, 2, 3])]).to_pylist() == _rows(2)


def test_dictionaries_of_numbers():
    numbers = pa.array([5, 3, None, 5]).dictionary_encode()
    query = ps.Query(ps.Window(10), "k", {"total": ps.sum("k"), "low": ps.min("k")})
    result = ps.aggregate(query, [{"ts": [0, 1, 2, 3], "k": numbers}, {"ts": [0], "k": [4]}])
    assert result["k"].to_pylist() == [3, 4, 5, None]
    assert result["total"].to_pylist() == [3, 4, 10, None]


# ---- fixed-size binary, uuid ----

IDS = [uuid.UUID(int=5), uuid.UUID(int=1 << 100), None, uuid.UUID(int=5)]
SORTED = [uuid.UUID(int=5), uuid.UUID(int=1 << 100), None]


def _bytes(ids):
    return [each and each.bytes for each in ids]


ID_LAYOUTS = {
    "uuid": (pa.array(_bytes(IDS), pa.uuid()), pa.uuid(), SORTED),
    "fixed-size": (pa.array(_bytes(IDS), pa.binary(16)), pa.binary(16), _bytes(SORTED)),
    "dictionary": (pa.array(_bytes(IDS), pa.binary(16)).dictionary_encode(), pa.binary(16), _bytes(SORTED)),
    "binary view": (pa.array(_bytes(IDS), pa.binary_view()), pa.binary(), _bytes(SORTED)),
}


@pytest.mark.parametrize("design", ["auto", "mq", "tuml-mc", "runs"])
@pytest.mark.parametrize(("array", "type", "expected"), ID_LAYOUTS.values(), ids=ID_LAYOUTS)
def test_uuid_keys_and_values(array, type, expected, design):
    query = ps.Query(ps.Window(10), "id", {"n": ps.count(), "first": ps.first("id"), "high": ps.max("id")})
    result = ps.aggregate(query, [{"ts": [1, 2, 3, 4], "id": array}], design=design)
    assert result.schema.field("id").type == result.schema.field("high").type == type
    for name in ("id", "first", "high"):
        assert result[name].to_pylist() == expected
    assert result["n"].to_pylist() == [2, 1, 1]


def test_uuids_as_python_objects():
    query = ps.Query(ps.Window(10), "id", {"n": ps.count()})
    result = ps.aggregate(query, [{"ts": [1, 2, 3, 4], "id": IDS}, pd.DataFrame({"ts": [1], "id": IDS[:1]})])
    assert result["id"].to_pylist() == SORTED
    assert result["n"].to_pylist() == [3, 1, 1]


def test_batches_of_nulls_go_with_every_type():
    query = ps.Query(ps.Window(10), "id", {"n": ps.count()})
    for array, _, expected in ID_LAYOUTS.values():
        parts = [{"ts": [1, 2, 3, 4], "id": array}, {"ts": [5], "id": pa.nulls(1)}]
        for inputs in ([parts], parts, parts[::-1]):
            result = ps.aggregate(query, inputs)
            assert (result["id"].to_pylist(), result["n"].to_pylist()) == (expected, [2, 1, 2])


def test_uuids_and_their_bytes_go_together_as_bytes():
    query = ps.Query(ps.Window(10), "id", {"n": ps.count()})
    inputs = [{"ts": [1, 2, 3, 4], "id": array} for array, *_ in ID_LAYOUTS.values()]
    for n in (2, 3, 4):
        result = ps.aggregate(query, inputs[:n])
        assert (result["id"].to_pylist(), result["n"].to_pylist()) == (_bytes(SORTED), [2 * n, n, n])


def test_uuids_go_through_snapshots():
    query = ps.Query(ps.Window(10), "id", {"n": ps.count(), "last": ps.last("id")})
    batch = pa.RecordBatch.from_pydict({"ts": [1, 2, 3, 4], "id": ID_LAYOUTS["uuid"][0]})
    with ps.Operator(query, 2, batch.schema) as op:
        op.add(0, batch)
        blob = op.snapshot()
    with ps.Operator.restore(query, blob) as op:
        op.close(0)
        op.close(1)
        assert [row["last"] for out in op for row in out.to_pylist()] == SORTED


def test_udfs_see_the_values():
    class Seen:
        def __init__(self):
            self.seen = []

        def process_tuple(self, row):
            self.seen.append(f"{row['id']}{row['s']}")

        def produce_out_tuple(self):
            return ",".join(self.seen)

    query = ps.Query(ps.Window(10), None, {"seen": ps.udf(Seen, pa.string())})
    one, two = (pa.array([uuid.UUID(int=i).bytes], pa.uuid()) for i in (1, 2))
    a, b = {"ts": [1], "id": one, "s": _dictionary(["p"])}, {"ts": [2], "id": two, "s": LAYOUTS["string_view"](["q"])}
    assert ps.aggregate(query, [a, b])["seen"].to_pylist() == [f"{uuid.UUID(int=1)}p,{uuid.UUID(int=2)}q"]
