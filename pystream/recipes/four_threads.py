"""Four threads, each with an input of its own; the result is the same however they are scheduled."""

import threading

import numpy as np
import pyarrow as pa

import pystream as ps

SCHEMA = pa.schema([("ts", pa.int64()), ("kwh", pa.float64())])
QUERY = ps.Query(
    ps.Window(size=1000), key=None, aggregates={"n": ps.count(), "sum": ps.sum("kwh"), "last": ps.last("kwh")}
)


def produce(op: ps.Operator, index: int) -> None:
    """Add 3,000 readings in batches of 500, in the order of time."""
    for start in range(0, 3_000, 500):
        ts = np.arange(start, start + 500)
        op.add(index, {"ts": ts, "kwh": 0.1 * (ts % 10) + index})
    op.close(index)


# max_pending bounds the memory: a thread that is far ahead waits in `add` until others catch up.
with ps.Operator(QUERY, inputs=4, schema=SCHEMA, max_pending=2_000) as op:
    threads = [threading.Thread(target=produce, args=(op, i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for batch in op:
        for row in batch.to_pylist():
            print(f"{row['ts']:>4} n={row['n']} sum={row['sum']} last={row['last']}")
    for thread in threads:
        thread.join()

# Output:
#    0 n=4000 sum=7800.0 last=3.9
# 1000 n=4000 sum=7800.0 last=3.9
# 2000 n=4000 sum=7800.0 last=3.9
