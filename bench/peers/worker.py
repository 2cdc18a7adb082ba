"""The process of one peer: takes orders as lines of JSON on stdin and answers each with one.

    python -m peers.worker NAME        in the folder bench

{"load": FILE, "case": {...}}  read the inputs and prepare; answers {}
{"result": FILE}               run once and write the result; answers {"seconds": ...}
{"run": true}                  run once; answers {"seconds": ..., "cpu_seconds": ...}

What cannot be done is answered with {"error": ...}. Everything else that a peer prints goes to stderr.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from peers import ALL
from peers.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def read_inputs(path: str) -> list[pa.Table]:
    """The inputs in memory: a file of Arrow tables one after the other, told apart by the column `input`."""
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
        whole = reader.read_all().combine_chunks()
    ends = [0, *json.loads(whole.schema.metadata[b"ends"])]
    tables = [whole.slice(first, end - first) for first, end in itertools.pairwise(ends)]
    return [t.replace_schema_metadata() for t in tables]


class Worker:
    """A peer and the case it has prepared."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.form = module.FORMS[ALL[name].form]
        self.run: Callable[[], Any] = lambda: None

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Do one thing."""
        if "load" in order:
            self.run = self.form(Case(**order["case"], inputs=read_inputs(order["load"])))
            return {}
        gc.collect()
        begin, cpu = time.perf_counter(), time.process_time()
        result = self.run()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        if "result" in order and result is not None:
            with pa.OSFile(order["result"], "wb") as sink, pa.ipc.new_file(sink, result.schema) as writer:
                writer.write_table(result)
        return {"seconds": seconds, "cpu_seconds": cpu, "result": result is not None}


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed here must not look like an answer
    name = sys.argv[1]
    try:
        module = importlib.import_module(f"peers.{ALL[name].module}")
        worker = Worker(name, module)
        versions = {p: importlib.metadata.version(p) for p in ("pyarrow", *module.PACKAGES)}
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), file=channel)
        return
    print(json.dumps({"versions": versions}), file=channel)
    for line in sys.stdin:
        try:
            answer = worker.obey(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever a peer throws is its answer
            text = " ".join(str(error).split())[:300]
            answer = {"error": f"{type(error).__name__}: {text}"}
        print(json.dumps(answer), file=channel)


if __name__ == "__main__":
    main()
