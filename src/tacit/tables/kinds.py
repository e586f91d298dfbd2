"""The types that a source says its columns have: DuckDB's, and three of our own.

Our own are for columns that DuckDB could not read value by value if it knew what they hold.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tacit.tables.codes import Type

INSTANTS = "INSTANTS"
"""``INSTANTS(ms)``: whole numbers that count s, ms, us or ns since 1970-01-01 in UTC."""

DAY_INSTANTS = "DAY_INSTANTS"
"""The same, where the source calls them dates."""

TEXT_BYTES = "TEXT_BYTES"
"""Bytes that are text if they are UTF-8."""

UNREADABLE = "UNREADABLE"
"""A column that is there, but cannot be declared."""

_FAMILIES = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "integer"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "real"),
    "DECIMAL": "decimal",
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", TEXT_BYTES], "text"),
    "UHUGEINT": "wide integer",
    "BOOLEAN": "boolean",
    **dict.fromkeys(["DATE", DAY_INSTANTS], "date"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"], "timestamp"),
    **dict.fromkeys(["TIMESTAMP WITH TIME ZONE", INSTANTS], "timestamp"),
    '"NULL"': "nothing but NULL",
}

_OWN_TYPES: dict[str, Type] = {
    "integer": "integer",
    "real": "real",
    "decimal": "real",
    "text": "text",
    "wide integer": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "nothing but NULL": "text",
}


def family(source_type: str) -> str:
    """What kind of values a type holds; an ENUM's own name would list its values."""
    return _FAMILIES.get(source_type.partition("(")[0], "something else")


def own_type(source_type: str) -> Type | None:
    """The type to declare for a source's type, or None if there is none."""
    if source_type in ("UBIGINT", "HUGEINT"):  # may exceed 64 bits: often identifiers
        return "text"
    return _OWN_TYPES.get(family(source_type))


def own_grid(source_type: str) -> Fraction | None:
    """The grid that a DECIMAL type brings along."""
    match = re.fullmatch(r"DECIMAL\([0-9]+,([0-9]+)\)", source_type)
    return Fraction(1, 10 ** int(match[1])) if match and int(match[1]) <= 9 else None
