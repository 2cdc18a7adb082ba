"""Rows that are finished: `read` gives them, and nobody loses them, or waits for whoever should read them, unawares."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import threading
import warnings

import pyarrow as pa
import pytest
from threads import patience

import pystream as ps
from pystream.designs import DESIGNS, UNORDERED_DESIGNS

SCHEMA = pa.schema([("ts", pa.int64())])
COUNT = ps.Query(ps.Window(1), None, {"n": ps.count()})
PENDING = 8  # rows and tuples that fit


class Times:
    """A user function: the timestamps of the window."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process_tuple(self, row) -> None:
        self.seen.append(row["ts"])

    def produce_out_tuple(self):
        return ",".join(map(str, self.seen))


USER = ps.Query(ps.Window(1000), None, {"times": ps.udf(Times)})


@pytest.fixture(params=DESIGNS)
def design(request) -> ps.Design:
    return request.param


def operator(design: ps.Design = "auto", query: ps.Query = COUNT, inputs: int = 1, **arguments) -> ps.Operator:
    return ps.Operator(query, inputs, SCHEMA, design, threads=2, **arguments)


def finished(op: ps.Operator, rows: int) -> ps.Operator:
    for _ in patience():
        if op.stats()["rows_unread"] == rows:
            break
    return op


# ---- read ----


def test_read_waits_for_the_first_rows_and_ends_with_none(design):
    """The rows are made by a thread that adds only once the reader waits, or is about to."""
    with operator(design) as op:
        reads = threading.Event()

        def feed():
            reads.wait()
            op.add(0, {"ts": [1, 2, 2]})
            op.close(0)

        feeder = threading.Thread(target=feed)
        feeder.start()
        reads.set()
        tables = []
        while (rows := op.read()) is not None:
            assert rows.num_rows
            tables.append(rows)
        feeder.join()
        assert pa.concat_tables(tables).to_pylist() == [{"ts": 1, "n": 1}, {"ts": 2, "n": 2}]
        assert op.read() is None
        assert op.read(timeout=0) is None


def test_read_gives_everything_that_is_finished_as_one_table(design):
    with operator(design) as op:
        op.add(0, {"ts": [1, 2, 3]})
        op.add(0, {"ts": [4, 5]})
        finished(op, 4)
        assert op.read().to_pydict() == {"ts": [1, 2, 3, 4], "n": [1, 1, 1, 1]}


@pytest.mark.parametrize("timeout", [0, 0.001, -1])
def test_after_the_timeout_the_table_is_empty_and_has_the_columns(timeout):
    with operator() as op:
        op.add(0, {"ts": [1]})
        rows = op.read(timeout)
        assert rows.num_rows == 0
        assert rows.schema == op.schema == pa.schema([("ts", pa.int64()), ("n", pa.int64())])


def test_any_timeout_that_is_a_number():
    with operator() as op:
        op.add(0, {"ts": [1, 2]}, timeout=math.inf)
        assert op.read(timeout=math.inf).num_rows == 1
        with pytest.raises(TypeError):
            op.read(timeout="1s")


def test_read_after_a_snapshot_gives_the_rows_that_it_put_aside():
    with operator() as op:
        op.add(0, {"ts": [1, 2, 3]})
        finished(op, 2)
        blob = op.snapshot()
        assert op.stats()["rows_unread"] == 2
        with ps.Operator.restore(COUNT, blob) as other:
            assert other.stats()["rows_unread"] == 2
            assert other.read() == op.read()


def test_read_runs_user_functions_until_there_are_rows():
    """Their steps come before any row does, more of them than fit into the output at once."""
    with operator(query=USER, max_pending=PENDING) as op:
        feeder = threading.Thread(target=lambda: ([op.add(0, {"ts": [i]}) for i in range(100)], op.close(0)))
        feeder.start()
        assert op.read().to_pylist() == [{"ts": 0, "times": ",".join(map(str, range(100)))}]
        assert op.read() is None
        feeder.join()


def test_read_raises_what_went_wrong():
    query = ps.Query(ps.Window(1), None, {"total": ps.sum("ts")})
    with operator(query=query) as op:
        op.add(0, {"ts": [2**62, 2**62, 2**63 - 1]})
        op.close(0)
        with pytest.raises(ps.SumOverflowError, match="does not fit"):
            op.read()
    with pytest.raises(ps.ClosedError, match="has ended"):
        op.read()


# ---- rows that are thrown away ----


def fed(rows: int = 3) -> ps.Operator:
    op = operator()
    op.add(0, {"ts": list(range(rows + 1))})
    return finished(op, rows)


LOST = r"^3 finished rows were not read and are lost: read with `for batch in op` or `op\.read\(\)`, or `op\.end"


def test_leaving_the_block_with_finished_rows_warns_where_it_is_left():
    with pytest.warns(ResourceWarning, match=LOST) as caught, fed():
        pass
    assert caught[0].filename == __file__


def test_ending_with_finished_rows_warns_where_that_is_done():
    op = fed()
    with pytest.warns(ResourceWarning, match=LOST) as caught:
        op.end()
    assert caught[0].filename == __file__
    op.end()  # once is enough


def test_dropping_the_last_reference_warns():
    operators = [fed()]
    with pytest.warns(ResourceWarning, match=LOST):
        operators.clear()


@pytest.mark.filterwarnings("error")
def test_what_a_snapshot_has_is_not_lost(design):
    """Finished rows, and windows that would be finished soon."""
    op, taken = full(design)
    op.close(0)
    blob = op.snapshot()
    op.end()
    ps.Operator.restore(COUNT, blob).end()  # the blob is still there
    with ps.Operator.restore(COUNT, blob) as op:
        assert sum(batch.num_rows for batch in op) == taken


def test_rows_on_their_way_when_a_read_failed_count(monkeypatch):
    op = fed()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(op.engine.plan, "typed", no_memory)
        op.read()
    assert op.stats()["rows_unread"] == 3
    with pytest.warns(ResourceWarning, match=LOST):
        op.end()


def no_memory(_rows):
    raise MemoryError


def test_what_came_after_the_snapshot_is_lost():
    op = fed()
    op.snapshot()
    op.add(0, {"ts": [4, 5]})
    finished(op, 5)
    with pytest.warns(ResourceWarning, match="^2 finished rows were not read"):
        op.end()
    op = fed()
    op.snapshot()
    op.close(0)
    finished(op, 4)
    with pytest.warns(ResourceWarning, match="^1 finished row was not read"):
        op.end()


def test_one_row_is_one():
    with pytest.warns(ResourceWarning, match="^1 finished row was not read and is lost: "):
        fed(1).end()


def test_closed_inputs_and_nobody_reads(design, monkeypatch):
    """What the README once showed: `poll` right after `close` gives nothing yet, and the block is left."""
    monkeypatch.setattr("pystream.operator.GRACE_S", 60.0)  # however slow the machine
    op = operator(design)
    op.add(0, {"ts": [1, 2]})
    op.close(0)
    with pytest.warns(ResourceWarning, match="not read"):
        op.end()


def test_windows_of_a_user_function_whose_steps_nobody_runs():
    """No row can be finished, but every input is closed: it would be."""
    op, _ = full("runs", USER)
    op.close(0)
    with pytest.warns(ResourceWarning, match=r"^the rows of 1 window were not read and are lost"):
        op.end()


@pytest.mark.filterwarnings("error")
def test_no_warning_without_a_loss(design):
    with operator(design, inputs=2) as op:  # windows that are open are none that are finished
        op.add(0, {"ts": [1, 2]})
    with operator(design) as op:
        op.add(0, {"ts": [1, 2]})
        op.close(0)
        assert sum(batch.num_rows for batch in op) == 2
    with operator(design) as op:  # all rows were read, but nobody has looked whether there are more
        op.add(0, {"ts": [1, 2]})
        op.close(0)
        rows = 0
        while rows < 2:
            rows += op.read().num_rows
    with operator(design) as op:  # no rows
        op.close(0)
    del op
    gc.collect()


@pytest.mark.filterwarnings("error")
def test_no_warning_when_an_exception_leaves_the_block():
    with pytest.raises(KeyError), fed():
        raise KeyError
    op = fed()
    with pytest.raises(KeyError):
        try:
            raise KeyError
        finally:
            op.end()


@pytest.mark.filterwarnings("error")
def test_no_warning_when_user_code_has_ended_it():
    op = operator(query=ps.Query(ps.Window(1), None, {"u": ps.udf(lambda: 1 // 0)}))
    op.add(0, {"ts": [1, 2, 3]})
    with pytest.raises(ps.UdfError):
        op.read()
    op.end()


@pytest.mark.filterwarnings("error")
def test_no_warning_when_nobody_wants_them():
    fed().end(discard=True)
    with fed() as op:
        op.end(discard=True)


@pytest.mark.filterwarnings("error")
def test_an_iterator_keeps_the_operator():
    batches = iter(fed())
    gc.collect()
    assert next(batches).num_rows == 3


@pytest.mark.filterwarnings("error")
def test_no_warning_when_it_was_cancelled():
    """As `aggregate` does when it is left half-way: nobody wants the rows."""
    op = fed()
    op.engine.handle.cancel()
    assert op.stats()["rows_unread"] == 0
    op.end()


@pytest.mark.filterwarnings("error")
def test_a_forked_child_neither_counts_nor_warns():
    """The operator's locks may be held for ever there."""
    op = fed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
        child = os.fork()
    if child == 0:
        try:
            op.end()
        except BaseException:  # noqa: BLE001 - pytest must not run on in the child
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert op.read().num_rows == 3
    op.end()


def test_the_end_of_the_program_warns_too():
    code = """if True:
        import pystream as ps
        op = ps.Operator(ps.Query(ps.Window(1), None, {"n": ps.count()}), 1, [("ts", "int64")])
        op.add(0, {"ts": [1, 2]})
        while not op.stats()["rows_unread"]:
            pass
    """
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert "ResourceWarning: 1 finished row was not read and is lost" in done.stderr


# ---- output that nobody reads holds everything back ----


def full(design: ps.Design, query: ps.Query = COUNT) -> tuple[ps.Operator, int]:
    """An operator that takes nothing more because nobody reads; and how much it has taken, one tuple at a time."""
    op = operator(design, query, max_pending=PENDING)
    taken = 0
    for _ in patience():
        try:
            while True:
                op.add(0, {"ts": [taken]}, block=False)
                taken += 1
        except ps.BackpressureError:
            if op.engine.handle.unread()["full"] and op.stats()["pending"] == PENDING:
                break
    return op, taken


def test_unread_rows_are_a_reason_and_all_errors_say_so(design):
    op, taken = full(design)
    with op:
        stall = op.explain_stall()
        assert (stall.reason, stall.input, stall.since, stall.needs, stall.behind) == ("unread output", *[None] * 3, ())
        assert stall.rows_unread == op.stats()["rows_unread"] >= PENDING
        assert str(stall) == (
            f"{stall.rows_unread} finished rows are not read, and no more fit; "
            "read the rows: `for batch in op`, `op.read()` or `op.poll()`"
        )
        assert repr(stall) == f"<Stall: {stall}>"
        with pytest.raises(TimeoutError, match=r"no room for 1 tuples in time: .* not read, .*; read the rows"):
            op.add(0, {"ts": [taken]}, timeout=0.001)
        with pytest.raises(ps.BackpressureError, match=r"to take 1 more: .* not read, .*; read the rows"):
            op.add(0, {"ts": [taken]}, block=False)
        op.heartbeat(0, taken)  # neither waits
        op.close(0)
        assert sum(batch.num_rows for batch in op) == taken
        assert op.explain_stall() is None


def test_rows_that_hold_nothing_back_are_no_stall(design):
    """As many as fit, and no more will come."""
    with operator(design, max_pending=PENDING) as op:
        op.add(0, {"ts": list(range(PENDING))})
        op.close(0)
        for _ in patience():
            if op.engine.handle.unread()["over"]:
                break
        assert op.stats()["rows_unread"] == PENDING
        assert op.explain_stall() is None
        assert op.read().num_rows == PENDING


@pytest.mark.parametrize("design", [d for d in DESIGNS if d not in UNORDERED_DESIGNS])
def test_user_functions_that_nobody_runs_are_a_reason(design):
    op, taken = full(design, USER)
    with op:
        stall = op.explain_stall()
        assert (stall.reason, stall.rows_unread) == ("unread output", 0)
        assert str(stall).startswith("the output is not read, and user functions run only when it is; read the rows")
        with pytest.raises(TimeoutError, match="read the rows"):
            op.add(0, {"ts": [taken]}, timeout=0)
        op.close(0)
        assert op.read().to_pylist() == [{"ts": 0, "times": ",".join(map(str, range(taken)))}]


def test_an_input_that_holds_back_is_named_by_the_errors_of_the_others():
    with operator(inputs=2, max_pending=PENDING) as op:
        op.add(0, {"ts": list(range(PENDING))})
        with pytest.raises(TimeoutError, match="in time: input 1 has sent nothing yet and holds the output back"):
            op.add(0, {"ts": [PENDING]}, timeout=0)
        with pytest.raises(ps.BackpressureError, match="more: input 1 has sent nothing yet"):
            op.add(0, {"ts": [PENDING]}, block=False)


def test_a_call_that_waits_for_a_reader_goes_on_once_there_is_one(design):
    op, taken = full(design)
    with op:
        adder = threading.Thread(target=lambda: (op.add(0, {"ts": [taken]}), op.close(0)))
        adder.start()
        assert op.explain_stall().reason == "unread output"
        assert sum(rows.num_rows for rows in iter(op.read, None)) == taken + 1
        adder.join()


@pytest.mark.parametrize("wait_ms", [0, 60_000])
def test_nothing_waits_for_the_reader_of_a_cancelled_operator(wait_ms):
    """Nor does the question wait."""
    with ps.Operator(ps.Query(ps.Window(10), None, {"n": ps.count()}), 1, [("ts", "int64")]) as op:
        op.engine.handle.cancel()
        assert op.engine.handle.unread(wait_ms) == {"rows": 0, "full": 0, "over": 1}
