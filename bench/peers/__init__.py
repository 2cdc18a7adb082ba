"""The peers of bench_peers.py: one short module each, and the table of who there is.

A module has a dict `FORMS` from a form's name ("" is the plain one) to a function that takes a `Case` and gives a
function without arguments, which is what is timed: from Arrow tables in memory to an Arrow table with the columns ts,
the key and the function's name, sorted by (ts, key). What the outer function does is not timed; where that favours a
peer, its module says so. `PACKAGES` names the distributions whose versions are recorded.

Each peer runs in a process of its own (worker.py), with an interpreter of its own if one is named: the heavy ones want
old versions of pyarrow and pandas. So the modules here, but for peers/pystream.py, import nothing of pystream.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A contestant."""

    name: str
    what: str
    share: int = 1  # it gets the first of so many parts of the rows: for the slow ones
    jvm: bool = False  # it works in a process beside its own, whose processor time is not seen

    @property
    def module(self) -> str:
        """Where its forms are."""
        return self.name.split("-", 1)[0]

    @property
    def form(self) -> str:
        """Which one it is."""
        return self.name.partition("-")[2]


ALL = {
    p.name: p
    for p in (
        Peer("pystream-auto", "ps.aggregate"),
        Peer("pystream-sliced", "the same, one design; not for every function"),
        Peer("pystream-runs", "the same, one design"),
        Peer("pystream-mq", "the paper's baseline", share=10),
        Peer("pystream-mq-lf", "the paper's", share=10),
        Peer("pystream-tuml-sc", "the paper's", share=10),
        Peer("pystream-tuml-mc", "the paper's", share=10),
        Peer("pystream-wiml", "the paper's; not for order-sensitive functions", share=10),
        Peer("bare-loop", "bare_loop.c: one thread, tuples merged beforehand, keys that are array indexes"),
        Peer("bare-memory", "one pass over the columns that the query needs: no result, the limit of memory"),
        Peer("duckdb", "every row joined with its windows, group by", share=4),
        Peer("duckdb-panes", "group by (pane, key), every pane joined with its windows, group by"),
        Peer("polars", "merge_sorted, group_by_dynamic", share=4),
        Peer("polars-panes", "panes by hand, lazy"),
        Peer("pandas-panes", "panes by hand; pandas has no hopping windows by key"),
        Peer("numpy-panes", "panes by hand: bincount where dense, sorting where sparse"),
        Peer("spark", "groupBy(window(...), key)", share=20, jvm=True),
        Peer("spark-panes", "panes by hand, explode", share=20, jvm=True),
        Peer(
            "spark-streaming", "window() with a watermark, append, availableNow, parquet in memory", share=20, jvm=True
        ),
        Peer("flink", "HOP in streaming mode, which shares slices", share=20, jvm=True),
        Peer("flink-panes", "panes by hand, batch mode", share=20, jvm=True),
        Peer("bytewax", "fold_window, sliding", share=200),
        Peer("bytewax-panes", "batches of Arrow folded into panes, panes into windows by a stateful step", share=20),
        Peer("pathway", "windowby(sliding).reduce", share=100),
        Peer("pathway-panes", "panes by hand, groupby", share=20),
    )
}
