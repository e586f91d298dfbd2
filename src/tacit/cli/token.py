"""``tacit token``: who may ask a server for what."""

from __future__ import annotations

from typing import Literal

from tacit.cli.exits import printable, say
from tacit.cli.options import File, Label, Name, Names, Number


def add(
    name: Name,
    /,
    *,
    config: File,
    role: Literal["analyst", "steward", "viewer"] = "analyst",
    analyst: Name | None = None,
    share: Number | None = None,
    delta: Number | None = None,
    tables: Names | None = None,
    expires: Label | None = None,
) -> None:
    r"""Make a token and show it once.

    An analyst draws from their own share of the budget and from nothing else;
    --share sets it aside, or sets it to a new size.  A steward sees everything that
    is public, and the tokens' names; a viewer sees what was released.

    For example:

        tacit token add ana --share 1/2 --config clinic/tacit.toml
        tacit token add watch --role steward --config clinic/tacit.toml
        tacit token add ben --tables visits --expires 2027-01-31 \
            --config clinic/tacit.toml

    Parameters
    ----------
    name
        The token's name, in the log and in lists.
    config
        The server's TOML file.
    role
        What it is for.
    analyst
        From whose share it draws; by default that of its own name.
    share
        The ε to set aside for that analyst now.
    delta
        The δ that goes with it.
    tables
        The tables it may ask about; by default all that are served.
    expires
        The day or the moment, in UTC, when it expires.

    """
    from tacit.cli.exits import Misuse
    from tacit.server.config import read_config
    from tacit.server.tokens import TokenFile, checked_expiry

    served = read_config(config)
    names = {table.name for table in served.tables}
    if unknown := set(tables or ()) - names:
        raise Misuse(
            f"--tables {', '.join(sorted(unknown))}: the server has {', '.join(sorted(names))}"
        )
    if role != "analyst" and (analyst, share, delta) != (None, None, None):
        raise Misuse(f"--analyst, --share and --delta are for analysts, and the role is {role}")
    if delta is not None and share is None:
        raise Misuse("--delta goes with --share")
    if expires is not None:
        checked_expiry(expires)
    file = TokenFile(served.tokens)
    file.check_name(name)  # before anything changes
    draws_from = (analyst or name) if role == "analyst" else None
    if share is not None and draws_from is not None:
        _set_aside(served.budget, draws_from, share, delta)
    token = file.add(name, role=role, tables=tables, share=draws_from, expires=expires)
    say(f"token for {name}, shown once:")
    print(token)


def _set_aside(place: str, analyst: str, epsilon: str, delta: str | None) -> None:
    from tacit.budget import Budget

    with Budget.open(place) as budget:
        share = budget.share(analyst, epsilon=epsilon, delta=delta)
    say(f"{analyst} has {share.limit}, of which {share.left} is left")


def list(*, config: File) -> None:  # noqa: A001 - as the command is called
    """List the tokens: names, roles, tables and expiries.

    For example:

        tacit token list --config clinic/tacit.toml

    Parameters
    ----------
    config
        The server's TOML file.

    """
    from tacit.server.config import read_config
    from tacit.server.tokens import TokenFile, utc_now

    now = utc_now()
    for one in TokenFile(read_config(config).tokens).records:
        tables = "all tables" if one.tables is None else ", ".join(one.tables)
        share = "" if one.share is None else f", draws from the share of {one.share}"
        until = "" if one.expires is None else f", until {one.expires}"
        status = one.status(now)
        print(printable(f"{one.name}: {one.role}, {status}, {tables}{share}{until}"))


def revoke(name: Name, /, *, config: File) -> None:
    """Disable a token from now on, without restarting the server.

    For example:

        tacit token revoke ana --config clinic/tacit.toml

    Parameters
    ----------
    name
        The token's name.
    config
        The server's TOML file.

    """
    from tacit.server.config import read_config
    from tacit.server.tokens import TokenFile

    TokenFile(read_config(config).tokens).revoke(name)
    print(f"the token {printable(name)} is refused from now on")
