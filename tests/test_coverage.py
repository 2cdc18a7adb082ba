"""Branch coverage of csrc: at least 95 %, and tests/uncovered.toml has a reason for every branch that is not taken."""

from __future__ import annotations

import pytest
from branches import Coverage, listed, stale, told, unlisted

SHARE_MIN = 0.95
RUNS_MAX = 3


def test_every_entry_has_a_reason():
    reasons, entries = listed()
    nameless = {line: e.branches for line, e in entries.items() if not e.reason}
    assert not nameless, f"say in tests/uncovered.toml why not:\n{told(nameless)}"
    names = {e.reason for e in entries.values() if " " not in e.reason}
    assert names == set(reasons), "a reason is named in the table or a sentence, and no name is left over"


@pytest.mark.full
def test_branches_of_csrc(tmp_path):
    coverage, (_, entries) = Coverage(tmp_path), listed()
    for _ in range(RUNS_MAX):  # threads may have met differently: once more, on top of what was counted
        coverage.run()
        measured = coverage.measure()
        if not unlisted(measured, entries):
            break
    assert measured.share >= SHARE_MIN
    hint = "write a test, or `python tests/branches.py --update` and give a reason in tests/uncovered.toml"
    assert not unlisted(measured, entries), f"{hint}:\n{told(unlisted(measured, entries))}"
    hint = "these are taken now, or gone: `python tests/branches.py --update`, or mark them `sometimes = true`"
    assert not stale(measured, entries), f"{hint}:\n{told(stale(measured, entries))}"
