"""Raw records as a DataFrame: the same values as without Spark.

Executors read the files with Arrow. Spark's own reader is used where it sees the same: parquet files that all have the
same columns, in types that Spark has. Of files that differ it takes the columns of one and leaves out the others' own;
timestamps of nanoseconds it refuses; its old INT96 has a zone for Spark and none for Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pystream.spark.rows.spark_types import spark_schema, spark_type, struct_type, to_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pystream.data.raw_files import RawFiles


#: Arrow's further types for text and bytes, which are all one in parquet.
_TEXTS = (pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view())


def raw_frame(spark: SparkSession, raw: RawFiles) -> DataFrame:
    """The records of the files; executors see the files under the same paths."""
    common = spark_schema(raw.schema)
    if all(file.format == "parquet" and _of_sparks_reader(file.schema) == common for file in raw.files):
        return spark.read.parquet(*(str(file.path) for file in raw.files))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from map(to_spark, raw.read(raw.files[number]))

    n = len(raw.files)
    return spark.range(0, n, 1, n).mapInArrow(read, struct_type(common))


def _of_sparks_reader(schema: pa.Schema) -> pa.Schema:
    """The columns as Spark's reader of parquet gives them, where that is known to be the same as Arrow's."""
    return pa.schema([(f.name, spark_type(f.type) if f.type in _TEXTS else f.type) for f in schema])
