"""The text searches of the evaluation's queries f and F: they find what the queries' patterns match, in Update."""

from __future__ import annotations

import ctypes
import random
import re

import pyarrow as pa
import pytest

import pystream as ps
from pystream.data.sample import comments
from pystream.designs import designs_for
from pystream.lab.evaluation import text_search
from pystream.lab.evaluation.text_search import in_update
from pystream.queries import IP, MAIL, PAPER

PATTERNS = {"f": re.compile(MAIL, re.ASCII), "F": re.compile(f"{MAIL}|{IP}", re.ASCII)}
QUERIES = list(text_search.SEARCHES)

#: What mail and IP addresses are made of, and what is next to them.
PIECES = [*".@-_%+7 é\n", "a", "b@", "..", "10", "25", "255", "256", "010", "com", "co.uk", "x.y", "1.2.3.4", "9.9.9.9"]


def fingerprint(text: str | None) -> int | None:
    if text is None:
        return None
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def same_as_filter(id: str, inputs: list[pa.Table], design: str) -> None:
    fast = ps.aggregate(PAPER[id].query, inputs).to_pylist()
    found = ps.aggregate(in_update(id), inputs, design=design, threads=2).to_pylist()
    if id.endswith("OS"):
        fast = [row | {"first": fingerprint(row["first"])} for row in fast]
    assert found == fast


@pytest.mark.parametrize("id", QUERIES)
def test_searching_in_update_gives_what_filtering_gives(id):
    inputs = comments(3, 3_000, seed=1, span_s=60)
    for design in designs_for(in_update(id)):
        same_as_filter(id, inputs, design)
    assert ("wiml" in designs_for(in_update(id))) == id.endswith("OI")


def test_other_queries_stay_as_they_are():
    assert all(in_update(id) is PAPER[id].query for id in PAPER if id not in QUERIES)


class Text(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("length", ctypes.c_int64))


def matches(id: str, text: str, code: ctypes.CDLL | None = None) -> bool:
    """What the compiled search says of one text."""
    raw = text.encode()
    value, state = Text(raw, len(raw)), (ctypes.c_int64 * 2)()
    process = getattr(code or text_search.library(), f"{text_search.SEARCHES[id]}_process")
    address = (ctypes.c_uint64 * 1)(ctypes.addressof(value))
    assert process(state, ctypes.c_int64(0), address, (ctypes.c_uint8 * 1)(0)) == 0
    return bool(state[0])


@pytest.mark.parametrize("id", QUERIES)
def test_a_search_finds_what_the_pattern_matches(id):
    rng = random.Random(1)
    texts = ["".join(rng.choices(PIECES, k=rng.randint(0, 8))) for _ in range(20_000)]
    right = [bool(PATTERNS[id[0]].search(text)) for text in texts]
    assert [matches(id, text) for text in texts] == right
    assert 100 < sum(right) < 19_900


def test_the_expensive_function_does_more_in_update():
    """Positions looked at for the same comments: F searches twice unless the first search finds something."""
    code = text_search.library("-DCOUNT_STEPS")
    texts = pa.concat_tables(comments(1, 2_000, seed=2))["cmt"].to_pylist()
    steps = {}
    for id in QUERIES:
        ctypes.c_int64.in_dll(code, "steps").value = 0
        for text in texts:
            matches(id, text, code)
        steps[id] = ctypes.c_int64.in_dll(code, "steps").value
    assert steps["F-OI"] == steps["F-OS"] > 1.8 * steps["f-OS"] == 1.8 * steps["f-OI"]


def test_without_a_compiler_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(text_search.shutil, "which", lambda _name: None)
    with pytest.raises(ps.PystreamError, match="need a C compiler"):
        text_search.library.__wrapped__()
