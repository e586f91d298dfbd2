"""What a SmallDB release will be like: computed before it is paid for, from public values only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from tacit.analyst.question_class import FiniteClass, OrderedClass, QuestionClass
from tacit.book.laplace import LaplaceMechanism, error_steps
from tacit.book.small_db import certifying
from tacit.book.small_db_size import ProvedSize, alpha_of_rows, rows_needed
from tacit.book.small_db_utility import (
    Expectation,
    best_rows,
    error_bound,
    expect,
    most_rows,
    usual_rows,
)
from tacit.draws.candidates import reach
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, as_given, positive, probability, show, spaced, whole
from tacit.numerics import certified
from tacit.privacy import Cost, Privacy
from tacit.support import Printed

if TYPE_CHECKING:
    from tacit.analyst.alternatives import Alternative, Comparison
    from tacit.tables.schema.schema import Schema

MOST_SECONDS = 600
_PATIENT_SECONDS = 10  # if Tacit chooses m
_LEAST_EPSILON = Fraction(1, 10**12)
_ASSUMED_PEOPLE = 10_000  # for the expected time only, if the steward has given no number


@dataclass(frozen=True)
class ReleasePlan(Printed):
    """Which sampler is used, how many rows it draws and why, the promised error, the time."""

    questions: str
    privacy: Privacy
    size: ProvedSize
    expectation: Expectation
    people: int | None
    max_rows: int
    question_class: QuestionClass = field(repr=False, compare=False)
    schema: Schema = field(repr=False, compare=False)
    proof: str = ""  # which m would promise more, where another was taken
    certificate_epsilon: Fraction | None = None
    """What a certificate costs beyond ``privacy``, which is what the rows cost."""

    @property
    def rows(self) -> int:
        """m, the rows of the released database."""
        return self.size.rows

    @property
    def cost(self) -> Cost:
        """The draw, and the certificate if there is one.

        The score of any y changes by −r to r, and the draw has probability ∝ e^(−ε·score/2r): so
        its loss has a bounded range, also where candidates are drawn first, without a look at x.
        """
        drawn, extra = Cost.bounded_range(self.privacy.epsilon), self.certificate_epsilon
        return drawn if extra is None else drawn + Cost.pure(extra)

    @property
    def certifying(self) -> LaplaceMechanism | None:
        """What measures how far the drawn rows are off; None if it is not paid for."""
        if self.certificate_epsilon is None:
            return None
        return certifying(
            self.question_class.sampler,
            rows=self.rows,
            epsilon=self.certificate_epsilon,
            rows_per_person=self.max_rows,
        )

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
        from tacit.analyst.alternatives import lines as as_lines

        promised = self.guarantee()
        error = (
            "unknown without people=, a public number that the steward gives"
            if promised is None
            else f"at most {show(promised)} of the people, except with probability 5 %"
        )
        seconds = self.expectation.seconds
        lines = [
            f"SmallDB release of {self.questions}, {self.cost.privacy}",
            f"  sampler   {self.expectation.sampler}",
            f"  rows      {self.size}",
            f"  error     {error}",
            *self._certified_lines(),
            f"  time      about {'a second or less' if seconds < 1 else f'{seconds:.0f} s'}",
        ]
        lines += [f"  note      {note}" for note in self.question_class.notes]
        if self.advice:
            lines.append(f"  advice    {self.advice}")
        return "\n".join([*lines, *as_lines(self.alternatives, self._least)])

    @property
    def _least(self) -> Fraction | None:
        """How far it is usually off, or would be with the m that is taken if nobody gives one.

        What errs more than that is not said to err less: its own plan says that of this release.
        """
        from tacit.analyst.alternatives import usual_error

        usual = usual_error(self)
        if usual is None or not isinstance(self.question_class, OrderedClass):
            return usual
        return min(usual, self._others.of_rows(self.question_class))

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        asked, others = self.question_class, self._others
        if isinstance(asked, OrderedClass):
            ends = 1 if asked.kind == "prefixes" else 2
            return others.for_ranges(asked.column, ends=ends, but="small_db")
        questions = max(len(asked.queries.answers), 1)
        return others.for_list(questions, columns=asked.columns, but="small_db")

    @property
    def _others(self) -> Comparison:
        from tacit.analyst.alternatives import Comparison

        return Comparison(self.schema, self.privacy.epsilon, self.people, self.max_rows)

    @property
    def advice(self) -> str:
        """Whether something simpler is expected to err less, according to public numbers."""
        least = self._least
        better = [each for each in self.alternatives if each.errs_less(least)]
        said = []
        if better and least is not None:
            said.append(
                f"{better[0].call} is expected to err less (± {spaced(better[0].error or least)} "
                f"people against about ± {spaced(least)}); choose SmallDB if you want rows that "
                "answer every question of the class"
            )
        return "; ".join(filter(None, [*said, self.proof]))

    def _certified_lines(self) -> list[str]:
        measuring, extra = self.certifying, self.certificate_epsilon
        if measuring is None or extra is None:
            return []
        within = Fraction(ceil(error_steps(measuring.scale, "1/20") * measuring.grid))
        of = "people" if self.max_rows == 1 else "rows"
        return [
            f"  measured  afterwards: how far the drawn rows are off, ± {spaced(within)} {of} "
            f"(95 %), for ε = {show(extra)} of this"
        ]


@dataclass(frozen=True)
class ReleaseTask:
    """What is to be released, about how many people: all that the choice of m depends on."""

    question_class: QuestionClass
    described: str
    privacy: Privacy
    people: int | None
    max_rows: int
    schema: Schema

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
    task: ReleaseTask,
    *,
    alpha: Number | None = None,
    rows: int | None = None,
    certificate_epsilon: Number | None = None,
) -> ReleasePlan:
    """Choose m, and refuse at no cost what would take too long to draw."""
    extra = None if certificate_epsilon is None else _measurable(certificate_epsilon)
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
        schema=task.schema,
        certificate_epsilon=extra,
    )
    chosen = alpha is None and rows is None
    return replace(planned, proof=_proof(task, planned, chosen))


def _measurable(epsilon: Number) -> Fraction:
    """The ε of a certificate, within the bounds that SmallDB's own has."""
    given = positive(epsilon, "certificate_epsilon")
    if not _LEAST_EPSILON <= given <= 1 / _LEAST_EPSILON:
        raise BadParameter(
            "certificate_epsilon", as_given(epsilon), "it must lie between 1e-12 and 1e12"
        )
    return given


def _proof(task: ReleaseTask, plan: ReleasePlan, chosen: bool) -> str:
    """Which m would promise more, where Tacit took another that usually errs less."""
    promised = plan.guarantee()
    if not chosen or promised is None:
        return ""
    rows = _quick_enough(task, _best_proved(task))
    proved = plan_release(task, rows=rows).guarantee()
    if proved is None or proved >= promised:
        return ""
    return (
        f"these rows usually err least; rows={rows} have the least proved error, {show(proved)} "
        "(certificate_epsilon pays for the error that is drawn)"
    )


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
    """The m that usually errs least, at least the one of least proved error; or a quick one."""
    proved, epsilon = _best_proved(task), task.privacy.epsilon / task.max_rows
    assert task.people is not None
    usual = usual_rows(task.people, epsilon=epsilon, atoms=task.question_class.atoms)
    return _quick_enough(task, max(proved, usual))


def _best_proved(task: ReleaseTask) -> int:
    """The m with the least proved error, whatever it takes."""
    if task.people is None:
        raise BadParameter(
            "alpha",
            None,
            "give alpha or rows, or open the table with people=..., so that Tacit can choose",
        )
    questions = task.question_class
    epsilon = task.privacy.epsilon / task.max_rows
    facts = asdict(replace(questions.facts, atoms=questions.atoms))
    return best_rows(task.people, epsilon=epsilon, beta="1/20", **facts).rows


def _quick_enough(task: ReleaseTask, rows: int) -> int:
    """So many rows, or fewer if they would take too long."""
    questions = task.question_class
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
