"""What a table releases: numbers, tables and rows, each planned, paid for and drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tacit.analyst.binding import identity_of
from tacit.analyst.count import NoisyCount
from tacit.analyst.histogram import Histogram, NoisyHistogram
from tacit.analyst.histogram_plan import HistogramPlan, plan_histogram
from tacit.analyst.paying import ReleaseMechanism, pay_draw_and_keep
from tacit.analyst.query import Query
from tacit.analyst.query_plan import QueryPlan, plan_query
from tacit.analyst.query_result import QueryResult
from tacit.analyst.question_class import (
    QuestionClass,
    Questions,
    declared_column,
    question_class,
)
from tacit.analyst.ranges import (
    NoisyRanges,
    RangePlan,
    Ranges,
    plan_ranges,
    refuse_without_steps,
)
from tacit.analyst.release import Release, SmallDb, describe
from tacit.analyst.release_plan import ReleasePlan, ReleaseTask, plan_release
from tacit.analyst.shown_table import as_html, in_one_line
from tacit.analyst.synthetic import (
    Marginals,
    Synthetic,
    SyntheticPlan,
    SyntheticRows,
    plan_synthetic,
)
from tacit.analyst.tabular import rows_that_count
from tacit.analyst.top import Contest, NoisyTop, Top, TopPlan, plan_top
from tacit.analyst.versions import ONLY_ONCE, Rereading, SharedEngine, TableVersions, Version
from tacit.book.coins import Coins, refuse_insecure
from tacit.book.laplace import Estimate
from tacit.errors import QuestionRefused
from tacit.numbers import Number
from tacit.privacy import Privacy
from tacit.support import Closing
from tacit.tables.language.prepared import (
    Askable,
    AskableWithValues,
    Prepared,
    Reader,
    checked_label,
    given_by_name,
)
from tacit.tables.language.show import refusal
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.analyst.binned import Bins
    from tacit.budget import Budget, RetryKey, TableIdentity
    from tacit.tables.engine.engine import Engine
    from tacit.tables.language.show import Statement


Released = TypeVar("Released")


class ReleasingTable(Closing):
    """What is public about a table, and everything that it releases once, for a price each."""

    def __init__(
        self,
        engine: Engine,
        *,
        people: int | None = None,
        as_of: str | None = None,
        coins: Coins | None = None,
        again: Rereading = ONLY_ONCE,
    ) -> None:
        self._people = people
        self._coins = Coins() if coins is None else coins
        refuse_insecure(self._coins)
        self._versions = TableVersions(Version(SharedEngine(engine), checked_label(as_of)), again)

    @property
    def name(self) -> str:
        """The table's name, by which a budget covers it."""
        return self.schema.name

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        return self._versions.now.schema

    @property
    def cannot_ask(self) -> dict[str, str]:
        """Columns that are there but cannot be asked about, by name, each with the reason."""
        return dict(self.schema.cannot_ask)

    @property
    def engine(self) -> Engine:
        """Where true values come from.  Whoever holds it can see the data."""
        return self._versions.now.engine

    @property
    def coins(self) -> Coins:
        """The source of its randomness."""
        return self._coins

    @property
    def identity(self) -> TableIdentity:
        """Who its people are.  A budget ties the table's name to this when it is first used."""
        return identity_of(self.schema)

    @property
    def identities_beside(self) -> dict[str, TableIdentity]:
        """Who the people of the tables are that are open together with this one."""
        return {other.name: identity_of(other) for other in self.schema.beside}

    @property
    def people(self) -> int | None:
        """The public number of people that the steward gave; it is never read from the data."""
        return self._people

    @property
    def as_of(self) -> str | None:
        """The public label that the steward gave: which state of the data this is."""
        return self._versions.now.as_of

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return not self._versions.open

    @property
    def _reader(self) -> Reader:
        return self._versions.now.reader

    # Reading questions --------------------------------------------------------------------

    def check(
        self, question: str, *, params: Mapping[str, object] | None = None, **parameters: object
    ) -> Statement:
        """What would be promised about a question, or why it is refused.  Costs nothing.

        Here and wherever a question is asked, its parameters are given by name, or in ``params``:
        only there if they are called as an option is.
        """
        try:
            values = given_by_name(parameters, params)
        except QuestionRefused as why:
            return refusal(question, why)
        return self._reader.check(question, values)

    def prepare(self, question: str) -> Prepared:
        """Read a question once, to ask it often with different parameters."""
        return self._reader.prepare(question)

    # Releases -----------------------------------------------------------------------------

    def release(
        self,
        mechanism: ReleaseMechanism[Released],
        *,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Released:
        """Pay for a mechanism, then draw from it.  This is how everything is released.

        `count`, `sum`, `histogram` and `small_db` build a mechanism and call this.  A mechanism of
        your own is a value with a ``cost``, a text for the history (``what``), what it ``needs`` of
        the engine, a ``check(schema)`` and a ``draw(engine, coins)``.  What is released is kept:
        ``budget.answers`` lists it.  Asked again under the same ``retry_key``, by the same
        analyst, it brings the same release and costs nothing.

        Privacy: the mechanism's own promise, charged in full before it sees the data.
        """
        with self._versions.used() as version:
            return pay_draw_and_keep(self, version, mechanism, budget, analyst, retry_key)

    def count(
        self,
        question: Askable,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy answer to one question: the Laplace mechanism.

        COUNT(*) counts at most ``max_rows`` rows of each person, by default as many as the schema
        says.  With a ``retry_key``, asking again brings the same answer and costs nothing.

        Privacy: (ε, 0), charged to the budget before the question is answered.
        """
        values = given_by_name(parameters, params)
        counted = NoisyCount(self._reader.read(question, values, max_rows), epsilon=epsilon)
        return self.release(counted, budget=budget, analyst=analyst, retry_key=retry_key)

    def sum(
        self,
        column: str,
        *,
        where: str | None = None,
        epsilon: Number,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy sum of a column with declared bounds, over the rows that satisfy ``where``.

        Privacy: (ε, 0), with each person's part of the sum clamped to its declared total.
        """
        asked = self._reader.sum(declared_column(self.schema, column).name, where)
        values = given_by_name(parameters, params)
        return self.count(
            asked,
            epsilon=epsilon,
            budget=budget,
            analyst=analyst,
            retry_key=retry_key,
            params=values,
        )

    def plan_histogram(
        self, *columns: str, epsilon: Number, max_rows: int | None = None
    ) -> HistogramPlan:
        """How far the counts of `histogram` would be off; costs nothing."""
        return plan_histogram(
            self.schema, columns, epsilon=epsilon, max_rows=max_rows, people=self.people
        )

    def histogram(
        self,
        *columns: str,
        epsilon: Number,
        max_rows: int | None = None,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Histogram:
        """A noisy count for every cell, empty or not, of columns with declared keys or bounds.

        Of each person ``max_rows`` rows count, by default as many as the schema says; there is no
        other default, since a bound that is too small biases the counts.  Those that count
        are chosen at random.  Rows with NULL in one of the columns, or with a value that is not
        declared, are not counted.

        Privacy: (ε, 0) for all cells together, charged before anything is counted.
        Accuracy: `plan_histogram` says it before.
        """
        counted = NoisyHistogram(self.schema, columns, epsilon=epsilon, max_rows=max_rows)
        return self.release(counted, budget=budget, analyst=analyst, retry_key=retry_key)

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
        select = self._reader.select(sql, given_by_name({}, params), max_rows)
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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
    ) -> QueryResult:
        """A SELECT of counts and sums, with a row for every cell of a GROUP BY, empty or not.

        Several aggregates share ε equally, or by ``weights``.  Each person counts in at most
        ``max_cells`` cells, chosen at random where they lie in more; COUNT(*) counts at most
        ``max_rows`` of their rows in each.  Both are by default as the schema says.  ORDER BY ...
        DESC LIMIT n draws the n largest cells, and HAVING COUNT(*) > T tells those above T, up to
        ``at_most``, which has no default; either has a share of ε, and δ helps them alone.

        Privacy: (ε, δ) for all cells and aggregates together, charged before anything is counted.
        Accuracy: `plan_query` says it before, and each value comes with its error.
        """
        planned = self.plan_query(
            sql,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            max_rows=max_rows,
            max_cells=max_cells,
            at_most=at_most,
            params=params,
        )
        return self.release(Query(planned), budget=budget, analyst=analyst, retry_key=retry_key)

    def plan_ranges(
        self, column: str, *, epsilon: Number, max_rows: int | None = None
    ) -> RangePlan:
        """What `ranges` would do, and how far its answers would be off; costs nothing."""
        return plan_ranges(
            self.schema, column, epsilon=epsilon, max_rows=max_rows, people=self.people
        )

    def ranges(
        self,
        column: str,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Ranges:
        """Every prefix, interval and quantile of one column with declared bounds or keys.

        ``max_rows`` rows of each person count, by default as many as the schema says, chosen at
        random where there are more.  Rows with NULL in the column, or with a value that is not
        declared, count nowhere.

        Privacy: (ε, 0) for all answers together, charged before anything is counted.
        Accuracy: `plan_ranges` says it before.
        """
        planned = self.plan_ranges(column, epsilon=epsilon, max_rows=max_rows)
        counted = NoisyRanges(planned)
        return self.release(counted, budget=budget, analyst=analyst, retry_key=retry_key)

    def running(
        self,
        column: str,
        *,
        epsilon: Number,
        max_rows: int | None = None,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Ranges:
        """How many rows there were up to each day of a date column, or step of an integer one.

        One release about the table as it is now: a row that arrives later is in the next one, which
        is paid for again.  All else is as for `ranges`.
        """
        refuse_without_steps(declared_column(self.schema, column))
        planned = self.plan_ranges(column, epsilon=epsilon, max_rows=max_rows)
        counted = NoisyRanges(planned, "running count")
        return self.release(counted, budget=budget, analyst=analyst, retry_key=retry_key)

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
        values = given_by_name(parameters, params)
        contest = Contest.of(self._reader, self.schema, questions, values, max_rows)
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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Top:
        """The n largest cells of a GROUP BY, or of a list of questions, in the order of draw.

        With ``counts_epsilon`` each comes with a noisy count, which costs so much on top.  COUNT(*)
        counts at most ``max_rows`` rows of each person, by default as many as the schema says.

        Privacy: (ε, δ) for the order and (counts_epsilon, 0) for the counts, charged together
        before anything is counted.
        Accuracy: `plan_top` says it before.
        """
        planned = self.plan_top(
            n,
            questions,
            epsilon=epsilon,
            delta=delta,
            counts_epsilon=counts_epsilon,
            max_rows=max_rows,
            params=params,
            **parameters,
        )
        drawn = NoisyTop(planned)
        return self.release(drawn, budget=budget, analyst=analyst, retry_key=retry_key)

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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Synthetic:
        """Invented rows, in columns with declared keys or bounds, that may be published.

        The counts of each column are measured, and of pairs that form a tree; ``rounds`` then
        measure what the rows have most wrong of ``marginals``, by default of all pairs.  Without
        ``rounds`` it is decided by the public number of people whether there are any.  A wide
        column is cut into ``bins``, such as ``{"age": 10, "cost": [0, 100, 1000]}``: how many, or
        where they start.  ``max_rows`` rows of each person count, by default as many as the schema
        says, chosen at random where there are more.

        Privacy: (ε, 0) for all rows together, charged before anything is counted.
        Accuracy: `plan_synthetic` says before how exactly is measured, and ``report`` of the rows
        how far they are from it; other questions have no promise.
        """
        planned = self.plan_synthetic(
            columns,
            epsilon=epsilon,
            rows=rows,
            marginals=marginals,
            rounds=rounds,
            bins=bins,
            max_rows=max_rows,
        )
        drawn = SyntheticRows(planned)
        return self.release(drawn, budget=budget, analyst=analyst, retry_key=retry_key)

    def questions(self, questions: Questions) -> QuestionClass:
        """A class of questions over the declared domain; ``.vc_dimension()`` measures it."""
        return question_class(questions, self.schema)

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
        """What `small_db` would do, and how well.  Costs nothing, and uses public values only."""
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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Release a small database that answers a whole class of questions.

        ``questions`` is ``tacit.prefixes(column)``, ``tacit.intervals(column)`` or a list of
        predicates over columns with declared domains.  ``alpha`` or ``rows`` sets its size; if
        the table was opened with ``people``, both may be left out.  Of each person ``max_rows``
        rows are used, by default as many as the schema says, chosen at random.  Rows with
        NULL in a column of the questions are not used.  ``certificate_epsilon``, such as a tenth of
        ``epsilon``, pays on top for measuring how far the drawn rows are off: see
        ``release.certified(beta)``.

        Privacy: (ε, 0) and what a certificate costs, charged before anything is drawn.
        Accuracy: stated by `plan_small_db` before, and by ``release.guarantee(beta)`` after.
        """
        planned = self.plan_small_db(
            questions,
            epsilon=epsilon,
            alpha=alpha,
            rows=rows,
            max_rows=max_rows,
            certificate_epsilon=certificate_epsilon,
        )
        drawn = SmallDb(planned, self.schema, questions, progress)
        return self.release(drawn, budget=budget, analyst=analyst, retry_key=retry_key)

    # Leaving ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the table.  Its open streams can no longer be asked."""
        self._versions.close()

    def _repr_html_(self) -> str:
        return as_html(self.schema, self.as_of)

    def __repr__(self) -> str:
        return in_one_line(self.schema, self.as_of)
