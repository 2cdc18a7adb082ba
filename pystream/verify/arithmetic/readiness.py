"""T-Gate's readiness for any number of inputs and tuples: I4 and I5 of csrc/gates/t_gate.h hold step by step.

TLC tries all executions of a few inputs. Here a step starts in any state in which the invariant holds, reachable or
not, and the invariant holds after it. The steps are those of spec/TGate.tla that change what the test of readiness
reads: a node is linked, `written` follows, the reader goes on. Nodes are only what is compared: (ts, input, position).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import z3

from pystream.verify.arithmetic.claims import Claim, Goal

if TYPE_CHECKING:
    from pathlib import Path

Node, Input = z3.DeclareSort("Node"), z3.DeclareSort("Input")
_below = z3.Function("below", Node, Node, z3.BoolSort())
input_of = z3.Function("input", Node, Input)
_n, _m, _o = z3.Consts("n m o", Node)
_k = z3.Const("k", Input)

#: Nodes are totally ordered.
ORDER = [
    z3.ForAll([_n], z3.Not(_below(_n, _n))),
    z3.ForAll([_n, _m, _o], z3.Implies(z3.And(_below(_n, _m), _below(_m, _o)), _below(_n, _o))),
    z3.ForAll([_n, _m], z3.Or(_n == _m, _below(_n, _m), _below(_m, _n))),
]


def _upto(a: Any, b: Any) -> Any:
    return z3.Or(a == b, _below(a, b))


@dataclass
class State:
    """What the test of readiness depends on."""

    linked: Any  # Node -> bool
    latest: Any  # Input -> its last linked node
    written: Any  # Input -> the node that it has published
    head: Any

    @classmethod
    def named(cls, name: str) -> State:
        """Make any state."""
        linked = z3.Function(f"linked{name}", Node, z3.BoolSort())
        latest, written = (z3.Function(f"{each}{name}", Input, Node) for each in ("latest", "written"))
        return cls(linked, latest, written, z3.Const(f"head{name}", Node))

    def invariant(self) -> dict[str, Any]:
        """Give the parts of the invariant."""
        return {
            "each input's latest node is linked": z3.ForAll(
                [_k], z3.And(self.linked(self.latest(_k)), input_of(self.latest(_k)) == _k)
            ),
            "and no other of its nodes is after it": z3.ForAll(
                [_n], z3.Implies(self.linked(_n), _upto(_n, self.latest(input_of(_n))))
            ),
            "what is published is linked": z3.ForAll(
                [_k], z3.And(self.linked(self.written(_k)), input_of(self.written(_k)) == _k)
            ),
            "head is linked": self.linked(self.head),
            "head is not past a published node (I4)": z3.ForAll([_k], _upto(self.head, self.written(_k))),
        }

    def may_advance(self) -> Any:
        """The rule: the input of head has published another node."""
        return self.written(input_of(self.head)) != self.head

    def is_next(self, node: Any) -> Any:
        """Say that it is the linked node behind head."""
        between = z3.Exists([_m], z3.And(self.linked(_m), _below(self.head, _m), _below(_m, node)))
        return z3.And(self.linked(node), _below(self.head, node), z3.Not(between))


def _same(before: Any, after: Any, sort: Any, but: Any = None) -> Any:
    x = z3.Const("x", sort)
    same = before(x) == after(x)
    return z3.ForAll([x], same if but is None else z3.Or(x == but, same))


def _link(a: State, b: State, input: Any, node: Any) -> list[Any]:
    """An input links a node behind its latest one, which is published."""
    return [
        input_of(node) == input,
        a.written(input) == a.latest(input),
        _below(a.latest(input), node),
        z3.ForAll([_n], b.linked(_n) == z3.Or(a.linked(_n), _n == node)),
        _same(a.latest, b.latest, Input, input),
        b.latest(input) == node,
        _same(a.written, b.written, Input),
        a.head == b.head,
    ]


def _publish(a: State, b: State, input: Any, _node: Any) -> list[Any]:
    return [
        _same(a.linked, b.linked, Node),
        _same(a.latest, b.latest, Input),
        _same(a.written, b.written, Input, input),
        b.written(input) == a.latest(input),
        a.head == b.head,
    ]


def _advance(a: State, b: State, _input: Any, node: Any) -> list[Any]:
    return [
        a.may_advance(),
        a.is_next(node),
        _same(a.linked, b.linked, Node),
        _same(a.latest, b.latest, Input),
        _same(a.written, b.written, Input),
        b.head == node,
    ]


def _inductive(_csrc: Path) -> list[Goal]:
    a, b = State.named(""), State.named("'")
    input, node = z3.Const("i", Input), z3.Const("node", Node)
    holds = [*ORDER, *a.invariant().values()]
    steps = {"link": _link, "publish": _publish, "advance": _advance}
    goals = []
    for name, step in steps.items():
        after = [*holds, *step(a, b, input, node)]
        published = z3.ForAll([_k], _upto(b.written(_k), b.latest(_k)))
        parts = {**b.invariant(), "what is published is not after the latest": published}
        goals += [Goal(f"{name}: {part}", after, shows) for part, shows in parts.items()]
    return goals


def _ready(_csrc: Path) -> list[Goal]:
    a, b = State.named(""), State.named("'")
    input, node, other = z3.Const("i", Input), z3.Const("node", Node), z3.Const("other", Node)
    holds = [*ORDER, *a.invariant().values()]
    may = [*holds, a.may_advance(), a.is_next(node)]
    waits = [*holds, z3.Not(a.may_advance()), a.linked(other), _below(a.head, other)]
    return [
        Goal("the next node is ready: no input's latest is before it", may, z3.ForAll([_k], _upto(node, a.latest(_k)))),
        Goal("it stays the next one, whatever is linked (I5)", [*may, *_link(a, b, input, other)], b.is_next(node)),
        Goal("and the reader may still advance", [*may, *_link(a, b, input, other)], b.may_advance()),
        Goal("whatever is published", [*may, *_publish(a, b, input, other)], z3.And(b.is_next(node), b.may_advance())),
        Goal("who may not advance misses nothing", waits, z3.Exists([_k], _below(a.written(_k), other))),
    ]


CLAIMS = (
    Claim("no reader passes a published node, for any number of inputs", (), _inductive),
    Claim("the test of readiness is exact and stays true, for any number of inputs", (), _ready),
)
