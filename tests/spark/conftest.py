"""One Spark session for the whole run.

PYSTREAM_SPARK_REMOTE=local[2] makes it one of Spark Connect, whose server is started for it; test_connect.py does.
"""

from __future__ import annotations

import os
import sys

import pytest

from pystream.errors import PystreamError


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")
    session = connected(remote) if (remote := os.environ.get("PYSTREAM_SPARK_REMOTE")) else local()
    yield session
    session.stop()


def local():
    from pystream.spark import session  # noqa: PLC0415 - needs pyspark

    try:
        return session("local[2]", spark_sql_shuffle_partitions="2")
    except PystreamError as error:
        pytest.skip(str(error))


def connected(remote: str):
    """A session of Spark Connect, as Spark has it by default but for its log."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from pystream.spark import java, local_session  # noqa: PLC0415

    own = {"JAVA_HOME": str(java.home()), "SPARK_CONF_DIR": str(local_session.CONF_DIR)}
    os.environ.update(own | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})
    session = SparkSession.builder.remote(remote).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session
