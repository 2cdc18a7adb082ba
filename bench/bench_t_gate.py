"""How fast S-Merge alone is: T-Gate and Run-Gate against queues, Java's skip list and a bare heap.

    python bench/bench_t_gate.py [--quick] [--inputs 1 5 20] [--rounds 7] [--out FOLDER]

Goal: the paper's comparison of T-Gate with a skip list (the first figure of its evaluation: tuples sorted per second
with 5, 10, 15 and 20 input streams; 2.2 against 1.5 million for 20, on 12 cores, both in Java), with the two queue
designs and our Run-Gate beside it. The competitors get the same tuples, from one C or Java thread per input, and one
thread takes them out in order; twice, once with timestamps that many tuples share and once with no two alike:

  t_gate      insert_tuple and get_next_ready_tuple of csrc/gates/t_gate.c, a tuple per call
  mq          a queue with a mutex per input; the reader looks at all fronts for each tuple (csrc/gates/queue.c)
  mq_lf       the same with Michael-Scott queues
  run_gate    csrc/gates/run_gate.c with 1,000 tuples per call: how batches are handed over; taken out in merged blocks
  run_gate_1  the same with a tuple per call: what it costs to add single tuples
  heap        one thread, no hand-over: a binary heap over arrays; what merging itself costs
  skip_list   ConcurrentSkipListMap with an explicit look at all inputs' latest timestamps for each tuple, as the paper
              describes it; in Java, after a warm-up; left out when no JDK is found

Limits. It says nothing about the designs' later stages. The comparison with Java is one of languages and allocators
too. With more threads than cores the operating system decides much of the result. Inputs run at most --pending tuples
ahead, which bounds memory; a larger number gives T-Gate a longer list and the queues longer rings. What would make the
numbers wrong: other work on the machine. Hence rounds in which the competitors take turns, their median and quartiles,
and ratios to `mq` within a round; a ratio whose quartiles lie on both sides of 1 is marked "~": not significant.

Writes t_gate.json (all samples, machine, date, versions, load) and prints a table; with matplotlib (extra `bench`) also
t_gate.png.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from pystream.lab import merge

TIMES = ("ties", "distinct")


def measure(folder: Path, design: str, times: str, inputs: int, options: argparse.Namespace) -> float:
    """Million tuples per second of one run."""
    tuples = options.tuples if design != merge.JAVA_DESIGN else options.tuples // 2
    contest = merge.Contest(times, inputs, tuples, options.pending, warmup_s=options.warmup)
    return merge.measure(folder, design, contest).million_per_second


Samples = dict[str, dict[int, dict[str, list[float]]]]


def rounds(folder: Path, designs: list[str], options: argparse.Namespace) -> Samples:
    """Samples by kind of timestamps, inputs and design. In each round every design has a turn, and another begins."""
    samples: Samples = {t: {n: {d: [] for d in designs} for n in options.inputs} for t in TIMES}
    for number in range(options.rounds):
        for times in TIMES:
            for inputs in options.inputs:
                for turn in range(len(designs)):
                    design = designs[(turn + number) % len(designs)]
                    samples[times][inputs][design].append(measure(folder, design, times, inputs, options))
        print(f"round {number + 1} of {options.rounds}", flush=True)
    return samples


def spread(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    ordered = sorted(values)
    quarter = (len(ordered) - 1) / 4
    return ordered[round(quarter)], median(ordered), ordered[round(3 * quarter)]


def summary(samples: Samples) -> list[dict[str, Any]]:
    return [
        row(times, inputs, design, values, designs["mq"])
        for times, by_inputs in samples.items()
        for inputs, designs in by_inputs.items()
        for design, values in designs.items()
    ]


def row(times: str, inputs: int, design: str, values: list[float], base: list[float]) -> dict[str, Any]:
    speed, ratio = spread(values), spread([v / b for v, b in zip(values, base, strict=True)])
    names = ("low", "median", "high")
    return {
        "timestamps": times,
        "inputs": inputs,
        "design": design,
        "million_tuples_per_second": dict(zip(names, speed, strict=True)),
        "ratio_to_mq": dict(zip(names, ratio, strict=True)),
        "significant": not ratio[0] <= 1 <= ratio[2],
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["million tuples per second, median [quartiles], and the ratio to mq within a round"]
    for times in TIMES:
        lines += ["", f"timestamps: {times}"]
        mine = [row for row in rows if row["timestamps"] == times]
        inputs = list(dict.fromkeys(row["inputs"] for row in mine))
        lines += [("design      " + "".join(f"{f'{n} inputs':<35}" for n in inputs)).rstrip()]
        for design in dict.fromkeys(row["design"] for row in mine):
            cells = [cell(row) for row in mine if row["design"] == design]
            lines.append(f"{design:<12}" + "".join(f"{c:<35}" for c in cells).rstrip())
    return "\n".join(lines)


def cell(row: dict[str, Any]) -> str:
    speed, ratio = row["million_tuples_per_second"], row["ratio_to_mq"]["median"]
    mark = "" if row["significant"] or row["design"] == "mq" else "~"
    return f"{speed['median']:.2f} [{speed['low']:.2f} {speed['high']:.2f}] x{mark}{ratio:.2f}"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """The paper's figure: throughput over the number of inputs."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        print("no plot: pip install 'pystream-core[bench]' brings matplotlib")
        return
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, times in zip(figure.subplots(1, len(TIMES)), TIMES, strict=True):
        draw(axes, [row for row in rows if row["timestamps"] == times])
        axes.set_title(f"S-Merge, timestamps: {times}")
    figure.savefig(path, dpi=150)
    print(f"figure in {path}")


STYLES = {
    "t_gate": ("o", "-"),
    "run_gate": ("D", "-"),
    "run_gate_1": ("d", "-"),
    "mq": ("s", "--"),
    "mq_lf": ("^", "--"),
    "heap": ("+", ":"),
    "skip_list": ("x", ":"),
}


def draw(axes: Any, rows: list[dict[str, Any]]) -> None:
    for design in dict.fromkeys(row["design"] for row in rows):
        mine = [row for row in rows if row["design"] == design]
        inputs = [row["inputs"] for row in mine]
        speeds = [row["million_tuples_per_second"] for row in mine]
        middle = [s["median"] for s in speeds]
        errors = [[s["median"] - s["low"] for s in speeds], [s["high"] - s["median"] for s in speeds]]
        marker, line = STYLES[design]
        axes.errorbar(inputs, middle, errors, label=design, marker=marker, linestyle=line, capsize=3)
    axes.set(xlabel="inputs", ylabel="million tuples/s (median, quartiles)", yscale="log")
    axes.set_xticks(sorted({row["inputs"] for row in rows}))
    axes.grid(alpha=0.3)
    axes.legend()


def machine() -> dict[str, Any]:
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "cpu": cpu[0].split(":")[1].strip() if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "load_at_start": os.getloadavg(),
        "cc": merge.run("cc", "--version").splitlines()[0],
        "flags": " ".join(merge.FLAGS),
        "java": merge.run("java", "--version").splitlines()[0] if shutil.which("java") else None,
        "python": platform.python_version(),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="fewer inputs, rounds and tuples: under a minute")
    parser.add_argument("--inputs", type=int, nargs="+", help="numbers of inputs (1 2 5 10 15 20)")
    parser.add_argument("--rounds", type=int, help="how often each design has its turn (7)")
    parser.add_argument("--tuples", type=int, help="per run; half as many for skip_list (2000000)")
    parser.add_argument("--warmup", type=float, help="seconds of warm-up in each Java run (3)")
    parser.add_argument("--pending", type=int, default=65_536, help="how far an input may run ahead (65536)")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the results (here)")
    options = parser.parse_args()
    defaults = ([1, 5, 20], 3, 200_000, 1.0) if options.quick else ([1, 2, 5, 10, 15, 20], 7, 2_000_000, 3.0)
    for name, default in zip(("inputs", "rounds", "tuples", "warmup"), defaults, strict=True):
        if getattr(options, name) is None:
            setattr(options, name, default)
    return options


def main() -> None:
    options = parse()
    about = machine()
    with tempfile.TemporaryDirectory() as folder:
        designs = merge.build(Path(folder))
        samples = rounds(Path(folder), designs, options)
    about["load_at_end"] = os.getloadavg()
    settings = {
        "tuples": options.tuples,
        "pending": options.pending,
        "rounds": options.rounds,
        "warmup": options.warmup,
    }
    rows = summary(samples)
    result = {"benchmark": "S-Merge", "machine": about, "settings": settings, "rows": rows}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "t_gate.json").write_text(json.dumps({**result, "samples": samples}, indent=1) + "\n")
    print(table(rows))
    plot(rows, options.out / "t_gate.png")


if __name__ == "__main__":
    main()
