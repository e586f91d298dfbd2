"""A query: several aggregates of each cell of a GROUP BY, for a single ε."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.analyst.alternatives import Alternative, Comparison
from tacit.analyst.alternatives import lines as alternative_lines
from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.query_columns import (
    AnyColumn,
    MeanColumn,
    QuantileColumn,
    QueryColumn,
    RatioColumn,
    ShareColumn,
    SpreadColumn,
)
from tacit.analyst.query_errors import divided, instead, planned_error, said_of
from tacit.analyst.query_result import (
    QueryResult,
    counted_cells,
    counted_keys,
    counted_rows,
    query_from_json,
)
from tacit.arguments import iterated, text
from tacit.book.coins import WIDEST_NOISE, clamped
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
    whole,
)
from tacit.privacy import Cost, Privacy
from tacit.tables.measured import measured, places_by_cell, sorted_domain
from tacit.tables.person_rows import cells_of, in_chosen_cells, only_cells
from tacit.tables.schema import EACH_ROW, Schema, row_bound
from tacit.tables.selected import Distinct, Mean, Plain, Portion, Ranked, Ratio, Spread

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine import Engine
    from tacit.tables.selected import Select, Selected

_TYPICAL = 1000  # of how many values a plan says how far their mean may be off
_WIDEST_IN_BULK = 2**50  # the largest scale that coins draw in bulk


# What it will be like, before it is paid ----------------------------------------------------------


@dataclass(frozen=True)
class QueryPlan:
    """What a query costs and how far each aggregate may be off, said before it is paid.

    Privacy: in each cell a person changes an aggregate by at most its sensitivity Δ, and they count
    in at most ``max_cells`` cells; so all its values together change by at most max_cells·Δ (the
    ℓ1 sensitivity), and noise of scale max_cells·Δ/ε is enough for its share ε (Theorem 3.6, on
    the grid).  A mean is a count and a sum, with half of its share each, a variance three numbers
    with a third each: of each person the same ``max_rows`` values count in a cell.  A share is two
    counts of disjoint parts, which a person changes together by no more than one of them, so that
    both have its whole share.  A quantile is drawn in each cell for ε/max_cells.  The shares add up
    (Theorem 3.16).  With ORDER BY ... DESC LIMIT n, n cells are drawn for a share of their own, and
    then what is told is about those n, which are public; a person is in at most n of them.
    """

    select: Select
    privacy: Privacy
    shares: tuple[Fraction, ...]
    max_cells: int
    top: TopMechanism | None = None

    @property
    def all_shares(self) -> tuple[Fraction, ...]:
        """Of ε: for each aggregate, and then for the order if there is one."""
        return self.shares if self.top is None else (*self.shares, self.top.privacy.epsilon)

    @property
    def cost(self) -> Cost:
        """(ε, δ): what is measured for each aggregate, what is drawn, and the order."""
        columns = zip(self.select.columns, self.shares, strict=True)
        costs = [self._cost(column, share) for column, share in columns]
        if self.top is not None:
            costs.append(self.top.cost)
        return reduce(add, costs)

    def _cost(self, column: Selected, share: Fraction) -> Cost:
        """What is measured for an aggregate, or drawn in each of the cells of a person.

        What has the whole share is measured about disjoint parts of the data, as one.
        """
        if isinstance(column.kind, Ranked):
            return Cost.bounded_range(share / self.max_cells, times=self.max_cells)
        of_each = column.parts[0].share
        return Cost.pure(share * of_each, times=int(1 / of_each))

    @property
    def by_person(self) -> bool:
        """Whether the rows themselves are needed: cells or rows of a person are chosen."""
        return self.choosing or any(column.by_person for column in self.select.columns)

    @property
    def choosing(self) -> bool:
        """Whether it must be chosen in which cells a person counts."""
        return self.select.schema.person is not EACH_ROW and self.max_cells < self.select.rows

    def noise_scale(self, place: int, part: int = 0) -> Fraction:
        """The scale of the noise of what is measured for an aggregate, in steps of its grid."""
        measured = self.select.columns[place].parts[part]
        return self.max_cells * measured.sensitivity / (self.shares[place] * measured.share)

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

    def quantile(self, place: int) -> QuantileMechanism:
        """What draws the quantile of an aggregate in one cell.

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
        scales = [self.noise_scale(place, part) for part in range(len(column.parts))]
        if not divided(column):
            return error_steps(scales[0], beta) * column.parts[0].grid
        if values is None:
            raise BadParameter("values", None, "of how many values is it the mean?")
        return planned_error(column, scales, probability(beta, "beta"), whole(values, "values"))

    def __str__(self) -> str:
        select, cells = self.select, self.select.rows
        counted = counted_cells(select.schema, self.max_cells, cells)
        rows = f"{cells} row" + "s" * (cells != 1)
        told = [counted_rows(column.name, column.max_rows) for column in select.columns]
        told += [counted_keys(column.name, column.max_keys) for column in select.columns]
        lines = [f"A query of {rows}, {self.privacy}{counted}{''.join(told)}"]
        width = max(len(column.name) for column in select.columns)
        for column, share in zip(select.columns, self.shares, strict=True):
            values = _TYPICAL if divided(column) else None
            error = four_digits_up(self.error(column.name, values=values))
            of_values = "" if values is None else f" for {said_of(column, values)}"
            ranked = isinstance(column.kind, Ranked)
            off = f"± {error}{' ranks' * ranked} each (95 %){of_values}"
            lines.append(f"  {column.name:{width}}  {off}, ε = {show(share)}")
        if self.top is not None and select.largest is not None:
            steps = self.top.alpha_steps(select.cells, "1/20")
            alpha = four_digits_up(steps * select.largest.question.grid)
            lines.append(
                f"  {'order':{width}}  each is at most {alpha} below the largest left (95 %), "
                f"ε = {show(self.top.privacy.epsilon)}"
            )
        lines += [f"  {line}" for line in instead(self)]
        return "\n".join([*lines, *alternative_lines(self.alternatives)])

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could count the people of each cell for the same ε; nothing without cells."""
        counted = any(isinstance(column.kind, Plain) for column in self.select.columns)
        if not self.select.keys or not counted:
            return ()
        others = Comparison(self.select.schema, self.privacy.epsilon)
        return others.for_cells(self.select.keys, but="query")


def plan_query(
    select: Select,
    *,
    epsilon: Number,
    delta: Number = 0,
    weights: Sequence[Number] | None,
    max_cells: int | None,
) -> QueryPlan:
    """Divide ε among the aggregates and the order; refuse, at no cost, what cannot be drawn."""
    select = _with_distinct(select, max_cells)
    privacy, largest = Privacy(epsilon, delta), select.largest
    if privacy.delta and largest is None:
        raise BadParameter(
            "delta",
            as_given(delta),
            "it helps only to draw the largest cells, with ORDER BY ... DESC LIMIT n: leave it out",
        )
    parts = _weights(weights, len(select.columns), ordered=largest is not None)
    shares = tuple(privacy.epsilon * part / sum(parts) for part in parts)
    top = None
    if largest is not None:
        *rest, drawing = shares
        shares = tuple(rest)
        top = TopMechanism(largest.places, Privacy(drawing, delta), largest.sensitivity)
    plan = QueryPlan(select, privacy, shares, cells_that_count(select, max_cells), top)
    for place, column in enumerate(select.columns):
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
    return plan


def _with_distinct(select: Select, max_cells: int | None) -> Select:
    """With the number of distinct keys that one person may add, which has no default."""
    schema = select.schema
    given = None if max_cells is None else row_bound(max_cells, "max_cells")
    most = schema.max_cells if given is None else given
    columns = []
    for column in select.columns:
        kind = column.kind
        if isinstance(kind, Distinct):
            most = 1 if schema.person is EACH_ROW else most
            if most is None:
                raise BadParameter(
                    "max_cells",
                    None,
                    f"for how many values of {', '.join(key.name for key in kind.keys)} may one "
                    "person count?  Give max_cells=1 or more, or declare it in the schema: "
                    "max_cells = 3.  For which they do is chosen at random, and the noise grows "
                    "with it",
                )
            column = replace(column, kind=replace(kind, most=min(most, kind.cells)))
        columns.append(column)
    return replace(select, columns=tuple(columns))


def _weights(given: Sequence[Number] | None, aggregates: int, *, ordered: bool) -> list[Fraction]:
    count = aggregates + ordered
    if given is None:
        return [Fraction(1)] * count
    also = " and then one for the order" * ordered
    help_ = f"give a positive number for each of the {aggregates} aggregates{also}, such as [2, 1]"
    listed: Iterable[Any] = iterated(given, "weights", help_)
    weights = [positive(each, "weights") for each in listed]
    if len(weights) != count:
        raise BadParameter("weights", f"{len(weights)} numbers", help_)
    return weights


def cells_that_count(select: Select, max_cells: int | None) -> int:
    """In how many cells a person counts: as asked, or as the schema says; there is no default."""
    schema = select.schema
    given = None if max_cells is None else row_bound(max_cells, "max_cells")
    if schema.person is EACH_ROW or select.cells == 1:
        return 1
    most = schema.max_cells if given is None else given
    if most is None and select.largest is not None:
        most = select.rows
    if most is None:
        raise BadParameter(
            "max_cells",
            None,
            "in how many cells of the GROUP BY may one person count?  Give max_cells=1 or more, or "
            "declare it in the schema: max_cells = 3.  In how many they do is chosen at random, "
            "and the noise grows with it",
        )
    return min(most, select.rows)


@dataclass(frozen=True)
class Query:
    """Several aggregates of each cell with discrete Laplace noise, for `Table.release`.

    Privacy: (ε, 0), as `QueryPlan` says.  In which cells somebody counts is chosen at random for
    each person by themselves, so this holds whatever is chosen for the others.  The cells are
    public: empty ones are there too.
    """

    plan: QueryPlan

    @property
    def cost(self) -> Cost:
        """(ε, 0), with a pure part for each aggregate."""
        return self.plan.cost

    @property
    def what(self) -> str:
        """The query, on one line."""
        return f"query: {' '.join(self.plan.select.text.split())}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Whose rows they are, if there are cells or rows to choose."""
        return ("rows by person",) if self.plan.by_person else ()

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        plan = self.plan
        return {
            "query": plan.select.canonical,
            "shares": [str(share) for share in plan.shares],
            "max_cells": plan.max_cells,
            **({} if plan.top is None else {"order": plan.top.privacy.as_json()}),
        }

    def write_release(self, released: QueryResult) -> dict[str, Any]:
        """A result as it is kept, with room for any cells that could have been drawn.

        Which were drawn would show in its length, and it may be drawn again under the same charge.
        """
        fields = released.as_json()
        if released.places is None:
            return fields
        from tacit.budget.answers import room_of

        def taken(part: object) -> int:
            return room_of(json.dumps(part))

        most = max(map(taken, self.plan.select.cell_codes))
        used = sum(map(taken, released.cells))
        return {**fields, "room": " " * (len(released) * most - used)}

    def read_release(self, fields: Mapping[str, Any]) -> QueryResult:
        """The inverse of `write_release`."""
        return query_from_json(fields)

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one that the query was read for."""
        refuse_other_schema(self, self.plan.select.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> QueryResult:
        """Answer every aggregate of every cell, and add noise to each."""
        plan, select = self.plan, self.plan.select
        places = self._largest(engine, coins)
        told = range(select.cells) if places is None else places
        true = self._chosen(engine, coins, told) if plan.by_person else self._whole(engine, told)
        columns = tuple(
            self._column(place, column, true[place], coins)
            for place, column in enumerate(select.columns)
        )
        asked = " ".join(select.text.split())
        return QueryResult(
            select.schema,
            asked,
            select.keys,
            columns,
            privacy=plan.privacy,
            max_cells=plan.max_cells,
            places=places,
        )

    def _largest(self, engine: Engine, coins: Coins) -> tuple[int, ...] | None:
        """The cells that are told, if not all are.

        Privacy: each is drawn from counts that one person changes by no more than Δ, in however
        many cells they are; in how many they count matters for what is then told of those drawn.
        """
        plan, largest = self.plan, self.plan.select.largest
        if plan.top is None or largest is None:
            return None
        values = engine.values(plan.select.of_each_cell(largest.question))
        steps = np.array([clamped(value) for value in values], np.int64)
        return tuple(plan.top.draw(steps, coins))

    def _column(self, place: int, asked: Selected, true: Sequence[Any], coins: Coins) -> AnyColumn:
        """An aggregate with noise, from the true values of what is measured for it."""
        if isinstance(asked.kind, Ranked):
            return self._quantiles(place, asked, true, coins)
        noisy = []
        for at, part in enumerate(asked.parts):
            paid = Privacy(self.plan.shares[place] * part.share)
            scale = self.plan.noise_scale(place, at)
            steps = _noisy(true[at], scale, coins)
            noisy.append(QueryColumn(part.name, paid, part.grid, scale, steps, asked.max_rows))
        return _made_of(asked, noisy)

    def _quantiles(
        self, place: int, asked: Selected, true: Sequence[Any], coins: Coins
    ) -> QuantileColumn:
        """A quantile of each cell, from the sorted places of its values in the domain."""
        assert isinstance(asked.kind, Ranked)
        column = self.plan.select.schema.column(asked.kind.column)
        drawn, domain = self.plan.quantile(place), sorted_domain(column)
        codes = tuple(domain[drawn.draw(places, coins)] for places in true)
        return QuantileColumn(asked.name, column, drawn, codes, asked.max_rows)

    def _whole(self, engine: Engine, told: Sequence[int] | None = None) -> list[list[list[int]]]:
        """The true values, in steps, where everybody counts wherever they are."""
        select = self.plan.select
        asked = [question for column in select.columns for question in column.questions]
        cells = range(select.cells) if told is None else told
        by_cell = map(select.of_each_cell, asked)
        values = engine.values([every[place] for every in by_cell for place in cells])
        found = [values[at : at + len(cells)] for at in range(0, len(values), len(cells))]
        whole = []
        for column in select.columns:
            parts, found = found[: len(column.questions)], found[len(column.questions) :]
            if isinstance(column.kind, Portion):  # the whole, and what is inside
                rest = [most - part for most, part in zip(*parts, strict=True)]
                parts = [parts[1], rest]
            whole.append(parts)
        return whole

    def _chosen(self, engine: Engine, coins: Coins, told: Sequence[int] | None = None) -> list[Any]:
        """The true values, in steps, of those cells and rows that were chosen for each person."""
        plan, select = self.plan, self.plan.select
        count = select.cells if told is None else len(told)
        names = {key.name for key in select.keys}
        names |= {name for column in select.columns for name in column.columns}
        tests = {term.where: None for column in select.columns for term in column.terms}
        rows = engine.rows_by_person(select.where, sorted(names), list(tests))
        cells = cells_of(rows, select.keys)
        if told is not None and select.largest is not None:
            cells = only_cells(cells, told, select.cells)
        if plan.choosing:
            counted = in_chosen_cells(rows.people, cells, plan.max_cells, coins)
            cells = np.where(counted, cells, -1)
        found: list[Any] = []
        for column in select.columns:
            if isinstance(column.kind, Ranked):
                domain = select.schema.column(column.kind.column)
                found.append(places_by_cell(rows, cells, count, column, domain=domain, coins=coins))
            else:
                found.append(measured(rows, cells, count, column, coins))
        return found


def _made_of(asked: Selected, noisy: Sequence[QueryColumn]) -> AnyColumn:
    """The column of a result, from what was measured for it."""
    kind, name, factor = asked.kind, asked.name, asked.factor
    if isinstance(kind, Mean | Spread):
        bounds = (kind.low * kind.step, kind.high * kind.step)
        if isinstance(kind, Mean):
            return MeanColumn(name, noisy[0], noisy[1], bounds, factor)
        count, total, squares = noisy
        kinds = {"sample": kind.sample, "root": kind.root}
        return SpreadColumn(name, count, total, squares, bounds, **kinds, factor=factor)
    if isinstance(kind, Portion):
        return ShareColumn(name, noisy[0], noisy[1], factor)
    if isinstance(kind, Ratio):
        return RatioColumn(name, noisy[0], noisy[1], factor)
    return replace(noisy[0], max_keys=asked.max_keys)


def _noisy(values: Sequence[int], scale: Fraction, coins: Coins) -> tuple[int, ...]:
    """Each value with noise of its own."""
    if scale <= _WIDEST_IN_BULK:
        noise = coins.laplace_sampler(scale).draws(len(values)).tolist()
    else:
        noise = [coins.laplace(scale) for _ in values]
    return tuple(int(value) + int(drawn) for value, drawn in zip(values, noise, strict=True))
