"""Requests for more: an analyst asks with a reason, and the steward approves or declines.

They are entries of the history, like everything else that happens to a budget: durable, in order,
and covered by its hashes in every ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Literal

from tacit.budget.accountants import Amount
from tacit.budget.chain import Entry, readable
from tacit.budget.ledger import Ledger, LedgerReader, LedgerWriter, checked_name, checked_text
from tacit.budget.spending import Terms, check_short
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, whole

MOST_REASON = 1000  # characters
MOST_OPEN = 5  # of one analyst: an analyst must not fill the history
_AT_ONCE = 1000  # entries, so that nobody who must record an answer waits for long

RequestStatus = Literal["open", "approved", "declined"]


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """What an analyst asked for, and what the steward said to it.

    ``more`` is what their share is to grow by, and ``number`` the entry of the history that asks.
    """

    number: int
    at: str
    analyst: str
    more: Amount
    reason: str
    status: RequestStatus = "open"
    decided: str | None = None
    said: str = ""

    def __str__(self) -> str:
        said = f": {self.said}" if self.said else ""
        return f"{self.number:>6}  {self.at}  {self.analyst}  {self.more}  {self.status}{said}"


class Requests:
    """Every request for more of one budget, oldest first.

    >>> from tacit.budget import Budget
    >>> budget = Budget.in_memory(epsilon=1, covers=["visits"])
    >>> asked = budget.requests.ask("ana", epsilon="1/4", reason="the flu season is early")
    >>> print(budget.requests.approve(asked.number).status, budget.shares[1].limit)
    approved ε = 0.25, δ = 0
    """

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger = ledger
        self._terms = terms
        self._lock = Lock()
        self._read = 0  # entries; the history only grows, so none is read twice
        self._known: dict[int, BudgetRequest] = {}

    def __iter__(self) -> Iterator[BudgetRequest]:
        return iter(self._all())

    def ask(
        self,
        analyst: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        reason: str,
    ) -> BudgetRequest:
        """Ask that an analyst's share grow by this much, in the words of ``budget.share``.

        Asking twice for the same while it is open is asking once.
        """
        checked_text(analyst, "analyst")
        if len(checked_text(reason, "reason")) > MOST_REASON:
            given = f"a text of {len(reason)} characters"
            raise BadParameter("reason", given, f"give at most {MOST_REASON}")
        terms = self._terms
        more = terms.accountant.share(terms.promise, epsilon=epsilon, delta=delta, rho=rho)
        unit = "epsilon" if rho is None else "rho"
        for name, number in more.values:
            check_short(name, number)
        if not any(number for _, number in more.values):
            raise BadParameter(unit, "0", "ask for more than nothing")
        if not more.fits_in(terms.limit):
            raise BadParameter(unit, str(more), f"{terms.limit} was promised in all: ask for less")
        self._all()  # what takes long, before the write
        with self._ledger.writing("request") as writer:
            mine = [one for one in self._up_to_date(writer) if one.analyst == analyst]
            waiting = [one for one in mine if one.status == "open"]
            for one in waiting:
                if (one.more, one.reason) == (more, reason):
                    return one
            if len(waiting) >= MOST_OPEN:
                raise BadParameter(
                    "analyst",
                    as_given(analyst),
                    f"{MOST_OPEN} requests of theirs are open: wait until one is decided",
                )
            if self._terms.share_of(writer, analyst) is None:
                checked_name(analyst, "analyst")
            said = {"analyst": analyst, "more": more.as_json(), "reason": reason}
            return _asked(writer.append("request", said))

    def approve(self, number: int) -> BudgetRequest:
        """Let the share grow by what was asked; ``BudgetExhausted`` if so much is not unshared."""
        number = whole(number, "number")
        self._all()
        with self._ledger.writing("share") as writer:
            one = self._open(writer, number, "approved")
            if one.status == "open":
                mine = self._terms.share_of(writer, one.analyst)
                wanted = one.more if mine is None else mine.limit + one.more
                self._terms.set_share(writer, one.analyst, wanted, of=number)
        return self[number]

    def decline(self, number: int, *, reason: str = "") -> BudgetRequest:
        """Leave the share as it is, and say why."""
        number = whole(number, "number")
        if len(checked_text(reason, "reason", empty=True)) > MOST_REASON:
            given = f"a text of {len(reason)} characters"
            raise BadParameter("reason", given, f"give at most {MOST_REASON}")
        self._all()
        with self._ledger.writing("decline") as writer:
            one = self._open(writer, number, "declined")
            if one.status == "open":
                writer.append("decline", {"of": number, "reason": reason})
        return self[number]

    def __getitem__(self, number: int) -> BudgetRequest:
        """By the number of the entry that asks."""
        return self._one(whole(number, "number"), self._all())

    # Reading

    def _open(self, writer: LedgerWriter, number: int, wanted: RequestStatus) -> BudgetRequest:
        """One that is not decided yet, or just as it is wanted; a decision stays."""
        one = self._one(number, self._up_to_date(writer))
        if one.status not in ("open", wanted):
            raise BadParameter("number", number, f"this request was {one.status}, and stays so")
        return one

    def _one(self, number: int, known: list[BudgetRequest]) -> BudgetRequest:
        for one in known:
            if one.number == number:
                return one
        raise BadParameter(
            "number", number, "no request has this number", "budget.requests lists them"
        )

    def _all(self) -> list[BudgetRequest]:
        """All of them; others may write while the history is read."""
        while True:
            with self._ledger.reading() as reader, self._lock:
                if not self._read_some(reader):
                    return list(self._known.values())

    def _up_to_date(self, writer: LedgerWriter) -> list[BudgetRequest]:
        with self._lock:
            while self._read_some(writer):
                pass
            return list(self._known.values())

    def _read_some(self, reader: LedgerReader) -> bool:
        """Read on in the history; whether there was something to read."""
        some = reader.entries(after=self._read, most=_AT_ONCE)
        for entry in some:
            with readable(f"entry {entry.number} of the history makes no sense"):
                self._learn(entry)
            self._read = entry.number
        return bool(some)

    def _learn(self, entry: Entry) -> None:
        body = entry.body
        if body["kind"] == "request":
            self._known[entry.number] = _asked(entry)
        elif body["kind"] in ("share", "decline") and "of" in body:
            status: RequestStatus = "approved" if body["kind"] == "share" else "declined"
            self._known[body["of"]] = replace(
                self._known[body["of"]],
                status=status,
                decided=body["at"],
                said=body.get("reason", ""),
            )

    def __repr__(self) -> str:
        return f"<Requests of {self._ledger.place}>"


def _asked(entry: Entry) -> BudgetRequest:
    body = entry.body
    more = Amount.from_json(body["more"])
    return BudgetRequest(entry.number, body["at"], body["analyst"], more, body["reason"])
