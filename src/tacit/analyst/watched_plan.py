"""What a watched model will be like, and how it is opened and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tacit.analyst.alternatives import Alternative, Comparison, lines
from tacit.analyst.binding import binding_of, mechanism_of, refuse_other
from tacit.analyst.paying import Owed, checked_budget, pay_then_look, refuse_other_schema
from tacit.analyst.public_model import ModelRows, PublicModel, declared_names, model_rows
from tacit.analyst.synthetic import (
    Synthetic,
    SyntheticPlan,
    SyntheticRows,
    plan_synthetic,
    synthetic_from_json,
)
from tacit.analyst.watched import WatchedModel, as_watch_secret, from_watch_secret
from tacit.arguments import text
from tacit.book.watching import Watch, watch
from tacit.errors import BadParameter, BudgetExhausted, StreamMismatch
from tacit.numbers import Number, as_given, exact, positive, probability, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Printed
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.analyst.binned import Bins
    from tacit.analyst.table import Table
    from tacit.analyst.versions import TableVersions
    from tacit.book.coins import Coins
    from tacit.budget import Budget, Lease, RetryKey, StreamState

_KIND = "watched"
_MODEL, _WATCH = "model.", "watch."
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class WatchedPlan(Printed):
    """T′, how far answers may be off, and what the model is: said before it is paid."""

    schema: Schema
    privacy: Privacy
    watch: Watch
    questions: int
    beta: Fraction
    synthetic: SyntheticPlan | None  # what the model costs; None if it is public already

    @property
    def threshold(self) -> Fraction:
        """T′: a model that is off by more is a surprise, most likely."""
        return self.watch.threshold

    def error(self, beta: Number = "1/20") -> Fraction:
        """How far an answer from the model may be off, but with probability β for all of them."""
        return self.watch.error(beta)

    @property
    def cost(self) -> Cost:
        """What the model costs, if it is not public already, and the watch."""
        watched = self.watch.mechanism.recipe.cost
        return watched if self.synthetic is None else self.synthetic.mechanism.cost + watched

    def __str__(self) -> str:
        watched, asked = self.watch.mechanism.recipe.privacy, spaced(Fraction(self.questions))
        model = "public already, and costs nothing"
        if self.synthetic is not None:
            kind = "synthetic rows" if self.synthetic.mechanism.tree else "independent columns"
            cost = show(self.synthetic.privacy.epsilon)
            model = f"{kind} of {len(self.synthetic.columns)} columns, ε = {cost}"
        return "\n".join(
            [
                f"Watched model of {self.schema.name}, {self.privacy}",
                f"  model     {model}",
                f"  watched   {self.watch.surprises} surprises, ε = {show(watched.epsilon)}: "
                f"T′ = {spaced(self.threshold)}; {asked} right answers cause none (95 %)",
                f"  error     answers from the model ± {spaced(self.error())} at most, all of them "
                "together (95 %)",
                *lines(self.alternatives, self.error()),
            ]
        )

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        rows = self.synthetic
        people, max_rows = (None, None) if rows is None else (rows.people, rows.max_rows)
        others = Comparison(self.schema, self.privacy.epsilon, people, max_rows)
        columns = [] if rows is None else [column.column for column in rows.columns]
        tops = self.watch.surprises
        found = others.for_list(self.questions, columns=columns, tops=tops, but="watched")
        if not columns:
            return found
        alike = [each for each in others.for_cells(columns) if each.release == "synthetic"]
        return (*found, *alike)


def plan_watched_model(
    schema: Schema,
    *,
    epsilon: Number,
    surprises: int,
    model: object,
    columns: Sequence[str] | None,
    bins: Bins | None,
    max_rows: int | None,
    questions: int,
    beta: Number,
    people: int | None,
) -> WatchedPlan:
    """Refuse, at no cost, what cannot be drawn; a model that is public already costs nothing."""
    privacy = Privacy(positive(epsilon, "epsilon"))
    invented, rest = None, privacy.epsilon
    if isinstance(model, str) and model in ("synthetic", "independent"):
        rest = privacy.epsilon * _HALF
        names = declared_names(schema) if columns is None else columns
        invented = plan_synthetic(
            schema,
            names,
            epsilon=privacy.epsilon - rest,
            bins=bins,
            max_rows=max_rows,
            people=people,
            tree=model == "synthetic",
        )
    else:
        for name, given in (("columns", columns), ("bins", bins), ("max_rows", max_rows)):
            if given is not None:
                raise BadParameter(
                    name, as_given(given), "the model is given, and has its own: leave it out"
                )
    watched = watch(surprises, rest, questions=questions, beta=beta)
    chance = probability(beta, "beta")
    return WatchedPlan(schema, privacy, watched, whole(questions, "questions"), chance, invented)


@dataclass(frozen=True)
class WatchOpening:
    """The watch before it is paid for; its model is there already.

    Privacy: (ε, 0) for all surprises together: see `tacit.book.watching`.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    plan: WatchedPlan
    rows: ModelRows
    answer: int | None  # the entry of the history that paid for the model

    @property
    def cost(self) -> Cost:
        """What the watch costs, whatever the answers will be."""
        return self.plan.watch.mechanism.recipe.cost

    @property
    def what(self) -> str:
        """The history adds its name."""
        return "stream"

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one whose schema will be stored."""
        refuse_other_schema(self, self.plan.schema, schema)

    @property
    def binding(self) -> dict[str, str]:
        """What it is stored with, and what it must match to be resumed."""
        plan = self.plan
        fields = {
            f"{_MODEL}digest": self.rows.digest,
            f"{_WATCH}epsilon": str(plan.privacy.epsilon),
            f"{_WATCH}questions": str(plan.questions),
            f"{_WATCH}beta": str(plan.beta),
        }
        if self.answer is not None:
            fields[f"{_MODEL}answer"] = str(self.answer)
        return binding_of(plan.schema, plan.watch.mechanism, _KIND, None) | fields

    def start(self, coins: Coins) -> bytes:
        """The state that it begins with.  It is secret, and depends on no data."""
        return as_watch_secret(self.plan.watch.start(coins))


@dataclass(frozen=True)
class Watching:
    """A table and a budget, with which a watched model is opened or resumed."""

    table: Table
    versions: TableVersions
    budget: Budget

    def open(
        self,
        plan: WatchedPlan,
        model: object,
        *,
        name: str | None,
        analyst: str | None,
        retry_key: str | RetryKey | None,
    ) -> WatchedModel:
        """Pay for the model, if it is not public, then for the watch."""
        from tacit.budget import RetryKey

        table, budget = self.table, checked_budget(self.budget)
        _check_texts(name=name, analyst=analyst, retry_key=retry_key)
        retry = self._retry(plan, name, analyst, retry_key)
        before = None if retry is None else budget.answers.under(retry)
        if before is not None and before.stream is not None:
            return self.resume(before.stream, model=None if plan.synthetic else model)
        called = name or f"watched-{table.coins.below(10**12)}"
        answer = None
        if plan.synthetic is not None:
            _refuse_too_much(budget, plan.privacy.epsilon, analyst)
            _refuse_taken(budget, name)
            paying = retry or RetryKey(called, analyst, "watch", None)
            model, answer = self._pay_for_model(plan.synthetic, analyst, paying)
        rows = model_rows(model, table.schema, table.people)
        opening = WatchOpening(plan, rows, answer)

        def pay(owed: Owed) -> Lease:
            return budget.open_stream(
                called,
                cost=owed.cost,
                at_most=plan.watch.surprises,
                binding=opening.binding,
                secret=opening.start(table.coins),
                retry=retry,
                **owed.about,
            )

        return pay_then_look(
            table, opening, analyst, pay=pay, look=partial(self._begin, plan, rows)
        )

    def _retry(
        self,
        plan: WatchedPlan,
        name: str | None,
        analyst: str | None,
        given: str | RetryKey | None,
    ) -> RetryKey | None:
        from tacit.budget import RetryKey

        if given is None or isinstance(given, RetryKey):
            return given
        asked = {
            "epsilon": str(plan.privacy.epsilon),
            "surprises": plan.watch.surprises,
            "questions": plan.questions,
            "beta": str(plan.beta),
            "model": None if plan.synthetic is None else SyntheticRows(plan.synthetic).request,
            "name": name,
        }
        return RetryKey(given, analyst, f"watch {plan.schema.name}", asked)

    def _pay_for_model(
        self, plan: SyntheticPlan, analyst: str | None, opening: RetryKey
    ) -> tuple[Synthetic, int]:
        """Under a key of its own, so that it is on the disk, and paid for once."""
        from tacit.budget import RetryKey

        mechanism, call = SyntheticRows(plan), f"model of {plan.schema.name}"
        retry = RetryKey(opening.key, opening.caller, call, mechanism.request)
        released = self.table.release(
            mechanism, budget=self.budget, analyst=analyst, retry_key=retry
        )
        paid = self.budget.answers.under(retry)
        assert paid is not None
        return released, paid.number

    def _begin(self, plan: WatchedPlan, rows: ModelRows, lease: Lease) -> WatchedModel:
        return WatchedModel(
            plan,
            self.versions,
            self.table.coins,
            PublicModel(rows),
            name=lease.name,
            analyst=lease.analyst,
            lease=lease,
            records=lease.answers,
            recorded=lease.recorded,
            under=self.budget.answers.under,
        )

    def resume(self, name: str, *, model: object = None) -> WatchedModel:
        """Go on with one: its model is rebuilt from what is on record."""
        table, budget = self.table, checked_budget(self.budget)
        state = budget.stream(text(name, "name", "give the name of a watched model"))
        stored = state.binding
        if not is_watched(stored):
            raise StreamMismatch(
                f"{name!r} is a stream, not a watched model: table.resume(...) goes on with it"
            )
        mechanism = mechanism_of(stored, name)
        of_stream = {
            key: said for key, said in stored.items() if not key.startswith((_MODEL, _WATCH))
        }
        refuse_other(of_stream, table.schema, mechanism, None, name)
        kept = self._kept_model(stored)
        rows = self._rows(stored, name, model if kept is None else kept)
        plan = plan_of_binding(stored, name, table.schema, None if kept is None else kept.plan)

        def after_loss(secret: bytes) -> bytes:
            return as_watch_secret(plan.watch.after_loss(from_watch_secret(secret)))

        if state.ended:
            return self._ended(plan, rows, state)
        lease = budget.resume_stream(
            name, binding=stored, after_loss=after_loss, identity=table.identity
        )
        return self._begin(plan, rows, lease)

    def _ended(self, plan: WatchedPlan, rows: ModelRows, state: StreamState) -> WatchedModel:
        """One whose surprises are used up: the model goes on, unwatched."""
        tops = [
            entry.body
            for entry in self.budget.history
            if entry.body.get("kind") == "top" and entry.body.get("stream") == state.name
        ]
        return WatchedModel(
            plan,
            self.versions,
            self.table.coins,
            PublicModel(rows),
            name=state.name,
            analyst=state.analyst,
            lease=None,
            records={top["question"]: top["answer"] for top in tops},
            recorded={top["question"]: (top["at"], top.get("as_of")) for top in tops},
            under=self.budget.answers.under,
        )

    def _kept_model(self, stored: Mapping[str, str]) -> Synthetic | None:
        """The model that was paid for, with its plan; None if it was public already."""
        number = model_answer(stored)
        response = None if number is None else self.budget.answers[number].response
        return None if response is None else synthetic_from_json(response)

    def _rows(self, stored: Mapping[str, str], name: str, model: object) -> ModelRows:
        """The rows that it started from, if they are still the same."""
        if model is None:
            raise BadParameter(
                "model", None, f"{name!r} was opened with a model that was given: give it again"
            )
        rows = model_rows(model, self.table.schema, self.table.people)
        if rows.digest != stored[f"{_MODEL}digest"]:
            raise StreamMismatch(f"{name!r} was opened with another model than this one")
        return rows


def plan_of_binding(
    stored: Mapping[str, str], name: str, schema: Schema, synthetic: SyntheticPlan | None
) -> WatchedPlan:
    """What was said before it was paid; the plan of a model that cost something is kept with it."""
    return WatchedPlan(
        schema,
        Privacy(stored[f"{_WATCH}epsilon"]),
        Watch(mechanism_of(stored, name)),
        whole(int(stored[f"{_WATCH}questions"]), "questions"),
        exact(stored[f"{_WATCH}beta"], "beta"),
        synthetic,
    )


def model_answer(stored: Mapping[str, str]) -> int | None:
    """The entry of the history that paid for the model; None if it was public already."""
    number = stored.get(f"{_MODEL}answer")
    return None if number is None else int(number)


def is_watched(stored: Mapping[str, str]) -> bool:
    """Whether what is stored with a stream is that of a watched model."""
    return stored.get("kind") == _KIND


def _check_texts(**given: object) -> None:
    from tacit.budget import RetryKey
    from tacit.budget.ledger import checked_text

    for name, said in given.items():
        if said is not None and not isinstance(said, RetryKey):
            checked_text(said, name)


def _refuse_taken(budget: Budget, name: str | None) -> None:
    """Before the model is paid for: the watch must get its name."""
    from tacit.budget.spending import name_taken

    if name is not None and any(state.name == name for state in budget.streams()):
        raise name_taken(name)


def _refuse_too_much(budget: Budget, epsilon: Fraction, analyst: str | None) -> None:
    """Before the model is paid for: the watch must fit as well, as far as can be seen."""
    for pot in budget.shares:
        left = dict(pot.left.values).get("epsilon")
        if pot.analyst == analyst and left is not None and left < epsilon:
            raise BudgetExhausted(
                f"a watched model asks for ε = {show(epsilon)} in all; ε = {show(left)} is left. "
                "Nothing was spent",
                advice="ask for less",
            )
