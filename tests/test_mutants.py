"""Seeded bugs: each line breaks the C core on purpose, and the named test must go red.

A bug that no test catches is a hole in the tests. The core is built from a patched copy; nothing else changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).parent.parent

#: name: (file, what stands there, what the bug puts in its place, the test that must fail)
MUTANTS = {
    "ties by arrival, highest input first": ("mq.c", "p.ts < best.ts", "p.ts <= best.ts", "aggregate"),
    "empty queues are ignored": ("mq.c", "p.state == QUEUE_DRAINED) continue", "p.state != QUEUE_TUPLE) continue", "aggregate"),
    "windows leave one tick early": ("window_list.c", "set->start <= ts - list->size", "set->start <= ts - list->size + 1", "aggregate"),
    "windows leave one tick late": ("window_list.c", "set->start <= ts - list->size", "set->start < ts - list->size", "operator"),
    "first window off by one": ("window_list.c", "/ list->advance + 1;", "/ list->advance;", "aggregate"),
    "close forgets the last windows": ("mq.c", "output_all(op, fault)", "PS_OK", "aggregate"),
    "unstarted inputs do not hold back": ("queue.c", ".latest = -1", ".latest = 0", "operator"),
    "a bad row is found too late": ("operator.c", "!in_order(b, queue_latest(&in->queue), fault)", "false", "operator"),
    "order is checked within batches only": ("operator.c", "in_order(b, queue_latest(&in->queue), fault)", "in_order(b, -1, fault)", "operator"),
    "integer sums wrap": ("aggregate.c", "return PS_OVERFLOW;", "return put_bits(rows, to, (uint64_t)s->sum);", "operator"),
    "nulls are counted": ("aggregate.c", "return a->column < 0 || !column_is_null(&b->columns[a->column], row);", "return true;", "aggregate"),
    "keys with zero bytes run together": ("key.c", "if (b.data[i] == 0) *to++ = 0xff;", "", "aggregate"),
    "nulls sort first": ("key.c", "*to++ = null;", "*to++ = !null;", "aggregate"),
    "rounding forgets the bits below": ("exact_sum.c", "(any_below(&w, low - 1) || (m & 1))", "(m & 1)", "exact_sum"),
    "the narrow sum wraps": ("exact_sum.c", "__builtin_add_overflow(sum->narrow, x, &total)", "((void)__builtin_add_overflow(sum->narrow, x, &total), false)", "exact_sum"),
    "the wake-up is lost": ("mq.c", "doorbell_ring(&op->doorbell);\n}", "}", "operator"),
    "a full input takes more": ("queue.c", "!has_space(q, rows)) {\n    code", "false) {\n    code", "operator"),
    "a batch is freed too early": ("mq.c", "--t.batch->rows_left == 0", "--t.batch->rows_left <= 1", "aggregate"),
    "memory leaks with the winset": ("window_list.c", "memory_free(set->states);", "", "operator"),
}  # fmt: skip

#: Run pytest with the patched package in front, and without the editable install, which -S hides.
RUN = """
import sys
sys.path[:0] = {paths!r}
sys.path.append({packages!r})
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", {test!r}]))
"""


def build(folder: Path) -> None:
    define = f"-DPython_EXECUTABLE={sys.executable}"
    for command in (["cmake", "-S", "csrc", "-B", "build", define], ["cmake", "--build", "build", "--parallel", "2"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for extension in (folder / "build").glob("_core*.so"):
        shutil.copy(extension, folder / "pystream")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the project that is built once and then again for each bug."""
    folder = tmp_path_factory.mktemp("mutants")
    for name in ("csrc", "pystream", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    build(folder)
    return folder


def passes(folder: Path, test: str) -> subprocess.CompletedProcess:
    packages = str(Path(pa.__file__).parent.parent)
    path = str(folder / "tests" / f"test_{test}.py")
    code = RUN.format(paths=[str(folder), str(folder / "tests")], packages=packages, test=path)
    command = [sys.executable, "-S", "-c", code]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:  # a bug that makes everything wait for ever shows as that
        return subprocess.CompletedProcess(command, 124, "timed out", "")


@pytest.mark.deep
def test_without_a_bug_the_copy_passes(tree):
    done = passes(tree, "operator")
    assert done.returncode == 0, done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_is_caught(name, tree):
    file, right, wrong, test = MUTANTS[name]
    source = (ROOT / "csrc" / file).read_text()
    assert source.count(right) >= 1, f"{right!r} is no longer in {file}: the bug must be seeded anew"
    (tree / "csrc" / file).write_text(source.replace(right, wrong, 1))
    try:
        build(tree)
        done = passes(tree, test)
    finally:
        (tree / "csrc" / file).write_text(source)
    assert done.returncode != 0, f"test_{test}.py did not notice"
