"""A query: several aggregates of each cell of a GROUP BY, for a single ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.query_columns import (
    AnyColumn,
    MeanColumn,
    QuantileColumn,
    QueryColumn,
    RatioColumn,
    ShareColumn,
    SpreadColumn,
    StreamColumn,
)
from tacit.analyst.query_having import ToldAbove
from tacit.analyst.query_plan import QueryPlan, for_told
from tacit.analyst.query_quantiles import QuantileTree
from tacit.analyst.query_result import Halt, QueryResult, query_from_json
from tacit.book.coins import clamped
from tacit.book.quantile import QuantileMechanism
from tacit.privacy import Cost, Privacy
from tacit.tables.engine.measured import measured, places_by_cell, sorted_domain
from tacit.tables.engine.person_rows import in_chosen_cells, only_cells
from tacit.tables.language.aggregate_kinds import FromStream, Mean, Portion, Ranked, Ratio, Spread
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine
    from tacit.tables.language.selected import Selected
    from tacit.tables.language.tree import Question

Trees = dict[tuple[int, ...], list[Any]]
"""What was measured in each cell, by the places of the quantiles that share it."""

_WIDEST_IN_BULK = 2**50  # the largest scale that coins draw in bulk
_OF_EACH_CELL = ("places", "steps", "codes")  # lists in a record
_BY_CELLS = ("noise_scale", "epsilon")  # what may depend on how many cells are told


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
    def names_tables(self) -> frozenset[str]:
        """The other tables in it."""
        return self.plan.select.names

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
            **({} if plan.stream is None else {"having": plan.stream.cost.privacy.as_json()}),
        }

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return self.plan.drawn_by

    def write_release(self, released: QueryResult) -> dict[str, Any]:
        """A result as it is kept, with room for any cells that could have been told.

        Which and how many were would show in its length, and it may be drawn again under the same
        charge.
        """
        fields = released.as_json()
        if released.places is None:
            return fields
        fields.pop("covers", None)  # it follows from the rest, and its length from what is told
        from tacit.budget.answers import room_of
        from tacit.budget.chain import canonical

        select = self.plan.select
        longest = list(select.keys.longest(lambda code: room_of(canonical({"code": code}))))
        fullest = _fullest(fields, select.rows)
        fullest["cells"] = [longest] * select.rows
        room = room_of(canonical(fullest)) - room_of(canonical(fields))
        return {**fields, "room": " " * max(room, 0)}

    def read_release(self, fields: Mapping[str, Any]) -> QueryResult:
        """The inverse of `write_release`."""
        return query_from_json(fields)

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one that the query was read for."""
        refuse_other_schema(self, self.plan.select.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> QueryResult:
        """Answer every aggregate of every cell that is told, and add noise to each."""
        above = self._above(engine, coins)
        places = self._largest(engine, coins) if above is None else above.places
        told = self.plan.select.keys.cells if places is None else len(places)
        return Query(for_told(self.plan, told))._of_told(engine, coins, places, above)

    def _of_told(
        self,
        engine: Engine,
        coins: Coins,
        places: tuple[int, ...] | None,
        above: ToldAbove | None,
    ) -> QueryResult:
        """What is told, once it is clear of which cells."""
        plan, select = self.plan, self.plan.select
        true: list[Any] = [[[]] * len(column.parts) for column in select.measured]
        if places != ():
            by_person = plan.by_person
            true = self._chosen(engine, coins, places) if by_person else self._whole(engine, places)
        measured, trees = iter(true), Trees()
        columns = tuple(
            self._stream_column(column, above)
            if isinstance(column.kind, FromStream)
            else self._column(place, column, next(measured), coins, trees)
            for place, column in enumerate(select.columns)
        )
        return QueryResult(
            select.schema,
            " ".join(select.text.split()),
            select.keys,
            columns,
            privacy=plan.privacy,
            max_cells=plan.max_cells,
            places=places,
            having=None if above is None else Halt(select.rows, above.answered),
            notes=select.notes,
        )

    def _above(self, engine: Engine, coins: Coins) -> ToldAbove | None:
        """The cells that HAVING tells, if there is one."""
        plan, asked = self.plan, self.plan.select.above
        if plan.stream is None or asked is None:
            return None
        return plan.stream.draw(self._of_cells(engine, asked.question), coins)

    def _largest(self, engine: Engine, coins: Coins) -> tuple[int, ...] | None:
        """The cells that are told, if not all are.

        Privacy: each is drawn from counts that one person changes by no more than Δ, in however
        many cells they are; in how many they count matters for what is then told of those drawn.
        """
        plan, largest = self.plan, self.plan.select.largest
        if plan.top is None or largest is None:
            return None
        values = self._of_cells(engine, largest.question)
        steps = np.array([clamped(value) for value in values], np.int64)
        return tuple(plan.top.draw(steps, coins))

    def _stream_column(self, asked: Selected, above: ToldAbove | None) -> StreamColumn:
        """What HAVING compares, from the values that came with each ⊤."""
        stream = self.plan.stream
        assert above is not None
        assert stream is not None
        steps = [(answer.value or 0) / stream.mechanism.grid for answer in above.answers]
        return StreamColumn(asked.name, stream.like, tuple(map(int, steps)), asked.max_rows)

    def _column(
        self, place: int, asked: Selected, true: Sequence[Any], coins: Coins, trees: Trees
    ) -> AnyColumn:
        """An aggregate with noise, from the true values of what is measured for it."""
        if isinstance(asked.kind, Ranked):
            return self._quantiles(place, asked, true, coins, trees)
        noisy = []
        for at, part in enumerate(asked.parts):
            paid = Privacy(self.plan.shares[place] * part.share)
            scale = self.plan.noise_scale(place, at)
            steps = _noisy(true[at], scale, coins)
            noisy.append(QueryColumn(part.name, paid, part.grid, scale, steps, asked.max_rows))
        return _made_of(asked, noisy)

    def _quantiles(
        self, place: int, asked: Selected, true: Sequence[Any], coins: Coins, trees: Trees
    ) -> QuantileColumn:
        """A quantile of each cell, from the sorted places of its values in the domain.

        Quantiles that share a tree are all read from what was measured for the first of them.
        """
        assert isinstance(asked.kind, Ranked)
        column = self.plan.select.schema.column(asked.kind.column)
        drawn, domain = self.plan.quantile(place), sorted_domain(column)
        group = self.plan.tree_group(place)
        if isinstance(drawn, QuantileTree) and group is not None:
            if group not in trees:
                trees[group] = [drawn.measure(places, coins) for places in true]
            codes = tuple(domain[drawn.read(up_to)] for up_to in trees[group])
        else:
            assert isinstance(drawn, QuantileMechanism)
            codes = tuple(domain[drawn.draw(places, coins)] for places in true)
        return QuantileColumn(asked.name, column, drawn, codes, asked.max_rows)

    def _of_cells(
        self, engine: Engine, question: Question, told: Sequence[int] | None = None
    ) -> list[int]:
        """The true values of a question in all cells, or in some, in steps."""
        cells = self.plan.select.of_each_cell(question)
        if told is not None:
            return engine.values([cells[place] for place in told])
        values: list[int] = (
            engine.cell_values(cells).tolist() if cells.keys else engine.values(cells)
        )
        return values

    def _whole(self, engine: Engine, told: Sequence[int] | None = None) -> list[list[list[int]]]:
        """The true values, in steps, where everybody counts wherever they are."""
        whole = []
        for column in self.plan.select.measured:
            parts = [self._of_cells(engine, question, told) for question in column.questions]
            if isinstance(column.kind, Portion):  # the whole, and what is inside
                rest = [most - part for most, part in zip(*parts, strict=True)]
                parts = [parts[1], rest]
            whole.append(parts)
        return whole

    def _chosen(self, engine: Engine, coins: Coins, told: Sequence[int] | None = None) -> list[Any]:
        """The true values, in steps, of those cells and rows that were chosen for each person."""
        plan, select = self.plan, self.plan.select
        count = select.keys.cells if told is None else len(told)
        names = select.keys.of.union(*(column.columns for column in select.measured))
        tests = {term.where: None for column in select.measured for term in column.terms}
        rows = engine.rows_by_person(select.where, sorted(names), list(tests))
        cells = select.keys.places(rows)
        if told is not None:
            cells = only_cells(cells, told, select.keys.cells)
        if plan.choosing:
            counted = in_chosen_cells(rows.people, cells, plan.max_cells, coins)
            cells = np.where(counted, cells, -1)
        found: list[Any] = []
        for column in select.measured:
            if isinstance(column.kind, Ranked):
                domain = select.schema.column(column.kind.column)
                found.append(places_by_cell(rows, cells, count, column, domain=domain, coins=coins))
            else:
                found.append(measured(rows, cells, count, column, coins))
        return found


def _fullest(fields: Any, rows: int) -> Any:
    """A record of as many cells as could have been told, by its length."""
    if isinstance(fields, list):
        return [_fullest(each, rows) for each in fields]
    if not isinstance(fields, dict):
        return fields
    return {
        name: [0] * rows
        if name in _OF_EACH_CELL
        else "9" * 100
        if name in _BY_CELLS
        else _fullest(part, rows)
        for name, part in fields.items()
    }


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
    return tuple(int(value) + drawn for value, drawn in zip(values, noise, strict=True))
