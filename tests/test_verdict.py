"""The verdict on the paper's claims: what is judged by what, and that nothing is claimed that was not measured."""

from __future__ import annotations

import pytest

from pystream.lab.evaluation import verdict
from pystream.lab.evaluation.verdict import CLAIMS, FAILS, HOLDS, IN_PART, MISSING, Findings, markdown, verdicts


def entry(query, inputs, design, us=(0.1, 0.5), saturated=1e6, ratio=2.0):
    allows = {"input": inputs * 1e6 / us[0], "output": 1e6 / us[1]}
    thread = min(allows, key=lambda name: allows[name])
    return {
        "query": query,
        "inputs": inputs,
        "design": design,
        "saturated": {"median": saturated, "low": saturated, "high": saturated},
        "ratio": {"median": ratio},
        "input_us": us[0],
        "update_us": None,
        "output_us": us[1],
        "bottleneck": {"thread": thread, "allows": allows[thread], "all": allows},
    }


def document(*designs, cores=2, merge=(), threads=(), load=0.5):
    results = {"designs": list(designs), "merge": list(merge), "threads": list(threads), "latency": [], "levels": []}
    return {"results": results, "machine": {"cores": cores}, "load_average": {"start": [load, 0, 0], "end": None}}


def judged(claim, *designs, **more):
    return claim(Findings(document(*designs, **more)))


def test_nothing_is_judged_that_was_not_measured():
    found = verdicts(document())
    assert len(found) == len(CLAIMS)
    assert {one.verdict for one in found} == {MISSING}


@pytest.mark.parametrize(("ours", "said"), [(0.2, HOLDS), (0.6, IN_PART), (0.95, FAILS), (2.0, FAILS)])
def test_with_few_cores_designs_are_compared_by_durations(ours, said):
    """The claim is 2.9 times; mq's output thread takes a microsecond a tuple, ours as given."""
    claim = verdict.faster("k-OS", "tuml-sc", 2.9, "2.9 x")
    one = judged(claim, entry("k-OS", 20, "mq", (0.1, 1.0)), entry("k-OS", 20, "tuml-sc", (0.1, ours)))
    assert one.verdict == said
    assert f"{1 / ours:.1f} x by durations, 2.0 x measured" in one.ours
    assert "tuml-sc: output thread" in one.why


def test_with_enough_cores_designs_are_compared_by_throughput():
    claim = verdict.faster("k-OS", "tuml-sc", 2.9, "2.9 x")
    slow, fast = entry("k-OS", 4, "mq", saturated=1e6), entry("k-OS", 4, "tuml-sc", saturated=3e6)
    assert judged(claim, slow, fast, cores=5).ours == "3.0 x by throughput"
    assert judged(claim, slow, fast, cores=5).verdict == HOLDS
    assert judged(claim, slow, fast, cores=4).verdict == FAILS  # the same durations


@pytest.mark.parametrize(
    ("claimed", "us", "said"),
    [
        ("falls", (0.5, 1.0), HOLDS),
        ("falls", (0.5, 0.5), FAILS),
        ("stays", (0.5, 0.52), HOLDS),
        ("stays", (0.5, 0.3), HOLDS),
        ("stays", (0.5, 1.0), FAILS),
        ("grows", (0.5, 0.3), HOLDS),
        ("grows", (0.5, 0.5), FAILS),
    ],
)
def test_a_trend_over_inputs(claimed, us, said):
    claim = verdict.over_inputs("k-OS", "mq", claimed, claimed)
    few, most = (entry("k-OS", n, "mq", (0.001, u)) for n, u in zip((5, 20), us, strict=True))
    assert judged(claim, few, most).verdict == said
    assert judged(claim, few).verdict == MISSING


def test_figures_of_the_papers_machine_are_not_decided():
    one = judged(verdict.reaches("k-OI", "wiml", "2.6 M t/s"), entry("k-OI", 20, "wiml", (1.0, 0.5)))
    assert one.verdict == "cannot be decided on 2 cores"
    assert one.ours == "1 M t/s measured, 2 M t/s by durations"


def merged(structure, inputs, rate, ms=1.0):
    return {"structure": structure, "inputs": inputs, "saturated": {"median": rate}, "rate": 5e5, "latency_ms": ms}


def test_s_merge():
    found = [merged("t_gate", 5, 1e6), merged("skip_list", 5, 1e6), merged("t_gate", 20, 2e6, 1.0)]
    found.append(merged("skip_list", 20, 5e5, 1.6))
    claims = (verdict.merge_throughput, verdict.merge_latency, verdict.merge_trend)
    assert [judged(claim, merge=found).verdict for claim in claims] == [HOLDS] * 3
    assert judged(verdict.merge_throughput, merge=found).ours == "2 M t/s against 500 k t/s (4.0 x)"
    for e in found:
        e["structure"] = {"t_gate": "skip_list", "skip_list": "t_gate"}[e["structure"]]
    assert [judged(claim, merge=found).verdict for claim in claims] == [FAILS] * 3


def test_the_lead_shrinks_as_the_function_costs_more():
    def designs(costs):
        for query, (base, ours) in zip(("k-OS", "f-OS", "F-OS"), costs, strict=True):
            yield entry(query, 20, "mq", (0.01, base))
            yield entry(query, 20, "tuml-sc", (0.01, ours))

    assert judged(verdict.function_cost, *designs([(1.0, 0.4), (3.0, 2.4), (4.0, 3.4)])).verdict == HOLDS
    assert judged(verdict.function_cost, *designs([(1.0, 0.4), (1.0, 0.4), (1.0, 0.3)])).verdict == FAILS


def scaled(threads, rate):
    return {"query": "K-OS", "inputs": 20, "threads": threads, "saturated": {"median": rate}}


@pytest.mark.parametrize(
    ("cores", "rates", "said"),
    [(2, (1e5, 2e5), "cannot be decided on 2 cores"), (64, (1e5, 2e5), HOLDS), (64, (2e5, 1e5), FAILS)],
)
def test_scaling_with_threads_needs_cores(cores, rates, said):
    found = [scaled(n, rate) for n, rate in zip((1, 12), rates, strict=True)]
    assert judged(verdict.threads, entry("K-OS", 20, "mq"), cores=cores, threads=found).verdict == said


def test_the_headline_is_the_best_of_the_papers_designs():
    designs = [entry("k-OI", 20, "mq", (0.01, 1.0)), entry("k-OI", 20, "wiml", (0.01, 0.1))]
    ours = entry("k-OI", 20, "sliced", (0.01, 0.001))
    assert judged(verdict.magnitude, *designs, ours).ours == "10.0 x, wiml on k-OI"


def test_on_a_busy_machine_a_clock_decides_nothing():
    found = [merged("t_gate", 5, 1e6), merged("skip_list", 5, 1e6), merged("t_gate", 20, 2e6, 1.0)]
    found.append(merged("skip_list", 20, 5e5, 1.6))
    slow, fast = entry("k-OS", 20, "mq", saturated=1e6), entry("k-OS", 20, "tuml-sc", (0.1, 0.1), saturated=3e6)
    for cores, undecided in ((2, 3), (64, 5)):  # with a core for each thread, designs are compared by the clock too
        busy = {v.claim: v.verdict for v in verdicts(document(slow, fast, merge=found, cores=cores, load=99.0))}
        quiet = {v.claim: v.verdict for v in verdicts(document(slow, fast, merge=found, cores=cores))}
        assert [quiet[claim] in (HOLDS, IN_PART) for claim, s in busy.items() if "load 99" in s] == [True] * undecided
        assert (busy["k-OS, most inputs: tuml-sc against mq"] == HOLDS) == (cores == 2)


def test_on_a_busy_machine_no_claim_fails():
    designs = [entry("k-OS", n, "mq", (0.001, 0.5)) for n in (5, 20)]
    found = {load: {v.claim: v.verdict for v in verdicts(document(*designs, load=load))} for load in (2.0, 7.0)}
    claim = "k-OS: throughput of mq over inputs"
    assert (found[2.0][claim], found[7.0][claim]) == (FAILS, "cannot be decided: load 7 before it began")


def test_lock_free_queues():
    designs = [entry("K-OS", 20, "mq", (0.2, 2.0)), entry("K-OS", 20, "mq-lf", (0.1, 1.0))]
    assert judged(verdict.lock_free_queues, *designs).verdict == HOLDS
    designs[1]["output_us"] = 3.0
    assert judged(verdict.lock_free_queues, *designs).verdict == IN_PART


def test_the_table():
    text = markdown(document(entry("k-OI", 20, "wiml")))
    assert text.count("\n") == len(CLAIMS) + 2
    assert "| k-OI, wiml: highest throughput | cannot be decided on 2 cores | 2.6 M t/s |" in text
