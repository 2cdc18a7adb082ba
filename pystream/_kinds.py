"""Every window function in one entry: what Python has to know of it. Its code is in csrc/aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _sum_type(column: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(column) else pa.int64()


@dataclass(frozen=True)
class Kind:
    """A window function.

    takes    what its column holds; "fixed": anything of fixed width; "user": whatever the user's code takes
    result   the type of its results: fixed, or by the type of its column; None: that of its column
    partial  the columns of a partial besides the number of rows (csrc/partials/fold_export.c)
    code     its name in csrc/pystream.h without `PS_`; by default its own in capitals
    ordered  it depends on the order of tuples: it needs a design that keeps it, or one that keeps places
    by       what its second column holds, if there is one: values of fixed width, or numbers
    gaps     its results may be null although there are values, whatever the parameter
    asks     what else must be said, by name: see set_functions.py
    lists    it gives lists of such results
    """

    takes: Literal["nothing", "numbers", "booleans", "fixed", "anything", "user"]
    result: pa.DataType | Callable[[pa.DataType], pa.DataType] | None = None
    partial: tuple[str, ...] = ()
    ordered: bool = False
    code: str = ""
    by: Literal["", "order", "numbers"] = ""
    gaps: bool = False
    asks: tuple[str, ...] = ()
    lists: bool = False

    @property
    def fixed_result(self) -> pa.DataType | None:
        """The type of its results, if that does not depend on the column."""
        return self.result if isinstance(self.result, pa.DataType) else None

    def result_type(
        self, column: pa.DataType, stored: pa.DataType, options: Sequence[tuple[str, Any]] = ()
    ) -> pa.DataType:
        """The type of its results over a column of this type, whose values C gets as `stored`."""
        if self.result is None or dict(options).get("interpolation") in PICKS:
            return pa.list_(column) if self.lists else column
        return self.result if isinstance(self.result, pa.DataType) else self.result(stored)


#: Quantiles that are one of the values, so of the column's type.
PICKS = ("lower", "higher", "nearest")

_SET = ("n", "set")
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
    "n_unique": Kind("fixed", pa.int64(), _SET),
    "median": Kind("numbers", pa.float64(), _SET, code="QUANTILE"),
    "quantile": Kind("numbers", pa.float64(), _SET, asks=("q",)),
    "approx_quantile": Kind("numbers", pa.float64(), _SET, asks=("q",)),
    "top_k": Kind("fixed", partial=_SET, asks=("k",), lists=True),
    "bottom_k": Kind("fixed", partial=_SET, asks=("k",), lists=True),
    "histogram": Kind("numbers", pa.list_(pa.int64()), _SET, asks=("edges",)),
    "any": Kind("booleans", partial=("value",), code="MAX"),
    "all": Kind("booleans", partial=("value",), code="MIN"),
    "udf": Kind("user", ordered=True),
    "native_udf": Kind("user", ordered=True, code="NATIVE"),
}

#: Functions that depend on the order of tuples, and those of the user, which nothing can fold or merge.
ORDERED = tuple(name for name, kind in KINDS.items() if kind.ordered)
USER = tuple(name for name, kind in KINDS.items() if kind.takes == "user")

#: Functions of one column, those that ask for more than that, and functions of two columns.
OF_COLUMN = tuple(
    name for name, kind in KINDS.items() if kind.takes not in ("nothing", "user") and not (kind.by or kind.asks)
)
OF_MORE = tuple(name for name, kind in KINDS.items() if kind.asks)
OF_TWO = tuple(name for name, kind in KINDS.items() if kind.by)
