"""Made-up streams in the shape of the paper's two data sets, which are not public.

>>> from pystream.sample import smart_meters
>>> ps.aggregate(query, smart_meters(streams=4, tuples=1_000_000, seed=1))

Both generators draw all tuples first and then deal them to the streams at random, equally many to each. So a seed gives
the same tuples whatever the number of streams, a key's tuples are spread over all streams, and equal timestamps occur
within and across them. `ts` counts seconds from a midnight and never decreases within a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAY_S = 86_400

#: As many as an operator has inputs; 16 bits, for which NumPy sorts fastest.
STREAMS_MAX = 1 << 16

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
    rng = np.random.default_rng(seed)
    ts = _timestamps(rng, tuples, span_s, METERS)
    meter = rng.integers(METERS, size=tuples, dtype=np.int32)
    household = rng.lognormal(mean=0.0, sigma=0.5, size=METERS)
    watts = household[meter] * _daily_curve()[ts % DAY_S // 60] * rng.lognormal(mean=0.0, sigma=0.3, size=tuples)
    return _deal(rng, "EC", streams, ts, meter, np.round(watts, 1))


def comments(streams: int, tuples: int, seed: int, span_s: int | None = None) -> list[pa.Table]:
    """Make comments (ts, user, song, cmt) like SC: `tuples` in total, a few per cent with mail or IPv4 addresses."""
    rng = np.random.default_rng(seed)
    ts = _timestamps(rng, tuples, span_s, COMMENTS_PER_S)
    user = rng.integers(USERS, size=tuples, dtype=np.int32)
    return _deal(rng, "SC", streams, ts, user, _songs(rng, tuples), _texts(rng, tuples))


def _timestamps(rng: np.random.Generator, tuples: int, span_s: int | None, per_second: int) -> NDArray[np.int64]:
    if tuples < 0:
        raise ValueError(f"tuples must not be negative, not {tuples}")
    span = max(1, tuples // per_second) if span_s is None else span_s
    if span < 1:
        raise ValueError(f"span_s must be positive, not {span}")
    return np.sort(rng.integers(span, size=tuples))


def _deal(rng: np.random.Generator, dataset: str, streams: int, *columns: NDArray[Any] | pa.Array) -> list[pa.Table]:
    """Cut the tuples into streams of equal length (give or take one), each in the order of the whole."""
    if not 1 <= streams <= STREAMS_MAX:
        raise ValueError(f"streams must be between 1 and {STREAMS_MAX}, not {streams}")
    stream = rng.permutation((np.arange(len(columns[0])) % streams).astype(np.uint16))
    order = np.argsort(stream, kind="stable")
    ends = np.cumsum(np.bincount(stream, minlength=streams))
    return [pa.table([c.take(part) for c in columns], schema=SCHEMAS[dataset]) for part in np.split(order, ends[:-1])]


def _daily_curve() -> NDArray[np.float64]:
    """Watts by minute of the day: a quiet night, a morning peak, a higher and longer one in the evening."""
    hour = np.arange(DAY_S // 60) / 60
    curve = np.full(len(hour), 150.0)
    for watts, peak, width in ((350, 7.5, 1.2), (120, 13.0, 2.5), (550, 19.5, 2.2)):
        curve += watts * np.exp(-(((hour - peak) / width) ** 2))
    return curve


def _songs(rng: np.random.Generator, tuples: int) -> NDArray[np.int32]:
    """Hot songs by a Zipf law, the others evenly; which ones are hot is drawn, so their numbers are scattered."""
    weights = np.cumsum(1 / np.arange(1, SONGS_HOT + 1))
    hot = np.searchsorted(weights, rng.random(tuples) * weights[-1], side="right")
    cold = rng.integers(SONGS_HOT, SONGS, size=tuples)
    rank = np.where(rng.random(tuples) < HOT_SHARE, hot, cold)
    return rng.permutation(SONGS).astype(np.int32)[rank]


_OPENINGS = ("", "wow, ", "love it. ", "on repeat: ", "goosebumps! ", "played this at home, ", "first! ", "so good, ")
_MIDDLES = (
    "what a drop",
    "that bass",
    "this voice",
    "best remix so far",
    "the bridge at 1:34",
    "more of this",
    "who mixed it?",
)
_HOSTS = ("example.com", "example.org", "mail.example.net")
_NETS = ("192.0.2.", "198.51.100.", "203.0.113.")  # reserved for documentation: nobody's address
_NEAR_MISSES = (" see you @ the show", " me@home", " v1.2.3", " 99.9.9", " peaks at 999.1.1.1", " a@b.c", " 1.2.3.256")


def _endings(rng: np.random.Generator) -> list[tuple[float, list[str]]]:
    """How comments end: what share of them, and with what."""
    mails = [f" booking: dj.{n}@{_HOSTS[n % len(_HOSTS)]}" for n in rng.integers(100_000, size=1_000)]
    ips = [f" mirror on {_NETS[n % len(_NETS)]}{n}" for n in rng.integers(256, size=200)]
    return [(0.94, [""]), (0.03, mails), (0.02, ips), (0.01, list(_NEAR_MISSES))]


def _texts(rng: np.random.Generator, tuples: int) -> pa.Array:
    shares, endings = zip(*_endings(rng), strict=True)
    kind = np.searchsorted(np.cumsum(shares)[:-1], rng.random(tuples), side="right")
    sizes = np.array([len(e) for e in endings])
    ending = (np.cumsum(sizes) - sizes)[kind] + (rng.random(tuples) * sizes[kind]).astype(np.int64)
    parts = [pa.array(p).take(rng.integers(len(p), size=tuples)) for p in (_OPENINGS, _MIDDLES)]
    return pc.binary_join_element_wise(*parts, pa.array([text for e in endings for text in e]).take(ending), "")
