"""A claim about all values, and what the solver says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import z3

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pystream.verify.arithmetic.domains import Obligation

SECONDS_MAX = 120


@dataclass(frozen=True)
class Claim:
    """What is claimed in words, of which files, and how it is stated."""

    name: str
    files: tuple[str, ...]
    state: Callable[[Path], list[Goal]]


@dataclass(frozen=True)
class Goal:
    """One formula: if all of `given` holds, so does `shows`. `words`: how to tell a counterexample."""

    what: str
    given: list[Any]
    shows: Any


@dataclass(frozen=True)
class Refuted:
    """A goal that does not hold, and values for which it does not. `values` is None if the solver gave up."""

    what: str
    values: str | None

    def __str__(self) -> str:
        return f"{self.what}: " + (f"not for {self.values}" if self.values is not None else "the solver gave up")


def obligations(found: list[Obligation], given: list[Any]) -> list[Goal]:
    """Give what the operations of C need, as goals."""
    return [Goal(f"`{each.what}` stays in its type", [*given, *each.path], each.claim) for each in found]


def prove(claim: Claim, csrc: Path, seconds: float = SECONDS_MAX) -> list[Refuted]:
    """Prove a claim on the C text; give what does not hold."""
    return [refuted for goal in claim.state(csrc) for refuted in prove_goal(goal, seconds)]


def prove_goal(goal: Goal, seconds: float = SECONDS_MAX) -> list[Refuted]:
    """Prove one formula; give why it does not hold."""
    solver = z3.Solver()
    solver.set("timeout", int(1000 * seconds))
    solver.add(*goal.given, z3.Not(goal.shows))
    verdict = solver.check()
    if verdict == z3.unsat:
        return []
    return [Refuted(goal.what, _values(solver.model()) if verdict == z3.sat else None)]


def _values(model: Any) -> str:
    named = {str(each): model[each] for each in model.decls() if "!" not in str(each)}
    return ", ".join(f"{name} = {value}" for name, value in sorted(named.items()))
