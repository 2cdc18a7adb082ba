"""The page: sections in the order in which somebody would ask."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pystream as ps
from pystream.designs import DESIGNS
from pystream.lab.evaluation.measure import OURS, PERCENTILES
from pystream.lab.evaluation.plan import BASELINE
from pystream.lab.evaluation.verdict import FAILS, HOLDS, IN_PART, verdicts
from pystream.lab.report.chart import Bar, bars
from pystream.lab.report.gallery import figures
from pystream.lab.report.html import Markup, element, folded, table, text
from pystream.lab.report.line_chart import swatch

if TYPE_CHECKING:
    from pystream.cli.doctor import Finding
    from pystream.lab.report.facts import Bug, Same
    from pystream.lab.report.gallery import Figure
    from pystream.verify.tlc.manifest import Model

STATES = {"ok": "good", "missing": "maybe", "broken": "bad"}


@dataclass(frozen=True)
class Material:
    """All that the page is made of."""

    findings: list[Finding]
    same: list[Same]
    evaluation: dict[str, Any]
    measured_here: bool
    models: list[Model]
    bugs: list[Bug]
    picture: bytes | None = None  # the evaluation's, as PNG

    @property
    def wrong(self) -> list[str]:
        """The queries on which a design differs."""
        return [s.query.id for s in self.same if s.wrong]


def page(material: Material) -> str:
    """The whole page."""
    style = files("pystream.lab.report").joinpath("style.css").read_text(encoding="utf-8")
    sections = [
        element("section", element("h2", title), *content)
        for title, content in (
            ("All designs give the same bytes", same_bytes(material.same)),
            ("The paper's claims", claims(material.evaluation)),
            ("Throughput and latency", evaluation(material)),
            ("What the models show", models(material.models)),
            ("Seeded bugs, and who catches them", bugs(material.bugs)),
            ("What is installed", installed(material.findings)),
        )
    ]
    body = element("main", *opening(material), *sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>pystream report</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )


def opening(material: Material) -> list[Markup]:
    """The head of the page, with the figures that sum it up."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    runs = sum(len(s.designs) for s in material.same)
    states = sum(m.distinct_states or 0 for m in material.models if m.must_pass)
    failing = sum(not m.must_pass for m in material.models)
    equal = card("all equal" if not material.wrong else "NOT EQUAL", f"{runs} runs against the oracle")
    cards = [
        element("div", *equal, cls="card bad" if material.wrong else "card good"),
        element("div", *card(f"{len(material.models)}", f"models, {failing} of which must fail"), cls="card"),
        element("div", *card(f"{states / 1e6:,.0f} million", "distinct states without an error"), cls="card"),
    ]
    if material.bugs:
        cards.append(element("div", *card(f"{len(material.bugs)}", "seeded bugs, each with its catcher"), cls="card"))
    return [
        element("h1", "pystream report"),
        element("div", f"pystream {ps.__version__}, {made}", cls="soft"),
        element("div", *cards, cls="cards"),
    ]


def card(number: str, what: str) -> list[Markup]:
    """A figure and what it counts."""
    return [element("b", number), element("span", what, cls="soft")]


# ---- the same bytes ----


def same_bytes(same: list[Same]) -> list[Markup]:
    """The table of queries and designs."""
    rows = [
        [
            element("b", s.query.id),
            s.query.function,
            s.rows,
            *(verdict(s, d) for d in DESIGNS),
            element("code", s.right),
        ]
        for s in same
    ]
    return [
        element(
            "p",
            "The paper's twelve queries on a sample, run for this page with every design. A result is equal when "
            "every bit of it is as in the result of the oracle, 80 lines of plain Python; the digest is the oracle's.",
            cls="soft",
        ),
        table(["query", "function", ">rows", *DESIGNS, "digest"], rows),
    ]


def verdict(same: Same, design: str) -> Markup:
    """What to say of one design."""
    if design not in same.designs:
        return element("span", "cannot", cls="soft")
    return element("span", "DIFFERS", cls="bad") if design in same.wrong else element("span", "equal", cls="good")


# ---- the evaluation ----


def evaluation(material: Material) -> list[Markup]:
    """Charts, percentiles and the picture."""
    found, results = material.evaluation, material.evaluation["results"]
    loads = [f"{one[0]:.1f}" if one else "unknown" for one in found["load_average"].values()]
    machine = found["machine"]
    short = "A short measurement made for this page: good for a first look, not for comparing machines. "
    parts = [
        element(
            "p",
            short if material.measured_here else "",
            f"{machine.get('processor', '')}, {machine.get('cores')} cores, {found['date']}; load average "
            f"{' to '.join(loads)}. Points and bars are medians; lines across bars reach from the lowest to the "
            f"highest round; ratios are to {BASELINE} within a round.",
            cls="soft",
        ),
        *(part for figure in figures(results) for part in drawn(figure)),
        *durations(results["designs"]),
        folded("All designs, bar by bar", element("div", *charts(results["designs"]), cls="charts")),
    ]
    if results.get("latency"):
        parts += [element("h3", "Latency at a share of the highest rate, milliseconds"), latency(results["latency"])]
    if material.picture is not None:
        data = base64.b64encode(material.picture).decode("ascii")
        parts.append(
            folded(
                "As the paper draws it", Markup(f'<img alt="throughput, latency" src="data:image/png;base64,{data}">')
            )
        )
    return parts


def drawn(figure: Figure) -> list[Markup]:
    """A figure of the gallery: its legend, and its charts side by side."""
    legend = [
        element("span", Markup(swatch(name, number)), name, cls="key") for number, name in enumerate(figure.names)
    ]
    parts = [element("div", element("h4", title), Markup(svg)) for title, svg in figure.charts]
    return [
        element("h3", figure.title),
        element("p", figure.note, cls="soft"),
        element("div", *legend, cls="legend"),
        element("div", *parts, cls="figures"),
    ]


def durations(entries: list[dict[str, Any]]) -> list[Markup]:
    """What each kind of thread takes for a tuple, and what the busiest would allow: for the most inputs."""
    rows = []
    for e in (e for e in entries if e.get("bottleneck") and e["inputs"] == max(o["inputs"] for o in entries)):
        us = [f"{e[name]:.2f}" if e[name] is not None else "" for name in ("input_us", "update_us", "output_us")]
        limit = e["bottleneck"]
        allows = f"{limit['allows'] / 1e6:.2f}"
        rows.append([e["query"], e["inputs"], e["design"], *us, allows, limit["thread"]])
    if not rows:
        return []
    heads = ["query", ">inputs", "design", ">input", ">update", ">output", ">allows, million tuples/s", "thread"]
    note = (
        "Processor time per tuple in microseconds, and what the busiest kind of thread would allow if each thread had "
        "a processor of its own: how the paper explains its throughput, and what fewer cores than threads can show."
    )
    return [
        element("h3", "Durations, and what the bottleneck allows"),
        element("p", note, cls="soft"),
        folded(f"{len(rows)} designs and queries", table(heads, rows)),
    ]


def claims(found: dict[str, Any]) -> list[Markup]:
    """The paper's claims, and what became of them here."""
    styles = {HOLDS: "good", FAILS: "bad", IN_PART: "maybe"}
    rows = [
        [v.claim, element("span", v.verdict, cls=styles.get(v.verdict, "soft")), v.paper, v.ours, v.why]
        for v in verdicts(found)
    ]
    note = (
        "With fewer cores than threads, designs are compared by durations: what the busiest kind of thread would "
        "allow. Figures of the paper's machine cannot be decided here."
    )
    return [element("p", note, cls="soft"), table(["claim", "verdict", "paper", "here", "why"], rows)]


def charts(entries: list[dict[str, Any]]) -> list[Markup]:
    """A chart for each query and number of inputs."""
    return [element("div", element("h3", title), Markup(drawing)) for title, drawing in drawings(entries).items()]


def drawings(entries: list[dict[str, Any]]) -> dict[str, str]:
    """The charts as SVG, by title."""
    found = {}
    for (query, inputs), group in groupby(entries, key=lambda e: (e["query"], e["inputs"])):
        title = f"{query}, {inputs} inputs: thousand tuples/s"
        found[title] = bars([bar(e) for e in group], title)
    return found


def bar(entry: dict[str, Any]) -> Bar:
    """One design of one chart."""
    s, ratio = entry["saturated"], entry.get("ratio")
    times = f" ({ratio['median']:.1f} x)" if ratio and entry["design"] != BASELINE else ""
    value, low, high = (s[name] / 1e3 for name in ("median", "low", "high"))
    return Bar(entry["design"], value, low, high, f"{value:,.0f}{times}", entry["design"] in OURS)


def latency(entries: list[dict[str, Any]]) -> Markup:
    """The table of percentiles."""
    rows = []
    for e in entries:
        ms = e["latency_ms"]
        figures = [f"{ms[name]:.2f}" for name in PERCENTILES] if ms else [""] * len(PERCENTILES)
        kept = "" if e["sustained"] else element("span", "not kept up", cls="maybe")
        rows.append([e["query"], e["inputs"], e["design"], f"{e['share']:.0%}", f"{e['rate']:,.0f}", *figures, kept])
    return table(["query", ">inputs", "design", ">share", ">tuples/s", ">p50", ">p99", ">p99.9", ""], rows)


# ---- the models ----


def models(found: list[Model]) -> list[Markup]:
    """The table of structures, and under each all of its models."""
    by_module = sorted(found, key=lambda m: family(m.module))
    rows, details = [], []
    for name, group in groupby(by_module, key=lambda m: family(m.module)):
        members = list(group)
        states = [m.distinct_states or 0 for m in members if m.must_pass]
        passing = sum(m.must_pass for m in members)
        rows.append([name, passing, len(members) - passing, f"{sum(states):,}", f"{max(states, default=0):,}"])
        details.append(folded(f"{name}: {len(members)} models", table(MODEL_HEADS, map(model_row, members))))
    return [
        element(
            "p",
            "From spec/models.json, which ",
            element("code", "pystream check"),
            " holds TLC to: verdict, number of states and depth of every model. Models that must fail "
            "are the pseudocode as printed and bugs put in on purpose.",
            cls="soft",
        ),
        table(["structure", ">must pass", ">must fail", ">distinct states", ">largest model"], rows),
        *details,
    ]


MODEL_HEADS = ["model", "shows", "bounds", "must", ">states", ">depth"]


def family(module: str) -> str:
    """The structure that a module is about: MCTGate, TGateMonitor and TGate are one."""
    name = module.removeprefix("MC")
    for end in ("Refines", "IsLinearizable", "Linearizable", "Monitor"):
        name = name.split(end)[0]
    return name


def model_row(model: Model) -> list[object]:
    """One model."""
    must = element("span", "pass", cls="good") if model.must_pass else f"fail: {model.expected}"
    states, depth = (f"{n:,}" if n is not None else "" for n in (model.distinct_states, model.depth))
    return [element("code", model.name), model.shows, model.bounds, must, states, depth]


# ---- seeded bugs ----


def bugs(found: list[Bug]) -> list[Markup]:
    """The table of seeded bugs."""
    if not found:
        return [
            element("p", "The tables of seeded bugs lie beside the tests: make the report in a checkout.", cls="soft")
        ]
    catchers = Counter((bool(b.test), bool(b.model)) for b in found)
    rows = [
        [b.name, element("code", b.file), element("code", b.test), b.model, "" if b.switches is None else b.switches]
        for b in sorted(found, key=lambda b: (b.file, b.name))
    ]
    heads = ["bug", "in", "test that must go red", "seen by the model build as", ">switches"]
    return [
        element(
            "p",
            "From tests/mutants.toml and tests/model/seeded.toml; the test suite puts each in and sees it caught. "
            f"{catchers[True, False]} by a test of the real thing, {catchers[False, True]} by the model build, "
            f"{catchers[True, True]} by both. Switches: changes of thread in the shortest counterexample.",
            cls="soft",
        ),
        folded(f"All {len(found)}", table(heads, rows)),
    ]


# ---- what is installed ----


def installed(findings: list[Finding]) -> list[Markup]:
    """What the doctor found."""
    rows = [[element("span", f.state, cls=STATES[f.state]), f.name, f.version, f.use, text(f.note)] for f in findings]
    return [table(["", "what", "version", "for", "where, or what to do"], rows)]
