"""A released small database: rows that answer a whole class of questions, and may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.question_class import (
    Ordered,
    QuestionClass,
    Questions,
    predicate_of,
    question_class,
)
from tacit.analyst.release_plan import ReleasePlan, ReleaseTask, plan_release
from tacit.analyst.tabular import (
    RowsChosen,
    SavedTabular,
    covers_as_json,
    covers_of_rows,
    load_json,
    plain_value,
    rows_chosen_as_json,
    rows_chosen_from_json,
    save_json,
    with_since,
    writing,
)
from tacit.arguments import function
from tacit.book.laplace import Estimate, error_steps
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.book.small_db import small_db
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import Number, probability, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Progress, check_can_plot, waiting, with_notes
from tacit.tables.engine.points import needs_chosen_points
from tacit.tables.engine.public_rows import PublicRows, rows_schema
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import EACH_ROW, Column, Schema, read_schema, write_schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine


_VERSION = 1
_THINNEST = Fraction(1, 100)  # a band that is thinner could not be seen beside the curve
_NEARLY_SURE = Fraction(999, 1000)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Recordable, SavedTabular):
    """What SmallDB released: m rows, and what is promised about them.

    All of it was paid for and is public: it may be printed, saved and published.
    """

    plan: ReleasePlan
    schema: Schema
    asked: Questions
    codes: NDArray[np.int64]
    rows_chosen: RowsChosen = "at random"
    """Which rows took part of somebody who has more than `max_rows`; 0.1 took the least."""
    off_by: Estimate | None = None
    """How far the worst answer is off, in people, with noise: the certificate if it was paid."""
    recorded: Recorded | None = None
    """If it was told again and is about an older label: since when, and which."""

    @property
    def privacy(self) -> Privacy:
        """What it cost."""
        return self.plan.cost.privacy

    @property
    def rows(self) -> int:
        """m, how many rows were released."""
        return len(self.codes)

    def guarantee(self, beta: Number = "1/20") -> Fraction | None:
        """No answer errs by more than this, except with probability β; None without people."""
        return self.plan.guarantee(beta)

    def certified(self, beta: Number = "1/20") -> Fraction | None:
        """No answer errs by more than this many people, except with probability β, as measured.

        None if no certificate was paid for.  For all questions of the class at once: `answer`
        times the number of people who take part, those with a value in every column asked about,
        is within this of the true count.  How many take part is secret; a share of them needs a
        lower bound that was paid for.  Where several rows of a person take part it counts rows.

        Accuracy: what was measured, and as much as discrete Laplace noise is below 0 with
        probability β at most.
        """
        allowed, measured = probability(beta, "beta"), self.off_by
        if measured is None:
            return None
        steps = error_steps(measured.noise_scale, min(2 * allowed, _NEARLY_SURE))  # on one side
        return max(measured.value + steps * measured.grid, Fraction(0))

    # Answering ----------------------------------------------------------------------------

    def answer(self, question: str) -> Fraction:
        """The fraction of people for whom a predicate of the class holds, such as "age <= 39"."""
        predicate = predicate_of(question, self.schema)
        if not self._class.contains(predicate):
            raise QuestionRefused(
                f"{question}\nthis release answers only {self.plan.questions}{self._class.ends}: "
                "it promises nothing about anything else"
            )
        rows = PublicRows(rows_schema(self.schema, self._class.columns), self.codes)
        return Fraction(rows.count(predicate), self.rows)

    def count(self, question: str, *, people: int | None = None) -> Fraction:
        """The answer as a number of people, out of a total that is public or was paid for."""
        total = self.plan.people if people is None else whole(people, "people")
        if total is None:
            raise BadParameter(
                "people",
                None,
                "give the number of people: a public number, or one that was paid for",
            )
        return self.answer(question) * total

    @property
    def _class(self) -> QuestionClass:
        return self.plan.question_class

    def _column_codes(self, name: str) -> list[Code]:
        """The codes of a column; for text, which is released as places among the keys, the keys."""
        (place,) = [i for i, column in enumerate(self._class.columns) if column.name == name]
        codes: list[Code] = self.codes[:, place].tolist()
        column = self._class.columns[place]
        if column.type != "text":
            return codes
        return [(column.keys or ())[code] for code in self.codes[:, place].tolist()]

    # Other forms --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows, column by column, as plain values."""
        return {
            column.name: [plain_value(column, code) for code in self._column_codes(column.name)]
            for column in self._class.columns
        }

    def plot(self, path: str | Path) -> None:
        """Plot the prefix curve, or the answers to a list of questions, into a file."""
        with writing(path):
            plot_release(self, Path(path))

    # Saving -------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `release_from_json` is the inverse."""
        fields = {
            "tacit release": _VERSION,
            "table": self.schema.name,
            "person": self.schema.person if isinstance(self.schema.person, str) else None,
            "schema": write_schema(self.schema),
            "questions": _asked_as_json(self.asked),
            "epsilon": str(self.plan.privacy.epsilon),
            "people": self.plan.people,
            "max_rows": self.plan.max_rows,
            **rows_chosen_as_json(self.rows_chosen),
            **covers_as_json(self.covers),
            **recorded_as_json(self.recorded),
            "codes": self.codes.tolist(),
        }
        if self._class.by_keys:
            fields["domains"] = "keys"
        if self.off_by is not None:
            paid = str(self.off_by.privacy.epsilon)
            fields["certificate"] = {"epsilon": paid, "off_by": str(self.off_by.value)}
        return fields

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file, which `load_release` reads."""
        save_json(self.as_json(), path)

    def __repr__(self) -> str:
        return f"<Release: {self}>"

    def __str__(self) -> str:
        promised = self.guarantee()
        bound = "" if promised is None else f", every answer within {show(promised)} (95 %)"
        if (certified := self.certified()) is not None:
            of = "people" if self.plan.max_rows == 1 else "rows"
            bound += f", measured: within {spaced(Fraction(ceil(certified)))} {of} (95 %)"
        covers = f"; {self.covers}" if self.covers else ""
        said = f"{self.rows} rows for {self.plan.questions}, {self.privacy}{bound}{covers}"
        return with_notes(with_since(said, self.recorded), self.notes)

    _under = __str__

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake in what was asked: a value that is no declared key."""
        return self._class.notes

    @property
    def covers(self) -> str:
        """How much of each person the errors are about, in words; nothing if it is all of them."""
        return covers_of_rows(self.schema, self.plan.max_rows, self.rows_chosen)


def _asked_as_json(asked: Questions) -> Any:
    if isinstance(asked, Ordered):
        return {"column": asked.column, "kind": asked.kind}
    return list(asked)


@dataclass(frozen=True)
class SmallDb:
    """A small database that answers a class of questions, for `Table.release`.

    Privacy: (ε, 0).  SmallDB is the exponential mechanism, drawn exactly.  A certificate costs its
    own ε on top: the score of the drawn rows, against the same data, with Laplace noise.
    """

    names_tables: ClassVar[tuple[str, ...]] = ()

    plan: ReleasePlan
    schema: Schema
    asked: Questions
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.progress is not None:
            function(self.progress, "progress", "give a function that takes the seconds so far")

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows, and where a person may have several a choice among them."""
        return needs_chosen_points(self.schema)

    @property
    def cost(self) -> Cost:
        """(ε, 0), as one pure part, and another for a certificate."""
        return self.plan.cost

    @property
    def what(self) -> str:
        """Which class of questions."""
        measured = "" if self.plan.certificate_epsilon is None else ", certified"
        return f"release of {self.plan.questions}{measured}"

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        plan = self.plan
        asked = {
            "small_db": _asked_as_json(self.asked),
            "epsilon": str(plan.privacy.epsilon),
            "rows": plan.rows,
            "max_rows": plan.max_rows,
        }
        if plan.certificate_epsilon is not None:
            asked["certificate_epsilon"] = str(plan.certificate_epsilon)
        return asked

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return f"SmallDB of {self.plan.rows} rows, {self.plan.certifying!r}"

    def write_release(self, released: Release) -> dict[str, Any]:
        """A release as it is kept."""
        return released.as_json()

    def read_release(self, fields: Mapping[str, Any]) -> Release:
        """The inverse of `write_release`."""
        return release_from_json(fields)

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one whose domain the questions are about."""
        refuse_other_schema(self, self.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Release:
        """Draw the rows; the plan has made sure that this takes a reasonable time."""
        questions, measuring = self.plan.question_class, self.plan.certifying
        data = questions.data(engine, self.plan.max_rows, coins)
        with waiting("drawing", self.progress) as report:
            points = small_db(
                data,
                questions.sampler,
                rows=self.plan.rows,
                epsilon=self.plan.privacy.epsilon,
                coins=coins,
                rows_per_person=self.plan.max_rows,
                progress=report,
            )
        off_by = None
        if measuring is not None:
            off_by = measuring.draw(questions.sampler.score(data, points), coins)
        frozen = self.asked if isinstance(self.asked, Ordered) else tuple(self.asked)
        codes = questions.codes(points)
        return Release(self.plan, self.schema, frozen, codes, off_by=off_by)


# Reading a saved release -------------------------------------------------------------------------


def load_release(path: str | Path) -> Release:
    """Read a saved release; a file that is not a complete one is refused."""
    return load_json(path, release_from_json, "a release")


def release_from_json(fields: Any) -> Release:
    """The inverse of `Release.as_json`; other JSON raises one of many kinds of errors."""
    if fields["tacit release"] != _VERSION:
        raise ValueError
    table, person = fields["table"], fields["person"]
    if not isinstance(table, str) or not isinstance(person, str | None):
        raise TypeError
    person = EACH_ROW if person is None else person
    schema = read_schema(fields["schema"], name=table, person=person)
    listed = fields["questions"]
    asked: Questions = Ordered(**listed) if isinstance(listed, dict) else tuple(listed)
    by_keys, people = fields.get("domains") == "keys", fields["people"]
    questions = question_class(asked, schema, stored=True, by_keys=by_keys)
    codes = _checked_codes(fields["codes"], questions.columns)
    task = ReleaseTask(
        questions,
        describe(asked),
        Privacy(fields["epsilon"]),
        None if people is None else whole(people, "people"),
        whole(fields["max_rows"], "max_rows"),
        schema,
    )
    measured = fields.get("certificate")
    extra = None if measured is None else Privacy(measured["epsilon"]).epsilon
    planned = plan_release(task, rows=len(codes), certificate_epsilon=extra)
    off_by = None if measured is None else _measured(planned, Fraction(measured["off_by"]))
    chosen, since = rows_chosen_from_json(fields), recorded_from_json(fields)
    return Release(planned, schema, asked, codes, chosen, off_by=off_by, recorded=since)


def _measured(plan: ReleasePlan, value: Fraction) -> Estimate:
    """What the certificate measured, with the noise that its plan says."""
    measuring = plan.certifying
    if measuring is None or (value / measuring.grid).denominator != 1:
        raise ValueError
    scale, grid = measuring.scale, measuring.grid
    return Estimate(value=value, noise_scale=scale, privacy=measuring.privacy, grid=grid)


def _checked_codes(rows: Any, columns: Sequence[Column]) -> NDArray[np.int64]:
    """One code for each column in each row, each of which the column can hold."""
    for row in rows:
        for code, column in zip(row, columns, strict=True):
            low, high = column.range
            if column.type == "text":
                low, high = 0, len(column.keys or ()) - 1
            if type(code) is not int or not low <= code <= high:
                raise ValueError
    return np.array(rows, np.int64)


def describe(asked: Questions) -> str:
    """The class of questions in a few words."""
    if isinstance(asked, Ordered):
        return str(asked)
    return f"{len(asked)} question" + "s" * (len(asked) != 1)


# Pictures: the prefix curve, or the answers to a list of questions --------------------------------


def plot_release(release: Release, path: Path) -> None:
    """Plot into a file, in the format that its name ends with."""
    check_can_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(release.asked, Ordered):
        _prefix_curve(release, axes)
    else:
        _answers(release, axes)
    axes.set_title(fill(str(release), 100), fontsize=9)
    figure.savefig(path, dpi=120)


def _prefix_curve(release: Release, axes: Any) -> None:
    (name, values), *_ = release.to_dict().items()
    ordered = sorted(values)
    heights = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(ordered, heights, where="post", color="tab:blue", label="released")
    error = release.guarantee()
    if error is not None and _THINNEST < error < 1:
        low = [max(height - float(error), 0) for height in heights]
        high = [min(height + float(error), 1) for height in heights]
        axes.fill_between(
            ordered, low, high, step="post", color="tab:blue", alpha=0.15, label="promised, 95 %"
        )
    axes.set(xlabel=name, ylabel=f"fraction with {name} at most this", ylim=(0, 1.02))
    axes.legend(loc="lower right")


def _answers(release: Release, axes: Any) -> None:
    texts = list(release.asked)  # type: ignore[arg-type]
    fractions = [float(release.answer(text)) for text in texts]
    axes.barh(range(len(texts)), fractions, color="tab:blue")
    axes.set_yticks(range(len(texts)), labels=texts, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="fraction of people", xlim=(0, 1))
