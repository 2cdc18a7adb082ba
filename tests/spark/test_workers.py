"""What tasks do for the process that they run in."""

from __future__ import annotations

import gc
import sys
import types

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import workers


@pytest.fixture
def thawed(monkeypatch):
    """The collector as it was, before and after."""
    gc.unfreeze()
    monkeypatch.setattr(workers, "_known", 0)
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_the_collector_leaves_modules_alone(monkeypatch):
    """Once, and again when there are more modules: not with every task, or the garbage of tasks would pile up."""
    assert gc.get_freeze_count() == 0
    workers.settle()
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    kept = [[] for _ in range(100)]
    workers.settle()
    assert gc.get_freeze_count() <= frozen
    monkeypatch.setitem(sys.modules, "a_new_module", types.ModuleType("a_new_module"))
    workers.settle()
    assert gc.get_freeze_count() >= frozen + len(kept)
