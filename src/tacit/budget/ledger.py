"""What a ledger keeps, and what every ledger must do.

A ledger stores; it does not decide.  Whether a charge fits and what a stream may still do is
decided by ``Budget`` and ``Lease`` inside one write transaction, so that every ledger keeps the
same promise once it passes the contract suite in ``tacit.testing.ledgers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, Self

from tacit.arguments import iterated, kind_of
from tacit.budget.accountants import Amount
from tacit.budget.chain import NOTHING_BEFORE, Entry, digest, insist
from tacit.errors import BadParameter
from tacit.numbers import as_given, positive, show

LIVE, SUSPENDED, HALTED, CLOSED = "live", "suspended", "halted", "closed"
LARGEST = 2**62  # SQLite's integers end at 2^63, and numbers go up by one at a time
WAIT_SECONDS = 10.0  # for a ledger that others write to, unless the caller says otherwise
_MOST_SECONDS = 10**6  # SQLite counts milliseconds in 32 bits
_MOST_TEXT = 100_000


# What callers give, checked before a ledger is touched --------------------------------------------


def checked_text(value: Any, name: str, *, empty: bool = False) -> str:
    """Text that is valid Unicode, not empty and not too long."""
    if not isinstance(value, str) or not (value or empty) or len(value) > _MOST_TEXT:
        given = type(value).__name__
        if isinstance(value, str):
            given = f"text of {len(value)} characters" if value else "''"
        raise BadParameter(name, given, f"give text of 1 to {_MOST_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadParameter(name, "this text", "give text that is valid Unicode") from None
    return value


def checked_name(value: Any, name: str) -> str:
    """A name that is new here: text that looks like what it is.

    A line break or a mark that turns the direction of writing would let one name pass for another,
    or for two, wherever names are listed.  Names that are on record already are only looked up.
    """
    if not checked_text(value, name).isprintable():
        allowed = "a name has printable characters only, and no spaces but the usual one"
        raise BadParameter(name, as_given(value), allowed)
    return str(value)


def recorded_text(value: Any, name: str) -> str:
    """Text for the history.  If it is too long it is not refused: only its start is kept."""
    if not isinstance(value, str) or len(value) <= _MOST_TEXT:
        return checked_text(value, name)
    return checked_text(shortened(value, _MOST_TEXT), name)


def shortened(text: str, most: int) -> str:
    """The start of a text, and how long it was."""
    if len(text) <= most:
        return text
    end = f"... ({len(text)} characters)"
    return text[: most - len(end)] + end


def checked_names(names: Any) -> list[str]:
    """Names of tables, in order, as the history has them."""
    takes = "give the names of tables, in a list"
    if isinstance(names, str):
        raise BadParameter("names", kind_of(names), takes)
    return sorted({checked_text(name, "names") for name in iterated(names, "names", takes)})


def checked_identity(identity: Any) -> TableIdentity:
    """Whose rows a table holds."""
    if not isinstance(identity, TableIdentity):
        allowed = "give a tacit.budget.TableIdentity, such as table.identity"
        raise BadParameter("identity", kind_of(identity), allowed)
    for text in (identity.person, identity.type, identity.schema):
        checked_text("each row" if text is None else text, "identity")
    return identity


def checked_wait(wait: Any) -> float:
    """How many seconds to wait for a lock."""
    seconds = positive(wait, "wait")
    if seconds > _MOST_SECONDS:
        raise BadParameter("wait", show(seconds), f"it must be at most {_MOST_SECONDS} seconds")
    return float(seconds)


# What is kept -------------------------------------------------------------------------------------


class HistoryEnd(NamedTuple):
    """The end of the history: how many entries there are and the hash of the last."""

    number: int = 0
    hash: str = NOTHING_BEFORE


@dataclass(frozen=True, slots=True)
class Share:
    """What an analyst may spend; or, with the analyst None, what is not shared with anybody.

    The limits of all shares, the unshared one too, add up to the whole promise: whoever keeps
    within a share keeps within the whole.
    """

    analyst: str | None
    limit: Amount
    spent: Amount

    def __post_init__(self) -> None:
        insist(not self.spent.negative and self.spent.fits_in(self.limit))

    @property
    def left(self) -> Amount:
        """What may still be spent."""
        return self.limit - self.spent

    @property
    def part_left(self) -> Fraction:
        """The part of the limit that is left, of whichever of ε and δ is scarcer."""
        promised = any(number for _, number in self.limit.values)
        return 1 - self.spent.share_of(self.limit) if promised else Fraction(0)


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Whose rows a table holds, so that one name cannot stand for two kinds of people.

    ``person`` is the column that says whose row it is, or "each row"; ``type`` is how it is
    read, since 1 and "1" could be two people (None: not known).  ``schema`` is the digest of
    what was declared when it was first used; columns may be added later, so it binds nothing.
    """

    person: str
    type: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        for name in ("person", "type", "schema"):
            given = getattr(self, name)
            if not (isinstance(given, str) and given) and (name == "person" or given is not None):
                raise BadParameter(name, repr(given), "give text that is not empty")

    def fits(self, tied: TableIdentity) -> bool:
        """Whether these are the people of the table that was tied, as far as it is known."""
        same_type = None in (self.type, tied.type) or self.type == tied.type
        return self.person == tied.person and same_type

    def as_json(self) -> dict[str, str | None]:
        """As it enters the history."""
        return {"person": self.person, "type": self.type, "schema": self.schema}

    def __str__(self) -> str:
        if self.type is None or self.type == self.person:
            return self.person
        return f"{self.person} ({self.type})"


def left_in_words(left: int, most: int, *, in_parts: bool) -> str:
    """What a stream has left for ⊤.

    >>> left_in_words(2, 3, in_parts=False), left_in_words(999_999, 10**6, in_parts=True)
    ('2 of 3 ⊤', '99.99 % of what pays for ⊤')
    """
    if not in_parts:
        return f"{left} of {most} ⊤"
    return f"{left * 10_000 // most / 100:g} % of what pays for ⊤"


def covered(people: Mapping[str, str | None]) -> str:
    """The tables that a budget covers, in words.

    >>> covered({"visits": None, "labs": None, "staff": "staff", "pay": "staff"})
    'visits, labs; of other people (staff): staff, pay'
    """
    groups: dict[str | None, list[str]] = {}
    for table, group in people.items():
        groups.setdefault(group, []).append(table)
    named = {group: ", ".join(tables) for group, tables in groups.items()}
    return "; ".join(
        tables if group is None else f"of other people ({group}): {tables}"
        for group, tables in named.items()
    )


PRICED = "recipe.least_scale"
"""What the binding of a stream has if each of its ⊤ has a price."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """Where a stream stands.  ``tops + lost + reserved`` never exceeds ``at_most``.

    ``tops``: answers above the threshold that are on record.  ``lost``: reserved ones that an
    unclean end may have revealed, and which therefore count as used.  ``reserved``: what is set
    aside for whoever holds the stream; only what it pays for may be asked.  In most streams every
    answer above counts as 1; where each has a price, all these numbers are sums of prices.
    ``generation`` counts openings and resumptions.
    """

    id: int
    name: str
    table: str
    analyst: str | None
    at_most: int
    binding: Mapping[str, str]
    tops: int = 0
    lost: int = 0
    reserved: int = 1
    status: str = LIVE
    generation: int = 1

    def __post_init__(self) -> None:
        for text in (self.name, self.table, *self.binding, *self.binding.values()):
            insist(isinstance(text, str))
        insist(self.analyst is None or isinstance(self.analyst, str))
        for least, number in (
            *((1, self.id), (1, self.at_most), (1, self.generation)),
            *((0, self.tops), (0, self.lost), (0, int(self.reserved))),
        ):
            insist(type(number) is int and least <= number < LARGEST)
        insist(self.tops_used + self.reserved <= self.at_most)
        insist(self.status in (LIVE, SUSPENDED, HALTED, CLOSED))
        insist(bool(self.reserved) is (self.status == LIVE))
        insist(self.reserved <= 1 or self.in_parts)

    @property
    def in_parts(self) -> bool:
        """Whether each ⊤ has a price, so that all numbers are parts of what was paid for ⊤."""
        return PRICED in self.binding

    @property
    def tops_used(self) -> int:
        """Answers above the threshold that are gone: recorded or lost."""
        return self.tops + self.lost

    @property
    def tops_left(self) -> int:
        """Answers above the threshold that were paid for and may still come."""
        return 0 if self.ended else self.at_most - self.tops_used

    @property
    def counted(self) -> str:
        """What its numbers count."""
        return "parts of what pays for answers above" if self.in_parts else "answers above"

    @property
    def left(self) -> str:
        """What is left for ⊤, in words."""
        return left_in_words(self.tops_left, self.at_most, in_parts=self.in_parts)

    @property
    def ended(self) -> bool:
        """Whether it has halted or was closed, which is final."""
        return self.status in (HALTED, CLOSED)

    def as_json(self) -> dict[str, Any]:
        """Its public facts, as they enter the history when it is opened."""
        return {
            "stream": self.name,
            "table": self.table,
            "analyst": self.analyst,
            "at_most": self.at_most,
            "binding": dict(self.binding),
        }

    def after_top(self, price: int = 1) -> StreamState:
        """A ⊤ was given out of what is reserved; the next of its price is reserved, or the rest."""
        insist(type(price) is int and 1 <= price <= self.reserved)
        return self._reserve(self.tops + price, self.lost, self.generation, price)

    def after_reserve(self, amount: int) -> StreamState:
        """So much is set aside in place of what was, between two questions."""
        insist(type(amount) is int and amount >= 1 and self.status == LIVE)
        return replace(self, reserved=amount)

    def after_resume(self) -> StreamState:
        """A new holder.  If the last one left a reservation behind, all of it is lost."""
        return self._reserve(self.tops, self.lost + self.reserved, self.generation + 1)

    def after_suspend(self) -> StreamState:
        """The holder leaves cleanly; the unused reservation is returned."""
        return replace(self, reserved=0, status=SUSPENDED)

    def after_close(self) -> StreamState:
        """Ended early; nothing is refunded."""
        return replace(self, reserved=0, status=CLOSED)

    def _reserve(self, tops: int, lost: int, generation: int, amount: int = 1) -> StreamState:
        reserved = min(amount, self.at_most - tops - lost)
        status = LIVE if reserved else HALTED
        return replace(
            self, tops=tops, lost=lost, reserved=reserved, status=status, generation=generation
        )


Sealed = tuple[int, str | None, int | None, str | None]
"""A kept answer as the history vouches for it: its response is a digest."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What somebody was told, or is owed, by the number of the entry that paid for it.

    ``key`` is the digest of the retry key that it was asked under, if there was one.  ``response``
    is what was told, to the byte, and ``recorded`` the entry that has its digest; both are None
    as long as there is only the charge.
    """

    number: int
    key: str | None = None
    response: str | None = None
    recorded: int | None = None

    def __post_init__(self) -> None:
        insist((self.response is None) is (self.recorded is None))
        for number in (self.number, 1 if self.recorded is None else self.recorded):
            insist(type(number) is int and 1 <= number < LARGEST)
        for text in (self.key, self.response):
            insist(text is None or isinstance(text, str))

    @property
    def sealed(self) -> Sealed:
        """What ``verify`` compares."""
        response = None if self.response is None else digest(self.response)
        return self.number, self.key, self.recorded, response


class Contents(NamedTuple):
    """All that is stored beside the history, and follows from it."""

    tables: Sequence[tuple[str, str | None]]
    ties: Mapping[str, TableIdentity]
    shares: Sequence[Share]
    streams: Sequence[StreamState]
    with_secret: Sequence[int]
    answers: Sequence[Sealed] = ()


WHAT_IS_STORED = (
    "the tables it covers",
    "whose rows they hold",
    "what was spent and shared",
    "its streams",
    "which streams have a secret",
    "the answers that were kept",
)
"""What `Contents` holds, in words."""


# What every ledger must do ------------------------------------------------------------------------


class LedgerReader(Protocol):
    """One consistent view of a ledger."""

    def tail(self) -> HistoryEnd:
        """The end of the history, without reading the rest."""
        ...

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        """Entries with a number above ``after``, in order; only a stream's, if one is given."""
        ...

    def tables(self) -> dict[str, str | None]:
        """The tables the budget covers, in the order they were named, each with its people.

        That is the name of a group, or None for the group that the budget was created for.
        """
        ...

    def covers(self, table: str) -> bool:
        """Whether a table is among them."""
        ...

    def tie(self, table: str) -> TableIdentity | None:
        """Whose rows a table holds, if that is known."""
        ...

    def ties(self) -> dict[str, TableIdentity]:
        """All that is known of that, by table."""
        ...

    def share(self, analyst: str | None) -> Share | None:
        """The share of an analyst, or what is not shared."""
        ...

    def shares(self) -> list[Share]:
        """All shares; the unshared one first, the others by name."""
        ...

    def stream(self, name: str) -> StreamState | None:
        """A stream by its name."""
        ...

    def streams(self) -> list[StreamState]:
        """All streams in the order they were opened."""
        ...

    def secret(self, stream: int) -> bytes | None:
        """A stream's secret state; ``LedgerDamaged`` if it is not the one that was stored."""
        ...

    def secrets(self) -> list[int]:
        """The streams that have one."""
        ...

    def answers(self, *, after: int = 0, most: int | None = None) -> list[KeptAnswer]:
        """Kept answers with a number above ``after``, in order."""
        ...

    def answer_under(self, key: str) -> KeptAnswer | None:
        """The one under the digest of a retry key."""
        ...

    def stored_and_due(self, due: Contents) -> Iterable[tuple[str, object, object]]:
        """Everything beside the history: what it is, as it is stored, and as it should be.

        In the form in which it is stored, to the last byte, since reading may hide a change.
        """
        ...


class LedgerWriter(LedgerReader, Protocol):
    """A write transaction: it sees its own writes; nobody else does before it ends well."""

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Add an entry after the last one, linked to it."""
        ...

    def add_table(self, table: str, people: str | None = None) -> None:
        """Cover one more table, of this group of people."""
        ...

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        """Store whose rows a table holds, in place of what was stored before."""
        ...

    def put_share(self, share: Share) -> None:
        """Add or replace a share."""
        ...

    def next_stream(self) -> int:
        """The id of the next stream to be opened."""
        ...

    def put_stream(self, state: StreamState) -> None:
        """Add or replace a stream, by its id."""
        ...

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        """Store a stream's secret state, or forget it (None)."""
        ...

    def put_answer(self, answer: KeptAnswer) -> None:
        """Add a kept answer, or give the one of this number its response; its key stays."""
        ...


class StreamHold(Protocol):
    """Exclusive hold of one stream.  It ends with ``release`` or with the process, however."""

    def release(self) -> None:
        """Let go; doing it twice does no harm."""
        ...


Fill = Callable[[LedgerWriter], None]
"""Writes what a new ledger begins with."""


class Ledger(Protocol):
    """Where a budget is kept.

    ``Budget.create`` and ``Budget.open`` find the class by the scheme of a URL: see
    ``tacit.budget.addresses``.
    """

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> Self:
        """Make a new ledger with what ``fill`` writes, durably: it appears complete or not at all.

        ``address`` is the URL as the caller wrote it.  Raises ``LedgerExists`` if there is
        something already, and never overwrites it.  ``wait`` is as for ``open``.
        """
        ...

    @classmethod
    def open(cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None) -> Self:
        """Open a ledger that exists; ``LedgerMissing`` if there is none.

        ``wait`` is how many seconds to wait for others before ``LedgerBusy``.  ``head`` is the
        hash of an entry that was noted elsewhere: ``LedgerDamaged`` if the history lacks it.
        """
        ...

    @property
    def place(self) -> str:
        """The name of the place, for messages: no password that a URL may hold is in it."""
        ...

    @property
    def engine(self) -> str:
        """What stores it, and what there is to know about that."""
        ...

    def reading(self) -> AbstractContextManager[LedgerReader]:
        """A consistent view."""
        ...

    def writing(self, what: str) -> AbstractContextManager[LedgerWriter]:
        """An exclusive transaction: all of it is durable when the block ends, or none of it.

        ``what`` names it for messages.  Raises ``LedgerBusy`` after a bounded wait, or at once
        inside a transaction of the same thread, and ``LedgerUnwritable`` if the write failed.
        """
        ...

    def hold(self, stream: int) -> StreamHold | None:
        """Take exclusive hold of a stream, or None if somebody has it."""
        ...

    def check(self) -> None:
        """Check what only the storage knows: raise ``LedgerDamaged`` if it is not sound."""
        ...

    def close(self) -> None:
        """Let go of files and connections.  Nothing is lost by not calling it."""
        ...
