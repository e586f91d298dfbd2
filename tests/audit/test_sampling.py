"""The sampling auditor: honest about false alarms, and strong enough to find what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from tests.cli.running import ENVIRONMENT

from tacit.audit import Law, best_pair_to_sample, known_bad_pairs, one_by_one, sample
from tacit.audit.black_boxes import suspicion
from tacit.audit.law import Laplace
from tacit.audit.learning import OutcomeReader, Suspicion, learn
from tacit.audit.sampling import as_bulk
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.errors import BadParameter, TacitError


class RandomisedResponse:
    """Tells the truth with probability 3/4: its loss is ln 3 exactly."""

    def __init__(self, seed: int) -> None:
        self.coins = InsecureTestCoins(seed)

    def __call__(self, truth: int, size: int) -> np.ndarray:
        told: np.ndarray = self.coins.bernoullis(Fraction(3, 4), size) == bool(truth)
        return told


class LaplaceCount:
    """Loss 1/scale exactly."""

    def __init__(self, scale: int, seed: int) -> None:
        self.scale, self.coins = scale, InsecureTestCoins(seed)

    def __call__(self, count: int, size: int) -> np.ndarray:
        return count + self.coins.laplaces(self.scale, size)


# False alarms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", ["0.9", "0.5"])
def test_false_alarms_come_no_more_often_than_stated(confidence):
    """Randomised response loses exactly what is claimed: every refutation is a false alarm."""
    audits, alarms = 160, 0
    for seed in range(audits):
        found = sample(
            RandomisedResponse(seed),
            (0, 1),
            epsilon=log(3),
            confidence=confidence,
            runs=1600,
            workers=1,
        )
        alarms += found.refuted
    # Fewer than would be credible if the rate were larger than stated; and not none at all at
    # 50 %, since a test that never alarms would also pass the first line.
    assert binom.sf(alarms - 1, audits, 1 - float(confidence)) > 1e-6
    if confidence == "0.5":
        assert alarms >= 5


def test_a_claim_that_is_a_little_too_small_is_refuted():
    found = sample(RandomisedResponse(1), (0, 1), epsilon=log(3) - 0.05, runs=200_000, workers=1)
    assert found.refuted
    assert found.verdict == "refuted"
    assert log(3) - 0.05 < found.lower_bound < log(3) + 0.01


def test_a_pass_never_reads_private():
    found = sample(RandomisedResponse(2), (0, 1), epsilon=2, runs=2000, workers=1)
    assert found.verdict == "not refuted"
    assert "private" not in str(found)


def test_without_a_claim_there_is_no_verdict():
    found = sample(RandomisedResponse(2), (0, 1), runs=2000, workers=1)
    assert (found.verdict, found.refuted) == ("no claim", False)
    assert str(found).startswith("no claim: ε ≥ ")


# Power ----------------------------------------------------------------------------------------


def test_a_rare_event_that_looked_good_is_not_chosen():
    """A single one of many rare events looks best by luck now and then, and confirms nothing."""
    laplace = LaplaceCount(2, seed=11)
    bounds = [sample(laplace, (0, 1), runs=20_000, workers=1).lower_bound for _ in range(100)]
    assert min(bounds) > 0.35


def test_the_bound_comes_close_for_laplace_noise():
    found = sample(LaplaceCount(2, 1), (0, 1), runs=400_000, workers=1)
    assert 0.47 < found.lower_bound < 0.5
    assert found.runs == 300_000


def test_delta_is_taken_off():
    """One run in a hundred blurts the input out; with δ = 1/100 that is allowed."""
    coins = InsecureTestCoins(5)

    def blurting(given: int, size: int) -> np.ndarray:
        quiet = given + coins.laplaces(10, size)
        return np.where(coins.bernoullis(Fraction(1, 100), size), 10_000 + given, quiet)

    assert sample(blurting, (0, 1), epsilon=1, runs=60_000, workers=1).refuted
    found = sample(blurting, (0, 1), epsilon=1, delta="0.02", runs=60_000, workers=1)
    assert not found.refuted


def test_stopping_early():
    found = sample(LaplaceCount(1, 1), (0, 1), epsilon="1/10", runs=400_000, workers=1)
    assert found.refuted
    assert found.runs < 10_000
    assert found.runs * 2 >= sum(found.hits) > 0


@pytest.mark.parametrize(
    "kind", ["strings", "tuples", "ragged", "rows", "floats", "bools", "mixed"]
)
def test_any_kind_of_outcome(kind):
    coins = InsecureTestCoins(3)

    def mechanism(given: int, size: int):
        said = coins.bernoullis(Fraction(1 + 2 * given, 4), size)
        return {
            "strings": ["yes" if yes else "no" for yes in said],
            "tuples": [(int(yes), 0) for yes in said],
            "ragged": [(1,) if yes else (0, 0) for yes in said],
            "rows": np.column_stack([np.zeros(size, dtype=int), said]),
            "floats": np.where(said, 0.25, np.nan),
            "bools": said,
            "mixed": ["yes" if yes else None for yes in said],
        }[kind]

    found = sample(mechanism, (0, 1), epsilon="1/2", runs=8000, workers=1)
    assert found.refuted
    assert str(found.event)


def test_a_difference_hidden_in_the_second_column_is_found():
    coins = InsecureTestCoins(4)

    def mechanism(given: int, size: int):
        return np.column_stack(
            [coins.laplaces(50, size), coins.laplaces(50, size), given + coins.laplaces(1, size)]
        )

    assert sample(mechanism, (0, 1), epsilon="1/2", runs=30_000, workers=1).refuted


def test_the_best_of_several_pairs_is_used():
    pairs = [(0, 0), (5, 5), (0, 1), (3, 3)]
    found = sample(LaplaceCount(1, 2), pairs=pairs, runs=20_000, workers=1)
    assert found.pair == (0, 1)
    assert found.lower_bound > 0.8


def test_known_bad_pairs_are_neighbours_and_find_a_broken_mechanism():
    for one, other in known_bad_pairs(7):
        assert len(one) == len(other) == 7
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) == 1
    coins = InsecureTestCoins(6)

    def no_noise_on_questions(answers, size: int):
        rho = coins.laplaces(2, size)
        return (np.array(answers) >= rho[:, None]) @ (1 << np.arange(len(answers)))

    assert sample(no_noise_on_questions, epsilon=1, runs=20_000, workers=1).refuted


def test_scalar_mechanisms_are_wrapped():
    coins = InsecureTestCoins(7)

    def one(truth):
        return "yes" if coins.bernoulli(Fraction(1 + 2 * truth, 4)) else "no"

    assert sample(one, (0, 1), epsilon="1/2", runs=6000, workers=1).refuted
    assert as_bulk(one) == one_by_one(one)
    bulk = RandomisedResponse(1)
    assert as_bulk(bulk) is bulk


def test_everything_is_no_event():
    """Little to see in few runs: the event must still be one that can come out either way."""
    for seed in range(8):
        here, there = LaplaceCount(40, seed), LaplaceCount(40, 100 + seed)
        samples = [(here(0, size), there(1, size)) for size in (1000, 2000)]
        event = learn(*samples, delta=0.0, runs=2000)
        assert not event.members.all()
        assert str(event) != "anything"


class Suspected:
    """Tells its input now and then; theory suspects one of its outcomes, rightly or not."""

    def __init__(self, suspect: int, seed: int) -> None:
        self.suspect, self.coins = suspect, InsecureTestCoins(seed)

    def __call__(self, given: int, size: int) -> np.ndarray:
        quiet = given + self.coins.laplaces(20, size)
        return np.where(self.coins.bernoullis(Fraction(1, 50), size), 1000 + given, quiet)

    def suspicion(self, pair, runs: int) -> Suspicion:
        return Suspicion([self.suspect], swapped=True)


def test_a_suspicion_saves_runs_and_is_not_trusted():
    right = sample(Suspected(1001, 1), (0, 1), runs=40_000, workers=1)
    assert str(right.event) == "x0 = 1001"
    assert right.runs == 37_500
    wrong = sample(Suspected(3, 1), (0, 1), epsilon="1/2", runs=40_000, workers=1)
    assert wrong.refuted  # by an event that was learned
    assert str(wrong.event) != "x0 = 3"


def test_theory_suspects_the_pattern_that_the_search_found():
    """⊥ … ⊥ ⊤ of the telling pair; nothing where numbers are told, or the law cannot be listed."""
    law = Law(threshold_noise=Laplace(20), question_noise=Laplace(40), at_most=1)
    pair = best_pair_to_sample(law, questions=10, runs=10**7)
    asked = tuple(map(int, pair.answers)), tuple(map(int, pair.neighbour_answers))
    assert asked == (pair.answers, pair.neighbour_answers)
    assert suspicion(law, asked, 10**7) == ([1 << pair.pattern.index(True)], False)
    assert suspicion(law, asked[::-1], 10**7) == ([1 << pair.pattern.index(True)], True)
    assert suspicion(replace(law, value_noise=Laplace(9)), asked, 10**7) is None
    assert suspicion(replace(law, at_most=None), ((0,) * 30, (1,) * 30), 10**7) is None
    assert suspicion(law, ((0,) * 70, (1,) * 70), 10**7) is None
    assert suspicion(law, ((0, 1), (1,)), 10**7) is None  # the black box will complain


# Processes ------------------------------------------------------------------------------------


def test_two_processes_count_what_one_counts():
    coins = Coins()

    def mechanism(given: int, size: int):  # a closure: no pickle needed where processes fork
        return coins.bernoullis(Fraction(1 + 2 * given, 4), size)

    # True coins: confident enough that chance breaks this test once in 10^10 runs at most.
    found = sample(mechanism, (0, 1), runs=200_000, workers=2, confidence="0.9999999999")
    assert found.runs == 150_000
    assert 1.03 < found.lower_bound < log(3)


def test_copies_that_repeat_each_other_are_noticed(tmp_path):
    """Reproducible coins repeat in every process: the runs must come from one process then."""
    coins = InsecureTestCoins(8)
    log_file = tmp_path / "who"
    parent = os.getpid()

    def mechanism(given: int, size: int):
        if os.getpid() != parent:
            with log_file.open("a") as file:
                file.write(f"{size}\n")
        return given + coins.laplaces(2, size)

    found = sample(mechanism, (0, 1), runs=100_000, workers=2)
    assert found.runs == 75_000
    if log_file.exists():  # where processes fork: probes only, and not one counted run
        assert {int(line) for line in log_file.read_text().split()} == {4096}


def test_an_error_in_a_process_is_the_callers_error():
    coins, parent = Coins(), os.getpid()

    def fragile(given: int, size: int):
        if os.getpid() != parent and size != 4096:
            raise ZeroDivisionError("gone wrong")
        return given + coins.laplaces(2, size)

    with pytest.raises((ZeroDivisionError, TacitError)):
        sample(fragile, (0, 1), runs=50_000, workers=2)


def exists(process: str) -> bool:
    """Whether it still runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are seen in /proc")
def test_workers_do_not_outlive_a_parent_that_was_killed(tmp_path):
    """Three of them, since each inherits what its elder siblings have open."""
    code = f"""
import os
from pathlib import Path
from tacit.audit.learning import learn
from tacit.audit.workers import counting
from tacit.book.coins import Coins

coins, parent = Coins(), os.getpid()

def box(given, size):
    if os.getpid() != parent:
        Path({str(tmp_path)!r}, str(os.getpid())).touch()
    return given + coins.laplaces(2, size)

halves = [(box(0, 999), box(1, 999)) for _ in range(2)]
with counting(box, (0, 1), learn(*halves, delta=0.0, runs=999), workers=3) as count:
    for _ in count(0, 1 << 18):
        pass
    print("counted", flush=True)
    input()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "counted\n"
        children = [path.name for path in tmp_path.iterdir()]
        assert len(children) == 3
        assert all(map(exists, children))
        parent.kill()
    end = time.monotonic() + 120  # far more than it takes, for a busy machine
    while any(map(exists, children)) and time.monotonic() < end:
        time.sleep(0.02)
    left = [child for child in children if exists(child)]
    for child in left:
        os.kill(int(child), signal.SIGKILL)
    assert left == []


# Input and output -----------------------------------------------------------------------------


def test_bad_input_is_named():
    mechanism = RandomisedResponse(1)
    for options, message in (
        ({"confidence": 1}, "confidence"),
        ({"delta": 2}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"runs": 10}, "runs"),
        ({"pairs": []}, "at least one pair"),
        ({"pairs": [(0, 1, 2)]}, "two inputs"),
        ({"workers": 0}, "workers"),
    ):
        pair = None if "pairs" in options else (0, 1)
        with pytest.raises(BadParameter, match=message):
            sample(mechanism, pair, **options)
    with pytest.raises(BadParameter, match="one of the two"):
        sample(mechanism, (0, 1), pairs=[(0, 1)])
    with pytest.raises(BadParameter, match="that many outcomes"):
        sample(lambda given, size: [1], (0, 1), runs=1000)
    with pytest.raises(BadParameter, match="one thing"):
        sample(lambda given, size: 1, (0, 1), runs=1000)


def test_a_confidence_is_read_exactly():
    nearly_one = "0." + "9" * 20
    found = sample(RandomisedResponse(1), (0, 1), confidence=nearly_one, runs=20_000, workers=1)
    usual = sample(RandomisedResponse(1), (0, 1), confidence="0.95", runs=20_000, workers=1)
    assert 0 < found.lower_bound < usual.lower_bound
    with pytest.raises(BadParameter, match="confidence"):
        sample(RandomisedResponse(1), (0, 1), confidence="0." + "9" * 200, runs=2000)


@pytest.mark.parametrize("outcome", [{"a": 1}, {1}, (1, [2])], ids=str)
def test_outcomes_that_cannot_be_told_apart_are_named(outcome):
    with pytest.raises(BadParameter, match=r"outcomes of type .*hashable"):
        sample(lambda given, size: [outcome] * size, (0, 1), runs=1000)


def test_the_bar_shows_on_request_only(capfd):
    sample(RandomisedResponse(1), (0, 1), runs=2000, workers=1)
    assert capfd.readouterr().err == ""
    sample(RandomisedResponse(1), (0, 1), runs=2000, workers=1, progress=True)
    assert "sampling" in capfd.readouterr().err


def test_events_are_told_in_words():
    coins = InsecureTestCoins(9)
    samples = [(coins.laplaces(3, 20_000), 1 + coins.laplaces(3, 20_000)) for _ in range(2)]
    event = learn(samples[0], samples[1], delta=0.0, runs=10**6)
    assert "x0" in str(event)
    inside = event.count(samples[0][0]) / 20_000
    outside = event.count(samples[0][1]) / 20_000
    ratio = inside / outside if not event.swapped else outside / inside
    assert exp(0.2) < ratio < exp(0.45)


def test_new_outcomes_after_training_are_no_error():
    reader = OutcomeReader.learn(["a", "b"])
    assert reader.rows(["b", "c", "a"]).ravel().tolist() == [1, -1, 0]
    assert reader.words(0, None, 0) == "an outcome without a code"
    assert (reader.words(0, None, 1), reader.words(0, 1, None)) == ("a", "b")
