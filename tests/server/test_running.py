"""The listening socket, and connections before anybody has said who asks."""

from __future__ import annotations

import asyncio
import socket

from tacit.server.config import Listening
from tacit.server.running import listening


def test_what_is_written_leaves_at_once():
    """Otherwise a response's end waits for the acknowledgement of its beginning."""
    at_once = []

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            at_once.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        with listening(Listening(port=0)) as listener:
            server = await loop.create_server(Server, sock=listener)
            reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            await reader.read()
            writer.close()
            server.close()

    asyncio.run(scene())
    assert at_once == [1]
