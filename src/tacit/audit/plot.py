"""δ(ε), exact against claimed, as a picture.  Needs matplotlib, the extra ``plot``."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp
from pathlib import Path

import numpy as np

from tacit.audit.table import Audited, telling_law
from tacit.drawing import check_can_draw
from tacit.privacy import Privacy

_INVISIBLE = 1e-7


def claimed_delta(claimed: Privacy, epsilon: float) -> float:
    """The largest δ that a mechanism with this claim can have at another ε.

    Randomised response with the claim's ε attains it (Kairouz, Oh, Viswanath 2015).

    >>> claimed_delta(Privacy(1), 1), round(claimed_delta(Privacy(1), 0), 6)
    (0.0, 0.462117)
    """
    most, delta = float(claimed.epsilon), float(claimed.delta)
    if epsilon >= most:
        return delta
    return delta + (1 - delta) * (exp(most) - exp(epsilon)) / (1 + exp(most))


def draw(audited: Iterable[Audited], file: Path, *, questions: int) -> None:
    """One small picture a mechanism: where exact passes claimed, the claim is refuted."""
    check_can_draw(file)
    from matplotlib.figure import Figure

    mechanisms = list(audited)
    wide = min(len(mechanisms), 3 if len(mechanisms) <= 6 else 4)
    high = -(-len(mechanisms) // wide)
    figure = Figure(figsize=(3.4 * wide, 2.8 * high), layout="constrained")
    axes = figure.subplots(high, wide, squeeze=False)
    for axis in axes.flat[len(mechanisms) :]:
        axis.set_visible(False)
    for axis, mechanism in zip(axes.flat, mechanisms, strict=False):
        law = telling_law(mechanism, questions)
        epsilons = np.linspace(0, 2 * float(mechanism.claimed.epsilon), 81)
        exact = np.array([law.delta(float(epsilon)) for epsilon in epsilons])
        axis.plot(
            epsilons,
            [max(claimed_delta(mechanism.claimed, e), _INVISIBLE / 10) for e in epsilons],
            "--",
            color="grey",
            label="claimed, at most",
        )
        axis.plot(epsilons, np.maximum(exact, _INVISIBLE / 10), label="exact")
        axis.set_yscale("log")
        axis.set_ylim(_INVISIBLE, 1)
        axis.set_title(mechanism.name, fontsize=9)
    figure.supxlabel("ε")
    figure.supylabel("δ(ε)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.savefig(file)
