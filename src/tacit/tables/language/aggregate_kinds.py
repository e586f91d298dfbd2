"""Kinds of aggregates: what is measured for each, and under which words it is on record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.tables.language.keys import KeySet
from tacit.tables.language.question_key import canonical
from tacit.tables.language.tree import People, Question, Rows, Term, Total, weighted

if TYPE_CHECKING:
    from tacit.tables.language.selected import Selected

_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """Something that is measured in every cell for an aggregate.

    Privacy: in one cell a person changes it by at most ``sensitivity`` steps.  ``share`` is its
    part of the aggregate's ε.
    """

    name: str
    grid: Fraction
    sensitivity: Fraction
    share: Fraction = _ONE


class _Aggregate:
    """What a kind of aggregate says about itself; most evaluate nothing beside their question."""

    __slots__ = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return ()

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """What is measured with noise in every cell."""
        return ()

    @property
    def canonical(self) -> str:
        """What is made of the question, the same for equal aggregates.  It is stored."""
        return ""


class _OfBounded(_Aggregate):
    """Something about values between bounds."""

    __slots__ = ()

    low: int
    high: int

    @property
    def width(self) -> int:
        """How far a value can be from the middle of the bounds, in half steps."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Plain(_Aggregate):
    """A weighted sum of counts and sums: the question itself."""

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """The question, for the whole ε."""
        question = selected.question
        return (MeasuredPart(selected.name, question.grid, question.sensitivity / question.grid),)


@dataclass(frozen=True, slots=True)
class Mean(_OfBounded):
    """The mean of numbers that lie between ``low`` and ``high`` steps.

    Without ``of`` they are a column's values in the rows that the question counts.  With it they
    are what each of those rows, or of those people, adds to that term; 0 if it adds nothing.

    Privacy: each is at most half the width of the bounds away from their middle.
    """

    column: str | None
    low: int
    high: int
    step: Fraction
    of: Rows | Total | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return () if self.of is None else (self.of,)

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """How many there are, and the sum of their distances from the middle, in half steps."""
        half, most = Fraction(1, 2), Fraction(selected.most)
        total = MeasuredPart("total", self.step / 2, most * self.width, half)
        return (MeasuredPart("count", _ONE, most, half), total)

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        if self.of is None:
            return f"mean of {self.column}: "
        return f"mean of {_written(self.of)} within {self.low} to {self.high}: "


@dataclass(frozen=True, slots=True)
class Portion(_Aggregate):
    """Which share of what the question counts is also counted by ``inside``.

    Privacy: what is inside and the rest are disjoint, as sets of people or of rows that were chosen
    before they were told apart; so a person changes the two counts together by no more than they
    change one, and each may have noise for the whole ε.
    """

    inside: People | Rows

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return (self.inside,)

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """What is inside, and the rest."""
        most = Fraction(selected.most)
        return (MeasuredPart("inside", _ONE, most), MeasuredPart("rest", _ONE, most))

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        return f"share of {_written(self.inside)} in: "


@dataclass(frozen=True, slots=True)
class Ratio(_Aggregate):
    """A weighted sum of counts and sums, divided by another that a person never lowers."""

    below: Question

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return self.below.terms

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """Both, for half of ε each."""
        named, half = (("above", selected.question), ("below", self.below)), Fraction(1, 2)
        return tuple(
            MeasuredPart(name, question.grid, question.sensitivity / question.grid, half)
            for name, question in named
        )

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        return f"ratio to {canonical(self.below)} of: "


@dataclass(frozen=True, slots=True)
class Spread(_OfBounded):
    """The variance of a column's values, or its root; of a sample, if they are taken for one.

    Privacy: with y the distance of a value from the middle of the bounds, in half steps, and w
    the width of the bounds, |y| ≤ w and |2y² − w²| ≤ w².
    """

    column: str
    low: int
    high: int
    step: Fraction
    sample: bool
    root: bool

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """How many there are, Σ y, and Σ (2y² − w²) in eighths of a squared step."""
        third, most = Fraction(1, 3), Fraction(selected.most)
        return (
            MeasuredPart("count", _ONE, most, third),
            MeasuredPart("total", self.step / 2, most * self.width, third),
            MeasuredPart("squares", self.step**2 / 8, most * self.width**2, third),
        )

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        kind = f"{'sample ' * self.sample}{'deviation' if self.root else 'variance'}"
        return f"{kind} of {self.column}: "


@dataclass(frozen=True, slots=True)
class Ranked(_Aggregate):
    """A quantile of a column's values, or (``end`` is −1 or +1) the least or the greatest.

    Nothing is measured with noise: one of the declared values is drawn.
    """

    column: str
    share: Fraction
    end: int = 0

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        return f"quantile {self.share} {self.end:+} of {self.column}: "


@dataclass(frozen=True, slots=True)
class Distinct(_Aggregate):
    """How many cells of declared keys have a row that the question counts.

    Privacy: each person counts in at most ``most`` of them, chosen at random, so that they change
    their number by no more than that.  It is 0 until a plan says what it is.
    """

    keys: KeySet
    most: int = 0

    def parts(self, selected: Selected) -> tuple[MeasuredPart, ...]:
        """Their number."""
        assert self.most >= 1
        return (MeasuredPart(selected.name, _ONE, Fraction(self.most)),)

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        return f"up to {self.most} distinct {self.keys.as_json()} of: "


@dataclass(frozen=True, slots=True)
class FromStream(_Aggregate):
    """What HAVING compares: a noisy value comes with each ⊤ of its stream, and costs no ε."""

    @property
    def canonical(self) -> str:
        """See `_Aggregate`."""
        return "from the stream: "


Kind = Plain | Mean | Portion | Ratio | Spread | Ranked | Distinct | FromStream


def _written(term: Term) -> str:
    return canonical(question_of(term))


def question_of(term: Term) -> Question:
    """The question that is this term alone."""
    question = weighted([(_ONE, term, _ONE)])
    assert question is not None
    return question
