"""Run tests that may hang or take all memory: in a process of their own, with limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))
sys.path[:] = {path!r}
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--rootdir", {folder!r}, {file!r}, "-k", {only!r}]))
"""


def assert_passes(file: str, only: str, seconds: float, most: int = 6 << 30) -> None:
    """Run tests of a file in this folder, within so many seconds and bytes of address space."""
    folder = str(FOLDER)
    code = RUN.format(most=most, path=[folder, *sys.path], folder=folder, file=f"{folder}/{file}", only=only)
    site = ["-S"] if sys.flags.no_site else []
    try:
        ended = subprocess.run(
            [sys.executable, *site, "-c", code], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as expired:
        said = (expired.stdout or b"").decode()
        raise AssertionError(f"{only} did not end within {seconds} s\n{said}") from None
    assert ended.returncode == 0, ended.stdout + ended.stderr
