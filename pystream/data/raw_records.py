"""What `prepare` asks of raw records, in words and tables that its two halves share: Spark's and the one without Spark.

A record is judged by these rules in this order; the first that holds is why it is dropped. What is left is told apart
by the raw record, before anything is converted: two readings are one only if every column of them is equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from pystream._inputs.column_names import missing_column
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TS, STREAM, POSITION = "ts", "stream", "position"

#: Why a record is dropped.
MISSING, UNREADABLE = "without timestamp", "with unreadable timestamp"
EARLY, FAR, TWICE = "before 1970", "after the year 9999", "twice"

#: What a report adds to a reason, for whoever wonders.
REMARKS = {EARLY: " (the engine does not take them yet)"}

#: What integers may count since 1970: how many of them are a second.
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

#: The first second after the year 9999, where Spark's calendar, Python's and most people's end.
END_S = 253_402_300_800

#: An integer without a unit may be a second up to here, in the year 5138. Milliseconds since 1973 are beyond.
SECONDS_MAX = 100_000_000_000

#: A time as text: a date, perhaps a time of day, with digits below the second as many as nine, and perhaps a zone.
DAY, TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
ZONE = r"(?:Z|[+-](?:0\d|1[0-7])(?::?[0-5]\d)?|[+-]18(?::?00)?)"
WITH_ZONE = rf"^{DAY}[T ]{TIME} ?{ZONE}\z"
SHORT_WITH_ZONE = rf"^{DAY}[T ]\d\d(?::\d\d)? ?{ZONE}\z"
WITHOUT_ZONE = rf"^{DAY}(?:[T ](?:\d\d(?::\d\d)?|{TIME}))?\z"

#: Letters of a format that stand for a zone.
_ZONE_LETTERS = frozenset("XxZzVO")


@dataclass(frozen=True)
class Rules:
    """How records are read and judged: the arguments of `prepare`, checked."""

    ts: str = TS
    stream: tuple[str, ...] | None = None
    streams: int = 4
    format: str | None = None
    require: tuple[str, ...] = ()
    unit: str | None = None
    tz: str | None = None

    def __post_init__(self) -> None:
        if self.streams < 1:
            raise ValueError(f"streams must be at least 1, not {self.streams}")
        if self.unit is not None and self.unit not in UNITS:
            raise ValueError(f"unit is one of {', '.join(map(repr, UNITS))}, not {self.unit!r}")
        if self.tz is not None:
            _check_zone(self.tz)

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse columns that are missing, and those that would be overwritten."""
        for name in (self.ts, *(self.stream or ()), *self.require):
            if name not in names:
                raise SchemaError(missing_column(name, names))
        taken = {TS, STREAM, POSITION} - ({TS} if self.ts == TS else set())
        own = [name for name in names if name.lower() in taken and name != self.ts]
        if own or self.ts.lower() in (STREAM, POSITION):
            name = own[0] if own else self.ts
            raise SchemaError(
                f"column {name!r} is there already and prepare makes one of that name: rename yours first"
            )
        if len({name.lower() for name in names}) < len(names):
            twice = next(n for n in names if sum(n.lower() == other.lower() for other in names) > 1)
            raise SchemaError(f"column {twice!r} is there more than once: rename one")

    def check_time(self, kind: str, type: object) -> None:
        """Refuse arguments that say nothing of a time of this kind: integer, text, instant (with zone) or local."""
        if kind == "other":
            raise TypeError(
                f"column {self.ts!r} of type {type} is not a timestamp: give text, a timestamp or a whole number"
            )
        unfit = {
            "unit": self.unit is not None and kind != "integer",
            "tz": self.tz is not None and kind in ("integer", "instant"),
            "format": self.format is not None and kind != "text",
        }
        for name, wrong in unfit.items():
            if wrong:
                raise ValueError(f"{name}= says nothing of column {self.ts!r} of type {type}: leave it out")
        if self.format is not None and self.tz is None and not has_zone(self.format):
            raise ValueError(f"format {self.format!r} has no time zone: say in which the times are, such as tz='UTC'")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a record may be dropped, in the order in which it is asked, but for those that came before."""
        return (MISSING, UNREADABLE, EARLY, FAR, *(f"without {name}" for name in self.require))

    def no_zone(self, text: str = "%s") -> str:
        """What is said of a text without a zone if there is no `tz`."""
        return f"column '{self.ts}': '{text}' has no time zone; say in which the times are, such as tz='UTC'"

    def no_seconds(self, number: str = "%s") -> str:
        """What is said of an integer without a unit that is no plausible number of seconds."""
        units = ", ".join(map(repr, UNITS))
        return (
            f"column '{self.ts}': {number} is no number of seconds since 1970; say what it counts: unit= one of {units}"
        )


def _check_zone(tz: str) -> None:
    try:
        ZoneInfo(tz)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"tz={tz!r} is not a time zone: give a name such as 'UTC' or 'Europe/Berlin'") from error


def has_zone(format: str) -> bool:
    """Whether times of this format (Spark's letters, which are Java's) say their zone."""
    return not _ZONE_LETTERS.isdisjoint(re.sub(r"'[^']*'", "", format))


def told(dropped: Mapping[str, int]) -> str:
    """What was dropped, in one line."""
    total = sum(dropped.values())
    reasons = ", ".join(f"{n} {why}{REMARKS.get(why, '')}" for why, n in dropped.items() if n)
    return f"{total} rows dropped{': ' if total else ''}{reasons}"
