from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import ENVIRONMENT
from tests.server.clinic import write_clinic
from tests.signals import as_usual

from tacit import Budget
from tacit.server.tokens import TokenFile

PATIENCE = 120  # seconds: a safety net on a busy machine, and nothing that a test measures


@dataclass
class Got:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server in a process of its own, and tokens for it."""

    process: subprocess.Popen[str]
    folder: Path
    url: str
    port: int
    tokens: dict[str, str]
    log: list[str] = field(default_factory=list)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        *,
        token: str | None = "ana",
        headers: dict[str, str] | None = None,
    ) -> Got:
        """One request on a connection of its own; a dict goes as JSON."""
        told = {} if token is None else {"Authorization": f"Bearer {self.tokens.get(token, token)}"}
        if body is not None:
            told["Content-Type"] = "application/json"
            body = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {**told, **(headers or {})})
            got = connection.getresponse()
            return Got(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def raw(self, sent: bytes) -> bytes:
        """What comes back for bytes as they are, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(sent)
            back = b""
            with suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    back += piece
            return back

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def served(
    folder: Path,
    *,
    milliseconds: int = 1,
    limits: str = "",
    listen: str = "",
    zcdp: bool = False,
    epsilon: int = 10,
    share: int = 2,
) -> Iterator[Running]:
    """Serve a clinic from a folder, on a port that is free."""
    given: dict[str, Any] = {"limits": limits, "listen": listen, "zcdp": zcdp, "epsilon": epsilon}
    config = write_clinic(folder, milliseconds=milliseconds, **given)
    file = TokenFile(folder / "clinic.budget-tokens")
    with Budget.open(folder / "clinic.budget") as budget:
        budget.share("ana", epsilon=share)
    tokens = {
        "ana": file.add("ana", share="ana"),
        "ben": file.add("ben", tables=["labs"], share="ben"),
        "vera": file.add("vera", role="viewer"),
        "boss": file.add("boss", role="steward"),
    }
    with started(config, tokens) as running:
        yield running


@contextmanager
def started(config: Path, tokens: dict[str, str]) -> Iterator[Running]:
    """Serve what a file says, in a process of its own; on a port that is free."""
    with as_usual():
        process = subprocess.Popen(
            [sys.executable, "-m", "tacit", "serve", "--config", str(config)],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        url = re.search(r"listening at (https?://127.0.0.1:(\d+))", first)
        assert url, first
        running = Running(process, config.parent, url[1], int(url[2]), tokens)
        reader = threading.Thread(target=_listen, args=(process.stderr, running.log), daemon=True)
        reader.start()
        yield running
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _listen(stream: Any, lines: list[str]) -> None:
    try:
        for line in stream:
            lines.append(line)
    except ValueError:  # closed
        pass


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("clinic")) as running:
        yield running
