"""Where the rows of a pipeline go: a file, a folder of files, or a function of the user's."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from pystream.cli import rows_out
from pystream.errors import PystreamError
from pystream.whole_file import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pyarrow as pa

    from pystream.cli.pipelines.described import Pipeline

#: The batch of a stream's last rows, those of the windows that were open when it was finished.
REST = -1


def user_function(pipeline: Pipeline) -> Callable[[Any, int], object]:
    """The function that [sink] `call` names."""
    module, name = str(pipeline.call).split(":")
    sys.path.insert(0, str(pipeline.folder))
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PystreamError(f"[sink] call = {pipeline.call!r}: {error}") from error
    finally:
        sys.path.remove(str(pipeline.folder))
    if not callable(function):
        raise PystreamError(f"[sink] call = {pipeline.call!r} is not a function")
    found: Callable[[Any, int], object] = function
    return found


def part_of(out: Path, batch: int) -> Path:
    """The file of a batch of a stream; in the order of names, files hold the rows in order."""
    make_folder(out)
    return out / f"part-{'rest' if batch == REST else f'{batch:06d}'}{out.suffix}"


def write_file(out: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write the rows into a file that gets its name once it is whole; gives their number."""
    rows = 0
    with rows_out.to_file(out, schema) as writer:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    return rows
