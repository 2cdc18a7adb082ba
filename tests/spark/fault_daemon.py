"""Python on the executors, with faults: a process dies at a place in pystream's code once a test has asked for it.

Spark runs this module instead of its own daemon (spark.python.daemon.module). A test asks for a fault with an empty
file, named `place.victim`, in the folder that the environment names; whoever comes to the place first takes it away and
kills the victim, the Python worker itself or the executor's Java.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

FOLDER = "PYSTREAM_FAULTS_ARMED"
DONE = ".done"


def strike(place: str) -> None:
    """Kill what is asked to be killed here."""
    for victim in ("worker", "executor"):
        armed = Path(os.environ[FOLDER], f"{place}.{victim}")
        try:
            armed.rename(f"{armed}{DONE}")
        except FileNotFoundError:
            continue
        daemon = os.getppid()
        java = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(os.getpid() if victim == "worker" else java, signal.SIGKILL)


def faulty(owner: type, name: str, place: str, when=lambda _: True) -> None:
    """Make a method a place where faults strike: in the midst of a task, before its result is there."""
    method = getattr(owner, name)

    def struck(self, *args, **kwargs):
        if when(self):
            strike(place)
        return method(self, *args, **kwargs)

    setattr(owner, name, struck)


def main() -> None:
    from pyspark.daemon import manager  # noqa: PLC0415 - what this stands in front of

    from pystream.partials import PackedCombine, PackedFold  # noqa: PLC0415
    from pystream.spark.stream.shard import Shard  # noqa: PLC0415

    faulty(PackedFold, "finish", "fold")
    faulty(PackedCombine, "finish", "combine")
    faulty(Shard, "step", "step", when=lambda shard: shard.saved.windows)  # after a micro-batch that was committed
    manager()


if __name__ == "__main__":
    main()
