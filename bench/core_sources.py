"""The sources of the core, for benchmarks that are C programs: all rooms of csrc but the model build's own."""

from pathlib import Path

CSRC = Path(__file__).parent.parent / "csrc"
CORE_SOURCES = sorted(path for path in CSRC.glob("*/*.c") if path.parent.name != "model")
