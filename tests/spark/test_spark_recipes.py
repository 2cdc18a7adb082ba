"""The recipes that need Spark print what they say, too."""

from __future__ import annotations

import runpy
from importlib import resources

import pytest

from pystream.cli.recipes import sources

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", [name for name in sources() if "spark" in name])
def test_it_prints_what_it_says(name, capsys):
    runpy.run_path(str(resources.files("pystream.recipes") / f"{name}.py"), run_name="__main__")
    said = sources()[name].split("# Output:\n")[1]
    assert capsys.readouterr().out == "".join(f"{line[2:]}\n" for line in said.splitlines())
