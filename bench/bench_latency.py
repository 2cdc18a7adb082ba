"""Latency of a whole operator, and what adding single tuples costs, from C: no Python between the clock and the rows.

    python bench/bench_latency.py [--quick] [--inputs 4 20] [--query k-OI k-OS W-OI] [--threads N] [--out FOLDER]

Injectors are C threads (bench/inject.c) that add a batch of each input every --interval microseconds, at moments fixed
in advance, the injectors in turns; a C thread takes the rows and notes when it has them. Query, tuples and
schedule are those of `pystream bench` (lab/evaluation), but for the turns, and so is what counts as keeping up.

For latency there are at most as many injectors as processors, each with several inputs (--threads changes that). A
window waits for the last of its inputs. With twenty injectors on two processors that one may have to wait behind nine
others and the output thread, which the scheduler lets run for milliseconds each: the latency would be that of a run
queue, not of the operator. Whoever has more sources than cores reads them so, too, by an event loop per core, which
takes what has come of all its sources each time it wakes up; so do the injectors. Were the inputs due one after the
other, the injectors would go to sleep far more often, and that alone would take much of the processors. Single tuples
are added by a thread for each input, as the designs are meant to be used.

Latency of a row, in milliseconds, is given twice, for rows evenly spread over the second half of each run:

  latency   from the moment when the latest tuple that contributed to the row was due, to the moment when the row is in
            the reader's hands. That is the definition of the target. It contains: waiting for the window to end (the
            last tuple of a key may come long before), waiting until every other input has passed the window's end too
            (without which the result would depend on who comes late), up to one interval each; then what follows.
  own       from the moment when the window was complete: when the batch was due with which the last input passed its
            end. It contains: how late the injector woke up, adding that batch, waking the output thread, making the
            rows, waking the reader, and whatever the scheduler does between them. No design can do anything about
            the rest.

A batch is due when its last tuple is: filling it is not in the latency. First the highest rate is looked for that is
kept up at that interval; then latency at 10, 50 and 80 % of it, in rounds in which designs and rates take turns: a
percentile is given as the median over the rounds, because one pause of the machine's own shows in the p99 of the run
that it falls into, whatever the design.

In the same rounds stands the machine by itself ("none"): threads that wake up by the same schedule as those of half the
highest rate and do nothing, and how late they are. No latency can be below that, and where its p99 is near that of a
design, the design is not what is measured.

Then single tuples: batches of one tuple each, as fast as the operator takes them, in rounds in which the designs take
turns; tuples merged per second, and the ratio to `mq` within a round.

What would make the numbers wrong: other work on the machine; more than anything else it moves p99 and p99.9, since a
thread that has lost its processor waits for milliseconds. The load average is in the result. Injectors, output thread
and reader share the processors.

Prints two tables; --out FOLDER writes latency.json there, too.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_t_gate import machine, spread
from core_sources import CORE_SOURCES, CSRC

from pystream.lab.evaluation.measure import KEPT_UP, PERCENTILES
from pystream.lab.evaluation.workload import Schedule, Workload
from pystream.lab.merge import FLAGS, run
from pystream.queries import PAPER
from pystream.whole_file import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

OURS, BASELINE, NOBODY = "auto", "mq", "none"
DESIGNS = (OURS, BASELINE)
SINGLE_DESIGNS = (OURS, "runs", "mq-lf", BASELINE)
SHARES = (0.1, 0.5, 0.8)

#: `auto` runs this for the queries here (pystream/operator.py); the driver knows no `auto`.
AUTO = "sliced"

#: Tuples of a lap, rows whose latency is kept (about), and rows of a batch when the capacity is estimated.
LAP_TUPLES, SAMPLES, SATURATED_ROWS = 200_000, 200_000, 64

#: Rates that are tried, of what is taken without a pause.
FACTORS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.14, 0.1, 0.05)


@dataclass(frozen=True)
class Case:
    """What is run: a query on a number of inputs, with the file that the driver reads."""

    query: str
    workload: Workload
    data: Path
    threads: int

    def arguments(self, design: str) -> list[object]:
        """Those of the driver that do not change from run to run."""
        query = PAPER[self.query].query
        name = AUTO if design == OURS else design
        return [self.data, name, *query.window.ticks(None), *query.aggregates, self.workload.inputs, self.threads]


@dataclass(frozen=True)
class Found:
    """One run: what the driver prints, and the rows that it kept."""

    about: dict[str, Any]
    schedule: Schedule
    rows: NDArray[np.int64]  # arrival (ns), window, key

    def merged(self, workload: Workload) -> float:
        """Tuples per second: how fast windows come out in the second half, in tuples that begin before them."""
        rows = self.second_half()
        if len(rows) < 2 or rows[-1, 0] == rows[0, 0]:
            return 0.0
        first, last = workload.tuples_before(rows[[0, -1], 1].astype(np.float64))
        return float((last - first) / (1e-9 * (rows[-1, 0] - rows[0, 0])))

    def second_half(self) -> NDArray[np.int64]:
        """The rows that count."""
        middle = self.about["start"] + 0.5e9 * self.about["seconds"]
        return self.rows[self.rows[:, 0] >= middle]


def write_data(workload: Workload, path: Path) -> Path:
    """The form that inject.c reads."""
    with path.open("wb") as file:
        file.write(np.array([workload.lap_rows, workload.span], np.int64).tobytes())
        for input in range(workload.inputs):
            part = workload.batch(input, Schedule(0.0, None, workload.inputs, workload.lap_rows, workload.lap_rows), 0)
            for name, kind in (("ts", np.int64), ("meter", np.int32), ("cons", np.float64)):
                file.write(part.column(name).to_numpy().astype(kind).tobytes())
    return path


class Bench:
    """Runs the driver."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self.options = folder, options
        sources = [Path(__file__).with_name("inject.c"), *CORE_SOURCES]
        run("cc", *FLAGS, "-I", CSRC, *sources, "-lpthread", "-lm", "-o", folder / "inject")
        self.workloads = {n: Workload("EC", n, LAP_TUPLES) for n in options.inputs}

    def case(self, query: str, inputs: int, threads: int) -> Case:
        """A query, with its data in a file."""
        path = self.folder / f"{inputs}.data"
        workload = self.workloads[inputs]
        return Case(query, workload, path if path.exists() else write_data(workload, path), min(threads, inputs))

    def run(self, case: Case, design: str, rate: float, rows: int, seconds: float) -> Found:
        """One run; `rate` 0: without a pause."""
        step = max(1, int((rate or 1e7) * seconds / 3 / SAMPLES))  # about three tuples make a row
        rows = min(max(rows, 1), case.workload.lap_rows)
        out = self.folder / "rows"
        about = json.loads(run(self.folder / "inject", *case.arguments(design), rate, rows, seconds, step, out))
        lap_rows = case.workload.lap_rows
        schedule = Schedule(1e-9 * about["start"], rate, case.workload.inputs, lap_rows, rows, turns=case.threads)
        return Found(about, schedule, np.fromfile(out, np.int64).reshape(-1, 3))

    def paced(self, case: Case, design: str, rate: float) -> Found:
        """One run with a batch of each input per interval."""
        rows = round(rate / case.workload.inputs * 1e-6 * self.options.interval)
        return self.run(case, design, rate, rows, self.options.seconds)

    def highest_rate(self, case: Case, design: str) -> float:
        """The first of the falling rates that is kept up; 0: none."""
        workload = case.workload
        free = self.run(case, design, 0, SATURATED_ROWS, self.options.seconds).merged(workload)
        for factor in FACTORS:
            if self.paced(case, design, factor * free).merged(workload) >= KEPT_UP * factor * free:
                return factor * free
        return 0.0


def completed(workload: Workload, schedule: Schedule, end: NDArray[np.int64]) -> NDArray[np.float64]:
    """When the batches were due with which the last input had passed the end of each window."""
    lap, second = np.divmod(end, workload.span)
    latest = np.zeros(len(end))
    for input in range(workload.inputs):
        whole = Schedule(0.0, None, workload.inputs, workload.lap_rows, workload.lap_rows)
        row = np.searchsorted(workload.batch(input, whole, 0).column("ts").to_numpy(), second)
        over = row == workload.lap_rows  # it is the first tuple of the next lap
        due = schedule.due(np.array([input]), lap + over, np.where(over, 0, row))
        latest = np.maximum(latest, due)
    return latest


def latencies(case: Case, design: str, found: Found) -> dict[str, dict[str, float]] | None:
    """Percentiles of both latencies, in milliseconds; for nobody how late threads wake up."""
    if design == NOBODY:
        late = {p: float(np.percentile(1e-6 * found.rows[:, 0], share)) for p, share in PERCENTILES.items()}
        return {"latency": late, "own": late}
    rows = found.second_half()
    if not len(rows):
        return None
    size, _ = PAPER[case.query].query.window.ticks(None)
    arrived = 1e-9 * rows[:, 0]
    since = {
        "latency": case.workload.latest_due(found.schedule, rows[:, 1], rows[:, 2], size),
        "own": completed(case.workload, found.schedule, rows[:, 1] + size),
    }
    return {
        name: {p: float(np.percentile(1e3 * (arrived - moments), share)) for p, share in PERCENTILES.items()}
        for name, moments in since.items()
    }


def measure_latency(bench: Bench) -> list[dict[str, Any]]:
    entries = []
    for query in bench.options.query:
        for inputs in bench.options.inputs:
            case = bench.case(query, inputs, bench.options.threads)
            most = {design: bench.highest_rate(case, design) for design in DESIGNS}
            for design, rate in most.items():
                print(f"{query}, {inputs} inputs, {design}: {rate / 1e6:.2f} million tuples/s kept up", flush=True)
            most[NOBODY] = most[OURS]
            turns = [(design, share) for design in DESIGNS for share in SHARES if most[design]]
            turns += [(NOBODY, 0.5)] if most[NOBODY] else []
            runs: dict[tuple[str, float], list[Found]] = {turn: [] for turn in turns}
            for turn in turns * bench.options.rounds:
                runs[turn].append(bench.paced(case, turn[0], turn[1] * most[turn[0]]))
            entries += [latency_entry(case, *turn, most[turn[0]], found) for turn, found in runs.items()]
    return entries


def latency_entry(case: Case, design: str, share: float, most: float, runs: list[Found]) -> dict[str, Any]:
    """What the runs of one turn come to: of each percentile the quartiles over the rounds."""
    kept_up = [design == NOBODY or r.merged(case.workload) >= KEPT_UP * share * most for r in runs]
    each = [ms for r in runs if (ms := latencies(case, design, r)) is not None]
    over_rounds = {
        kind: {p: spread([ms[kind][p] for ms in each]) for p in PERCENTILES} for kind in ("latency", "own") if each
    }
    entry = {
        "query": case.query,
        "inputs": case.workload.inputs,
        "design": design,
        "share": share,
        "rate": share * most,
    }
    entry |= {"batch_rows": runs[0].schedule.batch_rows, "kept_up": kept_up, "runs": [r.about for r in runs]}
    return entry | {"ms": over_rounds}


def measure_single(bench: Bench) -> list[dict[str, Any]]:
    entries = []
    for inputs in bench.options.inputs:
        case = bench.case("k-OI", inputs, inputs)
        speeds: dict[str, list[float]] = {d: [] for d in SINGLE_DESIGNS}
        for turn in range(bench.options.rounds):
            for i in range(len(SINGLE_DESIGNS)):
                design = SINGLE_DESIGNS[(turn + i) % len(SINGLE_DESIGNS)]
                found = bench.run(case, design, 0, 1, bench.options.seconds)
                speeds[design].append(found.merged(case.workload))
        for design, values in speeds.items():
            ratios = spread([v / max(1.0, b) for v, b in zip(values, speeds[BASELINE], strict=True)])
            entry = {"inputs": inputs, "design": design, "tuples_per_second": values, "ratio_to_mq": ratios}
            entries.append(entry)
    return entries


def latency_table(entries: list[dict[str, Any]], interval: float) -> str:
    head = "query  inputs  design  share  rate M/s  rows      p50     p99 [quartiles]    p99.9  own p50     p99   p99.9"
    lines = [f"latency in ms, medians of the rounds, a batch of each input every {interval:g} us", head]
    for e in entries:
        cells = f"{e['query']:<7}{e['inputs']:>6}  {e['design']:<6}{e['share']:>7.0%}{1e-6 * e['rate']:>10.3f}"
        cells += f"{e['batch_rows']:>6} "
        if e["ms"]:
            whole, own = ([e["ms"][kind][p] for p in PERCENTILES] for kind in ("latency", "own"))
            cells += f"{whole[0][1]:8.2f}{whole[1][1]:8.2f} {f'[{whole[1][0]:.2f} {whole[1][2]:.2f}]':<12}"
            cells += f"{whole[2][1]:8.2f} " + "".join(f"{value[1]:8.2f}" for value in own)
        kept_up = e["kept_up"]
        lines.append(cells + ("" if all(kept_up) else f"  kept up {sum(kept_up)} of {len(kept_up)} times"))
    return "\n".join(lines)


def single_table(entries: list[dict[str, Any]]) -> str:
    lines = ["single tuples, k-OI: million tuples/s, and the ratio to mq within a round: median [quartiles]"]
    for e in entries:
        low, middle, high = (1e-6 * v for v in spread(e["tuples_per_second"]))
        ratio = e["ratio_to_mq"]
        speed = f"{middle:.2f} [{low:.2f} {high:.2f}]"
        cells = f"{e['inputs']:>3} inputs  {e['design']:<6} {speed:<22}"
        lines.append(cells + f" x{ratio[1]:.2f} [{ratio[0]:.2f} {ratio[2]:.2f}]")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    ours = [q for q in PAPER if PAPER[q].dataset == "EC"]
    parser.add_argument("--quick", action="store_true", help="k-OI alone and short runs: about a minute")
    parser.add_argument("--query", nargs="+", choices=ours, help="queries (k-OI k-OS W-OI)")
    parser.add_argument("--inputs", type=int, nargs="+", default=[4, 20], help="numbers of inputs (4 20)")
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=int, default=processors, help=f"injectors at most ({processors})")
    parser.add_argument("--interval", type=float, default=250.0, help="microseconds between batches of an input (250)")
    parser.add_argument("--seconds", type=float, help="of one run (2)")
    parser.add_argument("--rounds", type=int, help="turns of each design (5)")
    parser.add_argument("--out", type=Path, help="folder for latency.json")
    options = parser.parse_args()
    defaults = (["k-OI"], 0.8, 3) if options.quick else (["k-OI", "k-OS", "W-OI"], 2.0, 5)
    for name, default in zip(("query", "seconds", "rounds"), defaults, strict=True):
        if getattr(options, name) is None:
            setattr(options, name, default)
    return options


def main() -> None:
    options = parse()
    about = machine()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options)
        latency, single = measure_latency(bench), measure_single(bench)
    about["load_at_end"] = os.getloadavg()
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    result = {"benchmark": "latency", "machine": about, "settings": settings, "latency": latency, "single": single}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        write_whole(options.out / "latency.json", json.dumps(result, indent=1) + "\n")
    print(latency_table(latency, options.interval))
    print()
    print(single_table(single))


if __name__ == "__main__":
    main()
