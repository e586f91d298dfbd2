"""What we release ourselves keeps to the contract of releases, and the contract can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.analyst.count import NoisyCount
from tacit.analyst.histogram import NoisyHistogram
from tacit.analyst.question_class import question_class
from tacit.analyst.release import SmallDb, describe
from tacit.analyst.release_plan import ReleaseTask, plan_release
from tacit.analyst.table import Table
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BadParameter, EngineFailed
from tacit.privacy import Cost, Privacy
from tacit.tables.language.prepared import Reader
from tacit.testing.releases import ReleaseContract, WatchedEngine, laplace_law

REACH = 12
HALF = Fraction(1, 2)


def clamped(number, reach=REACH):
    return min(max(int(number), -reach), reach)


class TestCount(ReleaseContract):
    def mechanism(self, schema, epsilon=HALF):
        return NoisyCount(Reader(schema).read("town = :town", {"town": "Ghent"}), epsilon=epsilon)

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, 0), lambda: self.mechanism(schema, "1e-80")]

    def outcome(self, drawn):
        return clamped(drawn.value)

    def law(self, engine):
        mechanism = self.mechanism(engine.schema)
        (count,) = engine.values([mechanism.read.question])
        return laplace_law(count, mechanism.noise.scale, REACH)


class TestSum(TestCount):
    def mechanism(self, schema, epsilon=HALF):
        reader = Reader(schema)
        return NoisyCount(reader.read(reader.sum("age", "town = 'Ghent'"), {}), epsilon=epsilon)

    def outcome(self, drawn):
        return clamped(drawn.value / drawn.grid)

    def test_the_noise_is_that_of_the_total(self, engine):
        assert self.mechanism(engine.schema).noise.scale == 4 / HALF


def one_row_of_each(engine, column, of_person_1):
    """What is counted, by equal chances: person 1 has two rows, and the others one."""
    every = engine.point_counts([column], max_rows=2).rows()[:, 0].tolist()
    if len(every) == len(engine.point_counts([column]).rows()):  # they are not there
        return [np.array(every)]
    return [np.delete(every, every.index(left_out)) for left_out in of_person_1]


def by_equal_chances(laws):
    return {outcome: sum(law[outcome] for law in laws) / len(laws) for outcome in laws[0]}


class TestHistogram(ReleaseContract):
    def mechanism(self, schema, **given):
        names = given.pop("names", ["town"])
        return NoisyHistogram(schema, names, **{"epsilon": 1, "max_rows": 1, **given})

    def wrong(self, schema):
        return [
            lambda: self.mechanism(schema, epsilon="1e-30"),
            lambda: self.mechanism(schema, max_rows=0),
            lambda: self.mechanism(schema, names=["pid"]),
            lambda: self.mechanism(schema, names=[]),
        ]

    def outcome(self, drawn):
        return tuple(clamped(count, 5) for count in drawn.counts)

    def law(self, engine):
        return by_equal_chances(
            [self._law_of(towns) for towns in one_row_of_each(engine, "town", (0, 1))]
        )

    def _law_of(self, towns):
        cells = [laplace_law(int((towns == place).sum()), Fraction(1), 5) for place in (0, 1)]
        return {(a, b): cells[0][a] * cells[1][b] for a, b in product(*cells)}


class TestHistogramOfSeveralRows(TestHistogram):
    def mechanism(self, schema, **given):
        return super().mechanism(schema, **{"max_rows": 2, "epsilon": 2, **given})

    def law(self, engine):
        return self._law_of(engine.point_counts(["town"], max_rows=2).rows()[:, 0])


class TestSmallDb(ReleaseContract):
    ROWS_DRAWN = 2
    DRAWS = 600

    def mechanism(self, schema, epsilon=1, people=3):
        asked = tacit.prefixes("age")
        facts = (
            question_class(asked, schema),
            describe(asked),
            Privacy(epsilon),
            people,
            1,
            schema,
        )
        task = ReleaseTask(*facts)
        return SmallDb(plan_release(task, rows=self.ROWS_DRAWN), schema, asked)

    def wrong(self, schema):
        return [
            lambda: self.mechanism(schema, "1e-13"),
            lambda: self.mechanism(schema, -1),
            lambda: replace(self.mechanism(schema), progress="loudly"),
        ]

    def outcome(self, drawn):
        return tuple(sorted(drawn.codes[:, 0].tolist()))

    def law(self, engine):
        """e^(−(ε/2)·score) over all databases of two rows, the score in people."""
        return by_equal_chances(
            [self._law_of(ages) for ages in one_row_of_each(engine, "age", (3, 2))]
        )

    def _law_of(self, ages):
        m = self.ROWS_DRAWN
        weights = {}
        for rows in combinations_with_replacement(range(4), m):
            below = [
                m * int((ages <= age).sum()) - len(ages) * int((np.array(rows) <= age).sum())
                for age in range(4)
            ]
            weights[rows] = exp(-float(HALF) * max(map(abs, below)) / m)
        total = sum(weights.values())
        return {rows: weight / total for rows, weight in weights.items()}


class TestCertifiedSmallDb(TestSmallDb):
    """The rows have the same law, and beside them there is the certificate."""

    def mechanism(self, schema, epsilon=1, people=3):
        asked = tacit.prefixes("age")
        facts = (
            question_class(asked, schema),
            describe(asked),
            Privacy(epsilon),
            people,
            1,
            schema,
        )
        task = ReleaseTask(*facts)
        plan = plan_release(task, rows=self.ROWS_DRAWN, certificate_epsilon="1/10")
        return SmallDb(plan, schema, asked)


class TestListedSmallDb(ReleaseContract):
    def mechanism(self, schema):
        asked = ["age >= 2", "town = 'Ghent'"]
        task = ReleaseTask(question_class(asked, schema), describe(asked), Privacy(1), 3, 1, schema)
        return SmallDb(plan_release(task, rows=3), schema, asked)

    def outcome(self, drawn):
        return tuple(drawn.answer(question) for question in drawn.asked)


# The suite fails where it should -----------------------------------------------------------------


def failures(kind, folder):
    """The tests of a contract that fail."""
    found = set()
    for name in sorted(dir(kind)):
        if name.startswith("test_"):
            suite, place = kind(), folder / name
            place.mkdir()
            given = {
                "engine": suite.open(place, suite.ROWS),
                "budget": Budget.in_memory(epsilon=10**6, delta="1/2", covers=["people", "others"]),
                "tmp_path": place,
            }
            test = getattr(suite, name)
            wanted = test.__code__.co_varnames[1 : test.__code__.co_argcount]
            try:
                test(**{name: given[name] for name in wanted})
            except pytest.skip.Exception:
                pass
            except (Exception, pytest.fail.Exception):
                found.add(name)
    return found


@dataclass(frozen=True)
class Broken:
    """A count with one thing wrong."""

    sound: NoisyCount
    needs: tuple[str, ...] = ()
    draws: Callable[[Any, Any], Any] | None = None
    text: str = "a count"
    price: Cost | None = None

    @property
    def cost(self):
        return self.price or self.sound.cost

    @property
    def what(self):
        return self.text

    def check(self, schema):
        self.sound.check(schema)

    def draw(self, engine, coins):
        return (self.draws or self.sound.draw)(engine, coins)


def broken(**wrong):
    class Suite(TestCount):
        def mechanism(self, schema, epsilon=HALF):
            sound = super().mechanism(schema, epsilon)
            return Broken(sound, **{name: make(sound) for name, make in wrong.items()})

        def law(self, engine):
            sound = self.mechanism(engine.schema).sound
            (count,) = engine.values([sound.read.question])
            return laplace_law(count, sound.noise.scale, REACH)

    return Suite


def test_a_sound_mechanism_passes(tmp_path):
    assert failures(broken(), tmp_path) == set()


@pytest.mark.parametrize(
    ("wrong", "noticed"),
    [
        (
            {"price": lambda sound: Cost.pure(sound.cost.privacy.epsilon / 2)},
            {"test_neighbours_laws_are_within_its_cost"},
        ),
        (
            {"draws": lambda sound: lambda engine, _: sound.draw(engine, Coins())},
            {"test_it_draws_with_the_coins_that_it_is_given"},
        ),
        (
            {"draws": lambda sound: lambda engine, coins: replace(
                sound.draw(engine, coins), value=Fraction(engine.values([sound.read.question])[0])
            )},
            {"test_it_draws_with_the_coins_that_it_is_given", "test_draws_follow_the_law"},
        ),
        (
            {"draws": lambda sound: lambda _, coins: replace(
                sound.noise.draw(0, coins), value=Fraction(coins.below(3))
            )},
            {
                "test_it_is_paid_for_before_anything_looks_at_the_data",
                "test_draws_follow_the_law",
                "test_a_failure_costs_the_same_and_its_message_is_withheld",
            },
        ),
        ({"text": lambda _: "a\ncount"}, {"test_its_text_is_one_line"}),
    ],
    ids=["too cheap", "other coins", "no noise", "no look", "two lines"],
)  # fmt: skip
def test_a_broken_mechanism_is_noticed(tmp_path, wrong, noticed):
    assert failures(broken(**wrong), tmp_path) == noticed


def test_a_mechanism_that_fails_only_once_it_is_paid_is_noticed(tmp_path):
    class Late(TestCount):
        def mechanism(self, schema, epsilon=HALF):
            return Unchecked(super().mechanism(schema, epsilon))

    assert "test_on_another_table_it_is_refused_at_no_cost_or_works" in failures(Late, tmp_path)


class Unchecked(Broken):
    def check(self, schema):
        pass

    def draw(self, engine, coins):
        assert engine.schema.name == "people"
        return super().draw(engine, coins)


def test_a_table_that_looks_before_it_pays_is_noticed(tmp_path, monkeypatch):
    def release(table, mechanism, *, budget, analyst=None):
        drawn = mechanism.draw(table.engine, table.coins)
        budget.charge(mechanism.cost, table=table.name, what=mechanism.what, analyst=analyst)
        return drawn

    monkeypatch.setattr(Table, "release", release)
    assert "test_it_is_paid_for_before_anything_looks_at_the_data" in failures(TestCount, tmp_path)


# What the table itself refuses -------------------------------------------------------------------


def test_a_mechanism_of_another_table_is_refused_before_it_is_paid(visits, budget, tmp_path):
    """Another schema may bound people otherwise: the noise would be too small."""
    (tmp_path / "more.csv").write_text("pid,town,age,cost\n1,Ghent,3,1.0\n")
    toml = "[columns.pid]\ntype = 'integer'\n[columns.town]\ntype = 'text'\nkeys = ['Ghent']\n"
    with tacit.open(tmp_path / "more.csv", person="pid", name="visits", schema=toml) as other:
        for mechanism in (
            NoisyHistogram(other.schema, ["town"], epsilon=1, max_rows=1),
            NoisyCount(Reader(other.schema).read("town = 'Ghent'", {}), epsilon=1),
        ):
            with pytest.raises(BadParameter, match="'visits' with a schema that is not"):
                visits.release(mechanism, budget=budget)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("missing", ["cost", "what", "needs", "check", "draw"])
def test_what_lacks_a_part_is_no_mechanism(visits, budget, missing):
    sound = NoisyHistogram(visits.schema, ["town"], epsilon=1, max_rows=1)
    parts = {name: getattr(sound, name) for name in ("cost", "what", "needs", "check", "draw")}
    with pytest.raises(BadParameter, match=r"mechanism .*draw\(engine, coins\)"):
        visits.release(type("Part", (), {**parts, missing: None})(), budget=budget)
    assert budget.spent.epsilon == 0


def test_reproducible_coins_pay_for_nothing(visits):
    with pytest.raises(tacit.errors.InsecureCoins):
        Table(visits.engine, coins=InsecureTestCoins(1))


def test_what_a_draw_says_when_it_fails_is_withheld(visits, budget):
    sound = NoisyHistogram(visits.schema, ["town"], epsilon=1, max_rows=1)

    def draw(engine, coins):
        raise LookupError("patient 4711")

    parts = {"cost": sound.cost, "what": "w", "needs": (), "check": sound.check}
    failing = type("Failing", (), {**parts, "draw": staticmethod(draw)})()
    with pytest.raises(EngineFailed, match="drawing the release failed") as raised:
        visits.release(failing, budget=budget)
    assert "4711" not in str(raised.value)
    assert raised.value.__context__ is None
    assert budget.spent.epsilon == 1


class WentThroughTheOnePlace(Exception):
    """Raised in place of paying."""


PAID = {
    "count": lambda table, **paid: table.count("age > 3", **paid),
    "sum": lambda table, **paid: table.sum("cost", **paid),
    "histogram": lambda table, **paid: table.histogram("town", max_rows=1, **paid),
    "small_db": lambda table, **paid: table.small_db(
        tacit.prefixes("age"), rows=5, max_rows=1, **paid
    ),
    "above_threshold": lambda table, **paid: table.above_threshold(threshold=1, **paid),
    "sparse": lambda table, **paid: table.sparse(threshold=1, at_most=2, **paid),
    "numeric_sparse": lambda table, **paid: table.numeric_sparse(threshold=1, at_most=2, **paid),
}


@pytest.mark.parametrize("ask", PAID.values(), ids=PAID)
def test_everything_that_is_paid_for_goes_through_one_place(visits, budget, monkeypatch, ask):
    def stopped(*given, **options):
        raise WentThroughTheOnePlace

    for module in ("paying", "table"):
        monkeypatch.setattr(f"tacit.analyst.{module}.pay_then_look", stopped)
    with pytest.raises(WentThroughTheOnePlace):
        ask(visits, epsilon=1, budget=budget)
    assert budget.spent.epsilon == 0


def test_opening_a_stream_looks_at_no_data_and_costs_its_recipe(visits, budget):
    watched = WatchedEngine(visits.engine, lambda: None)
    stream = Table(watched).numeric_sparse(
        threshold=100, at_most=3, epsilon=2, budget=budget, name="flu"
    )
    assert watched.looks == 0
    assert budget.spent.epsilon == stream.recipe.cost.privacy.epsilon == 2
    assert stream.ask("town = 'Bruges'") is not None
    assert watched.looks == 1
