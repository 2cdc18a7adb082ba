"""What the tests did to the library, and what came of it: the table of tests/README.md.

A test that injects faults calls `record` once it has seen the outcome. With PYSTREAM_FAULTS_LOG set to a file, each
call appends a line there; without it, nothing happens. Then

    PYSTREAM_FAULTS_LOG=/tmp/faults.jsonl pytest --deep tests/test_kills.py
    python tests/faults.py --update /tmp/faults.jsonl

adds up the lines per fault and writes those rows that were tried more often than the table says. A row that no run has
filled in yet shows dashes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path(__file__).parent
README = TESTS / "README.md"
LOG = "PYSTREAM_FAULTS_LOG"
BEGIN, END = "<!-- faults -->", "<!-- /faults -->"
OWN_TEST = "test_faults.py"  # records what never happened
HEADING = "| fault | test | tried | survived | lost | measured |\n|---|---|--:|--:|--:|---|"


@dataclass(frozen=True)
class Row:
    """One fault: how often it was injected, how often all went on as promised, and what was lost or came twice."""

    fault: str
    where: str
    tried: int | None = None  # None: no run has filled it in
    survived: int | None = None
    lost: int | None = None
    measured: str = "-"  # date and commit

    def text(self) -> str:
        numbers = ["-" if n is None else f"{n:,}" for n in (self.tried, self.survived, self.lost)]
        return "| " + " | ".join([self.fault, f"`{self.where}`", *numbers, self.measured]) + " |"


def record(fault: str, *, tried: int, survived: int, lost: int, where: str) -> None:
    """Note the outcome of a test; `fault` is a literal, so that `names` finds it, and `where` the test's file.

    A test may call this several times, and several tests for one fault: the numbers of one log are added up.
    """
    if log := os.environ.get(LOG):
        line = {"fault": fault, "tried": tried, "survived": survived, "lost": lost, "where": where}
        line |= {"measured": f"{datetime.now(UTC):%Y-%m-%d}, {commit()}"}
        with Path(log).open("a", encoding="utf-8") as file:  # one short write: processes side by side do not mix
            file.write(json.dumps(line) + "\n")


def commit() -> str:
    """What is checked out; a copy that was built for tests says that it is one."""
    git = ["git", "-C", str(TESTS), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "a copy"


def names() -> dict[str, str]:
    """Every fault that some test records, and the test's file."""
    found = {}
    for file in sorted(TESTS.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(source)) if "faults import" in source and file.name != OWN_TEST else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "record":
                (fault,) = call.args
                if not isinstance(fault, ast.Constant):
                    raise TypeError(f"{file.name}, line {call.lineno}: record() wants the fault as a literal")
                found[fault.value] = file.relative_to(TESTS).as_posix()
    return found


def table(text: str) -> list[Row]:
    """The rows of the table in a README."""
    inside = text.partition(BEGIN)[2].partition(END)[0].strip()
    heading, rows = inside[: len(HEADING)], inside[len(HEADING) :]
    if heading != HEADING:
        raise ValueError(f"{README.name} has no table of faults between {BEGIN} and {END}")
    return [_row(line) for line in rows.splitlines() if line]


def _row(line: str) -> Row:
    fault, where, *numbers, measured = (cell.strip() for cell in line.strip("|").split("|"))
    tried, survived, lost = (None if n == "-" else int(n.replace(",", "")) for n in numbers)
    return Row(fault, where.strip("`"), tried, survived, lost, measured)


def measured(lines: Iterable[str]) -> dict[str, Row]:
    """The sums of a log."""
    sums: dict[str, Counter[str]] = {}
    last: dict[str, dict[str, str]] = {}
    for one in map(json.loads, lines):
        sums.setdefault(one["fault"], Counter()).update({n: one[n] for n in ("tried", "survived", "lost")})
        last[one["fault"]] = one
    return {f: Row(f, last[f]["where"], **n, measured=last[f]["measured"]) for f, n in sums.items()}


def merged(old: Iterable[Row], new: dict[str, Row], known: dict[str, str]) -> list[Row]:
    """One row per fault that is recorded today: what was measured more often, or with a loss, counts."""
    rows = {row.fault: row for row in old}
    for fault, row in new.items():
        if row.lost or (row.tried or 0) >= (rows[fault].tried or 0 if fault in rows else 0):
            rows[fault] = row
    return [replace(rows.get(fault, Row(fault, where)), where=where) for fault, where in sorted(known.items())]


def update(log: Path | None) -> None:
    """Write the table."""
    new = measured(log.read_text(encoding="utf-8").splitlines()) if log else {}
    text = README.read_text(encoding="utf-8")
    rows = "\n".join([HEADING, *(row.text() for row in merged(table(text), new, names()))])
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    README.write_text(f"{before}{BEGIN}\n{rows}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The table of faults in tests/README.md.")
    parser.add_argument("--update", action="store_true", required=True, help="write it")
    parser.add_argument("log", nargs="?", type=Path, help=f"what a run with {LOG} has left")
    update(parser.parse_args().log)
