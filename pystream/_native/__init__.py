"""The only door to the compiled extension: one file for each kind of handle.

extension    loads pystream._core; its numbers by name
faults       its codes as exceptions
calls        what all handles share
arrow        Arrow arrays in and out
operator     an operator, and what it takes and gives
fold         partial aggregates
t_gate, w_hive, exact_sum, memory

The room at the bottom: it imports nothing of pystream but errors.
"""

from pystream._native.arrow import strings_sound
from pystream._native.calls import Done
from pystream._native.exact_sum import ExactSum
from pystream._native.extension import (
    ABI,
    ANY_BYTES,
    DESIGNS,
    LEVELS_MAX,
    UTF8,
    WAIT_MS,
    WINDOWS_MAX,
    ffi,
    lib,
    library_path,
)
from pystream._native.faults import (
    LATE,
    PARTIAL_FAULTS,
    Fault,
    is_closed,
    is_disorder,
    is_overlap,
    is_twice,
    is_udf_failure,
)
from pystream._native.fold import FoldHandle, Windows
from pystream._native.memory import memory_fail_after, memory_live
from pystream._native.operator import SAVED_WINDOWS, Feed, Offer, OperatorHandle, Taken
from pystream._native.t_gate import T_GATE_TUPLE, ReadyTuples, TGateHandle
from pystream._native.w_hive import WHiveHandle, Winset

__all__ = [
    "ABI",
    "ANY_BYTES",
    "DESIGNS",
    "LATE",
    "LEVELS_MAX",
    "PARTIAL_FAULTS",
    "SAVED_WINDOWS",
    "T_GATE_TUPLE",
    "UTF8",
    "WAIT_MS",
    "WINDOWS_MAX",
    "Done",
    "ExactSum",
    "Fault",
    "Feed",
    "FoldHandle",
    "Offer",
    "OperatorHandle",
    "ReadyTuples",
    "TGateHandle",
    "Taken",
    "WHiveHandle",
    "Windows",
    "Winset",
    "ffi",
    "is_closed",
    "is_disorder",
    "is_overlap",
    "is_twice",
    "is_udf_failure",
    "lib",
    "library_path",
    "memory_fail_after",
    "memory_live",
    "strings_sound",
]
