"""``tacit plan``: the error for an ε, or the ε for an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from tacit.cli.exits import say
from tacit.cli.options import File, Kind, Number, Values, Whole, check_outputs
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
        How often a question that was ⊥ may be asked, in all.
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
    rounds: Whole = 1
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


def numeric(
    wanted: PlanOptions, *, at_most: Whole, delta: Number = "0", values: Values = "gap"
) -> None:
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
    values
        gap: told from the gap where the noise allows it, for no ε.  fresh: unbiased
        draws, which cost a share of ε.

    """
    from tacit.analyst.plan import numeric_sparse

    _show(numeric_sparse, wanted, at_most=at_most, delta=delta, values=values)


def _show(planner: Callable[..., Plan], wanted: PlanOptions, **more: object) -> None:
    asked = {**asdict(wanted), **more}
    plot, as_json = asked.pop("plot"), asked.pop("json")
    if plot is not None:
        from tacit.support import check_can_plot

        check_outputs({"plot": plot})
        check_can_plot(plot)
    plan = planner(**asked)
    print(to_line(plan) if as_json else plan)
    if plot is not None:
        from tacit.analyst.plan_shown import plot_plan

        plot_plan(plan, plot)
        say(f"drew α against ε into {plot}")
