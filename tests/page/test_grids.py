"""Grids of a GROUP BY, from what is on record: in every browser, and as they were told."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from tests.page.test_ask import open_stream
from tests.page.test_by_hand import keyed
from tests.server.conftest import Running, started

__all__ = ["keyed"]

BY_TWO = "SELECT COUNT(DISTINCT pid) FROM visits WHERE cost > 0 GROUP BY town, age"


class _Grids(HTMLParser):
    """The texts of all cells of the grids in a panel, grid by grid and row by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.grids: list[list[list[str]]] = []
        self._within = self._cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self._within = ("class", "grid") in attrs
            self.grids += [[]] if self._within else []
        elif self._within and tag == "tr":
            self.grids[-1].append([])
        elif self._within and tag in ("td", "th"):
            self._cell = True
            self.grids[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.grids[-1][-1][-1] += data.replace("\xa0", " ")


def opened(server: Running, name: str, **given: Any) -> None:
    body: dict[str, Any] = {
        "key": name,
        "table": "visits",
        "algorithm": "numeric_sparse",
        "name": name,
    }
    body |= {"threshold": 1, "at_most": 9, "epsilon": "2", "questions": 10} | given
    assert server.ask("POST", "/v1/streams/open", body).status == 200


def asked(server: Running, stream: str, questions: Any, *, skip: int = 0, key: str) -> list[Any]:
    """One batch: an answer for each cell, or None for ⊥."""
    body = {"key": key, "stream": stream, "questions": questions, "skip": skip}
    got = server.ask("POST", "/v1/streams/ask_all", body)
    assert got.status == 200, got.body
    found: list[Any] = []
    for block in map(json.loads, got.body.splitlines()):
        above = {one["place"]: one["answer"] for one in block["above"]}
        found += [above.get(place) for place in range(block["answered"])]
    return found


def asked_all(server: Running, stream: str, text: str, cells: int, key: str) -> list[Any]:
    found: list[Any] = []
    while len(found) < cells:
        some = asked(server, stream, {"question": text}, skip=len(found), key=f"{key}{len(found)}")
        assert some
        found += some
    return found


def shown(server: Running, stream: str) -> list[list[list[str]]]:
    headers = {"Cookie": f"tacit={server.tokens['ana']}", "Origin": server.url}
    got = server.ask("POST", "/page/stream", {"stream": stream}, token=None, headers=headers)
    assert got.status == 200
    return _Grids(got.body.decode()).grids


def _as_shown(told: list[Any]) -> list[str]:
    return ["⊥" if one is None else f"⊤ {one['unbiased']}" for one in told]


def test_a_grid_shows_what_was_told_of_each_cell(keyed: Running):
    opened(keyed, "grid")
    told = asked_all(keyed, "grid", BY_TWO, 6, "k")
    ((head, bruges, ghent),) = shown(keyed, "grid")
    assert head == ["town", "3", "4", "5"]
    cells = _as_shown(told)
    assert [bruges, ghent] == [["Bruges", *cells[:3]], ["Ghent", *cells[3:]]]


def test_the_newest_grid_comes_first_and_asked_anew_it_replaces_the_old_one(keyed: Running):
    opened(keyed, "grid", threshold=20, at_most=20, epsilon="4")
    asked_all(keyed, "grid", BY_TWO, 6, "first")
    by_town = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"
    towns = asked_all(keyed, "grid", by_town, 2, "towns")
    again = asked_all(keyed, "grid", BY_TWO, 6, "again")
    newest, before = shown(keyed, "grid")
    assert newest[1][1:] + newest[2][1:] == _as_shown(again)
    assert [line[0] for line in before] == ["town", "Bruges", "Ghent"]
    for line, one in zip(before[1:], towns, strict=True):
        assert line[1].startswith("⊥" if one is None else f"⊤ {one['unbiased']}")


def test_a_list_of_questions_is_no_grid_unless_it_is_one(keyed: Running):
    opened(keyed, "list", threshold=1000)
    lone = [{"question": "age >= 3 and town = 'Bruges'"}, {"question": "town = 'Bruges'"}]
    for number, question in enumerate(lone):
        assert asked(keyed, "list", [question], key=f"k{number}") == [None]
    assert asked(keyed, "list", [{"question": "age > 3"}] * 2, key="two") == [None, None]
    assert shown(keyed, "list") == []
    both = [{"question": f"town = '{town}'"} for town in ("Bruges", "Ghent")]
    assert asked(keyed, "list", both, key="both") == [None, None]
    ((_, *lines),) = shown(keyed, "list")
    assert lines == [["Bruges", "⊥"], ["Ghent", "⊥"]]


def test_a_grid_that_stops_half_way_shows_what_was_answered(keyed: Running):
    opened(keyed, "half", threshold=-1000, at_most=4)
    told = []
    for place in range(4):
        told += asked(keyed, "half", {"question": BY_TWO}, skip=place, key=f"k{place}")
    assert None not in told
    ((_, bruges, ghent),) = shown(keyed, "half")
    assert [*bruges[1:], *ghent[1:]] == _as_shown(told)


def test_a_grid_is_there_after_a_reload_a_restart_and_in_another_browser(keyed: Running, visit):
    ana = visit(keyed, "ana")
    open_stream(ana, name="grid", threshold="-20", at_most="4", epsilon="8")
    line = ana.page.get_by_label("Question", exact=True)
    line.fill(BY_TWO)
    ana.page.get_by_text("6 questions, one for each cell").wait_for()
    line.press("Enter")
    ana.page.get_by_text("0 of 4 ⊤ left").wait_for()
    ana.page.get_by_role("button", name="Ask", exact=True).and_(
        ana.page.locator(":enabled")
    ).wait_for()
    assert line.evaluate("line => line === document.activeElement")
    words = ana.page.locator("#grid").inner_text()
    assert re.search(r"[456] of 6 cells answered, 4 above", words)
    ana.page.reload()
    ana.page.locator("#grid table").wait_for()
    assert ana.page.locator("#grid").inner_text() == words
    assert ana.page.locator("#grid td.top").count() == 4
    assert ana.console == []
    keyed.stop()
    with started(keyed.folder / "tacit.toml", keyed.tokens) as again:
        other = visit(again, "ana")
        other.page.goto(f"{again.url}/ask#grid")
        other.page.locator("#grid table").wait_for()
        assert other.page.locator("#grid").inner_text() == words
        assert other.console == []
