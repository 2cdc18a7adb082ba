"""Ring 1: the models of spec/ give what the manifest says.

By default a model that passes of each module and three that fail; with --full all that `pystream check` runs, as the
command; with --deep the long ones.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from pystream.verify.tlc import CheckError
from pystream.verify.tlc.check import Outcome, Silent, Wish, run_check
from pystream.verify.tlc.java import find_tools
from pystream.verify.tlc.manifest import Model, find_spec, load
from pystream.verify.tlc.pluscal import pluscal_modules
from pystream.verify.tlc.result import differences
from pystream.verify.tlc.update import readme_is_current

FAILING_SHOWN = 3


def manifest() -> list[Model]:
    """The real models; a missing manifest is told by a test that fails, not by one that cannot be collected."""
    try:
        return load(find_spec())
    except CheckError:
        return []


def quickest(models: list[Model]) -> set[str]:
    """The quickest model of each module that passes, and the quickest of all that fail."""
    slowest_first = sorted(models, key=lambda one: one.seconds or 0.0, reverse=True)
    passing = {model.module: model for model in slowest_first if model.must_pass}
    failing = [model for model in slowest_first if not model.must_pass][-FAILING_SHOWN:]
    return {model.name for model in (*passing.values(), *failing)}


def chosen() -> list:
    models = manifest()
    quick = quickest([model for model in models if not model.deep])
    return [
        pytest.param(model, id=model.name, marks=[pytest.mark.deep] if model.deep else [])
        for model in models
        if model.deep or model.name in quick
    ]


MODELS = chosen()


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Outcome:
    """All models that this session asks for, run side by side once."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    models = {params["model"].name: params["model"] for params in asked if isinstance(params.get("model"), Model)}
    spec = find_spec()
    wish = Wish(list(models.values()), translations=True)
    return run_check(find_tools(), spec, load(spec), wish, Silent())


def test_there_is_a_manifest():
    assert load(find_spec())


@pytest.mark.parametrize("model", MODELS)
def test_model(report: Outcome, model: Model):
    result = next(result for result in report.results if result.model.name == model.name)
    assert differences(result) == [], result.detail


@pytest.mark.full
def test_the_command_runs_them_all():
    """As a person types it: outcomes, counts, labels that nothing reaches, and translations decide its exit code."""
    done = subprocess.run([sys.executable, "-m", "pystream", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert "all as the manifest says" in done.stdout


def test_translations_are_up_to_date(report: Outcome):
    assert set(report.translations) == {module.stem for module in pluscal_modules(find_spec())}
    assert report.stale == {}


def test_models_are_told():
    models = load(find_spec())
    assert [model.name for model in models if not model.shows or not model.bounds] == []
    assert [model.name for model in models if not model.must_pass and not model.trace] == []


def test_a_temporal_failure_has_one_property():
    """TLC does not say which temporal property was violated."""
    failing = [model for model in load(find_spec()) if model.expected in model.properties]
    assert [model.name for model in failing if len(model.properties) > 1] == []


def test_the_readme_shows_the_manifest():
    spec = find_spec()
    assert readme_is_current(spec, load(spec)), "run `pystream check --update`"
