"""A few processes side by side, longest first; an interrupt leaves neither processes nor files behind.

One thread does everything: it starts processes that write to files, looks at them every few milliseconds, and reads a
file once its process has ended. Signals only set a flag, so that no interrupt can fall between a start and its entry
in the list of what runs.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

OUTPUT = "output.txt"
_LOOK_EVERY_S = 0.05

#: TLC was seen to fall asleep for good: its main thread waited for the worker to pause, which it did already (by their
#: stacks, a wake-up missed in StateQueue.suspendAll). A process that has used less than this of the processor for so
#: long is started again, so many times in all.
_ASLEEP_S = 60.0
_ASLEEP_USED_S = 0.5
_STARTS = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal ended the run. To callers that know nothing of it, such as pytest, it is Ctrl-C."""

    def __init__(self, signum: int) -> None:
        """Keep the signal: the exit code names it."""
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass(frozen=True)
class Task:
    """A command to run in a folder of its own; `product` is a file there whose text is wanted afterwards."""

    name: str
    command: Sequence[str]
    folder: Path
    seconds: float = 0.0
    product: str | None = None


@dataclass
class Running:
    """A started task."""

    task: Task
    process: "subprocess.Popen[bytes]"
    started: float = field(default_factory=time.monotonic)
    processor_s: float = 0.0
    looked: float = field(default_factory=time.monotonic)
    used_s: float = 0.0

    def ended(self) -> bool:
        """Whether the process has ended; if so, `processor_s` is what it took."""
        before = _children_s()
        if self.process.returncode is None and self.process.poll() is not None:
            # This thread alone waits for children, one at a time: what came to their sum is this one's.
            self.processor_s = _children_s() - before
        return self.process.returncode is not None

    def asleep(self) -> bool:
        """Whether the process has done next to nothing since it was looked at a while ago."""
        if time.monotonic() - self.looked < _ASLEEP_S:
            return False
        before, self.looked, self.used_s = self.used_s, time.monotonic(), _used_s(self.process.pid)
        return self.used_s - before < _ASLEEP_USED_S

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def kill(self) -> None:
        """End the process and its children, and wait until it is gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True)
class Finished:
    """What came of a task; `code` is None when its time was up.

    `seconds` is by the clock; `processor_s` does not grow when others use the machine too.
    """

    task: Task
    code: int | None
    output: str
    seconds: float
    product: str = ""
    processor_s: float = 0.0


class Watcher(Protocol):
    """Is told what happens."""

    def tick(self, running: Sequence[Running]) -> None:
        """Look at what runs; called many times a second."""

    def done(self, finished: Finished) -> None:
        """Take note of the end of a task."""


@contextmanager
def signals_noted() -> Iterator[Callable[[], int | None]]:
    """Turn signals into a flag: the function given returns the first one that came, or None.

    One that the body did not act on is raised at its end. Outside the main thread Python lets nobody set handlers;
    there the caller's own handling stays.
    """
    came: list[int] = []

    def note(signum: int, _frame: FrameType | None) -> None:
        came.append(signum)

    here = threading.current_thread() is threading.main_thread()
    # A signal that was ignored from outside (nohup) stays ignored.
    taken = [number for number in _SIGNALS if here and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in taken}
    try:
        yield lambda: came[0] if came else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:  # While the last files were put away: whoever sent it still wants an end.
        raise Interrupted(came[0])


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pystream-check-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    tasks: Sequence[Task],
    slots: int,
    watcher: Watcher,
    interrupted: Callable[[], int | None],
    timeout_s: float | None = None,
) -> dict[str, Finished]:
    """Run all tasks, `slots` at a time, and return what came of each by name."""
    waiting = sorted(tasks, key=lambda task: task.seconds)
    running: list[Running] = []
    finished: dict[str, Finished] = {}
    starts: Counter[str] = Counter()
    try:
        while waiting or running:
            signum = interrupted()
            if signum is not None:
                raise Interrupted(signum)
            while waiting and len(running) < slots:
                running.append(_start(waiting.pop()))
                starts[running[-1].task.name] += 1
            for ended in [one for one in running if _ended(one, timeout_s)]:
                running.remove(ended)
                finished[ended.task.name] = _finish(ended)
                watcher.done(finished[ended.task.name])
            for asleep in [one for one in running if starts[one.task.name] < _STARTS and one.asleep()]:
                running.remove(asleep)
                asleep.kill()
                waiting.append(asleep.task)
            watcher.tick(running)
            time.sleep(_LOOK_EVERY_S)
    finally:
        for left in running:
            left.kill()
    return finished


def _start(task: Task) -> Running:
    with (task.folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command lines
            task.command,
            cwd=task.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Its own process group: Ctrl-C reaches us alone, and we end the group.
            start_new_session=True,
        )
    return Running(task, process)


def _ended(one: Running, timeout_s: float | None) -> bool:
    return one.ended() or (timeout_s is not None and one.elapsed() > timeout_s)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _used_s(pid: int) -> float:
    """The processor time of a process so far; where there is no /proc, as if it were never idle."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except OSError:
        return float("inf")
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _finish(ended: Running) -> Finished:
    code = ended.process.poll()
    seconds = ended.elapsed()
    ended.kill()
    task = ended.task
    output = (task.folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
    product = (task.folder / task.product).read_text(encoding="utf-8") if task.product else ""
    # A hundred models may run after this one: their states should not pile up on the disk.
    shutil.rmtree(task.folder, ignore_errors=True)
    return Finished(task, code, output, seconds, product, ended.processor_s)
