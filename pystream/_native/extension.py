"""The compiled extension: its functions, its numbers, and the names that Python gives them."""

from __future__ import annotations

from pystream._kinds import KINDS

try:
    from pystream._core import __file__ as library_path
    from pystream._core import ffi, lib
except ImportError as error:  # a source tree without a build
    raise ImportError(
        "the compiled part of pystream is missing; install the package with `pip install .` in its source tree",
    ) from error

ABI = 21
if lib.PS_ABI != ABI:
    raise ImportError("the compiled part of pystream is of another version; install again with `pip install .`")

#: How long one C call may wait before Python looks for signals such as Ctrl-C.
WAIT_MS = 50

#: How high the lists of T-Gate and W-Hive can be.
LEVELS_MAX = lib.PS_LEVELS_MAX
WINDOWS_MAX = lib.PS_WINDOWS_MAX

DESIGNS = {
    "mq": lib.PS_MQ,
    "mq-lf": lib.PS_MQ_LF,
    "tuml-sc": lib.PS_TUML_SC,
    "tuml-mc": lib.PS_TUML_MC,
    "wiml": lib.PS_WIML,
    "sliced": lib.PS_SLICED,
    "runs": lib.PS_RUNS,
}
FUNCTIONS = {name: getattr(lib, f"PS_{kind.code or name.upper()}") for name, kind in KINDS.items()}
TYPES = {
    name: getattr(lib, f"PS_{name}")
    for name in ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64", "BYTES32", "BYTES64")
}

#: What the strings of a column are, where it is not a number of bytes that all of them have.
ANY_BYTES, UTF8 = lib.PS_ANY_BYTES, lib.PS_UTF8

__all__ = [
    "ABI",
    "ANY_BYTES",
    "DESIGNS",
    "FUNCTIONS",
    "LEVELS_MAX",
    "TYPES",
    "UTF8",
    "WAIT_MS",
    "WINDOWS_MAX",
    "ffi",
    "lib",
    "library_path",
]
