"""The exact privacy loss of a mechanism of the sparse vector family: no sampling.

All strings of ⊤ and ⊥ are walked through; where ρ is drawn again the law factorises, so that what
follows a restart is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from math import inf, isfinite, isinf, nextafter
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import instance
from tacit.audit.blocks import Closed, Side, close
from tacit.audit.columns import columns
from tacit.audit.outcomes import Outcomes, Pattern, excess, outcomes, walk
from tacit.audit.reading import Mechanism, Setting, read
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number
from tacit.numbers import exact as exactly
from tacit.numerics.scaled import UNIT, Scaled, log_ratio, strict


@runtime_checkable
class HasOutcomes(Protocol):
    """A mechanism that can list its finitely many outcomes and their chances."""

    def outcome_law(self, answers: Sequence[Any]) -> Mapping[Any, float | Fraction]:
        """Every outcome, on a database with these true answers."""


Floats = NDArray[np.float64]
Found = list[tuple[Pattern, Closed]]

_MOST_PATTERNS = 1 << 16
_FIRST_REACH, _LAST_REACH = 48.0, 200.0  # in decay lengths of ρ
_TOO_VAGUE = 1e-10
_NOT_A_LAW = 1e-6  # chances may be rounded, and rare outcomes left out


@dataclass(frozen=True, eq=False)
class ExactLoss:
    """The law of a mechanism on two neighbouring databases, pattern by pattern.

    ``loss`` is the largest |ln P/P′| over all patterns and all numbers released with them, and is
    off by at most ``error``; `delta` is off by at most `delta_error`.
    """

    patterns: tuple[Any, ...] = field(repr=False)
    probabilities: Floats = field(repr=False)
    neighbour_probabilities: Floats = field(repr=False)
    log_ratios: Floats = field(repr=False)  # of the patterns alone
    lowest: Floats = field(repr=False)  # ln P/P′ with the worst numbers released
    highest: Floats = field(repr=False)
    loss: float
    error: float
    _outcomes: Callable[[], Outcomes] = field(repr=False)

    @property
    def worst(self) -> Any:
        """The pattern that loses most."""
        return self.patterns[int(np.maximum(self.highest, -self.lowest).argmax())]

    def exceeds(self, epsilon: Number, delta: Number = 0) -> bool:
        """Whether this pair is certainly not (ε, δ)-close, beyond all errors."""
        most, allowed = exactly(epsilon, "epsilon"), exactly(delta, "delta")
        if allowed <= 0:
            return self.at_least() > most
        value, error = excess(self._law_of_outcomes, float(most))
        return isfinite(error) and Fraction(value) - Fraction(error) > allowed

    def at_least(self, delta: Number = 0) -> float:
        """A lower bound of `epsilon` that is certain, beyond all errors."""
        allowed = exactly(delta, "delta")
        if allowed <= 0:
            return certainly(self.loss, self.error)
        low, high = 0.0, 1.0
        if not self.exceeds(0, allowed):
            return 0.0
        while self.exceeds(high, allowed):
            low, high = high, 2 * high
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.exceeds(middle, allowed) else (low, middle)
        return low

    def delta(self, epsilon: Number) -> float:
        """The least δ for which this pair is (ε, δ)-close: Σ (P − e^ε P′)₊, the worse direction."""
        return excess(self._law_of_outcomes, float(exactly(epsilon, "epsilon")))[0]

    def delta_error(self, epsilon: Number) -> float:
        """How far ``delta(epsilon)`` may be off."""
        return excess(self._law_of_outcomes, float(exactly(epsilon, "epsilon")))[1]

    def epsilon(self, delta: Number) -> float:
        """The least ε for which this pair is (ε, δ)-close; the loss itself for δ = 0.

        It is as good as ``delta`` is; `at_least` and `exceeds` say what is certain.
        """
        allowed = float(exactly(delta, "delta"))
        if allowed <= 0:
            return self.loss
        if self.delta(0) <= allowed:
            return 0.0
        low, high = 0.0, 1.0
        while self.delta(high) > allowed:
            low, high = high, 2 * high
            if high > 700:  # e^ε is beyond a float: what is left is impossible on one side
                return inf
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > allowed else (low, middle)
        return high

    @cached_property
    def _law_of_outcomes(self) -> Outcomes:
        return strict(self._outcomes)()

    def __str__(self) -> str:
        size = "∞" if isinf(self.loss) else f"{self.loss:.12g} ± {self.error:.1g}"
        return f"loss {size}, at {written(self.worst)}"


def certainly(loss: float, error: float) -> float:
    """A lower bound of a loss that has this error."""
    if isinf(error):
        return 0.0
    return loss if isinf(loss) else nextafter(loss - error, -inf)


def written(outcome: object) -> str:
    """An outcome as it is printed: a string of ⊤ and ⊥ as such, anything else as it is.

    >>> written((False, False, True)), written((False,) * 99 + (True,)), written((0, 2))
    ('⊥⊥⊤', '⊥^99 ⊤', '(0, 2)')
    """
    if not (isinstance(outcome, tuple) and all(isinstance(bit, bool) for bit in outcome)):
        return str(outcome)
    pattern: Pattern = outcome
    parts = [
        (name, len(list(same)))
        for name, same in groupby("⊤" if above else "⊥" for above in pattern)
    ]
    if all(count <= 6 for _, count in parts):
        return "".join(name * count for name, count in parts)
    return " ".join(name if count == 1 else f"{name}^{count}" for name, count in parts)


@strict
def compare(
    here: Mapping[Any, float | Fraction], there: Mapping[Any, float | Fraction]
) -> ExactLoss:
    """The exact loss of any mechanism with finitely many outcomes, from its law on two databases.

    >>> stay, lie = Fraction(3, 4), Fraction(1, 4)
    >>> round(compare({"yes": stay, "no": lie}, {"yes": lie, "no": stay}).loss, 9)  # ln 3
    1.098612289
    """
    for name, law in (("here", here), ("there", there)):
        instance(law, name, Mapping, "give the chance of each outcome: {'yes': 0.75, 'no': 0.25}")
    exactly_here, exactly_there = _chances(here, "here"), _chances(there, "there")
    names = tuple(dict.fromkeys([*exactly_here, *exactly_there]))
    one, other = (
        Scaled.of_fractions([law.get(name, Fraction(0)) for name in names])
        for law in (exactly_here, exactly_there)
    )
    ratios = log_ratio(one, other)
    loss = float(np.abs(ratios).max())
    return ExactLoss(
        patterns=names,
        probabilities=one.floats(),
        neighbour_probabilities=other.floats(),
        log_ratios=ratios,
        lowest=ratios,
        highest=ratios,
        loss=loss,
        error=16 * UNIT * (1 + loss) if isfinite(loss) else 0.0,
        _outcomes=lambda: Outcomes(one.floats(), other.floats(), 2 * UNIT, 2 * UNIT),
    )


def _chances(law: Mapping[Hashable, float | Fraction], side: str) -> dict[Hashable, Fraction]:
    """All possible outcomes, exactly: a chance too small for a float is still a chance."""
    try:
        chances = {name: Fraction(chance) for name, chance in law.items()}
    except (TypeError, ValueError, OverflowError):  # nan, infinity, or no number at all
        chances = {}
    if not (
        all(chance >= 0 for chance in chances.values())
        and abs(sum(chances.values(), Fraction(-1))) < _NOT_A_LAW
    ):
        raise BadParameter(side, "this law", "chances are at least 0 and add up to 1") from None
    return {name: chance for name, chance in chances.items() if chance}


@strict
def exact(
    mechanism: Mechanism | HasOutcomes,
    answers: Sequence[Number],
    neighbour_answers: Sequence[Number],
    *,
    threshold: Number | None = None,
    sensitivity: Number = 1,
    grid: Number = 1,
    directions: Sequence[int] | None = None,
) -> ExactLoss:
    """The exact law and loss on two vectors of true answers that a neighbour may cause.

    ``mechanism`` is a recipe, a prepared stream, a `tacit.audit.Law`, a member of the gallery, or
    anything with a method ``outcome_law(answers)`` that gives the chance of each outcome.
    All errors are proved, those of δ(ε) as well.  A directed recipe needs the ``directions`` of the
    questions.

    >>> from tacit import Privacy
    >>> from tacit.book import recipes
    >>> found = exact(recipes.book(1, Privacy(1)), [0, 0, 1], [1, 1, 0], threshold=0)
    >>> print(found)
    loss 0.602678978546 ± 2e-14, at ⊥⊥⊤
    >>> found.exceeds(1), found.delta(1), found.delta("1/2") > 0
    (False, 0.0, True)
    """
    if isinstance(mechanism, HasOutcomes):
        return compare(mechanism.outcome_law(answers), mechanism.outcome_law(neighbour_answers))
    setting = read(
        mechanism,
        answers,
        neighbour_answers,
        threshold=threshold,
        sensitivity=sensitivity,
        grid=grid,
        directions=directions,
    )
    count = setting.law.pattern_count(len(setting.answers))
    if count > _MOST_PATTERNS:
        raise Infeasible(
            f"{len(setting.answers)} questions have {count} patterns, more than {_MOST_PATTERNS}: "
            "ask fewer, or look for the worst one with tacit.audit.worst"
        )
    return _loss(_certified(setting), lambda: outcomes(_sides(setting, _FIRST_REACH)))


def _certified(setting: Setting) -> Found:
    """All patterns, with the sums wide enough that what they lack does not matter."""
    reach = _FIRST_REACH
    while True:
        closed_patterns = walk(setting.law, _sides(setting, reach), close, Closed.times)
        if reach >= _LAST_REACH or all(closed.error < _TOO_VAGUE for _, closed in closed_patterns):
            return closed_patterns
        reach *= 2


def _sides(setting: Setting, reach: float) -> tuple[Side, Side]:
    answers = {*setting.answers, *setting.neighbours}
    shared = columns(setting.law, setting.threshold, answers, reach=reach)
    return Side(shared, setting.answers), Side(shared, setting.neighbours)


def _loss(closed_patterns: Found, listed: Callable[[], Outcomes]) -> ExactLoss:
    possible = [
        (pattern, closed)
        for pattern, closed in closed_patterns
        if closed.here.mantissa or closed.there.mantissa
    ]
    results = [closed for _, closed in possible]
    lowest = np.array([closed.lowest for closed in results])
    highest = np.array([closed.highest for closed in results])
    errors = np.array([closed.error for closed in results])
    sizes = np.maximum(highest, -lowest)
    loss = float(sizes.max())
    logs = np.array([[c.here.logarithm, c.there.logarithm] for c in results])
    return ExactLoss(
        patterns=tuple(pattern for pattern, _ in possible),
        probabilities=np.exp(logs[:, 0]),
        neighbour_probabilities=np.exp(logs[:, 1]),
        log_ratios=np.array([closed.here.log_ratio(closed.there) for closed in results]),
        lowest=lowest,
        highest=highest,
        loss=loss,
        error=_largest_error(sizes, errors),
        _outcomes=listed,
    )


def _largest_error(sizes: Floats, errors: Floats) -> float:
    """How far the largest of these sizes may be off, if each is by so much."""
    loss = float(sizes.max())
    if isinf(loss):
        # An outcome that is impossible on one side is so for certain if nothing was cut off there.
        return 0.0 if np.isfinite(errors[np.isinf(sizes)]).any() else inf
    if np.isinf(errors).any():
        return inf
    return max(float((sizes + errors).max()) - loss, loss - float((sizes - errors).max()))
