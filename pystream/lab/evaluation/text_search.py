"""The queries f and F as the paper runs them: the text search is processTuple, per tuple and window.

`PAPER["f-OI"].query` filters with `where=`, which searches each comment once, in the thread that adds it: fast, and
what users get, but nothing of the paper's argument about expensive functions can be seen in it. The queries here search
in Update, whoever runs it, once for each window of the tuple. They count the same; instead of the first comment they
give its fingerprint, because results of native functions have 64 bits.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

import pystream as ps
from pystream.errors import PystreamError
from pystream.queries import PAPER

SEARCHES = {"f-OS": "first_mail", "F-OS": "first_mail_or_ip", "f-OI": "count_mail", "F-OI": "count_mail_or_ip"}


@cache
def library(*options: str) -> ctypes.CDLL:
    """The searches, compiled, with further options of the compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise PystreamError("the queries f and F need a C compiler (Debian: apt install gcc); name others with --query")
    source = files("pystream.lab.evaluation").joinpath("text_search.c").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "text_search.so")
        command = [compiler, "-O2", "-std=c11", *options, "-shared", "-fPIC", "-x", "c", "-", "-o", str(target)]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if done.returncode != 0:
            raise PystreamError(f"{compiler} does not compile text_search.c: {done.stderr.strip()}")
        return ctypes.CDLL(str(target))  # stays loaded when the file is gone


@cache
def in_update(id: str) -> ps.Query:
    """The paper's query, with its text search in Update if it has one."""
    query = PAPER[id].query
    if id not in SEARCHES:
        return query
    code, counts = library(), id.endswith("OI")
    search = ps.native_udf(
        getattr(code, f"{SEARCHES[id]}_process"),
        code.count_produce if counts else code.first_produce,
        state_size=8 if counts else 16,
        columns="cmt",
        type=pa.int64() if counts else pa.uint64(),
        combine=code.count_combine if counts else None,
    )
    return ps.Query(query.window, query.key, dict.fromkeys(query.aggregates, search))
