"""One Spark session for the whole run."""

from __future__ import annotations

import pytest

from pystream.errors import PystreamError


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")
    from pystream.spark import session  # noqa: PLC0415 - needs pyspark

    try:
        session = session("local[2]", spark_sql_shuffle_partitions="2")
    except PystreamError as error:
        pytest.skip(str(error))
    yield session
    session.stop()
