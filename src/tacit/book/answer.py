"""The answer to one question of a stream: ⊥, or ⊤ with a noisy value or a gap beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from tacit.book.laplace import error_steps, one_sided_error_steps
from tacit.book.noisy_number import About, NoisyNumber
from tacit.book.recorded import Recordable, Recorded
from tacit.errors import BadParameter
from tacit.numbers import Number, plain, positive, probability, spaced, whole
from tacit.privacy import Privacy
from tacit.support import with_notes

__all__ = ["BELOW", "Answer", "Recorded"]

_GAP_NOISE = ("question_scale", "threshold_scale", "value_shift", "groups", "rounds", "below")
_EXACT = ("grid", "value", "gap", "noise_scale", *_GAP_NOISE)  # the numbers of an answer


@dataclass(frozen=True, slots=True)
class GapNoise:
    """How a value that was told from the gap may be off: public numbers, all in grid steps.

    The gap is G = q + ν − (T + s + ρ) and the value is T + s + G + κ = q + ν − ρ + κ.
    """

    question_scale: Fraction  # of ν
    threshold_scale: Fraction  # of ρ
    value_shift: int  # κ
    groups: int = 1  # each with a ρ of its own
    rounds: int = 1  # how often each question may be asked, with a ν of its own each time
    below: bool = False  # it was asked whether q is at most T: all of this is about −q

    def steps_around(self, beta: Fraction, questions: int) -> tuple[int, int]:
        """Where q − value lies, but for β: one half of it for ν, and one for ρ.

        ν is fresh for each question.  ρ is not: how long a group lasts depends on it, and so does
        which group a question meets.  Its bound must hold for every group at once.
        """
        asked = questions * self.rounds
        down = one_sided_error_steps(self.question_scale, beta / (2 * asked))
        up = one_sided_error_steps(self.threshold_scale, beta / (2 * self.groups))
        low, high = -self.value_shift - down, -self.value_shift + up
        return (-high, -low) if self.below else (low, high)

    @property
    def unbiased_steps(self) -> int:
        """What to add to the value to undo κ and to take off the means of both noises."""
        added = round(self.threshold_scale - self.question_scale) - self.value_shift
        return -added if self.below else added

    def as_json(self) -> dict[str, str]:
        """All of it as exact text; what is as in most streams is left out."""
        usual = {"rounds": "1", "below": "0"}
        written = {name: str(getattr(self, name)) for name in self.__slots__[:-1]}
        written["below"] = str(int(self.below))
        return {name: own for name, own in written.items() if usual.get(name) != own}

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> GapNoise:
        """The inverse of `as_json`."""
        return cls(
            positive(fields["question_scale"], "question_scale"),
            positive(fields["threshold_scale"], "threshold_scale"),
            int(fields["value_shift"]),
            whole(fields["groups"], "groups"),
            whole(fields.get("rounds", "1"), "rounds"),
            fields.get("below") == "1",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Recordable, NoisyNumber):
    """⊤ (truthy) or ⊥ (falsy), with a noisy value and a gap where the algorithm gives them.

    A value is a *fresh* draw around the true one, or it is told from the *gap*: `value_from` says
    which.  What is printed, and what one computes with (``float(answer)``, ``answer > 9``), is the
    `unbiased` value; ``value`` and its `error` go together.  An answer that is shown again from the
    record says so, and equals the original.

    >>> print(Answer(above=False))
    ⊥
    >>> top = Answer(above=True, value=Fraction(1204), noise_scale=Fraction(20))
    >>> print(top)
    ⊤ 1 204 ± 60 (95 %)
    >>> print(top.on_record("2026-11-03T09:30:00Z"))
    ⊤ 1 204 ± 60 (95 %), on record since 2026-11-03
    >>> noise = GapNoise(question_scale=Fraction(20), threshold_scale=Fraction(5), value_shift=-15)
    >>> print(Answer(above=True, value=Fraction(1204), gap_noise=noise))
    ⊤ 1 204 (1 146 to 1 237, 95 %)
    >>> print(top / 2 + 100, f"{top:,}", top > 1000)
    ⊤ 702 ± 30 (95 %) 1,204 True
    """

    above: bool
    value: Fraction | None = None
    gap: Fraction | None = None  # noisy value − noisy threshold, as they were compared
    noise_scale: Fraction | None = field(default=None, repr=False)  # of a fresh value, in steps
    gap_noise: GapNoise | None = field(default=None, repr=False)  # of a value from the gap
    grid: Fraction = field(default=Fraction(1), repr=False)
    recorded: Recorded | None = field(default=None, compare=False)  # None: it is new
    about: About | None = field(default=None, compare=False, repr=False)  # None for a plain ⊥
    covers: str = field(default="", compare=False, repr=False)
    """How much of each person its error is about, in words; empty if it is all of them."""
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What may be a mistake in what was asked: a value that is no declared key."""

    def __bool__(self) -> bool:
        return self.above

    @property
    def privacy(self) -> Privacy | None:
        """What all answers of its stream cost together."""
        return None if self.about is None else self.about.privacy

    def _number(self) -> Fraction:
        if self.unbiased is None:
            told = "⊤ without a value" if self.above else "⊥"
            raise BadParameter(
                "answer", told, "it has no number: numeric_sparse returns one with each ⊤"
            )
        return self.unbiased

    # Whatever moves or stretches the value does the same to the unbiased one and to the interval.

    def _moved(self, by: Fraction) -> Answer:
        assert self.value is not None
        return replace(self, value=self.value + by)

    def _stretched(self, factor: Fraction) -> Answer:
        assert self.value is not None
        noise = self.gap_noise
        if noise is not None and factor < 0:  # its two sides change places
            noise = replace(noise, below=not noise.below)
        return replace(
            self,
            value=self.value * factor,
            gap=None if self.gap is None else self.gap * abs(factor),
            gap_noise=noise,
            grid=self.grid * abs(factor),
        )

    @property
    def value_from(self) -> Literal["gap", "fresh"] | None:
        """Where the value comes from: from the gap, or a fresh draw; None if there is none."""
        if self.gap_noise is not None:
            return "gap"
        return None if self.noise_scale is None else "fresh"

    @property
    def unbiased(self) -> Fraction | None:
        """The value without the public shift κ that keeps it within the plan's α.

        A fresh value is unbiased as it is.  One from the gap then is, if the true value is well
        above the threshold; if it is below and the answer ⊤ all the same, it is too high.
        """
        if self.value is None or self.gap_noise is None:
            return self.value
        return self.value + self.gap_noise.unbiased_steps * self.grid

    def error(self, beta: Number = "1/20") -> Fraction | None:
        """An error bound that holds except with probability β; None if there is no value.

        Where the interval is not symmetric, it is the longer side.
        """
        if self.noise_scale is not None:
            return error_steps(self.noise_scale, beta) * self.grid
        interval = self.interval(beta)
        if interval is None or self.value is None:
            return None
        return max(self.value - interval[0], interval[1] - self.value)

    def unbiased_error(self, beta: Number = "1/20") -> Fraction:
        """How far the `unbiased` value may be off, except with probability β: the longer side."""
        interval = self.interval(beta)
        if interval is None or self.unbiased is None:
            return Fraction(0)
        return max(self.unbiased - interval[0], interval[1] - self.unbiased)

    def interval(
        self, beta: Number = "1/20", *, questions: int = 1
    ) -> tuple[Fraction, Fraction] | None:
        """Bounds on the true value, or None if no value was told.

        For each question *asked*, the probability that it is told ⊤ with an interval that misses is
        at most β; with ``questions``, the probability that this happens to any of so many.  Where
        questions are asked in several rounds, this holds for all rounds together.
        """
        if self.value is None:
            return None
        chance, asked = probability(beta, "beta"), whole(questions, "questions")
        if self.gap_noise is not None:
            low, high = self.gap_noise.steps_around(chance, asked)
        elif self.noise_scale is not None:
            high = error_steps(self.noise_scale, chance / asked)
            low = -high
        else:
            return None
        return self.value + low * self.grid, self.value + high * self.grid

    def on_record(self, at: str, as_of: str | None = None) -> Answer:
        """The same answer, shown again from the record made at this time."""
        return self._marked(Recorded(at, as_of))

    def as_json(self) -> dict[str, str]:
        """What was released, exactly and as text, for the record of a stream."""
        parts = {"value": self.value, "gap": self.gap, "noise_scale": self.noise_scale}
        released = {name: str(part) for name, part in parts.items() if part is not None}
        noise = {} if self.gap_noise is None else self.gap_noise.as_json()
        return {"above": "⊤" if self.above else "⊥", "grid": str(self.grid)} | released | noise

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Answer:
        """The inverse of `as_json`."""
        value, gap, noise_scale = (
            Fraction(fields[name]) if name in fields else None
            for name in ("value", "gap", "noise_scale")
        )
        return cls(
            above=fields["above"] == "⊤",
            value=value,
            gap=gap,
            noise_scale=noise_scale,
            gap_noise=GapNoise.from_json(fields) if "value_shift" in fields else None,
            grid=Fraction(fields["grid"]),
        )

    def as_told(self) -> dict[str, Any]:
        """As it leaves a process: numbers for people, and beside them what is exact."""
        since, numbers, interval = self.recorded, self.as_json(), self.interval()
        return {
            "above": self.above,
            "value": plain(self.value),
            "error": plain(self.error()),
            "gap": plain(self.gap),
            "recorded": None if since is None else {"at": since.at, "as_of": since.as_of},
            "value_from": self.value_from,
            "interval": None if interval is None else [plain(end) for end in interval],
            "unbiased": plain(self.unbiased),
            "exact": {name: numbers[name] for name in _EXACT if name in numbers},
        }

    @classmethod
    def from_told(cls, fields: Mapping[str, Any]) -> Answer:
        """The inverse of `as_told`."""
        numbers = {name: fields["exact"][name] for name in _EXACT if name in fields["exact"]}
        answer = cls.from_json({"above": "⊤" if fields["above"] is True else "⊥", **numbers})
        said: dict[str, Any] = {"covers": fields.get("covers", "")}
        answer = replace(answer, notes=tuple(fields.get("notes", ())), **said)
        since = fields["recorded"]
        return answer if since is None else answer.on_record(since["at"], since["as_of"])

    def __str__(self) -> str:
        text = "⊤" if self.above else "⊥"
        if self.unbiased is not None:
            text += f" {spaced(self.unbiased)}{self._within()}"
            text += f", {self.covers}" if self.covers else ""
        text += "" if self.recorded is None else f", {self.recorded}"
        return with_notes(text, self.notes)

    def _within(self) -> str:
        interval = self.interval() if self.value_from == "gap" else None
        if interval is None:
            return f" ± {spaced(self.error() or Fraction(0))} (95 %)"
        return f" ({spaced(interval[0])} to {spaced(interval[1])}, 95 %)"


BELOW = Answer(above=False)
"""⊥: the question stayed below the noisy threshold."""
