"""Every memory order of atomics.h that is stronger than relaxed is accounted for."""

from __future__ import annotations

import re
from pathlib import Path

import test_model_doorbell
import test_model_ledger
import test_model_ms_queue
import test_model_pane_hive
import test_model_queue
import test_model_run_gate
import test_model_t_gate
import test_model_w_hive
from judge import stronger_than_relaxed

ATOMICS = (Path(__file__).parents[2] / "csrc/base/atomics.h").read_text()


def test_each_strong_order_has_a_test_that_fails_without_it():
    accessors = re.findall(r"static inline [^;{]*?(\w+)\([^)]*\) \{(.*?)\n?\}", ATOMICS, re.DOTALL)
    strong = {
        name
        for name, body in accessors
        if "CELL_" in body and re.search(r"memory_order_(acquire|release|acq_rel|seq_cst)", body)
    }
    shown = {name for name, _ in test_model_t_gate.ORDERS + test_model_w_hive.ORDERS}
    shown |= {name for name, _ in test_model_run_gate.ORDERS + test_model_pane_hive.ORDERS}
    shown |= {name for name, _ in test_model_queue.ORDERS + test_model_doorbell.ORDERS}
    shown |= {name for name, _ in test_model_ledger.ORDERS}
    shown |= {name for name, _ in stronger_than_relaxed(*test_model_ms_queue.reusing())}
    assert len(shown) > 20
    assert strong == shown
