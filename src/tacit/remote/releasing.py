"""What a table on a server releases: numbers, tables and rows, each planned and paid for once.

Whatever follows from the public schema (reading a question, planning a release) is done here; what
needs the data is asked of the server.  Each request that may spend has a key, so it can be sent
again if its answer is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from tacit import wire
from tacit.arguments import text
from tacit.errors import QuestionRefused
from tacit.numbers import Number, whole
from tacit.remote.sending import given_by_name, number, number_or_none, questions_sent, text_of
from tacit.remote.sending import values as values_sent
from tacit.tables.schema.schema import EACH_ROW, Schema, read_schema

if TYPE_CHECKING:
    from tacit.analyst.binned import Bins
    from tacit.analyst.dummy import DummyTable
    from tacit.analyst.histogram import Histogram
    from tacit.analyst.histogram_plan import HistogramPlan
    from tacit.analyst.query_plan import QueryPlan
    from tacit.analyst.query_result import QueryResult
    from tacit.analyst.question_class import QuestionClass, Questions
    from tacit.analyst.ranges import RangePlan, Ranges
    from tacit.analyst.release import Release
    from tacit.analyst.release_plan import ReleasePlan
    from tacit.analyst.synthetic import Marginals, Synthetic, SyntheticPlan
    from tacit.analyst.top import Top, TopPlan
    from tacit.book.laplace import Estimate
    from tacit.remote.transport import Transport
    from tacit.tables.language.prepared import Askable, AskableWithValues, Prepared, Reader
    from tacit.tables.language.show import Statement


T = TypeVar("T")


def _schema_of(fields: Mapping[str, Any]) -> Schema:
    person = EACH_ROW if fields["person"] is None else fields["person"]
    return read_schema(fields["schema"], name=fields["name"], person=person)


class RemoteReleasingTable:
    """What is public about a table on a server, and everything that it releases once."""

    def __init__(
        self,
        transport: Transport,
        fields: Mapping[str, Any],
        others: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._transport = transport
        beside = [each for each in others if each["name"] in fields.get("beside", ())]
        self._schema = replace(_schema_of(fields), beside=tuple(map(_schema_of, beside)))
        self._labels: dict[str, str | None] = {each["name"]: each["as_of"] for each in beside}
        self._people: int | None = fields["people"]
        self._as_of: str | None = fields["as_of"]
        self._cannot: list[str] = fields["cannot"]

    @property
    def name(self) -> str:
        """The table's name."""
        return self._schema.name

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        return self._schema

    @property
    def cannot_ask(self) -> dict[str, str]:
        """Columns that are there but cannot be asked about, by name, each with the reason."""
        return dict(self.schema.cannot_ask)

    @property
    def people(self) -> int | None:
        """The public number of people that the steward typed."""
        return self._people

    @property
    def as_of(self) -> str | None:
        """The public label that the steward typed: which state of the data this is."""
        return self._as_of

    @cached_property
    def reader(self) -> Reader:
        """Reads questions by the public schema, as the server does."""
        from tacit.tables.language.prepared import Reader

        return Reader(self.schema, self.as_of, self._cannot, self._labels)

    def _repr_html_(self) -> str:
        from tacit.analyst.shown_table import as_html

        return as_html(self.schema, self.as_of)

    def __repr__(self) -> str:
        from tacit.analyst.shown_table import in_one_line

        return in_one_line(self.schema, self.as_of, self._transport.place)

    # Reading questions --------------------------------------------------------------------

    def check(
        self, question: str, *, params: Mapping[str, object] | None = None, **parameters: object
    ) -> Statement:
        """What would be promised about a question, or why it is refused; costs nothing.

        Here and wherever a question is asked, its parameters are given by name, or in ``params``:
        only there if they are called as an option is.
        """
        from tacit.tables.language.show import Statement, refusal

        text(question, "question", "give a question as text")
        try:
            given = given_by_name(parameters, params)
        except QuestionRefused as why:
            return refusal(question, why)
        asked = {"question": question, "parameters": values_sent(given)}
        here = self.reader.check(question, given)
        if here.refusal is not None:
            return here
        told = self._transport.post("/v1/check", {"table": self.name, "questions": [asked]})
        (fields,) = told["statements"]
        return wire.from_json(fields, Statement)

    def dummy(self, *, people: int = 1000, seed: int = 0) -> DummyTable:
        """A made-up table of the same schema, in this process, to try questions on for nothing.

        It has a budget of its own, ``.budget``, in memory.  Nothing is asked of the server.
        """
        from tacit.analyst.dummy import dummy

        return dummy(self.schema, people=people, seed=seed, as_of=self.as_of)

    def prepare(self, question: str) -> Prepared:
        """Read a question once, to ask it often with different parameters."""
        return self.reader.prepare(question)

    def questions(self, questions: Questions) -> QuestionClass:
        """A class of questions over the declared domain; ``.vc_dimension()`` measures it."""
        from tacit.analyst.question_class import question_class

        return question_class(questions, self.schema)

    # Releases -----------------------------------------------------------------------------

    def _pay(
        self, path: str, retry_key: str | None, fields: dict[str, Any], expected: type[T]
    ) -> T:
        told = self._transport.pay(path, retry_key, {"table": self.name, **fields})
        return wire.from_json(told["released"], expected)

    def count(
        self,
        question: Askable,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy answer to one question: the Laplace mechanism.

        Privacy: (ε, 0), charged to the token's share before the question is answered.
        """
        from tacit.analyst.count import NoisyCount
        from tacit.analyst.history import told_at
        from tacit.book.laplace import Estimate

        given = given_by_name(parameters, params)
        counted = NoisyCount(self.reader.read(question, given, max_rows), epsilon=epsilon)
        asked = {"question": text_of(question), "parameters": values_sent(given)}
        rows = None if max_rows is None else whole(max_rows, "max_rows")
        fields = {**asked, "epsilon": number(epsilon, "epsilon"), "max_rows": rows}
        told = self._pay("/v1/count", retry_key, fields, Estimate)
        return counted.with_facts(told, at=told_at(), on_record=None)

    def sum(
        self,
        column: str,
        *,
        where: str | None = None,
        epsilon: Number,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy sum of a column with declared bounds, over the rows that satisfy ``where``.

        Privacy: (ε, 0), with each person's part of the sum clamped to its declared total.
        """
        from tacit.analyst.count import NoisyCount
        from tacit.analyst.history import told_at
        from tacit.analyst.question_class import declared_column
        from tacit.book.laplace import Estimate

        given = given_by_name(parameters, params)
        summed = self.reader.sum(declared_column(self.schema, column).name, where)
        counted = NoisyCount(self.reader.read(summed, given), epsilon=epsilon)
        asked = {"column": column, "where": where, "parameters": values_sent(given)}
        fields = {**asked, "epsilon": number(epsilon, "epsilon")}
        told = self._pay("/v1/sum", retry_key, fields, Estimate)
        return counted.with_facts(told, at=told_at(), on_record=None)

    def plan_histogram(
        self, *columns: str, epsilon: Number, max_rows: int | None = None
    ) -> HistogramPlan:
        """How far the counts of `histogram` would be off; costs nothing."""
        from tacit.analyst.histogram_plan import plan_histogram

        return plan_histogram(
            self.schema, columns, epsilon=epsilon, max_rows=max_rows, people=self.people
        )

    def histogram(
        self,
        *columns: str,
        epsilon: Number,
        max_rows: int | None = None,
        retry_key: str | None = None,
    ) -> Histogram:
        """A noisy count for every cell, empty or not, of columns with declared keys or bounds.

        Privacy: (ε, 0) for all cells together, charged before anything is counted.
        """
        from tacit.analyst.histogram import Histogram, NoisyHistogram

        asked = NoisyHistogram(self.schema, columns, epsilon=epsilon, max_rows=max_rows)
        names = [column.name for column in asked.columns]
        numbers = {"epsilon": number(epsilon, "epsilon"), "max_rows": asked.max_rows}
        fields = {"columns": names, **numbers}
        return self._pay("/v1/histogram", retry_key, fields, Histogram)

    def plan_query(
        self,
        sql: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        weights: Sequence[Number] | None = None,
        max_rows: int | None = None,
        max_cells: int | None = None,
        at_most: int | None = None,
        params: Mapping[str, object] | None = None,
    ) -> QueryPlan:
        """What `query` would cost, and how far its answers would be off; costs nothing."""
        from tacit.analyst.query_plan import plan_query

        select = self.reader.select(sql, given_by_name({}, params), max_rows)
        return plan_query(
            select,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            max_cells=max_cells,
            max_rows=max_rows,
            at_most=at_most,
        )

    def query(
        self,
        sql: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        weights: Sequence[Number] | None = None,
        max_rows: int | None = None,
        max_cells: int | None = None,
        at_most: int | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
    ) -> QueryResult:
        """A SELECT of counts and sums, with a row for every cell of a GROUP BY, empty or not.

        Privacy: (ε, δ) for all cells and aggregates together, charged before anything is counted.
        """
        from tacit.analyst.query_result import QueryResult

        planned = self.plan_query(  # or it is refused
            sql,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            max_rows=max_rows,
            max_cells=max_cells,
            at_most=at_most,
            params=params,
        )
        fields: dict[str, Any] = {
            "query": sql,
            "parameters": values_sent(given_by_name({}, params)),
            "epsilon": number(epsilon, "epsilon"),
            "delta": number(delta, "delta"),
            "weights": [str(share) for share in planned.all_shares],
            "max_rows": None if max_rows is None else whole(max_rows, "max_rows"),
            "max_cells": None if max_cells is None else whole(max_cells, "max_cells"),
            "at_most": None if at_most is None else whole(at_most, "at_most"),
        }
        return self._pay("/v1/query", retry_key, fields, QueryResult)

    def plan_ranges(
        self, column: str, *, epsilon: Number, max_rows: int | None = None
    ) -> RangePlan:
        """What `ranges` would do, and how far its answers would be off; costs nothing."""
        from tacit.analyst.ranges import plan_ranges

        return plan_ranges(
            self.schema, column, epsilon=epsilon, max_rows=max_rows, people=self.people
        )

    def ranges(
        self,
        column: str,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        retry_key: str | None = None,
    ) -> Ranges:
        """Every prefix, interval and quantile of one column with declared bounds or keys.

        Privacy: (ε, 0) for all answers together, charged before anything is counted.
        """
        return self._ranges("/v1/ranges", column, epsilon, max_rows, retry_key)

    def running(
        self,
        column: str,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        retry_key: str | None = None,
    ) -> Ranges:
        """How many rows there were up to each day of a date column, or step of an integer one."""
        from tacit.analyst.question_class import declared_column
        from tacit.analyst.ranges import refuse_without_steps

        refuse_without_steps(declared_column(self.schema, column))
        return self._ranges("/v1/running", column, epsilon, max_rows, retry_key)

    def _ranges(
        self,
        path: str,
        column: str,
        epsilon: Number,
        max_rows: int | None,
        retry_key: str | None,
    ) -> Ranges:
        from tacit.analyst.ranges import Ranges

        planned = self.plan_ranges(column, epsilon=epsilon, max_rows=max_rows)
        fields = {"column": planned.ordered.name, "epsilon": number(epsilon, "epsilon")}
        rows = {"max_rows": None if max_rows is None else whole(max_rows, "max_rows")}
        return self._pay(path, retry_key, {**fields, **rows}, Ranges)

    def plan_top(
        self,
        n: int,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        epsilon: Number,
        delta: Number = 0,
        counts_epsilon: Number | None = None,
        max_rows: int | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> TopPlan:
        """How far what `top` draws may be from the largest; costs nothing."""
        from tacit.analyst.top import Contest, plan_top

        given = given_by_name(parameters, params)
        contest = Contest.of(self.reader, self.schema, questions, given, max_rows)
        return plan_top(n, contest, epsilon=epsilon, delta=delta, counts_epsilon=counts_epsilon)

    def top(
        self,
        n: int,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        epsilon: Number,
        delta: Number = 0,
        counts_epsilon: Number | None = None,
        max_rows: int | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Top:
        """The n largest cells of a GROUP BY, or of a list of questions, in the order of draw.

        Privacy: (ε, δ) for the order and (counts_epsilon, 0) for the counts, charged together
        before anything is counted.
        """
        from tacit.analyst.top import Top

        given = given_by_name(parameters, params)
        asked, several = questions_sent(questions, given)
        counts: dict[str, Any] = {"counts_epsilon": counts_epsilon, "params": given}
        counts["max_rows"] = max_rows
        self.plan_top(n, several, epsilon=epsilon, delta=delta, **counts)
        fields: dict[str, Any] = {
            "n": whole(n, "n"),
            "questions": asked,
            "epsilon": number(epsilon, "epsilon"),
            "delta": number(delta, "delta"),
            "counts_epsilon": number_or_none(counts_epsilon, "counts_epsilon"),
            "max_rows": None if max_rows is None else whole(max_rows, "max_rows"),
        }
        return self._pay("/v1/top", retry_key, fields, Top)

    def plan_synthetic(
        self,
        columns: Sequence[str],
        *,
        epsilon: Number,
        rows: int | None = None,
        marginals: Marginals | None = None,
        rounds: int | None = None,
        bins: Bins | None = None,
        max_rows: int | None = None,
    ) -> SyntheticPlan:
        """What `synthetic` would measure, and how exactly; costs nothing."""
        from tacit.analyst.synthetic import plan_synthetic

        return plan_synthetic(
            self.schema,
            columns,
            epsilon=epsilon,
            rows=rows,
            marginals=marginals,
            rounds=rounds,
            bins=bins,
            max_rows=max_rows,
            people=self.people,
        )

    def synthetic(
        self,
        columns: Sequence[str],
        *,
        epsilon: Number,
        rows: int | None = None,
        marginals: Marginals | None = None,
        rounds: int | None = None,
        bins: Bins | None = None,
        max_rows: int | None = None,
        retry_key: str | None = None,
    ) -> Synthetic:
        """Invented rows, in columns with declared keys or bounds, that may be published.

        Everything is as for the local table.

        Privacy: (ε, 0) for all rows together, charged before anything is counted.
        """
        from tacit.analyst.synthetic import Synthetic
        from tacit.wire.sizes import refuse_too_many

        sizes = {"rows": rows, "rounds": rounds, "max_rows": max_rows}
        chosen: dict[str, Any] = {"marginals": marginals, "bins": bins, **sizes}
        planned = self.plan_synthetic(columns, epsilon=epsilon, **chosen)
        refuse_too_many(planned)
        fields: dict[str, Any] = {
            "columns": [column.name for column in planned.columns],
            "epsilon": number(epsilon, "epsilon"),
            "marginals": None if marginals is None else [list(each) for each in marginals],
            "bins": None if bins is None else values_sent(bins),
            **sizes,
        }
        return self._pay("/v1/synthetic", retry_key, fields, Synthetic)

    def plan_small_db(
        self,
        questions: Questions,
        *,
        epsilon: Number,
        alpha: Number | None = None,
        rows: int | None = None,
        max_rows: int | None = None,
        certificate_epsilon: Number | None = None,
    ) -> ReleasePlan:
        """What `small_db` would do, and how well; costs nothing."""
        from tacit.analyst.release import describe
        from tacit.analyst.release_plan import ReleaseTask, plan_release
        from tacit.analyst.tabular import rows_that_count
        from tacit.privacy import Privacy

        task = ReleaseTask(
            self.questions(questions),
            describe(questions),
            Privacy(epsilon),
            self.people,
            rows_that_count(self.schema, max_rows),
            self.schema,
        )
        return plan_release(task, alpha=alpha, rows=rows, certificate_epsilon=certificate_epsilon)

    def small_db(
        self,
        questions: Questions,
        *,
        epsilon: Number,
        alpha: Number | None = None,
        rows: int | None = None,
        max_rows: int | None = None,
        certificate_epsilon: Number | None = None,
        retry_key: str | None = None,
    ) -> Release:
        """Release a small database that answers a whole class of questions.

        Privacy: (ε, 0) and what a certificate costs, charged before anything is drawn.
        """
        from tacit.analyst.question_class import Ordered
        from tacit.analyst.release import Release

        planned = self.plan_small_db(
            questions,
            epsilon=epsilon,
            alpha=alpha,
            rows=rows,
            max_rows=max_rows,
            certificate_epsilon=certificate_epsilon,
        )
        fields: dict[str, Any] = {
            "questions": {"kind": questions.kind, "column": questions.column}
            if isinstance(questions, Ordered)
            else list(questions),
            "epsilon": number(epsilon, "epsilon"),
            "alpha": number_or_none(alpha, "alpha"),
            "rows": None if rows is None else whole(rows, "rows"),
            "max_rows": planned.max_rows,
            "certificate_epsilon": number_or_none(certificate_epsilon, "certificate_epsilon"),
        }
        return self._pay("/v1/small_db", retry_key, fields, Release)
