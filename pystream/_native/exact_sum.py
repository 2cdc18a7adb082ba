"""A handle of csrc/base/exact_sum.h, for tests."""

from __future__ import annotations

from pystream._native.extension import ffi, lib
from pystream._native.faults import raise_if_broken


class ExactSum:
    """The exact sum of floats, whatever the order; see csrc/base/exact_sum.h."""

    def __init__(self) -> None:
        self.pointer = ffi.gc(lib.ps_exact_sum_new(), lib.ps_exact_sum_free)

    def add(self, values: list[float]) -> None:
        """Add all values."""
        raise_if_broken(lib.ps_exact_sum_add_all(self.pointer, ffi.new("double[]", values), len(values)))

    def combine(self, other: ExactSum) -> None:
        """Add another sum."""
        raise_if_broken(lib.ps_exact_sum_combine(self.pointer, other.pointer))

    def round(self) -> float:
        """Give the double nearest to the exact sum."""
        return float(lib.ps_exact_sum_round(self.pointer))

    def mean(self, n: int) -> float:
        """Give the double nearest to the exact sum divided by n."""
        return float(lib.ps_exact_sum_mean(self.pointer, n))
