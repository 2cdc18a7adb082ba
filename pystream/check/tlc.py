"""One TLC run: its command line, and how far it is."""

from pathlib import Path

from pystream.check.java import Tools
from pystream.check.manifest import Model
from pystream.check.runner import Task

CONFIG = "model.cfg"
STATES = "states"
# TLC 2.15 appends this much to its trace file for each distinct state: the only live count it gives, because its own
# progress lines come once a minute.
_TRACE_BYTES_PER_STATE = 13
# Below this the JVM's second compiler costs more than it gains.
_SHORT_S = 2.0
_TEMPORAL_START = b"STARTMSG 2192"
_TEMPORAL_END = b"STARTMSG 2267"


def task(tools: Tools, spec: Path, model: Model, folder: Path, heap_mb: int) -> Task:
    """Write the configuration into a new folder and return the command that checks the model there."""
    (folder / "tmp").mkdir(parents=True)
    (folder / CONFIG).write_text(model.cfg(), encoding="utf-8")
    command = [*_java(tools, model, folder, heap_mb), f"-DTLA-Library={spec}", "-cp", str(tools.jar), "tlc2.TLC"]
    # One worker, one polynomial, one seed and one liveness check: counts are the same to the digit on every run.
    command += ["-tool", "-workers", "1", "-fp", "0", "-seed", "0", "-lncheck", "final", "-checkpoint", "0"]
    command += ["-config", CONFIG, "-metadir", str(folder / STATES)]
    if model.covers:
        command += ["-coverage", "60"]
    if not model.deadlock:
        command += ["-deadlock"]
    return Task(model.name, [*command, model.module], folder, model.seconds or 0.0)


def _java(tools: Tools, model: Model, folder: Path, heap_mb: int) -> list[str]:
    flags = [f"-Xmx{heap_mb}m", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=1", "-XX:+ExitOnOutOfMemoryError"]
    # TLC unpacks its standard modules into java.io.tmpdir under fixed names: runs side by side would collide.
    flags += [f"-Djava.io.tmpdir={folder / 'tmp'}", "-XX:-UsePerfData"]
    if model.seconds is not None and model.seconds < _SHORT_S:
        flags += ["-XX:TieredStopAtLevel=1"]
    return [str(tools.java), *flags]


def states_so_far(folder: Path) -> int:
    """Return about how many distinct states a running TLC has found."""
    try:
        return sum(file.stat().st_size for file in (folder / STATES).glob("*/*.st")) // _TRACE_BYTES_PER_STATE
    except OSError:  # The folder may go while we look.
        return 0


def checks_liveness(output: bytes) -> bool:
    """Return whether a running TLC has all states and is now looking for bad cycles among them."""
    return output.rfind(_TEMPORAL_START) > output.rfind(_TEMPORAL_END)
