"""The README as tests run it: its fenced blocks, each with what it is and what is printed below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"

_FENCED = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A fenced block: `language` and `tag` are the words after the fence, `section` the heading above it."""

    language: str
    tag: str
    text: str
    section: str
    line: int

    def run(self, names: dict[str, object]) -> None:
        """Run it as printed; a traceback names the line of the README."""
        code = "\n" * self.line + self.text
        exec(compile(code, str(README), "exec"), names)  # noqa: S102 - our own README


def blocks(text: str | None = None) -> list[Block]:
    """All blocks, from the top."""
    text = README.read_text(encoding="utf-8") if text is None else text
    found = []
    for match in _FENCED.finditer(text):
        before = text[: match.start()]
        heading = re.findall(r"^##? (.*)$", before, re.MULTILINE)[-1]
        language, tag, inside = match.groups(default="")
        found.append(Block(language, tag, inside, heading, before.count("\n") + 1))
    return found


def printed_after(block: Block) -> str:
    """What the README says that this block prints: the block of text right below it, or nothing."""
    shown = [b for b in blocks() if b.language == "text" and b.line == block.line + block.text.count("\n") + 2]
    return shown[0].text if shown else ""
