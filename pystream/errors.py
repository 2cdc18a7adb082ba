"""What can go wrong, by name. Every message says where: the input, the row, the values."""

from __future__ import annotations


class PystreamError(Exception):
    """The root of all errors that pystream raises on purpose."""


class DisorderError(PystreamError, ValueError):
    """A timestamp below the input's latest one, or a negative one."""

    def __init__(self, message: str, *, input: int, row: int | None, ts: int, latest: int) -> None:
        super().__init__(message)
        self.input = input
        self.row = row
        self.ts = ts
        self.latest = latest


class OverlapError(PystreamError, ValueError):
    """A tuple falls into more windows than the design can keep one by one; "sliced" has no such limit."""


class SchemaError(PystreamError, TypeError):
    """A missing or mistyped column, or a null timestamp."""


class MissingFileError(PystreamError, FileNotFoundError):
    """A path that leads to no file, or a glob that matches none."""


class ClosedError(PystreamError, RuntimeError):
    """Something was added after its input was closed, or the operator has ended."""


class BackpressureError(PystreamError, RuntimeError):
    """The input holds `max_pending` tuples already and the caller did not want to wait."""


class SumOverflowError(PystreamError, OverflowError):
    """A sum of integers does not fit into int64."""


class UdfError(PystreamError, RuntimeError):
    """A user function raised; the cause is chained, the message names the window and the key."""


class SnapshotError(PystreamError, ValueError):
    """Bytes that are no snapshot, are damaged, or are of another query."""


class PartialError(PystreamError, ValueError):
    """A partial aggregate that is damaged, of another query, or of a window that has been put out already."""


class ReentryError(PystreamError, RuntimeError):
    """User code called the operator that was running it: the call would wait for itself."""
