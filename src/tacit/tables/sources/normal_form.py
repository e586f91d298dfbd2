"""The normal form of a table: every declared column as codes, computed by SQL that cannot fail.

A value that is not of its column's type becomes NULL; a number out of bounds becomes the nearest
bound; rows without a person are left out, and so are those outside of the source's window, if the
table grows.  Whatever reads a table with DuckDB reads this form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tacit.errors import SchemaMismatch
from tacit.tables.schema.codes import (
    DAY_INSTANTS,
    INSTANTS,
    NUMERIC,
    OBJECTS,
    TEXT_BYTES,
    Type,
    are_instants,
    family,
    is_read_alike,
    stored_as,
    widest,
)
from tacit.tables.schema.declarations import folded, quoted, text
from tacit.tables.schema.schema import EACH_ROW, Column, Schema
from tacit.tables.schema.text_format import AS_USUAL, DAY_FIRST, ISO, TextFormat
from tacit.tables.schema.zones import on_the_wall
from tacit.tables.sources.lines import LONGEST_FIELD
from tacit.tables.sources.source import Source

_NARROW = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_ACCEPTED = {
    "integer": ("integer", "real", "decimal"),
    "real": ("integer", "real", "decimal"),
    "text": ("text", "integer", "wide integer"),
    "boolean": ("boolean",),
    "date": ("date", "timestamp"),
    "timestamp": ("date", "timestamp"),
}

_INTEGER = r"'[+-]?[0-9]+(\.0*)?'"
_REAL = r"'[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?'"
_INFINITY = r"'(?i)[+-]?inf(inity)?'"
_DATE = r"'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"


def check_columns(source: Source, schema: Schema) -> None:
    """Check names and types, but no values; the error names the column."""
    present = _present(source)
    for column in schema.columns:
        raw = present.get(folded(column.name))
        hint = source.hints.get(folded(column.name))
        if raw is None:
            hint = hint or (
                "the data does not have: remove it from the schema, or correct its name"
            )
            raise SchemaMismatch(f"the schema declares a column {column.name!r}, which {hint}")
        kind = family(source.columns[raw])
        accepted = (*_ACCEPTED[column.type], "nothing but NULL")
        if source.is_typed(raw) and kind not in accepted:
            raise SchemaMismatch(
                f"column {column.name!r} is declared as {column.type}, but the data holds "
                + (hint or f"{kind}: correct its type in the schema")
            )
        if column.times == "local" and are_instants(source.columns[raw]):
            raise SchemaMismatch(
                f'column {column.name!r} is declared with times = "local", but its times are '
                "instants: remove that from the schema"
            )
        now = _stored(source, raw)
        if not is_read_alike(column.type, column.stored, now):
            raise SchemaMismatch(
                f"column {column.name!r} was stored as {column.stored} when the table was opened, "
                f"and is stored as {now} now, which reads some values differently: let whatever "
                "writes the data fix the types of its columns, and write this version again"
            )


def bound_to(source: Source, schema: Schema) -> Schema:
    """The schema, with how the source stores each column, where that is not known yet.

    A type that is inferred from values is a statistic of the data.  So what is read later must be
    stored in the same way.
    """
    present, columns = _present(source), []
    for column in schema.columns:
        raw = present.get(folded(column.name))
        if column.stored is None and raw is not None:
            column = replace(column, stored=_stored(source, raw))
        columns.append(column)
    return replace(schema, columns=tuple(columns))


def _stored(source: Source, raw: str) -> str | None:
    """How the source stores a column; None of written text, which is read exactly as any type."""
    if raw in source.untyped:
        return OBJECTS
    return stored_as(source.columns[raw]) if source.is_typed(raw) else None


_RANGES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
}


def code_ends(source: Source, schema: Schema) -> dict[str, tuple[int, int]]:
    """Between which codes those of each column of numbers lie, whatever the rows hold.

    This follows from the schema and the types of the source.
    """
    present, found = _present(source), {}
    for column in schema.columns:
        if column.type == "text":
            continue
        low, high = column.range
        if column.name == schema.person:  # who is never clamped
            low, high = widest(column.type, column.grid)
        raw = present[folded(column.name)]
        if column.type == "integer" and source.is_typed(raw) and source.columns[raw] in _RANGES:
            least, most = _RANGES[source.columns[raw]]
            if low <= most and least <= high:  # else all are clamped to a bound
                low, high = max(low, least), min(high, most)
        found[column.name] = low, high
    return found


def normal_form(
    source: Source,
    schema: Schema,
    names: Collection[str],
    rows: str = "source",
    *,
    all_rows: bool = False,
) -> str:
    """The query that gives some declared columns as codes.

    Only these columns and the person column are read.  ``rows`` may be a table with the raw
    columns.  With ``all_rows``, those without a person and those outside of the window are not
    left out, and nothing but the columns is read.
    """
    present = _present(source)
    person = schema.person if isinstance(schema.person, str) and not all_rows else None
    window = None if all_rows else source.window
    read, shifted, coded, shown = [], [], [], []
    for column in schema.columns:
        wanted = column.name in names or column.name == person
        if wanted or (window is not None and column.name == window.column):
            raw = present[folded(column.name)]
            read.append(f"{_read(column, source, raw)} AS {quoted(column.name)}")
            narrow = source.is_typed(raw) and source.columns[raw] in _NARROW
            coded.append(f"{_code(column, schema, narrow)} AS {quoted(column.name)}")
            shifted.append(f"{_on_the_wall(column, source, raw)} AS {quoted(column.name)}")
            shown += [quoted(column.name)] if wanted else []
    if not read:
        return f"SELECT true AS there FROM {rows}"
    kept = [] if person is None else [f"{quoted(person)} IS NOT NULL"]
    kept += [] if window is None else [window.condition]
    values = f"SELECT {', '.join(read)} FROM {rows}"
    if any(column.zone is not None for column in schema.columns):
        values = f"SELECT {', '.join(shifted)} FROM ({values})"
    return (
        f"SELECT {', '.join(shown) or 'true AS there'} "
        f"FROM (SELECT {', '.join(coded)} FROM ({values}))"
        f"{' WHERE ' if kept else ''}{' AND '.join(kept)}"
    )


def values_with_lines(source: Source, column: Column, line: str) -> str:
    """The query that gives of each row ``line``, whether it is ``there``, and its ``value``.

    ``line`` is an expression on the raw rows, and ``value`` the code that is made of the field.
    Privacy: this is for a steward who looks at what does not fit.
    """
    raw = _present(source)[folded(column.name)]
    alone = replace(column, name="value")
    there = f"{quoted(raw)} IS NOT NULL"
    if not source.is_typed(raw) and source.written.nulls:
        there += f" AND {is_no_null(quoted(raw), source.written)}"
    read = f"SELECT {line} AS line, {there} AS there, {_read(alone, source, raw)} AS value"
    shifted = f"SELECT line, there, {_on_the_wall(alone, source, raw)} AS value"
    schema = Schema("table", EACH_ROW, (alone,))
    coded = f"SELECT line, there, {_code(alone, schema, False)} AS value"
    return f"{coded} FROM ({shifted} FROM ({read} FROM source))"


def raw_names(source: Source, columns: Iterable[Column]) -> list[str]:
    """The columns of the source from which these are read."""
    present = _present(source)
    return [present[folded(column.name)] for column in columns]


def raw_columns(source: Source, schema: Schema) -> str:
    """The same for all declared columns, as an SQL list."""
    return ", ".join(map(quoted, raw_names(source, schema.columns)))


def _present(source: Source) -> dict[str, str]:
    """From each folded name to the source's spelling of it."""
    return {folded(name): name for name in source.columns}


def _read(column: Column, source: Source, raw: str) -> str:
    """The value in the type from which its code is computed; dates and times as numbers."""
    value, kind = quoted(raw), source.columns[raw]
    if family(kind) == "nothing but NULL":
        return f"CAST(NULL AS {_READ_AS[column.type]})"
    if not source.is_typed(raw) or kind.partition("(")[0] == NUMERIC:
        return _read_field(column, value, source.written)
    if family(kind) == "decimal":
        value = _decimal(value, kind)
    match column.type:
        case "integer":
            narrow = kind in _NARROW
            return f"CAST({value} AS BIGINT)" if narrow else _read_integer(column, value, kind)
        case "real":
            return f"CAST({value} AS DOUBLE)"
        case "text":
            return _read_words(value, kind, source.stored)
        case "boolean":
            return value
        case "date" if not _holds_instants(column, source, raw):
            return _days(value, kind)
        case "date" | "timestamp":
            return _microseconds(value, kind)


_READ_AS = {
    "integer": "HUGEINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "BIGINT",
    "timestamp": "BIGINT",
}


def _read_field(column: Column, value: str, written: TextFormat) -> str:
    """What a text means, as it is written in this source."""
    found = value if column.type == "text" else _READ_TEXT[column.type](f"trim({value})", written)
    if column.type == "timestamp" and column.zone is not None:
        instant = _is_instant(_iso(f"trim({value})", written), column)
        found = f"struct_pack(at := {found}, instant := {instant})"
    kept = f"strlen({value}) <= {LONGEST_FIELD}"
    if written.nulls:
        kept += f" AND {is_no_null(value, written)}"
    return f"CASE WHEN {kept} THEN {found} END"


def is_no_null(value: str, written: TextFormat) -> str:
    """Whether a text is none of those that mean NULL in this file."""
    return f"trim({value}) NOT IN ({', '.join(map(text, written.nulls))})"


# Wall-clock times of a column's zone


def _holds_instants(column: Column, source: Source, raw: str) -> bool:
    """Whether all times in a typed source are instants that a zone shows on its wall."""
    times = family(source.columns[raw]) == "timestamp"
    return column.zone is not None and column.times == "utc" and times


def _is_instant(value: str, column: Column) -> str:
    """Whether a written time is an instant; a date is none, and is the same in every zone."""
    if column.times == "utc":
        return f"contains({value}, ':')"
    return f"regexp_matches({value}, ':.*(Z|[+-][0-9]{{2}}:[0-9]{{2}})$')"


def _on_the_wall(column: Column, source: Source, raw: str) -> str:
    """A value that was read; of an instant, the time or the day that it is in the column's zone."""
    value = quoted(column.name)
    if column.zone is None or family(source.columns[raw]) == "nothing but NULL":
        return value
    if not source.is_typed(raw) and column.type == "timestamp":
        at, instant = (f"struct_extract({value}, '{name}')" for name in ("at", "instant"))
        return f"CASE WHEN {instant} THEN {on_the_wall(column.zone, at)} ELSE {at} END"
    if not source.is_typed(raw) or not _holds_instants(column, source, raw):
        return value
    at = on_the_wall(column.zone, value)
    return at if column.type == "timestamp" else _floored(at, _DAY)


def _decimal(value: str, kind: str) -> str:
    """A decimal, or NULL if it has more digits than its type, on which DuckDB would fail."""
    digits, scale = (int(part) for part in kind[len("DECIMAL(") : -1].split(","))
    most = f"CAST('{'9' * (digits - scale)}.{'9' * scale}' AS {kind})"
    return f"CASE WHEN {value} BETWEEN -{most} AND {most} THEN {value} END"


def _read_words(value: str, kind: str, stored: bool) -> str:
    """Text; if it is not UTF-8, or is too long, it is NULL."""
    if kind == TEXT_BYTES:
        return f"CASE WHEN octet_length({value}) <= {LONGEST_FIELD} THEN TRY(decode({value})) END"
    if kind != "VARCHAR" and not kind.startswith("ENUM"):
        return f"CAST({value} AS VARCHAR)"
    if kind != "VARCHAR":
        value = f"CAST({value} AS VARCHAR)"
    words = value
    if stored:  # text is compared by code point everywhere
        words = f'TRY(decode(encode({value} COLLATE "binary")))'
    return f"CASE WHEN strlen({value}) <= {LONGEST_FIELD} THEN {words} END"


_PER_UNIT = {"s": 10**6, "ms": 10**3, "us": 1}  # microseconds
_DAY = 86_400_000_000
_MOST = 2**63 - 2  # DuckDB reads larger numbers as infinities


def _microseconds(value: str, kind: str) -> str:
    """Microseconds since 1970; NULL if they do not fit into 64 bits."""
    head, _, unit = kind.removesuffix(")").removesuffix(", UTC").partition("(")
    if head in (INSTANTS, DAY_INSTANTS):
        most = _MOST // _PER_UNIT.get(unit, 1)
        whole = _floored(value, 1000) if unit == "ns" else f"{value} * {_PER_UNIT[unit]}"
        return f"CASE WHEN {value} BETWEEN {-most} AND {most} THEN {whole} END"
    if kind == "DATE":
        days, most = f"({value} - DATE '1970-01-01')", _MOST // _DAY
        return (
            f"CASE WHEN isfinite({value}) AND {days} BETWEEN {-most} AND {most} "
            f"THEN {days} * {_DAY} END"
        )
    if kind == "TIMESTAMP_NS":
        whole = _floored(f"epoch_ns({value})", 1000)
        return f"CASE WHEN {_is_instant_in_range('epoch_ns', value)} THEN {whole} END"
    if kind in ("TIMESTAMP_S", "TIMESTAMP_MS"):
        value = f"TRY_CAST({value} AS TIMESTAMP)"
    return f"CASE WHEN {_is_instant_in_range('epoch_us', value)} THEN epoch_us({value}) END"


def _is_instant_in_range(counted: str, value: str) -> str:
    """Whether a time is one; the least 64-bit number stands for no time, as numpy's NaT does."""
    return f"isfinite({value}) AND {counted}({value}) >= {-_MOST}"


def _days(value: str, kind: str) -> str:
    """Days since 1970 of a date, or of the UTC day of an instant."""
    if kind == "DATE":
        return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"
    return _floored(_microseconds(value, kind), _DAY)


def _floored(number: str, by: int) -> str:
    """A 64-bit number, divided and rounded down."""
    wide = f"CAST({number} AS HUGEINT)"
    return f"CAST(({wide} - (({wide} % {by}) + {by}) % {by}) // {by} AS BIGINT)"


# Added to a double of at most 2^51, it leaves no room for a fraction: IEEE 754 rounds the sum to
# the nearest whole number, ties to even, and subtracting it again is exact.
_WHOLE = f"{3 * 2**51}::DOUBLE"

_BEYOND = 10**37  # stands for every number that is larger than any bound


def _read_integer(column: Column, value: str, kind: str) -> str:
    whole = f"CASE WHEN {value} = trunc({value}) THEN TRY_CAST({value} AS HUGEINT) END"
    if family(kind) == "integer":
        return f"CAST({value} AS HUGEINT)"
    if family(kind) == "decimal":
        return whole
    infinite = f"isinf({value})" if column.bounds is None else "false"
    return (
        f"CASE WHEN isnan({value}) OR {infinite} THEN NULL WHEN {value} > 1e30 THEN {_BEYOND} "
        f"WHEN {value} < -1e30 THEN {-_BEYOND} ELSE {whole} END"
    )


# Values that are written as text


def pointed(value: str, written: TextFormat) -> str:
    """A number with a decimal point; NULL if the file writes commas, and there is a point."""
    if written.decimal == ".":
        return value
    return f"CASE WHEN NOT contains({value}, '.') THEN replace({value}, ',', '.') END"


def _text_integer(value: str, written: TextFormat) -> str:
    value = pointed(value, written)
    digits = f"regexp_replace(ltrim({value}, '+'), '\\.0*$', '')"
    beyond = f"CASE WHEN {value} LIKE '-%' THEN {-_BEYOND} ELSE {_BEYOND} END"
    return (
        f"CASE WHEN regexp_full_match({value}, {_INTEGER}) "
        f"THEN coalesce(TRY_CAST({digits} AS HUGEINT), {beyond}) END"
    )


def _text_real(value: str, written: TextFormat) -> str:
    value = pointed(value, written)
    return (
        f"CASE WHEN regexp_full_match({value}, {_REAL}) OR regexp_full_match({value}, {_INFINITY}) "
        f"THEN TRY_CAST(ltrim({value}, '+') AS DOUBLE) END"
    )


def _text_boolean(value: str, written: TextFormat) -> str:
    return (
        f"CASE WHEN lower({value}) IN ('true', 't', 'yes', 'y', '1') THEN true "
        f"WHEN lower({value}) IN ('false', 'f', 'no', 'n', '0') THEN false END"
    )


def _iso(value: str, written: TextFormat) -> str:
    """A date, or the date of a time, with its year first; others stay as they are."""
    if written.dates == ISO:
        return value
    padded = f"regexp_replace({value}, '^([0-9][/.-])', '0\\1')"
    padded = f"regexp_replace({padded}, '^([0-9]{{2}}[/.-])([0-9][/.-])', '\\10\\2')"
    padded = f"regexp_replace({padded}, '([T ])([0-9]:)', '\\10\\2')"  # 9:30 is 09:30
    order = "\\3-\\2-\\1" if written.dates == DAY_FIRST else "\\3-\\1-\\2"
    turned = f"regexp_replace({padded}, '^(..).(..).([0-9]{{4}})', '{order}')"
    return f"CASE WHEN regexp_matches({value}, {_TURNED}) THEN {turned} ELSE {value} END"


_TURNED = r"'^[0-9]{1,2}(/[0-9]{1,2}/|\.[0-9]{1,2}\.|-[0-9]{1,2}-)[0-9]{4}($|[T ])'"


def _text_date(value: str, written: TextFormat) -> str:
    value = _iso(value, written)
    days = f"TRY_CAST({value} AS DATE) - DATE '1970-01-01'"
    return f"CASE WHEN regexp_full_match({value}, {_DATE}) THEN {days} END"


def _text_timestamp(value: str, written: TextFormat) -> str:
    value = _iso(value, written)
    local = f"regexp_full_match({value}, '{_CLOCK})?')"
    zoned = f"regexp_full_match({value}, '{_CLOCK}(Z|[+-][0-9]{{2}}:[0-9]{{2}}))')"
    return (
        f"CASE WHEN {local} THEN epoch_us(TRY_CAST({value} AS TIMESTAMP)) "
        f"WHEN {zoned} THEN epoch_us(TRY_CAST({value} AS TIMESTAMPTZ)) END"
    )


_READ_TEXT = {
    "integer": _text_integer,
    "real": _text_real,
    "boolean": _text_boolean,
    "date": _text_date,
    "timestamp": _text_timestamp,
}


def text_pattern(type_: Type, value: str, written: TextFormat = AS_USUAL) -> str:
    """Whether a text can be read as a value of this type, for proposing a schema."""
    if type_ == "boolean":
        return f"lower({value}) IN ('true', 't', 'yes', 'y', 'false', 'f', 'no', 'n')"
    if type_ == "text":
        return f"{value} IS NOT NULL"
    return f"{_READ_TEXT[type_](value, written)} IS NOT NULL"


def _code(column: Column, schema: Schema, narrow: bool) -> str:
    """The code of a value that was read; narrow integers fit into 64 bits as they are."""
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
        case "date" | "timestamp":
            return f"CAST({_clamped(value, column)} AS BIGINT)"
        case "text":
            return value


def _clamped(value: str, column: Column) -> str:
    """The nearest value in the column's range; SQL's least and greatest would replace NULL."""
    low, high = column.range
    return (  # what is within comes first: where that is all, DuckDB looks no further
        f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} "
        f"WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} END"
    )


def _real(value: str, column: Column) -> str:
    if column.grid is None:  # + 0.0 turns -0.0 into 0.0
        return f"CASE WHEN isfinite({value}) THEN {value} + 0.0 END"
    # A multiplication and a division of doubles, each correctly rounded, then rounding to the
    # nearest whole number, ties to even: the same in every engine.
    low, high = column.range
    steps = f"{value} * {column.grid.denominator}::DOUBLE"
    if column.grid.numerator != 1:
        steps += f" / {column.grid.numerator}::DOUBLE"
    infinite = f"isinf({value})" if column.bounds is None else "false"
    return (
        f"CASE WHEN {steps} BETWEEN {low}::DOUBLE AND {high}::DOUBLE "
        f"THEN CAST({steps} + {_WHOLE} - {_WHOLE} AS BIGINT) "
        f"WHEN isnan({value}) OR {infinite} THEN NULL "
        f"WHEN {steps} < {low}::DOUBLE THEN {low} WHEN {steps} > {high}::DOUBLE THEN {high} END"
    )
