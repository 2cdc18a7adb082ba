"""The README tells the truth: every block of it runs as printed and prints what is printed below it.

The block on Spark is run in spark/test_spark_readme.py, the program that survives `kill -9` in test_kills.py.
"""

from __future__ import annotations

import re
import sys

import pytest
from readme import README, blocks, printed_after
from tools import run

ROOT = README.parent
TEXT = README.read_text(encoding="utf-8")

#: What runs the blocks of each kind.
RUN_BY = {
    ("console", ""): "test_readme.py",
    ("python", ""): "test_readme.py",
    ("python", "program"): "test_kills.py",
    ("python", "spark"): "spark/test_spark_readme.py",
    ("text", ""): "test_readme.py",  # what the one above it prints
}


def commands() -> list[str]:
    return re.findall(r"^\$ (.*)$", TEXT, re.MULTILINE)


def test_no_block_is_left_out():
    assert {(b.language, b.tag) for b in blocks()} == set(RUN_BY)
    assert TEXT.count("```") == 2 * len(blocks())
    for runner in set(RUN_BY.values()):
        assert "blocks()" in (ROOT / "tests" / runner).read_text()


def test_the_blocks_of_python_print_what_they_say(capsys):
    names: dict[str, object] = {}
    shown = [block for block in blocks() if (block.language, block.tag) == ("python", "")]
    assert len(shown) == 2
    for block in shown:
        block.run(names)
        assert capsys.readouterr().out.strip() == printed_after(block).strip() != ""


def test_the_demo_prints_what_the_readme_shows():
    """Rows are left out of the README; what it shows is all there, in its order."""
    (console,) = (block for block in blocks() if block.language == "console")
    shown = [line for line in console.text.splitlines() if line and not line.startswith("$")]
    printed = iter(run(sys.executable, "-m", "pystream", "demo", seconds=120).splitlines())
    for line in shown:
        assert any(line == other.rstrip() for other in printed), f"{line!r} is not printed, or not there"


def test_ci_runs_the_command_of_the_readme():
    demo, everything = commands()
    assert demo == "pip install . && pystream demo"
    assert everything == "pip install -e '.[all]' && pytest"
    assert everything in (ROOT / ".ci/run").read_text()


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 120
    (recipe,) = (block for block in blocks() if block.tag == "program")
    assert len([line for line in recipe.text.splitlines() if line.strip()]) <= 20
    for line in TEXT.splitlines():
        assert len(line) <= 132, line


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|spec|csrc|pystream|bench)/[\w./]*)`", TEXT))))
def test_what_it_names_is_there(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([\w./]+)\)|`([A-Z]+\.md)`", TEXT))))
def test_what_it_links_to_is_there(path):
    assert (ROOT / "".join(path)).exists()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`pystream (\w+)", TEXT))))
def test_the_commands_that_it_names_are_there(command):
    from pystream.cli import COMMANDS  # noqa: PLC0415

    assert command in COMMANDS
