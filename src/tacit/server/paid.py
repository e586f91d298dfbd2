"""Answers that were paid for: whose they are, and a page of them for whoever may see them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection
from dataclasses import dataclass, replace
from heapq import merge
from threading import Lock
from typing import TYPE_CHECKING, Literal

from tacit.budget import Budget
from tacit.errors import BadParameter
from tacit.server import messages
from tacit.server.rights import tables_of_entry
from tacit.wire import PaidSummary, paid_summary, to_json, to_line

if TYPE_CHECKING:
    from tacit.budget import Entry, StreamState
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord

_AT_ONCE = 1000  # entries of the history
_LONGEST_PAGE = 1_000_000  # characters, unless one answer alone has more

Whose = tuple[str | None, frozenset[str], str | None]
"""From which share an answer was paid, which tables it names, and in which stream, if in one."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Answers of one stream; those of none were released in one go."""

    name: str | None


Source = StreamSource | Literal["anywhere"]


class PaidIndex:
    """The numbers of all kept answers by whose they are, from the history, which only grows."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._read = 0  # entries of the history
        self._numbers: dict[Whose, array[int]] = {}
        self._charged: dict[int, Whose] = {}  # and not kept yet
        self._streams: dict[str, StreamState] = {}

    def after(self, number: int, *, shown: int, who: TokenRecord) -> list[int]:
        """The numbers above one that a token may see, in order; of the entries that are shown."""
        with self._lock:
            mine = self._mine(shown, who)
            return list(merge(*(some[bisect_right(some, number) :] for some in mine)))

    def last(
        self, most: int, *, shown: int, who: TokenRecord, of: Source = "anywhere"
    ) -> list[int]:
        """The last numbers that a token may see, newest first."""
        with self._lock:
            ends = [some[-most:] for some in self._mine(shown, who, of)]
            return list(merge(*ends))[: -most - 1 : -1]

    def holds(self, number: int, *, shown: int, who: TokenRecord) -> bool:
        """Whether a token may see the answer of this number."""
        with self._lock:
            mine = self._mine(shown, who)
        places = [(some, bisect_left(some, number)) for some in mine]
        return any(at < len(some) and some[at] == number for some, at in places)

    def read(self, shown: int) -> None:
        """Read the history up to an entry, so that whoever looks first need not wait for it."""
        with self._lock:
            self._read_up_to(shown)

    def _read_up_to(self, shown: int) -> None:
        covered = self._budget.covers if self._read < shown else ()
        while self._read < shown:
            for entry in self._budget.history[self._read : min(self._read + _AT_ONCE, shown)]:
                self._add(entry, covered)
                self._read = entry.number

    def _mine(self, shown: int, who: TokenRecord, of: Source = "anywhere") -> list[array[int]]:
        self._read_up_to(shown)
        return [
            numbers
            for whose, numbers in self._numbers.items()
            if _may_see(who, whose) and (of == "anywhere" or of == StreamSource(whose[2]))
        ]

    def _add(self, entry: Entry, covered: Collection[str]) -> None:
        body = entry.body
        match entry.kind:
            case "open":
                self._streams[body["stream"]] = self._budget.stream(body["stream"])
            case "charge":
                paid: Whose = (body["analyst"], tables_of_entry(body, None, covered), None)
                if "key" in body:
                    self._keep(entry.number, paid)
                else:
                    self._charged[entry.number] = paid
            case "top" | "told" if "key" in body:
                stream = self._streams[body["stream"]]
                named = tables_of_entry(body, stream, covered)
                self._keep(entry.number, (stream.analyst, named, stream.name))
            case "answer" if (whose := self._charged.pop(body["of"], None)) is not None:
                self._keep(body["of"], whose)

    def _keep(self, number: int, whose: Whose) -> None:
        insort(self._numbers.setdefault(whose, array("Q")), number)


def _may_see(who: TokenRecord, whose: Whose) -> bool:
    analyst, tables, _ = whose
    own = who.share is not None and who.share == analyst
    return who.may_ask(*tables) and (own or who.role != "analyst")


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
        answer = _as_seen(service.budget, number, shown, who)
        if answer is not None:
            told.append(to_json(answer))
            length += len(to_line(answer))
    return messages.AnswerList(told, more=False)


def last_numbers(
    service: Service, who: TokenRecord, *, most: int, of: Source = "anywhere"
) -> list[int]:
    """Which answers a token may see, by their numbers, newest first."""
    return service.paid.last(most, shown=service.underway.shown(), who=who, of=of)


def find_answer(service: Service, who: TokenRecord, number: int) -> PaidSummary | None:
    """An answer by its number, as a token may see it; None if it is not told yet to a viewer."""
    shown = service.underway.shown()
    if number > shown or not service.paid.holds(number, shown=shown, who=who):
        raise BadParameter(
            "number", number, "you may see no answer of this number", "the release page lists them"
        )
    return _as_seen(service.budget, number, shown, who)


def _as_seen(budget: Budget, number: int, shown: int, who: TokenRecord) -> PaidSummary | None:
    """An answer as a token may see it; a viewer sees what was told, and not for whom."""
    answer = _shown(budget, number, shown)
    if who.role != "viewer":
        return answer
    return None if answer.response is None else replace(answer, analyst=None)


def _shown(budget: Budget, number: int, shown: int) -> PaidSummary:
    """An answer, without what was told if that has not left yet."""
    paid = budget.answers[number]
    unseen = paid.kept.recorded is not None and paid.kept.recorded > shown
    return replace(paid_summary(paid), response=None) if unseen else paid_summary(paid)
