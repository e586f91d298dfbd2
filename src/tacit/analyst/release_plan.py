"""What a SmallDB release will be like: computed before it is paid for, from public values only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import log, sqrt

from tacit.analyst.histogram import can_be_listed
from tacit.analyst.question_class import FiniteClass, OrderedClass, QuestionClass
from tacit.book.range_tree import MOST_VALUES, RangeTree, best_tree
from tacit.book.small_db_size import ProvedSize, alpha_of_rows, rows_needed
from tacit.book.small_db_utility import Expectation, best_rows, error_bound, expect, most_rows
from tacit.draws.candidates import reach
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, probability, show, whole
from tacit.numerics import certified
from tacit.privacy import Privacy

MOST_SECONDS = 600
_PATIENT_SECONDS = 10  # if Tacit chooses m
_ASSUMED_PEOPLE = 10_000  # for the expected time only, if the steward has given no number


@dataclass(frozen=True)
class ReleasePlan:
    """Which sampler is used, how many rows it draws and why, the promised error, the time."""

    questions: str
    privacy: Privacy
    size: ProvedSize
    expectation: Expectation
    people: int | None
    max_rows: int
    question_class: QuestionClass = field(repr=False, compare=False)
    advice: str = ""

    @property
    def rows(self) -> int:
        """m, the rows of the released database."""
        return self.size.rows

    def guarantee(self, beta: Number = "1/20") -> Fraction | None:
        """No answer errs by more than this, except with probability β; None without people.

        Accuracy: Theorem 4.9 with explicit constants, α_m + (2r/(εn))(ln(candidates) + ln(1/β)).
        It relies on the public number of people that the steward gave, each with a row.
        """
        failure = probability(beta, "beta")
        if self.people is None:
            return None
        if self.expectation.sampler == "sub-range":
            return self._sub_range_guarantee(failure)
        return error_bound(
            self.people,
            epsilon=self.privacy.epsilon / self.max_rows,
            beta=failure,
            rows=self.rows,
            alpha_m=self.size.alpha,
            atoms=self.question_class.atoms,
        )

    def _sub_range_guarantee(self, beta: Fraction) -> Fraction:
        """Half of β covers a sub-range far from the best candidate, the other half the draw."""
        assert self.people is not None
        candidates = self.expectation.candidates
        away = Fraction(
            reach(self.question_class.atoms, self.rows, candidates, beta / 2), self.rows
        )
        log_terms = certified.ln(Fraction(candidates))[1] + certified.ln(2 / beta)[1]
        drawn = 2 * self.max_rows * log_terms / (self.privacy.epsilon * self.people)
        return min(certified.round_up(self.size.alpha + away + drawn), Fraction(1))

    def __str__(self) -> str:
        promised = self.guarantee()
        error = (
            "unknown without people=, a public number that the steward gives"
            if promised is None
            else f"at most {show(promised)} of the people, except with probability 5 %"
        )
        seconds = self.expectation.seconds
        lines = [
            f"SmallDB release of {self.questions}, {self.privacy}",
            f"  sampler   {self.expectation.sampler}",
            f"  rows      {self.size}",
            f"  error     {error}",
            f"  time      about {'a second or less' if seconds < 1 else f'{seconds:.0f} s'}",
        ]
        return "\n".join([*lines, f"  advice    {self.advice}"] if self.advice else lines)


@dataclass(frozen=True)
class ReleaseTask:
    """What is to be released, about how many people: all that the choice of m depends on."""

    question_class: QuestionClass
    described: str
    privacy: Privacy
    people: int | None
    max_rows: int

    def expect(self, rows: int) -> Expectation:
        """Which sampler draws this many rows, and how long that takes."""
        return expect(
            self.question_class.sampler,
            rows=rows,
            epsilon=self.privacy.epsilon,
            people=_ASSUMED_PEOPLE if self.people is None else self.people,
            rows_per_person=self.max_rows,
        )


def plan_release(
    task: ReleaseTask, *, alpha: Number | None = None, rows: int | None = None
) -> ReleasePlan:
    """Choose m, and refuse at no cost what would take too long to draw."""
    size = _size(task, alpha, rows)
    expectation = task.expect(size.rows)
    _refuse_if_too_long(task.question_class, size.rows, expectation)
    planned = ReleasePlan(
        task.described,
        task.privacy,
        size,
        expectation,
        task.people,
        task.max_rows,
        question_class=task.question_class,
    )
    return replace(planned, advice=_advice(planned))


def _size(task: ReleaseTask, alpha: Number | None, rows: int | None) -> ProvedSize:
    if alpha is not None and rows is not None:
        raise BadParameter("rows", rows, "give alpha or rows, not both")
    facts = asdict(task.question_class.facts)
    if alpha is not None:  # the α proved for so many rows is often smaller than the one asked for
        rows = rows_needed(alpha, **facts).rows
    if rows is None:
        rows = _best_rows(task)
    return alpha_of_rows(whole(rows, "rows"), **facts)


def _best_rows(task: ReleaseTask) -> int:
    """The m with the least promised error, or fewer if that would take too long."""
    if task.people is None:
        raise BadParameter(
            "alpha",
            None,
            "give alpha or rows, or open the table with people=..., so that Tacit can choose",
        )
    questions = task.question_class
    epsilon = task.privacy.epsilon / task.max_rows
    facts = asdict(replace(questions.facts, atoms=questions.atoms))
    rows = best_rows(task.people, epsilon=epsilon, beta="1/20", **facts).rows
    if isinstance(questions, FiniteClass):  # all of a range is better than part of a larger one
        rows = min(rows, most_rows(questions.sampler) or rows)
    while rows > 1 and _longest(task.expect(rows)) > _PATIENT_SECONDS:
        rows = rows * 4 // 5  # around the best m the bound hardly changes, but the time does
    return rows


def _longest(expectation: Expectation) -> float:
    return max(expectation.seconds, expectation.longest)


def _refuse_if_too_long(questions: QuestionClass, rows: int, expectation: Expectation) -> None:
    longest = _longest(expectation)
    if longest <= MOST_SECONDS:
        return
    hint = "fewer rows, or a larger alpha"
    if isinstance(questions, FiniteClass):
        hint = f"rows={most_rows(questions.sampler)} or fewer"
    raise Infeasible(
        f"a release with {rows} rows would take about {longest:.0f} s, longer than "
        f"{MOST_SECONDS} s: ask for {hint}. Nothing was spent."
    )


def _advice(plan: ReleasePlan) -> str:
    """Whether something simpler is expected to err less, according to public numbers."""
    questions = plan.question_class
    if plan.people is None:
        return ""
    epsilon, people = float(plan.privacy.epsilon / plan.max_rows), plan.people
    ours = float(plan.guarantee() or 1)
    if isinstance(questions, OrderedClass):
        ours = min(ours, _expected_ordered(questions, plan.rows, epsilon, people))
        simpler = _simpler_ordered(questions, epsilon, people)
    else:
        asked = max(len(questions.queries.answers), 1)
        name = f"Laplace noise on each question (table.count, ε/{asked} each)"
        simpler = {name: asked * log(max(asked, 2) * 20) / epsilon / people}
    said: list[str] = []
    least = ours
    for name, error in simpler.items():  # what Tacit offers comes first
        if error < least:
            said.append(
                f"{name} is expected to err less{' still' if said else ''} "
                f"(about {show(error, 2)} against {show(least, 2)})"
            )
            least = error
    rows = "choose SmallDB if you want rows that answer every question of the class"
    return "; ".join([*said, rows]) if said else ""


def _simpler_ordered(questions: OrderedClass, epsilon: float, people: int) -> dict[str, float]:
    """Simpler ways to answer prefixes and intervals, and their expected errors."""
    simpler = {}
    name, listed = questions.column.name, questions.column.domain_size
    if can_be_listed(questions.column):
        call = f"table.histogram({name!r}, ...)"
        simpler[f"a noisy histogram ({call})"] = _histogram_error(questions, epsilon, people)
    if listed is not None and listed <= MOST_VALUES:
        tree = f"a tree of noisy counts (table.ranges({name!r}, ...))"
        simpler[tree] = _tree_error(questions, best_tree(listed), epsilon) / people
    return simpler


def _expected_ordered(questions: OrderedClass, rows: int, epsilon: float, people: int) -> float:
    """Half a row, and what the draw adds: 1.6/√(εn) was measured at m = √(εn)."""
    ends = 1 if questions.kind == "prefixes" else 2
    noise = 0.8 * rows / (epsilon * people) + 0.3 / sqrt(epsilon * people)
    return min(ends * (0.5 / rows + noise), 1.0)


def _histogram_error(questions: OrderedClass, epsilon: float, people: int) -> float:
    """A sum of N Laplace draws, at its worst prefix: 2.24 standard deviations (95 %)."""
    ends = 1 if questions.kind == "prefixes" else 1.6
    return ends * 2.24 * sqrt(2 * questions.domain) / (epsilon * people)


def _tree_error(questions: OrderedClass, tree: RangeTree, epsilon: float) -> float:
    """The worst of N prefixes: two to three times the largest deviation was measured (95 %)."""
    ends = 1 if questions.kind == "prefixes" else sqrt(2)
    return ends * 3 * sqrt(2 * tree.worst_prefix) * tree.levels / epsilon
