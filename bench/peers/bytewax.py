"""Bytewax, one worker: its items are Python objects, and Python's lock lets one worker run at a time.

Plain: fold_window over sliding windows, an item per row. Panes: an item per batch of rows, which Arrow groups into
panes, and a stateful step that makes windows of them with Arrow: how columns are handled there. That the inputs are
merged, and turned into items, is done beforehand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("bytewax",)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Rows of an item; items that the source hands over at once.
BATCH_ROWS, ITEMS = 65_536, 1_000

#: How far the clock of the machine may run ahead of the rows before one counts as late.
WAIT = timedelta(seconds=10)


def merged(case: Case) -> pa.Table:
    """All rows in the order (ts, input, position)."""
    whole = case.whole()
    return whole.sort_by("place" if case.function == "first" else "ts").select(case.needed).combine_chunks()


# ---- an item per row ----

#: By function: what a window begins with, how it takes a value, what it gives.
FOLDS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "count": (lambda: 0, lambda n, _value: n + 1, lambda n: n),
    "matches": (lambda: 0, lambda n, value: n + value, lambda n: n),
    "avg": (lambda: (0, 0.0), lambda s, value: (s[0] + 1, s[1] + value), lambda s: s[1] / s[0]),
    "first": (lambda: None, lambda s, value: value if s is None else s, lambda s: s),
}


def items(case: Case) -> list[tuple[str, tuple[datetime, Any]]]:
    """(key, (time, value)); keys are texts there."""
    rows = merged(case)
    times = {ts: EPOCH + timedelta(seconds=ts) for ts in pc.unique(rows["ts"]).to_pylist()}
    value = rows[case.column] if case.column else rows["cmt"] if case.pattern else rows["ts"]
    columns = (rows[case.key].cast(pa.string()), rows["ts"], value)
    return [(k, (times[ts], v)) for k, ts, v in zip(*(c.to_pylist() for c in columns), strict=True)]


def sliding(case: Case) -> Callable[[], pa.Table]:
    source = items(case)
    begin, fold, give = FOLDS["matches" if case.pattern else case.function]
    windower = win.SlidingWindower(timedelta(seconds=case.size), timedelta(seconds=case.advance), EPOCH)
    clock = win.EventClock(lambda item: item[0], WAIT)

    def take(state: Any, item: Any) -> Any:
        return fold(state, item[1])

    def run() -> pa.Table:
        found: list[Any] = []
        flow = Dataflow("sliding")
        rows = op.input("rows", flow, TestingSource(source, ITEMS))
        if case.pattern:
            has = pattern_of(case)
            rows = op.map_value("match", rows, lambda item: (item[0], has(item[1])))
        out = win.fold_window("fold", rows, clock, windower, begin, take, lambda a, _b: a, ordered=False)
        op.output("out", out.down, TestingSink(found))
        run_main(flow)
        kept = [(w * case.advance, int(key), give(state)) for key, (w, state) in found if w >= 0]
        kept.sort(key=lambda row: row[:2])
        return case.result(*map(list, zip(*kept, strict=True)))

    return run


def pattern_of(case: Case) -> Callable[[str], bool]:
    search = re.compile(case.pattern or "", re.ASCII).search
    return lambda text: search(text) is not None


# ---- an item per batch ----


def partials(case: Case, rows: pa.Table) -> pa.Table:
    """Rows grouped into panes: the columns pane, key and what the function keeps."""
    pane = pc.divide(rows["ts"], case.advance)
    n: Any = pa.array(np.ones(len(rows), np.int64))
    if case.pattern:
        n = pc.match_substring_regex(rows["cmt"], case.pattern).cast(pa.int64())
    columns = {"pane": pane, "key": rows[case.key], "n": n}
    if case.column:
        columns["v"] = rows[case.column]
    return grouped(case, pa.table(columns), "pane")


def grouped(case: Case, table: pa.Table, time: str) -> pa.Table:
    """Grouped by time and key, in order of appearance where that matters."""
    how = {"count": [("n", "sum")], "avg": [("n", "sum"), ("v", "sum")], "first": [("v", "first")]}[case.function]
    out = table.group_by([time, "key"], use_threads=False).aggregate(how)
    return out.rename_columns([name.split("_")[0] for name in out.column_names])


class Windows:
    """The panes that later windows still need."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.panes: pa.Table | None = None
        self.next = 0  # the first window that has not left

    def take(self, partial: pa.Table | None) -> list[pa.Table]:
        """Take the panes of one more batch, give the windows that are complete; None: there is no more."""
        case = self.case
        if partial is not None:
            both = partial if self.panes is None else pa.concat_tables([self.panes, partial])
            self.panes = grouped(case, both, "pane")
        assert self.panes is not None
        last = pc.max(self.panes["pane"]).as_py()  # which the next batch may go on with
        end = last - case.panes + 1 if partial is not None else last + 1
        shifted = [
            self.panes.set_column(0, "window", pc.subtract(self.panes["pane"], back)) for back in range(case.panes)
        ]
        table = pa.concat_tables(shifted)
        window = table["window"]
        table = table.filter(pc.and_(pc.greater_equal(window, self.next), pc.less(window, end)))
        self.next = max(self.next, end)
        self.panes = self.panes.filter(pc.greater_equal(self.panes["pane"], self.next))
        return [finished(case, grouped(case, table, "window"))]


def finished(case: Case, windows: pa.Table) -> pa.Table:
    value = {"count": "n", "first": "v"}.get(case.function)
    column = windows[value] if value else pc.divide(windows["v"], windows["n"])
    out = case.result(pc.multiply(windows["window"], case.advance), windows["key"], column)
    return out.sort_by([("ts", "ascending"), (case.key, "ascending")])


def batches(case: Case) -> Callable[[], pa.Table]:
    rows = merged(case)
    source = [rows.slice(i, BATCH_ROWS) for i in range(0, rows.num_rows, BATCH_ROWS)]

    def step(state: Windows | None, partial: pa.Table | None) -> tuple[Windows, list[pa.Table]]:
        state = state or Windows(case)
        return state, state.take(partial)

    def run() -> pa.Table:
        found: list[Any] = []
        flow = Dataflow("panes")
        stream = op.input("batches", flow, TestingSource([*source, None], 1))
        folded = op.map("panes", stream, lambda batch: None if batch is None else partials(case, batch))
        keyed = op.key_on("all", folded, lambda _batch: "all")
        op.output("out", op.stateful_flat_map("windows", keyed, step), TestingSink(found))
        run_main(flow)
        return pa.concat_tables([table for _key, table in found])

    return run


FORMS = {"": sliding, "panes": batches}
