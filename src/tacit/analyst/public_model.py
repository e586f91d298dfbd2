"""A public model of a table: rows with weights, which any count can be asked of.

It is made of released values and public data only, so whatever is computed from it is free.  When
something was measured about the table, the weights are fitted to it.  Weights are whole numbers of
2^(−20) people, held in floats: their sums stay below 2^53 and are exact, and every other operation
is a single one, so that a model is rebuilt exactly from what is on record, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.histogram import Histogram
from tacit.analyst.release import Release
from tacit.analyst.synthetic import Synthetic
from tacit.arguments import kind_of
from tacit.errors import BadParameter, Infeasible, QuestionRefused
from tacit.tables.held_rows import PublicRows, rows_engine, rows_schema
from tacit.tables.loading import load
from tacit.tables.question import People, Predicate, Rows
from tacit.tables.schema import EACH_ROW, Column, Schema
from tacit.tables.universe import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.tables.prepared import Read

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


class PublicModel:
    """Rows with weights; `learn` fits them to what was measured."""

    def __init__(self, rows: ModelRows) -> None:
        self._engine: PublicRows = rows_engine(rows.schema, rows.codes)
        self._filled = np.arange(self._engine.slots) < len(rows.people)
        self._measured: list[tuple[NDArray[np.bool_], int]] = []
        weights = np.zeros(self._engine.slots)
        weights[: len(rows.people)] = np.rint(rows.people * _UNIT)
        self._put(weights)

    def _put(self, weights: Floats) -> None:
        """Take these weights, and find for each four slots the sum of any of them."""
        self._weights = weights
        four = weights.reshape(-1, 4)
        chosen = (np.arange(16)[:, np.newaxis] >> np.arange(4)) & 1
        sums = np.zeros((len(four), 16))
        for place in range(4):
            sums += four[:, place, np.newaxis] * chosen[:, place]
        self._sums = sums.ravel()
        self._low = np.arange(0, len(sums), 2) * 16

    @property
    def schema(self) -> Schema:
        """Of the rows."""
        return self._engine.schema

    def where(self, read: Read) -> Predicate:
        """What a count of people counts; whatever the model cannot answer is refused."""
        question = read.question
        term = question.terms[0]
        counts = isinstance(term, People) or (isinstance(term, Rows) and term.most == 1)
        if len(question.terms) > 1 or not counts or question.promise.steps != (1,):
            raise QuestionRefused(
                f"{read.text}\na watched model answers counts of people, such as age >= 60"
            )
        unknown = sorted(
            name for name in set(columns_of(term.where)) if self.schema.find(name) is None
        )
        if unknown:
            known = ", ".join(column.name for column in self.schema.columns)
            raise QuestionRefused(
                f"{read.text}\nthe model knows nothing about {', '.join(unknown)}: it has {known}"
            )
        return term.where

    def count(self, where: Predicate) -> int:
        """About how many people satisfy a predicate."""
        eight = self._engine.packed(where).view(np.uint8)
        some = np.flatnonzero(eight)
        eight, at = eight[some], self._low[some]
        low, high = at + (eight & 15), at + 16 + (eight >> 4)
        return round(float(self._sums[low].sum() + self._sums[high].sum()) / _UNIT)

    def learn(self, where: Predicate, people: int) -> None:
        """Fit the weights to a measured count, and to all that were measured before."""
        self._measured.append((self._engine.matches(where), people))
        for _ in range(_SWEEPS):
            for inside, counted in self._measured:
                self._scale(inside, counted)
        self._put(self._weights)

    def _scale(self, inside: NDArray[np.bool_], people: int) -> None:
        """Scale those inside to a count, and the others so that the total stays."""
        total, now = float(self._weights.sum()), self._inside(inside)
        wanted = float(min(max(people, 0), _MOST_PEOPLE) * _UNIT)
        outside = self._filled & ~inside
        if not inside.any():
            return
        scaled = self._weights * np.where(inside, _factor(wanted, now), 1.0)
        if outside.any():
            scaled = scaled * np.where(outside, _factor(total - wanted, total - now), 1.0)
        # A row keeps at least a millionth of a person, so that it can come back.
        self._weights = np.where(self._filled, np.maximum(np.rint(scaled), 1.0), 0.0)

    def _inside(self, inside: NDArray[np.bool_]) -> float:
        return float(np.add.reduce(self._weights, where=inside))


def _factor(wanted: float, now: float) -> float:
    if now <= 0:
        return _MOST_FACTOR
    return min(max(wanted / now, _LEAST_FACTOR), _MOST_FACTOR)


# Where models come from ---------------------------------------------------------------------------


def model_rows(model: Any, schema: Schema, people: int | None) -> ModelRows:
    """The rows of a release of ours, or of a public frame or file with the table's columns."""
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
    codes = np.array(
        [
            [
                (column.keys or ()).index(code) if column.type == "text" else code
                for column, code in zip(model.columns, cell, strict=True)
            ]
            for cell in model.cells
        ],
        np.int64,
    )
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
            codes = engine.points([column.name for column in columns])
    except BadParameter as wrong:
        if wrong.parameter != "source":
            raise
        raise BadParameter("model", kind_of(frame), f"a release, or {wrong.allowed}") from None
    if len(codes) == 0:
        raise BadParameter("model", kind_of(frame), "it has no row with a value in every column")
    return ModelRows(public, codes, np.full(len(codes), _known(people) / len(codes)))


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
