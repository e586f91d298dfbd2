"""How a plan is shown: as a table in text or HTML, with the reason for its choice, or as a picture.

What is in a plan is computed by `tacit.analyst.plan`; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from html import escape
from math import ceil
from typing import TYPE_CHECKING, Any

from tacit.numbers import four_digits_up, show, spaced
from tacit.support import html_cell, html_row

if TYPE_CHECKING:
    from os import PathLike

    from tacit.analyst.plan import Option, Plan
    from tacit.analyst.tuning import Baseline
    from tacit.book.recipes import Recipe

_HEADS = ("recipe", "ε", "α", "proved α", "groups", "ε₁ : ε₂ : ε₃", "shift")
_POINTS = 9
_DECADE = 10  # the picture reaches from a tenth of ε to ten times ε
_STYLES = {
    "one-sided": "-",
    "Lyu": "--",
    "book": ":",
    "Laplace on all": "-.",
    "Laplace": (0, (1, 4)),
}


def as_text(plan: Plan) -> str:
    """The plan as lines of plain text."""
    lines = [title(plan), "", *_aligned([_HEADS, *map(_cells, plan.options)]), ""]
    lines += _aligned([("for comparison", "ε", "α"), *_others(plan)])
    lines += [f"not possible: {name}: {reason}" for name, reason in plan.refused]
    return "\n".join([*lines, "", plan.why, _meaning(plan)])


def as_html(plan: Plan) -> str:
    """The plan as a table for a notebook."""
    head = html_row(*(html_cell(text, "th") for text in _HEADS))
    body = [_html_line(_cells(option), best=i == 0) for i, option in enumerate(plan.options)]
    body += [_html_line((*row, *[""] * (len(_HEADS) - len(row)))) for row in _others(plan)]
    refused = [f"<p>not possible: {escape(name)}: {escape(why)}</p>" for name, why in plan.refused]
    return (
        f"<p><b>{escape(title(plan))}</b></p>"
        f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
        f"{''.join(refused)}<p>{escape(plan.why)}</p><p>{escape(_meaning(plan))}</p>"
    )


def title(plan: Plan) -> str:
    """What was asked, in one line."""
    asked = f"ε = {show(plan.epsilon)}" if plan.epsilon else f"α ≤ {show(plan.wanted_alpha or 0)}"
    tops = f"at most {_count(plan.at_most)} above"
    again = f" in up to {_count(plan.rounds)} rounds" if plan.rounds > 1 else ""
    return (
        f"{plan.algorithm}: {_questions(plan.questions)} of kind {plan.kind!r}{again}, {tops}, "
        f"{asked}, δ = {show(plan.delta)}, β = {show(plan.beta)}"
    )


def _meaning(plan: Plan) -> str:
    above, planned = plan.at_most, plan.task.planned // plan.rounds
    more = "" if planned == plan.questions else f"Planned for {_questions(planned)}.  "
    if plan.rounds > 1:
        more += f"What is ⊥ may be asked {_count(plan.rounds)} times in all.  "
    values = " and every value is within α" if plan.algorithm == "numeric_sparse" else ""
    if plan.options[0].recipe.values == "gap":
        values += " (as .value tells it, which is biased for that; what is printed is unbiased)"
    return (
        f"{more}α: with {_questions(above)} at least that far above the threshold and the other "
        f"{_count(planned - above)} at least that far below, all answers are right"
        f"{values} with probability {show(100 * (1 - plan.beta))} %.  Lengths are in units of the "
        "sensitivity.  The shift is added to your threshold: a count at threshold + shift is about "
        "as often ⊥ as ⊤."
    )


def why(plan: Plan) -> str:
    """Why the best recipe is the best, in a sentence or two."""
    best = plan.options[0]
    said = [_against_the_book(plan, best)]
    on_all = [line for line in plan.baselines if line.on_all]
    if plan.wanted_alpha is None:
        better = [line for line in on_all if line.alpha < best.alpha]
    else:
        better = [line for line in on_all if line.epsilon < best.epsilon]
    if better:
        said.append(
            "But so few questions are better answered with plain Laplace noise: "
            f"{better[0].name} {'errs less' if plan.wanted_alpha is None else 'takes less ε'}."
        )
    elif as_cells := _as_cells(plan, best):
        said.append(as_cells)
    return " ".join(said)


def _as_cells(plan: Plan, best: Option) -> str:
    """In how many cells a person may be for noise on all cells to err less."""
    for line in plan.baselines:
        if line.in_one:
            alike = plan.wanted_alpha is None
            times = best.alpha / line.alpha if alike else float(best.epsilon) / line.epsilon
            if times > 1:
                most = ceil(times) - 1
                cells = "one of them" if most == 1 else f"{_count(most)} of them"
                ours, theirs = (best.alpha, line.alpha) if alike else (best.epsilon, line.epsilon)
                return (
                    f"But if the questions are cells of a GROUP BY, and nobody is in more than "
                    f"{cells}, noise on all cells at once (table.query, table.histogram) "
                    f"{'errs less' if alike else 'takes less ε'}: "
                    f"{'α' if alike else 'ε'} = {four_digits_up(theirs)} for each cell that a "
                    f"person may be in, against {four_digits_up(ours)}."
                )
    return ""


def _against_the_book(plan: Plan, best: Option) -> str:
    recipe = best.recipe
    reasons = []
    if not recipe.family.both_sides:
        reasons.append("its noise goes one way only, which the proof allows")
    if recipe.monotone:
        reasons.append("counts all move the same way, so half the noise on each will do")
    if recipe.directed:
        reasons.append("each direction has a noisy threshold of its own, so half the noise will do")
    if plan.at_most > 1 and recipe.groups == 1 and not recipe.directed:
        reasons.append("one noisy threshold serves all ⊤")
    if recipe.groups > 1:
        reasons.append(f"its {recipe.groups} groups compose optimally at δ")
    if recipe.values == "gap":
        reasons.append("its values come from the gap and cost nothing")
    fair = [line for line in plan.options if line.name in ("book, shifted", "book, least noise")]
    if not reasons or not fair:
        return f"{best.name} is the best recipe for these numbers."
    book = fair[0]  # the options are sorted
    if plan.wanted_alpha is None:
        gain, what = book.alpha / best.alpha, "α"
    else:
        gain, what = float(book.epsilon / best.epsilon), "ε"
    return (
        f"{best.name}: {gain:.1f} times less {what} than {book.name}, as "
        + "; ".join(reasons)
        + "."
    )


def _others(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (line.name, four_digits_up(line.epsilon), four_digits_up(line.alpha))
        for line in plan.baselines
    ]


def _cells(option: Option) -> tuple[str, ...]:
    recipe = option.recipe
    return (
        option.name,
        four_digits_up(option.epsilon),
        four_digits_up(option.alpha),
        "" if option.proved is None else four_digits_up(option.proved),
        _count(recipe.groups),
        _split(recipe),
        f"{float(recipe.shift):+.4g}" if recipe.shift else "0",
    )


def _split(recipe: Recipe) -> str:
    parts = [recipe.threshold_epsilon, recipe.question_epsilon, recipe.value_epsilon]
    return " : ".join(f"{float(part / recipe.group_epsilon):.3f}" for part in parts if part)


def _questions(number: int) -> str:
    return f"{_count(number)} question{'s' * (number != 1)}"


def _count(number: int) -> str:
    return spaced(Fraction(number))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers in rows:
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return lines


def _html_line(cells: tuple[str, ...], *, best: bool = False) -> str:
    name, *numbers = cells
    right = (html_cell(number, align="right") for number in numbers)
    return html_row(html_cell(name, "th" if best else "td"), *right)


# A picture: α against ε for each of the recipes --------------------------------------------------


def plot_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Plan again at several ε around the plan's own, and plot a line for each recipe."""
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
    from tacit.analyst import plan as plans

    common: dict[str, Any] = {
        "questions": plan.questions,
        "epsilon": epsilon,
        "beta": plan.beta,
        "kind": plan.kind,
    }
    if plan.algorithm == "above_threshold":
        return plans.above_threshold(**common)
    if plan.algorithm == "numeric_sparse":
        common["values"] = plan.values
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
    """ε and α of one line of the plans; an ε at which the recipe does not exist is left out."""
    found = [
        (float(line.epsilon), line.alpha)
        for plan in swept
        for line in _lines(plan)
        if line.name == name
    ]
    return [epsilon for epsilon, _ in found], [alpha for _, alpha in found]


def _height(swept: Iterable[Plan], name: str) -> float:
    """How high a line reaches, which decides its place in the legend."""
    return max(_line(swept, name)[1], default=0.0)
