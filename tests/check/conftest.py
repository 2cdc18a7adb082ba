"""A small spec for TLC to run: two workers that add to a counter, and a reader that looks at it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pystream.verify.tlc import pluscal, runner
from pystream.verify.tlc.check import Silent
from pystream.verify.tlc.java import Tools, find_tools

if TYPE_CHECKING:
    from pathlib import Path

ALGORITHM = r"""------------------------------- MODULE Adder -------------------------------
EXTENDS Naturals, Sequences, FiniteSets, TLC
CONSTANTS Turns, AddRule
(* --algorithm adder
variables total = 0, seen_totals = <<>>;
process worker \in 1..2
variables seen = 0, turn = 0;
begin
add_read:
  seen := total;
add_write:
  total := IF AddRule = "atomic" THEN total + 1 ELSE seen + 1;
  turn := turn + 1;
  if turn < Turns then goto add_read; end if;
add_check:
  if AddRule = "asserting" then
add_assert:
    assert total > 100;
  elsif AddRule = "stuck" then
add_stuck:
    await FALSE;
  end if;
end process
process reader = 3
begin
look:
  seen_totals := Append(seen_totals, total);
end process
end algorithm *)
\* BEGIN TRANSLATION
\* END TRANSLATION
============================================================================
"""

MODEL = r"""------------------------------ MODULE MCAdder ------------------------------
EXTENDS Adder
VARIABLE stopped
AllDone == \A t \in ProcSet : pc[t] = "Done"
NoLoss == AllDone => total = 2 * Turns
Ends == <>AllDone
NeverTwo == [][total' # 2]_total
NotOne == total # 1
NotZero == total # 0
Wrong == total = "a"
CountsByTwo == total = 0 /\ [][total' = total + 2]_total
CountsFromOne == total = 1 /\ [][TRUE]_total

Plain == Init /\ stopped = {} /\ [][Next /\ UNCHANGED stopped]_<<vars, stopped>>
Fair == Plain /\ WF_vars(Next)
Crash == Cardinality(stopped) < 1 /\ \E t \in ProcSet : pc[t] # "Done" /\ stopped' = {t} /\ UNCHANGED vars
LiveStep == \/ \E t \in (1..2) \ stopped : worker(t) /\ UNCHANGED stopped
            \/ 3 \notin stopped /\ reader /\ UNCHANGED stopped
Crashing == Init /\ stopped = {} /\ [][LiveStep \/ Crash]_<<vars, stopped>> /\ WF_vars(LiveStep)
LiveEnd == <>(\A t \in ProcSet \ stopped : pc[t] = "Done")
============================================================================
"""

DIRECT = r"""----------------------------- MODULE MCDirect -----------------------------
EXTENDS Adder
AllDone == \A t \in ProcSet : pc[t] = "Done"
NoLoss == AllDone => total = 2 * Turns
============================================================================
"""

ENDLESS = r"""----------------------------- MODULE MCEndless -----------------------------
EXTENDS Naturals
VARIABLE x
Spec == x = 0 /\ [][x' = x + 1]_x
============================================================================
"""

BROKEN = r"""----------------------------- MODULE MCBroken ------------------------------
VARIABLE x
Spec == x =
Next == x' = x
============================================================================
"""

UNDEFINED = r"""---------------------------- MODULE MCUndefined ----------------------------
VARIABLE x
Spec == x = nowhere /\ [][x' = x]_x
============================================================================
"""

MODULES = {
    "MCAdder": MODEL,
    "MCDirect": DIRECT,
    "MCEndless": ENDLESS,
    "MCBroken": BROKEN,
    "MCUndefined": UNDEFINED,
}


def entry(name: str, expected: str, **fields: Any) -> dict[str, Any]:
    """A model of the manifest."""
    rule = fields.pop("rule", "atomic")
    constants = {"Turns": "1", "AddRule": f'"{rule}"'}
    given = {
        "seconds": 1,
        "module": "MCAdder",
        "shows": f"{name} shows something",
        "spec": "Plain",
        "constants": constants,
        **fields,
    }
    return {"name": name, "expected": expected, **given}


MANIFEST = [
    entry("AdderPasses", "pass", spec="Fair", invariants=["NoLoss"], properties=["Ends"], distinct_states=92, depth=8),
    entry("AdderDirect", "pass", module="MCDirect", spec="Spec", invariants=["NoLoss"], distinct_states=92, depth=8),
    entry("AdderCrashing", "pass", spec="Crashing", properties=["LiveEnd"], distinct_states=238, depth=8),
    entry("AdderLoses", "NoLoss", rule="lossy", invariants=["NoLoss"], trace="Both read 0."),
    entry("AdderStutters", "Ends", properties=["Ends"]),
    entry("AdderAction", "NeverTwo", properties=["NeverTwo"]),
    entry("AdderPart", "CountsByTwo", properties=["CountsByTwo"]),
    entry("AdderPartAtStart", "CountsFromOne", properties=["CountsFromOne"]),
    entry("AdderAtStart", "NotZero", invariants=["NotZero"]),
    entry("AdderAsserts", "Assert", rule="asserting"),
    entry("AdderStuck", "Deadlock", rule="stuck", deadlock=True),
    entry("AdderLost", "Ends", spec="Crashing", properties=["Ends"]),
    entry("Mistyped", "Wrong", invariants=["Wrong"]),
    entry("Broken", "pass", module="MCBroken", spec="Spec", constants={}),
    entry("Undefined", "pass", module="MCUndefined", spec="Spec", constants={}),
    entry("Endless", "pass", module="MCEndless", spec="Spec", constants={}, deep=True),
]


def write_manifest(spec: Path, entries: list[dict[str, Any]]) -> None:
    (spec / "models.json").write_text(json.dumps(entries), encoding="utf-8")


@pytest.fixture(scope="session")
def tools() -> Tools:
    return find_tools()


@pytest.fixture(scope="session")
def adder(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the spec, translated; not to be written to."""
    spec = tmp_path_factory.mktemp("adder")
    for name, text in MODULES.items():
        (spec / f"{name}.tla").write_text(text, encoding="utf-8")
    module = spec / "Adder.tla"
    module.write_text(ALGORITHM, encoding="utf-8")
    task = pluscal.translation_task(tools, module, tmp_path_factory.mktemp("translation") / "work")
    finished = runner.run([task], 1, Silent(), lambda: None)  # type: ignore[arg-type]
    module.write_text(finished[module.name].product, encoding="utf-8")
    write_manifest(spec, MANIFEST)
    return spec


@pytest.fixture
def spec(adder: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(adder, tmp_path / "spec")
