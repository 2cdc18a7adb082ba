"""Does a tuple cost more when it is in many windows? The same advance, and windows of 1, 120 and 8,640 advances.

    python bench/bench_overlap.py [--quick] [--rows 4000000] [--rounds 7] [--functions count,sum,...] [--out FOLDER]

What is measured: `ps.aggregate` of four inputs in memory, 16 keys, about 250 tuples to an advance, so that every window
has a row for every key and all sizes put out the same rows but for the first windows: the tumbling one (size = advance)
is what a window costs that combines nothing. The sizes take turns within a round; a figure is the median of the rounds
with the quartiles beside it, and a ratio is one within a round.

What would make the numbers wrong: other work on the machine; fewer tuples per slice and key than four, where slices are
no smaller than the tuples and a size that keeps 8,640 of them does not fit into the cache.

Prints a table; --out FOLDER writes overlap.json there, too.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench_t_gate import machine, spread

import pystream as ps
from pystream.whole_file import write_whole

OVERLAPS = (1, 120, 8640)
GOALS = {120: 0.9, 8640: 0.8}
FUNCTIONS = ("count", "sum", "avg", "min", "max", "first", "last")
ADVANCE, KEYS, INPUTS, TUPLES_PER_ADVANCE = 10, 16, 4, 250


def data(rows: int) -> list[pa.Table]:
    rng = np.random.default_rng(1)
    span = max(rows * ADVANCE // TUPLES_PER_ADVANCE, ADVANCE)
    each = rows // INPUTS
    return [
        pa.table(
            {
                "ts": np.sort(rng.integers(0, span, each)),
                "key": rng.integers(0, KEYS, each).astype(np.int32),
                "value": rng.normal(0, 1000, each),
            }
        )
        for _ in range(INPUTS)
    ]


def query(function: str, overlap: int) -> ps.Query:
    asked = ps.count() if function == "count" else getattr(ps, function)("value")
    return ps.Query(ps.Window(overlap * ADVANCE, ADVANCE), "key", {"result": asked})


def rate(inputs: list[pa.Table], asked: ps.Query) -> float:
    """Million tuples per second."""
    begin = time.perf_counter()
    ps.aggregate(asked, inputs)
    return 1e-6 * sum(t.num_rows for t in inputs) / (time.perf_counter() - begin)


def measure(inputs: list[pa.Table], function: str, rounds: int) -> dict[int, list[float]]:
    samples: dict[int, list[float]] = {overlap: [] for overlap in OVERLAPS}
    for overlap in OVERLAPS:
        rate(inputs, query(function, overlap))
    for number in range(rounds):
        for turn in range(len(OVERLAPS)):
            overlap = OVERLAPS[(turn + number) % len(OVERLAPS)]
            samples[overlap].append(rate(inputs, query(function, overlap)))
    return samples


def line(function: str, samples: dict[int, list[float]]) -> str:
    text = f"{function:<8}{spread(samples[1])[1]:>8.1f}"
    for overlap, goal in GOALS.items():
        low, median, high = spread([v / b for v, b in zip(samples[overlap], samples[1], strict=True)])
        text += f"{spread(samples[overlap])[1]:>10.1f}{median:>7.2f} [{low:.2f} {high:.2f}] of {goal}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400,000 rows, 3 rounds")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--functions", default=",".join(FUNCTIONS), help="only these, by comma")
    parser.add_argument("--out", type=Path, help="folder for overlap.json")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.rounds = 400_000, 3
    inputs = data(options.rows)
    result: dict[str, Any] = {**machine(), "rows": options.rows, "samples": {}}
    print("million tuples per second: tumbling, then 120 and 8,640 windows to a tuple with the ratio to tumbling")
    for function in options.functions.split(","):
        result["samples"][function] = samples = measure(inputs, function, options.rounds)
        print(line(function, samples), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        write_whole(options.out / "overlap.json", json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
