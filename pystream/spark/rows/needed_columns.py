"""Which columns a query needs: the fewest that have to be read, or have to cross from Spark to Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pystream._inputs.column_names import missing_column
from pystream._kinds import ORDERED
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pystream.query import Query


def has_udf(query: Query) -> bool:
    """Whether user code gets the rows one by one, so that nothing can be folded beforehand."""
    return any(a.function == "udf" for a in query.aggregates.values())


def order_columns(query: Query, stream: str, position: str | None) -> list[str]:
    """The columns that order rows. Where the order of equal timestamps shows nowhere, the timestamp is enough."""
    sensitive = [f"{n} = {a!r}" for n, a in query.aggregates.items() if a.function in ORDERED]
    native = [f"{n} = {a!r}" for n, a in query.aggregates.items() if a.native]
    if native:
        raise ValueError(f"{native[0]}: its code has an address in this process only, and executors are others")
    if not sensitive:
        return [query.ts]
    if position is None:
        raise ValueError(f"{sensitive[0]} depends on the order of rows with equal timestamps: name a `position` column")
    return [query.ts, stream, position]


def columns_used(names: Sequence[str], query: Query, order: list[str], what: str) -> list[str]:
    """The columns among `names` that the query needs, in their order; `what` has them, for the error."""
    aggregates = query.aggregates.values()
    used = dict.fromkeys([*order, *query.key, *(c for a in aggregates for c in a.columns)])
    absent = [c for c in used if c not in names]
    if absent:
        raise SchemaError(missing_column(absent[0], names, f"{what} has"))
    if has_udf(query):  # user code gets whole rows
        return list(names)
    filters = " ".join(str(a.where) for a in aggregates if a.where is not None)
    return [c for c in names if c in used or c in filters]
