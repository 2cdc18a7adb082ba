"""What a task does for the Python process that it runs in, which Spark uses for many tasks."""

from __future__ import annotations

import gc
import secrets
import sys

from pyspark import TaskContext

_known = 0  # modules that were there the last time


def settle() -> None:
    """Keep the garbage collector away from what stays: called when a task begins.

    Spark's daemon collects garbage after every task, which looks at every object of every module and can take longer
    than the task. Modules stay anyway, so they are put aside, again only if there are new ones.
    """
    global _known  # noqa: PLW0603 - there is one process
    if len(sys.modules) != _known:
        _known = len(sys.modules)
        gc.freeze()


def task_number() -> int:
    """The number of the task's partition; outside of a task any number of 31 bits.

    A task that Spark runs again must give the same bytes: Spark compares them with those of the first time, and fails a
    job whose later stages have begun with other ones. So what tasks give carries this number, and no random one.
    """
    context = TaskContext.get()
    return secrets.randbits(31) if context is None else context.partitionId()
