"""A ledger that can fail at three points of every write, for the contract suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tacit.budget.addresses import ledger_at
from tacit.budget.ledger import (
    WAIT_SECONDS,
    Fill,
    Ledger,
    LedgerReader,
    LedgerWriter,
    StreamHold,
)
from tacit.errors import LedgerUnwritable
from tacit.support import Uncopyable

POINTS = ("begun", "written", "committed")


class WatchedLedger(Uncopyable):
    """A ledger that wraps another one and calls ``reached`` at three points of every write.

    For a charge they are "charge: begun" (inside the transaction), "charge: written" (everything
    is written, but nothing is durable) and "charge: committed" (it is durable, but the caller does
    not know yet), and so on for every ``what``.  An error in ``reached`` is raised at that point.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.reached: Callable[[str], None] = lambda point: None

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> WatchedLedger:
        """Create a ledger of any scheme, and watch it."""
        kind, address = ledger_at(address)
        return cls(kind.create(address, fill, wait=wait))

    @classmethod
    def open(
        cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None
    ) -> WatchedLedger:
        """Open a ledger of any scheme, and watch it."""
        kind, address = ledger_at(address)
        return cls(kind.open(address, wait=wait, head=head))

    @property
    def place(self) -> str:
        """Where the ledger is."""
        return self.ledger.place

    @property
    def engine(self) -> str:
        """What stores the ledger."""
        return self.ledger.engine

    def reading(self) -> AbstractContextManager[LedgerReader]:
        """Not watched."""
        return self.ledger.reading()

    def writing(self, what: str) -> AbstractContextManager[LedgerWriter]:
        """A write that can fail at its three points."""
        return self._watched(what)

    @contextmanager
    def _watched(self, what: str) -> Iterator[LedgerWriter]:
        with self.ledger.writing(what) as writer:
            self.reached(f"{what}: begun")
            yield writer
            self.reached(f"{what}: written")
        self.reached(f"{what}: committed")

    def hold(self, stream: int) -> StreamHold | None:
        """Not watched."""
        return self.ledger.hold(stream)

    def check(self) -> None:
        """Not watched."""
        self.ledger.check()

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()


def failing_at(point: str) -> Callable[[str], None]:
    """A ``reached`` that fails as a full disk does, whenever this point is reached."""

    def fail(reached: str) -> None:
        if reached == point:
            raise LedgerUnwritable(f"no space left ({point})")

    return fail
