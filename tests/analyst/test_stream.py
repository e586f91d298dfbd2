"""Streams over a table, paid from a budget."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from tests.book import exact_law
from tests.fit import ACCEPT_REAL, chi_square_p

import tacit
from tacit.book import recipes
from tacit.budget import Budget
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    Halted,
    NotCovered,
    QuestionRefused,
    StreamEnded,
    StreamHeld,
    StreamMismatch,
)
from tacit.privacy import Privacy


def test_a_stream_counts_people_against_its_threshold(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    assert stream.ask("town = 'Bruges'")
    assert not stream.ask("town = 'Ghent'")
    assert not stream.ask("town = :town and age < :age", town="Bruges", age=30)
    assert stream.ask("town = :town and age < :age", town="Bruges", age=90)
    assert [str(entry.answer) for entry in stream.history] == ["⊤", "⊥", "⊥", "⊤"]
    assert (stream.tops_left, stream.halted) == (1, False)


def test_numeric_answers_carry_a_value_and_an_error_bar(visits, budget, calm):
    stream = visits.numeric_sparse(threshold=100, at_most=3, budget=budget, **calm)
    answer = stream.ask("town = 'Bruges'")
    assert abs(answer.value - 200) <= answer.error("1e-9")
    assert str(answer).startswith("⊤ ")


def test_a_question_may_bring_its_own_threshold(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    assert not stream.ask("town = 'Ghent'")
    assert stream.ask("town = 'Ghent'", threshold=50)
    assert not stream.ask("town = 'Bruges'", threshold=250)


def test_it_halts_at_the_last_top_and_says_so(visits, budget, calm):
    stream = visits.above_threshold(threshold=100, budget=budget, **calm)
    assert stream.ask("town = 'Bruges'")
    assert stream.halted
    with pytest.raises(Halted, match="halted"):
        stream.ask("age >= 0")
    with pytest.raises(Halted):
        stream.ask_all(["age >= 0"])


def test_the_same_question_after_its_top_is_free_and_never_redrawn(visits, budget):
    stream = visits.numeric_sparse(threshold=100, at_most=5, epsilon=1, budget=budget)
    first = stream.ask("town = 'Bruges'")
    while not first:
        first = stream.ask("town = 'Bruges'")
    used = stream.tops_left
    assert {stream.ask("  town   =  'Bruges'") for _ in range(20)} == {first}
    assert stream.tops_left == used


@pytest.mark.parametrize(
    "again",
    ["age < 90 and town = 'Bruges'", "town = 'Bruges' and age < 90 and town = 'Bruges'"],
)
def test_the_order_of_a_conjunction_makes_no_other_question(visits, budget, calm, again):
    stream = visits.numeric_sparse(threshold=100, at_most=3, budget=budget, name="w", **calm)
    first = stream.ask("town = 'Bruges' and age < 90")
    assert first
    assert stream.ask(again) == first
    assert stream.tops_left == 2
    stream.suspend()
    with visits.resume("w", budget=budget) as resumed:
        assert resumed.ask(again) == first
        assert resumed.tops_left == 2


def test_one_prepared_question_with_many_values_in_one_batch(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    by_town = visits.prepare("town = :town and age < :age")
    pairs = [(by_town, {"town": town}) for town in ("Ypres", "Bruges", "Ghent")]
    answers = stream.ask_all(pairs, age=90)
    assert list(map(bool, answers)) == [False, True, False]
    assert stream.history[1].question == "count(town = 'Bruges' and age <= 89)"


@pytest.mark.parametrize("question", [["age >= 0"], 3, None, ("age >= 0", {}), {"a": 1}])
def test_what_is_no_question_is_refused(visits, budget, calm, question):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    with pytest.raises(QuestionRefused, match="a question must be text, or what"):
        stream.ask(question)
    with pytest.raises(QuestionRefused, match="a question must be text, or what"):
        stream.ask_all([["age >= 0"]])
    assert len(stream.history) == 0


def test_a_parameter_may_have_any_name(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    assert stream.ask("town = :self and age < :question", self="Bruges", question=90)


def test_a_question_prepared_elsewhere_is_refused(visits, visits_file, tmp_path, budget, calm):
    coarser = (tmp_path / "visits.toml").read_text().replace('"0.5"', '"10"')
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    with tacit.open(visits_file, person="pid", schema=coarser) as other:
        with pytest.raises(QuestionRefused, match="another table"):
            stream.ask(other.prepare("cost >= 10"))
        with pytest.raises(QuestionRefused, match="another table"):
            stream.ask_all([other.prepare("cost >= 10")])
    with tacit.open(visits_file, person="pid") as same:
        assert stream.ask(same.prepare("town = 'Bruges'"))


def test_the_history_keeps_every_top_and_forgets_old_answers_below(
    visits, budget, calm, monkeypatch
):
    monkeypatch.setattr("tacit.analyst.history.History.KEEPS", 5)
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    stream.ask("town = 'Bruges'")
    for age in range(40):
        stream.ask("town = 'Ypres' and age >= :age", age=age)
        assert len(stream.history) <= 11
        assert len(stream.history) + stream.history.forgotten == age + 2
    assert [entry.question for entry in stream.history.tops] == ["town = 'Bruges'"]
    assert stream.history[-1].question == "count(town = 'Ypres' and age >= 39)"
    assert "among 41 answers" in repr(stream.history)
    assert f"{stream.history.forgotten} older ⊥ were not kept" in str(stream.history)


def test_opening_is_paid_in_full_and_at_once(visits, calm):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    visits.sparse(threshold=100, at_most=3, epsilon="1/3", budget=budget, questions=100)
    assert budget.left.epsilon == budget.promise.epsilon - Privacy("1/3").epsilon
    with pytest.raises(BudgetExhausted):
        visits.sparse(threshold=100, at_most=3, epsilon="3/4", budget=budget, questions=100)
    with pytest.raises(NotCovered):
        visits.sparse(
            threshold=1, at_most=1, epsilon="1/9", budget=Budget.in_memory(epsilon=1, covers=["x"])
        )


def test_what_the_noise_does_not_cover_is_refused(visits, budget, calm):
    counts = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    with pytest.raises(QuestionRefused, match="kind='any'"):
        counts.ask("count(age < 3) - count(age > 3)")
    with pytest.raises(QuestionRefused, match="sensitivity"):
        counts.ask("2 * count(age < 3)")
    with pytest.raises(QuestionRefused, match="grid"):
        counts.ask("0.5 * count(age < 3)")
    anything = visits.sparse(
        threshold=100, at_most=3, budget=budget, kind="any", sensitivity=2, grid="1/2", **calm
    )
    assert anything.ask("1.5 * count(town = 'Bruges') - count(town = 'Ghent')")
    assert not anything.ask("count(town = 'Ghent') - count(town = 'Bruges')")
    assert len(counts.history) == 0


def test_a_monotone_recipe_is_refused_for_questions_of_any_kind(visits, budget):
    monotone = recipes.spend("one-sided", 2, Privacy(1), monotone=True)
    with pytest.raises(BadParameter, match="monotone"):
        visits.sparse(threshold=1, at_most=2, epsilon=1, budget=budget, kind="any", recipe=monotone)
    with pytest.raises(BadParameter, match="costs more"):
        visits.sparse(threshold=1, at_most=2, epsilon="1/2", budget=budget, recipe=monotone)


def test_the_book_s_recipe_on_request(visits, budget):
    stream = visits.sparse(threshold=9, at_most=4, epsilon=1, budget=budget, recipe="book")
    assert stream.recipe == recipes.book(4, Privacy(1))
    assert visits.sparse(threshold=9, at_most=4, epsilon=1, budget=budget).recipe.monotone


# ask_all ----------------------------------------------------------------------------------------


def test_a_group_by_is_asked_cell_by_cell_in_declared_order(visits, budget, calm):
    stream = visits.sparse(threshold=50, at_most=3, budget=budget, **calm)
    answers = stream.ask_all("SELECT town, COUNT(DISTINCT pid) FROM visits GROUP BY town")
    assert [answer.above for answer in answers] == [True, True, False]
    assert "town = 'Ypres'" in stream.history[2].question


def test_leaving_early_spends_nothing_further(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=1, budget=budget, **calm)
    questions = ["town = 'Ypres'", "town = 'Ghent'", "town = 'Bruges'", "age >= 0"]
    for answer in stream.ask_all(questions):
        assert not answer
        break
    assert stream.tops_left == 1
    assert stream.unanswered == tuple(questions[1:])
    assert [bool(answer) for answer in stream.ask_all(questions)] == [False, False, True]
    assert stream.halted
    assert stream.unanswered == ("age >= 0",)


def test_one_bad_question_in_a_list_stops_it_before_the_first_coin(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=1, budget=budget, **calm)
    with pytest.raises(QuestionRefused):
        stream.ask_all(["age > 1", "agee > 1"])
    assert len(stream.history) == 0


def test_other_questions_in_the_middle_of_a_list_are_accounted_for(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=2, budget=budget, **calm)
    seen = []
    for answer in stream.ask_all(["town = 'Ghent'", "town = 'Bruges'", "age >= 0", "age >= 1"]):
        seen.append(answer.above)
        if len(seen) == 1:
            assert stream.ask("town = 'Bruges'")  # moves the stream on under the list
    assert seen == [False, True, True]  # the second is the recorded answer, shown again
    assert (stream.halted, stream.unanswered) == (True, ("age >= 1",))


def test_a_list_ends_with_its_stream(visits, budget, calm):
    stream = visits.sparse(threshold=250, at_most=1, budget=budget, **calm)
    answers = stream.ask_all(["age < 5", "age < 6", "age < 7"])
    assert not next(answers)
    stream.suspend()
    with pytest.raises(StreamEnded):
        next(answers)
    assert len(stream.unanswered) == 2


@pytest.mark.parametrize("together", [False, True])
def test_answers_follow_the_exact_law_however_they_are_asked(visits, together):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    recipe = recipes.spend("one-sided", 2, Privacy(1), monotone=True)
    questions = ["town = 'Ypres'", "age < 4", "age < 5", "age < 3"]  # 10, 12, 15 and 9 people
    law = exact_law.pattern_law(recipe, [10, 12, 15, 9], 12)
    counts: Counter[tuple[bool, ...]] = Counter()
    for _ in range(700):
        stream = visits.sparse(threshold=12, at_most=2, epsilon=1, budget=budget, recipe=recipe)
        if together:
            pattern = tuple(answer.above for answer in stream.ask_all(questions))
        else:
            pattern = ()
            for question in questions:
                pattern += (stream.ask(question).above,)
                if stream.halted:
                    break
        counts[pattern] += 1
        stream.close()
    assert set(counts) <= set(law)
    observed = [counts[pattern] for pattern in law]
    assert chi_square_p(observed, list(law.values())) > ACCEPT_REAL
    wrong = exact_law.pattern_law(recipe, [10, 12, 15, 9], 15)
    assert chi_square_p(observed, list(wrong.values())) < ACCEPT_REAL


# Suspending, resuming, crashing -----------------------------------------------------------------


def test_leaving_with_suspends_and_resume_goes_on(visits, budget, calm):
    with visits.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm) as stream:
        assert stream.ask("town = 'Bruges'")
    left = budget.left
    with pytest.raises(StreamEnded):
        stream.ask("age >= 0")
    again = visits.resume("flu", budget=budget)
    assert budget.left == left
    assert again.tops_left == 2
    assert [entry.question for entry in again.recorded] == ["town = 'Bruges'"]
    assert again.ask("town = 'Bruges'")  # from the record
    assert again.tops_left == 2
    assert again.ask("age >= 0")
    assert again.tops_left == 1


def test_a_stream_that_is_simply_forgotten_loses_nothing(visits, budget, calm):
    visits.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm)
    gc.collect()
    assert visits.resume("flu", budget=budget).tops_left == 3


def test_only_one_holder(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm)
    with pytest.raises(StreamHeld):
        visits.resume("flu", budget=budget)
    stream.suspend()
    visits.resume("flu", budget=budget)


def test_a_closed_or_halted_stream_stays_so(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm)
    left = budget.left
    stream.close()
    assert budget.left == left
    with pytest.raises(StreamEnded):
        visits.resume("flu", budget=budget)
    halted = visits.sparse(threshold=100, at_most=1, budget=budget, name="cough", **calm)
    assert halted.ask("town = 'Bruges'")
    with pytest.raises(StreamEnded):
        visits.resume("cough", budget=budget)


def test_resume_binds_to_the_table(visits_file, budget, calm):
    with tacit.open(visits_file, person="pid") as visits:
        visits.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm).suspend()
    with (
        tacit.open(visits_file, person=tacit.EACH_ROW) as rows,
        pytest.raises(StreamMismatch, match="person"),
    ):
        rows.resume("flu", budget=budget)
    other = (visits_file.parent / "visits.toml").read_text().replace("120", "130")
    with (
        tacit.open(visits_file, person="pid", schema=other) as changed,
        pytest.raises(StreamMismatch, match="column age: bounds"),
    ):
        changed.resume("flu", budget=budget)
    with tacit.open(visits_file, person="pid") as visits:
        assert visits.resume("flu", budget=budget).tops_left == 3


def test_a_killed_process_loses_the_reserved_top_and_nothing_else(visits_file, tmp_path):
    code = f"""
        import os, signal, tacit
        visits = tacit.open({str(visits_file)!r}, person="pid")
        budget = tacit.Budget.create("clinic.budget", epsilon=100, covers=["visits"])
        stream = visits.sparse(threshold=100, at_most=4, epsilon=100, budget=budget, name="flu")
        assert stream.ask("town = 'Bruges'")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode < 0
    with (
        tacit.Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.open(visits_file, person="pid") as visits,
    ):
        stream = visits.resume("flu", budget=budget)
        assert stream.tops_left == 2  # one given, one lost with the process
        assert [entry.question for entry in stream.recorded] == ["town = 'Bruges'"]
        assert not stream.ask("town = 'Ghent'")
        assert stream.ask("age >= 0")
        stream.suspend()


def test_a_lost_top_ends_its_group(visits, tmp_path):
    """The threshold noise of a group must not serve one ⊤ more than it was paid for."""
    tiny = Fraction(1, 10**12)  # so that two offsets are not the same by chance
    recipe = recipes.spend("one-sided", 4, Privacy(tiny), monotone=True, groups=4)
    with Budget.create(tmp_path / "b", epsilon=1, covers=["visits"]) as budget:
        stream = visits.sparse(
            threshold=0, at_most=4, epsilon=tiny, budget=budget, recipe=recipe, name="s"
        )
        offset = stream._state.offset
        stream._lease._end("its process died")  # nothing is written
        again = visits.resume("s", budget=budget)
        assert again._state.tops == 1
        assert again._state.offset != offset


def test_threads_get_each_question_answered_once_and_one_halt(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=5, budget=budget, **calm)
    questions = [f"age >= {age}" for age in range(40)]

    def ask(question):
        try:
            return stream.ask(question).above
        except (Halted, StreamEnded):
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, questions))
    assert sum(answer is True for answer in answers) == 5
    assert stream.halted


def test_whoever_sees_the_state_after_a_top_finds_it_on_record(visits, budget, calm):
    """Or a thread that looks between the two would draw again for what is on record."""
    stream = visits.sparse(threshold=100, at_most=1, budget=budget, **calm)
    before, seen = stream._state, []

    class Noting(dict[Any, Any]):
        def __setitem__(self, key, value):
            seen.append((stream._state, stream.halted, key in stream._lease._recorded))
            super().__setitem__(key, value)

    stream._lease._answers = Noting()
    assert stream.ask("town = 'Bruges'")
    assert seen == [(before, False, True)]
    assert stream._state is not before
    assert stream.halted


def test_threads_that_ask_the_same_question_use_one_top(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=5, budget=budget, **calm)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: stream.ask("town = 'Bruges'"), range(40)))
    assert len(set(answers)) == 1
    assert stream.tops_left == 4


def test_an_answer_below_of_a_batch_waits_as_one_above_does(visits, budget, calm):
    """If only a ⊤ waited for another thread's, and was drawn again, it would count for nothing."""
    stream = visits.sparse(threshold=10**6, at_most=5, budget=budget, **calm)
    answers = stream.ask_all([f"age >= {age}" for age in range(5)])
    assert not next(answers).above
    with ThreadPoolExecutor(1) as pool:
        with stream._lease.turn():
            told = pool.submit(next, answers)
            with pytest.raises(TimeoutError):
                told.result(timeout=0.2)
        assert not told.result().above
    assert len(list(answers)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_copy_refuses(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=5, budget=budget, **calm)
    child = os.fork()
    if child == 0:
        try:
            stream.ask("age >= 0")
        except StreamHeld:
            os._exit(7)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert stream.ask("age >= 0")


# What is shown ------------------------------------------------------------------------------------


def test_nothing_secret_is_shown(visits, budget):
    tiny = Fraction(1, 10**12)  # the offset has some twelve digits, which are nowhere by chance
    stream = visits.sparse(threshold=100, at_most=2, epsilon=tiny, budget=budget, name="s")
    offset = str(abs(stream._state.offset))
    shown = [repr(stream), repr(stream.history), str(stream.recipe), repr(stream._lease)]
    assert not any(offset in text for text in shown)
    assert "300" not in repr(visits)


def test_the_history_is_a_table_in_a_notebook(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    stream.ask("town = 'Bruges' and age < 99")
    stream.ask("town = 'Ypres'")
    assert stream.history._repr_html_().count("<tr>") == 3
    assert "age &lt; 99" in stream.history._repr_html_()
    assert [entry.question for entry in stream.history.tops] == ["town = 'Bruges' and age < 99"]
