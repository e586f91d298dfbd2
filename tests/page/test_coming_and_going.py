"""Signing out, tokens that end, the back button, and a server that is restarted meanwhile."""

from __future__ import annotations

from tests.page.test_ask import ask, open_stream
from tests.page.test_release import choose
from tests.server.conftest import Running, started


def test_after_signing_out_the_back_button_shows_nothing(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/history", "History")
    ana.page.get_by_role("button", name="Sign out").click()
    ana.page.get_by_label("Token").wait_for()
    assert ana.page.context.cookies() == []
    assert not ana.page.get_by_text("You are signed out").is_visible()  # they know that
    ana.page.go_back()
    ana.page.get_by_label("Token").wait_for()
    assert ana.page.get_by_role("heading", name="History").count() == 0


def test_whose_token_ends_is_told_so_and_comes_back_to_where_they_were(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    ask(ana, "age = 3 and cost < 0")
    ana.page.context.clear_cookies()  # as a browser does when a cookie expires
    ana.page.get_by_label("Question", exact=True).fill("age >= 0")
    ana.page.get_by_text("You are signed out: your token has expired").wait_for()
    ana.page.get_by_label("Token").fill(clinic.tokens["ana"])
    ana.page.get_by_role("button", name="Sign in").click()
    ana.page.get_by_role("heading", name="watch").wait_for()
    assert ana.page.locator("#answers tbody tr").count() == 1
    ana.open("/", "Overview")
    ana.page.context.clear_cookies()
    ana.page.get_by_text("You are signed out: your token has expired").wait_for()
    ana.page.reload()
    ana.page.get_by_label("Token").wait_for()
    assert not ana.page.get_by_text("You are signed out").is_visible()  # it was said


def test_the_back_button_leads_from_a_release_to_the_list(clinic: Running, visit):
    for key, age in (("one", 3), ("two", 4)):
        count = {"key": key, "table": "visits", "question": f"age = {age}", "epsilon": "1/10"}
        assert clinic.ask("POST", "/v1/count", count).status == 200
    ana = visit(clinic, "ana")
    ana.open("/release", "Release")
    for age in (3, 4):
        ana.page.get_by_role("link", name=f"count: age = {age}").click()
        ana.page.get_by_role("heading", name=f"Count: age = {age}").wait_for()
    ana.page.go_back()
    ana.page.get_by_role("heading", name="Count: age = 3").wait_for()
    ana.page.go_back()
    ana.page.get_by_role("heading", name="Count: age = 3").wait_for(state="detached")
    ana.page.go_forward()
    ana.page.get_by_role("heading", name="Count: age = 3").wait_for()
    assert ana.console == []


def test_a_server_that_is_restarted_is_waited_for_and_nothing_is_paid_twice(clinic: Running, visit):
    ana, boss = visit(clinic, "ana"), visit(clinic, "boss")
    open_stream(ana, name="watch")
    config = clinic.folder / "tacit.toml"
    config.write_text(config.read_text().replace("port = 0", f"port = {clinic.port}"))
    clinic.stop()
    boss.page.get_by_text("The server does not answer: this is how it was at").wait_for()
    ana.page.get_by_label("Question", exact=True).fill("town = 'Bruges'")
    ana.page.get_by_role("button", name="Ask", exact=True).click()
    told = ana.page.locator("#ask-form [data-wrong]", has_text="nothing is paid twice")
    told.wait_for()
    with started(config, clinic.tokens) as again:
        assert again.url == clinic.url
        boss.page.locator("#old:empty").wait_for(state="attached")
        ana.page.get_by_role("button", name="Ask", exact=True).click()
        ana.page.locator("#answers .above").wait_for()
        assert ana.page.locator("#answers tbody tr").count() == 1
        assert ana.page.get_by_text("1 of 2 ⊤ left").count() == 1
        assert again.ask("GET", "/v1/budget").json["own"]["spent"]["epsilon"] == "1"


def test_a_release_is_listed_at_once_and_the_next_plan_knows_of_it(clinic: Running, visit):
    ana = visit(clinic, "ana")
    choose(ana, "Histogram", "histogram")
    ana.page.locator("#plan dd", has_text="ε = 1.9").wait_for()
    ana.page.get_by_role("button", name="Release…").click()
    ana.page.get_by_role("button", name="Pay and release").click()
    ana.page.get_by_role("link", name="histogram of town").wait_for()
    ana.page.locator("#plan dd", has_text="ε = 1.8").wait_for()
    assert ana.console == []
