"""What a stream's noise covers: which questions it takes, and at which thresholds.

It is public, and costs nothing to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from tacit.analyst.binding import mechanism_of
from tacit.arguments import flag
from tacit.book.priced import asked_at
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import Number, exact, show
from tacit.tables.language.prepared import Read, representatives
from tacit.tables.language.show import Statement, refusal, statement

if TYPE_CHECKING:
    from tacit.analyst.releasing import ReleasingTable
    from tacit.analyst.task import Planned
    from tacit.book.sparse_vector import SparseVector
    from tacit.tables.language.prepared import Askable, Reader
    from tacit.tables.schema.schema import Schema


class AskedHow(NamedTuple):
    """How a question is asked, besides its words."""

    threshold: Number | None = None
    below: bool = False
    scale: Number | None = None


@dataclass(frozen=True, slots=True)
class Covering:
    """The mechanism and the kind of a stream."""

    mechanism: SparseVector
    kind: str

    def limit(self, threshold: Number) -> Fraction:
        """A question's own threshold, checked before any coin is drawn."""
        self.mechanism.threshold_in_steps(threshold)
        return exact(threshold, "threshold")

    def scale(self, given: Number) -> Fraction:
        """A question's own scale, checked before any coin is drawn."""
        asked_at(self.mechanism, given)
        return exact(given, "scale")

    def below(self, read: Read, limit: Fraction | None) -> tuple[Read, Fraction]:
        """Whether a value is at most T: whether minus the value is at least −T."""
        promise = read.question.promise
        steps = tuple(-step for step in promise.steps)
        turned = replace(promise, steps=steps, direction=-promise.direction)
        asked = Read(
            replace(read.question, promise=turned), read.schema, None, read.keys, read.codes
        )
        return asked, self.limit(-(self.mechanism.threshold if limit is None else limit))

    def rounds(self, planned: Planned | None) -> int:
        """How often each question may be asked: as often as the plan allows for."""
        if planned is None or planned.rounds == 1:
            raise BadParameter(
                "again",
                True,
                "this stream was planned for questions that are asked once: open one with "
                "rounds=..., so that its plan and its intervals allow for more",
            )
        return planned.rounds

    def steps_each(self, read: Read) -> int:
        """How many steps of the stream's grid a step of the question's is.

        What the stream's noise does not cover is refused.
        """
        question, mechanism = read.question, self.mechanism
        if question.sensitivity > mechanism.sensitivity:
            raise QuestionRefused(
                f"{read.text}\none person can change this answer by {show(question.sensitivity)}, "
                f"and this stream's noise covers {show(mechanism.sensitivity)}: "
                f"open a stream with sensitivity={show(question.sensitivity)}"
            )
        if self.kind == "counts" and question.direction != 1:
            covers = "directed" if question.direction == -1 else "any"
            raise QuestionRefused(
                f"{read.text}\nadding a person can lower this answer, which a stream of "
                f"kind 'counts' does not cover: open a stream with kind='{covers}'"
            )
        if self.kind == "directed" and question.direction not in (1, -1):
            raise QuestionRefused(
                f"{read.text}\nadding a person can lower this answer and can raise it, which a "
                "stream of kind 'directed' does not cover: open a stream with kind='any'"
            )
        if (question.grid / mechanism.grid).denominator != 1:
            raise QuestionRefused(
                f"{read.text}\nits answers are multiples of {show(question.grid)}, which are not "
                f"on this stream's grid of {show(mechanism.grid)}: open a stream with "
                f"grid='{question.grid}'"
            )
        return (question.grid / mechanism.grid).numerator

    def check(
        self,
        reader: Reader,
        schema: Schema,
        question: Askable,
        how: AskedHow,
        given: Callable[[], Mapping[str, object]],
    ) -> Statement:
        """What is promised about a question, or why it would be refused."""
        try:
            parameters = given()
            prepared = reader.prepare(question)
            limit = None if how.threshold is None else self.limit(how.threshold)
            if how.scale is not None:
                self.scale(how.scale)
            reads = reader.read_all(prepared, parameters)
            if flag(how.below, "below"):
                reads = [self.below(read, limit)[0] for read in reads]
            for read in representatives(reads):
                self.steps_each(read)
        except (QuestionRefused, BadParameter) as why:
            return refusal(question, why)
        cells = len(reads) if prepared.keys else None
        text = " ".join(prepared.text.split()) if prepared.keys else None
        return statement(reads[0].question, schema, cells, text)


def check_in_stream(
    table: ReleasingTable, binding: Mapping[str, str], stream: str, question: str
) -> Statement:
    """The same for a stream that nobody holds, from what is stored of it."""
    covering = Covering(mechanism_of(binding, stream), binding["kind"])
    return covering.check(table._reader, table.schema, question, AskedHow(), dict)
