"""Whether all parcels between the two phases of a batch query have come; knows nothing of Spark.

A parcel's own seal tells that it is whole and came once, but not that another one is missing. So every task of the
first phase tells every shard how many parcels it has sent there, even if none. Tasks are numbered from 0: one that told
nothing is missed too, unless it is the last one.
"""

from __future__ import annotations

from collections import Counter

from pystream.errors import PartialError
from pystream.partials import seals
from pystream.partials.seals import Seal


def told(sent: Counter[int], shards: int, task: int) -> list[bytes]:
    """What a task that has sent so many parcels to each shard tells them, one after the other."""
    return [seals.sealed(seals.COUNTS, Seal(i, total=sent[i], sender=task)) for i in range(shards)]


class Tally:
    """Counts what comes to some shards."""

    def __init__(self) -> None:
        self._told: dict[tuple[int, int], int] = {}  # parcels by shard and task
        self._come: Counter[tuple[int, int]] = Counter()

    def is_parcel(self, blob: bytes) -> bool:
        """Count it, or what it tells."""
        if not seals.is_of(blob, seals.COUNTS):
            seal = seals.head(blob, seals.PARTIALS)
            self._come[seal.shard, seal.sender] += 1
            return True
        seal, _ = seals.opened(blob, seals.COUNTS)
        if (seal.shard, seal.sender) in self._told:
            raise PartialError(f"{seal.name(seals.COUNTS)}: task {seal.sender} has told it twice")
        self._told[seal.shard, seal.sender] = seal.total
        return False

    def check(self) -> None:
        """Refuse what is not complete."""
        for place in self._told | self._come:
            sent, come = self._told.get(place), self._come[place]
            if sent != come:
                raise _missing(
                    place[0], f"{come} of {'?' if sent is None else sent} parcels of task {place[1]} have come"
                )
        shards, tasks = ({place[i] for place in self._told} for i in range(2))
        if len(self._told) < len(shards) * max(tasks, default=-1) + len(shards):
            few = Counter(shard for shard, _ in self._told)
            shard = min(shards, key=lambda shard: few[shard])
            raise _missing(shard, f"only {few[shard]} of {max(tasks) + 1} tasks or more have told how many they sent")


def _missing(shard: int, what: str) -> PartialError:
    return PartialError(f"shard {shard}, {seals.PARTIALS.stage}: parcels are missing: {what}")
