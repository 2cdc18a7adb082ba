"""S-Merge alone: the programs that time T-Gate, queues and Java's skip list on the same tuples.

s_merge.c            T-Gate, Run-Gate, queues, a heap: compiled with the core's sources
SkipListMerge.java   ConcurrentSkipListMap, with a look at all inputs' latest timestamps for each tuple

bench/bench_t_gate.py compares all of them; `pystream bench` repeats the paper's comparison on EC.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from pystream.errors import PystreamError

C_DESIGNS = ("mq", "mq_lf", "t_gate", "run_gate", "run_gate_1", "heap")
JAVA_DESIGN = "skip_list"
FLAGS = ("-O3", "-DNDEBUG", "-std=c11", "-D_GNU_SOURCE")


@dataclass(frozen=True)
class Contest:
    """One run: `times` is "ties", "distinct" or a file of timestamps; rate 0: as fast as tuples are taken."""

    times: str
    inputs: int
    tuples: int
    pending: int = 65_536
    rate: float = 0.0
    warmup_s: float = 1.0  # of the JVM


@dataclass(frozen=True)
class Outcome:
    """Million tuples per second; with a rate, the mean milliseconds from when a tuple was due to when it came out."""

    million_per_second: float
    latency_ms: float


def build(folder: Path) -> list[str]:
    """Compile the programs into a folder; the designs that can be timed here: without a JDK not the skip list."""
    package = Path(__file__).parents[2]
    csrc = next((c for c in (package / "csrc", package.parent / "csrc") if (c / "gates").is_dir()), None)
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if csrc is None or compiler is None:
        raise PystreamError("timing S-Merge needs a C compiler (Debian: apt install gcc) and the sources of the core")
    sources = [s for s in sorted(csrc.glob("*/*.c")) if s.parent.name != "model"]
    with as_file(files(__name__)) as here:
        run(compiler, *FLAGS, "-I", csrc, here / "s_merge.c", *sources, "-lpthread", "-lm", "-o", folder / "s_merge")
        if not (shutil.which("javac") and shutil.which("java")):
            return [*C_DESIGNS]
        run("javac", "-d", folder, here / "SkipListMerge.java")
    return [*C_DESIGNS, JAVA_DESIGN]


def measure(folder: Path, design: str, contest: Contest) -> Outcome:
    """Run one of the programs, which check that every tuple comes out once and in order."""
    c = contest
    arguments = (c.times, c.inputs, c.tuples, c.pending, c.rate)
    if design == JAVA_DESIGN:
        shown = run("java", "-cp", folder, "SkipListMerge", *arguments, c.warmup_s)
    else:
        shown = run(folder / "s_merge", design, *arguments)
    seconds, latency_ms = map(float, shown.split())
    return Outcome(1e-6 * (c.tuples // c.inputs * c.inputs) / seconds, latency_ms)


def run(*command: object) -> str:
    """What a program printed."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        raise PystreamError(f"{Path(str(command[0])).name} failed with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
