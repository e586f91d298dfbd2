"""Tokens: who may ask a server for what.

A token is 256 random bits with a prefix that scanners of leaked secrets recognise.  It is shown
once; what is stored is its SHA-256, in a file for its owner only beside the budget.  (A slow hash
is for passwords: nobody guesses 256 bits.)  The file is replaced as a whole, by one process at a
time, and looked at again with every request: who was revoked is refused at once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from tacit.errors import BadParameter, NotAuthorised
from tacit.numbers import as_given
from tacit.server.owners_file import OwnersFile

Role = Literal["analyst", "steward", "viewer"]

PREFIX = "tct_"
FORM = "tacit tokens"
LONGEST_NAME = 200
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """What is known about a token: all but the token."""

    name: str
    sha256: str
    role: Role
    tables: tuple[str, ...] | None  # None: all that are served
    share: str | None  # the analyst from whose share of the budget it draws
    made: str
    expires: str | None
    revoked: str | None = None

    def may_ask(self, *tables: str) -> bool:
        """Whether the token is for all these tables."""
        return self.tables is None or set(tables) <= set(self.tables)

    def good_at(self, now: datetime) -> bool:
        """Whether it has neither expired nor been revoked."""
        return self.revoked is None and (self.expires is None or now < _moment(self.expires))

    def status(self, now: datetime) -> str:
        """In a word, for the steward."""
        if self.revoked is not None:
            return "revoked"
        return "good" if self.good_at(now) else "expired"


def utc_now() -> datetime:
    """The time of day; only expiries need it."""
    return datetime.now(UTC)


class TokenFile:
    """The tokens of one server, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = OwnersFile(path, form=FORM, called="tokens", read=_record, write=asdict)

    # A steward's

    def add(
        self,
        name: str,
        *,
        role: Role = "analyst",
        tables: Iterable[str] | None = None,
        share: str | None = None,
        expires: str | None = None,
    ) -> str:
        """Make a token and return it; nobody can show it again."""
        secret = PREFIX + secrets.token_urlsafe(32)
        record = TokenRecord(
            name=_checked_name(name),
            sha256=_hashed(secret),
            role=_checked_role(role),
            tables=None if tables is None else tuple(tables),
            share=share,
            made=utc_now().isoformat(timespec="seconds"),
            expires=None if expires is None else checked_expiry(expires),
        )
        with self._file.changing() as records:
            _refuse_taken(name, records)
            records.append(record)
        return secret

    def check_name(self, name: str) -> None:
        """Refuse the name of a token that there is, or one that none may have."""
        _refuse_taken(_checked_name(name), self.records)

    def revoke(
        self, name: str, *, among: Callable[[TokenRecord], bool] = lambda _: True
    ) -> TokenRecord:
        """From now on the token is refused; its name may be given to a new one.

        Tokens that are not ``among`` those who may be known of are as if there were none.
        """
        _checked_name(name)
        with self._file.changing() as records:
            good = [one for one in records if one.revoked is None and among(one)]
            for record in good:
                if record.name == name:
                    now = utc_now().isoformat(timespec="seconds")
                    revoked = replace(record, revoked=now)
                    records[records.index(record)] = revoked
                    return revoked
            known = ", ".join(repr(one.name) for one in good)
            allowed = f"known are {known}" if known else "there are no tokens"
            raise BadParameter("name", as_given(name), f"no token has this name; {allowed}")

    @property
    def records(self) -> tuple[TokenRecord, ...]:
        """All tokens that were ever made, oldest first."""
        return self._file.records

    # The server's

    def bearer(self, presented: str, now: datetime) -> TokenRecord:
        """Who presents this token; ``NotAuthorised`` if nobody may.

        Every stored hash is compared, each in constant time, whichever fits.
        """
        hashed = _hashed(presented) if _TOKEN.fullmatch(presented) else ""
        fitting = [one for one in self.records if hmac.compare_digest(one.sha256, hashed)]
        if not fitting or not fitting[0].good_at(now):
            raise _not_good()
        return fitting[0]

    def refuse_ended(self, who: TokenRecord, now: datetime) -> None:
        """Refuse a token that was good when its request came, and is not any more."""
        if not any(one.sha256 == who.sha256 and one.good_at(now) for one in self.records):
            raise _not_good()


def _not_good() -> NotAuthorised:
    return NotAuthorised(
        "this token is not known here, was revoked or has expired",
        advice="ask the steward for a new one",
    )


def checked_expiry(given: str) -> str:
    """A day or a moment in UTC, written as the latter."""
    try:
        day = date.fromisoformat(given)
        moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    except (ValueError, TypeError):
        try:
            moment = datetime.fromisoformat(given)
        except (ValueError, TypeError):
            raise BadParameter(
                "expires", as_given(given), "give a day, such as 2027-01-31, or a moment in UTC"
            ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise BadParameter(
            "name", as_given(name), f"give 1 to {LONGEST_NAME} characters that can be printed"
        )
    return name


def _refuse_taken(name: str, records: Iterable[TokenRecord]) -> None:
    if any(one.name == name and one.revoked is None for one in records):
        raise BadParameter(
            "name", as_given(name), "a token has this name: revoke it first, or choose another name"
        )


def _checked_role(role: Role) -> Role:
    if role not in get_args(Role):
        raise BadParameter("role", as_given(role), f"it is one of {', '.join(get_args(Role))}")
    return role


def _record(fields: dict[str, Any]) -> TokenRecord:
    tables = fields["tables"]
    record = TokenRecord(**{**fields, "tables": None if tables is None else tuple(tables)})
    if not (_HASH.fullmatch(record.sha256) and record.role in get_args(Role)):
        raise ValueError
    _checked_name(record.name)
    if record.expires is not None and _moment(record.expires).tzinfo is None:
        raise ValueError
    return record
