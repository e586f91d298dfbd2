"""Whoever asks for the wrong release is told, with the errors that the right one's plan states."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.analyst.histogram import prefix_error, sum_error
from tacit.book.coins import InsecureTestCoins
from tacit.errors import Advice

TOWNS = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"
BETA = Fraction(1, 20)


def named(plan, release):
    (found,) = [each for each in plan.alternatives if each.release == release]
    return found


# Errors are those of the plans that they name -----------------------------------------------------


def test_each_error_is_the_one_that_the_other_plan_states(visits):
    ranges = visits.plan_ranges("age", epsilon=1, max_rows=1)
    ages = visits.plan_histogram("age", max_rows=1, epsilon=1)
    prefixes = visits.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1)
    towns = visits.plan_histogram("town", max_rows=1, epsilon=1)
    top = visits.plan_top(2, TOWNS, epsilon=1)
    assert named(ranges, "histogram").error == ages.prefix_error()
    assert named(prefixes, "histogram").error == ages.prefix_error()
    assert named(prefixes, "ranges").error == ranges.worst_error()
    assert {each.release for each in ages.for_ranges} == {"ranges", "small_db"}
    assert named(top, "histogram").error == towns.worst_error()
    query = visits.plan_query(TOWNS, epsilon=1, max_cells=1)
    assert named(query, "histogram").error == towns.worst_error()
    stream = named(top, "stream").error
    made = tacit.plan.sparse(questions=3, at_most=2, epsilon=1)
    assert stream - 1 < made.alpha <= stream
    intervals = visits.plan_small_db(tacit.intervals("age"), max_rows=1, epsilon=1)
    assert named(intervals, "ranges").error == 2 * ranges.worst_error()


def test_a_query_is_compared_with_as_many_cells_as_the_schema_says(visits_file):
    for most in (1, 2, 3):
        schema = visits_file.with_suffix(".toml").read_text()
        with tacit.open(visits_file, person="pid", schema=f"max_cells = {most}\n{schema}") as table:
            query = named(table.plan_top(2, TOWNS, epsilon=1), "query")
            assert f"where {'one cell' if most == 1 else f'{most} cells'} of a person" in str(query)
            worst = table.plan_query(TOWNS, epsilon=1).error("count", BETA / 3)
            assert query.error == worst


def test_every_plan_lists_others_and_the_better_ones_say_so(visits):
    listed = {
        "ranges": visits.plan_ranges("age", epsilon=1, max_rows=1),
        "histogram": visits.plan_histogram("town", "age", max_rows=1, epsilon=1),
        "top": visits.plan_top(1, TOWNS, epsilon=1),
        "query": visits.plan_query(TOWNS, epsilon=1, max_cells=1),
        "synthetic": visits.plan_synthetic(["town", "age", "cost"], epsilon=1, max_rows=1),
        "small_db": visits.plan_small_db(
            ["age < 30", "town = 'Ghent'"], max_rows=1, epsilon=1, rows=3
        ),
        "watched": visits.plan_watched_model(epsilon=1, max_rows=1, questions=50),
    }
    for own, plan in listed.items():
        assert plan.alternatives
        assert own not in [each.release for each in plan.alternatives]
        errors = [each.error for each in plan.alternatives if each.error is not None]
        assert errors
        for each in plan.alternatives:
            assert f"  instead   {each}" in str(plan)
    better = str(listed["small_db"])
    assert "table.count for each of 2 questions: every count ± 7 — it errs less" in better
    # One of three questions by itself is better asked with all of ε.
    assert "errs less" not in str(visits.plan_histogram("town", max_rows=1, epsilon=1))


BOUNDS = ["", "max_rows = 3", "max_cells = 2", "max_rows = 3\nmax_cells = 2", "max_rows = 1"]


def said_to_err_less(plan):
    """The releases that a plan says err less, as it is printed."""
    printed = str(plan)
    return {
        each.release
        for each in plan.alternatives + getattr(plan, "for_ranges", ())
        if f"{each} — it errs less" in printed
    }


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("most", [1, 3])  # of three towns
def test_no_advice_names_what_names_this_as_better(visits_file, bounds, most):
    """A plan and the one that it names compare the same rows and cells of a person."""
    schema = f"{bounds}\n{visits_file.with_suffix('.toml').read_text()}"
    with tacit.open(visits_file, person="pid", schema=schema, people=20_000) as table:
        histogram = table.plan_histogram("town", max_rows=most, epsilon=1)
        found = named(histogram, "query")
        if found.errs_less(histogram.worst_error()):
            assert "max" in bounds  # and so the schema says that it would cut nobody
        elif not bounds:
            assert found.error == histogram.worst_error()
        query = table.plan_query(TOWNS, max_cells=most, epsilon=1)
        for each in query.alternatives:
            if each.answers_all and each.error is not None:
                assert each.error >= query.error("count", BETA / 3)
        rows = "SELECT town, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY town"
        query = table.plan_query(rows, max_cells=2, max_rows=most, epsilon=1)
        assert f"where {2 * most} rows of a person count" in str(named(query, "histogram"))
        plans: dict[str, list[Any]] = {
            "histogram": [table.plan_histogram("age", max_rows=most, epsilon=1)],
            "ranges": [table.plan_ranges("age", max_rows=most, epsilon=1)],
            "small_db": [
                table.plan_small_db(tacit.prefixes("age"), max_rows=most, epsilon=1, rows=rows)
                for rows in (None, 1, 400)
            ],
        }
        for own, several in plans.items():
            for plan in several:
                for other in said_to_err_less(plan) & plans.keys():
                    assert not any(own in said_to_err_less(theirs) for theirs in plans[other])


def test_without_people_nothing_is_said_about_small_databases(visits_file):
    with tacit.open(visits_file, person="pid") as table:
        plan = table.plan_ranges("age", epsilon=1, max_rows=1)
        assert [each.release for each in plan.alternatives] == ["histogram"]


def test_a_watched_model_is_compared_with_sums_of_cells(visits):
    plan = visits.plan_watched_model(epsilon=1, max_rows=1, columns=["town", "age"], questions=1000)
    cells = visits.plan_histogram("town", "age", max_rows=1, epsilon=1)
    assert named(plan, "histogram").error == cells.sums_error(1000) > cells.worst_error()


# The bounds hold, and are not far too wide --------------------------------------------------------


@pytest.mark.parametrize(("scale", "cells"), [(Fraction(1), 30), (Fraction(7, 2), 200)])
def test_no_sum_of_the_first_cells_is_further_off(scale, cells):
    noise = InsecureTestCoins(3).laplaces(scale, 2000 * cells).reshape(2000, cells)
    worst = np.abs(noise.cumsum(axis=1)).max(axis=1)
    bound = prefix_error(scale, cells, "1/5")
    assert (worst > bound).mean() <= 0.2
    assert (worst > bound / 2.5).mean() > 0.2
    assert bound < sum_error(scale, cells, Fraction(1, 5 * cells))


def test_the_errors_of_a_histogram_are_those_of_its_plan(visits, budget):
    plan = visits.plan_histogram("town", "age", epsilon="1/2", max_rows=2)
    drawn = visits.histogram("town", "age", epsilon="1/2", max_rows=2, budget=budget)
    assert len(plan) == len(drawn)
    for beta in ("1/20", "1/3"):
        assert plan.error(beta) == drawn.error(beta)
        assert plan.worst_error(beta) == drawn.worst_error(beta)
    assert plan.sums_error(1) >= drawn.count("age < 60").error()
    assert f"each count ± {plan.error()}, all together ± {plan.worst_error()}" in str(plan)
    with pytest.raises(tacit.TacitError, match="column"):
        visits.plan_histogram("nothing", max_rows=1, epsilon=1)


# A stream that is asked a GROUP BY ----------------------------------------------------------------


def opened(table, budget, **more):
    return table.sparse(
        **{"threshold": 100, "at_most": 3, "epsilon": 1, "budget": budget, "questions": 3} | more
    )


def test_a_group_by_is_told_when_noise_on_all_cells_errs_less(visits, budget):
    with opened(visits, budget) as stream:
        with pytest.warns(Advice, match="for the 3 cells of town") as heard:
            batch = stream.ask_all(TOWNS)
        assert heard[0].filename == __file__
        (warned,) = heard
        assert str(warned.message) == batch.instead
        alpha = stream.accuracy(questions=3).alpha
        assert f"wrong about counts within {alpha} of" in batch.instead
        assert "if nobody is in more than 3 of them" in batch.instead


def test_what_the_schema_says_about_cells_decides(visits_file, budget):
    schema = visits_file.with_suffix(".toml").read_text()
    heard = {}
    for most in (1, 3):
        text = f"max_cells = {most}\n{schema}"
        with tacit.open(visits_file, person="pid", schema=text) as table:
            for tops in (1, 3):
                with opened(table, budget, at_most=tops) as stream:
                    heard[most, tops] = stream.ask_all(TOWNS).instead
    assert "err less if nobody is in more than one of them" in heard[1, 3]
    assert heard[3, 1] is None  # noise for three cells is more than a stream needs for one ⊤
    schema = schema.replace('[columns.pid]\ntype = "integer"\n', "")
    rows = tacit.open(visits_file, person=tacit.EACH_ROW, schema=schema)
    own = tacit.Budget.in_memory(epsilon=1, covers=["visits"])
    with rows, opened(rows, own) as stream:
        cells = "SELECT COUNT(*) FROM visits GROUP BY town"
        assert "nobody is in more than one of them" in stream.ask_all(cells).instead


def test_no_advice_where_it_would_be_wrong(visits, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with opened(visits, budget) as stream:
            assert stream.ask_all(["age < 30", "age < 60"]).instead is None
            # Of two GROUP BY a person may be in twice as many cells.
            older = "SELECT COUNT(DISTINCT pid) FROM visits WHERE age > 9 GROUP BY town"
            assert stream.ask_all([TOWNS, older]).instead is None
