"""kill -9 of a streaming program, of executors and of their Python: the same rows, each exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import fault_daemon
import fault_job
import pyarrow as pa
import pytest
import streaming_runs as runs
from faults import record

import pystream as ps

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

WHERE = "tests/spark/test_spark_kills.py"

#: Files per kill: more than a query gets through before it is killed.
FILES = 6

#: Nothing that is waited for here takes as long; then the test fails instead of waiting for ever.
PATIENCE_S = 1200


# ---- the program itself ----


@pytest.mark.parametrize(
    ("kills", "who"),
    [
        pytest.param(2, "spark", marks=pytest.mark.full),
        pytest.param(20, "spark", marks=pytest.mark.deep),
        pytest.param(20, "executors", marks=pytest.mark.deep),
    ],
)
def test_the_program_is_killed(kills, who, spark, tmp_path):
    """Each time after it has committed micro-batches and in the midst of another; started again and again."""
    from pystream.spark import finish  # noqa: PLC0415

    dice, whole = random.Random(kills), runs.streams()
    runs.write(tmp_path, whole.block(0), files=FILES * kills)
    with ExitStack() as stack:
        children = (stack.enter_context(_started(tmp_path, who)) for _ in range(kills))
        child, after = None, next(children)
        for _ in range(kills):
            child, after = after, next(children, None)  # Java takes most of the time to start: one does while one runs
            _run_and_kill(child, tmp_path, dice)
    assert _numbers(tmp_path, "commits")[-1] < FILES * kills - 1  # there was work left to the last
    runs.run(spark, tmp_path, who)
    streamed = spark.read.parquet(str(tmp_path / "out")).toArrow()
    rest = finish(str(tmp_path / "checkpoint"), runs.QUERY, spark).toArrow()
    want = ps.aggregate(runs.QUERY, whole.tables()).to_pylist()
    assert runs.rows(pa.concat_tables([streamed, rest]), runs.QUERY) == want
    record("Spark streaming: kill -9 after committed micro-batches", tried=kills, survived=kills, lost=0, where=WHERE)


@contextmanager
def _started(folder, who: str) -> Iterator[subprocess.Popen]:
    """A process that is about to run the query; in the end it is gone."""
    command = [sys.executable, runs.__file__, str(folder), who]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, text=True, **pipes) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def _numbers(folder, log: str) -> list[int]:
    """The micro-batches in a log of the checkpoint: `offsets` has those that were begun, `commits` those done."""
    return sorted(int(f.name) for f in (folder / "checkpoint" / log).glob("*") if f.name.isdigit())


def _run_and_kill(child: subprocess.Popen, folder, dice: random.Random) -> None:
    """Let the query commit one micro-batch or two and begin another, then kill Python and Java together."""
    before = len(_numbers(folder, "commits"))
    goal, patience = before + dice.randint(1, 2), time.monotonic() + PATIENCE_S
    child.stdin.write("go\n")
    child.stdin.flush()
    while not (len(_numbers(folder, "commits")) >= goal and _in_the_midst(folder)):
        assert child.poll() is None, child.stderr.read()[-2000:]
        assert time.monotonic() < patience
        time.sleep(0.01)
    time.sleep(dice.random() / 4)  # anywhere within the micro-batch, or in the next one
    assert child.poll() is None, child.stderr.read()[-2000:]
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert len(_numbers(folder, "commits")) >= goal


def _in_the_midst(folder) -> bool:
    return len(_numbers(folder, "offsets")) > len(_numbers(folder, "commits"))


# ---- parts of a cluster ----

QUICK = ["batch:combine.executor", "stream:step.executor"]
ALL = [*QUICK, "batch:combine.worker", "stream:step.worker"]
ALL += [f"{kind}:fold.{victim}" for kind in fault_job.KINDS for victim in ("executor", "worker")]


@pytest.mark.parametrize(
    ("times", "faults"), [pytest.param(1, QUICK, marks=pytest.mark.full), pytest.param(3, ALL, marks=pytest.mark.deep)]
)
def test_executors_are_killed(times, faults, tmp_path):
    """In the midst of a task; a streaming query has committed a micro-batch before. Spark does the work again."""
    want = ps.aggregate(runs.QUERY, runs.streams().tables()).to_pylist()
    for i in range(times):
        found = _run_on_cluster(tmp_path / str(i), faults)
        assert [fault for fault, rows in found.items() if rows != want] == []
        struck = {f.name for f in (tmp_path / str(i) / "armed").glob("*")}
        assert struck == {f"{fault.split(':')[1]}{fault_daemon.DONE}" for fault in faults}
    tried = times * len(faults)
    record("Spark: an executor or its Python killed with -9", tried=tried, survived=tried, lost=0, where=WHERE)


def _run_on_cluster(folder: Path, faults: list[str]) -> dict[str, list[dict]]:
    (folder / "armed").mkdir(parents=True)
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {fault_daemon.FOLDER: str(folder / "armed"), "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, fault_job.__file__, str(folder), *faults]
    with subprocess.Popen(command, env=env, start_new_session=True, stderr=subprocess.PIPE, text=True) as job:
        try:
            _, said = job.communicate(timeout=PATIENCE_S)
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, "\n".join(line for line in said.splitlines() if not line.startswith("\tat "))[:10_000]
    return json.loads((folder / "found.json").read_text())
