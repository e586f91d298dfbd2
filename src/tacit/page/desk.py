"""The steward's desk, and the analyst's: shares, tokens, requests, tables, refusals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from tacit.analyst.dummy import dummy
from tacit.page import examples
from tacit.page.overview import gauges
from tacit.page.refusals import or_refused
from tacit.page.rendering import fragment, page
from tacit.server import desk, messages
from tacit.server.endpoints import Content
from tacit.server.requests import ask_for_more, decide, list_requests
from tacit.server.rights import reaches, sees_all_shares
from tacit.server.service import Service, list_tables, list_tokens, seen
from tacit.server.stopped import go_on, list_stopped, stop
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json
from tacit.wire.stopped import Stoppable

_REMEMBERED = 1000  # forms that were sent
_MADE_UP = 1000  # people


class KeyedShare(desk.ShareOf, forbid_unknown_fields=True, kw_only=True):
    """A share, sent by a form."""

    key: messages.Key


class KeyedToken(desk.NewToken, forbid_unknown_fields=True, kw_only=True):
    """A new token, sent by a form."""

    key: messages.Key


class KeyedName(desk.TokenNamed, forbid_unknown_fields=True, kw_only=True):
    """A token to be revoked, sent by a form."""

    key: messages.Key


class KeyedDecision(messages.Decision, forbid_unknown_fields=True, kw_only=True):
    """What a steward says to a request, sent by a form."""

    key: messages.Key


class KeyedRequest(messages.MoreBudget, forbid_unknown_fields=True, kw_only=True):
    """A request for more, sent by a form."""

    key: messages.Key


class KeyedStop(Struct, forbid_unknown_fields=True):
    """What is to be stopped, or to go on, sent by a form."""

    key: messages.Key
    kind: Stoppable
    name: str
    stopped: bool
    reason: Annotated[str, Meta(max_length=1000)] = ""


Change = Callable[[Service, TokenRecord, Any], Content]


@dataclass(eq=False)
class Once:
    """Forms that were sent: one that is sent again changes nothing, and is answered as before."""

    _told: OrderedDict[tuple[str, str], tuple[Any, Content]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, change: Change) -> Change:
        """The same change, once for each key; those with one key come one after another."""

        def once(service: Service, who: TokenRecord, asked: Any) -> Content:
            key = (who.sha256, asked.key)
            with self._lock:
                before = self._told.get(key)
            if before is not None and before[0] == asked:
                return before[1]
            told = change(service, who, asked)
            with self._lock:
                self._told[key] = (asked, told)
                while len(self._told) > _REMEMBERED:
                    self._told.popitem(last=False)
            return told

        return once


def _plain(asked: Struct, kind: type[Any]) -> Any:
    """What a form sent, without its key."""
    names = kind.__struct_fields__
    return kind(**{name: value for name, value in structs.asdict(asked).items() if name in names})


# The steward's --------------------------------------------------------------------------------


def steward_page(service: Service, who: TokenRecord) -> Content:
    """Everything a steward decides."""
    return page("steward.html", who, here="steward", **_steward(service, who))


def _steward(service: Service, who: TokenRecord, new: str = "") -> dict[str, Any]:
    stopped = {(one["kind"], one["name"]) for one in list_stopped(service, who).stopped}
    found = [from_json(one) for one in list_requests(service, who).requests]
    refusals = [line for other, line in service.refusals if reaches(who, other)]
    return {
        "everything": sees_all_shares(who),
        "shares": gauges(service, who, [])[1:],
        "units": service.budget.whole.limit.units,
        "tokens": list_tokens(service, who).tokens[::-1],
        "tables": list_tables(service, who).tables,
        "streams": [state.name for state in seen(service, who) if not state.ended],
        "stopped": stopped,
        "open_requests": [one for one in found if one.status == "open"],
        "decided": [one for one in found if one.status != "open"][:-21:-1],
        "refusals": refusals[:-51:-1],
        "new": new,
    }


def change_share(service: Service, who: TokenRecord, asked: KeyedShare) -> Content:
    """Set a share."""
    desk.set_share(service, who, _plain(asked, desk.ShareOf))
    return fragment("_desk.html", **_steward(service, who))


def make_token(service: Service, who: TokenRecord, asked: KeyedToken) -> Content:
    """Make a token, and show it once."""
    made = desk.make_token(service, who, _plain(asked, desk.NewToken))
    return fragment("_desk.html", **_steward(service, who, made))


def revoke_token(service: Service, who: TokenRecord, asked: KeyedName) -> Content:
    """Revoke a token."""
    desk.revoke_token(service, who, _plain(asked, desk.TokenNamed))
    return fragment("_desk.html", **_steward(service, who))


def decide_request(service: Service, who: TokenRecord, asked: KeyedDecision) -> Content:
    """Approve or decline."""
    decide(service, who, _plain(asked, messages.Decision))
    return fragment("_desk.html", **_steward(service, who))


def stop_or_go_on(service: Service, who: TokenRecord, asked: KeyedStop) -> Content:
    """Stop a stream, a token or a table, or let it go on."""
    if asked.stopped:
        stop(service, who, messages.StopOf(asked.kind, asked.name, asked.reason))
    else:
        go_on(service, who, messages.GoOnWith(asked.kind, asked.name))
    return fragment("_desk.html", **_steward(service, who))


# The analyst's ----------------------------------------------------------------------------------


class Tried(Struct, forbid_unknown_fields=True):
    """A question to a made-up table."""

    table: str
    question: str
    epsilon: messages.Number = 1


def budget_page(service: Service, who: TokenRecord) -> Content:
    """One's own share, requests for more, and a made-up table to try questions on."""
    tables = list_tables(service, who).tables
    example = examples.question(service.tables[tables[0].name].schema) if tables else ""
    shown = {"tables": tables, "example": example, **_analyst(service, who)}
    return page("budget.html", who, here="budget", **shown)


def _analyst(service: Service, who: TokenRecord) -> dict[str, Any]:
    going_on = [state for state in seen(service, who) if not state.ended]
    return {
        "gauges": gauges(service, who, going_on),
        "requests": [from_json(one) for one in list_requests(service, who).requests][::-1],
        "units": service.budget.whole.limit.units,
    }


def request_more(service: Service, who: TokenRecord, asked: KeyedRequest) -> Content:
    """Ask for more."""
    ask_for_more(service, who, _plain(asked, messages.MoreBudget))
    return fragment("_requests.html", **_analyst(service, who))


@or_refused("tried")
def try_question(service: Service, who: TokenRecord, asked: Tried) -> Content:
    """A count of a made-up table with the same schema: it is about nobody, and free."""
    real = service.table(asked.table, who)
    with dummy(real.schema, people=_MADE_UP, as_of=real.as_of) as made_up:
        told = made_up.count(asked.question, epsilon=asked.epsilon, budget=made_up.budget)
    return fragment("_tried.html", question=asked.question, told=told, people=_MADE_UP)
