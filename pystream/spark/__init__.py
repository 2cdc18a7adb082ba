"""pystream on Spark: make data, prepare it, aggregate it, on one machine or many.

>>> from pystream.spark import aggregate, generate, session
>>> spark = session("local[2]")
>>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000, seed=1)
>>> query = ps.Query(ps.Window(60), key="meter", aggregates={"n": ps.count(), "first": ps.first("cons")})
>>> aggregate(spark.read.parquet(f"{folder}/readings"), query, stream="stream", position="position").columns
['ts', 'meter', 'n', 'first']

Needs the extra `spark` (pip install "pystream-core[spark]") and Java 17 or newer.
"""

from pystream.spark import versions

versions.check()

from pystream.spark.data.generate import generate
from pystream.spark.data.prepare import prepare
from pystream.spark.data.source import register
from pystream.spark.dataframes import aggregate
from pystream.spark.files.file_tasks import aggregate_files
from pystream.spark.fluent import window_aggregate
from pystream.spark.local_session import session
from pystream.spark.stream.checkpoint import Progress
from pystream.spark.stream.ending import UnreadInputWarning, finish, progress
from pystream.spark.stream.new_files import aggregate_new_files
from pystream.spark.stream.orders import Orders
from pystream.spark.stream.stall import StreamStall, explain_stall

__all__ = [
    "Orders",
    "Progress",
    "StreamStall",
    "UnreadInputWarning",
    "aggregate",
    "aggregate_files",
    "aggregate_new_files",
    "explain_stall",
    "finish",
    "generate",
    "prepare",
    "progress",
    "register",
    "session",
    "window_aggregate",
]
