"""What people do beside clicking: keys alone, other sites, other time zones, grids, copies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.page.test_ask import ask, open_stream
from tests.server.clinic import write_clinic
from tests.server.conftest import Running, started

from tacit import Budget
from tacit.server.tokens import TokenFile

MOST_TABS = 60


def press_until(page: Any, name: str, key: str = "Tab") -> None:
    """Press a key until what has the focus is called so."""
    for _ in range(MOST_TABS):
        focus = page.locator("*:focus")
        if focus.count() and name in (
            focus.get_attribute("name") or "",
            focus.inner_text().strip(),
        ):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{name} cannot be reached with the keyboard")


def test_from_signing_in_to_an_answer_with_the_keyboard_alone(clinic: Running, visit):
    ana = visit(clinic)
    page = ana.page
    page.goto(clinic.url)
    press_until(page, "token")
    page.keyboard.type(clinic.tokens["ana"])
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    press_until(page, "Ask")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ask", level=1).wait_for()
    for field, value in {"threshold": "50", "epsilon": "1", "name": "by hand"}.items():
        press_until(page, field)
        page.keyboard.press("Control+a")
        page.keyboard.type(value)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Not now").wait_for()
    press_until(page, "Pay and open", "Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="by hand").wait_for()
    press_until(page, "question")
    page.keyboard.type("age >= 0")
    page.keyboard.press("Enter")
    page.locator("#answers .above").wait_for()
    press_until(page, "Release", "Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Release", level=1).wait_for()
    press_until(page, "form")
    page.keyboard.press("ArrowRight")  # from the histogram to the query
    page.locator("#release[data-post='/page/release/query']").wait_for()
    assert ana.console == []


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Running]:
    """A clinic with two columns that have keys."""
    config = write_clinic(tmp_path)
    schema = tmp_path / "visits.toml"
    declared = schema.read_text().replace(
        "bounds = [0, 120]", "bounds = [0, 120]\nkeys = [3, 4, 5]"
    )
    schema.write_text(declared)
    with Budget.open(tmp_path / "clinic.budget") as budget:
        budget.share("ana", epsilon=9)
    tokens = {"ana": TokenFile(tmp_path / "clinic.budget-tokens").add("ana", share="ana")}
    with started(config, tokens) as running:
        yield running


def test_a_group_by_two_keys_is_a_heat_map(keyed: Running, visit):
    ana = visit(keyed, "ana", timezone_id="Asia/Tokyo")
    open_stream(ana, name="grid", threshold="-20", at_most="4", epsilon="8")
    line = ana.page.get_by_label("Question", exact=True)
    line.fill("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town, age")
    ana.page.get_by_text("6 questions, one for each cell").wait_for()
    ana.page.get_by_role("button", name="Ask", exact=True).click()
    ana.page.get_by_text("0 of 4 ⊤ left").wait_for()
    grid = ana.page.locator("#grid table")
    assert "above" in grid.locator("caption").inner_text()
    assert grid.locator("thead th").all_inner_texts() == ["town", "3", "4", "5"]
    assert grid.locator("td.top").count() == 4
    assert grid.locator("td[class*=heat]").count() == 4
    rows = ana.page.locator("#answers tbody tr")
    assert rows.filter(has=ana.page.locator(".above")).count() == 4
    shown = rows.first.locator("time").inner_text()
    there = datetime.now(UTC).astimezone(ZoneInfo("Asia/Tokyo"))
    assert any(f"{(there - timedelta(minutes=by)):%-I:%M}" in shown for by in range(10)), shown
    assert ana.console == []


def test_answers_are_filtered_and_copied(clinic: Running, visit):
    ana = visit(clinic, "ana", permissions=["clipboard-read", "clipboard-write"])
    open_stream(ana, name="watch")
    for question in ("age = 3 and cost < 0", "town = 'Bruges'", "age = 4 and cost < 0"):
        ask(ana, question)
    ana.page.get_by_label("Filter").fill("bruges")
    assert ana.page.locator("#answers tbody tr:visible").count() == 1
    ana.page.get_by_role("button", name="Copy").click()
    ana.page.get_by_text("1 answer copied").wait_for()
    head, line = ana.page.evaluate("navigator.clipboard.readText()").split("\n")
    assert head.split("\t") == ["at", "question", "answer", "value", "error"]
    assert line.split("\t")[1:3] == ["town = 'Bruges'", "⊤"]


EVIL = """<!doctype html><title>evil</title><form method="post" enctype="text/plain"
action="{url}/v1/streams/open"><input name='{start}' value='"}}'></form>"""


def test_another_site_cannot_make_a_browser_pay(clinic: Running, visit):
    ana = visit(clinic, "ana")
    evil = ana.page.context.new_page()
    body = '{"key":"k","table":"visits","algorithm":"sparse","threshold":50,"epsilon":"1","name":"x'
    html = EVIL.format(url=clinic.url, start=body.replace("'", "&#39;"))
    evil.route(
        "http://evil.example/**", lambda route: route.fulfill(body=html, content_type="text/html")
    )
    evil.goto("http://evil.example/")
    script = """async ([url, body]) => {
      const options = { method: "POST", mode: "no-cors", credentials: "include", body };
      const got = await fetch(url + "/v1/streams/open", options).catch(() => null);
      return got?.type ?? "refused";
    }"""
    assert evil.evaluate(script, [clinic.url, body + '"}']) in ("opaque", "refused")
    with evil.expect_navigation():
        evil.evaluate("document.forms[0].submit()")
    assert "stream" not in evil.inner_text("body").lower() or "refused" in evil.content()
    assert clinic.ask("GET", "/v1/streams").json["streams"] == []
    assert clinic.ask("GET", "/v1/budget").json["own"]["spent"]["epsilon"] == "0"


def test_what_updates_is_a_server_sent_event(clinic: Running):
    headers = {"Cookie": f"tacit={clinic.tokens['boss']}"}
    told = clinic.ask("GET", "/page/live", token=None, headers=headers)
    assert told.headers["content-type"].startswith("text/event-stream")
    first, *lines = told.body.decode().split("\n")
    assert first.startswith("retry: ")
    assert all(line.startswith("data: ") for line in lines if line)
    assert told.body.endswith(b"\n\n")
