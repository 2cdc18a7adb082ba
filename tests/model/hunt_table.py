"""The table of HUNT.md: which seeded bugs the state machines find, in how many examples, and how small they get.

python tests/model/hunt_table.py [NAME ...]    # hunt these bugs, or all, and write their rows again
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PAGE = HERE / "HUNT.md"
MARKS = "<!-- hunted -->", "<!-- /hunted -->"
ROW = re.compile(r"\| ([^|]+) \| ([^|]+) \| (\d+) \+ (\d+) \| ([\d-]+) \| (?:(\d+) \+ (\d+)|missed) \|")
HEAD = """| structure | bug | known: calls + departures | found in example | found: calls + departures |
|---|---|--:|--:|--:|"""


class Row(NamedTuple):
    """One bug. `example` is 0 if the state machine did not find it."""

    structure: str
    name: str
    known: tuple[int, int]
    example: int = 0
    found: tuple[int, int] = (0, 0)

    @property
    def small(self) -> bool:
        """Whether it was found and is as small as known, or one larger: another counterexample that is smallest too."""
        return self.example > 0 and sum(self.found) <= sum(self.known) + 1

    def __str__(self) -> str:
        known = "{} + {}".format(*self.known)
        found = "{} + {}".format(*self.found) if self.example else "missed"
        return f"| {self.structure} | {self.name} | {known} | {self.example or '-'} | {found} |"


def nine_of_ten(rows: list[Row]) -> bool:
    """Whether at least nine of ten of these bugs are found and small, not rounded."""
    return 10 * sum(row.small for row in rows) >= 9 * len(rows)


def by_structure(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each."""
    return {name: [row for row in rows if row.structure == name] for name in dict.fromkeys(r.structure for r in rows)}


def known(bug: dict) -> tuple[int, int]:
    """The size that seeded.toml says: all calls of the program, and the departures of its schedule."""
    texts = [*bug["threads"], bug.get("before", ""), bug.get("after", "")]
    calls = sum(bool(call.strip()) for text in texts for call in text.split(";"))
    return calls, sum(bug.get(name, 0) for name in ("switches", "stale", "failures"))


def told(rows: list[Row]) -> str:
    """The two tables."""
    lines = ["| structure | seeded bugs | found | found and small | nine of ten |", "|---|--:|--:|--:|---|"]
    for structure, mine in by_structure(rows).items():
        found, small = sum(row.example > 0 for row in mine), sum(row.small for row in mine)
        reached = "yes" if nine_of_ten(mine) else "**below the goal**"
        lines.append(f"| {structure} | {len(mine)} | {found} | {small} | {reached} |")
    return "\n".join([*lines, "", HEAD, *map(str, rows)])


def read(page: str) -> list[Row]:
    """The rows of the page."""
    found = []
    for line in page.splitlines():
        if match := ROW.fullmatch(line):
            structure, name, calls, departures, example, got, with_ = match.groups()
            size = (int(got), int(with_)) if got else (0, 0)
            found.append(Row(structure, name, (int(calls), int(departures)), int(example) if got else 0, size))
    return found


def put(page: str, rows: list[Row]) -> str:
    """The page with these tables."""
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return f"{before}{MARKS[0]}\n{told(rows)}\n{MARKS[1]}{after}"


def main() -> None:
    """Hunt, and write the page after each."""
    from test_hunt import BUGS, Builds, hunted  # noqa: PLC0415 - it needs this module

    with Builds.temporary() as builds:
        for name in sys.argv[1:] or BUGS:
            row = hunted(name, builds)
            print(row, flush=True)  # noqa: T201
            rows = {**{r.name: r for r in read(PAGE.read_text())}, name: row}
            PAGE.write_text(put(PAGE.read_text(), [rows[n] for n in BUGS if n in rows]))


if __name__ == "__main__":
    main()
