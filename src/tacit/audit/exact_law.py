"""The exact privacy loss of a mechanism of the sparse vector family: no sampling.

All strings of ⊤ and ⊥ are walked through; where ρ is drawn anew the law factorises, so that what
follows a restart is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from tacit.audit.blocks import Closed, Side, close
from tacit.audit.columns import Fineness, columns
from tacit.audit.law import Law
from tacit.audit.outcomes import outcomes
from tacit.audit.reading import Mechanism, Setting, read
from tacit.audit.walk import Pattern, walk
from tacit.errors import Infeasible
from tacit.privacy import Number
from tacit.privacy import exact as exactly

Floats = NDArray[np.float64]
Found = list[tuple[Pattern, Closed]]

_MOST_PATTERNS = 1 << 16
_FIRST_REACH, _LAST_REACH = 48.0, 200.0  # in decay lengths of ρ
_TOO_VAGUE = 1e-10


@dataclass(frozen=True, eq=False)
class ExactLoss:
    """The law of a mechanism on two neighbouring databases, pattern by pattern.

    ``loss`` is the largest |ln P/P′| over all patterns and all numbers told with them, and is
    off by at most ``error``.
    """

    law: Law = field(repr=False)
    patterns: tuple[Pattern, ...] = field(repr=False)
    probabilities: Floats = field(repr=False)
    neighbour_probabilities: Floats = field(repr=False)
    log_ratios: Floats = field(repr=False)  # of the patterns alone
    lowest: Floats = field(repr=False)  # ln P/P′ with the worst numbers told
    highest: Floats = field(repr=False)
    loss: float
    error: float
    _outcomes: Callable[[], tuple[Floats, Floats]] = field(repr=False)

    @property
    def worst(self) -> Pattern:
        """The pattern that loses most."""
        return self.patterns[int(np.maximum(self.highest, -self.lowest).argmax())]

    def exceeds(self, epsilon: Number) -> bool:
        """Whether the loss is certainly larger than ε."""
        return self.loss - self.error > float(exactly(epsilon, "epsilon"))

    def delta(self, epsilon: Number) -> float:
        """The least δ for which this pair is (ε, δ)-close: Σ (P − e^ε P′)₊, the worse direction."""
        here, there = self._law_of_outcomes
        factor = exp(float(exactly(epsilon, "epsilon")))
        one = np.maximum(here - factor * there, 0.0).sum()
        other = np.maximum(there - factor * here, 0.0).sum()
        return float(max(one, other))

    def epsilon(self, delta: Number) -> float:
        """The least ε for which this pair is (ε, δ)-close; the loss itself for δ = 0."""
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
    def _law_of_outcomes(self) -> tuple[Floats, Floats]:
        return self._outcomes()

    def __str__(self) -> str:
        worst = "".join("⊤" if above else "⊥" for above in self.worst)
        return f"loss {self.loss:.12g} ± {self.error:.1g}, at {worst}"


def exact(
    mechanism: Mechanism,
    answers: Sequence[Number],
    neighbour_answers: Sequence[Number],
    *,
    threshold: Number | None = None,
    sensitivity: Number = 1,
    grid: Number = 1,
    continuous: bool = False,
) -> ExactLoss:
    """The exact law and loss on two vectors of true answers that a neighbour may cause.

    ``mechanism`` is a recipe, a prepared stream, a :class:`Law`, or a member of the gallery.  With
    discrete noise, which is what all of Tacit's mechanisms use, sums are certified; with
    ``continuous=True`` the book's continuous noise is integrated, and the error is estimated
    from two quadratures.

    >>> from tacit import Privacy
    >>> from tacit.book import recipes
    >>> found = exact(recipes.book(1, Privacy(1)), [0, 0, 1], [1, 1, 0], threshold=0)
    >>> print(found)
    loss 0.6 ± 1e-12, at ⊥⊥⊤
    >>> found.exceeds(1), found.delta(1), found.delta("1/2") > 0
    (False, 0.0, True)
    """
    setting = read(
        mechanism,
        answers,
        neighbour_answers,
        threshold=threshold,
        sensitivity=sensitivity,
        grid=grid,
        continuous=continuous,
    )
    law, count = setting.law, setting.law.pattern_count(len(setting.answers))
    if count > _MOST_PATTERNS:
        raise Infeasible(
            f"{len(setting.answers)} questions have {count} patterns, more than {_MOST_PATTERNS}: "
            "ask fewer, or look for the worst one with tacit.audit.worst"
        )
    found = _certified(setting)
    if law.continuous:
        found = _with_quadrature_error(found, _certified(setting, "coarse"))
    return _loss(law, found, lambda: outcomes(_sides(setting, _FIRST_REACH, "fine")))


def _certified(setting: Setting, fineness: Fineness = "fine") -> Found:
    """All patterns, with the sums wide enough that what they lack does not matter."""
    reach = _FIRST_REACH
    while True:
        found = walk(setting.law, _sides(setting, reach, fineness), close, Closed.times)
        if reach >= _LAST_REACH or all(closed.error < _TOO_VAGUE for _, closed in found):
            return found
        reach *= 2


def _sides(setting: Setting, reach: float, fineness: Fineness) -> tuple[Side, Side]:
    shared = columns(
        setting.law,
        setting.threshold,
        {*setting.answers, *setting.neighbours},
        questions=len(setting.answers),
        reach=reach,
        fineness=fineness,
    )
    return Side(shared, setting.answers), Side(shared, setting.neighbours)


def _with_quadrature_error(fine: Found, coarse: Found) -> Found:
    """Two quadratures: the finer one counts, and how far they differ is its error."""
    return [
        (pattern, closed._replace(error=closed.error + _distance(closed, other)))
        for (pattern, closed), (_, other) in zip(fine, coarse, strict=True)
    ]


def _distance(one: Closed, other: Closed) -> float:
    pairs = ((one.lowest, other.lowest), (one.highest, other.highest))
    return max(0.0 if a == b else abs(a - b) for a, b in pairs)


def _loss(law: Law, found: Found, told: Callable[[], tuple[Floats, Floats]]) -> ExactLoss:
    possible = [
        (pattern, closed)
        for pattern, closed in found
        if closed.here.mantissa or closed.there.mantissa
    ]
    results = [closed for _, closed in possible]
    lowest = np.array([closed.lowest for closed in results])
    highest = np.array([closed.highest for closed in results])
    errors = np.array([closed.error for closed in results])
    sizes = np.maximum(highest, -lowest)
    loss = float(sizes.max())
    error = 0.0
    if isfinite(loss):
        error = max(float((sizes + errors).max()) - loss, loss - float((sizes - errors).max()))
    logs = np.array([[c.here.logarithm, c.there.logarithm] for c in results])
    return ExactLoss(
        law=law,
        patterns=tuple(pattern for pattern, _ in possible),
        probabilities=np.exp(logs[:, 0]),
        neighbour_probabilities=np.exp(logs[:, 1]),
        log_ratios=np.array([closed.here.log_ratio(closed.there) for closed in results]),
        lowest=lowest,
        highest=highest,
        loss=loss,
        error=error,
        _outcomes=told,
    )

