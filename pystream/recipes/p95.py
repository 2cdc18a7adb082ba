"""The 95th percentile per window: exact, and from buckets that take less memory."""

import numpy as np

import pystream as ps

requests = {
    "ts": np.arange(200),  # seconds
    "server": np.where(np.arange(200) % 2 == 0, "a", "b"),
    "ms": 10.0 + np.arange(200) * 7 % 50,
}

query = ps.Query(
    window=ps.Window(size=100),
    key="server",
    aggregates={
        "p95": ps.quantile("ms", 0.95),  # NumPy's definition, to the bit
        "about": ps.approx_quantile("ms", 0.95, error=0.01),  # at most 1 % off
        "median": ps.median("ms"),
    },
)

for row in ps.aggregate(query, [requests]).to_pylist():
    print(f"{row['ts']:>3} {row['server']} p95={row['p95']:.1f} about={row['about']:.1f} median={row['median']:.1f}")

# Output:
#   0 a p95=56.0 about=56.2 median=34.0
#   0 b p95=57.0 about=57.2 median=35.0
# 100 a p95=56.0 about=56.2 median=34.0
# 100 b p95=57.0 about=57.2 median=35.0
