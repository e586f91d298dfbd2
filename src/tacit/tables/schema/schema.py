"""What a table looks like to an analyst: its columns, its people, and what is public about it.

A schema is a small TOML file beside the data, written by the steward::

    max_rows = 20                     # COUNT(*): at most 20 rows of each person count
    max_cells = 3                     # GROUP BY: each person counts in at most 3 cells

    [columns.age]
    type = "integer"
    bounds = [0, 120]                 # values outside are clamped to the nearest end

    [columns.cost]
    type = "real"
    grid = "0.01"                     # values are rounded to cents
    bounds = [0, 5000]                # of one row
    total = [0, 20000]                # of one person, for SUM

    [columns.town]
    type = "text"
    keys = ["Bruges", "Ghent"]        # the cells of GROUP BY

    [columns.at]
    type = "timestamp"
    zone = "Europe/Brussels"          # days and hours are those of this zone

    [source]                          # how a text file is written: see ``text_format``
    delimiter = ";"

    [cannot_ask]                      # columns that are there, and why nobody can ask about them
    tags = "a list"

Everything in it is public.  Tacit itself never reads any of it from the data.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Literal

from tacit.arguments import instance, kind_of
from tacit.arguments import text as is_text
from tacit.errors import BadParameter, SchemaMismatch
from tacit.numbers import as_given, decimal, exact, whole
from tacit.tables.schema.codes import NUMBERS, TYPES, Code, Type, Unfit, has_offset, literal, widest
from tacit.tables.schema.codes import place as place_of
from tacit.tables.schema.declarations import (
    MOST_KEYS,
    check_bounds,
    check_keys,
    check_name,
    check_total,
    checked_grid,
    folded,
    may_have_bounds,
)
from tacit.tables.schema.text_format import AS_USUAL, TextFormat, format_lines, read_format
from tacit.tables.schema.zones import checked_zone, offsets


class EachRow(Enum):
    """The steward's statement that every row is a different person."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        return "tacit.EACH_ROW"


EACH_ROW: Final = EachRow.EACH_ROW
"""Give ``person=tacit.EACH_ROW`` if nobody has more than one row."""

Person = str | EachRow

Times = Literal["utc", "local"]

_CANNOT_HELP = 'name each such column with the reason, as in tags = "a list"'
PERSON_HELP = "name the column that says whose row it is, or give tacit.EACH_ROW"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, and what is declared about it, in codes.

    Privacy: sensitivity follows from bounds and totals, so a column that contradicts itself
    cannot be built.
    """

    name: str
    type: Type
    grid: Fraction | None = None
    bounds: tuple[int, int] | None = None
    total: tuple[int, int] | None = None
    keys: tuple[Code, ...] | None = None
    zone: str | None = None
    """Whose days and hours these are; then codes are wall-clock times of that zone."""
    times: Times = "utc"
    """What times without an offset are in the data, where there is a zone."""
    stored: str | None = field(default=None, repr=False, compare=False)
    """How the data held it when the table was opened, which nobody declares; see `stored_as`."""
    range: tuple[int, int] = field(init=False, repr=False, compare=False)
    """The codes that the column can hold: those within its bounds, or all codes of its type."""

    def __post_init__(self) -> None:
        check_name("columns", self.name)
        where = f"columns.{self.name}"
        if not isinstance(self.type, str) or self.type not in TYPES:
            raise BadParameter(
                f"{where}.type", as_given(self.type), f"it must be one of {', '.join(TYPES)}"
            )
        object.__setattr__(self, "grid", checked_grid(f"{where}.grid", self.type, self.grid))
        can_hold = widest(self.type, self.grid)
        if self.bounds is not None:
            check_bounds(f"{where}.bounds", self.type, self.grid, self.bounds)
            can_hold = self.bounds
        object.__setattr__(self, "range", can_hold)
        if self.total is not None:
            check_total(f"{where}.total", self.type, self.bounds, self.total)
        if self.keys is not None:
            check_keys(f"{where}.keys", self.type, can_hold, self.keys)
        self._check_zone(where)

    def _check_zone(self, where: str) -> None:
        if self.zone is not None:
            if self.type not in ("date", "timestamp"):
                only = "only a date or timestamp column has a zone: remove it"
                raise BadParameter(f"{where}.zone", as_given(self.zone), only)
            checked_zone(f"{where}.zone", self.zone)
        known = isinstance(self.times, str) and self.times in ("utc", "local")
        if not known or (self.zone is None and self.times != "utc"):
            raise BadParameter(
                f"{where}.times",
                as_given(self.times),
                'give "utc" (the default) or "local", beside the zone of the column',
            )

    @property
    def step(self) -> Fraction:
        """What one step of a number's code is worth."""
        return self.grid if self.grid is not None else Fraction(1)

    def place(self, value: object) -> Fraction | int | str:
        """The place of a value on the line of codes; raises Unfit."""
        found = place_of(self.type, self.grid, value)
        if self.zone is not None and isinstance(found, int) and has_offset(value):
            return found + offsets(self.zone).offset(found)
        return found

    def code(self, value: object) -> Code:
        """The code of a value; raises Unfit if the column cannot hold it."""
        found = self.place(value)
        if isinstance(found, Fraction):
            if found.denominator != 1:
                raise Unfit("it is not a whole number of grid steps")
            found = found.numerator
        if isinstance(found, int):
            low, high = self.range
            if not low <= found <= high:
                raise Unfit("it lies outside the bounds of the column")
        return found

    def literal(self, code: Code) -> str:
        """The value of a code as an analyst would write it."""
        return literal(self.type, self.grid, code)

    @property
    def cells(self) -> tuple[Code, ...] | None:
        """The values of GROUP BY in order; those of a boolean need not be declared."""
        return (0, 1) if self.keys is None and self.type == "boolean" else self.keys

    @property
    def domain(self) -> Sequence[Code] | None:
        """The declared values in order: the keys, or all within the bounds; None without either.

        Use `domain_size` for its size: ``len`` fails for the range of a very wide column.
        """
        if self.cells is not None or self.bounds is None:
            return self.cells
        low, high = self.bounds
        return range(low, high + 1)

    @property
    def domain_size(self) -> int | None:
        """How many values the domain has."""
        domain = self.domain
        if isinstance(domain, range):
            return domain.stop - domain.start
        return None if domain is None else len(domain)


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's name, who its people are, and its columns.

    Privacy: ``max_rows`` is the sensitivity of COUNT(*), and ``max_cells`` the number of cells of a
    GROUP BY in which one person counts.  Both are checked here, however the schema was made.
    """

    name: str
    person: Person
    columns: tuple[Column, ...]
    max_rows: int | None = None
    max_cells: int | None = None
    written: TextFormat = AS_USUAL
    """How the source is written, if it is a text file."""
    cannot_ask: tuple[tuple[str, str], ...] = ()
    """Columns of the source that cannot be asked about, each with the reason."""
    beside: tuple[Schema, ...] = ()
    """Other tables of the same people, which questions about this one may name."""
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)
    _digest: str | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if not isinstance(self.person, str | EachRow):
            raise BadParameter("person", kind_of(self.person), PERSON_HELP)
        if not isinstance(self.columns, tuple) or not self.columns:
            raise BadParameter("columns", kind_of(self.columns), "give a tuple of columns")
        if self.max_rows is not None:
            object.__setattr__(self, "max_rows", row_bound(self.max_rows))
        if self.max_cells is not None:
            object.__setattr__(self, "max_cells", row_bound(self.max_cells, "max_cells"))
        if not isinstance(self.beside, tuple) or not all(
            isinstance(other, Schema) for other in self.beside
        ):
            raise BadParameter("beside", kind_of(self.beside), "give a tuple of schemas")
        by_name: dict[str, Column] = {}
        for column in self.columns:
            if not isinstance(column, Column):
                raise BadParameter("columns", kind_of(column), "each of them must be a Column")
            if (other := by_name.get(folded(column.name))) is not None:
                raise BadParameter(
                    f"columns.{column.name}",
                    column.name,
                    f"SQL cannot tell it from {other.name!r}: names must differ in more than case",
                )
            by_name[folded(column.name)] = column
        object.__setattr__(self, "_by_name", by_name)
        self._check_rest()
        if isinstance(self.person, str):
            self._check_person(self.person)

    def _check_rest(self) -> None:
        """Check how the source is written, and what cannot be asked."""
        instance(self.written, "written", TextFormat, "give a TextFormat")
        for entry in instance(self.cannot_ask, "cannot_ask", tuple, _CANNOT_HELP):
            name, reason = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
            if not isinstance(name, str) or not isinstance(reason, str) or not reason:
                raise BadParameter("cannot_ask", as_given(name), _CANNOT_HELP)
            if folded(name) in self._by_name:
                clash = "it is declared as a column, too: remove one of the two"
                raise BadParameter(f"cannot_ask.{name}", name, clash)

    def why_not(self, name: str) -> str | None:
        """Why a column of this name cannot be asked about, if it is one of those."""
        asked = folded(is_text(name, "name", "give a column's name"))
        return next((why for each, why in self.cannot_ask if folded(each) == asked), None)

    def _check_person(self, person: str) -> None:
        column = self.find(person)
        if column is None:
            raise SchemaMismatch(
                f"the person column {person!r} is not declared: "
                "add it to the schema as integer or text"
            )
        if column.type not in ("integer", "text") or column.bounds is not None:
            # Rounding or clamping would merge people, and a merged pair can move a clamped
            # total by more than either of them could alone.
            raise SchemaMismatch(
                f"the person column {column.name!r} must be integer or text, without bounds: "
                "correct it in the schema"
            )
        object.__setattr__(self, "person", column.name)

    def __str__(self) -> str:
        """As TOML, in the units in which it is declared."""
        return write_schema(self)

    def find(self, name: str) -> Column | None:
        """The column with this name, whatever its case."""
        return self._by_name.get(folded(is_text(name, "name", "give a column's name")))

    def column(self, name: str) -> Column:
        """The column with this name, which must exist."""
        found = self.find(name)
        if found is None:
            raise BadParameter("name", as_given(name), f"{self.name} has no such column")
        return found

    def table(self, name: str) -> Schema:
        """The schema of this table or of one beside it, which must exist."""
        for schema in (self, *self.beside):
            if folded(schema.name) == folded(is_text(name, "name", "give a table's name")):
                return schema
        raise BadParameter("name", as_given(name), f"there is no such table beside {self.name}")

    @property
    def digest(self) -> str:
        """A hash of everything declared about the columns, whatever their order.

        The table's name and its person column are not part of it, so that an error can say which
        of them differs; nor is ``max_cells``, which no stream's promise depends on.  It is computed
        once, since there may be a million keys and it is needed whenever a stream is opened.
        """
        if self._digest is None:
            object.__setattr__(self, "_digest", self._computed_digest())
        assert self._digest is not None
        return self._digest

    def _computed_digest(self) -> str:
        columns = {
            column.name: [
                column.type,
                str(column.grid),
                column.bounds,
                column.total,
                None if column.keys is None else list(column.keys),
                *([] if column.zone is None else [column.zone, column.times]),
            ]
            for column in self.columns
        }
        text = json.dumps({"columns": columns, "max_rows": self.max_rows}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def read_schema(text: str, *, name: str, person: Person) -> Schema:
    """Read a schema from TOML; an error names the entry that is wrong."""
    try:
        declared = tomllib.loads(
            is_text(text, "text", "give a schema as TOML"), parse_float=Decimal
        )
    except tomllib.TOMLDecodeError as error:
        raise BadParameter("schema", "this TOML", f"it is not valid: {error}") from None
    _known("schema", declared, {"columns", "max_rows", "max_cells", "source", "cannot_ask"})
    columns = declared.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise BadParameter("columns", columns, "declare each column, as in [columns.age]")
    cannot = declared.get("cannot_ask", {})
    return Schema(
        name=name,
        person=person,
        columns=tuple(_column(key, value) for key, value in columns.items()),
        max_rows=declared.get("max_rows"),
        max_cells=declared.get("max_cells"),
        written=read_format(declared.get("source", {})),
        cannot_ask=tuple(instance(cannot, "cannot_ask", dict, _CANNOT_HELP).items()),
    )


def row_bound(value: object, parameter: str = "max_rows") -> int:
    """How many rows of one person count, or cells in which they do."""
    most = whole(value, parameter)
    if most > 10**9:
        raise BadParameter(parameter, most, "it must be at most 1 000 000 000")
    return most


def most_cells(schema: Schema, max_cells: int | None = None) -> int | None:
    """In how many cells of a GROUP BY a person counts: as asked, or as the schema says.

    A single row lies in a single cell, so a schema that declares one row of each person has said
    it, too.  There is no other default.

    Privacy: it is public, and whoever lies in more cells counts only in so many.
    """
    given = None if max_cells is None else row_bound(max_cells, "max_cells")
    if schema.person is EACH_ROW:
        return 1
    declared = 1 if schema.max_cells is None and schema.max_rows == 1 else schema.max_cells
    return declared if given is None else given


def _known(where: str, entries: Mapping[str, Any], known: set[str]) -> None:
    for key in entries:
        if key not in known:
            raise BadParameter(
                f"{where}.{key}",
                as_given(entries[key]),
                f"there is no such entry; known are {', '.join(sorted(known))}",
            )


def _column(name: str, entries: object) -> Column:
    """A column from its TOML: values become codes here, and Column checks them."""
    where = f"columns.{name}"
    if not isinstance(entries, dict):
        raise BadParameter(where, entries, 'write a table such as [columns.age] type = "integer"')
    _known(where, entries, {"type", "grid", "bounds", "total", "keys", "zone", "times"})
    zone, times = entries.get("zone"), entries.get("times", "utc")
    bare = Column(name, entries.get("type"), entries.get("grid"), zone=zone, times=times)  # type: ignore[arg-type]
    if entries.get("bounds") is not None:
        bare = replace(bare, bounds=_bounds(f"{where}.bounds", bare, entries["bounds"]))
    if entries.get("total") is not None:
        bare = replace(bare, total=total_steps(bare, entries["total"], f"{where}.total"))
    if entries.get("keys") is not None:
        bare = replace(bare, keys=_keys(f"{where}.keys", bare, entries["keys"]))
    return bare


def _bounds(where: str, column: Column, value: object) -> tuple[int, int]:
    may_have_bounds(where, column.type, column.grid, value)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadParameter(where, value, "give the least and the greatest value, as in [0, 120]")
    number = column.type in NUMBERS  # which may be in quotes, as the grid may be
    ends = [exact(end, where) if number and isinstance(end, str) else end for end in value]
    low, high = (_code(where, column, end) for end in ends)
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high


def total_steps(column: Column, value: object, where: str = "total") -> tuple[int, int]:
    """The declared bounds of one person's total, in steps of the column's grid."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadParameter(where, value, "give the least and the greatest total, as in [0, 20000]")
    low, high = (exact(end, where) / column.step for end in value)
    if low.denominator != 1 or high.denominator != 1 or low > high:
        raise BadParameter(where, value, "give two values on the grid of the column, in order")
    steps = low.numerator, high.numerator
    check_total(where, column.type, column.bounds, steps)
    return steps


def _keys(where: str, column: Column, value: object) -> tuple[Code, ...]:
    if isinstance(value, dict):
        return _key_range(where, column, value)
    if not isinstance(value, list | tuple) or not 0 < len(value) <= MOST_KEYS:
        raise BadParameter(where, as_given(value), "list the key values, as in ['Bruges', 'Ghent']")
    return tuple(_code(where, column, entry) for entry in value)


def _key_range(where: str, column: Column, value: Mapping[str, object]) -> tuple[Code, ...]:
    if column.type not in ("integer", "date") or set(value) != {"from", "to"}:
        raise BadParameter(
            where,
            as_given(value),
            "{from = ..., to = ...} is for whole numbers and dates; otherwise list the key values",
        )
    low, high = (_code(where, column, value[end]) for end in ("from", "to"))
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        raise BadParameter(where, as_given(value), "'from' must not exceed 'to'")
    if high - low >= MOST_KEYS:
        raise BadParameter(where, as_given(value), f"it must have at most {MOST_KEYS} key values")
    return tuple(range(low, high + 1))


def _code(where: str, column: Column, value: object) -> Code:
    try:
        return column.code(value)
    except Unfit as problem:
        raise BadParameter(
            where, as_given(value), f"{column.name} cannot hold it: {problem}"
        ) from None


def write_schema(schema: Schema) -> str:
    """A schema as TOML, from which `read_schema` gives the same schema."""
    instance(schema, "schema", Schema, "give a Schema")
    bounds = {"max_rows": schema.max_rows, "max_cells": schema.max_cells}
    lines = [f"{name} = {most}" for name, most in bounds.items() if most is not None]
    lines += [""] if lines else []
    for column in schema.columns:
        lines += [f"[columns.{toml_text(column.name)}]", f'type = "{column.type}"']
        if column.grid is not None:
            lines.append(f'grid = "{decimal(column.grid)}"')
        if column.bounds is not None:
            lines.append(f"bounds = {toml_list(column, column.bounds)}")
        if column.total is not None:
            lines.append(f"total = {toml_list(column, column.total)}")
        if column.keys is not None:
            lines.append(f"keys = {toml_list(column, column.keys)}")
        if column.zone is not None:
            lines.append(f"zone = {toml_text(column.zone)}")
            lines += ['times = "local"'] if column.times == "local" else []
        lines.append("")
    lines += [*format_lines(schema.written), ""] if schema.written != AS_USUAL else []
    if schema.cannot_ask:
        reasons = [f"{toml_text(name)} = {toml_text(why)}" for name, why in schema.cannot_ask]
        lines += ["[cannot_ask]", *reasons, ""]
    return "\n".join(lines)


def toml_list(column: Column, codes: tuple[Code, ...]) -> str:
    """Values of a column as a TOML list."""
    return "[" + ", ".join(_toml(column, code) for code in codes) + "]"


def toml_text(text: str) -> str:
    """Text as a TOML string: TOML has JSON's escapes, and other letters stand for themselves."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(column: Column, code: Code) -> str:
    if isinstance(code, str):
        return toml_text(code)
    text = column.literal(code)
    return '"' + text[1:-1] + '"' if text.startswith("'") else text
