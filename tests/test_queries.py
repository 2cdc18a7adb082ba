"""The paper's twelve queries: what they are, and that each gives what the oracle gives."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import pystream as ps
from pystream import reference
from pystream.data.sample import SCHEMAS, comments, smart_meters
from pystream.operator import designs_for
from pystream.queries import HAS_MAIL, HAS_MAIL_OR_IP, IP, MAIL, PAPER

SAMPLES = {"EC": smart_meters(4, 2_000, seed=3, span_s=50), "SC": comments(4, 2_000, seed=3, span_s=50)}

#: The predicates in plain Python; `\b` of RE2 knows ASCII only.
KEEP = {str(HAS_MAIL): re.compile(MAIL, re.ASCII), str(HAS_MAIL_OR_IP): re.compile(f"{MAIL}|{IP}", re.ASCII)}

#: The paper's table: data set, window size and advance, key, function and column, filtered or not.
TABLE = {
    "k-OS": ("EC", 30, 3, "meter", "first", "cons", None),
    "K-OS": ("SC", 30, 3, "song", "first", "cmt", None),
    "w-OS": ("EC", 20, 2, "meter", "first", "cons", None),
    "W-OS": ("EC", 40, 2, "meter", "first", "cons", None),
    "f-OS": ("SC", 20, 2, "song", "first", "cmt", HAS_MAIL),
    "F-OS": ("SC", 20, 2, "song", "first", "cmt", HAS_MAIL_OR_IP),
    "k-OI": ("EC", 30, 3, "meter", "count", None, None),
    "K-OI": ("SC", 30, 3, "song", "count", None, None),
    "w-OI": ("EC", 20, 2, "meter", "avg", "cons", None),
    "W-OI": ("EC", 40, 2, "meter", "avg", "cons", None),
    "f-OI": ("SC", 20, 2, "song", "count", None, HAS_MAIL),
    "F-OI": ("SC", 20, 2, "song", "count", None, HAS_MAIL_OR_IP),
}

#: text: has a mail address, has an IPv4 address
TEXTS = {
    "write to anna.b+music@mail.example.com!": (True, False),
    "<a@b.io>": (True, False),
    "x@sub-domain.example.org,y": (True, False),
    "mirror on 192.0.2.1.": (False, True),
    "0.0.0.0 and 255.255.255.255": (False, True),
    "anna@example.com or 10.0.0.1": (True, True),
    "me@home": (False, False),
    "see you @ the show": (False, False),
    "a@b.c": (False, False),
    "a@b..com": (False, False),
    "256.1.1.1": (False, False),
    "1.2.3.256": (False, False),
    "1.2.3": (False, False),
    "v01.2.3.4": (False, False),
    "x1.2.3.4": (False, False),
    "1.2.3.4x": (False, False),
    "": (False, False),
}


def test_table():
    """The identifiers, in the paper's order, and all that the paper's table says of them."""
    assert list(PAPER) == list(TABLE)
    for id, (dataset, size, advance, key, function, column, where) in TABLE.items():
        q = PAPER[id]
        (aggregate,) = q.query.aggregates.values()
        assert (q.id, q.dataset, q.order_sensitive) == (id, dataset, id.endswith("OS"))
        assert (q.query.window, q.query.key, q.query.ts) == (ps.Window(size, advance), (key,), "ts")
        assert (aggregate.function, aggregate.column) == (function, column)
        assert aggregate.where.equals(where) if where is not None else aggregate.where is None
        assert q.description
        assert {"ts", key, *([column] if column else [])} <= set(SCHEMAS[dataset].names)


def test_frozen():
    with pytest.raises(AttributeError):
        PAPER["k-OS"].id = "other"


@pytest.mark.parametrize("id", PAPER)
@pytest.mark.usefixtures("nothing_left")
def test_against_oracle_in_every_design_that_allows_it(id):
    q = PAPER[id]
    (name,) = q.query.aggregates
    streams = SAMPLES[q.dataset]

    def keep(_name, row):
        return KEEP[str(q.query.aggregates[name].where)].search(row["cmt"]) is not None

    expected = reference.aggregate(q.query, [s.to_pylist() for s in streams], keep)
    assert any(row[name] for row in expected)  # the filters let something through
    for design in designs_for(q.query):
        assert ps.aggregate(q.query, streams, design=design, threads=2).to_pylist() == expected


@pytest.mark.parametrize("text", TEXTS)
def test_predicates(text):
    has_mail, has_ip = TEXTS[text]
    table = pa.table({"cmt": [text]})
    for predicate, expected in ((HAS_MAIL, has_mail), (HAS_MAIL_OR_IP, has_mail or has_ip)):
        assert len(table.filter(predicate)) == expected
        assert bool(KEEP[str(predicate)].search(text)) == expected


def test_predicates_of_null():
    """A comment that is not there has no address; its row still exists."""
    table = pa.table({"ts": [1], "song": [7], "cmt": pa.array([None], pa.string())})
    assert ps.aggregate(PAPER["F-OI"].query, [table]).to_pylist() == [{"ts": 0, "song": 7, "count": 0}]
    assert ps.aggregate(PAPER["F-OS"].query, [table]).to_pylist() == [{"ts": 0, "song": 7, "first": None}]


def test_the_sample_query_of_the_paper():
    """Power outages by meter, window 3/2: of two alarms at 4 and 6 the first is ready, the second is not."""
    query = ps.Query(ps.Window(3, 2), "meter", {"alarms": ps.count()})
    schema = pa.schema([("ts", pa.int64()), ("meter", pa.string())])
    with ps.Operator(query, 2, schema, design="tuml-sc") as op:
        op.add(0, {"ts": [1, 4], "meter": ["SM1", "SM1"]})
        op.add(1, {"ts": [3, 6], "meter": ["SM2", "SM1"]})
        assert op.read(timeout=60).to_pylist() == [{"ts": 0, "meter": "SM1", "alarms": 1}]
        op.close(0)
        op.close(1)
        rest = [row for batch in op for row in batch.to_pylist()]
    two, four, six = ({"ts": ts, "meter": "SM1", "alarms": n} for ts, n in ((2, 1), (4, 2), (6, 1)))
    assert rest == [two, {"ts": 2, "meter": "SM2", "alarms": 1}, four, six]
