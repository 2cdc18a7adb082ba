"""Flink, a local cluster in one JVM on all cores, asked in SQL: no row is touched by Python between the tables.

Plain: HOP in streaming mode, where Flink shares slices between windows; rows come merged, in the order of time, from
one source, and carry the watermark. Panes: by hand, in batch mode. The frame is handed over and taken back through
Flink's from_pandas and to_pandas, which use Arrow and are timed. That the inputs are one frame (merged, for the plain
form), and the column that orders tuples for first, are made beforehand; so is the cluster's JVM. FIRST_VALUE cannot be
used in HOP, and there is no min_by: windows and panes keep the lowest place, whose value is looked up in the end, with
NumPy or by a join.

Flink's windows may start before 0; those are dropped.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import EnvironmentSettings, Schema, StreamTableEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("apache-flink", "pandas", "numpy")

EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"
HOP = """
select TIMESTAMPDIFF(SECOND, {epoch}, window_start) as ts, {key}, {whole} as v
from HOP(TABLE t, DESCRIPTOR(`at`), INTERVAL '{advance}' SECOND, INTERVAL '{size}' SECOND)
group by window_start, window_end, {key}
"""
PANES = """
with pane as (select ts / {advance} as pane, {key}, {partial} from t group by ts / {advance}, {key}),
     part as (select (pane - back) * {advance} as ts, pane.* from pane cross join
              (values {backs}) as b(back) where pane >= back)
select ts, {key}, {final} from part group by ts, {key}
"""
FIRST = "select w.ts, w.{key}, t.{column} as v from ({panes}) w join t on t.place = w.place"

#: Over rows; over rows of a pane; over panes.
AGGREGATES = {
    "count": ("count(*)", "count(*) as n", "sum(n) as v"),
    "avg": ("avg({column})", "count(*) as n, sum({column}) as s", "sum(s) / sum(n) as v"),
    "first": ("min(place)", "min(place) as place", "min(place) as place"),
}


@cache
def environment(mode: str) -> StreamTableEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(os.cpu_count() or 1)
    settings = EnvironmentSettings.new_instance()
    settings = settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()
    t_env = StreamTableEnvironment.create(env, settings.build())
    t_env.get_config().set("table.local-time-zone", "UTC")
    return t_env


def words(case: Case) -> dict[str, Any]:
    """What the texts above leave open."""
    whole, partial, final = (text.format(column=case.column) for text in AGGREGATES[case.function])
    if case.pattern:
        match = f"filter (where regexp(cmt, '{case.pattern}'))"
        whole, partial = f"{whole} {match}", f"count(*) {match} as n"
    backs = ", ".join(f"({n})" for n in range(case.panes))
    return vars(case) | {"epoch": EPOCH, "whole": whole, "partial": partial, "final": final, "backs": backs}


def finished(case: Case, frame: Any) -> pa.Table:
    frame = frame[frame["ts"] >= 0].sort_values(["ts", case.key])
    return case.result(*(pa.array(frame[name]) for name in ("ts", case.key, "v")))


def hop(case: Case) -> Callable[[], pa.Table]:
    order = "place" if case.function == "first" else "ts"
    table = case.whole().sort_by(order)
    frame = table.to_pandas()
    place, value = (table[n].to_numpy() for n in ("place", case.column)) if case.function == "first" else (None, None)
    t_env, sql = environment("streaming"), HOP.format(**words(case))
    timed = Schema.new_builder().column_by_expression("at", "TO_TIMESTAMP_LTZ(ts, 0)").watermark("at", "`at`").build()

    def run() -> pa.Table:
        rows = t_env.to_data_stream(t_env.from_pandas(frame, splits_num=1))
        t_env.create_temporary_view("t", t_env.from_data_stream(rows, timed))
        try:
            out = t_env.sql_query(sql).to_pandas()
        finally:
            t_env.drop_temporary_view("t")
        if place is not None:
            out["v"] = value[np.searchsorted(place, out["v"])]
        return finished(case, out)

    return run


def panes(case: Case) -> Callable[[], pa.Table]:
    frame = case.whole().to_pandas()
    t_env, given = environment("batch"), words(case)
    sql = PANES.format(**given)
    sql = FIRST.format(**given, panes=sql) if case.function == "first" else sql

    def run() -> pa.Table:
        t_env.create_temporary_view("t", t_env.from_pandas(frame))
        try:
            return finished(case, t_env.sql_query(sql).to_pandas())
        finally:
            t_env.drop_temporary_view("t")

    return run


FORMS = {"": hop, "panes": panes}
