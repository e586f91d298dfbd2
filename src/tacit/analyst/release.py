"""A released small database: rows that answer a whole class of questions, and may be published."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.question_class import (
    Ordered,
    QuestionClass,
    Questions,
    predicate_of,
    question_class,
)
from tacit.analyst.release_plan import ReleasePlan, plan_release
from tacit.analyst.shapes import Shapes, plain_value, writing
from tacit.arguments import file_path
from tacit.book.small_db import small_db
from tacit.errors import BadParameter, QuestionRefused, TacitError
from tacit.privacy import Cost, Number, Privacy, show, whole
from tacit.support import check_can_draw, waiting
from tacit.tables.codes import Code
from tacit.tables.schema import EACH_ROW, Column, Schema, read_schema, write_schema
from tacit.tables.universe import columns_of, holds

if TYPE_CHECKING:
    from tacit.analyst.table import Table
    from tacit.budget import Budget


_VERSION = 1


@dataclass(frozen=True, repr=False)
class Release(Shapes):
    """What SmallDB released: m rows, and what is promised about them.

    Everything here was paid for and is public: it may be printed, saved and published.
    """

    plan: ReleasePlan
    schema: Schema
    asked: Questions
    codes: NDArray[np.int64]

    @property
    def privacy(self) -> Privacy:
        """What it cost."""
        return self.plan.privacy

    @property
    def rows(self) -> int:
        """m, how many rows were released."""
        return len(self.codes)

    def guarantee(self, beta: Number = "1/20") -> Fraction | None:
        """The error that all answers keep to, except with probability β; see the plan."""
        return self.plan.guarantee(beta)

    # Answering ----------------------------------------------------------------------------

    def answer(self, question: str) -> Fraction:
        """The fraction of people for whom a predicate of the class holds, such as "age <= 39"."""
        predicate = predicate_of(question, self.schema)
        if not self._class.contains(predicate):
            raise QuestionRefused(
                f"{question}\nthis release answers {self.plan.questions} only{self._class.ends}: "
                "about anything else nothing is promised"
            )
        values = {name: self._column_codes(name) for name in set(columns_of(predicate))}
        return Fraction(int(holds(predicate, values, self.rows, self.schema).sum()), self.rows)

    def count(self, question: str, *, people: int | None = None) -> Fraction:
        """The same as a number of people, out of a public or a paid total."""
        total = self.plan.people if people is None else whole(people, "people")
        if total is None:
            raise BadParameter("people", None, "say how many there are: a public or a paid number")
        return self.answer(question) * total

    @property
    def _class(self) -> QuestionClass:
        return self.plan.question_class

    def _column_codes(self, name: str) -> list[Code]:
        """A column's codes; for text, released as places among the keys, the keys themselves."""
        (place,) = [i for i, column in enumerate(self._class.columns) if column.name == name]
        codes: list[Code] = self.codes[:, place].tolist()
        column = self._class.columns[place]
        if column.type != "text":
            return codes
        return [(column.keys or ())[code] for code in self.codes[:, place].tolist()]

    # Other shapes -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows, column by column, as plain values."""
        return {
            column.name: [plain_value(column, code) for code in self._column_codes(column.name)]
            for column in self._class.columns
        }

    def plot(self, path: str | Path) -> None:
        """Draw the prefix curve, or for a list of questions their answers, to a file."""
        from tacit.analyst.release import plot_release

        with writing(path):
            plot_release(self, Path(path))

    # Keeping it ---------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `release_from_json` is the inverse."""
        asked = (
            {"column": self.asked.column, "kind": self.asked.kind}
            if isinstance(self.asked, Ordered)
            else list(self.asked)
        )
        return {
            "tacit release": _VERSION,
            "table": self.schema.name,
            "person": self.schema.person if isinstance(self.schema.person, str) else None,
            "schema": write_schema(self.schema),
            "questions": asked,
            "epsilon": str(self.privacy.epsilon),
            "people": self.plan.people,
            "max_rows": self.plan.max_rows,
            "codes": self.codes.tolist(),
        }

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file; `load_release` reads it again."""
        with writing(path):
            Path(path).write_text(json.dumps(self.as_json(), indent=1), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Release: {self}>"

    def __str__(self) -> str:
        promised = self.guarantee()
        bound = "" if promised is None else f", every answer within {show(promised)} (95 %)"
        return f"{self.rows} rows for {self.plan.questions}, {self.privacy}{bound}"


def load_release(path: str | Path) -> Release:
    """Read a saved release; a file that is not one, or not a whole one, is refused."""
    file = file_path(path, "path")
    try:
        return release_from_json(json.loads(file.read_bytes()))
    except OSError as error:
        raise BadParameter("path", str(path), f"it cannot be read: {error.strerror}") from None
    except (TacitError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise BadParameter("path", str(path), "it is not a release saved by this version") from None


def release_from_json(fields: Any) -> Release:
    """What `Release.as_json` wrote; anything else raises one of many errors."""
    if fields["tacit release"] != _VERSION:
        raise ValueError
    table, person = fields["table"], fields["person"]
    if not isinstance(table, str) or not isinstance(person, str | None):
        raise TypeError
    person = EACH_ROW if person is None else person
    schema = read_schema(fields["schema"], name=table, person=person)
    listed = fields["questions"]
    asked: Questions = Ordered(**listed) if isinstance(listed, dict) else tuple(listed)
    questions, people = question_class(asked, schema, stored=True), fields["people"]
    codes = _checked_codes(fields["codes"], questions.columns)
    planned = plan_release(
        questions,
        describe(asked),
        epsilon=fields["epsilon"],
        alpha=None,
        rows=len(codes),
        people=None if people is None else whole(people, "people"),
        max_rows=whole(fields["max_rows"], "max_rows"),
    )
    return Release(planned, schema, asked, codes)


def _checked_codes(rows: Any, columns: Sequence[Column]) -> NDArray[np.int64]:
    """One code for each column in each row, such as the column can hold."""
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


def draw_release(
    table: Table,
    asked: Questions,
    planned: ReleasePlan,
    *,
    budget: Budget,
    analyst: str | None,
    progress: Callable[[float], None] | None,
) -> Release:
    """Pay, then draw: once it is paid, it always finishes.

    Privacy: (ε, 0).  SmallDB is the exponential mechanism, drawn exactly.
    """
    questions = planned.question_class
    budget.charge(
        Cost.pure(planned.privacy.epsilon),
        table=table.name,
        what=f"release of {planned.questions}",
        analyst=analyst,
        identity=table.identity,
    )
    with waiting("drawing", progress) as tell:
        points = small_db(
            questions.data(table.engine, planned.max_rows),
            questions.sampler,
            rows=planned.rows,
            epsilon=planned.privacy.epsilon,
            coins=table.coins,
            rows_per_person=planned.max_rows,
            progress=tell,
        )
    frozen = asked if isinstance(asked, Ordered) else tuple(asked)
    return Release(planned, table.schema, frozen, questions.codes(points))


# Pictures of a release: its prefix curve, or the answers to its questions.


def plot_release(release: Release, path: Path) -> None:
    """Draw to a file, as its ending says."""
    check_can_draw(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(release.asked, Ordered):
        _prefix_curve(release, axes)
    else:
        _answers(release, axes)
    axes.set_title(str(release), fontsize=9)
    figure.savefig(path, dpi=120)


def _prefix_curve(release: Release, axes: Any) -> None:
    (name, values), *_ = release.to_dict().items()
    ordered = sorted(values)
    heights = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(ordered, heights, where="post", color="tab:blue", label="released")
    error = release.guarantee()
    if error is not None and error < 1:
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
