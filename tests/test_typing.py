"""The types as users' checkers see them, and that they tell the truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args, get_type_hints

from tools import run

import pystream as ps
from pystream.designs import DESIGNS

ROOT = Path(__file__).parent.parent


def test_a_users_file_checks_strictly():
    """What is right there passes, and each `type: ignore` is needed: strict mode complains about the others."""
    command = ["-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", ROOT / "tests/typed_user.py"]
    run(sys.executable, *command, cwd=ROOT)


def test_the_designs_are_all_there_are():
    assert set(get_args(ps.Design)) == {"auto", *DESIGNS}


def test_the_numbers_are_those_that_the_type_names():
    query = ps.Query(ps.Window(1), None, {"n": ps.count()})
    with ps.Operator(query, 2, [("ts", "int64")]) as op:
        assert list(op.stats()) == list(get_type_hints(ps.Stats))
