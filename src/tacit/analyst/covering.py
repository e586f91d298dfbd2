"""What a stream's noise covers: which questions it takes, and at which thresholds.

It is public, and costs nothing to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import Number, exact, show
from tacit.tables.show import Statement, refusal, statement

if TYPE_CHECKING:
    from tacit.book.sparse_vector import SparseVector
    from tacit.tables.prepared import Askable, Read, Reader
    from tacit.tables.schema import Schema


@dataclass(frozen=True, slots=True)
class Covering:
    """The mechanism and the kind of a stream."""

    mechanism: SparseVector
    kind: str

    def limit(self, threshold: Number) -> Fraction:
        """A question's own threshold, checked before any coin is drawn."""
        self.mechanism.threshold_in_steps(threshold)
        return exact(threshold, "threshold")

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
            raise QuestionRefused(
                f"{read.text}\nadding a person can lower this answer, which a stream of "
                "kind 'counts' does not cover: open a stream with kind='any'"
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
        threshold: Number | None,
        given: Callable[[], Mapping[str, object]],
    ) -> Statement:
        """What is promised about a question, or why it would be refused."""
        try:
            parameters = given()
            prepared = reader.prepare(question)
            if threshold is not None:
                self.limit(threshold)
            reads = reader.read_all(prepared, parameters)
            for read in reads:
                self.steps_each(read)
        except (QuestionRefused, BadParameter) as why:
            return refusal(question, why)
        cells = len(reads) if prepared.keys else None
        text = " ".join(prepared.text.split()) if prepared.keys else None
        return statement(reads[0].question, schema, cells, text)
