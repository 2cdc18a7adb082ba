"""Functions, structs and constants of C files, as syntax trees."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_c

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tree_sitter import Node

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
_DEFINE = re.compile(r"^#define (\w+) ([^\\\n]+?)(?:\s*/\*.*)?$", re.MULTILINE)


class CText:
    """What some files of csrc define. Names are global: the files may not define one twice."""

    def __init__(self, csrc: Path, *files: str) -> None:
        self._text = "\n".join((csrc / file).read_text(encoding="utf-8") for file in files)
        self._root = _PARSER.parse(self._text.encode()).root_node

    @cached_property
    def functions(self) -> dict[str, Node]:
        """Definitions by name."""
        return {_declared(node): node for node in of_type(self._root, "function_definition")}

    @cached_property
    def structs(self) -> dict[str, list[tuple[str, str]]]:
        """Fields (type, name) of each struct that is a typedef."""
        found: dict[str, list[tuple[str, str]]] = {}
        for node in of_type(self._root, "type_definition"):
            body = next(of_type(node, "field_declaration_list"), None)
            if body is not None:
                found[text_of(node.child_by_field_name("declarator"))] = list(_fields(body))
        return found

    @cached_property
    def enumerators(self) -> dict[str, int]:
        """Numbers of enumerators that have no value of their own."""
        found: dict[str, int] = {}
        for body in of_type(self._root, "enumerator_list"):
            names = [node for node in body.children if node.type == "enumerator"]
            if all(node.child_by_field_name("value") is None for node in names):
                found |= {text_of(node.child_by_field_name("name")): i for i, node in enumerate(names)}
        return found

    @cached_property
    def macros(self) -> dict[str, Node]:
        """Values of macros without parameters that are expressions."""
        return {name: expression(value) for name, value in _DEFINE.findall(self._text)}


def expression(text: str) -> Node:
    """Parse an expression."""
    statement = next(of_type(_PARSER.parse(f"int x = {text};".encode()).root_node, "init_declarator"))
    return part(statement, "value")


def text_of(node: Node | None) -> str:
    """Give the text of a node, nothing for None."""
    return node.text.decode() if node is not None and node.text is not None else ""


def part(node: Node, name: str) -> Node:
    """Give a part of a node that is always there."""
    found = node.child_by_field_name(name)
    if found is None:
        raise ValueError(f"no {name} in {text_of(node)}")
    return found


def of_type(node: Node, kind: str) -> Iterator[Node]:
    """Yield the nodes of a type, in the order of the text."""
    if node.type == kind:
        yield node
    for child in node.children:
        yield from of_type(child, kind)


def statements(node: Node) -> list[Node]:
    """Give the parts of a block that are no punctuation or comment; what is for one kind of processor is left out."""
    found = []
    for child in node.children:
        if child.type in ("{", "}", "comment", "#ifdef", "#endif", "#else", "identifier", "\n"):
            continue
        if child.type == "preproc_ifdef":
            other = child.child_by_field_name("alternative")
            found += statements(other) if other is not None else []
        else:
            found.append(child)
    return found


def parameters(function: Node) -> list[tuple[str, str]]:
    """Give (type, name) of each parameter; a pointer's name begins with a star."""
    listed = next(of_type(function, "parameter_list"))
    return list(_typed(listed, "parameter_declaration"))


def _fields(body: Node) -> Iterator[tuple[str, str]]:
    yield from _typed(body, "field_declaration")


def _typed(parent: Node, kind: str) -> Iterator[tuple[str, str]]:
    for node in parent.children:
        if node.type == kind:
            for name in node.children_by_field_name("declarator"):
                yield text_of(node.child_by_field_name("type")), text_of(name)


def _declared(function: Node) -> str:
    declarator = next(of_type(function, "function_declarator"), None)
    return text_of(declarator.child_by_field_name("declarator")) if declarator is not None else ""
