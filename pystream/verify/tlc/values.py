"""TLA+ values as TLC prints them, and what changed between two of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

SHOWN_CHARACTERS = 60
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<<|>>|\|->|:>|@@|[\[\](){},]|[^\s\[\](){},<>:@|"]+)')


@dataclass(frozen=True)
class Function:
    """A tuple, a record or a function: keys as text, in the order printed."""

    entries: Mapping[str, "Value"] = field(default_factory=dict)
    is_record: bool = False
    is_tuple: bool = False


@dataclass(frozen=True)
class Set:
    """A set: members as text."""

    members: tuple[str, ...]


Value: TypeAlias = "str | Function | Set"


def parse_value(text: str) -> Value:
    """Parse a value; what cannot be parsed stays text."""
    try:
        reader = _Reader(text)
        value = reader.value()
    except (IndexError, ValueError):
        return " ".join(text.split())
    return value if reader.at_end() else " ".join(text.split())


class _Reader:
    """A recursive-descent reader over the tokens of one value."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.position = 0

    def at_end(self) -> bool:
        return self.position == len(self.tokens)

    def take(self) -> str:
        self.position += 1
        return str(self.tokens[self.position - 1])

    def take_if(self, token: str) -> bool:
        if not self.at_end() and self.tokens[self.position] == token:
            self.position += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take_if(token):
            raise ValueError(token)

    def value(self) -> Value:
        opening = self.take()
        if opening == "<<":
            members = self.listed(">>")
            return Function({str(number): member for number, member in enumerate(members, 1)}, is_tuple=True)
        if opening == "{":
            return Set(tuple(show(member) for member in self.listed("}")))
        if opening == "[":
            return Function(dict(self.pairs("|->", ",", "]")), is_record=True)
        if opening == "(":
            return Function(dict(self.pairs(":>", "@@", ")")))
        if opening in (">>", "}", "]", ")", ",", "|->", ":>", "@@"):
            raise ValueError(opening)
        return opening

    def listed(self, closing: str) -> Iterator[Value]:
        if self.take_if(closing):
            return
        yield self.value()
        while not self.take_if(closing):
            self.expect(",")
            yield self.value()

    def pairs(self, arrow: str, between: str, closing: str) -> Iterator[tuple[str, Value]]:
        while True:
            key = show(self.value())
            self.expect(arrow)
            yield key, self.value()
            if self.take_if(closing):
                return
            self.expect(between)


def show(value: Value) -> str:
    """Return a value on one line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Set):
        return "{" + ", ".join(value.members) + "}"
    if value.is_tuple:
        return "<<" + ", ".join(show(entry) for entry in value.entries.values()) + ">>"
    arrow, between, brackets = (" |-> ", ", ", "[]") if value.is_record else (" :> ", " @@ ", "()")
    inside = between.join(f"{key}{arrow}{show(entry)}" for key, entry in value.entries.items())
    return brackets[0] + inside + brackets[1]


def changes(name: str, old: Value, new: Value) -> list[str]:
    """Return what changed, only the parts that did: `seen[1]: 0 → 1`, `crashed + 2`, `output ++ <<7>>`."""
    if old == new:
        return []
    if isinstance(old, Set) and isinstance(new, Set):
        return [_set_change(name, old, new)]
    if isinstance(old, Function) and isinstance(new, Function):
        if old.entries.keys() == new.entries.keys() and old.entries:
            return [
                change
                for key, entry in new.entries.items()
                for change in changes(_part(name, key, new), old.entries[key], entry)
            ]
        if old.is_tuple and new.is_tuple and _starts_with(new, old):
            added = list(new.entries.values())[len(old.entries) :]
            return [f"{name} ++ {_short('<<' + ', '.join(map(show, added)) + '>>')}"]
    return [f"{name}: {_short(show(old))} → {_short(show(new))}"]


def _part(name: str, key: str, whole: Function) -> str:
    return f"{name}.{key}" if whole.is_record else f"{name}[{key}]"


def _starts_with(longer: Function, shorter: Function) -> bool:
    return list(longer.entries.values())[: len(shorter.entries)] == list(shorter.entries.values())


def _set_change(name: str, old: Set, new: Set) -> str:
    added = [member for member in new.members if member not in old.members]
    removed = [member for member in old.members if member not in new.members]
    parts = [_members("+", added), _members("-", removed)]
    told = " ".join([name, *(part for part in parts if part)])
    if len(told) <= SHOWN_CHARACTERS:
        return told
    return f"{name}: {len(old.members)} → {len(new.members)} members (+{len(added)} -{len(removed)})"


def _members(sign: str, members: Sequence[str]) -> str:
    return f"{sign} {', '.join(members)}" if members else ""


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
