"""What the page's cookie may and may not do, without a browser."""

from __future__ import annotations

import pytest
from tests.server.conftest import Running

from tacit.server.cookies import cookie, no_cookie
from tacit.server.tokens import TokenRecord

OPEN = {
    "key": "k",
    "table": "visits",
    "algorithm": "sparse",
    "threshold": 50,
    "epsilon": "1/10",
    "name": "forged",
}


def _with_cookie(server: Running, who: str, **headers: str) -> dict[str, str]:
    return {"Cookie": f"tacit={server.tokens[who]}", **headers}


def test_a_page_of_this_server_may(server: Running):
    headers = _with_cookie(server, "ana", Origin=server.url)
    told = server.ask("POST", "/v1/check", QUESTION, token=None, headers=headers)
    assert told.status == 200


QUESTION = {"table": "visits", "questions": [{"question": "age = 3"}]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "OWN", "Sec-Fetch-Site": "same-site"},
        {"Origin": "OWN", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/streams/open", "/page/plan", "/v1/check"])
def test_what_another_page_sends_is_refused(server: Running, headers, path):
    own = {name: value.replace("OWN", server.url) for name, value in headers.items()}
    body = QUESTION if path == "/v1/check" else OPEN
    told = server.ask("POST", path, body, token=None, headers=_with_cookie(server, "ana", **own))
    assert told.status == 403
    assert "was not sent by a page of this server" in told.json["message"]


def test_a_form_of_another_site_cannot_send_json(server: Running):
    headers = _with_cookie(server, "ana", Origin=server.url)
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    told = server.ask("POST", "/v1/streams/open", b"key=k", token=None, headers=headers)
    assert told.status == 415


def test_nobody_else_signs_a_browser_in(server: Running):
    told = server.ask("POST", "/sign-in", {"token": server.tokens["ana"]}, token=None)
    assert told.status == 403
    assert "set-cookie" not in told.headers


def test_a_bearer_needs_no_origin(server: Running):
    assert server.ask("POST", "/v1/check", QUESTION).status == 200


def test_pages_allow_nothing_from_elsewhere_and_nothing_inline(server: Running):
    told = server.ask("GET", "/", token=None, headers=_with_cookie(server, "ana"))
    policy = told.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    body = told.body.decode()
    assert " style=" not in body
    assert "<style" not in body
    assert "onclick" not in body
    assert "http://" not in body
    assert "https://" not in body


def test_the_cookie_ends_with_the_token_and_is_for_encrypted_hosts_only_where_there_are_any():
    who = TokenRecord(
        name="ana",
        sha256="0" * 64,
        role="analyst",
        tables=None,
        share=None,
        made="2026-11-01T00:00:00+00:00",
        expires="2027-01-31T00:00:00+00:00",
    )
    plain, kept = (cookie("tct_x", who, encrypted=encrypted) for encrypted in (False, True))
    assert plain == (
        "tacit=tct_x; Path=/; HttpOnly; SameSite=Strict; Expires=Sun, 31 Jan 2027 00:00:00 GMT"
    )
    assert kept.startswith("__Host-tacit=tct_x; Path=/; HttpOnly; SameSite=Strict; Secure;")
    assert "Max-Age=0" in no_cookie(encrypted=True)


def test_a_revoked_token_is_told_on_the_page(server: Running):
    gone = {"Cookie": "tacit=tct_" + "x" * 43}
    told = server.ask("GET", "/", token=None, headers=gone)
    assert told.status == 401
    assert "You are signed out" in told.body.decode()
    assert server.ask("GET", "/page/live", token=None, headers=gone).status == 401
