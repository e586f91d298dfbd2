"""What the page is held to: small files, one round trip, a long history, no barriers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.page.conftest import Visitor
from tests.page.test_ask import ask, open_stream
from tests.page.test_release import choose, release
from tests.server.conftest import Running

import tacit.page
from tacit import Budget
from tacit.page import pages
from tacit.page.asking import MOST_ROWS
from tacit.page.grids import MOST_CELLS
from tacit.page.overview import overview
from tacit.privacy import Cost
from tacit.server.config import Limits
from tacit.server.service import Service
from tacit.server.tokens import TokenFile, utc_now

FILES = Path(tacit.page.__file__).parent
MOST = 150_000  # bytes, before compression


def test_all_files_of_a_page_are_small(server: Running):
    statics = sum(path.stat().st_size for path in (FILES / "static").iterdir())
    headers = {"Cookie": f"tacit={server.tokens['boss']}"}
    for path in ("/", "/release", "/history", "/steward"):
        told = server.ask("GET", path, token=None, headers=headers)
        assert statics + len(told.body) < MOST


def test_a_page_of_many_answers_is_small(clinic: Running):
    headers = {"Cookie": f"tacit={clinic.tokens['ana']}"}
    open_by_hand = {"key": "k", "table": "visits", "algorithm": "numeric_sparse", "name": "long"}
    numbers = {"threshold": -1000, "at_most": 20, "epsilon": "1", "questions": 20}
    assert clinic.ask("POST", "/v1/streams/open", {**open_by_hand, **numbers}).status == 200
    sizes = [len(clinic.ask("GET", "/ask", token=None, headers=headers).body)]
    for age in range(10):
        asked = {"key": f"k{age}", "stream": "long", "question": f"town = 'Ghent' and age <> {age}"}
        assert clinic.ask("POST", "/v1/streams/ask", asked).json["answer"]["above"]
    sizes.append(len(clinic.ask("GET", "/ask", token=None, headers=headers).body))
    group = {"question": "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"}
    for skip in (0, 1):
        batch = {"key": f"g{skip}", "stream": "long", "questions": group, "skip": skip}
        assert clinic.ask("POST", "/v1/streams/ask_all", batch).status == 200
        sizes.append(len(clinic.ask("GET", "/ask", token=None, headers=headers).body))
    statics = sum(path.stat().st_size for path in (FILES / "static").iterdir())
    row = (sizes[1] - sizes[0]) / 10
    cell = sizes[3] - sizes[2] - row  # of a grid; those of a heat map are shorter
    assert min(row, cell) > 50
    assert statics + sizes[0] + MOST_ROWS * row + MOST_CELLS * cell < MOST


def test_the_first_view_takes_one_round_trip_after_signing_in(server: Running, visit):
    ana = visit(server)
    ana.page.goto(server.url + "/")
    ana.page.get_by_label("Token").fill(server.tokens["ana"])
    asked: list[str] = []
    ana.page.on("requestfinished", lambda sent: asked.append(sent.url.removeprefix(server.url)))
    ana.page.route("**/page/live", lambda route: route.abort())
    ana.page.get_by_role("button", name="Sign in").click()
    ana.page.get_by_text("left of ε = 10").wait_for()
    over_the_wire = [path for path in asked if not path.startswith("/static/")]
    assert over_the_wire == ["/sign-in", "/"]
    assert "immutable" in server.ask("GET", _script(server), token=None).headers["cache-control"]


def _script(server: Running) -> str:
    body = server.ask("GET", "/", token=None).body.decode()
    return body.partition('<script type="module" src="')[2].partition('"')[0]


def _service(folder: Path, charges: int) -> tuple[Service, Any]:
    folder.mkdir(parents=True)
    budget = Budget.in_memory(epsilon=charges + 1, covers=["visits"])
    for _ in range(charges):
        budget.charge(Cost.pure(1), table="visits", what="a test")
    tokens = TokenFile(folder / "tokens")
    who = tokens.bearer(tokens.add("boss", role="steward"), utc_now())
    return Service({}, budget, tokens, Limits()), who


LONG, SHORT = 3000, 10


def _work(folder: Path, charges: int) -> int:
    """How many functions the first overview of a server calls: the same on every machine."""
    service, who = _service(folder, charges)
    pages(service, encrypted=False)  # as when a server starts
    overview(*_service(folder / "other", SHORT))  # templates are compiled once
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        overview(service, who)
    finally:
        sys.setprofile(before)
    return calls


def test_a_long_history_is_no_more_work(tmp_path: Path):
    assert _work(tmp_path / "long", LONG) <= 2 * _work(tmp_path / "short", SHORT)


@pytest.mark.long
def test_a_hundred_thousand_entries_are_no_more_work(tmp_path: Path):
    assert _work(tmp_path / "long", 100_000) <= 2 * _work(tmp_path / "short", SHORT)


def test_a_long_history_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    service, who = _service(tmp_path / "long", LONG)
    overview(service, who)  # the first one reads it
    read: list[int] = []
    history = type(service.budget.history)
    before = history._all_from

    def counted(self: Any, position: int, most: int) -> Any:
        found = before(self, position, most)
        read.append(len(found))
        return found

    monkeypatch.setattr(history, "_all_from", counted)
    overview(service, who)
    assert sum(read) < SHORT


# No barriers --------------------------------------------------------------------------------------


def _serious(visitor: Visitor) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(visitor.page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html']}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(clinic: Running, visit, scheme):
    ana = visit(clinic, color_scheme=scheme)
    ana.page.goto(clinic.url)
    ana.page.get_by_label("Token").wait_for()
    assert _serious(ana) == []
    ana.sign_in(clinic.tokens["ana"])
    open_stream(ana, name="watch")
    ask(ana, "town = 'Bruges'")
    ask(ana, "age = 3 and cost < 0")
    ana.page.get_by_label("Question", exact=True).fill("nosuch = 3")
    ana.page.locator(".refused").wait_for()
    assert _serious(ana) == []
    choose(ana, "Query", "query")
    release(ana)
    assert _serious(ana) == []
    for path, heading in (("/", "Overview"), ("/history", "History"), ("/budget", "Budget")):
        ana.open(path, heading)
        assert _serious(ana) == []
    boss = visit(clinic, "boss", color_scheme=scheme)
    for path, heading in (("/", "Overview"), ("/history", "History"), ("/steward", "Steward")):
        boss.open(path, heading)
        assert _serious(boss) == []


def test_nothing_is_cut_off_on_a_phone_or_at_400_per_cent(clinic: Running, visit):
    small = {"viewport": {"width": 320, "height": 640}}
    ana = visit(clinic, "ana", **small)
    open_stream(ana, name="watch")
    ask(ana, "town = 'Bruges'")
    for form, call in (("Histogram", "histogram"), ("Ranges", "ranges"), ("Query", "query")):
        choose(ana, form, call)
        ana.page.locator("#plan .facts").wait_for()
        assert ana.page.evaluate("document.documentElement.scrollWidth") <= 320
        release(ana)
        assert ana.page.evaluate("document.documentElement.scrollWidth") <= 320
    bars = ana.page.locator("#released .bars").bounding_box()
    assert bars["x"] + bars["width"] <= 320  # the pictures, too
    boss = visit(clinic, "boss", **small)
    places = [(ana, "/", "Overview"), (ana, "/ask", "Ask"), (ana, "/budget", "Budget")]
    places += [(ana, "/release", "Release")]
    places += [(boss, path, path[1:].title()) for path in ("/history", "/steward")]
    for visitor, path, heading in places:
        visitor.open(path, heading)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_overview_updates_itself(clinic: Running, visit):
    boss = visit(clinic, "boss")
    boss.page.get_by_text("Nothing was answered yet").wait_for()
    count = {"key": "one", "table": "visits", "question": "age = 3", "epsilon": "1/10"}
    assert clinic.ask("POST", "/v1/count", count).status == 200
    boss.page.get_by_text("ε = 9.9", exact=False).first.wait_for()
    boss.page.locator(".answers tbody tr").wait_for()
    assert boss.console == []
