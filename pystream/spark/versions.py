"""Which PySpark is here, and whether it suffices: what is too old is refused in one sentence.

What was tried with which version is in README.md of this folder; tests/spark/test_versions.py runs it.
"""

from __future__ import annotations

import re

from pystream.errors import PystreamError

#: The oldest PySpark for anything.
OLDEST = (4, 0)

HOW = 'pip install "pystream-core[spark]"'


def installed() -> tuple[int, int]:
    """The version of PySpark, 4.1 as (4, 1).

    >>> installed() >= OLDEST
    True
    """
    try:
        from pyspark import __version__  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(f"pystream.spark needs PySpark, which is not installed: {HOW}") from error
    return of(__version__)


def of(text: str) -> tuple[int, int]:
    """The first two numbers of a version.

    >>> of("4.2.0.dev1")
    (4, 2)
    """
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


def check() -> None:
    """Refuse a PySpark that is too old for anything."""
    found = installed()
    if found < OLDEST:
        raise ImportError(
            f"pystream.spark needs PySpark {_text(OLDEST)} or newer, this is {_text(found)}: older ones neither take "
            f"Arrow tables nor let `finish` read the state of a streaming query: {HOW}"
        )


def need(oldest: tuple[int, int], what: str) -> None:
    """Refuse to do something that this PySpark cannot."""
    found = installed()
    if found < oldest:
        raise PystreamError(f"{what} needs PySpark {_text(oldest)} or newer, this is {_text(found)}: {HOW}")


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
