"""Which files a path stands for: a file, a folder, a glob or a list of them, on any file system that pyarrow opens."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from pyarrow import fs

from pystream.errors import PystreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

Path = str | os.PathLike[str]

#: The formats by the endings of files; `format=` says it for others.
ENDINGS = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.bz2": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".jsonl.gz": "jsonl",
    ".ndjson.gz": "jsonl",
    ".json.gz": "jsonl",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))

#: What Hive writes for null.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class File:
    """A file as it was when it was listed. `number` counts the files in the order of their paths."""

    number: int
    path: str
    size: int
    modified_ns: int  # 0 where the file system does not say

    def hive(self) -> dict[str, str | None]:
        """The columns that the path gives: its folders of the form name=value."""
        pairs = [folder.split("=", 1) for folder in self.path.split("/")[:-1] if folder.find("=") > 0]
        return {unquote(name): None if value == HIVE_NULL else unquote(value) for name, value in pairs}

    def check_unchanged(self, files: fs.FileSystem) -> None:
        """Refuse a file that is gone or is another one by now: its rows would count twice, in part or not at all."""
        info = files.get_file_info(self.path)
        if info.type != fs.FileType.File:
            raise PystreamError(f"{self.path}: the file is gone since it was listed")
        if (info.size, _modified(info)) != (self.size, self.modified_ns):
            raise PystreamError(
                f"{self.path}: the file changed since it was listed: {self.size} bytes then and {info.size} now, "
                f"modified {self.modified_ns} and {_modified(info)} (ns since 1970)"
            )


def list_files(path: Path | Sequence[Path], filesystem: Any = None) -> tuple[fs.FileSystem, list[File]]:
    """The file system and the files, in the order of their paths; hidden ones (. and _) in folders are left out."""
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    found: dict[str, fs.FileInfo] = {}
    files = None
    for one in given:
        here, place = open_path(os.fspath(one), filesystem)
        if files is not None and not here.equals(files):
            raise PystreamError(f"{one}: all paths must lie in one file system")
        files = here
        found |= {info.path: info for info in _find(files, place, os.fspath(one))}
    if files is None or not found:
        raise PystreamError(f"{', '.join(map(str, given)) or 'an empty list'}: no files")
    infos = sorted(found.items())
    return files, [File(i, place, info.size, _modified(info)) for i, (place, info) in enumerate(infos)]


def format_of(path: str, format: str | None) -> str:
    """The format of a file, by its ending unless it is said."""
    if format is not None:
        return format
    for ending, known in ENDINGS.items():
        if path.lower().endswith(ending):
            return known
    raise PystreamError(f"{path}: the ending tells no format: name one with format=, {', '.join(map(repr, FORMATS))}")


def _modified(info: fs.FileInfo) -> int:
    return int(info.mtime_ns or 0)


def open_path(path: str, filesystem: Any) -> tuple[fs.FileSystem, str]:
    """The file system, and the path in it; plain paths are made absolute, as executors have folders of their own."""
    if filesystem is not None:
        known = isinstance(filesystem, fs.FileSystem)
        return filesystem if known else fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path
    if not re.match(r"[A-Za-z][\w+.-]+:/", path):
        return fs.LocalFileSystem(), os.path.abspath(path)  # noqa: PTH100 - a Path would lose a trailing pattern's form
    head, magic, tail = re.split(r"([*?\[].*)", path, maxsplit=1) if _has_magic(path) else (path, "", "")
    opened, place = fs.FileSystem.from_uri(_legal(head))
    slash = "/" if magic and head.endswith("/") and not place.endswith("/") else ""
    return opened, place + slash + magic + tail


def _legal(uri: str) -> str:
    """The URI with what Spark and people leave as it is, spaces say, in the form that URIs want."""
    return quote(re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", uri), safe="%/:?#[]@!$&'()*+,;=~")


def _has_magic(path: str) -> bool:
    return re.search(r"[*?\[]", path) is not None


def _find(files: fs.FileSystem, place: str, said: str) -> list[fs.FileInfo]:
    info = files.get_file_info(place)
    if info.type == fs.FileType.File:
        return [info]
    if info.type == fs.FileType.Directory:
        return _below(files, place)
    if not _has_magic(place):
        raise PystreamError(f"{said}: no such file or folder")
    return _matching(files, place)


def _below(files: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    """The files in a folder and the folders in it, without the hidden ones."""
    infos = files.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    skip = len(folder.rstrip("/")) + 1
    shown = (i for i in infos if not any(p.startswith((".", "_")) for p in i.path[skip:].split("/")))
    return [i for i in shown if i.type == fs.FileType.File]


def _matching(files: fs.FileSystem, pattern: str) -> list[fs.FileInfo]:
    """The files that a glob matches, and those in folders that it matches."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if _has_magic(part))
    base = "/".join(parts[:fixed]) or "/"
    return [i for i in _below(files, base) if _matches(i.path.split("/")[fixed:], parts[fixed:])]


def _matches(path: list[str], pattern: list[str]) -> bool:
    """Whether the pattern matches the path or a folder above it; ** stands for any number of folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(path[i:], pattern[1:]) for i in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])
