"""`pystream report`: that the page says what was found, needs nothing from elsewhere, and fails when designs differ."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import main
from pystream.cli import report as command
from pystream.cli.doctor import Finding
from pystream.lab.evaluation.plan import Plan
from pystream.lab.report import facts
from pystream.lab.report.chart import Bar, bars
from pystream.lab.report.facts import Bug, Same
from pystream.lab.report.html import Markup, element, table
from pystream.lab.report.page import Material, page
from pystream.operator import DESIGNS
from pystream.queries import PAPER
from pystream.verify.tlc import manifest

SPREAD = {"median": 2e6, "low": 1e6, "high": 3e6, "rounds": [1e6, 2e6, 3e6]}
POINT = {"query": "k-OI", "inputs": 4, "design": "sliced", "share": 0.8, "rate": 1.5e6, "sustained": True}
EVALUATION = {
    "date": "2020-01-02T03:04:05+00:00",
    "machine": {"processor": "<an abacus>", "cores": 2},
    "load_average": {"start": [0.25, 0, 0], "end": None},
    "results": {
        "designs": [
            {
                "query": "k-OI",
                "inputs": 4,
                "design": d,
                "saturated": SPREAD,
                "ratio": SPREAD | {"median": r},
                "rates": [],
            }
            for d, r in (("mq", 1.0), ("sliced", 7.5))
        ],
        "latency": [POINT | {"latency_ms": {"mean": 9.0, "p50": 1.25, "p99": 2.5, "p999": 3.75, "max": 9.0}}],
        "threads": [],
        "levels": [],
    },
}


class Reader(HTMLParser):
    """What a browser would make of the page: its text, and whatever it would fetch."""

    EMPTY = ("meta", "img", "path", "rect")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.fetched += [v for name, v in attrs if name in ("src", "href", "srcset", "data") and v is not None]
        assert tag not in ("script", "link", "iframe", "object")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Closed at once."""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data + " "


@pytest.fixture
def evaluation(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(EVALUATION))
    return path


@pytest.fixture
def few_queries(monkeypatch):
    """Three queries instead of twelve, two with different windows and one with a filter."""
    monkeypatch.setattr(facts, "PAPER", {id: PAPER[id] for id in ("w-OS", "W-OS", "f-OI")})


def run(*args: object, exit_code: int = 0):
    result = CliRunner().invoke(main, ["report", *map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


def material(**changed: object) -> Material:
    same = [Same(PAPER["k-OS"], 478, "abcdef", dict.fromkeys(("mq", "sliced"), "abcdef"))]
    models = manifest.load(manifest.find_spec())
    bugs = [Bug("a <b> & c", "mq.c", "test_operator.py", "history", 2), Bug("weak", "atomics.h", "", "race", 0)]
    found = {
        "findings": [Finding("Java", "missing", note="<install it>")],
        "same": same,
        "evaluation": EVALUATION,
        "measured_here": False,
        "models": models,
        "bugs": bugs,
    }
    return Material(**(found | changed))


# ---- the command ----


@pytest.mark.usefixtures("few_queries", "nothing_left")
def test_the_command(tmp_path, evaluation):
    out = tmp_path / "new" / "folder"
    shown = run("--out", out, "--evaluation", evaluation).output
    assert "19 runs compared" in shown
    page = Reader((out / "index.html").read_text())
    assert page.open == []
    assert all(address.startswith("data:image/png;base64,") for address in page.fetched)
    for expected in ("all equal", "TGateStructure", "2,000 (7.5 x)", "3.75", "<an abacus>", "0.2 to unknown"):
        assert expected in page.text
    drawing = ET.parse(out / "throughput-1.svg").getroot()  # noqa: S314 - ours
    assert drawing.tag.endswith("svg")
    assert not [p for p in out.iterdir() if p.name.startswith(".")]


@pytest.mark.usefixtures("few_queries", "nothing_left")
def test_without_an_evaluation_a_short_one_is_made(tmp_path, monkeypatch):
    tiny = Plan(
        queries=("k-OI",),
        designs=("mq",),
        inputs=(2,),
        rounds=1,
        seconds=0.05,
        tuples=1_000,
        factors=(0.5,),
        threads=(),
        levels=(),
        percentiles=(),
        mergers=(),
    )
    for module in (facts, command):
        monkeypatch.setattr(module, "SHORT", tiny)
    run("--out", tmp_path / "r")
    assert "A short measurement made for this page" in (tmp_path / "r/index.html").read_text()


def test_the_short_measurement_is_short():
    assert facts.SHORT.estimate() <= 30


@pytest.mark.usefixtures("few_queries")
def test_designs_that_differ_fail_the_command_and_show(tmp_path, evaluation, monkeypatch):
    right = ps.aggregate

    def wrong(query, inputs, design):
        found = right(query, inputs, design=design)
        return found.slice(1) if design == "runs" and query is PAPER["w-OS"].query else found

    monkeypatch.setattr(facts.ps, "aggregate", wrong)
    shown = run("--out", tmp_path / "r", "--evaluation", evaluation, exit_code=1).output
    assert shown.splitlines()[-1] == "Error: the designs differ on w-OS"
    text = Reader((tmp_path / "r/index.html").read_text()).text
    assert text.count("DIFFERS") == 1
    assert "NOT EQUAL" in text
    assert "all equal" not in text


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"results": {}}', '{"results": {"designs": [1]}}', "\x00"])
def test_what_is_no_evaluation_is_refused_before_anything_is_run(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    shown = run("--out", tmp_path / "r", "--evaluation", tmp_path / "x.json", exit_code=1).output
    assert len(shown.splitlines()) == 1
    assert "x.json is no document of `pystream bench --out`" in shown
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("args", [[], ["--out", "r", "--evaluation", "no such file"], ["--out"]])
def test_usage(args):
    run(*args, exit_code=2)


@pytest.mark.usefixtures("few_queries")
def test_the_sample_tells_queries_apart():
    """In a sample shorter than a window, windows of all sizes would hold the same."""
    same = facts.compare_designs(lambda _steps: None)
    assert [s.wrong for s in same] == [[], [], []]
    assert len({s.right for s in same}) == 3
    assert len(same[2].designs) == len(DESIGNS)


# ---- what is on it ----


def test_texts_are_escaped():
    text = page(material())
    assert "<install it>" not in text
    assert "a <b> & c" not in text
    assert "a &lt;b&gt; &amp; c" in text
    read = Reader(text)
    assert "a <b> & c" in read.text
    assert read.open == []


def test_without_the_tests_the_page_says_where_the_bugs_are():
    text = Reader(page(material(bugs=[]))).text
    assert "make the report in a checkout" in text
    assert "seeded bugs, each with its catcher" not in text


def test_every_model_and_every_bug_is_there():
    found = material(bugs=facts.seeded_bugs())
    text = page(found)
    assert [m.name for m in found.models if f"<code>{m.name}</code>" not in text] == []
    assert f"All {len(found.bugs)}" in text
    states = sum(m.distinct_states or 0 for m in found.models if m.must_pass)
    assert f"{states / 1e6:,.0f} million" in text


def test_seeded_bugs_come_from_both_tables_and_each_has_a_catcher(tmp_path, monkeypatch):
    (tmp_path / "tests/model").mkdir(parents=True)
    mutants = '["both"]\nfile = "a.c"\ntest = "test_a.py"\n["first"]\nfile = "b.c"\ntest = "test_b.py"\n'
    (tmp_path / "tests/mutants.toml").write_text(mutants)
    seeded = '["both"]\ncheck = "history"\nswitches = 1\n["order"]\ncheck = "race"\nswitches = 0\n'
    (tmp_path / "tests/model/seeded.toml").write_text(seeded)
    monkeypatch.setattr(ps, "__file__", str(tmp_path / "pystream/__init__.py"))
    assert facts.seeded_bugs() == [
        Bug("both", "a.c", "test_a.py", "history", 1),
        Bug("first", "b.c", "test_b.py", ""),
        Bug("order", "atomics.h", "", "race", 0),
    ]
    monkeypatch.undo()
    assert all(b.test or b.model for b in facts.seeded_bugs())


def test_a_digest_sees_every_bit_and_nothing_else():
    one = pa.table({"ts": [0, 3], "first": pa.array(["a", None])})
    assert facts.digest(one) == facts.digest(pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    others = [
        one.slice(1),
        one.rename_columns(["ts", "last"]),
        pa.table({"ts": [0, 3], "first": pa.array(["a", ""])}),
        pa.table({"ts": [0, 3], "first": pa.array(["a", None], pa.large_string())}),
    ]
    assert len({facts.digest(t) for t in [one, *others]}) == 5
    assert facts.digest(pa.table({"x": [0.0]})) != facts.digest(pa.table({"x": [-0.0]}))


def test_a_bar_is_as_long_as_its_value():
    drawing = bars([Bar("a", 10.0, 5.0, 20.0, "ten"), Bar("b<", 5.0, 5.0, 5.0, "five", strong=True)], "t & t")
    root = ET.fromstring(drawing)  # noqa: S314 - ours
    widths = [float(r.get("width")) for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] == pytest.approx(2 * widths[1])
    assert [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")] == ["a", "ten", "b<", "five"]
    assert bars([], "nothing")
    assert bars([Bar("a", 0.0, 0.0, 0.0, "0")], "zero")


def test_markup_is_escaped_once():
    assert element("b", "<", Markup("<i></i>"), cls='"') == '<b class="&quot;">&lt;<i></i></b>'
    assert re.search(r'<th class="number">n</th>', table([">n"], [[1]]))
