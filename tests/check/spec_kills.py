"""Which model notices which mistake of the text: run mutants, write and read the table spec/MUTANTS.md.

`python tests/check/spec_kills.py [MODULE ...]` runs those mutants of the modules that the table does not have, and
writes it anew; `--all` runs every one of them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pystream.verify.tlc import limits, runner, tlc
from pystream.verify.tlc.check import Silent
from pystream.verify.tlc.java import Tools, find_tools
from pystream.verify.tlc.manifest import Model, find_spec, load
from pystream.verify.tlc.result import Kind, Result, read_result

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent))
from spec_mutants import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TABLE = "MUTANTS.md"
SURVIVORS = Path(__file__).with_name("spec_survivors.toml")
#: The modules of which mutants are in the table, and the models of the algorithm as it is that must notice one, the
#: quickest first.
JUDGES = {
    "WinSet": (
        "WinSetRefinesFind",
        "WinSetLinearizableBuckets",
        "WinSetInvariantsBuckets",
        "WinSetLockFree",
        "WinSetRefinesFindBack",
    ),
    "ReadyOrder": ("ReadyOrderStable", "TGateRefinesTwoReaders", "RunGateRefinesHeartbeats", "ReadyOrderTwoReaders"),
    "MSQueue": ("MSQueuePairRefines", "MSQueueTwoIn", "MSQueueTwoOut", "MSQueueLockFree"),
    "Promises": ("PromisesKept",),
    "MCWinSet": ("WinSetLockFree",),
    "MCTGate": ("TGateLockFreeLevels", "TGateCompleteOpen"),
}
#: Of these only mistakes of one kind.
ONLY = {
    "MSQueue": "labels swapped",
    "Promises": "labels swapped",
    "MCWinSet": "fairness weakened",
    "MCTGate": "fairness weakened",
}
MODULES = tuple(JUDGES)
LIVES = "lives"
# A mutant may have no end of states; the judges themselves take a few seconds.
_TIMEOUT_S = 240.0
_ROW = re.compile(r"\| `(\w+)` \| `(\w+)` \| `(\w+)` \| ([\w ]+) \| (.+) \| (.+) \|$")
HEAD = """# Mistakes made by a program

Each row is one piece of a module's text put otherwise: a conjunct or disjunct dropped, a guard flipped, a comparison
changed, an assignment lost, fairness weakened, two labels swapped. Models that pass are run with it until one does not.
"no end" means that it has many times the states it should have; "error" that TLC cannot evaluate what the mistake leads
to. Of those that live each says why. Written by `python tests/check/spec_kills.py`; the default tests show that no
mutant is missing, `--full` runs some of them again, other ones every day, `--deep` all. The modules that are not here
have mutants, too (`tests/check/spec_mutants.py` makes them for any module): nobody has run them yet.

"""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the model that noticed it and how, or none."""

    mutant: Mutant
    model: str
    how: str

    @property
    def lives(self) -> bool:
        """Whether no judge noticed it."""
        return self.how == LIVES


def judges(models: Sequence[Model], module: str) -> list[Model]:
    """Return the models that judge the mutants of a module."""
    named = {model.name: model for model in models}
    return [named[name] for name in JUDGES[module]]


def run(spec: Path, wanted: Sequence[tuple[Mutant, Model]], tools: Tools) -> list[Result]:
    """Run each model with its mutant."""
    plan = limits.plan(len(wanted))
    with runner.signals_noted() as interrupted, runner.scratch_folder() as scratch:
        tasks, named = [], []
        for number, (mutant, model) in enumerate(wanted):
            one = replace(model, name=f"{mutant.name}_{number}", distinct_states=None, seconds=1.0, smallest=False)
            one = replace(one, deep=True)  # so that nothing is counted
            task = tlc.task(tools, spec, one, scratch / one.name, min(plan.heap_mb, 1024))
            module = spec / f"{mutant.module}.tla"
            (scratch / one.name / module.name).write_text(
                mutant.text(module.read_text(encoding="utf-8")), encoding="utf-8"
            )
            tasks.append(task)
            named.append(one)
        finished = runner.run(tasks, plan.slots, Silent(), interrupted, _TIMEOUT_S)  # type: ignore[arg-type]
        return [read_result(one, finished[one.name]) for one in named]


def told(result: Result) -> str:
    """Return how a result notices the mistake, or that it does not."""
    if result.passed:
        return LIVES
    if result.kind is Kind.TIMEOUT or result.kind is Kind.MEMORY:
        return "no end"
    return result.outcome if result.conclusive else "error"


def judge(spec: Path, models: Sequence[Model], wanted: Sequence[Mutant], tools: Tools) -> list[Verdict]:
    """Run mutants against their judges until one notices, all those that live in turn with the next judge."""
    verdicts: dict[str, Verdict] = {}
    left = list(wanted)
    panel = {module: judges(models, module) for module in {mutant.module for mutant in wanted}}
    for turn in range(max(map(len, panel.values()), default=0)):
        now = [(mutant, panel[mutant.module][turn]) for mutant in left if turn < len(panel[mutant.module])]
        for (mutant, model), result in zip(now, run(spec, now, tools), strict=True):
            verdicts[mutant.name] = Verdict(mutant, model.name, told(result))
        left = [mutant for mutant in left if mutant.name not in verdicts or verdicts[mutant.name].lives]
    return [verdicts[mutant.name] for mutant in wanted]


def all_mutants(spec: Path, modules: Iterable[str] = MODULES) -> list[Mutant]:
    """Return every mutant of the modules that belongs in the table."""
    found = [mutant for module in modules for mutant in mutants(spec / f"{module}.tla")]
    return [mutant for mutant in found if ONLY.get(mutant.module, mutant.kind) == mutant.kind]


def explained() -> dict[str, str]:
    """Return why mutants live, by name."""
    return {name: str(why) for name, why in tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).items()}


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the document."""
    why = explained()
    parts = [HEAD, "| module | mutants | noticed | live |\n|---|--:|--:|--:|\n"]
    for module in MODULES:
        those = [one for one in verdicts if one.mutant.module == module]
        lives = sum(one.lives for one in those)
        parts.append(f"| `{module}` | {len(those)} | {len(those) - lives} | {lives} |\n")
    parts.append("\n| name | module | where | mistake | text | noticed by |\n|---|---|---|---|---|---|\n")
    parts += [_row(one, why) for one in verdicts]
    return "".join(parts)


def _row(one: Verdict, why: dict[str, str]) -> str:
    mutant = one.mutant
    noticed = f"lives: {why.get(mutant.name, 'unexplained')}" if one.lives else f"`{one.model}`: {one.how}"
    change = mutant.old if mutant.kind == "labels swapped" else f"{mutant.old} → {mutant.new or 'nothing'}"
    cells = [f"`{mutant.name}`", f"`{mutant.module}`", f"`{mutant.place}`", mutant.kind, f"`{_plain(change)}`", noticed]
    return "| " + " | ".join(cells) + " |\n"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "¦").split())


def read_table(spec: Path) -> dict[str, tuple[str, str]]:
    """Return by name of a mutant the model that noticed it and how; ("", "lives") if none did."""
    found = {}
    for row in filter(None, map(_ROW.match, (spec / TABLE).read_text(encoding="utf-8").splitlines())):
        model, _, how = row[6].partition(": ")
        found[row[1]] = ("", LIVES) if model == LIVES else (model.strip("`"), how)
    return found


def main(arguments: Sequence[str]) -> None:
    """Run what the table does not have, and write it."""
    spec, tools = find_spec(), find_tools()
    known = {} if "--all" in arguments or not (spec / TABLE).is_file() else read_table(spec)
    chosen = [name for name in arguments if not name.startswith("-")] or list(MODULES)
    population = all_mutants(spec)
    missing = [mutant for mutant in population if mutant.name not in known and mutant.module in chosen]
    sys.stdout.write(f"{len(population)} mutants, {len(missing)} to run\n")
    fresh = {one.mutant.name: one for one in judge(spec, load(spec), missing, tools)}
    kept = [fresh.get(mutant.name) or Verdict(mutant, *known[mutant.name]) for mutant in population
            if mutant.name in fresh or mutant.name in known]  # fmt: skip
    (spec / TABLE).write_text(table(kept), encoding="utf-8")
    sys.stdout.write(f"{sum(one.lives for one in kept)} of {len(kept)} live\n")


if __name__ == "__main__":
    main(sys.argv[1:])
