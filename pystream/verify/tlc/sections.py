"""Generated parts of a Markdown file, each between the lines <!-- name --> and <!-- /name -->."""

from pathlib import Path

from pystream.verify.tlc import CheckError
from pystream.whole_file import write_whole


def split(path: Path, name: str) -> tuple[str, str, str]:
    """Return the text before the part, the part, and the text after it, without the markers."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, found, rest = text.partition(begin)
    part, ended, after = rest.partition(end)
    if not found or not ended:
        raise CheckError(f"{path} has no place for the table: it needs the lines {begin} and {end}")
    return before, part, after


def write(path: Path, name: str, part: str) -> None:
    """Replace one part."""
    before, _, after = split(path, name)
    write_whole(path, f"{before}<!-- {name} -->\n{part}\n<!-- /{name} -->{after}")
