"""One program run many times: verdict, history and the accesses as numbers, in a small part of the time of `run`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pystream.verify.scheduler._library import VERDICTS, Library
from pystream.verify.scheduler.program import Decision, Prepared, Program
from pystream.verify.scheduler.run import history_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pystream.verify.linearizability import Call

#: model_event of csrc/model/model.h.
EVENT = struct.Struct("4i4P2i2Q")


class Point(NamedTuple):
    """One access. `label` and `address` are numbers of this execution: only whether they are equal counts."""

    step: int
    thread: int
    call: int
    kind: str
    label: int
    address: int


@dataclass(frozen=True)
class Sketch:
    """An execution without its text. What it is made of is decoded when it is asked for."""

    program: Program
    decisions: list[Decision]
    verdict: str
    steps: int
    answers: bytes = field(repr=False)  # equal answers: equal histories
    _events: bytes = field(repr=False, compare=False)
    _prepared: Prepared = field(repr=False, compare=False)

    @cached_property
    def _history(self) -> tuple[list[Call], list[frozenset[int]]]:
        if not self.answers:
            return [], []
        answers = self._prepared.library.ffi.from_buffer("model_answer[]", self.answers)
        return history_of(self.program.subject, self._prepared.calls, answers)

    @property
    def history(self) -> list[Call]:
        """The calls that began, by invocation."""
        return self._history[0]

    @property
    def after(self) -> list[frozenset[int]]:
        """For each call of the history, which others ended before it began."""
        return self._history[1]

    @cached_property
    def points(self) -> list[Point]:
        """The accesses, while the threads run."""
        kinds: dict[int, str] = {}
        found = []
        for step, thread, call, _, _, label, accessor, kind, _, _, address, _ in EVENT.iter_unpack(self._events):
            if step >= 0 and accessor:
                if kind not in kinds:
                    kinds[kind] = self._prepared.text_at(kind)
                found.append(Point(step, thread, call, kinds[kind], label, address))
        return found


class Sketcher:
    """Runs a program under one list of decisions after the other."""

    def __init__(self, program: Program, build: Library | None = None) -> None:
        self.program = program
        self._prepared = Prepared(program, build)
        self._ffi = self._prepared.library.ffi
        self._outcome = self._ffi.new("model_outcome *")
        self._answers_bytes = len(self._prepared.calls) * self._ffi.sizeof("model_answer")

    def __call__(self, decisions: Sequence[Decision | tuple[Any, ...]] = ()) -> Sketch:
        """Run it once."""
        made = [Decision(*d) for d in decisions]
        outcome, array = self._outcome, self._prepared.decisions(made)
        with self._prepared as lib:
            lib.model_run(self._prepared.program, array, len(array), outcome)
            answers = self._bytes(outcome.answer, self._answers_bytes)
            events = self._bytes(outcome.event, outcome.events * EVENT.size)
        verdict = VERDICTS[outcome.verdict]
        return Sketch(self.program, made, verdict, outcome.steps, answers, events, self._prepared)

    def _bytes(self, pointer: Any, size: int) -> bytes:
        return bytes(self._ffi.buffer(pointer, size)) if pointer and size else b""
