"""Spark's daemon for Python workers, without traces of tasks that Spark gave up: `python -m pystream._spark_daemon`.

Spark closes the socket of a worker when it needs no more rows of its task, as after `show(3)`, or when another task of
the job has failed. The worker finds out when it writes, and Spark's daemon prints the trace of a BrokenPipeError, which
says nothing about the result. Workers are forked from here, so nothing that starts threads may be imported.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def print_exc() -> None:
    """Print the exception that is being handled, unless it is only that nobody reads any more."""
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        traceback.print_exc()


if __name__ == "__main__":
    own = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
    vars(daemon)["traceback"] = own
    daemon.manager()
