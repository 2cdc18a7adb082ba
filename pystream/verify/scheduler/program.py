"""What to run: calls by thread on a subject, and the decisions that make an execution of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pystream.verify.scheduler._library import KINDS, Library, library

if TYPE_CHECKING:
    from collections.abc import Sequence

#: An operation's name and its arguments: ("insert", 0, 5, 7).
Operation = tuple[Any, ...]


class Decision(NamedTuple):
    """A departure from the default: the running thread goes on, loads see the newest value, nothing fails.

    `kind` is one of
      switch  before this step, go to the value-th other thread that can run
      stale   the load or swap of this step sees the value-th message before the newest; a store goes in before as many
      fail    allocation number `step` (from 1, since the threads started) fails
      kill    the thread that ran until this step never runs again
      stall   the thread that ran until this step waits until no other can run
      only    from this step on only the threads of the set `value` run (bit t stands for thread t), by turns
    A decision that does not fit, such as a switch when there is nobody to switch to, means nothing.
    """

    kind: str
    step: int
    value: int = 1


@dataclass(frozen=True)
class Program:
    """Calls on a subject of csrc/model. Threads are numbered from 1; thread 0 runs `before` and `after` them alone.

    weak    loads may be stale and stores late, as C11 allows. Then one call is before another only if its end happened
            before the other's beginning, in C11's sense: threads that have not heard of each other cannot tell
    talk    whoever begins a call has been told of all calls that have ended, so that their order counts again
    weaken  accessors of atomics.h with weaker orders than their own, by name
    """

    subject: str
    threads: Sequence[Sequence[Operation]]
    parameters: tuple[int, ...] = ()
    before: Sequence[Operation] = ()
    after: Sequence[Operation] = ()
    weak: bool = False
    talk: bool = False
    weaken: dict[str, str] = field(default_factory=dict, hash=False)

    def calls(self) -> list[tuple[int, Operation]]:
        """All calls with their threads, as the C side wants them."""
        inside = [(number, call) for number, calls in enumerate(self.threads, 1) for call in calls]
        return [(0, call) for call in self.before] + inside + [(0, call) for call in self.after]

    def __repr__(self) -> str:
        """What makes it again, without the defaults."""
        parts = [repr(self.subject), repr([list(map(tuple, calls)) for calls in self.threads])]
        parts += [
            f"{name}={value!r}"
            for name in ("parameters", "before", "after", "weak", "talk", "weaken")
            if (value := getattr(self, name))
        ]
        return f"Program({', '.join(parts)})"


class Prepared:
    """A program in C's memory. Holds the library's lock while it is used as a context."""

    def __init__(self, program: Program, build: Library | None) -> None:
        self.library = build or library()
        self.calls = program.calls()
        ffi = self.library.ffi
        operations = self.library.subjects().get(program.subject)
        if operations is None:
            raise ValueError(f"there is no subject {program.subject!r}; there are {list(self.library.subjects())}")
        self._call = ffi.new("model_call[]", [_call(operations, thread, call) for thread, call in self.calls])
        self._subject = ffi.new("char[]", program.subject.encode())
        self.program = ffi.new(
            "model_program *",
            {
                "subject": self._subject,
                "parameter": list(program.parameters),
                "threads": len(program.threads),
                "calls": len(self.calls),
                "call": self._call,
                "weak": program.weak,
                "talk": program.talk,
            },
        )
        self._weaken = program.weaken

    def decisions(self, decisions: Sequence[Decision | tuple[Any, ...]]) -> Any:
        """The decisions as an array."""
        each = [Decision(*d) for d in decisions]
        return self.library.ffi.new("model_decision[]", [(d.step, KINDS.index(d.kind), d.value) for d in each])

    def text_at(self, address: int) -> str:
        """A C string that lives as long as the library."""
        return self.library.text(self.library.ffi.cast("char *", address))

    def __enter__(self) -> Any:
        self.library.lock.acquire()
        self.library.weaken(self._weaken)
        return self.library.lib

    def __exit__(self, *_: object) -> None:
        self.library.weaken({})
        self.library.lock.release()


def _call(operations: dict[str, tuple[str, ...]], thread: int, call: Operation) -> tuple[int, int, list[int]]:
    name, arguments = call[0], list(call[1:])
    if name not in operations or len(arguments) != len(operations[name]):
        known = ", ".join(f"{n}({', '.join(a)})" for n, a in operations.items())
        raise ValueError(f"{call} is none of {known}")
    return thread, list(operations).index(name), arguments
