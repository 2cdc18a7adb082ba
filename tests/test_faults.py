"""The table of faults: well formed, complete, nothing lost; and the program that writes it."""

from __future__ import annotations

import json

import pytest
from faults import BEGIN, END, HEADING, README, TESTS, Row, commit, measured, merged, names, record, table


def test_every_fault_that_a_test_records_has_a_row():
    rows = table(README.read_text())
    assert [row.fault for row in rows] == sorted(names()), "run: python tests/faults.py --update"
    assert all((TESTS / row.where).is_file() for row in rows)


def test_nothing_was_lost():
    for row in table(README.read_text()):
        assert row.lost in (0, None), row
        assert row.survived == row.tried, row


def test_the_table_reads_as_it_was_written():
    rows = [Row("a", "test_faults.py"), Row("b", "test_faults.py", 1234, 1234, 0, "2026-01-02, abc")]
    text = "\n".join(["before", BEGIN, HEADING, *(row.text() for row in rows), END, "after"])
    assert table(text) == rows
    with pytest.raises(ValueError, match="no table of faults"):
        table(text.replace("lost", "gone"))


def test_lines_of_a_run_are_added_up(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.delenv("PYSTREAM_FAULTS_LOG", raising=False)
    record("for a test", tried=1, survived=1, lost=0, where="test_faults.py")
    monkeypatch.setenv("PYSTREAM_FAULTS_LOG", str(log))
    for _ in range(3):
        record("for a test", tried=5, survived=5, lost=0, where="test_faults.py")
    (row,) = measured(log.read_text().splitlines()).values()
    assert (row.tried, row.survived, row.lost) == (15, 15, 0)
    assert row.measured == json.loads(log.read_text().splitlines()[0])["measured"]
    assert row.measured.endswith(f", {commit()}")


def test_the_run_that_tried_most_stays_unless_something_was_lost():
    old, known = [Row("a", "x", 9, 9, 0), Row("gone", "x", 1, 1, 0)], {"a": "x", "b": "y"}
    assert merged(old, {"a": Row("a", "x", 3, 3, 0)}, known) == [old[0], Row("b", "y")]
    for better in (Row("a", "x", 9, 9, 0, "later"), Row("a", "x", 3, 2, 1)):
        assert merged(old, {"a": better}, known) == [better, Row("b", "y")]
