"""What a streaming aggregate keeps in the checkpoint: what all shards have in common, and the state of each."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pystream._engine import snapshot
from pystream._engine.plan import Plan
from pystream.errors import PystreamError, SnapshotError
from pystream.partials import seals
from pystream.partials.seals import Seal
from pystream.spark.stream.table_bytes import table_of, to_view

if TYPE_CHECKING:
    from pystream.query import Query

#: The form of states; a checkpoint of another one is refused.
FORMAT = 5

#: Where a description has the schema of the rows as Arrow writes it, which may differ from version to version.
SCHEMA = "schema"

#: The columns of a state. Few, because Spark generates code for each of them with every task.
STATE = {"layout": "string", "body": "binary"}
BODY = pa.schema(
    [
        ("windows", pa.binary()),
        ("pending", pa.binary()),
        ("start", pa.int64()),
        ("latest", pa.string()),
        ("frontier", pa.int64()),
        ("rows_late", pa.int64()),
    ]
)


class Saved(NamedTuple):
    """The state of a shard between two micro-batches."""

    layout: str  # Layout.description of who wrote it
    windows: bytes = b""  # packed partials or an operator's snapshot; empty: there is nothing
    pending: bytes = b""  # rows that are not in the windows yet
    start: int = 0  # windows that start before have been given (partials only)
    latest: str = "{}"  # JSON: what is known of the streams (streams.py)
    frontier: int = -1  # windows that end here or before have been given; -1: none yet
    rows_late: int = 0  # dropped so far

    def to_state(self, shard: int) -> tuple[str, bytes]:
        """The columns of STATE. The seal of the body covers the layout, too."""
        body = to_view(pa.RecordBatch.from_pylist([self._asdict()], BODY))
        return self.layout, seals.sealed(seals.STATE, Seal(shard), body, also=self.layout.encode())

    @classmethod
    def of_state(cls, own: Layout, shard: int, layout: str, body: bytes) -> Saved:
        """The way back, if it is the state of a shard of this layout."""
        own.check(layout)
        seal, data = seals.opened(body, seals.STATE, shard, also=layout.encode())
        rows = table_of(seals.STATE, seal, data, BODY).to_pylist()
        if len(rows) != 1 or any(value is None for value in rows[0].values()):
            raise SnapshotError(f"{seal.name(seals.STATE)}: damaged, it is not one row without nulls")
        saved = cls(layout, **rows[0])
        if saved.start < 0 or saved.frontier < -1 or saved.rows_late < 0:
            raise SnapshotError(f"{seal.name(seals.STATE)}: damaged, a number is negative")
        return saved


def described(layout: str) -> dict[str, Any]:
    """What a state says of itself, if it is of a form that this pystream reads."""
    try:
        found = json.loads(layout)
        form = found["format"]
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the checkpoint is damaged: a state does not say what it is of: {error}") from error
    if form != FORMAT:
        raise PystreamError(
            f"the checkpoint was written by another version of pystream, in format {form}; this one reads format "
            f"{FORMAT}: end the query with that version (pystream.spark.finish), or begin with a new checkpoint"
        )
    return dict(found)


@dataclass(frozen=True)
class Layout:
    """What all shards of a streaming aggregate have in common."""

    query: Query
    schema: pa.Schema
    stream: str
    position: str | None  # None: the order of equal timestamps shows nowhere
    shards: int
    streams: tuple[int, ...] | None = None
    drop_late: bool = False
    description: str = field(init=False)  # everything that a checkpoint depends on, as JSON

    def __post_init__(self) -> None:
        """Describe it here, on the driver: on its way to the executors a class of the user's may lose its full name."""
        described = {
            "format": FORMAT,
            **snapshot.describe(self.query, Plan(self.query, self.schema).window),
            "columns": [f"{f.name}: {f.type}" for f in self.schema],
            "stream": self.stream,
            "position": self.position,
            "shards": self.shards,
            SCHEMA: base64.b64encode(self.schema.serialize()).decode(),
        }
        object.__setattr__(self, "description", json.dumps(described))

    @classmethod
    def of(cls, query: Query, description: str) -> Layout:
        """The layout of a saved state, if it is that of this query."""
        saved = described(description)
        try:
            types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved[SCHEMA], validate=True)))
            layout = cls(query, types, saved["stream"], saved["position"], saved["shards"])
        except (KeyError, ValueError, TypeError, OSError, pa.ArrowException) as error:
            raise SnapshotError(f"the checkpoint is damaged, or of another query: {error}") from error
        layout.check(description)
        return layout

    @property
    def folds(self) -> bool:
        """Whether rows may be folded: user code wants them one by one."""
        return all(a.function != "udf" for a in self.query.aggregates.values())

    @property
    def packs(self) -> bool:
        """Whether rows are folded where they lie: late ones have to be sorted out before."""
        return self.folds and not self.drop_late

    @property
    def place(self) -> tuple[str | None, str | None]:
        """The columns that order rows with equal timestamps, where that matters."""
        return (None, None) if self.position is None else (self.stream, self.position)

    @property
    def order(self) -> list[str]:
        """The columns to sort by."""
        return [self.query.ts, *(name for name in self.place if name is not None)]

    def check(self, saved: str) -> None:
        """Refuse the state of another query."""
        if saved == self.description:
            return
        before, now = described(saved), described(self.description)
        for name in now | before:
            if name != SCHEMA and before.get(name) != now.get(name):
                raise PystreamError(
                    f"the checkpoint is of another query: {name} was {before.get(name)!r}, is {now.get(name)!r}"
                )
