"""Run the benchmarks and write bench/RESULTS.md: what they print, with date, commit, machine and load.

    python bench/results.py                      all of them, as long as they take: an hour and more
    python bench/results.py --quick              small settings: some minutes, and figures that say little
    python bench/results.py peers overlap        only these; what the file says of the others stays
    python bench/results.py peers -- --rounds 3  what follows is handed to the one benchmark that is named
    python bench/results.py --evaluation FILE    the verdict on the paper's claims, from a document of `pystream bench`

The table of speeds comes from the figures of bench_peers.py, and goes into the README as well. Notes at the end of the
file are written by hand and stay.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pystream.lab.evaluation.document import machine, versions
from pystream.lab.evaluation.verdict import markdown
from pystream.whole_file import write_whole

BENCH = Path(__file__).parent
RESULTS, README = BENCH / "RESULTS.md", BENCH.parent / "README.md"

#: name: (program, its usual arguments, those of --quick)
BENCHMARKS = {
    "peers": ("bench_peers.py", [], ["--quick"]),
    "overlap": ("bench_overlap.py", [], ["--quick"]),
    "latency": ("bench_latency.py", [], ["--quick"]),
    "t_gate": ("bench_t_gate.py", [], ["--quick"]),
    "spark": ("bench_spark.py", [], ["--rows", "1000000", "--rounds", "2", "--warmup", "5"]),
}

#: The columns of the table of speeds, and its rows if they were measured.
COLUMNS = {
    "pystream-auto": "pystream",
    "pystream-mq": "`mq`",
    "duckdb-panes": "DuckDB",
    "polars-panes": "Polars",
    "numpy-panes": "NumPy",
    "bare-loop": "bare C loop",
}
QUERIES = {
    "k-OI": "count, window 30/3, 243 keys (k-OI)",
    "W-OI": "mean, window 40/2 (W-OI)",
    "k-OS": "first, window 30/3 (k-OS)",
    "f-OI": "count of texts that match (f-OI)",
}
INPUTS = 4

VERDICT = re.compile(r"(?<=<!-- verdict -->\n).*?(?=<!-- /verdict -->)", re.DOTALL)
SPEED = re.compile(r"(?<=<!-- speed -->\n).*?(?=<!-- /speed -->)", re.DOTALL)


def speed_table(peers: dict[str, Any]) -> str:
    """Million rows per second, as Markdown."""
    rate = {
        (e["query"], e["peer"]): f"{e['rate']['median']:.3g}"
        for e in peers["results"]
        if e["inputs"] == INPUTS and e["rates"] and not e["verdict"].startswith("WRONG")
    }
    shown = {p: title for p, title in COLUMNS.items() if any(peer == p for _, peer in rate)}
    busy = max(peers["load_at_start"][0], peers["load_at_end"][0])
    what = f"million rows/s, {INPUTS} inputs, {peers['cores']} cores, load {busy:.0f}, {peers['date'][:10]}"
    lines = [f"| {what} | {' | '.join(shown.values())} |", f"|---{'|---' * len(shown)}|"]
    for query, what in QUERIES.items():
        if (query, "pystream-auto") in rate:
            lines.append(f"| {what} | {' | '.join(rate.get((query, p), '-') for p in shown)} |")
    return "\n".join(lines) + "\n"


def verdict_section(found: dict[str, Any]) -> str:
    """The verdict on the paper's claims, with where and how it was measured."""
    about, plan = found["machine"], found["plan"]
    loads = [f"{one[0]:.1f}" if one else "unknown" for one in found["load_average"].values()]
    seconds = f"{found['seconds'] / 60:.0f} minutes, inputs {', '.join(map(str, plan['inputs']))}"
    data = "data made by Spark" if plan["data"] else "made-up data"
    where = f"{about['processor']}, {about['cores']} cores, pystream {found['versions']['pystream']}"
    head = f"`pystream bench`, {found['date'][:10]}, {seconds}, {data}.\n{where}."
    return f"{head} Load average {loads[0]} before, {loads[1]} after.\n\n{markdown(found)}"


def commit() -> str:
    """Which state of the project it was."""
    head, changed = (
        subprocess.run(["git", *words.split()], cwd=BENCH, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603, S607
        for words in ("rev-parse --short=10 HEAD", "status --porcelain --untracked-files=no ../csrc ../pystream")
    )
    return (head or "unknown") + (" with changes" if changed else "")


def load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def run(name: str, arguments: list[str], folder: Path) -> str:
    """Run a benchmark; gives its section: where, when and how, and what it printed but for files that do not stay."""
    program = BENCHMARKS[name][0]
    out = ["--json", str(folder / "spark.json")] if name == "spark" else ["--out", str(folder)]
    started, before = dt.datetime.now(dt.UTC), load()
    print(f"{program} {shlex.join(arguments)}", flush=True)
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, program, *arguments, *out], cwd=BENCH, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{program} failed with {done.returncode}; {RESULTS.name} stays as it is")
    about, found = machine(), versions()
    command = shlex.join(["python", f"bench/{program}", *arguments])
    where = (
        f"{about['processor']}, {about['cores']} cores, {about['memory_bytes'] / 2**30:.0f} GiB, {platform.system()}"
    )
    return "\n".join(
        [
            f"`{command}`, {started:%Y-%m-%d %H:%M} UTC, commit {commit()}.",
            f"{where}, Python {found['python']}, pyarrow {found['pyarrow']}.",
            f"Load average {before} before, {load()} after.",
            "",
            "```text",
            *(line.rstrip() for line in done.stdout.strip("\n").splitlines() if str(folder) not in line),
            "```",
            "",
        ]
    )


def replaced(pattern: re.Pattern[str], text: str, new: str, path: Path) -> str:
    """The text with one part of it changed."""
    if len(pattern.findall(text)) != 1:
        raise SystemExit(f"{path.name} has no place for it: {pattern.pattern}")
    return pattern.sub(lambda _: new, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--quick", action="store_true", help="small settings")
    parser.add_argument(
        "--evaluation", type=Path, help="write only the verdict on the paper's claims, from this document"
    )
    given = [*sys.argv[1:], "--"]
    handed_on = given[given.index("--") + 1 : -1]
    options = parser.parse_args(given[: given.index("--")])
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if handed_on and len(options.names) != 1:
        parser.error("arguments after -- are for one benchmark: name it")
    if options.evaluation:
        section = verdict_section(json.loads(options.evaluation.read_text(encoding="utf-8")))
        write_whole(RESULTS, replaced(VERDICT, RESULTS.read_text(encoding="utf-8"), section, RESULTS))
        return
    for name in options.names or BENCHMARKS:
        _, usual, quick = BENCHMARKS[name]
        with tempfile.TemporaryDirectory() as folder:
            section = run(name, [*(quick if options.quick else usual), *handed_on], Path(folder))
            text = replaced(section_of(name), RESULTS.read_text(encoding="utf-8"), section, RESULTS)
            if name == "peers":
                table = speed_table(json.loads(Path(folder, "peers.json").read_text(encoding="utf-8")))
                text = replaced(SPEED, text, table, RESULTS)
                write_whole(README, replaced(SPEED, README.read_text(encoding="utf-8"), table, README))
            write_whole(RESULTS, text)


def section_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- run {name} -->\n).*?(?=<!-- /run -->)", re.DOTALL)


if __name__ == "__main__":
    main()
