"""The paper's figures, redrawn from an evaluation: the paper's designs by themselves, ours in figures of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pystream.lab.evaluation.measure import OURS
from pystream.lab.evaluation.plan import BASELINE
from pystream.lab.report.line_chart import Line, chart


@dataclass(frozen=True)
class Figure:
    """Charts that share a legend."""

    title: str
    note: str
    names: tuple[str, ...]  # of the lines
    charts: tuple[tuple[str, str], ...]  # title, SVG


Entries = list[dict[str, Any]]


def figures(results: dict[str, Any]) -> list[Figure]:
    """Those that there are points for."""
    theirs = [e for e in results["designs"] if e["design"] not in OURS]
    ours = [e for e in results["designs"] if e["design"] in (*OURS, BASELINE)]
    made = [
        _merge(results.get("merge", [])),
        _over_inputs("The paper's designs: throughput over inputs", "Injectors that never pause.", theirs),
        _durations(theirs),
        _allowed(theirs),
        _latency_over_inputs(theirs),
        _latency_over_rate(theirs),
        _threads(results.get("threads", [])),
        _levels(results.get("levels", [])),
        _over_inputs("Our designs: throughput over inputs", "With the paper's baseline beside them.", ours),
    ]
    return [figure for figure in made if figure is not None]


def _figure(title: str, note: str, charts: list[tuple[str, list[Line], dict[str, Any]]]) -> Figure | None:
    names = tuple(dict.fromkeys(line.name for _, lines, _ in charts for line in lines))
    drawn = ((name, chart(lines, f"{title}: {name}", names, **labels)) for name, lines, labels in charts)
    found = tuple((name, drawing) for name, drawing in drawn if drawing)
    return Figure(title, note, names, found) if found else None


def _by_query(entries: Entries) -> dict[str, Entries]:
    found: dict[str, Entries] = {}
    for e in entries:
        found.setdefault(e["query"], []).append(e)
    return found


def _lines(entries: Entries, name: str, x: str, value: Any) -> list[Line]:
    """A line for each value of the field `name`, over the field `x`."""
    points: dict[str, list[tuple[float, float]]] = {}
    for e in entries:
        y = value(e)
        if y is not None:
            points.setdefault(str(e[name]), []).append((float(e[x]), float(y)))
    return [Line(line, tuple(sorted(own))) for line, own in points.items()]


def _saturated(entry: dict[str, Any]) -> float:
    return float(entry["saturated"]["median"])


def _mean_ms(point: dict[str, Any] | None) -> float | None:
    latency = (point or {}).get("latency_ms")
    return float(latency["mean"]) if latency else None


RATES: dict[str, Any] = {"x_label": "inputs", "y_label": "tuples/s"}
WAITS: dict[str, Any] = {"x_label": "inputs", "y_label": "latency, ms", "log": True}


def _over_inputs(title: str, note: str, entries: Entries) -> Figure | None:
    charts = [(q, _lines(own, "design", "inputs", _saturated), RATES) for q, own in _by_query(entries).items()]
    return _figure(title, note, charts)


def _durations(entries: Entries) -> Figure | None:
    label = {"x_label": "inputs", "y_label": "us per tuple", "log": True}
    charts = []
    for query, own in _by_query(entries).items():
        for thread in ("input", "output"):
            lines = _lines(own, "design", "inputs", lambda e, name=f"{thread}_us": e.get(name))
            charts.append((f"{query}, {thread} thread", lines, label))
    note = "Processor time per tuple of the input threads' operation and of the output thread's."
    return _figure("The paper's designs: durations over inputs", note, charts)


def _allowed(entries: Entries) -> Figure | None:
    charts = [
        (query, _lines(own, "design", "inputs", lambda e: (e.get("bottleneck") or {}).get("allows")), RATES)
        for query, own in _by_query(entries).items()
    ]
    note = (
        "What the busiest kind of thread would allow with a processor for each thread, from processor time per tuple."
    )
    return _figure("The paper's designs: what the bottleneck allows, over inputs", note, charts)


def _latency_over_inputs(entries: Entries) -> Figure | None:
    charts = [
        (query, _lines(own, "design", "inputs", lambda e: _mean_ms(e.get("sustained"))), WAITS)
        for query, own in _by_query(entries).items()
    ]
    note = "Mean, at the highest rate that each design sustained; none where it sustained none."
    return _figure("The paper's designs: latency over inputs", note, charts)


def _latency_over_rate(entries: Entries) -> Figure | None:
    most = max((e["inputs"] for e in entries), default=0)
    charts = []
    for query, own in _by_query([e for e in entries if e["inputs"] == most]).items():
        points = [{**p, "design": e["design"]} for e in own for p in e.get("rates", [])]
        lines = _lines(points, "design", "rate", _mean_ms)
        charts.append((query, lines, WAITS | {"x_label": "tuples/s injected"}))
    note = (
        f"Mean, with {most} inputs; the last rate of a line is the first that was not sustained, or the highest tried."
    )
    return _figure("The paper's designs: latency over rate", note, charts)


def _merge(entries: Entries) -> Figure | None:
    charts = [
        ("throughput", _lines(entries, "structure", "inputs", _saturated), RATES),
        ("latency", _lines(entries, "structure", "inputs", lambda e: e["latency_ms"]), WAITS),
    ]
    note = "S-Merge alone on EC, a thread per input and one that reads; latency at half of what the slower one takes."
    return _figure("T-Gate and Java's skip list", note, charts)


def _threads(entries: Entries) -> Figure | None:
    named = [{**e, "line": f"{e['inputs']} inputs"} for e in entries]
    charts = []
    for query, own in _by_query(named).items():
        label = {"x_label": "update threads"}
        charts.append((f"{query}, throughput", _lines(own, "line", "threads", _saturated), RATES | label))
        latency = _lines(own, "line", "threads", lambda e: _mean_ms(e.get("loaded")))
        charts.append((f"{query}, latency", latency, WAITS | label))
    return _figure("TuML_MC over update threads", "Latency at 80 % of the throughput.", charts)


def _levels(entries: Entries) -> Figure | None:
    charts = [
        (query, _lines(own, "design", "levels", _saturated), {"x_label": "levels", "y_label": "tuples/s"})
        for query, own in _by_query(entries).items()
    ]
    return _figure("Levels of the lists", "The paper's experiments use 3.", charts)
