"""Stopping a stream, a token or a table of a server, with a steward's token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit import wire
from tacit.arguments import text
from tacit.errors import BadParameter
from tacit.remote.transport import Transport

if TYPE_CHECKING:
    from tacit.wire import StoppedThing

_ONE = "name one stream, one token or one table"


class RemoteStopping:
    """Stops something of a server when it is called; undoes it; lists what is stopped."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __call__(
        self,
        *,
        stream: str | None = None,
        token: str | None = None,
        table: str | None = None,
        reason: str = "",
    ) -> list[StoppedThing]:
        """Refuse it from now on, without a restart; all that is stopped."""
        thing = _thing(stream, token, table)
        text(reason, "reason", "say why, or leave it out")
        return _told(self._transport.post("/v1/stop", {**thing, "reason": reason}))

    def undo(
        self, *, stream: str | None = None, token: str | None = None, table: str | None = None
    ) -> list[StoppedThing]:
        """Let it go on; all that is still stopped."""
        return _told(self._transport.post("/v1/go_on", _thing(stream, token, table)))

    def list(self) -> list[StoppedThing]:
        """All that is stopped now."""
        return _told(self._transport.get("/v1/stopped"))

    def __repr__(self) -> str:
        return f"<what is stopped at {self._transport.place}>"


def _thing(stream: str | None, token: str | None, table: str | None) -> dict[str, Any]:
    named = {"stream": stream, "token": token, "table": table}
    given = [(kind, name) for kind, name in named.items() if name is not None]
    if len(given) != 1:
        raise BadParameter("stream", f"{len(given)} names", _ONE)
    kind, name = given[0]
    return {"kind": kind, "name": text(name, kind, _ONE)}


def _told(fields: dict[str, Any]) -> list[StoppedThing]:
    from tacit.wire import StoppedThing

    return [wire.from_json(each, StoppedThing) for each in fields["stopped"]]
