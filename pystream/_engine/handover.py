"""What C has let go of and no caller holds yet: it belongs to one of these until it has reached the caller.

An exception may come from outside: Ctrl-C, the handler of another signal, one that another thread has set. CPython
raises those at a few places only: where a Python function begins or a generator goes on, when a call of anything but a
plain Python function returns, and where a loop turns. So

- what a C call gives must lie, before the call, where it is found again afterwards (`Outbox.stage`, `done`);
- statements without a call or a jump happen together or not at all;
- a value is lost between the return of a C function and its name, and by leaving a `with` block with it, but not by the
  `return` of a plain function;
- what must be undone is undone by a C function that is called in a `finally` itself: nothing comes before it.

tests/test_interrupts.py raises exceptions at all of these places.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pystream.errors import ReentryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
Result = TypeVar("Result")


class Outbox(Generic[T]):
    """Results in their order, each for one of the callers that ask. One thread at a time may bring new ones."""

    def __init__(self, what: str) -> None:
        self.stage: Any = None  #: what C fills; set before the call, None once its contents are in the queue
        self._what = what
        self._queue: deque[T] = deque()
        self._lock = threading.Lock()
        self._holder: int | None = None  # the thread that has the lock

    def __len__(self) -> int:
        return len(self._queue)

    def waiting(self) -> list[T]:
        """What has been brought and not been taken."""
        return list(self._queue.copy())

    @property
    def is_held(self) -> bool:
        """Whether somebody is about to bring or take something."""
        return self._holder is not None

    def check(self) -> None:
        """Refuse a call out of user code, or of a signal handler, within a call that holds the outbox."""
        if self._holder == threading.get_ident():
            raise ReentryError(
                f"this call comes from code that runs within a read or a snapshot of the same {self._what}, "
                "and would wait for itself: call it outside, or from another thread"
            )

    def hold(self, work: Callable[[], Result]) -> Result:
        """Do the work while nobody else brings or takes anything."""
        self.check()
        me = threading.get_ident()
        with self._lock:
            self._holder = me
            try:
                return work()
            finally:
                self._holder = None

    def take(self, bring: Callable[[], object], most: int | None = 1) -> list[T]:
        """Have `bring` see to it that something is there, and take up to `most` (None: all).

        Whatever is raised until the caller has it, also while the lock is given back: it goes back to the queue.
        """
        return self.take_as(_as_it_is, bring, most)

    def take_as(self, make: Callable[[list[T]], Result], bring: Callable[[], object], most: int | None) -> Result:
        """The same, and give what `make` makes of the list; it is all the caller's, or all in the queue."""
        out: list[T] = []
        try:
            return self.hold(lambda: self._move(make, bring, most, out))
        except BaseException:
            if out:  # else what `bring` has raised goes on, and no call is there that another one could come behind
                self._queue.extendleft(out[::-1])
            raise

    def _move(
        self, make: Callable[[list[T]], Result], bring: Callable[[], object], most: int | None, out: list[T]
    ) -> Result:
        bring()
        n = len(self._queue) if most is None else min(most, len(self._queue))
        out.extend(map(deque.popleft, repeat(self._queue, n)))
        return make(out)

    def put(self, results: Sequence[T]) -> None:
        """Whoever holds the outbox: what was on the stage is in the queue from now on, as these results."""
        self._queue += results
        self.stage = None


def _as_it_is(results: list[T]) -> list[T]:
    return results
