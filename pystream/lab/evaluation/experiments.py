"""Which measurements are made, in which order, and what is made of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from pystream.designs import DESIGNS, designs_for
from pystream.lab.evaluation.measure import Phases, Point, Setup, measure
from pystream.lab.evaluation.workload import BATCH_S, Workload, finest_cut
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Callable

BASELINE = "mq"

#: Shares of a measurement's time.
WARM_UP, MEASURE, COOL_DOWN = 0.25, 0.65, 0.1

#: What starting and ending a measurement takes, about, on an idle machine; and the shortest that says anything.
OVERHEAD_S, SHORTEST_S = 0.15, 0.2

#: Tuples per second below which nothing is tried.
RATE_MIN = 1_000.0

#: Measurements over which the overhead is averaged.
OVERHEAD_MEMORY = 8

#: Designs whose lists have levels.
LEVELLED = ("tuml-sc", "tuml-mc", "wiml")


@dataclass(frozen=True)
class Plan:
    """What to measure, with numbers as in the paper where its machine does not matter."""

    queries: tuple[str, ...] = tuple(PAPER)
    designs: tuple[str, ...] = DESIGNS
    inputs: tuple[int, ...] = (5, 10, 15, 20)
    threads: tuple[int, ...] = (1, 2, 4, 8, 12)
    levels: tuple[int, ...] = (1, 3, 6, 8)
    percentiles: tuple[str, ...] = ("auto", "sliced", "runs", BASELINE)  # designs whose latency is looked at closely
    shares: tuple[float, ...] = (0.1, 0.5, 0.8)  # of the highest rate, for those
    factors: tuple[float, ...] = (0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
    rounds: int = 5
    seconds: float = 3.0  # of one measurement
    budget: float | None = None  # seconds of all measurements together: they are shortened to fit
    tuples: int = 400_000  # of one lap

    def cells(self) -> list[tuple[str, int, list[str]]]:
        """Queries, numbers of inputs, and the designs that can run them."""
        return [(q, n, self.allowed(q)) for q in self.queries for n in self.inputs]

    def allowed(self, query: str) -> list[str]:
        """The designs that run a query."""
        return [d for d in self.designs if d in designs_for(PAPER[query].query)]

    def thread_cells(self) -> list[tuple[str, int]]:
        """Queries and numbers of inputs for update threads: those of the paper, the order-sensitive ones."""
        if "tuml-mc" not in self.designs:
            return []
        ends = sorted({min(self.inputs), max(self.inputs)})
        return [(q, n) for q in self.queries if PAPER[q].order_sensitive for n in ends]

    def level_cells(self) -> list[tuple[str, str]]:
        """Queries and designs for levels."""
        queries = [q for q in ("k-OS", "k-OI") if q in self.queries]
        return [(q, d) for q in queries for d in self.allowed(q) if d in LEVELLED]

    def percentile_cells(self) -> list[tuple[str, str]]:
        """Queries and designs for percentiles; `auto` is among them unless only some designs were asked for."""
        also = ["auto"] if set(self.designs) == set(DESIGNS) else []
        return [(q, d) for q in self.queries for d in self.percentiles if d in [*also, *self.allowed(q)]]

    def points(self) -> int:
        """At most so many measurements."""
        setups = sum(len(designs) for _, _, designs in self.cells())
        return (
            setups * (self.rounds + len(self.factors))
            + len(self.thread_cells()) * len(self.threads) * self.rounds
            + len(self.level_cells()) * len(self.levels) * self.rounds
            + len(self.percentile_cells()) * (len(self.shares) + 2)
        )

    def estimate(self) -> float:
        """About how many seconds it takes, at most."""
        return min(self.budget or float("inf"), self.points() * (self.seconds + OVERHEAD_S))


#: Everything in less than three minutes, on the queries that the paper looks at most closely.
QUICK = Plan(
    queries=("k-OS", "K-OS", "k-OI", "K-OI"),
    inputs=(5, 20),
    threads=(1, 2, 4),
    levels=(1, 3, 6),
    factors=(0.5, 0.8, 1.0),
    percentiles=("auto", BASELINE),
    rounds=3,
    seconds=0.7,
    budget=150.0,
    tuples=100_000,
)


def spread(values: list[float]) -> dict[str, Any]:
    """The median, and the lowest and highest beside it."""
    return {"median": median(values), "low": min(values), "high": max(values), "rounds": values}


@dataclass
class Evaluation:
    """Runs a plan; `results` fills as it goes, so that what was measured before an interruption is there."""

    plan: Plan
    advance: Callable[[int], None] = lambda _points: None
    results: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"designs": [], "latency": [], "threads": [], "levels": []}
    )
    complete: bool = False

    def __post_init__(self) -> None:
        self._started = time.perf_counter()
        self._done = 0
        self._overhead = OVERHEAD_S  # what it takes here, from the measurements so far
        self._workloads: dict[tuple[str, int], Workload] = {}

    def run(self) -> None:
        """Measure everything."""
        for query, inputs, designs in self.plan.cells():
            self._compare(query, inputs, designs)
        for query, design in self.plan.percentile_cells():
            self._percentiles(query, design)
        for query, inputs in self.plan.thread_cells():
            self._threads(query, inputs)
        for query, design in self.plan.level_cells():
            self._levels(query, design)
        self.complete = True

    def _workload(self, query: str, inputs: int) -> Workload:
        key = (PAPER[query].dataset, inputs)
        if key not in self._workloads:
            self._workloads = {k: w for k, w in self._workloads.items() if k[1] == inputs}  # the others are done with
            self._workloads[key] = Workload(*key, self.plan.tuples)
        return self._workloads[key]

    def _left(self) -> float:
        """Seconds of the budget that are left."""
        return (self.plan.budget or float("inf")) - (time.perf_counter() - self._started)

    def _phases(self) -> Phases:
        share = self._left() / max(1, self.plan.points() - self._done) - self._overhead
        seconds = min(self.plan.seconds, max(share, SHORTEST_S))
        return Phases(WARM_UP * seconds, MEASURE * seconds, COOL_DOWN * seconds)

    def _measure(self, setup: Setup, inputs: int, rate: float | None = None) -> Point:
        workload, phases, before = self._workload(setup.query.id, inputs), self._phases(), time.perf_counter()
        point = measure(setup, workload, rate, phases)
        took = time.perf_counter() - before - phases.total
        self._overhead += (took - self._overhead) / OVERHEAD_MEMORY
        self._count(1)
        return point

    def _count(self, points: int) -> None:
        self._done += points
        self.advance(points)

    def _saturated(self, setups: list[Setup], inputs: int) -> list[list[Point]]:
        """The points of each setup; in every round each setup has its turn, and another one begins."""
        points: list[list[Point]] = [[] for _ in setups]
        for turn in range(self.plan.rounds):
            if turn and self._left() <= 0:  # a machine too busy for the budget: one round is better than none
                self._count(len(setups) * (self.plan.rounds - turn))
                break
            for i in range(len(setups)):
                which = (turn + i) % len(setups)
                points[which].append(self._measure(setups[which], inputs))
        return points

    def _compare(self, query: str, inputs: int, designs: list[str]) -> None:
        setups = [Setup(PAPER[query], d) for d in designs]
        saturated = dict(zip(designs, self._saturated(setups, inputs), strict=True))
        for setup in setups:
            points = saturated[setup.design]
            entry = {"query": query, "inputs": inputs, "design": setup.design, **_summary(points)}
            if BASELINE in saturated:
                entry["ratio"] = spread(_ratios(points, saturated[BASELINE]))
            entry["rates"] = [p.as_dict() for p in self._raise(setup, inputs, entry["saturated"]["median"])]
            entry["sustained"] = next((p for p in reversed(entry["rates"]) if p["sustained"]), None)
            self.results["designs"].append(entry)

    def _raise(self, setup: Setup, inputs: int, capacity: float) -> list[Point]:
        """Points at rising rates, up to the first that is too much; if that is the very first, at falling ones."""
        points: list[Point] = []
        first = self.plan.factors[0]
        falling = [first / 2**n for n in range(len(self.plan.factors))]
        while len(points) < len(self.plan.factors) and self._left() > 0:
            rising = all(p.sustained for p in points)
            factor = (self.plan.factors if rising else falling)[len(points)]
            points.append(self._measure(setup, inputs, max(RATE_MIN, factor * capacity)))
            if points[-1].sustained != rising and len(points) > 1:
                break
        self._count(len(self.plan.factors) - len(points))
        return sorted(points, key=lambda p: p.rate or 0.0)

    def _percentiles(self, query: str, design: str) -> None:
        """Latency at shares of the highest rate, with the most inputs."""
        if self._left() <= 0:
            self._count(len(self.plan.shares) + 2)
            return
        setup, inputs = Setup(PAPER[query], design), max(self.plan.inputs)
        most = self._highest_rate(setup, inputs)
        finest = min(finest_cut(inputs), BATCH_S)
        setup = replace(setup, batch_s=finest)
        for share in self.plan.shares:
            rate = max(RATE_MIN, share * most)
            point = self._measure(setup, inputs, rate)
            if not point.sustained and setup.batch_s < BATCH_S and self._left() > 0:  # too fine, from here on
                setup = replace(setup, batch_s=BATCH_S)
                point = self._measure(setup, inputs, rate)
            entry = {"query": query, "inputs": inputs, "design": design, "share": share, "highest_rate": most}
            self.results["latency"].append({**entry, "batch_ms": 1e3 * setup.batch_s, **point.as_dict()})
        if setup.batch_s == finest:
            self._count(1)

    def _highest_rate(self, setup: Setup, inputs: int) -> float:
        """What was sustained; where nothing was, or nothing was tried, what comes out of injectors that never pause."""
        for e in self.results["designs"]:
            if (e["query"], e["inputs"], e["design"]) == (setup.query.id, inputs, setup.design):
                self._count(1)
                return float(e["sustained"]["rate"] if e["sustained"] else e["saturated"]["median"])
        return self._measure(setup, inputs).throughput

    def _threads(self, query: str, inputs: int) -> None:
        setups = [Setup(PAPER[query], "tuml-mc", threads=n) for n in self.plan.threads]
        for setup, points in zip(setups, self._saturated(setups, inputs), strict=True):
            entry = {"query": query, "inputs": inputs, "threads": setup.threads, **_summary(points)}
            self.results["threads"].append(entry)

    def _levels(self, query: str, design: str) -> None:
        inputs = max(self.plan.inputs)
        setups = [Setup(PAPER[query], design, levels=n) for n in self.plan.levels]
        for setup, points in zip(setups, self._saturated(setups, inputs), strict=True):
            entry = {"query": query, "inputs": inputs, "design": design, "levels": setup.levels, **_summary(points)}
            self.results["levels"].append(entry)


def _ratios(points: list[Point], baseline: list[Point]) -> list[float]:
    return [p.throughput / max(1.0, b.throughput) for p, b in zip(points, baseline, strict=True)]


def _summary(points: list[Point]) -> dict[str, Any]:
    """Throughput and durations at saturation."""
    entry: dict[str, Any] = {"saturated": spread([p.throughput for p in points])}
    for name in ("input_us", "update_us", "output_us"):
        values = [v for p in points if (v := getattr(p, name)) is not None]
        entry[name] = median(values) if values else None
    return entry
