"""Go on after a crash: a snapshot holds the windows, and how many rows of each input it has seen."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import pystream as ps
from pystream.whole_file import write_whole

SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
QUERY = ps.Query(ps.Window(size=10), key=None, aggregates={"n": ps.count(), "sum": ps.sum("v")})

source = pa.table({"ts": np.arange(40), "v": np.arange(40)})  # something that can be read again from a given row


def run(state: Path, rows: list[dict[str, int]], stop_at: int) -> None:
    """Feed the source from where the state says, and stop at some row as if killed."""
    op = ps.Operator.restore(QUERY, state.read_bytes()) if state.exists() else ps.Operator(QUERY, 1, SCHEMA)
    with op:
        first = op.positions()[0]
        print(f"from row {first}")
        for start in range(first, len(source), 7):
            if start >= stop_at:
                return  # the process is gone; what came after the last snapshot is done again
            op.add(0, source.slice(start, 7))
            rows += [row for batch in op.poll() for row in batch.to_pylist()]
            write_whole(state, op.snapshot())  # whole or not at all, and on the disk before the next step
        op.close(0)
        rows += [row for batch in op for row in batch.to_pylist()]


with tempfile.TemporaryDirectory() as folder:
    out: list[dict[str, int]] = []
    run(Path(folder, "state"), out, stop_at=20)
    run(Path(folder, "state"), out, stop_at=len(source))
    for row in out:  # each window once
        print(f"{row['ts']:>2} n={row['n']} sum={row['sum']}")

# Rows and snapshot belong together: to have every row once in a file, save the length of the file with the state, cut
# the file to it at the start, and sync the rows before the state. The README has such a program in 20 lines.

# Output:
# from row 0
# from row 21
#  0 n=10 sum=45
# 10 n=10 sum=145
# 20 n=10 sum=245
# 30 n=10 sum=345
