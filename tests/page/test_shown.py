"""Nothing is paid for that the page does not show at that moment."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
from tests.page.conftest import Visitor
from tests.page.test_ask import open_stream
from tests.page.test_release import release, spent
from tests.server.conftest import Running


def shown(visitor: Visitor) -> tuple[str, str]:
    """The tab that is chosen, and the form that would be paid for."""
    page = visitor.page
    chosen = page.locator("#chosen [name=form]:checked").get_attribute("value")
    return str(chosen), str(page.locator("#release").get_attribute("data-post")).rpartition("/")[2]


def choose(visitor: Visitor, form: str) -> None:
    visitor.page.locator("#chosen").get_by_text(form, exact=True).click()


def test_every_form_waits_for_its_script():
    """Without it, a browser would put what was typed, such as a token, into the address."""
    for template in (files("tacit.page") / "templates").iterdir():
        for form in re.findall("<form[^>]*>", template.read_text(encoding="utf-8")):
            assert 'method="dialog"' in form, (template.name, form)


def test_a_token_that_is_sent_before_the_script_is_there_is_in_no_address(clinic: Running, visit):
    ana = visit(clinic, java_script_enabled=False)
    ana.page.goto(clinic.url + "/")
    ana.page.get_by_label("Token").fill(clinic.tokens["ana"])
    ana.page.get_by_role("button", name="Sign in").click()
    assert ana.page.url == clinic.url + "/"


def test_tabs_that_are_clicked_before_the_script_is_there_count(clinic: Running, visit):
    ana = visit(clinic, "ana")
    page, waiting = ana.page, []
    page.route("**/release.js", lambda route: waiting.append(route))
    with page.expect_request("**/release.js"):
        page.goto(clinic.url + "/release", wait_until="commit")
    page.locator("#earlier").wait_for()
    choose(ana, "Count")
    for route in waiting:
        route.continue_()
    page.locator("#release[data-post='/page/release/count']").wait_for()
    assert shown(ana) == ("count", "count")
    assert "Count: " in release(ana)
    assert ana.console == []


def test_after_the_back_button_the_tab_is_that_of_the_form(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/release", "Release")
    choose(ana, "Count")
    ana.page.locator("#release[data-post='/page/release/count']").wait_for()
    ana.open("/history", "History")
    ana.page.go_back()
    ana.page.locator("#plan :text-matches('ε = 1.9|max_rows')").first.wait_for()
    tab, form = shown(ana)
    assert tab == form


def test_of_tabs_clicked_quickly_the_last_counts(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/release", "Release")
    waiting: list[Any] = []
    ana.page.route("**/page/form", lambda route: waiting.append(route), times=1)
    with ana.page.expect_request("**/page/form"):
        choose(ana, "Query")
    choose(ana, "Ranges")
    choose(ana, "Count")
    waiting[0].continue_()
    ana.page.locator("#release[data-post='/page/release/count']").wait_for()
    assert shown(ana) == ("count", "count")


def test_nothing_is_paid_while_the_tab_and_the_form_disagree(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/release", "Release")
    ana.page.locator("#release [name=max_rows]").fill("1")
    ana.page.locator("#plan dd", has_text="ε = 1.9").wait_for()
    ana.page.route("**/page/form", lambda route: route.abort())
    choose(ana, "Count")
    assert shown(ana) == ("count", "histogram")
    ana.page.get_by_role("button", name="Release…").click()
    ana.page.get_by_text("nothing was sent").wait_for()
    assert not ana.page.get_by_role("button", name="Pay and release").is_visible()
    assert spent(clinic) == "0"


@pytest.mark.parametrize("change", ["the form", "the tab"])
def test_what_changes_while_the_price_is_shown_is_not_paid(clinic: Running, visit, change):
    ana = visit(clinic, "ana")
    ana.open("/release", "Release")
    page = ana.page
    page.locator("#release [name=max_rows]").fill("1")
    page.get_by_role("button", name="Release…").click()
    page.get_by_text("This costs ε = 0.1 of your share, now and in full").wait_for()
    if change == "the form":
        page.evaluate("document.querySelector('#release [name=epsilon]').value = '1'")
    else:
        page.evaluate("document.querySelector('#chosen [value=count]').checked = true")
    page.get_by_role("button", name="Pay and release").click()
    page.get_by_text("nothing was sent").wait_for()
    assert spent(clinic) == "0"


def test_a_stream_covers_what_its_form_says_and_the_question_line_knows(clinic: Running, visit):
    """A GROUP BY of sums needs a sensitivity, which the form has and the plan counts in."""
    sums = "SELECT SUM(cost) FROM visits GROUP BY town"
    ana = visit(clinic, "ana")
    page = ana.page
    open_stream(ana, name="plain", epsilon="0.5")
    page.get_by_label("Question", exact=True).fill(sums)
    page.locator("#check", has_text="open a stream with sensitivity=200").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#ask-form [data-wrong]", has_text="nothing was asked").wait_for()
    page.locator("#opening summary").click()
    alpha = page.locator("#plan dl div", has_text="Error α").locator("dd")
    page.get_by_label("Name", exact=True).fill("sums")
    page.get_by_label("Grid", exact=True).fill("0.5")
    plain = float(alpha.inner_text().replace("\xa0", ""))
    page.get_by_label("Sensitivity", exact=True).fill("200")
    page.wait_for_function(
        "([before, each]) => Math.abs(Number(document.querySelectorAll('#plan dd')[2].innerText"
        ".replace(/\\s/g, '')) / before / each - 1) < .01",
        arg=[plain, 200],
    )
    page.get_by_role("button", name="Open…").click()
    page.get_by_role("button", name="Pay and open").click()
    page.get_by_role("heading", name="sums").wait_for()
    page.get_by_label("Question", exact=True).fill(sums)
    page.locator("#check", has_text="2 questions, one for each cell; sensitivity 200").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("table").filter(has_text="2 of 2 cells answered").wait_for()
    assert ana.console == []


def test_a_group_by_ends_when_another_stream_is_shown(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="one", epsilon="0.5", threshold="10")
    open_stream(ana, name="two", epsilon="0.5", threshold="10")
    page, waiting = ana.page, []
    page.route("**/v1/streams/ask_all", lambda route: waiting.append(route))
    page.get_by_label("Question", exact=True).fill(
        "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"
    )
    with page.expect_request("**/v1/streams/ask_all"):
        page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#choose select").select_option("one")
    page.get_by_role("heading", name="one").wait_for()
    with page.expect_response("**/v1/streams/ask_all"):
        waiting[0].continue_()
    page.locator("#choose select").select_option("two")
    page.get_by_role("heading", name="two").wait_for()
    page.get_by_text("1 of 2 ⊤ left").wait_for()
    assert len(waiting) == 1
    assert ana.console == []


def test_a_question_that_is_changed_while_it_is_checked_is_not_asked(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    page, waiting = ana.page, []
    line = page.get_by_label("Question", exact=True)
    page.route("**/page/check", lambda route: waiting.append(route), times=1)
    line.fill("age >= 0")
    with page.expect_request("**/page/check"):
        page.get_by_role("button", name="Ask", exact=True).click()
    line.fill("age >= 50")
    waiting[0].continue_()
    page.get_by_text("nothing was sent").wait_for()
    assert page.locator("#answers tbody tr").count() == 0
