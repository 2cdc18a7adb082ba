"""C functions as terms of the solver: their own text is what is proved, not a copy of it.

Functions without loops and without memory but their parameters: declarations, assignments, `if`, `return`, calls. What
an operation needs so that C defines it, and in whole numbers so that it does not wrap, is collected on the way, with
the conditions under which control comes there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import z3

from pystream.verify.arithmetic.c_text import CText, parameters, part, statements, text_of
from pystream.verify.arithmetic.domains import INT, TYPES, U64, CType, Domain, Obligation, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

DOUBLE = z3.Float64()
_KNOWN = {"UINT64_MAX": (U64.greatest, U64), "INT64_MAX": (2**63 - 1, TYPES["int64_t"]), "true": (1, None)}
_KNOWN["false"] = (0, None)

#: A struct is a dict of its fields; what a function gives back besides its result stands under the parameter's name.
Term = Any


class CTerms:
    """The functions of some files, applied to terms."""

    def __init__(self, text: CText, domain: Domain) -> None:
        self.text, self.domain = text, domain
        self.obligations: list[Obligation] = []
        self._path: list[Any] = []

    def call(self, name: str, *arguments: Term) -> Term:
        """Give the result of a function; with pointers to write to, a dict of it and of what is written."""
        function = self.text.functions[name]
        wanted = [(type, name) for type, name in parameters(function) if not name.startswith("*")]
        names = [(name, self._as(a, type)) for (type, name), a in zip(wanted, arguments, strict=True)]
        result = text_of(part(function, "type"))
        ends = self._run(statements(part(function, "body")), dict(names))
        ends["return"] = self._as(ends["return"], result)
        return ends if len(ends) > 1 else ends["return"]

    def constant(self, name: str) -> Value:
        """Give the value of a macro or an enumerator."""
        if name in _KNOWN:
            number, type = _KNOWN[name]
            return Value(z3.BoolVal(bool(number)), None) if type is None else self.domain.literal(number, type)
        if name in self.text.enumerators:
            return self.domain.literal(self.text.enumerators[name], INT)
        value: Value = self._of(self.text.macros[name], {})
        return value

    # ---- statements ----

    def _run(self, todo: list[Node], names: dict[str, Term]) -> dict[str, Term]:
        """Run statements to the first return."""
        for at, node in enumerate(todo):
            if node.type == "return_statement":
                result = self._of(node.named_children[0], names)
                return {"return": result} | {k: v for k, v in names.items() if k.startswith("*")}
            if node.type == "if_statement":
                return self._either(node, todo[at + 1 :], names)
            if node.type == "declaration":
                names = self._declared(node, names)
            else:
                names = self._assigned(node.named_children[0], names)
        raise ValueError("a function that ends without a return")

    def _either(self, node: Node, rest: list[Node], names: dict[str, Term]) -> dict[str, Term]:
        condition = self._truth(self._of(part(node, "condition"), names))
        other = node.child_by_field_name("alternative")
        with self._under(condition):
            then = self._run([*self._branch(part(node, "consequence")), *rest], names)
        with self._under(z3.Not(condition)):
            otherwise = self._run([*(self._branch(other) if other else []), *rest], names)
        return {name: self._choice(condition, then[name], otherwise[name]) for name in then}

    def _branch(self, node: Node) -> list[Node]:
        if node.type == "else_clause":
            return self._branch(node.named_children[0])
        return statements(node) if node.type == "compound_statement" else [node]

    def _declared(self, node: Node, names: dict[str, Term]) -> dict[str, Term]:
        type = text_of(part(node, "type"))
        for each in node.children_by_field_name("declarator"):
            if each.type == "init_declarator":
                value = self._as(self._of(part(each, "value"), names), type)
                names = names | {text_of(part(each, "declarator")): value}
        return names

    def _assigned(self, node: Node, names: dict[str, Term]) -> dict[str, Term]:
        to, value = part(node, "left"), part(node, "right")
        if node.type != "assignment_expression" or text_of(part(node, "operator")) != "=":
            raise ValueError(f"not a statement that can be proved about: {text_of(node)}")
        return names | {text_of(to): self._of(value, names)}

    @contextmanager
    def _under(self, condition: Any) -> Iterator[None]:
        self._path.append(condition)
        yield
        self._path.pop()

    def _must(self, what: Node | str, claim: Any) -> None:
        if claim is not True and not z3.is_true(z3.simplify(claim)):
            text = what if isinstance(what, str) else text_of(what)
            self.obligations.append(Obligation(text, list(self._path), claim))

    # ---- expressions ----

    def _of(self, node: Node, names: dict[str, Term]) -> Term:
        return getattr(self, f"_{node.type}")(node, names)

    def _parenthesized_expression(self, node: Node, names: dict[str, Term]) -> Term:
        return self._of(node.named_children[0], names)

    def _identifier(self, node: Node, names: dict[str, Term]) -> Term:
        name = text_of(node)
        return names[name] if name in names else self.constant(name)

    def _true(self, _node: Node, _names: dict[str, Term]) -> Term:
        return Value(z3.BoolVal(val=True), None)

    def _false(self, _node: Node, _names: dict[str, Term]) -> Term:
        return Value(z3.BoolVal(val=False), None)

    def _number_literal(self, node: Node, _names: dict[str, Term]) -> Value:
        text = text_of(node)
        if "p" in text or "." in text:
            return Value(z3.FPVal(float.fromhex(text) if "p" in text else float(text), DOUBLE), None)
        return self.domain.literal(int(text.rstrip("uUlL"), 0), INT if text[-1] not in "uU" else TYPES["uint32_t"])

    def _field_expression(self, node: Node, names: dict[str, Term]) -> Term:
        return self._of(part(node, "argument"), names)[text_of(part(node, "field"))]

    def _conditional_expression(self, node: Node, names: dict[str, Term]) -> Term:
        condition = self._truth(self._of(part(node, "condition"), names))
        with self._under(condition):
            then = self._of(part(node, "consequence"), names)
        with self._under(z3.Not(condition)):
            otherwise = self._of(part(node, "alternative"), names)
        return self._choice(condition, then, otherwise)

    def _unary_expression(self, node: Node, names: dict[str, Term]) -> Term:
        sign, of = text_of(part(node, "operator")), self._of(part(node, "argument"), names)
        if sign == "!":
            return Value(z3.Not(self._truth(of)), None)
        if of.type is None:  # a double
            return Value(z3.fpNeg(of.term), None)
        if sign == "-":
            return self._arithmetic(node, "-", self.domain.literal(0, of.type), of)
        return Value({"~": lambda x: ~x}[sign](of.term), of.type)

    def _binary_expression(self, node: Node, names: dict[str, Term]) -> Term:
        sign = text_of(part(node, "operator"))
        left = self._of(part(node, "left"), names)
        if sign in ("&&", "||"):
            first = self._truth(left)
            with self._under(first if sign == "&&" else z3.Not(first)):
                second = self._truth(self._of(part(node, "right"), names))
            return Value((z3.And if sign == "&&" else z3.Or)(first, second), None)
        return self._arithmetic(node, sign, left, self._of(part(node, "right"), names))

    def _arithmetic(self, node: Node, sign: str, left: Value, right: Value) -> Value:
        if z3.is_fp(left.term):
            return Value(
                z3.fpMul(z3.RNE(), left.term, right.term) if sign == "*" else z3.fpAdd(z3.RNE(), left.term, right.term),
                None,
            )
        type = self._common(left, right) if sign not in ("<<", ">>") else self._promoted(left)
        a, b = self._as(left, type), self._as(right, type)
        if sign in ("<", "<=", ">", ">=", "==", "!="):
            return Value(self.domain.compare(sign, a, b), None)
        result, must = self.domain.apply(sign, a, b, type)
        self._must(node, must)
        return result

    def _cast_expression(self, node: Node, names: dict[str, Term]) -> Term:
        of = self._of(part(node, "value"), names)
        return self._as(of, text_of(part(node, "type")), node)

    def _compound_literal_expression(self, node: Node, names: dict[str, Term]) -> Term:
        values = [child for child in part(node, "value").named_children if child.type != "comment"]
        fields = self.text.structs[text_of(part(node, "type"))]
        return {
            name: self._as(self._of(value, names), type) for (type, name), value in zip(fields, values, strict=True)
        }

    def _call_expression(self, node: Node, names: dict[str, Term]) -> Term:
        name = text_of(part(node, "function"))
        nodes = part(node, "arguments").named_children
        if name in ("UINT64_C", "INT64_C"):
            return self.domain.literal(int(text_of(nodes[0]), 0), TYPES["uint64_t" if name[0] == "U" else "int64_t"])
        values = [self._of(each, names) for each in nodes]
        if name == "__builtin_expect":
            return values[0]
        if name == "__builtin_clzll":
            self._must(node, values[0].term != 0)
            return Value(_zeros(values[0].term), INT)
        if name == "bits_double":
            return Value(z3.fpBVToFP(values[0].term, DOUBLE), None)
        return Value(z3.fpIsNaN(values[0].term), None) if name == "isnan" else self.call(name, *values)

    # ---- types ----

    def _as(self, value: Term, type: CType | str, where: Node | str = "") -> Term:
        if isinstance(type, str):
            if type == "double" and value.type is not None:
                return Value(z3.fpSignedToFP(z3.RNE(), value.term, DOUBLE), None)
            if type == "bool":
                return Value(self._truth(value), None)
            if type not in TYPES:
                return value
            type = TYPES[type]
        if value.type == type:
            return value
        result, must = self.domain.cast(value if value.type else Value(value.term, INT), type)
        if where:
            self._must(where, must)
        return result

    def _truth(self, value: Value) -> Any:
        return value.term if value.type is None else value.term != 0

    def _choice(self, condition: Any, a: Term, b: Term) -> Term:
        if isinstance(a, dict):
            return {name: self._choice(condition, a[name], b[name]) for name in a}
        if a.type is None:
            return Value(z3.If(condition, a.term, b.term), None)
        type = self._common(a, b)
        return Value(z3.If(condition, self._as(a, type).term, self._as(b, type).term), type)

    def _promoted(self, value: Value) -> CType:
        return value.type if value.type is not None and value.type.bits >= INT.bits else INT

    def _common(self, a: Value, b: Value) -> CType:
        """Give the type of a + b: the wider one, of equal ones the unsigned one."""
        return max(self._promoted(a), self._promoted(b), key=lambda of: (of.bits, not of.signed))


def _zeros(word: Any) -> Any:
    """Count the leading zeros of 64 bits."""
    count = z3.BitVecVal(0, INT.bits)
    for bit in range(64):  # the highest one that is set is asked first, so it is put in last
        count = z3.If(z3.Extract(bit, bit, word) == 1, z3.BitVecVal(63 - bit, INT.bits), count)
    return count
