"""Statements that go to the server together: in order, all or nothing, and in few journeys."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.budget.common import ask, open_stream
from tests.postgres import Server

from tacit.budget import Budget, TableIdentity
from tacit.budget.postgres import PostgresLedger
from tacit.budget.postgres_journeys import Journeys, Statement, rows_of
from tacit.errors import LedgerDamaged, LedgerUnwritable
from tacit.postgres import PostgresAddress
from tacit.privacy import Cost

GRAIN = Cost.pure("1/1000000")


@pytest.fixture
def journeys(postgres_database) -> Iterator[Journeys]:
    connection = PostgresAddress(postgres_database, "path").connect(wait=60)
    connection.execute("CREATE TABLE kept (number bigint PRIMARY KEY, text bytea)")
    yield Journeys(connection)
    connection.close()


def put(number: int, text: str | bytes | None = "x") -> Statement:
    return "INSERT INTO kept VALUES (%s, %s)", (number, text)


def numbers(journeys: Journeys) -> list[int]:
    return [number for (number,) in journeys.rows("SELECT number FROM kept ORDER BY number")]


BEGIN, COMMIT = ("BEGIN", ()), ("COMMIT", ())


def test_results_come_back_in_order_with_their_types(journeys):
    query = "SELECT %s::bigint, %s::bytea, %s::text, NULL::bytea, true, 7"
    results = journeys.together([(query, (-5, b"\0\xff", "ß")), put(1), ("SELECT 1", ())])
    assert rows_of(results[0]) == [(-5, b"\0\xff", "ß", None, True, 7)]
    assert results[1].command_status == b"INSERT 0 1"
    assert rows_of(results[2]) == [(1,)]


def test_after_a_failure_nothing_more_is_done_and_nothing_is_committed(journeys):
    with pytest.raises(psycopg.errors.UniqueViolation):
        journeys.together([BEGIN, put(1), put(1), put(2), COMMIT])
    assert journeys.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    journeys.connection.execute("ROLLBACK")
    assert numbers(journeys) == []
    journeys.together([BEGIN, put(1), put(2), COMMIT])
    assert numbers(journeys) == [1, 2]


def test_what_could_not_be_prepared_can_be_later(journeys):
    new = ("INSERT INTO later VALUES (%s)", (1,))
    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            journeys.together([put(1), new, put(2)])
    assert numbers(journeys) == []  # what is prepared comes first
    journeys.connection.execute("CREATE TABLE later (number bigint)")
    journeys.together([put(1), new, put(2), new])
    assert numbers(journeys) == [1, 2]
    assert journeys.rows("SELECT count(*) FROM later") == [(2,)]


def test_values_larger_than_any_buffer_go_there_and_come_back(journeys):
    large = bytes(range(256)) * 40_000
    journeys.together([put(number, large) for number in range(4)])
    assert journeys.rows("SELECT text FROM kept") == [(large,)] * 4


def test_a_connection_that_ended_is_found_out(journeys, postgres_server: Server):
    ((process,),) = journeys.rows("SELECT pg_backend_pid()")
    postgres_server.run(f"SELECT pg_terminate_backend({process}, 120000)")
    with pytest.raises(psycopg.OperationalError):
        journeys.together([BEGIN, put(1), COMMIT])
    assert journeys.connection.closed


def test_one_that_ends_its_own_connection_in_the_middle_is_found_out(journeys):
    with pytest.raises(psycopg.OperationalError):
        journeys.together([put(1), ("SELECT pg_terminate_backend(pg_backend_pid())", ()), put(2)])
    assert journeys.connection.closed


def test_a_column_of_another_type_is_damage(journeys):
    with pytest.raises(LedgerDamaged, match="another type"):
        journeys.rows("SELECT 1.5")


# What that is for ---------------------------------------------------------------------------------


@pytest.fixture
def budget(postgres_budget) -> Iterator[Budget]:
    with Budget.create(postgres_budget, epsilon=1, covers=["visits"]) as made:
        yield made


@pytest.fixture
def made(budget, monkeypatch) -> list[list[str]]:
    """The statements of each journey from now on, by their first words."""
    counted: list[list[str]] = []
    together = Journeys.together

    def count(self, statements):
        counted.append([sql.split()[0] for sql, _ in statements])
        return together(self, statements)

    monkeypatch.setattr(Journeys, "together", count)
    return counted


def test_a_charge_makes_two_journeys_and_locks_first(budget, made):
    who = TableIdentity("pid", "integer")
    for _ in range(2):
        made.clear()
        budget.charge(GRAIN, table="visits", what="a count", identity=who)
    lock, write = made
    assert lock == ["BEGIN", "SELECT", "SELECT", "SELECT", "SELECT"]
    assert write == ["INSERT", "WITH", "COMMIT"]


def test_a_top_makes_three(budget, made):
    lease = open_stream(budget, at_most=3)
    ask(lease, "one")
    made.clear()
    ask(lease, "two")
    assert [journey[-1] for journey in made] == ["SELECT", "SELECT", "COMMIT"]
    lease.suspend()
    budget.verify()


def test_a_write_sees_what_it_wrote(budget):
    with budget._ledger.writing("try") as writer:
        writer.add_table("labs")
        assert writer.tables() == {"visits": None, "labs": None}
        assert writer.covers("labs")
        writer.put_tie("labs", TableIdentity("pid"))
        assert writer.tie("labs") == TableIdentity("pid")
        assert writer.ties() == {"labs": TableIdentity("pid")}
        writer.append("cover", {"table": "labs"})
    assert budget.covers == ("visits", "labs")


def test_a_write_that_the_server_refuses_changes_nothing(budget, postgres_budget):
    """It is sent with COMMIT, which the server then does not run."""
    ledger = budget._ledger
    assert isinstance(ledger, PostgresLedger)
    where, _, schema = postgres_budget.partition("#")
    with psycopg.connect(where, autocommit=True) as owner:
        for table in ("shares", "entries"):
            never = f"ALTER TABLE {schema}.{table} ADD CONSTRAINT c CHECK (false) NOT VALID"
            owner.execute(never.encode())
        for dropped in ("shares", "entries"):
            with pytest.raises((LedgerDamaged, LedgerUnwritable)):
                budget.charge(GRAIN, table="visits", what="a count")
            assert budget.spent.epsilon == 0
            assert len(budget.history) == 1
            owner.execute(f"ALTER TABLE {schema}.{dropped} DROP CONSTRAINT c".encode())
    budget.charge(GRAIN, table="visits", what="a count")
    assert len(budget.history) == 2
    budget.verify()
