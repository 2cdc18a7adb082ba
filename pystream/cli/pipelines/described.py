"""A pipeline as its TOML file describes it.

engine = "local"              # or "spark": the result is the same to the bit
checkpoint = "state"          # with it, files are a stream: each run takes those that are new, each once
late = "error"                # or "drop": rows below their stream's latest time of an earlier run
finish = false                # true: the stream ends with this run, windows that are open come out

[source]
path = "raw/*.csv"            # a path, a glob, a folder or a list of them, seen from this file's folder
format = "csv"                # if the ending does not tell: parquet, csv, jsonl, arrow
types = { value = "double" }  # of columns where the first lines of a text file would mislead

[prepare]                     # as in pystream.spark.prepare
ts = "time"
tz = "Europe/Berlin"
stream = "device"
streams = 4
require = ["value"]

[query]                       # as in pystream run; `ts` is the column that prepare makes
window = "1h"
key = "device"
aggregates = { n = "count", mean = "mean:value" }

[sink]
path = "rows.parquet"         # or .csv; a stream, and Spark, make a folder of it
call = "lake:append"          # instead: a function (rows, batch) in a module beside this file, as foreachBatch has it
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pystream as ps
from pystream.cli.query_text import from_fields
from pystream.data.raw_records import TS, Rules
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pathlib import Path

    from pystream.query import Query

ENGINES, LATE = ("local", "spark"), ("error", "drop")

#: The tables of a file and what may be in them; the types of the values.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "": {"engine": str, "checkpoint": str, "late": str, "finish": bool},
    "source": {"path": (str, list), "format": str, "types": dict},
    "prepare": {
        "ts": str,
        "tz": str,
        "unit": str,
        "format": str,
        "stream": (str, list),
        "streams": int,
        "require": (str, list),
    },
    "sink": {"path": str, "call": str},
}


@dataclass(frozen=True)
class Pipeline:
    """What a file describes, checked; paths are those of the machine."""

    name: str
    folder: Path
    engine: str
    checkpoint: Path | None  # None: all files at once
    late: str
    finish: bool
    paths: tuple[str, ...]
    format: str | None
    types: dict[str, pa.DataType]
    rules: Rules
    query: Query
    out: Path | None
    call: str | None

    def asked(self, engine: str | None, *, finish: bool) -> Pipeline:
        """The pipeline with what the command line says."""
        changed = replace(self, engine=engine or self.engine, finish=self.finish or finish)
        if changed.finish and changed.checkpoint is None:
            raise PystreamError("finish ends a stream of files, which has a `checkpoint`")
        return changed


def from_toml(path: Path) -> Pipeline:
    """The pipeline in a file."""
    try:
        return _pipeline(path, tomllib.loads(path.read_text()))
    except (PystreamError, ValueError, TypeError) as error:  # TOML's own and those of decoding are ValueErrors
        raise PystreamError(f"{path}: {error}") from error


def _pipeline(path: Path, content: dict[str, Any]) -> Pipeline:
    tables = {name: content.pop(name, {}) for name in ("source", "prepare", "query", "sink")}
    for name, table in ({"": content} | tables).items():
        _check(name, table)
    source, sink = tables["source"], tables["sink"]
    if not source.get("path"):
        raise PystreamError('[source] `path` is missing, such as: path = "raw/*.csv"')
    if ("path" in sink) == ("call" in sink):
        raise PystreamError('[sink] has either a `path` such as "rows.parquet" or a `call` such as "module:function"')
    rules = _rules(tables["prepare"])
    folder = path.absolute().parent
    checkpoint, out = (folder / at if at else None for at in (content.get("checkpoint"), sink.get("path")))
    pipeline = Pipeline(
        name=path.stem,
        folder=folder,
        engine=_one_of("engine", content.get("engine", "local"), ENGINES),
        checkpoint=checkpoint,
        late=_one_of("late", content.get("late", "error"), LATE),
        finish=False,
        paths=tuple(str(folder / each) for each in _names(source["path"])),
        format=source.get("format"),
        types={name: _type(name, text) for name, text in source.get("types", {}).items()},
        rules=rules,
        query=_query(tables["query"], rules),
        out=out,
        call=sink.get("call"),
    )
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise PystreamError(f"[sink] path {out.name!r} must end in .parquet or .csv")
    if pipeline.call is not None and pipeline.call.count(":") != 1:
        raise PystreamError(f'[sink] call is text such as "module:function", not {pipeline.call!r}')
    return pipeline.asked(None, finish=content.get("finish", False))


def _check(name: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise PystreamError(f"[{name}] is a table, not {table!r}")
    if name == "query":
        return  # which query_text checks
    where = f"[{name}] " if name else ""
    known = FIELDS[name]
    for key, value in table.items():
        if key not in known:
            more = () if name else ("[source]", "[prepare]", "[query]", "[sink]")
            raise PystreamError(f"{where}{key!r} is not known; there are {', '.join((*known, *more))}")
        if not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            raise PystreamError(f"{where}{key} = {value!r} is of the wrong type")


def _rules(table: dict[str, Any]) -> Rules:
    given = dict(table)
    for name in ("stream", "require"):
        if name in given:
            given[name] = tuple(_names(given[name]))
    return Rules(**given)


def _query(table: dict[str, Any], rules: Rules) -> Query:
    asked = from_fields(table)
    if asked.ts not in (None, TS, rules.ts):
        raise PystreamError(f"[query] ts = {asked.ts!r}: the time is the one that [prepare] makes, {TS!r}")
    return ps.Query(asked.window, list(asked.key), asked.aggregates, TS)


def _names(value: str | list[Any]) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not all(isinstance(name, str) for name in names):
        raise PystreamError(f"{value!r} is no list of names")
    return names


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise PystreamError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def _type(name: str, text: Any) -> pa.DataType:
    try:
        return pa.type_for_alias(text)
    except (ValueError, TypeError) as error:
        raise PystreamError(f"[source] types: {name} = {text!r} is no type of Arrow's, such as 'double'") from error
