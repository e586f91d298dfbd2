"""A lower bound on the privacy loss of a black box, from samples alone.

On a first part of the samples an event is learned that is likelier on one database than on its
neighbour; the rest, which had no part in that, confirm it with an exact lower bound for
ln((p − δ)/p′), below which no (ε, δ)-private mechanism has its ε.  The bound fails with
probability 1 − confidence at most, whatever the mechanism, the event and the pair: that is the
probability of a false alarm.  Stopping early is paid for, since every look at the counts has its
own part.

No number of samples shows that a mechanism *is* private: a pass reads "not refuted".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from tacit.arguments import flag, function, iterated, kind_of
from tacit.audit.law import questions_to_audit
from tacit.audit.learning import Event, Suspicion, learn
from tacit.audit.workers import Bulk, Count, cores, counting
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, probability, show, small_probability, whole
from tacit.numerics.clopper_pearson import least_log_ratio, weights
from tacit.privacy import Privacy

InputPair = tuple[Any, Any]

_TRAINING = 4  # one run in so many
_TRAINING_WITH_A_SUSPICION = 16  # only to see whether there is something better
_LEAST_RUNS, _MOST_RUNS = 200, 10**10
_MOST_WORKERS = 1000
_EARLY_LOOKS = (256, 64, 16, 4)  # after 1/256 of the runs, and so on
_EARLY_SHARE = 0.01  # of the false-alarm probability, for each of them; the last look has the rest
_LEAST_TO_LOOK_AT = 100
_WORTH_SHARING = 2.0  # seconds
_LEAST_FALSE_ALARM = Fraction(1, 10**100)  # a part of it must be a float of full precision


@runtime_checkable
class Suspicious(Protocol):
    """A black box that can say which outcomes are suspected to tell a pair apart.

    A suspicion saves the runs that learning takes.  It need not be right: the event is confirmed by
    fresh runs as any other, and dropped if training finds one that is clearly better.
    """

    def suspicion(self, pair: InputPair, runs: int) -> Suspicion | None:
        """None if there is none."""


@dataclass(frozen=True, slots=True)
class SampledLoss:
    """What samples say: ``lower_bound`` ≤ ε at the given δ, with the given confidence."""

    lower_bound: float
    delta: float
    confidence: float
    claimed: Privacy | None
    refuted: bool
    pair: InputPair = field(repr=False)
    event: Event = field(repr=False)
    hits: tuple[int, int] = field(repr=False)  # in the event, on either side of the pair
    runs: int  # that confirmed it, on each side

    @property
    def verdict(self) -> str:
        """Never "private": samples cannot show that.  Without a claim there is none to refute."""
        if self.claimed is None:
            return "no claim"
        return "refuted" if self.refuted else "not refuted"

    def __str__(self) -> str:
        claim = f" of {self.claimed}" if self.claimed else ""
        return (
            f"{self.verdict}{claim}: ε ≥ {show(self.lower_bound)} at δ = {show(self.delta)}, "
            f"{self.confidence:.4g} confidence; the event [{self.event}] came "
            f"{self.hits[0]} and {self.hits[1]} times in {self.runs} runs on each side"
        )


def sample(
    mechanism: Callable[..., Any],
    pair: InputPair | None = None,
    *,
    pairs: Sequence[InputPair] | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    confidence: Number = "0.95",
    runs: int = 1_000_000,
    workers: int | None = None,
    progress: bool | None = None,
) -> SampledLoss:
    """Look for evidence against the claim that a mechanism is (ε, δ)-private.

    ``mechanism(input, size)`` returns ``size`` independent outcomes, as numbers, rows of numbers or
    anything hashable; a callable of one argument is taken to return a single outcome.  ``pair``
    is the two neighbouring inputs, or ``pairs`` several, of which the most promising is used;
    without either, the list of `known_bad_pairs` is tried.  ``runs`` are runs on each input,
    training included.  With an ``epsilon`` to refute it stops as soon as that is refuted, and a
    true claim is refuted with probability 1 − ``confidence`` at most; without, it makes all runs
    and returns the best lower bound.

    ``workers`` processes share the work (by default, all cores if it is long); ``progress`` shows a
    bar (by default in a terminal).

    >>> from tacit.book.coins import InsecureTestCoins
    >>> coins = InsecureTestCoins(1)
    >>> def leaky(count, size):                       # noise of scale 1 for a count: ε = 1
    ...     return count + coins.laplaces(1, size)
    >>> sample(leaky, (0, 1), epsilon="1/2", runs=20_000, workers=1).verdict
    'refuted'
    >>> sample(leaky, (0, 1), epsilon=1, runs=20_000, workers=1).verdict
    'not refuted'
    """
    bulk = as_bulk(mechanism)
    aim = _aim(epsilon, delta, confidence, runs)
    if workers is not None:
        workers = _count(workers, "workers", 1, _MOST_WORKERS)
    if progress is not None:
        flag(progress, "progress")
    choices = _pairs(pair, pairs)
    suspicions = [_suspicion(bulk, choice, aim.runs) for choice in choices]
    share = _TRAINING if None in suspicions else _TRAINING_WITH_A_SUSPICION
    training = max(aim.runs // share, 100)
    rest = replace(aim, runs=aim.runs - training)
    with _bar(progress, 2 * rest.runs + 2 * training * len(choices)) as advance:
        start = perf_counter()
        suspected = list(zip(choices, suspicions, strict=True))
        chosen, event = _learned(bulk, suspected, training, rest, advance)
        pace = (perf_counter() - start) / (training * len(choices))
        if workers is None:
            workers = cores() if pace * rest.runs > _WORTH_SHARING else 1
        with counting(bulk, chosen, event, workers=workers) as count:
            return _confirmed(count, chosen, event, rest, advance)


@dataclass(frozen=True, slots=True)
class _Aim:
    """What is to be refuted, how rarely a true claim may be, and the runs on each side."""

    claimed: Privacy | None
    delta: float
    confidence: float
    false_alarm: float  # 1 − confidence, rounded from what was typed
    runs: int

    def refuted_by(self, bound: float) -> bool:
        return self.claimed is not None and exact(bound, "bound") > self.claimed.epsilon


def _aim(epsilon: Number | None, delta: Number, confidence: Number, runs: int) -> _Aim:
    claimed = None if epsilon is None else Privacy(epsilon, delta)
    allowed = float(small_probability(delta, "delta"))
    false_alarm = _false_alarm(confidence)
    total = _count(runs, "runs", _LEAST_RUNS, _MOST_RUNS)
    return _Aim(claimed, allowed, float(exact(confidence, "confidence")), false_alarm, total)


def _confirmed(
    count: Count, pair: InputPair, event: Event, aim: _Aim, advance: Callable[[int], None]
) -> SampledLoss:
    """What fresh runs say of the event, look by look, until the claim is refuted."""
    best, done, hits = 0.0, 0, (0, 0)
    for goal, part in _looks(aim.runs, early=aim.claimed is not None):
        hits = (
            hits[0] + _hits(count, 0, goal - done, advance),
            hits[1] + _hits(count, 1, goal - done, advance),
        )
        done = goal
        if done < aim.runs and not _may_refute(hits, event, aim.claimed):
            continue
        best = max(best, _bound(hits, done, event, aim.delta, part * aim.false_alarm))
        if aim.refuted_by(best):
            break
    return SampledLoss(
        lower_bound=best,
        delta=aim.delta,
        confidence=aim.confidence,
        claimed=aim.claimed,
        refuted=aim.refuted_by(best),
        pair=pair,
        event=event,
        hits=hits,
        runs=done,
    )


def _count(given: object, name: str, least: int, most: int) -> int:
    number = whole(given, name, at_least=least)
    if number > most:
        raise BadParameter(name, as_given(number), f"it must be at most {most}")
    return number


def _false_alarm(confidence: Number) -> float:
    """1 − confidence, which is taken exactly: 1 − 1e-20 is not 1."""
    rest = 1 - probability(confidence, "confidence")
    if rest < _LEAST_FALSE_ALARM:
        raise BadParameter("confidence", "too close to 1", "it is at most 1 − 1e-100")
    return float(rest)


def _suspicion(bulk: Bulk, pair: InputPair, runs: int) -> Suspicion | None:
    return bulk.suspicion(pair, runs) if isinstance(bulk, Suspicious) else None


def _looks(runs: int, *, early: bool) -> list[tuple[int, float]]:
    """When to look, and which share of the false-alarm probability each look may spend."""
    if not early:
        return [(runs, 1.0)]
    goals = [runs // part for part in _EARLY_LOOKS if runs // part >= _LEAST_TO_LOOK_AT]
    looks = [(goal, _EARLY_SHARE) for goal in goals]
    return [*looks, (runs, 1 - _EARLY_SHARE * len(looks))]


def _learned(
    bulk: Bulk,
    suspected: Sequence[tuple[InputPair, Suspicion | None]],
    training: int,
    aim: _Aim,
    advance: Callable[[int], None],
) -> tuple[InputPair, Event]:
    """The pair and the event with the best prospects in the runs that are left."""
    best: tuple[InputPair, Event] | None = None
    for pair, suspicion in suspected:
        halves = []
        for size in (training // 3, training - training // 3):
            halves.append((_drawn(bulk, pair[0], size), _drawn(bulk, pair[1], size)))
            advance(2 * size)
        event = learn(*halves, delta=aim.delta, runs=aim.runs, suspicion=suspicion)
        if best is None or event.promise > best[1].promise:
            best = pair, event
    assert best is not None
    return best


def _drawn(bulk: Bulk, given: Any, size: int) -> Any:
    outcomes = bulk(given, size)
    try:
        count = len(outcomes)
    except TypeError:
        count = None
    if count != size:
        raise BadParameter(
            "mechanism",
            f"it returned {'one thing' if count is None else count} for size = {size}",
            "mechanism(input, size) must return that many outcomes; wrap one that returns a "
            "single outcome in tacit.audit.one_by_one",
        )
    return outcomes


def _hits(count: Count, side: int, runs: int, advance: Callable[[int], None]) -> int:
    total = 0
    for done, hits in count(side, runs):
        total += hits
        advance(done)
    return total


def _bound(hits: tuple[int, int], runs: int, event: Event, delta: float, alpha: float) -> float:
    """What ln((p − δ)/p′) is at least, wrong with probability α; the weights are from training."""
    counts = hits[::-1] if event.swapped else hits
    weight = weights(*event.rates, delta)
    return least_log_ratio(counts, runs, delta=delta, alpha=alpha, weight=weight)


def _may_refute(hits: tuple[int, int], event: Event, claimed: Privacy | None) -> bool:
    """Whether an early look is worth its time: what was seen must itself exceed the claim."""
    here, there = hits[::-1] if event.swapped else hits
    return claimed is not None and here > exp(min(float(claimed.epsilon), 700.0)) * there


def as_bulk(mechanism: Callable[..., Any]) -> Bulk:
    """The mechanism itself, or `one_by_one` if it takes one argument only."""
    function(mechanism, "mechanism", "give a function: mechanism(input, size)")
    try:
        parameters = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return mechanism
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return one_by_one(mechanism) if len(required) == 1 and not several else mechanism


@dataclass(frozen=True, slots=True)
class one_by_one:  # noqa: N801 - it is used like a function
    """A mechanism that returns one outcome, made to return many."""

    mechanism: Callable[[Any], Any]

    def __call__(self, given: Any, size: int) -> list[Any]:
        """Run it ``size`` times."""
        return [self.mechanism(given) for _ in range(size)]


def known_bad_pairs(questions: int = 10) -> list[InputPair]:
    """Pairs of answer vectors on which broken sparse vector algorithms are known to fail.

    All answers move by at most 1 and lie about a threshold of 0 (Lyu, Su and Li 2017; Ding et al.
    2018).
    """
    k = whole(questions_to_audit(questions), "questions", at_least=2)
    half = k // 2
    return [
        ((0,) * (k - 1) + (1,), (1,) * (k - 1) + (0,)),
        ((0,) * k, (1,) * half + (-1,) * (k - half)),
        ((0,) * k, (-1,) * half + (1,) * (k - half)),
        ((0,) * k, (1,) * k),
        ((1,) + (0,) * (k - 1), (0,) + (1,) * (k - 1)),
    ]


def _pairs(pair: InputPair | None, pairs: Sequence[InputPair] | None) -> Sequence[InputPair]:
    if pair is not None and pairs is not None:
        raise BadParameter("pairs", "given together with pair", "give one of the two")
    several = [] if pairs is None else list(iterated(pairs, "pairs", "give a list of pairs"))
    chosen = [pair] if pair is not None else known_bad_pairs() if pairs is None else several
    for number, given in enumerate(chosen):
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise BadParameter(f"pairs[{number}]", kind_of(given), "give two inputs, as a tuple")
    if not chosen:
        raise BadParameter("pairs", "[]", "give at least one pair of inputs")
    return [(one, other) for one, other in chosen]


@contextmanager
def _bar(wanted: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal's error channel; it has no thread, so that forks are safe."""
    from rich.console import Console

    console = Console(stderr=True, force_terminal=wanted or None)
    if not (console.is_terminal if wanted is None else wanted):
        yield lambda done: None
        return
    from rich.progress import Progress

    with Progress(console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("sampling", total=total)

        def advance(done: int) -> None:
            bar.update(task, advance=done, refresh=True)

        yield advance
