"""How a plan looks: a plain table for terminals, the same as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from math import ceil
from typing import TYPE_CHECKING

from tacit.book.half_gap import half_gap, read_beta
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.numbers import Number, exact, four_digits_up, show, spaced, whole

if TYPE_CHECKING:
    from tacit.analyst.plan import Option, Plan
    from tacit.book.recipes import Recipe
    from tacit.book.sparse_vector import SparseVector


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
    above, planned = plan.at_most, planned_questions(plan.questions, plan.at_most)
    more = "" if planned == plan.questions else f"Planned for {_questions(planned)}.  "
    values = " and every value is within α" if plan.algorithm == "numeric_sparse" else ""
    return (
        f"{more}α: with {_questions(above)} at least that far above the threshold and the other "
        f"{_count(planned - above)} at least that far below, all answers are right"
        f"{values} with probability {show(100 * (1 - plan.beta))} %.  Lengths are in units of the "
        "sensitivity.  The shift is added to your threshold: a count at threshold + shift is about "
        "as often ⊥ as ⊤."
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


def planned_questions(questions: int, at_most: int) -> int:
    """How many a plan is made for: with as many ⊤ as questions there would be none below."""
    return max(questions, at_most + 1)


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


# What a stream was planned for: how many questions, and how far its answers can be trusted.


_MOST_QUESTIONS = 10**12


@dataclass(frozen=True, slots=True)
class Planned:
    """All answers are right with probability 1 − β, if no value is within α of the threshold.

    That is for so many questions, of which as many are far above as there may be ⊤; more may be
    asked, and α then grows with the logarithm of their number.
    """

    questions: int
    beta: Fraction
    alpha: Fraction  # in the questions' own units, rounded up to the stream's grid

    def __str__(self) -> str:
        return (
            f"with {spaced(Fraction(self.questions))} questions, all answers are right with "
            f"probability {spaced(1 - self.beta)} if none is within {spaced(self.alpha)} of the "
            "threshold"
        )

    def as_json(self) -> dict[str, str]:
        """All of it as text, exactly; a stream that is stored keeps this."""
        return {
            "questions": str(self.questions),
            "beta": str(self.beta),
            "alpha": str(self.alpha),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Planned:
        """The inverse of `as_json`."""
        return cls(
            whole(fields["questions"], "questions"),
            exact(fields["beta"], "beta"),
            exact(fields["alpha"], "alpha"),
        )


def planned_for(mechanism: SparseVector, questions: int, beta: Number) -> Planned:
    """How far the answers of a mechanism can be trusted; uses public numbers only."""
    read_beta(beta)
    number, chance = whole(questions, "questions"), exact(beta, "beta")
    if number > _MOST_QUESTIONS:
        raise BadParameter("questions", show(number), "plans are made from 1 to 1e12")
    asked = planned_questions(number, mechanism.recipe.at_most)
    alpha = _half_gap(mechanism.recipe, asked, chance) * mechanism.sensitivity
    return Planned(asked, chance, ceil(alpha / mechanism.grid) * mechanism.grid)


@lru_cache(maxsize=128)
def _half_gap(recipe: Recipe, questions: int, beta: Fraction) -> Fraction:
    return Fraction(half_gap(recipe, questions, beta))
