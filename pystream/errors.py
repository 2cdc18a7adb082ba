"""What can go wrong, by name. Every message says where: the input, the row, the values."""

from __future__ import annotations


class PystreamError(Exception):
    """The root of all errors that pystream raises on purpose.

    >>> issubclass(ps.DisorderError, ps.PystreamError) and issubclass(ps.DisorderError, ValueError)
    True
    """


class DisorderError(PystreamError, ValueError):
    """A timestamp below the input's latest one, or a negative one.

    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> try:
    ...     ps.aggregate(query, [{"ts": [5, 4]}])
    ... except ps.DisorderError as error:
    ...     print(error.input, error.row, error.ts, error.latest)
    0 1 4 5
    """

    def __init__(self, message: str, *, input: int, row: int | None, ts: int, latest: int) -> None:
        super().__init__(message)
        self.input = input
        self.row = row
        self.ts = ts
        self.latest = latest


class OverlapError(PystreamError, ValueError):
    """A tuple falls into more windows than the design can keep one by one; "sliced" has no such limit.

    >>> query = ps.Query(ps.Window(size=10_000_000, advance=1), None, {"n": ps.count()})
    >>> ps.aggregate(query, [{"ts": [9_999_999]}], design="runs")
    Traceback (most recent call last):
    pystream.errors.OverlapError: input 0, row 0: timestamp 9999999 falls into more than 1,048,576 windows, ...
    """


class SchemaError(PystreamError, TypeError):
    """A missing or mistyped column, or a null timestamp.

    >>> query = ps.Query(ps.Window(10), None, {"total": ps.sum("cons")})
    >>> ps.aggregate(query, [{"ts": [5]}])
    Traceback (most recent call last):
    pystream.errors.SchemaError: input 0: ...'cons'...
    """


class MissingFileError(PystreamError, FileNotFoundError):
    """A path that leads to no file, or a glob that matches none."""


class ClosedError(PystreamError, RuntimeError):
    """Something was added after its input was closed, or the operator has ended.

    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
    ...     op.close(0)
    ...     op.add(0, {"ts": [5]})
    Traceback (most recent call last):
    pystream.errors.ClosedError: input 0 is closed: it takes nothing more
    """


class BackpressureError(PystreamError, RuntimeError):
    """The input holds `max_pending` tuples already and the caller did not want to wait.

    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")], max_pending=2) as op:
    ...     op.add(0, {"ts": [5, 6]})
    ...     op.add(0, {"ts": [7]}, block=False)
    Traceback (most recent call last):
    pystream.errors.BackpressureError: input 0 holds too many tuples to take 1 more: input 1 has sent nothing yet ...
    """


class SumOverflowError(PystreamError, OverflowError):
    """A sum of integers does not fit into int64.

    >>> query = ps.Query(ps.Window(10), None, {"total": ps.sum("cons")})
    >>> ps.aggregate(query, [{"ts": [5, 6], "cons": [2**62, 2**62]}])
    Traceback (most recent call last):
    pystream.errors.SumOverflowError: total = sum(cons) does not fit into int64 in the window starting at 0...
    """


class UdfError(PystreamError, RuntimeError):
    """A user function raised; the cause is chained, the message names the window and the key.

    >>> def factory():
    ...     raise RuntimeError("boom")
    >>> ps.aggregate(ps.Query(ps.Window(10), None, {"mine": ps.udf(factory)}), [{"ts": [12]}])
    Traceback (most recent call last):
    pystream.errors.UdfError: mine, window starting at 10...: user code raised RuntimeError: boom
    """


class SnapshotError(PystreamError, ValueError):
    """Bytes that are no snapshot, are damaged, or are of another query.

    >>> ps.Operator.restore(ps.Query(ps.Window(10), None, {"n": ps.count()}), b"not a snapshot")
    Traceback (most recent call last):
    pystream.errors.SnapshotError: these bytes are no snapshot of a pystream operator
    """


class PartialError(PystreamError, ValueError):
    """A partial aggregate that is damaged, of another query, or of a window that has been put out already.

    >>> from pystream.partials.packed import PackedCombine
    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> PackedCombine(query, pa.schema([("ts", pa.int64())])).take(b"not a partial")
    Traceback (most recent call last):
    pystream.errors.PartialError: ...
    """


class ReentryError(PystreamError, RuntimeError):
    """User code called the operator that was running it: the call would wait for itself.

    >>> query = ps.Query(ps.Window(10), None, {"mine": ps.udf(lambda: op.poll())})
    >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
    ...     op.add(0, {"ts": [5]})
    ...     op.close(0)
    ...     try:
    ...         op.read()
    ...     except ps.UdfError as error:
    ...         type(error.__cause__)
    <class 'pystream.errors.ReentryError'>
    """
