"""The evaluation: what is injected when, what latency is, how rates are raised, and that the command says it all.

No test here looks at how fast anything is.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import bench as command
from pystream.cli import bench_tables, main
from pystream.lab.evaluation import document, experiments, measure, plot
from pystream.lab.evaluation.experiments import QUICK, Evaluation, Plan
from pystream.lab.evaluation.measure import Phases, Point, Setup
from pystream.lab.evaluation.workload import BATCH_ROWS_MAX, BATCH_S, Schedule, Workload, finest_cut
from pystream.operator import DESIGNS, designs_for
from pystream.queries import PAPER

# ---- what is injected ----


@pytest.mark.parametrize("batch_rows", [1, 3, 7, 20])
def test_batches_cover_every_lap_and_come_in_time(batch_rows):
    schedule = Schedule(start=100.0, rate=40.0, inputs=2, lap_rows=7, batch_rows=batch_rows)
    cuts = list(itertools.islice(map(schedule.cut, itertools.count()), 60))
    rows = [(lap, row) for lap, first, end in cuts for row in range(first, end)]
    assert rows == [(lap, row) for lap in range(rows[-1][0] + 1) for row in range(7)][: len(rows)]
    for input in (0, 1):
        lap, row = np.array(rows).T
        due = schedule.due(np.full(len(rows), input), lap, row)
        assert (np.diff(due) >= 0).all()
        ends = [i for i, (a, b) in enumerate(itertools.pairwise(due)) if a != b]
        sent = np.array(ends) + 1
        stagger = batch_rows * input / 2
        assert np.allclose(due[ends], 100.0 + (sent + stagger) / 20.0)  # when its last tuple is due at 20 a second


def test_inputs_of_one_injector_are_due_together():
    schedule = Schedule(start=0.0, rate=60.0, inputs=6, lap_rows=100, batch_rows=10, turns=2)
    due = schedule.due(np.arange(6), np.zeros(6, np.int64), np.zeros(6, np.int64))
    assert np.allclose(due, [1.0, 1.5] * 3)  # 10 tuples of an input take a second; the other injector comes half-way


@pytest.mark.parametrize("dataset", ["EC", "SC"])
def test_laps_repeat_the_tuples_later(dataset):
    workload = Workload(dataset, inputs=3, tuples=600)
    schedule = workload.schedule(rate=50_000.0, start=0.0)
    assert (workload.lap_rows, schedule.batch_rows) == (200, 167)
    for input in range(3):
        batches = [workload.batch(input, schedule, n) for n in range(6)]
        whole = pa.Table.from_batches(batches)
        assert whole.num_rows == 600
        assert whole.schema == workload.schema
        ts = whole["ts"].to_numpy()
        assert (np.diff(ts) >= 0).all()
        assert (ts[200:400] == ts[:200] + workload.span).all()
        assert whole.slice(200, 200).drop_columns(["ts"]) == whole.slice(0, 200).drop_columns(["ts"])


def test_batches_are_of_about_a_hundredth_of_a_second():
    workload = Workload("EC", inputs=2, tuples=20_000)
    assert workload.schedule(2_000.0, 0.0).batch_rows == 10
    assert workload.schedule(2.0, 0.0).batch_rows == 1
    assert workload.schedule(1e12, 0.0).batch_rows == BATCH_ROWS_MAX
    assert workload.schedule(None, 0.0).batch_rows == BATCH_ROWS_MAX


def test_the_finest_cut_grows_with_the_calls():
    workload = Workload("EC", inputs=2, tuples=20_000)
    assert workload.schedule(20_000.0, 0.0, finest_cut(2)).batch_rows == 10
    assert (finest_cut(1), finest_cut(5), finest_cut(20)) == (0.001, 0.001, 0.004)


@pytest.mark.parametrize("id", ["k-OI", "W-OS", "K-OI"])
def test_latency_counts_from_the_latest_tuple_of_each_row(id):
    """Against a search through all tuples, over twenty laps; a window covers many of them."""
    query = PAPER[id].query
    size, _ = query.window.ticks(None)
    workload = Workload(PAPER[id].dataset, inputs=3, tuples=900)
    schedule = workload.schedule(rate=3_000.0, start=5.0)
    inputs = [[workload.batch(i, schedule, n) for n in range(20 * 30)] for i in range(3)]
    tuples = []
    for i, batches in enumerate(inputs):
        rows = [row for b in batches for row in b.to_pylist()]
        for n, row in enumerate(rows):
            tuples.append((row["ts"], i, n, row[query.key[0]]))
    tuples.sort()
    out = ps.aggregate(query, inputs)
    out = out.filter(pc.field("ts") <= 20 * workload.span - size)  # complete before the injection ends
    start, key = (out.column(i).to_numpy().astype(np.int64) for i in (0, 1))
    got = workload.latest_due(schedule, start, key, size)
    for row in np.random.default_rng(1).choice(len(out), 150, replace=False):
        last = [t for t in tuples if t[3] == key[row] and start[row] <= t[0] < start[row] + size][-1]
        lap, n = divmod(last[2], workload.lap_rows)
        assert got[row] == schedule.due(np.array([last[1]]), np.array([lap]), np.array([n]))[0]


# ---- one measurement ----


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.usefixtures("nothing_left")
def test_every_design_can_be_measured(design):
    workload = Workload("EC", inputs=3, tuples=3_000)
    setup = Setup(PAPER["k-OI"], design, threads=2)
    for rate in (None, 20_000.0):
        point = measure.measure(setup, workload, rate, Phases(0.02, 0.1, 0.01))
        assert point.rate == rate
        assert (point.latency_ms is None) == (rate is None or point.rows_out == 0)
        assert point.input_us >= 0
        json.dumps(point.as_dict())


@pytest.mark.usefixtures("nothing_left")
def test_injectors_that_wait_for_a_far_moment_end_with_the_measurement():
    workload = Workload("EC", inputs=2, tuples=1_000)
    point = measure.measure(Setup(PAPER["k-OI"], "mq"), workload, 1e-3, Phases(0.01, 0.01, 0.01))
    assert (point.throughput, point.latency_ms) == (0.0, None)


def test_latency_of_rows_whose_arrival_is_known():
    workload = Workload("EC", inputs=2, tuples=1_000)
    schedule = workload.schedule(rate=1_000.0, start=50.0)
    setup = Setup(PAPER["k-OI"], "mq")
    rows = ps.aggregate(setup.query.query, [workload.batch(i, schedule, 0) for i in range(2)])
    due = workload.latest_due(schedule, rows["ts"].to_numpy(), rows["meter"].to_numpy().astype(np.int64), 30)
    batches = [(float(d) + 0.25, rows.slice(i, 1).to_batches()[0]) for i, d in enumerate(due)]
    found = measure._latency(setup, workload, schedule, batches)
    assert found == pytest.approx({"mean": 250.0, "p50": 250.0, "p99": 250.0, "p999": 250.0, "max": 250.0})
    assert measure._latency(setup, workload, schedule, []) is None


def test_only_what_happens_between_the_two_looks_counts():
    workload = Workload("EC", inputs=2, tuples=1_000)
    schedule = workload.schedule(rate=1_000.0, start=0.0)
    rows = ps.aggregate(PAPER["k-OI"].query, [workload.batch(i, schedule, 0) for i in range(2)]).to_batches()[0]
    reader = measure._Reader([(at, rows) for at in (1.0, 2.0, 3.0)])
    before = measure._Moment(1.5, 200, 1.0, {"output": 1.0})
    after = measure._Moment(2.5, 1_200, 1.5, {"output": 1.0, "update": 0.25})
    point = measure._point(Setup(PAPER["k-OI"], "mq"), workload, schedule, reader, before, after)
    assert (point.throughput, point.sustained, point.rows_out) == (0.0, False, rows.num_rows)  # the same rows again
    assert (point.input_us, point.output_us, point.update_us) == (500.0, 0.0, 0.25e6)


@pytest.mark.parametrize(("seconds", "sustained"), [(1.0, True), (1.04, True), (1.1, False)])
def test_throughput_is_how_fast_windows_come_out(seconds, sustained):
    """A window starts every 3 s of event time; what counts is how often one comes out."""
    workload = Workload("EC", inputs=2, tuples=1_000)
    rate = workload.per_second * 3 / 0.01  # one window every hundredth of a second
    schedule = workload.schedule(rate, start=0.0)
    rows = [pa.record_batch({"ts": [3 * n], "meter": [0], "count": [1]}) for n in range(50)]
    jitter = np.random.default_rng(1).normal(0, 1e-4, 50)
    reader = measure._Reader([(1 + 0.01 * seconds * n + jitter[n], b) for n, b in enumerate(rows)])
    moments = measure._Moment(1.1, 0, 0.0, {}), measure._Moment(1.4, 10, 0.0, {"output": 0.1})
    point = measure._point(Setup(PAPER["k-OI"], "mq"), workload, schedule, reader, *moments)
    assert point.throughput == pytest.approx(rate / seconds, rel=0.005)
    assert point.sustained == sustained
    assert point.output_us == pytest.approx(0.1e6 / (point.throughput * 0.3))


def test_windows_that_come_all_at_once_count_from_the_beginning_of_the_phase():
    rows = [pa.record_batch({"ts": [3 * n]}) for n in range(10)]
    late = measure._Reader([(1.0 + 1e-6 * n if n else 0.5, b) for n, b in enumerate(rows)])
    assert measure._throughput(late, 0.9, 1.2) == pytest.approx(27 / 0.3)
    assert measure._throughput(late, 0.4, 0.9) == 0.0
    assert measure._throughput(late, 0.6, 0.9) == 0.0


# ---- the experiments ----


@pytest.fixture
def measured(monkeypatch):
    """Measurements that come from a table: what each design takes, with a round that is half as fast."""
    takes = {
        "mq": 1e4,
        "mq-lf": 2e4,
        "tuml-sc": 3e4,
        "tuml-mc": 5e3,
        "wiml": 4e4,
        "runs": 6e4,
        "sliced": 9e4,
        "auto": 8e4,
    }
    calls = []

    def fake(setup, workload, rate, phases):
        calls.append((setup.design, setup.threads, setup.levels, rate, phases))
        most = takes[setup.design] * (setup.threads or 1)
        slow = 0.5 if sum(c[:4] == calls[-1][:4] for c in calls) == 2 else 1.0
        throughput = most * slow if rate is None else min(rate, most)
        shape = {"mean": 1, "p50": 1, "p99": 2, "p999": 2.5, "max": 3}
        latency = None if rate is None else {name: times * rate for name, times in shape.items()}
        return Point(rate, throughput, rate is not None and throughput >= rate, 1, latency, 0.5, None, 0.25)

    monkeypatch.setattr(experiments, "measure", fake)
    monkeypatch.setattr(experiments, "Workload", lambda *_arguments: None)
    return calls


PLAN = Plan(
    queries=("k-OS", "k-OI"), inputs=(2, 3), threads=(1, 2), levels=(1, 3), factors=(0.5, 1.0, 1.5), rounds=3, seconds=1
)


def test_designs_take_turns_and_ratios_are_within_rounds(measured):
    evaluation = Evaluation(PLAN)
    evaluation.run()
    ordered = designs_for(PAPER["k-OS"].query)
    first = [call[0] for call in measured[: 3 * len(ordered)]]
    assert first == ordered + ordered[1:] + ordered[:1] + ordered[2:] + ordered[:2]
    found = {(e["query"], e["inputs"], e["design"]): e for e in evaluation.results["designs"]}
    assert set(found) == {(q, n, d) for q in PLAN.queries for n in (2, 3) for d in designs_for(PAPER[q].query)}
    entry = found["k-OS", 2, "tuml-sc"]
    assert entry["saturated"] == {"median": 3e4, "low": 1.5e4, "high": 3e4, "rounds": [3e4, 1.5e4, 3e4]}
    assert entry["ratio"] == {"median": 3.0, "low": 3.0, "high": 3.0, "rounds": [3.0, 3.0, 3.0]}


def test_rates_rise_until_they_are_too_much(measured):
    evaluation = Evaluation(PLAN)
    evaluation.run()
    entry = next(e for e in evaluation.results["designs"] if e["design"] == "mq-lf")
    assert [(p["rate"], p["sustained"]) for p in entry["rates"]] == [(1e4, True), (2e4, True), (3e4, False)]
    assert entry["sustained"]["rate"] == 2e4


def test_rates_fall_if_even_the_first_is_too_much(measured, monkeypatch):
    fake = experiments.measure
    monkeypatch.setattr(experiments, "measure", lambda s, w, rate, p: fake(s, w, rate and rate * 2.5, p))
    evaluation = Evaluation(PLAN)
    evaluation.run()
    entry = next(e for e in evaluation.results["designs"] if e["design"] == "mq")
    assert [p["sustained"] for p in entry["rates"]] == [True, False]
    assert entry["sustained"]["rate"] == 6_250.0


def test_threads_and_levels(measured, monkeypatch):
    monkeypatch.setattr(Plan, "level_cells", lambda _plan: [("k-OI", "wiml")])
    evaluation = Evaluation(PLAN)
    evaluation.run()
    threads = [(e["query"], e["inputs"], e["threads"]) for e in evaluation.results["threads"]]
    assert threads == [("k-OS", 2, 1), ("k-OS", 2, 2), ("k-OS", 3, 1), ("k-OS", 3, 2)]
    assert [e["levels"] for e in evaluation.results["levels"]] == [1, 3]


def test_percentiles_are_taken_at_shares_of_what_was_sustained(measured):
    evaluation = Evaluation(replace(PLAN, factors=(0.5, 1.5)))
    evaluation.run()
    found = evaluation.results["latency"]
    assert {(e["query"], e["inputs"], e["design"]) for e in found} == {
        (q, 3, d) for q in PLAN.queries for d in ("auto", "sliced", "runs", "mq")
    }
    for design, most in (("runs", 3e4), ("auto", 8e4)):  # half of what it takes; not in the ladder: all
        own = [e for e in found if (e["query"], e["design"]) == ("k-OS", design)]
        assert [(e["share"], e["rate"]) for e in own] == [(s, s * most) for s in (0.1, 0.5, 0.8)]
        assert own[0]["latency_ms"]["p999"] == 2.5 * own[0]["rate"]
        assert {e["batch_ms"] for e in own} == {1e3 * finest_cut(3)}


def test_a_cut_that_is_too_fine_gives_way_to_the_usual_one(measured, monkeypatch):
    fake = experiments.measure

    def coarse_only(setup, *arguments):
        return replace(fake(setup, *arguments), sustained=setup.batch_s == BATCH_S)

    monkeypatch.setattr(experiments, "measure", coarse_only)
    evaluation = Evaluation(PLAN)
    evaluation.run()
    assert {(e["batch_ms"], e["sustained"]) for e in evaluation.results["latency"]} == {(1e3 * BATCH_S, True)}


def test_percentiles_only_of_designs_that_were_asked_for(measured):
    assert replace(PLAN, designs=("mq", "wiml")).percentile_cells() == [("k-OS", "mq"), ("k-OI", "mq")]


def test_every_point_is_counted_once(measured):
    counted = []
    evaluation = Evaluation(PLAN, counted.append)
    evaluation.run()
    assert sum(counted) == PLAN.points()
    assert len(measured) <= PLAN.points()
    assert evaluation.complete


def test_a_budget_shortens_measurements(measured, monkeypatch):
    clock = itertools.count(0.0, 1.0)  # every look at the clock finds a second gone
    monkeypatch.setattr(experiments.time, "perf_counter", lambda: next(clock))
    plan = Plan(queries=("k-OI",), designs=("mq",), inputs=(2,), rounds=5, factors=(0.5,), seconds=9, budget=60)
    plan = replace(plan, percentiles=())
    Evaluation(plan).run()
    totals = [call[4].total for call in measured]
    assert totals[0] == pytest.approx(59 / 6 - experiments.OVERHEAD_S, abs=0.7)
    assert all(experiments.SHORTEST_S <= t <= 9.001 for t in totals)


def test_a_budget_that_is_used_up_leaves_one_round(measured, monkeypatch):
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(experiments.time, "perf_counter", lambda: next(clock))
    counted = []
    evaluation = Evaluation(replace(PLAN, budget=60), counted.append)
    evaluation.run()
    assert sum(counted) == PLAN.points()
    assert {len(e["saturated"]["rounds"]) for e in evaluation.results["designs"]} == {1}
    assert evaluation.results["designs"][-1]["sustained"] is None
    assert evaluation.results["latency"] == []


def test_the_quick_form_fits_into_three_minutes():
    assert QUICK.estimate() <= 150
    assert QUICK.points() * (experiments.SHORTEST_S + experiments.OVERHEAD_S) <= 155


def test_the_full_form_is_the_papers():
    plan = Plan()
    assert (plan.queries, plan.designs, plan.inputs) == (tuple(PAPER), DESIGNS, (5, 10, 15, 20))
    assert 3 in plan.levels


# ---- the command ----


TINY = ["--query", "k-OI", "--design", "mq", "--inputs", "2", "--rounds", "1", "--seconds", "0.05", "--tuples", "1000"]


def invoke(*args: object, exit_code: int = 0):
    result = CliRunner(env={"COLUMNS": "160"}).invoke(main, ["bench", *map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.mark.usefixtures("nothing_left")
def test_the_command_measures_and_writes(tmp_path):
    out = tmp_path / "bench.json"
    shown = invoke(*TINY, "--out", out)
    assert "measurements" in shown.stderr
    assert "k-OI" in shown.stdout
    found = json.loads(out.read_text())
    assert found["complete"]
    assert {"date", "machine", "versions", "load_average", "plan", "results", "seconds"} <= set(found)
    assert found["versions"]["pystream"] == ps.__version__
    assert [e["design"] for e in found["results"]["designs"]] == ["mq"]
    assert list(tmp_path.iterdir()) == [out]


def test_minutes_bound_all_measurements_together(measured, monkeypatch):
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    shown = invoke("--minutes", "0.05")
    assert "about 0.1 minutes" in shown.stderr  # with one digit; the plan alone would take many
    assert measured[0][4].total < PLAN.seconds


def test_tables(measured, monkeypatch):
    monkeypatch.setattr(Plan, "level_cells", lambda _plan: [("k-OI", "wiml")])
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    shown = invoke("--query", "k-OS", "--query", "k-OI").stdout
    assert "3.00 (3.00 - 3.00)" in shown
    assert "p99.9" in shown
    assert "tuml-mc with more update threads" in shown
    assert "Levels of the lists" in shown
    assert "load average" in shown


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(0.9, 1.2, "~1.10 (0.90 - 1.20)"), (1.05, 1.2, " 1.10 (1.05 - 1.20)")]
)
def test_a_ratio_on_both_sides_of_one_is_marked(low, high, shown):
    assert bench_tables._ratio({"median": 1.1, "low": low, "high": high}) == shown


def test_what_was_measured_before_ctrl_c_is_written(tmp_path, monkeypatch, measured):
    fake = experiments.measure

    def interrupted(*arguments):
        if len(measured) == 30:
            raise KeyboardInterrupt
        return fake(*arguments)

    monkeypatch.setattr(experiments, "measure", interrupted)
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    out = tmp_path / "bench.json"
    assert "Interrupted." in invoke("--out", out, exit_code=130).stderr
    found = json.loads(out.read_text())
    assert not found["complete"]
    assert found["results"]["designs"]


@pytest.mark.parametrize(
    "args", [["--query", "x"], ["--design", "x"], ["--inputs", "0"], ["--seconds", "0"], ["--minutes", "0"]]
)
def test_usage(args):
    invoke(*args, exit_code=2)


def example(measured) -> dict:
    evaluation = Evaluation(PLAN)
    evaluation.run()
    return document.document(evaluation, None, 1.0)


def test_a_picture_needs_matplotlib(tmp_path, monkeypatch, measured):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ps.PystreamError, match="--plot needs matplotlib"):
        plot.plot(example(measured), tmp_path / "p.png")
    result = CliRunner().invoke(main, ["bench", "--plot", str(tmp_path / "p.png")])  # at once, not after an hour
    assert (result.exit_code, result.output) == (1, "Error: --plot needs matplotlib: pip install matplotlib\n")


if importlib.util.find_spec("matplotlib"):

    def test_a_picture(tmp_path, measured):
        plot.plot(example(measured), tmp_path / "p.png")
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
