"""The release build is what it would be without the model: no hook, and the machine code of plain C11 atomics."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pystream import _core

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
ATOMICS = (CSRC / "base/atomics.h").read_text()
HOOKS = re.findall(r"\b(model_\w+)\(", re.search(r"#ifdef PYSTREAM_MODEL(.*?)#else", ATOMICS, re.DOTALL)[1])

WITH_ACCESSORS = """
#include "gates/skip_list.h"
bool swap(cell *c, uint64_t old, uint64_t now) { AT(a); return link_swap(c, (void *)old, (void *)now); }
void *load(const cell *c) { AT(b); return link_read(c); }
void store(cell *c, void *p) { AT(c); written_publish(c, p); }
uint64_t add(cell *c) { AT(d); return active_enter(c); }
int64_t plain(skip_node *n) { READS(n->key); WRITES(n->height); n->height = 1; return n->key.ts; }
void init(cell *c) { cell_init(c, 7); }
"""

WITH_ATOMICS = """
#include "gates/skip_list.h"
bool swap(cell *c, uint64_t old, uint64_t now) {
  return atomic_compare_exchange_strong_explicit(&c->bits, &old, now, memory_order_release, memory_order_relaxed);
}
void *load(const cell *c) { return (void *)atomic_load_explicit(&c->bits, memory_order_acquire); }
void store(cell *c, void *p) { atomic_store_explicit(&c->bits, (uintptr_t)p, memory_order_release); }
uint64_t add(cell *c) { return atomic_fetch_add_explicit(&c->bits, 1, memory_order_seq_cst) + 1; }
int64_t plain(skip_node *n) { n->height = 1; return n->key.ts; }
void init(cell *c) { atomic_init(&c->bits, 7); }
"""


def compiler():
    return shutil.which("gcc") or shutil.which("cc")


def machine_code(text, folder, name, *flags):
    source = folder / f"{name}.c"
    source.write_text(text)
    command = [compiler(), "-std=c11", "-S", f"-I{CSRC}", *flags, source, "-o", folder / f"{name}.s"]
    subprocess.run([str(c) for c in command], check=True, capture_output=True)
    return [line for line in (folder / f"{name}.s").read_text().splitlines() if ".file" not in line]


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_accessors_are_plain_atomics(level, tmp_path):
    plain = machine_code(WITH_ATOMICS, tmp_path, "plain", level)
    assert machine_code(WITH_ACCESSORS, tmp_path, "accessors", level) == plain
    assert machine_code(WITH_ACCESSORS, tmp_path, "hooks", level, "-DPYSTREAM_MODEL") != plain


def test_no_hook_in_the_release_build():
    assert {"model_load", "model_store", "model_swap", "model_add", "model_at", "model_init"} <= set(HOOKS)
    content = Path(_core.__file__).read_bytes()
    for hook in HOOKS:
        assert hook.encode() not in content


def test_labels_leave_no_trace_in_the_release_build():
    """Not even as strings."""
    content = Path(_core.__file__).read_bytes()
    assert b"insert_link_cas" not in content
    assert b"link_swap" not in content
