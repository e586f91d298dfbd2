"""What else could answer the same questions, and how far off it would be.

Every plan lists this, so that whoever asks for the wrong thing is told.  It follows from public
numbers only.  Each error is that of all answers together, but with probability 5 %, as the plan of
that other release states it; where it says "about" it was measured elsewhere, and is not proved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import ceil, sqrt
from typing import TYPE_CHECKING

from tacit.analyst.histogram_plan import HistogramPlan, plan_histogram
from tacit.analyst.question_class import MOST_ELEMENTS, Ordered, OrderedClass, question_class
from tacit.analyst.ranges import plan_ranges
from tacit.analyst.synthetic import plan_synthetic
from tacit.analyst.task import Task, accuracy_of
from tacit.analyst.tuning import Family, noise_on_cells, tuned
from tacit.book.laplace import error_steps
from tacit.book.noise import ONE_SIDED
from tacit.book.top import TopMechanism
from tacit.book.watching import watch
from tacit.errors import Advice, BadParameter, Infeasible, QuestionRefused, TacitError
from tacit.numbers import four_digits_up, spaced
from tacit.privacy import Privacy
from tacit.tables.language.prepared import CellReads
from tacit.tables.schema.schema import EACH_ROW, most_cells

if TYPE_CHECKING:
    from tacit.analyst.covering import Covering
    from tacit.analyst.question_class import QuestionClass
    from tacit.analyst.release_plan import ReleasePlan
    from tacit.analyst.task import Planned
    from tacit.tables.language.prepared import Read
    from tacit.tables.schema.schema import Column, Schema

_BETA = Fraction(1, 20)
_CLEARLY = Fraction(5, 4)  # the bounds are not all equally sharp
_TOPS = 10  # what a stream is planned for, if nothing says how many
_SURPRISES = 20  # and a watched model


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something else that answers the same questions, and how far off it would be."""

    release: str  # such as "histogram"
    call: str
    error: Fraction | None  # None: it depends on the data
    told: str  # what is so far off at most
    provided: str = ""
    proved: bool = True

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.call}: {self.told}"
        about = "± " if self.proved else "about ± "
        return f"{self.call}: {self.told} {about}{spaced(self.error)}{self.provided}"

    @property
    def answers_all(self) -> bool:
        """Whether it tells every count, and not only which are large."""
        return self.error is not None and self.release not in ("top", "stream")

    def errs_less(self, own: Fraction | None) -> bool:
        """Whether it tells every count, and is clearly nearer than this."""
        if own is None or self.error is None or not self.answers_all:
            return False
        return self.error * _CLEARLY < own


def lines(found: Iterable[Alternative], own: Fraction | None = None) -> list[str]:
    """The last lines of a plan whose answers are within ``own``, all of them together."""
    return [
        f"  instead   {each}{' — it errs less' if each.errs_less(own) else ''}" for each in found
    ]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What all of them have in common: the table, ε, and how much of a person counts.

    ``max_rows`` is what the plan that is compared says; otherwise the schema says it.  Whoever has
    so many rows is in no more cells, so a query is compared with as many cells as that.  Nothing is
    said to err less that would only cut more, and then say the same of the plan that named it.
    """

    schema: Schema
    epsilon: Fraction
    people: int | None = None
    max_rows: int | None = None

    # Every range of one column --------------------------------------------------------------

    def for_ranges(
        self, column: Column, *, ends: int = 1, but: str = ""
    ) -> tuple[Alternative, ...]:
        """For all counts up to a value of a column; with two ends, between two values."""
        name, told = repr(column.name), "every count up to a value"
        if ends == 2:
            told = "every count between two values"

        def tree() -> Alternative:
            plan = plan_ranges(
                self.schema,
                column.name,
                epsilon=self.epsilon,
                max_rows=self._rows,
                people=self.people,
            )
            return Alternative(
                "ranges", f"table.ranges({name}, ...)", ends * plan.worst_error(), told
            )

        def histogram() -> Alternative:
            plan = self._histogram([column])
            single = f", a single value ± {spaced(plan.error())}"
            error = ends * plan.prefix_error()
            return Alternative("histogram", f"table.histogram({name}, ...)", error, told, single)

        def rows() -> Alternative:
            kind = "prefixes" if ends == 1 else "intervals"
            asked = question_class(Ordered(column.name, kind), self.schema)  # type: ignore[arg-type]
            call = f"table.small_db(tacit.{kind}({name}), ...)"
            return Alternative("small_db", call, self.of_rows(asked), told, proved=False)

        return _found(but, tree, histogram, rows)

    def of_rows(self, asked: QuestionClass) -> Fraction:
        """How far SmallDB is usually off, with as many rows as it takes if nobody says."""
        from tacit.analyst.release_plan import ReleaseTask, plan_release

        promise = Privacy(self.epsilon)
        task = ReleaseTask(asked, "", promise, self.people, self.rows, self.schema)
        error = usual_error(plan_release(task))
        if error is None:
            raise Infeasible("without a number of people nothing is known")
        return error

    # Cells of a GROUP BY ----------------------------------------------------------------------

    def for_cells(
        self, columns: Sequence[Column] | None, *, tops: int = _TOPS, but: str = ""
    ) -> tuple[Alternative, ...]:
        """For the counts of all cells of some columns, or which of them are the largest.

        Keys that are no columns (None) are those of a query alone.
        """
        if columns is None:
            return ()
        names = ", ".join(repr(column.name) for column in columns)
        cells, told = _cells(columns), "every count"

        def histogram() -> Alternative:
            where = "" if self._each_row else f", where {_so_many(self.rows, 'row')}"
            call = f"table.histogram({names}, ...)"
            error = self._histogram(columns).worst_error()
            return Alternative("histogram", call, error, told, where)

        def query() -> Alternative:
            if any(column.cells is None for column in columns):
                raise Infeasible("a GROUP BY needs keys")
            most = min(self.cells, cells)
            where = "" if self._each_row else f", where {_so_many(most, 'cell')}"
            error = Fraction(error_steps(most / self.epsilon, _BETA / cells))
            grouped = ", ".join(column.name for column in columns)
            call = f"table.query('SELECT ... GROUP BY {grouped}', ...)"
            return Alternative("query", call, error, told, where)

        def rows() -> Alternative:
            return self._synthetic(columns, cells)

        found = [histogram, query, rows]
        return _found(but, *found, *self._largest(cells, tops))

    def _synthetic(self, columns: Sequence[Column], cells: int) -> Alternative:
        """One column and two are measured; how far more are off depends on the data."""
        names = [column.name for column in columns]
        plan = plan_synthetic(
            self.schema,
            names,
            epsilon=self.epsilon,
            max_rows=self._rows,
            people=self.people,
        )
        call, told = f"table.synthetic({names}, ...)", "rows; how far off depends on the data"
        if len(names) > 2 or plan.cells != cells:
            return Alternative("synthetic", call, None, told)
        error = plan.error(len(names), _BETA / cells)
        return Alternative("synthetic", call, error, "rows, fitted to counts that are each")

    def for_pairs(self, columns: Sequence[Column]) -> tuple[Alternative, ...]:
        """For the counts of every two of several columns: a histogram of each pair."""
        pairs = list(combinations(columns, 2))
        if len(pairs) < 2:
            return ()

        def histograms() -> Alternative:
            share = replace(self, epsilon=self.epsilon / len(pairs), people=None)
            cells = sum(map(_cells, pairs))
            error = max(share._histogram(pair).error(_BETA / cells) for pair in pairs)
            call = f"table.histogram of each of the {len(pairs)} pairs"
            return Alternative("histogram", call, error, "every count")

        return _found("", histograms)

    # A list of questions ----------------------------------------------------------------------

    def for_list(
        self,
        questions: int,
        *,
        columns: Sequence[Column] = (),
        tops: int = _TOPS,
        but: str = "",
    ) -> tuple[Alternative, ...]:
        """For the answers to so many counts of these columns, or which are the largest."""

        def each() -> Alternative:
            scale = questions / self.epsilon
            error = Fraction(error_steps(scale, _BETA / questions))
            call = f"table.count for each of {spaced(Fraction(questions))} questions"
            return Alternative("count", call, error, "every count")

        def watched() -> Alternative:
            model = watch(_SURPRISES, self.epsilon / 2, questions=questions)
            told = f"every answer, while there are surprises left of {_SURPRISES},"
            return Alternative("watched", "table.watched_model(...)", model.error(), told)

        def histogram() -> Alternative:
            names = ", ".join(repr(column.name) for column in columns)
            error = self._histogram(columns).sums_error(questions)
            told = "every answer, added up from its cells,"
            return Alternative("histogram", f"table.histogram({names}, ...)", error, told)

        found = [each, watched, *([histogram] if columns else [])]
        return _found(but, *found, *self._largest(questions, tops))

    def _largest(self, questions: int, tops: int) -> Sequence[Callable[[], Alternative]]:
        """Which of so many are largest, or above a threshold: at most so many of them."""

        def top() -> Alternative:
            drawn = TopMechanism(tops, Privacy(self.epsilon))
            steps = drawn.alpha_steps(questions, _BETA)
            told = "which are the largest, but for"
            return Alternative("top", f"table.top({tops}, ...)", Fraction(steps), told)

        def stream() -> Alternative:
            counts = Family(ONE_SIDED, monotone=True)
            alpha = tuned(counts, _task(questions, tops), Privacy(self.epsilon)).alpha
            told = "which are above a threshold, but for those within"
            call = f"table.sparse(at_most={tops}, ...)"
            return Alternative("stream", call, Fraction(ceil(alpha)), told)

        return (top, stream) if tops < questions else ()

    # What they are made of --------------------------------------------------------------------

    @property
    def _each_row(self) -> bool:
        return self.schema.person is EACH_ROW

    @property
    def rows(self) -> int:
        """How many rows of a person count."""
        if self._each_row:
            return 1
        return self.max_rows or self.schema.max_rows or self.schema.max_cells or 1

    @property
    def cells(self) -> int:
        """In how many cells of a query a person counts."""
        if self._each_row:
            return 1
        said = (self.max_rows, self.schema.max_rows, most_cells(self.schema))
        return min(filter(None, said), default=1)

    @property
    def _rows(self) -> int | None:
        return None if self._each_row else self.rows

    def _histogram(self, columns: Sequence[Column]) -> HistogramPlan:
        names = [column.name for column in columns]
        return plan_histogram(self.schema, names, epsilon=self.epsilon, max_rows=self.rows)


def _found(but: str, *builders: Callable[[], Alternative]) -> tuple[Alternative, ...]:
    """Those that are possible and not the plan's own, the best first."""
    found = []
    for build in builders:
        try:
            found.append(build())
        except (BadParameter, Infeasible, QuestionRefused):
            continue
    others = [each for each in found if each.release != but]
    return tuple(sorted(others, key=lambda each: (each.error is None, each.error or 0)))


def _cells(columns: Sequence[Column]) -> int:
    cells = 1
    for column in columns:
        cells *= column.domain_size or MOST_ELEMENTS + 1
    return cells


def _so_many(number: int, what: str) -> str:
    if number == 1:
        return f"one {what} of a person counts"
    return f"{number} {what}s of a person count"


def _task(questions: int, tops: int) -> Task:
    return Task.read(questions=questions, at_most=tops, beta=_BETA, numeric=False, kind="counts")


def usual_error(plan: ReleasePlan) -> Fraction | None:
    """How far SmallDB is usually off at most, in people; None without a public number of them.

    For prefixes and intervals: half a row, and what the draw adds, of which 1.6/√(εn) was measured
    at m = √(εn).  For a list of questions what is proved.
    """
    promised = plan.guarantee()
    if plan.people is None or promised is None:
        return None
    share = float(promised)
    if isinstance(plan.question_class, OrderedClass):
        ends = 1 if plan.question_class.kind == "prefixes" else 2
        product = float(plan.privacy.epsilon / plan.max_rows) * plan.people
        drawn = 0.8 * plan.rows / product + 0.3 / sqrt(product)
        share = min(share, ends * (0.5 / plan.rows + drawn))
    return Fraction(ceil(share * plan.people))


# What a stream is told when it is asked a GROUP BY ------------------------------------------------


def advise(covering: Covering, planned: Planned | None, reads: Sequence[Read]) -> str | None:
    """Warn whoever called `ask_all` of what would err less, and return the words."""
    said = better_than_stream(covering, planned, reads)
    if said is not None:
        warnings.warn(said, Advice, stacklevel=3)
    return said


def better_than_stream(
    covering: Covering, planned: Planned | None, reads: Sequence[Read]
) -> str | None:
    """When noise on all cells at once errs less than this stream on them, with both errors."""
    if isinstance(reads, CellReads):  # of which there may be a million, all different
        cells = len(reads)
    else:
        cells = len({read.codes for read in reads})
        if cells < len(reads) or len({read.keys.names for read in reads}) > 1:
            return None  # not one GROUP BY: of several a person may be in as many cells
    if cells < 2:
        return None
    mechanism, schema = covering.mechanism, reads[0].schema
    beta = _BETA if planned is None else planned.beta
    try:
        ours = accuracy_of(mechanism, planned, cells, beta, 1).alpha
    except TacitError:  # so many cells that nothing was planned for them
        return None
    recipe = mechanism.recipe
    task = Task(cells, min(recipe.at_most, cells), beta, bool(recipe.values))
    in_one = noise_on_cells(task, recipe.privacy.epsilon) * float(mechanism.sensitivity)
    most = min(ceil(float(ours) / in_one) - 1, cells)
    known = most_cells(schema)
    if most < (known or 1):
        return None
    names = ", ".join(reads[0].keys.names)
    calls = "table.query" if reads[0].keys.columns is None else "table.query or table.histogram"
    who = f"nobody is in more than {_some(known or most)}"
    alpha = four_digits_up(in_one * (known or 1))
    for_each = "" if known else " for each cell that a person may be in"
    return (
        f"for the {spaced(Fraction(cells))} cells of {names}, {calls} would tell every count at "
        f"the ε of this stream, and err less if {who}: by up to {alpha}{for_each}. This stream may "
        f"be wrong about counts within {spaced(ours)} of the threshold"
    )


def _some(cells: int) -> str:
    return "one of them" if cells == 1 else f"{cells} of them"
