"""The operator while it runs: refusals, readiness, back-pressure, and how it ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from memory import with_failing_memory
from threads import patience, run_together

import pystream as ps
from pystream import reference
from pystream._native import operator as native_operator
from pystream.operator import CANNOT, DESIGNS, designs_for

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
COUNT = ps.Query(ps.Window(10, 10), "k", {"n": ps.count()})


@pytest.fixture(params=DESIGNS)
def design(request) -> str:
    return request.param


def batch(*ts: int, k: int = 1, v: int = 1) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ts": list(ts), "k": [k] * len(ts), "v": [v] * len(ts)}, schema=SCHEMA)


def rows(batches) -> list[dict]:
    return [row for b in batches for row in b.to_pylist()]


def wait_for(op: ps.Operator, n: int) -> list[dict]:
    """Poll until n rows are there. What is waited for must come: readiness, not time, is what the tests are about."""
    got = []
    for _ in patience():
        got += rows(op.poll())
        if len(got) >= n:
            break
    return got


# ---- refusals ----


def test_a_bad_row_refuses_the_whole_batch_and_the_operator_goes_on(design):
    with ps.Operator(COUNT, 2, SCHEMA, design=design) as op:
        op.add(1, batch(5, 6))
        with pytest.raises(
            ps.DisorderError, match=r"input 1, row 2: timestamp 7 is below 9, the latest timestamp"
        ) as e:
            op.add(1, batch(8, 9, 7, 10))
        assert (e.value.input, e.value.row, e.value.ts, e.value.latest) == (1, 2, 7, 9)
        with pytest.raises(ps.DisorderError, match=r"input 1, row 0: timestamp 5 is below 6"):
            op.add(1, batch(5))
        with pytest.raises(ps.DisorderError, match=r"input 0, row 0: timestamp -1 is negative"):
            op.add(0, batch(-1, 5))
        op.add(1, batch(6, 8))
        op.close(0)
        op.close(1)
        assert rows(op) == [{"ts": 0, "k": 1, "n": 4}]


def test_aggregate_names_the_row_of_the_whole_input():
    with pytest.raises(ps.DisorderError, match="input 1, row 3: timestamp 4 is below 5"):
        ps.aggregate(COUNT, [[batch(1)], [batch(1, 2), batch(5, 4)]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ts": [1], "v": [1]}, "input 0: column 'k' is missing"),
        ({"ts": ["x"], "k": [1], "v": [1]}, "input 0: column 'ts' has type string where int64 is expected"),
        ({"ts": [1, None], "k": [1, 1], "v": [1, 1]}, "input 0: row 1: timestamp 'ts' is null"),
        ({"ts": [1.5], "k": [1], "v": [1]}, "input 0: column 'ts' has type double where int64 is expected"),
        ({"ts": [1], "k": ["a"], "v": [1]}, "input 0: column 'k' has type string where int64 is expected"),
    ],
)
def test_schema_errors_name_input_and_column(columns, message):
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        with pytest.raises(ps.SchemaError, match=message):
            op.add(0, pa.RecordBatch.from_pydict(columns))
        op.add(0, batch(1))
        op.close(0)
        assert rows(op) == [{"ts": 0, "k": 1, "n": 1}]


def test_a_batch_may_bring_another_type_if_nothing_is_lost():
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        op.add(0, {"ts": np.array([1, 2], "int16"), "k": np.array([7, 7], "uint8"), "v": [1, 1]})
        op.close(0)
        assert rows(op) == [{"ts": 0, "k": 7, "n": 2}]


def test_add_after_close_and_after_the_end(design):
    with ps.Operator(COUNT, 2, SCHEMA, design=design) as op:
        op.close(0)
        op.close(0)
        with pytest.raises(ps.ClosedError, match="input 0 is closed"):
            op.add(0, batch(1))
        with pytest.raises(ps.ClosedError, match="input 0 is closed"):
            op.heartbeat(0, 1)
        op.add(1, batch(1))
    for call in (lambda: op.add(1, batch(2)), lambda: op.close(1), op.poll, op.stats, lambda: op.heartbeat(1, 5)):
        with pytest.raises(ps.ClosedError, match="the operator has ended"):
            call()
    with pytest.raises(ps.ClosedError):
        list(op)
    op.end()  # twice is fine


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 0}, "inputs must be between 1 and 65536, not 0"),
        ({"inputs": 70000}, "inputs must be"),
        ({"max_pending": 0}, "max_pending must be"),
        ({"threads": 0}, "threads must be"),
        ({"threads": 5000}, "threads must be between 1 and 1024"),
        ({"levels": 0}, "levels must be between 1 and 8"),
        ({"design": "fast"}, "unknown design 'fast'; there are 'auto', 'mq', 'mq-lf', 'tuml-sc', 'tuml-mc', 'wiml'"),
    ],
)
def test_numbers_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        ps.Operator(COUNT, **{"inputs": 1, "schema": SCHEMA, **arguments})


@pytest.mark.parametrize("levels", [1, 3, 8])
def test_the_height_of_the_lists_does_not_show(design, levels, nothing_left):
    rows = [{"ts": ts, "k": ts % 3, "v": ts} for ts in range(0, 200, 2)]
    query = ps.Query(ps.Window(30, 7), "k", {"n": ps.count(), "s": ps.sum("v")})
    with ps.Operator(query, 2, SCHEMA, design, threads=2, levels=levels) as op:
        for i in (0, 1):
            op.add(i, pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
            op.close(i)
        got = [row for batch in op for row in batch.to_pylist()]
    assert got == reference.aggregate(query, [rows, rows])


@pytest.mark.parametrize("aggregate", [ps.first("v"), ps.last("v"), ps.udf(dict)])
def test_a_design_without_order_refuses_functions_that_need_it(aggregate):
    query = ps.Query(ps.Window(10), "k", {"n": ps.count(), "it": aggregate})
    message = r"it = \w+\(\w+\) depends on the order .* 'wiml' does not keep; 'mq', 'mq-lf', 'tuml-sc', 'tuml-mc', .*do"
    with pytest.raises(ValueError, match=message):
        ps.Operator(query, 1, SCHEMA, design="wiml")
    assert ps.Operator(query, 1, SCHEMA, design="auto").design in designs_for(query)


def test_input_numbers_out_of_range():
    with ps.Operator(COUNT, 2, SCHEMA) as op:
        for call in (lambda i: op.add(i, batch(1)), op.close, lambda i: op.heartbeat(i, 1)):
            for i in (-1, 2):
                with pytest.raises(ValueError, match="input must be between 0 and 1"):
                    call(i)


def test_integer_sum_that_does_not_fit_is_an_error_and_rows_before_it_come_out(design):
    query = ps.Query(ps.Window(10), "k", {"n": ps.count(), "total": ps.sum("v")})
    with ps.Operator(query, 1, SCHEMA, design=design) as op:
        op.add(0, batch(1, v=2**63 - 1))
        op.add(0, batch(11, 12, v=2**62))
        op.heartbeat(0, 20)
        got = []
        with pytest.raises(
            ps.SumOverflowError, match=r"total = sum\(v\) does not fit into int64 in the window starting at 10"
        ):
            for b in op:
                got += b.to_pylist()
        assert got == [{"ts": 0, "k": 1, "n": 1, "total": 2**63 - 1}]
        with pytest.raises(ps.SumOverflowError):
            op.poll()
        with pytest.raises(ps.ClosedError, match=r"call poll\(\) to get the error"):
            for _ in patience():  # the reader may hear of it first
                op.add(0, batch(21))


def test_integer_sums_may_leave_int64_on_the_way():
    query = ps.Query(ps.Window(10), None, {"total": ps.sum("v"), "mean": ps.avg("v")})
    values = {"ts": [1, 1, 1, 1], "v": np.array([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)])}
    assert ps.aggregate(query, [values]).to_pylist() == [{"ts": 0, "total": -2, "mean": -0.5}]


# ---- readiness ----


def test_an_input_that_has_sent_nothing_holds_everything_back(design):
    with ps.Operator(COUNT, 2, SCHEMA, design=design) as op:
        op.add(0, batch(1, 100))
        assert rows(op.poll()) == []
        assert op.stats()["pending"] == 2
        op.add(1, batch(9))
        assert settled_to(op, 1) == []
        op.add(1, batch(10))
        assert wait_for(op, 1) == [{"ts": 0, "k": 1, "n": 2}]


def settled_to(op: ps.Operator, pending: int) -> list[dict]:
    """What poll gives once no more than so many tuples are pending."""
    for _ in patience():
        if op.stats()["pending"] == pending:
            break
    return rows(op.poll())


def test_equal_timestamps_are_ready_by_input_number(design):
    """(5, 0) <= (5, 1) is ready although input 1 may send more at 5; (5, 1) is ready too, being its own latest."""
    with ps.Operator(COUNT, 2, SCHEMA, design=design) as op:
        op.add(0, batch(5))
        op.heartbeat(1, 5)
        assert settled_to(op, 0) == []  # merged without waiting for a tuple of input 1
        op.add(1, batch(5, 5))
        assert settled_to(op, 2) == []  # (5, 1) must wait: input 0 may still send (5, 0)
        op.heartbeat(0, 6)
        assert settled_to(op, 0) == []


def test_heartbeats_complete_windows_without_tuples(design):
    with ps.Operator(COUNT, 3, SCHEMA, design=design) as op:
        op.add(0, batch(3))
        op.heartbeat(0, 10)
        op.heartbeat(1, 25)
        op.heartbeat(1, 4)  # says nothing new
        assert settled_to(op, 1) == []
        op.heartbeat(2, 9)
        assert settled_to(op, 0) == []
        op.heartbeat(2, 10)
        assert wait_for(op, 1) == [{"ts": 0, "k": 1, "n": 1}]
        with pytest.raises(ps.DisorderError, match="input 1, row 0: timestamp 24 is below 25"):
            op.add(1, batch(24))
        with pytest.raises(ps.DisorderError, match="input 2: timestamp -1 is negative"):
            op.heartbeat(2, -1)


def test_heartbeat_takes_datetimes_for_timestamp_columns():
    schema = pa.schema([("ts", pa.timestamp("ms", "UTC")), ("k", pa.int64())])
    query = ps.Query(ps.Window("1s"), "k", {"n": ps.count()})
    with ps.Operator(query, 1, schema) as op:
        op.add(0, pa.RecordBatch.from_pydict({"ts": [datetime(2020, 1, 1, tzinfo=UTC)], "k": [1]}, schema=schema))
        op.heartbeat(0, datetime(2020, 1, 1, 0, 0, 1, tzinfo=UTC))
        assert wait_for(op, 1) == [{"ts": datetime(2020, 1, 1, tzinfo=UTC), "k": 1, "n": 1}]
        with pytest.raises(TypeError, match="heartbeat wants a timestamp"):
            op.heartbeat(0, "soon")


# ---- the largest numbers ----


def test_timestamps_and_sizes_up_to_the_end_of_int64(design):
    top = 2**63 - 1
    for size, advance in ((top, top), (top, 1 << 62), (1, top), (10, 3), (top, 2**61 + 1)):
        query = ps.Query(ps.Window(size, advance), "k", {"n": ps.count()})
        ticks = [0, 1, top - 11, top - 1, top, top]
        expected = reference.aggregate(query, [batch(*ticks).to_pylist(), batch(*ticks, k=2).to_pylist()])
        assert ps.aggregate(query, [batch(*ticks), batch(*ticks, k=2)], design=design).to_pylist() == expected


# ---- back-pressure ----


def test_max_pending_blocks_times_out_or_refuses(design):
    with ps.Operator(COUNT, 2, SCHEMA, design=design, max_pending=3) as op:
        op.add(0, batch(1, 2))
        with pytest.raises(ps.BackpressureError, match="input 0 holds too many tuples to take 2 more"):
            op.add(0, batch(3, 4), block=False)
        with pytest.raises(TimeoutError, match="input 0 had no room for 2 tuples in time"):
            op.add(0, batch(3, 4), timeout=0.01)
        assert {"tuples_in": 2, "pending": 2, "rows_out": 0}.items() <= op.stats().items()
        op.add(0, batch(3))
        blocked = threading.Thread(target=op.add, args=(0, batch(4, 5)))
        blocked.start()
        op.heartbeat(1, 50)  # releases everything
        blocked.join()
        op.add(0, batch(*range(6, 20)))  # larger than max_pending: waits for an empty input
        op.close(0)
        op.close(1)
        assert rows(op) == [{"ts": 0, "k": 1, "n": 9}, {"ts": 10, "k": 1, "n": 10}]


def test_room_is_made_by_an_add_that_completes_no_window(design, nothing_left):
    """Nothing comes out here: whoever makes room must hear of adds that no reader would care about."""
    query = ps.Query(ps.Window(1000), "k", {"n": ps.count()})
    with ps.Operator(query, 2, SCHEMA, design=design, max_pending=5_000) as op:
        op.add(0, batch(*[10] * 5_000))
        run_together(lambda: op.add(0, batch(11), timeout=60), lambda: op.add(1, batch(20)))  # whichever comes first
        op.add(1, batch(*[20] * 4_998))
        op.heartbeat(0, 21)
        op.add(1, batch(20, 20), timeout=60)
        assert settled_to(op, 0) == []


def test_an_add_that_was_refused_is_taken_once_there_is_room(design):
    query = ps.Query(ps.Window(1000), "k", {"n": ps.count()})
    with ps.Operator(query, 2, SCHEMA, design=design, max_pending=5_000) as op:
        op.add(0, batch(*[10] * 5_000))
        op.add(1, batch(20))
        for _ in patience():
            try:
                op.add(0, batch(11), block=False)
                break
            except ps.BackpressureError:
                pass
        assert settled_to(op, 1) == []


def test_a_reader_that_stalls_stalls_the_inputs_and_nothing_is_lost(design):
    query = ps.Query(ps.Window(1), "k", {"n": ps.count()})
    with ps.Operator(query, 1, SCHEMA, design=design, max_pending=10) as op:
        fed = 0
        with pytest.raises(ps.BackpressureError):
            for fed in range(1000):
                while True:  # the merge needs a moment; only an input that stays full counts as stalled
                    try:
                        op.add(0, batch(fed), timeout=0.2)
                        break
                    except TimeoutError:
                        op.add(0, batch(fed), block=False)
        assert 10 <= fed < 30  # ten pending, up to ten more in the output, what was under way
        feeder = threading.Thread(target=lambda: ([op.add(0, batch(i)) for i in range(fed, 1000)], op.close(0)))
        feeder.start()
        assert [row["ts"] for row in rows(op)] == list(range(1000))
        feeder.join()


# ---- ends ----


def test_leaving_the_block_ends_calls_that_wait(design, nothing_left):
    with ps.Operator(COUNT, 2, SCHEMA, design=design, max_pending=1) as op:
        op.add(0, batch(1))
        errors = []

        def blocked_add():
            try:
                op.add(0, batch(2))
            except ps.ClosedError as e:
                errors.append(e)

        def blocked_read():
            try:
                list(op)
            except ps.ClosedError as e:
                errors.append(e)

        threads = [threading.Thread(target=blocked_add), threading.Thread(target=blocked_read)]
        for t in threads:
            t.start()
        time.sleep(0.05)  # most likely both are inside C by now; if not, they must end all the same
    for t in threads:
        t.join()
    assert len(errors) == 2


def test_abandoned_operators_leave_nothing(design, nothing_left):
    for _ in range(50):
        op = ps.Operator(COUNT, 3, SCHEMA, design=design)
        op.add(0, batch(1, 2, 3))
        op.add(1, batch(1))
        del op
    gc.collect()


@pytest.mark.filterwarnings("ignore:.*not read:ResourceWarning")  # of those that are dropped
@pytest.mark.parametrize("operators", [20, pytest.param(200, marks=pytest.mark.deep)])
def test_many_operators_opened_and_dropped_leave_nothing(design, operators, nothing_left):
    for i in range(operators):
        op = ps.Operator(COUNT, 4, SCHEMA, design=design, threads=3)
        for input in range(i % 5):
            op.add(input % 4, batch(1, 2, 3 + i))
        if i % 3:
            op.end()


def test_exceptions_leave_nothing(nothing_left):
    def broken():
        yield batch(1)
        raise RuntimeError("the source broke")

    for _ in range(5):
        with pytest.raises(RuntimeError, match="the source broke"):
            ps.aggregate(COUNT, [[batch(i) for i in range(50)], broken()])
        with pytest.raises(ps.DisorderError):
            ps.aggregate(COUNT, [[batch(5), batch(4)], [batch(1)]])
        with pytest.raises(ZeroDivisionError), ps.Operator(COUNT, 1, SCHEMA) as op:
            op.add(0, batch(1))
            1 / 0  # noqa: B018


def test_output_outlives_the_operator():
    table = ps.aggregate(COUNT, [[batch(1, 2)], [batch(11)]])
    gc.collect()
    assert table.to_pylist() == [{"ts": 0, "k": 1, "n": 2}, {"ts": 10, "k": 1, "n": 1}]


@pytest.fixture
def run_python():
    """Start Python on some code; whatever becomes of the test, the process does not outlive it."""
    started = []

    def run(code: str, **options) -> subprocess.Popen:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options))
        return started[-1]

    yield run
    for child in started:
        child.kill()
        child.communicate()


def test_ctrl_c_during_aggregate_ends_at_once_and_leaves_nothing(run_python):
    child = run_python(
        """
        import gc, signal, threading, pyarrow as pa, pystream as ps
        from pystream import _native
        from threads import core_threads
        query = ps.Query(ps.Window(10), "k", {"n": ps.count()})
        def endless(tell, ts=0):
            while True:
                yield pa.RecordBatch.from_pydict({"ts": [ts], "k": [1]})
                ts += 1
                if ts == 100 and tell:
                    print("running", flush=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
        try:
            ps.aggregate(query, [endless(True), endless(False)])
        except KeyboardInterrupt:
            print("interrupted")
        gc.collect()
        print("threads", threading.active_count(), core_threads(), "memory", _native.memory_live())
        """,
        cwd=Path(__file__).parent,
    )
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert out.splitlines()[-2:] == ["interrupted", "threads 1 0 memory 0"], err
    assert child.returncode == 0


def test_the_interpreter_ends_with_operators_alive(run_python):
    child = run_python(
        """
        import pyarrow as pa, pystream as ps
        query = ps.Query(ps.Window(10), "k", {"n": ps.count()})
        ops = [ps.Operator(query, 2, pa.schema([("ts", pa.int64()), ("k", pa.int64())])) for _ in range(5)]
        for op in ops:
            op.add(0, {"ts": [1, 2], "k": [1, 2]})
        print("bye")
        """,
    )
    assert child.communicate(timeout=120)[0] == "bye\n"
    assert child.returncode == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for the threads")
def test_no_thread_runs_on_while_python_is_taken_down(run_python):
    """What was registered before pystream came runs after it at exit, and finds its threads gone."""
    child = run_python(
        f"""
        import atexit, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from threads import core_threads, patience
        @atexit.register
        def look():
            for _ in patience():  # the system shows a thread for a moment after it was joined
                if not core_threads():
                    break
            print(core_threads(), "left")
        import pystream as ps
        query = ps.Query(ps.Window(10), None, {{"n": ps.count()}})
        ops = [ps.Operator(query, 1, [("ts", "int64")]) for _ in range(5)]
        for _ in patience():  # a thread is known by its name, which it gives itself once it runs
            if core_threads():
                break
        print(core_threads() > 0)
        """,
    )
    assert child.communicate(timeout=120)[0] == "True\n0 left\n"


def test_what_is_known_of_operators_for_the_exit_stays_small():
    for _ in range(3 * native_operator._HANDLES_MANY):
        ps.Operator(ps.Query(ps.Window(10), None, {"n": ps.count()}), 1, [("ts", "int64")]).end()
    assert len(native_operator._handles) <= native_operator._HANDLES_MANY + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_cannot_use_the_operator_and_does_not_hang(run_python):
    child = run_python(
        """
        import os, pyarrow as pa, pystream as ps
        query = ps.Query(ps.Window(10), "k", {"n": ps.count()})
        op = ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("k", pa.int64())]))
        pid = os.fork()
        if pid == 0:
            try:
                op.add(0, {"ts": [1], "k": [1]})
            except ps.ClosedError:
                raise SystemExit(7)
        status = os.waitpid(pid, 0)[1]
        op.add(0, {"ts": [1], "k": [1]})
        op.close(0)
        print(os.waitstatus_to_exitcode(status), sum(b.num_rows for b in op))
        """,
    )
    assert child.communicate(timeout=120)[0] == "7 1\n"


# ---- memory that runs out ----


def test_every_allocation_may_fail_and_nothing_leaks(design, nothing_left):
    """Let the n-th allocation and all later ones fail, for every n: MemoryError, or the right result; never a leak."""
    aggregates = {"n": ps.count(), "mean": ps.avg("x"), "low": ps.min("s")}
    if "udf" not in CANNOT.get(design, ()):
        aggregates["order"] = ps.udf(Last)
    query = ps.Query(ps.Window(5, 2), ["k", "s"], aggregates)
    data = {"ts": [1, 2, 3], "k": [1, 2, 1], "s": ["a", "bb", "ccc"], "x": [1e300, 2.0, -1e300]}
    tuples = pa.RecordBatch.from_pydict(data)
    expected = ps.aggregate(query, [tuples, tuples]).to_pylist()
    got, n = with_failing_memory(lambda: attempt(query, tuples, design))
    assert got == expected
    assert n > 80  # so many allocations were made to fail


class Last:
    def process_tuple(self, row):
        self.row = row["s"]

    def produce_out_tuple(self):
        return self.row


def attempt(query: ps.Query, tuples: pa.RecordBatch, design: str) -> list[dict]:
    with ps.Operator(query, 2, tuples.schema, design, threads=2) as op:
        for i in range(2):
            op.add(i, tuples)
            op.close(i)
        return rows(op)


@pytest.mark.parametrize("design", ["wiml", "sliced"])
def test_memory_that_ends_within_a_batch(design, failing_memory, nothing_left):
    """A design that updates windows in `add` refuses the batch and has changed nothing, or ends and says so."""
    query = ps.Query(ps.Window(4, 2), "k", {"n": ps.count(), "sum": ps.sum("x")})
    early, late = (pa.table({"ts": times, "k": times, "x": [1e300] * len(times)}) for times in (range(8), range(8, 30)))
    expected = rows([ps.aggregate(query, [[early, late]])])
    kinds = []
    while "taken" not in kinds:
        with ps.Operator(query, 1, early.schema, design) as op:
            op.add(0, early)
            got = wait_for(op, 8)
            failing_memory(len(kinds) + 1)
            kinds.append(add_and_finish(op, late, failing_memory, got))
        assert got == expected[: len(got)]
        assert kinds[-1] == "ended" or got == expected
    assert set(kinds) == {"refused", "ended", "taken"}


def add_and_finish(op: ps.Operator, tuples: pa.Table, failing_memory, got: list[dict]) -> str:
    """Add while memory lasts, once more if that was refused, and read to the end."""
    kind = "taken"
    try:
        op.add(0, tuples)
    except MemoryError:
        kind = "refused"
    failing_memory(0)
    if kind == "refused":
        op.add(0, tuples)
    with suppress(ps.ClosedError):
        op.close(0)
    try:
        for batch in op:
            got += batch.to_pylist()
    except MemoryError:
        with pytest.raises(ps.ClosedError):
            op.add(0, tuples)
        return "ended"
    return kind
