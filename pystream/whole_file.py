"""Files that are whole or not there: written under another name, made durable, and only then given their own.

A full disk, a read-only folder, Ctrl-C or a kill leave what was there before. Commands write their results through here
and nowhere else.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pystream.errors import PystreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What only a write can raise; anything else in the caller's block may come from what it reads.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give the name of a new, empty file to write to; it becomes `path` when the block ends without an error.

    That the folder cannot be written to, or the disk is full, is a PystreamError that names `path`.
    """
    if path.exists() and not path.is_file():
        yield path  # a terminal, a pipe or /dev/null: it has no half
        return
    target = Path(os.path.realpath(path))  # what a link points to, not the link, is replaced
    scratch = _scratch(target)
    try:
        with _refusing(path, always=True):
            scratch.touch()
        with _refusing(path, always=False):
            yield scratch
        with _refusing(path, always=True):
            _sync(scratch)
            scratch.replace(target)
        with suppress(OSError):  # some file systems do not sync folders; the file is whole either way
            _sync(target.parent)
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def write_whole(path: Path | str, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(Path(path)) as scratch:
        scratch.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_folder(path: Path) -> None:
    """Make the folder if need be, and refuse one that nothing can be written to: before the work, not after it."""
    with _refusing(path, always=True):
        path.mkdir(parents=True, exist_ok=True)
        _try(path / f".{os.getpid()}.writing")


def check_writable(path: Path) -> None:
    """Refuse a path that `write_whole` could not write to now."""
    if not path.exists() or path.is_file():
        with _refusing(path, always=True):
            _try(_scratch(Path(os.path.realpath(path))))


def _scratch(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.writing")


def _try(scratch: Path) -> None:
    scratch.touch()
    scratch.unlink()


@contextmanager
def _refusing(path: Path, *, always: bool) -> Iterator[None]:
    """Turn the system's refusal to write into an error that names the file."""
    try:
        yield
    except OSError as error:
        if not always and error.errno not in _NO_ROOM:
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PystreamError(f"{path} cannot be written: {reason}") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
