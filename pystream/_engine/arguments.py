"""Arguments that are not what they should be, told with what was probably meant."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa

from pystream._inputs.shapes import what_it_is
from pystream.query import Query


def a_query(query: Any, call: str) -> Query:
    """The query, if it is one."""
    if not isinstance(query, Query):
        raise TypeError(f"{call}: the query comes first and is a pystream.Query, not {what_it_is(query)}")
    return query


def a_schema(schema: Any) -> pa.Schema:
    """The schema, or one of (name, type) pairs."""
    try:
        return schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    except (TypeError, ValueError) as error:
        has_one = isinstance(getattr(schema, "schema", None), pa.Schema)
        hint = "give its .schema" if has_one else "such as table.schema or pa.schema({'ts': pa.int64(), ...})"
        raise TypeError(f"schema is a pyarrow.Schema of the inputs, not {what_it_is(schema)}; {hint}") from error


def a_number(value: Any, otherwise: str) -> int:
    """The value as an integer; `otherwise` says what it should have been."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{otherwise}, not {what_it_is(value)}") from None
