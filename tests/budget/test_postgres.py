"""What only a server can do: end connections, forget, stand behind something else, die."""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from tests.budget.common import ask, open_stream, resume, resume_when_free
from tests.postgres import OwnServer, own_server

import tacit
from tacit.budget import Budget, Lease, RetryKey
from tacit.budget.answers import Telling
from tacit.budget.postgres import PostgresLedger
from tacit.errors import (
    BadParameter,
    BudgetError,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
    StreamEnded,
    StreamHeld,
)
from tacit.privacy import Cost

PATIENCE = 120  # seconds; a safety net


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server() as own:
        yield own


@pytest.fixture
def database(server) -> Iterator[str]:
    with server.database() as name:
        yield name


@pytest.fixture
def url(server, database) -> str:
    Budget.create(f"{server.url(database)}#clinic", epsilon=1, covers=["visits"]).close()
    return f"{server.url(database)}#clinic"


def end_connections(server: OwnServer, database: str) -> None:
    """What an administrator, a failover or a restart does; the clients live."""
    ours = f"FROM pg_stat_activity WHERE datname = '{database}' AND pid != pg_backend_pid()"
    server.run(f"SELECT pg_terminate_backend(pid, {PATIENCE * 1000}) {ours}")
    assert server.run(f"SELECT count(*) {ours}") == [(0,)]


def charge(budget: Budget, what: str = "a grain", key: str | None = None) -> int:
    retry = None if key is None else RetryKey(key, None, "visits.count", {"what": what})
    paid = budget.charge(Cost.pure("1/1000000"), table="visits", what=what, retry=retry)
    return paid.number


# The server ends a holder's connection ------------------------------------------------------------


def test_one_whose_connection_was_ended_goes_on_if_nobody_took_over(server, database, url):
    with Budget.open(url) as budget:
        lease = open_stream(budget, at_most=3)
        ask(lease, "one")
        end_connections(server, database)
        ask(lease, "below", above=False)
        ask(lease, "two")
        end_connections(server, database)
        lease.suspend()
        state = budget.stream("flu")
        assert (state.tops, state.lost, state.status) == (2, 0, "suspended")
        budget.verify()


def test_a_successor_forfeits_what_was_reserved_and_the_other_ends_at_its_next_top(
    server, database, url
):
    first, second = Budget.open(url), Budget.open(url)
    lease = open_stream(first, at_most=3)
    ask(lease, "one")
    with pytest.raises(StreamHeld):
        resume(second)
    end_connections(server, database)
    successor = resume_when_free(second)
    state = second.stream("flu")
    assert (state.tops, state.lost, state.generation) == (1, 1, 2)
    assert second.history[-1].body["lost"] == 1  # in the entry that raised the generation
    for _ in range(5):
        ask(lease, "below", above=False)  # further ⊥ under the same ρ
        ask(successor, "below", above=False)
    with pytest.raises(StreamHeld, match="taken over"):
        ask(lease, "two")
    assert not lease.alive
    with pytest.raises(StreamEnded):
        ask(lease, "below", above=False)
    ask(successor, "mine")
    assert successor.halted  # 1 recorded, 1 forfeited and seen, 1 recorded: 3 of 3
    assert second.stream("flu").tops_used == 3
    assert "two" not in successor.answers
    second.verify()
    first.close()
    second.close()


@pytest.mark.parametrize("act", ["suspend", "close", "told"])
def test_one_who_was_succeeded_changes_nothing_any_more(server, database, url, act):
    first, second = Budget.open(url), Budget.open(url)
    lease = open_stream(first, at_most=3)
    end_connections(server, database)
    successor = resume_when_free(second)
    head = second.head

    def tell() -> None:
        telling = Telling(RetryKey("k", None, "ask", {}), {"above": False}, room=600)
        with lease.turn():
            lease.record_told({"above": False}, question_key="q", telling=telling)

    acts = {"suspend": lease.suspend, "close": lease.close, "told": tell}
    with pytest.raises(StreamHeld):  # under a key ⊥ is written like ⊤, and refused like it
        acts[act]()
    assert not lease.alive
    assert second.head == head
    ask(successor, "mine")
    assert second.stream("flu").tops == 1
    second.close()
    with suppress(StreamHeld):
        first.close()


def test_however_often_it_is_taken_over_no_more_is_seen_than_was_paid_for(server, database, url):
    """Each who was succeeded shows one ⊤ at most, which was forfeited; all of them together."""
    budgets = [Budget.open(url) for _ in range(4)]
    leases: list[Lease] = [open_stream(budgets[0], at_most=5)]
    for budget in budgets[1:]:
        end_connections(server, database)
        leases.append(resume_when_free(budget))
    seen = 0
    for lease in leases:
        for number in range(10):
            ask(lease, "below", above=False)
            seen += 1  # drawn: whoever waits for the answer sees ⊤, by the record or its failure
            try:
                ask(lease, f"q{seen}.{number}")
            except StreamHeld:
                break
            if lease.halted:
                break
    state = budgets[0].stream("flu")
    assert seen == state.tops_used == 5
    assert (state.tops, state.lost) == (2, 3)
    budgets[0].verify()
    for budget in budgets:
        with suppress(StreamHeld):
            budget.close()


def test_a_stream_of_a_table_is_taken_over(server, database, url, tmp_path):
    """With real coins: 1000 people, and thresholds far from that."""
    (tmp_path / "visits.csv").write_text("pid\n" + "\n".join(map(str, range(1000))))
    schema = "[columns.pid]\ntype = 'integer'"
    visits = tacit.open(tmp_path / "visits.csv", person="pid", schema=schema)
    first, second = Budget.open(url), Budget.open(url)
    stream = visits.numeric_sparse(
        threshold=500, at_most=4, epsilon="1/2", questions=100, budget=first, name="flu"
    )
    assert stream.ask("pid >= 0").value is not None
    end_connections(server, database)
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(StreamHeld):
            successor = visits.resume("flu", budget=second)
            break
        assert time.monotonic() < deadline
    assert (stream.tops_left, successor.tops_left) == (3, 2)
    assert not stream.ask("pid >= 0", threshold=100_000)
    assert not successor.ask("pid >= 0", threshold=100_000)
    with pytest.raises(StreamHeld):
        stream.ask("pid >= 1")
    with pytest.raises(StreamEnded):
        stream.ask("pid >= 2")
    assert successor.ask("pid >= 3").value is not None
    assert [entry.kind for entry in second.history].count("top") == 2
    assert successor.ask("pid >= 4")
    assert successor.halted
    second.verify()
    visits.close()
    first.close()
    second.close()


def test_a_holder_takes_its_locks_again_with_its_next_connection(server, database, url):
    with Budget.open(url) as budget, Budget.open(url) as other:
        one = open_stream(budget, "one", at_most=3)
        end_connections(server, database)
        two = open_stream(budget, "two", at_most=3)
        with pytest.raises(StreamHeld):
            resume(other, "one")
        assert one.alive
        assert two.alive


# The server dies ----------------------------------------------------------------------------------


class Customer(threading.Thread):
    """Charges and asks until told to stop, and remembers what it was told."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__()
        self.url = url
        self.number = number
        self.charged: list[str] = []
        self.asked: dict[str, list[str]] = {}
        self.failures = 0
        self.stop = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                try:
                    with Budget.open(self.url, wait=PATIENCE) as budget:
                        self._spend(budget)
                except (LedgerUnwritable, StreamHeld):
                    self.failures += 1
                    time.sleep(0.01)
        except BaseException as error:
            self.error = error

    def _spend(self, budget: Budget) -> None:
        lease = None
        while not self.stop.is_set():
            key = f"{self.number}.{len(self.charged)}"
            charge(budget, "a grain", key)  # again under the same key, if it failed
            self.charged.append(key)
            if lease is None or lease.halted:
                cost = Cost.pure("1/1000000")
                lease = open_stream(budget, None, at_most=4, cost=cost)
            with lease.turn():
                drawn = self.asked.setdefault(lease.name, [])
                drawn.append("drawn")
                lease.record_top({"key": key}, question_key=key)
                drawn.append(key)


def _killed_in_the_middle(server: OwnServer, url: str, rounds: int) -> int:
    customers = [Customer(url, number) for number in range(2)]
    dice, failed = random.Random(8), 0
    for customer in customers:
        customer.start()
    for number in range(rounds):
        before = sum(len(customer.charged) for customer in customers)
        deadline = time.monotonic() + PATIENCE
        while sum(len(customer.charged) for customer in customers) < before + 2:
            assert time.monotonic() < deadline, "nothing is charged any more"
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.02))
        server.kill() if number % 2 else server.stop("immediate")
        server.start()
    for customer in customers:
        customer.stop.set()
    for customer in customers:
        customer.join(PATIENCE)
        assert not customer.is_alive()
        assert customer.error is None
        failed += customer.failures
    with Budget.open(url) as budget:
        budget.verify()
        _check_customers(budget, customers)
    return failed


def _check_customers(budget: Budget, customers: list[Customer]) -> None:
    entries = [entry.body for entry in budget.history]
    keys = [body["key"] for body in entries if body["kind"] == "charge"]
    assert len(keys) == len(set(keys))  # paid once, however often it was asked for
    paid = {answer.entry.body["key"] for answer in budget.answers}
    for customer in customers:
        for key in customer.charged:
            retry = RetryKey(key, None, "visits.count", {"what": "a grain"})
            assert retry.digest in paid, "told of a charge that is not on record"
        for name, told in customer.asked.items():
            tops = {body["question"] for body in entries if body["kind"] == "top"}
            assert set(told) - {"drawn"} <= tops, "released without a durable record"
            state = budget.stream(name)
            assert told.count("drawn") <= state.tops_used + state.reserved <= 4


def test_killed_in_the_middle_of_charges_it_forgets_nothing_that_was_told(server, url):
    assert _killed_in_the_middle(server, url, rounds=4) > 0


@pytest.mark.long
def test_killed_in_the_middle_of_charges_two_hundred_times(server, url):
    failed = _killed_in_the_middle(server, url, rounds=200)
    print(f"{failed} failures were seen")
    assert failed > 50


def test_a_commit_whose_reply_is_lost_is_told_to_be_unknown(server, database, url, monkeypatch):
    """The server commits and the connection ends: it may be on record, and here it is."""
    with Budget.open(url) as budget:
        ledger = budget._ledger
        assert isinstance(ledger, PostgresLedger)
        journeys = ledger.journeys()
        together = journeys.together

        def lose_the_reply(statements):
            done = together(statements)
            if statements[-1][0] == "COMMIT":
                end_connections(server, database)
                together([("SELECT 1", ())])
            return done

        monkeypatch.setattr(journeys, "together", lose_the_reply)
        with pytest.raises(LedgerUnwritable, match="may be on record or not"):
            charge(budget, key="monday")
        number = charge(budget, key="monday")
        assert number == 2  # it was, and is paid once
        assert charge(budget, key="tuesday") == 3
        budget.verify()


def test_after_a_restart_it_goes_on(server, url):
    with Budget.open(url) as budget:
        charge(budget)
        server.stop("fast")
        with pytest.raises(LedgerUnwritable, match="cannot be reached"):
            charge(budget)
        server.start()
        assert charge(budget) == 3
        budget.verify()


def test_a_server_that_forgets_is_noticed(server, database, url):
    """As after a failover to a replica that lagged behind, or from a backup."""
    with Budget.open(url) as budget:
        charge(budget)
        charge(budget)
        head = budget.head
        before = server.run("SELECT hash FROM clinic.entries WHERE number = 2", database=database)
        server.run(
            "ALTER TABLE clinic.entries DISABLE TRIGGER ALL",
            "DELETE FROM clinic.entries WHERE number = 3",
            f"UPDATE clinic.head SET number = 2, hash = '\\x{before[0][0].hex()}'",
            "ALTER TABLE clinic.entries ENABLE TRIGGER ALL",
            database=database,
        )
        with pytest.raises(LedgerDamaged, match="not what it was"):
            charge(budget)
    with pytest.raises(LedgerDamaged, match="that was noted"):
        Budget.open(url, head=head)


# Where a budget cannot be kept --------------------------------------------------------------------


@contextmanager
def setting(server: OwnServer, name: str, value: str) -> Iterator[None]:
    def wait_for(expected: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while server.run(f"SHOW {name}") != [(expected,)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    ((before,),) = server.run(f"SHOW {name}")
    server.run(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")
    wait_for(value)
    try:
        yield
    finally:
        server.run(f"ALTER SYSTEM RESET {name}", "SELECT pg_reload_conf()")
        wait_for(before)


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_server_that_may_forget_is_refused(server, url, name):
    with setting(server, name, "off"), pytest.raises(LedgerUnwritable, match=f"{name} is off"):
        Budget.open(url)
    Budget.open(url).close()


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_one_that_begins_to_forget_is_refused_at_the_next_write(server, url, name):
    with Budget.open(url) as budget:
        charge(budget)
        with setting(server, name, "off"):
            deadline = time.monotonic() + PATIENCE
            refused = False
            while not refused:  # each of its processes reads the new settings in its own time
                assert time.monotonic() < deadline
                try:
                    charge(budget)
                except LedgerUnwritable as error:
                    refused = f"{name} is off" in str(error)
        with Budget.open(url) as again:
            charge(again)


def test_synchronous_commit_stays_on_for_whoever_is_connected(server, url):
    with Budget.open(url) as budget:
        charge(budget)
        with setting(server, "synchronous_commit", "off"):
            charge(budget)
            ledger = budget._ledger
            assert isinstance(ledger, PostgresLedger)
            shown = ledger.connection().execute("SHOW synchronous_commit").fetchall()
    assert shown == [("on",)]


def test_a_replica_is_refused(server, url):
    server.stop("fast")
    signal = server.data / "standby.signal"
    signal.touch()
    try:
        server.start()
        with pytest.raises(LedgerUnwritable, match="replica"):
            Budget.open(url)
    finally:
        server.stop("fast")
        signal.unlink()
        server.start()
    Budget.open(url).close()


class Pooler(threading.Thread):
    """Stands between, and answers for the server with a process number of its own, as they do."""

    def __init__(self, folder: Path, server: Path) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / ".s.PGSQL.5432"))
        self.listener.listen()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self.server / ".s.PGSQL.5432"))
            threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
            received = b""
            while b"Z\x00\x00\x00\x05" not in received:
                received += server.recv(65536)
            key = re.search(rb"K\x00\x00\x00.", received, re.DOTALL)
            assert key is not None
            start = key.end()
            client.sendall(received[:start] + struct.pack("!I", 4711) + received[start + 4 :])
            self.copy(server, client)

    @staticmethod
    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def test_a_pooler_is_refused(server, database, url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    pooler = Pooler(folder, server.folder)
    pooler.start()
    through = f"postgresql://postgres@/{database}?host={folder}"
    with psycopg.connect(through) as connection:  # it works as a connection
        assert connection.info.backend_pid == 4711
    with pytest.raises(LedgerUnwritable, match="pooler"):
        Budget.open(f"{through}#clinic")
    pooler.listener.close()


def test_a_server_that_would_log_secrets_is_refused(server, database):
    name = f"writer_{database}"
    server.run(f"CREATE ROLE {name} LOGIN", f"GRANT CREATE ON DATABASE {database} TO {name}")
    mine = f"{server.url(database, user=name)}#logged"
    try:
        with setting(server, "log_statement", "all"):
            with pytest.raises(LedgerUnwritable, match="log_parameter_max_length"):
                Budget.create(mine, epsilon=1, covers=["visits"])
            server.run(f"ALTER ROLE {name} SET log_parameter_max_length = 0")
            with Budget.create(mine, epsilon=1, covers=["visits"]) as budget:
                secret = b"s3cret of the stream"
                open_stream(budget, secret=secret).close()
        log = (server.folder / "log").read_text()
        assert "INSERT INTO secrets" in log
        assert secret.hex() not in log
    finally:
        server.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}", database=database)


def test_a_superuser_stops_the_logging_for_itself(server, url):
    with setting(server, "log_statement", "all"), Budget.open(url) as budget:
        secret = b"another s3cret"
        open_stream(budget, secret=secret).close()
    assert secret.hex() not in (server.folder / "log").read_text()


# Names, roles and what is there -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Clinic", "pg_clinic", "a b", "x" * 64, 'a"b', "1st"])
def test_a_budget_has_a_name_of_small_letters(postgres_budgets, name):
    with pytest.raises(BadParameter, match=r"^path = 'postgresql://\.\.\.'.*#clinic$"):
        Budget.create(f"{postgres_budgets}#{name}", epsilon=1, covers=["visits"])


def test_budgets_of_one_database_are_apart(server, database, url):
    other = f"{server.url(database)}#labs"
    with (
        Budget.create(other, epsilon=2, covers=["labs"]) as labs,
        Budget.open(url) as clinic,
    ):
        charge(clinic)
        open_stream(clinic, at_most=3)
        assert len(labs.history) == 1
        assert labs.streams() == []
        assert labs.promise.epsilon == 2
        assert labs.covers == ("labs",)


def test_a_schema_that_was_made_for_it_is_used_and_one_that_is_not_empty_is_not(server, database):
    here = server.url(database)
    server.run("CREATE SCHEMA made", "CREATE SCHEMA full_one", database=database)
    server.run("CREATE TABLE full_one.visits (pid integer)", database=database)
    Budget.create(f"{here}#made", epsilon=1, covers=["visits"]).close()
    for name in ("made", "full_one"):
        with pytest.raises(LedgerExists):
            Budget.create(f"{here}#{name}", epsilon=1, covers=["visits"])
    with pytest.raises(LedgerMissing):
        Budget.open(f"{here}#full_one")


def test_the_smallest_role_can_spend_and_cannot_forget(server, database, url):
    """The grants of docs/how-to/budget-in-postgresql.md."""
    name = f"spender_{database}"
    server.run(
        f"CREATE ROLE {name} LOGIN",
        f"GRANT USAGE ON SCHEMA clinic TO {name}",
        f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA clinic TO {name}",
        f"GRANT UPDATE ON clinic.head, clinic.shares, clinic.streams, clinic.secrets, "
        f"clinic.answers, clinic.ties TO {name}",
        f"GRANT DELETE ON clinic.secrets TO {name}",
        database=database,
    )
    try:
        mine = server.url(database, user=name)
        with Budget.open(f"{mine}#clinic") as budget:
            charge(budget, key="monday")
            lease = open_stream(budget, at_most=1)
            ask(lease, "one")
            assert lease.halted
            budget.verify()
        with (
            psycopg.connect(mine) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("DELETE FROM clinic.entries")
    finally:
        server.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}", database=database)


def test_a_role_that_may_not_is_told_so(server, database, url):
    name = f"reader_{database}"
    server.run(
        f"CREATE ROLE {name} LOGIN",
        f"GRANT USAGE ON SCHEMA clinic TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {name}",
        database=database,
    )
    try:
        mine = f"{server.url(database, user=name)}#clinic"
        with Budget.open(mine) as budget:
            assert budget.verify().entries == 1  # it can be looked at
            with pytest.raises(LedgerUnwritable, match="this role may not"):
                charge(budget)
            assert len(budget.history) == 1
        with pytest.raises(LedgerUnwritable, match="this role may not"):
            Budget.create(f"{mine}2", epsilon=1, covers=["visits"])
    finally:
        server.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}", database=database)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE clinic.entries SET stream = 1",
        "DELETE FROM clinic.entries",
        "TRUNCATE clinic.entries",
    ],
)
def test_the_history_is_append_only(server, database, url, statement):
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        server.run(statement, database=database)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE clinic.shares SET spent = most",
        "UPDATE clinic.shares SET spent = '\\xff'",
        "UPDATE clinic.head SET number = 7",
        "UPDATE clinic.head SET hash = '\\x00'",
        "UPDATE clinic.streams SET lost = 0, tops = 0",
        "UPDATE clinic.streams SET at_most = 9",
        "UPDATE clinic.secrets SET secret = 'other'",
        "DELETE FROM clinic.secrets",
        "DELETE FROM clinic.head",
        "DELETE FROM clinic.tables",
        "UPDATE clinic.tables SET name = 'labs'",
        "UPDATE clinic.answers SET response = '{}', recorded = 2",
        "DELETE FROM clinic.answers",
        "ALTER TABLE clinic.ties ADD COLUMN more integer",
        "DROP TABLE clinic.ties",
        "DROP TRIGGER entries_stay ON clinic.entries",
        "UPDATE clinic.head SET format = 2",
    ],
)
def test_what_was_edited_is_found(server, database, url, statement):
    with Budget.open(url) as budget:
        charge(budget, key="monday")
        lease = open_stream(budget, at_most=3)
        ask(lease, "one")
        lease.suspend()
    server.run(statement, database=database)
    with pytest.raises(LedgerDamaged), Budget.open(url) as budget:
        budget.verify()


def test_names_of_any_length_and_kind_are_kept(postgres_budget, monkeypatch):
    names = ["x" * 100_000, "nul \0 in it", "⊤ 𝔘 ß", "'; DROP TABLE entries; --", " "]
    for module in ("spending", "budget"):  # as 0.2 took them
        monkeypatch.setattr(f"tacit.budget.{module}.checked_name", lambda name, _: name)
    with Budget.create(postgres_budget, epsilon=1, covers=names) as budget:
        for name in names:
            budget.share(name, epsilon="1/100")
            open_stream(budget, name, cost=Cost.pure("1/1000"), table=name, analyst=name).suspend()
        assert budget.covers == tuple(names)
        assert [share.analyst for share in budget.shares] == [None, *sorted(names)]
        assert [state.name for state in budget.streams()] == names
        budget.verify()


def test_nothing_that_is_told_is_compressed(server, database, url):
    """How much room an answer takes must not depend on the answer."""
    rows = server.run(
        "SELECT DISTINCT attstorage::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE attrelid::regclass::text LIKE 'clinic.%' AND typname = 'bytea' AND attnum > 0 "
        "AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')",
        database=database,
    )
    assert rows == [("e",)]


def test_whoever_waits_too_long_is_told(server, database, url):
    with Budget.open(url, wait=0.1) as budget, psycopg.connect(server.url(database)) as other:
        other.execute("SELECT 1 FROM clinic.head FOR UPDATE")
        with pytest.raises(LedgerBusy):
            charge(budget)
        assert budget.spent.epsilon == 0  # it can be looked at meanwhile
        other.rollback()
        charge(budget)


# Passwords ----------------------------------------------------------------------------------------


def test_no_password_is_shown_or_stored(server, database, url, tmp_path):
    name, secret = f"locked_{database}", "s3same"
    server.run(f"CREATE ROLE {name} SUPERUSER LOGIN PASSWORD '{secret}'")
    try:
        (tmp_path / "password").write_text(secret)
        mine = server.url(database, user=name)
        for address in (
            f"{mine.replace('@', f':{secret}@', 1)}#clinic",
            f"{mine}&password={secret}#clinic",
            f"{mine}&password_file={tmp_path / 'password'}#clinic",
        ):
            with Budget.open(address) as budget:
                charge(budget)
                lease = open_stream(budget, None, cost=Cost.pure("1/1000"))
                shown = [
                    repr(budget),
                    str(budget),
                    repr(lease),
                    budget.engine,
                    repr(budget.answers),
                ]
                shown += [entry.text for entry in budget.history]
                with pytest.raises(BudgetError) as refused:
                    resume(budget, lease.name)
                shown += traceback.format_exception(refused.value)
            assert not [text for text in shown if secret in text]
        wrong = f"{mine}&password=wr0ng#clinic"
        with pytest.raises(LedgerUnwritable, match="password") as refused_there:
            Budget.open(wrong)
        assert "wr0ng" not in "".join(traceback.format_exception(refused_there.value))
    finally:
        server.run(f"DROP ROLE {name}", database=database)
