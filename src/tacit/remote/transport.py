"""Requests to a server, and what comes back: a value, or the error that a local user would get."""

from __future__ import annotations

import ipaddress
import json
import secrets
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tacit import wire
from tacit.arguments import text
from tacit.errors import BadParameter, ServerUnavailable, TacitError
from tacit.support import Closing

MOST_BYTES = 100_000_000  # of a response
_PAUSES = (0.1, 0.3, 1.0, 3.0)  # seconds before a request is sent again: a server may be restarting
_TAKES = "give an address such as 'https://clinic.example:8443'"


class Transport(Closing):
    """A connection to a server, opened when it is needed; one request at a time."""

    def __init__(self, url: str, token: str, *, timeout: float) -> None:
        self._url = _checked_url(url)
        self._token = _checked_token(token)
        self._timeout = timeout
        self._lock = Lock()
        self._connection: HTTPConnection | None = None

    @property
    def place(self) -> str:
        """The server, without a word about who asks."""
        return f"{self._url.scheme}://{self._url.netloc}"

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def get(self, path: str) -> dict[str, Any]:
        """Look something up."""
        return self._ask("GET", path, None)

    def post(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Ask something; it costs nothing, so it may be sent twice."""
        return self._ask("POST", path, json.dumps(fields, allow_nan=False).encode())

    def pay(self, path: str, key: str | None, fields: dict[str, Any]) -> dict[str, Any]:
        """Ask what may spend, under a key: if the connection breaks, it is asked again.

        The same key brings the same response, so nothing is paid for twice, however often it is
        sent.  Without a key one is made.
        """
        made = made_key(key)
        body = json.dumps({"key": made, **fields}, allow_nan=False).encode()
        for pause in (*_PAUSES, None):
            with self._lock:
                try:
                    status, told = _of_tacit(*self._once("POST", path, body))
                    break
                except TimeoutError:
                    self.close()
                    raise self._unanswered(made) from None
                except (OSError, HTTPException):
                    self.close()
            if pause is None:
                raise self._unanswered(made) from None
            time.sleep(pause)
        return self._understood(status, told)

    def pay_in_blocks(
        self, path: str, key: str, fields: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """The same for what is answered in lines, as they come, on a connection of its own.

        If it breaks, the same is asked again, and the lines that were seen are passed over.
        """
        body = json.dumps({"key": key, **fields}, allow_nan=False).encode()
        seen, pauses = 0, iter(_PAUSES)
        while True:
            with closing(self._opened()) as connection:
                try:
                    done = False
                    for number, line in enumerate(self._lines(connection, path, body)):
                        done = line.get("done") is True
                        if number >= seen:
                            seen += 1
                            yield line
                    if done:
                        return
                    raise HTTPException  # it was cut between two lines
                except TimeoutError:
                    raise self._unanswered(key) from None
                except (OSError, HTTPException):
                    pause = next(pauses, None)
            if pause is None:
                raise self._unanswered(key) from None
            time.sleep(pause)

    def _lines(
        self, connection: HTTPConnection, path: str, body: bytes
    ) -> Iterator[dict[str, Any]]:
        response = self._response(connection, "POST", path, body)
        if response.status != 200:
            yield self._understood(*_of_tacit(response.status, _read(response)))
        while line := response.readline(MOST_BYTES):
            if not line.endswith(b"\n"):
                raise HTTPException  # it was cut
            told = self._understood(200, line)
            if "tacit error" in told:
                raise self._error(told)
            yield told

    def _path(self, path: str) -> str:
        return self._url.path.rstrip("/") + path

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        return headers if body is None else headers | {"Content-Type": "application/json"}

    def _unanswered(self, key: str) -> ServerUnavailable:
        return ServerUnavailable(
            f"{self.place} did not answer, and what was asked may have been paid for",
            advice=f"ask the same again with retry_key={key!r}: it is not paid for twice",
        )

    def _ask(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        with self._lock:
            kept = self._connection is not None
            try:
                status, told = self._once(method, path, body)
            except (OSError, HTTPException):
                self.close()
                if not kept:  # a server may have closed one that was kept; then once more
                    raise self._unreachable() from None
                try:
                    status, told = self._once(method, path, body)
                except (OSError, HTTPException):
                    self.close()
                    raise self._unreachable() from None
        return self._understood(status, told)

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._opened()
        response = self._response(self._connection, method, path, body)
        return response.status, _read(response)

    def _response(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None
    ) -> HTTPResponse:
        """What comes back; a server that is busy is asked again when it says, for some time."""
        until = time.monotonic() + self._timeout
        while True:
            response = self._first_response(connection, method, path, body)
            pause = _pause(response)
            if pause is None or time.monotonic() + pause > until:
                return response
            _read(response)
            time.sleep(pause)

    def _first_response(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None
    ) -> HTTPResponse:
        try:
            connection.request(method, self._path(path), body, self._headers(body))
        except ssl.SSLCertVerificationError as error:  # before anything was sent
            why = f"shows a certificate that is not trusted here: {error.verify_message}"
            raise ServerUnavailable(
                f"{self.place} {why}",
                advice="ask its steward for it: SSL_CERT_FILE names a file of those to trust",
            ) from None
        return connection.getresponse()

    def _opened(self) -> HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(host, port, timeout=self._timeout, context=context)
        return HTTPConnection(host, port, timeout=self._timeout)

    def _unreachable(self) -> ServerUnavailable:
        return ServerUnavailable(
            f"{self.place} cannot be reached, or what answers there is not a Tacit server",
            advice="check the address, and ask its steward",
        )

    def _understood(self, status: int, told: bytes) -> dict[str, Any]:
        fields: Any = None
        with suppress(ValueError, RecursionError):
            fields = wire.parsed(told.decode())
        if status == 200 and isinstance(fields, dict):
            return fields
        raise self._error(fields)

    def _error(self, fields: object) -> TacitError:
        try:
            return wire.from_json(fields, TacitError)
        except BadParameter:  # a proxy speaks, or something that is no server of ours
            return self._unreachable()


def _pause(response: HTTPResponse) -> float | None:
    """How long a busy server asks to wait, and up to as long again: not all come back at once."""
    told = response.getheader("Retry-After", "")
    if response.status != 503 or not (told.isascii() and told.isdigit()):
        return None
    return int(told) * (1 + secrets.randbelow(1000) / 1000)


def made_key(given: str | None) -> str:
    """The key that was given, or a new one."""
    from tacit.budget.ledger import checked_text

    return secrets.token_hex(16) if given is None else checked_text(given, "retry_key")


def _of_tacit(status: int, told: bytes) -> tuple[int, bytes]:
    """A response, unless a proxy or a server that is ending speaks: then it may be asked again."""
    if status >= 500 and b'"tacit error"' not in told:
        raise HTTPException
    return status, told


def _read(response: HTTPResponse) -> bytes:
    told = response.read(MOST_BYTES + 1)
    if len(told) > MOST_BYTES:
        raise HTTPException
    return told


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(text(url, "url", _TAKES))
        right = parts.port is None or parts.port > 0
    except ValueError as error:
        if isinstance(error, BadParameter):
            raise
        right = False
    if not right or parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadParameter("url", "this text", _TAKES)
    if parts.username is not None or parts.query or parts.fragment:
        raise BadParameter("url", "an address with more in it", _TAKES + ", and the token apart")
    if not parts.netloc.isascii() or not parts.path.isascii() or any(c <= " " for c in url):
        raise BadParameter("url", "this text", _TAKES)
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise BadParameter(
            "url", parts.netloc, "a token would cross the network in the open: use https"
        )
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_token(token: str) -> str:
    """What was given is never shown: it may be a token with a letter too many."""
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise BadParameter("token", "what was given", "give the token that the steward made")
    return token
