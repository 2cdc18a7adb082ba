"""Functions over multisets: the structure against a Counter, the results against NumPy, and their bytes."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import bits
from test_snapshot import changed
from threads import patience

import pystream as ps
from pystream import _native, reference
from pystream._native.extension import ffi, lib
from pystream.cli import query_text
from pystream.operator import DESIGNS
from pystream.partials import Combine, Fold

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
FLOATS = pa.float64()
WORDS = st.integers(0, 40) | st.sampled_from([0, 2**63, 2**64 - 1])


# ---- the structure alone ----


class Multiset:
    """A handle of csrc/base/multiset.h."""

    def __init__(self) -> None:
        self.pointer = ffi.gc(lib.ps_multiset_new(), lib.ps_multiset_free)

    def add(self, word: int, count: int = 1) -> None:
        assert lib.ps_multiset_add(self.pointer, word, count) == lib.PS_OK

    def remove(self, word: int, count: int = 1) -> None:
        lib.ps_multiset_remove(self.pointer, word, count)

    def plus(self, other: Multiset) -> int:
        return lib.ps_multiset_plus(self.pointer, other.pointer)

    def minus(self, other: Multiset) -> None:
        lib.ps_multiset_minus(self.pointer, other.pointer)

    def select(self, rank: int) -> tuple[int, int]:
        out = ffi.new("uint64_t[2]")
        lib.ps_multiset_select(self.pointer, rank, out)
        return out[0], out[1]

    @property
    def held(self) -> int:
        return lib.ps_multiset_held(self.pointer)

    def words(self) -> list[tuple[int, int]]:
        n = lib.ps_multiset_distinct(self.pointer)
        words, counts = ffi.new("uint64_t[]", n), ffi.new("int64_t[]", n)
        lib.ps_multiset_words(self.pointer, words, counts)
        return list(zip(words, counts, strict=True))


def check(one: Multiset, model: Counter[int]) -> None:
    """It holds what the model holds, in order, in no more memory than that takes."""
    assert one.words() == sorted(model.items())
    values = sorted(model.elements())
    for rank in {0, len(values) // 2, len(values) - 1} if values else ():
        assert one.select(rank) == (values[rank], values[min(rank + 1, len(values) - 1)])
    assert one.held <= 8192 + 8 * 16 * len(model)


def filled(words: list[int]) -> tuple[Multiset, Counter[int]]:
    one = Multiset()
    for word in words:
        one.add(word)
    return one, Counter(words)


@given(st.lists(st.tuples(st.booleans(), WORDS, st.integers(1, 3)), max_size=60))
def test_equals_a_counter(steps):
    one, model = Multiset(), Counter()
    for adds, word, count in steps:
        if adds:
            one.add(word, count)
            model[word] += count
        elif model[word]:
            less = min(count, model[word])
            one.remove(word, less)
            model -= Counter({word: less})
        check(one, +model)


@pytest.mark.usual_sizes
@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_many_words(order):
    rng = np.random.default_rng(3)
    words = {"ascending": np.arange(3000), "descending": np.arange(3000)[::-1], "random": rng.permutation(3000)}[order]
    one, model = filled([int(w) * 7 for w in words])
    check(one, model)
    assert all(one.select(rank) == (rank * 7, min(rank + 1, 2999) * 7) for rank in range(0, 3000, 13))
    for word in rng.permutation(3000)[:2950]:
        one.remove(int(word) * 7)
        del model[int(word) * 7]
    check(one, model)
    for word in list(model):
        one.remove(word)
    assert one.held == 0


@given(st.lists(WORDS, max_size=30), st.lists(WORDS, max_size=30), st.lists(WORDS, max_size=30))
def test_sets_are_added_and_subtracted(first, second, third):
    one, model = filled(first)
    others = [filled(words) for words in (second, third)]
    for other, its in others:
        assert one.plus(other) == lib.PS_OK
        model = model + its
        check(one, model)
    for other, its in others:
        one.minus(other)
        model = model - its
        check(one, model)


@pytest.mark.parametrize("to", [0, 1, 300])
def test_a_sum_that_runs_out_of_memory_changes_nothing(to, failing_memory):
    small, model = filled(list(range(0, 3 * to, 3)))
    words = [*range(5), *range(100, 1100)]
    large, _ = filled(words)
    for after in range(1, 4000):
        failing_memory(after)
        code = small.plus(large)
        failing_memory(0)
        if code == lib.PS_OK:
            break
        assert code == lib.PS_NO_MEMORY
        check(small, model)
    else:
        pytest.fail("it never succeeds")
    assert small.words() == sorted((model + Counter(words)).items())


# ---- results ----


def table_of(values: list, type: pa.DataType) -> pa.Table:
    return pa.table({"ts": pa.array([1] * len(values), pa.int64()), "x": pa.array(values, type)})


def result(function: ps.functions.Aggregate, values: list, type: pa.DataType = FLOATS):
    query = ps.Query(ps.Window(10), None, {"x": function})
    return ps.aggregate(query, [table_of(values, type)])["x"][0].as_py()


@given(
    st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 3).map(float), min_size=1, max_size=30),
    st.floats(0, 1) | st.sampled_from([0.25, 0.5, 0.75, 0.95]),
    st.sampled_from(METHODS),
)
def test_quantiles_are_numpys(values, q, method):
    assert result(ps.quantile("x", q, method), values) == np.quantile(values, q, method=method)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=30), st.floats(0, 1), st.sampled_from(METHODS))
def test_quantiles_of_integers_are_numpys(values, q, method):
    got = result(ps.quantile("x", q, method), values, pa.int64())
    assert got == np.quantile(np.array(values), q, method=method)
    assert isinstance(got, int) == (method in ("lower", "higher", "nearest"))


@pytest.mark.parametrize("method", METHODS)
def test_many_quantiles_are_numpys(method):
    rng = np.random.default_rng(8)
    values, each = rng.normal(0, 1, 101), rng.random(60)
    query = ps.Query(ps.Window(10), None, {str(q): ps.quantile("x", q, method) for q in each})
    (row,) = ps.aggregate(query, [table_of(list(values), FLOATS)]).to_pylist()
    assert row == {"ts": 0} | {str(q): np.quantile(values, q, method=method) for q in each}


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
@example([1e308, 1.7e308])
def test_the_median_is_rounded_once(values):
    ordered = sorted(map(Fraction, values))
    n = len(ordered)
    assert result(ps.median("x"), values) == float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2))
def test_the_median_of_large_integers(values):
    assert result(ps.median("x"), values, pa.int64()) == float(Fraction(sum(values), 2))


@given(
    st.lists(st.floats(2.3e-308, 1e308), min_size=1, max_size=40),
    st.floats(0, 1),
    st.sampled_from([0.5, 0.1, 0.01, 0.001, 1e-6]),
    st.booleans(),
)
def test_an_approximate_quantile_is_within_its_error(values, q, error, negative):
    values = [-v for v in values] if negative else values
    exact, got = result(ps.quantile("x", q), values), result(ps.approx_quantile("x", q, error), values)
    assert abs(got - exact) <= error * abs(exact) * (1 + 1e-12)


def test_special_values():
    inf, nan = math.inf, math.nan
    values = [nan, 1.0, -0.0, 0.0, inf, -inf, None, nan]
    assert result(ps.n_unique("x"), values) == 5
    assert bits(result(ps.top_k("x", 4), values)) == bits([nan, nan, inf, 1.0])
    assert bits(result(ps.bottom_k("x", 3), values)) == bits([-inf, -0.0, 0.0])
    assert result(ps.histogram("x", [0, 1]), values) == [1, 2, 4]
    assert result(ps.median("x"), [1.0, inf]) == result(ps.quantile("x", 0.1), [1.0, inf]) == inf
    assert result(ps.quantile("x", 0.1), [inf, inf]) == result(ps.quantile("x", 0.0), [3.0, inf]) + inf == inf
    assert math.isnan(result(ps.quantile("x", 0.5), [-inf, inf]))
    assert math.isnan(result(ps.quantile("x", 0.5), [1.0, nan]))
    assert result(ps.quantile("x", 0.5), [-1.7e308, 1.7e308]) == 0
    assert result(ps.approx_quantile("x", 1), [1.0, inf]) == inf
    assert result(ps.approx_quantile("x", 0.5), [-0.0]) == 0
    assert math.isnan(result(ps.approx_quantile("x", 1), values))
    tiny = result(ps.approx_quantile("x", 0), [5e-324 * 1000])
    assert abs(tiny / 5e-324 - 1000) <= 0.02 * 1000


def test_no_values():
    got = [result(f, [None], pa.int64()) for f in (ps.n_unique("x"), ps.histogram("x", [0]), ps.median("x"))]
    assert got == [0, [0, 0], None]
    for function in (ps.quantile("x", 1, "lower"), ps.approx_quantile("x", 0), ps.top_k("x", 1), ps.bottom_k("x", 1)):
        assert result(function, [None]) is None


@pytest.mark.parametrize("design", DESIGNS)
def test_many_values_of_few_keys(design, nothing_left):
    """Sets of several blocks, which slide, and which are combined where several threads add."""
    rng, inputs = np.random.default_rng(5), []
    for scale in (40, 1000):
        x = scale * rng.normal(0, 1, 3000)
        x[rng.random(3000) < 0.3] = 7.0
        inputs.append(pa.table({"ts": np.sort(rng.integers(0, 40, 3000)), "k": rng.integers(0, 2, 3000), "x": x}))
    functions = {"u": ps.n_unique("x"), "q": ps.quantile("x", 0.9), "a": ps.approx_quantile("x", 0.9)}
    functions |= {"t": ps.top_k("x", 200), "h": ps.histogram("x", list(range(-90, 90)))}
    query = ps.Query(ps.Window(20, 4), "k", functions)
    got = ps.aggregate(query, inputs, design=design).to_pylist()
    assert got == reference.aggregate(query, [t.to_pylist() for t in inputs])


def test_edges_where_doubles_end():
    """Edges between the values of a column, and beyond them."""
    edges = [-(2**70), -0.5, 0, 2**53 + 1, 2**63 - 1, 2**63, 1e30]
    for type, values in (
        (pa.int64(), [-1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
        (pa.uint64(), [0, 2**53 + 1, 2**63, 2**64 - 1]),
        (pa.float64(), [-0.0, -0.5, 2.0**53, 2.0**53 + 2, 1e30, -math.inf]),
        (pa.bool_(), [True, False]),
    ):
        query = ps.Query(ps.Window(10), None, {"h": ps.histogram("x", edges)})
        table = table_of(values, type)
        assert ps.aggregate(query, [table]).to_pylist() == reference.aggregate(query, [table.to_pylist()])


# ---- what is asked ----


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ps.quantile("x", 1.5), ValueError, r"quantile\(q=\.\.\.\) takes a number from 0 to 1, not 1.5"),
        (lambda: ps.quantile("x", math.nan), ValueError, "not nan"),
        (lambda: ps.quantile("x", "0.5"), TypeError, "takes a number, not '0.5'"),
        (lambda: ps.quantile("x", 0.5, "cubic"), ValueError, "is one of 'linear', .*not 'cubic'"),
        (lambda: ps.approx_quantile("x", 0.5, 0), ValueError, "takes a number from 1e-06 to below 1, not 0"),
        (lambda: ps.approx_quantile("x", 0.5, None), TypeError, "takes a number, not None"),
        (lambda: ps.top_k("x", 0), ValueError, "takes a number between 1 and"),
        (lambda: ps.bottom_k("x", 1.0), TypeError, "takes an integer, not 1.0"),
        (lambda: ps.histogram("x", []), ValueError, "between 1 and"),
        (lambda: ps.histogram("x", [1, 1]), ValueError, "takes ascending edges: 1 comes after 1"),
        (lambda: ps.histogram("x", [math.nan]), ValueError, "takes finite numbers"),
        (lambda: ps.histogram("x", "12"), TypeError, "takes a sequence of numbers"),
        (lambda: ps.histogram("x", [None]), TypeError, "takes numbers, not None"),
        (lambda: ps.n_unique(3), TypeError, "takes the name of a column"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("function", [ps.n_unique("x"), ps.top_k("x", 2), ps.median("x")])
def test_strings_are_refused(function):
    with pytest.raises(ps.SchemaError, match="column of type string has no"):
        result(function, ["a"], pa.string())


def test_options_are_part_of_the_function():
    assert ps.quantile("x", 0.5) == ps.quantile("x", 0.5, "linear") != ps.quantile("x", 0.5, "lower")
    assert len({ps.top_k("x", 1), ps.top_k("x", 2), ps.bottom_k("x", 1)}) == 3
    assert repr(ps.quantile("x", 0.5)) == "quantile(x, q=0.5, interpolation='linear')"
    assert repr(ps.median("x")) == "median(x)"


def test_on_the_command_line():
    assert query_text.aggregate("n_unique:user") == ps.n_unique("user")
    assert query_text.aggregate("quantile:ms:0.95") == ps.quantile("ms", 0.95)
    assert query_text.aggregate("top_k:a:b:3") == ps.top_k("a:b", 3)
    assert query_text.aggregate("histogram:ms:1,2.5") == ps.histogram("ms", [1, 2.5])
    for text in ("quantile:ms", "quantile:ms:high", "top_k:x:1,2", "top_k:x:0.5"):
        with pytest.raises(ps.PystreamError, match=text):
            query_text.aggregate(text)


# ---- as bytes ----

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.float64())])
FLAGS = pa.schema([("ts", pa.int64()), ("x", pa.bool_())])


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


def state(values: int, body: bytes) -> bytes:
    return word(values) + word(len(body)) + body


IMPOSSIBLE = {
    "a count that is too low": state(1, b"\1\2"),
    "a count that is too high": state(3, b"\1\2"),
    "a word twice": state(2, b"\1\1\0\1"),
    "words that descend": state(2, b"\1\1" + b"\xff" * 9 + b"\1\1"),
    "a count of nothing": state(0, b"\1\0"),
    "a negative count": state(1, b"\1" + b"\xff" * 9 + b"\1\1\2"),
    "half a word": state(2, b"\1\2\x80"),
    "no count": state(2, b"\1\2\1"),
    "a longer way to write it": state(2, b"\x81\0\2"),
    "a word of 65 bits": state(2, b"\x80" * 9 + b"\2\2"),
    "a value that no boolean has": state(2, b"\2\2"),
    "fewer bytes": state(2, b"\1\2")[:-1],
    "more than there are": word(2) + word(3) + b"\1\2",
    "too many": state(2**62 + 1, b"\1\x81" + b"\x80" * 7 + b"\x40"),
}


def open_window(asked: ps.Query, schema: pa.Schema, values: list, design: str = "mq") -> bytes:
    with ps.Operator(asked, 1, schema, design=design) as op:
        op.add(0, pa.RecordBatch.from_pylist([{"ts": 1, "x": x} for x in values], schema=schema))
        op.heartbeat(0, 3)
        for _ in patience():
            if op.stats()["pending"] == 0:
                break
        return op.snapshot()


@pytest.mark.parametrize("design", ["mq", "sliced"])
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_states_that_cannot_be_are_refused(what, design, nothing_left):
    asked = ps.Query(ps.Window(10), None, {"x": ps.top_k("x", 5)})
    blob = open_window(asked, FLAGS, [True, True])
    with pytest.raises(ps.SnapshotError, match="damaged"):
        ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _: [IMPOSSIBLE[what]]), design=design)


def test_states_that_can_be_are_not():
    asked = ps.Query(ps.Window(10), None, {"x": ps.top_k("x", 5)})
    blob = open_window(asked, FLAGS, [True, True])
    with ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _: [state(3, b"\0\2\1\1")])) as op:
        op.close(0)
        assert op.read()["x"][0].as_py() == [True, False, False]


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (ps.histogram("x", [0, 1]), 3),
        (ps.n_unique("x"), 2**63 - 1),  # -0.0, which counts as 0.0
        (ps.median("x"), 2**64 - 1),  # another NaN
        (ps.approx_quantile("x", 0.5), 2**63 + 1),  # below the least double
        (ps.approx_quantile("x", 0.5), 2**63 - ((0x7FF + 52) << 6) - 1),  # beyond infinity
    ],
)
def test_words_that_no_value_has_are_refused(function, bad):
    asked = ps.Query(ps.Window(10), None, {"x": function})
    blob = open_window(asked, SCHEMA, [0.5])
    groups = bytes((bad >> 7 * i) & 127 | 128 for i in range(10)).rstrip(b"\x80")
    forged = state(1, groups[:-1] + bytes([groups[-1] & 127]) + b"\1")
    with pytest.raises(ps.SnapshotError, match="damaged"):
        ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _: [forged]))


def folded(asked: ps.Query, table: pa.Table) -> list[pa.RecordBatch]:
    fold = Fold(asked, table.schema)
    return [partial for batch in table.to_batches() for partial in fold.add(batch)] + list(fold.finish())


@pytest.mark.parametrize("body", [b"\1\1", b"\1\2\1", b"\0\1\0\1", b""])
def test_partials_that_cannot_be_are_refused(body):
    asked = ps.Query(ps.Window(10), None, {"x": ps.n_unique("x")})
    table = table_of([7, 8], pa.uint8())
    (partial,) = folded(asked, table)
    at = partial.schema.get_field_index("__0_set")
    whole = Combine(asked, table.schema)
    with pytest.raises(ps.PartialError, match="__0_set"):
        whole.add(partial.set_column(at, partial.schema.field(at), pa.array([body], pa.large_binary())))
    whole.add(partial)
    assert next(whole.finish())["x"].to_pylist() == [2]


def test_a_fold_counts_its_sets():
    rng = np.random.default_rng(3)
    table = pa.table({"ts": np.arange(4000) // 1000, "k": np.arange(4000) % 2, "x": rng.normal(0, 1, 4000)})
    fold = Fold(ps.Query(ps.Window(2), "k", {"u": ps.n_unique("x")}), table.schema)
    assert [p for batch in table.to_batches() for p in fold.add(batch)] == []
    assert fold._handle.bytes > 4000 * 16
    list(fold.finish())
    assert fold._handle.bytes == 0


def test_sets_that_are_gone_do_not_count():
    table = pa.table({"ts": np.arange(4000) // 1000, "x": np.random.default_rng(3).normal(0, 1, 4000)})
    asked = ps.Query(ps.Window(2), None, {"u": ps.n_unique("x")})
    whole = Combine(asked, table.schema)
    whole.add(folded(asked, table))
    before = whole._handle.bytes
    assert sum(windows.num_rows for windows in whole.advance(4)) == 2
    assert whole._handle.bytes < before - 4000 * 16


@pytest.mark.parametrize("other", [ps.quantile("x", 0.4), ps.quantile("x", 0.5, "lower")])
def test_a_snapshot_is_of_one_quantile(other):
    blob = open_window(ps.Query(ps.Window(10), None, {"x": ps.quantile("x", 0.5)}), SCHEMA, [1.0])
    with pytest.raises(ps.SnapshotError, match="another query"):
        ps.Operator.restore(ps.Query(ps.Window(10), None, {"x": other}), blob)


def test_lists_of_a_snapshot_that_were_not_read():
    asked = ps.Query(ps.Window(10), None, {"t": ps.top_k("x", 2), "h": ps.histogram("x", [0])})
    with ps.Operator(asked, 1, SCHEMA) as op:
        op.add(0, {"ts": np.array([1, 2, 15, 27]), "x": np.array([1.0, 5.0, -3.0, 0.0])})
        for _ in patience():
            if op.stats()["rows_out"] == 2:
                break
        blob = op.snapshot()
        op.end(discard=True)
    with ps.Operator.restore(asked, blob) as op:
        op.close(0)
        rows = [row for batch in op for row in batch.to_pylist()]
    assert [(row["t"], row["h"]) for row in rows] == [([5.0, 1.0], [0, 2]), ([-3.0], [1, 0]), ([0.0], [0, 1])]


def test_a_key_that_is_gone_holds_nothing(nothing_left):
    asked = ps.Query(ps.Window(2), "k", {"u": ps.n_unique("x")})
    with ps.Operator(asked, 1, [("ts", "int64"), ("k", "int64"), ("x", "double")], design="sliced") as op:
        before = _native.memory_live()
        op.add(0, {"ts": np.zeros(2000, np.int64), "k": np.arange(2000) % 200, "x": np.arange(2000.0)})
        op.add(0, {"ts": [5], "k": [0], "x": [1.0]})
        op.heartbeat(0, 10)
        for _ in patience():
            if op.stats()["rows_out"] == 201:
                break
        rows, left = op.poll(), _native.memory_live() - before
        op.close(0)
        assert sum(batch.num_rows for batch in rows) == 201
        assert left < 400  # of 600
        assert not any(batch.num_rows for batch in op)
