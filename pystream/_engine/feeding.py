"""Feed whole inputs to an operator in large pieces, from few threads: what `aggregate` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pystream import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pystream._engine.engine import Engine

#: Rows of an input, and the number of the first of them.
Part = tuple[pa.RecordBatch, int]


def feed(engine: Engine, inputs: dict[int, Iterator[Part]], rows: int, go_to: Callable[[int], None]) -> None:
    """Add all parts of these inputs in pieces of `rows` rows, waiting for room, and close the inputs.

    The next piece is always one of the input that is furthest behind in time; `go_to` is told which one an error is of.
    User objects: one input only.
    """
    if engine.plan.udfs:
        _feed_objects(engine, inputs, rows)
        return
    feed, first_row = engine.handle.feed(list(inputs)), dict.fromkeys(inputs, 0)
    try:
        ready = list(inputs)
        left = len(inputs)
        while left:
            for i in ready:
                go_to(i)
                left -= not _give(engine, feed, i, inputs[i], first_row)
            ready = [feed.run(rows)] if left else []
    except _native.Fault as fault:
        go_to(feed.at)
        raise engine.error(fault, feed.at, first_row[feed.at]) from None
    finally:
        feed.end()


def _give(engine: Engine, feed: _native.Feed, input: int, parts: Iterator[Part], first_row: dict[int, int]) -> bool:
    """Give the input its next part, or close it."""
    part = next(parts, None)
    if part is None:
        engine.handle.close(input)
        return False
    batch, first_row[input] = part
    feed.put(input, engine.prepare(input, batch))
    return True


def _feed_objects(engine: Engine, inputs: dict[int, Iterator[Part]], rows: int) -> None:
    ((input, parts),) = inputs.items()
    for batch, first_row in parts:
        for start in range(0, batch.num_rows, rows):
            engine.add(input, batch.slice(start, rows), first_row=first_row + start)
    engine.handle.close(input)
