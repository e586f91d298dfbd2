"""The sparse vector technique with one-sided noise: the same promise, and the gap for free.

The threshold is raised by ρ ≥ 0 with Pr[ρ = z] ∝ e^(−ε₁z/Δ), drawn once for each group of tops; the
noise ν ≥ 0 of a question has the tail G(x) = Pr[ν ≥ x] = min(1, e^(−x/b)).  A value q is ⊤ iff
q + ν ≥ T + ρ, that is, with probability exp(−max(T + ρ − q, 0)/b): one exact coin, and no noise is
ever added to q.

Privacy: for neighbours with |q − q′| ≤ Δ, compare P(a) = Σ_z f(z) ∏_⊥ Pr[q+ν < T+z] ∏_⊤ G(T+z−q),
where f is the law of ρ and s the number of tops in the group, with the same sum for q′, shifted by
z → z + Δ.  The shift of f costs a factor e^(ε₁).  No ⊥ factor becomes smaller, since q′ ≤ q + Δ.
Each ⊤ factor needs G(x) ≤ e^(ε₂/s) G(x + 2Δ), which b = 2sΔ/ε₂ gives.  All shifts are to the right,
so noise on that side is enough; with noise of the other sign nothing would be private.  If all
questions move the same way (monotone), the shift is Δ in one direction and 0 in the other, and
b = sΔ/ε₂ suffices.  The same argument holds for the density of the gap q + ν − T − ρ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tacit.arguments import flag, instance
from tacit.book import recipes
from tacit.book.answer import Answer
from tacit.book.noise import ONE_SIDED
from tacit.book.recipes import Recipe
from tacit.book.sparse_vector import SparseVector, answers
from tacit.numbers import Number, exact
from tacit.privacy import Privacy

if TYPE_CHECKING:
    from tacit.book.coins import Coins

__all__ = ["above_threshold", "numeric_sparse", "prepare", "sparse"]


def above_threshold(
    values: Iterable[Number],
    *,
    threshold: Number,
    epsilon: Number,
    monotone: bool = False,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """AboveThreshold with one-sided noise: `sparse` with a single ⊤.

    Privacy: (ε, 0).
    """
    one_way = flag(monotone, "monotone")
    recipe = recipes.spend(ONE_SIDED, 1, Privacy(epsilon), monotone=one_way)
    mechanism = SparseVector.build(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
    return answers(mechanism, values, coins)


def sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    monotone: bool = False,
    groups: int = 1,
    value_share: Number | None = None,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """Sparse with one-sided noise: one ρ for each group of tops, and the gap with every ⊤.

    ``monotone`` promises that no question's value falls when a person is added, as for counts.
    ``value_share`` is the part of every group's ε that pays for values (see `numeric_sparse`).

    Privacy: (ε, δ); each group is pure, and the groups compose optimally.
    Accuracy: `tacit.book.half_gap` computes it; a plan also shifts T by a public amount.
    """
    recipe = recipes.spend(
        ONE_SIDED,
        at_most,
        Privacy(epsilon, delta),
        monotone=flag(monotone, "monotone"),
        groups=groups,
        value_share=None if value_share is None else exact(value_share, "value_share"),
    )
    mechanism = SparseVector.build(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
    return answers(mechanism, values, coins)


def numeric_sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    monotone: bool = False,
    groups: int = 1,
    value_share: Number = "1/9",
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """NumericSparse with one-sided noise: `sparse`, and on ⊤ the value with *fresh* Laplace noise.

    ``value_share`` of every group's ε pays for the values: by default 1/9, as in the book.

    Privacy: (ε, δ); a value's noise has scale sΔ/ε₃ for the s tops of a group.
    """
    return sparse(
        values,
        threshold=threshold,
        at_most=at_most,
        epsilon=epsilon,
        delta=delta,
        monotone=monotone,
        groups=groups,
        value_share=value_share,
        sensitivity=sensitivity,
        grid=grid,
        coins=coins,
    )


def prepare(
    recipe: Recipe, *, threshold: Number, sensitivity: Number = 1, grid: Number = 1
) -> SparseVector:
    """A mechanism that follows any recipe, with the recipe's family of noise."""
    instance(recipe, "recipe", Recipe, "give a Recipe, such as a plan's best")
    return SparseVector.build(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
