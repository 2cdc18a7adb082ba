"""A messy CSV of three devices, a pipeline over it, and what must come out."""

from __future__ import annotations

import random
import zlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

import pystream as ps

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2024, 5, 1, tzinfo=UTC)

QUERY = """
[query]
window = "2s"
every = "500ms"
key = "device"
[query.aggregates]
n = "count"
mean = "mean:value"
total = "sum:value"
first = "first:value"
last = "last:note"
high = "count where value > 0.5"
"""

PIPELINE = """
engine = "{engine}"
{more}
[source]
path = "raw"
[prepare]
ts = "time"
tz = "Europe/Berlin"
stream = "device"
streams = 3
require = ["value"]
[sink]
{sink}
"""


def readings(part: int, rows: int = 400) -> list[tuple[datetime, str, float, str]]:
    """Readings of one file: a few hundred within ten seconds, several at the same microsecond."""
    rng = random.Random(part)
    begin = START + timedelta(seconds=10 * part)
    values = [0.1, 0.2, 0.7, 1e9, -1e9, -0.0, 0.0]
    return [
        (
            begin + timedelta(milliseconds=rng.randrange(10_000), microseconds=rng.choice([0, 0, 1])),
            rng.choice(["north", "south", "süd"]),
            rng.choice(values),
            rng.choice("abc"),
        )
        for _ in range(rows)
    ]


def lines(part: int) -> list[str]:
    """The readings as text, out of order, some twice, some without a time or with one that cannot be read."""
    rng = random.Random(100 + part)
    text = [f"{_time(t, i)},{d},{v},{note}" for i, (t, d, v, note) in enumerate(readings(part))]
    text += rng.sample(text, 25)
    text += [f"{bad},north,1.0,a" for bad in ("", "yesterday", "2024-05-32 00:00:00", "2024-05-01T25:00:00Z")]
    text += [f"{_time(START, 0)},north,,a", "1960-01-01T00:00:00Z,north,1.0,a"]
    rng.shuffle(text)
    return ["time,device,value,note", *text]


def _time(at: datetime, i: int) -> str:
    """With a zone or without, with as many digits as it takes."""
    if i % 3:
        return at.astimezone(BERLIN).replace(tzinfo=None).isoformat(" ")
    return at.isoformat().replace("+00:00", "Z")


def write(folder, parts) -> None:
    (folder / "raw").mkdir(exist_ok=True)
    for part in parts:
        (folder / "raw" / f"{part:02d}.csv").write_text("\n".join(lines(part)) + "\n")


def expected(parts, query: ps.Query) -> pa.Table:
    """`ps.aggregate` over the records, put in order by hand."""
    streams: list[set[tuple]] = [set(), set(), set()]
    for part in parts:
        for i, (t, d, v, note) in enumerate(readings(part)):
            # ties: by the raw time, then the other columns; -0.0 and 0.0 are equal there and -0.0 comes first
            order = (t, _time(t, i).encode(), d.encode(), v, note, str(v) != "-0.0")
            streams[zlib.crc32(d.encode()) % 3].add((order, (t, d, str(v), note)))
    tables = []
    for stream in streams:
        rows = [row for _, row in sorted(stream)]
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        tables.append(
            pa.table(
                {
                    "ts": pa.array(columns[0], pa.timestamp("us", "UTC")),
                    "device": pa.array(columns[1], pa.string()),
                    "value": pa.array([float(v) for v in columns[2]], pa.float64()),
                    "note": pa.array(columns[3], pa.string()),
                }
            )
        )
    return ps.aggregate(query, tables)
