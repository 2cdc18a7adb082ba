"""Raise an exception at any point of a call at which Python itself could raise one from outside, such as Ctrl-C.

CPython looks for signals (and for the exceptions that one thread sets in another) at a few places only: where a Python
function begins or a generator goes on, when a call of anything but a plain Python function returns, and where a loop
turns. Only there can KeyboardInterrupt come, or a TimeoutError out of a handler of SIGALRM; between them nothing can:
a result that `popleft()` gives can be lost, one that `return` hands to a plain caller cannot. These are the points of a
sweep, in all frames of the package. (Not the start of a called function's caller again: plain calls are inlined.)

A tracer cannot see what a call calls. It was a plain function if a frame began below it that is neither a generator
nor a constructor, and the profiler did not tell of a C function.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pystream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

HOME = str(Path(pystream.__file__).parent)
CALLS = ("CALL", "CALL_KW")  # of a plain function they are none
POINTS = ("CALL_FUNCTION_EX", "JUMP_BACKWARD")
NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
ENTRY = -1


class Point(NamedTuple):
    """Behind which instruction of which function, and for which time it is executed there."""

    code: CodeType
    offset: int
    time: int

    def __str__(self) -> str:
        line = next((line for start, end, line in self.code.co_lines() if start <= self.offset < end), None)
        where = "entry" if self.offset == ENTRY else f"line {line}"
        return f"{Path(self.code.co_filename).name}:{self.code.co_qualname} {where}, time {self.time}"


class _Tracer:
    """Notes all points, or raises at one of them."""

    def __init__(self, target: Point | None, error: BaseException | None) -> None:
        self.points: list[Point] = []
        self.raised = False
        self._target, self._error = target, error
        self._times: Counter[tuple[CodeType, int]] = Counter()
        self._before: dict[FrameType, int] = {}  # offset of the instruction that was executed last
        self._plain: set[FrameType] = set()  # its call was of a plain function, as far as is known
        self._frames: list[FrameType] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._profile)
        sys.settrace(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        sys.setprofile(None)
        for frame in self._frames:  # a generator's frame that is still traced would never be freed
            frame.f_trace = None
        self._frames.clear()

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event == "c_return":
            self._plain.discard(frame)

    def _begin(self, frame: FrameType, event: str, _arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        caller = frame.f_back
        if caller in self._before and not code.co_flags & NOT_PLAIN and code.co_name not in ("__init__", "__new__"):
            self._plain.add(caller)
        if event != "call" or not code.co_filename.startswith(HOME):
            return None
        if self._error is not None and code.co_flags & NOT_PLAIN:
            self._frames.append(frame)
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self._before.pop(frame, None)
        self._point(code, ENTRY)
        return self._step

    def _step(self, frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        if event == "return":
            self._before.pop(frame, None)
        elif event == "opcode":
            before = self._before.get(frame)
            self._before[frame] = frame.f_lasti
            if before is not None and _is_point(frame.f_code, before, plain=frame in self._plain):
                self._point(frame.f_code, before)
            self._plain.discard(frame)
        return self._step

    def _point(self, code: CodeType, offset: int) -> None:
        self._times[code, offset] += 1
        point = Point(code, offset, self._times[code, offset])
        self.points.append(point)
        if point == self._target and self._error is not None:
            self.raised = True
            sys.settrace(None)
            sys.setprofile(None)
            raise self._error


_ops: dict[CodeType, bytes] = {}


def _is_point(code: CodeType, offset: int, *, plain: bool) -> bool:
    name = dis.opname[_ops.setdefault(code, code.co_code)[offset]]
    return name in POINTS or (name in CALLS and not plain)


def points_of(call: Callable[[], object]) -> list[Point]:
    """All points of a call, in their order."""
    with _Tracer(None, None) as tracer:
        call()
    return tracer.points


def chosen(points: list[Point], times: int | None) -> Iterator[Point]:
    """Of each place in the code the first and the last times that it is passed; None: all."""
    last = {(p.code, p.offset): p.time for p in points}
    for p in points:
        if times is None or p.time <= times or p.time > last[p.code, p.offset] - times:
            yield p


def interrupted(call: Callable[[], object], at: Point, error: BaseException) -> bool:
    """Call, raise at the point, and swallow what comes out if it is that; whether it did."""
    with _Tracer(at, error) as tracer, _quiet(error):
        try:
            call()
        except BaseException as raised:
            if not _is_or_has(raised, error):
                raise
            return True
    # A generator that is dropped looks to a tracer as if it went on; Python does not look for signals then.
    assert not tracer.raised or (at.offset == ENTRY and at.code.co_flags & NOT_PLAIN), f"{error!r} vanished at {at}"
    return False


@contextmanager
def _quiet(error: BaseException) -> Iterator[None]:
    """Let it be raised where nobody can catch it: see above."""
    usual = sys.unraisablehook
    sys.unraisablehook = lambda what: None if what.exc_value is error else usual(what)
    try:
        yield
    finally:
        sys.unraisablehook = usual


def _is_or_has(raised: BaseException | None, error: BaseException) -> bool:
    while raised is not None and raised is not error:
        raised = raised.__cause__ or raised.__context__
    return raised is error
