"""Mistakes that new users make, and what they are told: mistakes.toml has the code, the exception and its message."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps

MISTAKES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())["mistake"]

T = pa.table({"ts": [1, 2, 12], "meter": ["a", "b", "a"], "cons": [0.5, 1.0, 2.0]})
H = T.set_column(0, "ts", pa.array([datetime(2024, 1, 1, hour) for hour in range(3)]))  # noqa: DTZ001 - as users do
AGGREGATES = {"n": ps.count(), "mean": ps.avg("cons")}
Q = ps.Query(ps.Window(10), "meter", AGGREGATES)
Q1H = ps.Query(ps.Window("1h"), "meter", AGGREGATES)


@dataclass
class Reading:
    ts: int
    meter: str
    cons: float


NAMES = {"ps": ps, "pa": pa, "pc": pc, "np": np, "pd": pd, "pl": pl, "date": date, "datetime": datetime}
NAMES |= {"T": T, "H": H, "Q": Q, "Q1H": Q1H, "Reading": Reading}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the code of a mistake may use."""
    monkeypatch.chdir(tmp_path)
    started = []

    def write(name, text):
        (tmp_path / name).write_text(text)
        return name

    def opened(name):
        started.append(Path(write(name, "ts,meter,cons\n")).open())  # noqa: SIM115 - closed below
        return started[-1]

    def op(query=Q, table=T):
        started.append(ps.Operator(query, 2, table.schema))
        return started[-1]

    def closed():
        op().close(0)
        return started[-1]

    def fed():
        op().add(0, T)
        return started[-1]

    yield NAMES | {
        "folder": tmp_path,
        "write": write,
        "opened": opened,
        "op": op,
        "closed": closed,
        "fed": fed,
        "hours": lambda: op(Q1H, H),
    }
    for each in started:
        each.end() if isinstance(each, ps.Operator) else each.close()


def said(code, names):
    """What a mistake is told: the exception's name and message; the folder is FOLDER."""
    try:
        eval(code, dict(names))  # noqa: S307 - the table is ours
    except Exception as error:  # noqa: BLE001 - whichever it is
        return type(error).__name__, str(error).replace(str(names["folder"]), "FOLDER")
    return None, None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["code"])
def test_mistakes(mistake, names):
    raised, message = said(mistake["code"], names)
    assert raised == mistake["raises"]
    expected = ".*".join(re.escape(part) for part in mistake["says"].split("..."))
    assert re.fullmatch(expected, message, re.DOTALL), message


def test_the_table():
    codes = [mistake["code"] for mistake in MISTAKES]
    assert len(codes) == len({*codes}) >= 60
    for mistake in MISTAKES:  # nobody is left alone with a name, or with a page
        assert 25 < len(mistake["says"]) < 320, mistake["says"]
