"""The cookie of whoever signed in on the page: it holds their token, and ends with it.

A browser sends a cookie whoever wrote the page that makes it do so.  So the cookie is SameSite, and
a request that may change something is taken only from a page of this server: its Origin is this
host, and its body is JSON, which no form can send.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.requests import Request

from tacit.server.problems import refused
from tacit.server.tokens import TokenRecord

NO_TOKEN = "a token is needed"
_PLAIN = "tacit"
_ENCRYPTED = "__Host-tacit"  # browsers take this name from encrypted hosts only, for all paths


def cookie(token: str, who: TokenRecord, *, encrypted: bool) -> str:
    """The header that makes a browser keep a token until it expires, or else until it is closed."""
    until = ""
    if who.expires is not None:
        end = datetime.fromisoformat(who.expires).astimezone(UTC)
        until = f"; Expires={format_datetime(end, usegmt=True)}"
    return _set(token, until, encrypted)


def no_cookie(*, encrypted: bool) -> str:
    """The header that makes a browser forget."""
    return _set("", "; Max-Age=0", encrypted)


def _set(value: str, until: str, encrypted: bool) -> str:
    secure = "; Secure" if encrypted else ""
    return f"{_name(encrypted)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{until}"


def _name(encrypted: bool) -> str:
    return _ENCRYPTED if encrypted else _PLAIN


def from_cookie(request: Request, *, encrypted: bool) -> str | None:
    """The token that a browser has kept."""
    return request.cookies.get(_name(encrypted)) or None


def refuse_forged(request: Request) -> None:
    """Refuse what another site's page may have sent."""
    if request.method == "GET":
        return
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    here = request.headers.get("host", "")
    ours = origin in (f"http://{here}", f"https://{here}")  # a proxy may encrypt, so either
    if not here or not ours or site not in (None, "same-origin"):
        raise refused(
            403,
            "this was not sent by a page of this server",
            "a proxy must pass the headers Host and Origin as they came",
        )
