"""Recipes: how a promised (ε, δ) is split into the noises of a sparse vector stream.

A stream of at most c tops is cut into groups.  Each group draws one threshold noise ρ, is
(ε₁ + ε₂ + ε₃)-private on its own, and the groups compose to the promise:

=========  ===============================  =============================================
share      pays for                         noise, for questions of sensitivity Δ
=========  ===============================  =============================================
ε₁         the threshold, once a group      scale Δ/ε₁
ε₂         the tops of a group, s of them   scale 2sΔ/ε₂; sΔ/ε₂ if the questions are monotone
ε₃         the values released on ⊤         scale sΔ/ε₃, a fresh draw for each ⊤
=========  ===============================  =============================================

With Laplace noise and s = 1 that is the book's Sparse; with s = c it is Algorithm 7 of Lyu, Su
and Li (VLDB 2017); with one-sided noise see :mod:`tacit.book.one_sided`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from tacit.book.composition import two_point_delta
from tacit.errors import BadParameter, ConditionNotMet
from tacit.privacy import Cost, Number, Privacy, as_given, exact, positive, show, whole

Sides = Literal["two-sided", "one-sided"]
"""On which sides of 0 the noise lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Public parameters of a stream's noise.  One that exists keeps its promise.

    Privacy: every group is (ε₁+ε₂+ε₃, 0)-private; building the recipe checks that optimal
    composition of the groups stays within ``privacy``, or raises :class:`ConditionNotMet`.
    Numbers are read exactly, and it is the numbers as read that are checked and used.
    """

    name: str
    noise: Sides
    privacy: Privacy
    at_most: int  # c, the tops that are paid for
    groups: int  # g, each with a threshold noise of its own; those that can occur
    threshold_epsilon: Fraction  # ε₁
    question_epsilon: Fraction  # ε₂
    value_epsilon: Fraction = Fraction(0)  # ε₃; 0 if no values are released
    monotone: bool = False  # only for questions of direction +1
    shift: Fraction = Fraction(0)  # public, added to every threshold, in units of Δ

    def __post_init__(self) -> None:
        if self.noise not in get_args(Sides):
            raise BadParameter("noise", repr(self.noise), f"one of {', '.join(get_args(Sides))}")
        if not isinstance(self.privacy, Privacy):
            raise BadParameter("privacy", as_given(self.privacy), "give a Privacy(epsilon, delta)")
        if not isinstance(self.monotone, bool):  # "False" would count as true
            raise BadParameter("monotone", as_given(self.monotone), "give True or False")
        at_most = whole(self.at_most, "at_most")
        value_epsilon = exact(self.value_epsilon, "value_epsilon")
        if value_epsilon < 0:
            raise BadParameter("value_epsilon", as_given(value_epsilon), "it must be at least 0")
        read = {
            "name": str(self.name),
            "at_most": at_most,
            "groups": occurring_groups(at_most, self.groups),
            "threshold_epsilon": positive(self.threshold_epsilon, "threshold_epsilon"),
            "question_epsilon": positive(self.question_epsilon, "question_epsilon"),
            "value_epsilon": value_epsilon,
            "shift": exact(self.shift, "shift"),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        self._check_promise()

    def _check_promise(self) -> None:
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        if self.groups * self.group_epsilon <= epsilon:  # plain addition is enough
            return
        # For monotone questions the loss of a group lies in [−ε₂−ε₃, ε₁+ε₂+ε₃].
        down = self.group_epsilon - (self.threshold_epsilon if self.monotone else 0)
        spent = two_point_delta(self.groups, self.group_epsilon, down, epsilon)
        if spent > delta:
            raise ConditionNotMet(
                f"{self.groups} groups of ε = {show(self.group_epsilon)} need "
                f"δ = {show(spent)} at ε = {show(epsilon)}, more than the promised "
                f"{show(delta)}; use less ε in a group or promise more"
            )

    @property
    def group_epsilon(self) -> Fraction:
        """What one group costs, purely."""
        return self.threshold_epsilon + self.question_epsilon + self.value_epsilon

    @property
    def tops_per_group(self) -> int:
        """s, the ⊤ that share one threshold noise."""
        return -(-self.at_most // self.groups)

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of ρ, in units of Δ."""
        return 1 / self.threshold_epsilon

    @property
    def question_scale(self) -> Fraction:
        """The scale b of each question's noise ν, in units of Δ."""
        return (1 if self.monotone else 2) * self.tops_per_group / self.question_epsilon

    @property
    def value_scale(self) -> Fraction | None:
        """The scale of a released value's fresh noise, in units of Δ; None for bits only."""
        return self.tops_per_group / self.value_epsilon if self.value_epsilon else None

    @property
    def cost(self) -> Cost:
        """The promise and its pure parts, for an accountant."""
        return Cost(self.privacy, ((self.groups, self.group_epsilon),))

    def shifted(self, shift: Number) -> Recipe:
        """The same noise with another public shift of the threshold."""
        return replace(self, shift=exact(shift, "shift"))

    def as_json(self) -> dict[str, str]:
        """All of it as text, exactly; a stream that is stored keeps this."""
        fields = {name: str(getattr(self, name)) for name in self.__slots__ if name != "privacy"}
        privacy = {"epsilon": str(self.privacy.epsilon), "delta": str(self.privacy.delta)}
        return fields | privacy

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Recipe:
        """The inverse of `as_json`; everything is checked again."""
        given: dict[str, Any] = {name: fields[name] for name in cls.__slots__ if name != "privacy"}
        given["monotone"] = {"True": True, "False": False}.get(given["monotone"])
        return cls(privacy=Privacy(fields["epsilon"], fields["delta"]), **given)

    def __str__(self) -> str:
        groups = f"{self.groups} group" + "s" * (self.groups > 1)
        kind = "monotone questions" if self.monotone else "any questions"
        return f"{self.name}: {self.noise} noise, {groups}, {kind}, {self.privacy}"


def occurring_groups(at_most: int, groups: Number) -> int:
    """How many of so many groups ever begin, and so are paid for.

    6 groups for 10 ⊤ have 2 ⊤ each, and the fifth group has the last ones.

    >>> occurring_groups(10, 6)
    5
    """
    number = whole(groups, "groups")
    if number > at_most:
        raise BadParameter("groups", as_given(number), f"at most one for each of {at_most} ⊤")
    tops_per_group = -(-at_most // number)
    return -(-at_most // tops_per_group)
