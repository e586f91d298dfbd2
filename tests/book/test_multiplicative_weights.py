"""Section 4.2: the update rule against its potential, the loop against a plain one, the bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import log

import mpmath
import numpy as np
import pytest

from tacit.book import multiplicative_weights as section
from tacit.book import sparse_vector
from tacit.book.answer import BELOW, Answer
from tacit.book.coins import InsecureTestCoins
from tacit.book.multiplicative_weights import (
    ModelAnswer,
    least_alpha,
    most_updates,
    multiplicative_weights,
    updated,
)
from tacit.errors import BadParameter, ConditionNotMet

COINS = InsecureTestCoins(1)


def entropy(truth: np.ndarray, model: np.ndarray) -> float:
    """Of the truth relative to the model."""
    there = truth > 0
    return float((truth[there] * np.log(truth[there] / model[there])).sum())


@pytest.mark.parametrize("sharper", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.03])
def test_each_update_gains_what_the_proof_says_and_there_are_no_more_of_them(alpha, sharper):
    """The most hostile order: always the question that is most wrong, told as badly as allowed."""
    rng = np.random.default_rng(7)
    for _ in range(6):
        size = int(rng.integers(2, 30))
        truth = rng.dirichlet(np.full(size, 0.3))
        asked = np.concatenate([rng.integers(0, 2, (40, size)), rng.random((10, size))])
        model, updates = np.full(size, 1 / size), 0
        while True:
            away = asked @ (truth - model)
            worst = int(abs(away).argmax())
            if abs(away[worst]) <= alpha:
                break
            side = np.sign(away[worst])
            told = float(asked[worst] @ truth - side * alpha * 0.999)  # still on the right side
            after = updated(
                model, asked[worst].tolist(), told, rate=4 * alpha if sharper else alpha / 2
            )
            gain = 2 * alpha**2 if sharper else alpha**2 / 4
            assert entropy(truth, model) - entropy(truth, after) >= gain - 1e-12
            model, updates = after, updates + 1
        assert updates <= most_updates(size, str(alpha), sharper=sharper)


def test_the_number_of_updates_is_the_formula():
    for size, alpha in ((2, "1/10"), (1000, "3/100"), (10**9, 1)):
        with mpmath.workdps(30):
            exact = 4 * mpmath.log(size) / mpmath.mpf(Fraction(alpha).numerator) ** 2
            exact *= Fraction(alpha).denominator ** 2
            assert most_updates(size, alpha) == int(mpmath.floor(exact))
            assert most_updates(size, alpha, sharper=True) == int(mpmath.floor(exact / 8)) or 1
    assert most_updates(1, 1) == 1  # NumericSparse needs one


@pytest.mark.parametrize("sharper", [False, True])
def test_the_least_alpha_is_the_theorem_solved(sharper):
    given = {"universe": 64, "people": 10**7, "questions": 500, "epsilon": 1, "beta": "1/20"}
    found = least_alpha(**given, sharper=sharper)  # type: ignore[arg-type]
    n, k, beta = 10**7, 500, 0.05

    def needed(alpha: float) -> float:
        """9c (ln 2k + ln(4c/β))/ε, as a share."""
        c = int((0.5 if sharper else 4) * log(64) / alpha**2)
        return 9 * c * (log(2 * k) + log(4 * c / beta)) / n

    assert needed(float(found)) <= float(found)
    assert needed(float(found) - 1e-6) > float(found) - 1e-6
    if not sharper:  # the closed form, which does not round c down
        alpha = float(found)
        closed = 36 * log(64) * (log(k) + log(32 * log(64) / (alpha**2 * beta))) / (alpha**2 * n)
        assert closed == pytest.approx(alpha, rel=1e-2)
    with pytest.raises(ConditionNotMet, match="more people"):
        least_alpha(**{**given, "people": 10})  # type: ignore[arg-type]


def questions_of(size: int, count: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    found: list[list[int]] = rng.integers(0, 2, (count, size)).tolist()
    return found


def errors(x: np.ndarray, asked: list[list[int]], told: list[ModelAnswer]) -> list[Fraction]:
    truth = [int(np.dot(question, x)) for question in asked]
    return [abs(each.value - true) for each, true in zip(told, truth, strict=True)]


@pytest.mark.parametrize("sharper", [False, True])
def test_with_the_least_alpha_all_answers_keep_to_the_theorem(sharper):
    """A large n, so that the theorem promises something; and the model does learn."""
    n = 10**9
    given = {"people": n, "epsilon": 1, "sharper": sharper}
    alpha = least_alpha(universe=8, questions=60, beta="1/20", **given)
    x = np.array([n - 7 * 10**6, *[10**6] * 7])
    asked = questions_of(8, 60, 3)
    for seed in range(5):
        coins = InsecureTestCoins(seed)
        told = list(multiplicative_weights(x, asked, alpha=alpha, coins=coins, **given))
        assert max(errors(x, asked, told)) <= 3 * alpha * n + 1
        sources = [each.source for each in told]
        assert 0 < sources.count("measured") <= most_updates(8, alpha, sharper=sharper)
        assert sources.count("model") > 0


def test_without_noise_it_is_the_loop_of_the_book(monkeypatch):
    """NumericSparse by hand; each comparison is noted: the other side only after ⊥."""
    noted: list[Fraction] = []

    def exact(values: Iterable[Fraction], *, threshold, at_most, **_: object) -> Iterator[Answer]:
        for value in values:
            noted.append(value)
            if value >= threshold:
                at_most -= 1
                yield Answer(above=True, value=value)
                if not at_most:
                    return
            else:
                yield BELOW

    monkeypatch.setattr(section, "numeric_sparse", exact)
    x, n, alpha = np.array([70, 20, 10, 0]), 100, Fraction(1, 10)
    asked = questions_of(4, 40, 5)
    told = list(multiplicative_weights(x, asked, people=n, alpha=alpha, epsilon=1, coins=COINS))
    model, expected, differences = np.full(4, 0.25), [], []
    for question in asked:
        truth, guess = int(np.dot(question, x)), round(n * float(np.dot(question, model)))
        differences += [truth - guess] if truth - guess >= 21 else [truth - guess, guess - truth]
        if abs(truth - guess) >= 21:
            expected.append(ModelAnswer(Fraction(truth), "measured"))
            r = np.array(question) if truth < guess else 1 - np.array(question)
            model = model * np.exp(-0.05 * r)
            model /= model.sum()
        else:
            expected.append(ModelAnswer(Fraction(guess), "model"))
    assert told == expected
    assert noted == differences
    assert {each.source for each in told} == {"model", "measured"}


def test_once_the_updates_are_used_up_the_model_goes_on_unwatched(monkeypatch):
    monkeypatch.setattr(section, "most_updates", lambda *_, **__: 1)
    x = np.array([10**6, 0])
    asked = [[1, 0]] * 4
    given = {"people": 10**6, "alpha": "1/10", "epsilon": 10**6, "coins": COINS}
    told = list(multiplicative_weights(x, asked, **given))  # type: ignore[arg-type]
    assert [each.source for each in told] == ["measured", *["unwatched"] * 3]
    assert abs(told[0].value - 10**6) < 10
    assert told[1].value == told[3].value > 500_000  # it has learnt


def test_questions_may_depend_on_answers_and_have_a_grid():
    def adaptive() -> Iterator[list[Fraction]]:
        yield [Fraction(1, 2), Fraction(0)]
        assert len(seen) == 1
        yield [Fraction(1, 2), Fraction(1)] if seen[0].value > 3 else [Fraction(1), Fraction(0)]

    seen: list[ModelAnswer] = []
    x = np.array([999, 1])
    given = {"people": 1000, "alpha": "1/50", "epsilon": 10**6, "grid": "1/2", "coins": COINS}
    for told in multiplicative_weights(x, adaptive(), **given):  # type: ignore[arg-type]
        seen.append(told)
    assert [round(float(each.value), 1) for each in seen] == [499.5, 500.5]


def test_what_is_asked_wrongly_is_named_and_shows_no_data():
    given = {"people": 10, "alpha": "1/10", "epsilon": 1, "coins": COINS}

    def ask(x: object, *asked: object, **more: object) -> None:
        list(multiplicative_weights(x, asked, **{**given, **more}))  # type: ignore[arg-type]

    good = np.array([3, 4])
    for x in ([3, 4], np.array([]), np.array([-1, 2]), np.array([1.5]), np.array([[1]]), None):
        with pytest.raises(BadParameter, match="x = \\(withheld\\)"):
            ask(x, [1, 0])
    for question in ([1], [1, 0, 1], [2, 0], [-1, 0], ["1/3", 0], 7, "ab", None):
        with pytest.raises(BadParameter, match="questions"):
            ask(good, question)
    for alpha in (0, 2, "x"):
        with pytest.raises(BadParameter, match="alpha"):
            ask(good, [1, 0], alpha=alpha)


def test_it_is_numeric_sparse_that_pays():
    """The noise is that of Algorithm 3 with the same coins: nothing is drawn beside it."""
    n = 10**7
    x, given = np.array([n, 0]), {"epsilon": Fraction(1, 2), "coins": InsecureTestCoins(4)}
    told = list(multiplicative_weights(x, [[1, 0]], people=n, alpha="1/10", **given))  # type: ignore[arg-type]
    (answer,) = sparse_vector.numeric_sparse(
        [n // 2],
        threshold=2 * n // 10 + 1,
        at_most=most_updates(2, "1/10"),
        epsilon=Fraction(1, 2),
        coins=InsecureTestCoins(4),
    )
    assert answer.value is not None  # the noise is far too small for anything else
    assert told == [ModelAnswer(n // 2 + answer.value, "measured")]
