"""Partial aggregates: fold rows where they lie, send only the partials, combine them into windows elsewhere.

    fold = Fold(query, schema, stream="stream", position="position")      # wherever there are rows, in any order
    for batch in rows:
        send(fold.add(batch))
    send(fold.finish())

    combine = Combine(query, schema)                                      # whoever gets all partials of a key
    for batch in received:
        combine.add(batch)
    for windows in combine.finish():                                      # the rows of ps.aggregate, to the bit
        ...

A partial is one row: a slice of time (`__slice`, where it begins), a key, how many rows (`__rows`), and per aggregate
what it takes to go on. Slices begin and end where windows do, so a window is made of whole slices, whatever its size
and advance. How rows are spread over folds, how often a fold gives partials for the same slice and key, and in which
order partials arrive shows nowhere: sums are exact, and `first`, `last`, `arg_min` and `arg_max` carry the
(ts, stream, position) of their row.

`PackedFold` and `PackedCombine` do the same with a quarter of the bytes between the two (packed.py).

folding           rows to partials
combining         partials to windows
partial_columns   the columns of a partial, and what can be wrong with them
packed            partials as parcels of bytes, each for one shard
seals             a head in front of bytes that leave a process

csrc/partials/fold.h says how it works, csrc/partials/fold_export.c what the columns of a partial are.
"""

from pystream.partials.combining import Combine, combine
from pystream.partials.folding import Fold
from pystream.partials.packed import PackedCombine, PackedFold
from pystream.partials.partial_columns import partial_schema

__all__ = ["Combine", "Fold", "PackedCombine", "PackedFold", "combine", "partial_schema"]
