"""The three highest bids per window and item, the lowest one, and how bids are spread."""

import numpy as np

import pystream as ps

bids = {
    "ts": np.arange(40),
    "item": np.where(np.arange(40) % 2 == 0, "lamp", "vase"),
    "price": 10 + np.arange(40) * 13 % 90,
}

query = ps.Query(
    window=ps.Window(size=20),
    key="item",
    aggregates={
        "top": ps.top_k("price", 3),
        "low": ps.bottom_k("price", 1),
        "spread": ps.histogram("price", edges=[25, 50, 75]),
    },
)

for row in ps.aggregate(query, [bids]).to_pylist():
    print(
        f"{row['ts']:>2} {row['item']}: top {row['top']}, low {row['low']}, below 25, 50, 75 and above {row['spread']}"
    )

# Output:
#  0 lamp: top [88, 76, 64], low [10], below 25, 50, 75 and above [3, 2, 3, 2]
#  0 vase: top [89, 77, 75], low [11], below 25, 50, 75 and above [2, 3, 2, 3]
# 20 lamp: top [92, 90, 78], low [14], below 25, 50, 75 and above [1, 3, 3, 3]
# 20 vase: top [91, 79, 67], low [13], below 25, 50, 75 and above [2, 3, 3, 2]
