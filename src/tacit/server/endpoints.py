"""What a server can be asked, in one table: the routes and the OpenAPI document are made from it.

Names stand in bodies and never in paths, so that none of them is cut, decoded twice or written to
the log of a proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from tacit.server import (
    live,
    messages,
    paid,
    refreshed,
    releases,
    requests,
    service,
    stopped,
    streams,
    watched,
)
from tacit.server.clock import RequestKind
from tacit.server.tokens import Role, TokenRecord

ANYBODY: frozenset[Role] = frozenset({"analyst", "steward", "viewer"})
STEWARD: frozenset[Role] = frozenset({"steward"})
ASKS: frozenset[Role] = frozenset({"analyst", "steward"})
ANALYST: frozenset[Role] = frozenset({"analyst"})


@dataclass(frozen=True, slots=True)
class Content:
    """What leaves as it is, such as a page; its headers replace the usual ones of their names."""

    body: bytes
    media: str
    headers: dict[str, str] = field(default_factory=dict)
    status: int | None = None  # None: 200, or what a problem has


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked for, by whom, and how it is answered."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    gives: Any  # the type of the response; str is plain text, an AskedBatch lines of JSON,
    # a Content itself
    answer: Callable[..., Any]  # from the service, who asks and what they sent
    kind: RequestKind = "look"
    roles: frozenset[Role] | None = ANYBODY  # None: without a token
    takes: type[Any] | None = None
    line: Line | None = None  # requests with the same line are answered one after another
    shown_wrong: Callable[[dict[str, Any]], Content] | None = None  # a problem, for people to read
    quiet: bool = False  # asked every few seconds: nothing is noted if all is well


Line = Callable[[TokenRecord, Any], Hashable]


def by_stream(who: TokenRecord, asked: Any) -> Hashable:
    """One stream is asked one question at a time, wherever they come from."""
    return "stream", asked.stream


def _by_table(who: TokenRecord, asked: Any) -> Hashable:
    return "table", asked.table


def by_key(who: TokenRecord, asked: Any) -> Hashable:
    """Whatever has the same key waits for the first of it."""
    return "key", who.sha256, asked.key


def _release(path: str, summary: str, takes: type[Any], answer: Callable[..., Any]) -> Endpoint:
    """What is paid for and drawn in one go."""
    kinds: dict[str, RequestKind] = {
        "/v1/count": "count",
        "/v1/sum": "count",
        "/v1/small_db": "small_db",
        "/v1/synthetic": "synthetic",
    }
    return Endpoint(
        method="POST",
        path=path,
        summary=summary,
        kind=kinds.get(path, "release"),
        roles=ASKS,
        takes=takes,
        gives=messages.Released,
        answer=answer,
        line=by_key,
    )


def _on_stream(
    path: str, summary: str, answer: Callable[..., Any], gives: type[Any] = messages.StreamFacts
) -> Endpoint:
    """What is done with a stream of one's own."""
    return Endpoint(
        method="POST",
        path=f"/v1/streams/{path}",
        summary=summary,
        kind="stream",
        roles=ASKS,
        takes=messages.ResumeOf if path == "resume" else messages.StreamNamed,
        gives=gives,
        answer=answer,
        line=by_stream,
    )


def _healthy() -> messages.Healthy:
    return messages.Healthy()


def _versions() -> messages.Versions:
    return messages.Versions(list(messages.VERSIONS))


@cache
def _document() -> dict[str, Any]:
    from tacit.server.openapi import document

    return document(ENDPOINTS)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/healthz",
        summary="Check that the server is running.",
        roles=None,
        gives=messages.Healthy,
        answer=_healthy,
    ),
    Endpoint(
        method="GET",
        path="/versions",
        summary="List the protocol versions that the server speaks.",
        roles=None,
        gives=messages.Versions,
        answer=_versions,
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        summary="The OpenAPI document.",
        roles=None,
        gives=dict[str, Any],
        answer=_document,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        summary="Counters for Prometheus.",
        roles=STEWARD,
        gives=str,
        answer=service.show_metrics,
    ),
    Endpoint(
        method="GET",
        path="/v1/tables",
        summary="The tables that the token may ask about, with their public schemas.",
        gives=messages.TableList,
        answer=service.list_tables,
    ),
    Endpoint(
        method="POST",
        path="/v1/check",
        summary="What is promised about questions, or why they are refused. Free.",
        kind="check",
        roles=ASKS,
        takes=messages.Check,
        gives=messages.Statements,
        answer=service.check,
    ),
    Endpoint(
        method="POST",
        path="/v1/plan",
        summary="The error of a stream, or the ε it needs, and its price. Free.",
        kind="plan",
        roles=ASKS,
        takes=messages.PlanOf,
        gives=messages.PlanFound,
        answer=service.find_plan,
    ),
    Endpoint(
        method="POST",
        path="/v1/price",
        summary="What a release would cost, and whether it fits. Free.",
        roles=ASKS,
        takes=messages.PriceOf,
        gives=messages.Price,
        answer=service.find_price,
    ),
    Endpoint(
        method="GET",
        path="/v1/budget",
        summary="What was promised and what is left, in total and of the token's share.",
        gives=messages.BudgetFacts,
        answer=service.show_budget,
    ),
    Endpoint(
        method="GET",
        path="/v1/streams",
        summary="The analyst's own streams; for a steward, all of them.",
        roles=ASKS,
        gives=messages.StreamList,
        answer=service.list_streams,
    ),
    Endpoint(
        method="POST",
        path="/v1/answers",
        summary="Paid answers: an analyst's own; for a viewer, all released; for a steward, all.",
        takes=messages.AnswersAfter,
        gives=messages.AnswerList,
        answer=paid.list_answers,
    ),
    Endpoint(
        method="POST",
        path="/v1/request",
        summary="Ask for a larger share; nothing changes until a steward approves.",
        roles=ANALYST,
        takes=messages.MoreBudget,
        gives=messages.RequestTold,
        answer=requests.ask_for_more,
    ),
    Endpoint(
        method="GET",
        path="/v1/requests",
        summary="Requests for a larger share: the analyst's own; for a steward, all.",
        roles=ASKS,
        gives=messages.RequestList,
        answer=requests.list_requests,
    ),
    Endpoint(
        method="POST",
        path="/v1/decide",
        summary="Decline a request, or approve it from what is not shared.",
        roles=STEWARD,
        takes=messages.Decision,
        gives=messages.RequestTold,
        answer=requests.decide,
    ),
    Endpoint(
        method="POST",
        path="/v1/refresh",
        summary="Read a table's next version, under a new label; streams continue.",
        kind="refresh",
        roles=STEWARD,
        takes=messages.RefreshOf,
        gives=messages.TableFacts,
        answer=refreshed.refresh,
        line=_by_table,
    ),
    Endpoint(
        method="POST",
        path="/v1/stop",
        summary="Refuse a stream, a token or a table from now on.",
        roles=STEWARD,
        takes=messages.StopOf,
        gives=messages.StoppedList,
        answer=stopped.stop,
    ),
    Endpoint(
        method="POST",
        path="/v1/go_on",
        summary="Allow again what was stopped.",
        roles=STEWARD,
        takes=messages.GoOnWith,
        gives=messages.StoppedList,
        answer=stopped.go_on,
    ),
    Endpoint(
        method="GET",
        path="/v1/stopped",
        summary="Everything that is stopped.",
        roles=STEWARD,
        gives=messages.StoppedList,
        answer=stopped.list_stopped,
    ),
    Endpoint(
        method="GET",
        path="/v1/tokens",
        summary="The tokens, by name.",
        roles=STEWARD,
        gives=messages.TokenList,
        answer=service.list_tokens,
    ),
    _release("/v1/count", "A noisy answer to one question.", messages.CountOf, releases.count),
    _release("/v1/sum", "A noisy sum of a column.", messages.SumOf, releases.add_up),
    _release(
        "/v1/histogram",
        "A noisy count for every declared cell.",
        messages.HistogramOf,
        releases.histogram,
    ),
    _release(
        "/v1/query",
        "Several aggregates of every declared cell.",
        messages.QueryOf,
        releases.query,
    ),
    _release(
        "/v1/ranges",
        "Every prefix, interval and quantile of a column.",
        messages.RangesOf,
        releases.ranges,
    ),
    _release("/v1/running", "The running count of a column.", messages.RangesOf, releases.running),
    _release("/v1/top", "The n largest of some counts.", messages.TopOf, releases.top),
    _release(
        "/v1/small_db",
        "A small database that answers a class of questions.",
        messages.SmallDbOf,
        releases.small_db,
    ),
    _release(
        "/v1/synthetic",
        "Invented rows that may be published.",
        messages.SyntheticOf,
        releases.synthetic,
    ),
    Endpoint(
        method="POST",
        path="/v1/streams/open",
        summary="Open a stream and pay for it in full.",
        kind="open",
        roles=ASKS,
        takes=messages.OpenOf,
        gives=messages.StreamOpened,
        answer=streams.open_stream,
        line=by_key,
    ),
    Endpoint(
        method="POST",
        path="/v1/streams/ask",
        summary="Ask one question; the answer is ⊥ or ⊤.",
        kind="ask",
        roles=ASKS,
        takes=messages.AskOf,
        gives=messages.Told,
        answer=streams.ask,
        line=by_stream,
    ),
    Endpoint(
        method="POST",
        path="/v1/streams/ask_all",
        summary="Ask a batch, up to its first new ⊤; one line of JSON per block.",
        kind="batch",
        roles=ASKS,
        takes=messages.AskAllOf,
        gives=live.AskedBatch,
        answer=streams.ask_all,
        line=by_stream,
    ),
    _on_stream("resume", "Resume a stream.", streams.resume_stream, messages.StreamOpened),
    _on_stream("suspend", "Suspend a stream, to be resumed later.", streams.suspend_stream),
    _on_stream("show", "The current state of a stream.", streams.show_stream),
    _on_stream("recorded", "Every ⊤ on record.", streams.recorded, messages.RecordedTops),
    _on_stream("close", "End a stream for good; nothing is refunded.", streams.close_stream),
    Endpoint(
        method="POST",
        path="/v1/watched/open",
        summary="Open a watched model and pay for it in full.",
        kind="synthetic",
        roles=ASKS,
        takes=messages.WatchOf,
        gives=messages.StreamOpened,
        answer=watched.open_watched,
        line=by_key,
    ),
    Endpoint(
        method="POST",
        path="/v1/watched/resume",
        summary="Resume a watched model.",
        kind="open",
        roles=ASKS,
        takes=messages.ResumeWatchedOf,
        gives=messages.StreamOpened,
        answer=watched.resume_watched,
        line=by_stream,
    ),
    Endpoint(
        method="POST",
        path="/v1/watched/ask",
        summary="Get a number for one count of people.",
        kind="ask",
        roles=ASKS,
        takes=messages.AskWatchedOf,
        gives=messages.Told,
        answer=watched.ask_watched,
        line=by_stream,
    ),
    Endpoint(
        method="POST",
        path="/v1/watched/ask_all",
        summary="Get numbers for a batch, up to its first new surprise; a line of JSON per block.",
        kind="batch",
        roles=ASKS,
        takes=messages.AskAllWatchedOf,
        gives=live.AskedBatch,
        answer=watched.ask_all_watched,
        line=by_stream,
    ),
)
