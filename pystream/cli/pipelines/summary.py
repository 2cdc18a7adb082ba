"""What a run of a pipeline did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pystream.data.raw_records import told

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Summary:
    """Counts of a run, and examples of what was dropped."""

    files: int = 0
    records: int | None = 0  # None: nobody counted
    rows: int = 0
    late: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(
        self, files: int, records: int | None, dropped: Mapping[str, int], examples: Mapping[str, list[str]]
    ) -> None:
        """Count a batch of files."""
        self.files += files
        self.records = None if records is None or self.records is None else self.records + records
        self.dropped.update(dropped)
        for why, rows in examples.items():
            self.examples.setdefault(why, rows)

    def lines(self) -> list[str]:
        """For people: one line, and one for each reason why records were dropped."""
        records = "" if self.records is None else f", {self.records:,} records"
        late = f", {self.late:,} late" if self.late else ""
        first = f"{self.files:,} files{records}, {told(self.dropped)}{late}; {self.rows:,} rows"
        return [first, *(f"  {why}: {'; '.join(rows)}" for why, rows in self.examples.items())]
