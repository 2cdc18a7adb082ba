"""What a task does for the Python process that it runs in, which Spark uses for many tasks."""

from __future__ import annotations

import gc
import secrets
import sys
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext, cloudpickle

from pystream import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

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


def for_executors(task: Task) -> Task:
    """The task as executors get it: where pystream is missing, or is another version, it says so in one sentence.

    Spark sends functions of modules by name. This one is sent as it is, and unpacks the task when pystream is there.
    """
    packed, version = cloudpickle.dumps(task), __version__  # type: ignore[no-untyped-call]

    def run(batches: Any) -> Any:
        import pickle  # noqa: PLC0415 - on the executor
        import sys  # noqa: PLC0415

        how = "install the driver's version there, or send a packed environment (--archives env.tar.gz#env)"
        try:
            from pystream import __version__ as found  # noqa: PLC0415
        except ImportError:
            missing = f"pystream is not installed for the Python of this executor, {sys.executable}"
            raise ImportError(f'{missing}: {how}: pip install "pystream-core[spark]=={version}"') from None
        if found != version:
            differs = f"this executor has pystream {found}, the driver has {version}"
            raise ImportError(f"{differs}: {how}")
        return pickle.loads(packed)(batches)  # noqa: S301 - what the driver sent

    return run
