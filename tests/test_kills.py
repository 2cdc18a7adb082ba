"""`kill -9` at any moment: the program of the README goes on as if nothing had happened.

It runs as it is printed there. It is killed from outside after a random time, by itself at the n-th call or return of
any function that it or pystream calls, and in the middle of a write; then it is started again, and killed again, until
it gets through. What it has written is then the same, to the byte, as what one run without a kill writes.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from faults import record
from readme import blocks

import pystream as ps

KILLABLE = Path(__file__).parent / "killable.py"

#: Where a kill could do harm: files that are written and renamed, and rows on their way in, out and into a snapshot.
DELICATE = ["fsync", "replace", "write", "flush", "seek", "truncate", "write_csv", "slice", "ps_operator_add"]
DELICATE += ["ps_operator_take", "ps_operator_pause", "ps_operator_save_windows", "ps_operator_save_slices"]
DELICATE += ["ps_operator_save_pending", "ps_operator_resume", "ps_operator_load_windows", "ps_operator_close"]
DELICATE += ["ps_operator_heartbeat", "ps_operator_keep", "to_bytes", "from_bytes", "_gather", "_finish"]

#: A kill that comes too late to happen is tried again, earlier; a run of the program takes well under this.
SECONDS_MAX = 120


@dataclass
class Program:
    """The program, its inputs, what a run without a kill gives, how long that takes, and what is called in it."""

    file: Path
    inputs: list[Path]
    rows: bytes = b""
    seconds: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)

    def command(self, where: str) -> list[str]:
        return [sys.executable, str(KILLABLE), str(self.file), where, *map(str, self.inputs)]


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Program:
    folder = tmp_path_factory.mktemp("kills")
    (recipe,) = (block for block in blocks() if block.tag == "program")
    (folder / "program.py").write_text(recipe.text)
    rng = np.random.default_rng(1)
    inputs = []
    for i, (rows, end) in enumerate([(80_000, 3_000), (60_000, 3_100), (40_000, 900), (0, 1)]):
        columns = {"ts": np.sort(rng.integers(0, end, rows)), "meter": rng.integers(0, 10, rows)}
        inputs.append(folder / f"{i}.parquet")
        pq.write_table(pa.table(columns | {"cons": rng.normal(size=rows)}), inputs[-1])
    made = Program(folder / "program.py", inputs)
    run(made, folder, f"count:{folder / 'calls.json'}")
    made.calls = json.loads((folder / "calls.json").read_text())
    made.rows = (folder / "rows.csv").read_bytes()
    return made


def run(program: Program, folder: Path, where: str, kill_after: float | None = None) -> bool:
    """Start it, kill it after so many seconds unless it is to do so itself, and tell whether it was killed."""
    with subprocess.Popen(
        program.command(where), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            started = time.monotonic()
            if kill_after is not None:
                time.sleep(kill_after)
                child.kill()
            said = child.communicate(timeout=SECONDS_MAX)[1]
        finally:
            child.kill()
    program.seconds = max(program.seconds, min(time.monotonic() - started, 2.0) if kill_after is None else 0)
    assert child.returncode in (0, -signal.SIGKILL), said
    return child.returncode != 0


def killed(program: Program, folder: Path, rng: random.Random, kind: str) -> bool:
    """One run that is to be killed: where and when, says `rng`."""
    if kind == "from outside":
        return run(program, folder, "-", kill_after=rng.random() * program.seconds)
    if kind == "in a write":
        return run(program, folder, f"torn:{1 + int(100 * rng.random() ** 2)}")
    places = sorted(program.calls)
    if kind == "in a delicate call":
        places = [place for place in places if place.partition(":")[2] in DELICATE]
    place = rng.choice(places)
    return run(program, folder, f"{place}:{1 + int(program.calls[place] * rng.random() ** 2)}")  # rather early


KINDS = ["from outside", "in a write", "in a call", "in a delicate call"]
KILLS_IN_A_ROW = 7


@pytest.mark.parametrize(
    "kills", [4, pytest.param(16, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.deep)]
)
def test_nothing_is_lost_and_nothing_comes_twice(program, kills, tmp_path):
    rng = random.Random(kills)
    done, folders = 0, itertools.count()
    while done < kills:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        for _ in range(rng.randint(1, KILLS_IN_A_ROW)):
            if not killed(program, folder, rng, KINDS[done % len(KINDS)]):
                break
            done += 1
        assert not run(program, folder, "-")
        assert (folder / "rows.csv").read_bytes() == program.rows
    record("kill -9 of a program that feeds, saves, resumes", tried=done, survived=done, lost=0, where="test_kills.py")


def test_the_program_gives_what_aggregate_gives(program, tmp_path):
    query = ps.Query(ps.Window(30, 3), "meter", {"n": ps.count(), "mean": ps.avg("cons")})
    expected = ps.aggregate(query, [pq.read_table(file) for file in program.inputs])
    pyarrow.csv.write_csv(expected, tmp_path / "rows.csv", pyarrow.csv.WriteOptions(include_header=False))
    assert (tmp_path / "rows.csv").read_bytes() == program.rows
    assert program.calls["c_call:fsync"] >= 20


def test_started_again_after_its_end_it_changes_nothing(program, tmp_path):
    for _ in range(2):
        assert not run(program, tmp_path, "-")
        assert (tmp_path / "rows.csv").read_bytes() == program.rows


@pytest.mark.parametrize("nth", range(1, 7))
@pytest.mark.parametrize("event", ["c_call", "c_return"])
@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.deep
def test_around_each_step_of_a_save(program, name, event, nth, tmp_path):
    """Just before and just after each of them, up to three times in a row: there are not more saves than that."""
    kills = sum(run(program, tmp_path, f"{event}:{name}:{nth}") for _ in range(3))
    assert kills >= 1
    assert not run(program, tmp_path, "-")
    assert (tmp_path / "rows.csv").read_bytes() == program.rows
    record("kill -9 before and after fsync and rename", tried=kills, survived=kills, lost=0, where="test_kills.py")
