"""The 95th percentile per window: a function of one's own, from an object per window and key."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import pystream as ps


class P95:
    """Keeps the window's values; tuples come one by one, in order."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def process_tuple(self, row: Mapping[str, Any]) -> None:
        """Take a tuple."""
        if row["ms"] is not None:
            self.values.append(row["ms"])

    def produce_out_tuple(self) -> float | None:
        """Give the window's result."""
        return float(np.quantile(self.values, 0.95)) if self.values else None


requests = {
    "ts": np.arange(200),  # seconds
    "server": np.where(np.arange(200) % 2 == 0, "a", "b"),
    "ms": 10.0 + np.arange(200) * 7 % 50,
}

query = ps.Query(
    window=ps.Window(size=100),
    key="server",
    aggregates={"p95": ps.udf(P95, type=pa.float64()), "most": ps.max("ms")},
)

for row in ps.aggregate(query, [requests]).to_pylist():
    print(f"{row['ts']:>3} {row['server']} p95={row['p95']:.1f} max={row['most']:.0f}")

# Output:
#   0 a p95=56.0 max=58
#   0 b p95=57.0 max=59
# 100 a p95=56.0 max=58
# 100 b p95=57.0 max=59
