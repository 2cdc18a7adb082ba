"""The result as a document, with what it was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pystream
from pystream import _native

if TYPE_CHECKING:
    from pystream.lab.evaluation.experiments import Evaluation

PACKAGES = ("pyarrow", "numpy", "cffi")


def load_average() -> list[float] | None:
    """How busy the machine is; None where it does not say."""
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else None


def machine() -> dict[str, Any]:
    """What it ran on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions() -> dict[str, str]:
    """What it ran with."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"pystream": pystream.__version__, "abi": str(_native.ABI), "python": platform.python_version(), **found}


def document(evaluation: Evaluation, load_at_start: list[float] | None, seconds: float) -> dict[str, Any]:
    """Everything that was measured, and where, when and how."""
    plan = evaluation.plan
    return {
        "what": "pystream bench: the paper's evaluation; see pystream/lab/evaluation/__init__.py for method and limits",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": evaluation.complete,
        "seconds": round(seconds, 1),
        "machine": machine(),
        "versions": versions(),
        "load_average": {"start": load_at_start, "end": load_average()},
        "plan": {name: getattr(plan, name) for name in plan.__dataclass_fields__},
        "results": evaluation.results,
    }
