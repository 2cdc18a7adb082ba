"""Coverage-guided fuzzing of what the C core reads: tuples in Arrow columns, windows of snapshots, the bytes of states,
partials, packed partials; and of what it does when memory ends. See tests/fuzz/fuzz.h.

    python tests/fuzz/evolve.py SECONDS [NAME...]       fuzzes on, and keeps what reaches new code in tests/fuzz/corpus
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tomllib

import pytest
from builds import ROOT
from fuzz.build import FUZZ, Harnesses
from tools import run

SHOWN = "tuples"  #: the one that runs without --full

#: How many new inputs are tried, twice; they take about five seconds each time.
RUNS = {"tuples": 3000, "windows": 2500, "memory": 2500, "packed": 6000, "partials": 6000, "state_bytes": 80_000}

#: Of each harness, with --deep.
DEEP_SECONDS = 1200

#: An input is a few hundred bytes: no block of the core's has to be large for it, whatever sizes they speak of.
LIMITS = ["-rss_limit_mb=2048", "-malloc_limit_mb=64", "-timeout=120", "-max_len=400", "-len_control=10"]

#: Forgeries of what Python reads first, by target of tests/fuzz/forge.py.
FORGERIES = {"snapshot": 800, "parcel": 800}

SEEDED = tomllib.loads((FUZZ / "seeded.toml").read_text())

#: Always the same, and with --deep another one each time, which a failure shows.
SEEDS = [
    pytest.param(1, id="one"),
    pytest.param(random.SystemRandom().randrange(2, 2**31), id="any", marks=pytest.mark.deep),
]


EACH = [pytest.param(name, marks=[] if name == SHOWN else pytest.mark.full) for name in RUNS]


@pytest.fixture(scope="module")
def harnesses(tmp_path_factory) -> Harnesses:
    return Harnesses(tmp_path_factory.mktemp("fuzz"))


def fuzz(program, folder, *options: str, corpus: bool = True) -> subprocess.CompletedProcess[str]:
    """One run, on a copy of the inputs that are kept; new ones are lost with it."""
    inputs = folder / "corpus"
    if corpus:
        shutil.copytree(FUZZ / "corpus" / program.name, inputs, dirs_exist_ok=True)
    inputs.mkdir(exist_ok=True)
    command = [str(program), *LIMITS, *options, "-print_final_stats=1", f"-artifact_prefix={folder}/", str(inputs)]
    environment = os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=16:detect_leaks=0"}  # leaks: ps_memory_live
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def said(done: subprocess.CompletedProcess[str], folder) -> str:
    """What is needed to see it again."""
    found = {p.name: p.read_bytes().hex() for p in folder.glob("*-*") if p.is_file()}
    return f"{' '.join(done.args)}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}\ninputs, in hex: {found}"


@pytest.mark.parametrize("name", EACH)
def test_the_inputs_that_are_kept(name, harnesses, tmp_path):
    done = fuzz(harnesses.build(name), tmp_path, "-runs=0")
    assert done.returncode == 0, said(done, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("seed", SEEDS)
def test_new_inputs(name, seed, harnesses, tmp_path):
    done = fuzz(harnesses.build(name), tmp_path, f"-seed={seed}", f"-runs={RUNS[name]}")
    assert done.returncode == 0, said(done, tmp_path)


@pytest.mark.parametrize("target", FORGERIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_forgeries_for_the_parsers_in_python(target, seed):
    run(sys.executable, FUZZ / "forge.py", target, seed, FORGERIES[target], seconds=900)


@pytest.mark.deep
@pytest.mark.parametrize("target", FORGERIES)
def test_forgeries_for_a_long_time(target):
    run(sys.executable, FUZZ / "forge.py", target, random.SystemRandom().randrange(2**31), 200 * FORGERIES[target])


@pytest.mark.deep
@pytest.mark.parametrize("name", RUNS)
def test_new_inputs_for_a_long_time(name, harnesses, tmp_path):
    done = fuzz(harnesses.build(name), tmp_path, f"-max_total_time={DEEP_SECONDS}")
    assert done.returncode == 0, said(done, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("bug", SEEDED)
def test_seeded_bugs_are_found(bug, tmp_path):
    """Without the inputs that are kept, some of which would show them at once."""
    entry = SEEDED[bug]
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc")
    source = tmp_path / "csrc" / entry["file"]
    source.write_text(source.read_text().replace(entry["right"], entry["wrong"], 1))
    (tmp_path / "build").mkdir()
    program = Harnesses(tmp_path / "build", tmp_path / "csrc").build(entry["harness"])
    assert fuzz(program, tmp_path, "-max_total_time=300", corpus=False).returncode != 0


@pytest.mark.parametrize("bug", SEEDED)
def test_seeded_bugs_still_fit_the_source(bug):
    entry = SEEDED[bug]
    assert entry["harness"] in RUNS
    assert entry["right"] in (ROOT / "csrc" / entry["file"]).read_text()
