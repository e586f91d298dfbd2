"""What an analyst holds of a server: its tables, their budget, and plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit import wire
from tacit.arguments import kind_of, text
from tacit.errors import BadParameter, NotCovered, QuestionRefused, ServerUnavailable
from tacit.numbers import Number, exact, positive
from tacit.privacy import Privacy
from tacit.remote.transport import Transport
from tacit.support import Closing
from tacit.tables.schema import EACH_ROW, Schema, read_schema

if TYPE_CHECKING:
    from tacit.analyst.plan import Algorithm, Plan
    from tacit.analyst.task import Kind
    from tacit.budget import Amount, Share
    from tacit.tables.show import Statement
    from tacit.wire import StreamSummary

SPOKEN = (1,)
"""The versions of the protocol that this client speaks."""

_SCALARS = (str, int, float, bool, type(None))


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

    def check_version(self) -> None:
        """Refuse a server that this client does not understand."""
        spoken = self._transport.get("/versions").get("versions")
        if not isinstance(spoken, list) or not all(type(one) is int for one in spoken):
            raise ServerUnavailable(f"{self._transport.place} is no server of Tacit's")
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
        return tuple(RemoteTable(self._transport, fields) for fields in told["tables"])

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
    def plan(self) -> RemotePlans:
        """Plans, as ``tacit.plan`` makes them, found by the server."""
        return RemotePlans(self._transport)

    def __repr__(self) -> str:
        return f"<connection to {self._transport.place}>"


class RemoteTable:
    """A table on a server: what is public about it, and what can be asked."""

    def __init__(self, transport: Transport, fields: Mapping[str, Any]) -> None:
        self._transport = transport
        person = EACH_ROW if fields["person"] is None else fields["person"]
        self._schema = read_schema(fields["schema"], name=fields["name"], person=person)
        self._people: int | None = fields["people"]
        self._as_of: str | None = fields["as_of"]

    @property
    def name(self) -> str:
        """The table's name."""
        return self._schema.name

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        return self._schema

    @property
    def people(self) -> int | None:
        """The public number of people that the steward typed."""
        return self._people

    @property
    def as_of(self) -> str | None:
        """The public label that the steward typed: which state of the data this is."""
        return self._as_of

    def check(
        self, question: str, *, params: Mapping[str, object] | None = None, **parameters: object
    ) -> Statement:
        """What would be promised about a question, or why it is refused; costs nothing."""
        from tacit.tables.prepared import given_by_name
        from tacit.tables.show import Statement, refusal

        text(question, "question", "give a question as text")
        try:
            values = _values(given_by_name(parameters, params))
        except QuestionRefused as why:
            return refusal(question, why)
        asked = {"question": question, "parameters": values}
        told = self._transport.post("/v1/check", {"table": self.name, "questions": [asked]})
        (fields,) = told["statements"]
        return wire.from_json(fields, Statement)

    def __repr__(self) -> str:
        return f"<table {self.name} at {self._transport.place}>"


def _values(parameters: Mapping[str, object]) -> dict[str, object]:
    """Parameters as JSON can carry them without changing what they mean."""
    for name, value in parameters.items():
        parts = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(part, _SCALARS) and part == part for part in parts):
            raise BadParameter(name, kind_of(value), "give text, a number, True, False or None")
        if any(isinstance(part, float) and abs(part) == float("inf") for part in parts):
            raise BadParameter(name, "infinity", "give a finite number")
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }


@dataclass(frozen=True, slots=True)
class RemotePrice:
    """What would be charged, what is left of the token's share, and whether it fits."""

    price: Amount
    left: Amount | None
    fits: bool


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

    def price(self, *, epsilon: Number) -> RemotePrice:
        """What a count, a sum or another release with this ε would cost; nothing is charged."""
        from tacit.budget import Amount

        told = self._transport.post("/v1/price", {"epsilon": str(exact(epsilon, "epsilon"))})
        left = None if told["left"] is None else Amount.from_json(told["left"])
        return RemotePrice(Amount.from_json(told["price"]), left, told["fits"])

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


class RemotePlans:
    """Plans by a server: the same as ``tacit.plan``, which needs none."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def above_threshold(
        self,
        *,
        questions: int,
        epsilon: Number | None = None,
        alpha: Number | None = None,
        beta: Number = "1/20",
        kind: Kind = "counts",
    ) -> Plan:
        """A plan for AboveThreshold."""
        told = {"questions": questions, "epsilon": epsilon, "alpha": alpha, "beta": beta}
        return self._plan("above_threshold", told, kind)

    def sparse(
        self,
        *,
        questions: int,
        at_most: int,
        epsilon: Number | None = None,
        alpha: Number | None = None,
        delta: Number = 0,
        beta: Number = "1/20",
        kind: Kind = "counts",
    ) -> Plan:
        """A plan for Sparse."""
        told = {"questions": questions, "epsilon": epsilon, "alpha": alpha, "beta": beta}
        return self._plan("sparse", {**told, "at_most": at_most, "delta": delta}, kind)

    def numeric_sparse(
        self,
        *,
        questions: int,
        at_most: int,
        epsilon: Number | None = None,
        alpha: Number | None = None,
        delta: Number = 0,
        beta: Number = "1/20",
        kind: Kind = "counts",
    ) -> Plan:
        """A plan for NumericSparse."""
        told = {"questions": questions, "epsilon": epsilon, "alpha": alpha, "beta": beta}
        return self._plan("numeric_sparse", {**told, "at_most": at_most, "delta": delta}, kind)

    def _plan(self, algorithm: Algorithm, numbers: Mapping[str, Number | None], kind: str) -> Plan:
        from tacit.analyst.plan import Plan
        from tacit.arguments import one_of

        told: dict[str, Any] = {
            name: None if number is None else str(exact(number, name))
            for name, number in numbers.items()
        }
        fields = {"algorithm": algorithm, "kind": one_of(kind, "kind", ("counts", "any")), **told}
        return wire.from_json(self._transport.post("/v1/plan", fields)["plan"], Plan)
