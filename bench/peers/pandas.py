"""pandas, panes by hand: grouped by (pane, key), every pane repeated for its windows, grouped again.

That the inputs are one frame, and the column that orders tuples for first, are made beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("pandas", "numpy")


def fold(case: Case, frame: Any, by: list[str], *, again: bool) -> Any:
    """Group rows into panes, or panes (`again`) into windows."""
    groups = frame.groupby(by, sort=again, as_index=False)
    if case.function == "count":
        return groups["n"].sum() if again or case.pattern else groups.size().rename(columns={"size": "n"})
    if case.function == "avg":
        return groups[["n", "s"]].sum() if again else groups.agg(n=(case.column, "size"), s=(case.column, "sum"))
    return frame.loc[groups["place"].idxmin()["place"]]


def panes(case: Case) -> Callable[[], pa.Table]:
    t = case.whole().to_pandas()

    def run() -> pa.Table:
        rows = t.assign(pane=t["ts"] // case.advance)
        if case.pattern:
            rows["n"] = t["cmt"].str.contains(case.pattern, regex=True)
        pane = fold(case, rows, ["pane", case.key], again=False)
        times = np.minimum(pane["pane"] + 1, case.panes).to_numpy()
        part = pane.loc[pane.index.repeat(times)].reset_index(drop=True)
        back = np.arange(len(part)) - np.repeat(np.cumsum(times) - times, times)
        part["ts"] = (part["pane"] - back) * case.advance
        out = fold(case, part, ["ts", case.key], again=True)
        value = {"count": lambda: out["n"], "avg": lambda: out["s"] / out["n"], "first": lambda: out[case.column]}
        return case.result(out["ts"], out[case.key], pa.array(value[case.function]()))

    return run


FORMS = {"panes": panes}
