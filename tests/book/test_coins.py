"""The coins as others use them: laws, bad input, reproducible coins, threads."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.book.expected import coin_p_value, p_value
from tests.fit import ACCEPT, ACCEPT_REAL, chi_square_p

from tacit.book import coins as module
from tacit.book.coins import Coins, InsecureTestCoins, refuse_insecure
from tacit.errors import BadParameter, InsecureCoins

WRONG = (Fraction(102, 100), Fraction(98, 100))


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(10**4)])
def test_bulk_noise_rejects_a_scale_wrong_by_two_in_a_hundred(scale, two_sided):
    coins = InsecureTestCoins(20)
    draws = (coins.laplaces if two_sided else coins.geometrics)(scale, 1_000_000)
    assert draws.dtype == np.int64
    assert p_value(draws, scale, two_sided=two_sided) > ACCEPT
    for wrong in WRONG:
        assert p_value(draws, scale * wrong, two_sided=two_sided) < ACCEPT


@pytest.mark.parametrize("two_sided", [False, True])
def test_single_draws_reject_a_scale_wrong_by_two_in_a_hundred(two_sided):
    coins, scale = InsecureTestCoins(21), Fraction(22, 7)
    draw = coins.laplace if two_sided else coins.geometric
    draws = [draw(scale) for _ in range(400_000)]
    assert p_value(draws, scale, two_sided=two_sided) > ACCEPT
    for wrong in WRONG:
        assert p_value(draws, scale * wrong, two_sided=two_sided) < ACCEPT


def test_a_scale_asked_for_often_is_prepared_and_others_are_forgotten():
    coins = InsecureTestCoins(22)
    for _ in range(module._PREPARE_AFTER + 2):
        coins.laplace(20)
        coins.geometric(2**60)  # too large for the tables: always drawn singly
    prepared = [type(uses).__name__ for uses in coins._uses.values()]
    assert prepared == ["Sampler", "int"]
    for scale in range(1, 100):
        coins.laplace(scale)
    assert len(coins._uses) <= module._MOST_SCALES


def test_secure_coins_have_the_same_law():
    coins = Coins()
    assert p_value(coins.laplaces(20, 200_000), Fraction(20), two_sided=True) > ACCEPT_REAL
    assert coin_p_value(coins.bernoullis("1/3", 200_000), 1 / 3) > ACCEPT_REAL
    draws = [coins.geometric(20) for _ in range(50_000)]
    assert p_value(draws, Fraction(20), two_sided=False) > ACCEPT_REAL


def test_below_is_uniform_for_any_size():
    coins = InsecureTestCoins(23)
    counts = Counter(coins.below(10) for _ in range(20_000))
    assert chi_square_p([counts[k] for k in range(10)], [0.1] * 10) > ACCEPT
    huge = 3 * 2**1000
    draws = [coins.below(huge) for _ in range(3000)]
    thirds = [
        sum(third * 2**1000 <= x < (third + 1) * 2**1000 for x in draws) for third in range(3)
    ]
    assert chi_square_p(thirds, [1 / 3] * 3) > ACCEPT
    assert chi_square_p(thirds, [0.25, 0.25, 0.5]) < ACCEPT


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10)])
def test_single_rational_coins(p):
    coins = InsecureTestCoins(24)
    drawn = [coins.bernoulli(p) for _ in range(20_000)]
    assert coin_p_value(drawn, float(p)) > ACCEPT
    assert coin_p_value(drawn, float(p) * 0.9) < ACCEPT


@pytest.mark.parametrize("gamma", [Fraction(1, 10), Fraction(1), Fraction(22, 7)])
def test_single_exponential_coins(gamma):
    coins = InsecureTestCoins(25)
    drawn = [coins.bernoulli_exp(gamma) for _ in range(20_000)]
    assert coin_p_value(drawn, np.exp(-float(gamma))) > ACCEPT
    for wrong in (1.5, 0.5):
        assert coin_p_value(drawn, np.exp(-float(gamma) * wrong)) < ACCEPT


@pytest.mark.long
@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(1), Fraction(22, 7)])
def test_single_exponential_coins_reject_two_in_a_hundred(gamma):
    coins = InsecureTestCoins(26)
    drawn = [coins.bernoulli_exp(gamma) for _ in range(1_000_000)]
    assert coin_p_value(drawn, np.exp(-float(gamma))) > ACCEPT
    for wrong in (1.02, 0.98):
        assert coin_p_value(drawn, np.exp(-float(gamma) * wrong)) < ACCEPT


def test_bulk_coins():
    coins = InsecureTestCoins(27)
    assert coin_p_value(coins.bernoulli_exps(np.full(10**6, 7), "1/10"), np.exp(-0.7)) > ACCEPT
    assert coin_p_value(coins.bernoulli_exps(np.full(10**6, 7), "0.102"), np.exp(-0.7)) < ACCEPT
    assert coin_p_value(coins.bernoullis(0.1, 10**6), 0.1) > ACCEPT


def test_steps_of_any_shape_and_whole_type():
    coins = InsecureTestCoins(28)
    steps = np.arange(24).reshape(2, 3, 4)
    assert coins.bernoulli_exps(steps, 1).shape == (2, 3, 4)
    assert coins.bernoulli_exps(steps[:, ::-1, ::2].astype(np.uint8), 1).shape == (2, 3, 2)
    assert coins.bernoulli_exps(np.empty(0, np.int64), 1).shape == (0,)
    assert coins.bernoulli_exps(np.int64(3), 1).shape == ()
    assert coins.bernoulli_exps([-5, 0], "1e9").all()
    assert coins.bernoulli_exps(np.full(1000, 2**62), 0).all()
    backwards = np.zeros(2000, np.int64)
    backwards[::2] = 10**6
    assert coins.bernoulli_exps(backwards[::-1], 1).tolist() == [True, False] * 1000


def test_numbers_are_read_exactly_whatever_their_type():
    for scale in (0.1, "1/10", "0.1", Decimal("0.1"), Fraction(1, 10)):
        assert InsecureTestCoins(29).laplaces(scale, 0).tolist() == []
        coins = InsecureTestCoins(29)
        first = [coins.laplace(scale) for _ in range(5)]
        assert first == [InsecureTestCoins(29).laplace("1/10"), *first[1:]]


def test_scalars_are_python_numbers_of_any_size():
    coins = InsecureTestCoins(30)
    assert type(coins.laplace(2**200)) is int
    assert max(abs(coins.laplace(2**200)) for _ in range(20)) > 2**150
    assert type(coins.laplace_sampler(20).draw()) is int
    assert type(coins.bernoulli_exp(1)) is bool
    assert type(coins.bernoulli("1/2")) is bool


BAD: dict[str, list[Any]] = {
    "scale": [
        *[lambda c, v=v: c.laplace(v) for v in (0, -1, "nan", float("inf"), None, True, 2**201)],
        *[lambda c, v=v: c.geometric(v) for v in (0, "-1/3", 2**200 + 1)],
        *[lambda c, v=v: c.laplaces(v, 5) for v in (0, float("nan"), 2**50 + 1)],
        *[lambda c, v=v: c.geometrics(v, 5) for v in (-1, 2**200)],
        *[lambda c, v=v: c.laplace_sampler(v) for v in (0, "x", 2**60)],
    ],
    "size": [
        *[lambda c, v=v: c.laplaces(20, v) for v in (-1, 1.5, "many", None)],
        lambda c: c.geometrics(20, -1),
        lambda c: c.bernoullis("1/2", -1),
        lambda c: c.laplace_sampler(20).draws(-1),
    ],
    "p": [
        *[lambda c, v=v: c.bernoulli(v) for v in (-1, "11/10", float("nan"), None)],
        lambda c: c.bernoullis(2, 5),
    ],
    "gamma": [lambda c, v=v: c.bernoulli_exp(v) for v in (-1, "-1e-9", float("inf"), [])],  # type: ignore[var-annotated]
    "rate": [lambda c, v=v: c.bernoulli_exps(np.arange(3), v) for v in (-1, "nan", None)],
    "steps": [
        lambda c, v=v: c.bernoulli_exps(v, 1)
        for v in (np.arange(3.0), np.array([True]), np.arange(3, dtype=np.uint64), ["a"], None)
    ],
    "n": [lambda c, v=v: c.below(v) for v in (0, -5, 2.5, "x", True)],
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, k) for name, calls in BAD.items() for k in range(len(calls))]
)
def test_bad_input_is_named_and_draws_nothing(name, number):
    coins = InsecureTestCoins(31)
    with pytest.raises(BadParameter) as caught:
        BAD[name][number](coins)
    assert caught.value.parameter == name
    assert str(caught.value).startswith(f"{name} = ")
    assert coins.below(2**64) == InsecureTestCoins(31).below(2**64)


def test_messages_state_the_limits():
    with pytest.raises(BadParameter, match=r"at most 2\^200"):
        Coins().laplace(2**300)
    with pytest.raises(BadParameter, match=r"at most 2\^50 in bulk"):
        Coins().laplaces(2**51, 3)
    assert Coins().laplaces(2**50, 3).size == 3


def test_a_seed_gives_the_same_draws_and_says_so_loudly():
    def some(coins):
        array = coins.laplaces(20, 100).tolist()
        return array, coins.below(2**64), coins.laplace_sampler(20).draw(), coins.laplace(3)

    assert some(InsecureTestCoins(32)) == some(InsecureTestCoins(32))
    assert some(InsecureTestCoins(32)) != some(InsecureTestCoins(33))
    assert "INSECURE" in repr(InsecureTestCoins(32))
    assert not InsecureTestCoins(32).secure
    with pytest.raises(BadParameter, match="seed"):
        InsecureTestCoins(-1)


def test_insecure_coins_are_refused_where_a_budget_is_spent():
    refuse_insecure(Coins())
    with pytest.raises(InsecureCoins, match="InsecureTestCoins"):
        refuse_insecure(InsecureTestCoins(1))


def test_coins_that_do_not_say_that_they_are_secure_are_refused():
    class Imitation:
        pass

    with pytest.raises(InsecureCoins, match="Imitation"):
        refuse_insecure(Imitation())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Coins, lambda: InsecureTestCoins(1)])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_coins_cannot_be_copied(kind, duplicate):
    with pytest.raises(TypeError, match="repeat"):
        duplicate(kind())


def test_samplers_cannot_be_copied():
    with pytest.raises(TypeError, match="repeat"):
        copy.copy(Coins().laplace_sampler(20))


def test_repr_shows_no_secret():
    coins = Coins()
    coins.laplace(20)
    sampler = coins.laplace_sampler(20)
    sampler.draw()
    assert repr(coins) == "Coins()"
    assert "pool" not in repr(sampler)


def test_threads_take_no_number_of_a_pool_twice():
    """At this scale equal numbers practically do not happen by chance."""
    sampler, taken = Coins().laplace_sampler(2**50), []

    def take():
        taken.extend([sampler.draw() for _ in range(3000)])

    workers = [Thread(target=take) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(taken) == 24_000
    assert len(set(taken)) == len(taken)


def test_importing_the_coins_does_not_load_the_cipher():
    import subprocess
    import sys

    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import tacit.book.coins\n"
        "assert 'cryptography' not in sys.modules\n"
        "tacit.book.coins.Coins().below(2)\n"
        "assert 'cryptography' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
