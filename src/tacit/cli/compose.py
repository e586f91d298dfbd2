"""``tacit compose``: what several mechanisms come to together."""

from __future__ import annotations

from tacit.cli.exits import say
from tacit.cli.options import File, Number, Whole, check_outputs
from tacit.wire import to_line


def compose(
    *,
    k: Whole,
    delta: Number,
    epsilon_each: Number | None = None,
    epsilon: Number | None = None,
    plot: File | None = None,
    json: bool = False,
) -> None:
    """Compute the total cost of several mechanisms.

    Prints what optimal composition, basic composition, zCDP and Theorem 3.20 say,
    the best first.  All are valid; totals are rounded up and parts down.

    For example:

        tacit compose --k 100 --epsilon-each 0.1 --delta 1e-6
        tacit compose --k 10000 --epsilon 1 --delta 1e-14 --plot delta.png

    Parameters
    ----------
    k
        How many mechanisms there are.
    delta
        The δ of all together.
    epsilon_each
        Which ε do mechanisms of this ε₀ add up to?
    epsilon
        Which ε₀ may each have within this ε?  Give one of the two.
    plot
        Draw δ against ε by each theorem into this file, such as delta.png.
    json
        Print one JSON object, for programs.

    """
    from tacit.analyst.composed import compose as composed
    from tacit.support import check_can_plot

    if plot is not None:
        check_outputs({"plot": plot})
        check_can_plot(plot)
    found = composed(k, delta=delta, epsilon_each=epsilon_each, epsilon=epsilon)
    print(to_line(found) if json else found)
    if plot is not None:
        found.plot(plot)
        say(f"drew δ against ε into {plot}")
