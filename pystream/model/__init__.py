"""Run the lock-free C code under a scheduler: every interleaving, stale loads, failing allocations, stopped threads.

A tool for people who work on pystream; `import pystream` does not load it. It needs the model build: the same C
sources, with every access to shared memory handed to a scheduler (csrc/model/model.c says what is modelled and what is
not). An editable install has it as the extension pystream._model; elsewhere it is compiled when it is first used.

    from pystream.model import Program, explore, report, run

    program = Program("counter", [[("increment",)], [("increment",)]], parameters=(1,))  # a counter that loses updates
    print(report(run(program, [("switch", 1)])))       # one execution: before step 1 go to the other thread
    found = explore(program)                           # all of them
    [h.history for h in found.histories]               # what can be seen from outside, each once

`build` makes a model build from a changed copy of csrc, `load` takes one from a file; pass it on as `build=`.
"""

from pystream.model._library import Library, library, load
from pystream.model.build import build
from pystream.model.explore import Exploration, Found, explore
from pystream.model.order import explained
from pystream.model.program import Decision, Operation, Program
from pystream.model.report import replay, report
from pystream.model.run import Access, Run, run

__all__ = [
    "Access",
    "Decision",
    "Exploration",
    "Found",
    "Library",
    "Operation",
    "Program",
    "Run",
    "build",
    "explained",
    "explore",
    "library",
    "load",
    "replay",
    "report",
    "run",
]
