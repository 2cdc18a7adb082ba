"""NumPy, panes by hand.

Where most keys occur in most panes (EC), an array of panes by keys is filled with bincount and summed over windows;
where few do (SC), codes of (pane, key) are sorted and counted. For first, the first row of each (pane, key) is looked
up in each input, and the earliest of those taken. That the inputs are in one array is made beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from peers.case import Case

PACKAGES = ("numpy",)

#: Cells per row up to which the array is worth its memory.
DENSE = 4

#: A place behind all others.
NEVER = np.iinfo(np.int64).max


def over_windows(panes: Any, count: int) -> Any:
    """Sums over `count` panes that end with each pane, and with each of the count - 1 after the last."""
    total = np.zeros((len(panes) + count, panes.shape[1]), panes.dtype)
    np.cumsum(panes, axis=0, out=total[1 : len(panes) + 1])
    total[len(panes) + 1 :] = total[len(panes)]
    return total[count:] - total[: len(panes)]  # of windows that start at pane 0, 1, ...


def first_of_windows(case: Case, columns: dict[str, Any], code: Any, shape: tuple[int, int]) -> Any:
    """The value of the first row in each window and key."""
    missing = len(code)
    place, value = (np.append(columns[name], last) for name, last in (("place", NEVER), (case.column, np.nan)))
    best = np.full(shape[0] * shape[1], missing)
    end = 0
    for t in case.inputs:
        begin, end = end, end + t.num_rows
        first = np.full(len(best), missing)
        first[code[begin:end][::-1]] = np.arange(begin, end)[::-1]  # of equal codes the last assignment stays
        best = np.where(place[first] < place[best], first, best)
    panes = best.reshape(shape)
    windows = panes.copy()
    for later in range(1, case.panes):  # an earlier pane's row comes first, if there is one
        windows[:-later] = np.where(windows[:-later] == missing, panes[later:], windows[:-later])
    return value[windows]


def dense(case: Case, columns: dict[str, Any], keys: int) -> pa.Table:
    pane = columns["ts"] // case.advance
    shape = (int(pane.max()) + 1, keys)
    code = pane * keys + columns[case.key]
    size = shape[0] * shape[1]
    counts = over_windows(np.bincount(code, minlength=size).reshape(shape), case.panes)
    window, key = np.nonzero(counts)
    if case.function == "count":
        value = counts[window, key]
    elif case.function == "avg":
        sums = over_windows(np.bincount(code, columns[case.column], size).reshape(shape), case.panes)
        value = sums[window, key] / counts[window, key]
    else:
        value = first_of_windows(case, columns, code, shape)[window, key]
    return case.result(window * case.advance, key.astype(columns[case.key].dtype), value)


def counted(code: Any, weight: Any) -> tuple[Any, Any]:
    """The codes that occur, sorted, and the sum of their weights."""
    order = np.argsort(code)
    code = code[order]
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    return code[starts], np.add.reduceat(weight[order], starts)


def sparse(case: Case, columns: dict[str, Any], keys: int) -> pa.Table:
    ones = columns["match"] if case.pattern else np.ones(len(columns["ts"]), np.int64)
    code, n = counted(columns["ts"] // case.advance * keys + columns[case.key], ones)
    times = np.minimum(code // keys + 1, case.panes)
    back = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    code, n = counted(np.repeat(code, times) - back * keys, np.repeat(n, times))
    return case.result(code // keys * case.advance, (code % keys).astype(columns[case.key].dtype), n)


def panes(case: Case) -> Callable[[], pa.Table]:
    table = case.whole()
    columns = {name: table[name].to_numpy() for name in table.column_names if name != "cmt"}

    def run() -> pa.Table:
        keys = int(columns[case.key].max()) + 1
        cells = (int(columns["ts"].max()) // case.advance + 1) * keys
        if cells <= DENSE * len(columns["ts"]) and not case.pattern:
            return dense(case, columns, keys)
        match = pc.match_substring_regex(table["cmt"], case.pattern) if case.pattern else None
        extra = {} if match is None else {"match": match.to_numpy().astype(np.int64)}
        return sparse(case, columns | extra, keys)

    return run


FORMS = {"panes": panes}
