"""How many rows serve n people best, and how many people are needed: Thm 4.9 in both its forms.

The first form fixes the number of people n and asks for the error, the second fixes the error
and asks for n; either way m is chosen to serve best.  Both are numbers with a proof, rounded up;
the bound itself is in ``small_db_utility``.

Privacy: n is a public number that the steward types, never one that is counted from the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil

from tacit import certified
from tacit.book.shattering import VcDimension
from tacit.book.sizing.size_clauses import Clause, Proportional
from tacit.book.sizing.small_db_size import clauses_for
from tacit.book.sizing.small_db_utility import noise_of
from tacit.privacy import Number, probability, show, whole


@dataclass(frozen=True, slots=True)
class Utility:
    """With n = ``people`` and m = ``rows``, every answer is within ``error``, save probability β.

    ``alpha`` is α_m, what the size m costs by itself, and ``clause`` the proof of it.
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
) -> Utility:
    """The m that promises the least error for n people: Thm 4.9, first form.

    What is known about the class is given as in ``rows_needed``; if its atoms are not, all
    points of the universe will do for ``atoms``.

    >>> print(best_rows(10_000, epsilon=1, beta=0.05, structure="prefixes", atoms=100))
    n = 10000 people: error at most 0.02905 with m = 47 rows (α_m = 0.01064, prefixes)
    """
    people = whole(n, "n")
    noise = noise_of(epsilon, beta, atoms)
    plans = []
    for clause in _clauses(questions, vc, atoms, structure):

        def error(m: int, clause: Clause = clause) -> Fraction | None:
            alpha = clause.alpha(m)
            return None if alpha is None else alpha + noise(m) / people

        plans.append(_utility(people, _least(error, start=1), clause, noise))
    return min(plans, key=lambda plan: plan.error)


def people_needed(
    error: Number,
    *,
    epsilon: Number,
    beta: Number,
    atoms: Number,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    structure: str | None = None,
) -> Utility:
    """The least n for which some m promises this error: Thm 4.9, second form.

    What is known about the class is given as in ``best_rows``.

    >>> print(people_needed(0.03, epsilon=1, beta=0.05, structure="prefixes", atoms=100))
    n = 9508 people: error at most 0.03 with m = 46 rows (α_m = 0.01087, prefixes)
    """
    target = probability(error, "error")
    noise = noise_of(epsilon, beta, atoms)
    plans = []
    for clause in _clauses(questions, vc, atoms, structure):

        def people(m: int, clause: Clause = clause) -> Fraction | None:
            alpha = clause.alpha(m)
            return None if alpha is None or alpha >= target else noise(m) / (target - alpha)

        rows = _least(people, start=clause.rows(target))
        n = max(ceil(people(rows) or 0), 1)
        plan = _utility(n, rows, clause, noise)
        # Rounding up a last digit must not lift it above what was asked for and proved.
        plans.append(replace(plan, error=min(plan.error, target)))
    return min(plans, key=lambda plan: plan.people)


def _clauses(
    questions: Number | None,
    vc: Number | VcDimension | None,
    atoms: Number,
    structure: str | None,
) -> list[Clause]:
    """One atom needs no further proof: α_m = 0."""
    if whole(atoms, "atoms") == 1:
        return [Proportional.rounding(1, None)]
    return clauses_for(questions=questions, vc=vc, atoms=atoms, structure=structure)


def _utility(n: int, rows: int, clause: Clause, noise: Callable[[int], Fraction]) -> Utility:
    alpha = clause.alpha(rows)
    assert alpha is not None
    error = certified.round_up(alpha + noise(rows) / n)
    return Utility(n, rows, alpha, clause.name, min(error, Fraction(1)))


def _least(cost: Callable[[int], Fraction | None], start: int) -> int:
    """The m ≥ start of least cost, which falls and then rises; None is more than any number.

    It does, clause by clause: α_m falls by less and less, in a fixed power of m, while the
    logarithm of the range keeps growing, at a rate that falls more slowly.
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
