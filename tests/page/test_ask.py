"""Asking in a browser: the plan, opening, refusals while typing, answers, and running out of ⊤."""

from __future__ import annotations

import csv

from tests.page.conftest import Visitor
from tests.server.conftest import Running

from tacit import Budget


def open_stream(
    visitor: Visitor,
    *,
    name: str,
    threshold: str = "50",
    at_most: str = "2",
    epsilon: str = "1",
) -> None:
    """Fill in the form, wait for the plan that is meant, and pay."""
    page = visitor.page
    visitor.open("/ask", "Ask")
    if page.locator("#opening").get_attribute("open") is None:
        page.locator("#opening summary").click()
    given = {"Threshold": threshold, "At most this many ⊤": at_most, "ε": epsilon, "Name": name}
    for label, value in given.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Open…").click()
    page.get_by_text(f"until {at_most} answers came out above {threshold}").wait_for()
    page.get_by_role("button", name="Pay and open").click()
    page.get_by_role("heading", name=name).wait_for()


def ask(visitor: Visitor, question: str) -> str:
    """Ask, and wait until one more answer is in the table; its words."""
    page, rows = visitor.page, visitor.page.locator("#answers tbody tr")
    before = rows.count()
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    rows.nth(before).wait_for()
    return str(rows.first.inner_text())


def test_twenty_questions_until_nothing_is_left(clinic: Running, visit, tmp_path):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    page = ana.page
    for age in range(18):
        assert "below" in ask(ana, f"age = {age} and town = 'Bruges' and cost < 0")
    assert "above" in ask(ana, "town = 'Bruges'")
    page.get_by_text("1 of 2 ⊤ left").wait_for()
    page.reload()
    page.locator("#answers tbody tr").nth(18).wait_for()
    assert page.locator("#answers .above").count() == 1
    assert "above" in ask(ana, "age >= 0")
    page.get_by_text("0 of 2 ⊤ left").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    download.value.save_as(tmp_path / "saved.csv")
    with (tmp_path / "saved.csv").open(encoding="utf-8", newline="") as file:
        saved = [(row["question"], row["answer"], row["value"]) for row in csv.DictReader(file)]
    clinic.stop()
    with Budget.open(clinic.folder / "clinic.budget") as budget:
        told = [(paid.question, paid.response) for paid in budget.answers if paid.response]
    assert len(told) == 20
    assert saved == [
        (
            question,
            "⊤" if said["above"] else "⊥",
            "" if said["value"] is None else str(said["value"]),
        )
        for question, said in reversed(told)
    ]
    assert ana.console == []
    assert ana.hosts == {clinic.url.removeprefix("http://")}


def test_a_double_click_pays_once(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    ana.page.get_by_label("Question", exact=True).fill("town = 'Bruges'")
    ana.page.get_by_role("button", name="Ask", exact=True).dblclick()
    ana.page.locator("#answers .above").wait_for()
    ana.page.reload()
    ana.page.locator("#answers .above").wait_for()
    assert ana.page.locator("#answers tbody tr").count() == 1
    assert ana.page.get_by_text("1 of 2 ⊤ left").count() == 1


def test_what_is_refused_is_underlined_while_typing(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    line = ana.page.get_by_label("Question", exact=True)
    line.fill("age >= 60 and heigth > 3")
    ana.page.locator(".refused", has_text="heigth").wait_for()
    ana.page.get_by_text("visits has no such column").wait_for()
    line.fill("age >= 60")
    ana.page.get_by_text("sensitivity 1, more people never lower it").wait_for()
    assert ana.page.locator(".refused").count() == 0


def test_columns_and_keys_are_completed_with_the_keyboard_alone(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    page, line = ana.page, ana.page.get_by_label("Question", exact=True)
    line.focus()
    page.keyboard.type("tow")
    page.locator("#completions li", has_text="town").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type(" = ")
    page.locator("#completions li", has_text="Ghent").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert line.input_value() == "town = 'Ghent'"
    page.keyboard.press("Enter")
    page.locator("#answers tbody tr").wait_for()


def test_a_group_by_is_a_grid(clinic: Running, visit):
    ana = visit(clinic, "ana")
    open_stream(ana, name="watch")
    line = ana.page.get_by_label("Question", exact=True)
    line.fill("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town")
    ana.page.get_by_text("2 questions, one for each cell").wait_for()
    ana.page.get_by_role("button", name="Ask", exact=True).click()
    grid = ana.page.get_by_role("table").filter(has_text="2 of 2 cells answered, 2 above")
    grid.wait_for()
    assert "Bruges" in grid.inner_text()
    ana.page.get_by_text("0 of 2 ⊤ left").wait_for()
    assert ana.console == []


def test_a_plan_that_does_not_fit_is_not_opened(clinic: Running, visit):
    ana = visit(clinic, "ana")
    ana.open("/ask", "Ask")
    ana.page.get_by_label("ε", exact=True).fill("3")
    ana.page.get_by_text("it does not fit: ε = 2 is left").wait_for()
    ana.page.get_by_role("button", name="Open…").click()
    ana.page.locator("#open [data-wrong]", has_text="does not fit into your share").wait_for()
    assert not ana.page.get_by_role("button", name="Pay and open").is_visible()
