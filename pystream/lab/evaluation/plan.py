"""Which measurements are made, and how long they may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - dataclasses.fields shows it

from pystream.designs import DESIGNS, designs_for
from pystream.queries import PAPER

#: What the others are compared with.
BASELINE = "mq"

#: Shares of a measurement's time.
WARM_UP, MEASURE, COOL_DOWN = 0.25, 0.65, 0.1

#: What starting and ending a measurement takes, about, on an idle machine; and the shortest that says anything.
OVERHEAD_S, SHORTEST_S = 0.15, 0.2

#: Designs whose lists have levels.
LEVELLED = ("tuml-sc", "tuml-mc", "wiml")

#: The structures that the paper compares alone.
MERGERS = ("t_gate", "skip_list")


@dataclass(frozen=True)
class Unit:
    """A part that is measured and saved as a whole, so that an interrupted evaluation can go on after it."""

    experiment: str  # a list of the results
    arguments: tuple[str | int, ...]
    points: int  # at most so many measurements

    @property
    def name(self) -> str:
        """For the list of what is done."""
        return " ".join(map(str, (self.experiment, *self.arguments)))


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
    factors: tuple[float, ...] = (0.4, 0.7, 0.9, 1.0, 1.2)
    rounds: int = 3
    seconds: float = 3.0  # of one measurement
    budget: float | None = 3_300.0  # seconds of all measurements together: they are shortened to fit
    tuples: int = 400_000  # of one lap
    data: Path | None = None  # a folder with EC and SC that Spark has made; None: made up here
    mergers: tuple[str, ...] = MERGERS

    def allowed(self, query: str) -> list[str]:
        """The designs that run a query."""
        return [d for d in self.designs if d in designs_for(PAPER[query].query)]

    def level_cells(self) -> list[tuple[str, str]]:
        """Queries and designs for levels."""
        queries = [q for q in ("k-OS", "k-OI") if q in self.queries]
        return [(q, d) for q in queries for d in self.allowed(q) if d in LEVELLED]

    def percentile_cells(self) -> list[tuple[str, str]]:
        """Queries and designs for percentiles; `auto` is among them unless only some designs were asked for."""
        also = ["auto"] if set(self.designs) == set(DESIGNS) else []
        return [(q, d) for q in self.queries for d in self.percentiles if d in [*also, *self.allowed(q)]]

    def thread_cells(self) -> list[tuple[str, int]]:
        """Queries and numbers of inputs for update threads: those of the paper, the order-sensitive ones."""
        if "tuml-mc" not in self.designs or not self.threads:
            return []
        ends = sorted({min(self.inputs), max(self.inputs)})
        return [(q, n) for q in self.queries if PAPER[q].order_sensitive for n in ends]

    def units(self) -> list[Unit]:
        """All of it, in the order in which it is measured."""
        setup = self.rounds + len(self.factors)
        designs = [Unit("designs", (q, n), len(self.allowed(q)) * setup) for q in self.queries for n in self.inputs]
        merge = [Unit("merge", (n,), len(self.mergers) * (self.rounds + 1)) for n in self.inputs if self.mergers]
        latency = [Unit("latency", cell, len(self.shares) + 2) for cell in self.percentile_cells()]
        threads = [Unit("threads", cell, len(self.threads) * (self.rounds + 1)) for cell in self.thread_cells()]
        levels = [Unit("levels", cell, len(self.levels) * self.rounds) for cell in self.level_cells() if self.levels]
        return [*merge, *designs, *latency, *threads, *levels]

    def points(self) -> int:
        """At most so many measurements."""
        return sum(unit.points for unit in self.units())

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
    rounds=2,
    seconds=0.7,
    budget=150.0,
    tuples=100_000,
)

#: The paper's own phases and rounds: five minutes are measured, ten times. It takes days.
AS_LONG = replace(Plan(), rounds=10, seconds=300 / MEASURE, budget=None, tuples=4_000_000)
