"""Tables that a steward has read anew: the label that each has now, also after a restart.

The server's file names the label under which a table is first opened.  When a steward refreshes the
table, the new label is noted in a file beside the tokens: the next start opens the table under that
one, for as long as the server's file says what it said.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import BadParameter, EngineFailed, TacitError
from tacit.server import messages
from tacit.server.owners_file import OwnersFile
from tacit.wire.forms import Json, string

if TYPE_CHECKING:
    from tacit.analyst.table import Table
    from tacit.server.config import ServedTable
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord

FORM = "tacit labels"


@dataclass(frozen=True, slots=True)
class NotedLabel:
    """The label of a table, in the place of the one in the server's file."""

    table: str
    as_of: str
    instead_of: str | None


def _read(fields: Json) -> NotedLabel:
    before = fields["instead_of"]
    table, as_of = string(fields["table"]), string(fields["as_of"])
    return NotedLabel(table, as_of, None if before is None else string(before))


def _unread(table: Table) -> EngineFailed:
    return EngineFailed(
        f"table {table.name!r} could not be read anew; it stays as it is, as of {table.as_of}",
        advice="see on the server's machine that its source is there and fits its schema",
    )


class LabelFile:
    """The labels of all tables that were refreshed."""

    def __init__(self, tokens: Path) -> None:
        """``tokens`` is the file of tokens, beside which this one lies."""
        path = tokens.with_name(f"{tokens.name.removesuffix('-tokens')}-labels")
        self._file = OwnersFile(path, form=FORM, called="labels", read=_read, write=asdict)

    def label(self, served: ServedTable) -> str | None:
        """The label under which a table is opened now."""
        for one in self._file.records:
            if one.table == served.name and one.instead_of == served.as_of:
                return one.as_of
        return served.as_of

    def note(self, served: ServedTable, as_of: str) -> None:
        """Note that a table has another label from now on."""
        with self._file.changing() as records:
            records[:] = [one for one in records if one.table != served.name]
            records.append(NotedLabel(served.name, as_of, served.as_of))


def refresh(service: Service, who: TokenRecord, asked: messages.RefreshOf) -> messages.TableFacts:
    """Read a table's next version; streams go on, and what is asked meanwhile is not held up.

    Asked twice, as by a client whose connection broke, it is done once.
    """
    from tacit.server.service import table_facts

    table = service.table(asked.table, who)
    if table.as_of != asked.as_of:
        try:
            table.refresh(as_of=asked.as_of, whole=asked.whole)
        except TacitError as error:
            if isinstance(error, BadParameter) and error.parameter in ("as_of", "whole"):
                raise
            raise _unread(table) from error  # whose words may name a path: for the log alone
    if service.labels is not None and table.as_of is not None:
        service.labels.note(service.served[asked.table], table.as_of)
    return table_facts(table)
