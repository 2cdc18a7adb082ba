"""The result as a document, with what it was measured on."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pystream
from pystream import _native
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pystream.lab.evaluation.experiments import Evaluation
    from pystream.lab.evaluation.plan import Plan

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


def plan_of(plan: Plan) -> dict[str, Any]:
    """The plan as JSON has it."""
    values = {name: getattr(plan, name) for name in plan.__dataclass_fields__}
    return {n: list(v) if isinstance(v, tuple) else str(v) if isinstance(v, Path) else v for n, v in values.items()}


def resumed(path: Path, plan: Plan) -> dict[str, Any]:
    """What an evaluation that goes on begins with: what is in the file if it is of the same plan and version."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = (found["plan"], found["versions"]) == (plan_of(plan), versions())
        before = {"results": found["results"], "done": found["done"], "before": found["seconds"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PystreamError(f"{path} is no document of `pystream bench --out`: {error!r}") from error
    if not same:
        raise PystreamError(f"{path} was measured with other options or versions; leave --resume out to begin again")
    return before


def document(evaluation: Evaluation, load_at_start: list[float] | None) -> dict[str, Any]:
    """Everything that was measured, and where, when and how."""
    return {
        "what": "pystream bench: the paper's evaluation; see pystream/lab/evaluation/__init__.py for method and limits",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": evaluation.complete,
        "seconds": round(evaluation.seconds, 1),
        "machine": machine(),
        "versions": versions(),
        "load_average": {"start": load_at_start, "end": load_average()},
        "plan": plan_of(evaluation.plan),
        "done": evaluation.done,
        "results": evaluation.results,
    }
