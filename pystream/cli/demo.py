"""`pystream demo`: a day of smart meters, from made-up readings to a table and a chart."""

from __future__ import annotations

import hashlib
from time import perf_counter
from typing import TYPE_CHECKING

import click
from rich.bar import Bar
from rich.progress_bar import ProgressBar
from rich.table import Table

import pystream as ps
from pystream.cli.console import progress, stdout, table
from pystream.data.sample import DAY_S, METERS, smart_meters
from pystream.designs import DESIGNS, design_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

MINUTE_S, HOUR_S = 60, 3_600

PER_METER = ps.Query(
    window=ps.Window(size=HOUR_S, advance=15 * MINUTE_S),
    key="meter",
    aggregates={"readings": ps.count(), "mean": ps.avg("cons"), "peak": ps.max("cons")},
)
ALL_METERS = ps.Query(window=ps.Window(2 * HOUR_S), key=None, aggregates={"mean": ps.avg("cons")})

#: Rows of the result that are shown from its beginning and from its end.
FIRST, LAST = 5, 2

#: Tuples handed over at a time, and held per input at most: so the bar tells what is done, not what waits.
BATCH_ROWS, PENDING_MAX = 1 << 13, 1 << 16


@click.command(epilog="Example: pystream demo --inputs 8 --tuples 2000000")
@click.option("--inputs", type=click.IntRange(1, 256), default=4, help="Number of streams.")
@click.option("--tuples", type=click.IntRange(1, 50_000_000), default=1_000_000, help="Readings in total.")
@click.option("--seed", type=click.IntRange(0), default=1, help="Another seed, other readings.")
@click.option(
    "--design", type=click.Choice(["auto", *DESIGNS]), default="auto", help="How the operator shares the work."
)
def demo(inputs: int, tuples: int, seed: int, design: str) -> None:
    """Aggregate a day of made-up smart-meter readings."""
    console = stdout()
    with progress("aggregating", total=3 * tuples) as advance:
        streams = smart_meters(inputs, tuples, seed, span_s=DAY_S)
        advance(tuples)
        started = perf_counter()
        per_meter = _aggregate(PER_METER, streams, design, advance)
        seconds = perf_counter() - started
        all_meters = _aggregate(ALL_METERS, streams, design, advance)
    console.print(
        f"[bold]{tuples:,} readings[/] of {METERS} smart meters, one day, {inputs} streams, design {design}\n"
    )
    console.print(_rows(per_meter))
    console.print()
    console.print(_chart(all_meters, ascii_only=console.options.ascii_only))
    console.print(
        f"\n{tuples:,} tuples in, {len(per_meter):,} rows out in {seconds:.2f} s: "
        f"[bold green]{tuples / seconds:,.0f} tuples/s[/]",
    )
    console.print(f"Fingerprint {fingerprint(per_meter)}: the same for any --inputs and any --design.")


def _aggregate(query: ps.Query, streams: list[pa.Table], design: str, advance: Callable[[int], None]) -> pa.Table:
    return ps.aggregate(
        query, [_batches(s, advance) for s in streams], design_for(design, query), max_pending=PENDING_MAX
    )


def _batches(stream: pa.Table, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    for batch in stream.to_batches(BATCH_ROWS):
        yield batch
        advance(batch.num_rows)


def fingerprint(result: pa.Table) -> str:
    """Return a short hash over every bit of the result."""
    digest = hashlib.sha256()
    for column in result.columns:
        digest.update(column.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _rows(result: pa.Table) -> Table:
    listing = table("Per meter: one hour, every 15 minutes")
    listing.add_column("window", no_wrap=True)
    for name in ("meter", "readings", "mean W", "peak W"):
        listing.add_column(name, justify="right")
    shown = [*range(min(FIRST, len(result))), *range(max(FIRST, len(result) - LAST), len(result))]
    for i in shown:
        row = result.slice(i, 1).to_pylist()[0]
        window = f"{_clock(row['ts'])} - {_clock(row['ts'] + HOUR_S)}"
        listing.add_row(window, str(row["meter"]), str(row["readings"]), f"{row['mean']:.1f}", f"{row['peak']:.1f}")
        if i == FIRST - 1 and len(result) > len(shown):
            listing.add_row(*["..."] * 5)
    return listing


def _chart(result: pa.Table, *, ascii_only: bool) -> Table:
    """Draw one bar per window, as long as the mean is high."""
    rows = result.to_pylist()
    most = max(row["mean"] for row in rows)
    chart = Table.grid(padding=(0, 1))
    for row in rows:
        bar = (
            ProgressBar(most, row["mean"], width=50)
            if ascii_only
            else Bar(most, 0, row["mean"], width=50, color="cyan")
        )
        chart.add_row(_clock(row["ts"]), bar, f"{row['mean']:.0f} W")
    chart.columns[2].justify = "right"
    chart.title, chart.title_style, chart.title_justify = "All meters: mean of every two hours", "bold", "left"
    return chart


def _clock(ts: int) -> str:
    return f"{ts % DAY_S // HOUR_S:02}:{ts % HOUR_S // MINUTE_S:02}"
