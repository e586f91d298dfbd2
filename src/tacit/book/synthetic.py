"""Synthetic rows: what is measured for them, and what each measurement costs.

A *tree* first: the counts of each column, pairs of columns that depend on each other and form a
tree, and the counts of those pairs.  Rows that are drawn down the tree are a model of the table.
*Rounds* then mend it: each chooses the marginal that the model has most wrong, and measures it.
The tree is that of Chow and Liu (1968), drawn privately as in PrivBayes (Zhang et al. 2014) and MST
(McKenna, Miklau, Sheldon 2021); the rounds are those of MWEM (Hardt, Ligett, McSherry 2012).

What is chosen is drawn by the exponential mechanism from whole scores, and what is measured has
discrete Laplace noise: all of it exact.  The model itself is public, and may be made with floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import flag, iterated, kind_of
from tacit.book.coins import Coins, given_coins
from tacit.book.top import TopMechanism
from tacit.book.weighted_rows import ColumnTree, Marginal, WeightedRows, cell_places
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import as_given, positive, whole
from tacit.privacy import Cost, Privacy

__all__ = ["SyntheticMechanism"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CELLS = 1 << 20
"""Of one marginal: all of its cells are measured."""

SUPPORT = 100_000
"""Rows that carry weights: so many are enough for rounds."""

_MOST_COLUMNS = 100
_WIDEST_SCALE = 1 << 32  # so that sums of counts stay far within 64 bits

# The parts of ε, found by trying.
_SINGLES, _TREE, _PAIRS = Fraction(25, 100), Fraction(15, 100), Fraction(60, 100)
_BEFORE_ROUNDS = Fraction(35, 100)
_CHOOSING = Fraction(20, 100)  # of a round
_NOISE_OF_A_PAIR = Fraction(80, 100)  # what a cell's noise is thought to spoil, in scales


@dataclass(frozen=True)
class SyntheticMechanism:
    """Marginals of rows over columns with so many values each, and the rows that follow from them.

    ``candidates`` are the marginals that a round may choose, as places of columns.

    Privacy: (ε, 0), if no person adds or removes more than r rows.  Such a person changes each
    marginal by at most r in all, so d marginals together by at most rd: noise of scale rd/ε′ on
    each count costs ε′ (Theorem 3.6).  A score is the sum of |true − model| over the cells of a
    marginal, minus a public number; the model is public and rounded to whole numbers, so a person
    changes a score by at most r, up or down, and a draw with probability ∝ e^(ε′·score/2r) costs
    ε′ (Theorem 3.10).  The parts add up to ε (Theorem 3.14).

    >>> SyntheticMechanism((2, 3, 2), Fraction(1)).single_scale
    Fraction(12, 1)
    """

    sizes: tuple[int, ...]
    epsilon: Fraction
    rows_per_person: int = 1
    rounds: int = 0
    candidates: tuple[tuple[int, ...], ...] = ()
    tree: bool = True  # without it columns are taken to be independent

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, list | tuple):
            raise BadParameter("sizes", kind_of(self.sizes), "give how many values each column has")
        sizes = tuple(whole(size, "sizes") for size in self.sizes)
        rounds = whole(self.rounds, "rounds", at_least=0)
        for name, value in (
            ("sizes", sizes),
            ("epsilon", positive(self.epsilon, "epsilon")),
            ("rows_per_person", whole(self.rows_per_person, "rows_per_person")),
            ("rounds", rounds),
        ):
            object.__setattr__(self, name, value)
        flag(self.tree, "tree")
        if not 1 <= len(sizes) <= _MOST_COLUMNS:
            raise BadParameter("sizes", len(sizes), f"give 1 to {_MOST_COLUMNS} columns")
        several = iterated(self.candidates, "candidates", "give tuples of places of columns")
        object.__setattr__(self, "candidates", tuple(map(self._checked, several)))
        largest = sorted(sizes)[-2:]
        if prod(largest) > MOST_CELLS:
            raise Infeasible(
                f"two columns with {' and '.join(map(str, largest))} values have more than "
                f"{MOST_CELLS} cells together: cut columns into fewer bins"
            )
        if rounds and not flag(self.tree, "tree"):
            raise BadParameter("rounds", rounds, "rounds come after a tree: leave them out")
        if rounds and not self.candidates:
            raise BadParameter("candidates", "none", "a round chooses among marginals: give some")
        if max(self.single_scale, self.pair_scale, self.round_scale) > _WIDEST_SCALE:
            raise BadParameter(
                "epsilon", as_given(self.epsilon), "the noise would be wider than 2^32: give more"
            )

    def _checked(self, columns: Sequence[int]) -> tuple[int, ...]:
        listed = iterated(columns, "candidates", "give tuples of places of columns")
        places = tuple(whole(place, "candidates", at_least=0) for place in listed)
        if not places or any(place >= len(self.sizes) for place in places):
            raise BadParameter("candidates", as_given(columns), "give places of columns")
        if sorted(set(places)) != list(places):
            raise BadParameter("candidates", as_given(columns), "give places in order, none twice")
        if self._cells(places) > MOST_CELLS:
            raise Infeasible(
                f"a marginal with {self._cells(places)} cells: at most {MOST_CELLS} can be measured"
            )
        return places

    def _cells(self, columns: Sequence[int]) -> int:
        return prod(self.sizes[place] for place in columns)

    # What each part costs -------------------------------------------------------------------

    @property
    def _tree_epsilon(self) -> Fraction:
        return self.epsilon * _BEFORE_ROUNDS if self.rounds else self.epsilon

    @property
    def _parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of the tree: for single columns, for choosing pairs, for the pairs."""
        if len(self.sizes) == 1 or not self.tree:
            return self._tree_epsilon, Fraction(0), Fraction(0)
        singles = self._tree_epsilon * _SINGLES
        if len(self.sizes) == 2:  # there is nothing to choose
            return singles, Fraction(0), self._tree_epsilon - singles
        return singles, self._tree_epsilon * _TREE, self._tree_epsilon * _PAIRS

    @property
    def round_epsilon(self) -> Fraction:
        """What one round costs."""
        return (self.epsilon - self._tree_epsilon) / max(self.rounds, 1)

    @property
    def single_scale(self) -> Fraction:
        """The scale of the noise on the counts of single columns."""
        return self.rows_per_person * len(self.sizes) / self._parts[0]

    @property
    def pair_scale(self) -> Fraction:
        """The same of the tree's pairs; 0 if there are none."""
        pairs = len(self.sizes) - 1 if self.tree else 0
        return self.rows_per_person * pairs / self._parts[2] if pairs else Fraction(0)

    @property
    def round_scale(self) -> Fraction:
        """The same of what rounds measure; 0 if there are none."""
        if not self.rounds:
            return Fraction(0)
        return self.rows_per_person / (self.round_epsilon * (1 - _CHOOSING))

    def _chooser(self, epsilon: Fraction) -> TopMechanism:
        """Draws one, for ε′, by scores that one person may raise or lower by r."""
        return TopMechanism(1, Privacy(epsilon), 2 * self.rows_per_person)

    @property
    def tree_chooser(self) -> TopMechanism:
        """What draws each of the tree's pairs, of three columns or more."""
        return self._chooser(self._parts[1] / (len(self.sizes) - 1))

    @property
    def round_chooser(self) -> TopMechanism:
        """What draws the marginal of a round."""
        return self._chooser(self.round_epsilon * _CHOOSING)

    @property
    def cost(self) -> Cost:
        """Each marginal that is measured is a pure part, and each choice has a bounded range."""
        columns, (singles, choosing, pairs) = len(self.sizes), self._parts
        total = Cost.pure(singles / columns, times=columns)
        if pairs:
            total += Cost.pure(pairs / (columns - 1), times=columns - 1)
        if choosing:
            total += Cost.bounded_range(choosing / (columns - 1), times=columns - 1)
        if self.rounds:
            chosen = self.round_epsilon * _CHOOSING
            total += Cost.bounded_range(chosen, times=self.rounds)
            total += Cost.pure(self.round_epsilon - chosen, times=self.rounds)
        return total

    # Drawing ----------------------------------------------------------------------------------

    def draw(
        self, points: Counts, coins: Coins, support: int = SUPPORT
    ) -> tuple[tuple[Marginal, ...], WeightedRows]:
        """What was measured, in order, and so many rows with weights that fit it.

        ``points`` are the rows, each as a place among the values of each column.  Secret.
        """
        look = _Look(self.sizes, self._rows(points), given_coins(coins))
        measured = self._tree(look)
        tree = ColumnTree.fit(self.sizes, measured)
        model = WeightedRows(self.sizes, tree.draw(whole(support, "support"), coins), tree.total)
        for _ in range(self.rounds):
            measured.append(self._round(look, model))
            model.fit(measured[len(self.sizes) :])
        return tuple(measured), model

    def _rows(self, points: Counts) -> Counts:
        rows = np.asarray(points)
        if rows.ndim != 2 or rows.shape[1] != len(self.sizes) or rows.dtype != np.int64:
            raise BadParameter("points", "(withheld)", "give rows of int64, one for each column")
        return rows

    def round(self, points: Counts, model: WeightedRows, coins: Coins) -> Marginal:
        """Choose what a public model has most wrong, beyond the noise of measuring it; measure it.

        Privacy: (ε′, 0), with ε′ = `round_epsilon`.
        """
        return self._round(_Look(self.sizes, self._rows(points), given_coins(coins)), model)

    def _tree(self, look: _Look) -> list[Marginal]:
        columns = len(self.sizes)
        singles = [look.measure((place,), self.single_scale) for place in range(columns)]
        if columns == 1 or not self.tree:
            return singles
        edges = self.edges(look, ColumnTree.fit(self.sizes, singles))
        return singles + [look.measure(edge, self.pair_scale) for edge in edges]

    def edges(self, look: _Look, alone: ColumnTree) -> list[tuple[int, int]]:
        """Pairs that form a tree, drawn one after another: those that depend most on each other."""
        columns = len(self.sizes)
        if columns == 2:
            return [(0, 1)]
        spoilt = _NOISE_OF_A_PAIR * self.pair_scale
        scores = {
            pair: look.score(pair, alone.independent(pair), spoilt)
            for pair in combinations(range(columns), 2)
        }
        choose = self.tree_chooser
        part = list(range(columns))
        found: list[tuple[int, int]] = []
        while len(found) < columns - 1:
            left = [(a, b) for a, b in scores if part[a] != part[b]]
            drawn = choose.draw(np.array([scores[pair] for pair in left], np.int64), look.coins)
            a, b = left[drawn[0]]
            found.append((a, b))
            part = [part[a] if each == part[b] else each for each in part]
        return found

    def _round(self, look: _Look, model: WeightedRows) -> Marginal:
        scores = [
            look.score(columns, model.marginal(columns), self.round_scale)
            for columns in self.candidates
        ]
        drawn = self.round_chooser.draw(np.array(scores, np.int64), look.coins)
        return look.measure(self.candidates[drawn[0]], self.round_scale)


class _Look:
    """The rows, and what may be asked of them.  Secret."""

    def __init__(self, sizes: tuple[int, ...], points: Counts, coins: Coins) -> None:
        self.coins = coins
        self._sizes, self._points = sizes, points
        self._known: dict[tuple[int, ...], Counts] = {}

    def true(self, columns: tuple[int, ...]) -> Counts:
        """The true counts of a marginal.  Secret."""
        if columns not in self._known:
            cells = cell_places(self._points, columns, self._sizes)
            size = prod(self._sizes[place] for place in columns)
            self._known[columns] = np.bincount(cells, minlength=size).astype(np.int64)
        return self._known[columns]

    def score(self, columns: tuple[int, ...], model: Floats, spoilt: Fraction) -> int:
        """How wrong a public model is, in rows, less what noise would spoil.  Secret.

        Privacy: a row changes one cell by 1, so the sum of |true − model| by at most 1.  The
        model is rounded first, so that this holds exactly and not but for rounding errors.
        """
        rounded = np.rint(model).astype(np.int64)
        wrong = int(np.abs(self.true(columns) - rounded).sum())
        return wrong - int(spoilt * len(rounded))

    def measure(self, columns: tuple[int, ...], scale: Fraction) -> Marginal:
        """The counts of a marginal with noise."""
        true = self.true(columns)
        noisy = true + self.coins.laplaces(scale, len(true))
        noisy.flags.writeable = False
        return Marginal(columns, noisy, scale)
