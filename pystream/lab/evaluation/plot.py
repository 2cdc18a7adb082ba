"""The result as a picture, as the paper draws it: throughput over inputs, latency over rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError
from pystream.lab.evaluation.measure import OURS
from pystream.lab.evaluation.plan import BASELINE
from pystream.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path


#: Queries side by side, and charts of a query one below the other.
COLUMNS, ROWS = 4, 3


def library() -> Any:
    """Matplotlib, or a sentence about how to get it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - not needed for anything else
    except ImportError as error:
        raise PystreamError("--plot needs matplotlib: pip install matplotlib") from error
    return mpl


def plot(result: dict[str, Any], path: Path) -> None:
    """Write a PNG: throughput over inputs of the paper's designs, of ours with the baseline, and latency over rate."""
    mpl = library()
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    entries = result["results"]["designs"]
    queries = list(dict.fromkeys(e["query"] for e in entries))
    designs = list(dict.fromkeys(e["design"] for e in entries))
    colours = {d: f"C{i}" for i, d in enumerate(designs)}
    columns = min(len(queries), COLUMNS)
    bands = -(-len(queries) // columns)
    figure, axes = plt.subplots(ROWS * bands, columns, figsize=(3.2 * columns, 3 * ROWS * bands), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for i, query in enumerate(queries):
        band, column = divmod(i, columns)
        theirs, ours, below = (axes[ROWS * band + row][column] for row in range(ROWS))
        own = [e for e in entries if e["query"] == query]
        _throughput(theirs, [e for e in own if e["design"] not in OURS], colours)
        _throughput(ours, [e for e in own if e["design"] in (*OURS, BASELINE)], colours)
        _latency(below, own, colours)
        theirs.set_title(query)
        for axis in (theirs, ours, below):
            axis.set_visible(True)
        if column == 0:
            theirs.set_ylabel("saturated, thousand tuples/s")
            ours.set_ylabel("ours: thousand tuples/s")
            below.set_ylabel("latency, ms (mean)")
    lines = [mpl.lines.Line2D([], [], color=colours[d], marker="o", markersize=3) for d in designs]
    figure.legend(lines, designs, loc="lower center", ncols=len(designs), frameon=False)
    figure.tight_layout(rect=(0, 0.05 / bands, 1, 1))
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=120, format="png")
    plt.close(figure)


def _throughput(axis: Any, entries: list[dict[str, Any]], colours: dict[str, str]) -> None:
    for design in dict.fromkeys(e["design"] for e in entries):
        own = sorted((e for e in entries if e["design"] == design), key=lambda e: e["inputs"])
        middle = [e["saturated"]["median"] / 1e3 for e in own]
        below = [m - e["saturated"]["low"] / 1e3 for m, e in zip(middle, own, strict=True)]
        above = [e["saturated"]["high"] / 1e3 - m for m, e in zip(middle, own, strict=True)]
        inputs = [e["inputs"] for e in own]
        axis.errorbar(inputs, middle, yerr=[below, above], color=colours[design], marker="o", markersize=3, capsize=2)
    axis.set_xlabel("inputs")
    axis.set_xticks(sorted({e["inputs"] for e in entries}))
    axis.set_ylim(bottom=0)
    axis.grid(visible=True, alpha=0.3)


def _latency(axis: Any, entries: list[dict[str, Any]], colours: dict[str, str]) -> None:
    most = max(e["inputs"] for e in entries)
    for e in entries:
        points = [p for p in e["rates"] if e["inputs"] == most and p["latency_ms"]]
        rates, latency = [p["rate"] / 1e3 for p in points], [p["latency_ms"]["mean"] for p in points]
        axis.plot(rates, latency, color=colours[e["design"]], marker="o", markersize=3)
    axis.set_xlabel(f"thousand tuples/s, {most} inputs")
    if axis.lines and any(len(line.get_xdata()) for line in axis.lines):
        axis.set_xscale("log")
        axis.set_yscale("log")
        for one, digits in ((axis.xaxis, "5"), (axis.yaxis, "25")):  # rates are longer numbers
            one.set_major_formatter("{x:g}")
            one.set_minor_formatter(lambda x, _at, digits=digits: f"{x:g}" if f"{x:e}"[0] in digits else "")
    axis.grid(visible=True, alpha=0.3)
