"""The contract of every engine: the answers of plain Python, exactly, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables import brute
from tests.tables.brute import TOML, Part, Pred, Row
from tests.tables.engines import ENGINES, Opener, quick
from tests.tables.strategies import NOTES, questions, tables

from tacit.errors import BadParameter, EngineFailed, QuestionRefused
from tacit.tables import (
    EACH_ROW,
    Column,
    Engine,
    Schema,
    parse,
    parse_batch,
    prepare,
    write_schema,
)
from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.codes import rank_of_double
from tacit.tables.engine import grouped

PEOPLE = st.sampled_from(["pid", EACH_ROW])
ASKED = st.lists(questions(), min_size=1, max_size=8)
FEW = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=sorted(ENGINES))
def opener(request: pytest.FixtureRequest) -> Opener:
    return ENGINES[request.param]


def agree(engine: Engine, rows: list[Row], asked: list[list[Part]], person: object) -> None:
    """The engine's answers, together and one by one, are those of plain Python."""
    homes = brute.households(rows, person)
    read, expected = [], []
    for parts in asked:
        try:
            read.append(parse(brute.text_of(parts), engine.schema))
        except QuestionRefused as refusal:
            assert "cancel" in str(refusal)  # noqa: PT017
            continue
        expected.append(brute.answer(parts, homes))
    steps = engine.values(read)
    assert all(type(step) is int for step in steps)
    answers = [step * question.grid for step, question in zip(steps, read, strict=True)]
    assert answers == expected
    assert [step for question in read for step in engine.values([question])] == steps


@pytest.mark.parametrize("name", sorted(ENGINES))
@FEW
@given(rows=tables(), asked=ASKED, person=PEOPLE)
def test_answers_are_those_of_plain_python(
    name: str, rows: list[Row], asked: list[list[Part]], person: object
) -> None:
    with ENGINES[name](brute.arrow(rows), TOML, person) as engine:  # type: ignore[arg-type]
        agree(engine, rows, asked, person)


LIMITS = st.sampled_from([0, 2**20])


@SOME
@given(rows=tables(), asked=ASKED, person=PEOPLE, limit=LIMITS)
def test_bitmaps_answer_as_plain_python(
    rows: list[Row], asked: list[list[Part]], person: object, limit: int
) -> None:
    agree(quick(rows, person, limit), rows, asked, person)  # type: ignore[arg-type]


@pytest.mark.long
@MANY
@given(rows=tables(), asked=ASKED, person=PEOPLE, limit=LIMITS)
def test_bitmaps_answer_as_plain_python_at_length(
    rows: list[Row], asked: list[list[Part]], person: object, limit: int
) -> None:
    agree(quick(rows, person, limit), rows, asked, person)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ENGINES))
@settings(FEW, max_examples=150)
@given(rows=tables(), asked=ASKED, person=PEOPLE)
def test_answers_are_those_of_plain_python_at_length(
    name: str, rows: list[Row], asked: list[list[Part]], person: object
) -> None:
    with ENGINES[name](brute.arrow(rows), TOML, person) as engine:  # type: ignore[arg-type]
        agree(engine, rows, asked, person)


def visits(pid: object, **values: object) -> Row:
    """A row with everything else NULL."""
    return {**dict.fromkeys(brute.ARROW.names), "pid": pid, **values}


def ask(engine: Engine, text: str, **parameters: object) -> Fraction:
    question = parse(text, engine.schema, parameters)
    return engine.values([question])[0] * question.grid


def test_people_are_counted_not_rows(opener: Opener) -> None:
    rows = [visits(1, age=60, week=1), visits(1, age=61, week=2), visits(2, age=30, week=1)]
    rows += [visits(None, age=60, week=1)] * 5
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        assert ask(engine, "age >= 60") == 1
        assert ask(engine, "age >= 60 and week = 1") == 1
        assert ask(engine, "age = 60 and week = 2") == 0  # no single row has both
        assert ask(engine, "true") == 2
        assert ask(engine, "select count(distinct pid) from visits where age < 100") == 2
        assert ask(engine, "select count(*) from visits") == 3
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        assert ask(engine, "age >= 60") == 7
        assert ask(engine, "select count(*) from visits where week = 1") == 7


def test_rows_and_sums_are_bounded_for_each_person(opener: Opener) -> None:
    rows = [visits(1, age=100, cost=90.0)] * 5 + [visits(2, age=7, cost=-49.0)] * 2
    rows += [visits(3, cost=None)] * 2
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        assert ask(engine, "count(*)") == 3 + 2 + 2
        assert ask(engine, "sum(age)") == 200 + 14
        assert ask(engine, "sum(cost)") == 150 + Fraction("-80.5")
        assert ask(engine, "sum(cost) filter (where age > 7)") == 150
        assert ask(engine, "sum(fee)") == 0  # nobody has a value, so nobody adds the least total


def test_every_row_of_people_of_every_size_is_seen() -> None:
    """Two people of each size from 1 to 140; question k is true for the k-th row of each only."""
    rows = [
        visits(2 * size + twin, big=number, week=size % 3)
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


def test_a_crowd_of_all_sizes_against_plain_python() -> None:
    """People, rows and sums over random rows; the last matching row of a person is often alone."""
    random = np.random.default_rng(7)
    rows: list[Row] = []
    for pid, size in enumerate([*range(1, 70), 64, 64, 65, 100, 128, 129, 200]):
        for week, age, cost in random.integers((0, -5, -60), (40, 130, 110), (size, 3)).tolist():
            rows.append(visits(pid, week=week, age=age, cost=float(cost) if cost % 9 else None))
    rows = [rows[place] for place in random.permutation(len(rows))]
    engine, homes = quick(rows, "pid"), brute.households(rows, "pid")
    for week in range(0, 40, 5):
        first, second = brute.compare("week", "=", week), brute.compare("age", "<=", 20 + week * 4)
        where = Pred(
            f"week = {week} and age <= {20 + week * 4}",
            lambda row, first=first, second=second: brute.conjunction([first(row), second(row)]),
        )
        parts = [brute.people(Fraction(1), where), brute.some_rows(Fraction(3), where, 2)]
        parts.append(brute.total(Fraction(-2), "cost", where))
        question = parse(brute.text_of(parts), engine.schema, max_rows=2)
        assert engine.values([question])[0] * question.grid == brute.answer(parts, homes)


def test_sums_do_not_overflow(opener: Opener) -> None:
    rows = [visits(n // 3, huge=2**63 - 1, week=1, town="Ghent") for n in range(30)]
    rows += [visits(n // 3, huge=-(2**63), week=2, town="Ghent") for n in range(90, 105)]
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        assert ask(engine, "sum(huge)") == (10 - 5) * 2**62
        assert ask(engine, "1000000 * sum(huge) - count(true)") == 5_000_000 * 2**62 - 15
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        assert ask(engine, "sum(huge)") == (30 - 15) * 2**62
        assert ask(engine, "sum(huge) filter (where week = 2)") == -15 * 2**62
        prepared = prepare("sum(huge) filter (where week = :week)", engine.schema)
        asked = [prepared.question(week=week) for week in range(100)]
        assert engine.values(asked) == [0, 30 * 2**62, -15 * 2**62] + [0] * 97


PATTERNS = ["%", "_", "a%", "%b", "a_b", "%a%b%", "", "_%", "a%%b", "!%", "!", "!!", "%\\%", "%\n%"]


def test_like_means_the_same_everywhere(opener: Opener) -> None:
    rows = [visits(n, note=note) for n, note in enumerate([*NOTES, "!a", "!!", "!%", None])]
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        questions = [parse("note like :p", engine.schema, {"p": pattern}) for pattern in PATTERNS]
        notes = [str(row["note"]) for row in rows if row["note"] is not None]
        expected = [sum(brute.matches(note, pattern) for note in notes) for pattern in PATTERNS]
        assert engine.values(questions) == expected


FAR = [
    ("big <= 1e30 and big >= -1e30", 3),
    ("big > 1e30 or big < -1e30 or big = 1e30", 0),
    ("not big = 1e30", 3),
    ("big >= 9223372036854775807 or big <= -9223372036854775808", 2),
    ("big between -9223372036854775808 and 9223372036854775807", 3),
    ("raw <= 1e400 and raw >= -1e400", 3),
    ("raw > 1e400 or raw < -1e400", 0),
    ("raw >= 1.7976931348623157e308", 1),
    ("raw in (1e400, 0)", 1),
    ("cost <= 1e30 and fee >= -1e30", 3),
    ("cost > 100 or cost < -50 or cost = 100.005", 0),
    ("age > 120 or age < 0", 0),
    ("day >= '0001-01-01' and day <= '9999-12-31'", 3),
    ("day > '9999-12-31' or day < '0001-01-01'", 0),
    ("at <= '9999-12-31 23:59:59.999999' and at >= '0001-01-01 00:00:00+01:00'", 3),
]


def test_values_far_outside_compare_as_numbers_do(opener: Opener) -> None:
    greatest = 1.7976931348623157e308
    more = {"cost": 3.0, "fee": 2.0, "age": 7, "day": date(2026, 1, 1), "at": datetime(2026, 1, 1)}
    pairs = [(2**63 - 1, greatest), (-(2**63), -greatest), (0, 0.0)]
    rows = [visits(n, big=big, raw=raw, **more) for n, (big, raw) in enumerate(pairs)]
    rows.append(visits(3))
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        for text, expected in FAR:
            assert ask(engine, text) == expected, text


def test_columns_of_different_grids_compare_as_numbers(opener: Opener) -> None:
    pairs = [(2**62, 2.0), (-(2**63), 2.0), (2, 2.0), (3, 2.75), (2, None), (2**63 - 1, 9.75)]
    rows = [visits(n, big=big, fee=fee, cost=fee) for n, (big, fee) in enumerate(pairs)]
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        assert ask(engine, "big <= fee") == 2
        assert ask(engine, "big < fee") == 1
        assert ask(engine, "big = fee") == 1
        assert ask(engine, "fee < big") == 3
        assert ask(engine, "fee = cost and big >= cost") == 4


CELLS = TOML.replace("keys = {from = 1, to = 4}", "keys = {from = 0, to = 69}")
GROUPED = {
    "select week, count(distinct pid) from visits where age > 3 group by week": brute.people,
    "select count(*) from visits where age > 3 group by smoker, week": brute.some_rows,
    "select sum(cost) from visits where age > 3 group by town, week": brute.total,
    "select sum(huge) from visits where age > 3 group by week": brute.total,
}


@pytest.mark.parametrize("text", sorted(GROUPED))
@pytest.mark.parametrize("person", ["pid", EACH_ROW])
def test_group_by_is_every_declared_cell_and_nothing_else(
    opener: Opener, text: str, person: object
) -> None:
    if "distinct" in text and person is EACH_ROW:
        text = text.replace("distinct pid", "*")
    rows: list[Row] = []
    towns = ["Ghent", "Bruges", "Łódź", "elsewhere", None]
    for n in range(70):
        more = {"age": n % 9, "cost": n * 1.5 - 99, "huge": (-1) ** n * 2**62, "smoker": n % 3 == 0}
        rows.append(visits(n % 37, week=(n * n) % 80 or None, town=towns[n % 5], **more))
    rows += [visits(7, week=3, age=9, cost=1.0, huge=5, town="Ghent", smoker=True)] * 70
    with opener(brute.arrow(rows), CELLS, person) as engine:  # type: ignore[arg-type]
        batch = parse_batch(text, engine.schema)
        answers = engine.values(batch.questions)
        homes = brute.households(rows, person)
        for cell, question, steps in zip(batch.cells, batch.questions, answers, strict=True):
            expected = brute.answer([_cell_part(text, batch.columns, cell)], homes)
            assert steps * question.grid == expected
    declared = {"week": range(70), "smoker": (0, 1), "town": ("Ghent", "Bruges", "Łódź")}
    assert batch.cells == tuple(product(*(declared[name] for name in batch.columns)))


def _cell_part(text: str, columns: tuple[str, ...], cell: tuple[object, ...]) -> Part:
    tests = [brute.compare("age", ">", 3)]
    tests += [brute.compare(name, "=", value) for name, value in zip(columns, cell, strict=True)]
    where = Pred("", lambda row: brute.conjunction(test(row) for test in tests))
    if "sum(" in text:
        return brute.total(Fraction(1), text.split("sum(")[1].split(")")[0], where)
    return (brute.people if "distinct" in text else brute.some_rows)(Fraction(1), where)


def test_many_prepared_questions_are_answered_like_single_ones(opener: Opener) -> None:
    rows = [
        visits(n % 50, age=n % 100, week=n % 5, town="Ghent" if n % 2 else "Z") for n in range(300)
    ]
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        prepared = prepare("town = :town and age = :age and week <= 3", engine.schema)
        asked = [
            prepared.question(town=town, age=age)
            for town in ("Ghent", "Z", "?")
            for age in range(99)
        ]
        asked += [
            parse("age > 90", engine.schema),
            parse("count(*) - count(age > 1)", engine.schema),
        ]
        together = engine.values(asked)
        alone = range(0, len(asked), 13)
        assert [together[n] for n in alone] == [engine.values([asked[n]])[0] for n in alone]
        assert sum(together) > 0


def test_what_all_cells_share_is_a_condition_and_no_key(opener: Opener) -> None:
    """Rows that no cell wants are then left out before the scan."""
    rows = [visits(n % 50, age=n % 70, week=n % 5, smoker=n % 2 == 0) for n in range(400)]
    shapes = ["smoker and age = :age and week = 1", "smoker and week = 1 and age = age"]
    shapes += ["count(*) filter (where smoker and age = :age)", "sum(age) filter (where week = 2)"]
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        for shape in shapes:
            prepared = prepare(shape, engine.schema)
            asked = [
                prepared.question(**({"age": age} if ":age" in shape else {})) for age in range(70)
            ]
            together, some = engine.values(asked), range(0, 70, 9)
            assert [together[n] for n in some] == [engine.values([asked[n]])[0] for n in some]
            assert sum(together) > 0
    asked = [parse(f"smoker and age = {age} and week = 1", engine.schema) for age in range(70)]
    (group,), single = grouped([question.terms[0] for question in asked], 64)
    assert not single
    assert group.columns == ("age",)
    assert group.cells == [(age,) for age in range(70)]
    assert group.like == parse("smoker and week = 1", engine.schema).terms[0]
    (group,), single = grouped([asked[7].terms[0]] * 70, 64)
    assert len(group.cells) == 70
    assert len(set(group.cells)) == 1


def test_more_combinations_than_can_be_listed(opener: Opener) -> None:
    rows = [visits(n, age=n % 100, big=n * 10**12, huge=-n) for n in range(3000)]
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        text = "age = :age and big = :big and huge = :huge"
        prepared = prepare(text, engine.schema)
        asked = [
            prepared.question(age=n % 100, big=n * 10**12, huge=-n if n % 2 else n)
            for n in range(0, 3000, 7)
        ]
        expected = [int(n % 2 == 1 or n == 0) for n in range(0, 3000, 7)]
        assert engine.values(asked) == expected


WIDE = [0, 2**53, 2**60, 2**63 - 200]


@pytest.mark.parametrize("person", ["pid", EACH_ROW])
def test_wide_numbers_are_told_apart_in_a_batch(opener: Opener, person: object) -> None:
    """Doubles would take many of these for their neighbours."""
    rows = [visits(n % 60, big=base + n, week=1) for base in WIDE for n in range(100)]
    rows.append(visits(61, week=1))
    with opener(brute.arrow(rows), TOML, person) as engine:  # type: ignore[arg-type]
        for shape in ("big = :v", "big = :v and week = 1"):
            prepared = prepare(shape, engine.schema)
            asked = [prepared.question(v=base + n) for base in WIDE for n in range(0, 150, 3)]
            assert engine.values(asked) == ([1] * 34 + [0] * 16) * len(WIDE)


def test_points_are_bounded_for_each_person(opener: Opener) -> None:
    rows = [visits(1, age=age, town="Ghent") for age in (9, 3, 7)]
    rows += [visits(2, age=50, town="Bruges"), visits(2, age=None, town="Ghent")]
    rows += [visits(3, age=60, town="elsewhere"), visits(None, age=1, town="Ghent")]
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        assert engine.points(["age"], max_rows=2).tolist() == [[3], [7], [50], [60]]
        assert engine.points(["age", "town"], max_rows=1).tolist() == [[3, 0], [50, 1]]
        assert engine.points(["town"], max_rows=9).tolist() == [[0]] * 4 + [[1]]
        assert engine.points(["age"]).dtype == np.int64
    rows = [visits(1, raw=value) for value in (0.5, float("nan"), -2.0)]
    with opener(brute.arrow(rows), TOML, EACH_ROW) as engine:
        assert engine.points(["raw"], max_rows=1).tolist() == [
            [rank_of_double(-2.0)],
            [rank_of_double(0.5)],
        ]
    with opener(brute.arrow([]), TOML, "pid") as engine:
        assert engine.points(["age", "town"]).shape == (0, 2)


def test_points_need_a_public_numbering(opener: Opener) -> None:
    with opener(brute.arrow([visits(1)]), TOML, "pid") as engine:
        for columns in (["note"], ["nowhere"], []):
            with pytest.raises(BadParameter, match="columns"):
                engine.points(columns)
        with pytest.raises(BadParameter, match="max_rows"):
            engine.points(["age"], max_rows=0)


def test_threads_may_ask_at_once(opener: Opener) -> None:
    rows = [visits(n % 40, age=n % 100, week=n % 5, smoker=n % 3 == 0) for n in range(400)]
    with opener(brute.arrow(rows), TOML, "pid") as engine:
        texts = [f"age >= {age} and week = {age % 5} and smoker" for age in range(0, 60, 4)]
        questions = [parse(text, engine.schema) for text in texts]
        alone = [engine.values([question]) for question in questions]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda question: engine.values([question]), questions)) == alone


def test_bitmaps_stay_within_their_limit() -> None:
    rows = [visits(n, age=n % 100, week=n % 5) for n in range(640)]
    engine = quick(rows, EACH_ROW, limit=4 * 80)  # four bitmaps of 640 bits
    assert isinstance(engine, BitmapEngine)
    for age in range(100):
        assert ask(engine, f"age = {age}") == 7 - (age >= 40)
        assert len(engine._kept) <= 4
    many = " or ".join(f"age = {age}" for age in range(50))
    assert ask(engine, f"({many}) and week = 3") == 64 + 4
    assert len(engine._kept) <= 4
    for _ in range(3):  # the least recently used goes first
        assert ask(engine, "age = 7") == 7
        assert ask(engine, f"age >= {_}") == 640 - 7 * _
    assert ("age", ((7, 7),)) in engine._kept


AWKWARD = [
    "t",
    "t0",
    "t1",
    "c0",
    "c1",
    "person",
    "people",
    "read",
    "held",
    "source",
    "word",
    "code",
]


def test_no_name_is_mistaken_for_another(opener: Opener) -> None:
    names = [*AWKWARD, "tacit_rows", "words0", "rows", "select", "_", '"', "a b", "é"]
    table = pa.table({name: [number, number + 1] for number, name in enumerate(names)})
    declared = [Column(name, "integer", keys=tuple(range(99))) for name in names]
    schema = write_schema(Schema("visits", EACH_ROW, tuple(declared)))
    for person in (EACH_ROW, "t0"):
        with opener(table, schema, person) as engine:  # type: ignore[arg-type]
            for number, name in enumerate(names):
                quoted = '"' + name.replace('"', '""') + '"'
                assert ask(engine, f"{quoted} = {number}") == 1, name
                assert engine.points([name, "c1"]).tolist()[0] == [number, AWKWARD.index("c1")]
            text = "select count(*) from visits group by t"
            found = engine.values(parse_batch(text, engine.schema, max_rows=1).questions)
            assert found == [1, 1] + [0] * 97


def test_an_engine_shows_nothing_of_the_data(opener: Opener) -> None:
    few, many = ([visits(n, note="poison") for n in range(size)] for size in (3, 3000))
    with (
        opener(brute.arrow(few), TOML, "pid") as one,
        opener(brute.arrow(many), TOML, "pid") as two,
    ):
        assert repr(one) == repr(two)
        assert str(one) == str(two)
        assert not hasattr(one, "__len__")
        assert one.schema == two.schema


def test_a_closed_engine_fails_cleanly(opener: Opener) -> None:
    engine = opener(brute.arrow([visits(1)]), TOML, "pid")
    question = parse("true", engine.schema)
    engine.close()
    engine.close()
    with pytest.raises(EngineFailed, match="closed"):
        engine.values([question])
    with pytest.raises(EngineFailed, match="closed"):
        engine.points(["age"])


def test_nothing_asked_is_nothing_answered(opener: Opener) -> None:
    with opener(brute.arrow([visits(1)]), TOML, "pid") as engine:
        assert engine.values([]) == []
