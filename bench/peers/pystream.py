"""pystream: ours, by design."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pystream as ps
from pystream.operator import DESIGNS
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from peers.case import Case

PACKAGES = ("pystream-core", "numpy")


def form(design: str) -> Callable[[Case], Callable[[], pa.Table]]:
    return lambda case: lambda: ps.aggregate(PAPER[case.id].query, case.inputs, design=design)


FORMS = {design: form(design) for design in ("auto", *DESIGNS)}
