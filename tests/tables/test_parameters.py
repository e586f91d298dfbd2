"""Parameters and prepared questions: the same questions as with literals."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import QuestionRefused
from tacit.tables import check, parse, parse_batch, prepare, read_schema
from tacit.tables.language.functions import like
from tacit.tables.language.tree import People, Range
from tacit.testing import meaning as brute
from tacit.testing.meaning import TOML

SCHEMA = read_schema(TOML, name="visits", person="pid")

SAME = [
    ("age >= :x", 60, "age >= 60"),
    ("age >= :x", 59.5, "age >= 59.5"),
    ("age >= :x", Decimal("59.5"), "age >= 59.5"),
    ("age >= :x", Fraction(119, 2), "age >= 59.5"),
    ("age >= :x", np.int64(60), "age >= 60"),
    ("cost = :x", 0.29, "cost = 0.29"),
    ("town = :x", "O'Hara", "town = 'O''Hara'"),
    ("town = :x", "' or true --", "town = ''' or true --'"),
    ("town like :x", "a%", "town like 'a%'"),
    ("smoker = :x", True, "smoker"),
    ("smoker = :x", np.bool_(True), "smoker"),
    ("smoker = :x", (np.array([3]) > 4)[0], "smoker = false"),
    ("smoker <> :x", False, "not smoker = false"),
    ("day >= :x", date(2026, 1, 31), "day >= '2026-01-31'"),
    ("at >= :x", date(2026, 1, 31), "at >= '2026-01-31 00:00:00'"),
    ("at >= :x", datetime(2026, 1, 31, 9, 30), "at >= '2026-01-31T09:30'"),
    ("at >= :x", datetime(2026, 1, 31, 9, tzinfo=UTC), "at >= '2026-01-31 09:00:00Z'"),
    (
        "at >= :x",
        datetime(2026, 1, 31, 9, tzinfo=timezone(timedelta(hours=2))),
        "at >= '2026-01-31 09:00:00+02:00'",
    ),
    ("age = :x", None, "age = null"),
    ("age in :x", [3, 1, None], "age in (1, 3, null)"),
    ("age in :x", [], "age <> age"),
    ("age in (:x, 7)", 3, "age in (3, 7)"),
    ("age between :x and 90", 30, "age between 30 and 90"),
    ("age is distinct from :x", None, "age is not null"),
    ("count(week = :x) - count(week = 3)", 4, "count(week = 4) - count(week = 3)"),
    ("select sum(cost) from visits where town = :x", "Z", "sum(cost) filter (where town = 'Z')"),
]


@pytest.mark.parametrize(("text", "value", "literal"), SAME)
def test_a_parameter_means_the_same_as_its_literal(text: str, value: object, literal: str) -> None:
    assert parse(text, SCHEMA, {"x": value}) == parse(literal, SCHEMA)


def test_timestamps_do_not_depend_on_where_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        question = parse("at >= '1970-01-01 00:00:01'", SCHEMA)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert question.terms == (People(Range("at", 1_000_000, None)),)


UNFIT = [
    ("age >= :x", "60"),
    ("age >= :x", True),
    ("age >= :x", np.bool_(True)),
    ("age >= :x", float("nan")),
    ("age >= :x", float("inf")),
    ("age >= :x", [1]),
    ("town = :x", 5),
    ("town = :x", "a\0b"),
    ("town = :x", "\ud800"),
    ("smoker = :x", 1),
    ("smoker = :x", np.int8(1)),
    ("smoker = :x", "true"),
    ("day = :x", datetime(2026, 1, 31)),
    ("day = :x", "2026-1-31"),
    ("day = :x", "2026-W05-6"),
    ("at = :x", "2026-01-31 25:00"),
    ("at = :x", 5),
    ("age in :x", "12"),
]


@pytest.mark.parametrize(("text", "value"), UNFIT)
def test_a_parameter_that_does_not_fit_is_refused(text: str, value: object) -> None:
    with pytest.raises(QuestionRefused, match=":x"):
        parse(text, SCHEMA, {"x": value})


def test_nothing_promised_depends_on_parameters() -> None:
    prepared = prepare("2 * count(age >= :a) - count(town = :b)", SCHEMA)
    assert prepared.parameters == {"a", "b"}
    questions = [prepared.question(a=a, b=b) for a in (1, 99) for b in ("x", "y")]
    for question in questions:
        assert question.sensitivity == prepared.shape.sensitivity == 2
        assert question.direction == prepared.shape.direction == 0
    assert len(set(questions)) == 4


def test_a_parameter_may_have_any_name() -> None:
    prepared = prepare("age = :self and week = :parameters", SCHEMA)
    assert prepared.question(self=1, parameters=2) == parse("age = 1 and week = 2", SCHEMA)


def test_a_batch_with_parameters() -> None:
    text = "select count(distinct pid) from visits where age > :age group by town, smoker"
    batch = parse_batch(text, SCHEMA, {"age": 30})
    assert batch.questions[1] == parse("age > 30 and town = 'Ghent' and smoker", SCHEMA)
    assert len(batch.questions) == 6
    alone = parse_batch("select count(distinct pid) from visits where age > 3", SCHEMA)
    assert alone.cells == ((),)
    assert alone.questions == (parse("age > 3", SCHEMA),)


def test_parameters_may_stand_in_any_order_as_literals_may() -> None:
    prepared = prepare("town = :town and smoker and (week = :week or age = :age)", SCHEMA)
    literal = "(age = 1 or week = 2) and town = 'Z' and smoker"
    assert prepared.question(town="Z", week=2, age=1) == parse(literal, SCHEMA)


def test_check_states_or_refuses_without_raising() -> None:
    stated = check("age >= :age", SCHEMA)
    assert stated
    assert "age >= :age" in str(stated)
    assert stated.sensitivity == 1
    assert not check("age / 2", SCHEMA)
    assert "^^^" in str(check("age / 2", SCHEMA))
    assert check("select count(*) from visits group by week, town", SCHEMA).cells == 12
    assert not check("age >= :age", SCHEMA, {"age": "x"})


def test_a_weight_that_could_not_be_written_is_refused() -> None:
    for text in (
        "1e-4000 * (1e-4000 * count(smoker))",
        "1e4000 * count(smoker)",
        "1e-51 * (1e-50 * count(smoker))",
        f"0.{'7' * 101} * count(smoker)",
        "-1e101 * count(smoker)",
        "1e4000 * (1e-4000 * count(smoker))",
        "1e26 * (" * 4 + "count(smoker)" + ")" * 4,
    ):
        assert "too many digits" in str(check(text, SCHEMA)), text


def test_the_largest_weights_are_written_out() -> None:
    text = "1e100 * count(smoker) - 1e-100 * sum(cost) + 1e-50 * (1e-50 * count(age > 3))"
    stated = check(text, SCHEMA)
    assert stated.sensitivity == 10**100 + Fraction(80.5) / 10**100 + Fraction(1, 10**100)
    assert parse(stated.text, SCHEMA) == parse(text, SCHEMA)
    assert str(stated.sensitivity) in str(stated)


def test_a_literal_may_say_its_type_and_nothing_more() -> None:
    plain = parse("day = '2026-02-01'", SCHEMA)
    for literal in ("date '2026-02-01'", "cast('2026-02-01' as date)", "'2026-02-01'::date"):
        assert parse(f"day = {literal}", SCHEMA) == plain
    for cast in (
        "cast('2026-02-01' as date default null on conversion error)",
        "try_cast('2026-02-01' as date)",
        "safe_cast('2026-02-01' as date)",
        "cast('2026-02-01' as date format 'YYYY-MM-DD')",
        "cast(day as date)",
    ):
        assert not check(f"day = {cast}", SCHEMA), cast


@given(st.text("ab%_é😀", max_size=8), st.text("ab%_é😀\n", max_size=10))
def test_like_is_what_its_definition_says(pattern: str, text: str) -> None:
    assert like(pattern)(text) == brute.matches(text, pattern)


def test_like_cannot_be_made_slow() -> None:
    assert not like("%a" * 30 + "%b")("a" * 3000)


def test_a_value_that_was_asked_before_stands_for_itself_only():
    """1 == True == 1.0, but a boolean does not fit where a number does."""
    prepared = prepare("age = :a", SCHEMA)
    first = prepared.question(a=1)
    assert prepared.question(a=1) == first
    assert prepared.question(a=1.0) == first
    assert prepared.question(a=2) != first
    with pytest.raises(QuestionRefused):
        prepared.question(a=True)


def test_values_asked_before_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr("tacit.tables.language.templates._MOST_MADE", 3)
    prepared = prepare("age = :a", SCHEMA)
    for age in (1, 2, 3, 4, 1, 5, 2):
        assert prepared.question(a=age) == parse(f"age = {age}", SCHEMA)
    where: Any = prepared.shape.terms[0].where  # with a place for the parameter
    assert len(where.made) <= 3


ARITHMETIC = [
    ("cost * :x > 100", 1.21, "cost > 100 / 1.21"),
    ("cost * :x > 100", -2, "cost < -50"),
    ("cost * :x between 10 and 20", -2, "cost between -10 and -5"),
    ("age >= :x + 1", Decimal("59.5"), "age >= 60.5"),
    ("age - :x is not distinct from 3", 7, "age is not distinct from 10"),
    ("age + 1 = :x", None, "age = null"),
    ("day >= :x - interval 1 month", date(2024, 3, 31), "day >= '2024-02-29'"),
    ("day >= :x + interval 1 quarter", "2025-11-30", "day >= '2026-02-28'"),
    ("day > :x - interval 1 year", date(2024, 2, 29), "day > '2023-02-28'"),
    ("at >= :x - interval 90 seconds", datetime(2026, 1, 1), "at >= '2025-12-31 23:58:30'"),
    ("at - interval 1 hour < :x", date(2026, 1, 1), "at < '2026-01-01 01:00'"),
    ("at >= interval 1 day + :x", "2026-01-31T09:30Z", "at >= '2026-02-01 09:30'"),
]


@pytest.mark.parametrize(("text", "value", "literal"), ARITHMETIC)
def test_arithmetic_with_a_parameter_is_exact(text: str, value: object, literal: str) -> None:
    prepared = prepare(text, SCHEMA)
    asked = prepared.question(x=value)
    assert asked == parse(literal, SCHEMA)
    assert asked.promise == prepared.shape.promise


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("cost * :x > 100", 0, "cancels out"),
        ("cost * :x > 100", None, "needs numbers"),
        ("cost * :x > 100", "2", "needs numbers"),
        ("cost + 100 / :x > 100", 0, "divided by 0"),
        ("cost * :x > 1e3000", Fraction(1, 10**3999), "4000 digits"),
        ("day >= :x - interval 1 day", date(1, 1, 1), "years 1 to 9999"),
        ("day >= :x - interval 99999999999 years", date(2026, 1, 1), "years 1 to 9999"),
        ("day >= :x - interval 1 day", 20260101, "only an interval can be added"),
        ("day >= :x - interval 1 day", "1.1.2026", "such as '2026-01-31'"),
        ("day >= :x - interval 1 second", date(2026, 1, 1), "no hours"),
        ("day + interval 1 second >= :x", date(2026, 1, 1), "no hours"),
    ],
)
def test_arithmetic_that_a_parameter_makes_impossible(text: str, value: object, why: str) -> None:
    prepared = prepare(text, SCHEMA)
    with pytest.raises(QuestionRefused, match=why):
        prepared.question(x=value)
