"""``tacit plan``: the error for an ε, or the ε for an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from tacit.cli.exits import say
from tacit.cli.options import File, Kind, Number, Values, Whole, check_outputs
from tacit.errors import BadParameter
from tacit.wire import to_line

if TYPE_CHECKING:
    from tacit.analyst.plan import Plan


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is planned for, and how it is shown.

    Parameters
    ----------
    questions
        How many questions will be asked.
    epsilon
        Which error do I get for this ε?
    alpha
        Which ε do I need for this error?  Give one of the two.
    beta
        The chance of a wrong answer.
    kind
        counts: adding a person never lowers an answer.  directed: never lowers or never
        raises it.  any: no such limit, more noise.
    rounds
        How often a question that was ⊥ may be asked in total.
    threshold
        Also print how likely true counts are to be ⊤ at this threshold.
    plot_chances
        Plot that into this file, such as chances.png.
    plot
        Draw α against ε for each recipe into this file, such as alpha.png or alpha.svg.
    json
        Print one JSON object, for programs.

    """

    questions: Whole
    epsilon: Number | None = None
    alpha: Number | None = None
    beta: Number = "1/20"
    kind: Kind = "counts"
    rounds: Whole = 1
    threshold: Number | None = None
    plot_chances: File | None = None
    plot: File | None = None
    json: bool = False


def above(wanted: PlanOptions) -> None:
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


def sparse(wanted: PlanOptions, *, at_most: Whole, delta: Number = "0") -> None:
    r"""Plan a stream with at most c ⊤ (Sparse).

    Prints one line for each recipe, the best first: the error α that it has for
    this ε, or the ε that it needs for this α.  Plain noise is listed for
    comparison.  A plan uses only public numbers and costs nothing.

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
        The δ that goes with ε.

    """
    from tacit.analyst.plan import sparse as planner

    _show(planner, wanted, at_most=at_most, delta=delta)


def numeric(
    wanted: PlanOptions, *, at_most: Whole, delta: Number = "0", values: Values = "gap"
) -> None:
    """Plan a stream whose ⊤ come with a noisy value (NumericSparse).

    Like tacit plan sparse; the released values are within α too.

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
        The δ that goes with ε.
    values
        gap: computed from the gap where the noise allows it, at no extra ε.  fresh:
        unbiased draws, which cost a share of ε.

    """
    from tacit.analyst.plan import numeric_sparse

    _show(numeric_sparse, wanted, at_most=at_most, delta=delta, values=values)


def priced(
    *,
    questions: Whole,
    epsilon: Number,
    least_scale: Number,
    scale: Number | None = None,
    beta: Number = "1/20",
    kind: Kind = "counts",
    json: bool = False,
) -> None:
    """Plan a stream in which each ⊤ has a price.

    The price of a ⊤ depends on the scale of its question.  Prints a line for each
    scale of a descending scan: what a ⊤ costs, how many could be paid for, how far
    above the threshold a value is detected, and how many false ⊤ to expect.

    For example:

        tacit plan priced --questions 10000 --epsilon 1 --least-scale 20

    Parameters
    ----------
    questions
        How many questions will be asked.
    epsilon
        What all answers together may cost.
    least_scale
        The smallest scale at which a question may be asked.
    scale
        Where a descending scan begins; by default 30 times as high.
    beta
        The chance of missing a value that should be detected.
    kind
        counts: adding a person never lowers an answer.  directed: never lowers or never
        raises it.  any: no such limit, and each ⊤ costs twice as much.
    json
        Print one JSON object, for programs.

    """
    from tacit.analyst.plan import priced as planner

    plan = planner(
        questions=questions,
        epsilon=epsilon,
        least_scale=least_scale,
        scale=scale,
        beta=beta,
        kind=kind,
    )
    print(to_line(plan) if json else plan)


def _show(planner: Callable[..., Plan], wanted: PlanOptions, **more: object) -> None:
    asked = {**asdict(wanted), **more}
    plot, drawn = asked.pop("plot"), asked.pop("plot_chances")
    as_json, threshold = asked.pop("json"), asked.pop("threshold")
    if drawn is not None and threshold is None:
        raise BadParameter("plot_chances", drawn, "it is about a threshold: give one, too")
    pictures = {"plot": plot, "plot_chances": drawn}
    _check_pictures({name: file for name, file in pictures.items() if file is not None})
    plan = planner(**asked)
    shown = [plan] if threshold is None else [plan, plan.chances(threshold=threshold)]
    print(*(map(to_line, shown) if as_json else shown), sep="\n" if as_json else "\n\n")
    if plot is not None:
        from tacit.analyst.plan_shown import plot_plan

        plot_plan(plan, plot)
        say(f"drew α against ε into {plot}")
    if drawn is not None:
        plan.chances(threshold=threshold).plot(drawn)
        say(f"drew the chances of ⊤ into {drawn}")


def _check_pictures(files: Mapping[str, File]) -> None:
    """Refuse what cannot be drawn or written, before any work is done."""
    from tacit.support import check_can_plot

    check_outputs(files)
    for file in files.values():
        check_can_plot(file)
