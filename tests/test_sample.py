"""The made-up data sets: their shape, their order, and that a seed says it all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystream.data.sample import DAY_S, METERS, SCHEMAS, SONGS, USERS, DataSet, comments, smart_meters
from pystream.queries import HAS_MAIL, HAS_MAIL_OR_IP

BOTH = pytest.mark.parametrize(("make", "dataset"), [(smart_meters, "EC"), (comments, "SC")])


def _column(streams: list[pa.Table], name: str) -> np.ndarray:
    return np.concatenate([s[name].to_numpy() for s in streams])


@BOTH
@pytest.mark.parametrize(("streams", "tuples"), [(1, 0), (3, 0), (1, 1), (5, 3), (3, 1000), (7, 1000)])
def test_shape(make, dataset, streams, tuples):
    made = make(streams, tuples, seed=1)
    sizes = [len(s) for s in made]
    assert (len(made), sum(sizes)) == (streams, tuples)
    assert max(sizes) - min(sizes) <= 1
    for s in made:
        assert s.schema == SCHEMAS[dataset]
        assert sum(c.null_count for c in s.columns) == 0
        assert (np.diff(s["ts"].to_numpy()) >= 0).all()
        assert tuples == 0 or len(s) == 0 or s["ts"][0].as_py() >= 0


@BOTH
def test_seed_says_it_all(make, dataset):
    assert make(3, 500, seed=1) == make(3, 500, seed=1)
    assert make(3, 500, seed=1) != make(3, 500, seed=2)
    together = [sorted(map(str, pa.concat_tables(make(n, 500, seed=1)).to_pylist())) for n in (1, 2, 9)]
    assert together[0] == together[1] == together[2]


@BOTH
def test_ties(make, dataset):
    """Equal timestamps within and across streams, and for one key too: what order-sensitive functions feel."""
    streams = make(2, 20_000, seed=1)
    ts = [s["ts"].to_numpy() for s in streams]
    assert all((np.diff(t) == 0).any() for t in ts)
    assert np.intersect1d(*ts).size > 0
    key = "meter" if dataset == "EC" else "song"
    assert np.intersect1d(*(s["ts"].to_numpy() * SONGS + s[key].to_numpy() for s in streams)).size > 0


@BOTH
def test_span(make, dataset):
    ts = _column(make(2, 5_000, seed=1, span_s=100), "ts")
    assert (ts.min(), ts.max()) == (0, 99)


@BOTH
@pytest.mark.parametrize("tuples", [400_000, 530_000])
def test_tuples_are_even_in_time(make, dataset, tuples):
    """A tenth of the time has a tenth of the tuples, also at the end, where a block is not full."""
    ts = DataSet(dataset, streams=1, tuples=tuples, seed=1).tables()[0]["ts"].to_numpy()
    tenths = np.histogram(ts, bins=10, range=(0, ts.max() + 1))[0] / tuples
    assert abs(tenths - 0.1).max() < 0.003


def test_meters():
    streams = smart_meters(2, 200_000, seed=1, span_s=DAY_S)
    meter, cons, hour = _column(streams, "meter"), _column(streams, "cons"), _column(streams, "ts") // 3600
    assert set(meter) == set(range(METERS))
    assert (cons > 0).all()
    assert cons[hour == 19].mean() > cons[hour == 7].mean() > 2 * cons[hour == 3].mean()


def test_songs():
    streams = comments(2, 200_000, seed=1)
    user, song = _column(streams, "user"), _column(streams, "song")
    assert (user.min() >= 0, user.max() < USERS) == (True, True)
    assert (song.min() >= 0, song.max() < SONGS) == (True, True)
    often = np.sort(np.bincount(song, minlength=SONGS))[::-1]
    assert 0.4 < often[:400].sum() / len(song) < 0.7  # one hot song in a hundred gets half of all comments
    assert np.count_nonzero(often) > 40_000  # and cold ones get some too


def test_comments_are_of_all_lengths_and_hardly_two_alike():
    text = pa.concat_tables(comments(2, 50_000, seed=1))["cmt"]
    length = pc.binary_length(text).to_numpy()
    assert (length > 0).all()
    assert np.percentile(length, 10) < 15 < np.median(length) < 60 < np.percentile(length, 90)
    assert length.max() > 300
    assert len(pc.unique(text)) > 0.7 * len(text)
    assert len(text.filter(pc.utf8_length(text).to_numpy() < length)) > 1_000  # not all of them are ASCII


def test_addresses():
    table = pa.concat_tables(comments(2, 100_000, seed=1))
    mail, either = (len(table.filter(p)) / len(table) for p in (HAS_MAIL, HAS_MAIL_OR_IP))
    assert 0.02 < mail < 0.04 < either < 0.06
    looks_like = table.filter(pc.match_substring(pc.field("cmt"), "@"))
    assert 0 < len(looks_like.filter(~HAS_MAIL)) < len(looks_like)  # what only looks like an address


@BOTH
@pytest.mark.parametrize(
    "wrong", [{"streams": 0}, {"streams": 1 << 17}, {"tuples": -1}, {"span_s": 0}, {"seed": -1}], ids=str
)
def test_refused(make, dataset, wrong):
    with pytest.raises(ValueError, match=r"must|expected non-negative"):
        make(**{"streams": 1, "tuples": 10, "seed": 1, **wrong})


@BOTH
@pytest.mark.parametrize("span_s", [None, 2])
def test_blocks_make_the_streams(make, dataset, span_s, monkeypatch):
    """Blocks made one by one, in any order, are the whole; positions count up in each stream."""
    monkeypatch.setattr("pystream.data.sample.BLOCK_TUPLES", 64)
    whole = DataSet(dataset, streams=3, tuples=1000, seed=5, span_s=span_s)
    parts = {i: whole.block(i) for i in reversed(range(whole.blocks))}
    together = pa.concat_tables(parts[i] for i in range(whole.blocks))
    assert (np.diff(together["ts"].to_numpy()) >= 0).all()
    for number, stream in enumerate(make(3, 1000, seed=5, span_s=span_s)):
        mine = together.filter(pc.field("stream") == number)
        assert mine["position"].to_pylist() == list(range(len(mine)))
        assert mine.select(stream.column_names).combine_chunks() == stream
