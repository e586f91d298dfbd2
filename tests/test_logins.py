"""No message, repr or traceback names a password that was part of an address."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.cli.exits import run
from tacit.errors import BadParameter, TacitError, _without_login
from tacit.tables.language.parsing import Span, refused

ADDRESSES = (
    "postgresql+psycopg://reader:hunter2@localhost/clinic",
    "postgres://reader:hunter2@127.0.0.1:1/clinic?sslmode=nope",
    "postgresql://reader:hunter2@[localhost/clinic",
    "jdbc:postgresql://localhost/clinic?user=reader&password=hunter2",
    "jdbc:sqlserver://localhost;user=reader;password=hunter2",
    "mysql://reader:hunter2@host/clinic",
    "mysql://reader:a/b hunter2@host/clinic",
    "mysql:/reader:hunter2@host/clinic",
    "snowflake://reader:hunter2@account/clinic",
    "https://reader:hunter2@host/visits.parquet",
    "host=localhost user=reader password=hunter2",
    "host=localhost user=reader password = 'hunter2'",
    "host=localhost user=reader sslpassword=hunter2",
    "reader:hunter2@host/clinic",
    "jdbc:oracle:thin:reader/hunter2@host:1521/clinic",
    "md:clinic?motherduck_token=hunter2",
)
BUDGET = tacit.Budget.in_memory(epsilon=1, covers=["visits"])
CALLS: dict[str, Callable[[str], object]] = {
    "open": lambda given: tacit.open(given, person="pid"),
    "open a path": lambda given: tacit.open(Path(given), person="pid"),
    "schema": lambda given: tacit.open("visits.csv", person="pid", schema=given),
    "schema's file": lambda given: tacit.open("visits.csv", person="pid", schema=Path(given)),
    "shards": lambda given: tacit.open("visits.csv", person="pid", shards=given),
    "spill_folder": lambda given: tacit.open("visits.csv", person="pid", spill_folder=given),
    "Budget.open": tacit.Budget.open,
    "Budget.create": lambda given: tacit.Budget.create(f"{given}/x", epsilon=1, covers=["visits"]),
    "export": lambda given: BUDGET.export(f"{given}/x"),
    "connect": lambda given: tacit.connect(given, token="token"),
    "load_query": tacit.load_query,
}


@pytest.fixture(autouse=True)
def beside_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("pid,age\n1,2\n")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("call", CALLS)
def test_no_error_names_a_password(call: str, address: str) -> None:
    with pytest.raises(TacitError) as refused:
        CALLS[call](address)
    error: BaseException | None = refused.value
    while error is not None:
        assert "hunter2" not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("address", ADDRESSES[:6])
@pytest.mark.parametrize(
    "command",
    ["schema", "budget show", "serve --config", "check age=1", "", "budget", "schema visits.csv"],
)
def test_no_command_names_a_password(
    command: str, address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), address]) in (2, 4)
    said = capfd.readouterr()
    assert "hunter2" not in said.out + said.err


def test_an_address_is_never_a_path(tmp_path: Path) -> None:
    place = tmp_path / "mysql:" / "host"
    place.mkdir(parents=True)
    (place / "visits.csv").write_text("pid,age\n1,2\n")
    with pytest.raises(BadParameter, match=r"mysql://host/visits.csv is not allowed: no such"):
        tacit.open("mysql://host/visits.csv", person="pid")
    with pytest.raises(BadParameter, match="no ledger is known by this scheme"):
        tacit.Budget.create("jdbc:sqlite:///x.budget", epsilon=1, covers=["visits"])


def test_a_login_in_a_question_does_not_move_what_is_underlined() -> None:
    text = "url = 'https://reader:hunter2@shop.example/item?id=3' and nope = 1"
    place = Span(text, text.index("nope"), text.index("nope") + 4)
    *_, shown, marks = str(refused("no such column", place)).split("\n")
    assert shown == "  url = 'https://shop.example/item' and nope = 1"
    assert marks == f"{' ' * shown.index('nope')}^^^^"


def test_what_has_no_login_stays_as_it_is() -> None:
    for said in (
        "https://clinic.example:8443 cannot be reached",
        "C:/visits.csv",
        "write to ana@clinic.example",
        "12:30 at postgresql://localhost:5432/clinic#2024",
        "WHERE 'a' = ':' AND b = 'x@y'",
    ):
        assert _without_login(said) == said
    assert _without_login("at mysql://ana@host/x: no") == "at mysql://host/x: no"
