"""A module with one piece of its text changed: a mistake that is not worth a rule of its own.

Only the text that TLC reads counts: a PlusCal algorithm is a comment to it, and a change is made in the translation.
"""

from pathlib import Path

from pystream.verify.tlc import CheckError
from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.pluscal import algorithm_lines


def write_changed(spec: Path, model: Model, folder: Path) -> None:
    """Put the changed module into the folder where TLC looks first, if the model has one."""
    if not model.change:
        return
    module, old, new = model.change
    path = spec / f"{module}.tla"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckError(f"model {model.name} changes {module}, which cannot be read: {error}") from error
    (folder / path.name).write_text(changed(text, old, new, model.name), encoding="utf-8")


def changed(text: str, old: str, new: str, name: str) -> str:
    """Return the text with `old`, which must be there exactly once outside the algorithm, replaced."""
    first, last = algorithm_lines(text)
    lines = text.splitlines(keepends=True)
    before, algorithm, after = "".join(lines[:first]), "".join(lines[first:last]), "".join(lines[last:])
    found = before.count(old) + after.count(old)
    if found != 1:
        raise CheckError(f"model {name} changes {old!r}, which is there {found} times, not once")
    return before.replace(old, new) + algorithm + after.replace(old, new)
