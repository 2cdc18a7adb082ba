"""A cluster with two workers whose Python has no pystream: it reaches them as an archive."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import streaming_runs as runs

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import environments

pytestmark = [pytest.mark.spark, pytest.mark.deep]

#: The processes of the cluster say what they do, so that the test knows when they are there.
LOG = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""

JOB = Path(__file__).parent / "cluster_job.py"


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """A virtual environment with pystream in it, packed."""
    folder = tmp_path_factory.mktemp("packed")
    environments.make(folder / "env")
    with tarfile.open(folder / "env.tar.gz", "w:gz") as out:
        out.add(folder / "env", ".")
    return folder / "env.tar.gz"


@contextmanager
def process(*command: str, env: dict[str, str], says: str):
    """A process, from when it has said a certain thing until the end of the block; gives what matched."""
    child = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        lines = []
        for line in child.stderr:
            lines.append(line)
            if found := re.search(says, line):
                break
        else:
            pytest.fail("".join(lines))
        drain = threading.Thread(target=child.stderr.read)  # what else it says must not fill the pipe
        drain.start()
        yield found
    finally:
        child.terminate()
        child.wait()
    drain.join()
    child.stderr.close()


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A master and two workers of Spark's own cluster."""
    java = pytest.importorskip("pystream.spark.java")
    home = Path(pytest.importorskip("pyspark").__file__).parent
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "log4j2.properties").write_text(LOG)
    env = os.environ | {
        "JAVA_HOME": str(java.home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
    }
    call = str(home / "bin/spark-class"), "org.apache.spark.deploy.master.Master"
    arguments = "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
    with ExitStack() as stack:
        found = stack.enter_context(process(*call, *arguments, env=env, says=r"Starting Spark master at (\S+)"))
        for number in range(2):
            call = call[0], "org.apache.spark.deploy.worker.Worker"
            arguments = "-c", "1", "-m", "1g", "-d", str(folder / f"work{number}"), "--webui-port", "0", found[1]
            stack.enter_context(process(*call, *arguments, env=env, says="Successfully registered with master"))
        yield found[1]


def test_executors_get_pystream_from_an_archive(master, archive, tmp_path):
    whole = runs.streams()
    runs.write(tmp_path, whole.block(0), files=2)
    settings = {
        "spark_archives": f"{archive}#env",
        "spark_executor_memory": "512m",
        "spark_sql_shuffle_partitions": "2",
    }
    env = os.environ | {"PYSPARK_PYTHON": "./env/bin/python"}
    command = [sys.executable, str(JOB), master, str(tmp_path), json.dumps(settings)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    want = ps.aggregate(runs.QUERY, whole.tables()).to_pylist()
    assert sorted(found["batch"], key=lambda r: (r["ts"], r["meter"])) == want
    assert sorted(found["stream"], key=lambda r: (r["ts"], r["meter"])) == want
    assert len(found["origins"]) == 2  # both workers
    assert all("/env/lib/" in place and str(Path(ps.__file__).parent) not in place for place in found["origins"])
