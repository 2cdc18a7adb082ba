"""One TLC run: its command line, and how far it is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pystream.verify.tlc.changed import write_changed
from pystream.verify.tlc.java import Tools
from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.runner import Task

CONFIG = "model.cfg"
STATES = "states"
ARCHIVE = "tlc.jsa"
# TLC 2.15 appends this much to its trace file for each distinct state: the only live count it gives, because its own
# progress lines come once a minute.
_TRACE_BYTES_PER_STATE = 13
# Below this the JVM's second compiler costs more than it gains, and takes the core of the model beside.
_SHORT_S = 15.0
# A model as short as this is over when TLC has started; for fewer of them an archive costs more than it saves.
_STARTING_S = 3.0
_ARCHIVE_FROM = 10
_TEMPORAL_START = b"STARTMSG 2192"
_TEMPORAL_END = b"STARTMSG 2267"


def task(tools: Tools, spec: Path, model: Model, folder: Path, heap_mb: int, archive: Path | None = None) -> Task:
    """Write the configuration into a new folder and return the command that checks the model there.

    `archive` holds the classes of an earlier run; a JVM that cannot use it starts without.
    """
    (folder / "tmp").mkdir(parents=True)
    (folder / CONFIG).write_text(model.cfg(), encoding="utf-8")
    write_changed(spec, model, folder)
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive else []
    command = [*_java(tools, model, folder, heap_mb), *shared, f"-DTLA-Library={spec}"]
    command += ["-cp", str(tools.jar), "tlc2.TLC"]
    # One worker, one polynomial, one seed and one liveness check: counts are the same to the digit on every run.
    command += ["-tool", "-workers", "1", "-fp", "0", "-seed", "0", "-lncheck", "final", "-checkpoint", "0"]
    command += ["-config", CONFIG, "-metadir", str(folder / STATES)]
    if model.covers:
        command += ["-coverage", "60"]
    if not model.deadlock:
        command += ["-deadlock"]
    return Task(model.name, [*command, model.module], folder, model.seconds or 0.0)


def archive_task(tools: Tools, spec: Path, models: Sequence[Model], scratch: Path, heap_mb: int) -> Task | None:
    """Return a run of a short model that leaves the classes it loaded in scratch / ARCHIVE, if that pays.

    With them a JVM starts in three quarters of the time, and most models are over as soon as it has started.
    """
    short = [model for model in models if model.seconds is not None and model.seconds < _STARTING_S]
    if len(short) < _ARCHIVE_FROM:
        return None
    usual = task(tools, spec, min(short, key=lambda model: not model.must_pass), scratch / "archive", heap_mb)
    java, *rest = usual.command
    return replace(usual, name=ARCHIVE, command=[java, f"-XX:ArchiveClassesAtExit={scratch / ARCHIVE}", *rest])


def _java(tools: Tools, model: Model, folder: Path, heap_mb: int) -> list[str]:
    flags = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"]
    # TLC unpacks its standard modules into java.io.tmpdir under fixed names: runs side by side would collide.
    flags += [f"-Djava.io.tmpdir={folder / 'tmp'}", "-XX:-UsePerfData"]
    if not model.deep and (model.seconds or 0.0) < _SHORT_S:
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
