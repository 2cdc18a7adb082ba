"""A T-Gate in C."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from pystream._native.calls import new_object
from pystream._native.extension import ffi, lib
from pystream._native.faults import raise_fault

if TYPE_CHECKING:
    from pystream._native.calls import Done

#: How a ps_t_gate_tuple lies in memory: many are read faster at once than field by field.
T_GATE_TUPLE = struct.Struct("=qQi4x")


class TGateHandle:
    """A T-Gate in C; tuples carry tokens. Calls release the GIL, and any thread may make any call at any time."""

    def __init__(self, inputs: int, readers: int) -> None:
        self._gate = new_object(lib.ps_t_gate_new, lib.ps_t_gate_free, "ps_t_gate", inputs, readers)

    def insert_tuples(self, done: Done, input: int, ts: Any, token: int) -> None:
        """Insert one tuple per timestamp, with the tokens token, token + 1, ...: all of them or none.

        `ts` is a list of integers, or a buffer of int64 that is contiguous.
        """
        times = ffi.new("int64_t[]", ts) if isinstance(ts, list) else ffi.from_buffer("int64_t[]", ts)
        fault = ffi.new("ps_fault *")
        arguments = (self._gate, input, len(times), times, token, fault)
        raise_fault(done.call(lib.ps_t_gate_insert_tuples, *arguments), fault)

    def heartbeat(self, input: int, ts: int) -> None:
        """Promise that the input sends nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        raise_fault(lib.ps_t_gate_heartbeat(self._gate, input, ts, fault), fault)

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more."""
        lib.ps_t_gate_close(self._gate, input)

    def get_ready_tuples(self, reader: int, ready: ReadyTuples) -> None:
        """Fill `ready`, unless there is something in it."""
        if not ready.got[0]:
            lib.ps_t_gate_get_ready_tuples(self._gate, reader, ready.most, ready.out, ready.got)

    def position(self, reader: int) -> int:
        """The least timestamp that can still reach the reader, as far as it has looked."""
        return int(lib.ps_t_gate_position(self._gate, reader))

    def finished(self, reader: int) -> bool:
        """Whether the reader has come to the end of all inputs."""
        return bool(lib.ps_t_gate_ended(self._gate, reader))


class ReadyTuples:
    """What a reader of a T-Gate was given, up to `most` tuples: it stays here as long as this object."""

    def __init__(self, most: int) -> None:
        self.most, self.out, self.got = most, ffi.new("ps_t_gate_tuple[]", most), ffi.new("int64_t *")

    def tuples(self) -> list[tuple[int, int, int]]:
        """As (ts, token, input)."""
        return list(T_GATE_TUPLE.iter_unpack(ffi.buffer(self.out, self.got[0] * T_GATE_TUPLE.size)))
