"""The experiments: what is measured of each, and what is made of it."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError
from pystream.lab import merge
from pystream.lab.evaluation.measure import Phases, Point, Setup, measure
from pystream.lab.evaluation.plan import BASELINE, COOL_DOWN, MEASURE, OVERHEAD_S, SHORTEST_S, WARM_UP, Plan, Unit
from pystream.lab.evaluation.workload import BATCH_S, Workload, finest_cut
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Callable

#: Tuples per second below which nothing is tried.
RATE_MIN = 1_000.0

#: Measurements over which the overhead is averaged.
OVERHEAD_MEMORY = 8

#: The share of what a setup takes at which its latency is measured once.
LATENCY_SHARE = 0.8


def spread(values: list[float]) -> dict[str, Any]:
    """The median, and the lowest and highest beside it."""
    return {"median": median(values), "low": min(values), "high": max(values), "rounds": values}


@dataclass
class Evaluation:
    """Runs a plan; `results` fills as it goes, so that what was measured before an interruption is there.

    `save` is called after each unit; given the `results`, `done` and `seconds` of then, another one goes on from there.
    """

    plan: Plan
    advance: Callable[[int], None] = lambda _points: None
    save: Callable[[], None] = lambda: None
    results: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    before: float = 0.0  # seconds that went into what is done

    def __post_init__(self) -> None:
        for name in ("designs", "merge", "latency", "threads", "levels"):
            self.results[name] = [e for e in self.results.get(name, []) if e.get("unit") in self.done]
        self._started = time.perf_counter()
        self._points = 0
        self._overhead = OVERHEAD_S  # what it takes here, from the measurements so far
        self._workloads: dict[tuple[str, int], Workload] = {}
        self._folder = Path()
        self._mergers: list[str] | None = None  # None: not compiled yet

    @property
    def complete(self) -> bool:
        """Whether all of it was measured."""
        return len(self.done) == len(self.plan.units())

    @property
    def seconds(self) -> float:
        """How long it took so far."""
        return self.before + time.perf_counter() - self._started

    def run(self) -> None:
        """Measure everything that is not done yet."""
        experiments: dict[str, Callable[..., None]] = {
            "designs": self._compare,
            "merge": self._merge,
            "latency": self._percentiles,
            "threads": self._threads,
            "levels": self._levels,
        }
        with tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            for unit in self.plan.units():
                if unit.name in self.done:
                    self._count(unit.points)
                else:
                    self._run(unit, experiments[unit.experiment])

    def _run(self, unit: Unit, experiment: Callable[..., None]) -> None:
        """One unit, counted and saved; what an interruption left of it is measured again."""
        begun, entries = self._points, self.results[unit.experiment]
        had = len(entries)
        experiment(*unit.arguments)
        self._count(begun + unit.points - self._points)
        for entry in entries[had:]:
            entry["unit"] = unit.name
        self.done.append(unit.name)
        self.save()

    def _workload(self, query: str, inputs: int) -> Workload:
        key = (PAPER[query].dataset, inputs)
        if key not in self._workloads:
            self._workloads = {k: w for k, w in self._workloads.items() if k[1] == inputs}  # the others are done with
            self._workloads[key] = Workload(*key, self.plan.tuples, self.plan.data)
        return self._workloads[key]

    def _left(self) -> float:
        """Seconds of the budget that are left."""
        return (self.plan.budget or float("inf")) - self.seconds

    def _phases(self) -> Phases:
        share = self._left() / max(1, self.plan.points() - self._points) - self._overhead
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
        self._points += points
        self.advance(points)

    def _saturated(self, setups: list[Setup], inputs: int) -> list[list[Point]]:
        """The points of each setup; in every round each setup has its turn, and another one begins."""
        points: list[list[Point]] = [[] for _ in setups]
        for turn in range(self.plan.rounds):
            if turn and self._left() <= 0:  # a machine too busy for the budget: one round is better than none
                break
            for i in range(len(setups)):
                which = (turn + i) % len(setups)
                points[which].append(self._measure(setups[which], inputs))
        return points

    def _compare(self, query: str, inputs: int) -> None:
        designs = self.plan.allowed(query)
        setups = [Setup(PAPER[query], d) for d in designs]
        saturated = dict(zip(designs, self._saturated(setups, inputs), strict=True))
        for setup in setups:
            points = saturated[setup.design]
            entry = {"query": query, "inputs": inputs, "design": setup.design, **_summary(points)}
            if ratios := _ratios(points, saturated.get(BASELINE, [])):
                entry["ratio"] = spread(ratios)
            entry["rates"] = [p.as_dict() for p in self._raise(setup, inputs, entry["saturated"]["median"])]
            entry["sustained"] = next((p for p in reversed(entry["rates"]) if p["sustained"]), None)
            entry["bottleneck"] = bottleneck(entry, inputs, setup.threads or max(1, (os.cpu_count() or 2) // 2))
            self.results["designs"].append(entry)

    def _raise(self, setup: Setup, inputs: int, capacity: float) -> list[Point]:
        """Points at rising rates, up to the first that is too much; if that is the very first, at falling ones."""
        points: list[Point] = []
        first = self.plan.factors[0]
        falling = [first / 2**n for n in range(len(self.plan.factors))]
        while len(points) < len(self.plan.factors) and self._left() > 0:
            rising = all(p.sustained for p in points)
            factor = (self.plan.factors if rising else falling)[len(points)]
            rate = max(RATE_MIN, factor * capacity)
            points.append(self._measure(setup, inputs, rate))
            if points[-1].sustained != rising and len(points) > 1:
                break
            if rate == RATE_MIN and not points[-1].sustained:
                break
        return sorted(points, key=lambda p: p.rate or 0.0)

    def _percentiles(self, query: str, design: str) -> None:
        """Latency at shares of the highest rate, with the most inputs."""
        if self._left() <= 0:
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

    def _highest_rate(self, setup: Setup, inputs: int) -> float:
        """What was sustained; where nothing was, or nothing was tried, what comes out of injectors that never pause."""
        for e in self.results["designs"]:
            if (e["query"], e["inputs"], e["design"]) == (setup.query.id, inputs, setup.design):
                return float(e["sustained"]["rate"] if e["sustained"] else e["saturated"]["median"])
        return self._measure(setup, inputs).throughput

    def _threads(self, query: str, inputs: int) -> None:
        setups = [Setup(PAPER[query], "tuml-mc", threads=n) for n in self.plan.threads]
        for setup, points in zip(setups, self._saturated(setups, inputs), strict=True):
            entry = {"query": query, "inputs": inputs, "threads": setup.threads, **_summary(points)}
            rate = max(RATE_MIN, LATENCY_SHARE * entry["saturated"]["median"])
            entry["loaded"] = self._measure(setup, inputs, rate).as_dict() if self._left() > 0 else None
            self.results["threads"].append(entry)

    def _levels(self, query: str, design: str) -> None:
        inputs = max(self.plan.inputs)
        setups = [Setup(PAPER[query], design, levels=n) for n in self.plan.levels]
        for setup, points in zip(setups, self._saturated(setups, inputs), strict=True):
            entry = {"query": query, "inputs": inputs, "design": design, "levels": setup.levels, **_summary(points)}
            self.results["levels"].append(entry)

    def _merge(self, inputs: int) -> None:
        """S-Merge alone on EC: throughput, and the latency at half of what the slowest takes, the same rate for all."""
        workload, names, folder = self._workload(_OF_EC, inputs), self._programs(), self._folder
        workload.timestamps().tofile(folder / "timestamps")
        contest = merge.Contest(str(folder / "timestamps"), inputs, workload.lap_rows * inputs)
        found: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(self.plan.rounds):
            for name in names[turn % 2 :] + names[: turn % 2]:
                found[name].append(1e6 * merge.measure(folder, name, contest).million_per_second)
                self._count(1)
        rate = min((median(values) for values in found.values()), default=0.0) / 2
        for name, values in found.items():
            loaded = merge.measure(folder, name, replace(contest, rate=rate))
            entry = {"inputs": inputs, "structure": name, "saturated": spread(values), "rate": rate}
            self.results["merge"].append({**entry, "latency_ms": loaded.latency_ms})
            self._count(1)

    def _programs(self) -> list[str]:
        """Compile the programs that merge, once; without a compiler or a JDK there are none, or fewer."""
        if self._mergers is None:
            try:
                self._mergers = [d for d in merge.build(self._folder) if d in self.plan.mergers]
            except PystreamError:
                self._mergers = []
        return self._mergers


#: Any query on EC.
_OF_EC = next(q.id for q in PAPER.values() if q.dataset == "EC")


def bottleneck(entry: dict[str, Any], inputs: int, threads: int) -> dict[str, Any] | None:
    """Which thread limits a setup and what it would allow, if every thread had a processor of its own.

    The paper's argument: the mean duration of an operation of the busiest kind of thread, times the number of such
    threads. Durations are processor time per tuple.
    """
    widths = {"input": inputs, "update": threads, "output": 1}
    allows = {name: 1e6 * width / us for name, width in widths.items() if (us := entry[f"{name}_us"])}
    if not allows:
        return None
    thread = min(allows, key=lambda name: allows[name])
    return {"thread": thread, "allows": allows[thread], "all": allows}


def _ratios(points: list[Point], baseline: list[Point]) -> list[float]:
    """Of the rounds in which something came out of the baseline; on a busy machine there may be none."""
    return [p.throughput / b.throughput for p, b in zip(points, baseline, strict=False) if b.throughput]


def _summary(points: list[Point]) -> dict[str, Any]:
    """Throughput and durations at saturation.

    Durations are of all rounds together, so that a round in which other work let few tuples through counts little.
    """
    entry: dict[str, Any] = {"saturated": spread([p.throughput for p in points])}
    for name in ("input_us", "update_us", "output_us"):
        known = [(us, p.throughput) for p in points if (us := getattr(p, name)) is not None]
        tuples = sum(rate for _, rate in known)
        entry[name] = sum(us * rate for us, rate in known) / tuples if tuples else None
    return entry
