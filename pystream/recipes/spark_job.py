"""A Spark job with the same query: a DataFrame in, a DataFrame out, the same rows to the bit.

Needs: pip install "pystream-core[spark]"
"""

from pyspark.sql import functions as f

import pystream as ps
from pystream.spark import aggregate, session

spark = session()

# Which input a row belongs to (`stream`) and where in it (`position`): a DataFrame has no order of its own.
frame = spark.range(0, 1_000).select(
    (f.col("id") / 4).cast("long").alias("ts"),
    (f.col("id") % 2).cast("int").alias("stream"),
    f.col("id").alias("position"),
    (f.col("id") % 3).cast("int").alias("meter"),
    (f.col("id") * 0.1).alias("kwh"),
)

query = ps.Query(
    ps.Window(size=100), key="meter", aggregates={"n": ps.count(), "first": ps.first("kwh"), "sum": ps.sum("kwh")}
)

result = aggregate(frame, query, stream="stream", position="position")

for row in result.orderBy("ts", "meter").collect():
    print(f"{row.ts:>3} {row.meter} n={row.n} first={row['first']:.1f} sum={row['sum']:.1f}")

# Output:
#   0 0 n=134 first=0.0 sum=2673.3
#   0 1 n=133 first=0.1 sum=2646.7
#   0 2 n=133 first=0.2 sum=2660.0
# 100 0 n=133 first=40.2 sum=7980.0
# 100 1 n=134 first=40.0 sum=8033.3
# 100 2 n=133 first=40.1 sum=7966.7
# 200 0 n=67 first=80.1 sum=6030.0
# 200 1 n=66 first=80.2 sum=5936.7
# 200 2 n=67 first=80.0 sum=6023.3
