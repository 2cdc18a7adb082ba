"""Which files a stream of files has had, and which come next.

A batch of files is noted before it is read and counts as taken when its result is stored. A run that was killed in
between finds the note, and takes the very same files again: each file is in one batch, whatever happens.
"""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pystream.errors import PystreamError
from pystream.whole_file import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self


class Intake:
    """The notes in a checkpoint, for one run at a time; batches are numbered from 0.

    Two runs at once would take the same files. The lock is the kernel's: it goes with the process, however that ends.
    """

    def __init__(self, checkpoint: Path, engine: str) -> None:
        self._folder = checkpoint / "files"
        self._schema = checkpoint / "schema.arrow"
        make_folder(self._folder)
        self._lock = (checkpoint / "lock").open("w")
        try:
            self._claim(checkpoint, engine)
        except BaseException:
            self._lock.close()
            raise

    def _claim(self, checkpoint: Path, engine: str) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PystreamError(f"{checkpoint}: another run is at it; wait until it has ended") from error
        note = checkpoint / "engine"
        if not note.exists():
            write_whole(note, engine)
        elif (begun := note.read_text()) != engine:
            raise PystreamError(f"{checkpoint}: this stream was begun with engine = {begun!r} and goes on with it")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def types(self, given: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
        """The types of columns: those of the first batch, which later ones are read in, or else those given."""
        if not self._schema.exists():
            return given
        return {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(self._schema.read_bytes()))}

    def keep_types(self, schema: pa.Schema) -> None:
        """Note the types of the first batch."""
        if not self._schema.exists():
            write_whole(self._schema, schema.serialize().to_pybytes())

    def batches(self, files: Sequence[str], taken: int) -> Iterator[tuple[int, list[str]]]:
        """The batches from number `taken` on: one that was under way, then the files that are new, as one."""
        notes = sorted(self._folder.glob("*.json"))
        for number, note in enumerate(notes[taken:], taken):
            yield number, [_unchanged(file) for file in json.loads(note.read_text())]
        seen = {file["path"] for note in notes for file in json.loads(note.read_text())}
        new = [file for file in files if str(Path(file).resolve()) not in seen]
        if new:
            noted = [(str(Path(file).resolve()), Path(file).stat().st_size) for file in new]
            write_whole(
                self._folder / f"{len(notes):06d}.json",
                json.dumps([{"path": path, "size": size} for path, size in noted]),
            )
            yield len(notes), [path for path, _ in noted]


def _unchanged(file: dict[str, str | int]) -> str:
    path = Path(str(file["path"]))
    if not path.is_file():
        raise PystreamError(f"{path}: the file is gone, and the run that was to take it did not end")
    if path.stat().st_size != file["size"]:
        raise PystreamError(
            f"{path}: the file has changed since the run that was to take it: {file['size']} bytes then"
        )
    return str(path)
