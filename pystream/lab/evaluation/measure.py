"""One measurement: a design, a query, a number of inputs, a rate."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pystream.designs import design_for
from pystream.errors import ClosedError
from pystream.lab.evaluation.workload import BATCH_S
from pystream.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa

    from pystream.lab.evaluation.workload import Schedule, Workload
    from pystream.queries import PaperQuery

#: Tuples an input may hold: a few batches, so that a design that cannot keep up pushes back soon.
MAX_PENDING = 1 << 14

#: Merging this share of what is injected counts as keeping up.
KEPT_UP = 0.95

#: Arrivals that make a line.
LINE_BATCHES = 5

#: Shares of the rows, in per cent, whose latency is at most the one given.
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}

#: Rows whose latency is looked up, evenly spread over the measuring phase.
LATENCY_ROWS = 50_000


@dataclass(frozen=True)
class Setup:
    """What is measured. `levels` is passed on if it is set; `batch_s` is the interval between batches of an input."""

    query: PaperQuery
    design: str
    threads: int | None = None
    levels: int | None = None
    batch_s: float = BATCH_S

    def operator(self, workload: Workload) -> Operator:
        """An operator for one measurement."""
        extra: dict[str, Any] = {} if self.levels is None else {"levels": self.levels}
        design = design_for(self.design, self.query.query)
        return Operator(self.query.query, workload.inputs, workload.schema, design, MAX_PENDING, self.threads, **extra)


@dataclass(frozen=True)
class Phases:
    """Seconds of each phase."""

    warm_up: float
    measure: float
    cool_down: float

    @property
    def total(self) -> float:
        """All together."""
        return self.warm_up + self.measure + self.cool_down


@dataclass
class Point:
    """What came out of a measurement; times per tuple are processor time in microseconds."""

    rate: float | None
    throughput: float
    sustained: bool
    rows_out: int
    latency_ms: dict[str, float] | None
    input_us: float
    update_us: float | None
    output_us: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass
class _Injected:
    """What an injector counts; read by others while it runs."""

    tuples: int = 0
    seconds: float = 0.0  # processor time in add


@dataclass
class _Reader:
    """What the sink keeps: output batches with the moment of their arrival."""

    batches: list[tuple[float, pa.RecordBatch]] = field(default_factory=list)

    def run(self, op: Operator) -> None:
        try:
            for batch in op:
                self.batches.append((time.perf_counter(), batch))
        except ClosedError:
            pass


def _inject(
    op: Operator, workload: Workload, schedule: Schedule, input: int, count: _Injected, stop: threading.Event
) -> None:
    which = np.array([input])
    try:
        for number in itertools.count():
            lap, first, end = schedule.cut(number)
            if schedule.rate is not None:
                due = float(schedule.due(which, np.array([lap]), np.array([first]))[0])
                if stop.wait(max(0.0, due - time.perf_counter())):
                    return
            batch = workload.batch(input, schedule, number)
            before = time.thread_time()
            op.add(input, batch)
            count.seconds += time.thread_time() - before
            count.tuples += end - first
    except ClosedError:
        pass


@dataclass(frozen=True)
class _Moment:
    """The counters at one moment."""

    at: float
    tuples: int
    seconds: float
    threads: dict[str, float]


def _look(counts: list[_Injected]) -> _Moment:
    tuples, seconds = sum(c.tuples for c in counts), sum(c.seconds for c in counts)
    return _Moment(time.perf_counter(), tuples, seconds, thread_seconds())


def thread_seconds() -> dict[str, float]:
    """Processor time of the operator's threads so far, by what they do. Empty where the system does not say."""
    seconds: dict[str, float] = {}
    for task in Path("/proc/self/task").glob("*"):
        try:
            name = (task / "comm").read_text().strip()
            if name in ("pystream-output", "pystream-update"):
                seconds[name[9:]] = seconds.get(name[9:], 0.0) + int((task / "schedstat").read_text().split()[0]) / 1e9
        except (OSError, IndexError):  # it has just ended
            continue
    return seconds


def measure(setup: Setup, workload: Workload, rate: float | None, phases: Phases) -> Point:
    """Run one measurement."""
    counts, reader, stop = [_Injected() for _ in range(workload.inputs)], _Reader(), threading.Event()
    with setup.operator(workload) as op:
        schedule = workload.schedule(rate, time.perf_counter(), setup.batch_s)
        threads = [threading.Thread(target=reader.run, args=(op,), daemon=True)]
        threads += [
            threading.Thread(target=_inject, args=(op, workload, schedule, i, c, stop), daemon=True)
            for i, c in enumerate(counts)
        ]
        try:
            for thread in threads:
                thread.start()
            time.sleep(phases.warm_up)
            before = _look(counts)
            time.sleep(phases.measure)
            after = _look(counts)
            time.sleep(phases.cool_down)
        finally:
            stop.set()
            op.end(discard=True)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
    return _point(setup, workload, schedule, reader, before, after)


def _point(
    setup: Setup, workload: Workload, schedule: Schedule, reader: _Reader, before: _Moment, after: _Moment
) -> Point:
    batches = [(at, batch) for at, batch in reader.batches if before.at <= at < after.at]
    throughput = _throughput(reader, before.at, after.at) * workload.per_second
    merged = throughput * (after.at - before.at)
    used = {name: after.threads[name] - before.threads.get(name, 0.0) for name in after.threads}
    return Point(
        rate=schedule.rate,
        throughput=throughput,
        sustained=schedule.rate is not None and throughput >= KEPT_UP * schedule.rate,
        rows_out=sum(batch.num_rows for _, batch in batches),
        latency_ms=None if schedule.rate is None else _latency(setup, workload, schedule, batches),
        input_us=1e6 * (after.seconds - before.seconds) / max(1, after.tuples - before.tuples),
        update_us=1e6 * used["update"] / max(1.0, merged) if "update" in used else None,
        output_us=1e6 * used["output"] / max(1.0, merged) if "output" in used else None,
    )


def _throughput(reader: _Reader, begin: float, end: float) -> float:
    """Event time per second: how fast the starts of the windows that come out advance.

    That means the same for all designs, whatever they hold inside. The slope of the line through the arrivals, which
    does not depend on what happens just at the ends of the phase; if they are few, or come all at once on a busy
    machine, simply how far the windows got from the beginning of the phase to its end.
    """
    at = np.array([at for at, _ in reader.batches])
    start = np.array([float(batch.column(0)[-1].as_py()) for _, batch in reader.batches])
    inside = (begin <= at) & (at < end)
    x, y = at[inside], start[inside]
    if len(x) >= LINE_BATCHES and x[-1] - x[0] >= (end - begin) / 2:
        x = x - x.mean()
        return max(0.0, float((x * y).sum() / (x * x).sum()))
    first = start[at < begin][-1] if (at < begin).any() else 0.0
    return float(y[-1] - first) / (end - begin) if len(y) else 0.0


def _latency(
    setup: Setup, workload: Workload, schedule: Schedule, batches: list[tuple[float, pa.RecordBatch]]
) -> dict[str, float] | None:
    """Mean, percentiles and highest latency of the rows, in milliseconds."""
    rows = sum(b.num_rows for _, b in batches)
    if not rows:
        return None
    step = max(1, rows // LATENCY_ROWS)
    arrived = np.concatenate([np.full(b.num_rows, at) for at, b in batches])[::step]
    start, key = (np.concatenate([b.column(i).to_numpy() for _, b in batches])[::step].astype(np.int64) for i in (0, 1))
    size, _ = setup.query.query.window.ticks(None)
    latency = 1e3 * (arrived - workload.latest_due(schedule, start, key, size))
    return {
        "mean": float(latency.mean()),
        **{name: float(np.percentile(latency, percent)) for name, percent in PERCENTILES.items()},
        "max": float(latency.max()),
    }
