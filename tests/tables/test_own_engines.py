"""Engines that somebody else wrote: the one of the page passes the contract; others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pages import FENCE, ROOT

import tacit
from tacit.errors import BadParameter, EngineFailed, QuestionRefused
from tacit.tables import read_schema
from tacit.tables.language.abilities import ABILITIES
from tacit.testing.engines import EngineContract, row, visits

PAGE = ROOT / "docs" / "extending" / "add-an-engine.md"
POISON = "patient 4711 has a row of 2 MB"


def names_on_the_page() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    for block in FENCE.finditer(PAGE.read_text()):
        if block["kind"] == "python":
            exec(compile(block["body"], str(PAGE), "exec"), names)  # noqa: S102 - that is the test
    return names


NAMES = names_on_the_page()
ListEngine, coded = NAMES["ListEngine"], NAMES["coded"]


class TestListEngine(NAMES["TestListEngine"]):  # type: ignore[misc, valid-type]
    """The engine of the page."""


def test_the_page_subclasses_the_contract() -> None:
    assert issubclass(TestListEngine, EngineContract)


@pytest.fixture
def engine() -> Any:
    schema = visits("pid")
    return ListEngine(schema, coded([row(n, age=n, town="Ghent") for n in range(100)], schema))


@pytest.fixture
def budget() -> tacit.Budget:
    return tacit.Budget.in_memory(epsilon=10**6, covers=["visits"])


def stream(engine: Any, budget: tacit.Budget) -> Any:
    return tacit.open(engine).sparse(threshold=10, at_most=3, epsilon=1000, budget=budget)


def test_it_is_asked_like_any_table(engine: Any, budget: tacit.Budget) -> None:
    with tacit.open(engine, people=100, as_of="2026-11-01") as table:
        assert table.name == "visits"
        assert table.count("age >= 60", epsilon=1000, budget=budget).value == 40
        assert table.sum("age", epsilon=10**5, budget=budget).value == 99 * 50
        asked = table.sparse(threshold=10, at_most=3, epsilon=1000, budget=budget)
        assert [bool(asked.ask("age >= :a", a=a)) for a in (60, 99)] == [True, False]
        found = list(asked.ask_all("select count(distinct pid) from visits group by town"))
        assert [bool(answer) for answer in found] == [True, False, False]
    with pytest.raises(EngineFailed, match="closed"):
        table.count("age >= 60", epsilon=1, budget=budget)


REFUSED = {
    "rows": "select count(*) from visits",
    "sums": "sum(age)",
    "wide sums": "sum(huge) - count(true)",
    "patterns": "not note like :pattern",
    "column pairs": "select count(distinct pid) from visits where age >= week group by town",
}


@pytest.mark.parametrize("ability", sorted(REFUSED))
def test_what_it_cannot_do_is_refused_before_it_is_paid(
    engine: Any, budget: tacit.Budget, ability: str
) -> None:
    text = REFUSED[ability]
    given: dict[str, object] = {"pattern": "a%"} if "pattern" in text else {}
    engine.cannot = ["points"]
    able = tacit.open(engine)
    assert able.check(text, params=given)
    engine.cannot = [ability, "points"]
    table, before = tacit.open(engine), budget.spent
    asked = table.sparse(
        threshold=-(10**6), at_most=3, epsilon=1, budget=budget, kind="any", sensitivity=200
    )
    spent, left = budget.spent, asked.tops_left
    stated = table.check(text, params=given)
    assert not stated
    assert ABILITIES[ability] in str(stated)
    foreign = able.prepare(text)  # which was read where nothing is refused
    for question in (text, foreign):
        with pytest.raises(QuestionRefused, match="Nothing was spent"):
            list(asked.ask_all(question, params=given))
        if "group by" not in text:
            for ask in (asked.ask, lambda q, **p: table.count(q, epsilon=1, budget=budget, **p)):
                with pytest.raises(QuestionRefused, match="Nothing was spent"):
                    ask(question, params=given)
    assert (budget.spent, asked.tops_left) == (spent, left)
    assert before != spent
    assert asked.ask("age >= 0")  # and the stream goes on


def test_releases_that_need_points_are_refused_before_they_are_paid(
    engine: Any, budget: tacit.Budget
) -> None:
    table, before = tacit.open(engine), budget.spent
    with pytest.raises(QuestionRefused, match="rows themselves"):
        table.histogram("town", max_rows=1, epsilon=1, budget=budget)
    with pytest.raises(QuestionRefused, match="rows themselves"):
        table.small_db(tacit.intervals("age"), max_rows=1, epsilon=1, rows=10, budget=budget)
    assert budget.spent == before


class Nothing:
    pass


@pytest.mark.parametrize("missing", ["schema", "totals", "points", "close"])
def test_an_engine_that_is_not_complete_is_told_what_is_missing(engine: Any, missing: str) -> None:
    parts = {
        "schema": engine.schema,
        "totals": engine.totals,
        "points": lambda columns, max_rows=1: np.zeros((0, len(columns)), np.int64),
        "close": engine.close,
    }
    thing = Nothing()
    for name, part in parts.items():
        setattr(thing, name, part)
    tacit.open(thing)
    delattr(thing, missing)
    with pytest.raises(BadParameter, match=f"has no {missing}; it needs schema, totals, points"):
        tacit.open(thing)


@pytest.mark.parametrize(
    ("part", "wrong", "said"),
    [
        ("schema", "visits", "its schema is"),
        ("totals", 7, "totals cannot be called"),
        ("cannot", "points", "its cannot lists"),
        ("cannot", ["fly"], "fly.*may list 'points'"),
        ("cannot", 3, "its cannot lists"),
        ("cannot", [["points"]], "its cannot lists"),
    ],
)
def test_an_engine_with_a_wrong_part_is_told_which(
    engine: Any, part: str, wrong: object, said: str
) -> None:
    setattr(engine, part, wrong)
    with pytest.raises(BadParameter, match=said):
        tacit.open(engine)


def test_an_engine_has_its_own_schema(engine: Any) -> None:
    for more in ({"person": "pid"}, {"name": "v"}, {"schema": "x"}, {"memory_limit": 1}):
        with pytest.raises(BadParameter, match="neither person"):
            tacit.open(engine, **more)


def test_an_engine_of_tacit_s_own_can_be_opened(budget: tacit.Budget) -> None:
    import pyarrow as pa

    inner = tacit.tables.load(pa.table({"pid": [1, 2]}), person="pid", name="visits")
    table = tacit.open(inner)
    assert table.engine is inner
    assert table.count("true", epsilon=1000, budget=budget).value == 2


@pytest.mark.parametrize("wrong", [[1.5], ["7"], [None], [], [1, 2], 7, None])
def test_answers_that_are_no_whole_numbers_are_failures(
    engine: Any, budget: tacit.Budget, wrong: object
) -> None:
    asked = stream(engine, budget)
    engine.totals = lambda terms: wrong
    with pytest.raises(EngineFailed, match="withheld") as caught:
        asked.ask("age >= 60")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("failure", [RuntimeError, EngineFailed, QuestionRefused, MemoryError])
def test_what_it_says_is_withheld(
    engine: Any, budget: tacit.Budget, failure: type[Exception]
) -> None:
    def fail(*given: object, **more: object) -> None:
        raise failure(POISON)

    asked = stream(engine, budget)
    engine.totals = engine.points = engine.close = fail
    engine.cannot = ()
    with pytest.raises(EngineFailed) as caught:
        asked.ask("age >= 60")
    table = tacit.open(engine)
    with pytest.raises(EngineFailed) as also:
        table.histogram("town", max_rows=1, epsilon=1, budget=budget)
    with pytest.raises(EngineFailed) as closing:
        table.close()
    for error in (caught.value, also.value, closing.value):
        assert POISON not in f"{error} {error!r} {error.__context__!r} {error.__cause__!r}"


@pytest.mark.parametrize(
    "points", [np.zeros((3, 2), np.int64), np.zeros(3, np.int64), np.zeros((3, 1)), None, [["a"]]]
)
def test_points_that_are_no_codes_are_failures(
    engine: Any, budget: tacit.Budget, points: object
) -> None:
    engine.cannot, engine.points = (), lambda columns, max_rows, coins: points
    with pytest.raises(EngineFailed, match="withheld"):
        tacit.open(engine).histogram("town", max_rows=1, epsilon=1, budget=budget)


def test_numpy_integers_are_whole_numbers(engine: Any, budget: tacit.Budget) -> None:
    engine.totals = lambda terms: np.array([40] * len(terms))
    assert tacit.open(engine).count("true", epsilon=1000, budget=budget).value == 40


def test_a_frame_is_no_engine_whatever_its_columns_are_called() -> None:
    import pandas as pd

    frame = pd.DataFrame({"totals": [1], "schema": [2], "close": [3], "points": [4]})
    schema = read_schema('[columns.totals]\ntype = "integer"', name="t", person=tacit.EACH_ROW)
    with tacit.open(frame, person=tacit.EACH_ROW, schema=schema) as table:
        assert table.schema.columns[0].name == "totals"


def test_a_person_must_still_be_named_for_data() -> None:
    import pyarrow as pa

    with pytest.raises(BadParameter, match=r"person.*EACH_ROW"):
        tacit.open(pa.table({"pid": [1, 2]}))
