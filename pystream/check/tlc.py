"""One TLC run: its command line, and its output (`-tool`, messages with codes) read into a Result."""

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pystream.check.java import Tools
from pystream.check.manifest import ASSERT, DEADLOCK, PASS, Model
from pystream.check.runner import Finished, Task

CONFIG = "model.cfg"
STATES = "states"
# TLC 2.15 appends this much to its trace file for each distinct state: the only live count it gives, because its own
# progress lines come once a minute.
_TRACE_BYTES_PER_STATE = 13
# Below this the JVM's second compiler costs more than it gains.
_SHORT_S = 2.0
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


# The codes that decide, the strongest first (tlc2.output.EC).
_DECIDING: Sequence[tuple[Kind, frozenset[int]]] = (
    (Kind.MEMORY, frozenset({1001, 1002})),
    (Kind.ASSERT, frozenset({2132})),
    (Kind.INVARIANT, frozenset({2107, 2110})),
    (Kind.PROPERTY, frozenset({2108, 2112})),
    (Kind.TEMPORAL, frozenset({2116})),
    (Kind.DEADLOCK, frozenset({2114})),
)
_SUCCESS = 2193
_FINISHED = 2186
_STATS = 2199
_DEPTH = 2194
_TEMPORAL_START = b"STARTMSG 2192"
_TEMPORAL_END = b"STARTMSG 2267"
_PARSE_FAILED = 3002
_PLAIN = 0


@dataclass(frozen=True)
class Message:
    """One message of TLC; `code` is 0 for text outside of messages (the parser's)."""

    code: int
    is_error: bool
    body: str


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


def task(tools: Tools, spec: Path, model: Model, folder: Path, heap_mb: int) -> Task:
    """Write the configuration into a new folder and return the command that checks the model there."""
    (folder / "tmp").mkdir(parents=True)
    (folder / CONFIG).write_text(model.cfg(), encoding="utf-8")
    command = [*_java(tools, model, folder, heap_mb), f"-DTLA-Library={spec}", "-cp", str(tools.jar), "tlc2.TLC"]
    # One worker, one polynomial, one seed and one liveness check: counts are the same to the digit on every run.
    command += ["-tool", "-workers", "1", "-fp", "0", "-seed", "0", "-lncheck", "final", "-checkpoint", "0"]
    command += ["-config", CONFIG, "-metadir", str(folder / STATES)]
    if model.covers:
        command += ["-coverage", "60"]
    if not model.deadlock:
        command += ["-deadlock"]
    return Task(model.name, [*command, model.module], folder, model.seconds or 0.0)


def _java(tools: Tools, model: Model, folder: Path, heap_mb: int) -> list[str]:
    flags = [f"-Xmx{heap_mb}m", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=1", "-XX:+ExitOnOutOfMemoryError"]
    # TLC unpacks its standard modules into java.io.tmpdir under fixed names: runs side by side would collide.
    flags += [f"-Djava.io.tmpdir={folder / 'tmp'}", "-XX:-UsePerfData"]
    if model.seconds is not None and model.seconds < _SHORT_S:
        flags += ["-XX:TieredStopAtLevel=1"]
    return [str(tools.java), *flags]


def states_so_far(folder: Path) -> int:
    """Return about how many distinct states a running TLC has found."""
    try:
        return sum(file.stat().st_size for file in (folder / STATES).glob("*/*.st")) // _TRACE_BYTES_PER_STATE
    except OSError:  # The folder may go while we look.
        return 0


def checks_liveness(output: bytes) -> bool:
    """Return whether a running TLC has all states and is now looking for bad cycles among them."""
    return output.rfind(_TEMPORAL_START) > output.rfind(_TEMPORAL_END)


_MARK = re.compile(r"@!@!@(START|END)MSG (-?\d+)(?::(\d+))? @!@!@\n?")


def parse_messages(output: str) -> tuple[Message, ...]:
    """Cut TLC's output into messages; one inside another comes before it, and stays part of its text."""
    return tuple(_cut(output))


def _cut(output: str) -> Iterator[Message]:
    opened: list[tuple[int, bool, list[str]]] = [(_PLAIN, False, [])]
    position = 0
    for mark in _MARK.finditer(output):
        opened[-1][2].append(output[position : mark.start()])
        position = mark.end()
        if mark[1] == "START":
            opened.append((int(mark[2]), mark[3] == "1", []))
        elif len(opened) > 1:
            yield from _close(opened)
    opened[-1][2].append(output[position:])
    # A killed TLC leaves messages open.
    while len(opened) > 1:
        yield from _close(opened)
    yield _message(*opened[0])


def _close(opened: list[tuple[int, bool, list[str]]]) -> Iterator[Message]:
    closed = opened.pop()
    if len(opened) > 1:
        opened[-1][2].extend(closed[2])
    yield _message(*closed)


def _message(code: int, is_error: bool, parts: Sequence[str]) -> Message:
    return Message(code, is_error, "".join(parts).strip("\n"))


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
    if kind is Kind.ASSERT:
        return next(message.body for message in messages if message.code in _DECIDING[1][1])
    return ""


def _error_lines(messages: Sequence[Message]) -> str:
    if any(message.code == _PARSE_FAILED for message in messages):
        return _useful("\n".join(message.body for message in messages if message.code == _PLAIN))
    return _useful("\n".join(message.body for message in messages if message.is_error))


# What TLC and its parser say around every error.
_NOISE = re.compile(
    r"\s*$|Parsing file|Semantic processing|Semantic errors:|\*\*\*|Residual stack|Module .* starting|Fatal errors"
    r"|tla2sany\.|TLC threw an unexpected|This was probably caused|See the User Output|The exception was a"
)


def _useful(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if not _NOISE.match(line)][:_ERROR_LINES])


def _last_lines(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip() and not _MARK.match(line)]
    return "\n".join(lines[-_ERROR_LINES:])


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
    return str(kind) if kind is Kind.PASSES or outcome == kind else f"{kind}: {outcome}"


def _shown(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"
