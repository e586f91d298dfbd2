"""What a local table, stream or watched model can do, the one on a server can, too."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tacit.analyst import plan
from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.analyst.watched import WatchedModel
from tacit.remote import connection
from tacit.remote.stream import RemoteStream
from tacit.remote.table import RemoteTable
from tacit.remote.watched import RemoteWatchedModel
from tacit.server import messages

PAIRS = [(Table, RemoteTable), (Stream, RemoteStream), (WatchedModel, RemoteWatchedModel)]

ONLY_LOCAL = {
    Table: {
        *("engine", "coins", "identity", "identities_beside"),  # of whoever holds the data
        "release",  # a mechanism of one's own draws from the data
        "refresh",  # connection.refresh, for a steward
        *("close", "closed"),  # a server's table stays open
    },
    Stream: {"ask_blocks"},  # for those who serve
    WatchedModel: {"ask_blocks"},
}
ONLY_REMOTE = {RemoteTable: {"dummy", "reader"}}  # tacit.dummy makes a local one
NOT_SENT = {
    "budget",  # the server's
    "analyst",  # the token's
    "progress",  # nothing is told before all is drawn
}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: Any) -> dict[str, Any]:
    """By name: of which sort it is, and its default."""
    found = inspect.signature(function).parameters
    return {name: (each.kind, each.default) for name, each in found.items()}


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_nothing_is_missing(here, there):
    assert public(here) - public(there) == ONLY_LOCAL.get(here, set())
    assert public(there) - public(here) == ONLY_REMOTE.get(there, set())


SHARED = [
    (here, there, name)
    for here, there in PAIRS
    for name in sorted(public(here) & public(there))
    if callable(getattr(here, name))
]


@pytest.mark.parametrize(
    ("here", "there", "name"), SHARED, ids=[f"{there.__name__}.{name}" for _, there, name in SHARED]
)
def test_a_method_takes_the_same(here, there, name):
    local, remote = parameters(getattr(here, name)), parameters(getattr(there, name))
    for unsent in NOT_SENT & local.keys():
        del local[unsent]
    if name == "ask_all":  # whatever is asked over HTTP has a key
        assert remote.pop("retry_key")[1] is None
    assert remote == local


PLANS = {
    "above_threshold": connection.PlanNumbers,
    "sparse": connection.SparsePlanNumbers,
    "numeric_sparse": connection.NumericSparsePlanNumbers,
}


def test_a_plan_takes_the_same():
    assert public(connection.RemotePlans) == PLANS.keys()
    assert set(plan.__all__) - {"Plan"} == PLANS.keys() | {"priced"}  # which asks no server
    for name, numbers in PLANS.items():
        assert set(numbers.__annotations__) == parameters(getattr(plan, name)).keys()
        assert set(messages.PlanOf.__struct_fields__) >= set(numbers.__annotations__)
