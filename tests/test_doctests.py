"""Every public name has an example, and what the examples show is what comes out."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps

if TYPE_CHECKING:
    from collections.abc import Iterator

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: Names that have no docstring of their own.
PLAIN = {"Design", "__version__"}


def public(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that users call by name."""
    for name, member in inspect.getmembers(cls):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            yield f"{cls.__name__}.{name}", member


def documented() -> dict[str, Any]:
    """What must have an example."""
    names = {name: getattr(ps, name) for name in ps.__all__ if name not in PLAIN}
    return {"pystream": ps, **names, **dict(public(ps.Operator))}


def examples(name: str, thing: Any) -> doctest.DocTest:
    """The examples of a docstring; `ps`, `pa` and `pc` are what everybody calls them."""
    text = inspect.getdoc(thing) or ""
    return doctest.DocTestParser().get_doctest(text, {"ps": ps, "pa": pa, "pc": pc}, name, None, 0)


def run(test: doctest.DocTest) -> None:
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert results.failed == 0, "".join(report)


@pytest.mark.parametrize("name", documented())
def test_the_example_runs_and_shows_what_comes_out(name):
    test = examples(name, documented()[name])
    assert test.examples, f"{name} has no example"
    if name == "native_udf":
        pytest.importorskip("numba", reason="pip install '.[test]'")
    run(test)


def more() -> dict[str, Any]:
    """Docstrings that have examples though they need not."""
    found = {}
    for cls in (ps.TGate, ps.WHive):
        found |= {name: member for name, member in public(cls) if examples(name, member).examples}
    return found


@pytest.mark.parametrize("name", more())
def test_other_examples_run_too(name):
    run(examples(name, more()[name]))


def test_a_wrong_example_is_found():
    with pytest.raises(AssertionError, match="Expected"):
        run(doctest.DocTestParser().get_doctest(">>> 1 + 1\n3", {}, "wrong", None, 0))
    assert not examples("nothing", lambda: None).examples


def test_help_is_a_tour():
    """`help(pystream)` begins with what it is for and leads to every function, class and error."""
    text = ps.__doc__
    missing = [name for name in ps.__all__ if name not in PLAIN and not name.endswith("Error") and name not in text]
    assert missing == []
    assert importlib.import_module("pydoc").render_doc(ps)
