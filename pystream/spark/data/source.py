"""The made-up data sets as a source of Spark's: `spark.read.format("pystream")` and `spark.readStream`.

>>> register(spark)
>>> spark.read.format("pystream").option("dataset", "EC").option("tuples", 1_000_000).load()

Options: dataset (EC), streams (4), tuples (1,000,000), seed (1), span_s; for streams also blocks_per_batch (1), how
many blocks of pystream.data.sample a micro-batch gets at most. Rows are the same as those that `generate` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from pystream.data.sample import BLOCK_TUPLES, SCHEMAS, DataSet
from pystream.spark import versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

OPTIONS = {"dataset": "EC", "streams": "4", "tuples": "1000000", "seed": "1", "span_s": "", "blocks_per_batch": "1"}


def register(spark: SparkSession) -> None:
    """Make the format "pystream" known to a session.

    >>> register(spark)
    >>> spark.read.format("pystream").option("dataset", "EC").option("tuples", 1000).load().count()
    1000
    """
    spark.dataSource.register(PystreamSource)


class Block(InputPartition):
    """One block of a data set, by its number: what a task makes."""


class PystreamSource(DataSource):
    """The data source; its options say which data set."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "pystream"

    def schema(self) -> StructType:
        """Return the columns."""
        return from_arrow_schema(self._whole().schema)

    def reader(self, schema: StructType) -> _Reader:  # noqa: ARG002 - Spark's name
        """Read all of it."""
        return _Reader(self._whole())

    def streamReader(self, schema: StructType) -> _StreamReader:  # noqa: ARG002, N802 - Spark's names
        """Replay it, block after block; older versions ask for offsets in a way that knows no limit."""
        versions.need((4, 2), "replaying a data set as a stream")
        return _StreamReader(self._whole(), self._number("blocks_per_batch", 1))

    def _whole(self) -> DataSet:
        name = self._option("dataset")
        if name not in SCHEMAS:
            raise ValueError(f"option dataset must be one of {', '.join(SCHEMAS)}, not {name!r}")
        span = self._number("span_s", 1) if self._option("span_s") else None
        streams, tuples, seed = (self._number(o, low) for o, low in (("streams", 1), ("tuples", 0), ("seed", 0)))
        return DataSet(name, streams, tuples, seed, span)

    def _option(self, name: str) -> str:
        return str(self.options.get(name, OPTIONS[name]))

    def _number(self, name: str, least: int) -> int:
        text = self._option(name)
        if not text.isdigit() or int(text) < least:
            raise ValueError(f"option {name} must be a whole number of at least {least}, not {text!r}")
        return int(text)


class _Reader(DataSourceReader):
    def __init__(self, whole: DataSet) -> None:
        self.whole = whole

    def partitions(self) -> Sequence[Block]:
        return [Block(i) for i in range(self.whole.blocks)] or [Block(-1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value >= 0:
            yield from self.whole.block(partition.value).to_batches()


class _StreamReader(DataSourceStreamReader):
    """Offsets count blocks; which rows lie between two offsets follows from the options alone."""

    def __init__(self, whole: DataSet, blocks_per_batch: int) -> None:
        self.whole = whole
        self.blocks_per_batch = blocks_per_batch

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        return {"block": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        from pyspark.sql.streaming.datasource import ReadMaxRows  # noqa: PLC0415 - not in all versions

        return ReadMaxRows(self.blocks_per_batch * BLOCK_TUPLES)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        from pyspark.sql.streaming.datasource import ReadMaxRows  # noqa: PLC0415 - as above

        most = limit.max_rows // BLOCK_TUPLES if isinstance(limit, ReadMaxRows) else self.whole.blocks
        return {"block": min(self.whole.blocks, start["block"] + most)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Block]:
        return [Block(i) for i in range(start["block"], end["block"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self.whole.block(partition.value).to_batches()
