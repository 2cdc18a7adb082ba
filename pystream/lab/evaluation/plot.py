"""The result as a picture, as the paper draws it: throughput over inputs, latency over rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError
from pystream.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path


#: Queries side by side.
COLUMNS = 4


def library() -> Any:
    """Matplotlib, or a sentence about how to get it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - not needed for anything else
    except ImportError as error:
        raise PystreamError("--plot needs matplotlib: pip install matplotlib") from error
    return mpl


def plot(result: dict[str, Any], path: Path) -> None:
    """Write a PNG: above, throughput by number of inputs; below, latency by rate at the largest number of inputs."""
    mpl = library()
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    entries = result["results"]["designs"]
    queries = list(dict.fromkeys(e["query"] for e in entries))
    designs = list(dict.fromkeys(e["design"] for e in entries))
    colours = {d: f"C{i}" for i, d in enumerate(designs)}
    columns = min(len(queries), COLUMNS)
    bands = -(-len(queries) // columns)
    figure, axes = plt.subplots(2 * bands, columns, figsize=(3.2 * columns, 6 * bands), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for i, query in enumerate(queries):
        band, column = divmod(i, columns)
        above, below = axes[2 * band][column], axes[2 * band + 1][column]
        _throughput(above, [e for e in entries if e["query"] == query], colours)
        _latency(below, [e for e in entries if e["query"] == query], colours)
        above.set_title(query)
        above.set_visible(True)
        below.set_visible(True)
        if column == 0:
            above.set_ylabel("saturated, thousand tuples/s")
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
        axis.set_yscale("log")
        for tick in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
            tick("{x:g}")
    axis.grid(visible=True, alpha=0.3)
