"""One execution: what every call returned, when, and every access on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pystream.verify.linearizability import Call
from pystream.verify.scheduler._library import ORDERS, VERDICTS, Library
from pystream.verify.scheduler.program import Decision, Operation, Prepared, Program
from pystream.verify.scheduler.results import result_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Access(NamedTuple):
    """One line of the trace. Its kind is "call" or "return" for the ends of a call, "local" if that has no access."""

    step: int
    thread: int
    call: int
    kind: str
    accessor: str
    order: str
    where: str
    label: str
    cell: str
    value: str
    back: int


@dataclass(frozen=True)
class Run:
    """An execution: how it went, and everything to judge its history."""

    program: Program
    decisions: list[Decision]
    verdict: str
    text: str
    step: int
    steps: int
    gap: int
    history: list[Call]
    after: list[frozenset[int]]  # per call of the history: which others ended before it began
    trace: list[Access] = field(repr=False)

    @property
    def fine(self) -> bool:
        """Whether nothing was wrong with memory and progress."""
        return self.verdict == "fine"


def run(program: Program, decisions: Sequence[Decision | tuple[Any, ...]] = (), build: Library | None = None) -> Run:
    """Run the program once under these decisions. The same arguments always give the same execution."""
    made = [Decision(*d) for d in decisions]
    prepared = Prepared(program, build)
    ffi = prepared.library.ffi
    outcome, array = ffi.new("model_outcome *"), prepared.decisions(made)
    with prepared as lib:
        lib.model_run(prepared.program, array, len(array), outcome)
        history, after = history_of(program.subject, prepared.calls, outcome.answer) if outcome.answer else ([], [])
        names = _Names(prepared.library)
        trace = [_access(prepared.library, names, outcome.event[i]) for i in range(outcome.events)]
    verdict, text = VERDICTS[outcome.verdict], prepared.library.text(outcome.text)
    return Run(program, made, verdict, text, outcome.step, outcome.steps, outcome.gap, history, after, trace)


def history_of(
    subject: str, calls: list[tuple[int, Operation]], answers: Any
) -> tuple[list[Call], list[frozenset[int]]]:
    """The calls that began, by invocation, and for each of them the numbers of those that ended before it."""
    invoked = [answers[i].invoked for i in range(len(calls))]
    began = sorted((i for i in range(len(calls)) if invoked[i] >= 0), key=invoked.__getitem__)
    number = {i: n for n, i in enumerate(began)}
    ended = [answers[i].after for i in began]
    after = [frozenset(n for j, n in number.items() if before >> j & 1) for before in ended]
    return [_call(subject, *calls[i], answers[i]) for i in began], after


def _call(subject: str, thread: int, operation: Operation, answer: Any) -> Call:
    name, *arguments = operation
    if answer.returned < 0:
        return Call(thread, name, tuple(arguments), None, answer.invoked, None)
    result = result_of(subject, name, list(answer.result[0 : answer.results]))
    return Call(thread, name, tuple(arguments), result, answer.invoked, answer.returned)


class _Names:
    """Names of addresses in the model's memory: n2.3 is the third block that thread 2 allocated."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._room = library.ffi.new("char[]", 40)

    def __call__(self, address: int) -> str:
        length = self._library.lib.model_describe(address, self._room, len(self._room))
        return self._library.text(self._room) if length else ""

    def value(self, value: int) -> str:
        """A number as such; an address by its name, even if its lowest bits are marks."""
        if name := self(value):
            return name
        return str(value - (1 << 64) if value >> 63 else value)


def _access(library: Library, names: _Names, e: Any) -> Access:
    file = library.text(e.file)
    return Access(
        step=e.step,
        thread=e.thread,
        call=e.call,
        kind=library.text(e.access),
        accessor=library.text(e.accessor),
        order=ORDERS[e.order] if e.accessor else "",
        where=f"{file}:{e.line}" if file else "",
        label=library.text(e.label),
        cell=names(e.address) if e.address else "",
        value=names.value(e.value),
        back=e.back,
    )
