"""The steward's desk, the analyst's budget, and the history."""

from __future__ import annotations

import re

from tests.page.conftest import Visitor
from tests.server.conftest import Running


def _form(visitor: Visitor, path: str):
    return visitor.page.locator(f'form[data-post="{path}"]')


def test_an_analyst_asks_for_more_and_a_steward_approves(clinic: Running, visit):
    ana, boss = visit(clinic, "ana"), visit(clinic, "boss")
    ana.open("/budget", "Budget")
    ana.page.get_by_label("ε more").fill("1/2")
    ana.page.get_by_label("What it is for").fill("the <b>flu</b> season")
    ana.page.get_by_role("button", name="Send the request").click()
    ana.page.get_by_text("ε = 0.5 for “the <b>flu</b> season”, open").wait_for()
    boss.open("/steward", "Steward")
    boss.page.get_by_text("ana asks for ε = 0.5 more").wait_for()
    boss.page.get_by_role("button", name="Approve").click()
    boss.page.get_by_text("Nobody asks for more").wait_for()
    ana.page.reload()
    ana.page.get_by_text("left of ε = 2.5").wait_for()
    assert ana.console == boss.console == []


def test_a_token_is_made_shown_once_and_revoked_and_its_page_says_so(clinic: Running, visit):
    boss = visit(clinic, "boss")
    boss.open("/steward", "Steward")
    boss.page.locator("summary", has_text="Make a token").click()
    form = _form(boss, "/page/token")
    form.get_by_label("Name").fill("carl")
    form.get_by_label("Share it draws from").select_option("ana")
    form.get_by_role("button", name="Make a token").click()
    token = boss.page.locator("#new-token").inner_text()
    assert re.fullmatch(r"tct_[A-Za-z0-9_-]{43}", token)
    carl = visit(clinic)
    carl.sign_in(token)
    boss.page.reload()
    boss.page.get_by_role("heading", name="Tokens").wait_for()
    assert token not in boss.page.content()
    boss.page.get_by_role("button", name="Revoke token carl").click()
    boss.page.get_by_text("the token of carl will be refused for good").wait_for()
    boss.page.get_by_role("button", name="Yes, do it").click()
    boss.page.locator("tr", has_text="carl").get_by_text("revoked").wait_for()
    carl.page.get_by_text("You are signed out: this token is not known here").wait_for()


def test_a_stopped_table_is_refused_and_may_go_on(clinic: Running, visit):
    boss = visit(clinic, "boss")
    boss.open("/steward", "Steward")
    asked = {"table": "visits", "questions": [{"question": "age = 3"}]}
    boss.page.get_by_role("button", name="Stop table visits").click()
    boss.page.get_by_text("Table visits will refuse every question").wait_for()
    boss.page.get_by_role("button", name="Not now").click()
    assert clinic.ask("POST", "/v1/check", asked).status == 200
    boss.page.get_by_role("button", name="Stop table visits").click()
    boss.page.get_by_role("button", name="Yes, do it").click()
    boss.page.get_by_role("button", name="Let table visits go on").wait_for()
    assert clinic.ask("POST", "/v1/check", asked).status == 403
    boss.page.reload()
    refused = boss.page.locator("tr", has_text="/v1/check")
    refused.get_by_text("NotAuthorised").wait_for()
    boss.page.get_by_role("button", name="Let table visits go on").click()
    boss.page.get_by_role("button", name="Stop table visits").wait_for()
    assert clinic.ask("POST", "/v1/check", asked).status == 200


def test_a_table_is_read_anew_under_a_new_label(clinic: Running, visit):
    boss, ana = visit(clinic, "boss"), visit(clinic, "ana")
    boss.open("/steward", "Steward")
    with (clinic.folder / "visits.csv").open("a") as file:
        file.write("".join(f"{pid},Ghent,30,1.5\n" for pid in range(1000, 3000)))
    boss.page.locator("summary", has_text="Read a table anew").click()
    form = _form(boss, "/v1/refresh")
    form.locator("[name=table]").select_option("visits")
    form.get_by_label("Its new label").fill("2026-12-01")
    form.get_by_role("button", name="Read it").click()
    boss.page.locator("tr", has_text="visits as of 2026-12-01").wait_for()
    ana.open("/", "Overview")
    ana.page.locator("summary", has_text="as of 2026-12-01").wait_for()
    told = clinic.ask(
        "POST",
        "/v1/count",
        {"key": "k", "table": "visits", "question": "town = 'Ghent'", "epsilon": "1"},
    )
    assert told.json["released"]["value"] > 1500  # 100 before, 2 100 now
    boss.page.locator("summary", has_text="Read a table anew").click()
    form.get_by_label("Its new label").fill("2026-11-01")
    form.get_by_role("button", name="Read it").click()
    form.locator("[data-wrong]", has_text="as_of").wait_for()  # a label never comes back
    assert boss.page.locator("tr", has_text="visits as of 2026-12-01").count() == 1
    (clinic.folder / "visits.csv").unlink()
    form.get_by_label("Its new label").fill("2026-12-24")
    form.get_by_role("button", name="Read it").click()
    form.locator("[data-wrong]", has_text="could not be read anew; it stays as it is").wait_for()
    form.get_by_label("All rows of a table that grows").check()
    with boss.page.expect_request("**/v1/refresh") as sent:
        form.get_by_role("button", name="Read it").click()
    told = sent.value.post_data_json
    assert told == {"table": "visits", "as_of": "2026-12-24", "whole": True}


def test_a_share_is_set(clinic: Running, visit):
    boss = visit(clinic, "boss")
    boss.open("/steward", "Steward")
    boss.page.locator("summary", has_text="Set a share").click()
    form = _form(boss, "/page/share")
    form.get_by_label("Analyst").fill("dora")
    form.get_by_label("ε").fill("100")
    form.get_by_role("button", name="Set the share").click()
    form.locator("[data-wrong]:not(:empty)").wait_for()
    form.get_by_label("ε").fill("1/4")
    form.get_by_role("button", name="Set the share").click()
    boss.page.locator("tr", has_text="dora").get_by_text("ε = 0.25").first.wait_for()


def test_questions_are_tried_on_a_made_up_table(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/budget", "Budget")
    ana.page.get_by_role("textbox", name="Question").fill("town = 'Ghent'")
    ana.page.get_by_role("button", name="Try it").click()
    ana.page.get_by_text("Among 1 000 made-up people").wait_for()
    assert clinic.ask("GET", "/v1/budget").json["own"]["spent"]["epsilon"] == "0"


def test_the_history_shows_who_spent_what_and_verifies(clinic: Running, visit):
    count = {"table": "visits", "question": "age = 3", "epsilon": "1/10"}
    for key in ("one", "two"):
        assert clinic.ask("POST", "/v1/count", {"key": key, **count}).status == 200
    boss, ana, ben = visit(clinic, "boss"), visit(clinic, "ana"), visit(clinic, "ben")
    for visitor in (boss, ana, ben):
        visitor.open("/history", "History")
    payments = boss.page.get_by_role("table").locator("tbody tr", has_text="ε = 0.1")
    assert payments.count() == ana.page.locator("tbody tr", has_text="ε = 0.1").count() == 2
    assert ben.page.get_by_text("Nothing was spent yet").count() == 1
    assert boss.page.get_by_text("now ε = 9.8 is left").count() >= 1
    assert ana.page.get_by_text("now ε = 1.8 is left").count() >= 1
    boss.page.get_by_role("button", name="Verify all of it").click()
    boss.page.get_by_text("All entries are in order").wait_for()
    assert ana.page.locator("#head").count() == 0


def test_a_form_that_is_sent_twice_changes_once(clinic: Running):
    headers = {"Cookie": f"tacit={clinic.tokens['boss']}", "Origin": clinic.url}
    body = {"key": "k", "name": "carl", "role": "viewer"}
    first, again = (
        clinic.ask("POST", "/page/token", body, token=None, headers=headers) for _ in range(2)
    )
    assert first.status == 200
    assert again.body == first.body
    other = clinic.ask("POST", "/page/token", {**body, "key": "l"}, token=None, headers=headers)
    assert other.status == 422  # the name is taken


def test_who_may_see_what(clinic: Running):
    def status(who: str, path: str) -> int:
        headers = {"Cookie": f"tacit={clinic.tokens[who]}"}
        return clinic.ask("GET", path, token=None, headers=headers).status

    seen = {
        "ana": {
            "/": 200,
            "/release": 200,
            "/ask": 200,
            "/history": 200,
            "/budget": 200,
            "/steward": 403,
        },
        "boss": {
            "/": 200,
            "/release": 200,
            "/ask": 403,
            "/history": 200,
            "/budget": 403,
            "/steward": 200,
        },
        "vera": {
            "/": 200,
            "/release": 200,
            "/ask": 403,
            "/history": 403,
            "/budget": 403,
            "/steward": 403,
        },
    }
    for who, pages in seen.items():
        assert {path: status(who, path) for path in pages} == pages
