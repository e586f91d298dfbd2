"""Signing in, the overview, and that it updates itself."""

from __future__ import annotations


def test_signing_in_shows_the_overview(server, visit):
    ana = visit(server, "ana")
    assert "left of ε = 2" in ana.page.locator("#live").inner_text()
    cookie = ana.page.context.cookies()[0]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert ana.console == []
    assert ana.hosts == {server.url.removeprefix("http://")}


def test_a_wrong_token_is_told_so(server, visit):
    eve = visit(server)
    eve.page.goto(server.url + "/")
    eve.page.get_by_label("Token").fill("tct_" + "x" * 43)
    eve.page.get_by_role("button", name="Sign in").click()
    eve.page.get_by_text("not known here, was revoked or has expired").wait_for()
    assert eve.page.context.cookies() == []


def test_a_stream_that_was_suspended_is_not_called_live(clinic):
    stream = {"key": "k", "table": "visits", "algorithm": "sparse", "name": "flu", "threshold": 9}
    clinic.ask("POST", "/v1/streams/open", {**stream, "epsilon": "1", "questions": 20})
    assert clinic.ask("POST", "/v1/streams/suspend", {"stream": "flu"}).status == 200
    headers = {"Cookie": f"tacit={clinic.tokens['ana']}"}
    shown = clinic.ask("GET", "/", token=None, headers=headers).body.decode()
    assert "<td>suspended</td>" in shown
    assert "for open streams" in shown
    assert "live streams" not in shown.lower()
