"""TLC's output in tool mode, cut into messages: each has a code (tlc2.output.EC names them)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# The code of text outside of messages: the parser's.
PLAIN = 0
_MARK = re.compile(r"@!@!@(START|END)MSG (-?\d+)(?::(\d+))? @!@!@\n?")


@dataclass(frozen=True)
class Message:
    """One message of TLC; `is_error` as TLC itself ranks it."""

    code: int
    is_error: bool
    body: str


def parse_messages(output: str) -> tuple[Message, ...]:
    """Cut TLC's output into messages; one inside another comes before it, and stays part of its text."""
    return tuple(_cut(output))


def _cut(output: str) -> Iterator[Message]:
    opened: list[tuple[int, bool, list[str]]] = [(PLAIN, False, [])]
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


def without_marks(output: str) -> list[str]:
    """Return the lines of an output that say something."""
    return [line for line in output.splitlines() if line.strip() and not _MARK.match(line)]
