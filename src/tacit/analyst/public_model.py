"""A public model of a table: rows with weights, which any count can be asked of.

It is made of released values and public data only, so whatever is computed from it is free.  When
something was measured about the table, the weights are fitted to it.  Weights are whole numbers of
2^(−20) people, held in floats: their sums stay below 2^53 and are exact, and every other operation
is a single one, so that a model is rebuilt exactly from what is on record, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.histogram import Histogram
from tacit.analyst.release import Release
from tacit.analyst.synthetic import Synthetic
from tacit.arguments import kind_of
from tacit.errors import BadParameter, Infeasible, QuestionRefused
from tacit.tables.engine.public_rows import PublicRows, cell_codes, rows_schema
from tacit.tables.engine.universe import columns_of
from tacit.tables.language.tree import And, People, Predicate, Range, Rows
from tacit.tables.opening import load
from tacit.tables.schema.schema import EACH_ROW, Column, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.tables.language.prepared import Read

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

_UNIT = 1 << 20
_MOST_PEOPLE = 1 << 32  # so that sums of weights are exact
_SWEEPS = 6
_LEAST_FACTOR, _MOST_FACTOR = 0.05, 20.0


@dataclass(frozen=True, eq=False)
class ModelRows:
    """What a model starts from: rows of codes, and how many people each stands for."""

    schema: Schema  # of the rows: each is a person
    codes: Codes
    people: Floats

    def __post_init__(self) -> None:
        if len(self.codes) == 0 or not self.people.sum() > 0:
            raise BadParameter("model", "no rows", "give a model with somebody in it")
        if self.people.sum() > _MOST_PEOPLE:
            raise Infeasible(f"a model stands for at most {_MOST_PEOPLE} people")

    @property
    def digest(self) -> str:
        """A hash of all of it."""
        found = sha256(self.schema.digest.encode())
        found.update(np.ascontiguousarray(self.codes).tobytes())
        found.update(self.people.tobytes())
        return found.hexdigest()


class Counting(Protocol):
    """How many people some weights say satisfy a predicate, in units of a weight."""

    def units(self, where: Predicate) -> int:
        """Their sum, exactly."""


class ByWeight:
    """Rows of the same weight lie together, in words of their own: their bits are counted."""

    def __init__(self, rows: ModelRows, weights: Floats) -> None:
        values, of_row, counts = np.unique(weights, return_inverse=True, return_counts=True)
        words = -(-counts // 64)
        self._starts = np.cumsum(words) - words
        rank = np.empty(len(weights), np.int64)
        order = np.argsort(of_row, kind="stable")
        rank[order] = np.arange(len(weights)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._engine = PublicRows(rows.schema, rows.codes, self._starts[of_row] * 64 + rank)
        self._weights = values.astype(np.int64)
        self._one_weight = int(values[0]) if len(values) == 1 else None

    @staticmethod
    def suits(weights: Floats) -> bool:
        """Whether few enough weights differ that the rows would take about as much room."""
        return len(np.unique(weights)) * 64 <= 2 * len(weights) + 64

    def units(self, where: Predicate) -> int:
        """Their sum, exactly."""
        if self._one_weight is not None:
            return self._engine.count(where) * self._one_weight
        ones = np.bitwise_count(self._engine.packed(where))
        return int(np.add.reduceat(ones, self._starts, dtype=np.int64) @ self._weights)


class ByRow:
    """Each row has a weight of its own: for each four slots, the sum of any of them is known."""

    def __init__(self, rows: ModelRows, weights: Floats) -> None:
        self._engine = PublicRows(rows.schema, rows.codes)
        padded = np.zeros(self._engine.slots)
        padded[: len(weights)] = weights
        four = padded.reshape(-1, 4)
        chosen = (np.arange(16)[:, np.newaxis] >> np.arange(4)) & 1
        sums = np.zeros((len(four), 16))
        for place in range(4):
            sums += four[:, place, np.newaxis] * chosen[:, place]
        self._sums = sums.ravel()
        self._low = np.arange(0, len(sums), 2) * 16

    def units(self, where: Predicate) -> int:
        """Their sum, exactly."""
        eight = self._engine.packed(where).view(np.uint8)
        some = np.flatnonzero(eight)
        eight, at = eight[some], self._low[some]
        low, high = at + (eight & 15), at + 16 + (eight >> 4)
        return int(self._sums[low].sum() + self._sums[high].sum())


class PublicModel:
    """Rows with weights; `learn` fits them to what was measured."""

    def __init__(self, rows: ModelRows) -> None:
        self._rows = rows
        self._engine = PublicRows(rows.schema, rows.codes)
        self._names = frozenset(column.name for column in rows.schema.columns)
        self._measured: list[tuple[NDArray[np.bool_], int]] = []
        self._weights: Floats = np.rint(rows.people * _UNIT)
        self._counting: tuple[Floats, Counting] | None = None  # made when these weights are asked

    @property
    def schema(self) -> Schema:
        """Of the rows."""
        return self._rows.schema

    def where(self, read: Read) -> Predicate:
        """What a count of people counts; whatever the model cannot answer is refused."""
        question = read.question
        term = question.terms[0]
        counts = isinstance(term, People) or (isinstance(term, Rows) and term.most == 1)
        plain = question.promise.steps == (1,) and not question.promise.names_people
        if len(question.terms) > 1 or not counts or not plain:
            raise QuestionRefused(
                f"{read.text}\na watched model answers counts of people, such as age >= 60"
            )
        if not self._has_columns_of(term.where):
            unknown = sorted(set(columns_of(term.where)) - self._names)
            known = ", ".join(column.name for column in self.schema.columns)
            raise QuestionRefused(
                f"{read.text}\nthe model knows nothing about {', '.join(unknown)}: it has {known}"
            )
        return term.where

    def _has_columns_of(self, where: Predicate) -> bool:
        for part in where.parts if type(where) is And else (where,):
            if type(part) is Range:  # by far most often
                if part.column not in self._names:
                    return False
            elif not self._names.issuperset(columns_of(part)):
                return False
        return True

    def count(self, where: Predicate) -> int:
        """About how many people satisfy a predicate."""
        weights, kept = self._weights, self._counting
        if kept is None or kept[0] is not weights:
            counting = ByWeight if ByWeight.suits(weights) else ByRow
            self._counting = kept = weights, counting(self._rows, weights)
        return round(kept[1].units(where) / _UNIT)

    def learn(self, where: Predicate, people: int) -> None:
        """Fit the weights to a measured count, and to all that were measured before."""
        weights = self._weights
        self._measured.append((self._engine.matches(where), people))
        for _ in range(_SWEEPS):
            for inside, counted in self._measured:
                if inside.any():
                    weights = _scaled(weights, inside, counted)
        self._weights = weights


def _scaled(weights: Floats, inside: NDArray[np.bool_], people: int) -> Floats:
    """Scale those inside to a count, and the others so that the total stays."""
    total, now = float(weights.sum()), float(weights[inside].sum())
    wanted = float(min(max(people, 0), _MOST_PEOPLE) * _UNIT)
    scaled = weights * np.where(inside, _factor(wanted, now), 1.0)
    if not inside.all():
        scaled = scaled * np.where(inside, 1.0, _factor(total - wanted, total - now))
    # A row keeps at least a millionth of a person, so that it can come back.
    return np.maximum(np.rint(scaled), 1.0)


def _factor(wanted: float, now: float) -> float:
    if now <= 0:
        return _MOST_FACTOR
    return min(max(wanted / now, _LEAST_FACTOR), _MOST_FACTOR)


# Where models come from ---------------------------------------------------------------------------


def model_rows(model: Any, schema: Schema, people: int | None) -> ModelRows:
    """The rows of a release of ours, or of a public frame or file with the table's columns."""
    if isinstance(model, ModelRows):
        return model
    if isinstance(model, Synthetic):
        columns = [column.column for column in model.plan.columns]
        each = np.full(len(model), model.people / len(model))
        return ModelRows(rows_schema(model.schema, columns), model.codes, each)
    if isinstance(model, Histogram):
        return _of_histogram(model)
    if isinstance(model, Release):
        total = model.plan.people if people is None else people
        return ModelRows(
            rows_schema(model.schema, list(model.plan.question_class.columns)),
            model.codes,
            np.full(model.rows, _known(total) / model.rows),
        )
    if isinstance(model, str) and "." not in model:
        raise BadParameter(
            "model",
            model,
            "give 'synthetic', 'independent', a release, or a public frame or file",
        )
    return _of_frame(model, schema, people)


def _known(people: int | None) -> int:
    if people is None:
        raise BadParameter(
            "people", None, "open the table with people=..., so that rows stand for people"
        )
    return people


def _of_histogram(model: Histogram) -> ModelRows:
    codes = cell_codes(model.columns, model.cells)
    people = np.maximum(model.counts, 0).astype(np.float64)
    return ModelRows(rows_schema(model.schema, list(model.columns)), codes, people)


def _of_frame(frame: Any, schema: Schema, people: int | None) -> ModelRows:
    """A public table with the same columns, each row as many people as the public number says."""
    columns = _declared(schema)
    if not columns:
        raise BadParameter(
            "model", kind_of(frame), "the table has no column with a declared domain"
        )
    public = Schema(schema.name, EACH_ROW, tuple(columns))
    try:
        with load(frame, person=EACH_ROW, name=schema.name, schema=public) as engine:
            codes = engine.point_counts([column.name for column in columns]).rows()
    except BadParameter as wrong:
        if wrong.parameter != "source":
            raise
        raise BadParameter("model", kind_of(frame), f"a release, or {wrong.allowed}") from None
    if len(codes) == 0:
        raise BadParameter("model", kind_of(frame), "it has no row with a value in every column")
    return ModelRows(public, codes, np.full(len(codes), _known(people) / len(codes)))


def rows_of_codes(
    schema: Schema,
    columns: Sequence[str],
    codes: Sequence[Sequence[int]],
    people: Sequence[float],
) -> ModelRows:
    """Rows that somebody sent: of declared columns, in declared values; of text, places of keys."""
    names = {column.name: column for column in _declared(schema)}
    if len(set(columns)) < len(columns) or not names.keys() >= set(columns) or not columns:
        raise BadParameter("model", "its columns", f"they must be some of {', '.join(names)}")
    found = [names[name] for name in columns]
    if any(len(row) != len(found) for row in codes) or len(people) != len(codes):
        raise BadParameter("model", "its rows", "each has a code for each column, and a weight")
    if not all(0 <= each <= _MOST_PEOPLE for each in people):
        raise BadParameter("model", "a weight", f"a row stands for 0 to {_MOST_PEOPLE} people")
    for place, column in enumerate(found):
        domain = column.domain or ()
        allowed = range(len(domain)) if column.type == "text" else domain
        known = allowed if isinstance(allowed, range) else frozenset(allowed)
        if not all(row[place] in known for row in codes):
            raise BadParameter("model", f"a code of {column.name}", "it must be a declared value")
    held = np.array(codes, np.int64).reshape(len(codes), len(found))
    return ModelRows(rows_schema(schema, found), held, np.array(people, np.float64))


def _declared(schema: Schema) -> Sequence[Column]:
    """The columns of a table that a model has: those whose values are declared."""
    return [
        column
        for column in schema.columns
        if column.domain is not None and column.name != schema.person
    ]


def declared_names(schema: Schema) -> list[str]:
    """Their names."""
    return [column.name for column in _declared(schema)]
