"""PlusCal modules: their labels, and whether their committed translations are up to date."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pystream.verify.tlc.java import Tools
from pystream.verify.tlc.runner import Finished, Task

_ALGORITHM = re.compile(r"--(?:fair\s+)?algorithm\b")
_BEGIN = "BEGIN TRANSLATION"
_END = "END TRANSLATION"
# A label becomes a definition whose first conjunct waits for it: insert_read(self) == /\ pc[self] = "insert_read"
_LABEL = re.compile(r'^(\w+)(?:\([^)]*\))? ==\s+/\\ pc(?:\[[^\]]*\])? = "\1"', re.MULTILINE)
# A step that only a seeded mistake takes cannot be in a model that passes; the module names such labels.
_SEEDED = re.compile(r"^\\\* Seeded labels: (.*)$", re.MULTILINE)
_NEXT_DEFINITION = re.compile(r"^\S", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Label:
    """A PlusCal label: the lines of its definition in the translation, both included."""

    module: str
    name: str
    first_line: int
    last_line: int


def pluscal_modules(spec: Path) -> list[Path]:
    """Return the modules that hold a PlusCal algorithm."""
    return [path for path in sorted(spec.glob("*.tla")) if _ALGORITHM.search(path.read_text(encoding="utf-8"))]


def labels(path: Path) -> list[Label]:
    """Return the labels of a module, as its translation has them."""
    text = path.read_text(encoding="utf-8")
    begin, end = text.find(_BEGIN), text.find(_END)
    return [_label(path, text, found) for found in _LABEL.finditer(text, max(begin, 0), max(end, 0))]


def seeded(path: Path) -> set[str]:
    """Return the labels that a comment `Seeded labels: ...` of the module declares to be steps of mistakes only."""
    return {name for line in _SEEDED.findall(path.read_text(encoding="utf-8")) for name in re.findall(r"\w+", line)}


def algorithm_lines(text: str) -> tuple[int, int]:
    """Return the lines of the algorithm, a comment to TLC, as a half-open range that begins at 0; empty without one."""
    found = _ALGORITHM.search(text)
    begin = text.find(_BEGIN, found.end()) if found else -1
    if not found or begin < 0:
        return 0, 0
    return _line(text, found.start()) - 1, _line(text, begin) - 1


def _label(path: Path, text: str, found: re.Match[str]) -> Label:
    follower = _NEXT_DEFINITION.search(text, found.end())
    end = follower.start() if follower else len(text)
    return Label(path.stem, found[1], _line(text, found.start()), _line(text, end) - 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def translation_task(tools: Tools, module: Path, folder: Path) -> Task:
    """Copy a module into a new folder and return the command that translates the copy."""
    (folder / "tmp").mkdir(parents=True)
    shutil.copy(module, folder)
    java = [str(tools.java), "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder / 'tmp'}"]
    command = [*java, "-cp", str(tools.jar), "pcal.trans", "-nocfg", module.name]
    # The name with its ending: no model is called so.
    return Task(module.name, command, folder, product=module.name)


def stale(module: Path, finished: Finished) -> str | None:
    """Return what is wrong with a module's committed translation, or None."""
    if finished.code != 0:
        lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
        return " ".join(lines[1:4]) or "the PlusCal translator failed"
    if _comparable(module.read_text(encoding="utf-8")) == _comparable(finished.product):
        return None
    return f"the translation is stale: run `java -cp tla2tools.jar pcal.trans -nocfg {module.name}`"


def _comparable(text: str) -> list[str]:
    """Return the lines without what may differ between two right translations: check sums, blanks at the end."""
    return [re.sub(rf"({_BEGIN}|{_END}).*", r"\1", line).rstrip() for line in text.splitlines()]
