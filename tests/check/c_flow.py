"""The order in which C functions pass their AT(label) marks, and the access behind each mark, read from the sources.

A parser gives the syntax tree; the flow through it is followed from mark to mark, into the functions that are called.
Conditions are not evaluated: each branch may be taken. A `for` goes round once at least: what it counts is there (an
input, a reader); other loops may end before they begin.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tree_sitter import Node

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))

#: An accessor of base/atomics.h, and what it does to its cell.
_ACCESSOR = re.compile(
    r"^static inline [^;{]*?(\w+)\((?:const )?cell \*(?:[^;{]*)\)\s*\{(.*?)\}$", re.MULTILINE | re.DOTALL
)
_NO_STEP = re.compile(r"Not a step of any spec\. \*/\n(.*?\}\n)", re.DOTALL)
_KINDS = {"CELL_LOAD": "load", "CELL_STORE": "store", "CELL_SWAP": "swap", "CELL_ADD": "add"}

Marks = frozenset["Mark"]
NOWHERE: Marks = frozenset()


@dataclass(frozen=True, order=True)
class Mark:
    """AT(label) in a C file."""

    file: str
    line: int
    label: str

    def __str__(self) -> str:
        return f"csrc/{self.file}:{self.line}: AT({self.label})"


@dataclass(frozen=True, order=True)
class Access:
    """A call of an accessor of atomics.h: load, store, swap or add, and the cell's name."""

    accessor: str
    kind: str
    cell: str


@dataclass
class _Exits:
    """Where the flow leaves a loop or a function, collected while it is followed."""

    breaks: set[Mark] = field(default_factory=set)
    continues: set[Mark] = field(default_factory=set)


class Sources:
    """All C files of the core but the model build's."""

    def __init__(self, csrc: Path) -> None:
        atomics = (csrc / "base/atomics.h").read_text(encoding="utf-8")
        self.accessors = accessors(_NO_STEP.sub("", atomics))
        self.no_steps = accessors("".join(_NO_STEP.findall(atomics)))
        self.marks: list[Mark] = []
        self._functions: dict[str, dict[str, Node]] = defaultdict(dict)
        self._at: dict[tuple[str, int], Mark] = {}
        for path in sorted(csrc.glob("*/*.[ch]")):
            if path.parent.name != "model" and path.name != "atomics.h":
                self._read(path.relative_to(csrc).as_posix(), path.read_bytes())

    def _read(self, file: str, text: bytes) -> None:
        for node in _of_type(_PARSER.parse(text).root_node, "function_definition"):
            name = _name(node)
            if name:
                self._functions[name][file] = node
                self._read_marks(file, node)

    def _read_marks(self, file: str, function: Node) -> None:
        for call in _of_type(function, "call_expression"):
            name, arguments = _called(call)
            if name == "AT":
                mark = self._at[file, call.start_byte] = Mark(file, call.start_point[0] + 1, arguments[0])
                if not self._is_no_step(call.parent.next_named_sibling):
                    self.marks.append(mark)

    def _is_no_step(self, statement: Node | None) -> bool:
        """Return whether an access is no step of a spec; the scheduler wants a mark before it all the same."""
        return statement is not None and any(f"{name}(" in statement.text.decode() for name in self.no_steps)

    @cached_property
    def accesses(self) -> dict[Mark, set[Access]]:
        """Return what stands behind each mark."""
        found: dict[Mark, set[Access]] = defaultdict(set)
        for file, function in self.functions({mark.file for mark in self.marks}):
            for mark, access in self.flow(file, function, self.marks).accesses:
                found[mark].add(access)
        return found

    def functions(self, files: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (file, function) of each function defined in these files."""
        wanted = set(files)
        for name, places in self._functions.items():
            yield from ((file, name) for file in places if file in wanted)

    def flow(self, file: str, function: str, marks: Iterable[Mark]) -> Flow:
        """Return how control goes from mark to mark in a function and in those it calls; other marks do not count."""
        flow = Flow(self, frozenset(marks))
        flow.call(file, function, frozenset({None}))
        return flow

    def find(self, file: str, name: str) -> tuple[str, Node] | None:
        """Return the function that a call in this file means."""
        places = self._functions.get(name, {})
        if file in places:
            return file, places[file]
        return next(iter(places.items())) if len(places) == 1 else None

    def mark(self, file: str, call: Node) -> Mark:
        return self._at[file, call.start_byte]


def accessors(text: str) -> dict[str, str]:
    """Return what each accessor of atomics.h does: load, store, swap or add."""
    found = {}
    for name, body in _ACCESSOR.findall(text):
        kinds = [kind for macro, kind in _KINDS.items() if macro in body]
        if kinds:
            found[name] = kinds[0]
    return found


def cell_name(argument: str) -> str:
    """Return the name of the cell that an accessor is given: `&r->passed[reader].word` is `passed`."""
    without = argument.removesuffix(".word")  # of cell_alone
    while without != (without := re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", without)):
        pass
    return re.findall(r"\w+", without)[-1]


@dataclass
class Flow:
    """From which mark control may come to which; None is the start."""

    sources: Sources
    counted: frozenset[Mark]
    edges: set[tuple[Mark | None, Mark]] = field(default_factory=set)
    accesses: set[tuple[Mark, Access]] = field(default_factory=set)
    _calls: dict[Mark, tuple[str, ...]] = field(default_factory=dict)
    _within: tuple[str, ...] = ()

    def passed(self, mark: Mark, before: frozenset) -> frozenset:
        """Pass a mark."""
        self.edges |= {(last, mark) for last in before}
        self._calls[mark] = self._within
        return frozenset({mark}) if before else NOWHERE

    def accessed(self, access: Access, before: frozenset) -> None:
        """An access belongs to the mark before it, in the same function or in one that is called from there."""
        for mark in before - {None}:
            if self._within[: len(self._calls[mark])] == self._calls[mark]:
                self.accesses.add((mark, access))

    def call(self, file: str, name: str, before: frozenset) -> frozenset:
        """Follow the flow through a function; `before`: the marks that may have been passed last."""
        found = self.sources.find(file, name)
        if found is None or name in self._within:
            return before
        self._within += (name,)
        place, function = found
        returns: set = set()
        after = _Body(self, place, returns).statement(function.child_by_field_name("body"), before, _Exits())
        self._within = self._within[:-1]
        return after | returns


@dataclass
class _Body:
    """The flow through the body of one function."""

    flow: Flow
    file: str
    returns: set

    def statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        """Return the marks that may have been passed last behind a statement; none if it is never left that way."""
        handle = getattr(self, f"_{node.type}", None)
        if handle is not None:
            return handle(node, before, loop)
        for child in node.children:
            before = self.statement(child, before, loop)
        return before

    def _call_expression(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        name, arguments = _called(node)
        if name == "AT":
            mark = self.flow.sources.mark(self.file, node)
            if mark not in self.flow.counted:
                return before
            return self.flow.passed(mark, before)
        before = self.statement(node.child_by_field_name("arguments"), before, loop)
        if name in self.flow.sources.accessors:
            self.flow.accessed(Access(name, self.flow.sources.accessors[name], cell_name(arguments[0])), before)
        return self.flow.call(self.file, name, before) if before else before

    def condition(self, node: Node, before: frozenset, loop: _Exits) -> tuple[frozenset, frozenset]:
        """Return the marks passed last if the condition holds, and if not."""
        if node.type == "parenthesized_expression":
            return self.condition(node.children[1], before, loop)
        sign = node.child_by_field_name("operator") if node.type in ("unary_expression", "binary_expression") else None
        if sign is None or sign.type not in ("!", "&&", "||"):
            return (self.statement(node, before, loop),) * 2
        if sign.type == "!":
            return self.condition(node.child_by_field_name("argument"), before, loop)[::-1]
        holds, fails = self.condition(node.child_by_field_name("left"), before, loop)
        then, other = self.condition(node.child_by_field_name("right"), holds if sign.type == "&&" else fails, loop)
        return (then, fails | other) if sign.type == "&&" else (holds | then, other)

    def _binary_expression(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        if node.child_by_field_name("operator").type in ("&&", "||"):
            return frozenset().union(*self.condition(node, before, loop))
        before = self.statement(node.child_by_field_name("left"), before, loop)
        return self.statement(node.child_by_field_name("right"), before, loop)

    def _if_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        holds, fails = self.condition(node.child_by_field_name("condition"), before, loop)
        after = self.statement(node.child_by_field_name("consequence"), holds, loop)
        other = node.child_by_field_name("alternative")
        return after | (self.statement(other, fails, loop) if other else fails)

    _conditional_expression = _if_statement

    def _for_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        start = node.child_by_field_name("initializer")
        before = self.statement(start, before, loop) if start else before
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        return self._loop(before, condition, body, node.child_by_field_name("update"), once=True)

    def _while_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        return self._loop(before, node.child_by_field_name("condition"), node.child_by_field_name("body"))

    def _do_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        return self._loop(before, None, body, condition, once=True)

    def _loop(
        self, before: frozenset, condition: Node | None, body: Node, update: Node | None = None, *, once: bool = False
    ) -> frozenset:
        """Go round until no new mark is the last one. A loop without a condition is left by break or return only."""
        inner, entered, after = _Exits(), frozenset(), NOWHERE
        left_at_end = condition is not None or update is not None
        while not before <= entered:
            entered |= before
            holds, fails = self.condition(condition, entered, inner) if condition else (entered, NOWHERE)
            after |= fails if not once else NOWHERE
            before = self.statement(body, holds, inner) | inner.continues
            before = self.statement(update, before, inner) if update else before
            after |= before if once and left_at_end else NOWHERE
        return after | inner.breaks

    def _switch_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        before = self.statement(node.child_by_field_name("condition"), before, loop)
        inner, after, default = _Exits(continues=loop.continues), NOWHERE, False
        for case in node.child_by_field_name("body").children:
            if case.type == "case_statement":
                default |= case.child_by_field_name("value") is None
                after = self.statement(case, before | after, inner)
        return after | inner.breaks | (NOWHERE if default else before)

    def _return_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        for child in node.children:
            before = self.statement(child, before, loop)
        self.returns |= before
        return NOWHERE

    def _break_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        loop.breaks |= before
        return NOWHERE

    def _continue_statement(self, node: Node, before: frozenset, loop: _Exits) -> frozenset:
        loop.continues |= before
        return NOWHERE


def _called(call: Node) -> tuple[str, list[str]]:
    arguments = call.child_by_field_name("arguments")
    texts = [child.text.decode() for child in arguments.children if child.type not in ("(", ",", ")")]
    return call.child_by_field_name("function").text.decode(), texts


def _name(function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator.child_by_field_name("declarator").text.decode() if declarator else ""


def _of_type(node: Node, kind: str) -> Iterator[Node]:
    """Yield the nodes of a type, in the order of the text; a call behind those in its arguments."""
    for child in node.children:
        yield from _of_type(child, kind)
    if node.type == kind:
        yield node
