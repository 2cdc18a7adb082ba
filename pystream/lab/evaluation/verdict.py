"""What the paper claims, what was measured here, and what follows.

A claim about how a design compares is judged by what was measured if every thread can have a processor of its own.
Otherwise it is judged by durations: what the busiest kind of thread would allow with a processor for each thread, which
is how the paper itself explains its figures. Figures of its machine, and scaling with threads, cannot be decided then.
On a machine that was busy before the evaluation began, what a clock measured decides nothing, and no claim is said to
fail: other work costs designs caches, some more than others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HOLDS, IN_PART, FAILS, MISSING = "holds", "holds in part", "does not hold here", "not measured"

#: A ratio of at least this share of the paper's is the paper's; a change by less than this share is none.
ENOUGH, SAME = 0.8, 0.15


@dataclass(frozen=True)
class Verdict:
    """One claim: what the paper says, what we found, whether it holds, and why."""

    claim: str
    paper: str
    ours: str
    verdict: str
    why: str = ""
    timed: bool = False  # by a clock, not by processor time


class Findings:
    """The results of an evaluation, by query, inputs and design."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.results = {"merge": [], "threads": [], **document["results"]}
        self.cores = int(document["machine"].get("cores") or 1)
        self.load = float((document["load_average"]["start"] or [0.0])[0])
        self.designs = {(e["query"], e["inputs"], e["design"]): e for e in self.results["designs"]}
        numbers = {inputs for _, inputs, _ in self.designs} | {e["inputs"] for e in self.results["merge"]}
        self.few, self.most = min(numbers, default=0), max(numbers, default=0)

    @property
    def enough_cores(self) -> bool:
        """Whether each thread of a design with the most inputs can have a processor."""
        return self.cores > self.most

    def undecided(self) -> str:
        """The verdict about what only more processors can show."""
        return f"cannot be decided on {self.cores} cores"

    def throughput(self, query: str, inputs: int, design: str) -> float | None:
        """What counts as throughput: measured, or what the busiest kind of thread allows."""
        entry = self.designs.get((query, inputs, design))
        if entry is None:
            return None
        limit = entry.get("bottleneck")
        if self.enough_cores or not limit:
            return float(entry["saturated"]["median"])
        return float(limit["allows"])

    def busiest(self, query: str, inputs: int, design: str) -> str:
        """Which thread limits it, in words."""
        entry = self.designs[query, inputs, design]
        limit = entry.get("bottleneck")
        if not limit:
            return f"{design}: durations unknown"
        us = entry[f"{limit['thread']}_us"]
        return f"{design}: {limit['thread']} thread, {us:.2g} us a tuple"


def verdicts(document: dict[str, Any]) -> list[Verdict]:
    """All claims, in the paper's order."""
    found = Findings(document)
    made = [make(found) for make in CLAIMS]
    if found.load <= found.cores:
        return made
    busy = f"cannot be decided: load {found.load:.0f} before it began"
    return [replace(one, verdict=busy) if doubtful(one) else one for one in made]


def doubtful(one: Verdict) -> bool:
    """Whether other work on the machine may have made this verdict."""
    return one.verdict == FAILS or (one.timed and one.verdict in (HOLDS, IN_PART))


# ---- kinds of claims ----


def million(value: float) -> str:
    """A rate in few words."""
    return f"{value / 1e6:.3g} M t/s" if value >= 1e6 else f"{value / 1e3:.3g} k t/s"


def _judge(ratio: float, claimed: float) -> str:
    return HOLDS if ratio >= ENOUGH * claimed else IN_PART if ratio > 1 + SAME else FAILS


def faster(query: str, design: str, claimed: float, paper: str) -> Callable[[Findings], Verdict]:
    """The design beats mq with the most inputs by this factor."""
    claim = f"{query}, most inputs: {design} against mq"

    def judge(found: Findings) -> Verdict:
        ours, base = (found.throughput(query, found.most, d) for d in (design, "mq"))
        if not ours or not base:
            return Verdict(claim, paper, "", MISSING)
        measured = found.designs[query, found.most, design].get("ratio", {}).get("median")
        shown = f"{ours / base:.1f} x by {'throughput' if found.enough_cores else 'durations'}"
        shown += f", {measured:.1f} x measured" if measured and not found.enough_cores else ""
        why = "; ".join(found.busiest(query, found.most, d) for d in (design, "mq"))
        return Verdict(claim, paper, shown, _judge(ours / base, claimed), why, found.enough_cores)

    return judge


def reaches(query: str, design: str, paper: str) -> Callable[[Findings], Verdict]:
    """A figure of the paper's machine."""

    def judge(found: Findings) -> Verdict:
        claim = f"{query}, {design}: highest throughput"
        numbers = [n for q, n, d in found.designs if (q, d) == (query, design)]
        if not numbers:
            return Verdict(claim, paper, "", MISSING)
        best = max(float(found.designs[query, n, design]["saturated"]["median"]) for n in numbers)
        allowed = max(found.throughput(query, n, design) or 0.0 for n in numbers)
        why = "another machine, language and data: only the comparisons carry over"
        return Verdict(
            claim, paper, f"{million(best)} measured, {million(allowed)} by durations", found.undecided(), why
        )

    return judge


def over_inputs(query: str, design: str, trend: str, paper: str) -> Callable[[Findings], Verdict]:
    """How throughput changes from the fewest to the most inputs: "falls", "stays" or "grows"."""
    claim = f"{query}: throughput of {design} over inputs"

    def judge(found: Findings) -> Verdict:
        first, last = (found.throughput(query, n, design) for n in (found.few, found.most))
        if not first or not last or found.few == found.most:
            return Verdict(claim, paper, "", MISSING)
        change = last / first
        seen = "falls" if change < 1 - SAME else "grows" if change > 1 + SAME else "stays"
        shown = f"{seen}: {million(first)} with {found.few}, {million(last)} with {found.most} inputs"
        better = (trend, seen) == ("stays", "grows")
        why = "; ".join(f"{n} inputs, {found.busiest(query, n, design)}" for n in (found.few, found.most))
        return Verdict(claim, paper, shown, HOLDS if seen == trend or better else FAILS, why, found.enough_cores)

    return judge


# ---- single claims ----


def _merge(found: Findings) -> dict[tuple[str, int], dict[str, Any]]:
    return {(e["structure"], e["inputs"]): e for e in found.results["merge"]}


def _both(found: Findings) -> tuple[dict[str, Any], dict[str, Any]] | None:
    entries = _merge(found)
    pair = tuple(entries.get((name, found.most)) for name in ("t_gate", "skip_list"))
    return (pair[0], pair[1]) if pair[0] and pair[1] else None


def merge_throughput(found: Findings) -> Verdict:
    """T-Gate sorts more than a skip list."""
    claim, paper = "T-Gate against a skip list, most inputs", "2.2 against 1.5 M t/s (1.5 x)"
    pair = _both(found)
    if pair is None:
        return Verdict(claim, paper, "", MISSING, "needs a JDK and a C compiler")
    gate, skip = (float(e["saturated"]["median"]) for e in pair)
    why = "T-Gate is C here, the skip list Java: languages and allocators are compared too"
    shown = f"{million(gate)} against {million(skip)} ({gate / skip:.1f} x)"
    return Verdict(claim, paper, shown, _judge(gate / skip, 1.5), why, timed=True)


def merge_latency(found: Findings) -> Verdict:
    """And sooner."""
    claim, paper = "T-Gate against a skip list: latency, most inputs", "1 against 1.6 ms"
    pair = _both(found)
    if pair is None:
        return Verdict(claim, paper, "", MISSING, "needs a JDK and a C compiler")
    gate, skip = (float(e["latency_ms"]) for e in pair)
    why = f"both at {million(pair[0]['rate'])}; with more threads than cores the scheduler is in it"
    return Verdict(claim, paper, f"{gate:.2f} against {skip:.2f} ms", HOLDS if gate < skip else FAILS, why, timed=True)


def merge_trend(found: Findings) -> Verdict:
    """T-Gate grows with the inputs, the skip list degrades."""
    claim, paper = "S-Merge over inputs", "T-Gate grows, the skip list degrades"
    entries = _merge(found)
    ends = {name: [entries.get((name, n)) for n in (found.few, found.most)] for name in ("t_gate", "skip_list")}
    if found.few == found.most or not all(e for pair in ends.values() for e in pair):
        return Verdict(claim, paper, "", MISSING)
    change = {n: p[1]["saturated"]["median"] / p[0]["saturated"]["median"] for n, p in ends.items() if p[0] and p[1]}
    each = f"T-Gate x {change['t_gate']:.2f}, skip list x {change['skip_list']:.2f}"
    shown = f"from {found.few} to {found.most} inputs: {each}"
    if change["t_gate"] > change["skip_list"]:
        verdict = HOLDS if change["t_gate"] >= 1 - SAME and change["skip_list"] < 1 else IN_PART
    else:
        verdict = FAILS
    why = "growing needs a core for each input" if verdict != HOLDS else ""
    return Verdict(claim, paper, shown, verdict, why, timed=True)


def lock_free_queues(found: Findings) -> Verdict:
    """Lock-free queues are faster than locked ones, and not by much."""
    claim, paper = "K-OS, most inputs: operations of mq-lf against mq", "both faster"
    free, locked = (found.designs.get(("K-OS", found.most, d), {}) for d in ("mq-lf", "mq"))
    names = ("input", "output")
    if not all(e.get(f"{name}_us") for e in (free, locked) for name in names):
        return Verdict(claim, paper, "", MISSING)
    us = {name: (free[f"{name}_us"], locked[f"{name}_us"]) for name in names}
    shown = ", ".join(f"{name} {mine:.2g} against {other:.2g} us" for name, (mine, other) in us.items())
    faster_ones = sum(mine < other for mine, other in us.values())
    why = "processor time: waiting for a lock is not in it"
    return Verdict(claim, paper, shown, (FAILS, IN_PART, HOLDS)[faster_ones], why)


def function_cost(found: Findings) -> Verdict:
    """An expensive function costs more, and TuML_SC's lead over MQ shrinks with it."""
    claim, paper = "f-OS, F-OS: TuML_SC's lead shrinks as the function costs more", "close to mq for F-OS"
    lead = {}
    for query in ("k-OS", "f-OS", "F-OS"):
        pair = [found.throughput(query, found.most, d) for d in ("tuml-sc", "mq")]
        if not pair[0] or not pair[1]:
            return Verdict(claim, paper, "", MISSING)
        lead[query] = pair[0] / pair[1]
    shown = ", ".join(f"{query} {value:.2f} x" for query, value in lead.items())
    costs = [found.designs[q, found.most, "mq"]["output_us"] for q in ("f-OS", "F-OS")]
    why = f"Update and Output of mq take {costs[0]:.3g} us for f-OS, {costs[1]:.3g} for F-OS" if all(costs) else ""
    shrinks = lead["F-OS"] <= (1 + SAME) * lead["f-OS"] and lead["F-OS"] < lead["k-OS"]
    return Verdict(claim, paper, shown, HOLDS if shrinks else FAILS, why, found.enough_cores)


def threads(found: Findings) -> Verdict:
    """TuML_MC scales with its update threads and does not degrade."""
    claim, paper = "TuML_MC over update threads", "grows to 12, and does not degrade above the best"
    entries = [e for e in found.results["threads"] if e["inputs"] == found.most]
    if not entries:
        return Verdict(claim, paper, "", MISSING)
    query = "K-OS" if any(e["query"] == "K-OS" for e in entries) else entries[0]["query"]
    own = {e["threads"]: float(e["saturated"]["median"]) for e in entries if e["query"] == query}
    shown = f"{query}: " + ", ".join(f"{n}: {million(rate)}" for n, rate in sorted(own.items()))
    if found.cores <= max(own) + found.most:
        why = f"{max(own)} update threads, {found.most} inputs and the output thread want as many cores"
        return Verdict(claim, paper, shown, found.undecided(), why)
    return Verdict(claim, paper, shown, HOLDS if own[max(own)] > own[min(own)] else FAILS, timed=True)


def magnitude(found: Findings) -> Verdict:
    """The headline: up to one order of magnitude over queues."""
    claim, paper = "best of the paper's designs against mq, most inputs", "up to one order of magnitude"
    ratios = {}
    for query, inputs, design in found.designs:
        ours, base = (found.throughput(query, inputs, d) for d in (design, "mq"))
        if inputs == found.most and design in ("tuml-sc", "tuml-mc", "wiml") and ours and base:
            ratios[f"{design} on {query}"] = ours / base
    if not ratios:
        return Verdict(claim, paper, "", MISSING)
    best = max(ratios, key=lambda name: ratios[name])
    return Verdict(claim, paper, f"{ratios[best]:.1f} x, {best}", _judge(ratios[best], 10.0), timed=found.enough_cores)


CLAIMS: tuple[Callable[[Findings], Verdict], ...] = (
    merge_throughput,
    merge_latency,
    merge_trend,
    lock_free_queues,
    faster("K-OS", "tuml-sc", 1.6, "1.6 x (160,000 against 100,000 t/s by durations)"),
    reaches("K-OI", "wiml", "2 M t/s by durations, against 400,000 of mq and mq-lf"),
    faster("k-OS", "tuml-sc", 2.9, "2.9 x"),
    over_inputs("k-OS", "mq", "falls", "falls linearly"),
    over_inputs("k-OS", "mq-lf", "falls", "falls linearly"),
    over_inputs("k-OS", "tuml-sc", "stays", "rather stable"),
    over_inputs("k-OI", "wiml", "grows", "grows"),
    reaches("k-OI", "wiml", "2.6 M t/s"),
    reaches("K-OI", "wiml", "430,000 t/s"),
    faster("w-OI", "wiml", 19.0, "2.4 M t/s, 19 x"),
    faster("W-OI", "wiml", 16.0, "1.4 M t/s, 16 x"),
    function_cost,
    faster("f-OI", "wiml", 9.0, "615,000 t/s, 9 x"),
    faster("F-OI", "wiml", 9.0, "615,000 t/s, 9 x"),
    threads,
    magnitude,
)


def markdown(document: dict[str, Any]) -> str:
    """The table as Markdown."""
    rows = ["| claim | verdict | paper | here | why |", "|---|---|---|---|---|"]
    rows += [f"| {v.claim} | {v.verdict} | {v.paper} | {v.ours or '-'} | {v.why or '-'} |" for v in verdicts(document)]
    return "\n".join(rows) + "\n"
