"""Streams in which each ⊤ costs by its question's scale: reserved, paid, lost, resumed, planned."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import pytest

import tacit
from tacit.analyst import plan
from tacit.book.priced import descending_from
from tacit.book.recipes import PARTS
from tacit.budget import Budget
from tacit.errors import BadParameter, EngineFailed, Halted, KeyReused, LedgerUnwritable
from tacit.testing.watched_ledger import POINTS, WatchedLedger, failing_at

BRUGES, GHENT, YPRES = "town = 'Bruges'", "town = 'Ghent'", "town = 'Ypres'"
BETA = "1e-9"  # with which noise alone makes ⊤ of ⊥: at 1/20, some run of the tests would see it


@pytest.fixture
def visits(visits_file):
    """2000 people in Bruges, 1000 in Ghent, 10 in Ypres: far from the threshold at any scale."""
    towns = ["Bruges"] * 2000 + ["Ghent"] * 1000 + ["Ypres"] * 10
    rows = [f"{pid},{town},{pid % 100},10.5" for pid, town in enumerate(towns)]
    visits_file.write_text("\n".join(["pid,town,age,cost", *rows]) + "\n")
    with tacit.open(visits_file, person="pid", people=len(towns)) as table:
        yield table


def opened(table: tacit.Table, budget: Budget, **more: Any) -> tacit.Stream:
    options = {"threshold": 200, "least_scale": 1, "epsilon": 12, "questions": 50, **more}
    options.setdefault("beta", BETA)
    return table.sparse(budget=budget, name="priced", **options)


def kinds(budget: Budget) -> list[str]:
    return [entry.kind for entry in budget.history][3:]


def test_a_top_costs_by_its_scale(visits, budget):
    stream = opened(visits, budget)
    e2 = stream.recipe.question_epsilon
    assert stream.epsilon_left == e2 < stream.recipe.privacy.epsilon == 12
    assert stream.ask(BRUGES, scale=5)
    price = Fraction(-(-PARTS // (5 * e2)), PARTS) * e2
    assert stream.epsilon_left == e2 - price
    assert Fraction(1, 5) <= price < Fraction(1, 5) + e2 / PARTS
    assert not stream.ask(YPRES, scale=2)
    assert stream.epsilon_left == e2 - price
    assert stream.ask(GHENT)  # at the least scale
    assert stream.epsilon_left <= e2 - price - 1
    assert stream.ask(BRUGES, scale=1).recorded is not None  # free, whatever the scale
    assert stream.tops_left == stream.epsilon_left // 1
    budget.verify()


def test_its_price_is_on_the_disk_before_the_coin(visits, budget):
    stream = opened(visits, budget)
    assert not stream.ask(YPRES, scale=4)
    assert kinds(budget) == ["reserve"]
    assert not stream.ask(YPRES, scale=4)
    assert not stream.ask(YPRES, scale=8)  # cheaper: what is reserved is enough
    assert kinds(budget) == ["reserve"]
    assert not stream.ask(YPRES, scale=2)
    assert stream.ask(BRUGES, scale=2)
    assert stream.ask(GHENT, scale=4)
    assert kinds(budget) == ["reserve", "reserve", "top", "top"]
    reserved = budget.stream("priced").reserved
    assert reserved == next(e.body["price"] for e in reversed(budget.history) if e.kind == "top")
    stream.suspend()
    stream = visits.resume("priced", budget=budget)
    assert budget.stream("priced").lost == 0
    assert stream.recorded[0].answer.above
    budget.verify()


def test_a_failure_costs_all_that_is_reserved(visits, budget, monkeypatch):
    stream = opened(visits, budget)
    before = stream.epsilon_left
    engine = type(visits.engine)
    monkeypatch.setattr(engine, "values", lambda self, questions: 1 / 0)
    with pytest.raises(EngineFailed):
        stream.ask(YPRES, scale=3)
    monkeypatch.undo()
    stream = visits.resume("priced", budget=budget)
    price = -(-PARTS // (3 * stream.recipe.question_epsilon))
    assert budget.stream("priced").lost == price
    assert before is not None
    assert stream.epsilon_left == before - stream.recipe.question_epsilon * price / PARTS
    assert stream.ask(BRUGES, scale=3)  # and it goes on, with the same ρ
    budget.verify()


@pytest.mark.parametrize("fails_at", POINTS)
@pytest.mark.parametrize("act", ["reserve", "record top"])
def test_wherever_a_write_fails_its_price_is_gone(visits, budget, act, fails_at):
    watched = WatchedLedger(budget._ledger)
    stream = opened(visits, Budget(watched))
    watched.reached = failing_at(f"{act}: {fails_at}")
    with pytest.raises(LedgerUnwritable):
        stream.ask(BRUGES, scale=3)
    watched.reached = lambda point: None
    assert not stream.live
    stream = visits.resume("priced", budget=budget)
    state = budget.stream("priced")
    price = -(-PARTS // (3 * stream.recipe.question_epsilon))
    begun = act == "record top" or fails_at == "committed"
    assert state.lost == (price if begun else 1)
    assert state.tops == (price if (act, fails_at) == ("record top", "committed") else 0)
    budget.verify()


def test_what_is_too_dear_is_refused_and_costs_nothing(visits, budget):
    stream = opened(visits, budget, epsilon=2, least_scale=1)
    assert stream.ask(BRUGES)
    left = stream.epsilon_left
    assert left is not None
    assert 0 < left < 1
    with pytest.raises(Halted, match=r"ask at scale .* or more"):
        stream.ask(GHENT)
    with pytest.raises(Halted, match="costs 1"):
        stream.ask_all([GHENT])
    assert stream.live
    assert (stream.epsilon_left, stream.halted) == (left, False)
    assert stream.ask(GHENT, scale=40) is not None
    assert stream.check(GHENT, scale="1/2").refusal
    for wrong in ("1/2", 0, -3, "many"):
        with pytest.raises(BadParameter):
            stream.ask(GHENT, scale=wrong)
    with pytest.raises(Halted):  # and a batch stops where it cannot go on
        list(stream.ask_all([YPRES, BRUGES + " and age >= 0", GHENT]))
    budget.verify()


def test_a_batch_stops_when_its_price_is_gone(visits, budget):
    stream = opened(visits, budget, epsilon=2, least_scale=1)
    asked = [f"{BRUGES} and age >= {age}" for age in range(3)]
    answers = list(stream.ask_all(asked))
    assert [answer.above for answer in answers] == [True]
    assert stream.unanswered == tuple(asked[1:])
    assert stream.live


def test_another_scale_of_another_thread_leaves_it_alive(visits, budget, monkeypatch):
    """Somebody uses what would have paid, between the check and the turn: it is refused."""
    stream = opened(visits, budget, epsilon=2, least_scale=1)
    check = stream._refuse_if_over

    def meanwhile(mechanism):
        check(mechanism)
        monkeypatch.setattr(stream, "_refuse_if_over", check)
        thread = threading.Thread(target=stream.ask, args=(BRUGES,))
        thread.start()
        thread.join(60)

    monkeypatch.setattr(stream, "_refuse_if_over", meanwhile)
    with pytest.raises(Halted):
        stream.ask(GHENT)
    assert stream.live
    assert budget.stream("priced").lost == 0


def test_a_scan_descends_and_finds_the_largest_first(visits, budget):
    stream = opened(visits, budget, numeric=True, epsilon=60, least_scale="1/4")
    answers = list(stream.ask_all([YPRES, GHENT, BRUGES], descending=True, scale=25))
    assert [answer.above for answer in answers] == [False, True, True]
    noises = [answer.gap_noise for answer in answers if answer.gap_noise is not None]
    assert noises[1].question_scale == 25  # 2000 in Bruges are far above 200 + 25·23.6
    assert noises[0].question_scale <= 25
    assert {noise.rounds for noise in noises} == {len(descending_from(stream._mechanism, 25))}
    for answer, true in zip(answers[1:], (1000, 2000), strict=True):
        low, high = answer.interval(beta="1e-12") or (0, 0)
        assert low <= true <= high
    started = stream.ask_all(["age >= 0", YPRES], descending=True, scale="1/2")
    assert [answer.above for answer in started] == [True, False]
    assert stream.unanswered == ()
    budget.verify()


def test_a_batch_decided_ahead_stays_covered(visits, budget):
    """Between two answers of a batch others are asked, cheaper ones: its ⊤ are still reserved."""
    stream = opened(visits, budget)
    batch = stream.ask_all([YPRES, f"{YPRES} and age >= 0", BRUGES], scale=2)
    assert not next(batch)
    assert not stream.ask(f"{YPRES} and age >= 1", scale=30)
    assert not next(batch)
    assert stream.ask(GHENT, scale=9)  # a ⊤: what is reserved is less now
    assert next(batch)
    assert stream.live
    assert budget.stream("priced").lost == 0
    budget.verify()


def test_a_key_stands_for_one_scale(visits, budget):
    stream = opened(visits, budget)
    first = stream.ask(GHENT, scale=3, retry_key="monday")
    assert stream.ask(GHENT, scale=3, retry_key="monday") == first
    with pytest.raises(KeyReused):
        stream.ask(GHENT, scale=4, retry_key="monday")
    budget.verify()


def test_directed_streams_and_values_have_prices_too(visits, budget):
    stream = opened(visits, budget, kind="directed", numeric=True)
    assert stream.recipe.moves == 1
    top = stream.ask(YPRES, below=True, scale=1)
    assert top
    low, high = top.interval(beta="1e-12") or (0, 0)
    assert low <= 10 <= high
    assert stream.ask(BRUGES, scale=2)
    any_way = visits.sparse(
        threshold=20, least_scale=1, epsilon=12, kind="any", budget=budget, questions=50
    )
    assert any_way.recipe.moves == 2


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"at_most": 3}, "at_most"),
        ({"least_scale": None}, "at_most"),
        ({"recipe": "book"}, "recipe"),
        ({"delta": "1e-9"}, "delta"),
        ({"numeric": True, "values": "fresh"}, "values"),
        ({"least_scale": "1/100"}, "least_scale"),
        ({"recipe": plan.priced(questions=9, epsilon=1, least_scale=9).recipe}, "recipe"),
    ],
)
def test_what_does_not_go_together_is_refused(visits, budget, change, names):
    with pytest.raises(BadParameter, match=f"^{names} "):
        opened(visits, budget, **change)
    assert len(budget.streams()) == 0


def test_an_ordinary_stream_has_no_scale(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    assert stream.epsilon_left is None
    for ask in (
        lambda: stream.ask(GHENT, scale=3),
        lambda: stream.ask_all([GHENT], scale=3),
        lambda: stream.ask_all([GHENT], descending=True),
    ):
        with pytest.raises(BadParameter, match="least_scale"):
            ask()
    recipe = plan.priced(questions=9, epsilon=1, least_scale=9).recipe
    with pytest.raises(BadParameter, match="price for each"):
        visits.sparse(threshold=1, at_most=PARTS, epsilon=1, recipe=recipe, budget=budget)


def test_the_plan_is_that_of_the_stream(visits, budget):
    planned = plan.priced(questions=50, epsilon=12, least_scale=1, beta=BETA)
    stream = opened(visits, budget)
    assert stream.recipe == planned.recipe
    assert stream.planned is not None
    assert planned.alpha <= stream.planned.alpha < planned.alpha + 1
    assert planned.least.scale == 1
    assert planned.least.price >= 1
    assert [each.scale for each in planned.scales] == sorted(
        (each.scale for each in planned.scales), reverse=True
    )
    assert "ε of a ⊤" in str(planned)
    assert "PricedPlan" in repr(planned)
    assert planned.false_tops == sum(each.false_tops for each in planned.scales)
