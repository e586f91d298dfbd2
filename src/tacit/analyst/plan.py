"""Plans: which recipe suits a stream, and which error it will have or which ε it will take.

    >>> from tacit.analyst import plan
    >>> plan.sparse(questions=1000, at_most=10, epsilon=1, kind="any").best.name
    'one-sided'

A plan uses public numbers only and costs nothing.  Every recipe in it keeps the (ε, δ) that was
asked for; the plan compares them by the half-gap α
(:mod:`tacit.book.half_gap`): if k − c values are at most T − α and c are at least T + α, all
answers are right (and released values within α) with probability 1 − β.  All lengths are in units
of the questions' sensitivity Δ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import log
from typing import Literal

from tacit.analyst.chances import Chances, chances_around
from tacit.analyst.plan_shown import as_html, as_text, title, why
from tacit.analyst.priced import priced
from tacit.analyst.task import Kind, Task
from tacit.analyst.tuning import (
    Aim,
    Baseline,
    Family,
    Tuned,
    as_it_is,
    grouped,
    laplace_baselines,
    shifted,
    tuned,
)
from tacit.arguments import text
from tacit.book import accuracy as theorems
from tacit.book import recipes
from tacit.book.chance import ChanceAbove, chance_above
from tacit.book.noise import ONE_SIDED, TWO_SIDED
from tacit.book.recipes import Recipe, Values
from tacit.book.sparse_vector import SparseVector
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, as_given, exact, positive, show, small_probability
from tacit.numerics import certified
from tacit.privacy import Privacy

__all__ = ["Plan", "above_threshold", "numeric_sparse", "priced", "sparse"]

Algorithm = Literal["above_threshold", "sparse", "numeric_sparse"]

_BETA = "1/20"
_NONE = Fraction(0)
_TURNS = 12
_CLOSE = 1.0005  # an α within this factor of the wanted one is close enough
_SLACK = 1.0001


@dataclass(frozen=True, slots=True)
class Option:
    """One recipe of a plan, ready to be prepared, with the error it has."""

    name: str
    recipe: Recipe
    alpha: float  # the half-gap, at the recipe's own public shift
    proved: Fraction | None = None  # the α of Theorem 3.24, 3.26 or 3.28, for the book's recipes

    @property
    def epsilon(self) -> Fraction:
        """The ε of the recipe: the one that was given, or the one that was found."""
        return self.recipe.privacy.epsilon


@dataclass(frozen=True, slots=True)
class Plan:
    """A table of recipes, the best first.

    A stream takes ``plan.best`` or ``plan.recipe("book")`` as its ``recipe``, and so does
    `tacit.book.one_sided.prepare`.
    """

    algorithm: Algorithm
    questions: int
    at_most: int
    beta: Fraction
    delta: Fraction
    kind: Kind
    epsilon: Fraction | None  # given, or else wanted_alpha is
    wanted_alpha: Fraction | None
    options: tuple[Option, ...]
    baselines: tuple[Baseline, ...]
    refused: tuple[tuple[str, str], ...]  # recipes that do not exist for these numbers, and why
    values: Values = "gap"  # where a value comes from, if the recipe has a choice
    rounds: int = 1  # how often each question may be asked

    @property
    def best(self) -> Recipe:
        """The recipe with the least α for this ε, or with the least ε for this α."""
        return self.options[0].recipe

    @property
    def alpha(self) -> float:
        """The half-gap of the best recipe."""
        return self.options[0].alpha

    def recipe(self, name: str) -> Recipe:
        """A recipe by its name in the table, such as "book"."""
        return self.option(name).recipe

    def option(self, name: str) -> Option:
        """A line of the table by the recipe's name."""
        text(name, "name", "give the name of a recipe, such as 'book'")
        for option in self.options:
            if option.name == name:
                return option
        for refused, reason in self.refused:
            if refused == name:
                raise ConditionNotMet(reason, advice="recipe='best' has no such limit")
        names = ", ".join(f"{option.name!r}" for option in self.options)
        raise BadParameter("recipe", as_given(name), f"it must be one of this plan's: {names}")

    @property
    def task(self) -> Task:
        """What the plan is for."""
        numeric = self.algorithm == "numeric_sparse"
        return Task(
            self.questions,
            self.at_most,
            self.beta,
            numeric,
            self.kind,
            values=self.values,
            rounds=self.rounds,
        )

    def chance(
        self,
        count: Number,
        *,
        threshold: Number = 0,
        recipe: str | None = None,
        sensitivity: Number = 1,
        grid: Number = 1,
    ) -> ChanceAbove:
        """How likely a true count is ⊤, exactly, if it is the first that is asked; free.

        ``threshold`` is 0 by default: then ``count`` says how far above the threshold it is.
        ``recipe`` is a name in the table, by default the best's.
        """
        mechanism = self._mechanism(recipe, threshold, sensitivity, grid)
        value = exact(count, "count")
        if (value / mechanism.grid).denominator != 1:
            allowed = f"it must be a whole multiple of grid {mechanism.grid}"
            raise BadParameter("count", as_given(count), allowed)
        return chance_above(mechanism, value)

    def chances(
        self,
        *,
        threshold: Number = 0,
        recipe: str | None = None,
        sensitivity: Number = 1,
        grid: Number = 1,
    ) -> Chances:
        """The counts that are ⊤ with 1 to 99 %, as a table and a picture; see `chance`."""
        name = self.options[0].name if recipe is None else recipe
        return chances_around(self._mechanism(recipe, threshold, sensitivity, grid), name)

    def _mechanism(
        self, recipe: str | None, threshold: Number, sensitivity: Number, grid: Number
    ) -> SparseVector:
        chosen = self.best if recipe is None else self.recipe(recipe)
        return SparseVector.build(chosen, threshold=threshold, sensitivity=sensitivity, grid=grid)

    @property
    def why(self) -> str:
        """Why the best recipe is the best, in a sentence or two."""
        return why(self)

    def __repr__(self) -> str:
        return f"<Plan for {title(self)}: {self.options[0].name}, α = {show(self.alpha)}>"

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def above_threshold(
    *,
    questions: int,
    epsilon: Number | None = None,
    alpha: Number | None = None,
    beta: Number = _BETA,
    kind: Kind = "counts",
    rounds: int = 1,
) -> Plan:
    """A plan for AboveThreshold: k questions, until the first ⊤.

    Give ``epsilon`` to find α, or ``alpha`` to find the ε that it takes.  ``kind="counts"`` also
    considers recipes for questions whose answer never falls when a person is added,
    ``kind="directed"`` such for questions that never fall or never rise; ``kind="any"`` neither.
    ``rounds`` is how often a question may be asked again that was ⊥.
    """
    task = Task.read(
        questions=questions, at_most=1, beta=beta, numeric=False, kind=kind, rounds=rounds
    )
    return _plan("above_threshold", task, epsilon=epsilon, alpha=alpha)


def sparse(
    *,
    questions: int,
    at_most: int,
    epsilon: Number | None = None,
    alpha: Number | None = None,
    delta: Number = 0,
    beta: Number = _BETA,
    kind: Kind = "counts",
    rounds: int = 1,
) -> Plan:
    """A plan for Sparse: k questions, of which at most c are above; see `above_threshold`."""
    task = Task.read(
        questions=questions, at_most=at_most, beta=beta, numeric=False, kind=kind, rounds=rounds
    )
    return _plan("sparse", task, epsilon=epsilon, alpha=alpha, delta=delta)


def numeric_sparse(
    *,
    questions: int,
    at_most: int,
    epsilon: Number | None = None,
    alpha: Number | None = None,
    delta: Number = 0,
    beta: Number = _BETA,
    kind: Kind = "counts",
    values: Values = "gap",
    rounds: int = 1,
) -> Plan:
    """A plan for NumericSparse: like `sparse`, and each ⊤ brings a value that is within α.

    Recipes with one-sided noise tell values from the gap, for no ε; ``values="fresh"`` plans for
    fresh draws, which cost a share of ε and are unbiased.
    """
    task = Task.read(
        questions=questions,
        at_most=at_most,
        beta=beta,
        numeric=True,
        kind=kind,
        values=values,
        rounds=rounds,
    )
    return _plan("numeric_sparse", task, epsilon=epsilon, alpha=alpha, delta=delta)


def _plan(
    algorithm: Algorithm,
    task: Task,
    *,
    epsilon: Number | None,
    alpha: Number | None,
    delta: Number = 0,
) -> Plan:
    """Check what was asked; plans that were made before are remembered."""
    if (epsilon is None) == (alpha is None):
        what = "alpha" if alpha is not None else "epsilon"
        raise BadParameter(what, alpha, "give either epsilon or alpha, to find the other")
    _within(task.at_most, "at_most", "1", "1e6")
    aim = Aim(
        None if epsilon is None else _within(epsilon, "epsilon", "1e-12", "1e9"),
        None if alpha is None else _within(alpha, "alpha", "1e-9", "1e15"),
        _within(delta, "delta", "1e-300", "0.999") if small_probability(delta, "delta") else _NONE,
    )
    return _planned(algorithm, task, aim)


def _within(value: Number, name: str, low: str, high: str) -> Fraction:
    number = positive(value, name)
    if not Fraction(low) <= number <= Fraction(high):
        raise BadParameter(name, show(number), f"it must be between {low} and {high}")
    return number


@lru_cache(maxsize=128)
def _planned(algorithm: Algorithm, task: Task, aim: Aim) -> Plan:
    options, refused = [], []
    for name, build in _builders(task, aim.delta).items():
        try:
            found = build(aim.epsilon) if aim.epsilon is not None else _enough(build, aim.alpha)
        except ConditionNotMet as error:
            refused.append((name, error.fact))
            continue
        if found is not None:
            recipe = replace(found.recipe, name=name)
            proved = _proved(recipe, algorithm, task) if name == "book" else None
            options.append(Option(name, recipe, found.alpha, proved))
    return Plan(
        algorithm=algorithm,
        questions=task.questions,
        at_most=task.at_most,
        beta=task.beta,
        delta=aim.delta,
        kind=task.kind,
        epsilon=aim.epsilon,
        wanted_alpha=aim.alpha,
        options=tuple(sorted(options, key=lambda o: o.alpha if aim.alpha is None else o.epsilon)),
        baselines=laplace_baselines(task, aim),
        refused=tuple(refused),
        values=task.values,
        rounds=task.rounds,
    )


Build = Callable[[Fraction], Tuned | None]
_ENDINGS = {"counts": (", monotone",), "directed": (", directed",)}


def _builders(task: Task, delta: Fraction) -> dict[str, Build]:
    """Every recipe worth a line, as a function of ε.  Those that make no use of δ claim none."""
    book = partial(recipes.book, task.at_most, numeric=task.numeric)
    least = partial(recipes.book_least_noise, task.at_most, numeric=task.numeric)
    lines: dict[str, Build] = {
        "book": lambda epsilon: as_it_is(book(Privacy(epsilon, delta)), task),
        "book, shifted": lambda epsilon: shifted(book(Privacy(epsilon, delta)), task),
    }
    if delta > 0:
        lines["book, least noise"] = lambda epsilon: shifted(least(Privacy(epsilon, delta)), task)
    for ending in ("", *_ENDINGS.get(task.kind, ())):
        way = {"monotone": ending == ", monotone", "directed": ending == ", directed"}
        lyu, ours = Family(TWO_SIDED, **way), Family(ONE_SIDED, **way)
        lines[TWO_SIDED.title + ending] = partial(_one_group, lyu, task)
        lines[ONE_SIDED.title + ending] = partial(_one_group, ours, task)
        lines[ONE_SIDED.title + ending + ", grouped"] = partial(_groups, ours, task, delta)
    return lines


def _one_group(family: Family, task: Task, epsilon: Fraction) -> Tuned:
    return tuned(family, task, Privacy(epsilon))


def _groups(family: Family, task: Task, delta: Fraction, epsilon: Fraction) -> Tuned | None:
    return grouped(family, task, Privacy(epsilon, delta))


def _enough(build: Build, alpha: Fraction | None) -> Tuned | None:
    """The recipe with about the least ε, rounded up, for which the half-gap is at most α."""
    assert alpha is not None  # since no ε was given
    wanted, epsilon, power = float(alpha), Fraction(1), 1.0
    fits: Tuned | None = None
    last: Tuned | None = None
    for _ in range(_TURNS):
        found = build(epsilon)
        if found is None:
            return None
        if found.alpha <= wanted and (fits is None or epsilon < fits.recipe.privacy.epsilon):
            fits = found
        if found.alpha <= wanted <= found.alpha * _CLOSE:
            break
        # A half-gap is ∝ 1/ε for most recipes, and nearly some power of it for all.
        if last is not None and found.alpha != last.alpha:
            apart = log(last.recipe.privacy.epsilon / epsilon) / log(found.alpha / last.alpha)
            power = min(max(apart, 0.5), 10.0)
        factor = (found.alpha * _SLACK / wanted) ** power
        epsilon, last = certified.round_up(epsilon * exact(factor, "alpha"), 5), found
    if fits is None:
        raise ConditionNotMet(f"no ε was found for α = {show(alpha)}: give a larger alpha")
    return fits


def _proved(recipe: Recipe, algorithm: Algorithm, task: Task) -> Fraction:
    """What the book's theorem says about the printed recipe, which has no shift."""
    beta, epsilon, k = task.beta, recipe.privacy.epsilon, task.planned
    if algorithm == "above_threshold":
        return theorems.above_threshold(beta=beta, epsilon=epsilon, questions=k).alpha
    theorem = theorems.sparse if algorithm == "sparse" else theorems.numeric_sparse
    c, delta = task.at_most, recipe.privacy.delta
    return theorem(beta=beta, epsilon=epsilon, questions=k, at_most=c, delta=delta).alpha
