"""Small disks to fill up and to write-protect: file systems in memory, mounted for a test."""

from __future__ import annotations

import errno
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Disk:
    """A folder on a disk of its own."""

    path: Path

    def fill(self, left: int = 0) -> None:
        """Leave so many bytes, about."""
        filler = self.path / ".filler"
        with filler.open("wb", buffering=0) as out:
            try:
                while out.write(bytes(1 << 16)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            out.truncate(max(0, out.tell() - left))

    def free(self) -> None:
        """Make room again."""
        (self.path / ".filler").unlink()

    @contextmanager
    def protected(self) -> Iterator[None]:
        """Nobody may write, not even root: the same disk, mounted once more on top of itself."""
        _call("mount", "--bind", str(self.path), str(self.path))
        try:
            _call("mount", "-o", "remount,bind,ro", str(self.path))
            yield
        finally:
            _call("umount", "-l", str(self.path))

    @contextmanager
    def filled(self, left: int = 0) -> Iterator[None]:
        """There is no room for more than so many bytes, about."""
        self.fill(left)
        try:
            yield
        finally:
            self.free()


@contextmanager
def small_disk(folder: Path, size: int = 8 << 20) -> Iterator[Disk]:
    """A disk of so many bytes, mounted at a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield Disk(folder)
    finally:
        _call("umount", "-l", str(folder))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
