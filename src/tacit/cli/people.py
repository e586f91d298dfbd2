"""Who the people of a table are, as commands are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.cli.exits import Misuse

if TYPE_CHECKING:
    from tacit.tables.schema import Person


def person_of(column: str | None, each_row: bool) -> Person:
    """A column, or each row; there is no default, because the promise is about people."""
    from tacit.tables.schema import EACH_ROW

    if (column is None) is not each_row:
        raise Misuse(
            "the promise is about people: say --person COLUMN, or --each-row if nobody has more "
            "than one row" + (", not both" if each_row else "")
        )
    return EACH_ROW if column is None else column
