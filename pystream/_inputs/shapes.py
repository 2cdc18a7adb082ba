"""What people hand over, by its shape: one input or several, and what a thing is that is none."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from numbers import Number
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from pystream._inputs.column_names import missing_column
from pystream._inputs.dict_rows import is_row
from pystream._inputs.file_inputs import FileInput, open_inputs
from pystream._inputs.schemas import needed, required, ts_hint
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from pystream.query import Query

#: What an input may be, for messages.
ALLOWED = (
    "an Arrow table, batch or stream (pyarrow, Polars, pandas, DuckDB), a dict of arrays, rows as dicts, a path, "
    "or an iterable of those"
)


def is_from(source: Any, library: str, name: str | None = None) -> bool:
    """Whether this is an object of a library, which need not be loaded."""
    return any(
        kind.__module__.split(".")[0] == library and name in (None, kind.__name__) for kind in type(source).__mro__
    )


def is_lazy(source: Any) -> bool:
    """Whether this is a Polars LazyFrame."""
    return is_from(source, "polars", "LazyFrame")


def is_dataset(source: Any) -> bool:
    """Whether this is a pyarrow Dataset."""
    datasets = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(source, datasets.Dataset)


def is_scanner(source: Any) -> bool:
    """Whether this is a pyarrow Scanner."""
    datasets = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(source, datasets.Scanner)


def is_path(source: Any) -> bool:
    """Whether this is a path or a glob."""
    return isinstance(source, str | os.PathLike)


def is_column(source: Any) -> bool:
    """Whether this is an array or a series: one column, not a table."""
    arrays = isinstance(source, np.ndarray | pa.Array | pa.ChunkedArray) and not isinstance(source, pa.StructArray)
    return arrays or any(is_from(source, library, "Series") for library in ("pandas", "polars"))


def is_no_iterable(source: Any) -> bool:
    """Whether this can be iterated, but gives no batches or rows."""
    return is_column(source) or isinstance(source, bytes | bytearray | set | frozenset | io.IOBase)


# ---- one input, or several ----


def several(query: Query, inputs: Any) -> list[Any]:
    """The inputs, one by one: frames, files of which only the needed columns are read, iterables."""
    out: list[Any] = []
    for one in _listed(query, inputs):
        out += (
            [_selected(query, len(out) + i, file) for i, file in enumerate(open_inputs(one))] if is_path(one) else [one]
        )
    if not out:
        raise ValueError("aggregate needs at least one input, and inputs is empty")
    return out


def _listed(query: Query, inputs: Any) -> list[Any]:
    if is_path(inputs) or _is_one(inputs):
        return [inputs]
    if isinstance(inputs, Iterator):
        raise TypeError(
            f"inputs is a {type(inputs).__name__}, which may be one input or several: write [{_call(inputs)}] for one "
            f"input that comes in batches, list({_call(inputs)}) for one input each"
        )
    if isinstance(inputs, set | frozenset):
        raise TypeError("inputs is a set, which has no order, and inputs are numbered: give a list")
    if not isinstance(inputs, Iterable):
        raise TypeError(f"inputs is a list of inputs or one input ({ALLOWED}), not {what_it_is(inputs)}")
    items = list(inputs)
    rows = [is_row(item, query.ts) for item in items]
    if any(rows) and not all(rows):
        raise SchemaError(
            f"inputs has rows (item {rows.index(True)}) beside other things (item {rows.index(False)}): "
            "rows of one input go into a list of their own"
        )
    return [items] if any(rows) else items


def _is_one(source: Any) -> bool:
    """Whether this is one input, though it may be iterable."""
    arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    lazy = is_lazy(source) or is_dataset(source) or is_scanner(source)
    columns = isinstance(source, Mapping | np.ndarray | bytes | FileInput | io.IOBase) or is_from(source, "pandas")
    return arrow or lazy or columns


def _call(inputs: Any) -> str:
    return "generator" if type(inputs).__name__ == "generator" else "iterator"


def _selected(query: Query, input: int, file: FileInput) -> FileInput:
    absent = [name for name in required(query) if name not in file.schema.names]
    if absent:
        what = missing_column(absent[0], file.schema.names)
        raise SchemaError(f"input {input}: {file.path}: {what}{ts_hint(query, absent[0])}")
    return file.select(needed(query, file.schema.names))


# ---- what a thing is that is no input ----


def what_it_is(thing: Any) -> str:
    """A thing for a message: what it is, and what it says if that is short."""
    kind = f"{type(thing).__module__.split('.')[0]}.{type(thing).__qualname__}".removeprefix("builtins.")
    if thing is None or isinstance(thing, int | float | str):
        return f"{thing!r}"
    return kind


def refusal(source: Any) -> SchemaError:
    """Say why this is no input, and what would be."""
    if isinstance(source, np.ndarray) and source.dtype.names:
        return SchemaError("a structured NumPy array: give {name: array[name] for name in array.dtype.names}")
    if is_column(source):
        return SchemaError(f"{what_it_is(source)} is one column, not all: an input must be {ALLOWED}")
    if isinstance(source, io.IOBase):
        return SchemaError(f"an open file: give its path, {getattr(source, 'name', '...')!r}")
    if is_row_of_another_kind(source):
        what = f"{what_it_is(source)}, as {source!r:.60}"
        return SchemaError(f"rows are dicts from column names to values, not {what}: an input must be {ALLOWED}")
    return SchemaError(f"an input must be {ALLOWED}, not {what_it_is(source)}")


def is_row_of_another_kind(source: Any) -> bool:
    """Whether this looks like a row: a tuple or a list of values, a dataclass."""
    plain = isinstance(source, tuple | list) and all(map(_is_scalar, source)) and not all(map(is_path, source))
    return plain or (hasattr(source, "__dataclass_fields__") and not isinstance(source, Iterable))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | Number | np.generic | date | time | timedelta | UUID)


def not_arrays(columns: Mapping[Any, Any]) -> SchemaError | None:
    """Why a dict is no dict of arrays, if that shows in its values."""
    for name, values in columns.items():
        if isinstance(values, Mapping | pa.Table | pa.RecordBatch) or is_from(values, "polars", "DataFrame"):
            return SchemaError(
                f"a dict is one input, of arrays, and {name!r} is {what_it_is(values)}: give several inputs as a list, "
                "list(inputs.values())"
            )
        if _is_scalar(values):
            return SchemaError(
                f"column {name!r} is the single value {values!r}: a dict of arrays has an array for each column; "
                "rows as dicts go into a list"
            )
    lengths = {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}
    if len({*lengths.values()}) > 1:
        listed = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        return SchemaError(f"the columns of a dict of arrays must be equally long: {listed}")
    return None
