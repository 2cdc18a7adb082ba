"""Programs for T-Gate: what each thread may do, all small ones, and how to judge what came of them."""

from __future__ import annotations

import itertools

from pystream.linearizability import TGateModel
from pystream.model import Program, explained, explore, report

#: inputs, readers, levels, full_every, count_every, slab_bytes, slab_spares: every node is a block of its own that goes
#: back to the system as soon as it can be freed, so that every use of freed memory is seen.
SMALL = (2, 1, 1, 1, 1, 1, -1)
GET = ("get", 0)


def insert(input, ts):
    return ("insert", input, ts, 100 * input + ts)


def model(parameters):
    inputs, readers, *_ = parameters
    return TGateModel(inputs, readers)


def judge(program, **bounds):
    """Explore; fail with the shortest interleaving found if something is wrong. Gives the exploration."""
    found = explore(program, **bounds)
    bad = found.first_bad(lambda h: explained(h, model(program.parameters)))
    assert bad is None, "\n" + report(bad)
    assert not found.bad, found.text
    return found


def input_calls(input, calls):
    """Every sequence of so many calls of an input, timestamps 1 and 2, none below the one before."""
    each = [insert(input, 1), insert(input, 2), ("heartbeat", input, 2), ("close", input)]
    for sequence in itertools.product(each, repeat=calls):
        kinds = [c[0] for c in sequence]
        stamps = [c[2] for c in sequence if c[0] != "close"]
        if stamps == sorted(stamps) and "close" not in kinds[:-1]:
            yield list(sequence)


def programs(*calls, gets, parameters=SMALL, **options):
    """Every program in which input k makes calls[k] calls, and a reader `gets` gets, with more gets afterwards."""
    after = [GET] * (sum(calls) + 1)
    for sequences in itertools.product(*(list(input_calls(k, n)) for k, n in enumerate(calls))):
        threads = [s for s in (*sequences, [GET] * gets) if s]
        yield Program("t_gate", threads, parameters=parameters, after=after, **options)
