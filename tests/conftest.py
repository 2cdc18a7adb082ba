"""Test-wide rules: two processes, profiles of hypothesis, the --deep switch, no skips in CI, nothing left behind."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading

import pytest
from hypothesis import HealthCheck, settings
from threads import core_threads, patience

from pystream import _native

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("fast", max_examples=100, deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=QUIET, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run everything that CI runs; without it a part of each ring")
    parser.addoption("--deep", action="store_true", help="run the long versions too: more examples, larger models")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("PYSTREAM_HUNT_SEED", str(random.SystemRandom().getrandbits(32)))  # one for all processes
    settings.load_profile("deep" if config.getoption("--deep") else "fast")
    if few := os.environ.get("PYSTREAM_EXAMPLES"):  # on builds that run the tests once more (builds.py)
        settings.register_profile("few", settings.get_profile("fast"), max_examples=int(few))
        settings.load_profile("few")


@pytest.hookimpl(tryfirst=True)  # before xdist's own, which reads what is set here
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the whole suite between two processes; `-n 0` does not, and files that are named run in this one."""
    whole = config.args_source is config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    if whole and config.pluginmanager.hasplugin("xdist") and config.option.numprocesses is None:
        config.option.numprocesses = 2
        config.option.loadscopereorder = False  # the longest folders come first as it is


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep a file's tests together, which share what they build, and all tests on Spark, which share its session."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - an extra

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else nodeid.partition("::")[0]

    return ByFile(config, log)


def pytest_report_header(config: pytest.Config) -> str:
    """What will run, and for about how long on two quiet cores; and the seed that is another one in each run."""
    seed = f"state machines (model/test_hunt.py): PYSTREAM_HUNT_SEED={os.environ['PYSTREAM_HUNT_SEED']}"
    if config.getoption("--deep"):
        return f"pystream: all tests and their long versions (--deep): hours; {seed}"
    if config.getoption("--full"):
        return f"pystream: everything that CI runs (--full): about 22 minutes on two quiet cores; {seed}"
    return (
        "pystream: a part of every ring, about 7 minutes on two quiet cores. --full adds what CI runs besides (all "
        "models, builds with sanitizers, coverage, fuzzing), --deep the long versions"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {marker for marker in ("full", "deep") if not _asked_for(config, marker)}
    out = [item for item in items if any(item.get_closest_marker(marker) for marker in left_out)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True, scope="module")
def nothing_to_collect():
    """Take what is there, hundreds of thousands of objects of pytest and of modules, out of the collector's sight.

    Many tests collect garbage before and after (`nothing_left`), and each time it would look at them all.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Or some extension modules complain at the end that their objects are still there."""
    gc.unfreeze()


def _asked_for(config: pytest.Config, marker: str) -> bool:
    return config.getoption("--deep") or config.getoption(f"--{marker}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failed run: whatever it needs has to be installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("CI=true: no test may be skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def nothing_left():
    """The test leaves no thread, in Python or in C, and no allocation of the C core behind."""
    gc.collect()
    memory, threads = _native.memory_live(), (threading.active_count(), core_threads())
    yield
    gc.collect()
    for _ in patience():  # the system shows a thread for a moment after it was joined, here and before the test
        if threading.active_count() <= threads[0] and core_threads() <= threads[1]:
            break
    assert _native.memory_live() == memory


@pytest.fixture
def many_switches():
    """Python changes threads as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.fixture
def failing_memory():
    """Makes allocations of the C core fail; see `_native.memory_fail_after`."""
    yield _native.memory_fail_after
    _native.memory_fail_after(0)
