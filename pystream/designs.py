"""The designs by name, and which of them can run a query. All give the same bytes.

- sliced: ours: each input hands over slices between window edges, folded where that helps
- runs: ours: sorted runs are handed over whole and merged, for functions that need every tuple in order
- mq, mq-lf: the paper's baselines: a queue per input, with locks and without; one thread merges and updates
- tuml-sc, tuml-mc: the paper's: inputs merge in a T-Gate; one thread updates, or several share the keys in a W-Hive
- wiml: the paper's: inputs update the windows of a W-Hive themselves; not for functions that need
  an order, such as `first`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pystream import _native
from pystream._kinds import ORDERED, USER

if TYPE_CHECKING:
    from pystream.functions import Aggregate
    from pystream.query import Query

#: How an operator works. The result does not depend on it.
Design = Literal["auto", "mq", "mq-lf", "tuml-sc", "tuml-mc", "wiml", "sliced", "runs"]

DESIGNS = cast("tuple[Design, ...]", tuple(_native.DESIGNS))

#: Designs that do not hand tuples to the windows in their order, and the functions for which that will not do.
#: (In "sliced", `first`, `last`, `arg_min` and `arg_max` remember when their tuple came; a native function that can
#: combine runs in "wiml".)
CANNOT = {"wiml": ORDERED, "sliced": USER}
UNORDERED_DESIGNS = tuple(CANNOT)

#: What "auto" stands for, fastest first (bench/bench_peers.py): the first that can run all functions.
AUTO: tuple[Design, ...] = ("sliced", "runs")


def design_for(design: str, query: Query) -> Design:
    """The design by its name, if it can run the query's functions; for "auto" the fastest that can."""
    if design == "auto":
        return next(d for d in AUTO if not _unfit(d, query))
    if design not in DESIGNS:
        raise ValueError(f"unknown design {design!r}; there are 'auto', {', '.join(map(repr, DESIGNS))}")
    for name in _unfit(design, query):
        can = ", ".join(map(repr, designs_for(query)))
        what = f"{name} = {query.aggregates[name]!r}"
        raise ValueError(f"{what} depends on the order of tuples, which {design!r} does not keep; {can} do")
    return design


def designs_for(query: Query) -> list[Design]:
    """The designs that can run the query's functions."""
    return [d for d in DESIGNS if not _unfit(d, query)]


def _unfit(design: str, query: Query) -> list[str]:
    """The aggregates that the design cannot run."""
    return [name for name, a in query.aggregates.items() if a.function in CANNOT.get(design, ()) and _needs(design, a)]


def _needs(design: str, aggregate: Aggregate) -> bool:
    """Whether the function of the user, or any other, needs what the design does not have."""
    return not (design == "wiml" and aggregate.native and aggregate.native.combine)
