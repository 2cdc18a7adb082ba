"""Small disks and folders that refuse everything, for tests.

As root a disk is a tmpfs of its own. Where nothing can be mounted, a limit on the size of files stands in for the full
disk, and permissions, or a folder of the kernel's, for the read-only one: no test needs to be skipped.
"""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import contextmanager
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
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (pages * PAGE, before[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            return
        space = os.statvfs(self.folder)
        self.fill.write_bytes(bytes((space.f_bavail - pages) * space.f_frsize))
        try:
            yield
        finally:
            self.fill.unlink()

    def files(self) -> dict[str, bytes]:
        """What is there, but for the filling."""
        found = (p for p in self.folder.rglob("*") if p.is_file() and p != self.fill)
        return {p.relative_to(self.folder).as_posix(): p.read_bytes() for p in found}


@contextmanager
def small_disk(folder: Path, megabytes: int = 4) -> Iterator[Disk]:
    with _mounted(folder, f"size={megabytes}m") as mounted:
        yield Disk(folder, mounted)


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """The folder, with what is in it, such that nothing can be changed; another one where that is not possible."""
    keep = {p.name: p.read_bytes() for p in folder.iterdir()}
    with _mounted(folder, "size=4m") as mounted:
        if mounted:
            for name, content in keep.items():
                (folder / name).write_bytes(content)
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            yield folder
        elif os.geteuid() == 0:
            yield Path("/proc")
        else:
            folder.chmod(0o555)
            yield folder
            folder.chmod(0o755)


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "--lazy", folder], check=True)  # a failed writer may have a file open still
