"""Distinct users per page and hour, exactly, updated every 10 minutes."""

import numpy as np
import pyarrow as pa

import pystream as ps

times = np.datetime64("2024-01-01 00:00", "s") + np.arange(0, 7200, 60)
visits = pa.table(
    {
        "ts": pa.array(times),
        "page": np.where(np.arange(120) % 3 == 0, "home", "shop"),
        "user": np.arange(120) * 7 % 31,  # a number: of names, take the indices of a dictionary
    }
)

query = ps.Query(
    window=ps.Window("1h", "10m"),
    key="page",
    aggregates={"visits": ps.count(), "users": ps.n_unique("user")},
)

result = ps.aggregate(query, visits)
for row in result.slice(10, 4).to_pylist():  # from the first whole hour on
    print(f"{row['ts']:%H:%M} {row['page']} visits={row['visits']} users={row['users']}")

# Output:
# 00:00 home visits=20 users=20
# 00:00 shop visits=40 users=30
# 00:10 home visits=20 users=20
# 00:10 shop visits=40 users=30
