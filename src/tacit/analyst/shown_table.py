"""A table in one line, and in a notebook: what is public about it, local or remote."""

from __future__ import annotations

from tacit.analyst.binding import person_text
from tacit.support import html_table
from tacit.tables.language.show import COLUMN_HEADS, declared_in_words
from tacit.tables.schema.schema import Schema


def in_one_line(schema: Schema, as_of: str | None, place: str | None = None) -> str:
    """Its name, label, people and columns; and where it is, if that is elsewhere."""
    columns = ", ".join(column.name for column in schema.columns)
    at = "" if place is None else f" at {place}"
    person = person_text(schema.person)
    cannot = "; ".join(f"{name}: {why}" for name, why in schema.cannot_ask)
    left = f"; cannot be asked: {cannot}" if cannot else ""
    return (
        f"<Table {schema.name!r}{at}{_label(as_of)}, one person: {person}; columns {columns}{left}>"
    )


def as_html(schema: Schema, as_of: str | None) -> str:
    """What is declared about each column."""
    title = f"{schema.name}{_label(as_of)}, one person: {person_text(schema.person)}"
    rows = [*map(declared_in_words, schema.columns)]
    rows += [(name, "cannot be asked", why) for name, why in schema.cannot_ask]
    return html_table(title, rows, COLUMN_HEADS)


def _label(as_of: str | None) -> str:
    return "" if as_of is None else f" as of {as_of}"
