"""What the numbers that a subject's call returns mean: the results as the models of pystream.linearizability have them."""

from __future__ import annotations

from typing import Any


def result_of(subject: str, name: str, numbers: list[int]) -> Any:
    """The result of one call."""
    decode = DECODERS.get((subject, name))
    if decode is not None:
        return decode(numbers)
    return numbers[0] if len(numbers) == 1 else tuple(numbers) or None


def _pop(numbers: list[int]) -> int | None:
    return numbers[0] if numbers[0] >= 0 else None


DECODERS = {("stack", "pop"): _pop}
