"""What a user writes who has a type checker: test_typing.py runs mypy on this file; it is not executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import pystream as ps

if TYPE_CHECKING:
    import pyarrow as pa

DESIGN: ps.Design = "sliced"
query = ps.Query(ps.Window("30s", "5s"), key=["meter", "site"], aggregates={"n": ps.count(), "m": ps.mean("cons")})
assert_type(query.key, tuple[str, ...])
assert_type(hash(query), int)


def consume(schema: pa.Schema, batch: pa.RecordBatch) -> int:
    with ps.Operator(query, inputs=2, schema=schema, design=DESIGN) as op:
        op.add(0, batch, timeout=1.0)
        op.heartbeat(1, ts=5)
        stats = op.stats()
        assert_type(stats, ps.Stats)
        assert_type(stats["tuples_in"] + stats["rows_unread"], int)
        assert_type(stats["latest"], list[int | None])
        assert_type(stats["position"], tuple[int, int] | None)
        stats["tuples"]  # type: ignore[typeddict-item]
        stall = op.explain_stall()
        if stall is not None and stall.reason == "input":
            assert_type(stall.input, int | None)
        assert_type(op.design, ps.Design)
        rows = 0
        while (table := op.read(timeout=1.0)) is not None:
            rows += table.num_rows
        op.read("1s")  # type: ignore[arg-type]
        return rows


def wrong(schema: pa.Schema) -> None:
    ps.Operator(query, 2, schema, design="slices")  # type: ignore[arg-type]
    ps.aggregate(query, [], design="tuml")  # type: ignore[arg-type]
    ps.Operator.restore(query, b"", design="x")  # type: ignore[arg-type]
    ps.mean(3)  # type: ignore[arg-type]
    ps.Window(1.5)  # type: ignore[arg-type]
