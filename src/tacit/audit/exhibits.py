"""The gallery, ready to be audited: each algorithm with its claim, its law and a way to run it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, exp, expm1
from typing import Any

from tacit.audit import variants
from tacit.audit.black_boxes import bulk_runs, suspicion, system_coins
from tacit.audit.law import NO_NOISE, Laplace, NegativeOneSidedNoise, OneSidedNoise, StreamLaw
from tacit.audit.learning import Suspicion
from tacit.audit.variants import Steps
from tacit.book import recipes
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.numbers import Number, whole
from tacit.numerics import certified
from tacit.privacy import Privacy

Pair = tuple[tuple[int, ...], tuple[int, ...]]
Chances = Mapping[Hashable, float | Fraction]


@dataclass(frozen=True, kw_only=True)
class Listed(ABC):
    """A mechanism whose outcomes can be listed, and two inputs that show what it loses.

    Hand it to `exact` or `sample`: as a black box it takes a vector of true answers.
    """

    name: str
    claimed: Privacy
    private: bool  # whether the claim is true
    pair: Pair
    why: str = ""

    @abstractmethod
    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes."""

    @abstractmethod
    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """The chance of every outcome, or of every group of outcomes that lose the same."""

    def neighbours(self) -> Iterable[Pair]:
        """Many small pairs of neighbours, of which nothing is lost sight in the law."""
        return ()


def moved(values: Iterable[Sequence[int]], moves: Iterable[Sequence[int]]) -> Iterator[Pair]:
    """Each of some vectors beside what each of some moves makes of it."""
    listed = [tuple(move) for move in moves]
    for here in values:
        for move in listed:
            yield tuple(here), tuple(a + b for a, b in zip(here, move, strict=True))


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An algorithm with threshold 0 and sensitivity 1, and what it claims.

    Hand it to `exact`, `worst` or `sample`: as a black box it takes a vector of true answers.
    """

    name: str
    claimed: Privacy
    private: bool  # whether the claim is true
    law: StreamLaw = field(repr=False)
    run: Callable[[Sequence[int], int], Steps] = field(repr=False)
    pair: Pair | None = field(default=None, repr=False)  # where its flaw shows; None: search
    why: str = ""

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes."""
        return self.run(answers, size)

    def neighbours(self) -> Iterable[Pair]:
        """Three questions near the threshold, moved in all ways that the claim is about.

        A law with directions is about questions of these; one for counts about those that rise.
        """
        size, near = len(self.law.directions or (0,) * 3), (-2, 0, 2)
        ways = self.law.directions or ((1,) * size if self.law.monotone else (0,) * size)
        moves = [(0, way) if way else (-1, 0, 1) for way in ways]
        return moved(product(near, repeat=size), product(*moves))

    def suspicion(self, pair: Any, runs: int) -> Suspicion | None:
        """What its law suspects; see `tacit.audit.sample`."""
        return suspicion(self.law, pair, runs)


def gallery(epsilon: Number = "1/10", at_most: int = 1) -> tuple[Variant | Listed, ...]:
    """SVT1 to SVT6 of Lyu, Su and Li (2017), and the mistakes that are easy to make.

    All claim (ε, 0) for ``at_most`` ⊤, except the literal E5, which needs a small ε to go wrong.
    """
    claimed, c = Privacy(epsilon), whole(at_most, "at_most")
    return (*published(claimed, c), *mistakes(claimed, c), *misprints(claimed))


def published(claimed: Privacy, c: int) -> tuple[Variant, ...]:
    """SVT1 to SVT6."""
    epsilon = claimed.epsilon
    once = partial(StreamLaw, at_most=c)
    for_ever = partial(StreamLaw, at_most=None)
    return (
        _variant(
            "SVT1",
            claimed,
            once(threshold_noise=Laplace(2 / epsilon), question_noise=Laplace(4 * c / epsilon)),
            partial(variants.svt1, c=c),
            private=True,
        ),
        _variant(
            "SVT2",
            claimed,
            once(
                threshold_noise=Laplace(2 * c / epsilon),
                question_noise=Laplace(4 * c / epsilon),
                tops_per_group=1,
            ),
            partial(variants.svt2, c=c),
            private=True,
        ),
        _variant(
            "SVT3",
            claimed,
            once(
                threshold_noise=Laplace(2 / epsilon),
                question_noise=Laplace(2 * c / epsilon),
                told="comparison",
            ),
            partial(variants.svt3, c=c),
            why="releases q + ν",
        ),
        _variant(
            "SVT4",
            claimed,
            once(
                threshold_noise=Laplace(4 / epsilon),
                question_noise=Laplace(4 / (3 * epsilon)),
            ),
            partial(variants.svt4, c=c),
            why="ν is too small by 2c",
        ),
        _variant(
            "SVT5",
            claimed,
            for_ever(threshold_noise=Laplace(2 / epsilon), question_noise=NO_NOISE),
            variants.svt5,
            why="no ν, never halts",
        ),
        _variant(
            "SVT6",
            claimed,
            for_ever(threshold_noise=Laplace(2 / epsilon), question_noise=Laplace(2 / epsilon)),
            variants.svt6,
            why="never halts",
        ),
    )


def mistakes(claimed: Privacy, c: int) -> tuple[Variant | Listed, ...]:
    """One-sided noise of the wrong sign, and so on."""
    epsilon = claimed.epsilon
    bits = epsilon * 8 / 9
    monotone = recipes.spend("one-sided", c, claimed, monotone=True)
    return (
        _variant(
            "negative one-sided ρ",
            claimed,
            StreamLaw(
                threshold_noise=NegativeOneSidedNoise(2 / epsilon),
                question_noise=OneSidedNoise(4 * c / epsilon),
                at_most=c,
            ),
            partial(variants.negative_one_sided, c=c),
            why="ρ must be ≥ 0",
        ),
        OffGridGap(claimed=claimed),
        ValueWithoutRho(claimed=claimed),
        Variant(
            name="monotone recipe, both directions",
            claimed=claimed,
            private=False,
            law=replace(StreamLaw.of(monotone), monotone=False),
            run=bulk_runs(prepare(monotone, threshold=0)),
            why="for questions that move one way",
        ),
        _directed("directed recipe, a wrong direction", claimed, c, (1, 1), private=False),
        _weights(
            "multiplicative weights, differences taken for counts",
            recipes.spend("two-sided", 1, claimed, monotone=True),
            private=False,
        ),
        _variant(
            "NumericSparse reusing ν",
            claimed,
            StreamLaw(
                threshold_noise=Laplace(2 * c / bits),
                question_noise=Laplace(4 * c / bits),
                at_most=c,
                tops_per_group=1,
                told="comparison",
            ),
            partial(variants.numeric_sparse_reusing_noise, c=c),
            why="releases q + ν",
        ),
    )


def misprints(claimed: Privacy) -> tuple[Variant, ...]:
    """Algorithm 3 and its proof exactly as printed: E5 and E6, for one ⊤."""
    return _literal_e5(), _literal_e6(claimed)


def _literal_e5() -> Variant:
    """ε₂ = 2/(√512 + 1) has no ε in it: the value's noise ignores the promise."""
    claimed = Privacy("1/500", delta="1e-4")
    recipe = recipes.book(1, claimed, numeric=True)
    root = certified.sqrt(32 * certified.ln(2 / claimed.delta)[0])[0]
    printed = Fraction(2) / (certified.sqrt(Fraction(512))[0] + 1)
    value = (root / printed).limit_denominator(10**6)  # σ(ε₂) = √(32 c ln(2/δ))/ε₂
    law = replace(StreamLaw.of(recipe), value_noise=Laplace(value))
    scales = (recipe.threshold_scale, recipe.question_scale, value)
    sure = 10 * ceil(recipe.question_scale)  # far above the threshold: ⊤ is certain, q is released
    return Variant(
        name="NumericSparse, E5 as printed",
        claimed=claimed,
        private=False,
        law=law,
        run=_GalleryRun(partial(variants.numeric_sparse_scales, c=1, scales=scales)),
        pair=((sure,), (sure + 1,)),
        why="ε₂ lacks its ε",
    )


def _literal_e6(claimed: Privacy) -> Variant:
    """The proof's parts ε√512/(√512 + 1) and ε/√512 make 1.00187 ε together."""
    root = certified.sqrt(Fraction(512))[0].limit_denominator(10**9)
    bits, value = claimed.epsilon * root / (root + 1), claimed.epsilon / root
    scales = (2 / bits, 4 / bits, 1 / value)
    return Variant(
        name="NumericSparse, E6 as printed",
        claimed=claimed,
        private=False,
        law=StreamLaw(
            threshold_noise=Laplace(scales[0]),
            question_noise=Laplace(scales[1]),
            value_noise=Laplace(scales[2]),
            at_most=1,
        ),
        run=_GalleryRun(partial(variants.numeric_sparse_scales, c=1, scales=scales)),
        why="the parts exceed ε",
    )


@dataclass(frozen=True, slots=True)
class _GalleryRun:
    """A gallery function with everything but the answers filled in."""

    function: Callable[..., Steps]

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        return self.function(answers, size, T=0, coins=system_coins())


def _variant(
    name: str,
    claimed: Privacy,
    law: StreamLaw,
    function: Callable[..., Steps],
    *,
    private: bool = False,
    why: str = "",
) -> Variant:
    run = _GalleryRun(partial(function, epsilon=claimed.epsilon))
    return Variant(name=name, claimed=claimed, private=private, law=law, run=run, why=why)


@dataclass(frozen=True, kw_only=True)
class ValueWithoutRho(Listed):
    """A value told from the gap, from which ρ was taken off: q + ν instead of q + ν − ρ."""

    name: str = "value from the gap, without ρ"
    private: bool = False
    pair: Pair = ((0,), (1,))
    why: str = "releases q + ν"

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the pattern, and the value."""
        return variants.value_with_the_threshold_noise(
            answers, size, T=0, epsilon=self.claimed.epsilon, coins=system_coins()
        )

    def outcome_law(self, answers: Sequence[int]) -> Mapping[Hashable, float]:
        """Which question was ⊤, and whether its value is at most 0: a part of what is released.

        Given ρ = z, a value is any whole number from max(q, z) on, and is 0 only if both are.
        """
        b, r = 4 / float(self.claimed.epsilon), exp(-float(self.claimed.epsilon) / 2)
        law: dict[Hashable, float] = {}
        for z in range(ceil(48 / (1 - r))):
            left = (1 - r) * r**z  # Pr[ρ = z] and ⊥ so far
            for index, answer in enumerate(answers):
                top = left * exp(-max(z - answer, 0) / b)
                low = top * -expm1(-(1 - max(answer, z)) / b) if max(answer, z) <= 0 else 0.0
                for outcome, chance in ((index, "≤ 0"), low), ((index, "> 0"), top - low):
                    law[outcome] = law.get(outcome, 0.0) + chance
                left *= -expm1(-max(z - answer, 0) / b)
            law["⊥"] = law.get("⊥", 0.0) + left
        return {outcome: chance for outcome, chance in law.items() if chance}


@dataclass(frozen=True, kw_only=True)
class OffGridGap(Listed):
    """The gap is told with a threshold of 1/2 on a grid of step 1."""

    name: str = "gap, threshold off the grid"
    private: bool = False
    pair: Pair = ((0,), (1,))
    why: str = "T was not rounded up"

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the pattern, and twice the gap."""
        return variants.gap_off_grid(
            answers, size, T=Fraction(1, 2), epsilon=self.claimed.epsilon, coins=system_coins()
        )

    def outcome_law(self, answers: Sequence[int]) -> Mapping[Hashable, float]:
        """Which question was ⊤, and whether its gap lies on the grid: a part of what is released.

        Given ρ = z, a gap is off the grid iff q > T + z.
        """
        b, r = 4 / float(self.claimed.epsilon), exp(-float(self.claimed.epsilon) / 2)
        law: dict[Hashable, float] = {}
        for z in range(ceil(48 / (1 - r))):
            left = (1 - r) * r**z  # Pr[ρ = z] and ⊥ so far
            for index, answer in enumerate(answers):
                short = max(0.5 + z - answer, 0.0)
                outcome = (index, "off the grid" if answer > 0.5 + z else "on the grid")
                law[outcome] = law.get(outcome, 0.0) + left * exp(-short / b)
                left *= -expm1(-short / b)
            law["⊥"] = law.get("⊥", 0.0) + left
        return {outcome: chance for outcome, chance in law.items() if chance}


def ours(epsilon: Number = "1/10", delta: Number = "1e-6") -> tuple[Variant, ...]:
    """Tacit's own streams: the book's, Lyu's, one-sided, monotone, grouped and numeric."""
    pure = Privacy(epsilon)
    mixed = Privacy(epsilon, delta)
    share = Fraction(1, 4)
    spend = recipes.spend
    return (
        _our("AboveThreshold (book)", recipes.book(1, pure)),
        _our("Sparse, c = 2 (book)", recipes.book(2, pure)),
        _our("NumericSparse (book)", recipes.book(1, pure, numeric=True)),
        _weights("multiplicative weights (book)", recipes.book(1, pure, numeric=True)),
        _our("Lyu Alg 7, c = 2", spend("two-sided", 2, pure, monotone=False)),
        _our("one-sided", spend("one-sided", 1, pure, monotone=False)),
        _our("one-sided, c = 2", spend("one-sided", 2, pure, monotone=False)),
        _our("one-sided, monotone", spend("one-sided", 1, pure, monotone=True)),
        _directed("one-sided, directed", pure, 1, (1, -1)),
        _directed("one-sided, directed, c = 2", pure, 2, (1, -1, -1)),
        _our("one-sided, numeric", spend("one-sided", 1, pure, monotone=False, value_share=share)),
        _our(
            "values from the gap, c = 2",
            spend("one-sided", 2, pure, monotone=True).telling_gaps(),
        ),
        _our("one-sided, 2 groups, δ > 0", spend("one-sided", 2, mixed, monotone=False, groups=2)),
    )


def _directed(
    name: str, claimed: Privacy, c: int, directions: tuple[int, ...], *, private: bool = True
) -> Variant:
    """A directed stream on a pair that loses all of ε: ⊥ on what rises, then ⊤ on what falls."""
    recipe = recipes.spend("one-sided", c, claimed, monotone=False, directed=True)
    falling = len(directions) - 1
    return Variant(
        name=name,
        claimed=claimed,
        private=private,
        law=StreamLaw.of(recipe, directions=directions),
        run=bulk_runs(prepare(recipe, threshold=0), directions=directions),
        pair=((0,) * len(directions), (1,) + (-1,) * falling),
        why="" if private else "it fell, and was asked as one that cannot",
    )


def _weights(name: str, recipe: Recipe, *, private: bool = True) -> Variant:
    """Private multiplicative weights up to its first update: what is asked of its stream.

    Of each question of section 4.2 two differences from the model's answer are asked, f − a and
    a − f.  A person moves them in opposite directions, and they may lie anywhere: of the pairs that
    are searched, whatever stays far below the threshold is the other side of a question.
    """
    return Variant(
        name=name,
        claimed=recipe.privacy,
        private=private,
        law=replace(StreamLaw.of(recipe), monotone=False),
        run=bulk_runs(prepare(recipe, threshold=0)),
        why="" if private else "one side falls where the other rises",
    )


def _our(name: str, recipe: Recipe) -> Variant:
    return Variant(
        name=name,
        claimed=recipe.privacy,
        private=True,
        law=StreamLaw.of(recipe),
        run=bulk_runs(prepare(recipe, threshold=0)),
    )
