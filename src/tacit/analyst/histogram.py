"""A noisy histogram: the number of people in every cell of some columns, for a single ε.

Cells do not overlap, so all of them together cost no more than one: a person adds at most
``max_rows`` to all counts together, and noise of that scale on each count is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import product
from math import ceil, expm1, log, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.paying import refuse_other_schema, tagged
from tacit.analyst.question_class import (
    MOST_ELEMENTS,
    declared_column,
    declared_domain,
    declared_size,
    predicate_of,
)
from tacit.analyst.tabular import (
    RowsChosen,
    SavedTabular,
    covers_as_json,
    covers_of_rows,
    plain_value,
    rows_chosen_as_json,
    rows_chosen_from_json,
    rows_that_count,
    with_facts,
    with_intervals,
    with_since,
)
from tacit.book.laplace import Estimate, error_steps
from tacit.book.noisy_number import About
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.errors import BadParameter, Infeasible, QuestionRefused
from tacit.numbers import Number, as_given, probability, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import html_cell, html_row
from tacit.tables.engine.points import chosen_counts, needs_chosen_points
from tacit.tables.engine.public_rows import PublicRows, cell_codes, rows_schema
from tacit.tables.engine.universe import columns_of, count_elements
from tacit.tables.language.key_notes import notes_on
from tacit.tables.language.tree import People
from tacit.tables.schema.codes import Code, Unfit
from tacit.tables.schema.schema import EACH_ROW, Column, Schema, read_schema, write_schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine

_MOST_SHOWN = 40
_WIDEST_NOISE = 2**50  # the largest scale that coins draw in bulk


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSum(Estimate):
    """A sum of noisy counts; its error bar is that of a sum of as many noises."""

    cells: int

    def error(self, beta: Number = "1/20") -> Fraction:
        """How far the sum may be off, except with probability β."""
        return sum_error(self.noise_scale, self.cells, beta) * self.grid

    def as_json(self) -> dict[str, Any]:
        """As an estimate, and of how many cells."""
        return {**Estimate.as_json(self), "cells": self.cells}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> CellSum:
        """The inverse of `as_json`."""
        return cls(**cls._read(fields), cells=fields["cells"])


class CellNoise:
    """How far noisy counts of cells are off, of which a person adds to ``max_rows`` at most.

    It follows from public numbers, before and after.
    """

    privacy: Privacy
    max_rows: int

    def __len__(self) -> int:
        """How many cells there are."""
        raise NotImplementedError

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the noise of each count."""
        return self.max_rows / self.privacy.epsilon

    def error(self, beta: Number = "1/20") -> Fraction:
        """How far one count may be off, except with probability β."""
        return Fraction(error_steps(self.noise_scale, beta))

    def worst_error(self, beta: Number = "1/20") -> Fraction:
        """How far any of the counts may be off, except with probability β for all together."""
        return self.error(probability(beta, "beta") / len(self))


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(CellNoise, Recordable, SavedTabular):
    """Noisy counts, one for each cell of the declared domains, in the order of the domains.

    All of it was paid for and is public: it may be printed, saved and published.
    """

    schema: Schema
    columns: tuple[Column, ...]
    cells: tuple[tuple[Code, ...], ...]
    counts: NDArray[np.int64]
    privacy: Privacy
    max_rows: int
    rows_chosen: RowsChosen = "at random"
    """Which rows count of somebody who has more than `max_rows`; version 0.1 took the least."""
    recorded: Recorded | None = None
    """If it was told again and is about an older label: since when, and which."""

    # Answering ----------------------------------------------------------------------------

    def __getitem__(self, cell: object) -> Estimate:
        """The count of one cell, such as ``histogram["Ghent"]`` or ``histogram["Ghent", 30]``."""
        values = cell if isinstance(cell, tuple) else (cell,)
        names = ", ".join(column.name for column in self.columns)
        try:
            pairs = zip(self.columns, values, strict=True)
            place = self._places[tuple(column.code(value) for column, value in pairs)]
        except (Unfit, KeyError, ValueError):
            raise BadParameter(
                "cell", as_given(cell), f"give one declared value for each of {names}"
            ) from None
        codes = zip(self.columns, self.cells[place], strict=True)
        chosen = {column.name: plain_value(column, code) for column, code in codes}
        return Estimate(
            value=Fraction(int(self.counts[place])),
            noise_scale=self.noise_scale,
            privacy=self.privacy,
            about=About(f"histogram of {names}", self.schema.name, None, self.privacy, chosen),
            covers=self.covers,
            recorded=self.recorded,
        )

    @cached_property
    def _places(self) -> dict[tuple[Code, ...], int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def count(self, question: str) -> CellSum:
        """The sum over the cells that satisfy a predicate, such as "age between 30 and 39"."""
        predicate = predicate_of(question, self.schema)
        names = [column.name for column in self.columns]
        if not set(columns_of(predicate)) <= set(names):
            raise QuestionRefused(
                f"{question}\nthis histogram counts {', '.join(names)}; a question about it can "
                "name no other column"
            )
        cells = PublicRows(
            rows_schema(self.schema, self.columns), cell_codes(self.columns, self.cells)
        )
        inside = cells.matches(predicate)
        return CellSum(
            value=Fraction(int(self.counts[inside].sum())),
            noise_scale=self.noise_scale,
            privacy=self.privacy,
            cells=int(inside.sum()),
            covers=self.covers,
            notes=notes_on([People(predicate)], self.schema),
            recorded=self.recorded,
        )

    def __len__(self) -> int:
        return len(self.cells)

    # Other forms --------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `histogram_from_json` is the inverse."""
        schema = self.schema
        return {
            "table": schema.name,
            "person": schema.person if isinstance(schema.person, str) else None,
            "schema": write_schema(schema),
            "columns": [column.name for column in self.columns],
            "cells": [list(cell) for cell in self.cells],
            "counts": self.counts.tolist(),
            "privacy": self.privacy.as_json(),
            "max_rows": self.max_rows,
            **rows_chosen_as_json(self.rows_chosen),
            **covers_as_json(self.covers),
            **recorded_as_json(self.recorded),
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """The cells, column by column, their noisy counts, between what, and what that covers."""
        shown = self._first(len(self))
        name = "count"
        while name in shown:
            name += "_"
        counted = {**shown, name: self.counts.tolist()}
        counted = with_intervals(counted, {name: self.intervals()})
        return with_facts(counted, self.covers, self.recorded)

    def intervals(self, beta: Number = "1/20") -> list[tuple[Fraction, Fraction]]:
        """Between what each count lies by itself, except with probability β."""
        error = self.error(beta)
        return [(count - error, count + error) for count in self.counts.tolist()]

    def _first(self, most: int) -> dict[str, list[Any]]:
        return {
            column.name: [plain_value(column, cell[place]) for cell in self.cells[:most]]
            for place, column in enumerate(self.columns)
        }

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"<Histogram of {names}: {self._summary()}>"

    def _summary(self) -> str:
        cells = f"{len(self)} cell" + "s" * (len(self) != 1)
        covers = f"; {self.covers}" if self.covers else ""
        said = f"{cells}, each ± {spaced(self.error())} (95 %), {self.privacy}{covers}"
        return with_since(said, self.recorded)

    @property
    def covers(self) -> str:
        """How much of each person the errors are about, in words; nothing if it is all of them."""
        return covers_of_rows(self.schema, self.max_rows, self.rows_chosen)

    def _lines(self) -> list[list[str]]:
        named = [
            list(map(str, [name, *values])) for name, values in self._first(_MOST_SHOWN).items()
        ]
        counted = [spaced(Fraction(count)) for count in self.counts[:_MOST_SHOWN].tolist()]
        return [list(line) for line in zip(*named, ["count", *counted], strict=True)]

    def _more(self) -> str:
        left = len(self) - _MOST_SHOWN
        return f"... and {left} more: see to_dict()" if left > 0 else ""

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join([*map(str.ljust, line[:-1], widths), line[-1].rjust(widths[-1])])
            for line in lines
        ]
        return "\n".join(filter(None, [*shown, self._more(), self._summary()]))

    def _repr_html_(self) -> str:
        head, *body = self._lines()
        rows = [html_row(*(html_cell(text, "th", align="left") for text in head))]
        rows += [html_row(*(html_cell(text, align="left") for text in line)) for line in body]
        under = escape(" ".join(filter(None, [self._more(), self._summary()])))
        return f"<table>{''.join(rows)}</table><p>{under}</p>"


def histogram_from_json(fields: Any) -> Histogram:
    """What `Histogram.as_json` wrote; anything else raises one of many errors."""
    table, person, text = fields["table"], fields["person"], fields["schema"]
    if not all(isinstance(each, str) for each in (table, text, "" if person is None else person)):
        raise TypeError
    schema = read_schema(text, name=table, person=EACH_ROW if person is None else person)
    columns = tuple(schema.column(name) for name in fields["columns"])
    if not all(type(number) is int for number in (fields["max_rows"], *fields["counts"])):
        raise TypeError
    counts = np.array(fields["counts"], np.int64)
    counts.flags.writeable = False
    cells = tuple(_cell(cell, columns) for cell in fields["cells"])
    if len(set(cells)) != len(counts):
        raise ValueError
    privacy, max_rows = Privacy.from_json(fields["privacy"]), whole(fields["max_rows"], "max_rows")
    chosen = rows_chosen_from_json(fields)
    if max_rows / privacy.epsilon > _WIDEST_NOISE:  # its error would take long to find
        raise ValueError
    since = recorded_from_json(fields)
    return Histogram(
        schema, columns, cells, counts, privacy, max_rows, rows_chosen=chosen, recorded=since
    )


def _cell(codes: Sequence[Any], columns: Sequence[Column]) -> tuple[Code, ...]:
    """One code for each column, each of which the column can hold."""
    for code, column in zip(codes, columns, strict=True):
        low, high = column.range
        if code not in (column.keys or ()) if column.type == "text" else not low <= code <= high:
            raise ValueError
    return tuple(codes)


def sum_error(noise_scale: Fraction, noises: int | Fraction, beta: Number) -> int:
    """An m with Pr[|sum of noises| > m] ≤ β, for this many discrete Laplace noises.

    The noises may have weights of at most 1 in size whose squares sum to ``noises``: the logarithm
    of their moment generating function is a power series in the square of its argument without
    negative terms, so it is at most the squared weight times that at weight 1.

    The smaller of two bounds: the union bound, and Chernoff's bound with the noise's own moment
    generating function (1−q)²/((1−qeˢ)(1−qe⁻ˢ)), q = e^(−1/b).  Every s in (0, 1/b) gives a bound,
    so it is enough to try some of them.  At β = 1/20 it is up to 1.8 times the least such m.
    """
    allowed, b = probability(beta, "beta"), float(noise_scale)
    if noises == 0:
        return 0
    if noises == 1 and isinstance(noises, int):
        return error_steps(noise_scale, allowed)
    log_rest = log(2 * allowed.denominator) - log(allowed.numerator)  # ln(2/β), however small β is

    def chernoff(x: float) -> float:
        """For s = x/b."""
        one, near, far = (log(-expm1(-part / b)) for part in (1, 1 - x, 1 + x))
        return (float(noises) * (2 * one - near - far) + log_rest) * b / x

    best = ceil(min(chernoff(step / 256) for step in range(1, 256)) * (1 + 1e-9))
    if not isinstance(noises, int):  # with weights there may be many more noises than this
        return best
    return min(noises * error_steps(noise_scale, allowed / noises), best)


def prefix_error(noise_scale: Fraction, noises: int, beta: Number) -> int:
    """An m with Pr[the sum of the first so many exceeds m in size, for any number of them] ≤ β.

    Lévy's inequality: for independent, symmetric noises that is at most twice as likely as that the
    sum of all does.
    """
    return sum_error(noise_scale, noises, probability(beta, "beta") / 2)


@dataclass(frozen=True)
class NoisyHistogram:
    """A count for every cell of some columns with discrete Laplace noise, for `Table.release`.

    Privacy: (ε, 0).  One person's rows, at most `max_rows` of them, change the counts by at most
    that much in all (the ℓ1 sensitivity), so noise of scale max_rows/ε on each is enough
    (Theorem 3.6, on whole numbers).  Which rows count is chosen at random for each person by
    themselves, so this holds whatever is chosen for the others.  The cells are public: empty ones
    are there too.
    """

    names_tables: ClassVar[tuple[str, ...]] = ()

    schema: Schema
    columns: tuple[Column, ...]
    max_rows: int
    cost: Cost

    def __init__(
        self, schema: Schema, names: Sequence[str], *, epsilon: Number, max_rows: int | None = None
    ) -> None:
        columns = _columns(schema, names)
        _refuse_too_many(columns)
        cost, rows = Cost.pure(epsilon), rows_that_count(schema, max_rows)
        if rows / cost.privacy.epsilon > _WIDEST_NOISE:
            raise BadParameter(
                "epsilon",
                show(cost.privacy.epsilon),
                "the noise would be wider than 2^50: give a larger epsilon",
            )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "max_rows", rows)
        object.__setattr__(self, "cost", cost)

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows, and where a person may have several a choice among them."""
        return needs_chosen_points(self.schema)

    @property
    def what(self) -> str:
        """Which columns are counted."""
        return f"histogram of {', '.join(column.name for column in self.columns)}"

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        names = [column.name for column in self.columns]
        epsilon = str(self.cost.privacy.epsilon)
        return {"histogram": names, "epsilon": epsilon, "max_rows": self.max_rows}

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return f"Laplace noise of scale {self.max_rows / self.cost.privacy.epsilon} on each count"

    def write_release(self, released: Histogram) -> dict[str, Any]:
        """A histogram as it is kept."""
        return tagged("histogram", released.as_json())

    def read_release(self, fields: Mapping[str, Any]) -> Histogram:
        """The inverse of `write_release`."""
        return histogram_from_json(fields)

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one that the columns were declared for."""
        refuse_other_schema(self, self.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Histogram:
        """Count the rows of each cell and add noise to each count."""
        names = [column.name for column in self.columns]
        points = chosen_counts(engine, names, self.max_rows, coins)
        true = count_elements(points, self.columns)
        privacy = self.cost.privacy
        noise = coins.laplace_sampler(self.max_rows / privacy.epsilon)
        counts = true + noise.draws(len(true))
        counts.flags.writeable = False
        cells = tuple(product(*(declared_domain(column) for column in self.columns)))
        return Histogram(self.schema, self.columns, cells, counts, privacy, self.max_rows)


def _columns(schema: Schema, names: Sequence[str]) -> tuple[Column, ...]:
    columns = tuple(declared_column(schema, name) for name in names)
    if not columns or len(set(columns)) != len(columns):
        raise BadParameter(
            "columns", ", ".join(names) or "none", "name at least one column, and none twice"
        )
    return columns


def _refuse_too_many(columns: Sequence[Column]) -> None:
    size = prod(declared_size(column) for column in columns)
    if size > MOST_ELEMENTS:
        names = ", ".join(column.name for column in columns)
        raise Infeasible(
            f"the declared domains of {names} have {size} cells together, and a histogram has at "
            f"most {MOST_ELEMENTS}: name fewer columns, or call small_db, which takes domains of "
            "any size. Nothing was spent."
        )
