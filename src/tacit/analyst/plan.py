"""Plans: which recipe for a stream, which error it will have, or which ε that takes.

    >>> from tacit.analyst import plan
    >>> plan.sparse(questions=1000, at_most=10, epsilon=1, kind="any").best.name
    'one-sided'

A plan uses public numbers only, costs nothing and promises nothing about privacy: every recipe in
it keeps the (ε, δ) that was asked.  It compares them by the half-gap α
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
from typing import Literal, get_args

from tacit.analyst.plan_text import as_html, as_text, planned_questions, title
from tacit.analyst.tuning import (
    Baseline,
    Family,
    Task,
    Tuned,
    as_it_is,
    grouped,
    laplace_baselines,
    shifted,
    tuned,
)
from tacit.arguments import one_of, text
from tacit.book import accuracy as theorems
from tacit.book import recipes
from tacit.book.half_gap import read_beta
from tacit.book.noise import ONE_SIDED, TWO_SIDED
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, as_given, exact, positive, show, small_probability, whole
from tacit.numerics import certified
from tacit.privacy import Privacy

Kind = Literal["counts", "any"]
Algorithm = Literal["above_threshold", "sparse", "numeric_sparse"]

_BETA = "1/20"
_NONE = Fraction(0)
_TURNS = 12
_CLOSE = 1.0005  # an ε within this factor of the least is close enough
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
        """What it promises, or what it takes."""
        return self.recipe.privacy.epsilon


@dataclass(frozen=True, slots=True)
class Plan:
    """A table of recipes, the best first.

    ``plan.best`` and ``plan.recipe("book")`` go to `tacit.book.one_sided.prepare`, or to a stream.
    """

    algorithm: Algorithm
    questions: int
    at_most: int
    beta: Fraction
    delta: Fraction
    kind: Kind
    epsilon: Fraction | None  # what was asked: one of the two
    wanted_alpha: Fraction | None
    options: tuple[Option, ...]
    baselines: tuple[Baseline, ...]
    refused: tuple[tuple[str, str], ...]  # recipes that do not exist for these numbers, and why

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
        """A line of the table by its name."""
        text(name, "name", "give the name of a recipe, such as 'book'")
        for option in self.options:
            if option.name == name:
                return option
        for refused, reason in self.refused:
            if refused == name:
                raise ConditionNotMet(reason, advice="the recipe 'best' has no such limit")
        names = ", ".join(f"{option.name!r}" for option in self.options)
        raise BadParameter("recipe", as_given(name), f"this plan has {names}")

    @property
    def why(self) -> str:
        """What makes the best recipe the best, in a sentence or two."""
        return _why(self)

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
) -> Plan:
    """A plan for AboveThreshold: k questions, until the first ⊤.

    Give ``epsilon`` to learn α, or ``alpha`` to learn the ε it takes.  ``kind="counts"`` allows
    recipes for questions that never fall when a person is added; ``kind="any"`` does not.
    """
    return _plan("above_threshold", questions, 1, epsilon, alpha, 0, beta, kind)


def sparse(
    *,
    questions: int,
    at_most: int,
    epsilon: Number | None = None,
    alpha: Number | None = None,
    delta: Number = 0,
    beta: Number = _BETA,
    kind: Kind = "counts",
) -> Plan:
    """A plan for Sparse: k questions, at most c of them above (see `above_threshold`)."""
    return _plan("sparse", questions, at_most, epsilon, alpha, delta, beta, kind)


def numeric_sparse(
    *,
    questions: int,
    at_most: int,
    epsilon: Number | None = None,
    alpha: Number | None = None,
    delta: Number = 0,
    beta: Number = _BETA,
    kind: Kind = "counts",
) -> Plan:
    """A plan for NumericSparse: as `sparse`, and each ⊤ with a value that is within α."""
    return _plan("numeric_sparse", questions, at_most, epsilon, alpha, delta, beta, kind)


def _plan(
    algorithm: Algorithm,
    questions: int,
    at_most: int,
    epsilon: Number | None,
    alpha: Number | None,
    delta: Number,
    beta: Number,
    kind: Kind,
) -> Plan:
    """Read and check what was asked; the rest is remembered."""
    if (epsilon is None) == (alpha is None):
        what = "alpha" if alpha is not None else "epsilon"
        raise BadParameter(what, alpha, "give epsilon or alpha, one of them, to learn the other")
    one_of(kind, "kind", get_args(Kind))
    read_beta(beta)  # checked here, before anything is remembered
    return _planned(
        algorithm,
        int(_within(whole(questions, "questions"), "questions", "1", "1e12")),
        int(_within(whole(at_most, "at_most"), "at_most", "1", "1e6")),
        None if epsilon is None else _within(epsilon, "epsilon", "1e-12", "1e9"),
        None if alpha is None else _within(alpha, "alpha", "1e-9", "1e15"),
        _within(delta, "delta", "1e-300", "0.999") if small_probability(delta, "delta") else _NONE,
        exact(beta, "beta"),
        kind,
    )


def _within(value: Number, name: str, low: str, high: str) -> Fraction:
    number = positive(value, name)
    if not Fraction(low) <= number <= Fraction(high):
        raise BadParameter(name, show(number), f"plans are made from {low} to {high}")
    return number


@lru_cache(maxsize=128)
def _planned(
    algorithm: Algorithm,
    questions: int,
    at_most: int,
    epsilon: Fraction | None,
    alpha: Fraction | None,
    delta: Fraction,
    beta: Fraction,
    kind: Kind,
) -> Plan:
    task = Task(
        planned_questions(questions, at_most), at_most, beta, numeric=algorithm == "numeric_sparse"
    )
    options, refused = [], []
    for name, build in _builders(task, delta, kind).items():
        try:
            found = build(epsilon) if epsilon is not None else _enough(build, alpha)
        except ConditionNotMet as error:
            refused.append((name, error.fact))
            continue
        if found is not None:
            recipe = replace(found.recipe, name=name)
            options.append(
                Option(name, recipe, found.alpha, _proved(name, recipe, algorithm, task))
            )
    return Plan(
        algorithm=algorithm,
        questions=questions,
        at_most=at_most,
        beta=beta,
        delta=delta,
        kind=kind,
        epsilon=epsilon,
        wanted_alpha=alpha,
        options=tuple(sorted(options, key=lambda o: o.alpha if alpha is None else o.epsilon)),
        baselines=laplace_baselines(task, questions, epsilon, alpha, delta),
        refused=tuple(refused),
    )


Build = Callable[[Fraction], Tuned | None]


def _builders(task: Task, delta: Fraction, kind: Kind) -> dict[str, Build]:
    """Every recipe worth a line, as a function of ε.  Those that do not use δ do not claim it."""
    book = partial(recipes.book, task.at_most, numeric=task.numeric)
    least = partial(recipes.book_least_noise, task.at_most, numeric=task.numeric)
    lines: dict[str, Build] = {
        "book": lambda epsilon: as_it_is(book(Privacy(epsilon, delta)), task),
        "book, shifted": lambda epsilon: shifted(book(Privacy(epsilon, delta)), task),
    }
    if delta > 0:
        lines["book, least noise"] = lambda epsilon: shifted(least(Privacy(epsilon, delta)), task)
    for monotone in (False, True) if kind == "counts" else (False,):
        ending = ", monotone" if monotone else ""
        lyu, ours = Family(TWO_SIDED, monotone), Family(ONE_SIDED, monotone)
        lines[TWO_SIDED.title + ending] = partial(_one_group, lyu, task)
        lines[ONE_SIDED.title + ending] = partial(_one_group, ours, task)
        lines[ONE_SIDED.title + ending + ", grouped"] = partial(_groups, ours, task, delta)
    return lines


def _one_group(family: Family, task: Task, epsilon: Fraction) -> Tuned:
    return tuned(family, task, Privacy(epsilon))


def _groups(family: Family, task: Task, delta: Fraction, epsilon: Fraction) -> Tuned | None:
    return grouped(family, task, Privacy(epsilon, delta))


def _enough(build: Build, alpha: Fraction | None) -> Tuned | None:
    """The recipe with about the least ε, rounded up, whose half-gap is at most α."""
    assert alpha is not None  # one of the two was given
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
        raise ConditionNotMet(f"no ε was found for α = {show(alpha)}; ask for a larger alpha")
    return fits


def _proved(name: str, recipe: Recipe, algorithm: Algorithm, task: Task) -> Fraction | None:
    """What the book's theorem says of the printed recipe; it knows of no shift."""
    if name != "book":
        return None
    beta, epsilon, k = task.beta, recipe.privacy.epsilon, task.questions
    if algorithm == "above_threshold":
        return theorems.above_threshold(beta=beta, epsilon=epsilon, questions=k).alpha
    theorem = theorems.sparse if algorithm == "sparse" else theorems.numeric_sparse
    c, delta = task.at_most, recipe.privacy.delta
    return theorem(beta=beta, epsilon=epsilon, questions=k, at_most=c, delta=delta).alpha


def _why(plan: Plan) -> str:
    best = plan.options[0]
    said = [_against_the_book(plan, best)]
    on_all = [line for line in plan.baselines if line.on_all]
    if plan.wanted_alpha is None:
        better = [line for line in on_all if line.alpha < best.alpha]
    else:
        better = [line for line in on_all if line.epsilon < best.epsilon]
    if better:
        said.append(
            f"But so few questions are better answered with plain noise: {better[0].name} has "
            f"{'less error' if plan.wanted_alpha is None else 'less ε'}."
        )
    return " ".join(said)


def _against_the_book(plan: Plan, best: Option) -> str:
    recipe = best.recipe
    reasons = []
    if not recipe.family.both_sides:
        reasons.append("its noise goes one way only, which the proof allows")
    if recipe.monotone:
        reasons.append("counts all move the same way, so half the noise on each will do")
    if plan.at_most > 1 and recipe.groups == 1:
        reasons.append("one noisy threshold serves all ⊤")
    if recipe.groups > 1:
        reasons.append(f"its {recipe.groups} groups compose optimally at δ")
    fair = [line for line in plan.options if line.name in ("book, shifted", "book, least noise")]
    if not reasons or not fair:
        return f"{best.name} is the best there is for these numbers."
    book = fair[0]  # the options are sorted
    if plan.wanted_alpha is None:
        gain, what = book.alpha / best.alpha, "α"
    else:
        gain, what = float(book.epsilon / best.epsilon), "ε"
    return (
        f"{best.name}: {gain:.1f} times less {what} than {book.name}, as "
        + "; ".join(reasons)
        + "."
    )
