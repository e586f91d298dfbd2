"""What a ledger keeps, and what every ledger must do.

A ledger stores; it does not decide.  Whether a charge fits and what a stream may still do is
decided by ``Budget`` and ``Lease`` inside one write transaction, so that every ledger keeps the
same promise once it passes the contract suite in ``tests/budget/test_ledger_contract.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tacit.budget.amounts import Amount
from tacit.budget.chain import NOTHING_BEFORE, Entry

LIVE, SUSPENDED, HALTED, CLOSED = "live", "suspended", "halted", "closed"


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

    @property
    def left(self) -> Amount:
        """What may still be drawn."""
        return self.limit - self.spent


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
        return replace(self, tops=self.tops + 1)._reserve()

    def after_resume(self) -> StreamState:
        """A new holder.  If the last one left a reservation behind, that ⊤ is lost."""
        lost = self.lost + self.reserved
        return replace(self, lost=lost, status=LIVE, generation=self.generation + 1)._reserve()

    def after_suspend(self) -> StreamState:
        """The holder leaves cleanly; the unused reservation is returned."""
        return replace(self, reserved=False, status=SUSPENDED)

    def after_close(self) -> StreamState:
        """Ended early; nothing is refunded."""
        return replace(self, reserved=False, status=CLOSED)

    def _reserve(self) -> StreamState:
        more = self.tops_used < self.at_most
        return replace(self, reserved=more, status=LIVE if more else HALTED)


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
        """A stream's secret state."""
        ...

    def secrets(self) -> list[int]:
        """The streams that have one."""
        ...


class Writer(Reader, Protocol):
    """A write transaction: it sees its own writes; nobody else does before it ends well."""

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Add an entry after the last one, linked to it."""
        ...

    def add_table(self, table: str) -> None:
        """Cover one more table."""
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
