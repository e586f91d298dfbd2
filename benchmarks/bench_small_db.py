"""SmallDB: seconds for a draw, and how they grow; candidates a second when enumerating."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.small_db import FiniteQuestions, Intervals, Prefixes, small_db
from tacit.draws.candidates import EveryMultiset, LevelCounts
from tacit.draws.linear_queries import LinearQueries, linear_queries
from tacit.support import Heartbeat

WIDEST = 2**62


def run(report: Report) -> None:
    usual = _release(Prefixes(10**5), 10**6, 200, repeats=15)
    widest = _release(Prefixes(WIDEST), 10**6, 200, repeats=15)
    report.at_most("prefixes, n = 10⁶, N = 10⁵, m = 200", usual, 1, "s")
    report.at_most("the same, N = 2⁶² against N = 10⁵", widest / usual, 2)
    intervals = _release(Intervals(10**5), 10**4, 100)
    report.at_most("intervals, n = 10⁴, N = 10⁵, m = 100", intervals, 3, "s")
    for kind in (Prefixes, Intervals):
        _growth(report, kind)
    for atoms, rows, asked in ((20, 9, 10), (64, 5, 20), (9, 25, 8)):
        rate = _candidates_per_second(_random_queries(asked, atoms), rows) / 1e6
        what = f"enumeration, {asked} questions, {atoms} atoms, {rows} rows"
        report.at_least(what, rate, 5, "million/s")
    many = _candidates_per_second(_random_queries(100, 100), 4) / 1e6
    report.note("enumeration, 100 questions, 100 atoms, 4 rows", f"{many:.3g} million/s")
    report.note("sub-range of 10⁵, 100 questions, 1000 atoms, 20 rows", f"{_sub_range():.3g} s")


def _growth(report: Report, kind: type[Prefixes]) -> None:
    name = kind.__name__.lower()
    by_people = {n: _release(kind(10**5), n, 100) for n in (10**3, 10**4, 10**5, 10**6)}
    report.note(f"{name}, N = 10⁵, m = 100, by n", _figures(by_people))
    by_rows = {m: _release(kind(10**5), 10**5, m) for m in (30, 100, 300)}
    report.note(f"{name}, N = 10⁵, n = 10⁵, by m", _figures(by_rows))
    by_domain = {N: _release(kind(N), 10**4, 100) for N in (100, 10**5, WIDEST)}
    report.note(f"{name}, n = 10⁴, m = 100, by N", _figures(by_domain))


def _figures(times: dict[int, float]) -> str:
    return ", ".join(f"{value:.0e}: {time:.3g} s" for value, time in times.items())


def _release(questions: Prefixes, people: int, rows: int, repeats: int = 3) -> float:
    share = np.random.default_rng(0).beta(2, 5, people)
    x = np.sort((share * questions.domain).astype(np.int64).clip(0, questions.domain - 1) + 1)
    draw = partial(small_db, x, questions, rows=rows, epsilon=1, coins=Coins())
    return seconds(draw, repeats=repeats)


def _candidates_per_second(queries: LinearQueries, rows: int) -> float:
    x = np.random.default_rng(1).integers(0, 100, queries.atoms)
    every = EveryMultiset(queries, x, rows)
    count = partial(LevelCounts, every, rate=Fraction(1, 2 * rows), heartbeat=Heartbeat(None))
    return FiniteQuestions(queries).multisets(rows) / seconds(count, repeats=3)


def _sub_range() -> float:
    questions = FiniteQuestions(_random_queries(100, 1000))
    x = np.random.default_rng(1).integers(0, 100, 1000)
    return seconds(partial(small_db, x, questions, rows=20, epsilon=1, coins=Coins()), repeats=3)


def _random_queries(asked: int, atoms: int) -> LinearQueries:
    """Counting queries that tell all universe elements apart."""
    rng = np.random.default_rng(0)
    while True:
        queries = linear_queries(rng.integers(0, 2, (asked, atoms)))
        if queries.atoms == atoms:
            return queries
