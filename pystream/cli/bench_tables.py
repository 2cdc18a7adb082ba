"""The tables of `pystream bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.cli.console import table
from pystream.lab.evaluation.measure import PERCENTILES
from pystream.lab.evaluation.verdict import verdicts

if TYPE_CHECKING:
    from rich.table import Table


def tables(result: dict[str, Any]) -> list[Table]:
    """The document's results as tables."""
    found = result["results"]
    merge = [_merge(found["merge"])] if found["merge"] else []
    designs = [_designs(found["designs"]), _durations(found["designs"])] if found["designs"] else []
    latency = [_latency(found["latency"])] if found["latency"] else []
    scaling = [_scaling(what, found[what]) for what in ("threads", "levels") if found[what]]
    return [*merge, *designs, *latency, *scaling, _verdicts(result)]


def _verdicts(result: dict[str, Any]) -> Table:
    listing = table("The paper's claims")
    for name in ("claim", "verdict", "paper", "here"):
        listing.add_column(name, overflow="fold")
    for one in verdicts(result):
        listing.add_row(one.claim, one.verdict, one.paper, one.ours)
    return listing


def _kilo(value: float) -> str:
    return f"{value / 1e3:,.1f}" if value < 1e5 else f"{value / 1e3:,.0f}"


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _ratio(ratio: dict[str, Any] | None) -> str:
    """The median and its range; a tilde where the range holds 1, so that nothing can be said."""
    if ratio is None:
        return ""
    sign = "~" if ratio["low"] <= 1 <= ratio["high"] else " "
    return f"{sign}{ratio['median']:.2f} ({ratio['low']:.2f} - {ratio['high']:.2f})"


def _designs(entries: list[dict[str, Any]]) -> Table:
    listing = table("Designs: thousand tuples a second; latency in ms")
    for name in ("query", "inputs", "design"):
        listing.add_column(name)
    for name in ("saturated", "ratio to mq", "sustained", "latency", "p99"):
        listing.add_column(name, justify="right", no_wrap=True)
    last = None
    for e in entries:
        if last not in (None, (e["query"], e["inputs"])):
            listing.add_section()
        last = (e["query"], e["inputs"])
        ratio = None if e["design"] == "mq" else e.get("ratio")
        best = e["sustained"]
        latency = (best and best["latency_ms"]) or None
        kept = [_kilo(best["rate"]) if best else "none"]
        kept += [f"{latency['mean']:.1f}", f"{latency['p99']:.1f}"] if latency else ["", ""]
        saturated = _kilo(e["saturated"]["median"])
        listing.add_row(e["query"], str(e["inputs"]), e["design"], saturated, _ratio(ratio), *kept)
    return listing


def _durations(entries: list[dict[str, Any]]) -> Table:
    listing = table(
        "Processor time per tuple in us, and what the busiest kind of thread would allow with a processor for each "
        "thread: thousand tuples/s"
    )
    for name in ("query", "inputs", "design"):
        listing.add_column(name)
    for name in ("input", "update", "output", "allows"):
        listing.add_column(name, justify="right", no_wrap=True)
    listing.add_column("thread")
    most = max(e["inputs"] for e in entries)
    for e in (e for e in entries if e["inputs"] == most):
        durations = [_us(e[name]) for name in ("input_us", "update_us", "output_us")]
        limit = e.get("bottleneck")
        row = [e["query"], str(e["inputs"]), e["design"], *durations]
        listing.add_row(*row, *((_kilo(limit["allows"]), limit["thread"]) if limit else ("", "")))
    return listing


def _merge(entries: list[dict[str, Any]]) -> Table:
    listing = table("S-Merge alone on EC: thousand tuples/s, and the mean latency at a rate that both take")
    for name in ("inputs", "structure"):
        listing.add_column(name)
    for name in ("median", "range", "rate", "latency ms"):
        listing.add_column(name, justify="right", no_wrap=True)
    for e in entries:
        s = e["saturated"]
        figures = [_kilo(s["median"]), f"{_kilo(s['low'])} - {_kilo(s['high'])}", _kilo(e["rate"])]
        listing.add_row(str(e["inputs"]), e["structure"], *figures, f"{e['latency_ms']:.2f}")
    return listing


def _latency(entries: list[dict[str, Any]]) -> Table:
    listing = table(
        "Latency at a share of the highest rate that was sustained, and the interval of batches: ms; thousand tuples/s"
    )
    for name in ("query", "inputs", "design"):
        listing.add_column(name)
    for name in ("share", "rate", "cut", "p50", "p99", "p99.9"):
        listing.add_column(name, justify="right", no_wrap=True)
    listing.add_column("")
    last = None
    for e in entries:
        if last not in (None, (e["query"], e["inputs"])):
            listing.add_section()
        last = (e["query"], e["inputs"])
        row = [e["query"], str(e["inputs"]), e["design"], f"{e['share']:.0%}", _kilo(e["rate"])]
        row.append(f"{e['batch_ms']:g}")
        ms = [f"{e['latency_ms'][name]:.2f}" if e["latency_ms"] else "" for name in PERCENTILES]
        listing.add_row(*row, *ms, "" if e["sustained"] else "not kept up")
    return listing


def _scaling(what: str, entries: list[dict[str, Any]]) -> Table:
    title = {"threads": "tuml-mc with more update threads", "levels": "Levels of the lists"}[what]
    listing = table(f"{title}: thousand tuples/s")
    for name in ("query", "inputs", "design", what):
        listing.add_column(name)
    for name in ("median", "range", "latency at 80 %, ms"):
        listing.add_column(name, justify="right", no_wrap=True)
    for e in entries:
        s, loaded = e["saturated"], (e.get("loaded") or {}).get("latency_ms")
        row = [e["query"], str(e["inputs"]), e.get("design", "tuml-mc"), str(e[what]), _kilo(s["median"])]
        latency = f"{loaded['mean']:.1f}" if loaded else ""
        listing.add_row(*row, f"{_kilo(s['low'])} - {_kilo(s['high'])}", latency)
    return listing
