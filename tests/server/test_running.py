"""The listening socket, and connections before anybody has said who asks."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from contextlib import ExitStack

import pytest
from tests.server.conftest import PATIENCE, served
from tests.server.test_tls import write_certificate

import tacit
from tacit.server.config import Listening
from tacit.server.connections import Connections
from tacit.server.log import DroppedLine
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


# Who has not said who asks ----------------------------------------------------------------------


@pytest.mark.parametrize("encrypted", [False, True], ids=["open", "encrypted"])
def test_who_says_nothing_keeps_nobody_out(tmp_path, monkeypatch, encrypted):
    listen = ""
    if encrypted:
        write_certificate(tmp_path, "server")
        listen = 'certificate = "server.pem"\nkey = "server.key"'
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    limits = "connections = 40\nheader_seconds = 600\nidle_seconds = 600"
    with served(tmp_path, listen=listen, limits=limits) as server, ExitStack() as opened:
        with tacit.connect(server.url, token=server.tokens["ana"]) as known:
            kept = known.table("visits") and known._transport._connection
            for _ in range(60):
                address = ("127.0.0.1", server.port)
                opened.enter_context(socket.create_connection(address, timeout=PATIENCE))
            with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
                assert clinic.table("visits").people == 300
            assert known.table("visits").people == 300
            assert known._transport._connection is kept
        dropped = 0
        for _ in range(PATIENCE * 20):
            lines = [json.loads(line) for line in list(server.log)]
            assert all(line["most_from"] == "127.0.0.1" for line in lines if "dropped" in line)
            dropped = sum(line.get("dropped", 0) for line in lines)
            if dropped >= 60:
                break
            time.sleep(0.05)
        assert dropped == 60  # each of them, and nobody else
        assert {line["status"] for line in lines if "status" in line} == {200}


def test_who_comes_first_of_many_at_once_can_show_a_token(tmp_path):
    """While the server is held up more connect than it may have in all, and nobody is read yet."""
    with served(tmp_path, limits="connections = 40") as server, ExitStack() as opened:
        server.process.send_signal(signal.SIGSTOP)
        first = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
        token = server.tokens["ana"].encode()
        first.sendall(
            b"GET /v1/tables HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % token
        )
        for _ in range(120):
            other = opened.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(("127.0.0.1", server.port))
        server.process.send_signal(signal.SIGCONT)
        assert first.recv(12) == b"HTTP/1.1 200"


class Caller:
    """A connection that nobody made."""

    def __init__(self, address: str, *, idle: bool = True) -> None:
        self.address, self.idle, self.open = address, idle, True

    def drop(self) -> None:
        self.open = False


def many(lines: list[DroppedLine], *, by_address: bool = True) -> Connections:
    """A hundred connections, of which ten may be strangers, two of them from one address."""
    return Connections(100, by_address=by_address, log=lines.append)


def test_strangers_have_a_small_share_and_each_address_a_smaller_one():
    connections = many([])
    callers = [Caller("a") for _ in range(3)] + [Caller(f"b{n}") for n in range(9)]
    room = [connections.arrived(each) for each in callers]
    assert room == [True, True, False] + [True] * 7 + [False] * 2
    for each in callers[:3]:
        connections.used(each)  # they have shown a token: they are strangers no longer
    assert connections.arrived(Caller("a"))
    connections.gone(callers[5])
    assert connections.arrived(Caller("c0"))
    assert not connections.arrived(Caller("c1"))  # ten: eight, one from a, and the one before
    proxied = many([], by_address=False)
    assert [proxied.arrived(Caller("proxy")) for _ in range(11)] == [True] * 10 + [False]


def test_whoever_connects_without_a_pause_is_in_nobodys_way():
    """Of those who have not shown a token yet, the address that has most makes room."""

    async def scene() -> None:
        connections = many([])
        others = [Caller("b"), Caller("c"), Caller("b")]
        crowd = [Caller("a") for _ in range(200)]
        for each in (*others, *crowd):
            connections.arrived(each)
        assert all(each.open for each in others)
        assert [each.open for each in crowd] == [False] * 103 + [True] * 97

    asyncio.run(scene())


def test_the_oldest_stranger_makes_room_or_who_is_idle_for_longest():
    lines: list[DroppedLine] = []

    async def scene() -> None:
        connections = many(lines)
        known = [Caller("a", idle=n > 0) for n in range(98)]
        for each in known:
            connections.arrived(each)
            connections.used(each)
        connections.used(known[1])  # once more, so another has been idle for longer
        strangers = [Caller("b"), Caller("c")]
        for each in strangers:
            connections.arrived(each)
        for expected in (*strangers, known[2]):
            assert expected.open
            new = Caller("d")
            connections.arrived(new)
            connections.used(new)
            assert not expected.open
        assert [each.open for each in known[:4]] == [True, True, False, True]
        connections._tell()

    asyncio.run(scene())
    assert [(line.dropped, line.of_them) for line in lines] == [(3, 1)]
