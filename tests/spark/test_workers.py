"""What tasks do for the process that they run in."""

from __future__ import annotations

import gc
import types
import weakref

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import task_process


class Thing:
    """An object that the collector knows, and that is garbage only for it once nobody holds it."""

    def __init__(self) -> None:
        self.own = self


def is_watched(thing: object) -> bool:
    """Whether the collector looks at an object; it does not at those that have been put aside."""
    return any(one is thing for one in gc.get_objects())


@pytest.fixture
def modules(monkeypatch):
    """The modules that `settle` sees, the test's own: threads of others may import some at any time."""
    gc.unfreeze()
    seen = {"a": types.ModuleType("a")}
    monkeypatch.setattr(task_process, "_known", 0)
    monkeypatch.setattr(task_process, "sys", types.SimpleNamespace(modules=seen))
    yield seen
    gc.unfreeze()


def test_the_collector_leaves_modules_alone(modules):
    """Once, and again when there are more modules."""
    before = Thing()
    assert is_watched(before)
    task_process.settle()
    assert not is_watched(before)
    assert not is_watched(modules["a"])
    modules["b"] = types.ModuleType("b")
    assert is_watched(modules["b"])
    task_process.settle()
    assert not is_watched(modules["b"])


@pytest.mark.usefixtures("modules")
def test_the_garbage_of_tasks_is_collected():
    """Not with every task, or their garbage would pile up where the collector does not look."""
    task_process.settle()
    for _ in range(3):
        garbage = weakref.ref(Thing())
        task_process.settle()
        gc.collect()
        assert garbage() is None
