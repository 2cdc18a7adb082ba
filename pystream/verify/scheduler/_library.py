"""The only module that touches the model build: where it comes from, its numbers and names."""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
KINDS = ("switch", "stale", "fail", "kill", "stall", "only")
VERDICTS = ("fine", "race", "freed", "twice", "leak", "assertion", "crash", "endless", "misuse")


@dataclass(frozen=True)
class Library:
    """A model build: the one in the package, or one built from changed sources. Its calls must not overlap."""

    path: str
    ffi: Any = field(repr=False)
    lib: Any = field(repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _subjects: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict, repr=False, compare=False)

    def subjects(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Every subject with its operations, and these with the names of their arguments."""
        found = self._subjects
        if found:
            return found
        for number, subject in enumerate(self._names(self.lib.model_subject_name)):
            found[subject] = {}
            for text in self._names(lambda i, n=number: self.lib.model_operation_name(n, i)):
                name, _, arguments = text.rstrip(")").partition("(")
                found[subject][name] = tuple(a.strip() for a in arguments.split(",") if a.strip())
        return found

    def accessors(self) -> dict[str, str]:
        """The accessors of atomics.h that executions have met, with the strongest order each was called with."""
        order = self.ffi.new("int32_t *")
        found: dict[str, int] = {}
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
    return Library(str(path), module.ffi, module.lib)


@cache
def library() -> Library:
    """The model build of this package: the extension where there is one (editable installs), else made here and now."""
    try:
        from pystream import _model  # noqa: PLC0415 - developers' tool: nothing else of the package needs it
    except ImportError:
        from pystream.verify.scheduler.build import build_own  # noqa: PLC0415 - it needs this module

        return build_own()
    return Library(_model.__file__, _model.ffi, _model.lib)
