"""What a stream can be resumed with: what its promise rests on, and no more than that."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from tests.analyst.conftest import SCHEMA

import tacit
from tacit.analyst.binding import binding_of
from tacit.analyst.task import planned_for
from tacit.book.half_gap import half_gap
from tacit.book.recipes import spend
from tacit.budget import Budget
from tacit.errors import BadParameter, StreamMismatch
from tacit.privacy import Cost, Privacy
from tacit.tables.schema.schema import EACH_ROW, Column, Schema

BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"

MORE = (
    SCHEMA.replace('["Bruges", "Ghent", "Ypres"]', '["Aalst", "Ypres", "Ghent", "Bruges"]')
    .replace("bounds = [0, 120]", "bounds = [0, 120]\nkeys = {from = 0, to = 9}")
    .replace("[columns.town]", '[columns.smoker]\ntype = "boolean"\n[columns.town]')
)


@pytest.fixture
def opened(visits_file):
    """The table under another schema; column smoker is there, and empty."""
    lines = visits_file.read_text().splitlines()
    rows = [f"{lines[0]},smoker,born", *(f"{line},," for line in lines[1:])]
    visits_file.write_text("\n".join(rows) + "\n")

    def table(schema=SCHEMA, **options):
        return tacit.open(visits_file, **{"person": "pid", "schema": schema, **options})

    return table


@pytest.fixture
def suspended(opened, budget, calm):
    """A stream "flu" that has answered for each town."""

    def left(schema=SCHEMA, **options):
        options = {"threshold": 50, "at_most": 5, **calm, **options}
        with opened(schema) as table, table.sparse(budget=budget, name="flu", **options) as stream:
            return list(stream.ask_all(BY_TOWN))

    return left


def test_columns_and_keys_may_be_added_and_reordered(opened, suspended, budget):
    bruges, ghent, ypres = suspended()
    assert [bruges.above, ghent.above, ypres.above] == [True, True, False]
    with opened(MORE) as more, more.resume("flu", budget=budget) as stream:
        again = list(stream.ask_all(BY_TOWN))  # Aalst, Ypres, Ghent, Bruges
        assert [bool(answer.recorded) for answer in again] == [False, False, True, True]
        assert (again[2], again[3]) == (ghent, bruges)
        assert stream.tops_left == 3
        assert not stream.ask("smoker")
    with opened() as table:  # and back
        table.resume("flu", budget=budget).suspend()
    budget.verify()


CHANGES = {
    "bounds": ("[0, 120]", "[0, 150]", "column age: bounds [0, 120] when it was opened, [0, 150]"),
    "no bounds": ("bounds = [0, 120]", "", "column age: bounds [0, 120] when it was opened, not d"),
    "grid": ('"0.5"', '"0.25"', "column cost: grid 1/2 when it was opened, 1/4 now"),
    "total": ("[0, 200]", "[0, 300.5]", "column cost: total [0, 200] when it was opened, [0, 300."),
    "no total": (
        "total = [0, 200]",
        "",
        "column cost: total [0, 200] when it was opened, not decl",
    ),
    "type": (
        'age]\ntype = "integer"',
        'age]\ntype = "real"\ngrid = 1',
        "column age: type integer when it was opened, real now",
    ),
    "person's type": ('pid]\ntype = "integer"', 'pid]\ntype = "text"', "column pid: type integer"),
    "removed": (
        '[columns.town]\ntype = "text"\nkeys = ["Bruges", "Ghent", "Ypres"]\n',
        "",
        "column town: declared when it was opened, not declared now",
    ),
    "max_rows": ("[columns.pid]", "max_rows = 3\n[columns.pid]", "max_rows not declared when it"),
}


@pytest.mark.parametrize(("old", "new", "said"), CHANGES.values(), ids=CHANGES)
def test_what_the_promise_rests_on_is_named_if_it_differs(
    opened, suspended, budget, old, new, said
):
    suspended()
    assert old in SCHEMA
    with opened(SCHEMA.replace(old, new, 1)) as other:
        with pytest.raises(StreamMismatch) as raised:
            other.resume("flu", budget=budget)
        assert said in str(raised.value)
        assert str(raised.value).count("when it was opened") == 1  # and nothing else differs
    with opened() as table:
        assert table.resume("flu", budget=budget).tops_left == 3


def test_every_difference_is_told(opened, suspended, budget):
    suspended("max_rows = 3\n" + SCHEMA)
    other = SCHEMA.replace("[0, 120]", "[0, 150]").replace('"0.5"', '"0.25"')
    with opened("max_rows = 4\n" + other) as table:
        with pytest.raises(StreamMismatch) as raised:
            table.resume("flu", budget=budget)
        assert str(raised.value) == (
            "stream 'flu' cannot be resumed here: max_rows 3 when it was opened, 4 now; column "
            "age: bounds [0, 120] when it was opened, [0, 150] now; column cost: grid 1/2 when it "
            "was opened, 1/4 now"
        )


def test_bounds_are_told_as_a_schema_writes_them(opened, suspended, budget):
    born = '{}[columns.born]\ntype = "date"\nbounds = ["{}", "2026-01-01"]\n'
    suspended(born.format(SCHEMA, "1900-01-01"))
    with opened(born.format(SCHEMA, "1910-01-01")) as table:
        with pytest.raises(StreamMismatch) as raised:
            table.resume("flu", budget=budget)
        assert "born: bounds ['1900-01-01', '2026-01-01'] when it was opened" in str(raised.value)


def test_another_table_or_person_is_named(opened, suspended, budget):
    suspended()
    for options, said in (
        ({"person": tacit.EACH_ROW}, "person pid when it was opened, each row now"),
        ({"name": "labs"}, "table visits when it was opened, labs now"),
    ):
        with opened(**options) as other, pytest.raises(StreamMismatch, match=said):
            other.resume("flu", budget=budget)


def test_a_table_of_thousands_of_columns_can_have_streams():
    columns = [Column(f"measurement number {n} of the clinic", "integer") for n in range(4_000)]
    schema = Schema("wide", EACH_ROW, tuple(columns))
    mechanism = _mechanism()
    binding = binding_of(schema, mechanism, "counts", planned_for(mechanism, 10, "1/20"))
    budget = Budget.in_memory(epsilon=1, covers=["wide"])
    budget.open_stream(
        "s", cost=Cost.pure(1), table="wide", at_most=2, binding=binding, secret=b"[0, 0]"
    )
    assert dict(budget.stream("s").binding) == binding


# How it is stored -----------------------------------------------------------------------------


def _mechanism(sensitivity=1, grid=1):
    from tacit.book.one_sided import prepare

    recipe = spend("one-sided", 2, Privacy(1), monotone=True)
    return prepare(recipe, threshold=100, sensitivity=sensitivity, grid=grid)


def test_the_stored_form_stays(opened, suspended, budget):
    """Streams are out there that were opened with it."""
    suspended("max_rows = 3\n" + SCHEMA, questions=200, recipe="book", beta="1/10")
    stored = dict(budget.stream("flu").binding)
    assert {key: text for key, text in stored.items() if not key.startswith("recipe.")} == {
        "table": "visits",
        "person": "pid",
        "max_rows": "3",
        "kind": "counts",
        "threshold": "50",
        "sensitivity": "1",
        "grid": "1",
        "column.pid": '{"type":"integer"}',
        "column.town": '{"type":"text"}',
        "column.age": '{"bounds":[0,120],"type":"integer"}',
        "column.cost": '{"bounds":[0,200],"grid":"1/2","total":[0,400],"type":"real"}',
        "planned.questions": "200",
        "planned.beta": "1/10",
        "planned.alpha": "2",
    }


FROM_0_1 = {
    "table": "visits",
    "person": "pid",
    "schema": "58557b94a9aba1b44cb3bef585ba3fd331c390ebd79cb548b47113c82f0cd7a9",
    "kind": "counts",
    "threshold": "100",
    "sensitivity": "1",
    "grid": "1",
    "recipe.name": "one-sided, monotone",
    "recipe.noise": "one-sided",
    "recipe.at_most": "3",
    "recipe.groups": "1",
    "recipe.threshold_epsilon": "3467907/200000",
    "recipe.question_epsilon": "9002093/200000",
    "recipe.value_epsilon": "753/20",
    "recipe.monotone": "True",
    "recipe.shift": "97/625",
    "recipe.epsilon": "100",
    "recipe.delta": "0",
}
TOP_OF_0_1 = {
    "above": "⊤",
    "gap": "99",
    "grid": "1",
    "noise_scale": "20/251",
    "text": "town = 'Bruges'",
    "value": "200",
}


def _opened_with(budget, binding):
    return budget.open_stream(
        "old",
        cost=Cost.pure(100),
        table="visits",
        at_most=3,
        binding=binding,
        secret=b"[0, 0]",
    )


@pytest.fixture
def old(budget):
    """A stream as 0.1 stored it, with its first ⊤."""
    lease = _opened_with(budget, FROM_0_1)
    with lease.turn():
        lease.record_top(
            TOP_OF_0_1,
            question_key="50f325293b99b8183a9e4e0483ba34e90cbe2c2e35eaff6db7771208c6eca541",
            secret=b"[0, 1]",
        )
    lease.suspend()


@pytest.mark.usefixtures("old")
def test_a_stream_of_version_0_1_goes_on(opened, budget):
    with opened() as table, table.resume("old", budget=budget) as stream:
        assert stream.planned is None  # it did not keep one, and none is made up
        answer = stream.ask("town = 'Bruges'")
        assert (answer.value, answer.recorded.as_of, stream.tops_left) == (200, None, 2)
        assert stream.ask("age >= 0").value == pytest.approx(300, abs=20)
        assert stream.accuracy(questions=200).alpha == 1
    assert dict(budget.stream("old").binding) == FROM_0_1
    budget.verify()


@pytest.mark.usefixtures("old")
def test_a_stream_of_version_0_1_needs_the_very_schema(opened, budget):
    with opened(MORE) as table:
        with pytest.raises(StreamMismatch) as raised:
            table.resume("old", budget=budget)
        for said in ("Tacit 0.1", "58557b94a9ab…", f"{table.schema.digest[:12]}…", "schema.digest"):
            assert said in str(raised.value)
    with opened(person=tacit.EACH_ROW) as rows, pytest.raises(StreamMismatch, match="person pid"):
        rows.resume("old", budget=budget)


@pytest.mark.parametrize(
    "change",
    [
        {"column.age": '{"type":"integer","max_cells":3}'},
        {"column.age": "3"},
        {"column.age": "{"},
        {"column.age": '{"bounds":[0,120]}'},
        {"planned.beta": "often"},
        {"planned.gamma": "1"},
        {"recipe.colour": "blue"},
        {"asked about": "horses"},
    ],
)
def test_what_a_later_version_may_bind_to_is_not_passed_over(opened, suspended, budget, change):
    suspended()
    binding = {**budget.stream("flu").binding, **change}
    _opened_with(budget, binding).suspend()
    with opened() as table, pytest.raises(StreamMismatch, match=r"version of Tacit|max_cells 3"):
        table.resume("old", budget=budget)


# What was planned -----------------------------------------------------------------------------


def test_what_was_planned_is_kept_and_said_again(visits, budget):
    stream = visits.sparse(
        threshold=100, at_most=3, epsilon="1/10", questions=200, budget=budget, name="s"
    )
    alpha = half_gap(stream.recipe, 200, "1/20")
    assert (stream.planned.questions, stream.planned.beta) == (200, Fraction(1, 20))
    assert 0 <= stream.planned.alpha - Fraction(alpha) < 1
    assert str(stream.planned) == (
        "with 200 questions, all answers are right with probability 0.95 if none is within "
        f"{stream.planned.alpha} of the threshold"
    )
    stream.suspend()
    with visits.resume("s", budget=budget) as again:
        assert again.planned == stream.planned
        assert again.accuracy(questions=200) == stream.planned
        assert again.accuracy(questions=10_000).alpha > stream.planned.alpha
        assert again.accuracy(questions=200, beta="1/100").alpha > stream.planned.alpha


def test_it_is_kept_for_recipes_by_hand_too(visits, budget):
    recipe = spend("one-sided", 2, Privacy(1), monotone=True)
    with visits.sparse(
        threshold=9, at_most=2, epsilon=1, recipe=recipe, budget=budget, name="s", beta="1/7"
    ) as stream:
        assert (stream.planned.questions, stream.planned.beta) == (10_000, Fraction(1, 7))
    with pytest.raises(BadParameter, match="beta"):
        visits.sparse(threshold=9, at_most=2, epsilon=1, recipe=recipe, budget=budget, beta=2)


def test_its_lengths_are_in_the_questions_own_units():
    one, both = planned_for(_mechanism(), 99, "1/20"), planned_for(_mechanism(6, "1/4"), 99, "1/20")
    alpha = Fraction(half_gap(_mechanism().recipe, 99, "1/20"))
    assert 0 <= one.alpha - alpha < 1
    assert 0 <= both.alpha - 6 * alpha < Fraction(1, 4)
    assert json.loads(json.dumps(both.as_json())) == both.as_json()
    assert planned_for(_mechanism(), 1, "1/20").questions == 3  # more than there may be ⊤


@pytest.mark.parametrize("questions", [0, -1, "1/2", "many", 10**13])
def test_no_number_of_questions(visits, budget, questions):
    recipe = spend("one-sided", 2, Privacy(1), monotone=True)
    left = budget.left
    with pytest.raises(BadParameter, match="questions"):
        visits.sparse(
            threshold=9, at_most=2, epsilon=1, recipe=recipe, budget=budget, questions=questions
        )
    assert budget.left == left
