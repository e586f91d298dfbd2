"""How far what is divided by a count may be off, said before it is paid.

Accuracy: all that is measured is within its own error but with probability β in all.  Then the
error that the result will state, which is how far the ends of its interval are from the value, is
at most what is said here, if there are so many values.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.analyst.query_quantiles import groups, tree_error
from tacit.book.laplace import error_steps
from tacit.numbers import spaced
from tacit.numerics import certified
from tacit.tables.language.aggregate_kinds import Mean, Portion, Ranked, Ratio, Spread
from tacit.tables.language.selected import Selected

if TYPE_CHECKING:
    from tacit.analyst.query_plan import QueryPlan

_ONE = Fraction(1)


def divided(column: Selected) -> bool:
    """Whether its error depends on how many values there are."""
    return isinstance(column.kind, Mean | Ratio | Portion | Spread)


def said_of(column: Selected, values: int) -> str:
    """Of what the error is said, in words."""
    kind = column.kind
    if isinstance(kind, Portion):
        return f"a share of {values}"
    if isinstance(kind, Ratio):
        return f"a ratio of {values} to {values}"
    if isinstance(kind, Spread):
        return f"{'a deviation' if kind.root else 'the variance'} of {values} values"
    return f"a mean of {values} values"


def planned_error(
    column: Selected, scales: Sequence[Fraction], beta: Fraction, values: int
) -> Fraction:
    """The most by which it is off but with probability β, if it is made of so many values."""
    kind, each = column.kind, beta / len(scales)
    parts = zip(column.parts, scales, strict=True)
    errors = [error_steps(scale, each) * part.grid for part, scale in parts]
    if isinstance(kind, Portion):
        found = _clamped(errors[0], Fraction(0), errors[1], Fraction(1), values)
    elif isinstance(kind, Ratio):
        found, _ = _quotient(errors[1], errors[0], Fraction(1), values, kind.below.grid)
    elif isinstance(kind, Mean):
        found = _clamped(errors[0], errors[0], errors[1], kind.width * kind.step, values)
    else:
        assert isinstance(kind, Spread)
        found = _spread_error(kind, errors, values)
    return abs(column.factor) * found


def _clamped(
    off: Fraction, counted: Fraction, summed: Fraction, widest: Fraction, values: int
) -> Fraction:
    """The error of a quotient that is kept within bounds: (s + a·half the width)/(values − 2·off).

    A mean has off = a, the error of its count.  A share is that of a sum of two counts, which are
    each off by no more than s, and nothing else: so a = 0.
    """
    if values <= 2 * off:
        return widest
    return min((summed + counted * widest / 2) / (values - 2 * off), widest)


def _quotient(
    counted: Fraction,
    summed: Fraction,
    size: Fraction,
    values: int,
    step: Fraction = _ONE,
) -> tuple[Fraction, Fraction]:
    """The error of a quotient of this size that has no bounds, and how large it may then be.

    With c below the line and s above, the noisy one is at most q = (values·size + s)/(values − c),
    and its error (s + c·q)/(values − 2c).
    """
    largest = (values * size + summed) / max(values - counted, step)
    return (summed + counted * largest) / max(values - 2 * counted, step), largest


def _spread_error(kind: Spread, errors: Sequence[Fraction], values: int) -> Fraction:
    """The errors of the mean of y² − h²/2 and of the square of the mean of y, added up.

    For a root, the root of that: |√v − √w| ≤ √|v − w|.  That of a sample has a factor n/(n − 1).
    """
    counted, summed, squared = errors
    half = kind.width * kind.step / 2
    most, fewest = half**2, values - 2 * counted
    off = most
    if fewest >= 1:
        mean, largest = _quotient(counted, summed, half, values)
        square, _ = _quotient(counted, squared, most / 2, values)
        off = min(square + mean * (2 * largest + mean), most)
    if kind.sample:
        fewest = max(fewest, Fraction(2))
        off = off * fewest / (fewest - 1) + most / (fewest - 1)
    return certified.sqrt(off)[1] if kind.root else off


def instead(plan: QueryPlan) -> list[str]:
    """The error of several quantiles of one column if they were drawn in the other way."""
    return [_other_way(plan, places) for places in groups(plan.select)]


def _other_way(plan: QueryPlan, places: Sequence[int]) -> str:
    column = plan.select.columns[places[0]]
    assert isinstance(column.kind, Ranked)
    all_of = f"{len(places)} quantiles of {column.kind.column}"
    if places in plan.trees:
        ranks = max(plan.alone(place).error() for place in places)
        return (
            f"{all_of} from one tree of counts (drawn one by one: ± "
            f"{spaced(Fraction(ranks))} ranks, 95 %)"
        )
    tree = tree_error(plan, places)
    if tree is None:
        return f"{all_of}, drawn one by one: there is no tree of counts for so many values"
    return (
        f"{all_of}, drawn one by one (from one tree of counts: ± "
        f"{spaced(Fraction(tree))} ranks, 95 %)"
    )
