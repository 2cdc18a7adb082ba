"""What all handles share: calls whose outcome is known whatever is raised, objects that C makes, a query for C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream._native.extension import FUNCTIONS, TYPES, ffi, lib
from pystream._native.faults import raise_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from pystream._engine.plan import AggregatePlan
    from pystream._engine.set_options import SetOptions


class Done:
    """Whether a C call has been made, and its code: known even if an exception is raised right after it.

    When a call returns, Python may raise an exception from outside (handover.py) before the result has a name. A loop
    over a C iterator names it first.
    """

    code: int | None = None

    def call(self, function: Any, *arguments: Any) -> int:
        """Make the call, once."""
        code: int = lib.PS_EMPTY
        for self.code in map(function, *((a,) for a in arguments)):
            code = self.code
        return code

    @property
    def is_ok(self) -> bool:
        """Whether it has succeeded."""
        return bool(self.code == lib.PS_OK)

    @property
    def is_refused(self) -> bool:
        """Whether it has failed."""
        return self.code is not None and not self.is_ok


def new_object(new: Any, free: Any, kind: str, *arguments: Any) -> Any:
    """An object that C allocates, freed with the last reference, also if an exception is raised right after."""
    out = ffi.new(f"{kind} **")
    code = lib.PS_OK
    for code in map(new, *((a,) for a in (*arguments, out))):  # noqa: B007 - used afterwards
        made = ffi.gc(out[0], free)
    raise_fault(code, ffi.new("ps_fault *"))
    return made


def struct_fields(struct: str, fill: Callable[[Any], None]) -> dict[str, int]:
    """The numbers of a struct that C fills in, by name."""
    out = ffi.new(f"{struct} *")
    fill(out)
    return {name: getattr(out, name) for name, _ in ffi.typeof(struct).fields}


def query_struct(
    window: tuple[int, int], column_types: list[str], strings: list[int], keys: int, aggregates: list[AggregatePlan]
) -> tuple[Any, list[Any]]:
    """A ps_query, and what must live as long as it: cffi keeps nothing alive that a struct points to."""
    types = ffi.new("ps_type[]", [TYPES[t] for t in column_types])
    alive: list[Any] = [types]
    each = ffi.new("ps_aggregate[]", [_aggregate(a, alive) for a in aggregates])
    rules = ffi.new("int32_t[]", strings)
    alive += [each, rules]
    query = ffi.new("ps_query *", (*window, len(column_types), types, keys, len(aggregates), each, rules))
    return query, alive


def _aggregate(plan: AggregatePlan, alive: list[Any]) -> tuple[Any, ...]:
    """The fields of a ps_aggregate."""
    if plan.native is None:
        options = _set(plan.set, alive) if plan.set else ffi.NULL
        return FUNCTIONS[plan.function], plan.column, plan.mask, ffi.NULL, plan.by, plan.parameter, options
    columns = ffi.new("int32_t[]", plan.native_columns)
    process = ffi.cast("ps_native_process", plan.native.process)
    produce = ffi.cast("ps_native_produce", plan.native.produce)
    combine = ffi.cast("ps_native_combine", plan.native.combine)
    native = ffi.new(
        "ps_native *", (process, produce, plan.native.state_size, len(plan.native_columns), columns, combine)
    )
    alive += [columns, native]
    return FUNCTIONS[plan.function], 0, plan.mask, native


def _set(options: SetOptions, alive: list[Any]) -> Any:
    """A ps_set."""
    edges = ffi.new("uint64_t[]", options.edges)
    numbers = options.q, options.choice, options.bits, options.k, options.bins
    made = ffi.new("ps_set *", (*numbers, len(options.edges), edges))
    alive += [edges, made]
    return made
