"""What may be handed to the auditors, read into a law and whole numbers of grid steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

from tacit.arguments import iterated, kind_of
from tacit.audit.law import StreamLaw
from tacit.book.coins import MOST_STEPS, threshold_steps
from tacit.book.recipes import Recipe
from tacit.book.sparse_vector import SparseVector
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, positive


@runtime_checkable
class HasLaw(Protocol):
    """Anything that knows its law, such as a member of the gallery."""

    @property
    def law(self) -> StreamLaw:
        """In grid steps."""


Mechanism = Recipe | SparseVector | StreamLaw | HasLaw


@dataclass(frozen=True, slots=True)
class Setting:
    """A law, and what it is asked on either side, all in grid steps."""

    law: StreamLaw
    threshold: int
    answers: tuple[int, ...]
    neighbours: tuple[int, ...]


def understood(
    mechanism: Mechanism,
    *,
    sensitivity: Number = 1,
    grid: Number = 1,
    directions: Sequence[int] | None = None,
) -> tuple[StreamLaw, Fraction, Fraction]:
    """The law of whatever was handed in, its sensitivity and its grid: a stream's own, if it is."""
    if isinstance(mechanism, SparseVector):
        sensitivity, grid = mechanism.sensitivity, mechanism.grid
    most, step = positive(sensitivity, "sensitivity"), positive(grid, "grid")
    if isinstance(mechanism, SparseVector):
        mechanism = mechanism.recipe
    if isinstance(mechanism, Recipe):
        law = StreamLaw.of(mechanism, sensitivity=most, grid=step, directions=directions)
        return law, most, step
    return _own_law(mechanism), most, step


def _own_law(mechanism: StreamLaw | HasLaw) -> StreamLaw:
    law = mechanism if isinstance(mechanism, StreamLaw) else getattr(mechanism, "law", None)
    if not isinstance(law, StreamLaw):
        raise BadParameter(
            "mechanism",
            kind_of(mechanism),
            "give a recipe, a prepared stream, a tacit.audit.Law or a variant of the gallery; "
            "anything else can be audited by tacit.audit.sample",
        )
    return law


def read(
    mechanism: Mechanism,
    answers: Sequence[Number],
    neighbour_answers: Sequence[Number],
    *,
    threshold: Number | None = None,
    sensitivity: Number = 1,
    grid: Number = 1,
    directions: Sequence[int] | None = None,
) -> Setting:
    """Check a pair of answer vectors and bring everything to grid steps."""
    shift = Fraction(0)
    if isinstance(mechanism, SparseVector):
        threshold = mechanism.threshold if threshold is None else threshold
        shift = mechanism.recipe.added
    elif isinstance(mechanism, Recipe):
        shift = mechanism.shift
    law, most, step = understood(
        mechanism, sensitivity=sensitivity, grid=grid, directions=directions
    )
    here, there = _answers(answers, "answers"), _answers(neighbour_answers, "neighbour_answers")
    if len(here) != len(there):
        raise BadParameter(
            "neighbour_answers", f"of length {len(there)}", "give one for each answer"
        )
    if law.directions is not None and len(law.directions) != len(here):
        raise BadParameter(
            "directions", f"of length {len(law.directions)}", "give one for each answer"
        )
    for index, (one, other) in enumerate(zip(here, there, strict=True)):
        if abs(one - other) > most:
            raise BadParameter(
                f"neighbour_answers[{index}]",
                other,
                f"it must be within the sensitivity {most} of {one}",
            )
    asked = exact(0 if threshold is None else threshold, "threshold") + shift * most
    return Setting(
        law,
        threshold_steps(asked, step),  # rounded up, as every mechanism does
        tuple(_whole_steps(answer, step, "answers") for answer in here),
        tuple(_whole_steps(answer, step, "neighbour_answers") for answer in there),
    )


def _answers(answers: Sequence[Number], name: str) -> tuple[Fraction, ...]:
    several = iterated(answers, name, "give a list of true answers")
    return tuple(exact(answer, name) for answer in several)


def _whole_steps(answer: Fraction, step: Fraction, name: str) -> int:
    steps = answer / step
    if steps.denominator != 1:
        raise BadParameter(name, answer, f"it must be a whole multiple of the grid {step}")
    if abs(steps) > MOST_STEPS:
        raise BadParameter(name, as_given(answer), "it must be within ±2^61 grid steps")
    return steps.numerator
