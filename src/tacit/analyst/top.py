"""The largest cells of a GROUP BY, or of a list of questions, in the order of draw."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.analyst.alternatives import Alternative, Comparison
from tacit.analyst.alternatives import lines as as_lines
from tacit.analyst.history import covers_of_all
from tacit.analyst.noted import notes_of_all
from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.tabular import (
    Tabular,
    covers_as_json,
    load_json,
    notes_as_json,
    notes_from_json,
    plain_value,
    save_json,
    with_facts,
    with_intervals,
)
from tacit.book.coins import clamped
from tacit.book.laplace import Estimate, error_steps
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.book.top import TopMechanism
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import Number, as_given, exact, positive, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Printed
from tacit.tables.language.keys import NO_KEYS, KeySet
from tacit.tables.language.prepared import (
    Askable,
    AskableWithValues,
    CellReads,
    Read,
    Reader,
    representatives,
)
from tacit.tables.language.question_key import keys_of_cells, question_key
from tacit.tables.language.tree import tables_named
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import EACH_ROW, Schema, read_schema, write_schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine

_VERSION = 1
_WIDEST_NOISE = 2**200


# What is asked -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """The questions among which the largest are looked for: counts on one grid."""

    schema: Schema
    reads: Sequence[Read]

    @classmethod
    def of(
        cls,
        reader: Reader,
        schema: Schema,
        questions: Askable | Iterable[AskableWithValues],
        parameters: Mapping[str, object],
        max_rows: int | None = None,
    ) -> Contest:
        """Read them; what adding a person may lower is refused."""
        reads = reader.read_all(questions, parameters, max_rows)
        if len(reads) < 2:
            raise BadParameter("questions", "one question", "give a GROUP BY, or a list of several")
        for read in representatives(reads):
            if read.question.direction != 1:
                raise QuestionRefused(
                    f"{read.text}\nadding a person may lower it: top compares counts, which adding "
                    "a person never lowers"
                )
        if len({read.question.grid for read in representatives(reads)}) > 1:
            raise QuestionRefused(
                "all questions of a top must have the same grid: compare counts with counts"
            )
        return cls(schema, reads)

    @property
    def keys(self) -> KeySet:
        """Those of a GROUP BY; none if it is a list of questions."""
        return self.reads.batch.keys if isinstance(self.reads, CellReads) else NO_KEYS

    @property
    def question_keys(self) -> list[str]:
        """Under which the questions would be on record, without a label."""
        if isinstance(self.reads, CellReads):
            places = self.reads.places
            return list(keys_of_cells(question_key, self.reads.batch, places, None, None))
        return [question_key(read.question, None, None) for read in self.reads]

    def values(self, engine: Engine) -> Sequence[int]:
        """The true answers, in steps.  They are secret."""
        if isinstance(self.reads, CellReads):
            counts: list[int] = engine.cell_values(self.reads.batch).tolist()
            return counts
        return engine.values([read.question for read in self.reads])

    @property
    def grid(self) -> Fraction:
        """What all answers are multiples of."""
        return self.reads[0].question.grid

    @property
    def sensitivity(self) -> int:
        """How much one person may change any of them, in steps of the grid."""
        return ceil(
            max(read.question.sensitivity for read in representatives(self.reads)) / self.grid
        )

    @property
    def disjoint(self) -> bool:
        """Whether a person can be in one of them only: cells of a GROUP BY, one row a person."""
        return bool(self.keys) and self.schema.person is EACH_ROW

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake, though it can be asked: a value that is no declared key."""
        return notes_of_all(self.reads)

    @property
    def names_tables(self) -> frozenset[str]:
        """The other tables in any of the questions."""
        return tables_named(
            term for read in representatives(self.reads) for term in read.question.terms
        )

    @property
    def covers(self) -> str:
        """How much of each person the counts are about: of all questions, not of those drawn."""
        return covers_of_all(self.reads)

    @property
    def described(self) -> str:
        """In a few words."""
        if self.keys:
            return f"{len(self.reads)} cells of {', '.join(self.keys.names)}"
        return f"{len(self.reads)} questions"


# What is released --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Top(Recordable, Tabular):
    """The largest, in the order in which they were drawn; with a noisy count each if paid for.

    Everything here was paid for and is public: it may be printed, saved and published.
    """

    schema: Schema
    questions: tuple[str, ...]
    columns: KeySet
    cells: tuple[tuple[Code, ...], ...]
    privacy: Privacy
    counts: tuple[Estimate, ...] | None
    notes: tuple[str, ...] = ()
    """What may be a mistake in what was asked: a value that is no declared key."""
    recorded: Recorded | None = field(default=None, compare=False)
    """If it was told again and is about an older label: since when, and which."""

    def __len__(self) -> int:
        return len(self.questions)

    def to_dict(self) -> dict[str, list[Any]]:
        """The cells, or the questions, and the counts if there are any, with what they cover."""
        shown = self.keys
        if self.counts is None:
            return with_facts(shown, "", self.recorded)
        name = "count"
        while name in shown:
            name += "_"
        told = {**shown, name: [float(each.value) for each in self.counts]}
        ends = [each.interval() for each in self.counts]
        return with_facts(with_intervals(told, {name: ends}), self.covers, self.recorded)

    @property
    def covers(self) -> str:
        """How much of each person the counts are about, in words; nothing if it is all of them."""
        return self.counts[0].covers if self.counts else ""

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `top_from_json` is the inverse."""
        person, counts = self.schema.person, self.counts
        fields = {
            "tacit top": _VERSION,
            "table": self.schema.name,
            "person": person if isinstance(person, str) else None,
            "schema": write_schema(self.schema),
            "questions": list(self.questions),
            "columns": self.columns.as_json(),
            "cells": [list(cell) for cell in self.cells],
            "epsilon": str(self.privacy.epsilon),
            "delta": str(self.privacy.delta),
        }
        if counts:
            fields["counts"] = [str(each.value) for each in counts]
            fields["counts_epsilon"] = str(counts[0].privacy.epsilon)
            fields["noise_scale"] = str(counts[0].noise_scale)
            fields["grid"] = str(counts[0].grid)
            fields |= covers_as_json(self.covers)
        return fields | notes_as_json(self.notes) | recorded_as_json(self.recorded)

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file, which `load_top` reads."""
        save_json(self.as_json(), path)

    def __repr__(self) -> str:
        return f"<Top {len(self)}, {self.privacy}>"

    def __str__(self) -> str:
        return "\n".join(filter(None, [*self.lines, self._under()]))

    @property
    def lines(self) -> list[str]:
        """What was drawn, one after another, with its count if that was paid for."""
        named = [", ".join(map(str, row)) for row in zip(*self.keys.values(), strict=True)]
        if self.counts is not None:
            named = [f"{name}: {count}" for name, count in zip(named, self.counts, strict=True)]
        return [f"{place}. {name}" for place, name in enumerate(named, start=1)]

    def _under(self) -> str:
        since = [] if self.recorded is None else [str(self.recorded)]
        return "; ".join([*since, *(f"note: {each}" for each in self.notes)])

    @property
    def keys(self) -> dict[str, list[Any]]:
        """The cells, or the questions."""
        shown: dict[str, list[Any]] = {
            key.name: [plain_value(key.gives, cell[place]) for cell in self.cells]
            for place, key in enumerate(self.columns)
        }
        return shown or {"question": list(self.questions)}


# What it will be like, before it is paid ----------------------------------------------------------


@dataclass(frozen=True)
class TopPlan(Printed):
    """How far the drawn ones may be from the largest, said before it is paid."""

    contest: Contest
    mechanism: TopMechanism
    counts_epsilon: Fraction | None

    @property
    def cost(self) -> Cost:
        """The draws, and the counts on top."""
        drawn, extra = self.mechanism.cost, self.counts_epsilon
        return drawn if extra is None else drawn + Cost.pure(extra)

    def alpha(self, beta: Number = "1/20") -> Fraction:
        """Each one drawn is at most this far below the largest left, but with probability β."""
        return self.mechanism.alpha_steps(len(self.contest.reads), beta) * self.contest.grid

    @property
    def noise_scale(self) -> Fraction | None:
        """Of the counts, in steps: a person may be in as many of the n as they are in cells."""
        if self.counts_epsilon is None:
            return None
        overlapping = 1 if self.contest.disjoint else self.mechanism.places
        return overlapping * self.contest.sensitivity / self.counts_epsilon

    def error(self, beta: Number = "1/20") -> Fraction | None:
        """How far a noisy count may be off, except with probability β; None without counts."""
        scale = self.noise_scale
        return None if scale is None else error_steps(scale, beta) * self.contest.grid

    def __str__(self) -> str:
        drawn, asked = self.mechanism, self.contest
        lines = [
            f"Top {drawn.places} of {asked.described}, {self.cost.privacy}",
            f"  draws     ε₀ = {show(drawn.epsilon_each)} each",
            f"  error     each is at most {spaced(self.alpha())} below the largest left (95 %)",
        ]
        if (error := self.error()) is not None:
            lines.append(f"  counts    ± {spaced(error)} each (95 %)")
        lines += [f"  note      {note}" for note in asked.notes]
        # The largest of counts that are off by e each are at most 2e below the largest.
        return "\n".join([*lines, *as_lines(self.alternatives, self.alpha() / 2)])

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        asked, places = self.contest, self.mechanism.places
        others = Comparison(asked.schema, self.cost.privacy.epsilon)
        if asked.keys:
            return others.for_cells(asked.keys.columns, tops=places, but="top")
        return others.for_list(len(asked.reads), tops=places, but="top")


def plan_top(
    places: int,
    contest: Contest,
    *,
    epsilon: Number,
    delta: Number,
    counts_epsilon: Number | None,
) -> TopPlan:
    """Refuse, at no cost, what cannot be drawn."""
    count = whole(places, "n")
    if count > len(contest.reads):
        raise BadParameter("n", as_given(places), f"there are only {contest.described}")
    extra = None if counts_epsilon is None else positive(counts_epsilon, "counts_epsilon")
    plan = TopPlan(
        contest, TopMechanism(count, Privacy(epsilon, delta), contest.sensitivity), extra
    )
    if (scale := plan.noise_scale) is not None and scale > _WIDEST_NOISE:
        raise BadParameter(
            "counts_epsilon",
            as_given(counts_epsilon),
            "noise would be wider than 2^200 grid steps: give more",
        )
    return plan


@dataclass(frozen=True)
class NoisyTop:
    """The n largest of some counts, for `Table.release`.

    Privacy: (ε, δ) for the draws (`TopMechanism`), and (ε₂, 0) for the counts: those of n questions
    that are already public change by at most nΔ in all, or Δ where a person is in one of them.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    plan: TopPlan

    @property
    def cost(self) -> Cost:
        """The draws, and the counts on top."""
        return self.plan.cost

    @property
    def what(self) -> str:
        """How many of which."""
        return f"top {self.plan.mechanism.places} of {self.plan.contest.described}"

    @property
    def names_tables(self) -> frozenset[str]:
        """The other tables in any of the questions, drawn or not."""
        return self.plan.contest.names_tables

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        asked, drawn, extra = self.plan.contest, self.plan.mechanism, self.plan.counts_epsilon
        return {
            "top": drawn.places,
            "questions": asked.question_keys,
            "columns": list(asked.keys.names),
            "epsilon": str(drawn.privacy.epsilon),
            "delta": str(drawn.privacy.delta),
            "counts_epsilon": None if extra is None else str(extra),
        }

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        counted = self.plan.noise_scale
        return f"{self.plan.mechanism!r}, Laplace noise of scale {counted} on counts"

    def write_release(self, released: Top) -> dict[str, Any]:
        """As it is kept, with room for the longest that could have been drawn.

        Which were drawn would show in its length, and it may be drawn again under the same charge.
        """
        from tacit.budget.answers import room_of

        def taken(part: object) -> int:
            return room_of(json.dumps(part))

        asked = self.plan.contest
        texts = max(taken(read.text) for read in asked.reads)
        cells = taken(asked.keys.longest(taken)) if asked.keys else 0
        used = sum(taken(part) for part in (*released.questions, *released.cells))
        room = " " * (len(released) * (texts + cells) - used)
        return {**released.as_json(), "room": room}

    def read_release(self, fields: Mapping[str, Any]) -> Top:
        """The inverse of `write_release`."""
        return top_from_json(fields)

    def check(self, schema: Schema) -> None:
        """The questions belong to this very table."""
        refuse_other_schema(self, self.plan.contest.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Top:
        """Answer all questions, draw the largest, and add noise to their counts."""
        asked = self.plan.contest
        values = asked.values(engine)
        steps = np.array([clamped(value) for value in values], np.int64)
        drawn = self.plan.mechanism.draw(steps, coins)
        counts = None
        if self.plan.counts_epsilon is not None:
            counts = tuple(self._noisy([values[place] for place in drawn], coins))
        reads = [asked.reads[place] for place in drawn]
        return Top(
            asked.schema,
            tuple(read.text for read in reads),
            asked.keys,
            tuple(read.codes for read in reads) if asked.keys else (),
            privacy=self.cost.privacy,
            counts=counts,
            notes=asked.notes,
        )

    def _noisy(self, values: Sequence[int], coins: Coins) -> Iterable[Estimate]:
        scale, extra, asked = self.plan.noise_scale, self.plan.counts_epsilon, self.plan.contest
        assert scale is not None
        assert extra is not None
        for value in values:
            yield Estimate(
                value=(value + coins.laplace(scale)) * asked.grid,
                noise_scale=scale,
                privacy=Privacy(extra),
                grid=asked.grid,
                covers=asked.covers,
            )


# Reading a saved one ------------------------------------------------------------------------------


def load_top(path: str | Path) -> Top:
    """Read what `Top.save` wrote; a file that is not a complete one is refused."""
    return load_json(path, top_from_json, "a top")


def top_from_json(fields: Any) -> Top:
    """What `Top.as_json` wrote; anything else raises one of many errors."""
    if fields["tacit top"] != _VERSION:
        raise ValueError
    table, person = fields["table"], fields["person"]
    if not isinstance(table, str) or not isinstance(person, str | None):
        raise TypeError
    schema = read_schema(
        fields["schema"], name=table, person=EACH_ROW if person is None else person
    )
    texts = tuple(fields["questions"])
    if not texts or not all(isinstance(text, str) for text in texts):
        raise TypeError
    keys = KeySet.from_json(fields["columns"], schema)
    cells = tuple(tuple(cell) for cell in fields["cells"])
    for cell in cells:
        keys.place(cell)  # or it raises an error
    if len(cells) != (len(texts) if keys else 0):
        raise ValueError
    privacy = Privacy(fields["epsilon"], fields["delta"])
    return Top(
        schema,
        texts,
        keys,
        cells,
        privacy=privacy,
        counts=_read_counts(fields, len(texts)),
        notes=notes_from_json(fields),
        recorded=recorded_from_json(fields),
    )


def _read_counts(fields: Any, places: int) -> tuple[Estimate, ...] | None:
    if "counts" not in fields:
        return None
    scale, grid = positive(fields["noise_scale"], "noise_scale"), positive(fields["grid"], "grid")
    if len(fields["counts"]) != places or scale > _WIDEST_NOISE:
        raise ValueError
    said: dict[str, Any] = {
        "noise_scale": scale,
        "privacy": Privacy(fields["counts_epsilon"]),
        "grid": grid,
        "covers": fields.get("covers", ""),
    }
    return tuple(Estimate(value=exact(count, "counts"), **said) for count in fields["counts"])
