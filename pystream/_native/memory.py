"""What the C core has allocated, and a switch that makes allocations fail. For tests."""

from __future__ import annotations

from pystream._native.extension import lib


def memory_live() -> int:
    """How many allocations of the C core are alive."""
    return int(lib.ps_memory_live())


def memory_fail_after(allocations: int) -> None:
    """Fail the n-th allocation from now and all after it; 0 switches it off. For tests."""
    lib.ps_memory_fail_after(allocations)
