"""Every window function in one entry: what Python has to know of it. Its code is in csrc/aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable


def _sum_type(column: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(column) else pa.int64()


@dataclass(frozen=True)
class Kind:
    """A window function.

    takes    what its column holds; "user": whatever the user's code takes
    result   the type of its results: fixed, or by the type of its column; None: that of its column
    partial  the columns of a partial besides the number of rows (csrc/partials/fold_export.c)
    code     its name in csrc/pystream.h without `PS_`; by default its own in capitals
    ordered  it depends on the order of tuples: it needs a design that keeps it, or one that keeps places
    by       what its second column holds, if there is one: values of fixed width, or numbers
    gaps     its results may be null although there are values, whatever the parameter
    """

    takes: Literal["nothing", "numbers", "booleans", "anything", "user"]
    result: pa.DataType | Callable[[pa.DataType], pa.DataType] | None = None
    partial: tuple[str, ...] = ()
    ordered: bool = False
    code: str = ""
    by: Literal["", "order", "numbers"] = ""
    gaps: bool = False

    @property
    def fixed_result(self) -> pa.DataType | None:
        """The type of its results, if that does not depend on the column."""
        return self.result if isinstance(self.result, pa.DataType) else None

    def result_type(self, column: pa.DataType, stored: pa.DataType) -> pa.DataType:
        """The type of its results over a column of this type, whose values C gets as `stored`."""
        if self.result is None:
            return column
        return self.result if isinstance(self.result, pa.DataType) else self.result(stored)


_PLACED = ("value", "ts", "stream", "position")
_MOMENTS = ("n", "moments")
_RANKED = ("value", "by", "ts", "stream", "position")

#: By name.
KINDS = {
    "count": Kind("nothing", pa.int64(), ("n",)),
    "sum": Kind("numbers", _sum_type, ("n", "sum")),
    "avg": Kind("numbers", pa.float64(), ("n", "sum")),
    "var": Kind("numbers", pa.float64(), _MOMENTS),
    "std": Kind("numbers", pa.float64(), _MOMENTS),
    "min": Kind("anything", partial=("value",)),
    "max": Kind("anything", partial=("value",)),
    "first": Kind("anything", partial=_PLACED, ordered=True),
    "last": Kind("anything", partial=_PLACED, ordered=True),
    "arg_min": Kind("anything", partial=_RANKED, ordered=True, by="order"),
    "arg_max": Kind("anything", partial=_RANKED, ordered=True, by="order"),
    "covar": Kind("numbers", pa.float64(), _MOMENTS, by="numbers"),
    "slope": Kind("numbers", pa.float64(), _MOMENTS, by="numbers", gaps=True),
    "intercept": Kind("numbers", pa.float64(), _MOMENTS, by="numbers", gaps=True),
    "corr": Kind("numbers", pa.float64(), _MOMENTS, by="numbers", gaps=True),
    "any": Kind("booleans", partial=("value",), code="MAX"),
    "all": Kind("booleans", partial=("value",), code="MIN"),
    "udf": Kind("user", ordered=True),
    "native_udf": Kind("user", ordered=True, code="NATIVE"),
}

#: Functions that depend on the order of tuples, and those of the user, which nothing can fold or merge.
ORDERED = tuple(name for name, kind in KINDS.items() if kind.ordered)
USER = tuple(name for name, kind in KINDS.items() if kind.takes == "user")

#: Functions of one column, and of two.
OF_COLUMN = tuple(name for name, kind in KINDS.items() if kind.takes not in ("nothing", "user") and not kind.by)
OF_TWO = tuple(name for name, kind in KINDS.items() if kind.by)
