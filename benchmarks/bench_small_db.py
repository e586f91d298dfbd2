"""SmallDB: seconds for a draw, and how they grow; candidates a second when enumerating."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.candidates import EveryMultiset
from tacit.book.coins import Coins
from tacit.book.compression import linear_queries
from tacit.book.finite_release import FiniteQuestions
from tacit.book.heartbeat import Heartbeat
from tacit.book.level_counts import LevelCounts
from tacit.book.ordered_release import Intervals, Prefixes
from tacit.book.small_db import small_db

WIDEST = 2**62


def run(report: Report) -> None:
    usual = _release(Prefixes(10**5), 10**6, 200)
    widest = _release(Prefixes(WIDEST), 10**6, 200)
    report.at_most("prefixes, n = 10⁶, N = 10⁵, m = 200", usual, 1, "s")
    report.at_most("the same, N = 2⁶² against N = 10⁵", widest / usual, 2)
    report.at_most(
        "intervals, n = 10⁴, N = 10⁵, m = 100", _release(Intervals(10**5), 10**4, 100), 3, "s"
    )
    _growth(report)
    _enumeration(report)


def _growth(report: Report) -> None:
    for name, questions in (("prefixes", Prefixes), ("intervals", Intervals)):
        _series(report, f"{name}, N = 10⁵, m = 100, n", lambda n: _release(questions(10**5), n, 100), [10**3, 10**4, 10**5])  # fmt: skip
        _series(report, f"{name}, N = 10⁵, n = 10⁵, m", lambda m: _release(questions(10**5), 10**5, m), [30, 100, 300])  # fmt: skip
        _series(report, f"{name}, n = 10⁴, m = 100, N", lambda d: _release(questions(d), 10**4, 100), [100, 10**5, WIDEST])  # fmt: skip


def _series(report: Report, what: str, time: Callable[[int], float], values: list[int]) -> None:
    figures = ", ".join(f"{value:.0e}: {time(value):.3g} s" for value in values)
    report.note(what, figures)


def _release(questions: Prefixes, people: int, rows: int) -> float:
    """The best of a few: trials are random, and so is who else uses the machine."""
    share = np.random.default_rng(0).beta(2, 5, people)
    x = np.sort((share * questions.domain).astype(np.int64).clip(0, questions.domain - 1) + 1)
    coins = Coins()
    return seconds(lambda: small_db(x, questions, rows=rows, epsilon=1, coins=coins), repeats=5)


def _enumeration(report: Report) -> None:
    for atoms, rows, asked in ((20, 9, 10), (64, 5, 20), (9, 25, 8), (64, 4, 100)):
        queries = linear_queries(_questions(asked, atoms))
        x = np.random.default_rng(1).integers(0, 100, queries.atoms)
        rate = Fraction(1, 2 * rows)
        every = EveryMultiset(queries, x, rows, faithful=False)
        heartbeat = Heartbeat(None)
        once = seconds(lambda: LevelCounts(every, rate=rate, heartbeat=heartbeat), repeats=3)
        candidates = comb(queries.atoms + rows - 1, rows)
        what = f"enumeration, {asked} questions, {atoms} atoms, {rows} rows: {candidates:.1e} candidates"
        report.at_least(what, candidates / once / 1e6, 5, "million/s")
    questions = FiniteQuestions(linear_queries(_questions(100, 1000)))
    histogram = np.random.default_rng(1).integers(0, 100, 1000)
    coins = Coins()
    drawn = seconds(
        lambda: small_db(histogram, questions, rows=20, epsilon=1, coins=coins), repeats=3
    )
    report.note("sub-range of 10⁵, 100 questions, 1000 atoms, 20 rows", f"{drawn:.3g} s")


def _questions(asked: int, atoms: int) -> np.ndarray:
    """Random counting queries that tell all universe elements apart."""
    rng = np.random.default_rng(0)
    while True:
        matrix = rng.integers(0, 2, (asked, atoms))
        if len(np.unique(matrix, axis=1).T) == atoms:
            return matrix
