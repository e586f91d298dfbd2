"""The contract of every engine, as a pytest class: subclass it to test yours.

::

    from tacit.testing.engines import EngineContract

    class TestMyEngine(EngineContract):
        def open(self, rows, schema):
            return MyEngine(schema, rows)

``rows`` are dicts of Python values, as they might be in a file; ``coded`` turns them into codes,
for engines that compute with codes.  Answers must be exactly those of plain Python
(``tacit.testing.meaning``).  Of what an engine lists in ``cannot`` the suite only checks that it is
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.book.coins import Coins, InsecureTestCoins
from tacit.errors import BadParameter, EngineFailed, QuestionRefused
from tacit.tables.engine.engine import Engine
from tacit.tables.engine.person_rows import totals_by_cell
from tacit.tables.language.abilities import ABILITIES, refuse_beyond
from tacit.tables.language.keys import KeySet, column_key
from tacit.tables.language.prepared import parse, parse_batch, prepare
from tacit.tables.language.tree import (
    TRUE,
    Constant,
    People,
    Predicate,
    Question,
    Range,
    Rows,
    Term,
    Total,
    all_of,
    with_where,
)
from tacit.tables.opening import load
from tacit.tables.schema.codes import rank_of_double
from tacit.tables.schema.schema import EACH_ROW, Column, Person, Schema, read_schema, write_schema
from tacit.testing import meaning
from tacit.testing.meaning import TOML, Pred, RawRow, Summand, code_of
from tacit.testing.random_questions import NOTES, conditions, questions, tables

CodedRow = dict[str, int | str | None]

FEW = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
ASKED = st.lists(questions(), min_size=1, max_size=8)
PEOPLE: st.SearchStrategy[Person] = st.sampled_from(["pid", EACH_ROW])

PATTERNS = ["%", "_", "a%", "%b", "a_b", "%a%b%", "", "_%", "a%%b", "!%", "!", "!!", "%\\%", "%\n%"]
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
CELLS = TOML.replace("keys = {from = 1, to = 4}", "keys = {from = 0, to = 69}")
GROUPED = [
    "select week, count(distinct pid) from visits where age > 3 group by week",
    "select count(*) from visits where age > 3 group by smoker, week",
    "select sum(cost) from visits where age > 3 group by town, week",
    "select sum(huge) from visits where age > 3 group by week",
]
WEIGHTED = [
    "select 3 * count(*) - sum(age) from visits group by smoker, week",
    "select sum(huge) - 5 * count(*) filter (where age > 3) from visits group by week, smoker",
    "select count(*) from visits where week = 3 or smoker group by week",
    "select count(*) from visits where week = 3 group by week, smoker",
]
OFTEN = "select count(*) from (select pid from visits group by pid having {})"
WIDE = [0, 2**53, 2**60, 2**63 - 200]
AWKWARD = ["t", "t0", "t1", "c0", "c1", "person", "people", "read", "held", "source", "word"]
AWKWARD += ["code", "tacit_rows", "words0", "rows", "select", "_", '"', "a b", "é"]


def row(pid: object, **values: object) -> RawRow:
    """A row of the contract's table, in which all other columns are NULL."""
    return {**dict.fromkeys(meaning.COLUMNS), "pid": pid, **values}


def coded(rows: Sequence[RawRow], schema: Schema) -> list[list[CodedRow]]:
    """The rows of each person as codes, by the documented rules."""
    found: dict[object, list[CodedRow]] = {}
    for place, raw in enumerate(rows):
        read = {each.name: code_of(each, raw[each.name]) for each in schema.columns}
        who = read[schema.person] if isinstance(schema.person, str) else place
        if who is not None:
            found.setdefault(who, []).append(read)
    return list(found.values())


def visits(person: Person, toml: str = TOML) -> Schema:
    """The schema of the contract's table."""
    return read_schema(toml, name="visits", person=person)


def points(
    engine: Engine, *columns: str, max_rows: int = 1, coins: Coins | None = None
) -> list[list[int]]:
    """The points of an engine, row by row."""
    counted = engine.point_counts(columns, max_rows=max_rows, coins=coins)
    rows: list[list[int]] = counted.rows().tolist()
    return rows


def asked(engine: Engine, text: str, **parameters: object) -> Question | None:
    """A question, or None if the engine says that it cannot answer it."""
    question = parse(text, engine.schema, parameters)
    try:
        refuse_beyond(engine.cannot, question, engine.schema)
    except QuestionRefused:
        return None
    return question


def answers(engine: Engine, *pairs: tuple[str, object]) -> None:
    """Assert that the engine gives these answers."""
    for text, expected in pairs:
        question = asked(engine, text)
        if question is not None:
            assert engine.values([question])[0] * question.grid == expected, text


class EngineContract:
    """What must hold for every engine.  A subclass defines `open`."""

    def open(self, rows: list[RawRow], schema: Schema) -> object:
        """An engine over these rows."""
        raise NotImplementedError("an engine's tests define open(rows, schema)")

    def engine(self, rows: list[RawRow], person: Person, toml: str = TOML) -> Engine:
        """The engine, checked as ``tacit.open`` does."""
        return load(self.open(rows, visits(person, toml)))

    # Answers -------------------------------------------------------------------------------

    def agree(self, rows: list[RawRow], parts: list[list[Summand]], person: Person) -> None:
        """Assert that its answers, together and one by one, are those of plain Python."""
        homes = meaning.households(rows, person)
        with self.engine(rows, person) as engine:
            read, expected = [], []
            for each in parts:
                try:
                    question = asked(engine, meaning.text_of(each))
                except QuestionRefused as refusal:
                    assert "cancel" in str(refusal)  # noqa: PT017
                    continue
                if question is not None:
                    read.append(question)
                    expected.append(meaning.answer(each, homes))
            steps = engine.values(read)
            assert all(type(step) is int for step in steps)
            found = [step * question.grid for step, question in zip(steps, read, strict=True)]
            assert found == expected
            assert [step for question in read for step in engine.values([question])] == steps

    @FEW
    @given(rows=tables(), parts=ASKED, person=PEOPLE)
    def test_answers_are_those_of_plain_python(
        self, rows: list[RawRow], parts: list[list[Summand]], person: Person
    ) -> None:
        """Random questions about random tables."""
        self.agree(rows, parts, person)

    @pytest.mark.long
    @settings(FEW, max_examples=150)
    @given(rows=tables(), parts=ASKED, person=PEOPLE)
    def test_answers_are_those_of_plain_python_at_length(
        self, rows: list[RawRow], parts: list[list[Summand]], person: Person
    ) -> None:
        """Many of them."""
        self.agree(rows, parts, person)

    @FEW
    @given(rows=tables(), asked=st.lists(conditions(), min_size=1, max_size=6))
    def test_conditions_on_all_rows_of_a_person(
        self, rows: list[RawRow], asked: list[Summand]
    ) -> None:
        """Random ones: HAVING with a person as the group."""
        self.agree(rows, [[each] for each in asked], "pid")

    @pytest.mark.long
    @settings(FEW, max_examples=150)
    @given(rows=tables(), asked=st.lists(conditions(), min_size=1, max_size=6))
    def test_conditions_on_all_rows_of_a_person_at_length(
        self, rows: list[RawRow], asked: list[Summand]
    ) -> None:
        """Many of them."""
        self.agree(rows, [[each] for each in asked], "pid")

    def test_no_row_is_counted_where_a_condition_is_unknown(self) -> None:
        """A count of rows is 0, and not unknown, for somebody whose column is NULL everywhere."""
        ages = {1: (None, None), 2: (5, None), 3: (0, None), 4: (0, 0)}
        rows = [row(pid=pid, age=age) for pid, each in ages.items() for age in each]
        having = "select count(*) from (select pid from visits group by pid having {})"
        with self.engine(rows, "pid") as engine:
            answers(
                engine,
                (having.format("count(*) filter (where age = 0) = 0"), 2),
                (having.format("count(*) filter (where age = 0) < 2"), 3),
                (having.format("not count(*) filter (where age = 0) = 1"), 3),
                (having.format("count(age) = 0"), 1),
                (having.format("count(age) <= 1"), 3),
            )

    @FEW
    @given(rows=tables(), parts=ASKED)
    def test_totals_of_different_people_add_up(
        self, rows: list[RawRow], parts: list[list[Summand]]
    ) -> None:
        """The totals of all people are the sums of the totals of two groups."""
        some = [each for each in rows if each["pid"] in (1, 2)]
        others = [each for each in rows if each["pid"] not in (1, 2)]
        totals = []
        for these in (rows, some, others):
            with self.engine(these, "pid") as engine:
                terms: list[Term] = []
                for each in parts:
                    try:
                        question = asked(engine, meaning.text_of(each))
                    except QuestionRefused:
                        continue
                    terms += [] if question is None else question.terms
                totals.append(engine.totals(terms))
        assert totals[0] == [sum(pair) for pair in zip(*totals[1:], strict=True)]

    def test_people_are_counted_not_rows(self) -> None:
        """However many rows a person has."""
        rows = [row(1, age=60, week=1), row(1, age=61, week=2), row(2, age=30, week=1)]
        rows += [row(None, age=60, week=1)] * 5
        with self.engine(rows, "pid") as engine:
            answers(
                engine,
                ("age >= 60", 1),
                ("age >= 60 and week = 1", 1),
                ("age = 60 and week = 2", 0),  # no single row has both
                ("true", 2),
                ("select count(distinct pid) from visits where age < 100", 2),
                ("select count(*) from visits", 3),
            )
        with self.engine(rows, EACH_ROW) as engine:
            answers(engine, ("age >= 60", 7), ("select count(*) from visits where week = 1", 7))

    def test_rows_and_sums_are_bounded_for_each_person(self) -> None:
        """Nobody adds more than was declared."""
        rows = [row(1, age=100, cost=90.0)] * 5 + [row(2, age=7, cost=-49.0)] * 2
        rows += [row(3, cost=None)] * 2
        with self.engine(rows, "pid") as engine:
            answers(
                engine,
                ("count(*)", 3 + 2 + 2),
                ("sum(age)", 200 + 14),
                ("sum(cost)", 150 + Fraction("-80.5")),
                ("sum(cost) filter (where age > 7)", 150),
                ("sum(fee)", 0),  # nobody has a value, so nobody adds the least total
            )

    def test_sums_do_not_overflow(self) -> None:
        """However wide a column is."""
        rows = [row(n // 3, huge=2**63 - 1, week=1, town="Ghent") for n in range(30)]
        rows += [row(n // 3, huge=-(2**63), week=2, town="Ghent") for n in range(90, 105)]
        with self.engine(rows, "pid") as engine:
            answers(
                engine,
                ("sum(huge)", (10 - 5) * 2**62),
                ("1000000 * sum(huge) - count(true)", 5_000_000 * 2**62 - 15),
            )
        with self.engine(rows, EACH_ROW) as engine:
            answers(
                engine,
                ("sum(huge)", (30 - 15) * 2**62),
                ("sum(huge) filter (where week = 2)", -15 * 2**62),
            )
            text = "sum(huge) filter (where week = :week)"
            if asked(engine, text, week=1) is not None:
                several = [parse(text, engine.schema, {"week": week}) for week in range(100)]
                assert engine.values(several) == [0, 30 * 2**62, -15 * 2**62] + [0] * 97

    def test_like_means_the_same_everywhere(self) -> None:
        """By code point and without an escape character."""
        rows = [row(n, note=note) for n, note in enumerate([*NOTES, "!a", "!!", "!%", None])]
        with self.engine(rows, EACH_ROW) as engine:
            if "patterns" in engine.cannot:
                pytest.skip("the engine says that it cannot do this")
            several = [parse("note like :p", engine.schema, {"p": each}) for each in PATTERNS]
            notes = [str(each["note"]) for each in rows if each["note"] is not None]
            expected = [sum(meaning.matches(note, each) for note in notes) for each in PATTERNS]
            assert engine.values(several) == expected

    def test_values_far_outside_compare_as_numbers_do(self) -> None:
        """However large a number in a question is."""
        greatest = 1.7976931348623157e308
        more = {"cost": 3.0, "fee": 2.0, "age": 7}
        days = {"day": date(2026, 1, 1), "at": datetime(2026, 1, 1)}
        pairs = [(2**63 - 1, greatest), (-(2**63), -greatest), (0, 0.0)]
        rows = [row(n, big=big, raw=raw, **more, **days) for n, (big, raw) in enumerate(pairs)]
        rows.append(row(3))
        with self.engine(rows, "pid") as engine:
            answers(engine, *FAR)

    def test_columns_of_different_grids_compare_as_numbers(self) -> None:
        """2 is less than 2.75, whatever the codes are."""
        pairs = [(2**62, 2.0), (-(2**63), 2.0), (2, 2.0), (3, 2.75), (2, None), (2**63 - 1, 9.75)]
        rows = [row(n, big=big, fee=fee, cost=fee) for n, (big, fee) in enumerate(pairs)]
        with self.engine(rows, EACH_ROW) as engine:
            answers(
                engine,
                ("big <= fee", 2),
                ("big < fee", 1),
                ("big = fee", 1),
                ("fee < big", 3),
                ("fee = cost and big >= cost", 4),
            )

    # Many questions at once ----------------------------------------------------------------

    @pytest.mark.parametrize("text", GROUPED)
    @pytest.mark.parametrize("person", ["pid", EACH_ROW])
    def test_group_by_is_every_declared_cell_and_nothing_else(
        self, text: str, person: Person
    ) -> None:
        """Including cells without anybody."""
        if "distinct" in text and person is EACH_ROW:
            text = text.replace("distinct pid", "*")
        rows: list[RawRow] = []
        towns = ["Ghent", "Bruges", "Łódź", "elsewhere", None]
        for n in range(70):
            sums = {"cost": n * 1.5 - 99, "huge": (-1) ** n * 2**62}
            more = {"age": n % 9, "smoker": n % 3 == 0, **sums}
            rows.append(row(n % 37, week=(n * n) % 80 or None, town=towns[n % 5], **more))
        rows += [row(7, week=3, age=9, cost=1.0, huge=5, town="Ghent", smoker=True)] * 70
        homes = meaning.households(rows, person)
        with self.engine(rows, person, CELLS) as engine:
            batch = parse_batch(text, engine.schema)
            try:
                refuse_beyond(engine.cannot, batch.questions[0], engine.schema)
            except QuestionRefused:
                pytest.skip("the engine says that it cannot do this")
            found = engine.values(batch.questions)
            for cell, question, steps in zip(batch.cells, batch.questions, found, strict=True):
                expected = meaning.answer([_cell_part(text, batch.columns, cell)], homes)
                assert steps * question.grid == expected
            assert engine.cell_values(batch).tolist() == found
        declared = {"week": range(70), "smoker": (0, 1), "town": ("Ghent", "Bruges", "Łódź")}
        assert batch.cells == tuple(product(*(declared[name] for name in batch.columns)))

    @pytest.mark.parametrize("text", WEIGHTED)
    @pytest.mark.parametrize("person", ["pid", EACH_ROW])
    def test_all_cells_at_once_are_answered_like_single_questions(
        self, text: str, person: Person
    ) -> None:
        """Whatever their weights, and however wide the sums."""
        rows = [
            row(
                n % 17, week=n % 5, smoker=(None, True, False)[n % 3], age=n % 9, huge=2**63 - 1 - n
            )
            for n in range(200)
        ]
        with self.engine(rows, person) as engine:
            cells = prepare(text, engine.schema).batch()
            try:
                refuse_beyond(engine.cannot, cells[0], engine.schema)
            except QuestionRefused:
                pytest.skip("the engine says that it cannot do this")
            found = engine.cell_values(cells).tolist()
            assert found == [step for cell in cells for step in engine.values([cell])]
            assert any(found)

    def test_many_prepared_questions_are_answered_like_single_ones(self) -> None:
        """Many at once give the same as one at a time."""
        rows = [
            row(n % 50, age=n % 100, week=n % 5, town="Ghent" if n % 2 else "Z", smoker=n % 2 == 0)
            for n in range(300)
        ]
        with self.engine(rows, "pid") as engine:
            for shape in (
                "town = :town and age = :age and week <= 3",
                "smoker and age = :age and week = 1 and town <> :town",
                "count(*) filter (where smoker and age = :age and town <> :town)",
                "sum(age) filter (where week = 2 and age < :age and town <> :town)",
            ):
                if asked(engine, shape, town="Z", age=1) is None:
                    continue
                prepared = prepare(shape, engine.schema)
                several = [
                    prepared.question(town=town, age=age)
                    for town in ("Ghent", "Z", "?")
                    for age in range(99)
                ]
                together, alone = engine.values(several), range(0, len(several), 13)
                assert [together[n] for n in alone] == [
                    engine.values([several[n]])[0] for n in alone
                ]
                assert sum(together) > 0

    def test_more_combinations_than_can_be_listed(self) -> None:
        """Cells of three columns with very many values each."""
        rows = [row(n, age=n % 100, big=n * 10**12, huge=-n) for n in range(3000)]
        with self.engine(rows, EACH_ROW) as engine:
            prepared = prepare("age = :age and big = :big and huge = :huge", engine.schema)
            several = [
                prepared.question(age=n % 100, big=n * 10**12, huge=-n if n % 2 else n)
                for n in range(0, 3000, 7)
            ]
            expected = [int(n % 2 == 1 or n == 0) for n in range(0, 3000, 7)]
            assert engine.values(several) == expected

    @pytest.mark.parametrize("person", ["pid", EACH_ROW])
    def test_wide_numbers_are_distinguished_in_a_batch(self, person: Person) -> None:
        """Doubles could not tell many of these numbers apart."""
        rows = [row(n % 60, big=base + n, week=1) for base in WIDE for n in range(100)]
        rows.append(row(61, week=1))
        with self.engine(rows, person) as engine:
            for shape in ("big = :v", "big = :v and week = 1"):
                prepared = prepare(shape, engine.schema)
                several = [prepared.question(v=base + n) for base in WIDE for n in range(0, 150, 3)]
                assert engine.values(several) == ([1] * 34 + [0] * 16) * len(WIDE)

    def test_nothing_asked_is_nothing_answered(self) -> None:
        """For an empty list the answer is an empty list."""
        with self.engine([row(1)], "pid") as engine:
            assert engine.values([]) == []
            assert engine.totals([]) == []

    # Points --------------------------------------------------------------------------------

    def pointing(self, rows: list[RawRow], person: Person) -> Engine:
        """The engine, if it can give points."""
        engine = self.engine(rows, person)
        if "points" in engine.cannot:
            engine.close()
            pytest.skip("the engine says that it cannot do this")
        return engine

    def test_points_are_bounded_for_each_person(self) -> None:
        """The lexicographically least rows of each person."""
        rows = [row(1, age=age, town="Ghent") for age in (9, 3, 7)]
        rows += [row(2, age=50, town="Bruges"), row(2, age=None, town="Ghent")]
        rows += [row(3, age=60, town="elsewhere"), row(None, age=1, town="Ghent")]
        with self.pointing(rows, "pid") as engine:
            assert points(engine, "age", max_rows=2) == [[3], [7], [50], [60]]
            assert points(engine, "age", "town", max_rows=1) == [[3, 0], [50, 1]]
            assert points(engine, "town", max_rows=9) == [[0]] * 4 + [[1]]
            assert engine.point_counts(["age"]).points.dtype == np.int64
        rows = [row(1, raw=value) for value in (0.5, float("nan"), -2.0)]
        with self.pointing(rows, EACH_ROW) as engine:
            expected = [[rank_of_double(-2.0)], [rank_of_double(0.5)]]
            assert points(engine, "raw", max_rows=1) == expected
        with self.pointing([], "pid") as engine:
            assert engine.point_counts(["age", "town"]).points.shape == (0, 2)

    def test_which_points_of_a_person_count_is_chosen_at_random(self) -> None:
        """Each pair of a person's rows about as often, whatever their order and values."""
        rows = [row(1, age=age) for age in (9, 3, 7, 5)] + [row(2, age=50), row(2, age=None)]
        with self.pointing(rows, "pid") as engine:
            if "random rows" in engine.cannot:
                pytest.skip("the engine says that it cannot")
            coins, seen = InsecureTestCoins(3), Counter[tuple[int, ...]]()
            for _ in range(1200):
                listed = [age for (age,) in points(engine, "age", max_rows=2, coins=coins)]
                assert listed.pop() == 50
                seen[tuple(listed)] += 1
            assert set(seen) == set(combinations((3, 5, 7, 9), 2))
            assert max(seen.values()) < 280  # 200 each; six standard deviations are 78
            every = points(engine, "age", max_rows=9, coins=coins)
            assert every == [[3], [5], [7], [9], [50]]

    def test_points_need_a_public_numbering(self) -> None:
        """Text without declared keys has none."""
        with self.pointing([row(1)], "pid") as engine:
            for columns in (["note"], ["nowhere"], []):
                with pytest.raises(BadParameter, match="columns"):
                    engine.point_counts(columns)
            with pytest.raises(BadParameter, match="max_rows"):
                engine.point_counts(["age"], max_rows=0)

    # Rows by person ------------------------------------------------------------------------

    def test_rows_by_person_are_the_rows_of_the_predicate(self) -> None:
        """Whose they are, columns with what is not there, and tests that are TRUE or not."""
        rows = [row(1, age=3, town="Ghent"), row(2, age=50, town="Bruges"), row(1, age=None)]
        rows += [row(2, age=7, town="elsewhere"), row(None, age=1, town="Ghent")]
        rows += [row(3, age=70, town="Ghent")]
        old, young = Range("age", 50, None), Range("age", None, 60)
        with self.engine(rows, "pid") as engine:
            if "rows by person" in engine.cannot:
                pytest.skip("the engine says that it cannot")
            cases: list[tuple[Predicate, list[Predicate]]] = [(TRUE, [old]), (young, [old, TRUE])]
            for where, asked in cases:
                found = engine.rows_by_person(where, ["age", "town"], asked)
                age, town = found.columns["age"], found.columns["town"]
                told = sorted(
                    zip(
                        np.where(age.there, age.codes, -1).tolist(),
                        np.where(town.there, town.codes, -1).tolist(),
                        found.tests[old].tolist(),
                        strict=True,
                    )
                )
                every = [(-1, -1, False), (3, 0, False), (7, -1, False), (50, 1, True)]
                assert told == ([*every, (70, 0, True)] if where == TRUE else every[1:])
                if len(asked) == 2:
                    assert found.tests[TRUE].all()
                by_age = dict(zip(age.codes.tolist(), found.people.tolist(), strict=True))
                assert by_age[50] == by_age[7] != by_age[3]
            assert len(engine.rows_by_person(Constant(False), ["age"], [TRUE]).people) == 0
            assert len(engine.rows_by_person(TRUE, [], []).people) == 5
        with self.engine([row(1), row(1)], EACH_ROW) as engine:
            assert len(set(engine.rows_by_person(TRUE, [], []).people.tolist())) == 2

    def test_rows_by_person_add_up_to_the_totals(self) -> None:
        """Whatever is asked of each cell, if everybody counts in every cell."""
        coins = InsecureTestCoins(5)
        rows = [
            row(
                coins.below(9),
                age=coins.below(120) if coins.below(9) else None,
                town=("Ghent", "Bruges", "elsewhere", None)[coins.below(4)],
                week=1 + coins.below(3),
            )
            for _ in range(150)
        ]
        where = Range("age", 10, None)
        terms = (People(where), Rows(where, 2), Total("age", where, 20, 150))
        with self.engine(rows, "pid") as engine:
            if "rows by person" in engine.cannot:
                pytest.skip("the engine says that it cannot")
            keys = KeySet(tuple(column_key(engine.schema.column(at)) for at in ("town", "week")))
            found = engine.rows_by_person(TRUE, ["town", "week", "age"], [where])
            for term in terms:
                in_cells = [
                    with_where(term, all_of((where, Range("town", a, a), Range("week", b, b))))
                    for a, b in keys.listed()
                ]
                told = totals_by_cell(found, keys.places(found), keys.cells, term)
                assert told == engine.totals(in_cells)

    # Everything else -----------------------------------------------------------------------

    def test_what_it_cannot_do_is_known_and_refused(self) -> None:
        """It uses the known names of abilities."""
        with self.engine([row(1)], "pid") as engine:
            assert set(engine.cannot) <= set(ABILITIES)
            for ability, text in {
                "rows": "count(*)",
                "sums": "sum(age)",
                "wide sums": "sum(huge)",
                "patterns": "not note like 'a%'",
                "functions": "upper(town) = 'GHENT' or extract(month from day) = 3",
                "conditions": OFTEN.format("count(*) >= 3"),
                "column pairs": "age >= week or smoker",
            }.items():
                if ability in engine.cannot:
                    assert asked(engine, text) is None

    def test_threads_may_ask_at_once(self) -> None:
        """Each gets what it would get alone."""
        rows = [row(n % 40, age=n % 100, week=n % 5, smoker=n % 3 == 0) for n in range(400)]
        with self.engine(rows, "pid") as engine:
            texts = [f"age >= {age} and week = {age % 5} and smoker" for age in range(0, 60, 4)]
            several = [parse(text, engine.schema) for text in texts]
            alone = [engine.values([question]) for question in several]
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(lambda question: engine.values([question]), several))
            assert found == alone

    def test_no_name_is_mistaken_for_another(self) -> None:
        """Whatever a column is called."""
        rows: list[RawRow] = [
            {name: number + n for number, name in enumerate(AWKWARD)} for n in range(2)
        ]
        declared = [Column(name, "integer", keys=tuple(range(99))) for name in AWKWARD]
        toml = write_schema(Schema("visits", EACH_ROW, tuple(declared)))
        for person in (EACH_ROW, "t0"):
            with self.engine(rows, person, toml) as engine:
                for number, name in enumerate(AWKWARD):
                    quoted = '"' + name.replace('"', '""') + '"'
                    answers(engine, (f"{quoted} = {number}", 1))
                    if "points" not in engine.cannot:
                        found = points(engine, name, "c1")[0]
                        assert found == [number, AWKWARD.index("c1")]
                text = "select count(*) from visits group by t"
                batch = parse_batch(text, engine.schema, max_rows=1).questions
                if person is EACH_ROW or "rows" not in engine.cannot:
                    assert engine.values(batch) == [1, 1] + [0] * 97

    def test_an_engine_shows_nothing_of_the_data(self) -> None:
        """Not even how many rows there are."""
        few, many = ([row(n, note="poison") for n in range(size)] for size in (3, 3000))
        with self.engine(few, "pid") as one, self.engine(many, "pid") as two:
            assert repr(one) == repr(two)
            assert str(one) == str(two)
            assert not hasattr(one, "__len__")
            assert one.schema == two.schema

    def test_a_closed_engine_fails_cleanly(self) -> None:
        """Whatever it is asked."""
        engine = self.engine([row(1)], "pid")
        question = parse("true", engine.schema)
        engine.close()
        engine.close()
        with pytest.raises(EngineFailed, match="closed"):
            engine.values([question])
        if "points" not in engine.cannot:
            with pytest.raises(EngineFailed, match="closed"):
                engine.point_counts(["age"])


def _cell_part(text: str, columns: tuple[str, ...], cell: tuple[object, ...]) -> Summand:
    tests = [meaning.compare("age", ">", 3)]
    tests += [meaning.compare(name, "=", value) for name, value in zip(columns, cell, strict=True)]
    where = Pred("", lambda each: meaning.conjunction(test(each) for test in tests))
    if "sum(" in text:
        return meaning.total(Fraction(1), text.split("sum(")[1].split(")")[0], where)
    return (meaning.people if "distinct" in text else meaning.some_rows)(Fraction(1), where)
