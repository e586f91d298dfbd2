"""A table on a server: the face of the local one, paid for from the token's share.

Opening a stream or a watched model has a key, so it can be sent again if its answer is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tacit.arguments import text
from tacit.errors import BadParameter
from tacit.numbers import Number, whole
from tacit.remote.releasing import RemoteReleasingTable
from tacit.remote.sending import number, number_or_none
from tacit.remote.sending import values as values_sent

if TYPE_CHECKING:
    from tacit.analyst.binned import Bins
    from tacit.analyst.public_model import ModelRows
    from tacit.analyst.task import Kind, Task
    from tacit.analyst.watched_plan import WatchedPlan
    from tacit.book.recipes import Recipe, Values
    from tacit.privacy import Privacy
    from tacit.remote.stream import RemoteStream
    from tacit.remote.watched import RemoteWatchedModel


class RemoteTable(RemoteReleasingTable):
    """A table on a server: what is public about it, and what can be asked."""

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
