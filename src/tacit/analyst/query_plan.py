"""What a query costs and how far it may be off, said before it is paid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tacit.analyst.alternatives import Alternative, Comparison
from tacit.analyst.alternatives import lines as alternative_lines
from tacit.analyst.query_errors import divided, instead, planned_error, said_of
from tacit.analyst.query_having import CellStream, planned_stream
from tacit.analyst.query_quantiles import QuantileTree, even_out, groups, that_share_trees, tree_of
from tacit.analyst.query_result import counted_cells, counted_keys, counted_rows
from tacit.arguments import iterated, text
from tacit.book.coins import WIDEST_NOISE
from tacit.book.laplace import error_steps
from tacit.book.quantile import QuantileMechanism
from tacit.book.top import TopMechanism
from tacit.errors import BadParameter
from tacit.numbers import (
    Number,
    as_given,
    four_digits_up,
    positive,
    probability,
    show,
    spaced,
    whole,
)
from tacit.privacy import Cost, Privacy
from tacit.support import Printed
from tacit.tables.language.aggregate_kinds import Distinct, FromStream, Plain, Ranked
from tacit.tables.schema.schema import EACH_ROW, most_cells, row_bound

if TYPE_CHECKING:
    from tacit.tables.language.selected import Select, Selected

_TYPICAL = 1000  # of how many values a plan says how far their mean may be off


@dataclass(frozen=True)
class QueryPlan(Printed):
    """What a query costs and how far each aggregate may be off, said before it is paid.

    Privacy: in each cell a person changes an aggregate by at most its sensitivity Δ, and they count
    in at most ``max_cells`` cells; so all its values together change by at most max_cells·Δ (the
    ℓ1 sensitivity), and noise of scale max_cells·Δ/ε is enough for its share ε (Theorem 3.6, on
    the grid).  A mean is a count and a sum, with half of its share each, a variance three numbers
    with a third each: of each person the same ``max_rows`` values count in a cell.  A share is two
    counts of disjoint parts, which a person changes together by no more than one of them, so that
    both have its whole share.  A quantile is drawn in each cell for ε/max_cells, or several are
    read from one tree of counts, which has the sum of their shares.  The shares add up
    (Theorem 3.16).  With ORDER BY ... DESC LIMIT n, n cells are drawn for a share of their own, and
    then what is told is about those n, which are public; a person is in at most n of them.

    With HAVING, a stream says which cells are above, for a share of its own; it halts when
    ``at_most`` are told.  The aggregates are then about those cells.  Which they are was released,
    so that given the stream's answers they are fixed, and the same on both neighbours: composition
    holds for mechanisms that are chosen by what was told before (Theorem 3.16).  There are t ≤
    at_most of them, and a person counts in min(t, max_cells), chosen at random among them alone; so
    noise for that many is enough.  The cost is that of the worst case, and the noise is less if
    fewer are told, which is public by then.  What HAVING itself compares is told by the stream, for
    no further ε, and there everybody counts in every cell.
    """

    select: Select
    privacy: Privacy
    shares: tuple[Fraction, ...]
    max_cells: int
    top: TopMechanism | None = None
    stream: CellStream | None = None
    trees: tuple[tuple[int, ...], ...] = ()  # the places of quantiles that share a tree of counts

    @property
    def all_shares(self) -> tuple[Fraction, ...]:
        """Of ε: for each aggregate that is measured, and then for the order or HAVING."""
        measured = tuple(share for share in self.shares if share)
        return (*measured, *(cost.privacy.epsilon for cost in self._choosing_costs))

    @property
    def _choosing_costs(self) -> tuple[Cost, ...]:
        """What it costs to choose the cells that are told."""
        top = () if self.top is None else (self.top.cost,)
        return top if self.stream is None else (*top, self.stream.cost)

    @property
    def cost(self) -> Cost:
        """(ε, δ): what is measured for each aggregate, what is drawn, and what chooses cells."""
        columns = zip(self.select.columns, self.shares, strict=True)
        costs = [
            self._cost(column, share)
            for place, (column, share) in enumerate(columns)
            if share and self.tree_group(place) is None
        ]
        costs += [Cost.pure(sum(self.shares[place] for place in each)) for each in self.trees]
        together = reduce(add, [*costs, *self._choosing_costs])
        return replace(together, privacy=self.privacy)

    def _cost(self, column: Selected, share: Fraction) -> Cost:
        """What is measured for an aggregate, or drawn in each of the cells of a person.

        What has the whole share is measured about disjoint parts of the data, as one.  With HAVING
        there may be a single cell in which a person counts, and its draw then has the whole share.
        """
        if isinstance(column.kind, Ranked):
            cells = self.max_cells if self.stream is None else 1
            return Cost.bounded_range(share / cells, times=cells)
        of_each = column.parts[0].share
        return Cost.pure(share * of_each, times=int(1 / of_each))

    @property
    def by_person(self) -> bool:
        """Whether the rows themselves are needed: cells or rows of a person are chosen."""
        return self.choosing or any(column.by_person for column in self.select.measured)

    @property
    def choosing(self) -> bool:
        """Whether it must be chosen in which cells a person counts."""
        several = self.select.schema.person is not EACH_ROW and bool(self.select.measured)
        return several and self.max_cells < self.select.rows

    def noise_scale(self, place: int, part: int = 0) -> Fraction:
        """The scale of the noise of what is measured for an aggregate, in steps of its grid."""
        measured = self.select.columns[place].parts[part]
        return self.max_cells * measured.sensitivity / (self.shares[place] * measured.share)

    @property
    def drawn_by(self) -> str:
        """With which noise: what tells each aggregate of a cell, and what chooses the cells."""
        each = [self._drawn_by(place) for place in range(len(self.select.columns))]
        return f"{each}, {self.top!r}, {self.stream!r}"

    def _drawn_by(self, place: int) -> str:
        column = self.select.columns[place]
        if isinstance(column.kind, Ranked):
            return repr(self.quantile(place))
        if isinstance(column.kind, FromStream):
            return "from the stream"
        scales = [str(self.noise_scale(place, part)) for part in range(len(column.parts))]
        return f"Laplace noise of scales {', '.join(scales)}"

    def error(self, name: str, beta: Number = "1/20", *, values: int | None = None) -> Fraction:
        """How far one value of an aggregate may be off, except with probability β.

        That of a quantile is counted in ranks: so many values lie between it and the true one.
        For what is divided by a count, say of how many ``values``: the more there are, the less it
        errs.
        """
        text(name, "name", "give the name of an aggregate")
        for place, column in enumerate(self.select.columns):
            if column.name == name:
                return self._error(place, beta, values)
        names = ", ".join(column.name for column in self.select.columns)
        raise BadParameter("name", as_given(name), f"this query has {names}")

    def tree_group(self, place: int) -> tuple[int, ...] | None:
        """The quantiles with which one shares a tree of counts, if it does."""
        return next((each for each in self.trees if place in each), None)

    def quantile(self, place: int) -> QuantileMechanism | QuantileTree:
        """What tells the quantile of an aggregate in one cell: a draw, or a tree that is shared."""
        group = self.tree_group(place)
        return self.alone(place) if group is None else tree_of(self, group, place)

    def alone(self, place: int) -> QuantileMechanism:
        """What draws the quantile of an aggregate in one cell by itself.

        Privacy: a person counts in at most ``max_cells`` cells, and changes no other draw.
        """
        column = self.select.columns[place]
        kind = column.kind
        assert isinstance(kind, Ranked)
        return QuantileMechanism(
            kind.share,
            self.select.schema.column(kind.column).domain_size or 0,
            epsilon=self.shares[place] / self.max_cells,
            max_rows=column.most,
            end=kind.end,
        )

    def _error(self, place: int, beta: Number, values: int | None) -> Fraction:
        column = self.select.columns[place]
        if isinstance(column.kind, Ranked):
            return Fraction(self.quantile(place).error(beta))
        if isinstance(column.kind, FromStream):
            assert self.stream is not None
            return self.stream.error(beta)
        scales = [self.noise_scale(place, part) for part in range(len(column.parts))]
        if not divided(column):
            return error_steps(scales[0], beta) * column.parts[0].grid
        if values is None:
            raise BadParameter("values", None, "of how many values is it the mean?")
        return planned_error(column, scales, probability(beta, "beta"), whole(values, "values"))

    def __str__(self) -> str:
        columns = zip(self.select.columns, self.shares, strict=True)
        shown = [(column.name, self._said(column, share)) for column, share in columns]
        shown += self._order_said + self._having_said
        width = max(len(name) for name, _ in shown)
        lines = [self._head, *(f"  {name:{width}}  {said}" for name, said in shown)]
        lines += [f"  {line}" for line in instead(self)]
        return "\n".join([*lines, *alternative_lines(self.alternatives)])

    @property
    def _head(self) -> str:
        """How many cells are told, for which ε, and how much of a person counts."""
        select, cells = self.select, self.select.rows
        counted = counted_cells(select.schema, self.max_cells, cells) if self.choosing else ""
        told = [counted_rows((column.name, column.max_rows) for column in select.columns)]
        told += [counted_keys(column.name, column.max_keys) for column in select.columns]
        rows = f"{cells} row" + "s" * (cells != 1)
        if self.stream is not None:
            rows = f"up to {cells} of {select.keys.cells} cells"
        return f"A query of {rows}, {self.privacy}{counted}{''.join(told)}"

    def _said(self, column: Selected, share: Fraction) -> str:
        """How far an aggregate may be off, and for which ε."""
        values = _TYPICAL if divided(column) else None
        error = four_digits_up(self.error(column.name, values=values))
        of_values = "" if values is None else f" for {said_of(column, values)}"
        ranked = isinstance(column.kind, Ranked)
        paid = f"ε = {show(share)}" if share else "included in HAVING"
        if self.tree_group(self.select.columns.index(column)) is not None:
            paid += " for a tree of counts that is shared"
        return f"± {error}{' ranks' * ranked} each (95 %){of_values}, {paid}"

    @property
    def _order_said(self) -> list[tuple[str, str]]:
        """What is said of the cells that are drawn as the largest."""
        if self.top is None or self.select.largest is None:
            return []
        steps = self.top.alpha_steps(self.select.keys.cells, "1/20")
        alpha = four_digits_up(steps * self.select.largest.question.grid)
        said = f"each is at most {alpha} below the largest left (95 %)"
        return [("order", f"{said}, ε = {show(self.top.privacy.epsilon)}")]

    @property
    def _having_said(self) -> list[tuple[str, str]]:
        """What is said of the cells that are told as above a threshold."""
        if self.stream is None or self.select.above is None:
            return []
        threshold, expected = self.select.above.threshold, self.stream.expected
        low, high = threshold - expected.alpha, threshold + expected.alpha
        said = (
            f"all cells of {spaced(high)} or more are returned, and none of {spaced(low)} or less "
            f"(95 %), if at most {self.select.rows} are above"
        )
        return [("having", f"{said}, ε = {show(self.stream.cost.privacy.epsilon)}")]

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could count the people of each cell for the same ε; nothing without cells."""
        counted = any(isinstance(column.kind, Plain | FromStream) for column in self.select.columns)
        if not self.select.keys or not counted:
            return ()
        most = max(column.max_rows or 1 for column in self.select.columns)
        rows = self.max_cells * most  # that a person may have in the cells in which they count
        others = Comparison(self.select.schema, self.privacy.epsilon, None, rows)
        return others.for_cells(self.select.keys.columns, but="query")


def plan_query(
    select: Select,
    *,
    epsilon: Number,
    delta: Number = 0,
    weights: Sequence[Number] | None,
    max_cells: int | None,
    max_rows: int | None = None,
    at_most: int | None = None,
) -> QueryPlan:
    """Divide ε among the aggregates and what chooses cells; refuse, at no cost, what cannot be."""
    most = most_cells(select.schema, max_cells)
    one_row = max_rows is not None and row_bound(max_rows) == 1
    if most is None and one_row and select.largest is None and select.above is None:
        most = 1  # a single row lies in a single cell
    select = _with_at_most(_with_distinct(select, most), at_most)
    privacy, largest, above = Privacy(epsilon, delta), select.largest, select.above
    if privacy.delta and largest is None and above is None:
        raise BadParameter(
            "delta",
            as_given(delta),
            "it helps only to choose cells, with HAVING or ORDER BY ... DESC LIMIT n: leave it out",
        )
    shares, choosing = _shares(select, privacy, weights)
    top = stream = None
    if largest is not None:
        top = TopMechanism(largest.places, choosing, largest.sensitivity)
    if above is not None:
        stream = planned_stream(select, choosing)
        privacy = Privacy(epsilon, stream.cost.privacy.delta)  # what does not help is not charged
    plan = QueryPlan(select, privacy, shares, _cells_that_count(select, most), top, stream)
    _refuse_wide_noise(plan, epsilon)
    return replace(plan, trees=that_share_trees(plan))


def for_told(plan: QueryPlan, cells: int) -> QueryPlan:
    """The same plan, once it is known how many cells are told: a person counts in no more."""
    return replace(plan, max_cells=min(plan.max_cells, max(cells, 1)))


def _refuse_wide_noise(plan: QueryPlan, epsilon: Number) -> None:
    for place, column in enumerate(plan.select.columns):
        if isinstance(column.kind, Ranked):
            plan.quantile(place)  # which refuses what cannot be drawn
        scales = [plan.noise_scale(place, part) for part in range(len(column.parts))]
        if max(scales, default=0) > WIDEST_NOISE:
            raise BadParameter(
                "epsilon",
                as_given(epsilon),
                f"the noise of {column.name} would be wider than 2^200 grid steps: give a larger "
                "epsilon, or a larger weight",
            )


def _with_at_most(select: Select, at_most: int | None) -> Select:
    """With the number of cells that HAVING may tell, which has no default."""
    if select.above is None:
        if at_most is not None:
            raise BadParameter(
                "at_most",
                as_given(at_most),
                "it goes with HAVING, and this query has none: leave it out",
            )
        return select
    if at_most is None:
        raise BadParameter(
            "at_most",
            None,
            "how many cells may HAVING return?  Give 10 or so: they are paid for in advance, and "
            "more of them mean more noise; cells after the last of them are not answered",
        )
    most = min(whole(at_most, "at_most"), select.keys.cells)
    return replace(select, above=replace(select.above, at_most=most))


def _shares(
    select: Select, privacy: Privacy, weights: Sequence[Number] | None
) -> tuple[tuple[Fraction, ...], Privacy]:
    """The ε of each aggregate, 0 for what the stream tells, and what choosing the cells may cost.

    With nothing else to pay for, choosing has it all.
    """
    chooses = select.largest is not None or select.above is not None
    parts = _weights(weights, select, chooses=chooses)
    each = [privacy.epsilon * part / sum(parts) for part in parts]
    choosing = Privacy(each.pop(), privacy.delta) if chooses else privacy
    measured = iter(each)
    shares = [
        Fraction(0) if isinstance(column.kind, FromStream) else next(measured)
        for column in select.columns
    ]
    if weights is None:
        for places in groups(select):
            even_out(select, places, shares)
    return tuple(shares), choosing


def _with_distinct(select: Select, most: int | None) -> Select:
    """With the number of distinct keys that one person may add, which has no default."""
    columns = []
    for column in select.columns:
        kind = column.kind
        if isinstance(kind, Distinct):
            if most is None:
                raise BadParameter(
                    "max_cells",
                    None,
                    f"for how many values of {', '.join(kind.keys.names)} may one "
                    "person count?  Give 1 or more, or declare it in the schema: max_cells = 3.  "
                    "Which of their values count is chosen at random; more of them, more noise",
                )
            column = replace(column, kind=replace(kind, most=min(most, kind.keys.cells)))
        columns.append(column)
    return replace(select, columns=tuple(columns))


def _weights(given: Sequence[Number] | None, select: Select, *, chooses: bool) -> list[Fraction]:
    """One for each aggregate that is measured, and one more for what chooses the cells."""
    aggregates = len(select.measured)
    count = aggregates + chooses
    if given is None:
        return [Fraction(1)] * count
    also = f" and then one for {'HAVING' if select.above is not None else 'the order'}" * chooses
    beside = " beside what HAVING compares" * (len(select.columns) > aggregates)
    help_ = (
        f"give a positive number for each aggregate ({aggregates} here){beside}{also}, "
        "such as [2, 1]"
    )
    listed: Iterable[Any] = iterated(given, "weights", help_)
    weights = [positive(each, "weights") for each in listed]
    if len(weights) != count:
        raise BadParameter("weights", f"{len(weights)} numbers", help_)
    return weights


def _cells_that_count(select: Select, most: int | None) -> int:
    """In how many of the cells that are told a person counts; there is no default."""
    if select.keys.cells == 1:
        return 1
    if most is None and (select.largest is not None or select.above is not None):
        most = select.rows
    if most is None:
        raise BadParameter(
            "max_cells",
            None,
            "in how many cells of the GROUP BY may one person count?  Give 1 or more, or declare "
            "it in the schema: max_cells = 3.  Which of their cells count is chosen at random; "
            "more of them, more noise",
        )
    return min(most, select.rows)
