"""A picture of a plan: α against ε for each of its recipes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.analyst import plan as plans
from tacit.analyst.plan_text import title

if TYPE_CHECKING:
    from os import PathLike

    from tacit.analyst.plan import Option, Plan
    from tacit.analyst.tuning import Baseline

_POINTS = 9
_DECADE = 10  # the picture reaches from a tenth of ε to ten times ε
_STYLES = {
    "one-sided": "-",
    "Lyu": "--",
    "book": ":",
    "Laplace on all": "-.",
    "Laplace": (0, (1, 4)),
}


def plot_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Plan again at several ε around the plan's own, and draw a line for each recipe."""
    from matplotlib.figure import Figure

    epsilon = float(plan.best.privacy.epsilon)
    swept = [_at(plan, each) for each in _around(epsilon)]
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    names = [line.name for line in _lines(plan)]
    for name in sorted(names, key=lambda name: -_height(swept, name)):
        colour = "0.6" if name.startswith("Laplace") else None
        axes.plot(*_line(swept, name), ls=_style(name), color=colour, label=name)
    axes.plot([epsilon], [plan.alpha], "ko", label="the best for this plan")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda number, _: f"{number:,.9g}".replace(",", " "))
    axes.set(xlabel="ε", ylabel="α, in units of the sensitivity")
    figure.suptitle(title(plan))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


def _at(plan: Plan, epsilon: Fraction) -> Plan:
    """The same plan for another ε."""
    common: dict[str, Any] = {
        "questions": plan.questions,
        "epsilon": epsilon,
        "beta": plan.beta,
        "kind": plan.kind,
    }
    if plan.algorithm == "above_threshold":
        return plans.above_threshold(**common)
    planner = plans.sparse if plan.algorithm == "sparse" else plans.numeric_sparse
    return planner(at_most=plan.at_most, delta=plan.delta, **common)


def _lines(plan: Plan) -> list[Option | Baseline]:
    return [*plan.options, *plan.baselines]


def _style(name: str) -> Any:
    return next((style for start, style in _STYLES.items() if name.startswith(start)), "-")


def _around(epsilon: float) -> Iterable[Fraction]:
    powers = [2 * step / (_POINTS - 1) - 1 for step in range(_POINTS)]
    return [Fraction(f"{epsilon * _DECADE**power:.4g}") for power in powers]


def _line(swept: Iterable[Plan], name: str) -> tuple[list[float], list[float]]:
    """ε and α of one line of the plans; a recipe that does not exist at some ε has a gap there."""
    found = [
        (float(line.epsilon), line.alpha)
        for plan in swept
        for line in _lines(plan)
        if line.name == name
    ]
    return [epsilon for epsilon, _ in found], [alpha for _, alpha in found]


def _height(swept: Iterable[Plan], name: str) -> float:
    """Where a line stands among the others, for the order of the legend."""
    return max(_line(swept, name)[1], default=0.0)
