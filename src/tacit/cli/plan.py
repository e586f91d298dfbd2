"""``tacit plan``: the error for an ε, or the ε for an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from tacit.cli.exits import say
from tacit.cli.options import File, Kind, Number, Whole, check_outputs
from tacit.wire import to_line

if TYPE_CHECKING:
    from tacit.analyst.plan import Option, Plan
    from tacit.analyst.tuning import Baseline


# α against ε for each recipe, as a picture.


_POINTS = 9
_DECADE = 10  # the picture reaches from a tenth of ε to ten times ε
_STYLES = {
    "one-sided": "-",
    "Lyu": "--",
    "book": ":",
    "Laplace on all": "-.",
    "Laplace": (0, (1, 4)),
}


def draw(planner: Callable[..., Plan], plan: Plan, asked: Mapping[str, Any], path: str) -> None:
    """Plan again at several ε around the one in question, and draw a line for each recipe."""
    from matplotlib.figure import Figure

    from tacit.analyst.plan_text import title

    epsilon = float(plan.best.privacy.epsilon)
    swept = [planner(**{**asked, "epsilon": each, "alpha": None}) for each in _around(epsilon)]
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is planned for, and how it is shown.

    Parameters
    ----------
    questions
        How many questions will be asked.
    epsilon
        Which error do I get for this ε?
    alpha
        Which ε do I need for this error?  Say one of the two.
    beta
        The chance of a wrong answer.
    kind
        counts: adding a person never lowers an answer.  any: no such limit, more noise.
    plot
        Draw α against ε for each recipe into this file, such as alpha.png or alpha.svg.
    json
        One JSON object, for programs.

    """

    questions: Whole
    epsilon: Number | None = None
    alpha: Number | None = None
    beta: Number = "1/20"
    kind: Kind = "counts"
    plot: File | None = None
    json: bool = False


def above(wanted: Wanted) -> None:
    """Plan a stream that halts at its first ⊤ (AboveThreshold).

    For example:

        tacit plan above --questions 1000 --epsilon 1
        tacit plan above --questions 1000 --alpha 20

    Parameters
    ----------
    wanted
        What is planned for.

    """
    from tacit.analyst.plan import above_threshold

    _show(above_threshold, wanted)


def sparse(wanted: Wanted, *, at_most: Whole, delta: Number = "0") -> None:
    r"""Plan a stream with at most c answers ⊤ (Sparse).

    Prints one line for each recipe, the best first: the error α that it has for
    this ε, or the ε that it needs for this α.  Beside them stands what plain noise
    would do.  A plan uses public numbers only and costs nothing.

    For example:

        tacit plan sparse --questions 10000 --at-most 10 --epsilon 1/2
        tacit plan sparse --questions 10000 --at-most 10 --alpha 100
        tacit plan sparse --questions 10000 --at-most 200 --epsilon 1 \
            --delta 1e-6 --plot alpha.png

    Parameters
    ----------
    wanted
        What is planned for.
    at_most
        How many answers may be ⊤ before it halts.
    delta
        The δ beside ε.

    """
    from tacit.analyst.plan import sparse as planner

    _show(planner, wanted, at_most=at_most, delta=delta)


def numeric(wanted: Wanted, *, at_most: Whole, delta: Number = "0") -> None:
    """Plan a stream whose ⊤ bring a noisy value (NumericSparse).

    As tacit plan sparse; the released values are within α too.

    For example:

        tacit plan numeric --questions 10000 --at-most 10 --epsilon 1/2
        tacit plan numeric --questions 10000 --at-most 10 --alpha 100 --json

    Parameters
    ----------
    wanted
        What is planned for.
    at_most
        How many answers may be ⊤ before it halts.
    delta
        The δ beside ε.

    """
    from tacit.analyst.plan import numeric_sparse

    _show(numeric_sparse, wanted, at_most=at_most, delta=delta)


def _show(planner: Callable[..., Plan], wanted: Wanted, **more: object) -> None:
    asked = {**asdict(wanted), **more}
    plot, as_json = asked.pop("plot"), asked.pop("json")
    if plot is not None:
        from tacit.support import check_can_draw

        check_outputs({"plot": plot})
        check_can_draw(plot)
    plan = planner(**asked)
    print(to_line(plan) if as_json else plan)
    if plot is not None:
        from tacit.cli.plan import draw

        draw(planner, plan, asked, plot)
        say(f"drew α against ε into {plot}")
