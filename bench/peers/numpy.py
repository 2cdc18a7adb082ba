"""NumPy, panes by hand.

Where most keys occur in most panes (EC), an array of panes by keys is filled with bincount and summed over windows;
where few do (SC), codes of (pane, key) are sorted and counted. That the inputs are in one array is made beforehand, and
for first, that they are merged.
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


def over_windows(panes: Any, count: int) -> Any:
    """Sums over `count` panes that end with each pane, and with each of the count - 1 after the last."""
    total = np.zeros((len(panes) + count, panes.shape[1]), panes.dtype)
    np.cumsum(panes, axis=0, out=total[1 : len(panes) + 1])
    total[len(panes) + 1 :] = total[len(panes)]
    return total[count:] - total[: len(panes)]  # of windows that start at pane 0, 1, ...


def first_of_windows(case: Case, value: Any, code: Any, shape: tuple[int, int]) -> Any:
    """The value of the first row in each window and key; rows are in order."""
    first = np.full(shape[0] * shape[1], len(value))
    first[code[::-1]] = np.arange(len(value))[::-1]  # of equal codes the last assignment stays
    first = first.reshape(shape)
    best = first.copy()
    for back in range(1, case.panes):
        np.minimum(best[:-back], first[back:], out=best[:-back])
    return np.append(value, np.nan)[best]


def dense(case: Case, columns: dict[str, Any], keys: int) -> pa.Table:
    pane = columns["ts"] // case.advance
    shape = (int(pane[-1] if case.function == "first" else pane.max()) + 1, keys)
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
        value = first_of_windows(case, columns[case.column], code, shape)[window, key]
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
    if case.function == "first":
        table = table.take(np.argsort(table["place"].to_numpy()))
    columns = {name: table[name].to_numpy() for name in ("ts", case.key, case.column) if name}

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
