"""The mean of the last hour per meter, every 15 minutes."""

import pyarrow as pa

import pystream as ps

times = [f"2024-01-01 {h:02d}:{m:02d}" for h in range(2) for m in range(0, 60, 10)]
readings = pa.table(
    {
        "ts": pa.array(times * 2).cast(pa.timestamp("s")),
        "meter": ["north"] * 12 + ["south"] * 12,
        "kwh": [0.5 * i for i in range(12)] + [3.0] * 12,
    }
)

query = ps.Query(
    window=ps.Window("1h", "15m"),
    key="meter",
    aggregates={"n": ps.count(), "mean": ps.avg("kwh")},
)

# One input per source, each in the order of time: here one for each meter.
result = ps.aggregate(query, [readings.slice(0, 12), readings.slice(12)])

for row in result.slice(6, 6).to_pylist():  # from the first whole hour on
    print(f"{row['ts']:%H:%M} {row['meter']} n={row['n']} mean={row['mean']}")

# Output:
# 00:00 north n=6 mean=1.25
# 00:00 south n=6 mean=3.0
# 00:15 north n=6 mean=2.25
# 00:15 south n=6 mean=3.0
# 00:30 north n=6 mean=2.75
# 00:30 south n=6 mean=3.0
