"""What a TLC run found, and whether that is what the manifest says."""

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pystream.verify.tlc.manifest import ASSERT, DEADLOCK, PASS, Model
from pystream.verify.tlc.messages import PLAIN, Message, parse_messages, without_marks
from pystream.verify.tlc.runner import Finished

_ERROR_LINES = 8
_STATES_MIN_FOR_RATE = 1000


class Kind(enum.StrEnum):
    """How a run ended."""

    PASSES = "passes"
    INVARIANT = "invariant violated"
    PROPERTY = "property violated"
    TEMPORAL = "temporal property violated"
    DEADLOCK = "deadlock"
    ASSERT = "assertion failed"
    ERROR = "TLC error"
    MEMORY = "out of memory"
    CRASH = "TLC crashed"
    TIMEOUT = "time-out"


_ASSERTION = 2132
# The codes that decide, the strongest first (tlc2.output.EC).
_DECIDING: Sequence[tuple[Kind, frozenset[int]]] = (
    (Kind.MEMORY, frozenset({1001, 1002})),
    (Kind.ASSERT, frozenset({_ASSERTION})),
    (Kind.INVARIANT, frozenset({2107, 2110})),
    (Kind.PROPERTY, frozenset({2108, 2112})),
    (Kind.TEMPORAL, frozenset({2116})),
    (Kind.DEADLOCK, frozenset({2114})),
)
_SUCCESS = 2193
_FINISHED = 2186
_STATS = 2199
_DEPTH = 2194
_PARSE_FAILED = 3002


@dataclass(frozen=True)
class Result:
    """What TLC found. `outcome` is what the manifest calls it: pass, a property's name, Deadlock or Assert."""

    model: Model
    kind: Kind
    outcome: str
    detail: str
    distinct_states: int | None
    depth: int | None
    seconds: float
    messages: tuple[Message, ...]
    processor_s: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether TLC searched all there is and found no error."""
        return self.kind is Kind.PASSES

    @property
    def conclusive(self) -> bool:
        """Whether TLC came to a verdict, good or bad."""
        return self.kind not in (Kind.ERROR, Kind.MEMORY, Kind.CRASH, Kind.TIMEOUT)

    @property
    def states_per_s(self) -> float | None:
        """Return distinct states per second; a short run says more about the start of the JVM, and gives None."""
        found = self.distinct_states or 0
        return found / self.seconds if found >= _STATES_MIN_FOR_RATE else None


def read_result(model: Model, finished: Finished) -> Result:
    """Read what a finished TLC found."""
    messages = parse_messages(finished.output)
    kind = _kind(finished, messages)
    return Result(
        model=model,
        kind=kind,
        outcome=_outcome(model, kind, messages),
        detail=_detail(kind, finished, messages),
        distinct_states=_count(messages, _STATS, r"([\d,]+) distinct states found"),
        depth=_count(messages, _DEPTH, r"search is ([\d,]+)"),
        seconds=finished.seconds,
        messages=messages,
        processor_s=finished.processor_s,
    )


def _kind(finished: Finished, messages: Sequence[Message]) -> Kind:
    codes = {message.code for message in messages}
    if finished.code is None:
        return Kind.TIMEOUT
    if "OutOfMemoryError" in finished.output:
        return Kind.MEMORY
    for kind, deciding in _DECIDING:
        if codes & deciding:
            return kind
    if _FINISHED not in codes:
        return Kind.CRASH
    return Kind.PASSES if _SUCCESS in codes and finished.code == 0 else Kind.ERROR


def _outcome(model: Model, kind: Kind, messages: Sequence[Message]) -> str:
    fixed = {Kind.PASSES: PASS, Kind.DEADLOCK: DEADLOCK, Kind.ASSERT: ASSERT}
    if kind in fixed:
        return fixed[kind]
    if kind in (Kind.INVARIANT, Kind.PROPERTY):
        return _violated(model, messages)
    if kind is Kind.TEMPORAL and len(model.properties) == 1:
        return model.properties[0]
    return str(kind)


def _violated(model: Model, messages: Sequence[Message]) -> str:
    """Return the name of the violated property; a part of a refinement is named by its place in the text only."""
    errors = "\n".join(message.body for message in messages if message.is_error)
    found = re.search(r"(?:Invariant|[Pp]roperty) (.+?) is violated", errors)
    name = found[1] if found else "?"
    listed = model.properties or model.invariants
    return listed[0] if name not in model.invariants + model.properties and len(listed) == 1 else name


def _count(messages: Sequence[Message], code: int, pattern: str) -> int | None:
    for message in reversed(messages):
        found = re.search(pattern, message.body) if message.code == code else None
        if found:
            return int(found[1].replace(",", ""))
    return None


def _detail(kind: Kind, finished: Finished, messages: Sequence[Message]) -> str:
    """Return the first lines that tell a person what went wrong."""
    if kind is Kind.TIMEOUT:
        return f"stopped after {finished.seconds:.0f} s"
    if kind is Kind.CRASH:
        return f"exit code {finished.code}\n{_last_lines(finished.output)}"
    if kind is Kind.ERROR:
        return _error_lines(messages)
    if kind is Kind.MEMORY:
        return "the Java heap is too small: --jobs 1 gives one model all the memory there is"
    if kind is Kind.ASSERT:
        return next(message.body for message in messages if message.code == _ASSERTION)
    return ""


def _error_lines(messages: Sequence[Message]) -> str:
    if any(message.code == _PARSE_FAILED for message in messages):
        return _useful("\n".join(message.body for message in messages if message.code == PLAIN))
    return _useful("\n".join(message.body for message in messages if message.is_error))


# What TLC and its parser say around every error.
_NOISE = re.compile(
    r"\s*$|Parsing file|Semantic processing|Semantic errors:|\*\*\*|Residual stack|Module .* starting|Fatal errors"
    r"|tla2sany\.|TLC threw an unexpected|This was probably caused|See the User Output|The exception was a"
)


def _useful(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if not _NOISE.match(line)][:_ERROR_LINES])


def _last_lines(output: str) -> str:
    return "\n".join(without_marks(output)[-_ERROR_LINES:])


def differences(result: Result) -> list[str]:
    """Return what is not as the manifest says, a sentence each."""
    model = result.model
    if result.outcome != model.expected:
        return [f"must {_verdict(model.expected)}, but {_verdict(result.outcome, result.kind)}"]
    compared = [("distinct states", result.distinct_states, model.distinct_states)]
    if result.passed:  # How deep a search got before it failed says nothing.
        compared.append(("depth", result.depth, model.depth))
    wrong = [(what, found, told) for what, found, told in compared if found != told]
    return [f"{what}: {_shown(found)} found, {_shown(told)} in the manifest" for what, found, told in wrong]


def _verdict(outcome: str, kind: Kind | None = None) -> str:
    if kind is None:
        return outcome if outcome == PASS else f"fail with {outcome}"
    return str(kind) if kind is Kind.PASSES or outcome.lower() == kind else f"{kind}: {outcome}"


def _shown(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"
