"""DuckDB. Plain: every row is joined with its windows. Panes: rows are grouped into panes first, in SQL by hand.

That the inputs are one table, and the column that orders tuples for first, are made beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from peers.case import Case

PACKAGES = ("duckdb",)

PLAIN = """
select (ts // {advance} - back) * {advance} as ts, {key}, {whole} as {function}
from t, range({panes}) as back(back) where ts // {advance} >= back
group by all order by 1, 2
"""
PANES = """
with pane as (select ts // {advance} as pane, {key}, {partial} from t group by all),
     part as (select (pane - back) * {advance} as ts, {key}, pane.* exclude (pane, {key})
              from pane, range({panes}) as back(back) where pane >= back)
select ts, {key}, {final} as {function} from part group by all order by 1, 2
"""
#: Over rows; over rows of a pane; over panes.
AGGREGATES = {
    "count": ("count(*)", "count(*) as n", "sum(n)::bigint"),
    "avg": ("avg({column})", "count(*) as n, sum({column}) as s", "sum(s) / sum(n)"),
    "first": ("arg_min({column}, place)", "arg_min({column}, place) as v, min(place) as place", "arg_min(v, place)"),
}
FILTERED = " filter (regexp_matches(cmt, '{pattern}'))"


def form(sql: str) -> Callable[[Case], Callable[[], pa.Table]]:
    def prepare(case: Case) -> Callable[[], pa.Table]:
        whole, partial, final = AGGREGATES[case.function]
        if case.pattern:
            whole, partial = whole + FILTERED, partial.replace("count(*)", "count(*)" + FILTERED)
        words = vars(case) | {"panes": case.panes, "final": final}
        words |= {name: text.format(**words) for name, text in (("whole", whole), ("partial", partial))}
        text, t = sql.format(**words), case.whole()

        def run() -> pa.Table:
            with duckdb.connect() as db:
                db.register("t", t)
                return db.sql(text).to_arrow_table()

        return run

    return prepare


FORMS = {"": form(PLAIN), "panes": form(PANES)}
