"""One name, one kind of people: a budget ties a table to its person column at first use.

A promise is about people, and a table says who they are.  If one name stood for two readings of
that, one person's rows could count as many people, and what was charged would not cover them.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.budget.ledger import TableIdentity, Writer
from tacit.errors import TableMismatch


def tie(writer: Writer, table: str, identity: TableIdentity, because: str) -> None:
    """Note it, and that it was noted."""
    writer.put_tie(table, identity)
    writer.append("tie", {"table": table, **identity.as_json(), "because": because})


def keep_tied(writer: Writer, table: str, identity: TableIdentity | None) -> None:
    """Tie a table that is used for the first time, and refuse one that has other people.

    Whoever charges by hand says nothing of the table, and ties nothing.
    """
    if identity is None:
        return
    tied = writer.tie(table)
    if tied is None:
        tie(writer, table, identity, "first use")
    elif not identity.fits(tied):
        raise TableMismatch(
            f"this budget knows the people of {table!r} by {tied}, and this table tells them by "
            f"{identity}: one name, two kinds of people. Nothing was spent",
            advice=f"open it as before, or, if the same people are meant, budget.tie({table!r}, "
            "table.identity)",
        )
    elif tied.type is None and identity.type is not None:
        tie(writer, table, replace(tied, type=identity.type), "first use of the type")
