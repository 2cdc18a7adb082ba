"""Runs a program that ends itself by SIGKILL at a place that the caller chooses.

`python killable.py PROGRAM WHERE ARGUMENTS`, where WHERE is one of

    -               nowhere: the program runs to its end
    count:FILE      nowhere, and FILE gets the number of calls and returns of every function, as JSON
    EVENT:NAME:N    at the N-th such event: call or return (of a Python function), c_call or c_return (of one in C)
    torn:N          in the middle of the N-th write to a file: half of its bytes are in the file

Functions are those of the program, of pystream and of pathlib, and those in C that they call. A line is printed when
what takes long to import is there, so that a killer outside knows that the program begins.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import pathlib
import signal
import sys
from collections import Counter
from pathlib import Path

import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401 - all that the program needs

import pystream.operator

PROGRAM = "<program>"
OWN = (str(Path(pystream.__file__).parent), pathlib.__file__)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Torn:
    """A file whose n-th write, counted over all files, goes half-way."""

    left = 0

    def __init__(self, file) -> None:
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_error) -> None:
        self._file.close()

    def write(self, data) -> int:
        Torn.left -= 1
        if Torn.left == 0:
            self._file.flush()
            os.write(self._file.fileno(), bytes(data)[: len(data) // 2])
            die()
        return self._file.write(data)


def tear(n: int) -> None:
    usual, Torn.left = open, n
    builtins.open = io.open = lambda *args, **named: Torn(usual(*args, **named))


def watch(event: str, name: str, n: int) -> None:
    left = n

    def look(frame, what, arg) -> None:
        nonlocal left
        if what == event and is_own(frame) and called(frame, what, arg) == name:
            left -= 1
            if left == 0:
                die()

    sys.setprofile(look)


def is_own(frame) -> bool:
    file = frame.f_code.co_filename
    return file == PROGRAM or file.startswith(OWN)


def called(frame, event: str, arg) -> str:
    return arg.__name__ if event.startswith("c_") else frame.f_code.co_name


def counted(file: str, run) -> None:
    seen: Counter[str] = Counter()

    def look(frame, event, arg) -> None:
        if is_own(frame):
            seen[f"{event}:{called(frame, event, arg)}"] += 1

    sys.setprofile(look)
    run()
    sys.setprofile(None)
    Path(file).write_text(json.dumps(seen))


def main() -> None:
    program, where, *sys.argv[1:] = sys.argv[1:]
    code = compile(Path(program).read_text(encoding="utf-8"), PROGRAM, "exec")
    print("ready", flush=True)  # noqa: T201
    kind, *rest = where.split(":")
    if kind == "count":
        counted(rest[0], lambda: exec(code, {"__name__": "__main__"}))  # noqa: S102 - the program under test
        return
    if kind == "torn":
        tear(int(rest[0]))
    elif rest:
        watch(kind, rest[0], int(rest[1]))
    exec(code, {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    main()
