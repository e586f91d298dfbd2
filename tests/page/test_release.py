"""Releasing in a browser: the plan, the price in words, pictures, files, and paying once."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.page.conftest import Visitor
from tests.server.conftest import Running

from tacit import Budget
from tacit.wire import from_json


def choose(visitor: Visitor, form: str, call: str) -> None:
    """Open the page, and choose what to release: of one row of each person."""
    visitor.open("/release", "Release")
    visitor.page.get_by_text(form, exact=True).first.click()
    visitor.page.locator(f"#release[data-post='/page/release/{call}']").wait_for()
    for rows in visitor.page.locator("#release [name=max_rows]").all():
        rows.fill("1")


def release(visitor: Visitor) -> str:
    """Agree to the price and pay; what was shown of it."""
    page = visitor.page
    page.get_by_role("button", name="Release…").click()
    page.get_by_role("button", name="Pay and release").click()
    page.locator("#released[data-number]").wait_for()
    return str(page.locator("#released").inner_text())


def spent(clinic: Running) -> str:
    return str(clinic.ask("GET", "/v1/budget").json["own"]["spent"]["epsilon"])


def saved(visitor: Visitor, name: str, folder: Path) -> Path:
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name=f"Save as {name}").click()
    path = folder / str(download.value.suggested_filename)
    download.value.save_as(path)
    return path


def test_a_histogram_is_planned_paid_once_shown_and_saved(clinic: Running, visit, tmp_path):
    ana = visit(clinic, "ana")
    choose(ana, "Histogram", "histogram")
    page = ana.page
    page.locator("#plan").get_by_text("each count ± 30, all together ± 37 (95 %)").wait_for()
    assert page.locator("#plan").get_by_text("ε = 1.9").count() == 1  # left afterwards
    page.get_by_role("button", name="Release…").click()
    page.get_by_text("This costs ε = 0.1 of your share, now and in full").wait_for()
    page.get_by_role("button", name="Not now").click()
    assert spent(clinic) == "0"
    page.locator("#release [name=epsilon]").fill("0.2")
    page.get_by_role("button", name="Release…").click()
    page.get_by_text("This costs ε = 0.2 of your share, now and in full").wait_for()
    page.get_by_role("button", name="Not now").click()
    page.locator("#release [name=epsilon]").fill("0.1")
    page.locator("#plan dd", has_text="ε = 1.9").wait_for()
    page.get_by_role("button", name="Release…").click()
    page.get_by_role("button", name="Pay and release").dblclick()
    page.locator("#released[data-number]").wait_for()
    assert spent(clinic) == "1/10"
    rows = page.locator("#released .bars tbody tr")
    shown = [text.split("\t")[:2] for text in rows.all_inner_texts()]
    page.reload()
    page.locator("#released[data-number]").wait_for()
    assert spent(clinic) == "1/10"
    assert page.locator("#before").count() == 1
    files = {name: saved(ana, name, tmp_path) for name in ("CSV", "Parquet", "JSON")}
    clinic.stop()
    with Budget.open(clinic.folder / "clinic.budget") as budget:
        (paid,) = budget.answers
    kept = from_json(paid.response)
    columns = kept.to_dict()
    with files["CSV"].open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            [*columns],
            *[list(map(str, row)) for row in zip(*columns.values(), strict=True)],
        ]
    with duckdb.connect(":memory:") as connection:
        asked = connection.execute("SELECT * FROM read_parquet(?)", [str(files["Parquet"])])
        read = asked.fetchall()
    assert read == list(zip(*columns.values(), strict=True))
    assert from_json(json.loads(files["JSON"].read_text())).to_dict() == columns
    assert shown == [
        [town, f"{count:,} ± 30".replace(",", " ")]
        for town, count, *_ in zip(*columns.values(), strict=True)
    ]
    assert ana.console == []
    assert ana.hosts <= {clinic.url.removeprefix("http://"), "127.0.0.1"}


FORMS = {
    "Count": ("count", {"question": "age < 50"}, ["± 30 (95 %)"]),
    "Query": (
        "query",
        {
            "query": "SELECT COUNT(DISTINCT pid), AVG(cost) FROM visits GROUP BY town",
            "max_rows": "1",
        },
        ["Bruges", "AVG(cost)"],
    ),
    "Largest": ("top", {"counts_epsilon": "0.1"}, ["1. ", "the order of draw"]),
    "Ranges": ("ranges", {}, ["How many up to each age", "Median"]),
    "Running count": ("running", {}, ["How many up to each age"]),
    "Small database": ("small_db", {"rows": "10"}, ["up to each age", "10 rows for intervals"]),
    "Small database of a list": (
        "small_db",
        {"questions": "age < 50\ntown = 'Ghent'", "rows": "5"},
        ["5 rows for 2 questions"],
    ),
    "Synthetic rows": ("synthetic", {"rows": "50", "bins": "age 6"}, ["town of the invented rows"]),
}


def test_every_kind_is_planned_and_released(clinic: Running, visit, tmp_path):
    ana = visit(clinic, "ana")
    for form, (call, given, told) in FORMS.items():
        choose(ana, form, call)
        for name, value in given.items():
            ana.page.locator(f"#release [name='{name}']").fill(value)
        shown = release(ana)
        for words in told:
            assert words in shown.replace("\xa0", " "), (form, shown)
        assert saved(ana, "CSV", tmp_path).stat().st_size > 0
    ana.open("/release", "Release")
    assert ana.page.locator("#before ~ div tbody tr, section:has(#before) tbody tr").count() == 8
    assert ana.console == []


def test_two_keys_are_a_heat_map(clinic: Running, visit):
    clinic_boss = visit(clinic, "boss")
    body = {"table": "visits", "columns": ["town", "age"], "epsilon": "1/10", "max_rows": 1}
    assert clinic.ask("POST", "/v1/histogram", {"key": "k", **body}).status == 200
    clinic_boss.open("/release", "Release")
    assert clinic_boss.page.get_by_role("button", name="Release…").count() == 0
    clinic_boss.page.get_by_role("link", name="histogram of town, age").click()
    heat = clinic_boss.page.locator("#released table.heat")
    heat.wait_for()
    assert heat.locator("tbody tr").count() == 60  # of 121 ages, as many as can be read
    assert heat.locator("td.heat4").count() > 0
    assert "each ± 30 (95 %)" in heat.inner_text().replace("\xa0", " ")


def test_what_cannot_be_planned_says_why(clinic: Running, visit):
    ana = visit(clinic, "ana")
    choose(ana, "Ranges", "ranges")
    ana.page.locator("#release [name=epsilon]").fill("-1")
    ana.page.locator("#plan .wrong", has_text="epsilon").wait_for()
    ana.page.locator("#release [name=epsilon]").fill("3")
    ana.page.get_by_text("it does not fit: ε = 2 is left").wait_for()
    ana.page.get_by_role("button", name="Release…").click()
    ana.page.locator("#release [data-wrong]", has_text="does not fit").wait_for()
    assert spent(clinic) == "0"
    choose(ana, "Count", "count")
    ana.page.locator("#release [name=question]").fill("agee < 50")
    ana.page.locator("#plan .refused", has_text="agee").wait_for()
    assert ana.console == []


def test_a_lost_reply_and_a_reload_pay_once(clinic: Running, visit):
    ana = visit(clinic, "ana")
    page = ana.page
    choose(ana, "Count", "count")
    lost = []

    def lose(route):
        route.fetch()  # the server answers, and the browser never hears of it
        lost.append(route)
        route.abort()

    page.route("**/page/release/count", lose, times=1)
    page.get_by_role("button", name="Release…").click()
    page.get_by_role("button", name="Pay and release").click()
    page.locator("#release [data-wrong]", has_text="nothing is paid twice").wait_for()
    assert lost
    page.reload()
    choose(ana, "Count", "count")
    release(ana)
    assert spent(clinic) == "1/10"


@pytest.mark.parametrize("path", ["/page/released", "/page/save"])
def test_nobody_sees_what_others_released(clinic: Running, path):
    body = {"key": "k", "table": "visits", "question": "age = 3", "epsilon": "1/10"}
    assert clinic.ask("POST", "/v1/count", body).status == 200
    with Budget.open(clinic.folder / "clinic.budget") as budget:
        (number,) = (paid.number for paid in budget.answers)
    asked: dict[str, Any] = {"number": number}
    if path == "/page/save":
        asked["format"] = "json"

    def status(who: str, asked: dict[str, Any]) -> int:
        headers = {"Cookie": f"tacit={clinic.tokens[who]}", "Origin": clinic.url}
        return clinic.ask("POST", path, asked, token=None, headers=headers).status

    seen = {who: status(who, asked) for who in ("ana", "ben", "vera", "boss")}
    assert seen == {"ana": 200, "ben": 422, "vera": 200, "boss": 200}
    assert status("boss", {**asked, "number": number + 1}) == 422
    assert status("boss", {**asked, "number": 10**9}) == 422


def test_a_watched_model_is_opened_and_asked(clinic: Running, visit):
    ana = visit(clinic, "ana")
    choose(ana, "Watched model", "watched")
    for name, value in {"epsilon": "1", "surprises": "2", "name": "model"}.items():
        ana.page.locator(f"#release [name={name}]").fill(value)
    ana.page.locator("#plan").get_by_text("2 surprises").wait_for()
    ana.page.get_by_role("button", name="Release…").click()
    ana.page.get_by_role("button", name="Pay and release").click()
    ana.page.get_by_role("link", name="ask model").click()
    ana.page.get_by_text("2 of 2 surprises left").wait_for()
    assert spent(clinic) == "1"
    ana.page.get_by_label("Question", exact=True).fill("age >= 50")
    ana.page.get_by_role("button", name="Ask", exact=True).click()
    ana.page.locator("#answers tbody tr", has_text="95 %").wait_for()
    ana.page.reload()
    ana.page.locator("#answers tbody tr", has_text="95 %").wait_for()
    with ana.page.expect_download() as download:
        ana.page.get_by_role("button", name="Save as CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    shown = ana.page.locator("#answers tbody tr").inner_text().replace("\xa0", "")
    assert row["question"] == "age >= 50"
    assert row["answer"] in shown
    assert row["value"] in shown.replace(" ", "")
    assert float(row["error"]) > 0
    ana.open("/", "Overview")
    ana.page.locator(".answers tbody tr", has_text="95 %").first.wait_for()
    assert ana.console == []
