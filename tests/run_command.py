"""What tests of `pystream run` share: the command, files in the form of the EIA's open data, what is in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pystream.cli import main

if TYPE_CHECKING:
    from pathlib import Path

HOURS = 48
REGIONS = ("CAL", "NW", "TEX")


def load_of(region: str, hour: int) -> float:
    return round(1000 * (1 + REGIONS.index(region)) + 37.25 * ((hour * 7) % 24), 2)


def eia(regions=REGIONS, hours=HOURS) -> pa.Table:
    """Hourly load per region in the form of the EIA's open data: the hour as ISO text, the region, megawatt-hours."""
    start = datetime(2024, 3, 9, tzinfo=UTC)
    rows = [
        {"period": f"{start + timedelta(hours=h):%Y-%m-%dT%H}", "respondent": r, "type": "D", "value": load_of(r, h)}
        for h in range(hours)
        for r in regions
    ]
    return pa.Table.from_pylist(rows)


def timed(table: pa.Table) -> pa.Table:
    """The same with the hours as timestamps, as a parquet file would have them."""
    return table.set_column(0, "period", table["period"].cast(pa.timestamp("s")))


def daily(regions=REGIONS, hours=HOURS) -> list[tuple]:
    """Per day and region: hours, mean and peak, by hand."""
    out = []
    for day in range(hours // 24):
        for region in sorted(regions):
            values = [load_of(region, h) for h in range(24 * day, 24 * day + 24)]
            out.append((datetime(2024, 3, 9 + day), region, 24, sum(map(float, values)) / 24, max(values)))  # noqa: DTZ001
    return out


DAILY = "--window 24h --key respondent --agg n=count --agg mean=mean:value --agg peak=max:value"


def invoke(*args: object, exit_code: int = 0, stdin: bytes | None = None):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["run", *map(str, args)], input=stdin)
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


def refused(*args: object, stdin: bytes | None = None) -> str:
    """The one line that an error is, without usage."""
    result = invoke(*args, exit_code=1, stdin=stdin)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def misused(*args: object) -> str:
    """The last line of a usage error."""
    result = invoke(*args, exit_code=2)
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


def write(path: Path, table: pa.Table) -> Path:
    suffix = path.suffix
    if suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write(table)
    else:
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    return path


def read(path: Path) -> pa.Table:
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return {".csv": pyarrow.csv.read_csv, ".parquet": pq.read_table, ".jsonl": pyarrow.json.read_json}[path.suffix](
        path
    )


def tuples(table: pa.Table) -> list[tuple]:
    times = table.column(0).cast(pa.timestamp("ns")).cast(pa.timestamp("s")).to_pylist()
    return list(zip(times, *(c.to_pylist() for c in table.columns[1:]), strict=True))


def same(got: list[tuple], want: list[tuple]) -> None:
    assert [row[:3] for row in got] == [row[:3] for row in want]
    assert [row[3:] for row in got] == [pytest.approx(row[3:], rel=1e-15) for row in want]
