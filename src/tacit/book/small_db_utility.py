"""How accurate SmallDB is: Theorem 4.9 with explicit constants; and how long a release takes.

SmallDB draws a database y of m rows with weight e^(−εS/2), where S = max_f |n·f(x) − n·f(y)|
has sensitivity 1.  It chooses from the C(|A|+m−1, m) multisets of m atoms, one of which has
S ≤ n·α_m (`tacit.book.small_db_size`).  So, with probability 1 − β,

    max_f |f(x) − f(y)|  ≤  α_m + (2/(εn))·(ln C(|A|+m−1, m) + ln(1/β)).

The book counts |X|^m databases, which is never fewer, and states the theorem up to a constant
(E16 in `tacit.errata`); the functions here give numbers, rounded up.  The theorem has two forms:
one gives the error for n people (`best_rows`), the other the n for an error (`people_needed`).
Both use the best m.

Privacy: n is a public number that the steward announces, never one that is counted from the data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from math import ceil, floor, isqrt, log, log2, log10

from tacit.book.shattering import VcDimension
from tacit.book.small_db import MOST_ROWS, FiniteQuestions, Prefixes, check_parameters
from tacit.book.small_db_size import (
    ClassFacts,
    FatBound,
    Proportional,
    SizeClause,
    aimed_error,
)
from tacit.errors import BadParameter
from tacit.numbers import Number, exact, positive, probability, show, whole
from tacit.numerics import certified
from tacit.numerics.binomial import log_binomial

__all__ = ["Utility", "best_rows", "error_bound", "people_needed", "usual_rows"]


def error_bound(
    n: Number,
    *,
    epsilon: Number,
    beta: Number,
    rows: Number,
    alpha_m: Number,
    atoms: Number,
) -> Fraction:
    """The error that SmallDB does not exceed with probability 1 − β, rounded up; at most 1.

    Accuracy: Theorem 4.9 with explicit constants.

    >>> from tacit.numbers import show
    >>> show(error_bound(10_000, epsilon=1, beta=0.05, rows=50, alpha_m="1/100", atoms=100))
    '0.02908'
    """
    people = whole(n, "n")
    noise = noise_of(epsilon, beta, atoms)
    at_best = exact(alpha_m, "alpha_m")
    if not 0 <= at_best <= 1:
        raise BadParameter("alpha_m", alpha_m, "it must lie in [0, 1]")
    return min(certified.round_up(at_best + noise(whole(rows, "rows")) / people), Fraction(1))


def noise_of(epsilon: Number, beta: Number, atoms: Number) -> Callable[[int], Fraction]:
    """The error of the draw, times n, as a function of m: (2/ε)(ln(candidates) + ln(1/β))."""
    points = whole(atoms, "atoms")
    log_beta = certified.ln(1 / probability(beta, "beta"))[1]
    per_person = 2 / positive(epsilon, "epsilon")
    return lambda m: per_person * (log_candidates(m, points) + log_beta)


def log_candidates(rows: int, atoms: int) -> Fraction:
    """An upper bound on ln C(|A|+m−1, m), for m = `rows`.

    >>> float(log_candidates(2, 3))  # ln 6
    1.791759469228055
    """
    return Fraction(0) if atoms == 1 else log_binomial(atoms + rows - 1, rows)


# How many rows are best for n people, and how many people an error needs.


@dataclass(frozen=True, slots=True)
class Utility:
    """With n = ``people`` and m = ``rows`` no error exceeds ``error``, with probability 1 − β.

    ``alpha`` is α_m, the error that the size m alone causes, and ``clause`` is its proof.
    """

    people: int
    rows: int
    alpha: Fraction
    clause: str
    error: Fraction

    def __str__(self) -> str:
        return (
            f"n = {self.people} people: error at most {show(self.error)} with m = {self.rows} rows "
            f"(α_m = {show(self.alpha)}, {self.clause})"
        )


def best_rows(
    n: Number,
    *,
    epsilon: Number,
    beta: Number,
    atoms: Number,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    structure: str | None = None,
    fat: FatBound | Sequence[FatBound] | None = None,
) -> Utility:
    """The m with the least proved error for n people: Theorem 4.9, first form.

    What is known about the class is given as for ``rows_needed``; if its atoms are not known,
    ``atoms`` may be the number of points in the universe.

    >>> print(best_rows(10_000, epsilon=1, beta=0.05, structure="prefixes", atoms=100))
    n = 10000 people: error at most 0.02905 with m = 47 rows (α_m = 0.01064, prefixes)
    """
    people = whole(n, "n")
    noise = noise_of(epsilon, beta, atoms)
    facts = ClassFacts.read(questions=questions, vc=vc, atoms=atoms, structure=structure, fat=fat)
    plans = []
    for clause in _clauses(facts):

        def error(m: int, clause: SizeClause = clause) -> Fraction | None:
            alpha = clause.alpha(m)
            return None if alpha is None else alpha + noise(m) / people

        plans.append(_utility(people, _least(error, start=1), clause, noise))
    return min(plans, key=lambda plan: plan.error)


def usual_rows(n: Number, *, epsilon: Number, atoms: Number) -> int:
    """The m that usually errs least: the largest m ≤ √(εn) with 2 ln(candidates) ≤ 0.4·εn.

    The m of `best_rows` makes the *proved* error least, which allows for the worst data.  On data
    as they are, more rows err less, until the candidates are too many: a row that goes astray costs
    a score of n/m, so a weight of εn/(2m) nats, and gains at most ln(candidates)/m.  So none does
    where 2 ln(candidates) is well below εn.  The 0.4 was read off measurements
    (`docs/small-db-accuracy.md`); it is a rule of thumb, and no promise depends on it.

    >>> usual_rows(10_000, epsilon=1, atoms=100)
    100
    """
    people, points = whole(n, "n"), whole(atoms, "atoms")
    signal = positive(epsilon, "epsilon") * people
    most = min(isqrt(floor(signal)), MOST_ROWS)
    allowed = signal / 5
    rows_that_fit = bisect_left(
        range(1, most + 1), True, key=lambda rows: log_candidates(rows, points) > allowed
    )
    return max(rows_that_fit, 1)


def people_needed(
    error: Number,
    *,
    epsilon: Number,
    beta: Number,
    atoms: Number,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    structure: str | None = None,
    fat: FatBound | Sequence[FatBound] | None = None,
) -> Utility:
    """The least n for which this error is proved for some m: Theorem 4.9, second form.

    What is known about the class is given as for ``best_rows``.

    >>> print(people_needed(0.03, epsilon=1, beta=0.05, structure="prefixes", atoms=100))
    n = 9508 people: error at most 0.03 with m = 46 rows (α_m = 0.01087, prefixes)
    """
    target = aimed_error(error, "error")
    noise = noise_of(epsilon, beta, atoms)
    facts = ClassFacts.read(questions=questions, vc=vc, atoms=atoms, structure=structure, fat=fat)
    plans = []
    for clause in _clauses(facts):

        def people(m: int, clause: SizeClause = clause) -> Fraction | None:
            alpha = clause.alpha(m)
            return None if alpha is None or alpha >= target else noise(m) / (target - alpha)

        start = clause.rows(target)
        if start is None:
            continue
        rows = _least(people, start)
        n = max(ceil(people(rows) or 0), 1)
        plan = _utility(n, rows, clause, noise)
        # Rounding up the last digit must not exceed the error that was asked for and proved.
        plans.append(replace(plan, error=min(plan.error, target)))
    return min(plans, key=lambda plan: plan.people)


def _clauses(facts: ClassFacts) -> list[SizeClause]:
    """The clauses that apply; with one atom, α_m = 0 needs no other proof."""
    return [Proportional.rounding(1, None)] if facts.atoms == 1 else facts.clauses()


def _utility(n: int, rows: int, clause: SizeClause, noise: Callable[[int], Fraction]) -> Utility:
    alpha = clause.alpha(rows)
    assert alpha is not None
    error = certified.round_up(alpha + noise(rows) / n)
    return Utility(n, rows, alpha, clause.name, min(error, Fraction(1)))


def _least(cost: Callable[[int], Fraction | None], start: int) -> int:
    """The m ≥ start of least cost; the cost falls and then rises, and None exceeds every number.

    This is so for each clause: α_m falls ever more slowly, with a fixed power of m, while the
    logarithm of the range keeps growing, at a rate that falls more slowly still.
    """

    @cache
    def key(m: int) -> tuple[bool, Fraction]:
        value = cost(m)
        return (True, Fraction(-m)) if value is None else (False, value)

    low, middle, step = start, start, 1
    while key(start + step) < key(middle):
        low, middle, step = middle, start + step, 2 * step
    high = start + step
    while high - low > 2:
        third = (high - low) // 3
        if key(low + third) <= key(high - third):
            high -= third
        else:
            low += third
    return min(range(low, high + 1), key=key)


# How a release will be drawn and how long that takes, from public numbers only.
#
# The estimates were fitted to measurements on one core of a server of the 2020s; they distinguish a
# second from an hour.  They use the announced number of people, never the data.


@dataclass(frozen=True)
class Expectation:
    """What to expect of a release.

    It takes about ``seconds`` if the data has about as many people as announced and fills its
    domain, and at most about ``longest`` otherwise.
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
    """The sampler of a release, the size of its range and the time it takes."""
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
    """Seconds for counts and for as many trials, at the slack where most of the probability is.

    Data that fills only a small part of its domain is hard: so many candidates are far from it that
    most of the probability lies up to 2 ln(their number)/ε farther out.
    """
    n, parts = max(n, 1), questions.slacks
    slack = parts * n / (2 * rows)
    if hard:
        slack += 2 * rows * log(1 + questions.domain / rows) / epsilon
    else:
        slack = min(
            slack + 2 * rows / epsilon, (0.8 + parts) * (n * n / (rows * epsilon)) ** (1 / 3)
        )
    # How many boxes overlap, there and where counts are made farther out.
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
    """The most rows for which the whole range is enumerated; 0 if even one row is too many."""
    return bisect_left(
        range(1, MOST_ROWS + 1), True, key=lambda rows: not questions.enumerated(rows)
    )
