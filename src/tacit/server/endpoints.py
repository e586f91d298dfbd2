"""What a server can be asked, in one table: the routes and the OpenAPI document are made from it.

Names stand in bodies and never in paths, so that none of them is cut, decoded twice or written to
the log of a proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tacit.server import messages, service
from tacit.server.clock import RequestKind
from tacit.server.tokens import Role

ANYBODY: frozenset[Role] = frozenset({"analyst", "steward", "viewer"})
STEWARD: frozenset[Role] = frozenset({"steward"})
ASKS: frozenset[Role] = frozenset({"analyst", "steward"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked for, by whom, and how it is answered."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    gives: Any  # the type of the response; str is plain text
    answer: Callable[..., Any]  # from the service, who asks and what they sent
    kind: RequestKind = "look"
    roles: frozenset[Role] | None = ANYBODY  # None: without a token
    takes: type[Any] | None = None


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
        summary="Whether the server is there.",
        roles=None,
        gives=messages.Healthy,
        answer=_healthy,
    ),
    Endpoint(
        method="GET",
        path="/versions",
        summary="Which versions of the protocol it speaks.",
        roles=None,
        gives=messages.Versions,
        answer=_versions,
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        summary="This document.",
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
        summary="The tables that the token may ask, with their public schemas.",
        gives=messages.TableList,
        answer=service.list_tables,
    ),
    Endpoint(
        method="POST",
        path="/v1/check",
        summary="What is promised about questions, or why they are refused; it costs nothing.",
        kind="check",
        roles=ASKS,
        takes=messages.Check,
        gives=messages.Statements,
        answer=service.check,
    ),
    Endpoint(
        method="POST",
        path="/v1/plan",
        summary="Which error a stream has, or which ε it takes, and its price; it costs nothing.",
        kind="plan",
        roles=ASKS,
        takes=messages.PlanOf,
        gives=messages.PlanFound,
        answer=service.find_plan,
    ),
    Endpoint(
        method="POST",
        path="/v1/price",
        summary="What a release costs, and whether it fits; nothing is charged.",
        roles=ASKS,
        takes=messages.PriceOf,
        gives=messages.Price,
        answer=service.find_price,
    ),
    Endpoint(
        method="GET",
        path="/v1/budget",
        summary="What was promised and what is left, in all and of the token's share.",
        gives=messages.BudgetFacts,
        answer=service.show_budget,
    ),
    Endpoint(
        method="GET",
        path="/v1/streams",
        summary="The analyst's streams; all of them for a steward.",
        roles=ASKS,
        gives=messages.StreamList,
        answer=service.list_streams,
    ),
    Endpoint(
        method="GET",
        path="/v1/tokens",
        summary="The tokens, by name.",
        roles=STEWARD,
        gives=messages.TokenList,
        answer=service.list_tokens,
    ),
)
