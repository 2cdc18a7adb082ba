"""One measurement: a design, a query, a number of inputs, a rate."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pystream.designs import design_for
from pystream.errors import ClosedError
from pystream.lab.evaluation.text_search import in_update
from pystream.lab.evaluation.workload import BATCH_ROWS_MAX, BATCH_S
from pystream.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from pystream.lab.evaluation.workload import Schedule, Workload
    from pystream.queries import PaperQuery

#: The designs that are ours: they run the queries as users write them, the paper's run them as the paper does.
OURS = ("auto", "sliced", "runs")

#: Tuples an input may hold: a few batches, so that a design that cannot keep up pushes back soon. And tuples that all
#: inputs together may hold: an input runs ahead of the others by the event time of what it holds, which must not grow
#: with their number, because windows that are open longer are more windows, and less of them is in the caches.
MAX_PENDING, MAX_PENDING_ALL = 1 << 14, 1 << 16

#: Merging this share of what is injected counts as keeping up.
KEPT_UP = 0.95

#: A warm-up waits for the first window, but at most so many times as long as the measurement.
LONGER = 4

#: Arrivals that make a line.
LINE_BATCHES = 5

#: Shares of the rows, in per cent, whose latency is at most the one given.
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}

#: Rows whose latency is looked up, and moments of arrival that are kept: between so many and twice as many, evenly
#: spread over the measurement.
LATENCY_ROWS = 50_000
ARRIVALS = 1 << 15


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
        query = self.query.query if self.design in OURS else in_update(self.query.id)
        design = design_for(self.design, query)
        pending = max(BATCH_ROWS_MAX, min(MAX_PENDING, MAX_PENDING_ALL // workload.inputs))
        return Operator(query, workload.inputs, workload.schema, design, pending, self.threads, **extra)

    def first_window_s(self, workload: Workload, rate: float | None) -> float:
        """Seconds until the first window is complete, at this rate."""
        size, _ = self.query.query.window.ticks(None)
        return float(workload.tuples_before(np.array([float(size)]))[0]) / rate if rate else 0.0


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
    input_us: float | None  # None: no batch was added in the phase
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


class _Thinned:
    """Every n-th item of a sequence that may be long; n doubles so that at most 2 * `most` are kept."""

    def __init__(self, most: int) -> None:
        self.items: list[NDArray[np.float64]] = []
        self.step = 1
        self._most = most
        self._seen = self._kept = 0

    def take(self, items: NDArray[np.float64]) -> None:
        """Add rows of a table."""
        kept = items[-self._seen % self.step :: self.step]
        self._seen += len(items)
        self._kept += len(kept)
        if len(kept):
            self.items.append(kept)
        if self._kept >= 2 * self._most:
            self.step *= 2
            self.items = [self.table()[::2]]
            self._kept = len(self.items[0])

    def table(self) -> NDArray[np.float64]:
        """All that is kept."""
        return np.concatenate(self.items) if self.items else np.empty((0, 3))


class _Reader:
    """What the sink keeps, however long it runs.

    arrivals  of batches: the moment, the start of the window that came last, and how many rows have come so far
    rows      of rows: the moment, the window's start, the key
    """

    def __init__(self) -> None:
        self.arrivals, self.rows = _Thinned(ARRIVALS), _Thinned(LATENCY_ROWS)
        self._count = 0

    def run(self, op: Operator) -> None:
        try:
            for batch in op:
                self.take(time.perf_counter(), batch)
        except ClosedError:
            pass

    def take(self, at: float, batch: pa.RecordBatch) -> None:
        """Note a batch and let go of it."""
        start, key = (batch.column(i).to_numpy(zero_copy_only=False) for i in (0, 1))
        self._count += len(start)
        self.arrivals.take(np.array([[at, start[-1], self._count]], np.float64))
        self.rows.take(np.column_stack([np.full(len(start), at), start, key]).astype(np.float64))


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
            first = min(setup.first_window_s(workload, rate), LONGER * phases.total)
            time.sleep(phases.warm_up + first)
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
    arrivals, rows = reader.arrivals.table(), reader.rows.table()
    moments, tuples = arrivals[:, 0], workload.tuples_before(arrivals[:, 1])
    throughput = _throughput(moments, tuples, schedule.start, before.at, after.at)
    merged = throughput * (after.at - before.at)
    used = {name: after.threads[name] - before.threads.get(name, 0.0) for name in after.threads}
    return Point(
        rate=schedule.rate,
        throughput=throughput,
        sustained=schedule.rate is not None and throughput >= KEPT_UP * schedule.rate,
        rows_out=_rows_between(arrivals, before.at, after.at),
        latency_ms=None
        if schedule.rate is None
        else _latency(setup, workload, schedule, _between(rows, before, after)),
        input_us=_input_us(before, after),
        update_us=1e6 * used["update"] / max(1.0, merged) if "update" in used else None,
        output_us=1e6 * used["output"] / max(1.0, merged) if "output" in used else None,
    )


def _input_us(before: _Moment, after: _Moment) -> float | None:
    """Of the phase; of all so far if its batches are so slow that none ended in it."""
    tuples, seconds = after.tuples - before.tuples, after.seconds - before.seconds
    if not tuples:
        tuples, seconds = after.tuples, after.seconds
    return 1e6 * seconds / tuples if tuples else None


def _between(rows: NDArray[np.float64], before: _Moment, after: _Moment) -> NDArray[np.float64]:
    return rows[(before.at <= rows[:, 0]) & (rows[:, 0] < after.at)]


def _rows_between(arrivals: NDArray[np.float64], begin: float, end: float) -> int:
    """How many rows arrived."""
    counts = [arrivals[arrivals[:, 0] < moment, 2] for moment in (begin, end)]
    first, last = (int(c[-1]) if len(c) else 0 for c in counts)
    return last - first


def _throughput(at: NDArray[np.float64], tuples: NDArray[np.float64], start: float, begin: float, end: float) -> float:
    """Tuples per second: how fast the windows that come out advance, in tuples that begin before them.

    That means the same for all designs, whatever they hold inside. The slope of the line through the arrivals, which
    does not depend on what happens just at the ends of the phase; if they are few, or come all at once on a busy
    machine, how far the windows got from the last arrival before the phase (or the start) to the last one in it:
    between arrivals, so that a rate of few windows is not judged by whether one more fits in.
    """
    inside = (begin <= at) & (at < end)
    x, y = at[inside], tuples[inside]
    if len(x) >= LINE_BATCHES and x[-1] - x[0] >= (end - begin) / 2:
        x = x - x.mean()
        return max(0.0, float((x * y).sum() / (x * x).sum()))
    since, first = (at[at < begin][-1], tuples[at < begin][-1]) if (at < begin).any() else (start, 0.0)
    return float(y[-1] - first) / float(x[-1] - since) if len(y) else 0.0


def _latency(
    setup: Setup, workload: Workload, schedule: Schedule, rows: NDArray[np.float64]
) -> dict[str, float] | None:
    """Mean, percentiles and highest latency of the rows, in milliseconds."""
    if not len(rows):
        return None
    start, key = (rows[:, i].astype(np.int64) for i in (1, 2))
    size, _ = setup.query.query.window.ticks(None)
    latency = 1e3 * (rows[:, 0] - workload.latest_due(schedule, start, key, size))
    return {
        "mean": float(latency.mean()),
        **{name: float(np.percentile(latency, percent)) for name, percent in PERCENTILES.items()},
        "max": float(latency.max()),
    }
