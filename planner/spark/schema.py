"""Schemas of tables, written as Spark declares them and read as Arrow wants them."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_TYPES: Final = {**_PLAIN, **{f"array<{name}>": pa.list_(kind) for name, kind in _PLAIN.items()}}


def arrow_schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of columns such as `day string, at_ms bigint, notes array<string>`."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in columns.split(","))])
