"""A table on a server: the face of the local one, paid for from the token's share.

Whatever follows from the public schema (reading a question, planning a release) is done here; what
needs the data is asked of the server.  Each request that may spend has a key, so it can be sent
again if its answer is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tacit import wire
from tacit.arguments import text
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import Number, whole
from tacit.remote.sending import given_by_name, number, number_or_none, questions_sent, text_of
from tacit.remote.sending import values as values_sent
from tacit.tables.schema import EACH_ROW, Schema, read_schema

if TYPE_CHECKING:
    from tacit.analyst.binned import Bins
    from tacit.analyst.dummy import DummyTable
    from tacit.analyst.histogram import Histogram
    from tacit.analyst.histogram_plan import HistogramPlan
    from tacit.analyst.public_model import ModelRows
    from tacit.analyst.query import QueryPlan
    from tacit.analyst.query_result import QueryResult
    from tacit.analyst.question_class import QuestionClass, Questions
    from tacit.analyst.ranges import RangePlan, Ranges
    from tacit.analyst.release import Release
    from tacit.analyst.release_plan import ReleasePlan
    from tacit.analyst.synthetic import Marginals, Synthetic, SyntheticPlan
    from tacit.analyst.task import Kind, Task
    from tacit.analyst.top import Top, TopPlan
    from tacit.analyst.watched_plan import WatchedPlan
    from tacit.book.laplace import Estimate
    from tacit.book.recipes import Recipe, Values
    from tacit.privacy import Privacy
    from tacit.remote.stream import RemoteStream
    from tacit.remote.transport import Transport
    from tacit.remote.watched import RemoteWatchedModel
    from tacit.tables.prepared import Askable, AskableWithValues, Prepared, Reader
    from tacit.tables.show import Statement


T = TypeVar("T")


class RemoteTable:
    """A table on a server: what is public about it, and what can be asked."""

    def __init__(self, transport: Transport, fields: Mapping[str, Any]) -> None:
        self._transport = transport
        person = EACH_ROW if fields["person"] is None else fields["person"]
        self._schema = read_schema(fields["schema"], name=fields["name"], person=person)
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
        from tacit.tables.prepared import Reader

        return Reader(self.schema, self.as_of, self._cannot)

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
        from tacit.tables.show import Statement, refusal

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
        counted = NoisyCount(self.reader.read(question, given), epsilon=epsilon)
        asked = {"question": text_of(question), "parameters": values_sent(given)}
        fields = {**asked, "epsilon": number(epsilon, "epsilon")}
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
        params: Mapping[str, object] | None = None,
    ) -> QueryPlan:
        """What `query` would cost, and how far its answers would be off; costs nothing."""
        from tacit.analyst.query import plan_query

        select = self.reader.select(sql, given_by_name({}, params), max_rows)
        return plan_query(
            select, epsilon=epsilon, delta=delta, weights=weights, max_cells=max_cells
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
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> TopPlan:
        """How far what `top` draws may be from the largest; costs nothing."""
        from tacit.analyst.top import Contest, plan_top

        given = given_by_name(parameters, params)
        contest = Contest.of(self.reader, self.schema, questions, given)
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
        self.plan_top(n, several, epsilon=epsilon, delta=delta, **counts)
        fields: dict[str, Any] = {
            "n": whole(n, "n"),
            "questions": asked,
            "epsilon": number(epsilon, "epsilon"),
            "delta": number(delta, "delta"),
            "counts_epsilon": number_or_none(counts_epsilon, "counts_epsilon"),
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

    # Streams ------------------------------------------------------------------------------

    def above_threshold(
        self,
        *,
        threshold: Number,
        epsilon: Number,
        delta: Number = 0,
        name: str | None = None,
        retry_key: str | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        numeric: bool = False,
        values: Values = "gap",
    ) -> RemoteStream:
        """A stream that halts at its first ⊤ (AboveThreshold); see `sparse`."""
        return self.sparse(
            threshold=threshold,
            at_most=1,
            epsilon=epsilon,
            delta=delta,
            name=name,
            retry_key=retry_key,
            kind=kind,
            sensitivity=sensitivity,
            grid=grid,
            questions=questions,
            rounds=rounds,
            beta=beta,
            recipe=recipe,
            numeric=numeric,
            values=values,
        )

    def numeric_sparse(
        self,
        *,
        threshold: Number,
        at_most: int | None = None,
        least_scale: Number | None = None,
        epsilon: Number,
        delta: Number = 0,
        name: str | None = None,
        retry_key: str | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        values: Values = "gap",
    ) -> RemoteStream:
        """A stream whose ⊤ bring a noisy value (NumericSparse); see `sparse`."""
        return self.sparse(
            threshold=threshold,
            at_most=at_most,
            least_scale=least_scale,
            epsilon=epsilon,
            delta=delta,
            name=name,
            retry_key=retry_key,
            kind=kind,
            sensitivity=sensitivity,
            grid=grid,
            questions=questions,
            rounds=rounds,
            beta=beta,
            recipe=recipe,
            numeric=True,
            values=values,
        )

    def sparse(
        self,
        *,
        threshold: Number,
        at_most: int | None = None,
        least_scale: Number | None = None,
        epsilon: Number,
        delta: Number = 0,
        name: str | None = None,
        retry_key: str | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        numeric: bool = False,
        values: Values = "gap",
    ) -> RemoteStream:
        """Open a stream that answers ⊥ below the threshold, and ⊤ above it at most c times.

        Everything is as for the local table.  A recipe is one of a plan for the same numbers.

        Privacy: (ε, δ) for all answers together, charged to the token's share now and in full.
        """
        from tacit.analyst.opening import refuse_both
        from tacit.analyst.task import Task
        from tacit.budget.ledger import checked_text
        from tacit.privacy import Privacy
        from tacit.remote.stream import RemoteStream

        refuse_both(at_most, least_scale, recipe)
        common: dict[str, Any] = {"beta": beta, "numeric": numeric, "kind": kind, "values": values}
        tops = 1 if at_most is None else at_most
        task = Task.read(questions=questions, at_most=tops, rounds=rounds, **common)
        promise = Privacy(epsilon, delta)
        fields: dict[str, Any] = {
            "table": self.name,
            "algorithm": "sparse",
            "threshold": number(threshold, "threshold"),
            "epsilon": str(promise.epsilon),
            "delta": str(promise.delta),
            "at_most": task.at_most,
            "least_scale": number_or_none(least_scale, "least_scale"),
            "name": None if name is None else checked_text(name, "name"),
            "kind": task.kind,
            "sensitivity": number(sensitivity, "sensitivity"),
            "grid": number(grid, "grid"),
            "questions": task.questions,
            "beta": str(task.beta),
            "recipe": _name_in_plan(recipe, task, promise),
            "numeric": task.numeric,
            "values": task.values,
            "rounds": task.rounds,
        }
        told = self._transport.pay("/v1/streams/open", retry_key, fields)
        return RemoteStream(self, self._transport, told)

    def resume(self, name: str) -> RemoteStream:
        """Go on with a stream, after a crash or another day.  It is not paid for again."""
        from tacit.remote.stream import RemoteStream

        called = text(name, "name", "give the name of a stream")
        fields = {"table": self.name, "stream": called}
        told = self._transport.post("/v1/streams/resume", fields)
        return RemoteStream(self, self._transport, told)

    # Watched models -----------------------------------------------------------------------

    def plan_watched_model(
        self,
        *,
        epsilon: Number,
        surprises: int = 20,
        model: object = "synthetic",
        columns: Sequence[str] | None = None,
        bins: Bins | None = None,
        max_rows: int | None = None,
        questions: int = 10_000,
        beta: Number = "1/20",
    ) -> WatchedPlan:
        """T′ and the errors of `watched_model`; costs nothing."""
        from tacit.analyst.watched_plan import plan_watched_model

        return plan_watched_model(
            self.schema,
            epsilon=epsilon,
            surprises=surprises,
            model=model,
            columns=columns,
            bins=bins,
            max_rows=max_rows,
            questions=questions,
            beta=beta,
            people=self.people,
        )

    def watched_model(
        self,
        *,
        epsilon: Number,
        surprises: int = 20,
        model: object = "synthetic",
        columns: Sequence[str] | None = None,
        bins: Bins | None = None,
        max_rows: int | None = None,
        questions: int = 10_000,
        beta: Number = "1/20",
        name: str | None = None,
        retry_key: str | None = None,
    ) -> RemoteWatchedModel:
        """A model of the table that answers every count with a number; only surprises cost.

        Everything is as for the local table.  A model that is given is sent to the server.

        Privacy: (ε, 0) for all answers together, charged to the token's share now and in full.
        """
        from tacit.budget.ledger import checked_text
        from tacit.remote.watched import RemoteWatchedModel, rows_sent

        planned = self.plan_watched_model(
            epsilon=epsilon,
            surprises=surprises,
            model=model,
            columns=columns,
            bins=bins,
            max_rows=max_rows,
            questions=questions,
            beta=beta,
        )
        rows = self._given_rows(model) if planned.synthetic is None else None
        fields: dict[str, Any] = {
            "table": self.name,
            "epsilon": str(planned.privacy.epsilon),
            "surprises": planned.watch.surprises,
            "model": model if rows is None else rows_sent(rows),
            "columns": None if columns is None else list(columns),
            "bins": None if bins is None else values_sent(bins),
            "max_rows": None if max_rows is None else whole(max_rows, "max_rows"),
            "questions": planned.questions,
            "beta": str(planned.beta),
            "name": None if name is None else checked_text(name, "name"),
        }
        told = self._transport.pay("/v1/watched/open", retry_key, fields)
        return RemoteWatchedModel(self, self._transport, told, plan=planned, rows=rows)

    def resume_watched_model(self, name: str, *, model: object = None) -> RemoteWatchedModel:
        """Go on with a watched model, after a crash or another day.  It is not paid for again.

        A model that was given when it was opened is given again.
        """
        from tacit.analyst.watched_plan import model_answer, plan_of_binding
        from tacit.remote.answers import RemoteAnswers
        from tacit.remote.watched import RemoteWatchedModel, rows_sent

        rows = None if model is None else self._given_rows(model)
        called = text(name, "name", "give the name of a watched model")
        fields = {"table": self.name, "stream": called, "model": rows_sent(rows)}
        told = self._transport.post("/v1/watched/resume", fields)
        paid = model_answer(told["binding"])
        kept = None if paid is None else RemoteAnswers(self._transport)[paid].value
        synthetic = None if kept is None else kept.plan
        planned = plan_of_binding(told["binding"], called, self.schema, synthetic)
        return RemoteWatchedModel(self, self._transport, told, plan=planned, rows=rows)

    def _given_rows(self, model: object) -> ModelRows:
        from tacit.analyst.public_model import model_rows

        return model_rows(model, self.schema, self.people)

    # Small databases ----------------------------------------------------------------------

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


def _name_in_plan(recipe: str | Recipe, task: Task, promise: Privacy) -> str:
    """A recipe by its name: the server makes its own plan and takes the one of that name."""
    from tacit.analyst.opening import chosen_recipe
    from tacit.book.recipes import Recipe

    if not isinstance(recipe, Recipe):
        return text(recipe, "recipe", "give 'best', 'book' or a recipe of a plan")
    if chosen_recipe(recipe.name, task, promise) != recipe:
        raise BadParameter(
            "recipe",
            recipe.name,
            "a server takes the recipes of a plan: give one that tacit.plan finds for the same "
            "numbers",
        )
    return recipe.name
