"""What queries and operators look like at a prompt and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pystream.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pystream.operator import Operator
    from pystream.query import Query


def operator_facts(op: Operator) -> list[str]:
    """What is worth knowing of an operator, shortest first."""
    facts = [op.design, f"{op.inputs:,} input{'s' if op.inputs != 1 else ''}"]
    try:
        stats = op.stats()
        facts += [
            f"{stats['tuples_in']:,} tuples in",
            f"{stats['pending']:,} pending",
            f"{stats['windows_open']:,} windows open",
            f"{stats['rows_out']:,} rows out",
            f"{stats['rows_unread']:,} of them unread",
        ]
    except ClosedError:
        facts.append("ended")
    return facts


def operator_html(op: Operator) -> str:
    """The same in HTML, with the query."""
    return _html("Operator", [("state", ", ".join(operator_facts(op))), *_query_rows(op.query)])


def query_html(query: Query) -> str:
    """A query as an HTML table."""
    return _html("Query", _query_rows(query))


def _query_rows(query: Query) -> list[tuple[str, str]]:
    rows = [("window", repr(query.window)), ("key", ", ".join(query.key) or "none"), ("ts", query.ts)]
    return rows + [(name, repr(aggregate)) for name, aggregate in query.aggregates.items()]


def _html(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Column names and expressions are the user's, or whoever's the data is: nothing of them is markup."""
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"
