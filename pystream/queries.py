"""The paper's twelve queries, by the identifiers of its table of experiments.

>>> from pystream.queries import PAPER
>>> ps.aggregate(PAPER["k-OI"].query, [a, b, c, d])

First letter: what varies, small or large (k keys, w window size, f function); OS and OI: order-sensitive and
order-insensitive functions. Data sets: EC, smart meters (ts, meter, cons); SC, comments on songs (ts, user, song, cmt).
Timestamps are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

import pystream as ps

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"

#: An e-mail address and an IPv4 address, in the syntax that RE2 and Python's `re` (with re.ASCII) share.
MAIL = r"\b[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b"
IP = rf"\b(?:{_OCTET}\.){{3}}{_OCTET}\b"

HAS_MAIL = pc.match_substring_regex(pc.field("cmt"), MAIL)
HAS_MAIL_OR_IP = pc.match_substring_regex(pc.field("cmt"), f"{MAIL}|{IP}")

#: What the queries of a data set group by.
KEYS = {"EC": "meter", "SC": "song"}


@dataclass(frozen=True)
class PaperQuery:
    """One row of the paper's table: the query, what it runs on, and what it is there to show."""

    id: str
    dataset: str
    query: ps.Query
    function: str  # as the paper writes it
    description: str
    order_sensitive: bool


_TABLE = (
    # id, data set, window size and advance, function in the paper and here, description
    ("k-OS", "EC", 30, 3, "first()", ps.first("cons"), "first reading, 243 keys"),
    ("K-OS", "SC", 30, 3, "first()", ps.first("cmt"), "first comment, 40,000 keys"),
    ("w-OS", "EC", 20, 2, "first()", ps.first("cons"), "first reading, 10 windows a tuple"),
    ("W-OS", "EC", 40, 2, "first()", ps.first("cons"), "first reading, 20 windows a tuple"),
    ("f-OS", "SC", 20, 2, "first-mail(cmt)", ps.first("cmt", HAS_MAIL), "first comment with a mail address"),
    (
        "F-OS",
        "SC",
        20,
        2,
        "first-mail/IP(cmt)",
        ps.first("cmt", HAS_MAIL_OR_IP),
        "first comment with mail or IP address",
    ),
    ("k-OI", "EC", 30, 3, "count()", ps.count(), "readings, 243 keys"),
    ("K-OI", "SC", 30, 3, "count()", ps.count(), "comments, 40,000 keys"),
    ("w-OI", "EC", 20, 2, "avg(cons)", ps.avg("cons"), "mean reading, 10 windows a tuple"),
    ("W-OI", "EC", 40, 2, "avg(cons)", ps.avg("cons"), "mean reading, 20 windows a tuple"),
    ("f-OI", "SC", 20, 2, "count-mail(cmt)", ps.count(HAS_MAIL), "comments with a mail address"),
    ("F-OI", "SC", 20, 2, "count-mail/IP(cmt)", ps.count(HAS_MAIL_OR_IP), "comments with mail or IP address"),
)

#: The twelve queries in the paper's order. The result column is named after the function: first, count or avg.
PAPER = {
    id: PaperQuery(
        id=id,
        dataset=dataset,
        query=ps.Query(ps.Window(size, advance), key=KEYS[dataset], aggregates={aggregate.function: aggregate}),
        function=function,
        description=description,
        order_sensitive=id.endswith("OS"),
    )
    for id, dataset, size, advance, function, aggregate, description in _TABLE
}
