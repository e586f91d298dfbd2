"""A value that is no declared key may be asked about, and `check` says so: it may be misspelt."""

from __future__ import annotations

import pytest

from tacit import wire
from tacit.tables import check, read_schema
from tacit.tables.language.show import Statement

DECLARED = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.week]
type = "integer"
keys = {from = 1, to = 52}
[columns.note]
type = "text"
"""
VISITS = read_schema(DECLARED, name="visits", person="pid")
GHENT = "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?"


@pytest.mark.parametrize(
    "question",
    [
        "town = 'Gent'",
        "not (town <> 'Gent' or week = 3)",
        "town in ('Bruges', 'Gent')",
        "(town = 'Gent') is true",
        "pid in (select pid from visits where town = 'Gent')",
        "count(week = 3) - count(town = 'Gent')",
        "select count(*) from (select pid from visits group by pid having "
        "count(*) filter (where town = 'Gent') > 2)",
        "select count(distinct pid) from visits where town = 'Gent' group by week",
    ],
)
def test_a_misspelt_key_is_noted_and_the_question_is_allowed(question: str) -> None:
    stated = check(question, VISITS)
    assert stated
    assert stated.notes == (GHENT,)
    assert str(stated).endswith(f"note         {GHENT}")
    assert GHENT.replace("'", "&#x27;") in stated._repr_html_()
    assert wire.from_json(wire.to_json(stated), Statement) == stated


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("town = 'GHENT'", GHENT.replace("'Gent'", "'GHENT'")),
        (
            "town = 'Mons'",
            "'Mons' is not one of the declared keys of town, which are 'Bruges', 'Ghent'",
        ),
        ("week = 53", "53 is not one of the declared keys of week"),
    ],
)
def test_what_a_note_says(question: str, note: str) -> None:
    assert check(question, VISITS).notes == (note,)


@pytest.mark.parametrize(
    "question",
    [
        "town = 'Ghent'",
        "week = 52",
        "week >= 53",
        "note = 'Gent'",
        "town like 'Gent%'",
        "upper(town) = 'GHENT'",
        "town = :town",
        "town is null",
    ],
)
def test_nothing_else_is_noted(question: str) -> None:
    stated = check(question, VISITS)
    assert stated.notes == ()
    assert "notes" not in wire.to_json(stated)  # as it was written before there were any


def test_a_parameter_is_noted_once_it_is_given() -> None:
    assert check("town = :town", VISITS, {"town": "Gent"}).notes == (GHENT,)


def test_a_question_has_few_notes() -> None:
    many = ", ".join(f"'{number}'" for number in range(100))
    assert len(check(f"town in ({many})", VISITS).notes) == 3
