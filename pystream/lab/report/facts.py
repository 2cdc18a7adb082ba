"""What is on the page: everything that is read or measured for it."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pystream as ps
from pystream.data.sample import comments, smart_meters
from pystream.designs import DESIGNS, designs_for
from pystream.errors import PystreamError
from pystream.lab.evaluation.document import document, load_average
from pystream.lab.evaluation.experiments import Evaluation
from pystream.lab.evaluation.plan import Plan
from pystream.queries import IP, MAIL, PAPER
from pystream.reference import aggregate as oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pystream.queries import PaperQuery

#: The sample on which all designs are compared, also with the oracle, which is slow: inputs, tuples, and the seconds
#: they span, so that windows of all sizes come and go.
SAMPLE = {"streams": 3, "tuples": 600, "span_s": 90}

#: A measurement of under half a minute, if the machine has time.
SHORT = Plan(
    queries=("k-OI", "k-OS"),
    inputs=(4,),
    threads=(),
    levels=(),
    factors=(0.5, 1.0),
    rounds=2,
    seconds=0.5,
    budget=25.0,
    tuples=100_000,
    mergers=(),
)

_MAKERS = {"EC": smart_meters, "SC": comments}
_PATTERNS = {"f": MAIL, "F": f"{MAIL}|{IP}"}


# ---- the same bytes ----


@dataclass(frozen=True)
class Same:
    """One query on the sample: a digest of each design's result, and of the oracle's."""

    query: PaperQuery
    rows: int
    right: str
    designs: dict[str, str]

    @property
    def wrong(self) -> list[str]:
        """The designs that differ."""
        return [d for d, digest in self.designs.items() if digest != self.right]


def compare_designs(advance: Callable[[int], None]) -> list[Same]:
    """Run every query with every design that can."""
    streams = {name: make(seed=1, **SAMPLE) for name, make in _MAKERS.items()}
    found = []
    for query in PAPER.values():
        inputs = streams[query.dataset]
        results = {d: ps.aggregate(query.query, inputs, design=d) for d in DESIGNS if d in designs_for(query.query)}
        schema = next(iter(results.values())).schema
        right = pa.Table.from_pylist(_expected(query, inputs), schema)
        digests: dict[str, str] = {d: digest(table) for d, table in results.items()}
        found.append(Same(query, right.num_rows, digest(right), digests))
        advance(1)
    return found


def _expected(query: PaperQuery, inputs: list[pa.Table]) -> list[dict[str, Any]]:
    pattern = _PATTERNS.get(query.id[0])
    has = re.compile(pattern, re.ASCII).search if pattern else None
    return oracle(query.query, [t.to_pylist() for t in inputs], lambda _, row: has is None or bool(has(row["cmt"])))


def digest(table: pa.Table) -> str:
    """A short hash over every bit of a result: its schema, its values, its nulls."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(pa.RecordBatch.from_arrays([_plain(c) for c in batch.columns], schema=table.schema))
    return hashlib.sha256(sink.getvalue()).hexdigest()[:12]


def _plain(column: pa.Array) -> pa.Array:
    """The same values in buffers that hold nothing else, such as bits behind nulls or an all-set validity."""
    return pa.array(column.to_pylist(), column.type)


# ---- seeded bugs ----


@dataclass(frozen=True)
class Bug:
    """A bug put in on purpose: where, and what catches it."""

    name: str
    file: str
    test: str  # of the tests with the real thing; empty if none
    model: str  # what the model build sees; empty if it does not run it
    switches: int | None = None  # of its shortest counterexample


def seeded_bugs() -> list[Bug]:
    """The tables of the checkout; empty in an installed package, which has no tests."""
    tests = Path(ps.__file__).parents[1] / "tests"
    mutants, seeded = (_read(tests / name) for name in ("mutants.toml", "model/seeded.toml"))
    bugs = []
    for name in [*mutants, *(n for n in seeded if n not in mutants)]:
        mutant, model = mutants.get(name, {}), seeded.get(name, {})
        file = mutant.get("file") or model.get("file") or "atomics.h"
        bugs.append(Bug(name, file, mutant.get("test", ""), model.get("check", ""), model.get("switches")))
    return bugs


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


# ---- the evaluation ----


def load_evaluation(path: Path) -> dict[str, Any]:
    """Read a document that `pystream bench --out` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        entries = found["results"]["designs"]
        complete = {"date", "machine", "load_average"} <= set(found)
        complete = complete and all({"query", "inputs", "design", "saturated"} <= set(e) for e in entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PystreamError(f"{path} is no document of `pystream bench --out`: {error}") from error
    if not complete:
        raise PystreamError(f"{path} is no document of `pystream bench --out`: fields are missing")
    return dict(found)


def measure_shortly(advance: Callable[[int], None]) -> dict[str, Any]:
    """A measurement of our own."""
    load = load_average()
    evaluation = Evaluation(SHORT, advance)
    evaluation.run()
    return document(evaluation, load)
