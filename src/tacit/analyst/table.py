"""A table that answers questions: a steward opens it, and analysts ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from tacit.analyst.binding import mechanism_of, planned_of, refuse_other
from tacit.analyst.live_stream import as_secret, from_secret
from tacit.analyst.opening import StreamOpening, priced_opening, refuse_both
from tacit.analyst.paying import Owed, checked_budget, pay_then_look, table_closed
from tacit.analyst.releasing import ReleasingTable
from tacit.analyst.stream import Stream
from tacit.analyst.task import Kind, Task
from tacit.analyst.versions import Rereading
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_plan import WatchedPlan, Watching, is_watched, plan_watched_model
from tacit.arguments import text
from tacit.book.recipes import Recipe, Values
from tacit.errors import StreamMismatch
from tacit.numbers import Number, whole
from tacit.privacy import Privacy
from tacit.tables.engine.engine import Guarded
from tacit.tables.language.prepared import checked_label
from tacit.tables.opening import load
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.analyst.binned import Bins
    from tacit.budget import Budget, Lease, RetryKey
    from tacit.tables.schema.schema import Person


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
    spill: bool = True,
    shards: str | Path | None = None,
    grows_by: str | None = None,
) -> Table:
    """Open a sensitive table for questions; ``tacit.open`` is this function.

    ``source`` is a Parquet, CSV, TSV or DuckDB file, a PostgreSQL database (its URL, or a
    connection of psycopg; ``table`` names the table in either), a pandas, polars or Arrow table, a
    Spark DataFrame, or any other object that gives an Arrow stream.  It may also be an engine (see
    ``tacit.tables.Engine``), which brings its own person, name and schema.  ``person`` names the
    column that says whose row it is, or is ``tacit.EACH_ROW`` if every row is a different person;
    the promise is about people, so there is no default.  ``name`` is what budgets and FROM call
    the table; by default it is the file's name without its ending.  ``people`` is a public number
    from the steward, for planning; it is never read from the data.  ``schema`` is a TOML
    file (by default the one beside the data), TOML text or a Schema.  ``as_of`` is a public label
    from the steward that says which state of the data this is, such as "2026-11-01": recorded
    answers belong to it, and if it is a date, ``:as_of`` in questions stands for it.  The codes of
    a table that does not fit into ``memory_limit`` are kept under ``spill_folder`` while the table
    is open, in files without a name; with ``spill=False`` such a table is refused.  ``shards`` is a
    folder in which the codes are kept for good, in the clear: a file that has not changed is not
    read again; Spark's executors write there.  ``grows_by`` is a column of dates, times or numbers:
    only rows up to ``as_of`` in it are read, and `Table.refresh` adds those after it.
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
        spill=spill,
        shards=shards,
        as_of=label,
        grows_by=grows_by,
    )
    again = Rereading(
        source=None if engine is source or isinstance(engine, Guarded) else source,
        table=table,
        memory_limit=memory_limit,
        spill_folder=spill_folder,
        spill=spill,
        shards=shards,
        grows_by=grows_by,
    )
    return Table(engine, people=public_people, as_of=label, again=again)


open_table.__qualname__ = "tacit.open"  # what Python calls it when an argument is wrong


class Table(ReleasingTable):
    """A sensitive table, open for questions.  ``tacit.open`` makes one.

    Nothing that it shows depends on the data, unless it was paid for from a budget.
    """

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
        at_most: int | None = None,
        least_scale: Number | None = None,
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

        By default values come from the gap, for no ε, where the recipe allows it; they are
        biased near the threshold and have an interval of their own.  ``values="fresh"`` pays for
        fresh, unbiased draws.
        """
        return self.sparse(
            threshold=threshold,
            at_most=at_most,
            least_scale=least_scale,
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
        at_most: int | None = None,
        least_scale: Number | None = None,
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

        Give ``at_most``, the c ⊤ that are paid for; or ``least_scale``, and each ⊤ costs by the
        scale that its question is asked at (``ask(..., scale=)``), until ε₂ is used.

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
        refuse_both(at_most, least_scale, recipe)
        task = Task.read(
            questions=questions,
            at_most=1 if at_most is None else at_most,
            beta=beta,
            numeric=numeric,
            kind=kind,
            values=values,
            rounds=rounds,
        )
        promise = Privacy(epsilon, delta)
        lengths = {"threshold": threshold, "sensitivity": sensitivity, "grid": grid}
        if least_scale is None:
            opening = StreamOpening.planned(self.schema, task, promise, recipe, **lengths)
        else:
            opening = priced_opening(self.schema, task, promise, least_scale, **lengths)
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
        if is_watched(stored):
            raise StreamMismatch(
                f"{name!r} is a watched model: table.resume_watched_model(...) goes on with it"
            )
        mechanism, expected = mechanism_of(stored, name), planned_of(stored, name)
        refuse_other(stored, self.schema, mechanism, expected, name)

        def after_loss(secret: bytes) -> bytes:
            if mechanism.recipe.least_scale is not None:
                return secret  # one ρ for all; the ledger knows which price was lost
            return as_secret(mechanism.after_top(from_secret(secret), self._coins))

        lease = budget.resume_stream(
            name,
            binding=stored,
            after_loss=after_loss,
            identity=self.identity,
            beside=self.identities_beside,
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
        retry_key: str | RetryKey | None = None,
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
