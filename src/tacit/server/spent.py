"""Who spent what when: the history as far as a token may see it."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from tacit.budget import Amount, Budget

if TYPE_CHECKING:
    from tacit.budget import Entry
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord

_AT_ONCE = 1000  # entries of the history


@dataclass(frozen=True, slots=True)
class SpentLine:
    """One payment, or a change of a share, which is a line without a table."""

    number: int
    at: str
    analyst: str | None
    table: str | None
    what: str
    amount: Amount  # that was paid, or the new limit of a share


class SpentIndex:
    """All payments, from the history, which only grows."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._read = 0  # entries of the history
        self._lines: list[SpentLine] = []

    def up_to(self, shown: int) -> list[SpentLine]:
        """Those among the entries that are shown, oldest first."""
        with self._lock:
            while self._read < shown:
                for entry in self._budget.history[self._read : min(self._read + _AT_ONCE, shown)]:
                    self._add(entry)
                    self._read = entry.number
            return [line for line in self._lines if line.number <= shown]

    def _add(self, entry: Entry) -> None:
        body = entry.body
        match entry.kind:
            case "charge" | "open":
                stream = body.get("stream")
                what = body["what"] if stream is None else f"stream {stream!r}"
                table, amount = body["table"], Amount.from_json(body["charged"])
            case "share":
                what, table, amount = "share", None, Amount.from_json(body["limit"])
            case _:
                return
        line = SpentLine(entry.number, body["at"], body["analyst"], table, what, amount)
        self._lines.append(line)


def list_spent(service: Service, who: TokenRecord) -> list[SpentLine]:
    """An analyst's own payments; for a steward all about the tables that they may see."""
    return [
        line
        for line in service.spent.up_to(service.underway.shown())
        if (line.table is None or who.may_ask(line.table))
        and (who.role == "steward" or (who.share is not None and line.analyst == who.share))
    ]


def shown_head(service: Service) -> tuple[int, str]:
    """How many entries are shown, and the hash of the last of them, to be noted elsewhere."""
    shown = service.underway.shown()
    return shown, service.budget.history[shown - 1].hash
