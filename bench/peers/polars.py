"""Polars. Plain: merge_sorted and group_by_dynamic. Panes: grouped by (pane, key), exploded into windows, grouped.

That the inputs are frames, and the column that orders tuples for first, are made beforehand. group_by_dynamic needs
its rows sorted; merging the sorted inputs pairwise is the fastest way to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from peers.case import Case

PACKAGES = ("polars",)


def over_rows(case: Case) -> pl.Expr:
    if case.function == "count":
        return pl.col("cmt").str.contains(case.pattern).sum() if case.pattern else pl.len()
    return pl.col(case.column).mean() if case.function == "avg" else pl.col(case.column).first()


def merged(frames: list[pl.LazyFrame], key: str) -> pl.LazyFrame:
    """All rows, sorted; which of two rows with equal keys comes first is not said."""
    while len(frames) > 1:
        pairs = [frames[i : i + 2] for i in range(0, len(frames), 2)]
        frames = [p[0].merge_sorted(p[1], key=key) if len(p) == 2 else p[0] for p in pairs]
    return frames[0]


def dynamic(case: Case) -> Callable[[], pa.Table]:
    frames = [pl.from_arrow(t).lazy() for t in case.tables()]
    key = "place" if case.function == "first" else "ts"
    # A key's first window is the one that begins at its first row, unless told that earlier ones hold the row too.
    step = {"every": f"{case.advance}i", "period": f"{case.size}i", "offset": f"{case.advance - case.size}i"}

    def run() -> pa.Table:
        windows = merged(frames, key).set_sorted("ts").group_by_dynamic("ts", **step, group_by=case.key)
        out = windows.agg(over_rows(case).alias(case.function)).filter(pl.col("ts") >= 0)
        return out.select("ts", case.key, case.function).sort("ts", case.key).collect().to_arrow()

    return run


def aggregates(case: Case) -> tuple[list[pl.Expr], pl.Expr]:
    """Over rows of a pane; over panes."""
    if case.function == "count":
        return [over_rows(case).alias("n")], pl.col("n").sum()
    if case.function == "avg":
        return [pl.len().alias("n"), pl.col(case.column).sum().alias("s")], pl.col("s").sum() / pl.col("n").sum()
    return [earliest(case.column).alias("v"), pl.col("place").min()], earliest("v")


def earliest(column: str) -> pl.Expr:
    """Its value where place is lowest; min_by is the fastest, in the versions that have it."""
    if hasattr(pl.Expr, "min_by"):
        return pl.col(column).min_by("place")
    return pl.col(column).sort_by("place").first()


def panes(case: Case) -> Callable[[], pa.Table]:
    t: Any = pl.from_arrow(case.whole())
    partial, final = aggregates(case)

    def run() -> pa.Table:
        pane = t.lazy().group_by(pane=pl.col("ts") // case.advance, key=pl.col(case.key)).agg(partial)
        first = pl.max_horizontal(pl.col("pane") - case.panes + 1, 0)
        part = pane.with_columns(window=pl.int_ranges(first, pl.col("pane") + 1)).explode("window")
        out = part.group_by((pl.col("window") * case.advance).alias("ts"), pl.col("key").alias(case.key))
        return out.agg(final.alias(case.function)).sort("ts", case.key).collect().to_arrow()

    return run


FORMS = {"": dynamic, "panes": panes}
