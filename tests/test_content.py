"""Queries by content: equal, hashed, pickled, and shown to people."""

from __future__ import annotations

import ctypes
import itertools
import math
import pickle
import re
from datetime import timedelta
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream.queries import PAPER

HIGH = pc.field("cons") > 5


class Mine:
    def process_tuple(self, row):
        pass

    def produce_out_tuple(self):
        return None


def native(columns: str = "cons", process=ctypes.c_void_p(1 << 20)) -> ps.Query:  # noqa: B008 - an address, never called
    produce = ctypes.c_void_p(2 << 20)
    return ps.native_udf(process, produce, state_size=8, columns=columns, type=pa.float64())


#: Each makes the same query every time it is called, and none makes the one that another makes.
DIFFERENT = [
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count()}),
    lambda: ps.Query(ps.Window(30, 4), "k", {"n": ps.count()}),
    lambda: ps.Query(ps.Window("30s", "3s"), "k", {"n": ps.count()}),
    lambda: ps.Query(ps.Window(timedelta(seconds=30)), "k", {"n": ps.count()}),
    lambda: ps.Query(ps.Window(30, 3), None, {"n": ps.count()}),
    lambda: ps.Query(ps.Window(30, 3), ["k", "j"], {"n": ps.count()}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"m": ps.count()}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count()}, ts="time"),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count(where=HIGH)}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count(where=pc.field("cons") > 6)}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count(where=pc.field("cons") > 5.0)}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.count(where=~(pc.field("cons") > 5))}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.sum("cons")}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.sum("gen")}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.min("cons")}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"a": ps.count(), "b": ps.sum("cons")}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"b": ps.sum("cons"), "a": ps.count()}),  # other columns
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.udf(Mine)}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.udf(Mine, type=pa.int8())}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": ps.udf(dict)}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": native()}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": native("gen")}),
    lambda: ps.Query(ps.Window(30, 3), "k", {"n": native(process=ctypes.c_void_p(3 << 20))}),
]


@pytest.mark.parametrize("make", DIFFERENT)
def test_the_same_content_is_equal_and_has_one_hash(make):
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() in {make(): 1}


def test_other_content_is_not_equal():
    for one, other in itertools.combinations(DIFFERENT, 2):
        assert one() != other(), f"{one()} and {other()}"
    assert len({make() for make in DIFFERENT}) == len(DIFFERENT)
    assert ps.Query(ps.Window(1), None, {"n": ps.count()}) != "query"
    assert ps.count() != "count"


def test_two_ways_to_write_the_same():
    assert ps.Query(ps.Window(30), "k", {"n": ps.mean("c")}) == ps.Query(ps.Window(30, 30), ["k"], {"n": ps.avg("c")})
    assert ps.count(where=pc.field("a") == 0.0) == ps.count(where=pc.field("a") == -0.0)  # as Arrow has it
    assert len({ps.count(where=pc.field("a") == 0.0), ps.count(where=pc.field("a") == -0.0)}) == 1
    nan = ps.count(where=pc.field("a") > pc.scalar(math.nan))
    assert nan == nan  # noqa: PLR0124 - an expression with a NaN need not equal itself


@pytest.mark.parametrize("name", PAPER)
def test_a_query_that_was_pickled_is_the_same(name):
    query = PAPER[name].query
    back = pickle.loads(pickle.dumps(query))  # noqa: S301 - our own
    assert back == query
    assert hash(back) == hash(query)
    assert repr(back) == repr(query)


def test_mean_is_avg():
    rows = {"ts": [0, 1, 2], "cons": [1.0, 2.0, None]}
    table = ps.aggregate(ps.Query(ps.Window(10), None, {"a": ps.avg("cons"), "m": ps.mean("cons", where=HIGH)}), [rows])
    assert table.to_pylist() == [{"ts": 0, "a": 1.5, "m": None}]
    with pytest.raises(TypeError, match=r"mean\(\) takes the name of a column"):
        ps.mean(3)


def test_queries_show_what_is_asked():
    query = ps.Query(ps.Window("30s", "5s"), ["a", "b"], {"n": ps.count(where=HIGH), "m": ps.mean("cons")}, ts="time")
    shown = "aggregates={'n': count(where=(cons > 5)), 'm': avg(cons)}"
    assert repr(query) == f"Query(Window('30s', '5s'), key=['a', 'b'], {shown}, ts='time')"
    assert repr(ps.Query(ps.Window(30), None, {"n": ps.count()})) == (
        "Query(Window(30), key=None, aggregates={'n': count()})"
    )


def test_operators_show_how_they_are():
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    with ps.Operator(query, 2, [("ts", "int64")]) as op:
        op.add(0, {"ts": list(range(1200))})
        expected = (
            r"sliced, 2 inputs, 1,200 tuples in, [\d,]+ pending, [\d,]+ windows open, 0 rows out, 0 of them unread"
        )
        assert re.fullmatch(f"<pystream.Operator: {expected}>", repr(op))
        assert re.search(expected, op._repr_html_())
    assert repr(op) == "<pystream.Operator: sliced, 2 inputs, ended>"
    assert "ended" in op._repr_html_()


class Tags(HTMLParser):
    """Which tags a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not attrs

    def handle_data(self, data):
        self.text += data


def test_names_from_the_data_are_no_markup():
    evil = "<script>alert('&amp;\"')</script>"
    query = ps.Query(ps.Window(10), evil, {f"{evil}2": ps.sum(evil, where=pc.field(evil) > 1)}, ts=f"{evil}3")
    schema = pa.schema([(evil, pa.int64()), (f"{evil}3", pa.int64())])
    with ps.Operator(query, 1, schema) as op:
        for shown in (query._repr_html_(), op._repr_html_()):
            tags = Tags()
            tags.feed(shown)
            assert tags.seen == {"table", "caption", "tr", "th", "td"}
            assert evil in tags.text
