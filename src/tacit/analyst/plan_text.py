"""A plan in words: a plain table for terminals, the same as HTML for notebooks, and why.

What is in a plan is computed by `tacit.analyst.plan`; nothing is computed here.
"""

from __future__ import annotations

from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from tacit.numbers import four_digits_up, show, spaced

if TYPE_CHECKING:
    from tacit.analyst.plan import Option, Plan
    from tacit.book.recipes import Recipe

_HEADS = ("recipe", "ε", "α", "proved α", "groups", "ε₁ : ε₂ : ε₃", "shift")


def as_text(plan: Plan) -> str:
    """The plan as lines of plain text."""
    lines = [title(plan), "", *_aligned([_HEADS, *map(_cells, plan.options)]), ""]
    lines += _aligned([("beside them", "ε", "α"), *_others(plan)])
    lines += [f"not possible: {name}: {reason}" for name, reason in plan.refused]
    return "\n".join([*lines, "", plan.why, _meaning(plan)])


def as_html(plan: Plan) -> str:
    """The plan as a table for a notebook."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEADS)
    body = [_html_row(_cells(option), best=i == 0) for i, option in enumerate(plan.options)]
    body += [_html_row((*row, *[""] * (len(_HEADS) - len(row)))) for row in _others(plan)]
    refused = [f"<p>not possible: {escape(name)}: {escape(why)}</p>" for name, why in plan.refused]
    return (
        f"<p><b>{escape(title(plan))}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"{''.join(refused)}<p>{escape(plan.why)}</p><p>{escape(_meaning(plan))}</p>"
    )


def title(plan: Plan) -> str:
    """What was asked, in one line."""
    asked = f"ε = {show(plan.epsilon)}" if plan.epsilon else f"α ≤ {show(plan.wanted_alpha or 0)}"
    tops = f"at most {_count(plan.at_most)} above"
    return (
        f"{plan.algorithm}: {_questions(plan.questions)} of kind {plan.kind!r}, {tops}, "
        f"{asked}, δ = {show(plan.delta)}, β = {show(plan.beta)}"
    )


def _meaning(plan: Plan) -> str:
    above, planned = plan.at_most, plan.task.planned
    more = "" if planned == plan.questions else f"Planned for {_questions(planned)}.  "
    values = " and every value is within α" if plan.algorithm == "numeric_sparse" else ""
    return (
        f"{more}α: with {_questions(above)} at least that far above the threshold and the other "
        f"{_count(planned - above)} at least that far below, all answers are right"
        f"{values} with probability {show(100 * (1 - plan.beta))} %.  Lengths are in units of the "
        "sensitivity.  The shift is added to your threshold: a count at threshold + shift is about "
        "as often ⊥ as ⊤."
    )


def why(plan: Plan) -> str:
    """What makes the best recipe the best, in a sentence or two."""
    best = plan.options[0]
    said = [_against_the_book(plan, best)]
    on_all = [line for line in plan.baselines if line.on_all]
    if plan.wanted_alpha is None:
        better = [line for line in on_all if line.alpha < best.alpha]
    else:
        better = [line for line in on_all if line.epsilon < best.epsilon]
    if better:
        said.append(
            f"But so few questions are better answered with plain noise: {better[0].name} has "
            f"{'less error' if plan.wanted_alpha is None else 'less ε'}."
        )
    return " ".join(said)


def _against_the_book(plan: Plan, best: Option) -> str:
    recipe = best.recipe
    reasons = []
    if not recipe.family.both_sides:
        reasons.append("its noise goes one way only, which the proof allows")
    if recipe.monotone:
        reasons.append("counts all move the same way, so half the noise on each will do")
    if plan.at_most > 1 and recipe.groups == 1:
        reasons.append("one noisy threshold serves all ⊤")
    if recipe.groups > 1:
        reasons.append(f"its {recipe.groups} groups compose optimally at δ")
    fair = [line for line in plan.options if line.name in ("book, shifted", "book, least noise")]
    if not reasons or not fair:
        return f"{best.name} is the best there is for these numbers."
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


def _html_row(cells: tuple[str, ...], *, best: bool = False) -> str:
    name, *numbers = (escape(cell) for cell in cells)
    first = f"<th>{name}</th>" if best else f"<td>{name}</td>"
    return "<tr>" + first + "".join(f"<td align='right'>{cell}</td>" for cell in numbers) + "</tr>"
