"""Real TLC on a small spec: every way a run can end, read rightly."""

from __future__ import annotations

import dataclasses
import signal

import pytest

from pystream.verify.tlc import runner, tlc
from pystream.verify.tlc.check import Outcome, Silent, Wish, run_check
from pystream.verify.tlc.coverage import coverage
from pystream.verify.tlc.manifest import load
from pystream.verify.tlc.pluscal import labels
from pystream.verify.tlc.result import Kind, differences, read_result
from pystream.verify.tlc.trace import lines, read_trace


@pytest.fixture(scope="module")
def report(tools, adder) -> Outcome:
    manifest = load(adder)
    wish = Wish([model for model in manifest if not model.deep], translations=True)
    return run_check(tools, adder, manifest, wish, Silent())


def result(report, name):
    return next(result for result in report.results if result.model.name == name)


def told(report, adder, name):
    trace = read_trace(result(report, name), {label.name for label in labels(adder / "Adder.tla")})
    return lines(trace)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AdderPasses", Kind.PASSES),
        ("AdderDirect", Kind.PASSES),
        ("AdderCrashing", Kind.PASSES),
        ("AdderLoses", Kind.INVARIANT),
        ("AdderStutters", Kind.TEMPORAL),
        ("AdderAction", Kind.PROPERTY),
        ("AdderPart", Kind.PROPERTY),
        ("AdderPartAtStart", Kind.PROPERTY),
        ("AdderAtStart", Kind.INVARIANT),
        ("AdderAsserts", Kind.ASSERT),
        ("AdderStuck", Kind.DEADLOCK),
        ("AdderLost", Kind.TEMPORAL),
    ],
)
def test_the_outcome_is_the_expected_one(report, name, kind):
    found = result(report, name)
    assert (found.kind, found.outcome) == (kind, found.model.expected)


def test_counts_and_depth_agree(report):
    for name in ("AdderPasses", "AdderDirect", "AdderCrashing"):
        assert differences(result(report, name)) == []


def test_wrong_counts_are_told(report):
    found = result(report, "AdderPasses")
    wrong = dataclasses.replace(found.model, distinct_states=36, depth=None)
    assert differences(dataclasses.replace(found, model=wrong)) == [
        "distinct states: 92 found, 36 in the manifest",
        "depth: 8 found, none in the manifest",
    ]


def test_a_wrong_outcome_is_told(report):
    found = result(report, "AdderLoses")
    wrong = dataclasses.replace(found.model, expected="pass")
    assert differences(dataclasses.replace(found, model=wrong)) == ["must pass, but invariant violated: NoLoss"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Broken", "at line 3, column"),
        ("Undefined", "Unknown operator: `nowhere'."),
        ("Mistyped", "Attempted to check equality of integer 0 with non-integer"),
    ],
)
def test_errors_of_the_spec_are_told(report, name, told):
    found = result(report, name)
    assert found.kind is Kind.ERROR
    assert told in found.detail
    assert len(found.detail.splitlines()) <= 8


def test_the_assertion_is_told(report):
    assert "Failure of assertion" in result(report, "AdderAsserts").detail


def test_labels_that_no_passing_model_reaches(report):
    assert report.coverage.modules == ["Adder"]
    assert [label.name for label in report.coverage.unreached] == ["add_assert", "add_stuck"]


@pytest.mark.parametrize("name", ["AdderPasses", "AdderDirect", "AdderCrashing"])
def test_each_way_to_take_steps_shows_its_labels(report, adder, name):
    only = result(report, name)
    judged = coverage(adder, [only.model], [only])
    assert [label.name for label in judged.unreached] == ["add_assert", "add_stuck"]


def test_coverage_waits_for_all_models_of_a_module(report, adder):
    assert coverage(adder, load(adder), report.results[:1]).judged == ()


def test_the_translation_is_up_to_date(report):
    assert report.translations == {"Adder": None}


def test_a_lost_update_as_columns(report, adder):
    assert told(report, adder, "AdderLoses") == [
        "step  thread 1   thread 2   thread 3  what changed",
        "   1  add_read   add_read   look      (start)",
        "   2  ·          ·          look      seen_totals ++ <<0>>",
        "   3  add_read   ·          ·         -",
        "   4  ·          add_read   ·         -",
        "   5  add_write  ·          ·         total: 0 → 1  turn[1]: 0 → 1",
        "   6  add_check  ·          ·         -",
        "   7  ·          add_write  ·         turn[2]: 0 → 1",
        "   8  ·          add_check  ·         -",
        "      NoLoss is violated here",
    ]


def test_a_crash_is_told_by_its_name(report, adder):
    assert told(report, adder, "AdderLost") == [
        "step  thread 1  thread 2   thread 3  what changed",
        "   1  add_read  add_read   look      (start)",
        "   2  ·         ·          look      seen_totals ++ <<0>>",
        "   3  Crash     ·          ·         stopped + 1",
        "   4  ·         add_read   ·         -",
        "   5  ·         add_write  ·         total: 0 → 1  turn[2]: 0 → 1",
        "   6  ·         add_check  ·         -",
        "      and nothing more happens: Ends is violated",
    ]


def test_a_failure_at_the_start_has_one_line(report, adder):
    assert told(report, adder, "AdderAtStart")[-1].strip() == "NotZero is violated here"
    assert len(told(report, adder, "AdderAtStart")) == 3


def test_a_model_whose_time_is_up(tools, adder):
    manifest = load(adder)
    endless = [model for model in manifest if model.name == "Endless"]
    report = run_check(tools, adder, manifest, Wish(endless, timeout_s=1.0), Silent())
    assert report.results[0].kind is Kind.TIMEOUT
    assert report.results[0].detail == "stopped after 1 s"


def run_one(tools, adder, folder, archive):
    direct = next(model for model in load(adder) if model.name == "AdderDirect")
    task = tlc.task(tools, adder, direct, folder, 512, archive)
    return read_result(direct, runner.run([task], 1, Silent(), lambda: None)[direct.name])  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [None, b"", b"no archive" * 1000])
def test_an_archive_that_is_missing_or_broken_changes_nothing(tools, adder, tmp_path, content):
    archive = tmp_path / tlc.ARCHIVE
    if content is not None:
        archive.write_bytes(content)
    assert differences(run_one(tools, adder, tmp_path / "work", archive)) == []


def test_an_archive_is_made_when_it_pays(tools, adder, tmp_path):
    models = load(adder)
    assert tlc.archive_task(tools, adder, models[:9], tmp_path, 512) is None
    task = tlc.archive_task(tools, adder, models, tmp_path, 512)
    assert runner.run([task], 1, Silent(), lambda: None)[tlc.ARCHIVE].code == 0  # type: ignore[arg-type]
    assert differences(run_one(tools, adder, tmp_path / "work", tmp_path / tlc.ARCHIVE)) == []


def test_processor_time_is_measured_for_each_run(report):
    assert all(0 < result.processor_s < 60 for result in report.results)


def test_states_are_counted_while_tlc_runs(tools, adder, tmp_path):
    """The size of TLC's trace file tells the states; if a new TLC writes another format, this says so."""
    endless = next(model for model in load(adder) if model.name == "Endless")
    task = tlc.task(tools, adder, endless, tmp_path / "work", 512)
    counts: list[tuple[float, int]] = []

    class Watch(Silent):
        def tick(self, running):
            counts.extend((one.elapsed(), tlc.states_so_far(one.task.folder)) for one in running)

    def enough():
        return signal.SIGTERM if counts and counts[-1][1] > 2000 else None

    with pytest.raises(runner.Interrupted):
        runner.run([task], 1, Watch(), enough, timeout_s=60)
    assert counts[-1][1] > 2000


def test_a_process_that_fell_asleep_is_started_again(tmp_path, monkeypatch):
    """As TLC was seen to do, once; one that works is left alone."""
    monkeypatch.setattr(runner, "_ASLEEP_S", 0.5)
    monkeypatch.setattr(runner, "_ASLEEP_USED_S", 0.02)
    sleepy = "if [ -e once ]; then echo awake; else touch once; exec sleep 1000; fi"
    busy = "echo begin >> starts; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; cat starts"
    tasks = [runner.Task(name, ["sh", "-c", what], tmp_path / name) for name, what in {"s": sleepy, "b": busy}.items()]
    for task in tasks:
        task.folder.mkdir()
    finished = runner.run(tasks, 2, Silent(), lambda: None)  # type: ignore[arg-type]
    assert (finished["s"].output, finished["s"].code) == ("awake\n", 0)
    assert finished["b"].output == "begin\n"
