"""HTTP/1.1 as uvicorn speaks it, with people who ask in time and read what they asked for."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from asyncio.sslproto import SSLProtocol
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.server.app import KNOWN
from tacit.server.config import Limits
from tacit.server.connections import Connections, address_of

_MOMENT_SECONDS = 2  # to show a token, for whoever connects when there are many without one
_NO_LINGER = struct.pack("ii", 1, 0)


def protocol(
    limits: Limits, connections: Connections, encryption: ssl.SSLContext | None
) -> type[asyncio.BaseProtocol]:
    """What uvicorn makes for each connection."""
    made = type("Connected", (_Punctual,), {"limits": limits, "counted_by": connections})
    if encryption is None:
        return made
    return type("ConnectedByTLS", (_Encrypted,), {"inner": made, "context": encryption})


class _Punctual(H11Protocol):
    """One connection; `protocol` says whose limits it keeps and who counts it."""

    limits: Limits
    counted_by: Connections
    address = "?"
    _overdue: asyncio.TimerHandle | None = None  # while a request's head is on its way
    _unread: asyncio.TimerHandle | None = None  # while something waits to be read
    _raw: Any = None  # the connection, below what is encrypted

    def __init__(self, config: Any, server_state: Any, app_state: Any, **given: Any) -> None:
        super().__init__(config, server_state, app_state | {KNOWN: self._known}, **given)

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def arrive(self, transport: Any) -> None:
        """Somebody connects, and has some time to say who they are."""
        self._raw, self.address = transport, address_of(transport.get_extra_info("peername"))
        room = self.counted_by.arrived(self)
        self.timeout_keep_alive = self.limits.header_seconds if room else _MOMENT_SECONDS
        late = self.drop if room else self._drop_stranger
        self._overdue = self.loop.call_later(self.timeout_keep_alive, late)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # So that whatever waits to be read is told at once; TLS would take 0 for always.
        transport.set_write_buffer_limits(high=1, low=0)
        if self._raw is None:
            self.arrive(transport)

    def _known(self) -> None:
        """Who asks has shown a good token."""
        self.timeout_keep_alive = self.limits.idle_seconds
        self.counted_by.used(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.idle_seconds, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        super().connection_lost(exc)

    def leave(self) -> None:
        """The connection has ended."""
        _cancel(self._overdue)
        _cancel(self._unread)
        self.counted_by.gone(self)

    def shutdown(self) -> None:
        """The server ends: a request that has not arrived by now is not waited for."""
        if self.cycle is not None and self.cycle.more_body:
            self.drop()
        else:
            super().shutdown()

    def _watch(self) -> None:
        """The time runs while a head has begun to arrive and is not there yet."""
        begun = bool(self.conn.trailing_data[0])
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or not begun:
            _cancel(self._overdue)
            self._overdue = None
        elif self._overdue is None:
            self._overdue = self.loop.call_later(self.limits.header_seconds, self.drop)

    def _drop_stranger(self) -> None:
        self.counted_by.dropping(self)
        self.drop()

    def drop(self) -> None:
        """Leave at once; the system, too, forgets what nobody reads."""
        found = self._raw.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._raw.abort()


class _Encrypted(SSLProtocol):
    """The same below TLS: who has connected and says nothing is counted, too."""

    inner: type[_Punctual]
    context: ssl.SSLContext

    def __init__(self, config: Any, server_state: Any, app_state: Any, _loop: Any) -> None:
        self._inner = self.inner(config, server_state, app_state, _loop=_loop)
        given: dict[str, Any] = {"waiter": None, "server_side": True}
        loop = _loop or asyncio.get_running_loop()
        super().__init__(loop, self._inner, self.context, **given)

    def connection_made(self, transport: Any) -> None:
        self._inner.arrive(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._inner.leave()
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
