"""Raw records as a DataFrame, read by the executors with Arrow: the same values as without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from pystream.spark.rows.spark_types import spark_schema, to_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pystream.data.raw_files import RawFiles


def raw_frame(spark: SparkSession, raw: RawFiles) -> DataFrame:
    """The records of the files, each read by one task; executors see the files under the same paths."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from map(to_spark, raw.read(raw.files[number]))

    n = len(raw.files)
    return spark.range(0, n, 1, n).mapInArrow(read, from_arrow_schema(spark_schema(raw.schema)))
