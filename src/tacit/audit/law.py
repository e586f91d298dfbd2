"""What the auditors must know about a mechanism of the sparse vector family: its law.

A question q is ⊤ iff q + ν ≥ T + ρ.  Two noises, when ρ is drawn again, when the stream halts and
what is released with the bits: that is all, and it describes the book's algorithms, ours, and the
broken ones of :mod:`tacit.audit.variants` alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import flag, instance, iterated, one_of
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, positive, whole
from tacit.numerics import certified
from tacit.numerics.scaled import Scaled

Steps = NDArray[np.int64]
Disclosure = Literal["bits", "gap", "comparison"]
"""What is released with ⊤: nothing, how far q + ν is above T + ρ, or q + ν (a famous mistake)."""

_MOST_QUESTIONS = 10**7  # as many as can be listed
_BITS = 256
_ROW = 512  # r^j is looked up as r^(512·a) · r^b
_Wide = tuple[int, int]  # value · 2^(shift − 256), value of 256 bits
_ONE: _Wide = (1 << _BITS, 0)


# Laws of noise on whole grid steps: Pr[ν = x], Pr[ν < x] and Pr[ν ≥ x] ---------------------------
#
# These probabilities come from integers and are good to a few units of 2^(−53).


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """No noise at all, and what the laws with noise have in common."""

    scale: Fraction

    def __init__(self, scale: Number = 0) -> None:
        read = positive if type(self) is not NoiseLaw else exact
        object.__setattr__(self, "scale", read(scale, "scale"))

    # How far to the left and right the law has mass: its decay length, or 0 if it has none there.
    @property
    def left(self) -> Fraction:
        """The decay length of the left tail; 0 without one."""
        return Fraction(0)

    @property
    def right(self) -> Fraction:
        """The decay length of the right tail; 0 without one."""
        return Fraction(0)

    def mass(self, x: Steps) -> Scaled:
        """Pr[ν = x]."""
        return Scaled.of((x == 0).astype(np.float64))

    def below(self, x: Steps) -> Scaled:
        """Pr[ν < x]."""
        return Scaled.of((x > 0).astype(np.float64))

    def reaches(self, x: Steps) -> Scaled:
        """Pr[ν ≥ x]."""
        return Scaled.of((x <= 0).astype(np.float64))


NO_NOISE = NoiseLaw()


@dataclass(frozen=True, slots=True, init=False)
class Laplace(NoiseLaw):
    """Two-sided: Pr[ν = x] ∝ e^(−|x|/scale)."""

    @property
    def left(self) -> Fraction:
        """Both tails decay alike."""
        return self.scale

    @property
    def right(self) -> Fraction:
        """Both tails decay alike."""
        return self.scale

    def mass(self, x: Steps) -> Scaled:
        """(1 − r)/(1 + r) · r^|x|, r = e^(−1/scale)."""
        powers = _powers(self.scale)
        return powers.of(np.abs(x)).times(_number((1 - powers.r) / (1 + powers.r)))

    def reaches(self, x: Steps) -> Scaled:
        """r^x/(1 + r) if x > 0, else 1 − r^(1−x)/(1 + r), written without a difference."""
        powers = _powers(self.scale)
        positive = powers.of(np.maximum(x, 0))
        j = np.maximum(1 - x, 1)
        rest = powers.one_minus(j).plus(_number(powers.r))  # 1 − r^j/(1+r) = (r + 1 − r^j)/(1+r)
        return _choose(x > 0, positive, rest).times(_number(1 / (1 + powers.r)))

    def below(self, x: Steps) -> Scaled:
        """By symmetry, ν < x is as likely as ν ≥ 1 − x."""
        return self.reaches(1 - x)


@dataclass(frozen=True, slots=True, init=False)
class OneSidedNoise(NoiseLaw):
    """Never negative: Pr[ν = x] ∝ e^(−x/scale) for x ≥ 0."""

    @property
    def right(self) -> Fraction:
        """The decay length of the only tail."""
        return self.scale

    def mass(self, x: Steps) -> Scaled:
        """(1 − r) r^x."""
        powers = _powers(self.scale)
        return _choose(
            x >= 0, powers.of(np.maximum(x, 0)).times(_number(1 - powers.r)), _number(Fraction(0))
        )

    def below(self, x: Steps) -> Scaled:
        """1 − r^x, or 0 if x ≤ 0."""
        return _powers(self.scale).one_minus(np.maximum(x, 0))

    def reaches(self, x: Steps) -> Scaled:
        """r^x, or 1 if x ≤ 0."""
        return _powers(self.scale).of(np.maximum(x, 0))


@dataclass(frozen=True, slots=True, init=False)
class NegativeOneSidedNoise(NoiseLaw):
    """Never positive: the mirror image of `OneSidedNoise`, and the wrong sign for a threshold."""

    @property
    def left(self) -> Fraction:
        """The decay length of the only tail."""
        return self.scale

    def mass(self, x: Steps) -> Scaled:
        """As OneSidedNoise's at −x."""
        return OneSidedNoise(self.scale).mass(-x)

    def below(self, x: Steps) -> Scaled:
        """−ν ≥ 1 − x."""
        return OneSidedNoise(self.scale).reaches(1 - x)

    def reaches(self, x: Steps) -> Scaled:
        """−ν < 1 − x."""
        return OneSidedNoise(self.scale).below(1 - x)


class _Powers:
    """r^j and 1 − r^j for r = e^(−1/scale), from 256-bit integers.

    Every entry of four short tables is rounded once, from an integer that is right to 2^(−240).
    r^(512a + b) is the product r^(512a) · r^b, and 1 − r^(512a + b) is the sum
    (1 − r^(512a)) + r^(512a) (1 − r^b) of positive terms: neither loses digits.
    """

    def __init__(self, scale: Fraction) -> None:
        low, high = certified.exp(-1 / scale, _BITS + 16)
        self.r = (low + high) / 2
        root = _leading(self.r)
        powers = [_ONE]
        for _ in range(_ROW):
            powers.append(_product(powers[-1], root))
        self._columns = _rounded(powers)
        self._row_step = powers[_ROW]
        self._row_powers = [_ONE]
        self._rows = _rounded(self._row_powers)

    def of(self, j: Steps) -> Scaled:
        """r^j for j ≥ 0."""
        rows, _ = self._rows_up_to(j)
        return rows[j // _ROW].times(self._columns[0][j % _ROW])

    def one_minus(self, j: Steps) -> Scaled:
        """1 − r^j for j ≥ 0."""
        rows, row_rests = self._rows_up_to(j)
        rests = self._columns[1][j % _ROW]
        return row_rests[j // _ROW].plus(rows[j // _ROW].times(rests))

    def _rows_up_to(self, j: Steps) -> tuple[Scaled, Scaled]:
        wanted = int(j.max(initial=0)) // _ROW + 1
        if wanted > len(self._row_powers):
            while len(self._row_powers) < wanted:
                self._row_powers.append(_product(self._row_powers[-1], self._row_step))
            self._rows = _rounded(self._row_powers)
        return self._rows


def _leading(number: Fraction) -> _Wide:
    """A number in (0, 1) by its 256 leading bits."""
    shift = 0
    size = number.denominator.bit_length() - number.numerator.bit_length()
    if size > 1:
        shift = -(size - 1)
    value = (number.numerator << (_BITS - shift)) // number.denominator
    return value, shift


def _product(left: _Wide, right: _Wide) -> _Wide:
    value, shift = left[0] * right[0] >> _BITS, left[1] + right[1]
    missing = _BITS - value.bit_length()
    return (value << missing, shift - missing) if missing > 0 else (value, shift)


def _rounded(powers: list[_Wide]) -> tuple[Scaled, Scaled]:
    """The powers, and what each lacks to 1, each rounded once."""
    mantissa = np.array([value / _ONE[0] for value, _ in powers])
    exponent = np.array([shift for _, shift in powers], dtype=np.int64)
    lacking = np.array([(_ONE[0] - (value >> -shift)) / _ONE[0] for value, shift in powers])
    return Scaled(mantissa, exponent, 1), Scaled.of(lacking, 1)


@lru_cache(maxsize=256)
def _powers(scale: Fraction) -> _Powers:
    return _Powers(scale)


def _number(value: Fraction) -> Scaled:
    return Scaled.of(np.array(value.numerator / value.denominator), 1)


def _choose(where: NDArray[np.bool_], first: Scaled, second: Scaled) -> Scaled:
    return Scaled(
        np.where(where, first.mantissa, second.mantissa),
        np.where(where, first.exponent, second.exponent),
        max(first.ulps, second.ulps),
        max(first.depth, second.depth),
    )


# The law of a stream ------------------------------------------------------------------------------


def questions_to_audit(questions: int) -> int:
    """How many questions a mechanism is audited with."""
    number = whole(questions, "questions")
    if number > _MOST_QUESTIONS:
        raise BadParameter("questions", as_given(number), f"it must be at most {_MOST_QUESTIONS}")
    return number


def _directions(given: Iterable[int] | None) -> tuple[int, ...]:
    directions = tuple(iterated(given, "directions", "give +1 or −1 for direction question"))
    for direction in directions:
        if direction not in (1, -1):
            raise BadParameter(
                "directions", as_given(direction), "give +1 or −1 for direction question"
            )
    return directions


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLaw:
    """The law of a stream, with all noise in grid steps.

    ``value_noise`` is a *fresh* draw that is added to q and always released with ⊤.
    """

    threshold_noise: NoiseLaw  # ρ
    question_noise: NoiseLaw  # ν
    at_most: int | None  # halts at this many ⊤; None: never
    tops_per_group: int | None = None  # ρ is drawn again after so many ⊤; None: never
    value_noise: Laplace | None = None
    told: Disclosure = "bits"
    monotone: bool = False  # the promise is made for questions that all move the same way
    directions: tuple[int, ...] | None = None  # of each question, if each direction has a ρ

    def __post_init__(self) -> None:
        if self.at_most is not None:
            whole(self.at_most, "at_most")
        if self.tops_per_group is not None:
            whole(self.tops_per_group, "tops_per_group")
        one_of(self.told, "told", get_args(Disclosure))
        flag(self.monotone, "monotone")
        if self.directions is not None:
            object.__setattr__(self, "directions", _directions(self.directions))
        for name in ("threshold_noise", "question_noise"):
            instance(getattr(self, name), name, NoiseLaw, "give a noise, such as Laplace(2)")
        if self.told == "comparison" and not isinstance(self.question_noise, Laplace):
            raise BadParameter("told", "comparison", "q + ν is audited for Laplace noise ν only")
        if self.told == "gap" and not isinstance(self.question_noise, OneSidedNoise):
            raise BadParameter("told", "gap", "the gap is audited for one-sided noise")

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        *,
        sensitivity: Number = 1,
        grid: Number = 1,
        directions: Iterable[int] | None = None,
    ) -> StreamLaw:
        """The law of a recipe at work.

        For a directed recipe, ``directions`` are those of the questions that it will be asked.
        """
        instance(recipe, "recipe", Recipe, "give a Recipe, such as a plan's best")
        steps = positive(sensitivity, "sensitivity") / positive(grid, "grid")
        kind = OneSidedNoise if recipe.noise == "one-sided" else Laplace
        scale = recipe.value_scale
        return cls(
            threshold_noise=kind(recipe.threshold_scale * steps),
            question_noise=kind(recipe.question_scale * steps),
            at_most=recipe.at_most,
            tops_per_group=recipe.tops_per_group,
            value_noise=None if scale is None else Laplace(scale * steps),
            told="gap" if kind is OneSidedNoise else "bits",
            monotone=recipe.monotone,
            directions=_directions(directions) if recipe.directed else None,
        )

    def bits_only(self) -> StreamLaw:
        """The same stream, releasing nothing but ⊤ and ⊥."""
        return replace(self, told="bits", value_noise=None)

    def restarts(self, tops: int) -> bool:
        """Whether ρ is drawn again after this many ⊤."""
        return self.tops_per_group is not None and tops % self.tops_per_group == 0

    def halts(self, tops: int) -> bool:
        """Whether the stream ends after this many ⊤."""
        return self.at_most is not None and tops >= self.at_most

    def pattern_count(self, questions: int) -> int:
        """How many different strings of ⊤ and ⊥ can come out."""
        questions = questions_to_audit(questions)
        if self.at_most is None or self.at_most > questions:
            return 1 << questions
        open_ended = sum(comb(questions, tops) for tops in range(self.at_most))
        return open_ended + comb(questions, self.at_most)  # the c-th ⊤ last, at every place
