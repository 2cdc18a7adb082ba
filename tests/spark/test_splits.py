"""Tasks by time at the end of int64: their edges fit, and no row of the last timestamp is left out."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from pystream.spark.files import file_tasks, splits
from pystream.spark.files.formats import Piece
from pystream.spark.files.listing import File

MAX = 2**63 - 1
NUMBERS = st.sampled_from([1, 2, 3, 2**31, 2**62, 2**62 + 1, MAX - 1, MAX])
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), min_size=2, max_size=8)


@given(SPANS, st.integers(2, 6), NUMBERS, NUMBERS)
@example([(40, 0), (20, 0), (10, 0), (0, 0)], 4, 1, 1)
@example([(40, 0), (20, 0), (10, 0), (0, 0)], 4, 3, 2)
def test_every_row_is_read_by_the_task_of_its_window(spans, tasks, size, advance):
    pieces = [
        Piece(File(0, "f.parquet", 1, 1), (i,), 1, 10, MAX - back - length, MAX - back)
        for i, (back, length) in enumerate(spans)
    ]
    shared = splits.by_time(pieces, tasks, size, advance)
    if shared is None:
        return
    file_tasks.task_table(shared)  # all numbers fit
    for piece in pieces:
        for ts in {piece.low, piece.high}:
            start = ts // advance * advance
            if ts >= start + size:
                continue
            (task,) = [s for s in shared if s.begin <= start and (start < s.end or s.end == splits.FOREVER)]
            assert piece in task.pieces
            (part,) = [part for part in task.parts() if piece.groups[0] in part.groups]
            rows = pa.record_batch({"ts": [ts]})
            assert part.inside or file_tasks._between(rows, "ts", task.begin, task.reach).num_rows == 1
