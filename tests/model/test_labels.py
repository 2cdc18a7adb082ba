"""What a trace names is what the specs name."""

from __future__ import annotations

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
from pystream.verify.tlc import mirror
from pystream.verify.tlc.manifest import find_spec
from pystream.verify.tlc.pluscal import labels, pluscal_modules

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


STEPS = {path.stem: {label.name for label in labels(path)} for path in pluscal_modules(find_spec())}
MIRRORS = mirror.declared(find_spec())


def allowed(file):
    """The labels of the modules that a C file mirrors. The subjects stand for callers, and may use any module's."""
    modules = [module for module in STEPS if file.startswith("model/") or file in MIRRORS[module].c]
    return {label for module in modules for label in STEPS[module]}


@pytest.mark.parametrize("subject", SEEN_MIN)
def test_every_label_is_in_the_spec(subject):
    runs = [run(program, schedule) for program in PROGRAMS[subject] for schedule in ([], [("switch", 5)])]
    accesses = [a for execution in runs for a in execution.trace if a.accessor not in ("", "mutex")]
    assert len({access.label for access in accesses}) >= SEEN_MIN[subject]
    seen = {(access.where.partition(":")[0], access.label) for access in accesses}
    assert {(file, label) for file, label in seen if label not in allowed(file)} == set()
