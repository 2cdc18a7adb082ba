"""Which C function stands for which PlusCal label: read from csrc, written into spec/README.md.

In C, AT(label) stands before the access to shared memory that mirrors the label; the function around it is the answer.
A mark names no module, and modules share labels, so spec/mirror.toml lists the C files of each module, and gives
for each label without a mark what stands for it: the label under which it is marked, functions, or why there is none.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pystream.verify.tlc import CheckError, sections
from pystream.verify.tlc.pluscal import labels, pluscal_modules, seeded

README = "README.md"
PART = "mirror"
DECLARED = "mirror.toml"

_MARK = re.compile(r"^\s*AT\((\w+)\);")
# The code is formatted: what begins in the first column is a declaration, and } in the first column ends it.
_HEAD = re.compile(r"^(?:__attribute__\(\([^)]*\)?\)\) )?(?!typedef\b)[a-z][\w *]*?(\w+)\(")


@dataclass(frozen=True, order=True)
class Place:
    """A C function, and its file as a path from csrc."""

    file: str
    function: str


@dataclass(frozen=True)
class Declared:
    """What spec/mirror.toml has on one module."""

    c: tuple[str, ...]
    marked_as: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    none: Mapping[str, str] = field(default_factory=dict)
    through: tuple[str, ...] = ()
    cells: Mapping[str, str] = field(default_factory=dict)
    mistakes: tuple[str, ...] = ()
    floats: Mapping[str, str] = field(default_factory=dict)
    jumps: Mapping[str, str] = field(default_factory=dict)


class Sources:
    """The C files of the core: the functions that they define, and the marks in these."""

    def __init__(self, csrc: Path) -> None:
        """Read all rooms but the model build's, whose subjects have marks of their own."""
        self.marks: dict[str, dict[str, list[Place]]] = {}
        self.places: dict[str, list[Place]] = {}
        for path in sorted(csrc.glob("*/*.[ch]")):
            if path.parent.name != "model":
                self._read(path.relative_to(csrc).as_posix(), path.read_text(encoding="utf-8"))

    def _read(self, file: str, text: str) -> None:
        marks = self.marks.setdefault(file, {})
        for function, line in lines_in_functions(text):
            place = Place(file, function)
            known = self.places.setdefault(function, [])
            if place not in known:
                known.append(place)
            mark = _MARK.match(line)
            if mark and place not in marks.setdefault(mark[1], []):
                marks[mark[1]].append(place)

    def find(self, name: str) -> Place:
        """Return the one function of this name; `gates/t_gate.c:step` chooses among several."""
        file, _, function = name.rpartition(":")
        found = [place for place in self.places.get(function, []) if file in ("", place.file)]
        if len(found) == 1:
            return found[0]
        files = ", ".join(place.file for place in found)
        hint = f"is in {files}: write {found[0].file}:{function}" if found else "is in no file of csrc"
        raise CheckError(f"{DECLARED}: the function {name} {hint}")


def lines_in_functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield (function, line) for each line of each function that is defined in a C file."""
    name, inside = "", False
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head and not inside:
            name = head[1]
        if name and not inside:
            if line.rstrip().endswith(";"):
                name = ""  # a prototype
            inside = bool(name) and "{" in line
        if inside:
            yield name, line
            if line.startswith("}") or (head and line.rstrip().endswith("}")):
                name, inside = "", False


def declared(spec: Path) -> dict[str, Declared]:
    """Read spec/mirror.toml."""
    try:
        entries = tomllib.loads((spec / DECLARED).read_text(encoding="utf-8"))
        return {module: Declared(**entry) for module, entry in entries.items()}
    except (OSError, TypeError, ValueError) as error:
        raise CheckError(f"{spec / DECLARED}: {error}") from error


def rows(spec: Path) -> list[tuple[str, str, str]]:
    """Return (module, label, what stands for it in C) for each label of each module."""
    given, sources = declared(spec), Sources(spec.parent / "csrc")
    modules = {path.stem: path for path in pluscal_modules(spec)}
    if set(given) != set(modules):
        raise CheckError(f"{DECLARED} and the PlusCal modules differ: {sorted(set(given) ^ set(modules))}")
    _check_marks(given, sources, {name: {label.name for label in labels(path)} for name, path in modules.items()})
    table = []
    for name, path in modules.items():
        texts = _Texts(given, sources, name, seeded(path))
        table += [(name, label.name, texts.of(label.name)) for label in labels(path)]
        texts.check_used({label.name for label in labels(path)})
    return table


def _check_marks(given: Mapping[str, Declared], sources: Sources, known: Mapping[str, set[str]]) -> None:
    """Every mark in C is a label of a module that lists its file, and every file that is listed is there."""
    listed = {file for declared in given.values() for file in declared.c}
    if listed - set(sources.marks):
        raise CheckError(f"{DECLARED}: csrc has no file {', '.join(sorted(listed - set(sources.marks)))}")
    for file, marks in sources.marks.items():
        for label in marks:
            if not any(file in declared.c and label in known[module] for module, declared in given.items()):
                raise CheckError(f"csrc/{file}: AT({label}) is a label of no module that lists this file in {DECLARED}")


@dataclass
class _Texts:
    """The answers for the labels of one module."""

    given: Mapping[str, Declared]
    sources: Sources
    module: str
    seeded: set[str]

    def of(self, label: str) -> str:
        """Return what stands for the label in C; CheckError if there is not exactly one answer."""
        answers = list(self._answers(label))
        if len(answers) != 1:
            wrong = " and ".join(answers) or f"no mark in its C files, and nothing in {DECLARED}"
            raise CheckError(f"{self.module}: {label}: {wrong}")
        return answers[0]

    def _answers(self, label: str) -> Iterator[str]:
        own = self.given[self.module]
        marked = self._marked(self.module, label)
        called = _listed(self.sources.find(name) for name in own.calls.get(label, ()))
        if marked or called:
            yield "; ".join(filter(None, [marked, called and f"all of {called}"]))
        if label in self.seeded:
            yield "none: a seeded mistake"
        if label in own.marked_as:
            yield self._elsewhere(own.marked_as[label])
        if label in own.none:
            yield f"none: {own.none[label]}"

    def _marked(self, module: str, label: str) -> str:
        marks = [self.sources.marks[file].get(label, []) for file in self.given[module].c]
        return _listed(place for places in marks for place in places)

    def _elsewhere(self, name: str) -> str:
        module, _, label = name.partition(".")
        marked = self._marked(module, label) if module in self.given else ""
        if not marked:
            raise CheckError(f"{DECLARED}: {name} has no mark in C")
        other = "" if module == self.module else f" of `{module}`"
        return f"{marked}, marked `{label}`{other}"

    def check_used(self, known: set[str]) -> None:
        """Refuse what is said of labels that the module does not have."""
        own = self.given[self.module]
        unknown = {*own.marked_as, *own.calls, *own.none} - known
        if unknown:
            raise CheckError(f"{DECLARED}: {self.module} has no label {', '.join(sorted(unknown))}")


def _listed(places: Iterator[Place]) -> str:
    """Return the functions by file: `f`, `g` (`first file`), `h` (`second file`)."""
    files: dict[str, list[str]] = {}
    for place in places:
        files.setdefault(place.file, []).append(f"`{place.function}`")
    return ", ".join(f"{', '.join(functions)} (`{file}`)" for file, functions in files.items())


def table(spec: Path) -> str:
    """Return the table in Markdown; labels with the same answer share a row."""
    shared: dict[tuple[str, str], list[str]] = {}
    for module, label, text in rows(spec):
        shared.setdefault((module, text), []).append(f"`{label}`")
    lines = ["| module | labels | in C |", "|---|---|---|"]
    lines += [f"| `{module}` | {', '.join(names)} | {text} |" for (module, text), names in shared.items()]
    return "\n".join(lines)


def is_current(spec: Path) -> bool:
    """Return whether the README has the table that the sources give."""
    return sections.split(spec / README, PART)[1].strip() == table(spec)


def write_readme(spec: Path) -> None:
    """Write the table into the README, if the specs mirror C sources at all."""
    if (spec / DECLARED).is_file():
        sections.write(spec / README, PART, table(spec))
