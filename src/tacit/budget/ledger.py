"""What a ledger keeps, and what every ledger must do.

A ledger stores; it does not decide.  Whether a charge fits and what a stream may still do is
decided by ``Budget`` and ``Lease`` inside one write transaction, so that every ledger keeps the
same promise once it passes the contract suite in ``tests/budget/test_ledger_contract.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from tacit.budget.accountants import Amount
from tacit.budget.chain import NOTHING_BEFORE, Entry, damaged, insist, readable
from tacit.errors import BadParameter, TableMismatch

LIVE, SUSPENDED, HALTED, CLOSED = "live", "suspended", "halted", "closed"
LARGEST = 2**62  # SQLite's integers end at 2^63, and numbers go up by one at a time


class Tail(NamedTuple):
    """The end of the history: how many entries there are and the hash of the last."""

    number: int = 0
    hash: str = NOTHING_BEFORE


@dataclass(frozen=True, slots=True)
class Pot:
    """Something to draw from: an analyst's share, or (analyst None) what is not shared.

    The pots' limits add up to the whole promise, so whoever keeps within a pot keeps within
    the whole.
    """

    analyst: str | None
    limit: Amount
    spent: Amount

    def __post_init__(self) -> None:
        insist(self.spent.zero().fits_in(self.spent) and self.spent.fits_in(self.limit))

    @property
    def left(self) -> Amount:
        """What may still be drawn."""
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


@dataclass(frozen=True, slots=True)
class StreamState:
    """Where a stream stands.  ``tops + lost + reserved`` never exceeds ``at_most``.

    ``tops``: answers above the threshold that are on record.  ``lost``: reserved ones that an
    unclean end may have revealed, and which therefore count as used.  ``reserved``: whether one
    more is set aside for whoever holds the stream; only then may a question be asked.
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
    reserved: bool = True
    status: str = LIVE
    generation: int = 1

    def __post_init__(self) -> None:
        for text in (self.name, self.table, *self.binding, *self.binding.values()):
            insist(isinstance(text, str))
        insist(self.analyst is None or isinstance(self.analyst, str))
        for least, number in (
            *((1, self.id), (1, self.at_most), (1, self.generation)),
            *((0, self.tops), (0, self.lost)),
        ):
            insist(type(number) is int and least <= number < LARGEST)
        insist(self.tops_used + self.reserved <= self.at_most)
        insist(self.status in (LIVE, SUSPENDED, HALTED, CLOSED))
        insist(self.reserved is (self.status == LIVE))

    @property
    def tops_used(self) -> int:
        """Answers above the threshold that are gone: recorded or lost."""
        return self.tops + self.lost

    @property
    def tops_left(self) -> int:
        """Answers above the threshold that were paid for and may still come."""
        return 0 if self.ended else self.at_most - self.tops_used

    @property
    def ended(self) -> bool:
        """Halted or closed: it stays so."""
        return self.status in (HALTED, CLOSED)

    def after_top(self) -> StreamState:
        """The reserved ⊤ was given; the next one is reserved, or it was the last."""
        return self._reserve(self.tops + 1, self.lost, self.generation)

    def after_resume(self) -> StreamState:
        """A new holder.  If the last one left a reservation behind, that ⊤ is lost."""
        return self._reserve(self.tops, self.lost + self.reserved, self.generation + 1)

    def after_suspend(self) -> StreamState:
        """The holder leaves cleanly; the unused reservation is returned."""
        return replace(self, reserved=False, status=SUSPENDED)

    def after_close(self) -> StreamState:
        """Ended early; nothing is refunded."""
        return replace(self, reserved=False, status=CLOSED)

    def _reserve(self, tops: int, lost: int, generation: int) -> StreamState:
        more = tops + lost < self.at_most
        status = LIVE if more else HALTED
        return replace(
            self, tops=tops, lost=lost, reserved=more, status=status, generation=generation
        )


class Contents(NamedTuple):
    """All that is stored beside the history, and follows from it."""

    tables: Sequence[str]
    ties: Mapping[str, TableIdentity]
    pots: Sequence[Pot]
    streams: Sequence[StreamState]
    with_secret: Sequence[int]


WHAT_IS_STORED = (
    "the tables it covers",
    "whose rows they hold",
    "what was spent and shared",
    "its streams",
    "which streams have a secret",
)
"""The same in words."""


class Reader(Protocol):
    """One consistent view of a ledger."""

    def tail(self) -> Tail:
        """The end of the history, without reading the rest."""
        ...

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        """Entries with a number above ``after``, in order; only a stream's, if one is given."""
        ...

    def tables(self) -> list[str]:
        """The tables the budget covers, in the order they were named."""
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

    def pot(self, analyst: str | None) -> Pot | None:
        """The share of an analyst, or what is not shared."""
        ...

    def pots(self) -> list[Pot]:
        """All pots; the unshared one first, the others by name."""
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

    def stored_and_due(self, due: Contents) -> Iterable[tuple[str, object, object]]:
        """Everything beside the history: what it is, as it is stored, and as it should be.

        In the form in which it is stored, to the last byte, since reading may hide a change.
        """
        ...


class Writer(Reader, Protocol):
    """A write transaction: it sees its own writes; nobody else does before it ends well."""

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Add an entry after the last one, linked to it."""
        ...

    def add_table(self, table: str) -> None:
        """Cover one more table."""
        ...

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        """Note whose rows a table holds, or note it anew."""
        ...

    def put_pot(self, pot: Pot) -> None:
        """Add or replace a pot."""
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


class Hold(Protocol):
    """Exclusive hold of one stream.  It ends with ``release`` or with the process, however."""

    def release(self) -> None:
        """Let go; more than once does no harm."""
        ...


Reached = Callable[[str], None]


def nobody_watches(point: str) -> None:
    """What is called at the named points of a write, unless a test puts something in its place."""


class Ledger(Protocol):
    """Where a budget is kept.

    ``reached`` is called at three points of every write, so that tests can fail or kill it
    there: "charge: begun", "charge: written" (all but durable) and "charge: committed".
    """

    reached: Reached

    @property
    def place(self) -> str:
        """The name of the place, for messages."""
        ...

    @property
    def engine(self) -> str:
        """What stores it, and what there is to know about that."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent view."""
        ...

    def writing(self, what: str) -> AbstractContextManager[Writer]:
        """An exclusive transaction: all of it is durable when the block ends, or none of it.

        ``what`` names it for messages and for tests that interrupt it.  Raises ``LedgerBusy``
        after a bounded wait, or at once inside a transaction of the same thread, and
        ``LedgerUnwritable`` if the write failed.
        """
        ...

    def hold(self, stream: int) -> Hold | None:
        """Take exclusive hold of a stream, or None if somebody has it."""
        ...

    def check(self) -> None:
        """Check what only the storage knows: raise ``LedgerDamaged`` if it is not sound."""
        ...

    def close(self) -> None:
        """Let go of files and connections.  Nothing is lost by not calling it."""
        ...


def as_json(state: StreamState) -> dict[str, Any]:
    """A stream's public facts, as they enter the history when it is opened."""
    return {
        "stream": state.name,
        "table": state.table,
        "analyst": state.analyst,
        "at_most": state.at_most,
        "binding": dict(state.binding),
    }


# Pots that may be drawn from: each is a part of the limit, and so are all of them together.


_UNFIT = "what was spent and shared does not fit the promise"


def pot_of(reader: Reader, analyst: str | None, limit: Amount) -> Pot | None:
    """The share of an analyst if there is one, or what is not shared."""
    pot = reader.pot(analyst)
    if pot is None and analyst is None:
        raise damaged("what is not shared has vanished from the budget")
    with readable(_UNFIT):
        insist(pot is None or pot.limit.fits_in(limit))
    return pot


def all_pots(reader: Reader, limit: Amount) -> tuple[Pot, ...]:
    """What is not shared, then each share."""
    pots = tuple(reader.pots())
    with readable(_UNFIT):
        insist(bool(pots) and pots[0].analyst is None)
        insist(together(pots).limit.fits_in(limit))
    return pots


def together(pots: Sequence[Pot]) -> Pot:
    """All pots as one."""
    limit, spent = pots[0].limit, pots[0].spent
    for pot in pots[1:]:
        limit, spent = limit + pot.limit, spent + pot.spent
    return Pot(None, limit, spent)


# One name, one kind of people: a budget ties a table to its person column at first use.
#
# A promise is about people, and a table says who they are.  If one name stood for two readings of
# that, one person's rows could count as many people, and what was charged would not cover them.


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
