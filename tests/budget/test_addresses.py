"""Where a budget is kept: a path, or a URL whose scheme names the ledger."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.toys.json_ledger import JsonLedger

from tacit.budget import Budget
from tacit.budget.addresses import GROUP, ledger_at
from tacit.budget.memory import MemoryLedger
from tacit.budget.sqlite import SqliteLedger
from tacit.errors import BadParameter, LedgerExists, LedgerMissing
from tacit.privacy import Cost

PROMISE: dict[str, Any] = {"epsilon": 1, "covers": ["visits"]}
TOY = "tests.toys.json_ledger:JsonLedger"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a package known that provides ledgers, as pip would."""

    def made(name: str, *lines: str) -> None:
        site = tmp_path / "site"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
        monkeypatch.syspath_prepend(str(site))

    return made


@pytest.mark.parametrize(
    "address",
    ["sqlite:///clinic.budget", "SQLite:///./clinic.budget", "sqlite:////{}/clinic.budget"],
)
def test_a_url_and_a_path_name_the_same_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = address.format(str(tmp_path).lstrip("/"))
    with Budget.create(address, **PROMISE) as budget:
        budget.charge(Cost.pure("1/4"), table="visits", what="a count")
    with Budget.open("clinic.budget") as budget:
        assert budget.spent.epsilon * 4 == 1
    with Budget.open(tmp_path / "clinic.budget") as by_path, Budget.open(address) as by_url:
        assert repr(by_path) == repr(by_url)
        assert str(tmp_path) in repr(by_url)
    with pytest.raises(LedgerExists):
        Budget.create(Path("clinic.budget"), **PROMISE)
    with pytest.raises(LedgerExists):
        Budget.create(address, **PROMISE)


def test_nothing_in_a_url_is_decoded(tmp_path):
    Budget.create(f"sqlite:///{tmp_path}/a%20b?c#d", **PROMISE).close()
    assert (tmp_path / "a%20b?c#d").is_file()


@pytest.mark.parametrize(
    "path",
    [
        r"C:\budgets\clinic.budget",
        "C:/clinic.budget",
        "c://clinic.budget",
        "clinic:2026.budget",
        "12:30 o'clock",
        "1a://b",
        "a b://c",
        "sqlite:clinic.budget",
        "sqlite:/clinic.budget",
        "memory:",
        ":memory:",
        "://",
        "./http://clinic",
        Path("http://clinic"),
        Path("sqlite:///clinic.budget"),
    ],
)
def test_an_odd_path_is_a_path(path):
    assert ledger_at(path) == (SqliteLedger, os.path.realpath(path))


def test_a_budget_in_an_odd_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Budget.create(r"C:\clinic.budget", **PROMISE).close()
    Budget.open(r"C:\clinic.budget").close()
    assert (tmp_path / r"C:\clinic.budget").is_file()


@pytest.mark.parametrize(
    "address", ["sqlite://", "sqlite:///", "sqlite://host/clinic.budget", "sqlite:///a\0b"]
)
@pytest.mark.parametrize("act", [Budget.open, lambda address: Budget.create(address, **PROMISE)])
def test_a_url_without_a_path_is_refused(act, address):
    with pytest.raises(BadParameter, match=r"^path = "):
        act(address)


@pytest.mark.parametrize("act", [Budget.open, lambda address: Budget.create(address, **PROMISE)])
def test_an_unknown_scheme_is_refused_with_what_is_known(act, install):
    install("toys", f"json = {TOY}")
    with pytest.raises(BadParameter) as refused:
        act("carrier+pigeon://ana:hunter2@loft/clinic")
    message = str(refused.value)
    assert "carrier+pigeon://..." in message
    assert "known are json://, memory://, postgres://, postgresql://, sqlite://" in message
    assert "./" in message
    assert "hunter2" not in message  # nor anything else of the URL
    assert "loft" not in message


def test_a_package_adds_a_ledger(install, tmp_path):
    install("toys", f"json = {TOY}")
    address = f"json:///{tmp_path}/clinic.json"
    with Budget.create(address, **PROMISE) as budget:
        assert isinstance(budget._ledger, JsonLedger)
        budget.charge(Cost.pure("1/4"), table="visits", what="a count")
        noted = budget.head
    with Budget.open(address, head=noted) as budget:
        assert budget.spent.epsilon * 4 == 1
        assert budget.verify(noted).entries == 2
    with pytest.raises(LedgerExists):
        Budget.create(address, **PROMISE)
    with pytest.raises(LedgerMissing):
        Budget.open(f"{address}.other")


def test_no_package_replaces_ours(install, tmp_path):
    install("greedy", f"sqlite = {TOY}", f"memory = {TOY}")
    assert ledger_at("sqlite:///clinic.budget")[0] is SqliteLedger
    assert ledger_at("memory://")[0] is MemoryLedger


def test_two_packages_for_one_scheme_are_refused(install):
    install("one", f"json = {TOY}")
    install("two", "json = somewhere.otherwise:JsonLedger")
    with pytest.raises(BadParameter, match=r"several packages .*somewhere\.otherwise"):
        Budget.open("json:///clinic.json")


def test_one_package_found_twice_is_one(install):
    install("one", f"json = {TOY}")
    install("again", f"json = {TOY}")
    assert ledger_at("json:///clinic.json")[0] is JsonLedger


@pytest.mark.parametrize(
    "provided",
    ["no.such.module:Ledger", "tests.toys.json_ledger:Nothing", "os:getcwd", "fails_at_import:It"],
)
def test_what_cannot_be_loaded_as_a_ledger_is_refused(provided, install, tmp_path):
    install("broken", f"json = {provided}")
    (tmp_path / "site" / "fails_at_import.py").write_text("raise RuntimeError('at import')")
    with pytest.raises(BadParameter, match="cannot be loaded as a ledger"):
        Budget.open("json:///clinic.json")


def test_a_budget_in_memory_goes_the_same_way():
    with Budget.create("memory://", **PROMISE) as budget:
        assert isinstance(budget._ledger, MemoryLedger)
        assert repr(budget) == repr(Budget.in_memory(**PROMISE))
    with pytest.raises(LedgerMissing, match=r"Budget\.in_memory"):
        Budget.open("memory://")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgresql_needs_its_driver(scheme, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in ("postgres", "postgres_sessions", "postgres_tables"):
        monkeypatch.delitem(sys.modules, f"tacit.budget.{module}", raising=False)
    with pytest.raises(BadParameter, match=r"pip install 'tacit\[postgres\]'$") as refused:
        Budget.open(f"{scheme}://ana:hunter2@loft/clinic#clinic")
    assert "hunter2" not in str(refused.value)
