"""The window functions: what an aggregate computes, from which column, over which rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    import pyarrow.compute as pc


class UserWindow(Protocol):
    """The paper's `Window` interface: what `udf` factories return, one object per window and key."""

    def process_tuple(self, row: Mapping[str, Any]) -> None:
        """Take one tuple, a mapping from column names to Python values. Tuples come in (ts, input, position) order."""

    def produce_out_tuple(self) -> Any:
        """Give the window's result."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One column of the output. Made by the functions below, not by hand."""

    function: str
    column: str | None = None
    where: pc.Expression | None = None
    factory: Callable[[], UserWindow] | None = None
    type: pa.DataType | None = None

    def __repr__(self) -> str:
        parts = [self.column] if self.column else []
        parts += [f"where={self.where}"] if self.where is not None else []
        parts += [getattr(self.factory, "__name__", repr(self.factory))] if self.factory else []
        return f"{self.function}({', '.join(parts)})"


def _of_column(function: str, column: str, where: pc.Expression | None) -> Aggregate:
    if not isinstance(column, str):
        raise TypeError(f"{function}() takes the name of a column, not {column!r}")
    return Aggregate(function, column, _expression(function, where))


def _expression(function: str, where: Any) -> pc.Expression | None:
    if where is None:
        return None
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import and rarely needed

    if not isinstance(where, pc.Expression):
        raise TypeError(f"{function}(where=...) takes a pyarrow compute expression, not {where!r}")
    return where


def count(where: pc.Expression | None = None) -> Aggregate:
    """Count the rows, nulls included."""
    return Aggregate("count", None, _expression("count", where))


def sum(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Add up: integers to int64 (an error if it does not fit), floats exactly, rounded once."""
    return _of_column("sum", column, where)


def avg(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Average, as float64: the exact sum divided by the number of values."""
    return _of_column("avg", column, where)


def min(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Smallest value; NaN is above every number, strings go by their UTF-8 bytes."""
    return _of_column("min", column, where)


def max(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Largest value; NaN is above every number, strings go by their UTF-8 bytes."""
    return _of_column("max", column, where)


def first(column: str, where: pc.Expression | None = None) -> Aggregate:
    """First value in (ts, input, position) order that is not null."""
    return _of_column("first", column, where)


def last(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Last value in (ts, input, position) order that is not null."""
    return _of_column("last", column, where)


def udf(factory: Callable[[], UserWindow], type: pa.DataType | None = None) -> Aggregate:
    """Run user code: `factory()` makes an object with `process_tuple(row)` and `produce_out_tuple()` per window, key.

    The objects are used by whichever thread reads the operator's output, one tuple after the other. `type` is the Arrow
    type of the results; without it the first batch of results decides.
    """
    if not callable(factory):
        raise TypeError(f"udf() takes a callable that makes a window object, not {factory!r}")
    return Aggregate("udf", factory=factory, type=type)
