"""User code that calls the operator which runs it: an error, not a deadlock. And aggregate() whose inputs fail."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from threads import patience

import pystream as ps
from pystream.aggregation import results

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = pa.schema([("ts", pa.int64())])

CALLS = {
    "poll": lambda op: op.poll(),
    "for": list,
    "snapshot": lambda op: op.snapshot(),
    "add": lambda op: op.add(0, {"ts": [99]}),
    "heartbeat": lambda op: op.heartbeat(0, 99),
    "close": lambda op: op.close(0),
}
WAYS = {"poll": lambda op: op.poll(), "for": list, "snapshot": lambda op: op.snapshot()}

pytestmark = pytest.mark.usefixtures("nothing_left")


def made(step=None, result=None, save=None):
    """A class of user objects that make these calls."""

    class Mine:
        def process_tuple(self, row):
            self.ts = row["ts"]
            if step:
                step()

        def produce_out_tuple(self):
            if result:
                result()
            return self.ts

        def to_bytes(self):
            if save:
                save()
            return b""

        @classmethod
        def from_bytes(cls, _data):
            return cls()

    return Mine


def operator(mine) -> ps.Operator:
    query = ps.Query(ps.Window(2), None, {"mine": ps.udf(mine), "n": ps.count()})
    op = ps.Operator(query, 1, SCHEMA)
    op.add(0, {"ts": [0, 1, 2, 3]})
    for _ in patience():
        if op.stats()["rows_out"] == 1:
            return op
    raise AssertionError


def in_time(call):
    """What the call gives or raises; in another thread, so that one that never returns is a failure."""
    out = []

    def run():
        try:
            out.append((call(), None))
        except Exception as error:  # noqa: BLE001 - raised below
            out.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert out, "a call hangs"
    if out[0][1] is not None:
        raise out[0][1]
    return out[0][0]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["step", "result"])
def test_a_call_from_within_is_an_error_and_ends_the_operator(where, way, call):
    ops = []
    op = operator(made(**{where: lambda: CALLS[call](ops[0])}))
    ops.append(op)
    with pytest.raises(
        ps.UdfError, match="user code raised ReentryError: this call comes from code that runs"
    ) as raised:
        in_time(lambda: WAYS[way](op))
    assert isinstance(raised.value.__cause__, ps.ReentryError)
    with pytest.raises(ps.ClosedError):
        in_time(op.poll)
    with pytest.raises(ps.ClosedError):
        in_time(lambda: op.add(0, {"ts": [4]}))
    in_time(op.end)


def test_user_code_that_catches_the_error_goes_on():
    ops, caught = [], []

    def call():
        try:
            ops[0].poll()
        except RuntimeError as error:
            caught.append(error)

    op = operator(made(step=call))
    ops.append(op)
    op.close(0)
    assert [row for b in in_time(lambda: list(op)) for row in b.to_pylist()] == [
        {"ts": 0, "mine": 1, "n": 2},
        {"ts": 2, "mine": 3, "n": 2},
    ]
    assert len(caught) == 4
    op.end()


def test_saving_must_not_call_either():
    ops = []
    op = operator(made(save=lambda: ops[0].close(0)))
    ops.append(op)
    with pytest.raises(ps.ReentryError):
        in_time(op.snapshot)
    op.close(0)  # nothing is held
    assert sum(b.num_rows for b in in_time(lambda: list(op))) == 2
    op.end()


def test_what_may_be_called_from_within():
    ops, seen = [], []
    op = operator(made(step=lambda: seen.append((ops[0].stats()["tuples_in"], ops[0].explain_stall()))))
    ops.append(op)
    assert sum(b.num_rows for b in in_time(op.poll)) == 1
    assert seen[0][0] == 4
    op.end()


def test_end_may_be_called_from_within():
    ops = []
    op = operator(made(result=lambda: [each.end() for each in ops]))
    ops.append(op)
    assert sum(b.num_rows for b in in_time(op.poll)) == 1  # those were on their way
    with pytest.raises(ps.ClosedError):
        op.poll()


def test_another_thread_waits_while_user_code_runs():
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        assert go_on.wait(60)

    op = operator(made(step=hold))
    op.close(0)
    got: list[list[pa.RecordBatch]] = []
    threads = [threading.Thread(target=lambda: got.append(list(op)), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert op.stats()["tuples_in"] == 4
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert sorted(row["ts"] for batches in got for b in batches for row in b.to_pylist()) == [0, 2]
    op.end()


# ---- inputs that fail ----


def run(code: str) -> str:
    """The output of a program, which must end by itself."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


PRELUDE = """
import signal, threading, pyarrow as pa, pystream as ps
def one(ts): return pa.RecordBatch.from_pydict({"ts": [ts]})
never = threading.Event()
def waits(first=None):
    if first is not None: yield one(first)
    never.wait()
def fails(error, *ts):
    for t in ts: yield one(t)
    raise error
query = ps.Query(ps.Window(1), None, {"n": ps.count()})
def told(inputs):
    try: ps.aggregate(query, inputs)
    except BaseException as error: print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    "inputs",
    [
        "[waits(), fails({})]",
        "[fails({})] + [waits() for _ in range(5)]",
        "[waits(1), fails({}, 1, 2)]",
        "[waits(1), waits(1), fails({}, 5)]",
    ],
)
def test_an_input_that_fails_does_not_wait_for_one_that_sends_nothing(inputs):
    assert run(PRELUDE + f"told({inputs.format('OSError(1)')})") == "OSError 1\n"


def test_an_input_that_fails_with_an_error_of_ours():
    """It is not taken for what the readers get when the operator has ended."""
    assert run(PRELUDE + "told([waits(), fails(ps.ClosedError('mine'))])") == "ClosedError mine\n"


@pytest.mark.parametrize("rows", [0, 1], ids=["before the first rows", "after them"])
def test_of_inputs_that_fail_together_the_lowest_is_named(rows, monkeypatch):
    """Whichever fails first: the threads decide that. On a loaded machine the other one may need a while to fail."""
    monkeypatch.setattr("pystream.aggregation.PATIENCE_S", 60)
    one = pa.record_batch({"ts": [1]})

    def failing(*inputs: int, late: int) -> list[Iterator[pa.RecordBatch]]:
        """Two inputs: the early one fails while the late one is sure to fail too, a little later."""
        is_sure, raised = threading.Event(), threading.Event()

        def fails(input: int):
            yield from [one] * rows
            if input == late:
                is_sure.set()  # its rows are taken: nothing but its own error ends it now
                assert raised.wait(60)
                time.sleep(0.1)  # the early one is told already
            else:
                assert is_sure.wait(60)
                raised.set()
            raise OSError(f"of input {input}")

        return [fails(input) for input in inputs]

    query = ps.Query(ps.Window(1), None, {"n": ps.count()})
    with pytest.raises(OSError, match="of input 1"):
        ps.aggregate(query, [[one], *failing(1, 2, late=1)])
    with pytest.raises(OSError, match="of input 0"):
        ps.aggregate(query, [*failing(0, 1, late=1), [one]])


def test_ctrl_c_while_no_input_sends_anything():
    code = """
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    told([waits(), waits()])
    """
    assert run(PRELUDE + textwrap.dedent(code)) == "KeyboardInterrupt \n"


def test_leaving_early_ends_the_readers():
    def endless():
        for ts in range(0, 10**12, 1000):
            yield pa.RecordBatch.from_pydict({"ts": list(range(ts, ts + 1000))})

    before = threading.active_count()
    query = ps.Query(ps.Window(1), None, {"n": ps.count()})
    with results(query, [endless(), endless()], "auto", None, 100) as (schema, batches):
        assert schema.names == ["ts", "n"]
        del batches
    with results(query, [endless(), endless()], "auto", None, 100) as (_, batches):
        iterator = iter(batches)
        assert next(iterator).num_rows
        del iterator, batches
    for _ in patience():
        if threading.active_count() == before:
            return
