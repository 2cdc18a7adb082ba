"""The figures of the report: which lines are drawn from which measurements, where points go, and how it looks."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest

from pystream.designs import DESIGNS
from pystream.lab.report.gallery import figures
from pystream.lab.report.line_chart import LOOKS, Line, Scale, chart, short
from pystream.lab.report.page import Material, page
from pystream.queries import PAPER
from pystream.verify.tlc import manifest

SVG = "{http://www.w3.org/2000/svg}"
MS = {"mean": 2.0, "p50": 1.0, "p99": 3.0, "p999": 4.0, "max": 5.0}


def point(rate, ms=2.0):
    return {"rate": rate, "latency_ms": MS | {"mean": ms}, "sustained": True, "throughput": rate}


def entry(query, inputs, design, rate):
    return {
        "query": query,
        "inputs": inputs,
        "design": design,
        "saturated": {"median": rate, "low": rate / 2, "high": rate * 2},
        "ratio": {"median": 1.5, "low": 1.0, "high": 2.0},
        "rates": [point(rate / 2, 1.0), point(rate, 10.0)],
        "sustained": point(rate / 2),
        "input_us": 0.1,
        "update_us": None,
        "output_us": 0.5,
        "bottleneck": {"thread": "output", "allows": 2e6, "all": {"output": 2e6}},
    }


def evaluation() -> dict:
    designs = [
        entry(query, inputs, design, 1e5 * (number + 1) * inputs)
        for query in PAPER
        for inputs in (5, 20)
        for number, design in enumerate(DESIGNS)
        if design != "wiml" or query.endswith("OI")
    ]
    threads = [
        {"query": q, "inputs": n, "threads": t, "saturated": {"median": 1e5 * t}, "loaded": point(1e5)}
        for q in ("k-OS", "K-OS")
        for n in (5, 20)
        for t in (1, 2, 4)
    ]
    levels = [
        {"query": "k-OS", "inputs": 20, "design": "tuml-sc", "levels": n, "saturated": {"median": 1e5}} for n in (1, 3)
    ]
    merge = [
        {"structure": s, "inputs": n, "saturated": {"median": r * n}, "rate": 1e5, "latency_ms": 1.0}
        for s, r in (("t_gate", 2e5), ("skip_list", 1e5))
        for n in (5, 20)
    ]
    latency = [{"query": "k-OI", "inputs": 20, "design": "auto", "share": 0.5, **point(1e6)}]
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "an abacus", "cores": 2},
        "load_average": {"start": [0.5, 0, 0], "end": [1.0, 0, 0]},
        "results": {"designs": designs, "threads": threads, "levels": levels, "merge": merge, "latency": latency},
    }


def test_the_papers_designs_are_drawn_without_ours():
    made = {figure.title: figure for figure in figures(evaluation()["results"])}
    assert len(made) == 9
    for title, figure in made.items():
        if title.startswith("The paper's"):
            assert set(figure.names) == {"mq", "mq-lf", "tuml-sc", "tuml-mc", "wiml"}
            assert list(dict.fromkeys(name.split(",")[0] for name, _ in figure.charts)) == list(PAPER)
    durations = made["The paper's designs: durations over inputs"].charts
    assert [name for name, _ in durations[:2]] == ["k-OS, input thread", "k-OS, output thread"]
    assert set(made["Our designs: throughput over inputs"].names) == {"mq", "sliced", "runs"}
    assert made["TuML_MC over update threads"].names == ("5 inputs", "20 inputs")


def test_a_figure_without_points_is_left_out():
    assert figures({"designs": []}) == []
    bare = entry("k-OI", 4, "mq", 1e6) | {"rates": [], "sustained": None, "bottleneck": None}
    bare |= {"input_us": None, "output_us": None}
    only = figures({"designs": [bare]})
    assert [figure.title[:12] for figure in only] == ["The paper's ", "Our designs:"]


def test_points_are_where_their_values_are():
    drawing = ET.fromstring(chart([Line("mq", ((5, 1.0), (20, 4.0)))], "t", ("mq",), x_label="x", y_label="y"))  # noqa: S314
    marks = [(float(r.get("x")), float(r.get("y"))) for r in drawing.iter(f"{SVG}rect")]
    rules = [
        float(re.match(r"M\d+ ([\d.]+)H", p.get("d")).group(1)) for p in drawing.iter(f"{SVG}path") if "H" in p.get("d")
    ]
    bottom, top = max(rules), min(rules)
    assert marks[0][0] < marks[1][0]
    heights = [bottom - (y + 2.7) for _, y in marks]
    assert heights[1] == pytest.approx(bottom - top, abs=0.2)  # 4 of a scale to 4
    assert heights[0] == pytest.approx((bottom - top) / 4, abs=0.2)


@pytest.mark.parametrize(("value", "pixel"), [(1.0, 100.0), (10.0, 50.0), (100.0, 0.0)])
def test_a_logarithmic_scale(value, pixel):
    assert Scale(1.0, 100.0, 100.0, 0.0, log=True).at(value) == pytest.approx(pixel)


def test_zero_has_no_place_on_a_logarithmic_scale():
    assert chart([Line("mq", ((1, 0.0),))], "t", ("mq",), x_label="x", y_label="y", log=True) == ""
    assert chart([Line("mq", ((1, 0.0), (2, 0.0)))], "t", ("mq",), x_label="x", y_label="y")


def test_numbers_are_short():
    assert [short(v) for v in (1.5e6, 20_000, 999, 0.25, 0)] == ["1.5M", "20k", "999", "0.25", "0"]


def test_lines_can_be_told_apart_without_colour():
    """Designs that share a figure differ in dashes or marks too."""
    for names in (("mq", "mq-lf", "tuml-sc", "tuml-mc", "wiml"), ("mq", "sliced", "runs"), ("t_gate", "skip_list")):
        assert len({LOOKS[name][2:] for name in names}) == len(names)


# ---- in a browser ----

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: What a script in the browser finds: how wide the page is, how many drawings have a size, and the colours of the page.
PROBE = """
<script>
addEventListener("load", () => {
  const page = document.getElementById("page").contentDocument, body = page.body;
  for (const fold of page.querySelectorAll("details")) fold.open = true;
  const style = page.defaultView.getComputedStyle(body);
  const drawn = [...page.querySelectorAll("svg.figure")].map(s => s.getBoundingClientRect());
  const colour = name => page.defaultView.getComputedStyle(page.documentElement).getPropertyValue(name).trim();
  document.title = JSON.stringify({
    width: page.documentElement.scrollWidth, figures: drawn.length,
    visible: drawn.filter(r => r.width > 200 && r.height > 100 && r.right <= page.defaultView.innerWidth + 1).length,
    ground: style.backgroundColor, ink: style.color, lines: [1, 2, 3, 4, 5, 6, 7].map(n => colour(`--line-${n}`)),
  });
});
</script>
"""


def looked_at(tmp_path, text: str, width: int, *, dark: bool) -> dict:
    """What the browser makes of the page in a frame of this width."""
    frame = (
        f'<iframe id="page" style="border: 0; width: {width}px; height: 4000px" srcdoc="{html.escape(text)}"></iframe>'
    )
    (tmp_path / "probe.html").write_text(f"<!doctype html><title>-</title>{PROBE}{frame}")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000", "--dump-dom"]
    command = [BROWSER, *options, (tmp_path / "probe.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert found, done.stderr
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.full
@pytest.mark.skipif(BROWSER is None, reason="no chromium: apt install chromium")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desk"])
def test_the_page_in_a_browser(tmp_path, width, dark):
    """It fits its width, every figure can be seen, and the ground is what the reader asked for."""
    text = page(Material([], [], evaluation(), False, manifest.load(manifest.find_spec()), []))
    found = looked_at(tmp_path, text, width, dark=dark)
    expected = sum(len(figure.charts) for figure in figures(evaluation()["results"]))
    assert (found["figures"], found["visible"]) == (expected, expected)
    assert found["width"] <= width
    ground, ink = (sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("ground", "ink"))
    assert (ink - ground > 400) if dark else (ground - ink > 400)
    assert len(set(found["lines"])) == 7
