"""Names in messages: which columns there are, and which one was probably meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Columns that a message lists at most.
LISTED_MAX = 20


def nearest(name: str, there: Iterable[str]) -> str | None:
    """The name that was probably meant, whatever its case."""
    by_folded = {each.casefold(): each for each in there}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def missing_column(name: str, there: Sequence[str], has: str = "there are") -> str:
    """Say that a column is missing, which ones there are, and the nearest of them."""
    listed = ", ".join(map(repr, there[:LISTED_MAX])) or "no columns"
    if len(there) > LISTED_MAX:
        listed += f" and {len(there) - LISTED_MAX} more"
    return f"column {name!r} is missing; {has} {listed}{_hint(name, there)}"


def _hint(name: str, there: Sequence[str]) -> str:
    """What was probably meant."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(part in there for part in parts):
        return f"; name each by itself: {', '.join(map(repr, parts))}"
    meant = nearest(name, there)
    return f"; did you mean {meant!r}?" if meant else ""
