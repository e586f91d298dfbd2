"""A table that answers questions: a steward opens it, and analysts ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from tacit.analyst.binding import mechanism_of, person_text, planned_of, refuse_other
from tacit.analyst.count import NoisyCount
from tacit.analyst.histogram import Histogram, NoisyHistogram
from tacit.analyst.opening import StreamOpening
from tacit.analyst.paying import (
    Owed,
    ReleaseMechanism,
    checked_budget,
    pay_draw_and_keep,
    pay_then_look,
    table_closed,
)
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
from tacit.analyst.stream import Stream, as_secret, from_secret
from tacit.analyst.synthetic import (
    Marginals,
    Synthetic,
    SyntheticPlan,
    SyntheticRows,
    plan_synthetic,
)
from tacit.analyst.task import Kind, Task
from tacit.analyst.top import Contest, NoisyTop, Top, TopPlan, plan_top
from tacit.analyst.versions import ONLY_ONCE, Rereading, TableVersions, Version
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_plan import KIND as WATCHED
from tacit.analyst.watched_plan import WatchedPlan, Watching, plan_watched_model
from tacit.arguments import text
from tacit.book.coins import Coins, refuse_insecure
from tacit.book.laplace import Estimate
from tacit.book.recipes import Recipe, Values
from tacit.errors import QuestionRefused, StreamMismatch
from tacit.numbers import Number, whole
from tacit.privacy import Privacy
from tacit.support import Closing
from tacit.tables.engine import Guarded
from tacit.tables.loading import load
from tacit.tables.prepared import (
    Askable,
    AskableWithValues,
    Prepared,
    Reader,
    checked_label,
    given_by_name,
)
from tacit.tables.schema import Schema
from tacit.tables.show import refusal

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.analyst.binned import Bins
    from tacit.budget import Budget, Lease, RetryKey, TableIdentity
    from tacit.tables.engine import Engine
    from tacit.tables.schema import Person
    from tacit.tables.show import Statement


Released = TypeVar("Released")


def open_table(
    source: object,
    *,
    person: Person | None = None,
    name: str | None = None,
    people: int | None = None,
    schema: Schema | str | Path | None = None,
    table: str | None = None,
    memory_limit: int | str | None = None,
    as_of: str | None = None,
    spill_folder: str | Path | None = None,
    shards: str | Path | None = None,
    grows_by: str | None = None,
) -> Table:
    """Open a sensitive table for questions; ``tacit.open`` is this function.

    ``source`` is a Parquet, CSV, TSV or DuckDB file, a PostgreSQL database (its URL, or a
    connection of psycopg; ``table`` names the table in either), a pandas, polars or Arrow table, or
    any other object that gives an Arrow stream.  It may also be an engine (see
    ``tacit.tables.Engine``), which brings its own person, name and schema.  ``person`` names the
    column that says whose row it is, or is ``tacit.EACH_ROW`` if every row is a different person;
    the promise is about people, so there is no default.  ``name`` is what budgets and FROM call
    the table; by default it is the file's name without its ending.  ``people`` is a public number
    from the steward, for planning; it is never read from the data.  ``schema`` is a TOML
    file (by default the one beside the data), TOML text or a Schema.  ``as_of`` is a public label
    from the steward that says which state of the data this is, such as "2026-11-01": recorded
    answers belong to it, and if it is a date, ``:as_of`` in questions stands for it.  Rows that do
    not fit into ``memory_limit`` are kept in a folder of their own under ``spill_folder`` while the
    table is open.  ``shards`` is a folder in which the table's codes are kept, in the clear: a
    table that does not fit is then answered from there instead of being scanned for each question,
    and a file that has not changed is not read again.  ``grows_by`` is a column of dates, times or
    numbers: only rows up to ``as_of`` in it are read, and `Table.refresh` adds those after it.
    """
    public_people = None if people is None else whole(people, "people")
    label = checked_label(as_of)
    engine = load(
        source,
        person=person,
        name=name,
        schema=schema,
        table=table,
        memory_limit=memory_limit,
        spill_folder=spill_folder,
        shards=shards,
        as_of=label,
        grows_by=grows_by,
    )
    again = Rereading(
        source=None if engine is source or isinstance(engine, Guarded) else source,
        table=table,
        memory_limit=memory_limit,
        spill_folder=spill_folder,
        shards=shards,
        grows_by=grows_by,
    )
    return Table(engine, people=public_people, as_of=label, again=again)


open_table.__qualname__ = "tacit.open"  # what Python calls it when an argument is wrong


class Table(Closing):
    """A sensitive table, open for questions.  ``tacit.open`` makes one.

    Nothing that it shows depends on the data, unless it was paid for from a budget.
    """

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
        self._versions = TableVersions(Version(engine, checked_label(as_of)), again)

    @property
    def name(self) -> str:
        """The table's name, by which a budget covers it."""
        return self.schema.name

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        return self.engine.schema

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
        from tacit.budget import TableIdentity

        person = self.schema.person
        read_as = self.schema.column(person).type if isinstance(person, str) else person.value
        return TableIdentity(person_text(person), read_as, self.schema.digest)

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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy answer to one question: the Laplace mechanism.

        With a ``retry_key``, asking again brings the same answer and costs nothing.

        Privacy: (ε, 0), charged to the budget before the question is answered.
        """
        values = given_by_name(parameters, params)
        counted = NoisyCount(self._reader.read(question, values), epsilon=epsilon)
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
        return self.count(
            asked,
            epsilon=epsilon,
            budget=budget,
            analyst=analyst,
            retry_key=retry_key,
            params=params,
            **parameters,
        )

    def histogram(
        self,
        *columns: str,
        epsilon: Number,
        max_rows: int = 1,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
    ) -> Histogram:
        """A noisy count for every cell, empty or not, of columns with declared keys or bounds.

        Of each person ``max_rows`` rows count, by default one; if they have more, those that count
        are chosen at random.  Rows with NULL in one of the columns, or with a value that is not
        declared, are not counted.

        Privacy: (ε, 0) for all cells together, charged before anything is counted.
        """
        counted = NoisyHistogram(self.schema, columns, epsilon=epsilon, max_rows=max_rows)
        return self.release(counted, budget=budget, analyst=analyst, retry_key=retry_key)

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
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> TopPlan:
        """How far what `top` draws may be from the largest; costs nothing."""
        values = given_by_name(parameters, params)
        contest = Contest.of(self._reader, self.schema, questions, values)
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
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Top:
        """The n largest cells of a GROUP BY, or of a list of questions, in the order of draw.

        With ``counts_epsilon`` each comes with a noisy count, which costs so much on top.

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

    # Streams ------------------------------------------------------------------------------

    def above_threshold(
        self,
        *,
        threshold: Number,
        epsilon: Number,
        delta: Number = 0,
        budget: Budget,
        name: str | None = None,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        numeric: bool = False,
        values: Values = "gap",
    ) -> Stream:
        """A stream that halts at its first ⊤ (AboveThreshold); see `sparse`."""
        return self.sparse(
            threshold=threshold,
            at_most=1,
            epsilon=epsilon,
            delta=delta,
            budget=budget,
            name=name,
            analyst=analyst,
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
        at_most: int,
        epsilon: Number,
        delta: Number = 0,
        budget: Budget,
        name: str | None = None,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        values: Values = "gap",
    ) -> Stream:
        """A stream whose ⊤ bring a noisy value (NumericSparse); see `sparse`.

        By default values are told from the gap, for no ε, where the recipe allows it; they are
        biased near the threshold and have an interval of their own.  ``values="fresh"`` pays for
        fresh, unbiased draws.
        """
        return self.sparse(
            threshold=threshold,
            at_most=at_most,
            epsilon=epsilon,
            delta=delta,
            budget=budget,
            name=name,
            analyst=analyst,
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
        at_most: int,
        epsilon: Number,
        delta: Number = 0,
        budget: Budget,
        name: str | None = None,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        rounds: int = 1,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        numeric: bool = False,
        values: Values = "gap",
    ) -> Stream:
        """Open a stream that answers ⊥ below the threshold, and ⊤ above it at most c times.

        ``kind="counts"`` takes only questions whose answer an added person cannot lower, and needs
        less noise; ``kind="directed"`` also takes those whose answer none can raise, such as "at
        most" (``ask(..., below=True)``); ``kind="any"`` takes all.  One person may change no answer
        by more than ``sensitivity``.  ``questions`` and ``beta`` help to plan the noise and limit
        nothing; ``rounds`` is how often ``ask_all(..., again=True)`` may ask each of them.
        ``recipe="book"`` forces the printed algorithm.  With ``numeric``, ⊤ bring values: see
        `numeric_sparse`.

        Opened again under the same ``retry_key``, it is resumed and not paid for again.

        Privacy: (ε, δ) for all answers together, charged now and in full.
        """
        task = Task.read(
            questions=questions,
            at_most=at_most,
            beta=beta,
            numeric=numeric,
            kind=kind,
            values=values,
            rounds=rounds,
        )
        opening = StreamOpening.planned(
            self.schema,
            task,
            Privacy(epsilon, delta),
            recipe,
            threshold=threshold,
            sensitivity=sensitivity,
            grid=grid,
        )

        return self._opened(opening, name, budget, analyst, retry_key)

    def _opened(
        self,
        opening: StreamOpening,
        name: str | None,
        budget: Budget,
        analyst: str | None,
        retry_key: str | RetryKey | None,
    ) -> Stream:
        """Pay for a stream and begin it; one that was opened under the same key is resumed."""
        retry = opening.retry_key(name, analyst, retry_key)
        before = None if retry is None else checked_budget(budget).answers.under(retry)
        if before is not None and before.stream is not None:
            return self.resume(before.stream, budget=budget)

        def pay(owed: Owed) -> Lease:
            return checked_budget(budget).open_stream(
                name,
                cost=owed.cost,
                at_most=opening.recipe.at_most,
                binding=opening.binding,
                secret=opening.start(self._coins),
                retry=retry,
                **owed.about,
            )

        return pay_then_look(self, opening, analyst, pay=pay, look=partial(self._begin, opening))

    def _begin(self, opening: StreamOpening, lease: Lease) -> Stream:
        kind, planned = opening.kind, opening.expected
        return Stream(self, self._versions, opening.mechanism, lease, kind=kind, planned=planned)

    def resume(self, name: str, *, budget: Budget) -> Stream:
        """Go on with a stream, after a crash or another day.  It is not paid for again.

        If it did not end cleanly, the reserved ⊤ is lost.  The table may have another label by now,
        and more columns and keys; what the promise depends on must not have changed.
        """
        if self.closed:
            raise table_closed()
        stored = (
            checked_budget(budget).stream(text(name, "name", "give the name of a stream")).binding
        )
        if stored.get("kind") == WATCHED:
            raise StreamMismatch(
                f"{name!r} is a watched model: table.resume_watched_model(...) goes on with it"
            )
        mechanism, expected = mechanism_of(stored, name), planned_of(stored, name)
        refuse_other(stored, self.schema, mechanism, expected, name)

        def after_loss(secret: bytes) -> bytes:
            return as_secret(mechanism.after_top(from_secret(secret), self._coins))

        lease = budget.resume_stream(
            name, binding=stored, after_loss=after_loss, identity=self.identity
        )
        return Stream(self, self._versions, mechanism, lease, kind=stored["kind"], planned=expected)

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
        budget: Budget,
        name: str | None = None,
        analyst: str | None = None,
        retry_key: str | None = None,
    ) -> WatchedModel:
        """A model of the table that answers every count with a number; only surprises cost.

        ``model`` is "synthetic" or "independent", which pay half of ε for rows of ``columns`` (by
        default all with declared keys or bounds; ``bins`` as for `synthetic`), or something public:
        an earlier release, or a frame or file with the table's columns.  Answers come from the
        model; where it is off by more than T′ on a question, that is a surprise: a noisy count of
        the data is told, and the model is fitted to it.  ``questions`` and ``beta`` help to plan T′
        and limit nothing.

        Privacy: (ε, 0) for all answers together, charged now and in full.
        Accuracy: `plan_watched_model` says it before.
        """
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
        watching = Watching(self, self._versions, budget)
        return watching.open(planned, model, name=name, analyst=analyst, retry_key=retry_key)

    def resume_watched_model(
        self, name: str, *, budget: Budget, model: object = None
    ) -> WatchedModel:
        """Go on with a watched model, after a crash or another day.  It is not paid for again.

        If it did not end cleanly, the reserved surprise is lost.  A model that was given when it
        was opened is given again; one that was paid for is on record.
        """
        return Watching(self, self._versions, budget).resume(name, model=model)

    # Small databases ----------------------------------------------------------------------

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
        max_rows: int = 1,
    ) -> ReleasePlan:
        """What `small_db` would do, and how well.  Costs nothing, and uses public values only."""
        task = ReleaseTask(
            self.questions(questions),
            describe(questions),
            Privacy(epsilon),
            self.people,
            whole(max_rows, "max_rows"),
        )
        return plan_release(task, alpha=alpha, rows=rows)

    def small_db(
        self,
        questions: Questions,
        *,
        epsilon: Number,
        alpha: Number | None = None,
        rows: int | None = None,
        max_rows: int = 1,
        budget: Budget,
        analyst: str | None = None,
        retry_key: str | RetryKey | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Release a small database that answers a whole class of questions.

        ``questions`` is ``tacit.prefixes(column)``, ``tacit.intervals(column)`` or a list of
        predicates over columns with declared domains.  ``alpha`` or ``rows`` sets its size; if
        the table was opened with ``people``, both may be left out.  Of each person ``max_rows``
        rows are used, by default one; if they have more, those are chosen at random.  Rows with
        NULL in a column of the questions are not used.

        Privacy: (ε, 0), charged before anything is drawn.
        Accuracy: stated by `plan_small_db` before, and by ``release.guarantee(beta)`` after.
        """
        planned = self.plan_small_db(
            questions, epsilon=epsilon, alpha=alpha, rows=rows, max_rows=max_rows
        )
        drawn = SmallDb(planned, self.schema, questions, progress)
        return self.release(drawn, budget=budget, analyst=analyst, retry_key=retry_key)

    # Growing ------------------------------------------------------------------------------

    def refresh(self, *, as_of: str, source: object = None, whole: bool = False) -> None:
        """Read the table's next version, under a new label that the steward or a clock chooses.

        All rows are read; but if the table was opened with ``grows_by``, only those after the old
        label and up to the new one in that column, which join the rows that are held.  Rows that
        came late, were changed or were deleted are then missed until ``whole=True`` reads all rows
        up to the label.  ``source`` is where to read from now; by default where the table was
        opened, unless that can be read only once.  Streams go on, and each answer belongs to the
        version it is about.  If reading fails, the table stays as it is.

        Privacy: streams keep their promise at the same price, as long as neither the label nor the
        moment depends on the data (see ``docs/explanation/data-that-change.md``).
        """
        self._versions.refresh(as_of, source, whole)

    # Leaving ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the table.  Its open streams can no longer be asked."""
        self._versions.close()

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.schema.columns)
        label = "" if self.as_of is None else f" as of {self.as_of}"
        person = person_text(self.schema.person)
        return f"<Table {self.name!r}{label}, one person: {person}; columns {columns}>"
