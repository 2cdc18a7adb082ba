"""Which branches of csrc the tests take, counted by gcc; and the list of those that they do not, with the reasons.

    python tests/branches.py             measures, and says what is missing or listed without need
    python tests/branches.py --update    writes tests/uncovered.toml anew; reasons stay, and new entries need one

An entry names a line by its text in its function, so it stays right while lines move. A branch that one run takes and
another does not, because of the timing of threads, is listed with `sometimes = true`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from builds import ROOT, build, copied, finish, start
from fuzz.build import FUZZ, SHARED
from tools import run

LIST = ROOT / "tests/uncovered.toml"

#: Tests that take most branches in little time, in as many processes as there are lists.
TESTS = [
    [
        *("test_aggregate.py", "test_operator.py", "test_hashing.py", "test_forged_text.py", "test_key_forget.py"),
        *("test_t_gate.py", "test_w_hive.py", "test_run_gate.py", "test_win_set.py", "test_exact_sum.py"),
        "test_shared_windows.py",
        "test_exact_moments.py",
        "test_multisets.py",
        *(f"overlap.py::test_{name}" for name in ("end", "refusal", "slices", "w_hive")),
    ],
    [
        *("test_pane_hive.py", "test_native_udf.py", "test_stall.py", "test_unread.py", "test_snapshot.py"),
        *("test_packed.py", "test_coalesce.py", "test_key_sweep.py", "test_found.py", "test_branches.py"),
        *("test_ingest.py", "test_asyncio.py", "test_avg.py", "test_partials.py", "test_var_std.py", "test_pairs.py"),
    ],
]

#: Of these, some that take long and no branch of their own.
LEFT_OUT = [
    "test_aggregate.py::test_large_results_share_no_memory",
    "test_aggregate.py::test_results_hold_little_more_than_they_need",
    "test_aggregate.py::test_equals_the_oracle_with_twenty_inputs",
    "test_key_forget.py::test_the_result_is_that_of_the_oracle",
    "test_key_forget.py::test_many_threads_and_ever_new_keys",
]

#: Beside them, the inputs that fuzzing has found (tests/fuzz): they are made for the branches where bytes are refused.
HARNESSES = ["state_bytes", "packed", "partials", "windows", "tuples", "memory"]

SECONDS_MAX = 1800

HEAD = """\
# Branches of csrc that the tests do not take, and why not. `python tests/branches.py --update` writes this file but for
# the reasons, each of which is a key of the table below or a sentence of its own.
"""


class Line(NamedTuple):
    """A line of code: lines with the same text in the same function are one."""

    file: str
    function: str
    text: str


class Measured(NamedTuple):
    taken: int
    all: int
    missing: dict[Line, set[int]]  # numbers of the line's branches

    @property
    def share(self) -> float:
        return self.taken / self.all


class Coverage:
    """A copy of the project that counts; more runs add to what has been counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = copied(folder)
        self.made = folder / "build-coverage"
        build(folder, "core", "_core", kind="coverage")

    def run(self) -> None:
        """Run the tests and replay the inputs."""
        tests = self.folder / "tests"
        without = [f"--deselect=tests/{test}" for test in LEFT_OUT]
        children = [
            start(self.folder, *some, *without, kind="coverage", said=f"said{i}.txt") for i, some in enumerate(TESTS)
        ]
        try:
            for name in HARNESSES:
                run(self._harness(name), tests / "fuzz/corpus" / name, seconds=SECONDS_MAX)
        finally:
            codes = [finish(child, SECONDS_MAX) for child in children]
        for i, code in enumerate(codes):
            assert code == 0, (self.folder / f"said{i}.txt").read_text()[-5000:]

    def _harness(self, name: str) -> Path:
        program = self.made / f"fuzz_{name}"
        if not program.exists():
            sources = [FUZZ / f"{n}.c" for n in (name, *SHARED, "replay")]
            flags = ["-std=gnu11", "-g", "--coverage", "-I", self.folder / "csrc", "-o", program]
            run("gcc", *sources, self.made / "libcore.a", *flags, "-lpthread", "-lm", cwd=self.made)
        return program

    def measure(self) -> Measured:
        """What has been taken so far. A header's branches are taken if any file that includes it takes them."""
        taken: dict[tuple[Line, int, int], bool] = defaultdict(bool)
        for line, number, branches in self._lines():
            for i, branch in enumerate(branches):
                taken[line, number, i] |= branch["count"] > 0
        first = {}  # of lines with the same text the branches are numbered on
        missing: dict[Line, set[int]] = defaultdict(set)
        for place, (line, number, i) in enumerate(sorted(taken)):
            own = place - first.setdefault(line, place)
            if not taken[line, number, i]:
                missing[line].add(own)
        return Measured(sum(taken.values()), len(taken), dict(missing))

    def _lines(self):
        data = sorted(str(p) for p in (self.made / "CMakeFiles/core.dir").rglob("*.gcda"))
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", *data]
        done = subprocess.run(command, cwd=self.made, capture_output=True, text=True, check=True)
        csrc = (self.folder / "csrc").resolve()
        paths = {p: str(p.relative_to(csrc)) for p in csrc.glob("*/*.[ch]")}
        texts = {n: [" ".join(t.split()) for t in p.read_text().splitlines()] for p, n in paths.items()}
        for file in (f for document in done.stdout.splitlines() for f in json.loads(document)["files"]):
            name = paths.get((self.made / file["file"]).resolve())
            if name is None:
                continue
            for line in file["lines"]:
                number = line["line_number"]
                yield Line(name, line.get("function_name", ""), texts[name][number - 1]), number, line["branches"]


# ---- the list ----


class Entry(NamedTuple):
    branches: set[int]
    reason: str
    sometimes: bool


def listed() -> tuple[dict[str, str], dict[Line, Entry]]:
    """The reasons that have a name, and the entries."""
    data = tomllib.loads(LIST.read_text()) if LIST.exists() else {}
    entries = {}
    for one in data.get("uncovered", []):
        line = Line(one["file"], one["function"], one["line"])
        entries[line] = Entry(set(one["branches"]), one["reason"], one.get("sometimes", False))
    return data.get("reasons", {}), entries


def unlisted(measured: Measured, entries: dict[Line, Entry]) -> dict[Line, set[int]]:
    """Branches that are not taken and not in the list."""
    gaps = {line: n - entries[line].branches if line in entries else n for line, n in measured.missing.items()}
    return {line: n for line, n in gaps.items() if n}


def stale(measured: Measured, entries: dict[Line, Entry]) -> dict[Line, set[int]]:
    """Branches in the list that are taken, or that are not there any more."""
    gaps = {line: e.branches - measured.missing.get(line, set()) for line, e in entries.items() if not e.sometimes}
    return {line: n for line, n in gaps.items() if n}


def told(gaps: dict[Line, set[int]]) -> str:
    return "\n".join(f"{at.file}: {at.function}: {sorted(n)} of: {at.text}" for at, n in sorted(gaps.items()))


def update(first: Measured, last: Measured) -> str:
    """The list for two measurements, the second of which has run more."""
    reasons, before = listed()
    out = [HEAD, "[reasons]", *(f"{name} = {json.dumps(text)}" for name, text in reasons.items()), ""]
    racing = {line for line, entry in before.items() if entry.sometimes}
    for line in sorted({*first.missing, *racing} & ({*first.missing} | {*before})):
        branches = first.missing.get(line, set()) | (before[line].branches if line in racing else set())
        sometimes = line in racing or branches != last.missing.get(line, set())
        reason = before[line].reason if line in before else "threads" if sometimes else ""
        out += ["[[uncovered]]", f"file = {json.dumps(line.file)}", f"function = {json.dumps(line.function)}"]
        out += [f"line = {json.dumps(line.text)}", f"branches = {sorted(branches)}"]
        out += ["sometimes = true"] * sometimes
        out += [f"reason = {json.dumps(reason)}", ""]
    return "\n".join(out)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        coverage = Coverage(Path(folder))
        coverage.run()
        first = coverage.measure()
        print(f"{first.taken} of {first.all} branches, {first.share:.2%}")  # noqa: T201
        if "--update" in sys.argv:
            coverage.run()
            LIST.write_text(update(first, coverage.measure()))
            return
        entries = listed()[1]
        print("not in the list:", told(unlisted(first, entries)), sep="\n")  # noqa: T201
        print("listed without need:", told(stale(first, entries)), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()
