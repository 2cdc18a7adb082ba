"""Deterministic multiway sliding-window aggregation of timestamp-sorted streams.

>>> import pystream as ps
>>> query = ps.Query(ps.Window(size=30, advance=3), key="meter", aggregates={"n": ps.count(), "mean": ps.avg("cons")})
>>> table = ps.aggregate(query, [a, b, c, d])
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystream.batch_run import aggregate
    from pystream.designs import Design
    from pystream.errors import (
        BackpressureError,
        ClosedError,
        DisorderError,
        OverlapError,
        PartialError,
        PystreamError,
        ReentryError,
        SchemaError,
        SnapshotError,
        SumOverflowError,
        UdfError,
    )
    from pystream.functions import avg, count, first, last, max, mean, min, native_udf, sum, udf
    from pystream.operator import Operator
    from pystream.query import Query, Window
    from pystream.stall import Stall, Stats
    from pystream.t_gate import TGate
    from pystream.w_hive import WHive

__version__ = "0.1.0"

# With `pip install .` and Python started in the source tree, this folder hides the installed one, and only that one has
# the compiled extension. Both are searched, this one first.
__path__ = pkgutil.extend_path(__path__, __name__)

__all__ = [
    "BackpressureError",
    "ClosedError",
    "Design",
    "DisorderError",
    "Operator",
    "OverlapError",
    "PartialError",
    "PystreamError",
    "Query",
    "ReentryError",
    "SchemaError",
    "SnapshotError",
    "Stall",
    "Stats",
    "SumOverflowError",
    "TGate",
    "UdfError",
    "WHive",
    "Window",
    "__version__",
    "aggregate",
    "avg",
    "count",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "native_udf",
    "sum",
    "udf",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use.

    So `pystream --help` need not wait for Arrow, and `pystream doctor` can say what is wrong with an installation in
    which Arrow or the compiled extension does not load.
    """
    if name in __all__:
        for module in ("errors", "functions", "query", "designs", "operator", "batch_run", "stall", "t_gate", "w_hive"):
            home = importlib.import_module(f"pystream.{module}")
            if hasattr(home, name):
                return globals().setdefault(name, getattr(home, name))
    raise AttributeError(f"module 'pystream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
