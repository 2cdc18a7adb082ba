"""The tests of the operator once more, on builds that are made for finding mistakes (csrc/CMakeLists.txt).

"small": every size is as small as it can be, and what is freed is overwritten. "address": the extension under the
AddressSanitizer and the UndefinedBehaviorSanitizer, in a Python whose memory, and Arrow's, they watch as well. With
--deep both at once, more files, and as many examples as usual; without --full one file.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from builds import ROOT, SAID, build, copied, outcome

SECONDS = 900  #: for one file; a build that waits for ever is found, a loaded machine is not

FILES = {
    "small": ["test_aggregate.py", "test_borders.py", "test_operator.py", "test_packed.py", "test_pane_hive.py"],
    "address": ["test_aggregate.py", "test_borders.py", "test_ingest.py", "test_partials.py", "test_snapshot.py"],
}
DEEP_FILES = [
    *("test_aggregate.py", "test_asyncio.py", "test_borders.py", "test_exact_sum.py", "test_coalesce.py"),
    *("test_ingest.py", "test_key_sweep.py", "test_native_udf.py", "test_operator.py", "test_packed.py"),
    *("test_pane_hive.py", "test_partials.py", "test_query.py", "test_run_gate.py", "test_snapshot.py"),
    *("test_exact_moments.py", "test_stall.py", "test_t_gate.py", "test_w_hive.py", "test_win_set.py"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The project built in that way, once."""

    @cache
    def of(kind: str):
        folder = copied(tmp_path_factory.mktemp(kind))
        build(folder, "_core", kind=kind)
        return folder

    return of


def check(folder, file: str, kind: str) -> None:
    assert outcome(folder, file, seconds=SECONDS, kind=kind) == 0, (folder / SAID).read_text()


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        pytest.param(kind, file, marks=[] if (kind, file) == ("small", "test_borders.py") else pytest.mark.full)
        for kind, files in FILES.items()
        for file in files
    ],
)
def test_the_tests_pass(kind, file, built):
    check(built(kind), file, kind)


@pytest.mark.deep
@pytest.mark.parametrize("file", DEEP_FILES)
@pytest.mark.parametrize("kind", ["small", "address", "address-small"])
def test_all_tests_pass(kind, file, built, monkeypatch):
    monkeypatch.setenv("PYSTREAM_EXAMPLES", "100")
    check(built(kind), file, kind)


# ---- whether the small build is small ----

#: Numbers in csrc that are not sizes, or that cannot be smaller, with the reason.
NOT_SIZES = {
    "AHEAD": "of a hint to the cache",
    "BUCKET_SCALE": "the range of doubles",
    "COUNT_MAX": "what a forged snapshot may say",
    "EXACT_PRODUCT_LIMBS": "the range of products of doubles",
    "EXACT_PRODUCT_MAX_BITS": "the same",
    "EXACT_PRODUCT_WORDS": "the same",
    "EXACT_RATIO_LIMBS": "what the widest result needs",
    "EXACT_SUM_LIMBS": "the range of doubles",
    "EXACT_SUM_NARROW_BIT": "the same",
    "EXACT_SUM_NARROW_UNIT": "the same",
    "EXACT_SUM_SHIFT_MAX": "the same",
    "FINE_BIT": "the same",
    "FOLD_ROWS_MAX": "what forged partials may say",
    "GROUPS": "of 7 bits in a word",
    "HEAD": "what a quotient of two limbs needs",
    "JOURNAL_COLUMNS": "of a table",
    "KERNEL_COLUMNS": "of an entry that travels",
    "KEY_BLOCKS": "how many blocks there may be: with fewer, keys run out",
    "LANES": "of a vector",
    "LIMBS_BYTES": "of a sum of products",
    "MS_CHUNKS": "the same for nodes",
    "MS_LINE": "a cache line",
    "MULTISET_OWN": "most sets of most tests have more words",
    "NARROW_BYTES": "of a sum",
    "NS_PER_S": "time",
    "NUMBER_BYTES": "of the widest number",
    "PIECE_WAIT_MS": "time: it only looks again",
    "POSITION_BITS": "more tuples of one timestamp than any input sends; keys in the list must differ",
    "SQUARES_BYTES": "of a sum of squares",
    "T_GATE_INPUTS_MAX": "what callers may ask for",
    "T_GATE_READERS_MAX": "the same",
    "WAKE_TOLD": "a bit",
    "WIDE_BYTES": "of a sum",
    "WORDS_BYTES": "of a sum of products",
}


def test_every_size_has_a_small_value():
    """A block or a ring that is large in the small build is one whose border no test meets."""
    constants = re.compile(r"(?:#define (\w+)|\b([A-Z][A-Z_]+) =) +\(?(?:\(size_t\)|INT64_C\()?(\d+)\b(.*)")
    large = set()
    for path in sorted(ROOT.glob("csrc/*/*.[ch]")):
        if path.parent.name == "model" or path.stem == "poison":  # the tools themselves
            continue
        for line in path.read_text().splitlines():
            found = constants.search(line)
            if found and (int(found[3]) > 3 or "<<" in found[4]):
                large.add(found[1] or found[2])
    assert large <= NOT_SIZES.keys(), "give each SIZED(usual, least), or its reason here"
