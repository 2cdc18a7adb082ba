"""The gates: linters, types, formatting, warnings. The same for people and for CI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import CORE_SOURCES, run, tool

ROOT = Path(__file__).parent.parent
MODEL_SOURCES = sorted((ROOT / "csrc/model").glob("*.c"))
C_FILES = [*CORE_SOURCES, *sorted((ROOT / "csrc").rglob("*.h")), *MODEL_SOURCES, *sorted((ROOT / "tests").rglob("*.c"))]


def test_ruff():
    run(tool("ruff"), "check", cwd=ROOT)


def test_ruff_format():
    run(tool("ruff"), "format", "--check", cwd=ROOT)


def test_mypy():
    run(sys.executable, "-m", "mypy", cwd=ROOT)


def test_clang_format():
    run(tool("clang-format"), "--dry-run", "--Werror", *C_FILES, cwd=ROOT)


@pytest.mark.full
@pytest.mark.parametrize("source", CORE_SOURCES, ids=lambda path: path.name)
def test_clang_tidy(source):
    run(tool("clang-tidy"), "--quiet", source, "--", "-Icsrc", cwd=ROOT)


@pytest.mark.full
@pytest.mark.parametrize("source", MODEL_SOURCES, ids=lambda path: path.name)
def test_clang_tidy_of_the_model(source):
    run(tool("clang-tidy"), "--quiet", source, "--", "-Icsrc", "-DPYSTREAM_MODEL", cwd=ROOT)


def test_only_atomics_h_spells_a_memory_order():
    """And csrc/model, which gives the orders their meaning in the model build."""
    for path in C_FILES:
        if path.name != "atomics.h" and path.parent.name != "model":
            assert "memory_order" not in path.read_text(), path


def test_the_oracle_stays_small():
    assert len((ROOT / "pystream/reference.py").read_text().splitlines()) <= 80
    assert len((ROOT / "pystream/_exact.py").read_text().splitlines()) <= 80


def test_top_level():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        return  # an sdist; its contents are tested in test_package.py
    entries = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    texts = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"}
    folders = {"spec", "csrc", "pystream", "tests", "bench"}
    assert {e for e in entries if not e.startswith(".")} == texts | folders
