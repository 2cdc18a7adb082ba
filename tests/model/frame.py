"""What the tests of the structures with inputs and a reader have in common: how their programs are made."""

from __future__ import annotations

import itertools

import pytest

#: Calls of two inputs and a reader: up to three each, up to six together.
SIX_CALLS = pytest.mark.parametrize(
    "calls", [c for c in itertools.product(range(4), repeat=3) if sum(c) <= 6 and c[0] >= c[1] > 0]
)


def in_order(each, calls):
    """Every sequence of so many of these calls whose timestamps never fall and which goes on behind no close."""
    for sequence in itertools.product(each, repeat=calls):
        kinds = [c[0] for c in sequence]
        stamps = [c[2] for c in sequence if c[0] != "close"]
        if stamps == sorted(stamps) and "close" not in kinds[:-1]:
            yield list(sequence)


def side_by_side(input_calls, calls, gets):
    """The threads of every program in which input k makes calls[k] calls, and a reader these gets."""
    for sequences in itertools.product(*(list(input_calls(k, n)) for k, n in enumerate(calls))):
        yield [s for s in (*sequences, gets) if s]
