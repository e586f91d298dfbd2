"""The size of SmallDB's databases: the least m that is proved to suffice for α, and back.

Thm 4.8 says that O(VC-DIM(Q)/α²) rows suffice.  What is offered here is a number with a proof:
the best of the clauses in ``size_clauses`` and ``size_by_vc`` that apply to what is known about
the class, and its name.  All arguments describe the questions, none the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.book.shattering import VcDimension
from tacit.book.sizing.size_by_vc import VcOnly
from tacit.book.sizing.size_clauses import Clause, Hoeffding, Proportional
from tacit.errors import BadParameter
from tacit.privacy import Number, probability, show, whole


@dataclass(frozen=True, slots=True)
class ProvedSize:
    """Every database has one of ``rows`` rows that answers each question within ``alpha``.

    >>> print(rows_needed("1/20", structure="prefixes"))
    m = 10 rows for α = 0.05 (prefixes)
    """

    rows: int
    alpha: Fraction
    clause: str

    def __str__(self) -> str:
        return f"m = {self.rows} rows for α = {show(self.alpha)} ({self.clause})"


def rows_needed(
    alpha: Number,
    *,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    atoms: Number | None = None,
    structure: str | None = None,
) -> ProvedSize:
    """The least m that is proved to suffice for α, and the clause that proves it.

    Give whatever is known: ``questions``, how many different questions there are; ``vc``, the VC
    dimension or an upper bound of it (of an inexact ``VcDimension`` the upper bound is taken; for
    0/1 questions only, erratum E16); ``atoms``, how many kinds of points the questions tell
    apart; ``structure``, one of prefixes, intervals, laminar, or unimodular (the matrix with the
    all-ones row added is totally unimodular, which the caller vouches for).

    Accuracy: Thm 4.8 with explicit constants.

    >>> print(rows_needed("1/20", questions=1000, vc=2, atoms=45))
    m = 225 rows for α = 0.05 (few atoms)
    """
    target = probability(alpha, "alpha")
    clauses = clauses_for(questions=questions, vc=vc, atoms=atoms, structure=structure)
    rows, clause = min(((c.rows(target), c) for c in clauses), key=lambda found: found[0])
    return ProvedSize(rows, target, clause.name)


def alpha_of_rows(
    rows: Number,
    *,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    atoms: Number | None = None,
    structure: str | None = None,
) -> ProvedSize:
    """α_m: the least α for which a clause proves that m rows suffice, rounded up.

    An error is never above 1, so α_m is at most 1 (clause "any row will do").

    >>> print(alpha_of_rows(10, structure="intervals"))
    m = 10 rows for α = 0.1 (intervals)
    """
    m = whole(rows, "rows")
    clauses = clauses_for(questions=questions, vc=vc, atoms=atoms, structure=structure)
    best = ProvedSize(m, Fraction(1), "any row will do")
    for clause in clauses:
        alpha = clause.alpha(m)
        if alpha is not None and alpha < best.alpha:
            best = ProvedSize(m, alpha, clause.name)
    return best


def clauses_for(
    *,
    questions: Number | None,
    vc: Number | VcDimension | None,
    atoms: Number | None,
    structure: str | None,
) -> list[Clause]:
    """Every clause that applies to what is known about the class."""
    k = None if questions is None else whole(questions, "questions")
    d = None if vc is None else _upper_bound(vc)
    if d == 0:  # two different questions would shatter a point on which they differ
        k = 1
    a = None if atoms is None else whole(atoms, "atoms")
    clauses: list[Clause] = []
    if structure is not None:
        clauses.append(Proportional.structured(structure))
    if k is not None or a is not None:
        clauses.append(Proportional.rounding(a, k))
    if k is not None:
        clauses.append(Hoeffding.over_questions(k))
    if d is not None and d > 0:
        clauses.append(VcOnly(d))
        if a is not None:
            clauses.append(Hoeffding.over_cuts(d, a))
    if not clauses:
        raise BadParameter(
            "questions", "nothing about the class", "give questions, vc, atoms or structure"
        )
    return clauses


def _upper_bound(vc: Number | VcDimension) -> int:
    return vc.high if isinstance(vc, VcDimension) else whole(vc, "vc", at_least=0)
