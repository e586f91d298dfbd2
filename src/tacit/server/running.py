"""Running a server: one process, one listening socket, until a signal ends it.

At SIGTERM or Ctrl-C no new connection is taken, what is being answered is answered, streams are
suspended, and the tables and the budget are closed, all within ten seconds.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import uvicorn

from tacit.errors import BadConfiguration, ServerUnavailable, TacitError
from tacit.server.app import Application
from tacit.server.config import Limits, Listening, ServerConfig
from tacit.server.connections import Connections
from tacit.server.endpoints import Endpoint
from tacit.server.log import Log
from tacit.server.protocol import protocol
from tacit.server.service import Service
from tacit.server.stopped import suspend_stopped

_GRACE_SECONDS = 7  # of the ten; then streams are suspended and files closed
_SWEEP_SECONDS = 5
_OTHER_FILES = 1000  # beside connections: tables, shards, the budget
_LONGEST_HEADER = 16_384
_WAITING = 2048  # connections that the system has made and nobody has taken yet

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
    _allow_files(config.limits.connections + _OTHER_FILES)
    with listening(config.listen) as listener:
        service = Service.open(config)
        encrypted = behind_proxy or config.listen.certificate is not None
        shown = () if pages is None else pages(service, encrypted)
        log = Log(config.log)
        application = Application(service, config.clock, log=log, encrypted=encrypted, pages=shown)
        limits = config.limits
        among = Connections(limits.connections, by_address=not behind_proxy, log=log)
        speaking = protocol(limits, among, _encryption(config.listen))
        server = _Server(_settings(application, limits, speaking))
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


def _allow_files(count: int) -> None:
    """Let this process open so many, if the system does: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def listening(listen: Listening) -> socket.socket:
    """A socket that takes connections; before anything else is opened, since it may be taken."""
    family = socket.AF_INET6 if ":" in listen.address else socket.AF_INET
    # The protocol by its number, not 0: only then does asyncio set TCP_NODELAY, without which the
    # end of a response waits for the other side to acknowledge its beginning.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


class _Server(uvicorn.Server):
    """Takes a part of the connections that wait in one go, however many wait.

    Nothing is read of those that are taken in one go before all of them are there, nor of the
    next ones: if that were more than there may be in all, those who came first would have to make
    room before they could show a token.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)


def _settings(application: Application, limits: Limits, speaking: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=speaking,
        ws="none",
        lifespan="off",
        loop="asyncio",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=max(1, limits.connections // 4),
        h11_max_incomplete_event_size=_LONGEST_HEADER,
    )


def _encryption(listen: Listening) -> ssl.SSLContext | None:
    if listen.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(listen.certificate, listen.key)
    return context
