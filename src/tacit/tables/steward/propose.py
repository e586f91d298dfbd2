"""Proposing a schema: for the steward, once, before anybody may ask questions.

Unlike everything else here, this looks at the data.  Types are written as they are; whatever was
found from values (grids, bounds, keys) is written as a comment, for the steward to replace by what
is publicly known.  If the source declares no types, as in CSV, the types were found from values,
too, and the proposal says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tacit.failures import passed_on
from tacit.numbers import decimal
from tacit.tables.schema.codes import Code, Type, own_grid, own_type
from tacit.tables.schema.declarations import quoted
from tacit.tables.schema.schema import EACH_ROW, Column, Schema, toml_list, toml_text
from tacit.tables.schema.text_format import AS_USUAL, TextFormat, format_lines
from tacit.tables.sources.declaring import unaskable
from tacit.tables.sources.delimited import DelimitedSource
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import is_no_null, normal_form, pointed, text_pattern
from tacit.tables.sources.source import Source
from tacit.tables.sources.spill import byte_limit
from tacit.tables.steward.sniffing import by_column, file_format, holding, value_format

MOST_PROPOSED_KEYS = 50
MOST_DIGITS = 6

NOTE = "# Note: "
_HEADER = """\
# A proposed schema.  Everything in this file is public.
# The commented lines were drawn from the data: uncomment one only after replacing its values
# by what is publicly known.  SUM needs bounds, a grid for reals, and a total for each person;
# COUNT(*) needs max_rows if people have several rows; GROUP BY needs keys, and max_cells if
# people lie in several cells.  The column that says whose row it is has no bounds.
# Remove the columns that nobody may ask about.
"""
_ALL_FOUND = """\
# The types were found from the values, too, since this source declares none.  Check each of them.
"""
_SOME_FOUND = """\
# So was the type of each column that says "found from the values".  Check these types.
"""
_WRITTEN = """
# How the file is written, found from its bytes and values.  Check each line.
"""

_CANNOT = """
# Columns that are there but cannot be asked about.
[cannot_ask]
"""
# Spaces that do not break, too, as office programs write them, and groups of two, as in India.
_NUMBER = (
    "[+-]?([0-9]{1,3}([ \u00a0\u202f,.''’][0-9]{3})+|[0-9]{1,2}(,[0-9]{2})*,[0-9]{3}|[0-9]+)"
    "([.,][0-9]+)?"
)
_LOOKS_LIKE_A_VALUE = re.compile(r"[+-]?[0-9][0-9.,:/ TZ+-]*|(?i:true|false|yes|no)")
_ZONE = 'zone = "Europe/Brussels"'
_MAX_ROWS = "# max_rows = 10\n"


def propose_schema(source: object, *, table: str | None = None) -> str:
    """A proposed schema for a source, as TOML, for the steward to check.

    Privacy: this shows statistics of the data.  It is not for analysts.
    """
    opened = open_source(
        source, table=table, memory_limit=byte_limit(None), written=file_format, guard=passed_on
    )
    try:
        return _proposed(opened)
    finally:
        opened.close()


@passed_on("looking at the data")
def _proposed(source: Source) -> str:
    source.fetch([name for name, kind in source.columns.items() if own_type(kind) is not None])
    return source.reading(lambda: _seen(source))


def _seen(source: Source) -> str:
    if isinstance(source, DelimitedSource):
        source.keep_parsed()
        source.written = value_format(source)
    types = _types(source)
    grids = _grids(source, [name for name, type_ in types.items() if type_ == "real"])
    columns = [
        Column(name, type_, grids.get(name, own_grid(source.columns[name])))
        for name, type_ in types.items()
    ]
    found = _ALL_FOUND if not source.typed else _SOME_FOUND if source.untyped else ""
    written = "".join("\n" + _written(source, column) for column in columns)
    cannot = "".join(f"{toml_text(name)} = {toml_text(why)}\n" for name, why in unaskable(source))
    notes = [] if source.typed else _notes(source, types)
    return (
        _HEADER
        + found
        + "".join(f"{NOTE}{note}\n" for note in notes)
        + _MAX_ROWS
        + _source(source.written)
        + written
        + (_CANNOT + cannot if cannot else "")
    )


def _notes(source: Source, types: Mapping[str, Type]) -> list[str]:
    """What a text file should not be like, and what to write instead."""
    notes = []
    measured = [name for name, type_ in types.items() if type_ != "text"]
    texts = {name: f"trim({quoted(name)})" for name in types if name not in measured}
    looks = measured and all(map(_LOOKS_LIKE_A_VALUE.fullmatch, measured))
    # Or else a name is one of the values below it.
    if looks or by_column(source, texts, "v = trim(name)", "count(*)"):
        notes.append(
            "the first line looks like a row, and would make it public as names of columns; if "
            "it is one, put a line of names above it:  sed -i '1i pid,town,age' FILE"
        )
    numbers = f"regexp_full_match(v, '{_NUMBER}')"
    hold = holding(source, texts, [numbers], is_no_null("v", source.written))
    notes += [
        f"column {toml_text(name)} holds numbers with thousands separators, or in several forms, "
        "and is read as text; write them without separators"
        for name in texts
        if hold[name]
    ]
    return notes


def _source(written: TextFormat) -> str:
    return "" if written == AS_USUAL else _WRITTEN + "\n".join(format_lines(written)) + "\n"


def _types(source: Source) -> dict[str, Type]:
    """The type of each column that can be declared; of text, the narrowest that all values have."""
    kinds: list[Type] = ["boolean", "integer", "real", "date", "timestamp"]
    tests = {text_pattern(kind, "v", source.written): kind for kind in reversed(kinds)}
    untyped = {
        name: f"trim({quoted(name)})" for name in source.columns if not source.is_typed(name)
    }
    hold = holding(source, untyped, [*tests], is_no_null("v", source.written))
    types: dict[str, Type] = {}
    for name, source_type in source.columns.items():
        fitting = {tests[test] for test in hold.get(name, ())}
        narrowest: Type = next((kind for kind in kinds if kind in fitting), "text")
        type_ = own_type(source_type) if source.is_typed(name) else narrowest
        if type_ is not None:
            types[name] = type_
    return types


def _grids(source: Source, names: Sequence[str]) -> dict[str, Fraction | None]:
    """The coarsest decimal grid that every value is on, if there is one, where none is declared."""
    read = {}
    for name in names:
        if own_grid(source.columns[name]) is None:
            value = f"CAST({quoted(name)} AS DOUBLE)"
            if not source.is_typed(name):
                text = pointed(f"trim({quoted(name)})", source.written)
                value = f"TRY_CAST({text} AS DOUBLE)"
            read[name] = value
    grids = {
        f"v = round(v, {digits})": Fraction(1, 10**digits) for digits in range(MOST_DIGITS + 1)
    }
    hold = holding(source, read, [*grids], "isfinite(v)")
    return {name: max((grids[test] for test in hold[name]), default=None) for name in read}


def _written(source: Source, column: Column) -> str:
    found = source.typed and not source.is_typed(column.name)
    type_ = f'type = "{column.type}"' + ("  # found from the values" if found else "")
    lines = [f"[columns.{toml_text(column.name)}]", type_]
    if column.type == "real":
        grid = "0.001" if column.grid is None else decimal(column.grid)
        given = own_grid(source.columns[column.name]) is not None
        lines.append(f'{"" if given else "# "}grid = "{grid}"')
    if column.type == "timestamp":
        lines.append("# its days and hours are those of UTC, unless: " + _ZONE)
    alone = Schema("table", EACH_ROW, (column,))
    form = normal_form(source, alone, {column.name})
    value = quoted(column.name)
    ordered = column.type in ("integer", "date", "timestamp") or column.grid is not None
    ends = source.connection.execute(f"SELECT min({value}), max({value}) FROM ({form})").fetchone()
    if ordered and ends and ends[0] is not None:
        lines.append(f"# bounds = {toml_list(column, ends)}")
    if column.type in ("text", "integer", "date"):
        rows = source.connection.execute(
            f"SELECT DISTINCT {value} AS v FROM ({form}) WHERE v IS NOT NULL "
            f"ORDER BY v LIMIT {MOST_PROPOSED_KEYS + 1}"
        ).fetchall()
        if 0 < len(rows) <= MOST_PROPOSED_KEYS:
            keys: tuple[Code, ...] = tuple(key for (key,) in rows)
            lines.append(f"# keys = {toml_list(column, keys)}")
    return "\n".join(lines) + "\n"
