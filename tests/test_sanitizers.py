"""The C core under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer, with real threads."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tools import run, tool

from pystream._native import DESIGNS

ROOT = Path(__file__).parent.parent

#: Every design, and the one with update threads with several.
RUNS = [*((number, 1) for number in DESIGNS.values()), (DESIGNS["tuml-mc"], 3)]

#: Drivers in tests/stress: arguments of a run, and the pattern that what it prints must match as a whole.
DRIVERS = {
    "operator_stress": [  # the number of the design, update threads, inputs, tuples, rounds, whether keys come and go
        *((f"{design} {threads} 4 1000 6", r"6 rounds of 4 x 1000 tuples") for design, threads in RUNS),
        *((f"{design} {threads} 1 1000 3", r"3 rounds of 1 x 1000 tuples") for design, threads in RUNS),
        (f"{DESIGNS['sliced']} 1 4 1500 12 fresh", r"12 rounds of 4 x 1500 tuples"),
        (f"{DESIGNS['tuml-mc']} 3 2 300 3 fresh", r"3 rounds of 2 x 300 tuples"),
    ],
    "history": [
        ("ms_queue 4 200 20 1", r"(?s)# .* @ \d+ \d+"),
        ("win_set 4 100 20 1", r"(?s)#\n.* @ \d+ \d+"),
        ("w_hive 3 100 20 1", r"(?s)# .* @ \d+ \d+"),
        ("t_gate 4 100 20 1", r"(?s)# .* @ \d+ \d+"),
    ],
    "values_stress": [  # the number of the design, update threads, inputs, tuples, rounds
        *((f"{design} {threads} 3 300 2", r"2 rounds of 3 x 300 tuples") for design, threads in RUNS),
    ],
    "run_gate_stress": [
        ("3 2 1000 10", r"10 rounds of 3 x 1000 tuples, 2 readers"),
        ("3 4 400 6", r"6 rounds of 3 x 400 tuples, 4 readers"),
        ("20 1 200 10", r"10 rounds of 20 x 200 tuples, 1 readers"),
    ],
    "t_gate_stress": [
        ("threads 3 2 400 28", r"28 rounds of 3 x 400 tuples, 2 readers"),
        ("threads 1 1 1000 8", r"8 rounds of 1 x 1000 tuples, 1 readers"),
        ("threads 2 3 300 8", r"8 rounds of 2 x 300 tuples, 3 readers"),
        ("threads 3 5 100 8", r"8 rounds of 3 x 100 tuples, 5 readers"),
        ("flat 20000", r"20000 tuples, at most (\d{1,2}|[1-5]\d\d) allocations alive .*"),
    ],
    "w_hive_stress": [
        ("4 300 24", r"24 rounds of 4 x 300 tuples"),
        ("1 1000 8", r"8 rounds of 1 x 1000 tuples"),
        ("3 8000 flat", r"1 rounds of 3 x 8000 tuples"),
    ],
}


def compiler(sanitizer: str, folder: Path) -> str:
    """A C compiler that has the sanitizer's runtime."""
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    for name in ("gcc", "clang", "cc"):
        cc = shutil.which(name)
        flags = [f"-fsanitize={sanitizer}", str(probe), "-o", str(folder / "probe")]
        if cc and subprocess.run([cc, *flags], capture_output=True, check=False).returncode == 0:
            return cc
    pytest.skip(f"no C compiler with -fsanitize={sanitizer}; Debian's gcc has it")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The core under that sanitizer, built once, as a folder and the command that compiles a driver against it."""

    @cache
    def of(sanitizer: str) -> tuple[Path, list]:
        folder = tmp_path_factory.mktemp(sanitizer)
        cc = compiler(sanitizer, folder)
        sanitize = f"-DPYSTREAM_SANITIZE={sanitizer}"
        run(tool("cmake"), "-S", ROOT / "csrc", "-B", folder, sanitize, f"-DCMAKE_C_COMPILER={cc}")
        run(tool("cmake"), "--build", folder, "--parallel", "2")
        flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-std=c11", "-D_GNU_SOURCE", "-g"]
        return folder, [cc, *flags, "-I", ROOT / "csrc", folder / "libcore.a", "-lpthread", "-lm"]

    return of


def runs(sanitizer: str) -> list:
    """All drivers under it; one run shows without --full how it is done."""
    shown = ("thread", "operator_stress")
    return [
        pytest.param(sanitizer, name, marks=[] if (sanitizer, name) == shown else pytest.mark.full) for name in DRIVERS
    ]


@pytest.mark.parametrize(("sanitizer", "name"), [*runs("thread"), *runs("address,undefined")])
def test_under_real_threads(sanitizer, name, built):
    folder, (cc, *flags) = built(sanitizer)
    run(cc, ROOT / f"tests/stress/{name}.c", *flags, "-o", folder / name)
    for arguments, printed in DRIVERS[name]:
        assert re.fullmatch(printed, run(folder / name, *arguments.split()).strip())
