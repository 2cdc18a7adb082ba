"""pystream against everyone: the same queries on the same data, in turns, results compared first.

    python bench/bench_peers.py [--quick] [--rows 4000000] [--rows spark=400000] [--rounds 7] [--out FOLDER]
    python bench/bench_peers.py --peers pystream-auto,duckdb-panes,flink --python flink=VENV/bin/python

What is measured: from Arrow tables in memory, one per input, to an Arrow table of all windows sorted by (ts, key), on
the paper's k-OI, w-OI, W-OI, k-OS, K-OI and f-OI (`pystream queries`), with 4 and 20 inputs. Each peer has a process of
its own and keeps it: nothing is timed that happens once per process. In each round every peer has a turn, and another
one begins, so that all meet the same load, and between its turns a peer stands still (SIGSTOP): a JVM at rest is not
idle. A figure is the median of the rounds with the quartiles beside it, and
ratios are those within a round. A ratio whose quartiles lie on both sides of 1 is marked "~": not significant.

Results are compared before anything is timed: counts and first values must be equal, means to 1e-9, because sums of
doubles depend on the order there. A peer that gives something else is WRONG and the first row that differs is shown;
it is timed all the same.

    python bench/bench_peers.py --list         who takes part and what each does; peers/*.py are short

What would make the numbers wrong. Slow peers get fewer rows (the column `rows`), the first of each input; rates are
compared, and what a peer spends per run, not per row, weighs more then: give it more with --rows NAME=N. Other work on
the machine: see the quartiles and the load average; processor time per row, of all threads, is steadier then, but does
not show that threads run side by side, and that of a JVM is not seen. Memory: all peers together take some 20 GB, and
where that is nearly all there is, everything that makes large results becomes several times slower, ours more than
others (K-OI); then --peers takes some at a time. Tuples much denser or sparser in time than these,
because with few tuples per window and key it is the rows put out that cost. Preparations that favour a peer are not
timed: its module says which.

Writes peers.json (all samples, machine, date, versions, load) and peers.txt, and prints the table.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from peers import ALL, Peer
from peers.case import Case

import pystream as ps
from pystream.data.sample import comments, smart_meters
from pystream.lab.evaluation.document import load_average, machine
from pystream.queries import IP, MAIL, PAPER
from pystream.reference import aggregate as oracle
from pystream.whole_file import write_whole

FOLDER = Path(__file__).parent
OURS = "pystream-auto"
QUERIES = ("k-OI", "w-OI", "W-OI", "k-OS", "K-OI", "f-OI")
PATTERNS = {"f-OI": MAIL, "F-OI": f"{MAIL}|{IP}"}
MAKERS = {"EC": smart_meters, "SC": comments}

#: What a mean may differ by.
TOLERANCE = 1e-9

#: Rows on which our own result is compared with the oracle, which is slow.
ORACLE_ROWS = 2_000


class PeerError(Exception):
    """A peer that cannot go on, and why."""


@dataclass
class Process:
    """A peer at work."""

    peer: Peer
    process: subprocess.Popen[str]
    log: Path
    patience_s: float
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, peer: Peer, python: str, folder: Path, patience_s: float) -> Process:
        """Start it; PeerError says why it is absent."""
        log = folder / f"{peer.name}.log"
        with log.open("w") as errors:
            command = [python, "-m", "peers.worker", peer.name]
            process = subprocess.Popen(  # noqa: S603 - ours
                command,
                cwd=FOLDER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        mine = cls(peer, process, log, patience_s)
        try:
            mine.versions = mine.answer()["versions"]
        except PeerError:
            mine.end()
            raise
        mine.signal(signal.SIGSTOP)
        return mine

    def signal(self, number: signal.Signals) -> None:
        """To it and what it started."""
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self.process.pid, number)

    def ask(self, **order: Any) -> dict[str, Any]:
        """Have it do something."""
        assert self.process.stdin is not None
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            return self.answer()
        except OSError as error:
            raise PeerError(f"ended: {self.last_words()}") from error
        finally:
            self.signal(signal.SIGSTOP)

    def answer(self) -> dict[str, Any]:
        """What it says, or why it says nothing."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(self.patience_s):
                self.process.kill()
                raise PeerError(f"took longer than {self.patience_s:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(f"ended: {self.last_words()}")
        said: dict[str, Any] = json.loads(line)
        for problem in ("absent", "error"):
            if problem in said:
                raise PeerError(said[problem])
        return said

    def last_words(self) -> str:
        """The end of what it printed."""
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "without a word")

    def end(self) -> None:
        """End it, with whatever it started that ends with it."""
        self.signal(signal.SIGCONT)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it was asked last and never read
                    pipe.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


# ---- cases ----


def make_case(id: str, inputs: list[pa.Table]) -> Case:
    query = PAPER[id].query
    (function,) = query.aggregates.values()
    size, advance = query.window.ticks(None)
    return Case(id, size, advance, query.key[0], function.function, function.column, PATTERNS.get(id), inputs)


def cut(inputs: list[pa.Table], rows: int) -> list[pa.Table]:
    """The first rows of each input."""
    return [t.slice(0, max(1, rows // len(inputs))) for t in inputs]


def write_inputs(inputs: list[pa.Table], path: Path) -> None:
    """As worker.py reads them."""
    whole = pa.concat_tables(inputs).combine_chunks()
    ends = [sum(t.num_rows for t in inputs[: i + 1]) for i in range(len(inputs))]
    whole = whole.replace_schema_metadata({"ends": json.dumps(ends)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)


# ---- equality ----


def equal_values(mine: pa.Array, theirs: pa.Array, *, nearly: bool) -> pa.Array:
    """Row by row; the width of a number does not matter."""
    if not pa.types.is_string(mine.type):
        floating = pa.types.is_floating(mine.type) or pa.types.is_floating(theirs.type)
        mine, theirs = (a.cast(pa.float64() if floating else pa.int64()) for a in (mine, theirs))
    if nearly:
        equal = pc.less_equal(pc.abs(pc.subtract(mine, theirs)), pc.multiply(pc.abs(mine), TOLERANCE))
    else:
        equal = pc.equal(mine, theirs)
    return pc.fill_null(equal, False)


def differing_row(case: Case, right: pa.Table, got: pa.Table) -> str | None:
    """The first row that is not as it must be; None if there is none."""
    names = ["ts", case.key, case.function]
    if got.column_names != names:
        return f"columns {got.column_names} instead of {names}"
    n = min(len(right), len(got))
    same = pa.repeat(pa.scalar(value=True), n)
    for name in names:
        mine, theirs = (t[name].slice(0, n).combine_chunks() for t in (right, got))
        same = pc.and_(same, equal_values(mine, theirs, nearly=name == "avg"))
    wrong = pc.index(same, False).as_py()
    if wrong < 0 and len(right) == len(got):
        return None
    row = wrong if wrong >= 0 else n
    shown = [t.slice(row, 1).to_pylist() for t in (right, got)]
    right_row, got_row = (s[0] if s else "nothing" for s in shown)
    return f"row {row} of {len(right)} is {got_row}, must be {right_row} ({len(got)} rows)"


def check_ours(case: Case) -> str | None:
    """Our own result against the oracle, on the first rows."""
    inputs = cut(case.inputs, ORACLE_ROWS)
    query = PAPER[case.id].query
    has = re.compile(case.pattern, re.ASCII).search if case.pattern else None
    rows = oracle(query, [t.to_pylist() for t in inputs], lambda _name, row: has is None or bool(has(row["cmt"])))
    ours = ps.aggregate(query, inputs)
    return differing_row(case, pa.Table.from_pylist(rows, ours.schema), ours)


# ---- one case ----


@dataclass
class Entry:
    """What came out for one peer and one case."""

    query: str
    inputs: int
    peer: str
    rows: int
    verdict: str = ""
    rates: list[float] = field(default_factory=list)  # million rows per second, by round
    cpu_ns: list[float] = field(default_factory=list)  # processor time of all its threads, per row
    failed: bool = False  # in some round: then it is not asked again, and its rounds are those before

    def figures(self, ours: list[float]) -> dict[str, Any]:
        """Median and quartiles, of the rate and of how many times faster ours is."""
        found: dict[str, Any] = {}
        for name, values in (
            ("rate", self.rates),
            ("ours_is", [o / t for o, t in zip(ours, self.rates, strict=False)]),
        ):
            if values:
                low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
                found[name] = {"low": low, "median": middle, "high": high}
        found["cpu_ns"] = median(self.cpu_ns) if self.cpu_ns else None
        return found


@dataclass
class Contest:
    """All peers on one case."""

    case: Case
    processes: dict[str, Process]
    options: argparse.Namespace
    folder: Path

    def run(self) -> list[Entry]:
        """Compare, then measure in turns."""
        entries = {name: self.compare(p) for name, p in list(self.processes.items())}  # who dies is dropped
        able = [name for name, e in entries.items() if e.verdict.startswith(("equal", "WRONG", "no result"))]
        for turn in range(self.options.rounds):
            for i in range(len(able)):
                name = able[(turn + i) % len(able)]
                if name in self.processes and not entries[name].failed:
                    self.measure(entries[name])
        return list(entries.values())

    def rows(self, peer: Peer) -> int:
        """How many rows a peer gets."""
        asked: dict[str, int] = self.options.rows
        total = sum(t.num_rows for t in self.case.inputs)
        return min(total, asked.get(peer.name, asked.get(peer.module, total // peer.share)))

    def compare(self, process: Process) -> Entry:
        """Load the case, run it once and look at the result."""
        inputs = cut(self.case.inputs, self.rows(process.peer))
        rows = sum(t.num_rows for t in inputs)
        entry = Entry(self.case.id, len(inputs), process.peer.name, rows)
        data, out = self.folder / f"inputs-{rows}.arrow", self.folder / "result.arrow"
        if not data.exists():
            write_inputs(inputs, data)
        plain = {name: value for name, value in vars(self.case).items() if name != "inputs"}
        try:
            process.ask(load=str(data), case=plain)
            said = process.ask(result=str(out))
        except PeerError as error:
            entry.verdict = f"left out: {error}"
            self.drop_if_dead(process)
            return entry
        if not said["result"]:
            entry.verdict = "no result"
            return entry
        with pa.OSFile(str(out)) as source, pa.ipc.open_file(source) as reader:
            wrong = differing_row(self.case, ps.aggregate(PAPER[self.case.id].query, inputs), reader.read_all())
        entry.verdict = f"WRONG: {wrong}" if wrong else "equal to 1e-9" if self.case.function == "avg" else "equal"
        return entry

    def measure(self, entry: Entry) -> None:
        """One turn."""
        process = self.processes[entry.peer]
        try:
            said = process.ask(run=True)
        except PeerError as error:
            entry.verdict, entry.failed = f"{entry.verdict}; then {error}", True
            self.drop_if_dead(process)
            return
        entry.rates.append(entry.rows / said["seconds"] / 1e6)
        if not process.peer.jvm:
            entry.cpu_ns.append(said["cpu_seconds"] / entry.rows * 1e9)

    def drop_if_dead(self, process: Process) -> None:
        """A peer that ended, or was given up, is started again for the next case."""
        try:
            process.process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            return
        process.end()
        self.processes.pop(process.peer.name, None)


# ---- the whole ----


def table(entries: list[Entry]) -> list[str]:
    """For people."""
    lines = []
    groups = dict.fromkeys((e.query, e.inputs) for e in entries)
    for query, inputs in groups:
        mine = [e for e in entries if (e.query, e.inputs) == (query, inputs)]
        ours = next((e.rates for e in mine if e.peer == OURS), [])
        size, advance = PAPER[query].query.window.ticks(None)
        lines += ["", f"{query}: {PAPER[query].function}, window {size}/{advance}, {inputs} inputs"]
        lines += [f"  {'peer':18}{'rows':>11} {'M rows/s':>10} {'[quartiles]':20}{'auto is':>10}{'cpu ns':>10}  result"]
        lines += [f"  {line(e, ours)}" for e in mine]
    return lines[1:]


def line(entry: Entry, ours: list[float]) -> str:
    start = f"{entry.peer:18}{entry.rows:>11,} "
    f = entry.figures(ours)
    if "rate" not in f:
        return f"{start}{'':>51}  {entry.verdict}"
    rate, times = f["rate"], f.get("ours_is")
    spread = f"[{rate['low']:.4g} {rate['high']:.4g}]"
    mark = "~" if times and times["low"] <= 1 <= times["high"] and entry.peer != OURS else ""
    ratio = f"{mark}{times['median']:.2f} x" if times else ""
    cpu = "" if f["cpu_ns"] is None else f"{f['cpu_ns']:,.0f}"
    return f"{start}{rate['median']:>10.4g} {spread:20}{ratio:>10}{cpu:>10}  {entry.verdict}"


@dataclass
class Peers:
    """Who takes part, who does not and why, and with which versions."""

    options: argparse.Namespace
    folder: Path
    processes: dict[str, Process] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)

    def start(self) -> None:
        """Start those that do not run and have not been found absent."""
        pythons = self.options.python
        for name in (n for n in self.options.peers if n not in self.processes and n not in self.absent):
            python = pythons.get(name, pythons.get(ALL[name].module, sys.executable))
            try:
                self.processes[name] = Process.start(ALL[name], python, self.folder, self.options.patience)
                self.versions[name] = self.processes[name].versions
            except (PeerError, OSError) as error:
                self.absent[name] = str(error)
                print(f"{name} is left out: {error}", file=sys.stderr)

    def end(self) -> None:
        """End them all."""
        for process in self.processes.values():
            process.end()


def contests(options: argparse.Namespace, peers: Peers) -> list[Entry]:
    entries = []
    for inputs in options.inputs:
        for id in options.queries:
            tables = MAKERS[PAPER[id].dataset](inputs, options.rows[""], seed=1)
            case = make_case(id, tables)
            wrong = check_ours(case)
            if wrong:
                raise SystemExit(f"{id}: pystream differs from pystream/reference.py: {wrong}")
            peers.start()
            with tempfile.TemporaryDirectory(dir=peers.folder) as scratch:
                found = Contest(case, peers.processes, options, Path(scratch)).run()
            print("\n".join(table(found)), flush=True)
            print(flush=True)
            entries += found
    return entries


def named(texts: list[str], kind: type) -> dict[str, Any]:
    """NAME=VALUE, or VALUE alone, which is for everyone: under the empty name."""
    found = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        modules = {p.module for p in ALL.values()}
        if name and name not in ALL and name not in modules:
            raise SystemExit(f"unknown peer {name!r}; --list shows them")
        found[name] = kind(value.replace("_", "").replace(",", "") if kind is int else value)
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="who there is")
    parser.add_argument("--quick", action="store_true", help="200,000 rows, 3 rounds, 4 inputs")
    parser.add_argument("--peers", default=",".join(ALL), help="only these, by comma; a name or a module")
    parser.add_argument("--queries", default=",".join(QUERIES), help="only these, by comma")
    parser.add_argument("--inputs", help="numbers of inputs, by comma (4,20)")
    parser.add_argument("--rows", action="append", default=[], help="N in all (4000000), or NAME=N for one peer")
    parser.add_argument("--rounds", type=int, help="turns of each peer (7)")
    parser.add_argument("--python", action="append", default=[], help="NAME=interpreter that has the peer")
    parser.add_argument("--patience", type=float, default=300, help="seconds after which a peer is given up (300)")
    parser.add_argument("--out", type=Path, help="folder for peers.json and peers.txt")
    options = parser.parse_args()
    options.rows = {"": 200_000 if options.quick else 4_000_000} | named(options.rows, int)
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.inputs = [int(n) for n in (options.inputs or ("4" if options.quick else "4,20")).split(",")]
    options.python = named(options.python, str)
    wanted = options.peers.split(",")
    options.peers = [name for name, p in ALL.items() if name in wanted or p.module in wanted]
    options.queries = options.queries.split(",")
    return options


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # peers that stand still would do so for ever
    options = parse()
    if options.list:
        print("\n".join(f"{p.name:18} 1/{p.share:<4} {p.what}" for p in ALL.values()))
        return
    about = machine() | {"date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds")}
    about |= {"python": platform.python_version(), "load_at_start": load_average()}
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(options, Path(folder))
        try:
            entries = contests(options, peers)
        finally:
            peers.end()
    about |= {"load_at_end": load_average(), "versions": peers.versions, "absent": peers.absent}
    about |= {"rounds": options.rounds}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        rates = {(e.query, e.inputs): e.rates for e in entries if e.peer == OURS}
        results = [asdict(e) | e.figures(rates.get((e.query, e.inputs), [])) for e in entries]
        write_whole(options.out / "peers.json", json.dumps(about | {"results": results}, indent=1) + "\n")
        write_whole(options.out / "peers.txt", "\n".join(table(entries)) + "\n")


if __name__ == "__main__":
    main()
