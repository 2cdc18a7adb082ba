"""Schemas of what people bring: one for all inputs, in the types that the plan works with.

How values are stored (a dictionary, runs, views) may differ from batch to batch and shows nowhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from pystream._inputs.column_names import missing_column
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.compute as pc

    from pystream.query import Query


def plain(type: pa.DataType) -> pa.DataType:
    """The type of the values, however they are stored."""
    if pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
        return plain(type.value_type)
    return pa.string() if pa.types.is_string_view(type) else pa.binary() if pa.types.is_binary_view(type) else type


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with plain types."""
    return pa.schema([field.with_type(plain(field.type)) for field in schema])


# ---- which columns a query needs ----


def required(query: Query) -> list[str]:
    """The columns that a query names, besides those in `where=`."""
    return list(dict.fromkeys([query.ts, *query.key, *(c for a in query.aggregates.values() for c in a.columns)]))


def mentions(where: pc.Expression, name: str) -> bool:
    """Whether the column may be in the expression."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(where)) is not None


def needed(query: Query, names: Sequence[str]) -> list[str]:
    """The columns among these that a query reads, in their order; all, to say what there is, if one is not there."""
    filters = [a.where for a in query.aggregates.values() if a.where is not None]
    by_place = any("FieldPath" in str(where) for where in filters)  # they count on all columns
    if by_place or any(a.function == "udf" for a in query.aggregates.values()):  # user code gets whole rows
        return list(names)
    used = set(required(query))
    mentioned = [[name for name in names if mentions(where, name)] for where in filters]
    if not used.issubset(names) or not all(mentioned):
        return list(names)
    used.update(*mentioned)
    return [name for name in names if name in used]


# ---- one schema for all inputs ----


def common_schema(query: Query, schemas: dict[int, pa.Schema]) -> pa.Schema:
    """The schema of the columns that the query needs, of all inputs together; `schemas` has those of the inputs."""
    types: dict[str, dict[int, pa.DataType]] = {}
    for i, schema in schemas.items():
        _check_names(query, i, schema)
        for name in needed(query, schema.names):
            found = schema.get_all_field_indices(name)
            if len(found) == 1:
                types.setdefault(name, {})[i] = plain(schema.field(found[0]).type)
    return pa.schema([(name, _common_type(name, own)) for name, own in types.items()])


def _check_names(query: Query, input: int, schema: pa.Schema) -> None:
    for name in required(query):
        times = schema.names.count(name)
        if not times:
            raise SchemaError(f"input {input}: {missing_column(name, schema.names)}{ts_hint(query, name)}")
        if times > 1:
            raise SchemaError(f"input {input}: column {name!r} appears more than once")


def ts_hint(query: Query, name: str) -> str:
    """How to name the timestamp column, if that is what is missing."""
    return "; Query(..., ts=...) names the column of timestamps" if name == query.ts else ""


def _common_type(name: str, types: dict[int, pa.DataType]) -> pa.DataType:
    """The narrowest type that holds the column of each input."""
    types = {i: type for i, type in types.items() if not pa.types.is_null(type)} or types  # nulls go with all
    first, *others = types.items()
    other = next((each for each in others if each[1] != first[1]), None)
    if other is None:
        return first[1]
    stored = [t.storage_type if isinstance(t, pa.BaseExtensionType) else t for t in types.values()]  # bytes of a uuid
    schemas = [pa.schema([(name, type)]) for type in stored]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(
            f"the inputs' columns do not go together: {name!r} is {first[1]} in input {first[0]} and {other[1]} in "
            f"input {other[0]}; cast one of them"
        ) from error
