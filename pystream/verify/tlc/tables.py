"""The tables shown at the end, and the verdict over all."""

from collections.abc import Collection, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pystream.verify.tlc.check import Outcome
from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.result import Kind, Result, differences
from pystream.verify.tlc.trace import lines, read_trace

# Where nobody's terminal sets the width, rows stay on one line.
PLAIN_WIDTH = 120


def verdict(result: Result) -> str:
    """Return what TLC found, in a few words."""
    if result.kind is Kind.PASSES:
        return "passes"
    if not result.conclusive:
        return str(result.kind)
    return f"fails {result.outcome}"


def problems(result: Result, *, compare: bool) -> list[str]:
    """Return what is wrong with a result; a model with constants flipped by hand has nothing to be compared with."""
    if compare:
        expected = result.outcome == result.model.expected
        return differences(result) + ([] if expected else result.detail.splitlines())
    return [] if result.passed else [verdict(result), *result.detail.splitlines()]


def succeeded(outcome: Outcome, *, compare: bool) -> bool:
    """Return whether everything is as it must be."""
    sound = not any(problems(result, compare=compare) for result in outcome.results)
    return sound and not outcome.coverage.unreached and not outcome.stale and not outcome.falsified.never


def results_table(outcome: Outcome, *, compare: bool) -> Table:
    """Return a table of what TLC found; what is wrong with it comes underneath, where there is room."""
    table = _table("", "model", "result")
    for heading in ("states", "depth", "time", "states/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in outcome.results:
        wrong = bool(problems(result, compare=compare))
        mark = Text("✗", "bold red") if wrong else Text("✓", "green")
        colour = "red" if wrong else "green" if result.passed else "cyan"
        table.add_row(mark, result.model.name, Text(verdict(result), colour), *_numbers(result))
    return table


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _numbers(result: Result) -> Iterator[str]:
    yield _count(result.distinct_states)
    yield _count(result.depth) if result.passed else "-"
    yield f"{result.seconds:.1f} s"
    yield _count(result.states_per_s)


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"


def foot(outcome: Outcome, *, compare: bool) -> Iterator[Text]:
    """Yield the lines under the table: what is wrong, sums, labels, translations."""
    for result in outcome.results:
        for number, problem in enumerate(problems(result, compare=compare)):
            yield Text(f"    {problem}" if number else f"{result.model.name}: {problem}", "red")
    yield _sums(outcome, compare=compare)
    if outcome.coverage.judged:
        yield from _labels(outcome)
    if outcome.falsified.checked:
        yield from _properties(outcome)
    if outcome.translations:
        yield from _translations(outcome)


def _sums(outcome: Outcome, *, compare: bool) -> Text:
    states = sum(result.distinct_states or 0 for result in outcome.results)
    passing = sum(result.passed for result in outcome.results)
    failing = sum(result.conclusive for result in outcome.results) - passing
    undecided = len(outcome.results) - passing - failing
    wrong = sum(bool(problems(result, compare=compare)) for result in outcome.results)
    parts = [f"{passing} pass, {failing} fail" + (f", {undecided} undecided" if undecided else "")]
    parts.append(_agreement(wrong) if compare else "constants changed by hand, nothing compared")
    parts.append(f"{states:,} distinct states in {outcome.seconds:.0f} s, {outcome.slots} at a time")
    return Text("; ".join(parts), "bold red" if wrong else "bold")


def _agreement(wrong: int) -> str:
    return f"{wrong} not as the manifest says" if wrong else "all as the manifest says"


def _labels(outcome: Outcome) -> Iterator[Text]:
    judged, unreached = outcome.coverage.judged, outcome.coverage.unreached
    reached = len(judged) - len(unreached)
    told = f"labels: {reached} of {len(judged)} are reached by a passing model ({', '.join(outcome.coverage.modules)})"
    yield Text(told, "red" if unreached else "")
    for module in outcome.coverage.modules:
        names = [label.name for label in unreached if label.module == module]
        if len(names) == sum(label.module == module for label in judged):
            yield Text(f"  no passing model runs {module}", "red")
        elif names:
            yield Text(f"  no passing model reaches, in {module}: {', '.join(names)}", "red")


def _properties(outcome: Outcome) -> Iterator[Text]:
    checked, never = outcome.falsified.checked, outcome.falsified.never
    told = f"properties: {len(checked) - len(never)} of {len(checked)} are violated by a model that must fail"
    yield Text(told, "red" if never else "")
    for one in never:
        yield Text(f"  no model violates {one}: one that must fail has to", "red")


def _translations(outcome: Outcome) -> Iterator[Text]:
    current = len(outcome.translations) - len(outcome.stale)
    told = f"PlusCal: {current} of {len(outcome.translations)} translations are up to date"
    yield Text(told, "red" if outcome.stale else "")
    for module, wrong in outcome.stale.items():
        yield Text(f"  {module}: {wrong}", "red")


def list_table(models: Sequence[Model]) -> Table:
    """Return the manifest as a table."""
    table = _table("model and what it shows", "must")
    table.columns[0].ratio = 1
    for heading in ("states", "depth", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in models:
        must = Text("pass", "green") if model.must_pass else Text(f"fail {model.expected}", "cyan")
        if model.deep:
            must.append(" (deep)", "magenta")
        time = "-" if model.seconds is None else f"{model.seconds:.1f} s"
        table.add_row(_described(model), must, _count(model.distinct_states), _count(model.depth), time)
    return table


def _described(model: Model) -> Text:
    departure = f"departure {model.departure}" if model.departure is not None else ""
    aside = "; ".join(filter(None, (model.bounds, departure)))
    return Text.assemble((model.name, "bold"), (f"\n{model.shows}" + (f" ({aside})" if aside else ""), "dim"))


def print_traces(console: Console, results: Sequence[Result], labels: Collection[str]) -> None:
    """Print the counterexample of each model that failed, and how the manifest tells it."""
    for result in results:
        if result.passed or not result.conclusive:
            continue
        console.print()
        console.print(Text(f"{result.model.name} {verdict(result)}", "bold"))
        trace = read_trace(result, labels)
        for line in lines(trace) if trace else ["TLC gives no steps here:", *result.detail.splitlines()]:
            console.print(Text(line), soft_wrap=True)
        if result.model.trace and result.outcome == result.model.expected:
            console.print(Text("in words", "bold"))
            console.print(Text(result.model.trace), soft_wrap=True)
