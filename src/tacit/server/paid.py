"""Answers that were paid for: whose they are, and a page of them for whoever may see them."""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from dataclasses import replace
from heapq import merge
from threading import Lock
from typing import TYPE_CHECKING

from tacit.budget import Budget
from tacit.server import messages
from tacit.wire import PaidSummary, paid_summary, to_json, to_line

if TYPE_CHECKING:
    from tacit.budget import Entry
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord

_AT_ONCE = 1000  # entries of the history
_LONGEST_PAGE = 1_000_000  # characters, unless one answer alone has more

Whose = tuple[str | None, str]
"""From which share an answer was paid, and about which table."""


class PaidIndex:
    """The numbers of all kept answers by whose they are, from the history, which only grows."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._read = 0  # entries of the history
        self._numbers: dict[Whose, array[int]] = {}
        self._charged: dict[int, Whose] = {}  # and not kept yet
        self._streams: dict[str, Whose] = {}

    def after(self, number: int, *, shown: int, who: TokenRecord) -> list[int]:
        """The numbers above one that a token may see, in order; of the entries that are shown."""
        with self._lock:
            while self._read < shown:
                for entry in self._budget.history[self._read : min(self._read + _AT_ONCE, shown)]:
                    self._add(entry)
                    self._read = entry.number
            mine = [numbers for whose, numbers in self._numbers.items() if _may_see(who, whose)]
            return list(merge(*(some[bisect_right(some, number) :] for some in mine)))

    def _add(self, entry: Entry) -> None:
        body = entry.body
        match entry.kind:
            case "open":
                self._streams[body["stream"]] = (body["analyst"], body["table"])
            case "charge" if "key" not in body:
                self._charged[entry.number] = (body["analyst"], body["table"])
            case "charge":
                self._keep(entry.number, (body["analyst"], body["table"]))
            case "top" | "told" if "key" in body:
                self._keep(entry.number, self._streams[body["stream"]])
            case "answer" if (whose := self._charged.pop(body["of"], None)) is not None:
                self._keep(body["of"], whose)

    def _keep(self, number: int, whose: Whose) -> None:
        insort(self._numbers.setdefault(whose, array("Q")), number)


def _may_see(who: TokenRecord, whose: Whose) -> bool:
    analyst, table = whose
    own = who.share is not None and who.share == analyst
    return who.may_ask(table) and (own or who.role != "analyst")


def list_answers(
    service: Service, who: TokenRecord, asked: messages.AnswersAfter
) -> messages.AnswerList:
    """A page of answers: an analyst's own, what a viewer may see, all for a steward."""
    shown = service.underway.shown()
    told: list[messages.Wire] = []
    length = 0
    for number in service.paid.after(asked.after, shown=shown, who=who):
        if told and (len(told) >= asked.most or length >= _LONGEST_PAGE):
            return messages.AnswerList(told, more=True)
        answer = _shown(service.budget, number, shown)
        if who.role == "viewer":
            if answer.response is None:
                continue
            answer = replace(answer, analyst=None)
        told.append(to_json(answer))
        length += len(to_line(answer))
    return messages.AnswerList(told, more=False)


def _shown(budget: Budget, number: int, shown: int) -> PaidSummary:
    """An answer, without what was told if that has not left yet."""
    paid = budget.answers[number]
    unseen = paid.kept.recorded is not None and paid.kept.recorded > shown
    return replace(paid_summary(paid), response=None) if unseen else paid_summary(paid)
