"""The server's own note of the end of the budget's history.

Whoever puts an old copy of a budget back, its head file and all, takes back what was spent since:
people would be promised the same ε twice.  So a server notes the last entry in a file of its own
before a response that spends leaves, and does not start on a history that lacks it.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from tacit.budget import Budget
from tacit.budget.head_file import HeadFile, Torn
from tacit.budget.ledger import HistoryEnd
from tacit.errors import LedgerDamaged
from tacit.support import Closing


class ServedHead(Closing):
    """The note, open as long as its server runs."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._path = path
        self._budget = budget
        self._file = HeadFile(path)
        self._lock = Lock()
        self._last = HistoryEnd()

    def begin(self) -> None:
        """Refuse a history that does not contain what is noted; from now on, note its end."""
        try:
            noted = self._file.read()
        except Torn:
            raise LedgerDamaged(
                f"{self._path} does not hold the note of the last entry that it should",
                advice="see that the budget is no old copy; then remove this file",
            ) from None
        history = self._budget.history
        if noted is not None and noted.number:
            there = noted.number <= len(history)
            if not there or history[noted.number - 1].hash != noted.hash:
                raise LedgerDamaged(
                    f"this budget has been served with {noted.number} entries, as {self._path} "
                    f"notes, and its history of {len(history)} does not contain the last of them: "
                    "an old copy was put back, and what was spent since would be spent again",
                    advice="serve the newest copy; if there is none, treat the budget as spent",
                )
        last = history[-1]
        self._last = HistoryEnd(last.number, last.hash)
        self._file.begin(self._last)

    def note(self) -> None:
        """Note the last entry; of two at once the later one stays."""
        last = self._budget.known_end
        with self._lock:
            if last.number > self._last.number:
                self._last = last
                self._file.write(self._last)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
