"""A table that can be asked: what a steward opens and an analyst holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from tacit.analyst import plan
from tacit.analyst.binding import binding_of, mechanism_of, planned_of, refuse_other, whose_row
from tacit.analyst.histogram import Histogram, draw_histogram
from tacit.analyst.plan_text import planned_for
from tacit.analyst.question_class import (
    QuestionClass,
    Questions,
    declared_column,
    question_class,
)
from tacit.analyst.release import Release, describe, draw_release
from tacit.analyst.release_plan import ReleasePlan, plan_release
from tacit.analyst.stream import Stream, as_secret, from_secret
from tacit.arguments import flag, instance, one_of, text
from tacit.book.coins import Coins, refuse_insecure
from tacit.book.laplace import Estimate, LaplaceMechanism
from tacit.book.one_sided import prepare as prepare_mechanism
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter, EngineFailed
from tacit.numbers import Number, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Closing
from tacit.tables.loading import load
from tacit.tables.prepared import Askable, Prepared, Reader, checked_label
from tacit.tables.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.budget import Budget, TableIdentity
    from tacit.tables.engine import Engine
    from tacit.tables.schema import Person
    from tacit.tables.show import Statement


# What pays: a budget, and nothing that only looks like one.


def paying(budget: Budget) -> Budget:
    """The budget that was given to pay; asked for before anything is read or drawn."""
    from tacit.budget import Budget

    return instance(
        budget, "budget", Budget, "give a Budget, such as tacit.Budget.open('clinic.budget')"
    )


Kind = Literal["counts", "any"]


def open_table(
    source: object,
    *,
    person: Person,
    name: str | None = None,
    people: int | None = None,
    schema: Schema | str | Path | None = None,
    table: str | None = None,
    memory_limit: int | str | None = None,
    as_of: str | None = None,
    spill_folder: str | Path | None = None,
) -> Table:
    """Open a sensitive table for questions; ``tacit.open`` is this function.

    ``source`` is a Parquet, CSV, TSV or DuckDB file (``table`` names the table in it), or a
    pandas, polars or Arrow table.  ``person`` says whose row it is: a column, or
    ``tacit.EACH_ROW`` if every row is a person of its own; the promise is about people, so there
    is no default.  ``name`` is what budgets and FROM call the table, by default the file's stem.
    ``people`` is a public number that the steward types, for planning; it is never read from the
    data.  ``schema`` is a TOML file (by default the one beside the data), TOML text or a Schema.
    ``as_of`` is a public label that the steward types to say which state of the data this is, such
    as "2026-11-01": recorded answers belong to it, and a date stands for ``:as_of`` in questions.
    Rows that do not fit into ``memory_limit`` go to a folder of their own under ``spill_folder``
    meanwhile.
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
    )
    return Table(engine, people=public_people, as_of=label)


open_table.__qualname__ = "tacit.open"  # as in Python's own words when `person` is missing


class Table(Closing):
    """A sensitive table, open for questions.  ``tacit.open`` makes one.

    Nothing it shows depends on the data, unless it was paid for from a budget.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        people: int | None = None,
        as_of: str | None = None,
        coins: Coins | None = None,
    ) -> None:
        self._engine = engine
        self._people = people
        self._as_of = checked_label(as_of)
        self._coins = Coins() if coins is None else coins
        refuse_insecure(self._coins)
        self._reader = Reader(engine.schema, self._as_of)
        self._open = True

    @property
    def name(self) -> str:
        """The table's name: what a budget covers."""
        return self.schema.name

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        return self._engine.schema

    @property
    def engine(self) -> Engine:
        """Where true values come from.  Whoever holds it can see the data."""
        return self._engine

    @property
    def coins(self) -> Coins:
        """Where its noise comes from."""
        return self._coins

    @property
    def identity(self) -> TableIdentity:
        """Whose rows it holds: what a budget ties its name to at first use."""
        from tacit.budget import TableIdentity

        person = self.schema.person
        read_as = self.schema.column(person).type if isinstance(person, str) else person.value
        return TableIdentity(whose_row(self.schema), read_as, self.schema.digest)

    @property
    def people(self) -> int | None:
        """The public number of people that the steward typed; never read from the data."""
        return self._people

    @property
    def as_of(self) -> str | None:
        """The public label that the steward typed: which state of the data this is."""
        return self._as_of

    @property
    def closed(self) -> bool:
        """Whether it has let go of the data."""
        return not self._open

    # Reading questions --------------------------------------------------------------------

    def check(self, question: str, **parameters: object) -> Statement:
        """What would be promised about a question, or why it is refused; costs nothing."""
        return self._reader.check(question, parameters)

    def prepare(self, question: str) -> Prepared:
        """Read a question once, to be asked often with different parameters."""
        return self._reader.prepare(question)

    # One noisy number ---------------------------------------------------------------------

    def count(
        self,
        question: Askable,
        *,
        epsilon: Number,
        budget: Budget,
        analyst: str | None = None,
        **parameters: object,
    ) -> Estimate:
        """One noisy number: the Laplace mechanism.

        Privacy: (ε, 0), charged to the budget before the number exists.
        """
        self._refuse_if_closed()
        paying(budget)
        read = self._reader.read(question, parameters)
        noise = LaplaceMechanism(  # checked here, before anything is paid
            epsilon=epsilon, sensitivity=read.question.sensitivity, grid=read.question.grid
        )
        cost = Cost.pure(noise.privacy.epsilon)
        what = f"count: {read.text}"
        budget.charge(cost, table=self.name, what=what, analyst=analyst, identity=self.identity)
        (steps,) = self._engine.values([read.question])
        return noise.draw(steps, self._coins)

    def sum(
        self,
        column: str,
        *,
        where: str | None = None,
        epsilon: Number,
        budget: Budget,
        analyst: str | None = None,
        **parameters: object,
    ) -> Estimate:
        """A noisy sum of a column with declared bounds, over the rows that satisfy ``where``.

        Privacy: (ε, 0), with each person's part of the sum clamped to its declared total.
        """
        asked = self._reader.sum(declared_column(self.schema, column).name, where)
        return self.count(asked, epsilon=epsilon, budget=budget, analyst=analyst, **parameters)

    def histogram(
        self,
        *columns: str,
        epsilon: Number,
        max_rows: int = 1,
        budget: Budget,
        analyst: str | None = None,
    ) -> Histogram:
        """A noisy count for every cell of some columns with declared keys or bounds, empty or not.

        Each person counts once, by her least row in the order of these columns; with ``max_rows``
        her least so many rows count.  Rows with NULL in one of the columns, or with a value that
        is not declared, count nowhere.

        Privacy: (ε, 0) for all cells together, charged before anything is counted.
        """
        self._refuse_if_closed()
        paying(budget)
        return draw_histogram(
            self, columns, epsilon=epsilon, max_rows=max_rows, budget=budget, analyst=analyst
        )

    # Streams ------------------------------------------------------------------------------

    def above_threshold(self, *, threshold: Number, epsilon: Number, **options: Any) -> Stream:
        """A stream that halts at its first ⊤ (AboveThreshold).  Options as for `sparse`."""
        return self.sparse(threshold=threshold, at_most=1, epsilon=epsilon, **options)

    def numeric_sparse(
        self, *, threshold: Number, at_most: int, epsilon: Number, **options: Any
    ) -> Stream:
        """A stream whose ⊤ bring a noisy value (NumericSparse).  Options as for `sparse`."""
        return self.sparse(
            threshold=threshold, at_most=at_most, epsilon=epsilon, numeric=True, **options
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
        kind: Kind = "counts",
        sensitivity: Number = 1,
        grid: Number = 1,
        questions: int = 10_000,
        beta: Number = "1/20",
        recipe: Literal["best", "book"] | Recipe = "best",
        numeric: bool = False,
    ) -> Stream:
        """Open a stream that says ⊥ until something passes the threshold, at most c times ⊤.

        ``kind="counts"`` takes only questions that adding a person cannot lower, and needs less
        noise for it; ``kind="any"`` takes all.  No question may change by more than
        ``sensitivity`` with one person.  ``questions`` and ``beta`` help to plan the noise and
        limit nothing; ``recipe="book"`` forces the printed algorithm.

        Privacy: (ε, δ) for all answers together, charged now and in full.
        """
        self._refuse_if_closed()
        paying(budget)
        one_of(kind, "kind", get_args(Kind))
        numeric, at_most = flag(numeric, "numeric"), whole(at_most, "at_most")
        promise = Privacy(epsilon, delta)
        if isinstance(recipe, Recipe):
            chosen = recipe
        else:
            make = plan.numeric_sparse if numeric else plan.sparse
            found = make(
                questions=questions,
                at_most=at_most,
                epsilon=promise.epsilon,
                delta=promise.delta,
                beta=beta,
                kind=kind,
            )
            text(recipe, "recipe", "it is 'best', 'book' or a recipe of a plan")
            chosen = found.best if recipe == "best" else found.recipe(recipe)
        self._check_recipe(chosen, promise, at_most, kind, numeric)
        mechanism = prepare_mechanism(
            chosen, threshold=threshold, sensitivity=sensitivity, grid=grid
        )
        expected = planned_for(mechanism, questions, beta)
        lease = budget.open_stream(
            name,
            cost=chosen.cost,
            table=self.name,
            at_most=chosen.at_most,
            binding=binding_of(self.schema, mechanism, kind, expected),
            secret=as_secret(mechanism.start(self._coins)),
            analyst=analyst,
            identity=self.identity,
        )
        return Stream(self, self._reader, mechanism, lease, kind=kind, planned=expected)

    @staticmethod
    def _check_recipe(
        recipe: Recipe, promise: Privacy, at_most: int, kind: Kind, numeric: bool
    ) -> None:
        if numeric and recipe.value_scale is None:
            raise BadParameter(
                "recipe",
                recipe.name,
                "it releases no values: call sparse, or take a recipe of tacit.plan.numeric_sparse",
            )
        if not numeric and recipe.value_scale is not None:
            raise BadParameter(
                "recipe",
                recipe.name,
                "it pays for values: call numeric_sparse, or take a recipe of tacit.plan.sparse",
            )
        if recipe.monotone and kind == "any":
            raise BadParameter("recipe", recipe.name, "a monotone recipe needs kind='counts'")
        if recipe.at_most != at_most:
            raise BadParameter("at_most", at_most, f"the recipe is for {recipe.at_most} ⊤")
        within = recipe.privacy.epsilon <= promise.epsilon and recipe.privacy.delta <= promise.delta
        if not within:
            raise BadParameter("recipe", recipe, f"it costs more than the stated {promise}")

    def resume(self, name: str, *, budget: Budget) -> Stream:
        """Go on with a stream after a crash, or tomorrow.  It is not paid again.

        If it did not end cleanly, the ⊤ that was reserved is lost.  The table may have another
        label by now, and more columns and keys; what the promise rests on must be as it was.
        """
        self._refuse_if_closed()
        stored = paying(budget).stream(text(name, "name", "give the name of a stream")).binding
        mechanism, expected = mechanism_of(stored, name), planned_of(stored, name)
        refuse_other(stored, self.schema, mechanism, expected, name)

        def after_loss(secret: bytes) -> bytes:
            return as_secret(mechanism.after_top(from_secret(secret), self._coins))

        lease = budget.resume_stream(
            name, binding=stored, after_loss=after_loss, identity=self.identity
        )
        return Stream(self, self._reader, mechanism, lease, kind=stored["kind"], planned=expected)

    # Releases -----------------------------------------------------------------------------

    def questions(self, questions: Questions) -> QuestionClass:
        """A class of questions over the declared domain; ``.vc_dimension()`` is how rich it is."""
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
        """What `small_db` would do, and how well; costs nothing and uses public values only."""
        return plan_release(
            self.questions(questions),
            describe(questions),
            epsilon=epsilon,
            alpha=alpha,
            rows=rows,
            people=self.people,
            max_rows=whole(max_rows, "max_rows"),
        )

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
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Release a small database that answers a whole class of questions.

        ``questions``: ``tacit.prefixes(column)``, ``tacit.intervals(column)`` or a list of
        predicates over columns with declared domains.  ``alpha`` or ``rows`` fixes its size; with
        ``people`` known, both may be left out.  ``max_rows`` rows of each person take part, by
        default one (the least); rows with NULL in a column of the questions take no part.

        Privacy: (ε, 0), charged before anything is drawn.
        Accuracy: `plan_small_db` says it before, ``release.guarantee(beta)`` after.
        """
        self._refuse_if_closed()
        paying(budget)
        planned = self.plan_small_db(
            questions, epsilon=epsilon, alpha=alpha, rows=rows, max_rows=max_rows
        )
        return draw_release(
            self, questions, planned, budget=budget, analyst=analyst, progress=progress
        )

    # Leaving ------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the data.  Streams that are open can no longer be asked."""
        self._open = False
        self._engine.close()

    def _refuse_if_closed(self) -> None:
        """Before anything is paid."""
        if not self._open:
            raise EngineFailed("the table has been closed; open it again")

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.schema.columns)
        label = "" if self.as_of is None else f" as of {self.as_of}"
        return (
            f"<Table {self.name!r}{label}, one person: {whose_row(self.schema)}; columns {columns}>"
        )
