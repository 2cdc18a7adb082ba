"""Every public name of pystream.spark has an example, and what the examples show is what comes out."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest
from test_doctests import examples, run

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import pystream.spark

NAMES = pystream.spark.__all__


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_example(name):
    thing = getattr(pystream.spark, name)
    assert inspect.getdoc(thing)
    assert examples(name, thing).examples, f"{name} has no example"


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", ["spark", *NAMES])
def test_the_example_runs_and_shows_what_comes_out(name, spark, tmp_path):
    """`spark` is a session and `folder` a folder, as everywhere."""
    test = examples(name, getattr(pystream.spark, name, pystream.spark))
    public = {name: getattr(pystream.spark, name) for name in NAMES}
    test.globs |= public | {"spark": spark, "folder": str(tmp_path), "pa": pa}
    run(test)
