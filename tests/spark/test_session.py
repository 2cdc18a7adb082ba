"""The session that just works: what it sets by itself."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.session import _partitions


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        ("local[*,4]", os.cpu_count()),
        ("local-cluster[2,1,1024]", 8),
        ("spark://host:7077", 8),
    ],
)
def test_a_partition_for_each_core(master, partitions):
    assert _partitions(master) == str(partitions)
