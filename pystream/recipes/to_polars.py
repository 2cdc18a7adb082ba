"""Polars in, Polars out: frames are inputs as they are, and a result becomes a frame without a copy.

Needs: pip install polars
"""

from datetime import datetime, timedelta

import polars as pl

import pystream as ps

start = datetime(2024, 1, 1)  # noqa: DTZ001 - times without a zone, as most files have them
frame = pl.DataFrame(
    {
        "ts": [start + timedelta(minutes=20 * i) for i in range(12)],
        "meter": ["north", "south"] * 6,
        "kwh": [float(i) for i in range(12)],
    }
)

query = ps.Query(ps.Window("2h", "1h"), key="meter", aggregates={"n": ps.count(), "sum": ps.sum("kwh")})

result = pl.from_arrow(ps.aggregate(query, [frame]))
assert isinstance(result, pl.DataFrame)
for ts, meter, total in result.filter(pl.col("n") == 3).select("ts", "meter", "sum").iter_rows():
    print(f"{ts:%H:%M} {meter} {total}")

# Output:
# 00:00 north 6.0
# 00:00 south 9.0
# 01:00 north 18.0
# 01:00 south 15.0
# 02:00 north 24.0
# 02:00 south 27.0
