"""The overview: tables, the promise as gauges, open streams and the last answers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.analyst.binding import mechanism_of
from tacit.budget import Amount, Share, StreamState
from tacit.errors import TacitError
from tacit.page.lines import last_lines
from tacit.page.rendering import fragment, page
from tacit.server.endpoints import Content
from tacit.server.rights import sees_all_shares
from tacit.server.service import Service, list_tables, seen, show_budget
from tacit.server.tokens import TokenRecord
from tacit.tables.language.show import declared_in_words
from tacit.wire import from_json, stream_summary

_LAST = 10  # answers
_RETRY_MILLISECONDS = 3000  # until a browser looks again
_WIDTH = 1000  # of a gauge, in the units of its picture


@dataclass(frozen=True, slots=True)
class Gauge:
    """What was promised, as a bar: spent for good, paid for streams that go on, and left."""

    title: str
    share: Share
    reserved: Amount | None  # part of what is spent; None: not to be seen
    whole: bool = False  # what was promised to people, and not a share of it

    @property
    def scarcest(self) -> int:
        """Which unit runs out first, of ε and δ."""
        both = self.share.spent.beside(self.share.limit)
        parts = [used / most if most else Fraction(0) for used, most in both]
        return parts.index(max(parts))

    def _part(self, amount: Amount | None) -> float:
        most = self.share.limit.numbers[self.scarcest]
        if amount is None or not most:
            return 0.0
        return float(min(Fraction(1), amount.numbers[self.scarcest] / most)) * _WIDTH

    @property
    def spent_width(self) -> float:
        """How far the bar is filled."""
        return round(self._part(self.share.spent), 1)

    @property
    def reserved_width(self) -> float:
        """How much of that is for streams that go on."""
        return round(min(self._part(self.reserved), self._part(self.share.spent)), 1)

    @property
    def words(self) -> str:
        """For whoever does not see the bar."""
        part = show_percent(self.share.part_left)
        return f"{part} left"


def show_percent(part: Fraction) -> str:
    """A part in whole per cent, rounded down: what is said to be left is left.

    >>> show_percent(Fraction(1, 3))
    '33 %'
    """
    return f"{int(100 * part)} %"


def overview(service: Service, who: TokenRecord) -> Content:
    """The whole page, with everything in it."""
    tables = list_tables(service, who).tables
    declared = {
        table.name: [declared_in_words(one) for one in service.tables[table.name].schema.columns]
        for table in tables
    }
    shown = {"tables": tables, "declared": declared}
    return page("overview.html", who, here="overview", **shown, **_live(service, who))


def live(service: Service, who: TokenRecord) -> Content:
    """What changes, as one server-sent event; the browser comes back after a while.

    It leaves on the clock as every response does, and shows nothing that has not left.
    """
    shown = fragment("_live.html", who=who, **_live(service, who)).body
    lines = b"\n".join(b"data: " + line for line in shown.splitlines())
    event = b"retry: %d\n%s\n\n" % (_RETRY_MILLISECONDS, lines)
    return Content(event, "text/event-stream; charset=utf-8")


def _live(service: Service, who: TokenRecord) -> dict[str, Any]:
    streams = [] if who.role == "viewer" else seen(service, who)
    going_on = [stream for stream in streams if not stream.ended]
    return {
        "gauges": gauges(service, who, going_on),
        "streams": [stream_summary(stream) for stream in reversed(going_on)],
        "ended": len(streams) - len(going_on),
        "answers": last_lines(service, who, most=_LAST),
    }


def gauges(service: Service, who: TokenRecord, going_on: list[StreamState]) -> list[Gauge]:
    """The whole promise, one's own share, and for a steward of all tables everybody's."""
    facts = show_budget(service, who)
    reserved: dict[str | None, Amount] = {}
    for stream in going_on:
        with suppress(TacitError):  # not one of ours, or zCDP cannot charge it any more
            recipe = mechanism_of(stream.binding, stream.name).recipe
            paid = service.budget.accountant.charge(recipe.cost)
            before = reserved.get(stream.analyst)
            reserved[stream.analyst] = paid if before is None else before + paid
    everybody = sees_all_shares(who)
    total = list(reserved.values()) if everybody else []
    whole = sum(total[1:], total[0]) if total else None
    found = [Gauge("The whole promise", from_json(facts.whole, Share), whole, whole=True)]
    if facts.own is not None:
        own = from_json(facts.own, Share)
        found.append(Gauge("Your share", own, reserved.get(own.analyst)))
    for one in facts.shares:
        share = from_json(one, Share)
        title = "Not shared" if share.analyst is None else share.analyst
        found.append(Gauge(title, share, reserved.get(share.analyst)))
    return found
