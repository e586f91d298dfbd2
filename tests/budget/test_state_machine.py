"""A budget driven at random through everything that can happen to it."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.budget.common import abandon, ask, open_stream, resume
from tests.budget.watched import nothing_happens, watch, watched

from tacit.budget import Budget, Lease
from tacit.errors import BadParameter, BudgetExhausted, LedgerUnwritable, StreamEnded, StreamHeld
from tacit.privacy import Cost

grains = st.integers(1, 12)
analysts = st.sampled_from([None, "ana", "bob"])


class Stream:
    """What the model knows of a stream: nothing but what an outsider saw."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        self.drawn = 0
        self.released: list[str] = []
        self.unclean = 0
        self.status = "live"


class BudgetMachine(RuleBasedStateMachine):
    """The promise is 24 grains of ε = 1/24 each."""

    names = Bundle("names")

    def make(self) -> Budget:
        return Budget.in_memory(epsilon=1, covers=["visits"])

    def reopen(self) -> Budget:
        return self.budget

    @initialize()
    def create(self) -> None:
        self.budget = watched(self.make())
        self.shares: dict[str | None, int] = {None: 24}
        self.spent: dict[str | None, int] = {None: 0}
        self.streams: dict[str, Stream] = {}
        self.leases: dict[str, Lease] = {}
        self.questions = 0
        self.paid = 0

    def pays(self, analyst: str | None, amount: int) -> bool:
        """The model's own accountant."""
        if analyst not in self.shares or self.spent[analyst] + amount > self.shares[analyst]:
            return False
        self.spent[analyst] += amount
        self.paid += 1
        return True

    def refuses(self, act) -> None:
        """It must refuse, and change nothing."""
        head = self.budget.head
        with pytest.raises((BudgetExhausted, BadParameter, Exception)) as error:
            act()
        assert error.value.__class__.__module__ == "tacit.errors"
        assert self.budget.head == head

    @rule(amount=grains, analyst=analysts)
    def charge(self, amount: int, analyst: str | None) -> None:
        cost = Cost.pure(Fraction(amount, 24))

        def act() -> None:
            self.budget.charge(cost, table="visits", what="a count", analyst=analyst)

        act() if self.pays(analyst, amount) else self.refuses(act)

    @rule(analyst=st.sampled_from(["ana", "bob"]), size=st.integers(0, 26))
    def share(self, analyst: str, size: int) -> None:
        def act() -> None:
            self.budget.share(analyst, epsilon=Fraction(size, 24))

        change = size - self.shares.get(analyst, 0)
        free = self.shares[None] - self.spent[None]
        if change > free or size < self.spent.get(analyst, 0):
            self.refuses(act)
            return
        act()
        self.shares[None] -= change
        self.shares[analyst] = size
        self.spent.setdefault(analyst, 0)

    @rule(target=names, amount=grains, at_most=st.integers(1, 4), analyst=analysts)
    def open(self, amount: int, at_most: int, analyst: str | None) -> str:
        name = f"stream {len(self.streams)}"

        def act() -> None:
            self.leases[name] = open_stream(
                self.budget,
                name,
                at_most=at_most,
                analyst=analyst,
                cost=Cost.pure(Fraction(amount, 24)),
            )

        if self.pays(analyst, amount):
            act()
            self.streams[name] = Stream(at_most)
        else:
            self.refuses(act)
        return name

    def lease(self, name: str) -> Lease | None:
        return self.leases.get(name)

    @rule(name=names, above=st.booleans())
    def ask(self, name: str, above: bool) -> None:
        lease = self.lease(name)
        if lease is None:
            return
        self.questions += 1
        key = f"q{self.questions}"
        stream = self.streams[name]
        if not lease.alive:
            with pytest.raises(StreamEnded):
                ask(lease, key, above=above)
            return
        stream.drawn += above
        ask(lease, key, above=above)
        if above:
            stream.released.append(key)
            if stream.drawn + stream.unclean == stream.at_most:
                assert lease.halted
                stream.status = "halted"

    @rule(name=names, point=st.sampled_from(["begun", "written", "committed"]))
    def ask_on_a_broken_disk(self, name: str, point: str) -> None:
        lease = self.lease(name)
        if lease is None or not lease.alive:
            return
        self.questions += 1

        def fail(reached: str) -> None:
            if reached == f"record top: {point}":
                raise LedgerUnwritable("broken")

        watch(self.budget, fail)
        self.streams[name].drawn += 1  # the failure tells
        with pytest.raises(LedgerUnwritable):
            ask(lease, f"q{self.questions}")
        watch(self.budget, nothing_happens)
        if point == "committed":  # it was recorded, the next reserved, and that lost
            self.streams[name].released.append(f"q{self.questions}")
            if self.budget.stream(name).status == "halted":
                self.streams[name].status = "halted"
        assert not lease.alive

    @rule(name=names)
    def suspend(self, name: str) -> None:
        lease = self.lease(name)
        if lease is None:
            return
        alive = lease.alive
        lease.suspend()
        if alive:
            self.streams[name].status = "suspended"
            assert not self.budget.stream(name).reserved

    @rule(name=names)
    def close(self, name: str) -> None:
        lease = self.lease(name)
        if lease is None:
            return
        if lease.alive:
            lease.close()
            self.streams[name].status = "closed"
        elif self.budget.stream(name).ended and lease._state.ended:
            lease.close()  # no harm
        else:
            with pytest.raises(StreamEnded):
                lease.close()

    @rule(name=names)
    def crash(self, name: str) -> None:
        lease = self.leases.pop(name, None)
        if lease is not None:
            abandon(lease)

    @rule(name=names)
    def resume(self, name: str) -> None:
        stream = self.streams.get(name)
        if stream is None:
            self.refuses(lambda: resume(self.budget, name))
            return
        before = self.budget.stream(name)
        lease = self.lease(name)
        if lease is not None and lease.alive:
            with pytest.raises(StreamHeld):
                resume(self.budget, name)
            return
        if before.ended:
            self.refuses(lambda: resume(self.budget, name))
            return
        try:
            lease = self.leases[name] = resume(self.budget, name)
        except StreamEnded:
            assert before.reserved
            assert before.tops_used + 1 == before.at_most
            stream.status = "halted"
            return
        stream.status = "live"
        lost = int(before.reserved)
        assert self.budget.stream(name).lost == before.lost + lost
        assert int(lease.secret.split()[1]) == before.lost + lost  # moved on by each loss
        assert list(lease.answers) == stream.released

    @precondition(lambda self: hasattr(self, "budget"))
    @rule()
    def crash_everything_and_reopen(self) -> None:
        for lease in self.leases.values():
            abandon(lease)
        self.leases = {}
        self.budget = watched(self.reopen())

    @invariant()
    def what_is_charged_is_within_the_promise_and_charged_once(self) -> None:
        if not hasattr(self, "budget"):
            return
        shares = {share.analyst: share for share in self.budget.shares}
        assert {name: share.spent.epsilon * 24 for name, share in shares.items()} == self.spent
        assert {name: share.limit.epsilon * 24 for name, share in shares.items()} == self.shares
        assert self.budget.spent.epsilon <= 1
        charges = [entry for entry in self.budget.history if "charged" in entry.body]
        assert len(charges) == self.paid

    @invariant()
    def no_more_is_seen_above_than_was_paid_for(self) -> None:
        if not hasattr(self, "budget"):
            return
        for name, stream in self.streams.items():
            state = self.budget.stream(name)
            assert stream.drawn <= stream.at_most
            assert state.tops + state.lost + state.reserved <= stream.at_most == state.at_most
            assert stream.drawn <= state.tops_used + state.reserved
            recorded = [
                entry.body["question"]
                for entry in self.budget.history
                if entry.kind == "top" and entry.body["stream"] == name
            ]
            assert recorded == stream.released
            if stream.status in ("halted", "closed"):
                assert state.status == stream.status

    def teardown(self) -> None:
        if hasattr(self, "budget"):
            self.budget.verify()
            for lease in self.leases.values():
                abandon(lease)
            self.budget.close()


class SqliteMachine(BudgetMachine):
    """The same on a file."""

    def make(self) -> Budget:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "clinic.budget"
        return Budget.create(self.path, epsilon=1, covers=["visits"])

    def reopen(self) -> Budget:
        self.budget.close()
        return Budget.open(self.path)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


class PostgresMachine(BudgetMachine):
    """The same on a server, which may also end every connection while their holders live."""

    database = ""  # its URL, which the test class has

    def make(self) -> Budget:
        self.path = f"{self.database}#b_{uuid4().hex[:12]}"
        return Budget.create(self.path, epsilon=1, covers=["visits"])

    def reopen(self) -> Budget:
        self.budget.close()
        return Budget.open(self.path)

    @precondition(lambda self: hasattr(self, "budget"))
    @rule()
    def the_server_ends_all_connections(self) -> None:
        """Nobody else wants the streams, so that their holders go on."""
        import psycopg

        with psycopg.connect(self.database, autocommit=True) as administrator:
            administrator.execute(
                "SELECT pg_terminate_backend(pid, 120000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TestInMemory = BudgetMachine.TestCase
TestInMemory.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=QUIET
)
TestInAFile = SqliteMachine.TestCase
TestInAFile.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=QUIET
)


class TestOnAServer(PostgresMachine.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(
        max_examples=4, stateful_step_count=20, deadline=None, suppress_health_check=QUIET
    )

    @pytest.fixture(autouse=True)
    def _with_a_database(self, postgres_database, monkeypatch):
        monkeypatch.setattr(PostgresMachine, "database", postgres_database)


@pytest.mark.long
class TestOnAServerForLong(TestOnAServer):
    settings = settings(
        max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=QUIET
    )


@pytest.mark.long
class TestInAFileForLong(SqliteMachine.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(
        max_examples=500, stateful_step_count=60, deadline=None, suppress_health_check=QUIET
    )
