"""Small disks and folders that refuse everything, for tests.

A disk is a tmpfs of its own, where mounting is allowed. Elsewhere a limit on the size of files stands in for the full
disk, and permissions, or a folder of the kernel's, for the read-only one: no test needs to be skipped.
"""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = 4096


class Disk:
    """A folder in which only so much can be written."""

    def __init__(self, folder: Path, mounted: bool) -> None:
        self.folder = folder
        self.fill = folder / "fill"
        self.mounted = mounted

    @contextmanager
    def room(self, pages: int) -> Iterator[None]:
        """Meanwhile nothing fits but so many pages: in all on a disk, in one file where a limit stands in for it."""
        if not self.mounted:
            with _limited(pages * PAGE):
                yield
            return
        space = os.statvfs(self.folder)
        self.fill.write_bytes(bytes((space.f_bavail - pages) * space.f_frsize))
        try:
            yield
        finally:
            self.fill.unlink()

    @contextmanager
    def protected(self) -> Iterator[None]:
        """Meanwhile nothing can be changed, or, where a limit stands in for it, nothing fits into any file."""
        with read_only(self.folder) if self.mounted else _limited(0):
            yield

    def files(self) -> dict[str, bytes]:
        """What is there, but for the filling."""
        found = (p for p in self.folder.rglob("*") if p.is_file() and p != self.fill)
        return {p.relative_to(self.folder).as_posix(): p.read_bytes() for p in found}


@contextmanager
def small_disk(folder: Path, megabytes: int = 4) -> Iterator[Disk]:
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs") as mounted:
        yield Disk(folder, mounted)


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """The folder, with what is in it, such that nothing can be changed; another one where that is not possible."""
    with _mounted(folder, "--bind", str(folder)) as mounted:  # once more on top of itself
        if mounted:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
            yield folder
        elif os.geteuid() == 0:
            yield Path("/proc")
        else:
            folder.chmod(0o555)
            yield folder
            folder.chmod(0o755)


@contextmanager
def _mounted(folder: Path, *what: str) -> Iterator[bool]:
    command = ["mount", *what, str(folder)]
    done = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "--lazy", folder], check=True)  # a failed writer may have a file open still


@contextmanager
def _limited(size: int) -> Iterator[None]:
    """Meanwhile no file of this process, or of those that it has started, grows beyond so many bytes."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in _family(os.getpid())}
    try:
        for pid, (_, most) in before.items():
            _set_limit(pid, (size, most))
        yield
    finally:
        for pid in {*before, *_family(os.getpid())}:  # those that came meanwhile have taken the limit over
            _set_limit(pid, before.get(pid, before[os.getpid()]))


def _set_limit(pid: int, limits: tuple[int, int]) -> None:
    with suppress(ProcessLookupError):  # it has ended
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def _family(pid: int) -> list[int]:
    """The process and all below it."""
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid, *(one for child in children for one in _family(child))]
