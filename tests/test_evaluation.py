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
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import bench as command
from pystream.cli import bench_tables, main
from pystream.data.sample import SCHEMAS, DataSet
from pystream.lab import merge
from pystream.lab.evaluation import document, experiments, measure, plot
from pystream.lab.evaluation.experiments import Evaluation, bottleneck
from pystream.lab.evaluation.measure import Phases, Point, Setup
from pystream.lab.evaluation.plan import AS_LONG, QUICK, Plan
from pystream.lab.evaluation.workload import BATCH_ROWS_MAX, BATCH_S, Schedule, Workload, finest_cut, stored
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


@pytest.mark.parametrize("tuples", [262_144, 300_000, 400_000])
def test_event_time_passes_evenly_at_any_number_of_tuples(tuples):
    """So a rate is sustained all through a lap, or not at all."""
    workload = Workload("EC", inputs=4, tuples=tuples)
    schedule = workload.schedule(rate=80_000.0, start=0.0)
    ts = workload.batch(0, replace(schedule, batch_rows=workload.lap_rows), 0).column("ts").to_numpy()
    due = schedule.due(np.zeros(len(ts), np.int64), np.zeros(len(ts), np.int64), np.arange(len(ts)))
    seconds = np.linspace(0, workload.span, len(ts), endpoint=False)
    assert abs(ts - seconds).max() < 0.01 * workload.span
    assert due[-1] == pytest.approx(workload.lap_rows * 4 / 80_000, rel=0.01)


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
        assert point.input_us is None or point.input_us >= 0
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
    reader = measure._Reader()
    for i, d in enumerate(due):
        reader.take(float(d) + 0.25, rows.slice(i, 1).to_batches()[0])
    found = measure._latency(setup, workload, schedule, reader.rows.table())
    assert found == pytest.approx({"mean": 250.0, "p50": 250.0, "p99": 250.0, "p999": 250.0, "max": 250.0})
    assert measure._latency(setup, workload, schedule, measure._Reader().rows.table()) is None


def test_the_reader_keeps_few_rows_evenly_spread_however_many_come():
    """A week of output would fit: what is kept is bounded, every so-many-th row, with counts of all."""
    reader, batch = measure._Reader(), pa.record_batch({"ts": [3] * 700, "meter": range(700), "count": [1] * 700})
    for n in range(1_000):
        reader.take(float(n), batch)
    kept = reader.rows.table()
    assert measure.LATENCY_ROWS <= len(kept) < 2 * measure.LATENCY_ROWS
    place = kept[:, 0] * 700 + kept[:, 2]  # how many came before it
    assert place.tolist() == list(range(0, 700_000, reader.rows.step))
    arrivals = measure._Thinned(4)
    for n in range(1_000):
        arrivals.take(np.array([[n, 0.0, 10 * n]]))
    assert arrivals.table()[:, 0].tolist() == list(range(0, 1_000, arrivals.step))
    assert 4 <= len(arrivals.table()) < 8
    assert measure._rows_between(reader.arrivals.table(), 100.0, 300.0) == 200 * 700
    assert measure._rows_between(measure._Reader().arrivals.table(), 0.0, 1.0) == 0


@pytest.mark.parametrize("design", DESIGNS)
def test_the_papers_designs_search_texts_in_update_and_ours_filter(design):
    workload = Workload("SC", inputs=2, tuples=100)
    with Setup(PAPER["f-OI"], design).operator(workload) as op:
        functions = {a.function for a in op.query.aggregates.values()}
        op.end(discard=True)
    assert functions == {"count" if design in measure.OURS else "native_udf"}


def test_only_what_happens_between_the_two_looks_counts():
    workload = Workload("EC", inputs=2, tuples=1_000)
    schedule = workload.schedule(rate=1_000.0, start=0.0)
    rows = ps.aggregate(PAPER["k-OI"].query, [workload.batch(i, schedule, 0) for i in range(2)]).to_batches()[0]
    reader = measure._Reader()
    for at in (1.0, 2.0, 3.0):
        reader.take(at, rows)
    before = measure._Moment(1.5, 200, 1.0, {"output": 1.0})
    after = measure._Moment(2.5, 1_200, 1.5, {"output": 1.0, "update": 0.25})
    point = measure._point(Setup(PAPER["k-OI"], "mq"), workload, schedule, reader, before, after)
    assert (point.throughput, point.sustained, point.rows_out) == (0.0, False, rows.num_rows)  # the same rows again
    assert (point.input_us, point.output_us, point.update_us) == (500.0, 0.0, 0.25e6)


@pytest.mark.parametrize(("seconds", "sustained"), [(1.0, True), (1.04, True), (1.1, False)])
def test_throughput_is_how_fast_windows_come_out(seconds, sustained):
    """A window starts every 3 s of event time; what counts is how often one comes out."""
    workload = Workload("EC", inputs=2, tuples=40_000)
    rate = 40_000 / workload.span * 3 / 0.01  # one window every hundredth of a second
    schedule = workload.schedule(rate, start=0.0)
    rows = [pa.record_batch({"ts": [3 * n], "meter": [0], "count": [1]}) for n in range(50)]
    jitter = np.random.default_rng(1).normal(0, 1e-4, 50)
    reader = measure._Reader()
    for n, b in enumerate(rows):
        reader.take(1 + 0.01 * seconds * n + jitter[n], b)
    moments = measure._Moment(1.1, 0, 0.0, {}), measure._Moment(1.4, 10, 0.0, {"output": 0.1})
    point = measure._point(Setup(PAPER["k-OI"], "mq"), workload, schedule, reader, *moments)
    assert point.throughput == pytest.approx(rate / seconds, rel=0.005)
    assert point.sustained == sustained
    assert point.output_us == pytest.approx(0.1e6 / (point.throughput * 0.3))


def test_windows_that_come_all_at_once_count_from_the_arrival_before_the_phase():
    late = [np.array([1.0 + 1e-6 * n if n else 0.5 for n in range(10)]), 3.0 * np.arange(10)]
    assert measure._throughput(*late, 0.0, 0.9, 1.2) == pytest.approx(27 / 0.5, rel=1e-3)
    assert measure._throughput(*late, 0.0, 0.4, 0.9) == 0.0
    assert measure._throughput(*late, 0.0, 0.6, 0.9) == 0.0


@pytest.mark.parametrize("begin", [0.6, 0.65, 0.7, 0.75])
def test_a_rate_of_few_windows_is_not_judged_by_whether_one_more_fits_in(begin):
    """A window every fifth of a second, of 150 tuples: 750 a second, wherever a phase of 0.45 s begins."""
    at, tuples = 0.5 + 0.2 * np.arange(20), 150.0 * np.arange(20)
    assert measure._throughput(at, tuples, 0.0, begin, begin + 0.45) == pytest.approx(750)
    assert measure._throughput(at, tuples + 375, 0.0, 0.0, 0.6) == pytest.approx(750)  # from the start


def test_a_warm_up_waits_for_the_first_window(monkeypatch):
    workload, setup, slept = Workload("SC", inputs=2, tuples=20_000), Setup(PAPER["K-OI"], "mq"), []
    before = workload.tuples_before(np.array([30.0]))[0]
    assert before == pytest.approx(30 * 250, rel=0.1)
    assert setup.first_window_s(workload, 1_000.0) == pytest.approx(before / 1_000)
    assert setup.first_window_s(workload, None) == 0.0
    monkeypatch.setattr(measure.time, "sleep", slept.append)
    for rate in (None, 1e6, 1.0):
        measure.measure(setup, workload, rate, Phases(0.25, 0.5, 0.25))
    assert slept[::3] == [0.25, 0.25 + before / 1e6, 0.25 + measure.LONGER]


def test_inputs_run_ahead_of_each_other_by_the_same_time_whatever_their_number(monkeypatch):
    held = []
    monkeypatch.setattr(measure, "Operator", lambda *arguments: held.append(arguments[4]))
    for inputs in (1, 4, 8, 16, 20):
        Setup(PAPER["k-OI"], "mq").operator(Workload("EC", inputs, 1_000))
    assert held == [1 << 14, 1 << 14, 1 << 13, 1 << 12, BATCH_ROWS_MAX]


def test_batches_that_take_longer_than_the_phase_are_counted_from_the_start():
    looks = [measure._Moment(at, tuples, seconds, {}) for at, tuples, seconds in ((1, 10, 1.0), (2, 10, 1.0))]
    assert measure._input_us(*looks) == 1e5
    assert measure._input_us(measure._Moment(1, 0, 0.0, {}), measure._Moment(2, 0, 0.0, {})) is None
    assert measure._input_us(looks[0], measure._Moment(2, 20, 1.5, {})) == 5e4


def test_throughput_is_in_tuples_however_uneven_they_are_in_time(tmp_path):
    """Twice as many tuples in the second half of a lap: windows that advance half as fast there are the same rate."""
    ts = np.sort(np.concatenate([np.arange(300), np.repeat(np.arange(300, 600), 2)]))
    rows = {"ts": ts, "stream": ts % 2, "position": np.arange(900), "meter": ts % 7, "cons": ts * 1.0}
    (tmp_path / "EC").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "EC/a.parquet")
    workload = Workload("EC", inputs=3, tuples=900, folder=tmp_path)
    found = workload.tuples_before(np.array([0.0, 299.0, 300.0, 301.0, 600.0, 1_200.0, 1_500.0]))
    assert found.tolist() == [0, 299, 300, 302, 900, 1_800, 2_100]


# ---- data that Spark has made ----


def write_data(folder, dataset, tuples=2_000, streams=4):
    (folder / dataset).mkdir()
    whole = DataSet(dataset, streams, tuples, seed=3)
    pq.write_table(whole.block(0), folder / dataset / "part-000000.parquet")
    return whole.block(0)


@pytest.mark.parametrize("dataset", ["EC", "SC"])
@pytest.mark.parametrize("inputs", [1, 3, 4])
def test_stored_data_is_dealt_to_any_number_of_inputs(tmp_path, dataset, inputs):
    block = write_data(tmp_path, dataset)
    dealt = stored(tmp_path, dataset, inputs, 1_000)
    assert [len(t) for t in dealt] == [1_000 // inputs] * inputs
    assert all((np.diff(t["ts"].to_numpy()) >= 0).all() for t in dealt)
    assert dealt[0].schema == SCHEMAS[dataset]
    first = block.sort_by([(name, "ascending") for name in ("ts", "stream", "position")]).slice(0, sum(map(len, dealt)))
    names = dealt[0].column_names
    together = sorted(map(str, pa.concat_tables(dealt).to_pylist()))
    assert together == sorted(map(str, first.select(names).to_pylist()))


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _folder: None, r"no parquet files; pystream generate EC --streams 20 --out .*EC"),
        (lambda folder: pq.write_table(pa.table({"ts": [1]}), folder / "EC/x.parquet"), "is no data set EC: "),
        (lambda folder: (folder / "EC/x.parquet").write_text("x"), "is no data set EC: "),
        (
            lambda folder: pq.write_table(DataSet("EC", 1, 2, 1).block(0), folder / "EC/x.parquet"),
            "has 2 tuples, too few for 3 inputs",
        ),
    ],
)
def test_what_is_no_data_set_is_refused(tmp_path, prepare, message):
    (tmp_path / "EC").mkdir()
    prepare(tmp_path)
    with pytest.raises(ps.PystreamError, match=message):
        Workload("EC", 3, 100, tmp_path)


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
    queries=("k-OS", "k-OI"),
    inputs=(2, 3),
    threads=(1, 2),
    levels=(1, 3),
    factors=(0.5, 1.0, 1.5),
    rounds=3,
    seconds=1,
    budget=None,
    mergers=(),
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


def test_rates_do_not_fall_below_the_least(measured, monkeypatch):
    """A rate at which even that much is too much is tried once."""
    monkeypatch.setattr(experiments, "measure", lambda *a: replace(measure_nothing, rate=a[2]))
    measure_nothing = Point(None, 0.0, False, 0, None, None, None, None)
    evaluation = Evaluation(replace(PLAN, queries=("k-OI",), designs=("mq", "wiml"), inputs=(2,)))
    evaluation.run()
    for entry in evaluation.results["designs"]:
        assert [p["rate"] for p in entry["rates"]] == [experiments.RATE_MIN]
        assert "ratio" not in entry  # nothing came out of mq


def test_a_round_without_a_baseline_has_no_ratio():
    points = [Point(None, rate, False, 1, None, None, None, None) for rate in (4.0, 6.0, 8.0)]
    base = [replace(points[0], throughput=rate) for rate in (2.0, 0.0, 2.0)]
    assert experiments._ratios(points, base) == [2.0, 4.0]
    assert experiments._ratios(points, []) == []


def test_threads_and_levels(measured, monkeypatch):
    monkeypatch.setattr(Plan, "level_cells", lambda _plan: [("k-OI", "wiml")])
    evaluation = Evaluation(PLAN)
    evaluation.run()
    threads = [(e["query"], e["inputs"], e["threads"]) for e in evaluation.results["threads"]]
    assert threads == [("k-OS", 2, 1), ("k-OS", 2, 2), ("k-OS", 3, 1), ("k-OS", 3, 2)]
    assert [e["levels"] for e in evaluation.results["levels"]] == [1, 3]


def test_durations_weigh_rounds_by_their_tuples():
    """A round that got no processor has few tuples, and a time per tuple that says little."""
    points = [Point(None, rate, False, 1, None, us, None, us) for rate, us in ((900.0, 1.0), (100.0, 11.0))]
    points.append(Point(None, 0.0, False, 0, None, None, None, 50.0))
    found = experiments._summary(points)
    assert (found["input_us"], found["update_us"], found["output_us"]) == (2.0, None, 2.0)


def test_update_threads_are_measured_under_load_too(measured):
    evaluation = Evaluation(PLAN)
    evaluation.run()
    for e in evaluation.results["threads"]:
        assert e["loaded"]["rate"] == pytest.approx(0.8 * e["saturated"]["median"])
        assert e["loaded"]["latency_ms"]["mean"] > 0


@pytest.mark.parametrize(
    ("us", "inputs", "thread", "allows"),
    [
        ((0.5, None, 0.25), 4, "output", 4e6),
        ((2.0, None, 0.25), 4, "input", 2e6),
        ((0.5, 1.0, 0.25), 4, "update", 3e6),
        ((0.0, None, None), 4, None, None),
    ],
)
def test_the_bottleneck_is_the_busiest_kind_of_thread(us, inputs, thread, allows):
    found = bottleneck(dict(zip(("input_us", "update_us", "output_us"), us, strict=True)), inputs, threads=3)
    assert (found and found["thread"], found and found["allows"]) == (thread, allows)


def test_s_merge_is_timed_on_the_timestamps_of_ec(monkeypatch, tmp_path):
    """The structures take turns, and the latency is at half of what the slower one takes."""
    runs = []

    def fake(folder, name, contest):
        ts = np.fromfile(contest.times, np.int64).reshape(contest.inputs, -1)
        assert (np.diff(ts) >= 0).all()
        runs.append((name, contest.rate))
        return merge.Outcome(2.0 if name == "t_gate" else 1.0, 0.5 if name == "t_gate" else 0.75)

    monkeypatch.setattr(merge, "build", lambda _folder: ["mq", "t_gate", "skip_list"])
    monkeypatch.setattr(merge, "measure", fake)
    plan = replace(PLAN, queries=(), mergers=("t_gate", "skip_list"), inputs=(2,), rounds=2, tuples=1_000)
    evaluation = Evaluation(plan)
    evaluation.run()
    saturated = [("t_gate", 0.0), ("skip_list", 0.0), ("skip_list", 0.0), ("t_gate", 0.0)]
    assert runs == [*saturated, ("t_gate", 5e5), ("skip_list", 5e5)]
    found = [
        (e["structure"], e["inputs"], e["saturated"]["median"], e["latency_ms"]) for e in evaluation.results["merge"]
    ]
    assert found == [("t_gate", 2, 2e6, 0.5), ("skip_list", 2, 1e6, 0.75)]


def test_without_a_compiler_s_merge_is_left_out(monkeypatch):
    def missing(_folder):
        raise ps.PystreamError("no compiler")

    monkeypatch.setattr(merge, "build", missing)
    evaluation = Evaluation(replace(PLAN, queries=(), mergers=("t_gate",), inputs=(2,), tuples=1_000))
    evaluation.run()
    assert (evaluation.results["merge"], evaluation.complete) == ([], True)


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
    plan = replace(plan, percentiles=(), mergers=(), threads=(), levels=())
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


def test_the_papers_own_phases():
    """Five minutes are measured, ten times, whatever the whole takes."""
    assert AS_LONG.seconds * experiments.MEASURE == pytest.approx(300)
    assert (AS_LONG.rounds, AS_LONG.budget, AS_LONG.queries) == (10, None, tuple(PAPER))


def test_the_full_form_is_the_papers():
    plan = Plan()
    assert plan.estimate() <= 3_600
    assert plan.points() * (experiments.SHORTEST_S + experiments.OVERHEAD_S) <= 3_600
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
    assert "busiest kind" in shown
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


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch, measured):
    """Nothing that was saved is measured again, half a part is, and the whole is as if it had not been interrupted."""
    fake, out = experiments.measure, tmp_path / "bench.json"
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    invoke("--out", out)
    whole = json.loads(out.read_text())
    out.unlink()
    stops = iter([38, 40, None])

    def interrupted(*arguments):
        if len(measured) == limit:
            raise KeyboardInterrupt
        return fake(*arguments)

    monkeypatch.setattr(experiments, "measure", interrupted)
    for limit in stops:
        measured.clear()
        invoke("--out", out, "--resume", exit_code=130 if limit else 0)
    found = json.loads(out.read_text())
    assert found["complete"]
    assert found["done"] == whole["done"]
    for name, entries in whole["results"].items():
        shown = [
            [{k: e.get(k) for k in ("query", "inputs", "design", "unit")} for e in r]
            for r in (entries, found["results"][name])
        ]
        assert shown[0] == shown[1]
    assert 0 < len(measured) <= PLAN.points() - 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "is no document of `pystream bench --out`"),
        ("x", "is no document of `pystream bench --out`"),
        (None, "was measured with other options or versions; leave --resume out to begin again"),
    ],
)
def test_a_run_goes_on_only_with_its_own_document(tmp_path, monkeypatch, measured, content, said):
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    out = tmp_path / "bench.json"
    if content is None:
        invoke("--out", out)
    else:
        out.write_text(content)
    before = out.read_text()
    assert said in invoke("--out", out, "--resume", "--rounds", "2", exit_code=1).stderr
    assert out.read_text() == before


def test_the_time_left_is_told_in_lines(monkeypatch, measured):
    monkeypatch.setattr(command, "LINE_S", 0.0)
    monkeypatch.setattr(command, "Plan", lambda: PLAN)
    told = [line for line in invoke().stderr.splitlines() if line.endswith("minutes left")]
    assert told[0].startswith(f"1 of {PLAN.points()} measurements, about ")
    assert told[-1].startswith(f"{PLAN.points()} of {PLAN.points()} measurements, about 0.0")


@pytest.mark.parametrize("args", [["--quick", "--paper"], ["--resume"]])
def test_options_that_exclude_each_other(args):
    assert "--quick and --paper exclude each other; --resume needs --out" in invoke(*args, exit_code=2).stderr


@pytest.mark.usefixtures("nothing_left")
def test_the_command_measures_what_spark_has_made(tmp_path):
    write_data(tmp_path, "EC")
    out = tmp_path / "bench.json"
    invoke(*TINY, "--data", tmp_path, "--out", out)
    assert json.loads(out.read_text())["plan"]["data"] == str(tmp_path)


@pytest.mark.parametrize(
    "args", [["--query", "x"], ["--design", "x"], ["--inputs", "0"], ["--seconds", "0"], ["--minutes", "0"]]
)
def test_usage(args):
    invoke(*args, exit_code=2)


def example(measured) -> dict:
    evaluation = Evaluation(PLAN)
    evaluation.run()
    return document.document(evaluation, None)


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
