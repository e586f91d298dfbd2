"""Requests for more budget, asked for and decided over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tacit import wire
from tacit.arguments import text
from tacit.errors import BadParameter
from tacit.numbers import Number, exact, whole
from tacit.remote.transport import Transport

if TYPE_CHECKING:
    from tacit.budget import BudgetRequest


class RemoteRequests:
    """An analyst's own requests for more, oldest first; everybody's for a steward."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __iter__(self) -> Iterator[BudgetRequest]:
        told = self._transport.get("/v1/requests")["requests"]
        return iter([_request(fields) for fields in told])

    def ask(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        reason: str,
    ) -> BudgetRequest:
        """Ask that the token's own share grow by this much, and say why."""
        text(reason, "reason", "say why")
        amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
        asked: dict[str, Any] = {
            name: str(exact(amount, name)) for name, amount in amounts.items() if amount is not None
        }
        return self._told("/v1/request", {**asked, "reason": reason})

    def approve(self, number: int) -> BudgetRequest:
        """Let the share grow by what was asked; for a steward."""
        return self._told("/v1/decide", {"number": whole(number, "number"), "approve": True})

    def decline(self, number: int, *, reason: str = "") -> BudgetRequest:
        """Leave the share as it is, and say why; for a steward."""
        asked = {"number": whole(number, "number"), "approve": False, "reason": reason}
        text(reason, "reason", "say why, or leave it out")
        return self._told("/v1/decide", asked)

    def __getitem__(self, number: int) -> BudgetRequest:
        """By its number."""
        for request in self:
            if request.number == number:
                return request
        raise BadParameter("number", number, "no request of this number is shown to this token")

    def _told(self, path: str, fields: dict[str, Any]) -> BudgetRequest:
        # Asking again for what is open, and deciding again as it was decided, change nothing.
        return _request(self._transport.post(path, fields)["request"])

    def __repr__(self) -> str:
        return f"<requests at {self._transport.place}>"


def _request(fields: object) -> BudgetRequest:
    from tacit.budget import BudgetRequest

    return wire.from_json(fields, BudgetRequest)
