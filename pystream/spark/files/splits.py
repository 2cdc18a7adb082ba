"""Who reads what: pieces of files shared out to tasks, so that each has as many bytes to read as the others.

Two ways. *By time*: a task gets a range of windows and reads every piece with rows in them; what lies across an edge is
read by both neighbours, and no task needs to hear of another. That takes bounds of the timestamps of all pieces, and
files that are roughly in the order of time, or everything would be read by everyone. *By size*: a task gets pieces that
lie next to each other, whatever is in them; partial aggregates then have to be shuffled.

A task by time reads its pieces in the order of time, band by band, and gives after each the windows that are complete:
what it holds does not grow with what it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise, zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pystream.spark.files.formats import Piece
    from pystream.spark.files.listing import File

#: Bytes that a task reads: a second of work, beside which starting it costs little, and little to do again if it fails.
SPLIT_BYTES = 256 << 20

#: Below this many bytes a task is not worth another one beside it.
TASK_BYTES = 4 << 20

#: By time, so many times as much is read than there is, at most. Shuffling costs more than reading a quarter twice.
READ_AGAIN_MAX = 1.25

#: By time, a task has so many shares to read at most (and a piece): edges lie where pieces begin, which may be badly.
#: Below 2, or one of two tasks might have everything.
UNEVEN_MAX = 1.5

#: Bytes of a band: so few that what comes of them stays in the processor's cache, so many that opening their files once
#: more costs nothing beside.
BAND_BYTES = 4 << 20

#: The end of time: as `end` and `reach` of a split it takes in all timestamps, itself too.
FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class Split:
    """What one task reads. It gives the windows that start from `begin` to before `end`, or all it can.

    Rows from `begin` to before `reach` are in them.
    """

    pieces: tuple[Piece, ...]
    begin: int = 0
    end: int = FOREVER
    reach: int = FOREVER

    @property
    def weight(self) -> int:
        """Bytes to read."""
        return sum(p.weight for p in self.pieces)

    def parts(self) -> Iterator[Part]:
        """What to read, in this order."""
        bands = _bands(self.pieces)
        for band, after in zip_longest(bands, bands[1:]):
            pieces = sorted(band, key=lambda p: (p.file.number, p.groups))
            files = [(file, [g for p in own for g in p.groups]) for file, own in groupby(pieces, key=lambda p: p.file)]
            for i, (file, groups) in enumerate(files, 1):
                yield Part(file, groups, after[0].low or 0 if after and i == len(files) else 0, self._has_all(band))

    def _has_all(self, pieces: list[Piece]) -> bool:
        """Whether all rows of the pieces are in its windows, as far as is known."""
        if self.begin == 0 and self.reach == FOREVER:
            return True
        bounds = [(p.low, p.high) for p in pieces]
        return all(None not in b and self.begin <= (b[0] or 0) and self.reaches(b[1] or 0) for b in bounds)

    def reaches(self, ts: int) -> bool:
        """Whether the timestamp is before `reach`."""
        return ts < self.reach or self.reach == FOREVER


@dataclass(frozen=True)
class Part:
    """Row groups of a file that are read together. No timestamp of the parts that follow is below `until`.

    `inside`: all of their rows are in windows of the task.
    """

    file: File
    groups: list[int]
    until: int
    inside: bool


def _bands(pieces: tuple[Piece, ...]) -> list[list[Piece]]:
    """Pieces that are in the order of time, cut where there is enough; others as a whole."""
    lows = [p.low for p in pieces]
    if None in lows or any(b < a for a, b in pairwise(p.low or 0 for p in pieces)):
        return [[*pieces]]
    ends = accumulate(p.weight for p in pieces)
    numbered = [((end - 1) // BAND_BYTES, piece) for end, piece in zip(ends, pieces, strict=True)]
    return [[p for _, p in band] for _, band in groupby(numbered, key=lambda pair: pair[0])]


def task_count(pieces: list[Piece], parallelism: Callable[[], int]) -> int:
    """How many tasks suit so many bytes. As many as run at once, or a multiple, or some cores would wait for others."""
    weight = sum(p.weight for p in pieces)
    if weight < min(2 * TASK_BYTES, SPLIT_BYTES):  # one, whatever runs at once, which may take a while to find out
        return 1
    cores = parallelism()
    tasks = max(1, -(-weight // SPLIT_BYTES), min(cores, weight // TASK_BYTES))
    return tasks if tasks < cores else -(-tasks // cores) * cores


def by_size(pieces: list[Piece], tasks: int) -> list[Split]:
    """Cut the row of pieces into equal parts; none is heavier than its share and one piece."""
    whole = sum(p.weight + 1 for p in pieces)
    ends = accumulate(p.weight + 1 for p in pieces)
    numbered = [((end - 1) * tasks // whole, piece) for end, piece in zip(ends, pieces, strict=True)]
    return [Split(tuple(p for _, p in part)) for _, part in groupby(numbered, key=lambda pair: pair[0])]


def by_time(pieces: list[Piece], tasks: int, size: int, advance: int) -> list[Split] | None:
    """Cut the time into parts with equally much to read; None if it is not known how, or makes too much work."""
    known = all(p.low is not None and p.high is not None for p in pieces)
    if known:
        pieces = sorted(pieces, key=lambda p: (p.low or 0, p.file.number, p.groups))
    if tasks == 1:
        return [Split(tuple(pieces))]
    if not known:
        return None
    edges = [0, *_edges(pieces, tasks, size, advance), FOREVER]
    splits = [_between(pieces, begin, end, size - advance) for begin, end in pairwise(edges)]
    whole, most = sum(p.weight for p in pieces), max(p.weight for p in pieces)
    uneven = any(s.weight > UNEVEN_MAX * whole / tasks + most for s in splits)
    return None if uneven or sum(s.weight for s in splits) > READ_AGAIN_MAX * whole else splits


def _edges(pieces: list[Piece], tasks: int, size: int, advance: int) -> Iterator[int]:
    """Window starts at which a task begins: where another share of the pieces, in the order of time, is complete.

    None whose windows would reach the end of time: a task before it could not say where its own end.
    """
    whole = sum(p.weight + 1 for p in pieces)
    done, last, share = 0, 0, 1
    for piece in pieces:
        if done * tasks >= share * whole:
            share = done * tasks // whole + 1
            edge = -(-(piece.low or 0) // advance) * advance  # upwards: nothing of the piece before comes after it
            if edge > last and max(edge, edge + size - advance) < FOREVER:
                yield edge
                last = edge
        done += piece.weight + 1


def _between(pieces: list[Piece], begin: int, end: int, overhang: int) -> Split:
    """The pieces with rows in the windows that start from `begin` to before `end`; `overhang` is size - advance."""
    reach = FOREVER if end == FOREVER else end + overhang
    split = Split((), begin, end, reach)
    return replace(split, pieces=tuple(p for p in pieces if (p.high or 0) >= begin and split.reaches(p.low or 0)))


def join_files(pieces: list[Piece]) -> list[Piece]:
    """One piece per file: for rows that are numbered as they are read, from the first of the file."""
    return [
        replace(
            first,
            groups=tuple(g for p in (first, *rest) for g in p.groups),
            weight=sum(p.weight for p in (first, *rest)),
            low=None,
        )
        for _, (first, *rest) in groupby(pieces, key=lambda p: p.file)
    ]
