"""Every public callable with arguments that are right, for tests that make one of them wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow

import tacit
import tacit.audit
import tacit.book
import tacit.tables
from tacit.analyst.histogram import CellSum, Histogram, NoisyHistogram
from tacit.analyst.histogram_plan import HistogramPlan
from tacit.analyst.query_columns import (
    MeanColumn,
    QuantileColumn,
    QueryColumn,
    RatioColumn,
    ShareColumn,
    SpreadColumn,
)
from tacit.analyst.query_plan import QueryPlan
from tacit.analyst.query_result import QueryResult
from tacit.analyst.ranges import RangeCount, RangePlan, Ranges
from tacit.analyst.release import Release
from tacit.analyst.release_plan import ReleasePlan
from tacit.analyst.stream import Stream
from tacit.analyst.synthetic import MarginalReport, Synthetic, SyntheticPlan
from tacit.analyst.table import Table
from tacit.analyst.top import Top, TopPlan
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_answer import WatchedAnswer
from tacit.analyst.watched_plan import WatchedPlan
from tacit.book.answer import Answer
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.experiment import RANDOMISED_RESPONSE, Experiment, NotedCoins
from tacit.book.laplace import Estimate, LaplaceMechanism
from tacit.book.recipes import Recipe, spend
from tacit.budget import RetryKey
from tacit.budget.ledger import TableIdentity
from tacit.privacy import Cost

SCHEMA = """
max_rows = 3
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 12]
total = [0, 50]
"""

# Public names ----------------------------------------------------------------------------------

MODULES: dict[str, ModuleType] = {
    "tacit": tacit,
    "tacit.plan": tacit.plan,
    "tacit.audit": tacit.audit,
    "tacit.tables": tacit.tables,
    "tacit.errata": tacit.errata,
    **{f"tacit.book.{name}": getattr(tacit.book, name) for name in tacit.book.__all__},
}
HELD = {  # what the functions above return, and people go on with
    "Table": Table,
    "Stream": Stream,
    "Answer": Answer,
    "Estimate": Estimate,
    "CellSum": CellSum,
    "Histogram": Histogram,
    "HistogramPlan": HistogramPlan,
    "MeanColumn": MeanColumn,
    "QuantileColumn": QuantileColumn,
    "QueryColumn": QueryColumn,
    "RatioColumn": RatioColumn,
    "ShareColumn": ShareColumn,
    "SpreadColumn": SpreadColumn,
    "QueryPlan": QueryPlan,
    "QueryResult": QueryResult,
    "RangeCount": RangeCount,
    "RangePlan": RangePlan,
    "Ranges": Ranges,
    "Release": Release,
    "ReleasePlan": ReleasePlan,
    "MarginalReport": MarginalReport,
    "Synthetic": Synthetic,
    "SyntheticPlan": SyntheticPlan,
    "Top": Top,
    "TopPlan": TopPlan,
    "WatchedAnswer": WatchedAnswer,
    "WatchedModel": WatchedModel,
    "WatchedPlan": WatchedPlan,
}
KNOWN_BY_ANOTHER_NAME = {"tacit.Schema", *(f"tacit.{name}" for name in HELD)}

MADE_BY_US = {  # results and parts: whoever builds one by hand is on their own, as are protocols
    *("Table", "Stream", "Answer", "Estimate", "CellSum", "Histogram", "Release", "ReleasePlan"),
    "HistogramPlan",
    *("RangeCount", "RangePlan", "Ranges", "Top", "TopPlan"),
    *("MeanColumn", "QueryColumn", "QueryPlan", "QueryResult"),
    *("QuantileColumn", "RatioColumn", "ShareColumn", "SpreadColumn"),
    *("MarginalReport", "Synthetic", "SyntheticPlan"),
    *("WatchedAnswer", "WatchedModel", "WatchedPlan"),
    *("tacit.plan.Plan", "tacit.plan.Option", "tacit.audit.ExactLoss", "tacit.audit.SampledLoss"),
    *("tacit.tables.Batch", "tacit.tables.Prepared", "tacit.tables.Question"),
    *("tacit.book.composition.Between", "tacit.Budget", "tacit.Cost"),  # which a budget checks
    *("tacit.audit.real_runs.suspicion", "tacit.audit.bulk_runs.suspicion"),  # sample asks for it
    *("tacit.tables.Statement", "tacit.tables.Engine", "tacit.book.accuracy.Guarantee"),
    *("tacit.book.accuracy.Verdict", "tacit.book.experiment.View", "tacit.book.experiment.Step"),
    *("tacit.book.experiment.Adversary", "tacit.book.experiment.NotedCoins"),
    "tacit.book.chance.ChanceAbove",
    *("tacit.errata.Erratum", "tacit.book.watching.Watch"),
    "tacit.book.multiplicative_weights.ModelAnswer",
    *("tacit.book.answer.Answer", "tacit.book.answer.Recorded", "tacit.book.laplace.Estimate"),
    *("tacit.book.shattering.VcDimension", "tacit.book.shattering.FatShatteringDimension"),
    "tacit.book.remarks.SearchPrice",
    *("tacit.book.small_db.LinearQueries", "tacit.book.small_db.SampledClass"),
    *("tacit.book.small_db_size.ProvedSize", "tacit.book.small_db_utility.Utility"),
}
FOR_MECHANISMS = {  # within the engine room: integers and secrets that no caller types
    *(f"tacit.book.range_tree.RangeTree.{name}" for name in ("nodes", "prefixes", "prefix_noises")),
    "tacit.book.range_tree.rising",
    "tacit.tables.Batch.place",
    "RangePlan.noises",
    *("QueryPlan.noise_scale", "QueryColumn.from_json"),
    *("QuantileColumn.from_json", "QueryPlan.quantile"),
    *("QueryPlan.alone", "QueryPlan.tree_group"),
    *("RatioColumn.from_json", "ShareColumn.from_json", "SpreadColumn.from_json"),
    *("MeanColumn.from_json", "tacit.tables.Engine.rows_by_person"),
    "tacit.tables.Engine.people_of",
    "tacit.book.top.TopMechanism.draw",
    "tacit.book.multiplicative_weights.updated",
    "tacit.book.watching.WatchState",
    *(f"tacit.book.watching.Watch.{name}" for name in ("start", "step", "after_loss")),
    "WatchedAnswer.from_json",
    *(f"tacit.book.synthetic.SyntheticMechanism.{name}" for name in ("draw", "edges", "round")),
    *("tacit.book.noise.GridNoise", "tacit.book.noise.NoiseFamily"),
    *("tacit.book.sparse_vector.SparseVector", "tacit.book.sparse_vector.State"),
    *("tacit.tables.Engine.values", "tacit.tables.Question.answer"),
    *("tacit.tables.Engine.totals", "tacit.tables.Engine.cell_values"),
    "tacit.tables.Engine.point_counts",
    *("tacit.tables.Question.with_terms", "tacit.tables.Column.place", "tacit.tables.Column.code"),
    *("tacit.tables.Column.literal", "tacit.book.experiment.Adversary.choose"),
    *(
        f"tacit.book.small_db.{kind}.{name}"
        for kind in ("Prefixes", "Intervals", "FiniteQuestions")
        for name in ("check", "draw", "candidates", "enumerated", "score", "steps")
    ),
    *(f"tacit.book.small_db.FiniteQuestions.{name}" for name in ("multisets", "part")),
    *("tacit.book.small_db.SampledClass", "tacit.book.small_db.LinearQueries"),
    *(f"tacit.book.answer.Answer.{name}" for name in ("from_json", "from_told", "on_record")),
    *("Answer.from_told", "tacit.book.laplace.Estimate.from_json", "Estimate.from_json"),
    *("CellSum.from_json", "RangeCount.from_json", "tacit.Privacy.from_json"),
    *(
        f"tacit.book.shattering.{kind}.describe"
        for kind in ("VcDimension", "FatShatteringDimension")
    ),
    *("tacit.book.recipes.Recipe.from_json",),
    *("Answer.from_json", "Answer.on_record"),
    *("tacit.audit.Law.halts", "tacit.audit.Law.restarts"),
}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, class and method that takes an argument, by name."""
    for path, module in MODULES.items():
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        for name in names:
            if f"{path}.{name}" not in KNOWN_BY_ANOTHER_NAME:
                yield from _callables(f"{path}.{name}", getattr(module, name))
    for name, kind in HELD.items():
        yield from _callables(name, kind)


def _callables(path: str, thing: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if inspect.ismodule(thing) or not callable(thing):
        return
    if not isinstance(thing, type):
        yield path, thing
        return
    if issubclass(thing, BaseException) or not thing.__module__.startswith("tacit"):
        return
    yield path, thing
    for name, method in inspect.getmembers(thing, callable):
        own = any(name in vars(base) for base in thing.__mro__ if "tacit" in base.__module__)
        if not name.startswith("_") and own and parameters_of(method, method_of=thing):
            yield f"{path}.{name}", method


def parameters_of(call: Callable[..., Any], method_of: type | None = None) -> list[str]:
    """The names that a caller may give, *columns included."""
    found = list(inspect.signature(call).parameters.values())
    if method_of is not None and found and found[0].name == "self":
        found = found[1:]
    return [each.name for each in found if each.kind is not each.VAR_KEYWORD]


# Calls that work -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A public callable, its right arguments by name, and what it is called on."""

    target: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **changed: object) -> object:
        """Call it with some arguments changed; what comes lazily is fetched."""
        given = {**self.arguments, **changed}
        signature = inspect.signature(self.target)
        positional, several = [], []
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.POSITIONAL_ONLY and name in given:
                positional.append(given.pop(name))
            if parameter.kind is parameter.VAR_POSITIONAL and name in given:
                several = [given.pop(name)]
        found = self.target(*positional, *several, **given)
        return list(found) if inspect.isgenerator(found) else found


def _refresh(as_of: Any, source: Any, whole: Any) -> None:
    with tacit.open(pyarrow.table({"pid": [1]}), person="pid", as_of="a") as table:
        table.refresh(as_of=as_of, source=source, whole=whole)


def _a_server() -> str:
    """Something that speaks the first version of the protocol, until this process ends."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"versions": [1]}')

        def log_message(self, *given: object) -> None:
            pass

    stub = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=stub.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{stub.server_port}"


def _recipe_calls(recipe: Recipe) -> dict[str, Call]:
    """Recipes and how exactly they answer."""
    book, privacy = tacit.book, tacit.Privacy(1, "1e-6")
    mechanism = book.one_sided.prepare(recipe, threshold=2)
    noise = {"threshold_epsilon": "1/4", "question_epsilon": "1/2", "value_epsilon": "1/4"}
    return {
        "tacit.book.noise.family_of": Call(book.noise.family_of, {"noise": "one-sided"}),
        "tacit.book.recipes.Recipe": Call(
            book.recipes.Recipe,
            {"name": "mine", "noise": "one-sided", "privacy": privacy, "at_most": 2, "groups": 1}
            | {**noise, "monotone": False, "shift": 0, "value_shift": None, "directed": False}
            | {"least_scale": None},
        ),
        "tacit.book.recipes.Recipe.shifted": Call(recipe.shifted, {"shift": 1}),
        "tacit.book.recipes.Recipe.telling_gaps": Call(
            book.recipes.spend("one-sided", 1, privacy, monotone=True).telling_gaps,
            {"value_shift": 1},
        ),
        "tacit.book.recipes.spend": Call(
            book.recipes.spend,
            {"noise": "one-sided", "at_most": 2, "privacy": privacy, "monotone": True}
            | {"groups": 1, "threshold_share": "1/2", "value_share": "1/2", "directed": False},
        ),
        **{
            f"tacit.book.recipes.{name}": Call(
                getattr(book.recipes, name), {"at_most": 2, "privacy": privacy, "numeric": False}
            )
            for name in ("book", "book_least_noise")
        },
        "tacit.book.chance.chance_above": Call(
            book.chance.chance_above, {"mechanism": mechanism, "value": 3, "threshold": 4}
        ),
        "tacit.book.chance.least_value": Call(
            book.chance.least_value, {"mechanism": mechanism, "chance": "1/2", "threshold": 4}
        ),
        "tacit.book.half_gap.half_gap": Call(
            book.half_gap.half_gap, {"recipe": recipe, "questions": 10, "beta": 0.1}
        ),
        "tacit.book.half_gap.best_shift": Call(
            book.half_gap.best_shift, {"recipe": recipe, "questions": 10, "beta": 0.1}
        ),
        "tacit.book.half_gap.success_probability": Call(
            book.half_gap.success_probability,
            {"recipe": recipe, "questions": 10, "alpha": 3, "shift": 0},
        ),
    }


def _small_db_calls(coins: Coins) -> dict[str, Call]:
    """Section 4.1: shattering, SmallDB, its size and its error."""
    book, matrix = tacit.book, [[0, 1, 1], [0, 0, 1]]
    finite = book.small_db.FiniteQuestions(book.small_db.linear_queries(matrix))
    known = {
        "questions": 4,
        "vc": 2,
        "atoms": 9,
        "structure": "prefixes",
        "fat": [("1/90", 2)],
    }
    searched = {"matrix": matrix, "seconds": None, "progress": None}
    served = {"epsilon": 1, "beta": 0.1, **known}
    calls = {
        "shattering.vc_dimension": Call(book.shattering.vc_dimension, searched),
        "shattering.fat_shattering_dimension": Call(
            book.shattering.fat_shattering_dimension, {**searched, "gamma": "1/4"}
        ),
        "shattering.shatters": Call(book.shattering.shatters, {"questions": matrix, "points": [0]}),
        "shattering.vc_bound": Call(book.shattering.vc_bound, {"questions": 9}),
        "shattering.VcDimension.cutting": Call(
            book.shattering.vc_dimension(matrix).cutting, {"subset": [1]}
        ),
        "shattering.FatShatteringDimension.cutting": Call(
            book.shattering.fat_shattering_dimension(matrix, "1/4").cutting, {"subset": [1]}
        ),
        "small_db.linear_queries": Call(book.small_db.linear_queries, {"matrix": matrix}),
        "small_db.Prefixes": Call(book.small_db.Prefixes, {"domain": 9}),
        "small_db.Intervals": Call(book.small_db.Intervals, {"domain": 9}),
        "small_db.FiniteQuestions": Call(
            book.small_db.FiniteQuestions,
            {"queries": finite.queries, "most_enumerated": 100, "sub_range": 10},
        ),
        "small_db.FiniteQuestions.of": Call(
            book.small_db.FiniteQuestions.of, {"questions": [bool], "universe": [0, 1]}
        ),
        "small_db.histogram": Call(book.small_db.histogram, {"rows": [0, 1], "universe": [0, 1]}),
        "small_db.small_db": Call(
            book.small_db.small_db,
            {
                "x": np.array([1, 2, 5]),
                "questions": book.small_db.Prefixes(9),
                "rows": 2,
                "epsilon": 1,
            }
            | {"coins": coins, "rows_per_person": 1, "progress": None},
        ),
        "small_db.certifying": Call(
            book.small_db.certifying,
            {"questions": book.small_db.Prefixes(9), "rows": 2, "epsilon": 1, "rows_per_person": 1},
        ),
        "multiplicative_weights.most_updates": Call(
            book.multiplicative_weights.most_updates,
            {"universe": 9, "alpha": "1/9", "sharper": False},
        ),
        "multiplicative_weights.least_alpha": Call(
            book.multiplicative_weights.least_alpha,
            {"universe": 9, "people": 10**9, "questions": 9, "epsilon": 1, "beta": 0.1}
            | {"delta": 0, "sharper": False},
        ),
        "multiplicative_weights.multiplicative_weights": Call(
            lambda **given: list(book.multiplicative_weights.multiplicative_weights(**given)),
            {"x": np.array([4, 1]), "questions": [[1, 0]], "people": 5, "alpha": "1/2"}
            | {"epsilon": 1, "delta": 0, "grid": 1, "sharper": False, "coins": coins},
        ),
        "remarks.queries_within": Call(
            book.remarks.queries_within,
            {"error": 9, "epsilon": 1, "delta": "1e-9", "beta": 0.1, "by": "basic"},
        ),
        "remarks.search_price": Call(
            book.remarks.search_price,
            {"epsilon": 1, "questions": 9, "at_most": 2, "beta": 0.1, "delta": 0},
        ),
        "small_db_size.sauer": Call(book.small_db_size.sauer, {"vc": 2, "points": 4}),
        "small_db_size.rows_needed": Call(book.small_db_size.rows_needed, {"alpha": 0.1, **known}),
        "small_db_size.alpha_of_rows": Call(book.small_db_size.alpha_of_rows, {"rows": 9, **known}),
        "small_db_utility.best_rows": Call(book.small_db_utility.best_rows, {"n": 1000, **served}),
        "small_db_utility.people_needed": Call(
            book.small_db_utility.people_needed, {"error": 0.1, **served}
        ),
        "small_db_utility.usual_rows": Call(
            book.small_db_utility.usual_rows, {"n": 1000, "epsilon": 1, "atoms": 9}
        ),
        "small_db_utility.error_bound": Call(
            book.small_db_utility.error_bound,
            {"n": 1000, "epsilon": 1, "beta": 0.1, "rows": 9, "alpha_m": "1/9", "atoms": 9},
        ),
    }
    return {f"tacit.book.{name}": call for name, call in calls.items()}


class Same:
    """An adversary that always asks the same."""

    def choose(self, answers: tuple[Any, ...], coins: NotedCoins) -> Any:
        from tacit.book.experiment import Step, with_and_without

        pair = with_and_without({"a": 1}, "a")
        return Step(pair, RANDOMISED_RESPONSE, {"person": "a", "epsilon": 1})


def _noisy(count: int, size: int) -> Any:
    return count + InsecureTestCoins(size).laplaces(1, size)


def _floating(given: float) -> float:
    return float(given)


def opened() -> Table:
    """A small table."""
    rows = pyarrow.table({"pid": [1, 1, 2], "town": ["Ghent", "Bruges", None], "age": [3, 4, None]})
    return tacit.open(rows, person="pid", name="visits", people=1000, schema=SCHEMA)


NEW = object()  # a file of a name that is not taken


def budget_calls(folder: Path) -> dict[str, Call]:
    """The budget's own, each on a budget of its own: most can be done only once."""
    promised: dict[str, Any] = {"epsilon": 9, "delta": 0, "covers": ["visits"], "accountant": "sum"}
    identity = TableIdentity("pid")
    paid: dict[str, Any] = {
        "cost": Cost.pure(1),
        "table": "visits",
        "analyst": None,
        "identity": identity,
        "beside": {"visits": identity},
    }
    stream: dict[str, Any] = {
        "name": "s",
        "at_most": 3,
        "binding": {"kind": "counts"},
        "secret": b"s",
    }
    with tacit.Budget.create(folder / "clinic.budget", **promised) as kept:
        head = kept.head
    files = (folder / f"{number}" for number in count())

    def on_new(method: str, **arguments: object) -> Call:
        def call(**given: object) -> object:
            return getattr(tacit.Budget.in_memory(**promised), method)(**given)

        return Call(call, arguments)

    def create(path: object, **given: Any) -> None:
        tacit.Budget.create(next(files) if path is NEW else path, **given).close()  # type: ignore[arg-type]

    def export(file: object) -> int:
        return tacit.Budget.in_memory(**promised).export(next(files) if file is NEW else file)  # type: ignore[arg-type]

    def resume(**given: Any) -> None:
        budget = tacit.Budget.in_memory(**promised)
        budget.open_stream(**stream, **paid).suspend()
        budget.resume_stream(**given)

    def keep(**given: Any) -> object:
        budget = tacit.Budget.in_memory(**promised)
        budget.charge(**paid, what="a count")
        return budget.keep(**given)

    def of_stream(name: Any) -> object:
        budget = tacit.Budget.in_memory(**promised)
        budget.open_stream(**stream, **paid).suspend()
        return budget.stream(name)

    found = {
        "in_memory": Call(tacit.Budget.in_memory, promised),
        "create": Call(create, {"path": NEW, **promised, "wait": 10.0}),
        "open": Call(
            lambda **given: tacit.Budget.open(**given).close(),
            {"path": folder / "clinic.budget", "wait": 10.0, "head": head},
        ),
        "charge": on_new("charge", **paid, what="a count", names=["labs"], as_of=None, retry=None),
        "keep": Call(keep, {"number": 3, "response": {"told": 1}}),
        "drawn": on_new("drawn", number=1),
        "cover": on_new("cover", table="labs", people="others"),
        "export": Call(export, {"file": NEW}),
        "open_stream": on_new("open_stream", **stream, **paid, retry=None),
        "resume_stream": Call(
            resume,
            {
                "name": "s",
                "binding": stream["binding"],
                "after_loss": bytes,
                "identity": identity,
                "beside": {},
            },
        ),
        "share": on_new("share", analyst="ana", epsilon=1, delta=None, rho=None),
        "stream": Call(of_stream, {"name": "s"}),
        "streams": on_new("streams", up_to=0),
        "tie": on_new("tie", table="visits", identity=identity),
        "verify": on_new("verify", head=None),
    }
    return {f"tacit.Budget.{name}": call for name, call in found.items()}


def _key_of_block(number: int) -> RetryKey:
    return RetryKey(f"k{number}", None, "ask_all", "age > 3")


def _key_of_watched_block(number: int) -> RetryKey:
    return RetryKey(f"k{number}", None, "ask_all watched", "age > 3")


def calls(folder: Path) -> dict[str, Call]:
    """Every public callable with right arguments; files go to the folder."""
    table = opened()
    budget = tacit.Budget.in_memory(epsilon=10**12, covers=["visits"])
    charged = {"epsilon": 1, "budget": budget, "analyst": None}
    pays = {**charged, "retry_key": None}
    stream = table.sparse(threshold=10**6, at_most=10**6, epsilon=10**9, budget=budget, name="s")
    stream.suspend()
    asked = table.sparse(threshold=10**6, at_most=9, epsilon=1, budget=budget)
    release = table.small_db(["age <= 3", "age > 7"], max_rows=1, epsilon=1, rows=5, budget=budget)
    release.save(folder / "release.json")
    histogram = table.histogram("age", max_rows=1, epsilon=1, budget=budget)
    planned_cells = table.plan_histogram("age", max_rows=1, epsilon=1)
    ranges = table.ranges("age", epsilon=1, budget=budget)
    ranges.save(folder / "ranges.json")
    tree = tacit.book.range_tree.RangeTree(13, 4, 2)
    cells = "select count(distinct pid) from visits group by town"
    both = "select count(distinct pid), avg(age) from visits group by town"
    asks: dict[str, Any] = {"sql": both, "weights": [1, 2], "max_rows": 1, "max_cells": 1}
    asks |= {"params": None, "delta": 0}
    above = {**asks, "sql": f"{both} having count(distinct pid) > 1", "at_most": 1}
    queried = table.query(**asks, epsilon=1, budget=budget)
    queried.save(folder / "query.json")
    counted, averaged = queried.columns
    assert isinstance(counted, QueryColumn)
    assert isinstance(averaged, MeanColumn)
    quotients = table.query(
        """select count(*) filter (where age > 3) / count(*), count(distinct pid) / count(*),
            stddev(age), median(age) from visits""",
        epsilon=1,
        max_rows=1,
        budget=budget,
    )
    *quotients_alone, ranked = quotients.columns
    derived = dict(zip(("Share", "Ratio", "Spread"), quotients_alone, strict=True))
    planned_top = table.plan_top(1, cells, epsilon=1, counts_epsilon=1)
    top = table.top(1, cells, epsilon=1, budget=budget)
    top.save(folder / "top.json")
    invented: dict[str, Any] = {"columns": ["town", "age"], "epsilon": 1, "rows": 9, "rounds": 0}
    invented |= {"marginals": [["town", "age"]], "bins": {"age": 3}, "max_rows": 1}
    synthetic = table.synthetic(**invented, budget=budget)
    synthetic.save(folder / "synthetic.json")
    watches: dict[str, Any] = {"epsilon": 1, "surprises": 2, "questions": 9, "beta": "1/20"}
    modelled = {**watches, "model": "synthetic", "columns": ["town"], "bins": {}, "max_rows": 1}
    watched = table.watched_model(**watches, model=histogram, budget=budget, name="w")
    watched.suspend()
    held = table.watched_model(**watches, model=histogram, budget=budget)
    coins = Coins()
    schema = table.schema
    text = "age >= :age"
    plan = tacit.plan.sparse(questions=10, at_most=2, epsilon=1)
    recipe = spend("one-sided", 1, tacit.Privacy(1), monotone=False)
    law = tacit.audit.Law.of(recipe)
    loss = tacit.audit.exact(recipe, [0], [1], threshold=0)
    experiment = Experiment([RANDOMISED_RESPONSE])
    prepared = table.prepare(text)
    streams = {
        "threshold": 5,
        "epsilon": 1,
        "delta": 0,
        "budget": budget,
        "name": None,
        "analyst": None,
        "retry_key": None,
        "kind": "counts",
        "sensitivity": 1,
        "grid": 1,
        "questions": 10,
        "rounds": 2,
        "beta": "1/20",
        "recipe": "best",
        "numeric": False,
        "values": "gap",
    }
    planned = {"questions": 10, "epsilon": 1, "alpha": None, "beta": "1/20", "kind": "counts"}
    planned["rounds"] = 2
    tops = {**planned, "at_most": 2, "delta": 0}
    around = {"threshold": 5, "recipe": "book", "sensitivity": 1, "grid": 1}
    solved = {"alpha": None, "beta": "1/20", "epsilon": 1, "questions": 10}
    run = {"values": [1, 2, 3], "threshold": 2, "epsilon": 1, "sensitivity": 1, "grid": 1}
    run = {**run, "coins": coins}
    printed = {**run, "at_most": 2, "delta": 0}
    judged = {"values": [1, 2], "threshold": 2, "alpha": 1}
    boxed = {"mechanism": _noisy, "pair": (0, 1), "epsilon": 1}
    sampled = {**boxed, "delta": 0, "confidence": "0.9", "runs": 1000, "workers": 1}
    floating = {**sampled, "mechanism": _floating, "progress": None}
    book, mixed = tacit.book, {"0.1": 2, ("0.2", "1e-9"): 3}

    def on_table(name: str, /, **arguments: object) -> Call:
        return Call(getattr(table, name), arguments)

    def on_coins(name: str, /, **arguments: object) -> dict[str, Call]:
        return {
            f"tacit.book.coins.{kind}.{name}": Call(getattr(held, name), arguments)
            for kind, held in (("Coins", coins), ("InsecureTestCoins", InsecureTestCoins(3)))
        }

    return {
        # tacit
        "tacit.Privacy": Call(tacit.Privacy, {"epsilon": 1, "delta": 0}),
        "tacit.open": Call(
            tacit.open,
            {
                "source": pyarrow.table({"pid": [1]}),
                "person": "pid",
                "name": "visits",
                "people": 10,
                "as_of": None,
                "schema": None,
                "table": None,
                "memory_limit": None,
                "spill_folder": None,
                "spill": True,
                "shards": None,
                "grows_by": None,
            },
        ),
        "tacit.open_all": Call(
            tacit.open_all,
            {
                "tables": {
                    name: {"source": pyarrow.table({"pid": [1]}), "person": "pid"}
                    for name in ("visits", "labs")
                }
            },
        ),
        "tacit.prefixes": Call(tacit.prefixes, {"column": "age"}),
        "tacit.intervals": Call(tacit.intervals, {"column": "age"}),
        "tacit.load_query": Call(tacit.load_query, {"path": folder / "query.json"}),
        "tacit.load_ranges": Call(tacit.load_ranges, {"path": folder / "ranges.json"}),
        "tacit.load_release": Call(tacit.load_release, {"path": folder / "release.json"}),
        "tacit.load_synthetic": Call(tacit.load_synthetic, {"path": folder / "synthetic.json"}),
        "tacit.load_top": Call(tacit.load_top, {"path": folder / "top.json"}),
        "tacit.vc_dimension": Call(
            tacit.vc_dimension, {"matrix": [[0, 1]], "seconds": None, "progress": None}
        ),
        "tacit.fat_shattering_dimension": Call(
            tacit.fat_shattering_dimension,
            {"matrix": [[0, 1]], "gamma": "1/4", "seconds": None, "progress": None},
        ),
        "tacit.shatters": Call(tacit.shatters, {"questions": [[0, 1]], "points": [0]}),
        "tacit.errata.entry": Call(tacit.errata.entry, {"number": "E3"}),
        # Plans
        "tacit.plan.above_threshold": Call(tacit.plan.above_threshold, planned),
        "tacit.plan.sparse": Call(tacit.plan.sparse, tops),
        "tacit.plan.priced": Call(
            tacit.plan.priced,
            {
                "questions": 9,
                "epsilon": 1,
                "least_scale": 5,
                "scale": 9,
                "beta": "1/20",
                "kind": "counts",
                "numeric": True,
            },
        ),
        "tacit.plan.numeric_sparse": Call(tacit.plan.numeric_sparse, {**tops, "values": "gap"}),
        "tacit.plan.Plan.option": Call(plan.option, {"name": "book"}),
        "tacit.plan.Plan.chance": Call(plan.chance, {"count": 3, **around}),
        "tacit.plan.Plan.chances": Call(plan.chances, around),
        "tacit.plan.Plan.recipe": Call(plan.recipe, {"name": "book"}),
        **budget_calls(folder),
        "tacit.compose": Call(
            tacit.compose, {"k": 9, "delta": "1e-6", "epsilon_each": 1, "epsilon": None}
        ),
        "tacit.connect": Call(tacit.connect, {"url": _a_server(), "token": "tct_x", "timeout": 60}),
        "tacit.dummy": Call(
            lambda **given: tacit.dummy(**given).close(),
            {"schema": SCHEMA, "person": "pid", "name": "visits", "people": 9, "seed": 0}
            | {"as_of": None},
        ),
        # A table and what it gives
        "Table.check": on_table("check", question="smoker", params=None),
        "Table.prepare": on_table("prepare", question=text),
        "Table.count": on_table("count", question="age > 3", max_rows=2, params=None, **pays),
        "Table.sum": on_table("sum", column="age", where=None, params=None, **pays),
        "Table.histogram": on_table("histogram", columns="age", max_rows=1, **pays),
        "Table.plan_histogram": on_table("plan_histogram", columns="age", epsilon=1, max_rows=1),
        "HistogramPlan.error": Call(planned_cells.error, {"beta": 0.1}),
        "HistogramPlan.worst_error": Call(planned_cells.worst_error, {"beta": 0.1}),
        "HistogramPlan.prefix_error": Call(planned_cells.prefix_error, {"beta": 0.1}),
        "HistogramPlan.sums_error": Call(planned_cells.sums_error, {"questions": 5, "beta": 0.1}),
        "Table.plan_query": on_table("plan_query", **above, epsilon=1),
        "Table.query": on_table("query", **above, **pays),
        "QueryPlan.error": Call(
            table.plan_query(**asks, epsilon=1).error,
            {"name": "avg_age", "beta": 0.1, "values": 100},
        ),
        "QueryColumn.errors": Call(counted.errors, {"beta": 0.1}),
        "QueryColumn.intervals": Call(counted.intervals, {"beta": 0.1}),
        **{
            f"{kind}Column.{name}": Call(getattr(column, name), {"beta": 0.1})
            for kind, column in derived.items()
            for name in ("errors", "intervals")
        },
        "QuantileColumn.errors": Call(ranked.errors, {"beta": 0.1}),
        "MeanColumn.errors": Call(averaged.errors, {"beta": 0.1}),
        "MeanColumn.intervals": Call(averaged.intervals, {"beta": 0.1}),
        "QueryResult.column": Call(queried.column, {"name": "count"}),
        "QueryResult.save": Call(queried.save, {"path": folder / "q.json"}),
        "QueryResult.to_csv": Call(queried.to_csv, {"path": folder / "q.csv"}),
        "QueryResult.to_parquet": Call(queried.to_parquet, {"path": folder / "q.parquet"}),
        "Table.plan_ranges": on_table("plan_ranges", column="age", epsilon=1, max_rows=2),
        "Table.ranges": on_table("ranges", column="age", max_rows=2, **pays),
        "Table.running": on_table("running", column="age", max_rows=2, **pays),
        "Table.plan_top": on_table(
            "plan_top",
            n=1,
            questions=cells,
            epsilon=1,
            delta=0,
            counts_epsilon=1,
            max_rows=2,
            params=None,
        ),
        "Table.top": on_table(
            "top", n=1, questions=cells, delta=0, counts_epsilon=1, max_rows=2, params=None, **pays
        ),
        "Table.plan_synthetic": on_table("plan_synthetic", **invented),
        "Table.synthetic": on_table(
            "synthetic",
            **invented,
            **{k: v for k, v in pays.items() if k != "epsilon"},
        ),
        "Table.plan_watched_model": on_table("plan_watched_model", **modelled),
        "Table.watched_model": Call(
            lambda **given: table.watched_model(**given).suspend(),
            {**modelled, **pays, "name": None},
        ),
        "Table.resume_watched_model": Call(
            lambda **given: table.resume_watched_model(**given).suspend(),
            {"name": "w", "budget": budget, "model": histogram},
        ),
        "WatchedModel.ask": Call(
            held.ask, {"question": "age > 3", "params": None, "retry_key": None}
        ),
        "WatchedModel.ask_blocks": Call(
            lambda **given: list(held.ask_blocks(given.pop("questions"), **given)),
            {"questions": ["age > 3"], "size": 1, "most": 9, "keys": _key_of_watched_block}
            | {"skip": 0, "params": None},
        ),
        "WatchedModel.ask_all": Call(held.ask_all, {"questions": ["age > 3"], "params": None}),
        "WatchedPlan.error": Call(held.plan.error, {"beta": 0.1}),
        "tacit.book.watching.watch": Call(tacit.book.watching.watch, watches),
        "tacit.book.watching.Watch.error": Call(held.plan.watch.error, {"beta": 0.1}),
        "MarginalReport.within": Call(synthetic.report[0].within, {"beta": 0.1}),
        "SyntheticPlan.error": Call(synthetic.plan.error, {"columns": 1, "beta": 0.1}),
        "SyntheticPlan.round_error": Call(
            table.plan_synthetic(**{**invented, "rounds": 1}).round_error, {"beta": 0.1}
        ),
        "Synthetic.count": Call(synthetic.count, {"question": "age > 3"}),
        "Synthetic.save": Call(synthetic.save, {"path": folder / "y.json"}),
        "Synthetic.to_csv": Call(synthetic.to_csv, {"path": folder / "y.csv"}),
        "Synthetic.to_parquet": Call(synthetic.to_parquet, {"path": folder / "y.parquet"}),
        "tacit.book.synthetic.SyntheticMechanism": Call(
            tacit.book.synthetic.SyntheticMechanism,
            {"sizes": (2, 3), "epsilon": 1, "rows_per_person": 1, "rounds": 1}
            | {"candidates": ((0, 1),), "tree": True},
        ),
        "TopPlan.alpha": Call(planned_top.alpha, {"beta": 0.1}),
        "TopPlan.error": Call(planned_top.error, {"beta": 0.1}),
        "Top.save": Call(top.save, {"path": folder / "p.json"}),
        "Top.to_csv": Call(top.to_csv, {"path": folder / "p.csv"}),
        "Top.to_parquet": Call(top.to_parquet, {"path": folder / "p.parquet"}),
        "tacit.book.top.TopMechanism.alpha_steps": Call(
            planned_top.mechanism.alpha_steps, {"candidates": 5, "beta": 0.1}
        ),
        "tacit.book.top.TopMechanism": Call(
            tacit.book.top.TopMechanism,
            {"places": 2, "privacy": tacit.Privacy(1), "sensitivity": 1},
        ),
        "RangeCount.error": Call(
            RangeCount(
                value=Fraction(9),
                noise_scale=Fraction(3),
                privacy=tacit.Privacy(1),
                noises=Fraction(5, 2),
            ).error,
            {"beta": 0.1},
        ),
        "RangeCount.interval": Call(
            RangeCount(
                value=Fraction(9),
                noise_scale=Fraction(3),
                privacy=tacit.Privacy(1),
                noises=Fraction(5, 2),
            ).interval,
            {"beta": 0.1},
        ),
        "RangePlan.error": Call(ranges.plan.error, {"question": "age > 3", "beta": 0.1}),
        "RangePlan.worst_error": Call(ranges.plan.worst_error, {"beta": 0.1}),
        "Ranges.count": Call(ranges.count, {"question": "age > 3"}),
        "Ranges.quantile": Call(ranges.quantile, {"share": 0.5, "beta": 0.1}),
        "Ranges.worst_error": Call(ranges.worst_error, {"beta": 0.1}),
        "Ranges.intervals": Call(ranges.intervals, {"beta": 0.1}),
        "Ranges.plot": Call(ranges.plot, {"path": folder / "t.png"}),
        "Ranges.save": Call(ranges.save, {"path": folder / "t.json"}),
        "Ranges.to_csv": Call(ranges.to_csv, {"path": folder / "t.csv"}),
        "Ranges.to_parquet": Call(ranges.to_parquet, {"path": folder / "t.parquet"}),
        "tacit.book.range_tree.RangeTree": Call(
            tacit.book.range_tree.RangeTree, {"values": 13, "branching": 4, "levels": 2}
        ),
        "tacit.book.range_tree.RangeTree.scale": Call(
            tree.scale, {"epsilon": 1, "rows_per_person": 2}
        ),
        "tacit.book.range_tree.RangeTree.measure": Call(
            tree.measure,
            {"counts": np.zeros(13, np.int64), "epsilon": 1, "coins": coins}
            | {"rows_per_person": 2},
        ),
        "tacit.book.range_tree.RangeTree.noises": Call(tree.noises, {"start": 2, "stop": 5}),
        "tacit.book.range_tree.best_tree": Call(tacit.book.range_tree.best_tree, {"values": 13}),
        "tacit.Cost.pure": Call(Cost.pure, {"epsilon": 1, "times": 2}),
        "tacit.Cost.bounded_range": Call(Cost.bounded_range, {"epsilon": 1, "times": 2}),
        "Table.release": on_table(
            "release",
            mechanism=NoisyHistogram(schema, ["age"], epsilon=1, max_rows=1),
            **{k: v for k, v in pays.items() if k != "epsilon"},
        ),
        "Table.above_threshold": on_table("above_threshold", **streams),
        "Table.sparse": on_table("sparse", at_most=1, least_scale=None, **streams),
        "Table.numeric_sparse": on_table(
            "numeric_sparse",
            at_most=1,
            least_scale=None,
            **{k: v for k, v in streams.items() if k != "numeric"},
        ),
        "Table.resume": Call(
            lambda name, budget: table.resume(name, budget=budget).suspend(),
            {"name": "s", "budget": budget},
        ),
        "Table.refresh": Call(_refresh, {"as_of": "b", "source": None, "whole": False}),
        "Table.questions": on_table("questions", questions=["age < 3"]),
        "Table.plan_small_db": on_table(
            "plan_small_db",
            questions=["age < 3"],
            epsilon=1,
            alpha=None,
            rows=5,
            max_rows=1,
            certificate_epsilon=1,
        ),
        "Table.small_db": on_table(
            "small_db",
            **{"questions": ["age < 3"], "alpha": None, "rows": 5, "max_rows": 1, **pays},
            certificate_epsilon=1,
            progress=None,
        ),
        "Stream.ask": Call(
            asked.ask,
            {
                "question": "age > 3",
                "threshold": None,
                "below": False,
                "scale": None,
                "retry_key": None,
                "params": None,
            },
        ),
        "Stream.check": Call(
            asked.check,
            {
                "question": "age > 3",
                "threshold": None,
                "below": False,
                "scale": None,
                "params": None,
            },
        ),
        "Stream.accuracy": Call(asked.accuracy, {"questions": 100, "beta": "1/20", "rounds": 2}),
        "Stream.ask_blocks": Call(
            lambda **given: list(asked.ask_blocks(given.pop("questions"), **given)),
            {"questions": ["age > 3"], "size": 1, "most": 9, "keys": _key_of_block}
            | {"threshold": None, "skip": 0, "params": None}
            | {"below": False, "again": False, "only": [0], "scale": None}
            | {"descending": False, "round_number": 0},
        ),
        "Stream.ask_all": Call(
            asked.ask_all,
            {"questions": ["age > 3"], "threshold": None, "params": None}
            | {"below": False, "again": False, "scale": None, "descending": False},
        ),
        "Answer.error": Call(
            Answer(above=True, value=Fraction(1), noise_scale=tacit.Privacy(1).epsilon).error,
            {"beta": 0.1},
        ),
        "Answer.unbiased_error": Call(
            Answer(above=True, value=Fraction(1), noise_scale=Fraction(1)).unbiased_error,
            {"beta": 0.1},
        ),
        "Answer.interval": Call(
            Answer(above=True, value=Fraction(1), noise_scale=Fraction(1)).interval,
            {"beta": 0.1, "questions": 3},
        ),
        "Estimate.error": Call(
            table.count("age > 3", epsilon=1, budget=budget).error, {"beta": 0.1}
        ),
        "CellSum.interval": Call(histogram.count("age > 3").interval, {"beta": 0.1}),
        "Estimate.interval": Call(
            table.count("age > 3", epsilon=1, budget=budget).interval, {"beta": 0.1}
        ),
        "CellSum.error": Call(histogram.count("age > 3").error, {"beta": 0.1}),
        "Histogram.error": Call(histogram.error, {"beta": 0.1}),
        "Histogram.intervals": Call(histogram.intervals, {"beta": 0.1}),
        "Histogram.worst_error": Call(histogram.worst_error, {"beta": 0.1}),
        "Histogram.count": Call(histogram.count, {"question": "age > 3"}),
        "Histogram.to_csv": Call(histogram.to_csv, {"path": folder / "h.csv"}),
        "Histogram.to_parquet": Call(histogram.to_parquet, {"path": folder / "h.parquet"}),
        "Release.answer": Call(release.answer, {"question": "age <= 3"}),
        "Release.count": Call(release.count, {"question": "age <= 3", "people": 10}),
        "Release.guarantee": Call(release.guarantee, {"beta": 0.1}),
        "Release.certified": Call(release.certified, {"beta": 0.1}),
        "Release.plot": Call(release.plot, {"path": folder / "r.png"}),
        "Release.save": Call(release.save, {"path": folder / "r.json"}),
        "Release.to_csv": Call(release.to_csv, {"path": folder / "r.csv"}),
        "Release.to_parquet": Call(release.to_parquet, {"path": folder / "r.parquet"}),
        "ReleasePlan.guarantee": Call(release.plan.guarantee, {"beta": 0.1}),
        # Tables
        "tacit.tables.Column": Call(
            tacit.tables.Column,
            {"name": "age", "type": "integer", "grid": None, "bounds": (0, 9), "total": (0, 20)}
            | {"keys": (1, 2), "zone": None, "times": "utc", "stored": "integer"},
        ),
        "tacit.tables.Schema": Call(
            tacit.tables.Schema,
            {"name": "t", "person": "pid", "columns": schema.columns, "max_rows": 3}
            | {"max_cells": 2, "beside": (), "written": tacit.tables.TextFormat()}
            | {"cannot_ask": (("tags", "it holds lists"),)},
        ),
        "tacit.tables.Schema.why_not": Call(schema.why_not, {"name": "age"}),
        "tacit.tables.TextFormat": Call(
            tacit.tables.TextFormat,
            {"encoding": "utf-8", "delimiter": None, "decimal": ".", "nulls": ("NA",)}
            | {"dates": "iso", "quoted_newlines": False},
        ),
        "tacit.tables.Schema.find": Call(schema.find, {"name": "age"}),
        "tacit.tables.Schema.table": Call(schema.table, {"name": schema.name}),
        "tacit.tables.Schema.column": Call(schema.column, {"name": "age"}),
        "tacit.tables.Prepared.bind": Call(prepared.bind, {"parameters": {"age": 3}}),
        "tacit.tables.Prepared.bind_batch": Call(prepared.bind_batch, {"parameters": {"age": 3}}),
        **{
            f"tacit.tables.{name}": Call(
                getattr(tacit.tables, name),
                {"text": text, "schema": schema, "max_rows": 2, "total": (0, 9)}
                | ({} if name == "prepare" else {"parameters": {"age": 3}}),
            )
            for name in ("check", "parse", "parse_batch", "prepare")
        },
        "tacit.tables.read_schema": Call(
            tacit.tables.read_schema, {"text": SCHEMA, "name": "t", "person": "pid"}
        ),
        "tacit.tables.write_schema": Call(tacit.tables.write_schema, {"schema": schema}),
        "tacit.tables.load": Call(
            tacit.tables.load,
            {"source": pyarrow.table({"pid": [1]}), "person": "pid", "name": "visits"}
            | {"schema": None, "table": None, "memory_limit": None, "spill_folder": None}
            | {"spill": True, "shards": None, "as_of": None, "grows_by": None},
        ),
        "tacit.tables.propose_schema": Call(
            tacit.tables.propose_schema, {"source": pyarrow.table({"pid": [1]}), "table": None}
        ),
        "tacit.tables.report_schema": Call(
            tacit.tables.report_schema,
            {"source": pyarrow.table({"pid": [1]}), "schema": None, "table": None},
        ),
        # The book
        "tacit.book.coins.Coins": Call(Coins),
        "tacit.book.coins.InsecureTestCoins": Call(InsecureTestCoins, {"seed": 1}),
        "tacit.book.coins.given_coins": Call(book.coins.given_coins, {"coins": coins}),
        "tacit.book.coins.given_or_fresh": Call(book.coins.given_or_fresh, {"coins": coins}),
        "tacit.book.experiment.NotedCoins.below": Call(NotedCoins(coins).below, {"n": 3}),
        "tacit.book.experiment.NotedCoins.bernoulli": Call(
            NotedCoins(coins).bernoulli, {"p": Fraction(1, 2)}
        ),
        "tacit.book.coins.refuse_insecure": Call(book.coins.refuse_insecure, {"coins": coins}),
        **on_coins("below", n=3),
        **on_coins("bernoulli", p="1/2"),
        **on_coins("bernoulli_exp", gamma=1),
        **on_coins("bernoulli_exp_steps", steps=3, rate=1),
        **on_coins("bernoulli_exps", steps=np.array([1, 2]), rate=1),
        **on_coins("belows", n=9, size=2),
        **on_coins("bernoullis", p="1/2", size=3),
        **on_coins("geometric", scale=3),
        **on_coins("geometrics", scale=3, size=3),
        **on_coins("laplace", scale=3),
        **on_coins("laplaces", scale=3, size=3),
        **on_coins("laplace_sampler", scale=3),
        **{
            f"tacit.book.{module}.{name}": Call(
                getattr(book.composition, name), cast("dict[str, Any]", arguments)
            )
            for name, arguments in {
                "advanced_each": {"k": 9, "epsilon": 1, "delta_prime": 0.1, "form": "book"},
                "advanced_epsilon": {"k": 9, "epsilon_each": 1, "delta_prime": 0.1, "form": "book"},
                "advanced_total": {"k": 9, "each": tacit.Privacy("1/9"), "delta_prime": 0.1}
                | {"form": "book"},
                "corollary_each": {"k": 9, "epsilon": "1/9", "delta_prime": 0.1},
                "corollary_limit": {"k": 9, "delta_prime": 0.1},
                "optimal_delta": {"k": 9, "epsilon_each": 1, "epsilon": 3, "delta_each": 0},
                "optimal_each": {"k": 9, "epsilon": 1, "delta": 0.1, "delta_each": 0},
                "optimal_epsilon": {"k": 9, "epsilon_each": 1, "delta": 0.1, "delta_each": 0},
                "mixed_advanced": {"parts": mixed, "delta_prime": 0.1, "form": "book"},
                "mixed_basic": {"parts": mixed},
                "rho_of_epsilon": {"epsilon": 1},
                "rho_of_range": {"length": 1},
                "two_point_delta": {"k": 9, "up": 1, "down": "1/2", "epsilon": 3},
                "zcdp_delta": {"rho": 1, "epsilon": 3},
                "zcdp_epsilon": {"rho": 1, "delta": 0.1},
                "zcdp_rho": {"epsilon": 3, "delta": 0.1},
            }.items()
            for module in ("composition", "optimal", "zcdp")
            if name in getattr(book, module).__all__
        },
        "tacit.book.answer.Answer.error": Call(
            Answer(above=True, value=Fraction(1), noise_scale=Fraction(1)).error, {"beta": 0.1}
        ),
        "tacit.book.answer.Answer.unbiased_error": Call(
            Answer(above=True, value=Fraction(1), noise_scale=Fraction(1)).unbiased_error,
            {"beta": 0.1},
        ),
        "tacit.book.answer.Answer.interval": Call(
            Answer(above=True, value=Fraction(1), noise_scale=Fraction(1)).interval,
            {"beta": 0.1, "questions": 3},
        ),
        "tacit.book.laplace.Estimate.error": Call(
            LaplaceMechanism(epsilon=1).draw(3, coins).error, {"beta": 0.1}
        ),
        "tacit.book.laplace.Estimate.interval": Call(
            LaplaceMechanism(epsilon=1).draw(3, coins).interval, {"beta": 0.1}
        ),
        "tacit.book.laplace.LaplaceMechanism": Call(
            LaplaceMechanism, {"epsilon": 1, "sensitivity": 1, "grid": 1}
        ),
        "tacit.book.laplace.LaplaceMechanism.draw": Call(
            LaplaceMechanism(epsilon=1).draw, {"steps": 3, "coins": coins}
        ),
        **_recipe_calls(recipe),
        **_small_db_calls(coins),
        "tacit.book.accuracy.above_threshold": Call(
            book.accuracy.above_threshold, {**solved, "sharper": False}
        ),
        "tacit.book.accuracy.sparse": Call(
            book.accuracy.sparse, {**solved, "at_most": 2, "delta": 0}
        ),
        "tacit.book.accuracy.numeric_sparse": Call(
            book.accuracy.numeric_sparse, {**solved, "at_most": 2, "delta": 0}
        ),
        "tacit.book.accuracy.accurate": Call(
            book.accuracy.accurate, {"answers": [Answer(above=False)], **judged}
        ),
        "tacit.book.accuracy.numerically_accurate": Call(
            book.accuracy.numerically_accurate, {"answers": [Answer(above=False)], **judged}
        ),
        "tacit.book.accuracy.least_alphas": Call(
            book.accuracy.least_alphas,
            {"answers": [Answer(above=False)], **{n: judged[n] for n in ("values", "threshold")}},
        ),
        "tacit.book.accuracy.covered": Call(book.accuracy.covered, {**judged, "at_most": 1}),
        "tacit.book.experiment.Mechanism": Call(
            book.experiment.Mechanism, {"name": "m", "run": _noisy, "privacy": tacit.Privacy}
        ),
        "tacit.book.experiment.Experiment": Call(
            Experiment,
            {"family": [RANDOMISED_RESPONSE], "neighbours": book.experiment.differ_by_one_person},
        ),
        "tacit.book.experiment.Experiment.run": Call(
            experiment.run, {"adversary": Same, "b": 0, "steps": 2, "coins": coins}
        ),
        "tacit.book.experiment.differ_by_one_person": Call(
            book.experiment.differ_by_one_person, {"x": {}, "y": {"a": 1}}
        ),
        "tacit.book.experiment.with_and_without": Call(
            book.experiment.with_and_without, {"database": {"a": 1}, "person": "a"}
        ),
        "tacit.book.sparse_vector.above_threshold": Call(book.sparse_vector.above_threshold, run),
        "tacit.book.sparse_vector.sparse": Call(book.sparse_vector.sparse, printed),
        "tacit.book.sparse_vector.numeric_sparse": Call(book.sparse_vector.numeric_sparse, printed),
        "tacit.book.sparse_vector.answers": Call(
            book.sparse_vector.answers,
            {"mechanism": book.one_sided.prepare(recipe, threshold=2), "values": [1, 2]}
            | {"coins": coins, "directions": None},
        ),
        "tacit.book.one_sided.above_threshold": Call(
            book.one_sided.above_threshold, {**run, "monotone": False}
        ),
        "tacit.book.one_sided.sparse": Call(
            book.one_sided.sparse, {**printed, "monotone": False, "groups": 1, "value_share": None}
        ),
        "tacit.book.one_sided.numeric_sparse": Call(
            book.one_sided.numeric_sparse,
            {**printed, "monotone": False, "groups": 1, "value_share": "1/9"},
        ),
        "tacit.book.one_sided.prepare": Call(
            book.one_sided.prepare,
            {"recipe": recipe, "threshold": 2, "sensitivity": 1, "grid": 1},
        ),
        # Auditing
        "tacit.audit.exact": Call(
            tacit.audit.exact,
            {"mechanism": recipe, "answers": [0], "neighbour_answers": [1], "threshold": 0}
            | {"sensitivity": 1, "grid": 1, "directions": None},
        ),
        "tacit.audit.compare": Call(
            tacit.audit.compare, {"here": {0: 0.5, 1: 0.5}, "there": {0: 0.25, 1: 0.75}}
        ),
        "tacit.audit.worst": Call(
            tacit.audit.worst,
            {"mechanism": recipe, "questions": 1, "sensitivity": 1, "grid": 1}
            | {"both_directions": None},
        ),
        "tacit.audit.best_pair_to_sample": Call(
            tacit.audit.best_pair_to_sample,
            {"mechanism": recipe, "questions": 1, "runs": 1000, "sensitivity": 1, "grid": 1}
            | {"both_directions": None},
        ),
        "tacit.audit.sample": Call(
            tacit.audit.sample, {**sampled, "pairs": None, "progress": None}
        ),
        "tacit.audit.support_test": Call(tacit.audit.support_test, {**floating, "scale": 1}),
        "tacit.audit.precision_test": Call(tacit.audit.precision_test, floating),
        "tacit.audit.known_bad_pairs": Call(tacit.audit.known_bad_pairs, {"questions": 3}),
        "tacit.audit.off_grid": Call(tacit.audit.off_grid, {"numbers": [1, 2], "grid": 1}),
        "tacit.audit.gallery": Call(tacit.audit.gallery, {"epsilon": "1/10", "at_most": 1}),
        "tacit.audit.ours": Call(tacit.audit.ours, {"epsilon": "1/10", "delta": "1e-6"}),
        "tacit.audit.one_by_one": Call(tacit.audit.one_by_one, {"mechanism": _floating}),
        "tacit.audit.bulk_runs": Call(
            lambda **given: tacit.audit.bulk_runs(**given)([0, 1], 3),
            {"mechanism": book.one_sided.prepare(recipe, threshold=2), "coins": coins}
            | {"directions": None},
        ),
        "tacit.audit.real_runs": Call(
            lambda **given: tacit.audit.real_runs(**given)([0, 1], 3),
            {"mechanism": book.one_sided.prepare(recipe, threshold=2), "coins": coins}
            | {"directions": None},
        ),
        "tacit.audit.composed": Call(
            lambda **given: tacit.audit.composed(**given)(0, 2),
            {"experiment": experiment, "adversary": Same, "steps": 2, "coins": coins},
        ),
        "tacit.audit.Law": Call(
            tacit.audit.Law,
            {"threshold_noise": law.threshold_noise, "question_noise": law.question_noise}
            | {"at_most": 1, "tops_per_group": 1, "value_noise": None, "told": "bits"}
            | {"monotone": False, "directions": None},
        ),
        "tacit.audit.Law.of": Call(
            tacit.audit.Law.of,
            {"recipe": recipe, "sensitivity": 1, "grid": 1} | {"directions": None},
        ),
        "tacit.audit.Law.pattern_count": Call(law.pattern_count, {"questions": 2}),
        **{
            f"tacit.audit.ExactLoss.{name}": Call(getattr(loss, name), arguments)
            for name, arguments in {
                "at_least": {"delta": 0},
                "delta": {"epsilon": 1},
                "delta_error": {"epsilon": 1},
                "epsilon": {"delta": 0},
                "exceeds": {"epsilon": 1, "delta": 0},
            }.items()
        },
    }
