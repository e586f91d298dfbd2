"""The normal form of a table: every declared column as its code, by SQL that cannot fail.

A value that is not of its column's type becomes NULL; a number out of bounds becomes the nearest
bound; rows without a person are left out.  All engines on DuckDB read this view and nothing else.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tacit.errors import SchemaMismatch
from tacit.tables.codes import WIDEST_GRID, Type
from tacit.tables.schema import Column, Schema
from tacit.tables.sources import Source, quoted

NORMAL = "tacit_rows"
"""The view of the normal form."""

_FAMILIES = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "integer"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "real"),
    "DECIMAL": "decimal",
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID"], "text"),
    "UHUGEINT": "wide integer",
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"], "timestamp"),
    "TIMESTAMP_NS": "timestamp in nanoseconds",
    "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
    '"NULL"': "nothing but NULL",
}
_NARROW = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_TIMES = ("timestamp", "timestamp in nanoseconds", "timestamp with time zone")
_ACCEPTED = {
    "integer": ("integer", "real", "decimal"),
    "real": ("integer", "real", "decimal"),
    "text": ("text", "integer", "wide integer"),
    "boolean": ("boolean",),
    "date": ("date", *_TIMES),
    "timestamp": ("date", *_TIMES),
}

_INTEGER = r"'[+-]?[0-9]+(\.0*)?'"
_REAL = r"'[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?'"
_INFINITY = r"'(?i)[+-]?inf(inity)?'"
_DATE = r"'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"


def family(source_type: str) -> str:
    """What kind of values a DuckDB type holds; an ENUM's own name would list its values."""
    head = source_type.partition("(")[0]
    return _FAMILIES.get(head, "something else")


def create_normal_view(source: Source, schema: Schema) -> None:
    """Create the view NORMAL, with one code column for each declared column.

    Checks names and types, not values; a mismatch names the column.
    """
    present = {name.casefold(): name for name in source.columns}
    read, coded = [], []
    for column in schema.columns:
        if column.name.casefold() not in present:
            raise SchemaMismatch(
                f"the data has no column {column.name!r}, which the schema declares"
            )
        raw = present[column.name.casefold()]
        kind = family(source.columns[raw])
        accepted = (*_ACCEPTED[column.type], "nothing but NULL")
        if source.is_typed(raw) and kind not in accepted:
            raise SchemaMismatch(
                f"column {column.name!r} is declared {column.type}, but the data holds {kind}"
            )
        read.append(f"{_read(column, source, raw, kind)} AS {quoted(column.name)}")
        narrow = source.is_typed(raw) and source.columns[raw] in _NARROW
        coded.append(f"{_code(column, schema, narrow)} AS {quoted(column.name)}")
    everyone = ""
    if isinstance(schema.person, str):
        everyone = f" WHERE {quoted(schema.person)} IS NOT NULL"
    source.connection.execute(
        f"CREATE VIEW {NORMAL} AS SELECT * FROM (SELECT {', '.join(coded)} "
        f"FROM (SELECT {', '.join(read)} FROM source)){everyone}"
    )


def _read(column: Column, source: Source, raw: str, kind: str) -> str:
    """The value in the type that its code is computed from: HUGEINT, DOUBLE, VARCHAR ..."""
    value = quoted(raw)
    if kind == "nothing but NULL":
        return f"CAST(NULL AS {_READ_AS[column.type]})"
    if not source.is_typed(raw):
        return _READ_TEXT[column.type](f"trim({value})" if column.type != "text" else value)
    if column.type == "integer":
        narrow = source.columns[raw] in _NARROW
        return f"CAST({value} AS BIGINT)" if narrow else _read_integer(column, value, kind)
    if column.type == "real":
        return f"CAST({value} AS DOUBLE)"
    if column.type == "text":
        if source.collated and source.columns[raw] == "VARCHAR":
            return f'({value} COLLATE "binary")'  # text is compared by code point everywhere
        return f"CAST({value} AS VARCHAR)"
    if column.type == "boolean":
        return value
    if column.type == "date":
        return f"TRY_CAST({value} AS DATE)"
    if kind == "timestamp in nanoseconds":
        return f"CASE WHEN isfinite({value}) THEN {_floor_thousand(f'epoch_ns({value})')} END"
    stamp = value if kind == "timestamp with time zone" else f"TRY_CAST({value} AS TIMESTAMP)"
    return f"CASE WHEN isfinite({stamp}) THEN epoch_us({stamp}) END"


_READ_AS = {
    "integer": "HUGEINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "BIGINT",
}


_BEYOND = 10**37  # stands for every number that no bound reaches


def _read_integer(column: Column, value: str, kind: str) -> str:
    whole = f"CASE WHEN {value} = trunc({value}) THEN TRY_CAST({value} AS HUGEINT) END"
    if kind == "integer":
        return f"CAST({value} AS HUGEINT)"
    if kind == "decimal":
        return whole
    infinite = f"isinf({value})" if column.bounds is None else "false"
    return (
        f"CASE WHEN isnan({value}) OR {infinite} THEN NULL WHEN {value} > 1e30 THEN {_BEYOND} "
        f"WHEN {value} < -1e30 THEN {-_BEYOND} ELSE {whole} END"
    )


def _floor_thousand(nanoseconds: str) -> str:
    wide = f"CAST({nanoseconds} AS HUGEINT)"
    return f"CAST(({wide} - (({wide} % 1000) + 1000) % 1000) // 1000 AS BIGINT)"


def _text_as_it_is(value: str) -> str:
    return value


def _text_integer(value: str) -> str:
    digits = f"regexp_replace(ltrim({value}, '+'), '\\.0*$', '')"
    beyond = f"CASE WHEN {value} LIKE '-%' THEN {-_BEYOND} ELSE {_BEYOND} END"
    return (
        f"CASE WHEN regexp_full_match({value}, {_INTEGER}) "
        f"THEN coalesce(TRY_CAST({digits} AS HUGEINT), {beyond}) END"
    )


def _text_real(value: str) -> str:
    return (
        f"CASE WHEN regexp_full_match({value}, {_REAL}) OR regexp_full_match({value}, {_INFINITY}) "
        f"THEN TRY_CAST(ltrim({value}, '+') AS DOUBLE) END"
    )


def _text_boolean(value: str) -> str:
    return (
        f"CASE WHEN lower({value}) IN ('true', 't', 'yes', 'y', '1') THEN true "
        f"WHEN lower({value}) IN ('false', 'f', 'no', 'n', '0') THEN false END"
    )


def _text_date(value: str) -> str:
    return f"CASE WHEN regexp_full_match({value}, {_DATE}) THEN TRY_CAST({value} AS DATE) END"


def _text_timestamp(value: str) -> str:
    local = f"regexp_full_match({value}, '{_CLOCK})?')"
    zoned = f"regexp_full_match({value}, '{_CLOCK}(Z|[+-][0-9]{{2}}:[0-9]{{2}}))')"
    return (
        f"CASE WHEN {local} THEN epoch_us(TRY_CAST({value} AS TIMESTAMP)) "
        f"WHEN {zoned} THEN epoch_us(TRY_CAST({value} AS TIMESTAMPTZ)) END"
    )


_READ_TEXT = {
    "integer": _text_integer,
    "real": _text_real,
    "text": _text_as_it_is,
    "boolean": _text_boolean,
    "date": _text_date,
    "timestamp": _text_timestamp,
}


def text_pattern(type_: Type, value: str) -> str:
    """Whether a text reads as a value of this type: for proposing a schema."""
    if type_ == "boolean":
        return f"lower({value}) IN ('true', 't', 'yes', 'y', 'false', 'f', 'no', 'n')"
    if type_ == "text":
        return f"{value} IS NOT NULL"
    return f"{_READ_TEXT[type_](value)} IS NOT NULL"


def _code(column: Column, schema: Schema, narrow: bool) -> str:
    """The code of a value that was read; narrow integers fit 64 bits as they are."""
    value = quoted(column.name)
    match column.type:
        case "integer" if narrow and column.bounds is None:
            return value
        case "integer" if column.name == schema.person:
            return f"TRY_CAST({value} AS BIGINT)"  # clamping could merge two people into one
        case "integer":
            return f"CAST({_clamped(value, column)} AS BIGINT)"
        case "real":
            return _real(value, column)
        case "boolean":
            return f"CAST({value} AS BIGINT)"
        case "date":
            days = _clamped(f"({value} - DATE '1970-01-01')", column)
            return f"CASE WHEN isfinite({value}) THEN {days} END"
        case "timestamp":
            return _clamped(value, column)
        case "text":
            return value


def _clamped(value: str, column: Column) -> str:
    """The nearest value within the column's range; least and greatest would replace NULL."""
    low, high = column.range
    return (
        f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
    )


def _real(value: str, column: Column) -> str:
    if column.grid is None:  # + 0.0 turns -0.0 into 0.0
        return f"CASE WHEN isfinite({value}) THEN {value} + 0.0 END"
    # One multiplication and one division of doubles, each correctly rounded, then to the nearest
    # whole, ties to even: the same in every engine.
    low, high = column.range
    far = repr(float((WIDEST_GRID + 1) * column.grid))
    steps = f"{value} * {column.grid.denominator}::DOUBLE / {column.grid.numerator}::DOUBLE"
    whole = f"CAST(round_even({steps}, 0) AS BIGINT)"
    infinite = f"isinf({value})" if column.bounds is None else "false"
    return (
        f"CASE WHEN isnan({value}) OR {infinite} THEN NULL WHEN {value} > {far} THEN {high} "
        f"WHEN {value} < -{far} THEN {low} ELSE {_clamped(whole, column)} END"
    )


def own_type(source_type: str) -> Type | None:
    """The type to declare for a DuckDB type, or None if there is none."""
    if source_type in ("UBIGINT", "HUGEINT", "UHUGEINT"):  # may exceed 64 bits: often identifiers
        return "text"
    kinds: dict[str, Type] = {
        "integer": "integer",
        "real": "real",
        "decimal": "real",
        "text": "text",
        "boolean": "boolean",
        "date": "date",
        "timestamp": "timestamp",
        "timestamp in nanoseconds": "timestamp",
        "timestamp with time zone": "timestamp",
        "nothing but NULL": "text",
    }
    return kinds.get(family(source_type))


def own_grid(source_type: str) -> Fraction | None:
    """The grid that a DECIMAL type brings along."""
    match = re.fullmatch(r"DECIMAL\([0-9]+,([0-9]+)\)", source_type)
    return Fraction(1, 10 ** int(match[1])) if match and int(match[1]) <= 9 else None
