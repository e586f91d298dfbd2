"""What replay is there for: each of these mistakes is planted, and must be found."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.replay import sessions
from tests.replay.losses import Unpaid
from tests.replay.neighbours import SOURCES, neighbours
from tests.replay.runs import Differs, Door, Session, replay

from tacit.analyst import query, release_plan
from tacit.analyst.count import NoisyCount
from tacit.analyst.covering import Covering
from tacit.analyst.releasing import ReleasingTable
from tacit.analyst.top import NoisyTop
from tacit.book import small_db
from tacit.book.laplace import LaplaceMechanism
from tacit.book.quantile import QuantileMechanism
from tacit.book.small_db import certifying
from tacit.book.sparse_vector import SparseVector
from tacit.book.top import TopMechanism
from tacit.book.watching import Watch, WatchState
from tacit.tables.engine import points as point_counts
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.points import rows_of_each

PAIRS = 12  # of neighbours, on each of which a session is tried
TRIES = 60

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, tuple[Session, type[AssertionError], Plant]] = {}


def planted(session: Session, found_as: type[AssertionError]) -> Callable[[Plant], Plant]:
    def listed(plant: Plant) -> Plant:
        PLANTED[plant.__name__] = session, found_as, plant
        return plant

    return listed


# Too little noise -------------------------------------------------------------------------------


@planted(sessions.count, Unpaid)
def half_the_noise(monkeypatch):
    def draw(self, steps, coins):
        less = copy(self)
        object.__setattr__(less, "scale", self.scale / 2)
        return usual(less, steps, coins)

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.count, Differs)
def a_scale_that_depends_on_data(monkeypatch):
    def draw(self, steps, coins):
        wider = copy(self)
        object.__setattr__(wider, "scale", self.scale * (2 if steps > 2 else 1))
        return usual(wider, steps, coins)

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.top, Differs)
def one_noise_for_two_values(monkeypatch):
    def noisy(self, values, coins):
        noise = coins.laplace(self.plan.noise_scale)
        return [
            replace(each, value=Fraction(v + noise))
            for v, each in zip(values, usual(self, values, coins), strict=True)
        ]

    usual = NoisyTop._noisy
    monkeypatch.setattr(NoisyTop, "_noisy", noisy)


@planted(sessions.count, Differs)
def off_the_grid(monkeypatch):
    def draw(self, steps, coins):
        return replace(usual(self, steps, coins), value=steps / 2 + coins.laplace(self.scale))

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.top, Unpaid)
def too_sharp_a_pick(monkeypatch):
    usual = vars(TopMechanism)["rate"].fget
    monkeypatch.setattr(TopMechanism, "rate", property(lambda self: 2 * usual(self)))


@planted(sessions.query, Unpaid)
def too_sharp_a_quantile(monkeypatch):
    usual = vars(QuantileMechanism)["rate"].fget
    monkeypatch.setattr(QuantileMechanism, "rate", property(lambda self: 4 * usual(self)))


@planted(sessions.small_db, Unpaid)
def small_db_for_one_row_of_each(monkeypatch):
    def checked(*, rows_per_person=1, **parameters):
        return usual(**parameters)

    usual = small_db.check_parameters
    monkeypatch.setattr(small_db, "check_parameters", checked)


@planted(sessions.small_db, Unpaid)
def a_certificate_for_one_row_of_each(monkeypatch):
    def measuring(*given, rows_per_person, **parameters):
        return certifying(*given, **parameters)

    monkeypatch.setattr(release_plan, "certifying", measuring)


# Whose rows count -------------------------------------------------------------------------------


@planted(sessions.histogram, Unpaid)
def rows_chosen_among_all_people(monkeypatch):
    def chosen(people, *rest):
        return rows_of_each(np.zeros_like(people), *rest)

    monkeypatch.setattr(point_counts, "rows_of_each", chosen)


@planted(sessions.ranges, Unpaid)
def max_rows_not_applied(monkeypatch):
    def chosen(people, columns, max_rows, coins):
        return rows_of_each(people, columns, 10**6, coins)

    monkeypatch.setattr(point_counts, "rows_of_each", chosen)


@planted(sessions.query, Unpaid)
def max_cells_not_applied(monkeypatch):
    monkeypatch.setattr(query, "in_chosen_cells", lambda people, cells, most, coins: cells >= 0)


@planted(sessions.count, Unpaid)
def a_value_read_by_other_rows(monkeypatch):
    """As DuckDB read NaN by the statistics of the whole file."""

    def values(self, questions):
        found = usual(self, questions)
        rows = self.point_counts(["age"], max_rows=9).counts.sum()
        return [each + 5 for each in found] if rows % 2 else found

    usual = BitmapEngine.values
    monkeypatch.setattr(BitmapEngine, "values", values)


# What is called, and what leaves ----------------------------------------------------------------


@planted(sessions.query, AssertionError)
def a_call_more_where_somebody_is(monkeypatch):
    def noisy(values, scale, coins):
        found = usual(values, scale, coins)
        return usual(values, scale, coins) if values[0] else found

    usual = query._noisy
    monkeypatch.setattr(query, "_noisy", noisy)


@planted(sessions.count, Differs)
def no_noise_at_all(monkeypatch):
    def draw(self, steps, coins):
        return replace(usual(self, steps, coins), value=steps * self.grid)

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.count, Differs)
def an_error_raised_on_a_value(monkeypatch):
    def values(self, questions):
        found = usual(self, questions)
        return [1 // (each != 3) * each for each in found]

    usual = BitmapEngine.values
    monkeypatch.setattr(BitmapEngine, "values", values)


@planted(sessions.count, Differs)
def a_repr_that_shows_how_many(monkeypatch):
    def shown(self):
        return f"<{self.name}: {self.engine.point_counts(['age'], max_rows=9).counts.sum()} rows>"

    monkeypatch.setattr(ReleasingTable, "__repr__", shown)


@planted(sessions.count, Differs)
def a_warning_about_few_people(monkeypatch):
    def draw(self, steps, coins):
        if steps < 2:
            warnings.warn("too few people", stacklevel=1)
        return usual(self, steps, coins)

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.count, Differs)
def a_log_with_a_value(monkeypatch):
    def draw(self, steps, coins):
        logging.getLogger("tacit").debug("answering with %d", steps)
        return usual(self, steps, coins)

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


@planted(sessions.count, Differs)
def a_record_as_long_as_the_value(monkeypatch):
    def draw(self, steps, coins):
        seen.append(steps)
        return usual(self, steps, coins)

    def write(self, released):
        return {**kept(self, released), "room": " " * (1000 * seen.pop())}

    seen: list[int] = []
    usual, kept = LaplaceMechanism.draw, NoisyCount.write_release
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)
    monkeypatch.setattr(NoisyCount, "write_release", write)


@planted(sessions.count, Differs)
def asked_twice_where_nobody_is(monkeypatch):
    def draw(self, steps, coins):
        return (
            usual(self, steps, coins) if steps else usual(self, 0, coins) and usual(self, 0, coins)
        )

    usual = LaplaceMechanism.draw
    monkeypatch.setattr(LaplaceMechanism, "draw", draw)


# Streams ----------------------------------------------------------------------------------------


def both_ways(door: Door) -> None:
    with sessions._stream(door, "sparse", at_most=8) as stream:
        sessions._ask(door, stream, sessions.RISING, 25, below=True)


@planted(both_ways, Unpaid)
def direction_ignored(monkeypatch):
    monkeypatch.setattr(Covering, "steps_each", lambda self, read: 1)


@planted(sessions.general, Unpaid)
def sensitivity_ignored(monkeypatch):
    def steps_each(self, read):
        return 10 * usual(self, read)

    usual = Covering.steps_each
    monkeypatch.setattr(Covering, "steps_each", steps_each)


@planted(sessions.sparse, Unpaid)
def bits_with_half_the_noise(monkeypatch):
    def noise(self):
        return self.recipe.family.on_grid(self._steps(self.recipe.question_scale) / 3)

    monkeypatch.setattr(SparseVector, "_question_noise", property(noise))


@planted(sessions.sparse, Unpaid)
def a_new_rho_after_each_top(monkeypatch):
    def after_top(self, state, coins):
        return self._fresh(coins, state.tops + self.price)

    monkeypatch.setattr(SparseVector, "after_top", after_top)


@planted(sessions.sparse, Unpaid)
def no_rho(monkeypatch):
    start = SparseVector.start
    monkeypatch.setattr(
        SparseVector, "start", lambda self, coins: replace(start(self, coins), offset=0)
    )


@planted(sessions.sparse, Differs)
def a_gap_with_a_bottom(monkeypatch):
    def step_of(self, state, steps, coins, **options):
        answer, after = usual(self, state, steps, coins, **options)
        return (answer if answer.above else replace(answer, gap=Fraction(steps))), after

    usual = SparseVector.step_of
    monkeypatch.setattr(SparseVector, "step_of", step_of)


@planted(sessions.sparse, AssertionError)
def exact_after_the_first_top(monkeypatch):
    def step_of(self, state, steps, coins, **options):
        answer, after = usual(self, state, steps, coins, **options)
        return (answer if not state.tops else replace(answer, above=steps >= 3)), after

    usual = SparseVector.step_of
    monkeypatch.setattr(SparseVector, "step_of", step_of)


@planted(sessions.watched, Unpaid)
def one_rho_for_both_sides(monkeypatch):
    def start(self, coins):
        offset = self.mechanism.start(coins).offset
        return WatchState(offset, offset)

    monkeypatch.setattr(Watch, "start", start)


# And all are found --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables():
    """Neighbours that are opened once, and with whose tables many sessions are run."""
    pairs = [neighbours(Random(seed)) for seed in range(PAIRS)]
    held: dict[int, Any] = {}
    with ExitStack() as stack:

        @contextmanager
        def opened(rows: Any, folder: Any) -> Iterator[Any]:
            if id(rows) not in held:
                held[id(rows)] = stack.enter_context(SOURCES["arrow"](rows, folder))
            yield held[id(rows)]

        yield pairs, opened


def tried(session: Session, tables: Any, folder: Any, tries: int = TRIES) -> None:
    pairs, opened = tables
    for seed in range(tries):
        replay(session, pairs[seed % PAIRS], opened, folder / str(seed), seed)


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name, tables, monkeypatch, tmp_path):
    session, found_as, plant = PLANTED[name]
    plant(monkeypatch)
    with pytest.raises(found_as):
        tried(session, tables, tmp_path)


@pytest.mark.parametrize("name", ["count", "query", "histogram", "sparse", "watched"])
def test_nothing_is_found_where_nothing_is_planted(name, tables, tmp_path):
    tried(getattr(sessions, name), tables, tmp_path, tries=4)
