"""Mutated snapshots and parcels for the parsers in Python, in a process that may not use much memory.

    python tests/fuzz/forge.py TARGET SEED RUNS         ends with 0 if all went as it must

A forgery is valid bytes with some changed; where bytes carry a checksum it is made anew, or nothing behind it would
be reached. What is refused is refused with an error of pystream's; what is accepted works: it takes tuples, gives rows,
is saved and read again.
"""

from __future__ import annotations

import faulthandler
import hashlib
import random
import resource
import struct
import sys
from contextlib import suppress

import numpy as np
import pyarrow as pa

import pystream as ps
from pystream._engine import snapshot
from pystream.partials import seals
from pystream.partials.packed import KEYS, PackedCombine, PackedFold

MEMORY_MAX = 4 << 30  # of addresses, most of which are libraries and the stacks of threads
EDGES = [0, 1, -1, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "i": pa.int32(), "f": pa.float64()})
WHOLE = {"n": ps.count(), "s": ps.sum("i"), "a": ps.avg("f"), "x": ps.max("k"), "l": ps.last("f"), "m": ps.min("i")}
WHOLE |= {"v": ps.var("f"), "d": ps.std("i", ddof=0), "c": ps.covar("f", "i"), "r": ps.corr("i", "f")}
WHOLE |= {"u": ps.n_unique("i"), "q": ps.quantile("f", 0.3, "higher"), "e": ps.approx_quantile("f", 0.5)}
WHOLE |= {"t": ps.top_k("f", 2), "b": ps.bottom_k("i", 9), "h": ps.histogram("f", [-1, 1e9])}
QUERY = ps.Query(ps.Window(10, 4), "k", WHOLE)
PLACED = {"stream": "stream", "position": "position"}


def rows(rng: random.Random, n: int, first: int = 0) -> pa.RecordBatch:
    columns = [
        sorted(rng.randrange(first, first + 20) for _ in range(n)),
        [rng.choice(["a", "\0b", "", None, "é€😀"]) for _ in range(n)],
        [rng.choice([1, -5, None, 2**31 - 1]) for _ in range(n)],
        [rng.choice([1.5, None, 1e300, float("nan"), -0.0]) for _ in range(n)],
    ]
    return pa.record_batch([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def changed(rng: random.Random, blob: bytes, begin: int = 0) -> bytes:
    """With a few bytes changed, moved, left out or repeated, from `begin` on."""
    data = bytearray(blob)
    for _ in range(rng.randint(0, 4)):
        if len(data) <= begin:
            break
        at = rng.randrange(begin, len(data))
        match rng.randrange(8):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                del data[at : at + rng.randint(1, 16)]
            case 3:
                data[at:at] = data[at : at + rng.randint(1, 16)]
            case 4:
                del data[at:]
            case _:
                word = struct.pack("<q", rng.choice(EDGES))[: rng.choice([1, 4, 8])]
                data[at : at + len(word)] = word
    return bytes(data)


# ---- snapshots ----


def a_snapshot(rng: random.Random) -> bytes:
    with ps.Operator(QUERY, 2, SCHEMA, design=rng.choice(["mq", "sliced", "runs"])) as op:
        op.add(0, rows(rng, rng.randint(0, 12)))
        op.add(1, rows(rng, rng.randint(0, 6)))
        if rng.random() < 0.5:
            op.close(1)
        if rng.random() < 0.5:
            list(op.poll())
        return op.snapshot()


def forge_snapshot(rng: random.Random) -> None:
    blob = changed(rng, a_snapshot(rng), snapshot._HEAD.size)
    rest = blob[snapshot._HEAD.size :]
    version = rng.choice([snapshot.VERSION, rng.randint(1, snapshot.VERSION)])
    head = snapshot._HEAD.pack(snapshot.MAGIC, version, len(rest), hashlib.sha256(rest).digest())
    design = rng.choice(["mq", "sliced", "tuml-mc", "auto"])
    try:
        op = ps.Operator.restore(QUERY, head + rest, design=design)
    except ps.SnapshotError:
        return
    with op:
        for input in range(len(op.engine.input_stats())):
            with suppress(ps.ClosedError, ps.DisorderError, ps.SchemaError):  # the forged schema may have other types
                op.add(input, rows(rng, 2, first=100))
        with suppress(ps.ClosedError):  # a forged sum may be too large already
            ps.Operator.restore(QUERY, op.snapshot(), design=design).end()
        for input in range(len(op.engine.input_stats())):
            op.close(input)
        with suppress(ps.SumOverflowError):
            pa.Table.from_batches(op, schema=op.schema).validate(full=True)


# ---- packed partials ----


def forge_parcel(rng: random.Random) -> None:
    table = pa.Table.from_batches([rows(rng, rng.randint(1, 12))])
    place = {"stream": np.zeros(table.num_rows, np.int16), "position": np.arange(table.num_rows, dtype=np.int32)}
    batch = pa.table(dict(zip(table.column_names, table.columns, strict=True)) | place).to_batches()[0]
    fold = PackedFold(QUERY, batch.schema, **PLACED)
    ((_, parcel),) = [*fold.add(batch), *fold.finish()]
    seal, body = seals.opened(parcel, seals.PARTIALS)
    data = bytes(body)
    keys = KEYS.size + KEYS.unpack_from(data)[0]
    whole = PackedCombine(QUERY, batch.schema, **PLACED)
    with suppress(ps.PystreamError):
        forged = changed(rng, data, 0 if rng.random() < 0.2 else keys)
        whole.take(seals.sealed(seals.PARTIALS, seal, forged))
        for windows in whole.finish():
            windows.validate(full=True)


TARGETS = {"snapshot": forge_snapshot, "parcel": forge_parcel}


def main() -> None:
    target, seed, runs = sys.argv[1:]
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    for run in range(int(runs)):
        try:
            TARGETS[target](random.Random(f"{seed} {run}"))
        except Exception:
            sys.stderr.write(f"forge.py {target} {seed}: run {run}\n")
            raise


if __name__ == "__main__":
    main()
