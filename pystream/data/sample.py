"""Made-up streams in the shape of the paper's two data sets, which are not public.

>>> from pystream.data.sample import smart_meters
>>> ps.aggregate(query, smart_meters(streams=4, tuples=1_000_000, seed=1))

A data set is made block by block, each from a seed of its own, so that blocks can be made anywhere, in any order, and
the bytes are the same: in one process here, or by as many as Spark has (spark/data/generate.py). A block draws its
tuples first and then deals them to the streams at random, equally many to each. So a seed gives the same tuples
whatever the number of streams, a key's tuples are spread over all streams, and equal timestamps occur within and across
them. `ts` counts seconds from a midnight and never decreases within a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DAY_S = 86_400

#: As many as an operator has inputs; 16 bits, for which NumPy sorts fastest.
STREAMS_MAX = 1 << 16

#: Tuples made from one seed: few enough for a task of Spark's, many enough that NumPy's calls cost nothing.
BLOCK_TUPLES = 1 << 18

#: EC: tuples per second unless a span is given: a meter reports about once a second, sometimes twice or not at all.
METERS = 243

#: SC: the published numbers of users and songs; the hot songs are the keys that the paper counts.
USERS = 40_000
SONGS = 250_000
SONGS_HOT = 40_000

#: The share of comments that go to hot songs, and how many comments come per second unless a span is given. No source
#: gives them; with these, about half of the comments in a window of 30 s find their song there already.
HOT_SHARE = 0.9
COMMENTS_PER_S = 250

#: The columns of the data sets.
SCHEMAS = {
    "EC": pa.schema([("ts", pa.int64()), ("meter", pa.int32()), ("cons", pa.float64())]),
    "SC": pa.schema([("ts", pa.int64()), ("user", pa.int32()), ("song", pa.int32()), ("cmt", pa.string())]),
}


def smart_meters(streams: int, tuples: int, seed: int, span_s: int | None = None) -> list[pa.Table]:
    """Make readings (ts, meter, cons) like EC, in watts: `tuples` in total, over `span_s` seconds from midnight."""
    return DataSet("EC", streams, tuples, seed, span_s).tables()


def comments(streams: int, tuples: int, seed: int, span_s: int | None = None) -> list[pa.Table]:
    """Make comments (ts, user, song, cmt) like SC: `tuples` in total, a few per cent with mail or IPv4 addresses."""
    return DataSet("SC", streams, tuples, seed, span_s).tables()


@dataclass(frozen=True)
class DataSet:
    """A made-up data set; everything in it follows from these five."""

    name: str
    streams: int
    tuples: int
    seed: int
    span_s: int | None = None  # how many seconds it spans; None: as many as the rate of the data set gives

    def __post_init__(self) -> None:
        """Refuse what cannot be made."""
        if self.name not in SCHEMAS:
            raise ValueError(f"unknown data set {self.name!r}; there are {', '.join(SCHEMAS)}")
        if not 1 <= self.streams <= STREAMS_MAX:
            raise ValueError(f"streams must be between 1 and {STREAMS_MAX}, not {self.streams}")
        if self.tuples < 0:
            raise ValueError(f"tuples must not be negative, not {self.tuples}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, not {self.seed}")
        if self.span_s is not None and self.span_s < 1:
            raise ValueError(f"span_s must be positive, not {self.span_s}")

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return -(-self.tuples // BLOCK_TUPLES)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block: those of the data set, with the stream and the position of each tuple in it."""
        ts, *rest = SCHEMAS[self.name]
        return pa.schema([ts, ("stream", pa.int32()), ("position", pa.int64()), *rest])

    def block(self, index: int) -> pa.Table:
        """Make one block, in the order of time; its timestamps are not below those of the block before."""
        first, end = index * BLOCK_TUPLES, min(self.tuples, (index + 1) * BLOCK_TUPLES)
        rng = np.random.default_rng([self.seed, index])
        ts = np.sort(rng.integers(*self._seconds(index), size=end - first))
        columns = _COLUMNS[self.name](rng, np.random.default_rng(self.seed), ts)
        stream = rng.permutation((np.arange(first, end) % self.streams).astype(np.uint16))
        arrays = [ts, stream.astype(np.int32), _positions(stream, first, self.streams), *columns]
        return pa.table([pa.array(a) for a in arrays], schema=self.schema)

    def tables(self) -> list[pa.Table]:
        """Make all of it, a table for each stream."""
        parts = [self.block(i) for i in range(self.blocks)]
        whole = pa.concat_tables(parts or [self.schema.empty_table()]).combine_chunks()
        stream = whole["stream"].to_numpy().astype(np.uint16)
        order = np.argsort(stream, kind="stable")
        ends = np.cumsum(np.bincount(stream, minlength=self.streams))
        columns = whole.select(SCHEMAS[self.name].names)
        return [columns.take(part).combine_chunks() for part in np.split(order, ends[:-1])]

    def _seconds(self, index: int) -> tuple[int, int]:
        """From which second to which a block reaches: as large a share of the time as of the tuples; at least one."""
        span = max(1, self.tuples // _PER_SECOND[self.name]) if self.span_s is None else self.span_s
        ends = (index * BLOCK_TUPLES, min(self.tuples, (index + 1) * BLOCK_TUPLES))
        low, high = (tuples * span // self.tuples for tuples in ends)
        return low, max(high, low + 1)


def _positions(stream: NDArray[np.uint16], first: int, streams: int) -> NDArray[np.int64]:
    """The position of each tuple in its stream: how many went there in the blocks before, and in this one so far."""
    order = np.argsort(stream, kind="stable")
    sizes = np.bincount(stream, minlength=streams)
    before = (first - np.arange(streams) + streams - 1) // streams
    position = np.empty(len(stream), np.int64)
    position[order] = np.arange(len(stream)) + np.repeat(before - (np.cumsum(sizes) - sizes), sizes)
    return position


def _readings(rng: np.random.Generator, common: np.random.Generator, ts: NDArray[np.int64]) -> list[NDArray[Any]]:
    """The columns meter and cons; `common` draws what is the same in all blocks."""
    household = common.lognormal(mean=0.0, sigma=0.5, size=METERS)
    meter = rng.integers(METERS, size=len(ts), dtype=np.int32)
    watts = household[meter] * _daily_curve()[ts % DAY_S // 60] * rng.lognormal(mean=0.0, sigma=0.3, size=len(ts))
    return [meter, np.round(watts, 1)]


def _comments(
    rng: np.random.Generator, common: np.random.Generator, ts: NDArray[np.int64]
) -> list[NDArray[Any] | pa.Array]:
    """The columns user, song and cmt."""
    user = rng.integers(USERS, size=len(ts), dtype=np.int32)
    return [user, _songs(rng, common, len(ts)), _texts(rng, common, len(ts))]


_PER_SECOND = {"EC": METERS, "SC": COMMENTS_PER_S}
_COLUMNS: dict[str, Callable[..., list[Any]]] = {"EC": _readings, "SC": _comments}


def _daily_curve() -> NDArray[np.float64]:
    """Watts by minute of the day: a quiet night, a morning peak, a higher and longer one in the evening."""
    hour = np.arange(DAY_S // 60) / 60
    curve = np.full(len(hour), 150.0)
    for watts, peak, width in ((350, 7.5, 1.2), (120, 13.0, 2.5), (550, 19.5, 2.2)):
        curve += watts * np.exp(-(((hour - peak) / width) ** 2))
    return curve


def _songs(rng: np.random.Generator, common: np.random.Generator, tuples: int) -> NDArray[np.int32]:
    """Hot songs by a Zipf law, the others evenly; which ones are hot is drawn, so their numbers are scattered."""
    weights = np.cumsum(1 / np.arange(1, SONGS_HOT + 1))
    hot = np.searchsorted(weights, rng.random(tuples) * weights[-1], side="right")
    cold = rng.integers(SONGS_HOT, SONGS, size=tuples)
    rank = np.where(rng.random(tuples) < HOT_SHARE, hot, cold)
    return common.permutation(SONGS).astype(np.int32)[rank]


#: Words of comments: how many there are, how often each (Zipf), and how many a comment has: a log-normal number.
#: No source gives these either; they make half of the comments shorter than 40 bytes and one in a hundred longer than
#: 250.
WORDS = 4_000
COMMENT_WORDS, COMMENT_SIGMA, COMMENT_WORDS_MAX = 6.5, 0.9, 120

_SYLLABLES = ("ba", "co", "de", "fi", "lo", "mi", "nu", "ra", "so", "ti", "ve", "wa", "yo", "é", "tr", "st", "ng", "ll")
_FAMILIAR = tuple(
    word
    for line in (
        "this the love so good drop bass what a remix track nice at 1:34 more of please who mixed it? wow!! que temazo",
        "super cool! ♥ 🔥 first! lol and my new one: check out 2013 vol.2 thx great work, mate again ... on repeat",
    )
    for word in line.split()
)
_HOSTS = ("example.com", "example.org", "mail.example.net")
_NETS = ("192.0.2.", "198.51.100.", "203.0.113.")  # reserved for documentation: nobody's address
_NEAR_MISSES = (" see you @ the show", " me@home", " v1.2.3", " 99.9.9", " peaks at 999.1.1.1", " a@b.c", " 1.2.3.256")


def _endings(rng: np.random.Generator) -> list[tuple[float, list[str]]]:
    """How comments end: what share of them, and with what."""
    mails = [f" booking: dj.{n}@{_HOSTS[n % len(_HOSTS)]}" for n in rng.integers(100_000, size=1_000)]
    ips = [f" mirror on {_NETS[n % len(_NETS)]}{n}" for n in rng.integers(256, size=200)]
    return [(0.94, [""]), (0.03, mails), (0.02, ips), (0.01, list(_NEAR_MISSES))]


def _words(common: np.random.Generator) -> pa.Array:
    """The vocabulary, the most frequent words first."""
    made = common.integers(len(_SYLLABLES), size=(WORDS - len(_FAMILIAR), 4))
    size = common.integers(1, 5, size=len(made))
    others = ["".join(_SYLLABLES[i] for i in row[:n]) for row, n in zip(made.tolist(), size.tolist(), strict=True)]
    return pa.array([*_FAMILIAR, *others])


def _prose(rng: np.random.Generator, words: pa.Array, tuples: int) -> pa.Array:
    """Texts without addresses."""
    counts = rng.lognormal(np.log(COMMENT_WORDS), COMMENT_SIGMA, size=tuples).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(np.clip(counts, 1, COMMENT_WORDS_MAX))])
    weights = np.cumsum(1 / np.arange(1, len(words) + 1))
    rank = np.searchsorted(weights, rng.random(ends[-1]) * weights[-1], side="right")
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), words.take(pa.array(rank))), " ")


def _texts(rng: np.random.Generator, common: np.random.Generator, tuples: int) -> pa.Array:
    shares, endings = zip(*_endings(common), strict=True)
    kind = np.searchsorted(np.cumsum(shares)[:-1], rng.random(tuples), side="right")
    sizes = np.array([len(e) for e in endings])
    ending = (np.cumsum(sizes) - sizes)[kind] + (rng.random(tuples) * sizes[kind]).astype(np.int64)
    last = pa.array([text for e in endings for text in e]).take(pa.array(ending))
    return pc.binary_join_element_wise(_prose(rng, _words(common), tuples), last, "")
