"""What users of other systems reported about windows, as read in public threads, and what we give for the same.

`python tests/others.py` writes OTHERS.md from the table below. Each entry has a test named after it, in
test_others_bugs.py or in spark/test_spark_others.py. A thread's state is that of the stored copy that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_name("OTHERS.md")


@dataclass(frozen=True)
class Report:
    """One thread: where it is, what it says, what we give."""

    repository: str
    number: int
    state: str
    they: str
    we: str
    kind: str = "issues"  # or pull

    @property
    def link(self) -> str:
        return f"[{self.repository} #{self.number}](https://github.com/{self.repository}/{self.kind}/{self.number})"


REPORTS = {
    "polars_27484": Report(
        "pola-rs/polars",
        27484,
        "open",
        "`group_by_dynamic` with overlapping windows and `group_by`: rows of some groups are missing. Seen here "
        "with Polars "
        "2.1.0: 4 rows for the frame of the report.",
        "A row for every window and key that a tuple fell into: 7.",
    ),
    "polars_24278": Report(
        "pola-rs/polars",
        24278,
        "open",
        "`first` after `group_by` on the streaming engine gives another value in some run of the same query. "
        "Not seen here with "
        "Polars 2.1.0 in 1,000 runs.",
        "`first` is defined by (ts, input, position): the same in every run, design and batching.",
    ),
    "polars_27231": Report(
        "pola-rs/polars",
        27231,
        "open",
        "`rolling` over an unsorted index column: the in-memory engine raises, the streaming engine gives a "
        "result. Polars 2.1.0 "
        "here raises in both.",
        "DisorderError with the input, the row and both timestamps, in every design.",
    ),
    "polars_21772": Report(
        "pola-rs/polars",
        21772,
        "open",
        "`rolling_min` and `rolling_max` propagate NaN, `min` and `max` do not. Seen here with Polars 2.1.0.",
        "One rule everywhere: NaN is above every number. `max` is NaN if there is one, `min` if there is nothing else.",
    ),
    "polars_24755": Report(
        "pola-rs/polars",
        24755,
        "open",
        "The sum of a group is 4.5e-13 on the in-memory engine and 0.0 on the streaming engine.",
        "Float sums are exact and rounded once: 0.0, whatever the order, the inputs and the design.",
    ),
    "duckdb_9731": Report(
        "duckdb/duckdb",
        9731,
        "closed as expected",
        "`last` per `time_bucket`, over rows sorted in a subquery, changes from run to run; the answer is to "
        "write `ORDER BY` "
        "inside of `last`.",
        "`last` needs no such clause: the order is part of every query.",
    ),
    "duckdb_4270": Report(
        "duckdb/duckdb",
        4270,
        "closed",
        "An average changes in its last digits when rows are removed that `WHERE` leaves out anyway; float sums "
        "are said to "
        "depend on parallelism, too. Seen here with DuckDB 2.0.0: 7 values for `sum` over 3 million doubles in "
        "20 runs.",
        "The same bits with and without those rows, with any number of inputs.",
    ),
    "spark_29810": Report(
        "apache/spark",
        29810,
        "closed",
        "`first`, `last` and `collect_list` depend on how a shuffle's results are merged, which cannot be controlled.",
        "On Spark, too, `first` and `last` go by (ts, stream, position): the same for every partitioning.",
        "pull",
    ),
    "ksql_9840": Report(
        "confluentinc/ksql",
        9840,
        "open",
        "With `EMIT FINAL` a window is closed only when the next message arrives, which may be hours later.",
        "`heartbeat(input, ts)` says that time has passed: the window comes without another tuple.",
    ),
    "flink_29037": Report(
        "apache/flink",
        29037,
        "open",
        "A source that is idle when a job is drained does not deliver the final watermark: windows downstream "
        "do not fire.",
        "Closing an input that never sent a tuple is enough: all windows come.",
        "pull",
    ),
    "flink_26321": Report(
        "apache/flink",
        26321,
        "open",
        "`SlidingEventTimeWindows` may run out of memory when the window is large and the slide is small: a "
        "list of all "
        "windows of an element is made.",
        "`sliced` holds a tuple once, however many windows it is in. The paper's designs, which keep windows "
        "one by one, "
        "refuse with OverlapError.",
        "pull",
    ),
    "beam_39822": Report(
        "apache/beam",
        39822,
        "closed",
        "A source without progress in a batch drops out of the watermark of the Spark runner; what it sends "
        "later is dropped "
        "as late.",
        "An idle input holds the output back until it sends, beats or closes. Nothing of it is ever late.",
    ),
    "bytewax_138": Report(
        "bytewax/bytewax",
        138,
        "closed",
        "After a crash, a window that waited for its end does not close until its key comes again.",
        "A snapshot holds the open windows: after `restore` they come when time passes, without a tuple of their keys.",
    ),
    "risingwave_23270": Report(
        "risingwavelabs/risingwave",
        23270,
        "open",
        "Rows that arrive after their window has closed are dropped, and nobody is told.",
        "Such a batch is refused as a whole, with its row named; the operator goes on without it.",
    ),
    "risingwave_13907": Report(
        "risingwavelabs/risingwave",
        13907,
        "open",
        "The state of a streaming over window is not cleaned and becomes too large in the end.",
        "Keys that no open window needs are forgotten: 60,000 keys, a few thousand held.",
    ),
    "risingwave_2469": Report(
        "risingwavelabs/risingwave",
        2469,
        "closed",
        "A hop window of 20 minutes every 15 minutes makes the server panic: the size is no multiple of the slide.",
        "Any size and any advance.",
    ),
    "pandas_37113": Report(
        "pandas-dev/pandas",
        37113,
        "open",
        "`rolling(20).mean()` of 4,309 rows is infinite in 95 % of them; over the last 100 rows alone it is not.",
        "A window's result depends on its own rows only, and a mean of finite numbers is finite.",
    ),
    "pandas_57549": Report(
        "pandas-dev/pandas",
        57549,
        "open",
        "`rolling` replaces infinities by NaN, which it then leaves out.",
        "An infinity is a value: sum and mean of the windows that hold it are infinite, those of others are not.",
    ),
    "pandas_61071": Report(
        "pandas-dev/pandas",
        61071,
        "closed",
        "A rolling mean over 8 rows is 22 times too large, after numbers as large as 1e15 have left the window.",
        "The double nearest to the exact mean, for every window.",
    ),
    "tidb_28489": Report(
        "pingcap/tidb",
        28489,
        "open",
        "Aggregates do not check for overflow and become infinite, `avg` of 1e308 and 1e308 among them. Seen "
        "here with DuckDB 2.0.0: the same mean is infinite.",
        "1e308. (A sum that no double can hold is infinite.)",
    ),
    "trino_30600": Report(
        "trinodb/trino",
        30600,
        "merged",
        "`sum(bigint)` as a window function wraps silently; mended, it fails also for a frame whose total fits, "
        "if the running "
        "total has left the range.",
        "An error if the sum does not fit, and only then: what happens on the way does not count.",
        "pull",
    ),
}


def page() -> str:
    """The page, in Markdown."""
    lines = [
        "# What users of other systems report",
        "",
        "Public threads about windows, what they report, and what pystream gives for the same. Each row has a",
        "test that is named after it (test_others_bugs.py, spark/test_spark_others.py). Only what was read there",
        "and seen here is said; the state is that of the copy that was read. `python tests/others.py` writes this.",
        "",
        "| thread | state | what it reports | what we give |",
        "|---|---|---|---|",
        *(f"| {r.link} | {r.state} | {r.they} | {r.we} |" for r in REPORTS.values()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
