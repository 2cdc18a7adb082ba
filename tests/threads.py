"""Python threads for tests: all errors come back to the test."""

from __future__ import annotations

import threading


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
