"""`pystream queries`."""

from __future__ import annotations

import click

from pystream.cli.console import stdout, table
from pystream.queries import PAPER


@click.command(epilog="Example: pystream queries")
def queries() -> None:
    """List the paper's twelve queries."""
    listing = table()
    for name in ("id", "data", "window", "key", "function"):
        listing.add_column(name, no_wrap=True)
    listing.add_column("result")
    sensitive = True
    for q in PAPER.values():
        if q.order_sensitive != sensitive:
            listing.add_section()
            sensitive = q.order_sensitive
        size, advance = q.query.window.ticks(None)
        listing.add_row(q.id, q.dataset, f"{size}/{advance}", *q.query.key, q.function, q.description)
    console = stdout()
    console.print(listing)
    console.print(
        "\nOS: order-sensitive function. OI: order-insensitive. Windows: size/advance, seconds."
        "\nEC: smart meters (ts, meter, cons). SC: comments on songs (ts, user, song, cmt)."
        "\nIn Python: ps.aggregate(pystream.queries.PAPER['k-OS'].query, inputs)",
        markup=False,
    )
