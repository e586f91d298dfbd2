"""Every parameter of the wrong type or form gets an error that names it."""

from __future__ import annotations

import inspect
import io
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.budget.common import BINDING, open_stream

from tacit.budget import Budget, RetryKey, TableIdentity
from tacit.errors import BadParameter, TacitError
from tacit.privacy import Cost, Privacy

COST = Cost.pure("1/100")
CLOSED = io.StringIO()
CLOSED.close()

NOT_TEXT = [5, None, object(), b"visits", ["visits"], "", "\ud800", "x" * 200_000]
NOT_A_NUMBER = ["x", object(), b"1", [], float("nan"), 1j, True, "1/0", "9" * 5000]
NOT_AN_AMOUNT = [*NOT_A_NUMBER, 0, -1, None]
NOT_A_PATH = [5, object(), b"x", "", "a\0b", "\ud800", ["a"], None]
made: Any = Cost  # from what it does not take
changed: Any = replace
NOT_A_COST = [5, None, "1", Privacy(1), made("x"), made(None), changed(COST, parts="ab")] + [
    changed(COST, **{name: pieces})
    for name in ("parts", "ranges")
    for pieces in (((1,),), ((0, Fraction(1)),), ((1, Fraction(0)),), ((1.5, Fraction(1)),), 5)
]
NOT_A_MAPPING = [5, None, "x", [("a", "b")], {"a": 5}, {5: "a"}, {"a": "\ud800"}, {"": "x"}]
NOT_AN_IDENTITY = [5, "pid", object(), ("pid", None, None), TableIdentity("\ud800")]
ANYBODY = TableIdentity("pid")
NOT_BESIDE: list[Any] = [5, "labs", [("labs", None)], {5: ANYBODY}, {"": ANYBODY}]
NOT_BESIDE += [{"labs": wrong} for wrong in NOT_AN_IDENTITY]

NOT_A_KEY = ["x", 5, b"x", object(), ("monday", None, "visits.count", 1)]
NOT_A_HEAD = [5, b"x", object(), "", "f" * 63, "F" * 64, "x" * 64, "\ud800"]

STREAM = {"cost": COST, "table": "visits", "at_most": 2, "binding": BINDING, "secret": b"x"}
CHARGE = {"cost": COST, "table": "visits", "what": "x"}
PROMISE = {"epsilon": 1, "covers": ["visits"]}

WRONG = [
    ("charge", CHARGE, "cost", NOT_A_COST),
    ("charge", CHARGE, "table", NOT_TEXT),
    ("charge", CHARGE, "what", NOT_TEXT[:-1]),  # what is endless is shortened
    ("charge", CHARGE, "analyst", [value for value in NOT_TEXT if value is not None]),
    ("charge", CHARGE, "identity", NOT_AN_IDENTITY),
    ("charge", CHARGE, "as_of", [value for value in NOT_TEXT if value is not None]),
    ("charge", CHARGE, "retry", NOT_A_KEY),
    ("charge", CHARGE, "beside", NOT_BESIDE),
    ("charge", CHARGE, "names", [5, "labs", b"labs", object(), [5], [""], ["\ud800"]]),
    ("keep", {"response": {}}, "number", [*NOT_AN_AMOUNT, "3/2", 1, 2]),
    ("keep", {"number": 1}, "response", [5, None, "x", [1], {"a": object()}, {"a": 1j}]),
    ("drawn", {}, "number", [*NOT_AN_AMOUNT, "3/2"]),
    ("open_stream", {"name": "s", **STREAM}, "retry", NOT_A_KEY),
    ("open_stream", {"name": "s", **STREAM}, "cost", NOT_A_COST),
    ("open_stream", {"name": "s", **STREAM}, "table", NOT_TEXT),
    ("open_stream", {"name": "s", **STREAM}, "at_most", [*NOT_AN_AMOUNT, "3/2", 10**13]),
    ("open_stream", {"name": "s", **STREAM}, "binding", NOT_A_MAPPING),
    ("open_stream", {"name": "s", **STREAM}, "secret", ["x", 5, None, object()]),
    ("open_stream", {"name": "s", **STREAM}, "analyst", [5, object(), "", "\ud800"]),
    ("open_stream", {"name": "s", **STREAM}, "identity", NOT_AN_IDENTITY),
    ("open_stream", {"name": "s", **STREAM}, "beside", NOT_BESIDE),
    ("open_stream", STREAM, "name", [value for value in NOT_TEXT if value is not None]),
    ("resume_stream", {"name": "flu", "after_loss": bytes}, "binding", NOT_A_MAPPING),
    ("resume_stream", {"name": "flu", "binding": BINDING}, "after_loss", [5, None, b"x"]),
    (
        "resume_stream",
        {"name": "flu", "binding": BINDING, "after_loss": bytes},
        "identity",
        NOT_AN_IDENTITY,
    ),
    (
        "resume_stream",
        {"name": "flu", "binding": BINDING, "after_loss": bytes},
        "beside",
        NOT_BESIDE,
    ),
    ("resume_stream", {"binding": BINDING, "after_loss": bytes}, "name", NOT_TEXT),
    ("share", {"epsilon": 1}, "analyst", NOT_TEXT),
    ("share", {"analyst": "ana"}, "epsilon", [*NOT_A_NUMBER, -1]),
    ("share", {"analyst": "ana", "epsilon": 0}, "delta", [*NOT_A_NUMBER, -1, ""]),
    ("share", {"analyst": "ana"}, "rho", NOT_A_NUMBER),
    ("cover", {}, "table", NOT_TEXT),
    ("cover", {"table": "staff"}, "people", [each for each in NOT_TEXT if each is not None]),
    ("tie", {"identity": TableIdentity("pid")}, "table", [*NOT_TEXT, "payroll"]),
    ("tie", {"table": "visits"}, "identity", [*NOT_AN_IDENTITY, None]),
    ("stream", {}, "name", NOT_TEXT),
    ("verify", {}, "head", NOT_A_HEAD),
    ("export", {}, "file", [*NOT_A_PATH, io.BytesIO(), CLOSED]),
    ("create", PROMISE, "path", NOT_A_PATH),
    ("open", {}, "path", NOT_A_PATH),
    ("open", {"path": "x"}, "head", NOT_A_HEAD),
    ("open", {"path": "x"}, "wait", [*NOT_AN_AMOUNT, 10**7]),
    ("create", {"path": "new", **PROMISE}, "wait", [*NOT_AN_AMOUNT, 10**7]),
    ("create", {"path": "new", **PROMISE}, "epsilon", NOT_AN_AMOUNT),
    ("create", {"path": "new", **PROMISE}, "delta", [*NOT_A_NUMBER, -1, 1]),
    ("in_memory", PROMISE, "epsilon", NOT_AN_AMOUNT),
    ("in_memory", PROMISE, "delta", [*NOT_A_NUMBER, -1, 1]),
]
COVERS = [5, None, "visits", b"visits", [], [5], ["a", "a"], [None], ["\ud800"], [""], object()]
for maker in ("create", "in_memory"):
    path = {"path": "new"} if maker == "create" else {}
    WRONG += [
        (maker, path | PROMISE, "covers", COVERS),
        (maker, path | PROMISE, "accountant", [5, None, [], "nobody", b"sum", object()]),
    ]

# Names under which the command line knows a parameter.
ALSO = {"beside": "identity", "name": "stream"}


@pytest.mark.parametrize(
    ("call", "options", "name", "values"),
    WRONG,
    ids=[f"{call}-{name}" for call, _, name, _ in WRONG],
)
def test_it_is_named(make, call, options, name, values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = make()
    open_stream(budget).suspend()
    before = budget.head
    for value in values:
        with pytest.raises(BadParameter) as caught:
            getattr(budget, call)(**{**options, name: value})
        said = {name, ALSO.get(name, name)}
        if name in ("at_most", "cost"):
            said |= {"parts", "epsilon"}
        assert caught.value.parameter in said, (value, str(caught.value))
        assert len(str(caught.value)) < 500
    assert budget.head == before  # nothing was written
    assert not (tmp_path / "new").exists()


def test_every_parameter_is_tried():
    calls = {name for name, found in vars(Budget).items() if not name.startswith("_")}
    calls = {name for name in calls if callable(getattr(Budget, name))} - {
        *("close", "streams", "hypothetical")
    }
    for call in calls:
        names = set(inspect.signature(getattr(Budget, call)).parameters) - {"self"}
        assert names == {name for tried, _, name, _ in WRONG if tried == call}, call


@pytest.mark.parametrize("ledger", [None, 5, "clinic.budget", object()])
def test_a_budget_is_made_of_a_ledger(ledger):
    with pytest.raises(BadParameter, match=r"ledger.*Budget.create"):
        Budget(ledger)


@pytest.mark.parametrize(
    "identity", [("",), (None,), (5,), ("pid", ""), ("pid", 5), ("pid", None, b"x")]
)
def test_an_identity_is_text(identity):
    with pytest.raises(BadParameter):
        TableIdentity(*identity)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("key", NOT_TEXT),
        ("caller", [value for value in NOT_TEXT if value is not None]),
        ("call", NOT_TEXT),
        ("request", [object(), {"a": {1}}, float("nan"), b"x"]),
    ],
)
def test_a_retry_key_is_text_and_a_request(name, values):
    good: Any = {"key": "monday", "caller": None, "call": "visits.count", "request": {"a": 1}}
    for value in values:
        with pytest.raises(BadParameter) as caught:
            RetryKey(**good | {name: value})
        assert caught.value.parameter in (name, f"retry_{name}")


@pytest.mark.parametrize("number", [0, -1, "1", 1.0, None, True, 1, 99, 2**70])
def test_no_answer_is_kept_under_this_number(budget, number):
    with pytest.raises(BadParameter, match=r"number.*budget\.answers lists them"):
        budget.answers[number]


@pytest.mark.parametrize("answer", [{"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, object()])
def test_an_answer_is_what_json_can_hold(budget, answer):
    lease = open_stream(budget)
    with pytest.raises(BadParameter, match="answer"), lease.turn():
        lease.record_top(answer, question_key="one")
    assert not lease.alive


@pytest.mark.parametrize("path", ["x" * 5000, "x/" * 2500 + "x"])
def test_an_endless_path_is_an_error_of_ours(budget, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (
        lambda: Budget.create(path, epsilon=1, covers=["a"]),
        lambda: Budget.open(path),
        lambda: budget.export(path),
    ):
        with pytest.raises(TacitError, match="File name too long"):
            call()
