"""What a shard knows of the streams, and what follows from it: the frontier, and who holds it back.

All shards are told the same (parcels.py), so they agree. All of it follows from the rows and orders of the
micro-batches and from their times, which Spark's checkpoint has: a micro-batch that is run again does the same.

The frontier is the least position of the streams that count; no row below it comes any more. The position of a stream
is its latest timestamp, or what has been promised for it, whichever is greater. All streams count but those that were
let go, and those that have been silent for too long (orders.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pystream.errors import SnapshotError
from pystream.partials import seals
from pystream.partials.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What is one number, or None.
NUMBERS = ("began", "now", "idle_ms", "lag")

#: Streams that are named, those that are furthest behind.
NAMED_MAX = 10


@dataclass
class Streams:
    """The streams up to the end of a micro-batch. Times of day are in ms since 1970."""

    frontier: int = -1
    declared: tuple[int, ...] | None = None  # None: those that have been seen
    latest: dict[int, int] = field(default_factory=dict)
    heard: dict[int, int] = field(default_factory=dict)  # the micro-batch with their last row
    promised: dict[int, int] = field(default_factory=dict)
    let_go: set[int] = field(default_factory=set)
    began: int | None = None  # the first micro-batch
    now: int | None = None  # the last one
    idle_ms: int | None = None  # a stream that is silent for longer does not count
    lag: int | None = None  # no stream is further behind the foremost

    # ---- in the checkpoint ----

    @classmethod
    def of_text(cls, text: str, shard: int, frontier: int) -> Streams:
        """The way back from `to_text`. Older checkpoints have pairs of stream and latest timestamp only."""
        one = cls(frontier=frontier)
        try:
            told = json.loads(text)
            told = {"latest": told} if isinstance(told, list) else told
            one.latest, one.heard, one.promised = (_whole(told.get(n, [])) for n in ("latest", "heard", "promised"))
            one.let_go = {_int(n) for n in told.get("let_go", [])}
            if "declared" in told:
                one.declared = tuple(map(_int, told["declared"]))
            for name in NUMBERS:
                setattr(one, name, _int(told[name]) if name in told else None)
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise SnapshotError(f"{Seal(shard).name(seals.STATE)}: damaged, its timestamps are not readable") from error
        return one

    def to_text(self) -> str:
        """As JSON, without what is not there."""
        told: dict[str, Any] = {name: sorted(getattr(self, name).items()) for name in ("latest", "heard", "promised")}
        told |= {"let_go": sorted(self.let_go), "declared": self.declared}
        told |= {name: getattr(self, name) for name in NUMBERS}
        return json.dumps({name: value for name, value in told.items() if value is not None and value != []})

    # ---- what a micro-batch does ----

    def take(self, greatest: Iterable[tuple[int, int]], orders: Iterable[dict[str, Any]], now: int) -> None:
        """Take the greatest timestamp of each stream that sent rows, then orders, then move the frontier."""
        self.began, self.now = now if self.began is None else self.began, now
        for stream, ts in greatest:
            self.latest[stream] = max(ts, self.bound(stream))
            self.heard[stream] = now
        for order in orders:
            self._obey(order)
        least = min(map(self.position, self.counted()), default=-1)
        self.frontier = max(self.frontier, least)

    def _obey(self, order: dict[str, Any]) -> None:
        match order:
            case {"let_go": stream}:
                self.let_go.add(stream)
            case {"take_back": stream}:
                self.let_go.discard(stream)
            case {"promise": stream, "ts": ts}:
                self.promised[stream] = max(ts, self.promised.get(stream, -1))
            case {"idle_after": ms}:
                self.idle_ms = ms
            case {"lag": ticks}:
                self.lag = ticks

    # ---- what follows ----

    @property
    def foremost(self) -> int:
        """The greatest timestamp of all rows; -1: there is none."""
        return max(self.latest.values(), default=-1)

    def bound(self, stream: int) -> int:
        """What a row of a stream may not fall below."""
        return max(self.latest.get(stream, -1), self.promised.get(stream, -1), self.frontier)

    def position(self, stream: int) -> int:
        """Below this no row of a stream comes any more."""
        floor = -1 if self.lag is None else self.foremost - self.lag
        return max(self.latest.get(stream, -1), self.promised.get(stream, -1), floor)

    def counted(self) -> set[int]:
        """The streams that are waited for."""
        known = {*self.latest, *self.promised} if self.declared is None else {*self.declared}
        return {stream for stream in known - self.let_go if not self._idle(stream)}

    def _idle(self, stream: int) -> bool:
        since = self.heard.get(stream, self.began)
        return None not in (self.idle_ms, since, self.now) and self.now - since > self.idle_ms  # type: ignore[operator]

    def holding(self, size: int, advance: int) -> list[dict[str, int | None]]:
        """The streams without which more windows would be finished, those that are furthest behind first."""
        ready = 0 if self.frontier < size else ((self.frontier - size) // advance + 1) * advance
        end = ready + size  # of the first window that is open
        if self.foremost < end:
            return []
        behind = sorted((self.position(s), s) for s in self.counted() if self.position(s) < end)
        return [
            {"stream": s, "at": None if at < 0 else at, "since_ms": self.heard.get(s, self.began)}
            for at, s in behind[:NAMED_MAX]
        ]


def _whole(pairs: Any) -> dict[int, int]:
    return {_int(stream): _int(value) for stream, value in pairs}


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value
