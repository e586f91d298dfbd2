"""How a SmallDB release will be drawn and how long it takes, from public numbers only.

The estimates were fitted to measurements on one core of a 2020s server and are meant to tell a
second from an hour.  They use the announced number of people, never the data.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from math import log, log2, log10

from tacit.book.sampling.finite_release import FiniteQuestions
from tacit.book.sampling.ordered_release import Prefixes
from tacit.book.small_db import MOST_ROWS, check_parameters
from tacit.privacy import Number, whole


@dataclass(frozen=True)
class Expectation:
    """What to expect of a release.

    ``seconds`` if the data has about as many people as announced and fills its domain, ``longest``
    if it does not.
    """

    sampler: str
    seconds: float
    longest: float
    questions: Prefixes | FiniteQuestions = field(repr=False)
    rows: int = field(repr=False)

    @property
    def candidates(self) -> int:
        """How many databases the mechanism chooses from, all of the same weight."""
        return self.questions.candidates(self.rows)


def expect(
    questions: Prefixes | FiniteQuestions,
    *,
    rows: int,
    epsilon: Number,
    people: int,
    rows_per_person: int = 1,
) -> Expectation:
    """The sampler, the size of its range and the time it takes."""
    size, rate = check_parameters(rows=rows, epsilon=epsilon, rows_per_person=rows_per_person)
    most = whole(people, "people", at_least=0) * rows_per_person
    if isinstance(questions, FiniteQuestions):
        return _finite(questions, size, most)
    fewer = [most >> shift for shift in range(0, most.bit_length() + 2, 2)]
    hard = [_ordered(questions, size, 2 * float(rate), n, hard=True) for n in fewer]
    easy = _ordered(questions, size, 2 * float(rate), most, hard=False)
    sampler = "intervals by slack" if questions.slacks == 2 else "prefixes by slack"
    return Expectation(sampler, easy, max(easy, *hard), questions, size)


def _ordered(questions: Prefixes, rows: int, epsilon: float, n: int, *, hard: bool) -> float:
    """Seconds for counts and for as many trials, at the slack where the law has its bulk.

    Data that fills a small part of its domain is hard: so many candidates are far from it that
    the bulk lies up to 2 ln(their number)/ε farther out.
    """
    n, parts = max(n, 1), questions.slacks
    slack = parts * n / (2 * rows)
    if hard:
        slack += 2 * rows * log(1 + questions.domain / rows) / epsilon
    else:
        slack = min(
            slack + 2 * rows / epsilon, (0.8 + parts) * (n * n / (rows * epsilon)) ** (1 / 3)
        )
    # How many boxes meet, there and where counts are made farther out.
    overlap = min(1 + (2 if hard else 3) * min(slack / parts, n / 2) * rows / n, rows)
    counts: float = 6 + 12 * max(log10(epsilon * n) - 2, 0)
    if parts == 2:  # the boxes follow a ridge, whose length grows with εn while values differ
        counts = min(23 * max(epsilon * n / 100, 0.2) ** 0.7, 20 + 4 * min(questions.domain, n))
    point_bits = max(log2(questions.domain * overlap / rows), 1)
    digit_products: float = (rows * point_bits / 60) * (overlap * point_bits / 90)
    term = 4e-7 + 7e-10 * min(digit_products, 30 * digit_products**0.75)
    draw = rows * overlap**2 * (3e-7 + 7e-10 * rows * point_bits / 60)
    terms = rows * overlap * (1 - overlap / (2 * rows))
    return float(1.7 * counts * (8e-5 + terms * term) + draw)


def _finite(questions: FiniteQuestions, rows: int, n: int) -> Expectation:
    asked = questions.queries.answers.shape[0]
    largest = rows * n * questions.queries.denominator
    slower = 1 if largest < 1 << 30 else 2 if largest < 1 << 62 else 100
    if questions.enumerated(rows):
        tables = questions.queries.atoms * rows * 1e-4
        seconds = 2 * questions.multisets(rows) * (12 + 1.5 * asked) * 1e-9 * slower + tables
        return Expectation("enumeration", seconds, seconds, questions, rows)
    seconds = questions.part(rows) * rows * (60 + 3 * asked) * 1e-9 * slower
    return Expectation("sub-range", seconds, seconds, questions, rows)


def most_rows(questions: FiniteQuestions) -> int:
    """The largest number of rows whose whole range is enumerated; 0 if even one row is too many."""
    return bisect_left(
        range(1, MOST_ROWS + 1), True, key=lambda rows: not questions.enumerated(rows)
    )
