"""What every ledger must do, as pytest classes: subclass them, and your ledger inherits the tests.

::

    class TestMine(LedgerContract, BudgetContract):
        ledger_class = MyLedger

        @pytest.fixture
        def address(self, tmp_path):
            return f"mine://{tmp_path}/new"
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import pytest

from tacit.budget import Budget, Lease
from tacit.budget.accountants import Amount, SumAccountant
from tacit.budget.addresses import ledger_at
from tacit.budget.chain import digest
from tacit.budget.ledger import (
    WAIT_SECONDS,
    Contents,
    Fill,
    HistoryEnd,
    Ledger,
    LedgerReader,
    LedgerWriter,
    Share,
    StreamHold,
    StreamState,
    TableIdentity,
)
from tacit.budget.spending import beginning
from tacit.errors import (
    BudgetExhausted,
    CannotCopy,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
    StreamEnded,
    StreamHeld,
    TableMismatch,
)
from tacit.privacy import Cost, Privacy
from tacit.support import Uncopyable

POINTS = ("begun", "written", "committed")

_STATE = StreamState(1, "flu", "visits", None, 3, {"recipe": "book"})
_BINDING = {"table": "visits", "recipe": "book"}


class WatchedLedger(Uncopyable):
    """A ledger that wraps a ledger and calls ``reached`` at three points of every write.

    They are "charge: begun" (inside the transaction), "charge: written" (everything is written,
    nothing durable) and "charge: committed" (durable, and the caller does not know yet), and so
    on for every ``what``.  What ``reached`` raises is raised there.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.reached: Callable[[str], None] = lambda point: None

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> WatchedLedger:
        """Create a ledger of any scheme, and watch it."""
        kind, address = ledger_at(address)
        return cls(kind.create(address, fill, wait=wait))

    @classmethod
    def open(
        cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None
    ) -> WatchedLedger:
        """Open a ledger of any scheme, and watch it."""
        kind, address = ledger_at(address)
        return cls(kind.open(address, wait=wait, head=head))

    @property
    def place(self) -> str:
        """Where the ledger is."""
        return self.ledger.place

    @property
    def engine(self) -> str:
        """What stores the ledger."""
        return self.ledger.engine

    def reading(self) -> AbstractContextManager[LedgerReader]:
        """Not watched."""
        return self.ledger.reading()

    def writing(self, what: str) -> AbstractContextManager[LedgerWriter]:
        """A write that can be stopped at its three points."""
        return self._watched(what)

    @contextmanager
    def _watched(self, what: str) -> Iterator[LedgerWriter]:
        with self.ledger.writing(what) as writer:
            self.reached(f"{what}: begun")
            yield writer
            self.reached(f"{what}: written")
        self.reached(f"{what}: committed")

    def hold(self, stream: int) -> StreamHold | None:
        """Not watched."""
        return self.ledger.hold(stream)

    def check(self) -> None:
        """Not watched."""
        self.ledger.check()

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()


def failing_at(point: str) -> Callable[[str], None]:
    """A ``reached`` that fails as a full disk does, whenever one point is reached."""

    def fail(reached: str) -> None:
        if reached == point:
            raise LedgerUnwritable(f"no space left ({point})")

    return fail


def amount(epsilon: int | str) -> Amount:
    """So much ε, and no δ."""
    return Amount.of(epsilon=Fraction(epsilon), delta=Fraction(0))


def nothing(writer: LedgerWriter) -> None:
    """What an empty ledger begins with."""


class _OnALedger:
    """What both suites are given."""

    ledger_class: ClassVar[type[Ledger]]
    """The class under test; a child process must be able to import it."""

    durable: ClassVar[bool] = True
    """Whether a ledger can be opened again by its address, also by another process."""

    patience: ClassVar[float] = 60.0
    """Seconds after which a test gives up on a lock: a safety net, nothing takes so long."""

    @pytest.fixture
    def address(self) -> str:
        """Where there is no ledger yet: each test gets a new one.  Subclasses give it."""
        raise NotImplementedError("give a fixture `address`")

    def again(self, address: str, *, wait: float | None = None) -> Ledger:
        """The ledger at an address, opened once more; the test is skipped if none can be."""
        if not self.durable:
            pytest.skip("it cannot be opened again")
        return self.ledger_class.open(address, wait=self.patience if wait is None else wait)


class LedgerContract(_OnALedger):
    """What the storage must do."""

    @pytest.fixture
    def ledger(self, address: str) -> Iterator[Ledger]:
        """A new and empty ledger."""
        made = self.ledger_class.create(address, nothing, wait=self.patience)
        yield made
        made.close()

    # Creating and opening

    def test_it_says_where_and_what_it_is(self, ledger: Ledger) -> None:
        assert isinstance(ledger.place, str)
        assert ledger.place
        assert isinstance(ledger.engine, str)
        assert ledger.engine

    def test_a_new_ledger_is_empty(self, ledger: Ledger) -> None:
        with ledger.reading() as reader:
            assert reader.tail() == HistoryEnd(0, "0" * 64)
            assert reader.entries() == []
            assert reader.tables() == []
            assert reader.shares() == []
            assert reader.streams() == []
            assert reader.secrets() == []
            assert reader.share(None) is None
            assert reader.stream("flu") is None
            assert reader.secret(1) is None
            assert not reader.covers("visits")
            assert reader.ties() == {}
            assert reader.tie("visits") is None

    def test_a_new_ledger_begins_with_what_it_is_filled_with(self, address: str) -> None:
        def fill(writer: LedgerWriter) -> None:
            writer.add_table("visits")
            writer.append("created", {"a": 1})

        ledger = self.ledger_class.create(address, fill, wait=self.patience)
        with ledger.reading() as reader:
            assert reader.tables() == ["visits"]
            assert [entry.kind for entry in reader.entries()] == ["created"]
        ledger.close()

    def test_it_is_there_when_it_is_opened_again(self, ledger: Ledger, address: str) -> None:
        with ledger.writing("fill") as writer:
            writer.add_table("visits")
            writer.put_share(Share(None, amount(1), amount("1/3")))
            writer.put_stream(_STATE)
            writer.put_secret(1, b"\0secret\xff")
            written = writer.append("created", {"a": "⊤"})
        ledger.close()
        again = self.again(address)
        with again.reading() as reader:
            assert reader.entries() == [written]
            assert reader.tables() == ["visits"]
            assert reader.shares() == [Share(None, amount(1), amount("1/3"))]
            assert reader.streams() == [_STATE]
            assert reader.secret(1) == b"\0secret\xff"
        again.close()

    def test_creating_never_overwrites(self, ledger: Ledger, address: str) -> None:
        with ledger.writing("append") as writer:
            writer.append("charge", {})
        again = self.again(address)
        with pytest.raises(LedgerExists):
            self.ledger_class.create(address, nothing, wait=self.patience)
        with again.reading() as reader:
            assert reader.tail().number == 1
        again.close()

    def test_a_creation_that_fails_leaves_nothing(self, address: str) -> None:
        def fail(writer: LedgerWriter) -> None:
            writer.append("created", {})
            raise RuntimeError("stopped here")

        with pytest.raises(RuntimeError, match="stopped here"):
            self.ledger_class.create(address, fill=fail, wait=self.patience)
        with pytest.raises(LedgerMissing):
            self.ledger_class.open(address, wait=self.patience)
        made = self.ledger_class.create(address, nothing, wait=self.patience)
        with made.reading() as reader:
            assert reader.tail() == HistoryEnd()
        made.close()

    def test_what_is_not_there_is_missing(self, address: str) -> None:
        with pytest.raises(LedgerMissing):
            self.ledger_class.open(address, wait=self.patience)

    def test_a_head_that_was_noted_must_be_in_the_history(
        self, ledger: Ledger, address: str
    ) -> None:
        with ledger.writing("append") as writer:
            noted = writer.append("charge", {}).hash
            writer.append("charge", {})
        ledger.close()
        self.again(address).close()
        self.ledger_class.open(address, wait=self.patience, head=noted).close()
        with pytest.raises(LedgerDamaged):
            self.ledger_class.open(address, wait=self.patience, head="ab" * 32)

    def test_it_cannot_be_copied(self, ledger: Ledger) -> None:
        """A twin would hold its secrets and leases a second time."""
        with pytest.raises(CannotCopy):
            copy.copy(ledger)

    # Writing and reading

    def test_what_is_written_is_read_inside_and_after(self, ledger: Ledger) -> None:
        def check(reader: LedgerReader) -> None:
            assert reader.tables() == ["visits", "labs"]
            assert reader.covers("labs")
            assert reader.shares() == [rest, ana, bob]
            assert reader.share("ana") == ana
            assert reader.share(None) == rest
            assert reader.streams() == [_STATE, other]
            assert reader.stream("measles") == other
            assert reader.secret(1) == b"\0one\xff"
            assert reader.secrets() == [1]
            assert reader.tail() == HistoryEnd(3, entry.hash)
            assert [e.number for e in reader.entries()] == [1, 2, 3]
            assert [e.number for e in reader.entries(after=1, most=1)] == [2]
            assert [e.kind for e in reader.entries(stream=1)] == ["open"]
            assert reader.entries(after=3) == []
            assert reader.entries(after=3, most=5) == []
            assert [e.number for e in reader.entries(after=1, stream=1)] == [2]
            assert reader.entries(after=2, stream=1) == reader.entries(stream=7) == []
            assert reader.ties() == {"labs": unknown, "visits": people}
            assert reader.tie("visits") == people
            assert reader.tie("payroll") is None

        rest = Share(None, amount(1), amount(0))
        ana, bob = (Share(name, amount("1/3"), amount("1/7")) for name in ("ana", "bob"))
        people, unknown = TableIdentity("pid", "integer", "0" * 64), TableIdentity("each row")
        other = replace(
            _STATE, id=2, name="measles", analyst="ana", reserved=False, status="closed"
        )
        with ledger.writing("fill") as writer:
            for table in ("visits", "labs"):
                writer.add_table(table)
            writer.put_tie("visits", unknown)
            writer.put_tie("visits", people)
            writer.put_tie("labs", unknown)
            for share in (bob, rest, replace(ana, spent=amount("1/9")), ana):
                writer.put_share(share)
            assert writer.next_stream() == 1
            writer.put_stream(replace(_STATE, tops=2))
            writer.put_stream(_STATE)
            assert writer.next_stream() == 2
            writer.put_stream(other)
            writer.put_secret(1, b"before")
            writer.put_secret(1, b"\0one\xff")
            writer.put_secret(2, b"two")
            writer.put_secret(2, None)
            writer.append("created", {"a": 1})
            writer.append("open", {"b": "⊤"}, 1)
            entry = writer.append("cover", {})
            check(writer)
        with ledger.reading() as reader:
            check(reader)

    def test_entries_are_chained(self, ledger: Ledger) -> None:
        for number in range(3):
            with ledger.writing("append") as writer:
                writer.append("charge", {"amount": number})
        with ledger.reading() as reader:
            entries = reader.entries()
        assert len(entries) == 3
        previous = "0" * 64
        for number, entry in enumerate(entries, 1):
            assert entry.body["previous"] == previous
            assert entry.body["number"] == entry.number == number
            assert digest(entry.text) == entry.hash
            previous = entry.hash

    def test_all_or_nothing(self, ledger: Ledger) -> None:
        with ledger.writing("first") as writer:
            writer.put_share(Share(None, amount(1), amount(0)))
            writer.append("created", {})

        class Stop(BaseException):
            pass

        def write_and_stop() -> None:
            with ledger.writing("second") as writer:
                writer.add_table("visits")
                writer.put_share(Share(None, amount(1), amount(1)))
                writer.put_share(Share("ana", amount(1), amount(1)))
                writer.put_stream(_STATE)
                writer.put_tie("visits", TableIdentity("pid"))
                writer.put_secret(1, b"secret")
                writer.append("charge", {})
                raise Stop

        with pytest.raises(Stop):
            write_and_stop()
        with ledger.reading() as reader:
            assert reader.tail().number == 1
            assert reader.shares() == [Share(None, amount(1), amount(0))]
            assert (reader.tables(), reader.streams(), reader.secrets()) == ([], [], [])
            assert (reader.ties(), reader.stream("flu")) == ({}, None)
        with ledger.writing("third") as writer:  # and it is not stuck
            assert writer.append("charge", {}).number == 2

    @pytest.mark.parametrize("point", POINTS)
    def test_a_write_that_is_stopped_has_happened_or_not(self, ledger: Ledger, point: str) -> None:
        watched = WatchedLedger(ledger)
        watched.reached = failing_at(f"append: {point}")

        def write() -> None:
            with watched.writing("append") as writer:
                writer.append("charge", {})

        with pytest.raises(LedgerUnwritable, match="no space left"):
            write()
        with ledger.reading() as reader:
            assert reader.tail().number == (1 if point == "committed" else 0)
        with ledger.writing("append") as writer:
            writer.append("charge", {})

    def test_what_is_stored_is_compared_with_what_is_due(self, ledger: Ledger) -> None:
        due = Contents(
            ["visits", "labs"],
            {"labs": TableIdentity("pid")},
            [Share(None, amount(1), amount(0)), Share("ana", amount("1/3"), amount("1/7"))],
            [_STATE, replace(_STATE, id=2, name="gout")],
            [1, 2],
        )
        with ledger.writing("fill") as writer:
            for table in due.tables:
                writer.add_table(table)
            for table, identity in due.ties.items():
                writer.put_tie(table, identity)
            for share in due.shares:
                writer.put_share(share)
            for state in due.streams:
                writer.put_stream(state)
                writer.put_secret(state.id, b"secret")

        def unlike(expected: Contents) -> list[str]:
            with ledger.reading() as reader:
                compared = list(reader.stored_and_due(expected))
            return [what for what, stored, as_due in compared if stored != as_due]

        assert unlike(due) == []
        assert unlike(due._replace(tables=["labs", "visits"])) == ["the tables it covers"]
        assert unlike(due._replace(ties={})) == ["whose rows they hold"]
        assert unlike(due._replace(shares=due.shares[:1])) == ["what was spent and shared"]
        changed = [_STATE, replace(_STATE, id=2, name="gout", binding={"recipe": "book "})]
        assert unlike(due._replace(streams=changed)) == ["its streams"]
        assert unlike(due._replace(with_secret=[1])) == ["which streams have a secret"]

    def test_check_passes_on_a_sound_ledger(self, ledger: Ledger) -> None:
        ledger.check()

    # One at a time

    def test_one_holder_at_a_time(self, ledger: Ledger) -> None:
        first = ledger.hold(1)
        assert first is not None
        assert ledger.hold(1) is None
        other = ledger.hold(2)
        assert other is not None
        first.release()
        again = ledger.hold(1)
        assert again is not None
        first.release()  # an old hold releases nothing that is not its own
        assert ledger.hold(1) is None
        again.release()
        other.release()

    def test_a_hold_ends_with_its_object(self, ledger: Ledger) -> None:
        hold = ledger.hold(1)
        del hold
        again = ledger.hold(1)
        assert again is not None
        again.release()

    def test_a_hold_keeps_others_away_and_ends_with_its_process(
        self, ledger: Ledger, address: str
    ) -> None:
        self.again(address).close()
        child = _holding(self.ledger_class, address)
        try:
            assert ledger.hold(1) is None
        finally:
            child.kill()
            child.communicate()
        hold, deadline = None, time.monotonic() + self.patience
        while hold is None and time.monotonic() < deadline:
            hold = ledger.hold(1)
        assert hold is not None
        hold.release()

    def test_a_transaction_inside_another_is_refused_at_once(self, ledger: Ledger) -> None:
        """A stream that is dropped may be suspended in the middle of anything."""
        inside: list[Callable[[], AbstractContextManager[LedgerReader]]]
        inside = [ledger.reading, lambda: ledger.writing("inner")]
        with ledger.writing("outer") as writer:
            writer.append("charge", {})
            for inner in inside:
                with pytest.raises(LedgerBusy, match="this very thread"), inner():
                    pass
        with ledger.reading() as reader:
            assert reader.tail().number == 1

    def test_threads_write_one_after_another(self, ledger: Ledger) -> None:
        _count_in_threads([ledger] * 6, self.patience)
        with ledger.reading() as reader:
            _check_counted(reader)

    def test_two_objects_at_one_address_write_one_after_another(
        self, ledger: Ledger, address: str
    ) -> None:
        again = self.again(address)
        _count_in_threads([ledger, again] * 3, self.patience)
        for one in (ledger, again):
            with one.reading() as reader:
                _check_counted(reader)
        again.close()

    def test_two_objects_at_one_address_hold_a_stream_once(
        self, ledger: Ledger, address: str
    ) -> None:
        again = self.again(address)
        hold = ledger.hold(1)
        assert hold is not None
        assert again.hold(1) is None
        hold.release()
        hold = again.hold(1)
        assert hold is not None
        assert ledger.hold(1) is None
        hold.release()
        again.close()

    def test_the_wait_for_a_write_in_progress_is_bounded(
        self, ledger: Ledger, address: str
    ) -> None:
        again = self.again(address, wait=0.1)
        with ledger.writing("outer") as writer:
            writer.append("charge", {})
            with pytest.raises(LedgerBusy), again.writing("too soon"):
                pass
        with again.writing("in time") as writer:
            writer.append("charge", {})
        again.close()
        with ledger.reading() as reader:
            assert reader.tail().number == 2


def _count_in_threads(ledgers: list[Ledger], patience: float) -> None:
    """Each of six threads spends 1 five times."""

    def write(ledger: Ledger) -> None:
        for _ in range(5):
            with ledger.writing("count") as writer:
                share = writer.share(None) or Share(None, amount(100), amount(0))
                writer.put_share(replace(share, spent=share.spent + amount(1)))
                writer.append("charge", {})

    threads = [threading.Thread(target=write, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)


def _check_counted(reader: LedgerReader) -> None:
    share = reader.share(None)
    assert share is not None
    assert share.spent == amount(30)
    assert reader.tail().number == 30


_HOLDER = """
import importlib, operator, sys
module, name, address = sys.argv[1:]
ledger = operator.attrgetter(name)(importlib.import_module(module)).open(address)
hold = ledger.hold(1)
print(hold is not None, flush=True)
sys.stdin.read()
"""


def _holding(ledger_class: type[Ledger], address: str) -> subprocess.Popen[str]:
    """A process that holds stream 1 until it is killed."""
    where = (ledger_class.__module__, ledger_class.__qualname__, address)
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, *where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    held = child.stdout.readline()
    if held != "True\n":
        child.kill()
        child.communicate()
        pytest.fail("the child could not open the ledger and hold a stream")
    return child


class BudgetContract(_OnALedger):
    """What a budget promises, whatever keeps it."""

    @pytest.fixture
    def watched(self, address: str) -> Iterator[WatchedLedger]:
        """A budget's ledger: ε = 1 is promised to the people of visits and labs."""
        fill = beginning(Privacy(1), ["visits", "labs"], SumAccountant())
        made = WatchedLedger(self.ledger_class.create(address, fill, wait=self.patience))
        yield made
        made.close()

    @pytest.fixture
    def budget(self, watched: WatchedLedger) -> Budget:
        """The budget on it."""
        return Budget(watched)

    def test_charges_add_up_exactly_and_what_does_not_fit_changes_nothing(
        self, budget: Budget
    ) -> None:
        for _ in range(11):
            budget.charge(Cost.pure("1/11"), table="visits", what="a grain")
        head = budget.head
        with pytest.raises(BudgetExhausted):
            budget.charge(Cost.pure("1/1000000"), table="labs", what="one too many")
        assert (budget.head, budget.left, budget.spent) == (head, amount(0), amount(1))
        assert budget.verify(head).entries == 12

    def test_nobody_draws_beyond_a_share(self, budget: Budget) -> None:
        budget.share("ana", epsilon="1/2")
        budget.charge(Cost.pure("1/2"), table="visits", what="all of it", analyst="ana")
        with pytest.raises(BudgetExhausted):
            budget.charge(Cost.pure("1/10"), table="visits", what="more", analyst="ana")
        budget.charge(Cost.pure("1/10"), table="visits", what="of the rest")
        assert [share.left for share in budget.shares] == [amount("2/5"), amount(0)]
        budget.verify()

    def test_one_name_stands_for_one_kind_of_people(self, budget: Budget) -> None:
        people, homes = TableIdentity("patient", "integer"), TableIdentity("household", "integer")
        budget.charge(Cost.pure("1/10"), table="visits", what="a count", identity=people)
        with pytest.raises(TableMismatch):
            budget.charge(Cost.pure("1/10"), table="visits", what="a count", identity=homes)
        assert (budget.tied, budget.spent) == ({"visits": people}, amount("1/10"))
        budget.verify()

    def test_a_stream_goes_on_where_it_was_suspended(self, budget: Budget) -> None:
        lease = _opened(budget, at_most=3)
        _ask(lease, "town = 'Ulm'", secret=b"threshold 1")
        with pytest.raises(StreamHeld):
            _resumed(budget)
        lease.suspend()
        lease = _resumed(budget)
        assert lease.answers == {"town = 'Ulm'": {"above": True}}
        assert (lease.secret, lease.tops_left) == (b"threshold 1", 2)
        lease.close()
        assert budget.spent == amount("1/10")
        budget.verify()

    def test_a_stream_goes_on_in_another_object(self, budget: Budget, address: str) -> None:
        again = Budget(self.again(address))
        lease = _opened(budget, at_most=3)
        with pytest.raises(StreamHeld):
            _resumed(again)
        _ask(lease, "q")
        lease.suspend()
        lease = _resumed(again)
        assert lease.tops_left == 2
        with pytest.raises(StreamHeld):
            _resumed(budget)
        again.verify(budget.head)
        again.close()

    @pytest.mark.parametrize("fails_at", POINTS)
    @pytest.mark.parametrize("act", ["open", "resume", "record top", "suspend"])
    def test_wherever_a_write_fails_no_more_is_granted_than_was_paid_for(
        self, budget: Budget, watched: WatchedLedger, act: str, fails_at: str
    ) -> None:
        """Drive one stream to its end with a disk that fails at one point every other time."""
        calls = 0
        fail = failing_at(f"{act}: {fails_at}")

        def fail_now_and_then(point: str) -> None:
            nonlocal calls
            calls += point == f"{act}: {fails_at}"
            if calls % 2:
                fail(point)

        watched.reached = fail_now_and_then
        drawn, released = _asked_until_it_ends(budget)
        watched.reached = lambda point: None
        state = budget.stream("flu")
        assert len(drawn) <= 4
        assert len(released) <= state.tops <= len(drawn)
        on_record = {entry.body["question"] for entry in budget.history if entry.kind == "top"}
        assert set(released) <= on_record <= set(drawn)
        assert budget.spent == amount("1/10")  # paid once
        budget.verify()

    @pytest.mark.parametrize("fails_at", POINTS)
    def test_a_stream_whose_closing_failed_can_be_closed_again(
        self, budget: Budget, watched: WatchedLedger, fails_at: str
    ) -> None:
        lease = _opened(budget, at_most=3)
        watched.reached = failing_at(f"close: {fails_at}")
        with pytest.raises(LedgerUnwritable):
            lease.close()
        watched.reached = lambda point: None
        lease.close()
        assert [entry.kind for entry in budget.history] == ["created", "open", "close"]
        assert budget.spent == amount("1/10")  # nothing is refunded
        budget.verify()


def _opened(budget: Budget, *, at_most: int) -> Lease:
    return budget.open_stream(
        "flu",
        cost=Cost.pure("1/10"),
        table="visits",
        at_most=at_most,
        binding=_BINDING,
        secret=b"threshold 0",
    )


def _resumed(budget: Budget) -> Lease:
    return budget.resume_stream("flu", binding=_BINDING, after_loss=lambda secret: secret + b"'")


def _ask(lease: Lease, key: str, *, secret: bytes | None = None) -> None:
    """A question that comes out above the threshold."""
    with lease.turn():
        lease.record_top({"above": True}, question_key=key, secret=secret)


def _asked_until_it_ends(budget: Budget) -> tuple[list[str], list[str]]:
    """Whose coins were drawn and which answers were shown, over all leases of a stream."""
    drawn: list[str] = []
    released: list[str] = []
    for number in range(100):
        try:
            exists = any(state.name == "flu" for state in budget.streams())
            lease: Lease | None = _resumed(budget) if exists else _opened(budget, at_most=4)
            assert lease is not None
            drawn.append(f"q{number}")
            _ask(lease, f"q{number}")
            released.append(f"q{number}")
            lease.suspend()
        except LedgerUnwritable:
            lease = None  # whoever held it has seen enough, and lets go without a word
        except StreamEnded:
            return drawn, released
    pytest.fail("the stream never ended")
