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
