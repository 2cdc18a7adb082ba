"""Builds the fuzzing harnesses of this folder: with libFuzzer where clang has it, else with a main that replays."""

from __future__ import annotations

import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from tools import run, tool

FUZZ = Path(__file__).parent
CSRC = FUZZ.parent.parent / "csrc"

#: Not all of `undefined`: adding 0 to a null pointer is what every compiler takes for a null pointer.
CHECKS = (
    "alignment,bool,bounds,enum,float-cast-overflow,integer-divide-by-zero,nonnull-attribute,null,return,shift,"
    "signed-integer-overflow,unreachable"
)
SHARED = ["fuzz", "shape"]


class Harnesses:
    """The harnesses on a core of these sources, built in a folder, each when it is first asked for."""

    def __init__(self, folder: Path, csrc: Path = CSRC) -> None:
        self.folder, self.csrc = folder, csrc
        self.libfuzzer = self._has_libfuzzer()
        self.compiler = "clang" if self.libfuzzer else "gcc"

    def _has_libfuzzer(self) -> bool:
        probe = self.folder / "probe.c"
        probe.write_text("int LLVMFuzzerTestOneInput(const void *p, unsigned long n) { return p && n > 1 ? 0 : 0; }\n")
        command = ["clang", "-fsanitize=fuzzer,address", str(probe), "-o", str(self.folder / "probe")]
        return (
            shutil.which("clang") is not None
            and not subprocess.run(command, capture_output=True, check=False).returncode
        )

    @cached_property
    def _library(self) -> list[Path]:
        """The core and what the harnesses share."""
        sanitize = f"address,{CHECKS}" + (",fuzzer-no-link" if self.libfuzzer else "")
        options = [
            f"-DPYSTREAM_SANITIZE={sanitize}",
            f"-DCMAKE_C_COMPILER={self.compiler}",
            "-DCMAKE_C_FLAGS_RELEASE=-O1",
        ]
        run(tool("cmake"), "-S", self.csrc, "-B", self.folder, *options)
        run(tool("cmake"), "--build", self.folder, "--parallel", "2")
        own = SHARED if self.libfuzzer else [*SHARED, "replay"]
        return [*(self._compile(name) for name in own), self.folder / "libcore.a"]

    @property
    def _flags(self) -> list[str]:
        sanitize = f"-fsanitize=address,{CHECKS}" + (",fuzzer" if self.libfuzzer else "")
        flags = [sanitize, "-fno-sanitize-recover=all", "-std=gnu11", "-O1", "-g", "-DPYSTREAM_SMALL"]
        return [*flags, "-Wall", "-Wextra", "-Werror", "-I", str(self.csrc)]

    def _compile(self, name: str) -> Path:
        to = self.folder / f"{name}.o"
        run(self.compiler, *self._flags, "-c", FUZZ / f"{name}.c", "-o", to)
        return to

    def build(self, name: str) -> Path:
        """The program of a harness."""
        program = self.folder / name
        if not program.exists():
            own = [self._compile(name), *self._library]
            run(self.compiler, *self._flags, *own, "-lpthread", "-lm", "-o", program)
        return program
