"""SmallDB (section 4.1): draws a small database that answers a whole class of questions.

From all databases y of m rows, SmallDB draws one by the exponential mechanism with the score
−max_{f∈Q} |f(x) − f(y)|.  Here the score is computed in counts,

    S(x, y) = max_{f∈Q} |n·f(x) − n·f(y)|,    y with probability ∝ e^(−ε·S(x, y)/2),

over a range that does not depend on the data, in which rows that all questions treat alike count as
one.  Adding a row z to x changes n·f(x) − n·f(y) by f(z) − f(y), which lies in [−1, 1].  So S
changes by at most 1 if a row is added, removed or replaced, and the number n of rows stays secret.
All draws are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arguments import function, instance, iterated, kind_of
from tacit.book.coins import Coins, given_or_fresh
from tacit.book.laplace import LaplaceMechanism
from tacit.draws.by_slack import Slack, SlackSearch, count_sequences, draw_sequence
from tacit.draws.candidates import (
    AtomCounts,
    Candidates,
    DrawnMultisets,
    EveryMultiset,
    LevelDraw,
    draw_sub_range,
    scaled,
)
from tacit.draws.linear_queries import LinearQueries, linear_queries
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, positive, whole
from tacit.support import Heartbeat, Progress

__all__ = [
    "FiniteQuestions",
    "Intervals",
    "LinearQueries",
    "Prefixes",
    "SampledClass",
    "certifying",
    "histogram",
    "linear_queries",
    "small_db",
]

Integers = npt.NDArray[np.int64]

MOST_ROWS = 10**5
_MOST_ROWS_PER_PERSON = 10**6
_LEAST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**12), Fraction(10**12)


class SampledClass(Protocol):
    """A class Q of questions for which the exponential mechanism can be sampled.

    To add a class, write the first two methods; the others are for a certificate.  `SlackSearch`
    does the rest if candidates can be counted by slack, and `LevelDraw` if they can be listed (see
    `tacit.draws`).
    """

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """The data in the form that `draw` needs, or an error that shows none of it."""

    def draw(
        self, x: Integers, *, rows: int, rate: Fraction, coins: Coins, heartbeat: Heartbeat
    ) -> Integers:
        """A database y of `rows` rows, drawn with probability ∝ e^(−rate·S(x, y))."""

    def steps(self, rows: int) -> int:
        """Into how many steps a person is divided, so that scores of y are whole numbers."""

    def score(self, x: Integers, y: Integers) -> int:
        """S(x, y), in these steps."""


def small_db(
    x: npt.NDArray[np.generic],
    questions: SampledClass,
    *,
    rows: int,
    epsilon: Number,
    coins: Coins | None = None,
    rows_per_person: int = 1,
    progress: Progress | None = None,
) -> Integers:
    """SmallDB(x, Q, ε, α), for a given number m of rows.

    Privacy: (epsilon, 0) if one person's rows are added or removed, at most r = `rows_per_person`
    of them.  They change the score by at most r, so the score is divided by r (Theorem 3.10).
    Accuracy: with probability 1 − β the error is at most α_m + 2r/(εn)·(ln(candidates) +
    ln(1/β)), if some m rows answer every question within α_m.
    """
    size, rate = check_parameters(rows=rows, epsilon=epsilon, rows_per_person=rows_per_person)
    _refuse_without(questions, "draw")
    drawn_with = given_or_fresh(coins)
    return questions.draw(
        questions.check(np.asarray(x)),
        rows=size,
        rate=rate,
        coins=drawn_with,
        heartbeat=Heartbeat(progress),
    )


def _refuse_without(questions: SampledClass, method: str) -> None:
    if isinstance(questions, type) or not callable(getattr(questions, method, None)):
        takes = "give a class to draw from: Prefixes(domain), Intervals(domain) or FiniteQuestions"
        raise BadParameter("questions", kind_of(questions), takes)


def certifying(
    questions: SampledClass, *, rows: int, epsilon: Number, rows_per_person: int = 1
) -> LaplaceMechanism:
    """What measures how far a release is off: S(x, y) with noise of scale r/ε, in people.

    Privacy: (epsilon, 0) for a release y that is public already, since S changes by at most r.
    """
    size, _ = check_parameters(rows=rows, epsilon=epsilon, rows_per_person=rows_per_person)
    _refuse_without(questions, "steps")
    grid = Fraction(1, questions.steps(size))
    return LaplaceMechanism(epsilon=epsilon, sensitivity=rows_per_person, grid=grid)


def check_parameters(
    *, rows: int, epsilon: Number, rows_per_person: int = 1
) -> tuple[int, Fraction]:
    """The number of rows, and the rate ε/(2r); the samplers can draw whatever passes here."""
    size = whole(rows, "rows")
    people_rows = whole(rows_per_person, "rows_per_person")
    budget = positive(epsilon, "epsilon")
    if size > MOST_ROWS:
        raise BadParameter("rows", size, f"it must be at most {MOST_ROWS}")
    if people_rows > _MOST_ROWS_PER_PERSON:
        raise BadParameter(
            "rows_per_person", people_rows, f"it must be at most {_MOST_ROWS_PER_PERSON}"
        )
    if not _LEAST_EPSILON <= budget <= _LARGEST_EPSILON:
        raise BadParameter("epsilon", as_given(budget), "it must lie between 1e-12 and 1e12")
    return size, budget / (2 * people_rows)


# Prefixes and intervals of an ordered domain 1..N, for N of any size.
#
# Let X(v) and Y(v) count the rows up to v of the data x and of a candidate y with m rows, and let
# D(v) = m·X(v) − n·Y(v), so that D(0) = D(N) = 0.  In units of 1/m the score is
#
#     prefixes:   max_v |D(v)|
#     intervals:  max_{u<v} |D(v) − D(u)| = max_v (−D(v)) + max_v D(v), two independent parts.
#
# And −A ≤ D ≤ B holds iff each order statistic of y lies between two of x:
# x_(⌈(jn−A)/m⌉) ≤ y_(j) ≤ x_(⌊((j−1)n+B)/m⌋+1), where x_(i) is 1 for i < 1 and N for i > n.


_LARGEST_DOMAIN = 2**62


@dataclass(frozen=True, repr=False, eq=False)  # neither may show the data
class OrderedCounts:
    """The candidates for sorted data, by slack: one slack for prefixes, two for intervals."""

    x: Integers
    domain: int
    rows: int
    slacks: int

    @property
    def limit(self) -> int:
        """|D| never exceeds mn."""
        return self.rows * len(self.x)

    def count(self, slack: Slack) -> int:
        """How many candidates y have −A ≤ D ≤ B."""
        if min(slack) >= self.limit:
            return comb(self.domain + self.rows - 1, self.rows)
        return count_sequences(*self.boxes(slack))

    def draw(self, slack: Slack, coins: Coins) -> Integers:
        """One of these candidates, all equally likely, as sorted points."""
        return np.array(draw_sequence(*self.boxes(slack), coins), dtype=np.int64)

    def boxes(self, slack: Slack) -> tuple[list[int], list[int]]:
        """The least and the greatest value of each order statistic of y."""
        below, above = slack[0], slack[-1]
        people, rank = len(self.x), np.arange(1, self.rows + 1, dtype=np.int64)
        lowest = -((below - rank * people) // self.rows)  # a ceiling
        highest = ((rank - 1) * people + above) // self.rows + 1
        return self._value(lowest), self._value(highest)

    def _value(self, index: Integers) -> list[int]:
        """Order statistics of x, counted from 1; 1 and N beyond its ends."""
        people = len(self.x)
        inside = (index >= 1) & (index <= people)
        values = np.where(index < 1, 1, self.domain)
        values[inside] = self.x[index[inside] - 1]
        whole: list[int] = values.tolist()
        return whole


@dataclass(frozen=True)
class Prefixes:
    """The questions "how many are at most v?", for every v in 1..domain."""

    domain: int

    slacks = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", whole(self.domain, "domain"))
        if self.domain > _LARGEST_DOMAIN:
            raise BadParameter("domain", as_given(self.domain), "it must be at most 2^62")

    def candidates(self, rows: int) -> int:
        """The size of the range."""
        return comb(self.domain + rows - 1, rows)

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """Sorted integers in 1..domain."""
        allowed = f"give a sorted array of integers in 1..{self.domain}"
        if x.ndim != 1 or x.dtype.kind not in "iu":
            raise BadParameter("x", "(withheld)", allowed)
        data = x.astype(np.int64, copy=False)
        if len(data) and not (data[0] >= 1 and data[-1] <= self.domain):
            raise BadParameter("x", "(withheld)", allowed)
        if not (data[1:] >= data[:-1]).all():
            raise BadParameter("x", "(withheld)", allowed)
        return data

    def draw(
        self,
        x: Integers,
        *,
        rows: int,
        rate: Fraction,
        coins: Coins,
        heartbeat: Heartbeat,
    ) -> Integers:
        """Sorted points y with probability proportional to e^(−rate·S(x, y))."""
        candidates = OrderedCounts(x, self.domain, rows, self.slacks)
        return SlackSearch(candidates, rate=rate / rows, heartbeat=heartbeat).draw(coins)

    def steps(self, rows: int) -> int:
        """D counts in steps of 1/m."""
        return rows

    def score(self, x: Integers, y: Integers) -> int:
        """S(x, y) in steps of 1/m, for sorted points: D begins at 0 and changes at points."""
        at = np.unique(np.concatenate([x, y]))
        up_to = (np.searchsorted(points, at, side="right") for points in (x, y))
        of_x, of_y = (np.asarray(counts, np.int64) for counts in up_to)
        away = len(y) * of_x - len(x) * of_y
        lowest, highest = int(away.min(initial=0)), int(away.max(initial=0))
        return highest - lowest if self.slacks == 2 else max(highest, -lowest)


@dataclass(frozen=True)
class Intervals(Prefixes):
    """The questions "how many lie in u..v?", for all u ≤ v in 1..domain."""

    slacks = 2


# Any finite class of linear queries: a draw from all candidates, or from a random part of them.


MOST_ENUMERATED = 10**8
SUB_RANGE = 10**5
_MOST_CELLS = 1 << 25


@dataclass(frozen=True)
class FiniteQuestions:
    """A finite class of linear queries, ready for SmallDB.

    Every multiset of atoms is a candidate of weight 1.  Multisets of universe elements would give
    the same privacy and larger errors.
    """

    queries: LinearQueries
    most_enumerated: int = MOST_ENUMERATED
    sub_range: int = SUB_RANGE

    def __post_init__(self) -> None:
        instance(self.queries, "queries", LinearQueries, "give linear_queries(matrix)")
        most = whole(self.most_enumerated, "most_enumerated", at_least=0)
        object.__setattr__(self, "most_enumerated", most)
        object.__setattr__(self, "sub_range", whole(self.sub_range, "sub_range"))

    @classmethod
    def of(
        cls, questions: Iterable[Callable[[Any], Any]], universe: Iterable[Any]
    ) -> FiniteQuestions:
        """Functions of an element of the universe, with values in [0, 1]; True counts as 1.

        >>> young = FiniteQuestions.of([lambda age: age < 30, lambda age: age / 100], range(100))
        >>> young.queries
        <LinearQueries: 2 queries, 100 atoms of 100 universe elements>
        """
        takes = "give a list of functions of an element of the universe"
        asked = [
            function(ask, "questions", takes) for ask in iterated(questions, "questions", takes)
        ]
        if not asked:
            raise BadParameter("questions", kind_of(questions), takes)
        points = _universe(universe)
        return cls(linear_queries([[ask(point) for point in points] for ask in asked]))

    def multisets(self, rows: int) -> int:
        """The size of the whole range."""
        return comb(self.queries.atoms + rows - 1, rows)

    def enumerated(self, rows: int) -> bool:
        """Whether the release chooses from the whole range; otherwise from a sub-range."""
        return self.multisets(rows) <= self.most_enumerated

    def candidates(self, rows: int) -> int:
        """How many databases a release chooses from."""
        return self.multisets(rows) if self.enumerated(rows) else self.part(rows)

    def part(self, rows: int) -> int:
        """How many candidates a sub-range has: `sub_range`, or as many as memory allows."""
        return max(1, min(self.sub_range, _MOST_CELLS // rows))

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """A histogram: how many rows each universe element has."""
        universe = len(self.queries.atom_of)
        if x.shape == (universe,) and x.dtype.kind in "iu":
            data = x.astype(np.int64)
            if (data >= 0).all():
                return data
        raise BadParameter(
            "x", "(withheld)", f"give a histogram: {universe} integers, none below 0"
        )

    def draw(
        self, x: Integers, *, rows: int, rate: Fraction, coins: Coins, heartbeat: Heartbeat
    ) -> Integers:
        """Universe elements y, whose atoms have a probability proportional to e^(−rate·S(x, y))."""
        if self.enumerated(rows):
            candidates = self._everything(x, rows)
        else:
            candidates = self._part(x, rows, coins)
        unit = rows * self.queries.denominator
        counts = LevelDraw(candidates, rate=rate / unit, heartbeat=heartbeat).draw(coins)
        return self._elements_of(counts)

    def steps(self, rows: int) -> int:
        """Scores are multiples of 1/(m·d), where d is the answers' denominator."""
        return rows * self.queries.denominator

    def score(self, x: Integers, y: Integers) -> int:
        """S(x, y) in steps of 1/(m·d), for a histogram x and universe elements y."""
        drawn = self.queries.histogram(np.bincount(y, minlength=len(self.queries.atom_of)))
        target, step = scaled(self.queries, self.queries.histogram(x), len(y))
        return max(
            (abs(int(difference)) for difference in target - step @ drawn.astype(step.dtype)),
            default=0,
        )

    def _everything(self, x: Integers, rows: int) -> Candidates:
        return EveryMultiset(self.queries, self.queries.histogram(x), rows)

    def _part(self, x: Integers, rows: int, coins: Coins) -> Candidates:
        drawn = draw_sub_range(self.queries.atoms, rows, self.part(rows), coins)
        return DrawnMultisets(self.queries, self.queries.histogram(x), drawn)

    def _elements_of(self, counts: AtomCounts) -> Integers:
        """The first element of each atom, as often as the atom occurs."""
        first = [int(self.queries.members(atom)[0]) for atom, _ in counts]
        return np.sort(np.repeat(first, [times for _, times in counts]))


def histogram(rows: Iterable[Any], universe: Iterable[Any]) -> Integers:
    """How many rows each element of a finite universe has, as `small_db` takes them.

    Rows may be numbers, texts or rows of a table, as in the universe.  A row outside the universe
    counts nowhere.

    >>> histogram([3, 1, 3, 7], range(1, 5))
    array([1, 0, 2, 0])
    """
    points = _universe(universe)
    counted = Counter(_elements(rows, "rows", "give rows like the elements of the universe"))
    return np.array([counted[point] for point in points], np.int64)


def _universe(universe: Iterable[Any]) -> list[Any]:
    """The elements, which must differ."""
    takes = "give a list of different elements"
    elements = _elements(universe, "universe", takes)
    if not elements or len(set(elements)) < len(elements):
        raise BadParameter("universe", kind_of(universe), takes)
    return elements


def _elements(values: Iterable[Any], name: str, takes: str) -> list[Any]:
    """Values that can be looked up: Python's own, and the rows of a table as tuples."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    elements = [
        tuple(value) if isinstance(value, list) else value
        for value in iterated(listed, name, takes)
    ]
    try:
        hash(tuple(elements))
    except TypeError:
        raise BadParameter(name, kind_of(values), takes) from None
    return elements
