"""Run the lock-free C code under a scheduler: every interleaving, stale loads, failing allocations, stopped threads.

A tool for people who work on pystream; `import pystream` does not load it. It needs the model build: the same C
sources, with every access to shared memory handed to a scheduler (csrc/model/model.c says what is modelled and what is
not). An editable install has it as the extension pystream._model; elsewhere it is compiled when it is first used.

    from pystream.verify.scheduler import Program, explore, show, run

    program = Program("counter", [[("increment",)], [("increment",)]], parameters=(1,))  # a counter that loses updates
    print(show(run(program, [("switch", 1)])))       # one execution: before step 1 go to the other thread
    found = explore(program)                           # all of them
    [h.history for h in found.histories]               # what can be seen from outside, each once

`build` makes a model build from a changed copy of csrc, `load` takes one from a file; pass it on as `build=`.
"""

from pystream.verify.scheduler._library import Library, library, load
from pystream.verify.scheduler.build import build
from pystream.verify.scheduler.execution_text import replay, show
from pystream.verify.scheduler.explore import Exploration, Found, explore
from pystream.verify.scheduler.objects import OBJECTS, complaint
from pystream.verify.scheduler.order import explained
from pystream.verify.scheduler.program import Decision, Operation, Program
from pystream.verify.scheduler.run import Access, Run, run
from pystream.verify.scheduler.shrink import Shrinker
from pystream.verify.scheduler.sketch import Sketch, Sketcher

__all__ = [
    "OBJECTS",
    "Access",
    "Decision",
    "Exploration",
    "Found",
    "Library",
    "Operation",
    "Program",
    "Run",
    "Shrinker",
    "Sketch",
    "Sketcher",
    "build",
    "complaint",
    "explained",
    "explore",
    "library",
    "load",
    "replay",
    "run",
    "show",
]
