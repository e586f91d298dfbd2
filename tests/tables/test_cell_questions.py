"""The questions of a GROUP BY are those that would be made one by one, and are found again."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import tacit
from tacit.budget import Budget
from tacit.tables import parse, parse_batch, read_schema
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.language.prepared import CellReads, Reader
from tacit.tables.language.question_key import keys_of_cells, question_key, question_key_0_1
from tacit.tables.language.tree import Range, all_hold, conjuncts, with_where

SCHEMA = read_schema(
    "max_rows = 3\n[columns.pid]\ntype = 'integer'\n[columns.age]\ntype = 'integer'\n"
    "[columns.week]\ntype = 'integer'\nkeys = {from = 5, to = 8}\n"
    "[columns.town]\ntype = 'text'\nkeys = ['Ghent', 'Bruges', 'Ath']\n"
    "[columns.day]\ntype = 'date'\nbounds = ['2025-01-01', '2026-12-31']",
    name="visits",
    person="pid",
)
TEXTS = [
    "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY week, town",
    "SELECT COUNT(DISTINCT pid) FROM visits WHERE age > 3 AND town = 'Ath' GROUP BY town",
    "SELECT COUNT(*) FROM visits WHERE age > 3 OR week = 6 GROUP BY town, week",
    "SELECT 2 * COUNT(*) - COUNT(DISTINCT pid) FROM visits GROUP BY week",
]


@pytest.mark.parametrize("text", TEXTS)
def test_each_cell_is_asked_in_declared_order(text: str) -> None:
    batch = parse_batch(text, SCHEMA)
    declared = {"week": (5, 6, 7, 8), "town": ("Ghent", "Bruges", "Ath")}
    assert batch.cells == tuple(product(*(declared[name] for name in batch.columns)))
    assert len(batch) == len(batch.cells) == len(batch.questions)
    for place, cell in enumerate(batch.cells):
        in_cell = tuple(map(Range, batch.columns, cell, cell))
        terms = [
            with_where(term, all_hold((*conjuncts(term.where), *in_cell)))
            for term in batch.like.terms
        ]
        assert batch[place] == batch.like.with_terms(tuple(terms)) == batch.questions[place]
    assert batch[-1] == batch.questions[-1]
    assert batch[1:3] == list(batch.questions[1:3])
    for beyond in (len(batch), -len(batch) - 1):
        with pytest.raises(IndexError):
            batch[beyond]


@pytest.mark.parametrize("text", TEXTS)
def test_a_question_is_found_among_the_cells_or_not(text: str) -> None:
    cells = parse_batch(text, SCHEMA)
    assert [cells.place(question) for question in cells] == list(range(len(cells)))
    for other in TEXTS:
        if other != text:
            assert {cells.place(question) for question in parse_batch(other, SCHEMA)} == {None}
    for alone in ("age > 3", "town = 'Ath'", "week = 9", "week = 5 and town = 'Nowhere'"):
        assert cells.place(parse(alone, SCHEMA)) is None


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "SELECT COUNT(*) FROM visits GROUP BY week",
        "SELECT COUNT(DISTINCT pid) FROM visits WHERE town = 'Ath' GROUP BY town",
        "SELECT COUNT(DISTINCT pid) FROM visits WHERE age = 3 OR age = 4 AND NOT week = 5 "
        "GROUP BY EXTRACT(month FROM day), date_trunc('year', day), town",
    ],
)
def test_the_keys_of_the_cells_are_those_of_their_questions(text: str) -> None:
    cells = parse_batch(text, SCHEMA)
    for limit, label in ((None, None), (Fraction(1, 3), "2026-11-01")):
        for form in (question_key, question_key_0_1):
            keys = [form(question, limit, label) for question in cells]
            for places in (range(len(cells)), range(1, 3), range(2, 2)):
                found = keys_of_cells(form, cells, places, limit, label)
                assert list(found) == keys[places.start : places.stop]


def test_cells_are_read_as_a_list_of_them_would_be() -> None:
    reader = Reader(SCHEMA)
    alone, listed = reader.read_all(TEXTS[0], {}), reader.read_all([TEXTS[0]], {})
    assert isinstance(alone, CellReads)
    assert list(alone) == list(listed)
    assert [read.text for read in alone[:2]] == [read.text for read in listed[:2]]
    assert len({read.text for read in alone}) == 12


ROWS: dict[str, list[Any]] = {
    "pid": list(range(600)),
    "age": [9] * 600,
    "week": [5 + n % 2 * (n % 3) for n in range(600)],
    "town": [["Ghent", "Bruges", "Ath"][n % 7 % 3] for n in range(600)],
}


@pytest.mark.parametrize("way", ["cells", "one list of all questions"])
def test_the_same_is_told_and_kept_either_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ⊤ in between, asked again, and left early."""
    import pyarrow

    schema = (
        "[columns.pid]\ntype = 'integer'\n[columns.age]\ntype = 'integer'\n"
        "[columns.week]\ntype = 'integer'\nkeys = {from = 5, to = 8}\n"
        "[columns.town]\ntype = 'text'\nkeys = ['Ghent', 'Bruges', 'Ath']"
    )
    text = "SELECT COUNT(DISTINCT pid) FROM visits WHERE age > 3 GROUP BY week, town"
    table = tacit.open(pyarrow.table(ROWS), person="pid", name="visits", schema=schema)
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    if way == "cells":  # then no question is made and answered by itself
        monkeypatch.setattr(BitmapEngine, "values", None)
    stream = table.sparse(threshold=60, at_most=9, epsilon=10**5, budget=budget)
    asked = text if way == "cells" else [text]
    counted = [
        sum(week == w and town == t for week, town in zip(ROWS["week"], ROWS["town"], strict=True))
        for w in range(5, 9)
        for t in ("Ghent", "Bruges", "Ath")
    ]
    expected = [count >= 60 for count in counted]
    assert 2 < sum(expected) < 9
    assert [bool(answer) for answer in stream.ask_all(asked)] == expected
    again = list(stream.ask_all(asked))
    assert [bool(answer) for answer in again] == expected
    assert [answer.recorded is not None for answer in again] == expected  # free of charge
    assert stream.tops_left == 9 - sum(expected)
    assert [asked.cell for asked in stream.history[:12]] == [
        {"week": w, "town": t} for w in range(5, 9) for t in ("Ghent", "Bruges", "Ath")
    ]
    assert len({asked.question for asked in stream.history}) == 12
    some = stream.ask_all(asked)
    for _ in range(5):
        next(some)
    assert len(stream.unanswered) == 7
    assert len(stream.history) == 29
    table.close()
