"""The parsers, on texts as TLC and the kernel write them."""

from __future__ import annotations

import pytest

from pystream.verify.tlc import limits
from pystream.verify.tlc.coverage import modules_of, reached
from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.messages import parse_messages
from pystream.verify.tlc.pluscal import labels, seeded, stale
from pystream.verify.tlc.result import Kind, read_result
from pystream.verify.tlc.runner import Finished, Task
from pystream.verify.tlc.tlc import checks_liveness
from pystream.verify.tlc.trace import lines, read_trace
from pystream.verify.tlc.values import Function, Set, changes, parse_value, show


def message(code, body, severity=0):
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{body}\n@!@!@ENDMSG {code} @!@!@\n"


def finished(output, code=0, tmp=None):
    return Finished(Task("m", [], tmp), code, output, 2.0)


def model(**fields):
    return Model(name="M", module="MCM", shows="", expected="pass", **fields)


SUCCESS = message(2193, "Model checking completed. No error has been found.") + message(
    2199, "2165 states generated, 1162 distinct states found, 0 states left on queue."
)
END = message(2194, "The depth of the complete state graph search is 18.") + message(2186, "Finished in 1134ms")


def test_a_pass():
    result = read_result(model(), finished("Parsing file A.tla\n" + SUCCESS + END))
    assert (result.kind, result.outcome) == (Kind.PASSES, "pass")
    assert (result.distinct_states, result.depth, result.seconds) == (1162, 18, 2.0)


def test_success_with_a_bad_exit_code_is_no_pass():
    assert read_result(model(), finished(SUCCESS + END, code=1)).kind is Kind.ERROR


def test_a_tlc_that_died_did_not_pass():
    result = read_result(model(), finished(SUCCESS + "# SIGSEGV", code=-11))
    assert result.kind is Kind.CRASH
    assert "exit code -11" in result.detail
    assert "# SIGSEGV" in result.detail


@pytest.mark.parametrize(
    "output",
    [
        message(1001, "Java ran out of memory.", 1) + END,
        message(1000, "The exception was a java.lang.OutOfMemoryError\n: GC overhead limit exceeded", 1),
        "Terminating due to java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_out_of_memory(output):
    result = read_result(model(), finished(output, code=3))
    assert (result.kind, result.outcome) == (Kind.MEMORY, "out of memory")


def test_one_message_inside_another():
    nested = "@!@!@STARTMSG 1000:1 @!@!@\nouter\n: " + message(5001, "inner") + "@!@!@ENDMSG 1000 @!@!@\nplain\n"
    found = parse_messages(nested)
    assert [(one.code, one.is_error) for one in found] == [(5001, False), (1000, True), (0, False)]
    assert found[1].body == "outer\n: inner"
    assert found[2].body == "plain"


def test_a_message_cut_off_in_the_middle():
    assert [one.code for one in parse_messages("@!@!@STARTMSG 2200:0 @!@!@\nProgress(3) at")] == [2200, 0]


def test_the_place_of_a_violated_part_is_the_only_property():
    body = "Action property line 14, col 13 to line 14, col 17 of module ReadyOrder is violated."
    output = message(2112, body, 1) + END
    one = read_result(model(properties=("Refines",), invariants=("TypeOK",)), finished(output, 13))
    two = read_result(model(properties=("Refines", "Live")), finished(output, 13))
    assert one.outcome == "Refines"
    assert two.outcome == "line 14, col 13 to line 14, col 17 of module ReadyOrder"


def test_a_temporal_violation_with_several_properties_has_no_name():
    output = message(2116, "Temporal properties were violated.", 1) + END
    assert read_result(model(properties=("A", "B")), finished(output, 13)).outcome == "temporal property violated"


def test_an_error_without_its_boilerplate():
    body = "TLC threw an unexpected exception.\nThis was probably caused by an error\nSee the User Output\nThe real one"
    assert read_result(model(), finished(message(1000, body, 1) + END, 255)).detail == "The real one"


def test_the_liveness_phase():
    start, end = message(2192, "Checking temporal properties").encode(), message(2267, "Finished checking").encode()
    assert not checks_liveness(b"")
    assert checks_liveness(start)
    assert not checks_liveness(start + end)


VALUES = [
    "7",
    "-1",
    '"a string, with <<signs>>"',
    "TRUE",
    "<<>>",
    "<<1, 2>>",
    "{}",
    "{<<1, 2>>, <<3>>}",
    "[a |-> 1, b |-> {1, 2}]",
    '(0 :> "x" @@ 1 :> <<"y">>)',
    "<<[a |-> <<>>], (1 :> {})>>",
    "modelValue",
]


@pytest.mark.parametrize("text", VALUES)
def test_values_come_back(text):
    assert show(parse_value(text)) == text


def test_a_value_over_several_lines():
    assert parse_value("[ a |-> 1,\n  b |-> <<1,\n 2>> ]") == parse_value("[a |-> 1, b |-> <<1, 2>>]")


@pytest.mark.parametrize("text", ["<<1, 2", "[a |->]", "(1 :> 2", "1 2", "}", "", "[f EXCEPT ![1] = 2]"])
def test_what_is_no_value_stays_text(text):
    assert parse_value(text) == text


def test_kinds_of_values():
    assert parse_value("<<5>>") == Function({"1": "5"}, is_tuple=True)
    assert parse_value("{5}") == Set(("5",))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("1", "1", []),
        ("1", "2", ["v: 1 → 2"]),
        ("<<1, 2>>", "<<1, 3>>", ["v[2]: 2 → 3"]),
        ("<<1>>", "<<1, 3, 4>>", ["v ++ <<3, 4>>"]),
        ("<<1, 2>>", "<<2>>", ["v: <<1, 2>> → <<2>>"]),
        ("[a |-> 1, b |-> <<1>>]", "[a |-> 2, b |-> <<7>>]", ["v.a: 1 → 2", "v.b[1]: 1 → 7"]),
        ("(0 :> 1 @@ 5 :> 2)", "(0 :> 1 @@ 5 :> 3)", ["v[5]: 2 → 3"]),
        ("{1, 2}", "{2, 3}", ["v + 3 - 1"]),
        ("{}", "{" + ", ".join(map(str, range(100))) + "}", ["v: 0 → 100 members (+100 -0)"]),
        ("1", '"' + "x" * 100 + '"', ['v: 1 → "' + "x" * 58 + "…"]),
    ],
)
def test_changes(old, new, told):
    assert changes("v", parse_value(old), parse_value(new)) == told


def state(number, action, *variables):
    body = "\n".join(variables) if len(variables) == 1 else "\n".join(f"/\\ {variable}" for variable in variables)
    return message(2217, f"{number}: <{action}>\n{body}\n", 4)


def told(*states, labels=(), **fields):
    output = message(2110, "Invariant I is violated.", 1) + "".join(states) + END
    result = read_result(model(invariants=("I",), **fields), finished(output, 12))
    return lines(read_trace(result, labels))


def test_a_module_without_threads():
    assert told(state(1, "Initial predicate", "x = 0"), state(2, "Inc line 5, col 8 of module M", "x = 1")) == [
        "step  what changed",
        "   1  (start)",
        "   2  Inc:  x: 0 → 1",
        "      I is violated here",
    ]


def test_one_thread():
    states = state(1, "Initial predicate", 'pc = "a"', "x = 0"), state(2, "a line 1 of module M", 'pc = "b"', "x = 0")
    assert told(*states, labels={"a", "b"})[2] == "   2  a            -"


def test_a_thread_that_goes_where_no_label_is():
    first = state(1, "Initial predicate", 'pc = <<"a", "b">>', "x = 0")
    second = state(2, "Crash line 1 of module M", 'pc = <<"a", "stopped">>', "x = 0")
    assert "stopped at b" in told(first, second, labels={"a", "b"})[2]


def test_a_spin_is_told_in_the_column_of_the_thread_at_its_label():
    first = state(1, "Initial predicate", 'pc = <<"a", "b">>', "spins = 0")
    second = state(2, "b line 1 of module M", 'pc = <<"a", "b">>', "spins = 1")
    assert told(first, second)[2].split() == ["2", "·", "b", "spins:", "0", "→", "1"]


def test_a_behaviour_that_goes_round():
    output = (
        message(2116, "Temporal properties were violated.", 1)
        + state(1, "Initial predicate", "x = 0")
        + state(2, "Loop line 7 of module M", "x = 1")
        + message(2122, "1: Back to state: <Loop line 7 of module M>", 4)
        + END
    )
    result = read_result(model(properties=("Get",)), finished(output, 13))
    assert lines(read_trace(result, ()))[-1].strip() == "and for ever again from step 1: Get is violated"


def test_labels_of_a_translation(adder):
    found = labels(adder / "Adder.tla")
    assert [label.name for label in found] == ["add_read", "add_write", "add_check", "add_assert", "add_stuck", "look"]
    text = (adder / "Adder.tla").read_text().splitlines()
    for label in found:
        assert text[label.first_line - 1].startswith(label.name)
        assert "==" not in "".join(text[label.first_line : label.last_line])


def test_labels_that_only_mistakes_reach_are_declared(tmp_path):
    module = tmp_path / "Queue.tla"
    module.write_text("---- MODULE Queue ----\n\\* Seeded labels: put_late, take_twice\n====\n")
    assert seeded(module) == {"put_late", "take_twice"}


def test_a_stale_translation_is_noticed(adder, spec):
    module = spec / "Adder.tla"
    fresh = (adder / "Adder.tla").read_text()
    module.write_text(fresh.replace("END TRANSLATION", "END TRANSLATION - another check sum").replace(", \n", ",\n"))
    assert stale(module, Finished(Task("t", [], spec), 0, "", 1.0, fresh)) is None
    module.write_text(fresh.replace("total' = ", "total' = 1 + ", 1))
    assert "stale" in stale(module, Finished(Task("t", [], spec), 0, "", 1.0, fresh))
    failed = Finished(
        Task("t", [], spec), 255, "pcal.trans Version 1.9\nUnrecoverable error:\n -- Missing `end'\n", 1.0
    )
    assert stale(module, failed) == "Unrecoverable error: -- Missing `end'"


def place(text, piece, count, bars=""):
    """A line of TLC's coverage for the first place of a piece of a module's text."""
    start = text.index(piece)
    ends = [(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) for at in (start, start + len(piece) - 1)]
    (line, column), (last_line, last_column) = ends
    where = f"{bars}line {line}, col {column} to line {last_line}, col {last_column} of module Adder: {count}"
    return message(2221, f"  {where}")


@pytest.mark.parametrize(
    ("guard", "then", "otherwise", "taken"),
    [(5, 0, 0, False), (5, 1, 0, True), (5, 0, 1, True), (0, 0, 0, False)],
)
def test_a_wrapped_step_is_told_by_its_assignments_to_pc(adder, guard, then, otherwise, taken):
    module = adder / "Adder.tla"
    text = module.read_text()
    body = text[text.index("add_write(self) ==") :]
    pc = [line.strip().removeprefix("THEN ").removeprefix("ELSE ") for line in body.splitlines() if "pc' =" in line]
    output = (
        message(2772, "<Step line 6, col 1 to line 6, col 4 of module MCAdder (6 25 6 72)>: 0:9")
        + place(text, body[body.index("/\\ pc[self]") :].splitlines()[0], guard)
        + place(text, "IF AddRule", guard, bars="|")
        + place(text, pc[0], then)
        + place(text, pc[1], otherwise)
    )
    result = read_result(model(), finished(output))
    assert ("add_write" in reached(result, module, labels(module))) is taken


def test_a_count_for_a_whole_conjunction_holds_for_its_assignment_to_pc(adder):
    module = adder / "Adder.tla"
    text = module.read_text()
    start = text.index("/\\ seen' =")
    whole = text[start : text.index("\n\n", start)]
    for count in (0, 7):
        result = read_result(model(), finished(place(text, whole, count)))
        assert ("add_read" in reached(result, module, labels(module))) is bool(count)


def test_what_one_action_did_not_do_another_may_have_done(adder):
    module = adder / "Adder.tla"
    text = module.read_text()
    start = text.index("/\\ seen' =")
    whole = text[start : text.index("\n\n", start)]
    pc = next(line.strip() for line in whole.splitlines() if "pc' =" in line)
    head = message(2772, "<Step line 6, col 1 to line 6, col 4 of module MCAdder>: 0:9")
    result = read_result(model(), finished(head + place(text, whole, 7) + head + place(text, pc, 0)))
    assert reached(result, module, labels(module)) == {"add_read"}


def test_modules_that_a_model_uses(adder):
    assert modules_of(adder, "MCAdder") == {"MCAdder", "Adder"}


GIGABYTE = 1 << 30


def kernel(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


MEMINFO = f"MemTotal: {64 << 20} kB\nMemAvailable: {32 << 20} kB"


def test_memory_of_the_machine(tmp_path):
    root = kernel(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/"})
    assert limits.available_memory(root) == 32 * GIGABYTE


def test_memory_of_a_container(tmp_path):
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/box/job",
        "sys/fs/cgroup/box/memory.max": str(4 * GIGABYTE),
        "sys/fs/cgroup/box/memory.current": str(2 * GIGABYTE),
        "sys/fs/cgroup/box/memory.stat": f"anon 5\ninactive_file {GIGABYTE}",
        "sys/fs/cgroup/box/job/memory.max": "max",
    }
    assert limits.available_memory(kernel(tmp_path, files)) == 3 * GIGABYTE


def test_limits_of_an_old_container(tmp_path):
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "5:memory:/job\n4:cpu,cpuacct:/job",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(2 * GIGABYTE),
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(GIGABYTE),
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "150000",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
    }
    root = kernel(tmp_path, files)
    assert limits.available_memory(root) == GIGABYTE
    assert limits.usable_cores(root) == 1


def test_cores_of_a_container(tmp_path):
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "100000 100000"}
    assert limits.usable_cores(kernel(tmp_path, files)) == 1


def test_a_plan_fits_into_memory(tmp_path):
    root = kernel(tmp_path, {"proc/meminfo": f"MemAvailable: {2 << 20} kB", "proc/self/cgroup": ""})
    assert limits.plan(100, jobs=8, root=root) == limits.Plan(slots=1, heap_mb=1236)


def test_a_plan_for_little_to_do(tmp_path):
    root = kernel(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/cgroup": ""})
    assert limits.plan(1, jobs=8, root=root) == limits.Plan(slots=1, heap_mb=limits.HEAP_MAX_MB)
