"""The recipes that ship with the package: each runs as it is and prints what it says."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from importlib import resources

import pytest
from click.testing import CliRunner

from pystream.cli import main
from pystream.cli.recipes import sources

RECIPES = sources()


def invoke(*args: str, exit_code: int = 0):
    result = CliRunner(env={"COLUMNS": "120"}).invoke(main, ["recipes", *args])
    assert result.exit_code == exit_code, result.output
    return result


def promised(source: str) -> str:
    """What a recipe says it prints: the comment at its end."""
    lines = source.rstrip("\n").splitlines()
    start = lines.index("# Output:")
    assert all(line.startswith("# ") for line in lines[start:])
    return "".join(f"{line[2:]}\n" for line in lines[start + 1 :])


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", [name for name in RECIPES if "spark" not in name])
def test_it_prints_what_it_says(name, capsys):
    runpy.run_path(str(resources.files("pystream.recipes") / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == promised(RECIPES[name])


def test_the_questions_that_people_have_first():
    assert set(RECIPES) >= {
        *("sliding_mean", "p95", "distinct", "deviation", "top_three", "live_socket"),
        *("four_threads", "resume", "to_polars", "spark_job"),
    }
    assert all(len(source.splitlines()) <= 60 for source in RECIPES.values())


def test_the_list():
    shown = invoke().stdout
    for name, source in RECIPES.items():
        assert f"{name} " in shown
        assert source.startswith('"""')


def test_what_a_recipe_needs_is_said():
    """A name that neither Python nor pystream brings is a package that a user may not have."""
    at_hand = {*sys.stdlib_module_names, "pystream", "pyarrow", "numpy"}
    for name, source in RECIPES.items():
        tree = ast.parse(source)
        plain = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
        plain += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        needs = {each.split(".")[0] for each in plain} - at_hand
        says = (ast.get_docstring(tree) or "").splitlines()[-1].startswith("Needs: pip install ")
        assert says == bool(needs), f"{name} needs {needs}"
    shown = " ".join(invoke().stdout.split())
    assert "Needs: pip install polars" in shown
    assert 'Needs: pip install "pystream-core[spark]"' in shown


def test_one_of_them_runs_from_a_pipe():
    source = invoke("sliding-mean").stdout
    assert source == RECIPES["sliding_mean"]
    done = subprocess.run([sys.executable, "-"], input=source, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == promised(source)


def test_another_name():
    assert (
        "there is no recipe 'mean'; there are deviation, distinct, four_threads" in invoke("mean", exit_code=2).stderr
    )
