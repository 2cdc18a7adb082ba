"""Bars as SVG, drawn by hand: the page must not need anything, nor must making it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

#: Pixels.
LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH, ROW_HEIGHT, BAR_HEIGHT = 76, 280, 124, 24, 14


@dataclass(frozen=True)
class Bar:
    """A value with its range, and whether it is one of those to look at."""

    label: str
    value: float
    low: float
    high: float
    text: str
    strong: bool = False


def bars(rows: list[Bar], title: str) -> str:
    """A chart with one bar per row and its range as a line, as a complete SVG document that also stands in a page."""
    most = max((row.high for row in rows), default=0) or 1.0
    width, height = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH, ROW_HEIGHT * len(rows) + 8
    drawn = "".join(_row(i, row, BAR_WIDTH / most) for i, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="13"><title>{escape(title)}</title>{drawn}</svg>'
    )


def _row(number: int, row: Bar, scale: float) -> str:
    middle = ROW_HEIGHT * number + ROW_HEIGHT / 2 + 4
    low, end, high = (LABEL_WIDTH + scale * v for v in (row.low, row.value, row.high))
    fill = "#0b7285" if row.strong else "#9aa5b1"
    weight = ' font-weight="600"' if row.strong else ""
    return (
        f'<text x="{LABEL_WIDTH - 10}" y="{middle + 4}" text-anchor="end" fill="currentColor"{weight}>'
        f"{escape(row.label)}</text>"
        f'<rect x="{LABEL_WIDTH}" y="{middle - BAR_HEIGHT / 2}" width="{max(1.0, end - LABEL_WIDTH):.1f}" '
        f'height="{BAR_HEIGHT}" rx="2" fill="{fill}"/>'
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="currentColor" stroke-width="1.5" opacity="0.55"/>'
        f'<text x="{max(end, high) + 8:.1f}" y="{middle + 4}" fill="currentColor"{weight}>{escape(row.text)}</text>'
    )
