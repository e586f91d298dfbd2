"""Budgets whose writes can be failed or killed at three named points."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tacit.budget import Budget
from tacit.budget.ledger import LedgerWriter
from tacit.budget.sqlite import SqliteLedger
from tacit.budget.sqlite_files import Opened
from tacit.budget.sqlite_tables import SqliteWriter
from tacit.budget.sqlite_uses import Writing
from tacit.budget.turns import LetGoIfDropped
from tacit.testing.watched_ledger import WatchedLedger


def watched(budget: Budget) -> Budget:
    """The same budget on a ledger that is watched: what happens is for ``watch`` to say."""
    ledger = budget._ledger
    watching = WatchedFile if isinstance(ledger, SqliteLedger) else WatchedLedger
    return Budget(watching(ledger))


def watch(budget: Budget, reached: Callable[[str], None]) -> None:
    """What happens from now on at each point of a write."""
    ledger = budget._ledger
    assert isinstance(ledger, WatchedLedger)
    ledger.reached = reached


def nothing_happens(point: str) -> None:
    """What happens unless a test says otherwise."""


class WatchedFile(WatchedLedger):
    """A budget file: "committed" is between the commit and the note in the head file.

    The wrapper that fits every ledger sees the end of a write only when all is done.
    """

    def writing(self, what: str) -> AbstractContextManager[LedgerWriter]:
        assert isinstance(self.ledger, SqliteLedger)
        return LetGoIfDropped(_WatchedWriting(self.ledger, what, self))


class _WatchedWriting(Writing):
    def __init__(self, ledger: SqliteLedger, what: str, watching: WatchedFile) -> None:
        super().__init__(ledger, what)
        self._watching = watching

    def start(self) -> SqliteWriter:
        writer = super().start()
        self._watching.reached(f"{self.what}: begun")
        return writer

    def commit(self, opened: Opened) -> None:
        self._watching.reached(f"{self.what}: written")
        super().commit(opened)
        self._watching.reached(f"{self.what}: committed")
