"""The window functions: what an aggregate computes, from which column, over which rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.compute as pc


#: As in csrc/pystream.h.
NATIVE_COLUMNS_MAX = 64
NATIVE_STATE_MAX = 1 << 20
DDOF_MAX = (1 << 31) - 1
_WITH_DDOF = ("var", "std", "covar")


class UserWindow(Protocol):
    """The paper's `Window` interface: what `udf` factories return, one object per window and key."""

    def process_tuple(self, row: Mapping[str, Any]) -> None:
        """Take one tuple, a mapping from column names to Python values. Tuples come in (ts, input, position) order."""

    def produce_out_tuple(self) -> Any:
        """Give the window's result."""


@dataclass(frozen=True)
class Native:
    """The addresses of the functions and what they work on; `owners` keeps the code alive."""

    process: int
    produce: int
    state_size: int
    columns: tuple[str, ...]
    owners: tuple[Any, ...] = field(compare=False)
    combine: int = 0  # 0: there is none, so the order of tuples matters


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One column of the output. Made by the functions below, not by hand."""

    function: str
    column: str | None = None
    where: pc.Expression | None = None
    factory: Callable[[], UserWindow] | None = None
    type: pa.DataType | None = None
    native: Native | None = None
    by: str | None = None  # a second column
    parameter: int = 0
    options: tuple[tuple[str, Any], ...] = ()  # of functions over multisets, by name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values it works on."""
        return self.native.columns if self.native else tuple(c for c in (self.column, self.by) if c)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate):
            return NotImplemented
        return self is other or (
            (self.function, self.column, self.factory, self.type, self.native, self.by, self.parameter, self.options)
            == (
                *(other.function, other.column, other.factory, other.type),
                *(other.native, other.by, other.parameter, other.options),
            )
            and _same(self.where, other.where)
        )

    def __hash__(self) -> int:
        # Without what has no hash that goes with its equality: expressions, and whatever a factory may be.
        return hash((self.function, self.column, self.native, self.by, self.parameter, self.options))

    def __repr__(self) -> str:
        parts = [*self.columns]
        parts += [f"ddof={self.parameter}"] if self.function in _WITH_DDOF and self.parameter != 1 else []
        parts += [f"{name}={value!r}" for name, value in self.options] if self.function != "median" else []
        parts += [f"where={self.where}"] if self.where is not None else []
        parts += [getattr(self.factory, "__name__", repr(self.factory))] if self.factory else []
        return f"{self.function}({', '.join(parts)})"


def _same(one: pc.Expression | None, other: pc.Expression | None) -> bool:
    """Whether two expressions are the same; `==` would make a third one."""
    if one is None or other is None:
        return one is other
    return one is other or bool(one.equals(other))


def of_column(function: str, column: str, where: pc.Expression | None, name: str = "") -> Aggregate:
    """An aggregate of one column."""
    name = name or function
    if not isinstance(column, str):
        raise TypeError(f"{name}() takes the name of a column, a str, not {type(column).__name__}")
    return Aggregate(function, column, _expression(name, where))


def _of_two(function: str, column: str, by: str, where: pc.Expression | None, name: str = "by") -> Aggregate:
    if not isinstance(by, str):
        raise TypeError(f"{function}() takes the names of two columns: {name} must be a str, not {type(by).__name__}")
    return replace(of_column(function, column, where), by=by)


def _expression(function: str, where: Any) -> pc.Expression | None:
    if where is None:
        return None
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import and rarely needed

    if not isinstance(where, pc.Expression):
        hint = "; count() takes no column, it counts rows" if function == "count" and isinstance(where, str) else ""
        raise TypeError(
            f"{function}(where=...) takes a pyarrow compute expression, such as pc.field('cons') > 1, "
            f"not {type(where).__name__}: {where!s}{hint}"
        )
    return where


def count(where: pc.Expression | None = None) -> Aggregate:
    """Count the rows, nulls included.

    >>> rows = {"ts": [0, 1, 2], "cons": [5, None, 7]}
    >>> ps.aggregate(ps.Query(ps.Window(10), None, {"n": ps.count()}), [rows]).to_pylist()
    [{'ts': 0, 'n': 3}]
    >>> query = ps.Query(ps.Window(10), None, {"high": ps.count(where=pc.field("cons") > 5)})
    >>> ps.aggregate(query, [rows]).to_pylist()
    [{'ts': 0, 'high': 1}]
    """
    return Aggregate("count", None, _expression("count", where))


def sum(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Add up: integers to int64 (an error if it does not fit), floats exactly, rounded once.

    >>> query = ps.Query(ps.Window(10), None, {"total": ps.sum("cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "cons": [1e100, 1.0, -1e100]}]).to_pylist()
    [{'ts': 0, 'total': 1.0}]
    """
    return of_column("sum", column, where)


def avg(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Average, as float64: the exact sum divided by the number of values. `mean` is the same.

    >>> query = ps.Query(ps.Window(10), None, {"mean": ps.avg("cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "cons": [1, None, 2]}]).to_pylist()
    [{'ts': 0, 'mean': 1.5}]
    """
    return of_column("avg", column, where)


def mean(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Average: another name for `avg`.

    >>> ps.mean("cons") == ps.avg("cons")
    True
    """
    return of_column("avg", column, where, "mean")


def var(column: str, ddof: int = 1, where: pc.Expression | None = None) -> Aggregate:
    """Variance, as float64: the double nearest to the exact value, so values far from zero lose nothing.

    `ddof` is subtracted from the number of values: 1 for a sample, 0 for all there is. With fewer than `ddof` + 1
    values the result is null, and if one of them is NaN or infinite it is NaN.

    >>> query = ps.Query(ps.Window(10), None, {"sample": ps.var("cons"), "all": ps.var("cons", ddof=0)})
    >>> ps.aggregate(query, [{"ts": [0, 1, 10], "cons": [1e15, 1e15 + 0.5, 7.0]}]).to_pylist()
    [{'ts': 0, 'sample': 0.125, 'all': 0.0625}, {'ts': 10, 'sample': None, 'all': 0.0}]
    """
    return replace(of_column("var", column, where), parameter=_ddof("var", ddof))


def std(column: str, ddof: int = 1, where: pc.Expression | None = None) -> Aggregate:
    """Standard deviation: the double nearest to the root of the exact variance; the rest is as with `var`.

    >>> query = ps.Query(ps.Window(10), None, {"deviation": ps.std("cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "cons": [1, 3, 5]}]).to_pylist()
    [{'ts': 0, 'deviation': 2.0}]
    """
    return replace(of_column("std", column, where), parameter=_ddof("std", ddof))


def _ddof(function: str, ddof: int) -> int:
    if not isinstance(ddof, int) or isinstance(ddof, bool):
        hint = "" if isinstance(ddof, bool | float | str) else "; a condition is where=..."
        raise TypeError(f"{function}(ddof=...) takes an integer, not {ddof!r}{hint}")
    if not 0 <= ddof <= DDOF_MAX:
        raise ValueError(f"{function}(ddof=...) takes a number between 0 and {DDOF_MAX}, not {ddof}")
    return ddof


def covar(x: str, y: str, ddof: int = 1, where: pc.Expression | None = None) -> Aggregate:
    """Covariance, as float64: the double nearest to the exact value.

    Rows in which `x` or `y` is null do not count. `ddof` is that of `var`: with fewer than `ddof` + 1 pairs the result
    is null, and if a value of them is NaN or infinite it is NaN.

    >>> query = ps.Query(ps.Window(10), None, {"both": ps.covar("u", "i"), "all": ps.covar("u", "i", ddof=0)})
    >>> rows = {"ts": [0, 1, 2], "u": [1e15, 1e15 + 0.5, 7.0], "i": [3, 5, None]}
    >>> ps.aggregate(query, [rows]).to_pylist()
    [{'ts': 0, 'both': 0.5, 'all': 0.25}]
    """
    return replace(_of_two("covar", x, y, where, "y"), parameter=_ddof("covar", ddof))


def slope(y: str, x: str, where: pc.Expression | None = None) -> Aggregate:
    """Slope of the line through the points (x, y) that is nearest to them (least squares), as float64.

    It is the double nearest to the exact value. Rows in which `x` or `y` is null do not count. The result is null
    without two points whose `x` differ, and NaN if a value is NaN or infinite.

    >>> query = ps.Query(ps.Window(10), None, {"trend": ps.slope("cons", "ts"), "start": ps.intercept("cons", "ts")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 10], "cons": [1.0, 3.0, 8.0, 5.0]}]).to_pylist()
    [{'ts': 0, 'trend': 3.5, 'start': 0.5}, {'ts': 10, 'trend': None, 'start': None}]
    """
    return _of_two("slope", y, x, where, "x")


def intercept(y: str, x: str, where: pc.Expression | None = None) -> Aggregate:
    """`y` at `x` = 0 on the line whose slope is `slope(y, x)`; the rest is as there.

    >>> query = ps.Query(ps.Window(10), None, {"start": ps.intercept("cons", "ts")})
    >>> ps.aggregate(query, [{"ts": [1, 3], "cons": [5, 9]}]).to_pylist()
    [{'ts': 0, 'start': 3.0}]
    """
    return _of_two("intercept", y, x, where, "x")


def corr(x: str, y: str, where: pc.Expression | None = None) -> Aggregate:
    """Correlation (Pearson's), as float64 between -1 and 1: the double nearest to the exact value.

    Rows in which `x` or `y` is null do not count. The result is null without two different values of `x` and of `y`,
    and NaN if a value is NaN or infinite.

    >>> query = ps.Query(ps.Window(10), None, {"r": ps.corr("volt", "watt")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 10], "volt": [1, 2, 3, 4], "watt": [8.0, 6.0, 4.0, 1.0]}]).to_pylist()
    [{'ts': 0, 'r': -1.0}, {'ts': 10, 'r': None}]
    """
    return _of_two("corr", x, y, where, "y")


def min(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Smallest value; NaN is above every number, strings go by their UTF-8 bytes.

    >>> query = ps.Query(ps.Window(10), None, {"low": ps.min("cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "cons": [7, None, 5]}]).to_pylist()
    [{'ts': 0, 'low': 5}]
    """
    return of_column("min", column, where)


def max(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Largest value; NaN is above every number, strings go by their UTF-8 bytes.

    >>> query = ps.Query(ps.Window(10), None, {"high": ps.max("name")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "name": ["a", "Z", "b"]}]).to_pylist()
    [{'ts': 0, 'high': 'b'}]
    """
    return of_column("max", column, where)


def first(column: str, where: pc.Expression | None = None) -> Aggregate:
    """First value in (ts, input, position) order that is not null.

    >>> query = ps.Query(ps.Window(10), None, {"first": ps.first("name")})
    >>> ps.aggregate(query, [{"ts": [4], "name": ["a"]}, {"ts": [3, 4], "name": [None, "b"]}]).to_pylist()
    [{'ts': 0, 'first': 'a'}]
    """
    return of_column("first", column, where)


def last(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Last value in (ts, input, position) order that is not null.

    >>> query = ps.Query(ps.Window(10), None, {"last": ps.last("name")})
    >>> ps.aggregate(query, [{"ts": [4], "name": ["a"]}, {"ts": [3, 4], "name": [None, "b"]}]).to_pylist()
    [{'ts': 0, 'last': 'b'}]
    """
    return of_column("last", column, where)


def arg_min(column: str, by: str, where: pc.Expression | None = None) -> Aggregate:
    """Value of the row whose `by` is least; of equals the first in (ts, input, position) order.

    Rows in which `column` or `by` is null do not count. `by` is a number, a boolean or a time, ordered as by `min`.

    >>> query = ps.Query(ps.Window(10), None, {"who": ps.arg_min("name", "cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "name": ["a", "b", "c", None], "cons": [7, 5, 5, 1]}]).to_pylist()
    [{'ts': 0, 'who': 'b'}]
    """
    return _of_two("arg_min", column, by, where)


def arg_max(column: str, by: str, where: pc.Expression | None = None) -> Aggregate:
    """Value of the row whose `by` is greatest; of equals the first in (ts, input, position) order.

    Rows in which `column` or `by` is null do not count. `by` is a number, a boolean or a time, ordered as by `max`.

    >>> query = ps.Query(ps.Window(10), None, {"when": ps.arg_max("ts", "cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "cons": [7, None, 9, 9]}]).to_pylist()
    [{'ts': 0, 'when': 2}]
    """
    return _of_two("arg_max", column, by, where)


def any(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Whether some value of a boolean column is true; nulls do not count.

    >>> query = ps.Query(ps.Window(10), None, {"alarm": ps.any("alarm"), "ok": ps.all("ok")})
    >>> ps.aggregate(query, [{"ts": [0, 1], "alarm": [False, True], "ok": [True, None]}]).to_pylist()
    [{'ts': 0, 'alarm': True, 'ok': True}]
    """
    return of_column("any", column, where)


def all(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Whether every value of a boolean column is true; nulls do not count.

    >>> query = ps.Query(ps.Window(10), None, {"ok": ps.all("ok")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 12], "ok": [True, None, False]}]).to_pylist()
    [{'ts': 0, 'ok': True}, {'ts': 10, 'ok': False}]
    """
    return of_column("all", column, where)


def udf(factory: Callable[[], UserWindow], type: pa.DataType | None = None) -> Aggregate:
    """Run user code: `factory()` makes an object with `process_tuple(row)` and `produce_out_tuple()` per window, key.

    The objects are used by whichever thread reads the operator's output, one tuple after the other. `type` is the Arrow
    type of the results; without it the first batch of results decides.

    >>> class Longest:
    ...     def __init__(self):
    ...         self.name = ""
    ...     def process_tuple(self, row):
    ...         self.name = max(self.name, row["name"], key=len)
    ...     def produce_out_tuple(self):
    ...         return self.name
    >>> query = ps.Query(ps.Window(10), None, {"longest": ps.udf(Longest)})
    >>> ps.aggregate(query, [{"ts": [0, 1, 12], "name": ["ab", "abc", "d"]}]).to_pylist()
    [{'ts': 0, 'longest': 'abc'}, {'ts': 10, 'longest': 'd'}]
    """
    if not callable(factory):
        raise TypeError(f"udf() takes a callable that makes a window object, not {factory!r}")
    return Aggregate("udf", factory=factory, type=type)


def native_udf(
    process: Any,
    produce: Any,
    *,
    state_size: int,
    columns: str | Sequence[str],
    type: pa.DataType,
    where: pc.Expression | None = None,
    combine: Any = None,
) -> Aggregate:
    """Run compiled user code: `process` for every tuple of a window, in order, and `produce` for its result.

    They are C functions, called without Python's GIL; csrc/pystream.h has the fine print:

        int32_t process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls);
        int32_t produce(const void *state, uint64_t *result, uint8_t *null);
        int32_t combine(void *state, const void *other);

    `state` is `state_size` bytes of the window, all zero at first. `values` and `nulls` hold one entry for each of
    `columns`: 64 bits that are an int64_t, a uint64_t (unsigned integers and bool) or a double, as the column's type
    says; for a string the address of a pointer to its bytes and an int64_t, their number. `*result` has the same form,
    for `type`, which is of fixed width. All give 0, or a code of their own: then reading the operator raises UdfError
    with the window, the key and the code. With `combine`, which adds what another state of the window has, the order
    of tuples must not matter, and the function runs in `wiml` too.

    A pointer comes from cffi (a `dlopen`ed library, `ffi.addressof(lib, "process")`), ctypes, Numba (`cfunc`), or is a
    plain address. What it points to must be compiled: a Python function behind a callback would need the GIL again.

    >>> import numba
    >>> @numba.cfunc("i4(voidptr, i8, CPointer(f8), CPointer(u1))")
    ... def process(state, ts, values, nulls):
    ...     total = numba.carray(state, 1, numba.float64)
    ...     total[0] += values[0] * values[0]
    ...     return 0
    >>> @numba.cfunc("i4(voidptr, CPointer(f8), CPointer(u1))")
    ... def produce(state, result, null):
    ...     result[0] = numba.carray(state, 1, numba.float64)[0]
    ...     return 0
    >>> squares = ps.native_udf(process, produce, state_size=8, columns="cons", type=pa.float64())
    >>> query = ps.Query(ps.Window(10), None, {"squares": squares})
    >>> ps.aggregate(query, [{"ts": [0, 1], "cons": [3.0, 4.0]}]).to_pylist()
    [{'ts': 0, 'squares': 25.0}]
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if len(names) > NATIVE_COLUMNS_MAX or [n for n in names if not isinstance(n, str)]:
        raise ValueError(f"native_udf() takes the names of at most {NATIVE_COLUMNS_MAX} columns, not {columns!r}")
    size = operator.index(state_size)
    if not 0 <= size <= NATIVE_STATE_MAX:
        raise ValueError(f"state_size must be between 0 and {NATIVE_STATE_MAX}, not {state_size}")
    functions = {"process": process, "produce": produce, **({} if combine is None else {"combine": combine})}
    addresses = {role: _address(function, role) for role, function in functions.items()}
    native = Native(**addresses, state_size=size, columns=names, owners=tuple(functions.values()))
    return Aggregate("native_udf", None, _expression("native_udf", where), type=_fixed_width(type), native=native)


def _address(function: Any, role: str) -> int:
    """Where the code is."""
    import ctypes  # noqa: PLC0415 - rarely needed

    import cffi  # noqa: PLC0415

    ffi = cffi.FFI()
    if isinstance(function, int) and not isinstance(function, bool):
        address = function
    elif isinstance(getattr(function, "address", None), int):  # Numba
        address = function.address
    elif isinstance(function, ctypes.c_void_p) or hasattr(function, "restype"):  # ctypes
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
    elif isinstance(function, ffi.CData):
        address = int(ffi.cast("uintptr_t", function))
    else:
        hint = "a cffi or ctypes function pointer, a Numba cfunc or an address"
        raise TypeError(f"native_udf({role}=...) takes {hint}, not {function!r}")
    if not 0 < address < 1 << 64:
        raise ValueError(f"native_udf({role}=...): {address} is no address")
    return address


def _fixed_width(type: Any) -> pa.DataType:
    import pyarrow as pa  # noqa: PLC0415

    if not isinstance(type, pa.DataType):
        raise TypeError(f"native_udf(type=...) takes an Arrow type, not {type!r}")
    if not (pa.types.is_primitive(type) or pa.types.is_boolean(type)) or pa.types.is_float16(type):
        raise TypeError(f"native_udf(type=...) takes a type of fixed width, at most 64 bits, not {type}")
    return type
