"""`TGate`: the paper's merge of timestamp-sorted inputs, on its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Self

from pystream import _native
from pystream._engine.handover import Outbox
from pystream._engine.structures import INT64_MAX, MOST, in_range, refusal, timestamp, timestamps
from pystream._inputs.column_checks import sound_items
from pystream.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    import numpy.typing as npt

#: Tokens of one call follow one another; calls are this far apart.
TOKENS = 1 << 32

#: Tuples per C call of `get_ready_tuples`.
CHUNK = 1 << 12


_Tuple = tuple[int, int, Any]
_Parts = tuple[_native.TGateHandle, list[dict[int, Any]], list[Outbox[_Tuple]]]


class TGate:
    """Merges `inputs` timestamp-sorted inputs into one order, and gives every tuple to each of the `readers`.

    A tuple comes out once no input can send an earlier one: in the order of (ts, input, position within the input),
    whatever the threads do. Use one thread per input and one per reader to have them run in parallel. The gate itself
    is lock-free, and its calls release the GIL; around it each input and each reader has a lock of its own, so that
    several threads that use the same one take turns. No input or reader waits for another one's.

    After an exception from outside, such as Ctrl-C, tuples that were to be added are in the gate, all of them, or not
    at all; tuples that were not handed over come with the reader's next call.

    >>> gate = ps.TGate(inputs=2)
    >>> gate.insert_tuple(3, "a", input=0)
    >>> gate.get_next_ready_tuple()  # nothing: input 1 may still send something earlier
    >>> gate.heartbeat(1, ts=5)
    >>> gate.get_next_ready_tuple()
    (3, 0, 'a')
    >>> gate.close(0)
    >>> gate.close(1)
    >>> gate.get_next_ready_tuple()
    >>> gate.finished()  # that was the end
    True
    """

    def __init__(self, inputs: int, readers: int = 1) -> None:
        self.inputs = in_range("inputs", inputs, 1, MOST)
        self.readers = in_range("readers", readers, 1, MOST)
        payloads: list[dict[int, Any]] = [{} for _ in range(self.readers)]
        # Per reader: token -> payload. Each reader takes its own out, so there is nothing to count.
        self._parts: _Parts | None
        out: list[Outbox[_Tuple]] = [Outbox("T-Gate") for _ in range(self.readers)]
        self._parts = (_native.TGateHandle(self.inputs, self.readers), payloads, out)
        self._tokens = itertools.count(0, TOKENS)

    # ---- inputs ----

    def insert_tuple(self, ts: int, payload: Any, input: int) -> None:
        """Add a tuple to an input. `ts` must not be below the input's latest one (DisorderError)."""
        self._insert(in_range("input", input, 0, self.inputs - 1), [timestamp(ts)], [payload], one=True)

    def insert_tuples(self, ts: npt.ArrayLike, payloads: Iterable[Any], input: int) -> None:
        """Add a tuple per timestamp to an input, all of them or, if anything is wrong with one, none.

        >>> gate = ps.TGate(inputs=1)
        >>> gate.insert_tuples([3, 3, 4], ["a", "b", "c"], input=0)
        >>> gate.get_ready_tuples(10)
        [(3, 0, 'a'), (3, 0, 'b'), (4, 0, 'c')]
        """
        times, each = timestamps(ts), list(sound_items(payloads, "payloads"))
        if len(times) != len(each):
            raise ValueError(f"{len(times)} timestamps and {len(each)} payloads")
        if each:
            self._insert(in_range("input", input, 0, self.inputs - 1), times, each, one=False)

    def _insert(self, input: int, ts: Any, payloads: list[Any], *, one: bool) -> None:
        (handle, payloads_of, _), token, done = self._open(), next(self._tokens), _native.Done()
        try:
            for kept in payloads_of:  # first, because readers look for them as soon as C has the tuples
                kept.update(enumerate(payloads, token))
            handle.insert_tuples(done, input, ts, token)
        except _native.Fault as fault:
            raise refusal(fault, "input", input, None if one else fault.row) from None
        finally:
            for kept in payloads_of if not done.is_ok else ():
                for unused in range(token, token + len(payloads)):
                    kept.pop(unused, None)

    def heartbeat(self, input: int, ts: int) -> None:
        """Promise that the input sends nothing below `ts` any more. A promise already made does nothing."""
        which = in_range("input", input, 0, self.inputs - 1)
        try:
            self._open()[0].heartbeat(which, timestamp(ts))
        except _native.Fault as fault:
            raise refusal(fault, "input", which, None) from None

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more at all. Closing it again does nothing."""
        self._open()[0].close(in_range("input", input, 0, self.inputs - 1))

    # ---- readers ----

    def get_next_ready_tuple(self, reader: int = 0) -> tuple[int, int, Any] | None:
        """The reader's next tuple as (ts, input, payload), or None when none is ready; never blocks."""
        for tuple_ in self.get_ready_tuples(1, reader):
            return tuple_
        return None

    def get_ready_tuples(self, max: int, reader: int = 0) -> list[tuple[int, int, Any]]:
        """Up to `max` ready tuples, as many as there are; never blocks."""
        which, most = self._reader(reader), in_range("max", max, 1, INT64_MAX)
        handle, payloads_of, out_of = self._open()
        out, kept = out_of[which], payloads_of[which]
        return out.take(lambda: _bring(handle, which, out, kept, most), most)

    def position(self, reader: int = 0) -> int:
        """How far the reader has come: nothing below this timestamp will reach it any more.

        It grows as the reader asks for tuples, by heartbeats too. When the reader has just been told that none is
        ready, this is the least timestamp that can still come; after the end it is the largest int64.
        """
        which = self._reader(reader)
        handle, _, out_of = self._open()
        waiting = _waiting(out_of[which])
        return handle.position(which) if waiting is None else waiting

    def finished(self, reader: int = 0) -> bool:
        """Whether the reader's last call gave nothing because all inputs are closed and it has had every tuple."""
        which = self._reader(reader)
        handle, _, out_of = self._open()
        return handle.finished(which) and _waiting(out_of[which]) is None

    # ---- ending ----

    def end(self) -> None:
        """Drop everything that the gate holds; every later call is a ClosedError."""
        self._parts = None  # a call that is under way in another thread keeps them until it returns

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.end()

    def _open(self) -> _Parts:
        parts = self._parts
        if parts is None:
            raise ClosedError("the T-Gate has ended")
        return parts

    def _reader(self, reader: int) -> int:
        return in_range("reader", reader, 0, self.readers - 1)


def _bring(handle: _native.TGateHandle, reader: int, out: Outbox[_Tuple], kept: dict[int, Any], most: int) -> None:
    """Fetch up to `most` ready tuples; what an earlier call left over is given first, by itself."""
    got = CHUNK
    while len(out) < most and got == CHUNK:
        if out.stage is None:
            out.stage = _native.ReadyTuples(min(most - len(out), CHUNK))
        got = _fetch(handle, reader, out, kept)


def _fetch(handle: _native.TGateHandle, reader: int, out: Outbox[_Tuple], kept: dict[int, Any]) -> int:
    handle.get_ready_tuples(reader, out.stage)
    tuples = out.stage.tuples()
    given = [(ts, input, kept[token]) for ts, token, input in tuples]
    gone: list[Any] = []
    payloads = map(kept.pop, [token for _, token, _ in tuples])
    out.put(given)
    gone.extend(payloads)  # together with the line before: handover.py
    return len(tuples)


def _waiting(out: Outbox[_Tuple]) -> int | None:
    """The timestamp of the first tuple that C has given and no caller has got; None: there is none."""
    waiting, ready = out.waiting(), out.stage
    if waiting:
        return waiting[0][0]
    return ready.tuples()[0][0] if ready is not None and ready.got[0] else None
