"""Feed an operator whole inputs in large pieces: what `aggregate` does, by few threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pystream import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pystream.operator import Operator

#: Rows of an input, and the number of the first of them.
Part = tuple[pa.RecordBatch, int]


def feed(op: Operator, inputs: dict[int, Iterator[Part]], rows: int, go_to: Callable[[int], None]) -> None:
    """Add all parts of these inputs in pieces of so many rows, waiting for room, and close the inputs.

    Always goes on with the input that has come least far in time; `go_to` is told which one an error is of. User
    objects: one input only.
    """
    if op._plan.udfs:
        _feed_objects(op, inputs, rows)
        return
    feed, first_row = op._handle.feed(list(inputs)), dict.fromkeys(inputs, 0)
    try:
        ready = list(inputs)
        left = len(inputs)
        while left:
            for i in ready:
                go_to(i)
                left -= not _give(op, feed, i, inputs[i], first_row)
            ready = [feed.run(rows)] if left else []
    except _native.Fault as fault:
        go_to(feed.at)
        raise op._error(fault, feed.at, first_row[feed.at]) from None
    finally:
        feed.end()


def _give(op: Operator, feed: _native.Feed, input: int, parts: Iterator[Part], first_row: dict[int, int]) -> bool:
    """Give the input its next part, or close it."""
    part = next(parts, None)
    if part is None:
        op.close(input)
        return False
    batch, first_row[input] = part
    feed.put(input, op._prepare(input, batch))
    return True


def _feed_objects(op: Operator, inputs: dict[int, Iterator[Part]], rows: int) -> None:
    ((input, parts),) = inputs.items()
    for batch, first_row in parts:
        for start in range(0, batch.num_rows, rows):
            op._add_batch(input, batch.slice(start, rows), True, None, first_row + start)
    op.close(input)
