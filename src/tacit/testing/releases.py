"""The contract of every mechanism that `Table.release` takes, as a pytest class.

::

    from tacit.testing.releases import ReleaseContract

    class TestMine(ReleaseContract):
        def mechanism(self, schema):
            return MyRelease(schema, epsilon="1/2")

The suite opens small tables of its own; ``TOML`` and ``ROWS`` may be replaced.  If ``wrong`` is
defined, it also checks what must be refused.  If ``law`` is defined, it checks the promise itself:
the exact laws on a table and on the same table without one person, and that draws follow the law.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from math import exp, inf
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tacit.analyst.paying import ReleaseMechanism
from tacit.analyst.table import Table
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BudgetExhausted, EngineFailed, QuestionRefused, TacitError
from tacit.numerics.clopper_pearson import clopper_pearson_high, clopper_pearson_low
from tacit.privacy import Privacy
from tacit.tables.engine.engine import Engine
from tacit.tables.opening import load
from tacit.tables.schema.schema import Schema

Probabilities = Mapping[Any, Fraction | float]

PERSON = "pid"
SECRET = "patient 4711 lives in Ghent"
_CHANCE = 1e-9  # the probability of rejecting a true law, if the seeds were not fixed
_ROUNDING = 1e-9  # allowed for laws in floats


def _last_charge(budget: Budget) -> dict[str, Any]:
    return [entry.body for entry in budget.history if entry.kind == "charge"][-1]


class WatchedEngine:
    """An engine that calls ``before`` whenever something looks at the data."""

    cannot: Sequence[str] = ()

    def __init__(self, engine: Engine, before: Callable[[], None]) -> None:
        self._engine = engine
        self._before = before
        self.schema = engine.schema
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        """Any method of the engine, watched."""
        ask = getattr(self._engine, name)

        def asked(*given: Any, **options: Any) -> Any:
            self.looks += 1
            self._before()
            return ask(*given, **options)

        return asked

    def close(self) -> None:
        """Close the engine, which is not a look at the data."""
        self._engine.close()


class ReleaseContract:
    """What `Table.release` relies on.  A subclass defines ``mechanism``."""

    TOML: ClassVar[str] = """
max_rows = 2
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 3]
total = [0, 4]
"""
    ROWS: ClassVar[Sequence[Mapping[str, object]]] = (
        {"pid": 1, "town": "Bruges", "age": 3},
        {"pid": 1, "town": "Ghent", "age": 2},
        {"pid": 2, "town": "Ghent", "age": 1},
        {"pid": 3, "town": "Ghent", "age": 3},
    )

    DRAWS: ClassVar[int] = 1500  # for a law, with fixed seeds

    # What a subclass defines ----------------------------------------------------------------

    def mechanism(self, schema: Schema) -> ReleaseMechanism[Any]:
        """The mechanism for a table with this schema, with an ε at which its noise is visible."""
        raise NotImplementedError

    def wrong(self, schema: Schema) -> Sequence[Callable[[], ReleaseMechanism[Any]]]:
        """Functions that build mechanisms which must be refused, when they are built or checked."""
        return ()

    def outcome(self, drawn: Any) -> Hashable:
        """What was released, as a value that can be compared and counted."""
        return drawn  # type: ignore[no-any-return]

    def law(self, engine: Engine) -> Probabilities | None:
        """The exact law of ``outcome`` on this data, or None if it is not to be checked."""
        return None

    # What the tests use -----------------------------------------------------------------------

    def open(self, folder: Path, rows: Sequence[Mapping[str, object]]) -> Engine:
        """An engine over some rows."""
        file = folder / f"t{len(list(folder.iterdir()))}.csv"
        names = [column.name for column in self._schema().columns]
        with file.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, names)
            writer.writeheader()
            writer.writerows(rows)
        return load(file, person=PERSON, name="people", schema=self.TOML)

    def _schema(self) -> Schema:
        from tacit.tables.schema.schema import read_schema

        return read_schema(self.TOML, name="people", person=PERSON)

    @pytest.fixture
    def engine(self, tmp_path: Path) -> Engine:
        """The engine over ``ROWS``."""
        return self.open(tmp_path, self.ROWS)

    @pytest.fixture
    def budget(self) -> Budget:
        """A budget of more than any mechanism costs."""
        return Budget.in_memory(epsilon=10**6, delta="1/2", covers=["people", "others"])

    # Paying -----------------------------------------------------------------------------------

    def test_it_is_paid_for_before_anything_looks_at_the_data(
        self, engine: Engine, budget: Budget
    ) -> None:
        """The charge is in the history before the engine is asked anything."""
        paid: list[bool] = []

        def look() -> None:
            paid.append(any(entry.body["kind"] == "charge" for entry in budget.history))

        mechanism = self.mechanism(engine.schema)
        Table(WatchedEngine(engine, look)).release(mechanism, budget=budget)
        assert paid, "it never looked at the data"
        assert all(paid), "it looked at the data before it was paid for"

    def test_it_is_charged_exactly_its_cost(self, engine: Engine, budget: Budget) -> None:
        """No more and no less, with its own text."""
        mechanism = self.mechanism(engine.schema)
        other = Budget.in_memory(epsilon=10**6, delta="1/2", covers=["people"])
        other.charge(mechanism.cost, table="people", what=mechanism.what)
        Table(engine).release(mechanism, budget=budget)
        assert budget.spent == other.spent
        ours, theirs = _last_charge(budget), _last_charge(other)
        for field in ("table", "analyst", "what", "cost", "charged"):
            assert ours[field] == theirs[field], field

    def test_an_analyst_pays_from_their_share(self, engine: Engine, budget: Budget) -> None:
        """The history names the analyst, and an analyst without a share is refused."""
        mechanism, table = self.mechanism(engine.schema), Table(engine)
        with pytest.raises(TacitError):
            table.release(mechanism, budget=budget, analyst="Ana")
        assert budget.spent.epsilon == 0
        privacy = mechanism.cost.privacy
        budget.share("Ana", epsilon=privacy.epsilon, delta=privacy.delta)
        table.release(mechanism, budget=budget, analyst="Ana")
        assert _last_charge(budget)["analyst"] == "Ana"

    def test_what_does_not_fit_is_refused_before_anything_looks_at_the_data(
        self, engine: Engine
    ) -> None:
        """A budget that is too small is not changed."""
        mechanism = self.mechanism(engine.schema)
        little = Budget.in_memory(
            epsilon=mechanism.cost.privacy.epsilon / 2, delta="1/2", covers=["people"]
        )
        watched = WatchedEngine(engine, lambda: None)
        with pytest.raises(BudgetExhausted):
            Table(watched).release(mechanism, budget=little)
        assert_untouched(watched, little)

    # Refusing ---------------------------------------------------------------------------------

    def test_what_is_wrong_is_refused_before_it_is_paid_for(
        self, engine: Engine, budget: Budget
    ) -> None:
        """All mechanisms of ``wrong``."""
        watched = WatchedEngine(engine, lambda: None)
        table = Table(watched)
        for build in self.wrong(engine.schema):
            with pytest.raises(TacitError):
                table.release(build(), budget=budget)
        assert_untouched(watched, budget)

    def test_on_another_table_it_is_refused_at_no_cost_or_works(
        self, engine: Engine, budget: Budget, tmp_path: Path
    ) -> None:
        """Once it is paid for, it is drawn."""
        file = tmp_path / "others.csv"
        file.write_text("pid,height\n1,170\n", encoding="utf-8")
        schema = '[columns.pid]\ntype = "integer"\n[columns.height]\ntype = "integer"\n'
        mechanism = self.mechanism(engine.schema)
        with load(file, person=PERSON, name="others", schema=schema) as others:
            try:
                Table(others).release(mechanism, budget=budget)
            except TacitError:
                assert budget.spent.epsilon == 0, "it failed after it was paid for"

    def test_an_engine_that_cannot_is_refused_before_it_is_paid_for(
        self, engine: Engine, budget: Budget
    ) -> None:
        """The mechanism lists in ``needs`` what it needs of the engine."""
        mechanism = self.mechanism(engine.schema)
        for ability in mechanism.needs:
            watched = WatchedEngine(engine, lambda: None)
            watched.cannot = (ability,)
            with pytest.raises(QuestionRefused):
                Table(watched).release(mechanism, budget=budget)
            assert_untouched(watched, budget)

    def test_a_failure_costs_the_same_and_its_message_is_withheld(
        self, engine: Engine, budget: Budget
    ) -> None:
        """Whether an engine fails may depend on the data, and its message may quote them."""

        def fail() -> None:
            raise ValueError(SECRET)

        mechanism = self.mechanism(engine.schema)
        with pytest.raises(EngineFailed) as raised:
            Table(WatchedEngine(engine, fail)).release(mechanism, budget=budget)
        assert SECRET not in str(raised.value)
        assert raised.value.__cause__ is raised.value.__context__ is None
        assert budget.spent.epsilon > 0

    # What it is -------------------------------------------------------------------------------

    def test_it_is_a_value_that_a_draw_does_not_change(self, engine: Engine) -> None:
        """Its cost and its text are the same whatever the data are."""
        mechanism = self.mechanism(engine.schema)
        cost, what, shown = mechanism.cost, mechanism.what, repr(mechanism)
        mechanism.draw(engine, InsecureTestCoins(1))
        assert (mechanism.cost, mechanism.what, repr(mechanism)) == (cost, what, shown)
        again = self.mechanism(engine.schema)
        assert (again.cost, again.what) == (cost, what)
        with pytest.raises((AttributeError, TypeError)):
            mechanism.cost = cost  # type: ignore[misc]

    def test_its_text_is_one_line(self, engine: Engine) -> None:
        """It goes into the history and into error messages."""
        what = self.mechanism(engine.schema).what
        assert what.strip() == what
        assert len(what.splitlines()) == 1

    def test_it_draws_with_the_coins_that_it_is_given(self, engine: Engine) -> None:
        """The same coins give the same release, and other coins another one."""
        mechanism = self.mechanism(engine.schema)

        def drawn(seed: int) -> Hashable:
            return self.outcome(mechanism.draw(engine, InsecureTestCoins(seed)))

        seen = [drawn(seed) for seed in range(60)]
        assert seen[:10] == [drawn(seed) for seed in range(10)], (
            "it has another source of randomness"
        )
        assert len(set(seen)) > 1, "it adds no noise"

    # The promise itself -----------------------------------------------------------------------

    def test_neighbours_laws_are_within_its_cost(self, engine: Engine, tmp_path: Path) -> None:
        """On this table and on the table without one person, for each person."""
        here = self._law(engine)
        privacy = self.mechanism(engine.schema).cost.privacy
        for person in {row[PERSON] for row in self.ROWS}:
            others = [row for row in self.ROWS if row[PERSON] != person]
            with self.open(tmp_path, others) as neighbour:
                there = self._law(neighbour)
            assert excess(here, there, privacy) <= _ROUNDING, "with the person"
            assert excess(there, here, privacy) <= _ROUNDING, "without the person"

    def test_draws_follow_the_law(self, engine: Engine) -> None:
        """With fixed seeds, so that the test always gives the same result."""
        law, mechanism = self._law(engine), self.mechanism(engine.schema)
        coins = InsecureTestCoins(11)
        counted = Counter(self.outcome(mechanism.draw(engine, coins)) for _ in range(self.DRAWS))
        assert set(counted) <= set(law), "something was drawn that has probability 0"
        level = _CHANCE / len(law)
        for outcome, p in law.items():
            hits = counted[outcome]
            low = clopper_pearson_low(hits, self.DRAWS, level)
            high = clopper_pearson_high(hits, self.DRAWS, level)
            assert low <= float(p) <= high, f"{outcome}: {hits} of {self.DRAWS} draws, not {p}"

    def _law(self, engine: Engine) -> Probabilities:
        law = self.law(engine)
        if law is None:
            pytest.skip("this mechanism has no law to compare with")
        assert abs(float(sum(law.values())) - 1) <= _ROUNDING, "the law does not sum to 1"
        return law


def assert_untouched(engine: WatchedEngine, budget: Budget) -> None:
    """Assert that nothing looked at the data and nothing was paid."""
    assert engine.looks == 0
    assert budget.spent.epsilon == 0


def excess(here: Probabilities, there: Probabilities, privacy: Privacy) -> float:
    """By how much the first law exceeds e^ε times the second plus δ; at most 0 if private."""
    factor = exp(privacy.epsilon) if privacy.epsilon < 700 else inf
    over = (float(p) - factor * float(q) for p, q in ((here[x], there.get(x, 0)) for x in here))
    return sum(max(0.0, part) for part in over) - float(privacy.delta)


def laplace_law(value: int, scale: Fraction, reach: int) -> dict[Hashable, float]:
    """The law of a number with discrete Laplace noise, clamped to ± ``reach``."""
    q = exp(-1 / scale)

    def beyond(distance: int) -> float:
        """The probability that the noise goes at least this far to one side."""
        return q**distance / (1 + q) if distance > 0 else 1 - q ** (1 - distance) / (1 + q)

    inner: dict[Hashable, float] = {
        x: q ** abs(x - value) * (1 - q) / (1 + q) for x in range(1 - reach, reach)
    }
    return {**inner, reach: beyond(reach - value), -reach: beyond(reach + value)}
