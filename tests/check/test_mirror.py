"""The C mirrors the specs: what it says to be a step is one."""

from __future__ import annotations

import re
from pathlib import Path

from pystream.verify.tlc.manifest import find_spec
from pystream.verify.tlc.pluscal import labels, pluscal_modules

CSRC = Path(__file__).parents[2] / "csrc"
STEP = re.compile(r"^\s*AT\((\w+)\);", re.MULTILINE)


def test_every_label_in_the_c_is_a_step_of_a_spec():
    steps = {label.name for module in pluscal_modules(find_spec()) for label in labels(module)}
    named = {
        f"{source.name}: {label}"
        for source in CSRC.glob("*/*.[ch]")
        if source.parent.name != "model"
        for label in STEP.findall(source.read_text(encoding="utf-8"))
        if label not in steps
    }
    assert named == set()
