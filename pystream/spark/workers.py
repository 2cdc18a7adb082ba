"""What a task does for the Python process that it runs in, which Spark uses for many tasks."""

from __future__ import annotations

import gc
import sys

_known = 0  # modules that were there the last time


def settle() -> None:
    """Keep the garbage collector away from what stays: called when a task begins.

    Spark's daemon collects garbage after every task, which looks at every object of every module: 50 ms, as long as it
    takes to fold two million rows. Modules stay anyway, so they are put aside, again only if there are new ones.
    """
    global _known  # noqa: PLW0603 - there is one process
    if len(sys.modules) != _known:
        _known = len(sys.modules)
        gc.freeze()
