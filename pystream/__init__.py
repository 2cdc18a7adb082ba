"""Sliding-window aggregates of several timestamp-sorted streams at once: fast, and the same result every time.

Say what you want: a window, a key, the aggregates.

>>> import pystream as ps
>>> query = ps.Query(
...     window=ps.Window(size=10, advance=5),
...     key="meter",
...     aggregates={"n": ps.count(), "mean": ps.mean("cons")},
... )

Run it over whole inputs, each sorted by `ts`: Arrow, Polars, pandas, DuckDB, dicts of NumPy arrays.

>>> a = {"ts": [1, 7], "meter": ["x", "x"], "cons": [1.0, 2.0]}
>>> b = {"ts": [2, 8], "meter": ["y", "x"], "cons": [3.0, 6.0]}
>>> for row in ps.aggregate(query, [a, b]).to_pylist():
...     print(row)
{'ts': 0, 'meter': 'x', 'n': 3, 'mean': 3.0}
{'ts': 0, 'meter': 'y', 'n': 1, 'mean': 3.0}
{'ts': 5, 'meter': 'x', 'n': 2, 'mean': 4.0}

Or feed it while it runs, and read windows as soon as they are complete.

>>> with ps.Operator(query, inputs=2, schema=[("ts", "int64"), ("meter", "string"), ("cons", "double")]) as op:
...     op.add(0, a)
...     op.add(1, {"ts": [12], "meter": ["y"], "cons": [4.0]})
...     op.heartbeat(0, ts=12)  # input 0 sends nothing before 12: the window [0, 10) is complete
...     rows = op.read()
>>> rows.to_pylist()
[{'ts': 0, 'meter': 'x', 'n': 2, 'mean': 1.5}]

Where to go on:

    Query, Window         what is asked
    count sum avg mean var std covar corr slope intercept min max arg_min arg_max first last any all
    n_unique median quantile approx_quantile top_k bottom_k histogram
                          the functions; all take `where=`, a pyarrow compute expression
    udf, native_udf       functions of your own, in Python or compiled
    aggregate             whole inputs in, a table out
    Operator              add, heartbeat, close; read, poll, `for batch in op`, `async for`; snapshot, restore
    Stats, Stall          what an operator tells of itself: Operator.stats(), Operator.explain_stall()
    Design                names of the ways to do it; the result does not depend on it
    TGate, WHive          the two data structures behind it, on their own
    PystreamError         the root of all errors; those below it say what is wrong, and where

`pystream.spark` does the same on Spark, `pystream.queries` has the queries of the paper, and the command `pystream`
(or `python -m pystream`) has a demo, a check of the installation and more. `help(ps.Operator)` has the details.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystream._engine.stall import Stall, Stats
    from pystream.aggregation import aggregate
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
    from pystream.functions import (
        all,
        any,
        arg_max,
        arg_min,
        avg,
        corr,
        count,
        covar,
        first,
        intercept,
        last,
        max,
        mean,
        min,
        native_udf,
        slope,
        std,
        sum,
        udf,
        var,
    )
    from pystream.operator import Operator
    from pystream.query import Query, Window
    from pystream.set_functions import (
        approx_quantile,
        bottom_k,
        histogram,
        median,
        n_unique,
        quantile,
        top_k,
    )
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
    "all",
    "any",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "avg",
    "bottom_k",
    "corr",
    "count",
    "covar",
    "first",
    "histogram",
    "intercept",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "n_unique",
    "native_udf",
    "quantile",
    "slope",
    "std",
    "sum",
    "top_k",
    "udf",
    "var",
]

#: Where the public names are, those that load fastest first.
_HOMES = (
    *("errors", "functions", "set_functions", "query", "designs"),
    *("operator", "aggregation", "_engine.stall", "t_gate", "w_hive"),
)


def __getattr__(name: str) -> Any:
    """Load a public name on first use.

    So `pystream --help` need not wait for Arrow, and `pystream doctor` can say what is wrong with an installation in
    which Arrow or the compiled extension does not load.
    """
    if name in __all__:
        for module in _HOMES:
            home = importlib.import_module(f"pystream.{module}")
            if hasattr(home, name):
                return globals().setdefault(name, getattr(home, name))
    raise AttributeError(f"module 'pystream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
