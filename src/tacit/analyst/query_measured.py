"""What was measured with noise in every cell of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.book.coins import WIDEST_NOISE
from tacit.book.laplace import Estimate, error_steps
from tacit.numbers import Number, positive
from tacit.privacy import Privacy
from tacit.tables.schema.schema import row_bound

Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """An aggregate of every cell, with noise: whole numbers of steps of its grid."""

    name: str
    privacy: Privacy
    grid: Fraction
    noise_scale: Fraction  # in steps
    steps: tuple[int, ...]
    max_rows: int | None = None
    """How many rows of a person count in a cell; None if no rows are counted."""
    max_keys: int | None = None
    """For how many distinct keys a person counts; None if keys are not what is counted."""

    @property
    def values(self) -> list[Fraction]:
        """The noisy values, cell by cell."""
        return [steps * self.grid for steps in self.steps]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """How far each of the values may be off by itself, except with probability β."""
        return [error_steps(self.noise_scale, beta) * self.grid] * len(self.steps)

    def intervals(self, beta: Number = "1/20") -> list[Interval]:
        """Between what each true value lies by itself, except with probability β."""
        off = error_steps(self.noise_scale, beta) * self.grid
        return [(value - off, value + off) for value in self.values]

    @property
    def estimates(self) -> list[Estimate]:
        """The noisy values, each with its error bar."""
        return [
            Estimate(
                value=value, noise_scale=self.noise_scale, privacy=self.privacy, grid=self.grid
            )
            for value in self.values
        ]

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        keys = {} if self.max_keys is None else {"max_keys": self.max_keys}
        return {
            "name": self.name,
            "epsilon": str(self.privacy.epsilon),
            "grid": str(self.grid),
            "noise_scale": str(self.noise_scale),
            "steps": list(self.steps),
            "max_rows": self.max_rows,
            **keys,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> QueryColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        keys = fields.get("max_keys")
        return cls(
            name_of(fields),
            Privacy(fields["epsilon"]),
            positive(fields["grid"], "grid"),
            scale_of(fields),
            steps_of(fields),
            max_rows=rows_of(fields),
            max_keys=None if keys is None else row_bound(keys, "max_keys"),
        )


# Reading what was written: other JSON raises one of many kinds of errors


def name_of(fields: Mapping[str, Any]) -> str:
    """The name of a column."""
    found = fields["name"]
    if not isinstance(found, str):
        raise TypeError
    return found


def steps_of(fields: Mapping[str, Any], name: str = "steps") -> tuple[int, ...]:
    """A whole number for each cell."""
    if not all(type(steps) is int for steps in fields[name]):
        raise TypeError
    return tuple(fields[name])


def scale_of(fields: Mapping[str, Any]) -> Fraction:
    """The scale of some noise; the error of a wider one than coins draw would take long to find."""
    scale = positive(fields["noise_scale"], "noise_scale")
    if scale > WIDEST_NOISE:
        raise ValueError
    return scale


def rows_of(fields: Mapping[str, Any]) -> int | None:
    """How many rows of a person count in a cell, if rows are counted."""
    return None if fields["max_rows"] is None else row_bound(fields["max_rows"])
