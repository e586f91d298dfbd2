from __future__ import annotations

import inspect
import re
from fractions import Fraction
from pathlib import Path

import pytest
from tests.fit import ACCEPT_REAL, chi_square_p

import tacit
from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget, Lease
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    EngineFailed,
    InsecureCoins,
    QuestionRefused,
    StreamMismatch,
)
from tacit.tables import Engine
from tacit.tables.language.prepared import Reader


def test_a_count_is_near_the_truth_and_charged(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    estimate = visits.count("town = 'Bruges'", epsilon="1/2", budget=budget)
    assert abs(estimate.value - 200) <= estimate.error("1e-9")
    assert budget.spent.epsilon * 2 == 1
    with pytest.raises(BudgetExhausted):
        visits.count("town = 'Bruges'", epsilon="3/4", budget=budget)


def test_noise_too_wide_to_draw_is_refused_before_it_is_paid(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    with pytest.raises(BadParameter, match="epsilon = 1e-70 is not allowed: noise would be wider"):
        visits.count("cost >= 0", epsilon="1e-70", budget=budget)
    assert budget.spent.epsilon == 0
    assert visits.count("cost >= 0", epsilon="1e-50", budget=budget).noise_scale == 10**50
    assert budget.spent.epsilon == Fraction("1e-50")


def test_counts_have_laplace_noise_of_the_stated_scale(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    noise = [
        int(visits.count("town = 'Bruges'", epsilon="1/2", budget=budget).value) - 200
        for _ in range(1500)
    ]

    def p(scale):
        from math import exp

        q = exp(-1 / scale)
        cells = range(-8, 9)
        law = [q ** abs(x) * (1 - q) / (1 + q) for x in cells]
        counts = [noise.count(x) for x in cells]
        return chi_square_p([*counts, len(noise) - sum(counts)], [*law, 1 - sum(law)])

    assert p(2) > ACCEPT_REAL
    assert p(4) < ACCEPT_REAL


def test_a_sum_clamps_each_person_and_has_noise_of_her_total(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    estimate = visits.sum("cost", where="town = :town", town="Ypres", epsilon=100, budget=budget)
    assert abs(estimate.value - 10 * 2 * 10.5) <= estimate.error("1e-9")
    assert estimate.noise_scale == 200 / estimate.grid / 100
    with pytest.raises(BadParameter, match="column"):
        visits.sum("costs", epsilon=1, budget=budget)
    with pytest.raises(QuestionRefused):
        visits.sum("town", epsilon=1, budget=budget)


def test_check_says_what_is_promised_and_costs_nothing(visits):
    text = str(visits.check("age >= 60 and town = 'Ghent'"))
    assert "sensitivity  1" in text
    assert "direction    +1" in text
    assert (
        "refused" in str(visits.check("age / 2 > 3")).lower() or visits.check("age / 2 > 3").refusal
    )


def test_test_coins_are_refused_where_a_budget_is_spent(visits):
    with pytest.raises(InsecureCoins):
        Table(visits.engine, coins=InsecureTestCoins(1))


def test_people_is_a_public_number_and_a_person_has_no_default(visits_file):
    with pytest.raises(BadParameter, match="people"):
        tacit.open(visits_file, person="pid", people=0)
    with pytest.raises(BadParameter, match="person"):
        tacit.open(visits_file)
    with tacit.open(visits_file, person="pid", people=300) as table:
        assert table.people == 300


def test_prepared_questions_are_asked_often(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    question = visits.prepare("town = :town")
    assert [stream.ask(question, town=town).above for town in ("Bruges", "Ghent")] == [True, False]


def test_a_recipe_with_values_and_a_call_without_do_not_go_together(visits):
    budget = Budget.in_memory(epsilon=2, covers=["visits"])
    bits = tacit.plan.sparse(questions=100, at_most=2, epsilon=1).best
    values = tacit.plan.numeric_sparse(questions=100, at_most=2, epsilon=1).best
    same = {"threshold": 100, "at_most": 2, "epsilon": 1, "budget": budget}
    with pytest.raises(BadParameter, match="no values: call sparse"):
        visits.numeric_sparse(**same, recipe=bits)
    with pytest.raises(BadParameter, match="call numeric_sparse"):
        visits.sparse(**same, recipe=values)
    assert budget.spent.epsilon == 0
    assert visits.numeric_sparse(**same, recipe=values).ask("true").value is not None
    assert visits.sparse(**same, recipe=bits).ask("true").value is None


def test_the_architecture_page_names_what_exists():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    kinds = {kind.__name__: kind for kind in (Table, Stream, Reader, Engine, Lease)}
    named = re.findall(rf"`({'|'.join(kinds)})\.(\w+)", page)
    assert len(named) >= 4
    assert all(hasattr(kinds[kind], name) for kind, name in named)


def test_each_row_is_called_so_and_is_not_mistaken_for_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("each row,other\n1,2\n")
    schema = '[columns."each row"]\ntype = "integer"\n[columns.other]\ntype = "integer"\n'
    budget = Budget.in_memory(epsilon=1, covers=["t"])

    def opened(person):
        return tacit.open(tmp_path / "t.csv", person=person, schema=schema)

    with opened(tacit.EACH_ROW) as rows, opened("each row") as column, opened("other") as other:
        assert "one person: each row;" in repr(rows)
        assert 'one person: "each row";' in repr(column)
        rows.sparse(threshold=1, at_most=1, epsilon=1, budget=budget, name="s").suspend()
        with pytest.raises(
            StreamMismatch, match='person each row when it was opened, "each row" now'
        ):
            column.resume("s", budget=budget)
        with pytest.raises(StreamMismatch, match="when it was opened, other now"):
            other.resume("s", budget=budget)
        rows.resume("s", budget=budget).close()


def test_a_question_whose_parameters_are_of_any_length_can_be_counted(visits):
    budget = Budget.in_memory(epsilon=100, covers=["visits"])
    estimate = visits.count("town <> :town", town="x" * 170_000, epsilon=50, budget=budget)
    assert abs(estimate.value - 300) < 20


def test_nothing_is_paid_on_a_table_that_was_closed(visits, budget):
    visits.close()
    options = {"epsilon": 1, "budget": budget}
    for pay in (
        lambda: visits.count("age >= 0", **options),
        lambda: visits.sum("cost", **options),
        lambda: visits.histogram("town", max_rows=1, **options),
        lambda: visits.sparse(threshold=1, at_most=1, **options),
        lambda: visits.small_db(tacit.prefixes("age"), rows=5, max_rows=1, **options),
    ):
        with pytest.raises(EngineFailed, match="closed"):
            pay()
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("kind", [Table, Stream, tacit.Histogram, tacit.Release, tacit.Estimate])
def test_every_public_signature_is_complete_and_typed(kind):
    """A question's own parameters have any name; everything else is written out."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        signature = inspect.signature(method)
        assert signature.return_annotation is not signature.empty, name
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.annotation not in (parameter.empty, "Any"), (name, parameter)
            if parameter.kind is parameter.VAR_KEYWORD:
                assert (parameter.name, parameter.annotation) == ("parameters", "object"), name


def test_the_three_streams_take_the_same(visits):
    sparse = inspect.signature(visits.sparse).parameters
    above = inspect.signature(visits.above_threshold).parameters
    numeric = inspect.signature(visits.numeric_sparse).parameters
    shared = [sparse[name] for name in sparse if name not in ("at_most", "least_scale")]
    assert [above[name] for name in above] == shared
    assert [*numeric.values()] == [sparse[name] for name in sparse if name != "numeric"]


def test_the_other_two_streams_pass_on_what_they_are_given(visits, budget):
    given = {
        "threshold": 50,
        "epsilon": 2,
        "budget": budget,
        "analyst": None,
        "kind": "any",
        "sensitivity": 2,
        "grid": "1/2",
        "questions": 70,
        "beta": "1/8",
        "recipe": "book",
    }
    for open_stream, name, numeric in (
        (visits.above_threshold, "first", {"numeric": True}),
        (visits.numeric_sparse, "second", {"at_most": 1}),
    ):
        open_stream(**given, name=name, **numeric).suspend()
        stored = budget.stream(name).binding
        assert stored["kind"] == "any"
        assert (stored["threshold"], stored["sensitivity"], stored["grid"]) == ("50", "2", "1/2")
        assert (stored["planned.questions"], stored["planned.beta"]) == ("70", "1/8")
        assert (stored["recipe.name"], stored["recipe.at_most"]) == ("book", "1")
        assert stored["recipe.value_epsilon"] != "0"
    with pytest.raises(tacit.errors.NotCovered, match="Eve"):
        visits.above_threshold(**{**given, "analyst": "Eve"})


# Where values come from -------------------------------------------------------------------------


def test_values_come_from_the_gap_unless_fresh_ones_are_asked_for(visits):
    budget = Budget.in_memory(epsilon=100, covers=["visits"])
    given = {"threshold": 100, "at_most": 3, "epsilon": 20, "questions": 50, "budget": budget}
    for open_stream, more, source in (
        (visits.numeric_sparse, {}, "gap"),
        (visits.numeric_sparse, {"values": "fresh"}, "fresh"),
        (visits.sparse, {"numeric": True}, "gap"),
        (visits.numeric_sparse, {"recipe": "book"}, "fresh"),  # it has no gap to tell
    ):
        stream = open_stream(**given, **more)
        answer = stream.ask("town = 'Bruges'")
        assert stream.recipe.values == answer.value_from == source
        low, high = answer.interval("1e-12")
        assert low <= 200 <= high
        stream.close()
    with pytest.raises(BadParameter, match="values = fresh is not allowed"):
        visits.sparse(**given, values="fresh")
    with pytest.raises(BadParameter, match="values"):
        visits.numeric_sparse(**given, values="both")


def test_a_recipe_that_tells_gaps_is_not_fresh_and_not_for_bits(visits):
    budget = Budget.in_memory(epsilon=100, covers=["visits"])
    plan = tacit.plan.numeric_sparse(questions=50, at_most=3, epsilon=2)
    given = {"threshold": 100, "at_most": 3, "epsilon": 2, "budget": budget, "recipe": plan.best}
    with pytest.raises(BadParameter, match="it tells values from the gap"):
        visits.numeric_sparse(**given, values="fresh")
    with pytest.raises(BadParameter, match="it brings values"):
        visits.sparse(**given)
    assert budget.spent.epsilon == 0
    fresh = tacit.plan.numeric_sparse(questions=50, at_most=3, epsilon=2, values="fresh").best
    stream = visits.numeric_sparse(**given | {"recipe": fresh})  # a recipe that was chosen counts
    assert stream.ask("town = 'Bruges'").value_from == "fresh"


def test_a_value_from_the_gap_is_recorded_and_resumed_as_it_was(visits, tmp_path):
    budget = Budget.create(tmp_path / "clinic.budget", epsilon=9, covers=["visits"])
    stream = visits.numeric_sparse(threshold=100, at_most=3, epsilon=9, budget=budget, name="gaps")
    told = stream.ask("town = 'Bruges'")
    stream.suspend()
    stored = budget.stream("gaps").binding
    assert stored["recipe.value_shift"] == str(stream.recipe.value_shift)
    assert stored["recipe.value_epsilon"] == "0"
    again = visits.resume("gaps", budget=budget)
    assert again.recipe == stream.recipe
    assert again.ask("town = 'Bruges'") == told
    assert again.ask("town = 'Bruges'").interval("1/3") == told.interval("1/3")
    assert again.tops_left == 2
    assert "95 %), on record since" in str(again.recorded[0].answer)
    budget.close()
