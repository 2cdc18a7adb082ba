"""`aggregate`: a query over a DataFrame, batch or streaming; the same kind comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pystream.spark.rows import batch
from pystream.spark.stream import streaming

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from pystream.query import Query


def aggregate(
    df: DataFrame,
    query: Query,
    stream: str = "stream",
    position: str | None = None,
    *,
    streams: int | Sequence[int] | None = None,
    late: str = "error",
    shards: int | None = None,
    metrics: str = "pystream",
    orders: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Aggregate a DataFrame; one row per window and key comes out, in no particular order.

    `stream` names the integer column that says which input a row belongs to, `position` the column that orders the rows
    of one stream with equal timestamps; `first`, `last`, `arg_min`, `arg_max` and udfs need both, because
    a DataFrame has no order.

    A session that `session()` did not start is faster with the settings of local_session.py about Python and Arrow:
    with any other `spark.sql.execution.arrow.maxBytesPerBatch` than 2147483647 Spark 4.1 and later measure what
    goes to Python anew with every row, and without `spark.python.unix.domain.socket.enabled` small tasks wait for TCP.

    The rest is for streaming DataFrames, whose results come in append mode, each row once. A window comes out with the
    micro-batch after which no stream can contribute to it: when every stream has reached the window's end. Within a
    micro-batch rows may come in any order; across micro-batches the timestamps of a stream must not go back.

    - `streams`: how many streams there are (numbered from 0), or which. All of them are waited for from the start, and
      rows of others are an error. Without it those that have been seen count: one that appears late with rows below
      what is finished already is an error. A stream that stays silent holds the output back: `explain_stall` says
      which, and `orders` lets it go.
    - `late`: what becomes of a row below its stream's latest timestamp of an earlier micro-batch. "error": the query
      fails with a DisorderError. "drop": it is dropped and counted.
    - `shards`: into how many parts the keys are divided, which run side by side (without a key: one). By default as
      many as Spark has partitions for them, `spark.sql.shuffle.partitions`; best one per core, because each costs some
      time in every micro-batch. It belongs to the checkpoint, as the query does: with others a restart is refused.
    - `metrics`: the name under which a StreamingQueryProgress shows in `observedMetrics` what a micro-batch did:
      rows_in, rows_late, rows_out, held (partial aggregates, or rows for user code, that are kept for later), latest,
      frontier (windows up to here are finished; -1: none yet), holding (JSON: streams that hold windows back, where
      they are, and since when they are silent, in ms since 1970; `explain_stall` reads it).
    - `orders`: a folder in which a running query finds orders about its streams: which to let go, to take back, what to
      promise for them; see `Orders`. It is made if it is not there. It is a source of its own: a checkpoint of a query
      without is refused.

    What is still open when a query stops is in its checkpoint: a restart goes on with it, `finish` gives it out.

    >>> rows = [(1, 0, "x"), (7, 0, "x"), (3, 1, "y"), (12, 1, "y")]
    >>> df = spark.createDataFrame(rows, ["ts", "stream", "meter"])
    >>> query = ps.Query(ps.Window(10), key="meter", aggregates={"n": ps.count()})
    >>> aggregate(df, query, stream="stream").orderBy("ts", "meter").show()
    +---+-----+---+
    | ts|meter|  n|
    +---+-----+---+
    |  0|    x|  2|
    |  0|    y|  1|
    | 10|    y|  1|
    +---+-----+---+
    <BLANKLINE>
    """
    if df.isStreaming:
        return streaming.aggregate(df, query, stream, position, streams, late, shards, metrics, orders)
    return batch.aggregate(df, query, stream, position)
