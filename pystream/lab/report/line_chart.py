"""Lines over a scale as SVG, drawn by hand: colours are the page's, so that they follow its light or dark ground."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

#: Pixels; the drawing scales with its column.
WIDTH, HEIGHT = 320, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 26, 38

#: Values of x that are written below the chart, at most.
TICKS = 5

#: How each line looks: colour of the page (with one for a drawing that stands alone), dashes, shape of the marks.
LOOKS = {
    "mq": ("--line-1", "#6b7785", "", "square"),
    "mq-lf": ("--line-2", "#d9480f", "5 3", "triangle"),
    "tuml-sc": ("--line-3", "#1864ab", "", "circle"),
    "tuml-mc": ("--line-4", "#862e9c", "2 3", "diamond"),
    "wiml": ("--line-5", "#2b8a3e", "", "cross"),
    "sliced": ("--line-6", "#0b7285", "", "circle"),
    "runs": ("--line-7", "#c2255c", "5 3", "square"),
}
LOOKS |= {"t_gate": LOOKS["tuml-sc"], "skip_list": LOOKS["mq-lf"]}
OTHERS = tuple(LOOKS[name] for name in ("tuml-sc", "mq-lf", "wiml", "tuml-mc", "runs", "mq"))


@dataclass(frozen=True)
class Line:
    """A name, and points in the order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Scale:
    """Where values go between two pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (here - low) / ((high - low) or 1.0)


def look(name: str, number: int = 0) -> tuple[str, str, str, str]:
    """How the line of this name is drawn; by its number, if the name says nothing."""
    return LOOKS.get(name, OTHERS[number % len(OTHERS)])


def chart(
    lines: list[Line], title: str, names: tuple[str, ...], *, x_label: str, y_label: str, log: bool = False
) -> str:
    """A chart of all lines, as a complete SVG document that also stands in a page; empty if there is no point.

    `names` are those of all charts that share the legend: a line looks the same in all of them.
    """
    points = [p for line in lines for p in line.points if p[1] > 0 or not log]
    if not points:
        return ""
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    x = Scale(xs[0], xs[-1], LEFT + 8, WIDTH - RIGHT - 8)
    low, high = _decades(ys) if log else (0.0, _top(max(ys)))
    y = Scale(low, high, HEIGHT - BOTTOM, TOP, log)
    y_ticks = _powers(low, high) if log else [high * i / 4 for i in range(5)]
    body = [_grid(y, tick) for tick in y_ticks] + [_x_tick(x, tick) for tick in _few(xs)]
    body += [_line(x, y, line, names.index(line.name), log=log) for line in lines]
    labels = _text(WIDTH / 2, HEIGHT - 4, x_label, "middle", "soft") + _text(2, 12, y_label, "start", "soft")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="figure" '
        'font-family="system-ui, sans-serif" font-size="12">'
        f"<title>{escape(title)}</title>{''.join(body)}{labels}</svg>"
    )


def swatch(name: str, number: int = 0) -> str:
    """A short piece of the line, for a legend."""
    colour, dashes, mark = _style(name, number)
    drawn = f'<path d="M1 7H29" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>' + _mark(mark, 15, 7, colour)
    return f'<svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true">{drawn}</svg>'


def _style(name: str, number: int) -> tuple[str, str, str]:
    variable, alone, dashes, mark = look(name, number)
    return f"var({variable}, {alone})", f' stroke-dasharray="{dashes}"' if dashes else "", mark


def _line(x: Scale, y: Scale, line: Line, number: int, *, log: bool) -> str:
    colour, dashes, mark = _style(line.name, number)
    places = [(x.at(a), y.at(b)) for a, b in line.points if b > 0 or not log]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
    drawn = f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>' if len(places) > 1 else ""
    return f"<g><title>{escape(line.name)}</title>{drawn}{''.join(_mark(mark, a, b, colour) for a, b in places)}</g>"


def _mark(shape: str, x: float, y: float, colour: str) -> str:
    fill = f'fill="{colour}"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {fill}/>'
    if shape == "square":
        return f'<rect x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4" {fill}/>'
    if shape == "cross":
        return f'<path d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6" stroke="{colour}" stroke-width="1.8"/>'
    corners = "m0 -3.6l3.6 6.4h-7.2z" if shape == "triangle" else "m0 -3.8l3.8 3.8l-3.8 3.8l-3.8 -3.8z"
    return f'<path d="M{x:.1f} {y:.1f}{corners}" {fill}/>'


def _grid(y: Scale, tick: float) -> str:
    at = y.at(tick)
    rule = f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity="0.15"/>'
    return rule + _text(LEFT - 5, at + 4, short(tick), "end", "soft")


def _x_tick(x: Scale, tick: float) -> str:
    return _text(x.at(tick), HEIGHT - BOTTOM + 15, short(tick), "middle", "soft")


def _text(x: float, y: float, text: str, anchor: str, cls: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} class="{cls}" fill="currentColor">{escape(text)}</text>'


def short(value: float) -> str:
    """A number in few characters: 1.5M, 20k, 0.25."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def _top(most: float) -> float:
    """The end of a scale: 1, 2, 4, 5 or 8 times a power of ten."""
    power = 10 ** math.floor(math.log10(most)) if most > 0 else 1.0
    return float(next(step * power for step in (1, 2, 4, 5, 8, 10) if step * power >= most))


def _decades(values: list[float]) -> tuple[float, float]:
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    return float(low), float(high if high > low else 10 * low)


def _powers(low: float, high: float) -> list[float]:
    return [10.0**n for n in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def _few(values: list[float]) -> list[float]:
    """The values if they are few, else places between the first and the last."""
    if len(values) <= TICKS:
        return values
    return [values[0] + (values[-1] - values[0]) * i / (TICKS - 2) for i in range(TICKS - 1)]
