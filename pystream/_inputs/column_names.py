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
    meant = nearest(name, there)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return f"column {name!r} is missing; {has} {listed}{hint}"
