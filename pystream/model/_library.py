"""The only module that touches the model build: loading it, building it from other sources, its numbers and names."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pystream.errors import PystreamError

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
KINDS = ("switch", "stale", "fail", "kill", "stall")
VERDICTS = ("fine", "race", "freed", "twice", "leak", "assertion", "crash", "endless", "misuse")


@dataclass(frozen=True)
class Library:
    """A model build: the one in the package, or one built from changed sources. Its calls must not overlap."""

    ffi: Any
    lib: Any
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def subjects(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Every subject with its operations, and these with the names of their arguments."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for number, subject in enumerate(self._names(self.lib.model_subject_name)):
            found[subject] = {}
            for text in self._names(lambda i, n=number: self.lib.model_operation_name(n, i)):
                name, _, arguments = text.rstrip(")").partition("(")
                found[subject][name] = tuple(a.strip() for a in arguments.split(",") if a.strip())
        return found

    def accessors(self) -> dict[str, str]:
        """The accessors of atomics.h that executions have met, with the strongest order each was called with."""
        order, found = self.ffi.new("int32_t *"), {}
        for name in self._names(lambda i: self.lib.model_accessor(i, order)):
            known = found.get(name, 0)
            found[name] = max(known, order[0])
        return {name: ORDERS[number] for name, number in found.items()}

    def weaken(self, weaker: dict[str, str]) -> None:
        """From now on these accessors have these orders at most; all others their own."""
        self.lib.model_weaken(self.ffi.NULL, 0)
        for accessor, order in weaker.items():
            self.lib.model_weaken(accessor.encode(), ORDERS.index(order))

    def text(self, pointer: Any) -> str:
        """A C string, or nothing."""
        return str(self.ffi.string(pointer).decode()) if pointer else ""

    def _names(self, of: Any) -> Any:
        number = 0
        while pointer := of(number):
            yield self.text(pointer)
            number += 1


def load(path: Path | str) -> Library:
    """Load a model build from a file, such as one that `build` made."""
    spec = importlib.util.spec_from_file_location("pystream._model", path)
    if spec is None or spec.loader is None:
        raise PystreamError(f"{path} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Library(module.ffi, module.lib)


@cache
def library() -> Library:
    """The model build in this package."""
    try:
        from pystream import _model  # noqa: PLC0415 - developers' tool: nothing else of the package needs it
    except ImportError as error:
        raise PystreamError("this installation has no model build; install with PYSTREAM_MODEL_BUILD=ON") from error
    return Library(_model.ffi, _model.lib)


def build(csrc: Path, target: Path, *flags: str) -> Path:
    """Compile the model build from a (changed) copy of csrc into the file `target`; one call of the C compiler."""
    work = target.with_suffix(".build")
    work.mkdir(parents=True, exist_ok=True)
    (work / "prelude.c").write_text('#include "base.h"\n#include "model/model.h"\n')
    generate = [sys.executable, "-m", "cffi.gen_src", "read-sources", "pystream._model", csrc / "model/model.h"]
    _run(*generate, work / "prelude.c", work / "_model.c")
    sources = [p for p in sorted(csrc.glob("*.c")) if p.name != "memory.c"] + sorted((csrc / "model").glob("*.c"))
    compiler = shutil.which("gcc") or shutil.which("cc") or "cc"
    options = ["-O1", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", f"-fmacro-prefix-map={csrc}/="]
    defines = ["-DPYSTREAM_MODEL", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030b0000"]
    includes = [f"-I{csrc}", f"-I{sysconfig.get_path('include')}"]
    _run(compiler, *options, *defines, *includes, *flags, *sources, work / "_model.c", "-lm", "-o", target)
    shutil.rmtree(work)
    return target


def _run(*command: object) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise PystreamError(f"the model build does not compile:\n{done.stdout}{done.stderr}")
