"""Whoever asks about a value that is no declared key hears of it with the answer, ⊥ or ⊤."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from tests.tables.test_key_notes import VISITS

import tacit
from tacit import wire
from tacit.analyst.blocks import Block
from tacit.analyst.history import History
from tacit.analyst.noted import KeyNotes
from tacit.analyst.top import Top
from tacit.analyst.watched_answer import WatchedBlock
from tacit.book.answer import BELOW, Answer
from tacit.budget import RetryKey
from tacit.tables.language.key_notes import notes
from tacit.tables.language.prepared import Reader

SCHEMA = """
max_rows = 1
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.week]
type = "integer"
keys = {from = 1, to = 52}
"""
NOTE = "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?"
WRONG = "town = 'Gent'"
OPPOSITE = "town <> 'Gent'"  # ⊤, and as misleading
RIGHT = "town = 'Ghent'"
BY_WEEK = "SELECT COUNT(DISTINCT pid) FROM visits WHERE town = 'Gent' GROUP BY week"


@pytest.fixture
def visits():
    rows = {"pid": list(range(100)), "town": ["Ghent"] * 100, "week": [1] * 100}
    with tacit.open(
        pyarrow.table(rows), person="pid", name="visits", schema=SCHEMA, people=100
    ) as table:
        yield table


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=10**6, covers=["visits"])


@pytest.fixture
def stream(visits, budget):
    return visits.numeric_sparse(threshold=50, at_most=9, epsilon=1000, budget=budget, name="s")


def keys(start: int) -> RetryKey:
    return RetryKey("k", None, f"from {start}", "it")


def said(told: Any) -> bool:
    """Whether every form of it says so."""
    forms = [NOTE in str(told), NOTE.replace("'", "&#x27;") in told._repr_html_()]
    forms += [told.notes == (NOTE,), wire.to_json(told).get("notes") == [NOTE]]
    assert len(set(forms)) == 1
    again = wire.from_json(wire.to_json(told))
    assert (again, again.notes) == (told, told.notes)
    return forms[0]


@pytest.mark.parametrize("retry_key", [None, "a"])
@pytest.mark.parametrize(("question", "above"), [(WRONG, False), (OPPOSITE, True)])
def test_an_answer_of_a_stream(stream, question, above, retry_key):
    for _ in range(2):  # the second time from the record, or under the key
        answer = stream.ask(question, retry_key=retry_key)
        assert said(answer)
        assert answer.above is above
        assert str(answer).endswith(f"; note: {NOTE}")
    assert said(stream.history[-1].answer)
    assert NOTE in str(stream.history)
    told = wire.from_json(wire.to_json(stream.history), History)
    assert told[-1].answer.notes == (NOTE,)


def test_a_parameter_is_looked_at_each_time(stream):
    asked = stream._table.prepare("town = :town and week >= 1")
    towns = ["Ghent", "Gent", "Bruges", "Gent", "Ghent"]
    noted = [bool(stream.ask(asked, town=town).notes) for town in towns]
    assert noted == [town == "Gent" for town in towns]
    assert stream.ask("town = 'Bruges'") is BELOW
    assert "notes" not in wire.to_json(BELOW)


def test_below_is_noted_too(visits, budget):
    paid: dict[str, Any] = {"epsilon": 1000, "budget": budget}
    with visits.numeric_sparse(threshold=50, at_most=9, kind="directed", **paid) as stream:
        assert said(stream.ask(WRONG, below=True))
        assert said(stream.ask(OPPOSITE, below=True, retry_key="a"))


def test_a_batch(stream):
    told = stream.ask_all(["town = 'Bruges'", WRONG, OPPOSITE, RIGHT])
    assert told.notes == (NOTE,)
    assert NOTE.replace("'", "&#x27;") in told._repr_html_()
    assert [answer.notes for answer in told.told] == [(), (NOTE,), (NOTE,), ()]
    cells = stream.ask_all(BY_WEEK)
    assert all(answer.notes == (NOTE,) for answer in cells)
    assert cells.notes == (NOTE,)
    assert next(stream.ask_all(["town = 'Bruges'"])) is BELOW
    assert stream.ask_all([RIGHT]).notes == stream.ask_all([]).notes == ()


def test_blocks(stream):
    asked = ["town = 'Bruges'", WRONG, RIGHT, RIGHT]
    first = list(stream.ask_blocks(asked, size=2, most=9, keys=keys))
    again = list(stream.ask_blocks(asked, size=2, most=9, keys=keys))
    assert first == again
    assert [block.notes for block in first] == [(NOTE,), ()]
    assert [wire.to_json(block).get("notes") for block in first] == [[NOTE], None]
    assert [wire.from_json(wire.to_json(block), Block) for block in first] == first


def test_a_watched_model(visits, budget):
    model = visits.watched_model(epsilon=1000, columns=["town", "week"], budget=budget)
    for answer in (model.ask(WRONG), model.ask(WRONG, retry_key="a"), *model.ask_all([WRONG])):
        assert NOTE in str(answer)
        assert wire.to_json(answer)["notes"] == [NOTE]
        assert wire.from_json(wire.to_json(answer)).notes == answer.notes == (NOTE,)
    assert model.ask(WRONG, retry_key="a").notes == (NOTE,)
    assert not model.ask(RIGHT).notes
    (block,) = model.ask_blocks([WRONG, RIGHT], size=2, most=9, keys=keys)
    assert block.notes == (NOTE,)
    assert wire.from_json(wire.to_json(block), WatchedBlock) == block
    assert wire.to_json(block)["notes"] == [NOTE]


@pytest.mark.parametrize("counted", [None, 1])
def test_a_top(visits, budget, counted, tmp_path):
    paid: dict[str, Any] = {"epsilon": 1, "counts_epsilon": counted, "budget": budget}
    for asked in ([RIGHT, "town = 'Bruges'", WRONG], BY_WEEK):
        told = visits.top(1, asked, retry_key=f"{asked}", **paid)
        assert said(told)
        assert said(visits.top(1, asked, retry_key=f"{asked}", **paid))
        told.save(tmp_path / "top.json")
        assert tacit.load_top(tmp_path / "top.json").notes == (NOTE,)
    right = visits.top(1, [RIGHT, "town = 'Bruges'"], **paid)
    assert not right.notes
    assert "notes" not in wire.to_json(right)
    assert isinstance(right, Top)


def test_a_small_database_and_what_is_read_from_releases(visits, budget):
    paid: dict[str, Any] = {"epsilon": 1, "budget": budget}
    small = visits.small_db([WRONG, RIGHT], rows=5, **paid)
    assert said(small)
    assert not visits.small_db([RIGHT], rows=5, **paid).notes
    assert not visits.small_db(tacit.prefixes("week"), rows=5, **paid).notes
    before = {name: each for name, each in wire.to_json(small).items() if name != "notes"}
    assert wire.from_json(before).notes == (NOTE,)  # as it was written before
    histogram, ranges = visits.histogram("town", **paid), visits.ranges("week", **paid)
    assert said(histogram.count(WRONG))
    assert not histogram.count(RIGHT).notes
    assert ranges.count("week = 53").notes == ("53 is not one of the declared keys of week",)
    assert not ranges.count("week = 52").notes
    assert not ranges.count("week <= 53").notes


@pytest.mark.parametrize(
    "question",
    [
        *(WRONG, RIGHT, OPPOSITE, "TOWN = 'Gent'", "not (town = 'Gent')", "week = 53"),
        *("week = 52 or town in ('Bruges', 'Gent')", "town in ('Bruges', 'Ghent')"),
        *("(town = 'Gent') is true", "(town = 'Ghent') is true", "week between 53 and 53"),
        *("week between 1 and 99", "note = 'Gent'", "town like 'Gent%'", "town is null"),
        "pid in (select pid from visits where town = 'Gent')",
        "pid in (select pid from visits where town = 'Ghent')",
        "count(week = 3) - count(town = 'Gent')",
        "upper(town) = 'GENT'",
        "select count(*) from (select pid from visits group by pid having "
        "count(*) filter (where town = 'Gent') > 2)",
    ],
)
def test_what_is_seen_at_a_glance_is_what_is_there(question):
    read = Reader(VISITS).read(question, {})
    assert KeyNotes().of(read) == notes(read.question, VISITS)


def test_an_answer_of_an_earlier_version_has_none():
    assert Answer.from_told(Answer(above=False).as_told()).notes == ()
