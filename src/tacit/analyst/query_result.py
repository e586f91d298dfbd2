"""The result of a query: noisy aggregates of every cell, and how far each may be off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

from tacit.analyst.query_columns import (
    AnyColumn,
    QuantileColumn,
    QueryColumn,
    StreamColumn,
    column_from_json,
    lengths_of,
)
from tacit.analyst.tabular import (
    Tabular,
    covers_as_json,
    load_json,
    notes_as_json,
    notes_from_json,
    of_one_type,
    plain_value,
    save_json,
    with_facts,
    with_intervals,
    with_since,
)
from tacit.arguments import text
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.errors import BadParameter
from tacit.numbers import as_given, four_digits_up, is_decimal, spaced, whole
from tacit.privacy import Privacy
from tacit.support import html_cell, html_row, not_the_rest, with_notes
from tacit.tables.language.keys import KeySet
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import EACH_ROW, Schema, read_schema, row_bound, write_schema

_VERSION = 1
_MOST_SHOWN = 40
_SHORT = 10**6  # a decimal that is no longer is shown as it is


@dataclass(frozen=True, slots=True)
class Halt:
    """How many cells HAVING may tell, and how many were answered before it had told so many."""

    at_most: int
    answered: int

    def __post_init__(self) -> None:
        if not whole(self.at_most, "at_most") >= 1 or not whole(self.answered, "answered") >= 1:
            raise ValueError

    def as_json(self) -> dict[str, int]:
        """Both numbers."""
        return {"at_most": self.at_most, "answered": self.answered}


@dataclass(frozen=True, repr=False)
class QueryResult(Recordable, Tabular):
    """A row for each cell of the declared keys, in their order: its keys, and noisy aggregates.

    All of it was paid for and is public: it may be printed, saved and published.
    """

    schema: Schema
    query: str
    keys: KeySet
    columns: tuple[AnyColumn, ...]
    privacy: Privacy
    max_cells: int
    places: tuple[int, ...] | None = None
    """Which cells are told, in the order in which they were drawn; None if all are."""
    having: Halt | None = None
    """When HAVING stopped; None without one."""
    notes: tuple[str, ...] = ()
    """What may be a mistake in what was asked: a value that is no declared key."""
    recorded: Recorded | None = field(default=None, compare=False)
    """If it was told again and is about an older label: since when, and which."""

    def __len__(self) -> int:
        return self.keys.cells if self.places is None else len(self.places)

    @cached_property
    def cells(self) -> tuple[tuple[Code, ...], ...]:
        """The cells, as codes; one without keys if there is no GROUP BY."""
        if self.places is None:
            return tuple(self.keys.listed())
        return tuple(map(self.keys.codes, self.places))

    @property
    def halted(self) -> bool:
        """Whether HAVING has told as many cells as it may, so that those after are unanswered."""
        return self.having is not None and len(self) == self.having.at_most

    @cached_property
    def unanswered(self) -> list[dict[str, Any]]:
        """The cells after HAVING had told as many as it may, by their keys: they may be above."""
        if self.having is None:
            return []
        left = range(self.having.answered, self.keys.cells)
        return [self._named(cell) for cell in self.keys.listed(left)]

    def _named(self, cell: tuple[Code, ...]) -> dict[str, Any]:
        pairs = zip(self.keys, cell, strict=True)
        return {key.name: plain_value(key.gives, code) for key, code in pairs}

    def column(self, name: str) -> AnyColumn:
        """An aggregate by its name."""
        text(name, "name", "give the name of an aggregate")
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(column.name for column in self.columns)
        raise BadParameter("name", as_given(name), f"this query has {names}")

    # Other forms --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """The keys, each aggregate and its error, between what it lies, and what that covers."""
        shown = self._keys(len(self))
        for column in self.columns:
            ranked = isinstance(column, QuantileColumn)
            name = f"{column.name}_rank_error" if ranked else f"{column.name}_error"
            shown[column.name] = of_one_type(column.values)
            shown[name] = of_one_type(column.errors())
        known = [each for each in self.columns if not isinstance(each, QuantileColumn)]
        shown = with_intervals(shown, {each.name: each.intervals() for each in known})
        return with_facts(shown, self.covers, self.recorded)

    def _keys(self, most: int) -> dict[str, list[Any]]:
        return {
            key.name: [plain_value(key.gives, cell[place]) for cell in self.cells[:most]]
            for place, key in enumerate(self.keys)
        }

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `query_from_json` is the inverse."""
        person = self.schema.person
        drawn: dict[str, Any] = {} if self.places is None else {"places": list(self.places)}
        drawn |= {} if self.having is None else {"having": self.having.as_json()}
        drawn |= {} if self.privacy.delta == 0 else {"delta": str(self.privacy.delta)}
        return {
            "tacit query": _VERSION,
            "table": self.schema.name,
            "person": person if isinstance(person, str) else None,
            "schema": write_schema(self.schema),
            "query": self.query,
            "keys": self.keys.as_json(),
            "cells": [list(cell) for cell in self.cells],
            "columns": [column.as_json() for column in self.columns],
            "epsilon": str(self.privacy.epsilon),
            "max_cells": self.max_cells,
            **drawn,
            **covers_as_json(self.covers),
            **notes_as_json(self.notes),
            **recorded_as_json(self.recorded),
        }

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file, which `load_query` reads."""
        save_json(self.as_json(), path)

    def __repr__(self) -> str:
        return f"<QueryResult: {self._summary()}>"

    @property
    def covers(self) -> str:
        """How much of each person the errors are about, in words; nothing if it is all of them."""
        chosen = any(not isinstance(column, StreamColumn) for column in self.columns)
        counted = [  # a stream looks at all cells of a person
            counted_cells(self.schema, self.max_cells, len(self)) if chosen else "",
            counted_rows((column.name, column.max_rows) for column in self.columns),
        ]
        counted += [
            counted_keys(each.name, each.max_keys)
            for each in self.columns
            if isinstance(each, QueryColumn)
        ]
        return not_the_rest("".join(counted).removeprefix("; "))

    def _summary(self) -> str:
        rows = f"{len(self)} row" + "s" * (len(self) != 1)
        one = len(self) == 1
        if self.having is not None:
            rows = f"{len(self)} cell{'s' * (not one)} that HAVING found above"
        elif self.places is not None:
            rows = (
                f"{len(self)} {'cell that was' if one else 'cells that were'} drawn as the largest"
            )
        told = [f"; {self.covers}"] if self.covers else []
        told += [each.said for each in self.columns if isinstance(each, QuantileColumn)]
        said = f"{rows}, {self.privacy}{''.join(told)}{self._not_answered}"
        return with_notes(with_since(said, self.recorded), self.notes)

    @property
    def _not_answered(self) -> str:
        """Which cells are unanswered, in words; nothing if all were answered."""
        every = self.keys.cells
        if self.having is None or self.having.answered == every:
            return ""
        first = self.keys.codes(self.having.answered)
        pairs = zip(self.keys, first, strict=True)
        place = ", ".join(f"{key.name} = {key.gives.literal(code)}" for key, code in pairs)
        return (
            f"; HAVING stopped after {len(self)}: {every - self.having.answered} of {every} "
            f"cells are unanswered, from {place} on"
        )

    def _lines(self) -> list[list[str]]:
        shown = [[name, *map(str, values)] for name, values in self._keys(_MOST_SHOWN).items()]
        for column in self.columns:
            pairs = zip(column.values[:_MOST_SHOWN], column.errors(), strict=False)
            unit = " ranks" if isinstance(column, QuantileColumn) else ""
            cells = [f"{with_error(value, error)}{unit}" for value, error in pairs]
            shown.append([column.name, *cells])
        return [list(line) for line in zip(*shown, strict=True)]

    def _under(self) -> str:
        left = len(self) - _MOST_SHOWN
        more = f"... and {left} more: see to_dict(). " if left > 0 else ""
        return f"{more}± at 95 % each; {self._summary()}"

    def __str__(self) -> str:
        lines, keys = self._lines(), len(self.keys)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join(
                text.ljust(width) if place < keys else text.rjust(width)
                for place, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*shown, self._under()])

    def _repr_html_(self) -> str:
        head, *body = self._lines()
        rows = [html_row(*(html_cell(text, "th", align="left") for text in head))]
        rows += [html_row(*(html_cell(text, align="left") for text in line)) for line in body]
        return f"<table>{''.join(rows)}</table><p>{escape(self._under())}</p>"


def with_error(value: Any, error: Fraction) -> str:
    """A number and its error; if they are no short decimals, in digits that the error is worth."""
    if not isinstance(value, Fraction):  # a date
        return f"{value} ± {spaced(error)}"
    if all(is_decimal(one) and (one * _SHORT).denominator == 1 for one in (value, error)):
        return f"{spaced(value)} ± {spaced(error)}"
    digits = max(0, 2 - floor(log10(error))) if error else 6
    return f"{spaced(round(value, digits))} ± {four_digits_up(error)}"


def counted_cells(schema: Schema, max_cells: int, cells: int) -> str:
    """In how many cells each person counts, in words; nothing if there is no choice."""
    if schema.person is EACH_ROW or max_cells >= cells:
        return ""
    counted = "1 cell" if max_cells == 1 else f"up to {max_cells} cells"
    return f"; each person counts in {counted}, chosen at random"


def counted_rows(most: Iterable[tuple[str, int | None]]) -> str:
    """How many rows of a person each aggregate counts, in words; nothing if it counts no rows."""
    alike: dict[int, list[str]] = {}
    for name, max_rows in most:
        if max_rows is not None:
            alike.setdefault(max_rows, []).append(name)
    told = ""
    for max_rows, names in alike.items():
        rows = "1 row" if max_rows == 1 else f"up to {max_rows} rows"
        told += f"; {', '.join(names)}: {rows} of each person in a cell"
    return told


def counted_keys(name: str, max_keys: int | None) -> str:
    """For how many distinct keys a person counts, in words; nothing for other aggregates."""
    if max_keys is None:
        return ""
    values = "1 value" if max_keys == 1 else f"up to {max_keys} values"
    return f"; {name}: each person counts for {values}, chosen at random"


def load_query(path: str | Path) -> QueryResult:
    """Read a saved result; a file that is not a complete one is refused."""
    return load_json(path, query_from_json, "the result of a query")


def query_from_json(fields: Any) -> QueryResult:
    """The inverse of `QueryResult.as_json`; other JSON raises one of many kinds of errors."""
    table, person, query = fields["table"], fields["person"], fields["query"]
    named = (table, query, "" if person is None else person)
    if fields["tacit query"] != _VERSION or not all(isinstance(each, str) for each in named):
        raise ValueError
    schema = read_schema(
        fields["schema"], name=table, person=EACH_ROW if person is None else person
    )
    keys = KeySet.from_json(fields["keys"], schema)
    columns = tuple(column_from_json(each, schema) for each in fields["columns"])
    privacy = Privacy(fields["epsilon"], fields.get("delta", 0))
    most = row_bound(fields["max_cells"], "max_cells")
    having = Halt(**fields["having"]) if "having" in fields else None
    result = QueryResult(
        schema,
        query,
        keys,
        columns,
        privacy=privacy,
        max_cells=most,
        places=_places(fields),
        having=having,
        notes=notes_from_json(fields),
        recorded=recorded_from_json(fields),
    )
    if len(result) != len(fields["cells"]) or not (columns or having):
        raise ValueError
    if [list(cell) for cell in result.cells] != fields["cells"]:
        raise ValueError
    if having is not None:
        _check_halt(result, having)
    if any(lengths_of(column) != {len(result)} for column in columns):
        raise ValueError
    return result


def _check_halt(result: QueryResult, having: Halt) -> None:
    """Cells are told in their order, and all are answered unless as many are told as may be."""
    places, cells = result.places or (), result.keys.cells
    inside = list(places) == sorted(places) and all(place < having.answered for place in places)
    if not inside or not len(places) <= having.at_most <= cells:
        raise ValueError
    stopped = len(places) == having.at_most and places[-1] == having.answered - 1
    if having.answered != cells and not (stopped and having.answered < cells):
        raise ValueError


def _places(fields: Any) -> tuple[int, ...] | None:
    """Which cells were drawn, if that is what was asked for; each of them once."""
    places = fields.get("places")
    if places is None:
        return None
    if not all(type(place) is int and place >= 0 for place in places):
        raise TypeError
    if len(set(places)) != len(places):
        raise ValueError
    return tuple(places)
