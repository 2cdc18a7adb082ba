"""What a query may say, and the sentence that comes back when it may not."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream.operator import DESIGNS, UNORDERED_DESIGNS


@pytest.mark.parametrize("value", [0, -1, 2**63, "0s", timedelta(0), timedelta(seconds=-1), "5 fortnights", "fast"])
def test_windows_that_are_none(value):
    with pytest.raises(ValueError, match=r"window|duration"):
        ps.Window(value, 1)
    with pytest.raises(ValueError, match=r"window|duration"):
        ps.Window(1, value)


@pytest.mark.parametrize("value", [1.5, True, [1], b"5s"])
def test_windows_of_the_wrong_type(value):
    with pytest.raises(TypeError, match="window size must be an integer, a timedelta or a string"):
        ps.Window(value)


def test_windows_in_other_units():
    assert ps.Window("5m", "250ms").ticks("ms") == (300_000, 250)
    assert ps.Window(timedelta(days=1, microseconds=3), "1us").ticks("ns") == (86_400_000_003_000, 1_000)
    assert ps.Window(7).ticks(None) == (7, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"aggregates": {}}, "at least one aggregate"),
        ({"aggregates": {"k": ps.count()}}, "more than once: k"),
        ({"aggregates": {"ts": ps.count()}}, "more than once: ts"),
        ({"key": ["k", "k"]}, "more than once: k"),
        ({"window": 30}, "window must be a pystream.Window"),
        ({"aggregates": {"n": "count"}}, "maps names to pystream functions"),
        ({"key": [1]}, "column names"),
    ],
)
def test_queries_that_are_none(arguments, message):
    good = {"window": ps.Window(10), "key": "k", "aggregates": {"n": ps.count()}}
    with pytest.raises((ValueError, TypeError), match=message):
        ps.Query(**{**good, **arguments})


def test_functions_check_their_arguments():
    with pytest.raises(TypeError, match=r"sum\(\) takes the name of a column"):
        ps.sum(3)
    with pytest.raises(TypeError, match="takes a pyarrow compute expression"):
        ps.count(where=True)
    with pytest.raises(TypeError, match="takes a callable"):
        ps.udf(3)
    assert repr(ps.sum("v", where=pc.field("k") > 1)) == "sum(v, where=(k > 1))"


# ---- user functions ----


class Failing:
    def __init__(self, where):
        self.where = where
        if where == "factory":
            raise RuntimeError("boom")

    def process_tuple(self, row):
        if self.where == "process" and row["ts"] == 12:
            raise RuntimeError("boom")

    def produce_out_tuple(self):
        if self.where == "produce":
            raise RuntimeError("boom")
        return 1


@pytest.mark.parametrize("design", [d for d in DESIGNS if d not in UNORDERED_DESIGNS])
@pytest.mark.parametrize("where", ["factory", "process", "produce"])
def test_what_user_code_raises_names_window_and_key(where, design, nothing_left):
    query = ps.Query(ps.Window(10), "k", {"mine": ps.udf(lambda: Failing(where))})
    start = 10 if where == "process" else 0
    with pytest.raises(
        ps.UdfError, match=rf"mine, window starting at {start}, key \('a',\): user code raised RuntimeError: boom"
    ) as e:
        ps.aggregate(query, [{"ts": [1, 12], "k": ["a", "a"]}], design=design)
    assert isinstance(e.value.__cause__, RuntimeError)
    del e


class Constant:
    def __init__(self, results):
        self.results = results

    def process_tuple(self, row):
        self.key = row["k"]

    def produce_out_tuple(self):
        return self.results[self.key]


def test_steps_of_user_windows_without_any_finished_row():
    """A gap between windows swallows the only tuple: there are steps to report, and no row with its string columns."""
    query = ps.Query(ps.Window(1, 2), "k", {"u": ps.udf(lambda: Constant({"a": 1})), "low": ps.min("k")})
    schema = pa.schema([("ts", pa.int64()), ("k", pa.string())])
    with ps.Operator(query, 1, schema) as op:
        op.add(0, {"ts": [1], "k": ["a"]})
        op.close(0)
        assert list(op) == []
    with ps.Operator(query, 1, schema) as op:
        op.add(0, {"ts": [0], "k": ["a"]})
        while op.stats()["pending"]:
            pass
        assert op.poll() == []
        op.close(0)
        assert [b.to_pylist() for b in op] == [[{"ts": 0, "k": "a", "u": 1, "low": "a"}]]


def test_user_results_are_typed_by_the_first_or_as_told():
    data = {"ts": [0, 0, 0], "k": [0, 1, 2]}

    def run(results, type=None):
        query = ps.Query(ps.Window(1), "k", {"u": ps.udf(lambda: Constant(results), type=type)})
        return ps.aggregate(query, [data])["u"]

    assert run([None, "a", None]).to_pylist() == [None, "a", None]
    assert run([1, 2, 3]).type == pa.int64()
    assert run([1, 2.5, 3], pa.float64()).to_pylist() == [1.0, 2.5, 3.0]
    assert run([{"x": 1}, {"x": 2}, None]).to_pylist() == [{"x": 1}, {"x": 2}, None]
    with pytest.raises(ps.UdfError, match=r"u: a result does not fit: .*; its first result made its type int64"):
        run([1, 2.5, 3])
