"""What an analyst holds of a server: its tables, their budget, and plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from tacit import wire
from tacit.arguments import flag, text
from tacit.errors import BadParameter, NotCovered, ServerUnavailable
from tacit.numbers import Number, exact, positive
from tacit.privacy import Privacy
from tacit.remote.answers import RemoteAnswers
from tacit.remote.requests import RemoteRequests
from tacit.remote.stopping import RemoteStopping
from tacit.remote.table import RemoteTable
from tacit.remote.transport import Transport
from tacit.support import Closing

if TYPE_CHECKING:
    from tacit.analyst.plan import Algorithm, Plan
    from tacit.analyst.task import Kind
    from tacit.book.recipes import Values
    from tacit.budget import Amount, Share
    from tacit.wire import ShownBudget, StreamSummary

SPOKEN = (1,)
"""The versions of the protocol that this client speaks."""

_WORDS = {"kind": ("counts", "directed", "any"), "values": ("gap", "fresh")}


def connect(
    url: str | None = None, *, token: str | None = None, timeout: Number = 60
) -> RemoteServer:
    """Connect to a server of Tacit; ``tacit.connect`` is this function.

    ``url`` is the server's address and ``token`` what its steward gave you; by default they are
    what TACIT_URL and TACIT_TOKEN say.  ``timeout`` is how many seconds to wait for an answer.
    """
    place = os.environ.get("TACIT_URL") if url is None else url
    secret = os.environ.get("TACIT_TOKEN") if token is None else token
    if place is None:
        raise BadParameter("url", None, "give the server's address, or set TACIT_URL")
    if secret is None:
        raise BadParameter(
            "token", None, "give the token that the steward made, or set TACIT_TOKEN"
        )
    seconds = positive(timeout, "timeout")
    if seconds > 10**6:
        raise BadParameter("timeout", "a number", "it must be at most 1000000 seconds")
    connection = RemoteServer(Transport(place, secret, timeout=float(seconds)))
    try:
        connection.check_version()
    except BaseException:
        connection.close()
        raise
    return connection


connect.__qualname__ = "tacit.connect"  # as in Python's own words when an argument is wrong


class RemoteServer(Closing):
    """A server: its tables, what is left of their budget, and plans."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    @property
    def place(self) -> str:
        """The server's address."""
        return self._transport.place

    def check_version(self) -> None:
        """Refuse a server that this client does not understand."""
        spoken = self._transport.get("/versions").get("versions")
        if not isinstance(spoken, list) or not all(type(one) is int for one in spoken):
            raise ServerUnavailable(f"{self._transport.place} is not a Tacit server")
        if not set(spoken) & set(SPOKEN):
            older = max(spoken, default=0) < min(SPOKEN)
            theirs, ours = (", ".join(map(str, each)) for each in (spoken, SPOKEN))
            raise ServerUnavailable(
                f"{self._transport.place} speaks version {theirs} of the protocol, and this Tacit "
                f"speaks {ours}",
                advice=f"install {'an older' if older else 'a newer'} Tacit",
            )

    @property
    def tables(self) -> tuple[RemoteTable, ...]:
        """The tables that the token may ask."""
        told = self._transport.get("/v1/tables")
        every = told["tables"]
        return tuple(RemoteTable(self._transport, fields, every) for fields in every)

    def table(self, name: str) -> RemoteTable:
        """A table by its name."""
        text(name, "name", "give the name of a table")
        tables = self.tables
        for table in tables:
            if table.name == name:
                return table
        known = ", ".join(table.name for table in tables) or "none"
        raise NotCovered(f"this token may ask {known}, and not {name[:200]!r}")

    @property
    def budget(self) -> RemoteBudget:
        """What was promised to people, and what is left of it."""
        return RemoteBudget(self._transport)

    @property
    def answers(self) -> RemoteAnswers:
        """Answers that were paid for, as they were told."""
        return RemoteAnswers(self._transport)

    @property
    def stop(self) -> RemoteStopping:
        """Stops a stream, a token or a table at once, for a steward: ``clinic.stop(table=...)``."""
        return RemoteStopping(self._transport)

    def refresh(self, table: str, *, as_of: str, whole: bool = False) -> RemoteTable:
        """Read a table's next version, for a steward: see ``Table.refresh``.

        The server reads where its file says.  Streams go on, and what is asked meanwhile is
        answered from the version before.  The new label holds across restarts.
        """
        fields = {
            "table": text(table, "table", "give the name of a table"),
            "as_of": text(as_of, "as_of", "give a label such as '2026-12-01'"),
            "whole": flag(whole, "whole"),
        }
        told = self._transport.post("/v1/refresh", fields)
        return RemoteTable(self._transport, told, self._transport.get("/v1/tables")["tables"])

    @property
    def plan(self) -> RemotePlans:
        """Plans, as ``tacit.plan`` makes them, found by the server."""
        return RemotePlans(self._transport)

    def __repr__(self) -> str:
        return f"<connection to {self._transport.place}>"


@dataclass(frozen=True, slots=True)
class RemotePrice:
    """What would be charged, what is left of the token's share, and whether it fits."""

    price: Amount
    left: Amount | None
    fits: bool

    def __str__(self) -> str:
        if self.left is None:
            return f"{self.price}; the token draws from no share"
        return f"{self.price}, of {self.left} that is left: {'fits' if self.fits else 'too much'}"


class RemoteBudget:
    """A budget as its server shows it now: each look asks anew."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _told(self) -> dict[str, Any]:
        return self._transport.get("/v1/budget")

    @property
    def promise(self) -> Privacy:
        """What was promised in all."""
        told = self._told()["promise"]
        return Privacy(told["epsilon"], told["delta"])

    @property
    def covers(self) -> tuple[str, ...]:
        """The tables that it covers and the token may ask."""
        return tuple(self._told()["covers"])

    @property
    def whole(self) -> Share:
        """All shares together: the limit, what was spent and what is left."""
        return _share(self._told()["whole"])

    @property
    def spent(self) -> Amount:
        """What was spent in all, in the accountant's currency."""
        return self.whole.spent

    @property
    def left(self) -> Amount:
        """What was promised and not spent in all, in the accountant's currency."""
        return self.whole.left

    @property
    def own(self) -> Share | None:
        """The share that the token draws from; None if it draws from none."""
        told = self._told()["own"]
        return None if told is None else _share(told)

    def show(self) -> ShownBudget:
        """All that the server shows of it at once, with the streams that the token may see."""
        from tacit.errors import NotAuthorised
        from tacit.wire import ShownBudget

        told, streams = self._told(), []
        with suppress(NotAuthorised):  # a viewer sees none
            streams = self.streams()
        return ShownBudget(
            promise=Privacy(told["promise"]["epsilon"], told["promise"]["delta"]),
            accountant=told["accountant"],
            covers=tuple(told["covers"]),
            people=told.get("people", {}),
            whole=_share(told["whole"]),
            own=None if told["own"] is None else _share(told["own"]),
            shares=tuple(_share(share) for share in told["shares"]),
            streams=tuple(streams),
        )

    def price(self, *, epsilon: Number) -> RemotePrice:
        """What a count, a sum or another release with this ε would cost; nothing is charged."""
        from tacit.budget import Amount

        told = self._transport.post("/v1/price", {"epsilon": str(exact(epsilon, "epsilon"))})
        left = None if told["left"] is None else Amount.from_json(told["left"])
        return RemotePrice(Amount.from_json(told["price"]), left, told["fits"])

    @property
    def requests(self) -> RemoteRequests:
        """Requests for more: the token's own, or everybody's for a steward, who decides."""
        return RemoteRequests(self._transport)

    def streams(self) -> list[StreamSummary]:
        """The token's own streams; all of them for a steward."""
        from tacit.wire import StreamSummary

        told = self._transport.get("/v1/streams")["streams"]
        return [wire.from_json(fields, StreamSummary) for fields in told]

    def __repr__(self) -> str:
        return f"<budget at {self._transport.place}>"


def _share(fields: object) -> Share:
    from tacit.budget import Share

    return wire.from_json(fields, Share)


class PlanNumbers(TypedDict, total=False):
    """What ``tacit.plan.above_threshold`` takes."""

    questions: Required[int]
    epsilon: Number | None
    alpha: Number | None
    beta: Number
    kind: Kind
    rounds: int


class SparsePlanNumbers(PlanNumbers, total=False):
    """What ``tacit.plan.sparse`` takes."""

    at_most: Required[int]
    delta: Number


class NumericSparsePlanNumbers(SparsePlanNumbers, total=False):
    """What ``tacit.plan.numeric_sparse`` takes."""

    values: Values


class RemotePlans:
    """Plans by a server: the same as ``tacit.plan``, which needs none."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"<plans by {self._transport.place}>"

    def above_threshold(self, **numbers: Unpack[PlanNumbers]) -> Plan:
        """A plan for AboveThreshold."""
        return self._plan("above_threshold", dict(numbers))

    def sparse(self, **numbers: Unpack[SparsePlanNumbers]) -> Plan:
        """A plan for Sparse."""
        return self._plan("sparse", dict(numbers))

    def numeric_sparse(self, **numbers: Unpack[NumericSparsePlanNumbers]) -> Plan:
        """A plan for NumericSparse."""
        return self._plan("numeric_sparse", dict(numbers))

    def _plan(self, algorithm: Algorithm, numbers: Mapping[str, Any]) -> Plan:
        from tacit.analyst import plan
        from tacit.arguments import one_of

        given = signature(getattr(plan, algorithm)).bind(**numbers)
        given.apply_defaults()
        words = {
            name: one_of(given.arguments.pop(name), name, allowed)
            for name, allowed in _WORDS.items()
            if name in given.arguments
        }
        told = {
            name: None if number is None else str(exact(number, name))
            for name, number in given.arguments.items()
        }
        fields = {"algorithm": algorithm, **words, **told}
        return wire.from_json(self._transport.post("/v1/plan", fields)["plan"], plan.Plan)
