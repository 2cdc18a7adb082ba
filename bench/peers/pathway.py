"""Pathway, in its static mode: the whole table at once, which is its fastest.

Plain: windowby(sliding). Panes: rows are grouped by (pane, key) first, and windowby goes over the panes. That the
inputs are one frame, and the column that orders tuples for first, are made beforehand. Regular expressions are Python's
there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pathway as pw
import pyarrow as pa
from pathway.internals.parse_graph import G

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("pathway", "pandas", "numpy")


def aggregates(case: Case) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Over rows; over panes, which have the same columns; and what becomes of those in the end."""
    row, add = pw.this, pw.reducers.sum
    if case.pattern:
        search = re.compile(case.pattern, re.ASCII).search
        match = pw.apply_with_type(lambda text: int(search(text) is not None), int, row.cmt)
        return {"n": add(match)}, {"n": add(row.n)}, row.n
    if case.function == "count":
        return {"n": pw.reducers.count()}, {"n": add(row.n)}, row.n
    if case.function == "avg":
        rows = {"n": pw.reducers.count(), "s": add(row[case.column])}
        return rows, {"n": add(row.n), "s": add(row.s)}, row.s / row.n
    rows = {"v": pw.reducers.min(pw.make_tuple(row.place, row[case.column]))}
    return rows, {"v": pw.reducers.min(row.v)}, row.v[1]


def windows(case: Case, table: Any, by: dict[str, Any], final: Any) -> pa.Table:
    """Windows over what has a `ts`, in order."""
    sliding = pw.temporal.sliding(hop=case.advance, duration=case.size, origin=0)
    grouped = table.windowby(pw.this.ts, window=sliding, instance=pw.this[case.key])
    out = grouped.reduce(ts=pw.this._pw_window_start, key=pw.this._pw_instance, **by)  # noqa: SLF001 - their names
    frame = pw.debug.table_to_pandas(out.select(pw.this.ts, pw.this.key, value=final), include_id=False)
    G.clear()
    frame = frame.sort_values(["ts", "key"])
    return case.result(*(pa.array(frame[name]) for name in ("ts", "key", "value")))


def form(*, by_panes: bool) -> Callable[[Case], Callable[[], pa.Table]]:
    def prepare(case: Case) -> Callable[[], pa.Table]:
        frame = case.whole().to_pandas()

        def run() -> pa.Table:
            over_rows, over_panes, final = aggregates(case)
            rows = pw.debug.table_from_pandas(frame)
            if not by_panes:
                return windows(case, rows, over_rows, final)
            start = rows.with_columns(ts=pw.this.ts // case.advance * case.advance)
            panes = start.groupby(pw.this.ts, pw.this[case.key]).reduce(pw.this.ts, pw.this[case.key], **over_rows)
            return windows(case, panes, over_panes, final)

        return run

    return prepare


FORMS = {"": form(by_panes=False), "panes": form(by_panes=True)}
