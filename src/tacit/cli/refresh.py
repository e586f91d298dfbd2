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
    r"""Let a server read the next version of a table, without a restart.

    It reads where its own file says, with a steward's token.  Streams go on, and what
    is asked meanwhile is answered from the version before.  The label is public: it
    and the moment must not depend on the data.

    For example:

        tacit refresh visits --as-of 2026-12-01 \
            --url https://clinic.example:8443 --token-file desk.token

    Parameters
    ----------
    table
        The table, as the server calls it.
    as_of
        The label of the next version, such as 2026-12-01; one that it never had.
    whole
        Read all rows up to the label, also of a table that grows.
    server
        The server, and a steward's token.

    """
    with (server or ServerOptions()).connect() as clinic:
        found = clinic.refresh(table, as_of=as_of, whole=whole)
    print(printable(f"{found.name} is as of {found.as_of} now"))
