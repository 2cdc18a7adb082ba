"""For tests with threads: running them so that all errors come back, and waiting for what they do."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pystream import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator


def run_together(*functions) -> None:
    """Run each function in a thread of its own, to the end."""
    errors = []

    def guard(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    threads = [threading.Thread(target=guard, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def until_ended(call) -> None:
    """Call with 0, 1, 2 ... until it is refused, because somebody has ended what it calls."""
    with suppress(ClosedError):
        for i in itertools.count():
            call(i)


def patience(seconds: float = 60) -> Iterator[None]:
    """Look again and again for what must come. That it never comes is a failure, not a test that hangs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.001)
    pytest.fail("waited in vain")


def core_threads() -> int:
    """How many threads of the C core run in this process, as the system sees them."""
    names = []
    for task in Path("/proc/self/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            names.append(task.read_text())
    return sum(name.startswith("pystream") for name in names)
