"""What a trace names is what the specs name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_model_doorbell
import test_model_ledger
import test_model_ms_queue
import test_model_pane_hive
import test_model_queue
import test_model_run_gate
import test_model_t_gate
import test_model_w_hive

from pystream.verify.scheduler import run

SPEC = Path(__file__).parents[2] / "spec"
MODULES = {
    "t_gate": ("TGate", "Reclaim"),
    "w_hive": ("WHive", "WinSet", "TGate"),  # skip_list.h speaks as TGate does: see its table
    "ms_queue": ("MSQueue",),
    "run_gate": ("RunGate",),
    "pane_hive": ("PaneHive", "Reclaim"),  # slabs go back to their input as T-Gate's do
    "queue": ("MSQueue", "Operator"),
    "doorbell": ("Operator",),
    "ledger": ("Operator", "WakeMarks"),  # the subject tells the passer of rows as sliced does
}
#: How many labels with a shared access the programs meet, at least.
SEEN_MIN = {
    "t_gate": 6,
    "w_hive": 6,
    "ms_queue": 6,
    "run_gate": 3,
    "pane_hive": 4,
    "queue": 6,
    "doorbell": 5,
    "ledger": 4,
}
PROGRAMS = {
    "t_gate": [*test_model_t_gate.programs(2, 2, gets=2), *test_model_t_gate.reclaiming(talk=True)],
    "w_hive": [*test_model_w_hive.programs(2, 2, gets=2), *test_model_w_hive.delivering(talk=True)],
    "ms_queue": [*test_model_ms_queue.programs(2, 2), *test_model_ms_queue.reusing()],
    "run_gate": [*test_model_run_gate.programs(2, 2, gets=2), *test_model_run_gate.leaving(talk=True)],
    "pane_hive": [*test_model_pane_hive.programs(2, 2, gets=2), *test_model_pane_hive.reusing(talk=True)],
    "queue": [*test_model_queue.programs(2, 2)],
    "doorbell": [*test_model_doorbell.programs(2, 3), test_model_doorbell.WOKEN],
    "ledger": [*test_model_ledger.programs(2, 1, [("put", 2)])],
}


def labels_of(modules):
    """Labels in the PlusCal text, or the actions that they become."""
    text = "".join((SPEC / f"{module}.tla").read_text() for module in modules)
    return set(re.findall(r"^ *(\w+):", text, re.MULTILINE))


@pytest.mark.parametrize("subject", MODULES)
def test_every_label_is_in_the_spec(subject):
    runs = [run(program, schedule) for program in PROGRAMS[subject] for schedule in ([], [("switch", 5)])]
    seen = {access.label for execution in runs for access in execution.trace if access.accessor not in ("", "mutex")}
    assert len(seen) >= SEEN_MIN[subject]
    assert seen <= labels_of(MODULES[subject]), seen - labels_of(MODULES[subject])
