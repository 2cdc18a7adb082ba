"""What the tests did to the library, and what came of it, for the table of tests/README.md."""

from __future__ import annotations

import json
import os
from pathlib import Path

LOG = "PYSTREAM_FAULTS_LOG"


def record(fault: str, *, tried: int, survived: int, lost: int, where: str) -> None:
    """Append the outcome of a test to the file that the environment names, if it names one."""
    if log := os.environ.get(LOG):
        line = {"fault": fault, "tried": tried, "survived": survived, "lost": lost, "where": where}
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
