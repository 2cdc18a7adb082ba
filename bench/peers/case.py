"""What a peer is asked: a query in plain words, and the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """One query on one set of inputs. The windows' size is a multiple of their advance: panes are one advance long."""

    id: str
    size: int
    advance: int
    key: str
    function: str  # count, avg or first; also the name of the result's column
    column: str | None  # what avg and first are of
    pattern: str | None  # count only the rows whose `cmt` has this; the others still make a row
    inputs: list[pa.Table] = field(default_factory=list)

    @property
    def panes(self) -> int:
        """How many panes make a window."""
        return self.size // self.advance

    @property
    def needed(self) -> list[str]:
        """The columns that the query reads."""
        return ["ts", self.key, *([self.column] if self.column else []), *(["cmt"] if self.pattern else [])]

    def tables(self) -> list[pa.Table]:
        """The inputs with only the columns that are needed.

        For first, a column `place` beside them: what orders tuples, (ts, input, position), as one number.
        """
        tables = [t.select(self.needed) for t in self.inputs]
        if self.function != "first":
            return tables
        places = [(t["ts"].to_numpy() << 40) + (i << 32) + np.arange(t.num_rows) for i, t in enumerate(tables)]
        return [t.append_column("place", pa.array(p)) for t, p in zip(tables, places, strict=True)]

    def whole(self) -> pa.Table:
        """The same in one table."""
        return pa.concat_tables(self.tables())

    def result(self, ts: Any, key: Any, value: Any) -> pa.Table:
        """A result from three arrays."""
        return pa.table({"ts": ts, self.key: key, self.function: value})
