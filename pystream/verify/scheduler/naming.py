"""Names for the memory of an execution: `next[0] of (1, input 0)` instead of `n1.1+24`.

A block is called after the call that made it, the first of its thread that publishes it; what was there before all
calls belongs to the structure itself. A field is called after its accessors, and counted where there are several.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystream.verify.scheduler.run import Access, Run

ADDRESS = re.compile(r"n(\d+)\.(\d+)(?:\+(\d+))?")
#: Fields that accessors are not named after.
FIELDS = {"link": "next", "run_link": "next", "pane_link": "next", "ms_next": "next", "ms_value": "value"}
#: Calls that make blocks.
MAKERS = ("insert", "insert_run", "update", "heartbeat", "close", "enqueue", "push", "find_or_insert")
#: Of these there is one on every level of a node.
LEVELS = ("link",)


class Names:
    """The names of one execution."""

    def __init__(self, run: Run) -> None:
        self._subject = run.program.subject
        self._calls = run.program.calls()
        self._owner: dict[tuple[str, str], str] = {}
        self._offsets: dict[tuple[tuple[str, str], str], set[int]] = defaultdict(set)
        for access in run.trace:
            self._meet(access)

    def _meet(self, access: Access) -> None:
        if found := ADDRESS.fullmatch(access.cell):
            thread, number, offset = found.groups()
            self._offsets[(thread, number), access.accessor.rpartition("_")[0]].add(int(offset or 0))
        written = ADDRESS.fullmatch(access.value) if access.kind in ("store", "swap") else None
        if written and access.thread == int(written[1]) and access.call >= 0:
            call = self._calls[access.call][1]
            if call[0] in MAKERS:
                self._owner.setdefault((written[1], written[2]), named_call(call))

    def cell(self, access: Access) -> str:
        """A cell, by its field and its block."""
        found = ADDRESS.fullmatch(access.cell)
        if not found:
            return access.cell
        thread, number, offset = found.groups()
        stem = access.accessor.rpartition("_")[0] or access.accessor
        places = sorted(self._offsets[(thread, number), access.accessor.rpartition("_")[0]])
        field = FIELDS.get(stem, stem)
        if len(places) > 1 or stem in LEVELS:
            field += f"[{places.index(int(offset or 0))}]"
        return f"{field} of {self._block(thread, number)}"

    def value(self, access: Access) -> str:
        """A value: the block that it points to, or the number."""
        found = ADDRESS.fullmatch(access.value)
        return self._block(found[1], found[2]) if found else access.value

    def text(self, text: str) -> str:
        """A message of the model, with its addresses named."""
        return ADDRESS.sub(lambda found: f"{self._block(found[1], found[2])} ({found[0]})", text)

    def _block(self, thread: str, number: str) -> str:
        return self._owner.get((thread, number)) or f"{self._subject} {thread}.{number}"


def named_call(call: tuple[Any, ...]) -> str:
    """What a call has made: a tuple or a promise by its place in the order, anything else by the call."""
    name, *arguments = call
    if name in ("insert", "insert_run", "update", "heartbeat"):
        return f"({arguments[1]}, input {arguments[0]})"
    if name == "close" and arguments:
        return f"(end, input {arguments[0]})"
    return f"{name}({', '.join(map(str, arguments))})"
