"""What a steward does at a desk: shares, tokens, and a look at what was refused."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tacit.errors import NotAuthorised
from tacit.server.messages import Number
from tacit.server.rights import permit_all_tables, reaches, sees_share
from tacit.server.tokens import Role

if TYPE_CHECKING:
    from tacit.budget import Share, Verified
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord


class ShareOf(Struct, forbid_unknown_fields=True):
    """What an analyst may spend in all, from now on."""

    analyst: Annotated[str, Meta(min_length=1)]
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None


class NewToken(Struct, forbid_unknown_fields=True):
    """A token to be made; without tables it is for all that are served."""

    name: str
    role: Role = "analyst"
    share: str | None = None
    tables: list[str] | None = None
    expires: str | None = None


class TokenNamed(Struct, forbid_unknown_fields=True):
    """A token by its name."""

    name: str


def set_share(service: Service, who: TokenRecord, asked: ShareOf) -> Share:
    """Give an analyst a share, or change it."""
    permit_all_tables(who, "shares")
    service.check_name(asked.analyst, "analyst")
    given = {"epsilon": asked.epsilon, "delta": asked.delta, "rho": asked.rho}
    return service.budget.share(
        asked.analyst, **{unit: number for unit, number in given.items() if number is not None}
    )


def make_token(service: Service, who: TokenRecord, asked: NewToken) -> str:
    """A new token, which nobody can show again; it may ask and spend no more than its maker."""
    if who.tables is not None and (asked.tables is None or not who.may_ask(*asked.tables)):
        some = ", ".join(who.tables) or "none"
        raise NotAuthorised("a token cannot give more than it has", advice=f"choose among {some}")
    if asked.share is not None and not sees_share(who, asked.share):
        own = "no share" if who.share is None else f"the share of {who.share}, or from none"
        raise NotAuthorised("a token cannot give more than it has", advice=f"draw from {own}")
    return service.tokens.add(
        asked.name,
        role=asked.role,
        tables=asked.tables,
        share=asked.share,
        expires=asked.expires,
    )


def revoke_token(service: Service, who: TokenRecord, asked: TokenNamed) -> None:
    """Refuse a token from now on."""
    service.tokens.revoke(asked.name, among=partial(reaches, who))


def verify_history(service: Service, who: TokenRecord) -> Verified:
    """Read the whole history again, and see that every entry follows from those before it."""
    return service.budget.verify()
