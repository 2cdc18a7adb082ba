"""The rooms of csrc: what may include what."""

from __future__ import annotations

import re

from tools import CSRC

#: From the ground up. A file includes files of its own room and of the rooms before it.
BELOW = ("base", "columns", "keys", "aggregates", "gates", "windows", "slices", "partials", "operator", "designs")
ROOMS = (*BELOW, "model")

#: Read by callers and by cffi; base/base.h includes it, so it includes nothing.
BORDER = "pystream.h"

INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)


def upward(room: str, text: str) -> list[str]:
    """The includes of a file in this room that are not named by room and file, or point upwards."""
    wrong = []
    for name in INCLUDE.findall(text):
        folder, _, file = name.rpartition("/")
        below = folder in ROOMS and ROOMS.index(folder) <= ROOMS.index(room)
        if name != BORDER and not (below and (CSRC / folder / file).exists()):
            wrong.append(name)
    return wrong


def test_every_file_is_in_a_room():
    assert {path.parent.name for path in CSRC.glob("*/*.[ch]")} == set(ROOMS)
    assert [path.name for path in CSRC.glob("*.[ch]")] == [BORDER]


def test_includes_point_downwards():
    found = {
        f"{path.relative_to(CSRC)}: {name}"
        for path in CSRC.glob("*/*.[ch]")
        for name in upward(path.parent.name, path.read_text())
    }
    assert found == set()
    assert INCLUDE.findall((CSRC / BORDER).read_text()) == []


def test_an_include_that_points_upwards_is_found():
    assert upward("gates", '#include "base/base.h"\n#include "windows/w_hive.h"\n') == ["windows/w_hive.h"]
    assert upward("gates", '#include "t_gate.h"\n') == ["t_gate.h"]


def test_cmake_knows_the_rooms():
    """CMakeLists.txt lists them in this order; the model build adds its own."""
    text = (CSRC / "CMakeLists.txt").read_text()
    rooms = re.search(r"set\(ROOMS (.*)\)", text)
    assert rooms is not None
    assert tuple(rooms[1].split()) == BELOW


def test_file_names_are_unique():
    """Comments and traces name files without their rooms."""
    names = [path.name for path in CSRC.glob("*/*.[ch]")]
    assert len(names) == len(set(names))


def test_the_picture_shows_what_uses_what():
    """In csrc/README.md; base, which all use, is left out."""
    picture = (CSRC / "README.md").read_text().split("```")[1]
    shown: dict[str, set[str]] = {"base": set(), "columns": set()}
    box: list[str] = []
    for line in picture.splitlines():
        inside, _, told = line.rpartition("|")
        box = [] if line.startswith("+") else box + re.findall(r"\| (\w+) {2,}", inside)
        named, _, used = told.partition("uses ")
        rooms = {"": box[:1], "each": box}.get(named.strip(" :"), [named.strip(" :")])
        shown |= {room: set(used.split(", ")) for room in rooms if used}
    used = {room: set() for room in BELOW}
    for room in BELOW:
        for path in (CSRC / room).glob("*.[ch]"):
            used[room] |= {name.partition("/")[0] for name in INCLUDE.findall(path.read_text())}
    assert shown == {room: below - {room, "base", BORDER} for room, below in used.items()}
