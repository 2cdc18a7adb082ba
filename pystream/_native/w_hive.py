"""A W-Hive in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream._native.arrow import imported, new_array
from pystream._native.calls import Done, new_object
from pystream._native.extension import FUNCTIONS, ffi, lib
from pystream._native.faults import raise_fault

if TYPE_CHECKING:
    import pyarrow as pa

_TUPLES = ("int64_t", "int64_t", "int64_t", "double", "uint8_t", "uint8_t", "uint8_t")


class WHiveHandle:
    """A W-Hive in C; keys are numbers. Calls release the GIL, and any thread may make any call at any time."""

    def __init__(self, window: tuple[int, int], function: str, threads: int) -> None:
        arguments = (*window, FUNCTIONS[function], threads)
        self._hive = new_object(lib.ps_w_hive_new, lib.ps_w_hive_free, "ps_w_hive", *arguments)
        self.ended = False

    def update_windows(self, thread: int, rows: int, columns: list[Any]) -> None:
        """Add rows: int64 timestamps, key numbers and values, doubles, and the bitmaps of ps_w_hive_tuples."""
        held = [ffi.from_buffer(f"{type}[]", c) for type, c in zip(_TUPLES, columns, strict=True)]
        tuples, fault = ffi.new("ps_w_hive_tuples *", (rows, *held)), ffi.new("ps_fault *")
        code = lib.ps_w_hive_update_windows(self._hive, thread, tuples, fault)
        if code == lib.PS_NO_MEMORY and rows > 1:
            raise MemoryError(f"pystream could not allocate memory; the rows before row {fault.row} have been taken")
        raise_fault(code, fault)

    def heartbeat(self, thread: int, ts: int) -> None:
        """Promise that the thread adds nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        raise_fault(lib.ps_w_hive_heartbeat(self._hive, thread, ts, fault), fault)

    def close(self, thread: int) -> None:
        """Promise that the thread adds nothing more."""
        lib.ps_w_hive_close(self._hive, thread)

    def get_next_winset(self, winset: Winset, schema: pa.Schema) -> pa.RecordBatch | None:
        """The rows of `winset`, filled first unless it is; None when there are none: `ended`, if that is for good."""
        code = lib.PS_EMPTY if winset.done.code is None else winset.done.code
        if code not in (lib.PS_OK, lib.PS_OVERFLOW):
            code = winset.done.call(lib.ps_w_hive_get_next_winset, self._hive, winset.rows, winset.fault)
        self.ended = bool(code == lib.PS_END)
        if code in (lib.PS_EMPTY, lib.PS_END):
            return None
        raise_fault(code, winset.fault)
        return imported(winset.rows, schema)

    def limit(self) -> int:
        """The windows that start before this are complete; 2**64 - 1 when all threads have closed."""
        return int(lib.ps_w_hive_limit(self._hive))


class Winset:
    """What the reader of a W-Hive was given, rows or the failure of a winset: it stays here as long as this object."""

    def __init__(self) -> None:
        self.rows, self.fault, self.done = new_array(), ffi.new("ps_fault *"), Done()
