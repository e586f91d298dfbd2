"""Who spent what when: the history as far as a token may see it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from tacit.budget import Amount, Budget
from tacit.server.rights import sees_share, tables_of_entry, tables_of_stream

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
    tables: frozenset[str]  # all that it names


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
            covered = self._budget.covers if self._read < shown else ()
            while self._read < shown:
                for entry in self._budget.history[self._read : min(self._read + _AT_ONCE, shown)]:
                    self._add(entry, covered)
                    self._read = entry.number
            return [line for line in self._lines if line.number <= shown]

    def _add(self, entry: Entry, covered: Collection[str]) -> None:
        body, tables = entry.body, frozenset[str]()
        match entry.kind:
            case "charge":
                what, tables = body["what"], tables_of_entry(body, None, covered)
            case "open":
                stream = self._budget.stream(body["stream"])
                what, tables = f"stream {stream.name!r}", tables_of_stream(stream)
            case "share":
                what = "share"
            case _:
                return
        amount = Amount.from_json(body["charged" if tables else "limit"])
        line = (entry.number, body["at"], body["analyst"], body.get("table"), what, amount, tables)
        self._lines.append(SpentLine(*line))


def list_spent(service: Service, who: TokenRecord) -> list[SpentLine]:
    """An analyst's own payments; for a steward all about the tables that they may see."""
    return [
        line
        for line in _paid_by(service, who)
        if who.may_ask(*line.tables) and (line.table is not None or sees_share(who, line.analyst))
    ]


def sees_all_spent(service: Service, who: TokenRecord) -> bool:
    """Whether these add up to all that was spent: some may name tables that are hidden."""
    return all(who.may_ask(*line.tables) for line in _paid_by(service, who))


def _paid_by(service: Service, who: TokenRecord) -> list[SpentLine]:
    """All payments from a token's share; for a steward from every one."""
    return [
        line
        for line in service.spent.up_to(service.underway.shown())
        if who.role == "steward" or (who.share is not None and line.analyst == who.share)
    ]


def shown_head(service: Service) -> tuple[int, str]:
    """How many entries are shown, and the hash of the last of them, to be noted elsewhere."""
    shown = service.underway.shown()
    return shown, service.budget.history[shown - 1].hash
