"""The engines of this package pass the contract; and what is true of bitmaps alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables.engines import ENGINES, arrow, eager, quick

from tacit import kernel
from tacit.errors import QuestionRefused
from tacit.tables import EACH_ROW, Engine, Schema, parse, write_schema
from tacit.tables.encoded.layout import by_person, unpack
from tacit.tables.engine import bit_trees
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.cache import Cache
from tacit.tables.engine.cells import grouped
from tacit.tables.language.tree import Range
from tacit.tables.schema.schema import Person
from tacit.testing import meaning as brute
from tacit.testing.engines import ASKED, PEOPLE, EngineContract, row
from tacit.testing.meaning import Pred, RawRow, Summand, Truth
from tacit.testing.random_questions import conditions, tables

SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = st.sampled_from([0, 2**20])


class TestBitmaps(EngineContract):
    name = "bitmaps"

    def open(self, rows: list[RawRow], schema: Schema) -> Engine:
        return ENGINES[self.name](arrow(rows, schema), write_schema(schema), schema.person)


@pytest.fixture
def _without_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "compiled", None)


@pytest.mark.usefixtures("_without_compiled_loops")
class TestBitmapsByNumpy(TestBitmaps):
    pass


class TestCrampedBitmaps(TestBitmaps):
    name = "cramped"


class TestShards(TestBitmaps):
    name = "shards"


class TestSliced(TestBitmaps):
    name = "sliced"


@pytest.mark.usefixtures("_without_compiled_loops")
class TestSlicedByNumpy(TestSliced):
    pass


def agree(engine: Engine, rows: list[RawRow], asked: list[list[Summand]], person: Person) -> None:
    """The engine's answers are those of plain Python."""
    homes, read, expected = brute.households(rows, person), [], []
    for parts in asked:
        try:
            read.append(parse(brute.text_of(parts), engine.schema))
        except QuestionRefused as refusal:
            assert "cancel" in str(refusal)  # noqa: PT017
            continue
        expected.append(brute.answer(parts, homes))
    steps = engine.values(read)
    assert [step * question.grid for step, question in zip(steps, read, strict=True)] == expected
    for _ in range(2):  # the second time bitmaps are built, from the third on they are kept
        assert [step for question in read for step in engine.values([question])] == steps


@pytest.mark.usefixtures("both_loops")
@SOME
@given(rows=tables(), asked=ASKED, person=PEOPLE, limit=LIMITS)
def test_bitmaps_answer_as_plain_python(
    rows: list[RawRow], asked: list[list[Summand]], person: Person, limit: int
) -> None:
    agree(quick(rows, person, limit), rows, asked, person)


@pytest.mark.usefixtures("both_loops")
@SOME
@given(rows=tables(), asked=ASKED, person=PEOPLE)
def test_what_is_kept_at_once_answers_as_plain_python(
    rows: list[RawRow], asked: list[list[Summand]], person: Person
) -> None:
    agree(eager(quick(rows, person)), rows, asked, person)


@pytest.mark.usefixtures("both_loops")
@SOME
@given(rows=tables(), asked=st.lists(conditions(), min_size=1, max_size=6), limit=LIMITS)
def test_bitmaps_test_all_rows_of_a_person_as_plain_python(
    rows: list[RawRow], asked: list[Summand], limit: int
) -> None:
    agree(quick(rows, "pid", limit), rows, [[each] for each in asked], "pid")


@pytest.mark.long
@MANY
@given(rows=tables(), asked=ASKED, person=PEOPLE, limit=LIMITS)
def test_bitmaps_answer_as_plain_python_at_length(
    rows: list[RawRow], asked: list[list[Summand]], person: Person, limit: int
) -> None:
    agree(quick(rows, person, limit), rows, asked, person)


def ask(engine: Engine, text: str, **parameters: object) -> Fraction:
    question = parse(text, engine.schema, parameters)
    first, second, third = (engine.values([question])[0] for _ in range(3))
    assert first == second == third  # new, built and kept
    return first * question.grid


def test_every_row_of_people_of_every_size_is_seen() -> None:
    """Two people of each size from 1 to 140; question k is true for the k-th row of each only."""
    rows = [
        row(2 * size + twin, big=number, week=size % 3)
        for size in range(1, 141)
        for twin in range(2)
        for number in range(size)
    ]
    engine = quick(rows, "pid")
    for number in range(140):
        assert ask(engine, f"big = {number}") == 2 * (140 - number)
        assert ask(engine, f"big >= {number}") == 2 * (140 - number)
    assert ask(engine, "true") == 280
    assert ask(engine, "count(*)") == 2 * (1 + 2 + 3 * 138)


@SOME
@given(
    people=st.lists(st.integers(0, 12), max_size=200),
    more=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3)), max_size=60),
    at_once=st.sampled_from([1, 7, 64, 1000]),
)
def test_each_row_has_the_next_slot_of_its_person(
    people: list[int], more: list[tuple[int, int]], at_once: int
) -> None:
    """However many come often: one row of a person after the other, and nobody else between."""
    people = [*people, *(person for person, times in more for _ in range(times))]
    with patch("tacit.tables.encoded.layout.SOME_ROWS", at_once):
        layout, slots = by_person(np.array(people, dtype=np.uint32))
    rows: dict[int, list[int]] = {}
    for place, person in enumerate(people):
        rows.setdefault(person, []).append(place)
    begins = {person: int(slots[places[0]]) for person, places in rows.items()}
    for person, places in rows.items():
        assert slots[places].tolist() == [begins[person] + nth for nth in range(len(places))]
    assert np.flatnonzero(unpack(layout.filled)).tolist() == sorted(slots.tolist())
    several = [begins[person] for person, places in rows.items() if len(places) > 1]
    assert layout.starts.tolist() == sorted(several)


@pytest.mark.parametrize("sizes", [(255, 1), (256, 256), (257, 3), (512, 1), (65_537, 255, 1)])
def test_more_rows_of_a_person_than_a_byte_counts(sizes: tuple[int, ...]) -> None:
    people = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(1).shuffle(people)
    layout, slots = by_person(people.astype(np.uint8))
    for person, size in enumerate(sizes):
        places = slots[people == person].astype(np.int64)
        assert places.tolist() == list(range(places[0], places[0] + size))
    assert np.flatnonzero(unpack(layout.filled)).tolist() == sorted(slots.tolist())


def both(*tests: Callable[[RawRow], Truth]) -> Callable[[RawRow], Truth]:
    return lambda row: brute.conjunction([test(row) for test in tests])


def test_a_crowd_of_all_sizes_against_plain_python() -> None:
    """People, rows and sums over random rows; the last matching row of a person is often alone."""
    random = np.random.default_rng(7)
    rows: list[RawRow] = []
    for pid, size in enumerate([*range(1, 70), 64, 64, 65, 100, 128, 129, 200]):
        for week, age, cost in random.integers((0, -5, -60), (40, 130, 110), (size, 3)).tolist():
            rows.append(row(pid, week=week, age=age, cost=float(cost) if cost % 9 else None))
    rows = [rows[place] for place in random.permutation(len(rows))]
    engine, homes = quick(rows, "pid"), brute.households(rows, "pid")
    for week in range(0, 40, 5):
        first, second = brute.compare("week", "=", week), brute.compare("age", "<=", 20 + week * 4)
        where = Pred(f"week = {week} and age <= {20 + week * 4}", both(first, second))
        parts = [brute.people(Fraction(1), where), brute.some_rows(Fraction(3), where, 2)]
        parts.append(brute.total(Fraction(-2), "cost", where))
        question = parse(brute.text_of(parts), engine.schema, max_rows=2)
        for _ in range(3):
            assert engine.values([question])[0] * question.grid == brute.answer(parts, homes)


def test_what_all_cells_share_is_a_condition_and_no_key() -> None:
    """Rows that no cell wants are then left out before the scan."""
    schema = quick([row(1)], "pid").schema
    asked = [parse(f"smoker and age = {age} and week = 1", schema) for age in range(70)]
    (group,), single = grouped([question.terms[0] for question in asked], 64)
    assert not single
    assert group.columns == ("age",)
    assert group.cells == [(age,) for age in range(70)]
    assert group.like == parse("smoker and week = 1", schema).terms[0]
    (group,), single = grouped([asked[7].terms[0]] * 70, 64)
    assert len(group.cells) == 70
    assert len(set(group.cells)) == 1


@pytest.mark.usefixtures("both_loops")
@pytest.mark.parametrize("few", [1, 128, 10**9], ids=["always", "as usual", "never"])
def test_a_new_atom_is_tested_on_what_the_others_leave(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bit_trees, "_FEW", few)
    ages = [int(age) or None for age in np.random.default_rng(17).integers(0, 50, 3000)]
    rows = [row(n // 3, age=age, week=n % 7) for n, age in enumerate(ages)]
    engine = quick(rows, "pid")
    assert [ask(engine, f"week = {week}") for week in range(7)]  # which are kept from then on
    for least in range(50):
        week = least % 7
        of_week = [(n // 3, age) for n, age in enumerate(ages) if n % 7 == week]
        later = {pid for pid, age in of_week if age is not None and age > least}
        unlike = {pid for pid, age in of_week if age is None or age not in (1, least)}
        assert ask(engine, f"week = {week} and age > {least}") == len(later)
        where = f"week = {week} and (age is null or age not in (1, {least}))"
        assert ask(engine, where) == len(unlike)


def test_bitmaps_stay_within_their_limit() -> None:
    rows = [row(n, age=n % 100, week=n % 5) for n in range(640)]
    engine = quick(rows, EACH_ROW, limit=4 * (80 + 512))  # four bitmaps of 640 bits
    assert isinstance(engine, BitmapEngine)
    for age in range(100):
        assert ask(engine, f"age = {age}") == 7 - (age >= 40)
        assert len(engine.parts[0].bitmaps.cache) <= 4
    many = " or ".join(f"age = {age}" for age in range(50))
    assert ask(engine, f"({many}) and week = 3") == 64 + 4
    assert len(engine.parts[0].bitmaps.cache) <= 4
    for _ in range(3):  # the least recently used goes first
        assert ask(engine, "age = 7") == 7
        assert ask(engine, f"age >= {_}") == 640 - 7 * _
    assert Range("age", 7, 7) in engine.parts[0].bitmaps.cache


def test_one_predicate_makes_no_more_bitmaps_than_may_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = quick([row(n, age=n % 100) for n in range(640)], EACH_ROW, limit=4 * (80 + 512))
    asked = parse(
        " or ".join(f"age = {age} or age >= {age + 90}" for age in range(9)), engine.schema
    )
    made: list[object] = []
    keep = Cache.keep
    monkeypatch.setattr(Cache, "keep", lambda *given: (made.append(given[1]), keep(*given)))
    answers = [engine.values([asked]), engine.values([asked])]
    assert answers[0] == answers[1]
    assert len(made) == 4  # the others would be in memory at the same time


def test_a_new_range_of_a_conjunction_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = quick([row(n, age=n % 100, week=n % 5) for n in range(640)], EACH_ROW)
    sought: list[object] = []
    find = Cache.find
    monkeypatch.setattr(Cache, "find", lambda cache, key: (sought.append(key), find(cache, key))[1])
    assert engine.values([parse("age >= 50 and week = 3", engine.schema)]) == [60]
    assert sought == [Range("age", 50, None), Range("week", 3, 3)]


@pytest.mark.usefixtures("both_loops")
def test_questions_that_come_again_when_their_bitmaps_were_dropped() -> None:
    rows = [row(n // 2, age=n % 10, week=n % 6) for n in range(640)]
    engine = quick(rows, "pid", limit=6 * (80 + 512))
    assert isinstance(engine, BitmapEngine)
    pool = [
        (parse(f"age {sign} {age} and week = {week}", engine.schema), age, week, sign)
        for age in range(10)
        for week in (0, 3)
        for sign in (">=", "=")
    ]
    draw = Random(3)
    for turn in range(1000):
        asked, age, week, sign = draw.choice(pool[:3] if turn % 3 else pool)
        there = [n for n in range(640) if n % 6 == week and (n % 10 == age or sign == ">=")]
        true = len({n // 2 for n in there if n % 10 >= age})
        assert engine.values([asked]) == [true]
        assert len(engine.parts[0].bitmaps.cache) <= 6
    engine.close()
    assert engine.parts == []  # with all that was kept
