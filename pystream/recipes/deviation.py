"""Mean and standard deviation per sensor, and how far the latest value is from what is usual."""

import numpy as np

import pystream as ps

sensors = {
    "ts": np.arange(60),
    "sensor": np.arange(60) % 2,
    "degrees": 1e9 + np.arange(60) * 3 % 7 / 8 + (np.arange(60) == 59) * 4,  # far from zero: nothing is lost
}

query = ps.Query(
    window=ps.Window(size=30, advance=15),
    key="sensor",
    aggregates={"mean": ps.mean("degrees"), "std": ps.std("degrees"), "last": ps.last("degrees")},
)

for row in ps.aggregate(query, [sensors]).slice(2, 4).to_pylist():
    off = (row["last"] - row["mean"]) / row["std"]
    print(f"{row['ts']:>2} sensor {row['sensor']}: std={row['std']:.3f}, the last one is {off:+.1f} std off")

# Output:
# 15 sensor 0: std=0.268, the last one is +1.3 std off
# 15 sensor 1: std=0.250, the last one is +0.0 std off
# 30 sensor 0: std=0.268, the last one is +1.3 std off
# 30 sensor 1: std=1.031, the last one is +3.5 std off
