"""Running a server: one process, one listening socket, until a signal ends it.

At SIGTERM or Ctrl-C no new connection is taken, what is being answered is answered, streams are
suspended, and the tables and the budget are closed, all within ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.errors import BadConfiguration, ServerUnavailable, TacitError
from tacit.server.app import Application
from tacit.server.config import Limits, Listening, ServerConfig
from tacit.server.endpoints import Endpoint
from tacit.server.service import Service
from tacit.server.stopped import suspend_stopped

_GRACE_SECONDS = 7  # of the ten; then streams are suspended and files closed
_SWEEP_SECONDS = 5
_LONGEST_HEADER = 16_384
_NO_LINGER = struct.pack("ii", 1, 0)

Pages = Callable[[Service, bool], Sequence[Endpoint]]
"""What is shown in a browser, of a service that is encrypted or not."""


def refuse_unencrypted(listen: Listening, *, behind_proxy: bool) -> None:
    """Answers and tokens cross a network encrypted, or not at all."""
    if listen.certificate is None and not listen.loopback and not behind_proxy:
        raise BadConfiguration(
            f"listen.address {listen.address} can be reached from other machines, and answers and "
            "tokens would cross the network in the open: give listen.certificate and listen.key, "
            "or say --behind-proxy if a proxy encrypts them"
        )


def run(
    config: ServerConfig,
    *,
    behind_proxy: bool = False,
    pages: Pages | None = None,
    ready: Callable[[str], None],
) -> None:
    """Open everything, say that it is ready, and serve until a signal comes."""
    refuse_unencrypted(config.listen, behind_proxy=behind_proxy)
    with listening(config.listen) as listener:
        service = Service.open(config)
        encrypted = behind_proxy or config.listen.certificate is not None
        shown = () if pages is None else pages(service, encrypted)
        application = Application(service, config.clock, encrypted=encrypted, pages=shown)
        server = uvicorn.Server(_settings(application, config))
        logging.disable()  # our own lines say all there is to say; others' might quote data
        # From here on, since a signal may come before uvicorn listens for it.  When it is done it
        # sends itself the signal once more, while we still have to close.
        before = {number: signal.signal(number, server.handle_exit) for number in _ENDING}
        ended = Event()
        sweeper = Thread(target=_sweep, args=(service, ended), name="tacit-idle", daemon=True)
        sweeper.start()
        try:
            ready(replace(config.listen, port=listener.getsockname()[1]).url)
            server.run(sockets=[listener])
        finally:
            ended.set()
            rested = application.close()
            logging.disable(logging.NOTSET)
            for number, handler in before.items():
                signal.signal(number, handler)
    if not rested:  # a thread cannot be ended, and everything that matters is closed
        sys.stderr.flush()
        os._exit(0)


def _sweep(service: Service, ended: Event) -> None:
    """Suspend idle streams from time to time, and those that were stopped without our knowing."""
    idle = service.limits.stream_seconds
    while not ended.wait(min(idle, _SWEEP_SECONDS)):
        service.streams.suspend_idle(idle)
        with suppress(TacitError):  # the file is damaged: then nobody is let in, either
            suspend_stopped(service)


_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def listening(listen: Listening) -> socket.socket:
    """A socket that takes connections; before anything else is opened, since it may be taken."""
    family = socket.AF_INET6 if ":" in listen.address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((listen.address, listen.port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = error.strerror or "the system does not say why"
        raise ServerUnavailable(
            f"{listen.address}, port {listen.port}, cannot be listened on: {why}",
            advice="give another listen.address or listen.port",
        ) from None
    return listener


def _settings(application: Application, config: ServerConfig) -> uvicorn.Config:
    limits, listen = config.limits, config.listen
    return uvicorn.Config(
        application,
        http=protocol(limits),
        ws="none",
        lifespan="off",
        loop="asyncio",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEADER,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
    )


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """HTTP/1.1 as uvicorn speaks it, with people who ask in time and read what they asked for."""

    class Punctual(H11Protocol):
        _overdue: asyncio.TimerHandle | None = None  # while a request's head is on its way
        _unread: asyncio.TimerHandle | None = None  # while something waits to be read

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            # So that whatever waits to be read is told at once; TLS would take 0 for always.
            transport.set_write_buffer_limits(high=1, low=0)
            self._overdue = self.loop.call_later(limits.header_seconds, self._reset)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(limits.idle_seconds, self._reset)

        def resume_writing(self) -> None:
            super().resume_writing()
            _cancel(self._unread)

        def connection_lost(self, exc: Exception | None) -> None:
            _cancel(self._overdue)
            _cancel(self._unread)
            super().connection_lost(exc)

        def shutdown(self) -> None:
            """The server ends: a request that has not arrived by now is not waited for."""
            if self.cycle is not None and self.cycle.more_body:
                self._reset()
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
                self._overdue = self.loop.call_later(limits.header_seconds, self._reset)

        def _reset(self) -> None:
            """Leave at once; the system, too, forgets what nobody reads."""
            found = self.transport.get_extra_info("socket")
            if found is not None:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.transport.abort()

    return Punctual


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
