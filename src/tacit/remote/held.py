"""What a server holds for an analyst, a stream or a watched model: how it stands, and leaving it.

How it stands is asked of the server each time, since others who hold the same token may ask it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit import wire
from tacit.arguments import text
from tacit.errors import Halted, StreamEnded

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.remote.table import RemoteTable
    from tacit.remote.transport import Transport
    from tacit.wire import StreamSummary

_SUSPENDED = "it was suspended; resume it"
_HALTED = "it has given its last answer above the threshold"


class RemoteHeld:
    """Whatever has a name to resume it by, on a server."""

    _ENDS: ClassVar[frozenset[str]]
    """How it stands when it cannot be asked any more."""

    def __init__(self, table: RemoteTable, transport: Transport, fields: Mapping[str, Any]) -> None:
        self._table = table
        self._transport = transport
        self._name: str = text(fields["name"], "name")
        self._binding: Mapping[str, str] = fields["binding"]
        self._left: str | None = None  # why nothing can be asked through this object any more

    @property
    def name(self) -> str:
        """The name to resume it by."""
        return self._name

    @property
    def _summary(self) -> StreamSummary:
        from tacit.wire import StreamSummary

        told = self._transport.post("/v1/streams/show", {"stream": self.name})
        return wire.from_json(told["stream"], StreamSummary)

    @property
    def live(self) -> bool:
        """Whether it can be asked: it has neither ended nor was it left through this object."""
        return self._left is None and self._summary.status not in self._ENDS

    def suspend(self) -> None:
        """Leave it for later.  Nothing is lost: the table resumes it by its name."""
        self._leave("suspend", _SUSPENDED)

    def close(self) -> None:
        """End it for ever.  Nothing is refunded."""
        if self._left == _SUSPENDED:
            self._refuse_if_left()
        self._leave("close", "it was closed")

    def _leave(self, how: str, why: str) -> None:
        from tacit.wire import StreamSummary

        if self._left is None:
            told = self._transport.post(f"/v1/streams/{how}", {"stream": self.name})
            status = wire.from_json(told["stream"], StreamSummary).status
            self._left = _HALTED if status == "halted" and status in self._ENDS else why

    def _refuse_if_left(self) -> None:
        if self._left is not None:
            kind = Halted if self._left == _HALTED else StreamEnded
            raise kind(f"stream {self.name!r} cannot be asked: {self._left}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()
