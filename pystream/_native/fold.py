"""A fold in C: partial aggregates of rows in any order, and the windows that they make (csrc/partials/fold.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pystream._native.arrow import exported, imported, new_array
from pystream._native.calls import Done, new_object, query_struct
from pystream._native.extension import ffi, lib
from pystream._native.faults import Fault, raise_fault, raise_if_broken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pystream._engine.plan import AggregatePlan


class FoldHandle:
    """A fold in C (csrc/partials/fold.h). Calls release the GIL; one thread at a time may make them."""

    def __init__(
        self,
        window: tuple[int, int],
        column_types: list[str],
        strings: list[int],
        keys: int,
        aggregates: list[AggregatePlan],
        stream: int,
        position: int,
        start: int,
    ) -> None:
        query, _alive = query_struct(window, column_types, strings, keys, aggregates)
        self._fold = new_object(lib.ps_fold_new, lib.ps_fold_free, "ps_fold", query, stream, position, start)

    def keep_rows(self) -> None:
        """From now on make a partial of each row; its number stands for its key. Rows can be added, and packed."""
        lib.ps_fold_keep_rows(self._fold)

    def add_rows(self, rows: pa.RecordBatch, done: Done | None = None) -> None:
        """Fold rows."""
        array, fault = exported(rows), ffi.new("ps_fault *")
        raise_fault((done or Done()).call(lib.ps_fold_add_rows, self._fold, array, fault), fault)

    def add_partials(self, partials: pa.RecordBatch, *, held: bool) -> None:
        """Fold partials; `held`: they are what another fold with the same start held."""
        array, fault = exported(partials), ffi.new("ps_fault *")
        raise_fault(lib.ps_fold_add_partials(self._fold, array, held, fault), fault)

    def get_partials(self, start: int, most: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """Up to `most` entries from number `start` on; None at the end."""
        out = new_array()
        code = lib.ps_fold_get_partials(self._fold, start, most, out)
        if code == lib.PS_END:
            return None
        raise_fault(code, ffi.new("ps_fault *"))
        return imported(out, schema)

    def get_keys(self, schema: pa.Schema) -> pa.RecordBatch:
        """The keys by number: the first column says it, the others are theirs."""
        out = new_array()
        raise_fault(lib.ps_fold_get_keys(self._fold, out), ffi.new("ps_fault *"))
        return imported(out, schema)

    def unused_keys(self) -> NDArray[np.uint16]:
        """Of each key by number 0 if some entry is of it, else 1."""
        unused = np.empty(self.keys, np.uint16)
        lib.ps_fold_mark_keys(self._fold, ffi.from_buffer("uint16_t[]", unused))
        return unused

    def pack(self, shards: NDArray[np.uint16], count: int, *, by_key: bool = False) -> Iterator[tuple[int, bytes]]:
        """All entries as bytes: each shard that has some. `shards` has the shard of each key by number.

        `by_key`: entries of a slice are sorted by their keys' numbers, which takes fewer bytes and more time.
        """
        data, length = ffi.new("uint8_t **"), ffi.new("int64_t *")
        arguments = (self._fold, ffi.from_buffer("uint16_t[]", shards), count, by_key)
        pack = new_object(lib.ps_pack_new, lib.ps_pack_free, "ps_pack", *arguments)
        for shard in range(count):
            raise_if_broken(lib.ps_pack_get(pack, shard, data, length))
            if length[0]:
                yield shard, ffi.buffer(data[0], length[0])[:]

    def number_keys(self, keys: pa.RecordBatch) -> Any:
        """The numbers of keys here, for `add_packed`; the first column does not count."""
        numbers = ffi.new("uint32_t[]", keys.num_rows)
        raise_fault(lib.ps_fold_number_keys(self._fold, exported(keys), numbers), ffi.new("ps_fault *"))
        return numbers

    def add_packed(self, done: Done, numbers: Any, packed: memoryview, *, held: bool = False) -> None:
        """Fold what `pack` gave, whole blocks of it; the keys have these numbers here. `held` as in `add_partials`."""
        fault = ffi.new("ps_fault *")
        data = ffi.from_buffer("uint8_t[]", packed)
        arguments = (self._fold, numbers, len(numbers), data, len(packed), held, fault)
        raise_fault(done.call(lib.ps_fold_add_packed, *arguments), fault)

    def get_windows(self, windows: Windows, until: int | None, most: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """What is in `windows`, filled first unless it is; None at the end.

        It is filled with the next windows that end at `until` or before (None: all of them), `most` rows or more.
        """
        if windows.rows.release == ffi.NULL:
            fault = ffi.new("ps_fault *")
            last = 2**64 - 1 if until is None else until
            code = lib.ps_fold_get_windows(self._fold, last, most, windows.rows, fault)
            if code == lib.PS_END:
                return None
            raise_if_broken(code)
            if code != lib.PS_OK:
                raise self._window_fault(code, fault, schema)
        return imported(windows.rows, schema)

    def _window_fault(self, code: int, fault: Any, schema: pa.Schema) -> Fault:
        """What went wrong in a window, with the window's name."""
        error = Fault(code, fault)
        if code == lib.PS_OVERFLOW:
            name = new_array()
            raise_if_broken(lib.ps_fold_fault_key(self._fold, fault, name))
            error.window = imported(name, pa.schema([schema.field(i) for i in range(name.n_children)]))
        return error

    @property
    def start(self) -> int:
        """The lowest start of a window that has not been emitted."""
        return int(lib.ps_fold_start(self._fold))

    @property
    def entries(self) -> int:
        """How many (slice, key) are held."""
        return int(lib.ps_fold_entries(self._fold))

    @property
    def rows(self) -> int:
        """How many rows all entries stand for."""
        return int(lib.ps_fold_rows(self._fold))

    @property
    def keys(self) -> int:
        """How many keys are known, held or not."""
        return int(lib.ps_fold_keys(self._fold))

    @property
    def bytes(self) -> int:
        """About how much memory is held."""
        return int(lib.ps_fold_bytes(self._fold))


class Windows:
    """The rows that a fold emitted, kept until this object is dropped."""

    def __init__(self) -> None:
        self.rows = new_array()
