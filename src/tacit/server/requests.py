"""Requests for more budget: asked by analysts, decided by a steward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import NotAuthorised
from tacit.server import messages
from tacit.server.rights import permit_all_tables, sees_share
from tacit.wire import to_json

if TYPE_CHECKING:
    from tacit.server.service import Service
    from tacit.server.tokens import TokenRecord


def ask_for_more(
    service: Service, who: TokenRecord, asked: messages.MoreBudget
) -> messages.RequestTold:
    """Ask that the token's own share grow; nothing changes until a steward approves."""
    if who.share is None:
        raise NotAuthorised("this token draws from no share that could grow")
    request = service.budget.requests.ask(
        who.share, epsilon=asked.epsilon, delta=asked.delta, rho=asked.rho, reason=asked.reason
    )
    return messages.RequestTold(to_json(request))


def list_requests(service: Service, who: TokenRecord) -> messages.RequestList:
    """An analyst's own requests; everybody's for a steward of all tables."""
    return messages.RequestList(
        [
            to_json(request)
            for request in service.budget.requests
            if sees_share(who, request.analyst)
        ]
    )


def decide(service: Service, who: TokenRecord, asked: messages.Decision) -> messages.RequestTold:
    """Approve or decline a request; a decision stays."""
    permit_all_tables(who, "requests for more")
    requests = service.budget.requests
    if asked.approve:
        return messages.RequestTold(to_json(requests.approve(asked.number)))
    return messages.RequestTold(to_json(requests.decline(asked.number, reason=asked.reason)))
