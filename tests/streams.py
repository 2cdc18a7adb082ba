"""Long random streams, and every function over them, for tests that compare ways to the same windows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import pystream as ps

SOME = pc.field("i") > 0
ALL = {
    "some": ps.count(where=SOME),
    "n": ps.count(),
    "sum_i": ps.sum("i"),
    "avg_i": ps.avg("i"),
    "sum_f": ps.sum("f"),
    "avg_f": ps.avg("f", where=SOME),
    "min_i": ps.min("i"),
    "max_f": ps.max("f"),
    "first_i": ps.first("i"),
    "last_f": ps.last("f"),
    "min_s": ps.min("s"),
    "max_s": ps.max("s"),
    "first_s": ps.first("s"),
    "last_s": ps.last("s"),
    "avg_all": ps.avg("f"),
    "min_f": ps.min("f"),
    "arg_min_i": ps.arg_min("i", "f"),
    "arg_max_f": ps.arg_max("f", "k"),  # by the key: all are equal
    "arg_min_s": ps.arg_min("s", "k", where=SOME),
    "arg_max_s": ps.arg_max("s", "f"),
    "var_f": ps.var("f"),
    "std_i": ps.std("i", ddof=0, where=SOME),
    "covar_f_i": ps.covar("f", "i"),
    "slope_i_f": ps.slope("i", "f"),
    "intercept_f_i": ps.intercept("f", "i", where=SOME),
    "corr_f_k": ps.corr("f", "k"),
    "unique_f": ps.n_unique("f"),
    "median_i": ps.median("i", where=SOME),
    "third_f": ps.quantile("f", 1 / 3, "higher"),
    "about_f": ps.approx_quantile("f", 0.9),
    "top_f": ps.top_k("f", 3),
    "bottom_i": ps.bottom_k("i", 2, where=SOME),
    "counts_f": ps.histogram("f", [-1000, 0, 1e3]),
}


def stream(rng: np.random.Generator, rows: int, span: int, keys: int, null_keys: float = 0.0) -> pa.Table:
    """Tuples with nulls, NaN and values whose sums need the wide accumulator."""
    f, rare = rng.normal(0, 1000, rows), rng.random(rows)
    f = np.select([rare < 0.01, rare < 0.02, rare < 0.03, rare < 0.04], [math.nan, math.inf, 1e300, 5e-324], f)
    words = np.array(["", "a", "b\0c", "é", "zz", "a longer string that does not fit into its first place"])
    columns = {
        "ts": np.sort(rng.integers(0, span, rows)),
        "k": pa.array(rng.integers(0, keys, rows), mask=rng.random(rows) < null_keys),
        "i": pa.array(rng.integers(-(2**50), 2**50, rows), mask=rng.random(rows) < 0.2),
        "f": pa.array(f, mask=rng.random(rows) < 0.1),
        "s": pa.array(words[rng.integers(0, len(words), rows)], mask=rng.random(rows) < 0.1),
    }
    return pa.table(columns)
