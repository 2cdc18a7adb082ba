"""For tests in which memory runs out, or must not grow."""

from __future__ import annotations

import gc
import itertools
import os
from pathlib import Path

from faults import record

from pystream import _native


def with_failing_memory(call) -> tuple[object, int]:
    """Let the n-th allocation of the C core and all later ones fail, for n = 1, 2, 3 ..., until the call gets through.

    Gives what the call gave and how many there were. All others must end in a MemoryError, and nothing may leak.
    """
    before = _native.memory_live()
    for n in itertools.count(1):
        _native.memory_fail_after(n)
        try:
            done = call()
        except MemoryError:
            pass
        else:
            record("allocation that fails, and all after it", tried=n - 1, survived=n - 1, lost=0, where="memory.py")
            return done, n
        finally:
            _native.memory_fail_after(0)
        if _native.memory_live() > before:
            gc.collect()
        assert _native.memory_live() <= before
    raise AssertionError


def resident_bytes() -> int:
    """How much memory the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
