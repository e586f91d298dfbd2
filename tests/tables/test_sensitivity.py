"""What is promised about a question holds for every table and every person in it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.tokens import Tokenizer
from tests.tables.engines import quick

from tacit.errors import QuestionRefused
from tacit.tables import EACH_ROW, Column, Schema, parse, read_schema
from tacit.tables.language.question_key import canonical
from tacit.tables.language.show import question as shown
from tacit.tables.language.tree import Having, People, Predicate, Rows, Total, weighted
from tacit.testing import meaning as brute
from tacit.testing.meaning import TOML, RawRow, Summand
from tacit.testing.random_questions import PREDICATES, conditions, questions, tables

PEOPLE = st.sampled_from(["pid", EACH_ROW])
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _holds(rows: list[RawRow], parts: list[Summand], person: object) -> None:
    schema = read_schema(TOML, name="visits", person=person)  # type: ignore[arg-type]
    try:
        question = parse(brute.text_of(parts), schema)
    except QuestionRefused as refusal:
        assert "cancel" in str(refusal)  # noqa: PT017
        return
    homes = brute.households(rows, person)
    everyone = brute.answer(parts, homes)
    assert (everyone / question.grid).denominator == 1
    for gone in range(len(homes)):
        without = brute.answer(parts, homes[:gone] + homes[gone + 1 :])
        added = everyone - without
        assert abs(added) <= question.sensitivity
        assert added * question.direction >= 0
        assert question.direction == 0 or added == 0 or added * question.direction > 0


@SETTINGS
@given(rows=tables(), parts=questions(), person=PEOPLE)
def test_no_person_moves_an_answer_further_than_promised(
    rows: list[RawRow], parts: list[Summand], person: object
) -> None:
    _holds(rows, parts, person)


@SETTINGS
@given(rows=tables(), asked=conditions())
def test_a_condition_on_all_rows_of_a_person_adds_them_or_not(
    rows: list[RawRow], asked: Summand
) -> None:
    """Sensitivity 1 and direction +1, whatever is compared and which way round."""
    question = parse(asked.sql, read_schema(TOML, name="visits", person="pid"))
    assert question.sensitivity == question.direction == question.grid == 1
    _holds(rows, [asked], "pid")


@pytest.mark.long
@settings(SETTINGS, max_examples=3000)
@given(rows=tables(), parts=questions(), person=PEOPLE)
def test_no_person_moves_an_answer_further_than_promised_at_length(
    rows: list[RawRow], parts: list[Summand], person: object
) -> None:
    _holds(rows, parts, person)


@settings(SETTINGS, max_examples=20)
@given(rows=tables(), parts=questions())
def test_the_engine_keeps_the_promise_when_a_person_leaves(
    rows: list[RawRow], parts: list[Summand]
) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    try:
        question = parse(brute.text_of(parts), schema)
    except QuestionRefused:
        return
    (everyone,) = quick(rows, "pid").values([question])
    for pid in {row["pid"] for row in rows}:
        left = [row for row in rows if row["pid"] != pid]
        (without,) = quick(left, "pid").values([question])
        assert abs(everyone - without) <= question.sensitivity / question.grid
        assert (everyone - without) * question.direction >= 0


@settings(SETTINGS, max_examples=80)
@given(where=PREDICATES)
def test_a_question_written_out_reads_as_itself(where: brute.Pred) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    question = parse(where.sql, schema)
    assert parse(shown(question, schema), schema) == question


def test_a_column_may_have_any_name() -> None:
    words = [word for word in (*Tokenizer.KEYWORDS, *exp.FUNCTION_BY_NAME) if word.isidentifier()]
    for word in [*words, 'a"b', "a b", "é", "1", "a.b", "--", "town"]:
        schema = Schema("t", EACH_ROW, (Column(word, "integer"), Column("rest", "text")))
        quoted = word.replace('"', '""')
        question = parse(f"\"{quoted}\" >= 3 and rest = 'x'", schema)
        assert parse(shown(question, schema), schema) == question


PROMISES = [
    # text, sensitivity, direction, grid
    ("age >= 60", "1", 1, "1"),
    ("count(week = 33) - count(week = 32)", "1", 0, "1"),
    ("-count(smoker)", "1", -1, "1"),
    ("count(smoker) + count(age > 1)", "2", 1, "1"),
    ("2 * count(smoker) - 0.5 * count(age > 1)", "2", 0, "1/2"),
    ("0.5 * count(smoker) - 2 * count(age > 1)", "2", 0, "1/2"),
    ("count(smoker) + count(smoker)", "2", 1, "2"),
    ("3 * count(smoker) - count(smoker)", "2", 1, "2"),
    ("0.3 * count(smoker) + 0.2 * count(age > 1)", "1/2", 1, "1/10"),
    ("count(*)", "3", 1, "1"),
    ("select count(*) from visits where smoker", "3", 1, "1"),
    ("select count(distinct pid) from visits", "1", 1, "1"),
    ("select count_if(smoker) - count(distinct pid) from visits", "3", 0, "1"),
    ("sum(age)", "200", 1, "1"),
    ("sum(cost)", "150", 0, "1/100"),
    ("-sum(cost)", "150", 0, "1/100"),
    ("sum(fee)", "20", 1, "1/4"),
    ("sum(cost) - sum(fee)", "150", 0, "1/100"),
    ("sum(cost) + sum(fee)", "170", 0, "1/100"),
    ("0.5 * sum(fee) + count(smoker)", "11", 1, "1/8"),
    ("sum(huge)", str(2**62), 0, "1"),
]


@pytest.mark.parametrize(("text", "sensitivity", "direction", "grid"), PROMISES)
def test_promises_of_known_questions(
    text: str, sensitivity: str, direction: int, grid: str
) -> None:
    question = parse(text, read_schema(TOML, name="visits", person="pid"))
    assert question.sensitivity == Fraction(sensitivity)
    assert question.direction == direction
    assert question.grid == Fraction(grid)
    assert (question.sensitivity / question.grid).denominator == 1


def test_with_each_row_a_person_the_bounds_of_a_row_count() -> None:
    schema = read_schema(TOML, name="visits", person=EACH_ROW)
    assert parse("count(*)", schema).sensitivity == 1
    assert parse("sum(age)", schema).sensitivity == 120  # not the total of 200
    assert parse("sum(cost)", schema).sensitivity == 100  # -50 to 100, within -80.5 to 150
    assert parse("sum(age)", schema, total=(3, 50)).terms == (Total("age", _true(), 3, 50),)
    assert parse("sum(huge)", schema).sensitivity == 2**62


def _true() -> Predicate:
    schema = read_schema(TOML, name="visits", person=EACH_ROW)
    return parse("true", schema).terms[0].where


def test_bounds_given_with_the_question() -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    assert parse("count(*)", schema, max_rows=7).sensitivity == 7
    assert parse("sum(cost)", schema, total=("-1.5", 2)).sensitivity == 2
    assert parse("sum(cost)", schema, total=(-3, 2)).direction == 0
    assert parse("sum(cost)", schema, total=(0, 2)).direction == 1
    assert parse("sum(cost)", schema, total=(-2, 0)).direction == -1
    assert parse("sum(age)", schema, total=(-5, 2)).direction == 1  # ages are never negative


def test_the_worst_person_reaches_the_sensitivity() -> None:
    """The stated sensitivity is not larger than it must be."""
    every: list[People | Rows | Total] = [People(_true()), Rows(_true(), 3)]
    every.append(Total("cost", _true(), -8050, 15000))
    question = weighted(
        [(Fraction(2), every[0], Fraction(1)), (Fraction(-3), every[1], Fraction(1))]
    )
    assert question is not None
    assert question.sensitivity == 9  # 3 rows at weight 3; the person alone would add 2
    rows: list[RawRow] = [{**dict.fromkeys(brute.COLUMNS), "pid": 1, "cost": 99.0}] * 3
    engine = quick(rows, "pid")
    (steps,) = engine.values([parse("sum(cost)", engine.schema)])
    assert steps == 15000
    total = parse("sum(cost)", engine.schema)
    assert total.sensitivity / total.grid == 15000


def test_equal_questions_have_one_canonical_form() -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    texts = [
        "age >= 60 and smoker",
        "( AGE >=60 ) AND smoker",
        "age > 59 and smoker = true",
        "smoker and age >= 60",
        "smoker and age >= 60 and smoker",
    ]
    assert len({canonical(parse(text, schema)) for text in texts}) == 1
    assert len({parse(text, schema) for text in texts}) == 1
    others = ["age >= 61 and smoker", "age >= 60 or smoker", "not (age >= 60 and smoker)"]
    assert len({canonical(parse(text, schema)) for text in texts + others}) == 4
    known = parse("town in ('Ghent', 'a') or age = 3", schema)
    again = parse("town in ('a', 'Ghent', 'a') or age = 3.0", schema)
    assert canonical(known) == canonical(again)


STORED = [
    ("upper(town) = 'X'", '["people",["of","upper",["range","town","X","X"]]]'),
    ("month(day) in (3, 4)", '["people",["of","month",["among","day",[3,4]]]]'),
    ("note ilike 'A%'", '["people",["of","lower",["like","note","a%"]]]'),
    ("starts_with(note, 'a')", '["people",["of","left 1",["range","note","a","a"]]]'),
    (
        "select count(*) from (select pid from visits where smoker group by pid "
        "having count(*) >= 3 and sum(cost) filter (where age = 1) > 1.5 and count(*) < 9)",
        '["having",["range","smoker",1,1],'
        '[["count of rows","count",null,["range","smoker",1,1]],'
        '["sum 2 of cost","sum","cost",["and",["range","age",1,1],["range","smoker",1,1]]]],'
        '["and",["range","count of rows",3,null],["range","count of rows",null,8],'
        '["range","sum 2 of cost",151,null]]]',
    ),
]


@pytest.mark.parametrize(("text", "term"), STORED)
def test_what_is_stored_of_a_question_never_changes(text: str, term: str) -> None:
    asked = parse(text, read_schema(TOML, name="visits", person="pid"))
    assert canonical(asked) == f'["1",[1,{term}]]'


def test_tallies_never_share_a_name() -> None:
    """Whatever columns are called."""
    columns = [Column(name, "integer") for name in ("pid", "x", "2 of x", "x 2", "rows", "of x")]
    schema = Schema("t", "pid", tuple(columns))
    for first in columns:
        for second in columns:
            tests = [f'sum("{first.name}") > 1', f'sum("{second.name}") > 2', "count(*) > 3"]
            inner = f"select pid from t group by pid having {' and '.join(tests)}"
            (term,) = parse(f"select count(*) from ({inner})", schema).terms
            assert isinstance(term, Having)
            assert len(dict(term.tallies)) == (2 if first == second else 3) == len(term.tallies)


@settings(SETTINGS, max_examples=30)
@given(wheres=st.lists(PREDICATES, min_size=1, max_size=4), data=st.data())
def test_the_order_of_parts_makes_no_other_question(
    wheres: list[brute.Pred], data: st.DataObject
) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    for word in ("and", "or"):
        written = [f"({where.sql})" for where in wheres]
        asked = parse(f" {word} ".join(written), schema)
        for again in (data.draw(st.permutations(written)), [*written, *written]):
            other = parse(f" {word} ".join(again), schema)
            assert other == asked
            assert canonical(other) == canonical(asked)


def test_parts_that_say_the_same_are_said_once() -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    for text, written in [
        ("week = 9 or week = 10 or week = 9", "week = 9 or week = 10"),
        ("smoker and smoker", "smoker"),
        ("true and (true and true)", "true"),
        ("(smoker or week = 1) and (week = 1 or smoker)", "smoker or week = 1"),
    ]:
        assert shown(parse(text, schema), schema) == f"count({written})"


def test_the_order_of_parts_matters_nowhere() -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    texts = ["sum(cost) filter (where smoker)", "count(*) filter (where smoker)", "count(smoker)"]
    for text in texts:
        inner = text.replace("smoker)", "smoker and age = 1)")
        other = text.replace("smoker)", "age = 1 and smoker)")
        assert parse(inner, schema) == parse(other, schema)
    assert parse(
        "select count(*) filter (where age = 1) from visits where smoker", schema
    ) == parse("select count_if(smoker) from visits where age = 1", schema)
    with pytest.raises(QuestionRefused, match="cancel"):
        parse("count(smoker and age = 1) - count(age = 1 and smoker)", schema)
