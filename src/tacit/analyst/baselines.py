"""What a sparse stream is compared with: plain Laplace noise, as the book's own remarks do.

Were the c questions above the threshold known in advance, one would answer just these (the remark
at the end of section 3.6.3); or one may answer all k, adding up by plain or by optimal composition
(the remark at the end of section 3.5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, log1p

from tacit.analyst.tuning import Task
from tacit.book.composition import optimal_each, optimal_epsilon
from tacit.book.laplace import spaced
from tacit.book.precision.bracket import Bracket


@dataclass(frozen=True, slots=True)
class Baseline:
    """Laplace noise on some questions: its error for this ε, or the ε it takes for this error."""

    name: str
    alpha: float
    epsilon: float
    on_all: bool  # of all k questions, and so a real alternative


def laplace_baselines(
    task: Task,
    questions: int,
    epsilon: Fraction | None,
    alpha: Fraction | None,
    delta: Fraction,
) -> tuple[Baseline, ...]:
    """Laplace on c questions known in advance, and on all k: at this ε, or for this α."""
    known, lines = min(task.at_most, questions), []
    for answered, which, on_all in (
        (known, f"{spaced(Fraction(known))} known in advance", False),
        (questions, f"all {spaced(Fraction(questions))}", True),
    ):
        reach = _scales(task, answered)  # α in scales of the noise
        for allowed in (Fraction(0), delta) if delta > 0 and answered > 1 else (Fraction(0),):
            name = f"Laplace on {which}" + (", composed optimally" if allowed else "")
            if epsilon is not None:
                each = optimal_each(answered, epsilon, allowed)
                lines.append(Baseline(name, reach / each, float(epsilon), on_all))
            elif alpha is not None:
                each = reach / float(alpha)
                total = optimal_epsilon(answered, each, allowed) if each else 0.0
                lines.append(Baseline(name, float(alpha), total, on_all))
    return tuple(lines)


def _scales(task: Task, answered: int) -> float:
    """The t at which noise on all these questions is harmless with probability 1 − β.

    An answer above T − α or below T + α is on the right side of T with probability 1 − e^(−t)/2;
    a value is within α with probability 1 − e^(−t).  One answer alone is right half of the time
    however near it is, so that at β = 1/2 no distance is needed at all.
    """
    beta = task.beta
    if answered == 1 and not task.numeric:
        near_one = beta > Fraction(1, 4)
        return -log1p(float(2 * beta - 1)) if near_one else -log(2 * beta)  # e^(−t) = 2β
    values = min(task.at_most, answered) if task.numeric else 0
    goal = log1p(-float(beta))
    t = log(answered / float(beta))
    bracket = Bracket(0.0, inf, reach=t)
    while bracket.width > 1e-12 * t:
        tail = exp(-t)
        value = values * log1p(-tail) + (answered - values) * log1p(-tail / 2)
        slope = values * tail / (1 - tail) + (answered - values) * tail / (2 - tail)
        if abs(value - goal) < -1e-12 * goal:
            break
        t = bracket.narrow(t, t + (goal - value) / slope, up=value < goal)
    return t
