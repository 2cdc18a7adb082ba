"""The few pieces of HTML that the page is made of. Texts are escaped here and nowhere else; markup is `Markup`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Whatever it is, as it may stand in a page."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def element(tag: str, *content: object, cls: str = "") -> Markup:
    """An element with what is in it."""
    attribute = f' class="{escape(cls)}"' if cls else ""
    return Markup(f"<{tag}{attribute}>{''.join(text(c) for c in content)}</{tag}>")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; a head that begins with ">" is that of a column of numbers."""
    numbers = [h.startswith(">") for h in heads]
    kinds = ["number" if n else "" for n in numbers]
    head = [element("th", h.removeprefix(">"), cls=k) for h, k in zip(heads, kinds, strict=True)]
    body = [element("tr", *(element("td", cell, cls=k) for cell, k in zip(row, kinds, strict=True))) for row in rows]
    return element("div", element("table", element("thead", element("tr", *head)), element("tbody", *body)), cls="wide")


def folded(summary: object, *content: object) -> Markup:
    """What shows when it is asked for."""
    return element("details", element("summary", summary), *content)
