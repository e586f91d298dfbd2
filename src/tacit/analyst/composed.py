"""Composition side by side: what k mechanisms come to, or what each of them may be.

Every line is true; they differ in how much they prove.  Public numbers in, so this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, isfinite
from typing import TYPE_CHECKING, Any

from tacit.analyst.tabular import Tabular
from tacit.book import composition, optimal, zcdp
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, chance, four_digits_up, mechanisms, show, spaced, spending
from tacit.numerics import certified
from tacit.support import check_can_plot, html_table

if TYPE_CHECKING:
    from os import PathLike

_POINTS = 80  # of a line of the picture


@dataclass(frozen=True, slots=True)
class ComposedLine:
    """What one theorem says: the total ε, or the ε₀ of each; None if it says nothing."""

    theorem: str
    epsilon: float | None


@dataclass(frozen=True, slots=True)
class Composed(Tabular):
    """k mechanisms together by several theorems, the best first."""

    k: int
    delta: Fraction
    epsilon_each: Fraction | None  # given, or else the total is
    epsilon: Fraction | None
    lines: tuple[ComposedLine, ...]

    def to_dict(self) -> dict[str, list[Any]]:
        """The theorems, and what each says."""
        return {
            "theorem": [line.theorem for line in self.lines],
            self._asked: [line.epsilon for line in self.lines],
        }

    @property
    def _asked(self) -> str:
        return "epsilon" if self.epsilon is None else "epsilon_each"

    @property
    def _title(self) -> str:
        of = f"{spaced(Fraction(self.k))} mechanism{'s' * (self.k != 1)}"
        if self.epsilon_each is not None:
            return f"{of}, each ε₀ = {show(self.epsilon_each)}, at δ = {show(self.delta)}"
        return f"{of} within ε = {show(self.epsilon or 0)} at δ = {show(self.delta)}"

    def _rows(self) -> list[tuple[str, str]]:
        if self.epsilon is None:  # a total is rounded up, a part down
            return [(line.theorem, _shown(line.epsilon, four_digits_up)) for line in self.lines]
        return [(line.theorem, _shown(line.epsilon, _four_digits_down)) for line in self.lines]

    def __str__(self) -> str:
        head = ("", "ε" if self.epsilon is None else "ε₀ of each")
        rows = [head, *self._rows()]
        left, right = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [f"{name:<{left}}  {number:>{right}}" for name, number in rows]
        return "\n".join([self._title, "", *lines])

    def _repr_html_(self) -> str:
        head = ("theorem", "ε" if self.epsilon is None else "ε₀ of each")
        return html_table(self._title, self._rows(), head)

    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """δ against ε by each theorem, as points for a picture.

        If the total was given, the mechanisms are those that optimal composition allows.
        """
        each = self.epsilon_each
        if each is None:
            allowed = next(line.epsilon for line in self.lines if line.theorem == _OPTIMAL)
            each = Fraction(allowed or 0)
        if each == 0:
            raise ConditionNotMet("no mechanism fits, so that there is nothing to draw")
        reach = composition.advanced_epsilon(self.k, each, self.delta)
        most = min(float(self.k * each), 1.1 * reach)
        at = [most * step / _POINTS for step in range(_POINTS + 1)]
        rho = self.k * zcdp.rho_of_epsilon(each)
        return {
            _OPTIMAL: [(x, optimal.optimal_delta(self.k, each, Fraction(x))) for x in at],
            _ZCDP: [(x, zcdp.zcdp_delta(rho, Fraction(x))) for x in at],
            _BOOK: [(x, _book_delta(self.k, float(each), x)) for x in at],
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw δ against ε by each theorem into a file, such as composed.png."""
        check_can_plot(path)
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot(yscale="log")
        for theorem, points in self.curves().items():
            shown = [(x, delta) for x, delta in points if delta > 1e-30]
            axes.plot([x for x, _ in shown], [delta for _, delta in shown], label=theorem)
        axes.axhline(float(self.delta), color="0.6", ls="--", label="this δ")
        axes.set(xlabel="ε", ylabel="δ")
        axes.grid(alpha=0.3)
        axes.legend()
        figure.suptitle(self._title)
        figure.savefig(path, dpi=150)


_BASIC, _BOOK, _TANH = "basic composition", "Theorem 3.20", "Theorem 3.20, tanh(ε₀/2)"
_COROLLARY, _OPTIMAL, _ZCDP = "Corollary 3.21", "optimal composition", "zCDP"


def compose(
    k: int,
    *,
    delta: Number,
    epsilon_each: Number | None = None,
    epsilon: Number | None = None,
) -> Composed:
    """What k mechanisms, each (ε₀, 0)-private, come to at this δ, by several theorems.

    Give ``epsilon_each`` to learn the total ε, or the total ``epsilon`` to learn what each may
    have.  Totals are rounded up and parts down, so that every line is true.
    """
    if (epsilon_each is None) == (epsilon is None):
        what, given = ("epsilon", epsilon) if epsilon is not None else ("epsilon_each", None)
        raise BadParameter(what, given, "give either epsilon_each or epsilon, to find the other")
    k, small = mechanisms(k), chance(delta, "delta")
    if epsilon is None:
        each = spending(epsilon_each, "epsilon_each")
        return _composed(k, small, each, None, _totals(k, each, small))
    total = spending(epsilon, "epsilon")
    return _composed(k, small, None, total, _parts(k, total, small))


def _composed(
    k: int,
    delta: Fraction,
    each: Fraction | None,
    total: Fraction | None,
    found: dict[str, Callable[[], float]],
) -> Composed:
    lines = [ComposedLine(theorem, _said(what)) for theorem, what in found.items()]
    worst = inf if total is None else 0.0

    def place(line: ComposedLine) -> float:
        said = worst if line.epsilon is None else line.epsilon
        return said if total is None else -said

    return Composed(k, delta, each, total, tuple(sorted(lines, key=place)))


def _totals(k: int, each: Fraction, delta: Fraction) -> dict[str, Callable[[], float]]:
    rho = k * zcdp.rho_of_epsilon(each)
    return {
        _OPTIMAL: lambda: optimal.optimal_epsilon(k, each, delta),
        _BASIC: lambda: certified.rounded_up(k * each),
        _ZCDP: lambda: zcdp.zcdp_epsilon(rho, delta),
        _TANH: lambda: composition.advanced_epsilon(k, each, delta, form="tanh"),
        _BOOK: lambda: composition.advanced_epsilon(k, each, delta),
    }


def _parts(k: int, total: Fraction, delta: Fraction) -> dict[str, Callable[[], float]]:
    def by_zcdp() -> float:
        rho = zcdp.zcdp_rho(total, delta)
        return certified.rounded_down(certified.sqrt(max(2 * rho / k, Fraction(0)), 400)[0])

    return {
        _OPTIMAL: lambda: optimal.optimal_each(k, total, delta),
        _BASIC: lambda: certified.rounded_down(total / k),
        _ZCDP: by_zcdp,
        _TANH: lambda: composition.advanced_each(k, total, delta, form="tanh"),
        _BOOK: lambda: composition.advanced_each(k, total, delta),
        _COROLLARY: lambda: certified.rounded_down(composition.corollary_each(k, total, delta)),
    }


def _said(what: Callable[[], float]) -> float | None:
    """What a theorem says, or None if its condition does not hold or it promises nothing."""
    try:
        number = what()
    except ConditionNotMet:
        return None
    return number if isfinite(number) else None


def _shown(number: float | None, show_number: Callable[[float], str]) -> str:
    return "says nothing" if number is None else show_number(number)


def _four_digits_down(number: float) -> str:
    # As `four_digits_up`: what a float lost in its last digits does not change a digit here.
    return show(certified.round_down(Fraction(number) * (1 + Fraction(1, 10**10)), 4), 5)


def _book_delta(k: int, each: float, epsilon: float) -> float:
    """δ′ of Theorem 3.20 at a total ε, for a picture."""
    over = epsilon - k * each * expm1(each)
    return 1.0 if over <= 0 else exp(-((over / each) ** 2) / (2 * k))
