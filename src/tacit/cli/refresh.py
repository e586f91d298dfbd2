"""``tacit refresh``: the next version of a table that is being served."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tacit.cli.exits import printable
from tacit.cli.options import Name
from tacit.cli.remote import ServerOptions


def refresh(
    table: Name,
    /,
    *,
    as_of: Annotated[str, Parameter(metavar="LABEL")],
    whole: bool = False,
    server: ServerOptions | None = None,
) -> None:
    r"""Make a server read the next version of a table, without a restart.

    The server reads the table from its configured source; you need a steward's
    token.  Streams continue, and questions in the meantime are answered from the
    previous version.  The label and the time are public: neither may depend on the
    data.

    For example:

        tacit refresh visits --as-of 2026-12-01 \
            --url https://clinic.example:8443 --token-file desk.token

    Parameters
    ----------
    table
        The table's name on the server.
    as_of
        The label of the next version, such as 2026-12-01; it must be new.
    whole
        Read all rows up to the label, even of a table that grows.
    server
        The server, and a steward's token.

    """
    with (server or ServerOptions()).connect() as clinic:
        found = clinic.refresh(table, as_of=as_of, whole=whole)
    print(printable(f"{found.name} is as of {found.as_of} now"))
