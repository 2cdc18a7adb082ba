"""Arrow data whose memory is overwritten when its last reader releases it."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

FREED = 0xDD


@dataclass
class Released:
    """Counts what was handed out and what has come back. What has, stays where it is for a while, overwritten."""

    given: int = 0
    taken: int = 0
    memory: deque[np.ndarray] = field(default_factory=lambda: deque(maxlen=4096))

    def buffer(self, of: pa.Buffer | None) -> pa.Buffer | None:
        """A copy that is overwritten when nobody has it any more."""
        if of is None:
            return None
        memory = np.frombuffer(of, np.uint8).copy()
        view = memory[:]
        weakref.finalize(view, self._released, memory)
        self.given += 1
        return pa.py_buffer(view)

    def _released(self, memory: np.ndarray) -> None:
        memory.fill(FREED)
        self.taken += 1
        self.memory.append(memory)

    def array(self, of: pa.Array) -> pa.Array:
        """Of a flat or a dictionary type."""
        if pa.types.is_dictionary(of.type):
            return pa.DictionaryArray.from_arrays(self.array(of.indices), self.array(of.dictionary))
        buffers = [self.buffer(b) for b in of.buffers()]
        return pa.Array.from_buffers(of.type, len(of), buffers, of.null_count, of.offset)

    def batch(self, of: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([self.array(c) for c in of.columns], schema=of.schema)
