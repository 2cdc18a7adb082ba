"""What the numbers that a call returns mean: results as the models of pystream.verify.linearizability have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.verify.linearizability import CLOSED, DISORDER, END, FULL, NO_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

#: ps_code of csrc/pystream.h. None: it did what it was asked to, or there was nothing.
CODES = {0: None, 1: None, 2: END, 4: NO_MEMORY, 6: DISORDER, 7: CLOSED}


def result_of(subject: str, name: str, numbers: list[int]) -> Any:
    """The result of one call."""
    decode = DECODERS.get((subject, name)) or DECODERS.get((subject, ""), _plain)
    return decode(numbers)


def _plain(numbers: list[int]) -> Any:
    return numbers[0] if len(numbers) == 1 else tuple(numbers) or None


def _pop(numbers: list[int]) -> int | None:
    return numbers[0] if numbers[0] >= 0 else None


def _code(numbers: list[int]) -> Any:
    """A code, and what came with it if all went well."""
    code, *values = numbers
    return tuple(values) if values else CODES[code]


def _run(numbers: list[int]) -> Any:
    code, *rest = numbers
    return (rest[0], tuple(zip(rest[1::2], rest[2::2], strict=True))) if rest else CODES[code]


def _block(numbers: list[int]) -> Any:
    code, *rest = numbers
    return tuple(zip(rest[::3], rest[1::3], rest[2::3], strict=True)) if rest else CODES[code]


def _winset(numbers: list[int]) -> Any:
    code, *rest = numbers
    return (rest[0], dict(zip(rest[1::2], rest[2::2], strict=True))) if rest else CODES[code]


def _window(numbers: list[int]) -> Any:
    return numbers[1] if len(numbers) > 1 else CODES[numbers[0]]


def _taken(numbers: list[int]) -> int | None:
    return numbers[1] if numbers[0] else None


#: By subject and operation; the operation "" stands for all others of the subject.
DECODERS: dict[tuple[str, str], Callable[[list[int]], Any]] = {
    ("stack", "pop"): _pop,
    ("t_gate", ""): _code,
    ("w_hive", ""): _code,
    ("w_hive", "get_next_winset"): _winset,
    ("run_gate", ""): _code,
    ("run_gate", "get_run"): _run,
    ("run_gate", "get_block"): _block,
    ("pane_hive", ""): _code,
    ("pane_hive", "get_next_winset"): _winset,
    ("win_set", ""): _window,
    ("ms_queue", "enqueue"): lambda numbers: None if numbers[0] else FULL,
    ("ms_queue", "dequeue"): _taken,
    ("ms_queue", "peek"): _taken,
    ("ms_queue", "is_empty"): lambda numbers: bool(numbers[0]),
}
