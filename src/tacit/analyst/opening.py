"""Opening a stream: which noise it uses, and what is stored about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tacit.analyst import plan
from tacit.analyst.binding import MAY_BE_ADDED, binding_of
from tacit.analyst.live_stream import as_secret
from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.priced import recipe_for
from tacit.analyst.task import Kind, Planned, Task, planned_for
from tacit.arguments import text
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact
from tacit.privacy import Cost, Privacy

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.book.sparse_vector import SparseVector
    from tacit.budget import RetryKey
    from tacit.tables.schema.schema import Schema


@dataclass(frozen=True)
class StreamOpening:
    """A stream before it is paid for.  Its answers come later, from the stream itself.

    Privacy: ``recipe.privacy`` for all answers together.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    schema: Schema
    mechanism: SparseVector
    kind: Kind
    expected: Planned

    @classmethod
    def planned(
        cls,
        schema: Schema,
        task: Task,
        promise: Privacy,
        recipe: Literal["best", "book"] | Recipe,
        *,
        threshold: Number,
        sensitivity: Number,
        grid: Number,
    ) -> StreamOpening:
        """An opening with the recipe that was asked for, or with the best one for the task."""
        chosen = chosen_recipe(recipe, task, promise)
        _check_recipe(chosen, task, promise)
        mechanism = prepare(chosen, threshold=threshold, sensitivity=sensitivity, grid=grid)
        expected = planned_for(mechanism, task.questions, task.beta, task.rounds)
        return cls(schema, mechanism, task.kind, expected)

    @property
    def recipe(self) -> Recipe:
        """Which noise the stream uses."""
        return self.mechanism.recipe

    @property
    def cost(self) -> Cost:
        """What the recipe costs, whatever the answers will be."""
        return self.recipe.cost

    @property
    def what(self) -> str:
        """The word "stream"; the history adds its name, which the budget may have to invent."""
        return "stream"

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one whose schema will be stored."""
        refuse_other_schema(self, self.schema, schema)

    @property
    def binding(self) -> dict[str, str]:
        """What the stream is stored with, and what it must match to be resumed."""
        return binding_of(self.schema, self.mechanism, self.kind, self.expected)

    def retry_key(
        self, name: str | None, analyst: str | None, given: str | RetryKey | None
    ) -> RetryKey | None:
        """The key under which it is opened, if there is one; what may be added is no part of it."""
        from tacit.budget import RetryKey

        if given is None or isinstance(given, RetryKey):
            return given
        binding = self.binding.items()
        asked = {part: text for part, text in binding if not part.startswith(MAY_BE_ADDED)}
        return RetryKey(given, analyst, f"open {self.schema.name}", {**asked, "name": name})

    def start(self, coins: Coins) -> bytes:
        """The state that it begins with.  It is secret, and depends on no data."""
        return as_secret(self.mechanism.start(coins))


def chosen_recipe(recipe: str | Recipe, task: Task, promise: Privacy) -> Recipe:
    """The recipe that was given, or the one with that name in a plan for this task."""
    if isinstance(recipe, Recipe):
        return recipe
    text(recipe, "recipe", "give 'best', 'book' or a recipe of a plan")
    common: dict[str, Any] = {
        "questions": task.questions,
        "at_most": task.at_most,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "beta": task.beta,
        "kind": task.kind,
        "rounds": task.rounds,
    }
    if task.numeric:
        found = plan.numeric_sparse(**common, values=task.values)
    else:
        found = plan.sparse(**common)
    return found.best if recipe == "best" else found.recipe(recipe)


def _check_recipe(recipe: Recipe, task: Task, promise: Privacy) -> None:
    """Refuse a recipe that gives something else than was asked, or that costs more."""
    if task.numeric and recipe.values is None:
        raise BadParameter(
            "recipe",
            recipe.name,
            "it releases no values: call sparse, or give a recipe from tacit.plan.numeric_sparse",
        )
    if task.numeric and task.values == "fresh" and recipe.values != "fresh":
        raise BadParameter(
            "recipe",
            recipe.name,
            "it tells values from the gap: leave values='fresh' out, or give a recipe from "
            "tacit.plan.numeric_sparse(values='fresh')",
        )
    if not task.numeric and recipe.values is not None:
        raise BadParameter(
            "recipe",
            recipe.name,
            "it brings values: call numeric_sparse, or give a recipe from tacit.plan.sparse",
        )
    if recipe.monotone and task.kind != "counts":
        raise BadParameter(
            "recipe",
            recipe.name,
            "it is monotone, which needs kind='counts'; give one that is not",
        )
    if recipe.directed and task.kind == "any":
        raise BadParameter(
            "recipe",
            recipe.name,
            "it is directed, which needs kind='directed' or 'counts'; give one that is not",
        )
    if recipe.least_scale is not None:
        raise BadParameter(
            "recipe", recipe.name, "it has a price for each ⊤: give least_scale, and no at_most"
        )
    if recipe.at_most != task.at_most:
        raise BadParameter(
            "at_most", task.at_most, f"it must be the {recipe.at_most} ⊤ that the recipe pays for"
        )
    within = recipe.privacy.epsilon <= promise.epsilon and recipe.privacy.delta <= promise.delta
    if not within:
        raise BadParameter(
            "recipe", recipe, f"it costs more than {promise}: give the epsilon and delta it needs"
        )


# A price for each ⊤ -----------------------------------------------------------------------


def priced_opening(
    schema: Schema,
    task: Task,
    promise: Privacy,
    least_scale: Number,
    *,
    threshold: Number,
    sensitivity: Number,
    grid: Number,
) -> StreamOpening:
    """A stream before it is paid for, in which each ⊤ will cost by its question's scale."""
    if task.values == "fresh":
        raise BadParameter(
            "values", "fresh", "with a price for each ⊤, values come from the gap: leave it out"
        )
    if promise.delta:
        raise BadParameter(
            "delta", as_given(promise.delta), "a price for each ⊤ makes no use of δ: leave it out"
        )
    each = exact(sensitivity, "sensitivity") or 1
    recipe = recipe_for(task, promise, exact(least_scale, "least_scale") / each)
    mechanism = prepare(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
    expected = planned_for(mechanism, task.questions, task.beta, task.rounds)
    return StreamOpening(schema, mechanism, task.kind, expected)


def refuse_both(at_most: int | None, least_scale: Number | None, recipe: object) -> None:
    """A stream gives so many ⊤, or each has a price: one of the two is given."""
    if (at_most is None) == (least_scale is None):
        raise BadParameter(
            "at_most",
            at_most,
            "give either at_most, the number of ⊤ that are paid for, or least_scale, and each ⊤ is "
            "paid for by the scale of its question",
        )
    if least_scale is not None and recipe != "best":
        raise BadParameter("recipe", recipe, "with least_scale there is one recipe: leave this out")
