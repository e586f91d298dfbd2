"""Everything that leaves as JSON comes back as it was; what was cut or changed is refused."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.stored import GOLDENS, noted

import tacit
from tacit import errors, wire
from tacit.analyst.blocks import Block
from tacit.analyst.histogram import CellSum
from tacit.analyst.history import History
from tacit.analyst.query_result import query_from_json
from tacit.book.answer import Answer, GapNoise
from tacit.book.laplace import Estimate
from tacit.budget import Entry, RetryKey, Share, Verified
from tacit.wire import BudgetSummary, Reply, from_json, from_line, to_json, to_line

POISON = "Zyzzyva-4711"
SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 9]
[columns.cost]
type = "real"
grid = "0.1"
bounds = [0, 100]
total = [0, 200]
"""


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """One of everything, made as a user makes it."""
    folder = tmp_path_factory.mktemp("wire")
    rows = [f"{pid},{'Ghent' if pid % 3 else 'Bruges'},{pid % 10},10.5" for pid in range(90)]
    (folder / "visits.csv").write_text("\n".join(["pid,town,age,cost", *rows]))
    (folder / "visits.toml").write_text(SCHEMA)
    budget = tacit.Budget.create(
        folder / "clinic.budget", epsilon=1000, delta="1e-9", covers=["visits", "labs"]
    )
    budget.share("ana", epsilon="100/3")
    with budget, tacit.open(folder / "visits.csv", person="pid", people=90) as visits:
        pays: dict[str, Any] = {"budget": budget}
        stream = visits.numeric_sparse(
            threshold=20, at_most=3, epsilon=50, analyst=None, name="watch", **pays
        )
        top = stream.ask("town = 'Ghent'", threshold="41/2")
        stream.ask("age = 3 and town = 'Bruges'")
        again = stream.ask("town = 'Ghent'", threshold="41/2")
        histogram = visits.histogram("town", "age", max_rows=1, epsilon=7, **pays)
        cells = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"
        ranges = visits.ranges("age", epsilon=7, max_rows=1, **pays)
        stream.ask("age = 4", retry_key="first")
        paid, *_, told = budget.answers
        declined = budget.requests.ask("ana", epsilon=2, reason="more")
        found = {
            "⊤": top,
            "⊤ on record": again,
            "⊥": Answer(above=False),
            "exact ⊤": Answer(
                above=True,
                value=Fraction(-7, 3),
                gap=Fraction(1, 7),
                noise_scale=Fraction(22, 7),
                grid=Fraction(1, 21),
            ),
            "⊤ from the gap": Answer(
                above=True,
                value=Fraction(-7, 3),
                gap=Fraction(1, 7),
                gap_noise=GapNoise(Fraction(22, 7), Fraction(5), -3, groups=4),
                grid=Fraction(1, 21),
            ),
            "block": Block(7, 5, ((1, again), (4, top)), done=True),
            "reply": Reply(
                line=2, question="town = 'Ghent'", answer=top, tops_left=2, halted=False
            ),
            "reply to a cell": Reply(
                line=2,
                question="count(age = 1)",
                answer=again,
                cell=1,
                cells=10,
                tops_left=0,
                halted=True,
            ),
            "refused": Reply(
                line=3, question="age / 2", refusal="no division", tops_left=2, halted=False
            ),
            "history": stream.history,
            "recorded": stream.recorded,
            "estimate": visits.sum("cost", epsilon=20, **pays),
            "cell sum": histogram.count("age >= 5"),
            "histogram": histogram,
            "query": visits.query(
                "SELECT town, COUNT(DISTINCT pid), AVG(cost) FROM visits GROUP BY town",
                epsilon=9,
                max_cells=1,
                max_rows=1,
                **pays,
            ),
            "median": visits.query("SELECT MEDIAN(age) FROM visits", epsilon=9, max_rows=1, **pays),
            "ranges": ranges,
            "range": visits.ranges("cost", epsilon=7, max_rows=1, **pays).count("cost >= 5"),
            "synthetic": visits.synthetic(
                ["town", "age", "cost"], epsilon=9, max_rows=1, rows=20, rounds=1, **pays
            ),
            "watched answer": visits.watched_model(
                epsilon=9, surprises=2, model=histogram, **pays
            ).ask("age >= 5"),
            "watched block": next(
                visits.watched_model(epsilon=9, surprises=2, model=histogram, **pays).ask_blocks(
                    ["age >= 5", "age < 5"],
                    size=2,
                    most=2,
                    keys=lambda start: RetryKey("w", None, f"from {start}", None),
                )
            ),
            "top": visits.top(2, cells, epsilon=9, **pays),
            "top with counts": visits.top(2, cells, epsilon=9, counts_epsilon=2, **pays),
            "release": visits.small_db(
                tacit.prefixes("age"), max_rows=1, epsilon=50, rows=20, **pays
            ),
            "certified release": visits.small_db(
                tacit.prefixes("age"),
                max_rows=1,
                epsilon=50,
                rows=20,
                certificate_epsilon=5,
                **pays,
            ),
            "release of a list": visits.small_db(
                ["age = 3"], max_rows=1, epsilon=50, rows=5, **pays
            ),
            "statement": visits.check("town = 'Ghent'"),
            "statement about cells": visits.check("SELECT COUNT(DISTINCT pid) GROUP BY town"),
            "refusal": visits.check("age / 2 > 1"),
            "plan": tacit.plan.sparse(questions=50, at_most=3, epsilon="1/3", delta="1e-6"),
            "plan for α": tacit.plan.numeric_sparse(questions=9, at_most=2, alpha=40, kind="any"),
            "chance": tacit.plan.sparse(questions=9, at_most=1, epsilon=1).chance(3),
            "chances": tacit.plan.sparse(questions=9, at_most=1, epsilon=1).chances(threshold=7),
            "composed": tacit.compose(9, epsilon_each=1000, delta="1e-6"),
            "priced plan": tacit.plan.priced(questions=50, epsilon="1/3", least_scale=9),
            "planned": stream.planned,
            "budget": wire.summary(budget),
            "shown budget": wire.ShownBudget(
                promise=budget.promise,
                accountant="sum",
                covers=("visits",),
                whole=budget.whole,
                own=budget.shares[1],
                shares=budget.shares,
                streams=wire.summary(budget).streams,
            ),
            "share": budget.shares[1],
            "stream": wire.summary(budget).streams[0],
            "paid answer": wire.paid_summary(paid),
            "paid and asked in a stream": wire.paid_summary(told),
            "paid and not told": replace(wire.paid_summary(paid), response=None, analyst=None),
            "budget request": budget.requests.ask("ana", epsilon="1/3", reason="flu"),
            "declined": budget.requests.decline(declined.number, reason="why?"),
            "stopped": wire.StoppedThing(kind="table", name="visits", at="now", by="desk"),
            "verified": budget.verify(),
            "entry": budget.history[-1],
            "error": errors.BudgetExhausted("asks for ε = 2; ε = 1 is left", advice="ask less"),
            "bad parameter": errors.BadParameter("epsilon", -1, "it must be greater than 0"),
            "missing": errors.BadParameter("epsilon", None, "say how much"),
        }
        stream.suspend()
    return found


NAMES = [
    "⊤",
    "⊤ on record",
    "⊥",
    "exact ⊤",
    "⊤ from the gap",
    "block",
    "reply",
    "reply to a cell",
    "refused",
    "history",
    "recorded",
    "estimate",
    "cell sum",
    "histogram",
    "query",
    "median",
    "ranges",
    "range",
    "synthetic",
    "watched answer",
    "watched block",
    "top",
    "top with counts",
    "release",
    "certified release",
    "release of a list",
    "statement",
    "statement about cells",
    "refusal",
    "plan",
    "plan for α",
    "chance",
    "chances",
    "composed",
    "priced plan",
    "planned",
    "budget",
    "shown budget",
    "share",
    "stream",
    "paid answer",
    "paid and asked in a stream",
    "paid and not told",
    "budget request",
    "declined",
    "stopped",
    "verified",
    "entry",
    "error",
    "bad parameter",
    "missing",
]


def facts(value):
    """All that a value says, so that two can be compared."""
    if isinstance(value, History):
        return value.forgotten, [(*map(facts, (a.question, a.answer, a.threshold)),) for a in value]
    if isinstance(value, Answer):
        return value, value.recorded
    if isinstance(value, Block):
        return value, [facts(answer) for answer in value.answers]
    if isinstance(value, errors.TacitError):
        return type(value), str(value), value.fact, value.advice, value.exit_code
    if isinstance(value, Entry):
        return value.number, value.text, value.hash
    if hasattr(value, "to_dict") and hasattr(value, "schema"):
        return type(value), str(value), value.to_dict(), value.privacy, value.schema.digest
    return value


def test_one_of_everything_is_tried(values):
    assert list(values) == NAMES
    written = {form.name for form in wire.FORMS if any(map(form.fits, values.values()))}
    assert written == {form.name for form in wire.FORMS}


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_back_as_it_was(values, name):
    value = values[name]
    again = from_line(to_line(value))
    assert type(again) is type(value)
    assert facts(again) == facts(value)
    assert to_line(again) == to_line(value)
    assert from_json(to_json(value), type(value)) is not None
    assert "\n" not in to_line(value)


def test_its_first_key_says_what_it_is_and_in_which_version(values):
    for name in set(NAMES) - {"entry"}:
        first, *_ = to_json(values[name]).items()
        assert first[0].startswith("tacit ")
        assert first[1] == wire.VERSION


NUMBERS = ["estimate", "cell sum", "range", "histogram", "ranges", "query", "top with counts"]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_is_told_with_both_ends_of_its_interval(values, name):
    fields = to_json(values[name])
    told = fields.get("told", fields)
    columns = [told] if "value" in told else list(told.values())
    for column in columns:
        ends = [column[each] for each in ("lower", "value", "upper")]
        for low, value, high in zip(*ends, strict=True) if isinstance(ends[1], list) else [ends]:
            assert low <= value <= high
    if name == "query":
        count, mean = values[name].columns
        assert told[count.name]["value"] == count.values
        assert told[mean.name]["lower"] == [float(low) for low, _ in mean.intervals()]
        assert told[mean.name]["upper"] == [float(high) for _, high in mean.intervals()]
    if name == "estimate":
        assert (fields["lower"], fields["upper"]) == tuple(map(float, values[name].interval()))
        assert values[name].interval("1/1000")[0] < values[name].interval()[0]


def test_a_number_without_an_interval_says_why(values):
    assert to_json(values["top"])["told"]["why"] == "counts were not asked for"
    (median,) = to_json(values["median"])["told"].values()
    assert median["lower"] is median["upper"] is None
    assert "not where those lie" in median["why"]
    assert median["value"] == values["median"].columns[0].values
    assert median["rank_error"] == values["median"].columns[0].errors()


@pytest.mark.parametrize("name", [*NUMBERS, "top"])
def test_what_0_2_wrote_without_the_intervals_is_read(values, name):
    fields = {key: each for key, each in to_json(values[name]).items() if key not in wire._DERIVED}
    assert facts(from_json(fields)) == facts(values[name])


@pytest.mark.parametrize("scale", [2**201, 10**4000])
def test_noise_that_nobody_draws_is_refused_before_its_error_is_looked_for(values, scale):
    fields = to_json(values["query"])
    fields["columns"][0]["noise_scale"] = str(scale)
    with pytest.raises(ValueError, match=r"^$"):
        query_from_json(fields)


def places(tree, path=()):
    """The path of everything in an object of JSON."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, each in pairs:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def changed(fields, path, change):
    found = copy.deepcopy(fields)
    at = found
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return found


def drop(at, key):
    del at[key]


def other(at, key):
    """Another value of the same kind."""
    match at[key]:
        case bool():
            at[key] = not at[key]
        case int() | float():
            at[key] = at[key] + 1
        case str():
            at[key] = f"{at[key]}1"
        case None:
            at[key] = "1"
        case list() | dict():
            at[key] = None


def unkind(at, key):
    at[key] = {"a": [POISON]}


def refused(fields):
    """None, once the refusal was found to quote nothing; else the value that was read."""
    refusal = None
    try:
        return from_json(fields)
    except errors.BadParameter as error:
        refusal = error
    assert POISON not in str(refusal)
    assert refusal.__cause__ is refusal.__context__ is None
    return None


@pytest.mark.parametrize("change", [drop, other, unkind])
@pytest.mark.parametrize("name", NAMES)
def test_what_was_cut_or_changed_is_refused_or_says_something_else(values, name, change):
    """No change goes unnoticed: an error of ours, or a value that writes what was changed."""
    fields = to_json(values[name])
    paths = list(places(fields))
    for path in paths if len(paths) < 400 else paths[:100] + paths[-100:]:
        if change is drop and path[-1] in wire._DERIVED:  # it follows from the rest
            continue
        damaged = changed(fields, path, change)
        value = refused(damaged)
        if value is not None:
            assert to_json(value) != fields
            assert wire._same(damaged, to_json(value))


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"entry"}))
def test_a_key_that_is_missing_is_noticed_and_a_new_one_is_not(values, name):
    fields = to_json(values[name])
    optional = {
        "cell",
        "cells",
        "refused",
        "counts",
        "rows_chosen",
        "certificate",
        *wire._DERIVED,
    }  # with them it says something else
    for key in fields.keys() - optional:
        assert refused(changed(fields, (key,), drop)) is None, key
    assert facts(from_json({**fields, "of a later version": 1})) == facts(values[name])


@pytest.mark.parametrize(
    "fields",
    [
        *(None, 1, "text", [], {}, {"tacit": 1}, {"tacit answer": 2}, {"tacit answer": "1"}),
        *({"tacit answer": True}, {"tacit nonsense": 1}, {"tacit entry": 1}, {POISON: POISON}),
        *({"tacit answer": 1}, {"tacit error": 1, "error": "__doc__", "advice": ""}),
        {"tacit error": 1, "error": "annotations", "advice": "", "message": ""},
    ],
)
def test_what_is_not_ours_is_refused(fields):
    assert refused(fields) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "NaN", "[" * 100_000, "null", "9" * 5000),
        '{"tacit verified": 1, "entries": NaN, "head": ""}',
        '{"tacit verified": 1, "entries": 1, "head": "", "more": 1e999}',
        '{"tacit verified": 1, "entries": 1, "entries": 1, "head": ""}',
    ],
)
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(errors.BadParameter) as caught:
        from_line(text)
    assert caught.value.__context__ is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_value_under_a_known_key_is_refused(anything):
    for form in wire.FORMS:
        assert refused({form.tag: wire.VERSION, "exact": anything}) is None


@given(
    st.fractions(),
    st.fractions(),
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9),
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9),
)
def test_exact_numbers_stay_exact(value, gap, scale, grid):
    answer = Answer(above=True, value=value, gap=gap, noise_scale=scale, grid=grid)
    assert from_line(to_line(answer), Answer) == answer
    told = to_json(answer)
    assert told["value"] == value if value.denominator == 1 else told["value"] == float(value)
    estimate = Estimate(value=value, noise_scale=scale, privacy=tacit.Privacy(scale), grid=grid)
    assert from_line(to_line(estimate), Estimate) == estimate


@pytest.mark.parametrize("scale", ["-1", "0", "1e4000", f"{2**200 + 1}"])
def test_a_noise_that_nobody_draws_is_refused_at_once(scale):
    answer = Answer(above=True, value=Fraction(1), noise_scale=Fraction(1))
    fields = changed(
        to_json(answer), ("exact", "noise_scale"), lambda at, key: at.update({key: scale})
    )
    assert refused(fields) is None


@pytest.mark.parametrize("name", ["question_scale", "threshold_scale"])
def test_so_is_a_gap_that_nobody_draws(name):
    noise = GapNoise(Fraction(2), Fraction(5), -3)
    answer = Answer(above=True, value=Fraction(1), gap_noise=noise)
    told = to_json(answer)
    assert (told["value_from"], told["unbiased"]) == ("gap", 7)
    assert told["interval"] == [float(end) for end in answer.interval() or ()]
    for scale in ("-1", "0", f"{2**200 + 1}"):
        fields = changed(told, ("exact", name), lambda at, key, new=scale: at.update({key: new}))
        assert refused(fields) is None


def test_floats_come_back_as_they_were(values):
    plan = values["plan"]
    again = from_line(to_line(plan))
    assert [option.alpha.hex() for option in again.options] == [
        option.alpha.hex() for option in plan.options
    ]
    assert again.baselines == plan.baselines
    assert again.recipe("book") == plan.recipe("book")


def test_a_recipe_with_too_little_noise_cannot_arrive(values):
    fields = to_json(values["plan"])
    fields["recipes"][0]["recipe"]["question_epsilon"] = "1000"
    assert refused(fields) is None


def test_a_type_that_is_not_expected_is_refused(values):
    assert isinstance(from_json(to_json(values["cell sum"]), Estimate), CellSum)
    for expected in (Share, Verified, BudgetSummary):
        with pytest.raises(errors.BadParameter, match=f"must be of type {expected.__name__}"):
            from_json(to_json(values["⊤"]), expected)


def test_a_budget_itself_is_written_as_its_summary(values, tmp_path):
    with tacit.Budget.create(tmp_path / "a.budget", epsilon=1, covers=["a"]) as budget:
        assert to_json(budget) == to_json(wire.summary(budget))


def test_a_paid_answer_is_written_as_its_summary_and_has_its_value(values, tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("pid,town,age,cost\n1,Ghent,3,2\n")
    path.with_suffix(".toml").write_text(SCHEMA)
    with (
        tacit.Budget.in_memory(epsilon=1, covers=["visits"]) as budget,
        tacit.open(path, person="pid", as_of="2026-11-01") as visits,
    ):
        told = visits.count("age = 3", epsilon="1/2", budget=budget)
        (paid,) = budget.answers
        fields = to_json(paid)
        assert fields == to_json(wire.paid_summary(paid))
        again = from_json(fields, wire.PaidSummary)
    assert again.value == told
    assert (again.what, again.table, again.as_of) == ("count: age = 3", "visits", "2026-11-01")
    assert again.charged == paid.charged
    assert "count: age = 3" in str(again)
    asked = values["paid and asked in a stream"]
    assert (asked.stream, asked.question, asked.charged) == ("watch", "age = 4", None)
    assert asked.value.above is False
    assert values["paid and not told"].value is None


def test_an_entry_is_the_text_that_was_hashed(values):
    entry = values["entry"]
    assert json.loads(to_line(entry)) == json.loads(entry.text)
    assert from_json(json.loads(entry.text)).hash == entry.hash


@pytest.mark.parametrize("name", ["clinic", "research"])
def test_every_entry_that_0_1_wrote_is_read_with_its_hash(name):
    for line in (GOLDENS / "0.1" / f"{name}.jsonl").read_text().splitlines():
        told = json.loads(line)
        assert from_json(told["entry"], Entry).hash == told["hash"]


@pytest.mark.parametrize("name", noted("releases"))
def test_a_release_that_0_1_saved_is_read(name):
    saved = (GOLDENS / "0.1" / f"release-{name}.json").read_text()
    again = to_json(from_line(saved))
    assert again.pop("covers", "± does not cover the rest").endswith("± does not cover the rest")
    assert again == json.loads(saved)


@pytest.mark.parametrize(
    "kind", [each for each in vars(errors).values() if hasattr(each, "exit_code")]
)
def test_every_error_comes_back(kind):
    if kind is errors.BadParameter:
        error = kind("delta", Fraction(3, 2), "it must be less than 1", "give a smaller one")
    else:
        error = kind("what is wrong", advice="what to do")
    told = to_json(error)
    assert told["error"] == kind.__name__
    assert (told["message"], told["advice"]) == (error.fact, error.advice)
    assert told["exit_code"] == kind.exit_code
    assert facts(from_json(told)) == facts(error)


@pytest.mark.parametrize(
    "error", [ValueError(POISON), OSError(2, POISON, POISON), KeyError(POISON), SystemExit(POISON)]
)
def test_an_error_that_is_not_ours_says_its_class_and_nothing_else(error):
    told = to_json(error)
    assert POISON not in json.dumps(told)
    assert type(error).__name__ in told["message"]
    assert (told["error"], told["exit_code"]) == ("InternalError", 70)
    assert type(from_json(told)) is errors.InternalError


def test_an_error_of_a_command_is_told_as_the_one_above_it():
    from tacit.cli.exits import Misuse

    assert to_json(Misuse("both"))["error"] == "TacitError"


@pytest.mark.parametrize("value", [1, "text", None, object(), {"tacit answer": 1}, Fraction(1)])
def test_what_has_no_form_cannot_be_written(value):
    with pytest.raises(errors.BadParameter, match="it must be one of"):
        to_json(value)


def test_it_loads_nothing_by_itself():
    heavy = {"numpy", "duckdb", "sqlglot", "sqlite3", "tacit.analyst", "tacit.budget", "tacit.book"}
    code = "import sys, tacit.wire; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert set(done.stdout.split()) & heavy == set()
