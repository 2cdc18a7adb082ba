"""The C core under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer, with real threads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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


@pytest.mark.parametrize("sanitizer", ["thread", "address", "undefined"])
def test_operator_under_real_threads(sanitizer, tmp_path):
    cc = compiler(sanitizer, tmp_path)
    run("cmake", "-S", ROOT / "csrc", "-B", tmp_path, f"-DPYSTREAM_SANITIZE={sanitizer}", f"-DCMAKE_C_COMPILER={cc}")
    run("cmake", "--build", tmp_path, "--parallel", "2")
    flags = [
        f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=all",
        "-std=c11",
        "-D_GNU_SOURCE",
        "-g",
        "-I",
        ROOT / "csrc",
    ]
    source, library = ROOT / "tests/stress/operator_stress.c", tmp_path / "libcore.a"
    run(cc, *flags, source, library, "-lpthread", "-lm", "-o", tmp_path / "stress")
    assert run(tmp_path / "stress", 4, 3000, 12) == "12 rounds of 4 x 3000 tuples\n"
    assert run(tmp_path / "stress", 1, 3000, 3) == "3 rounds of 1 x 3000 tuples\n"
