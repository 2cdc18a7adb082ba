"""What commands print with: tables that look the same in a terminal and in a pipe, and a bar for what takes long."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A pipe has no width; this one keeps the longest lines whole.
PIPE_COLUMNS = 120

#: What runs shorter than this shows no bar.
PATIENCE_S = 1.0


def stdout() -> Console:
    """Return the console for results."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_COLUMNS
    return console


def table(title: str | None = None) -> Table:
    """Return an empty table in the house style: a line below the heading, no frame, two spaces between columns."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Give a function that counts steps; after a second a bar shows them, on a terminal and on stderr.

    Without a total the bar only says that something is going on.
    """
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    start = threading.Timer(PATIENCE_S, bar.start)
    start.daemon = True
    if bar.console.is_terminal:
        start.start()
    try:
        yield lambda steps: bar.advance(task, steps)
    finally:
        start.cancel()
        if start.is_alive():
            start.join()
        if bar.live.is_started:
            bar.stop()
