"""What every ledger must do, as a pytest class: subclass it, and your ledger inherits the tests.

::

    class TestMyLedger(LedgerContract):
        ledger_class = MyLedger

        @pytest.fixture
        def address(self, tmp_path):
            return f"mine://{tmp_path}/new"

What a budget on that ledger promises is in ``tacit.testing.budgets``.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import pytest

from tacit.budget.accountants import Amount
from tacit.budget.chain import digest
from tacit.budget.ledger import (
    Contents,
    HistoryEnd,
    KeptAnswer,
    Ledger,
    LedgerReader,
    LedgerWriter,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.errors import (
    CannotCopy,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)
from tacit.testing.watched_ledger import POINTS, WatchedLedger, failing_at

_STATE = StreamState(1, "flu", "visits", None, 3, {"recipe": "book"})
_KEPT = KeptAnswer(2, "f" * 64, '{"told":"⊤ \\u0000"}  ', 3)


def amount(epsilon: int | str) -> Amount:
    """An amount of ε without δ."""
    return Amount.of(epsilon=Fraction(epsilon), delta=Fraction(0))


def nothing(writer: LedgerWriter) -> None:
    """Fill a new ledger with nothing."""


class OnALedger:
    """What the suites for ledgers and for budgets are given."""

    ledger_class: ClassVar[type[Ledger]]
    """The class under test, which a child process must be able to import."""

    durable: ClassVar[bool] = True
    """Whether a ledger can be opened again by its address, even by another process."""

    patience: ClassVar[float] = 60.0
    """Seconds after which a test gives up waiting for a lock.  Nothing should take so long."""

    @pytest.fixture
    def address(self) -> str:
        """An address where there is no ledger yet, a new one for each test.  Subclasses give it."""
        raise NotImplementedError("a ledger's tests define the fixture `address`")

    def again(self, address: str, *, wait: float | None = None) -> Ledger:
        """The ledger at an address, opened again; a test of one that cannot be is skipped."""
        if not self.durable:
            pytest.skip("it cannot be opened again")
        return self.ledger_class.open(address, wait=self.patience if wait is None else wait)


class LedgerContract(OnALedger):
    """What every ledger must do."""

    @pytest.fixture
    def ledger(self, address: str) -> Iterator[Ledger]:
        """A new, empty ledger."""
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
            assert reader.tables() == {}
            assert reader.shares() == []
            assert reader.streams() == []
            assert reader.secrets() == []
            assert reader.share(None) is None
            assert reader.stream("flu") is None
            assert reader.secret(1) is None
            assert not reader.covers("visits")
            assert reader.ties() == {}
            assert reader.tie("visits") is None
            assert reader.answers() == []
            assert reader.answer_under("f" * 64) is None

    def test_a_new_ledger_begins_with_what_it_is_filled_with(self, address: str) -> None:
        def fill(writer: LedgerWriter) -> None:
            writer.add_table("visits")
            writer.append("created", {"a": 1})

        ledger = self.ledger_class.create(address, fill, wait=self.patience)
        with ledger.reading() as reader:
            assert reader.tables() == {"visits": None}
            assert [entry.kind for entry in reader.entries()] == ["created"]
        ledger.close()

    def test_it_is_there_when_it_is_opened_again(self, ledger: Ledger, address: str) -> None:
        with ledger.writing("fill") as writer:
            writer.add_table("visits")
            writer.put_share(Share(None, amount(1), amount("1/3")))
            writer.put_stream(_STATE)
            writer.put_secret(1, b"\0secret\xff")
            writer.put_answer(_KEPT)
            written = writer.append("created", {"a": "⊤"})
        ledger.close()
        again = self.again(address)
        with again.reading() as reader:
            assert reader.entries() == [written]
            assert reader.tables() == {"visits": None}
            assert reader.shares() == [Share(None, amount(1), amount("1/3"))]
            assert reader.streams() == [_STATE]
            assert reader.secret(1) == b"\0secret\xff"
            assert reader.answers() == [_KEPT]
            assert reader.answer_under("f" * 64) == _KEPT
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
        """A copy would hold its secrets and leases a second time."""
        with pytest.raises(CannotCopy):
            copy.copy(ledger)

    # Writing and reading

    def test_what_is_written_is_read_inside_and_after(self, ledger: Ledger) -> None:
        def check(reader: LedgerReader) -> None:
            assert list(reader.tables().items()) == [("visits", None), ("labs", "others")]
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
            writer.add_table("visits")
            writer.add_table("labs", "others")
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

    def test_answers_are_kept_to_the_byte_and_found_by_number_and_key(self, ledger: Ledger) -> None:
        owed, told = KeptAnswer(12, "a" * 64), KeptAnswer(9, None, " {} ", 11)

        def check(reader: LedgerReader) -> None:
            assert reader.answers() == [_KEPT, told, owed]
            assert reader.answers(after=2) == [told, owed]
            assert reader.answers(after=2, most=1) == [told]
            assert reader.answers(after=12) == reader.answers(after=12, most=3) == []
            assert reader.answer_under("a" * 64) == owed
            assert reader.answer_under("f" * 64) == _KEPT
            assert reader.answer_under("b" * 64) is None

        with ledger.writing("fill") as writer:
            writer.put_answer(owed)
            writer.put_answer(replace(_KEPT, response=None, recorded=None))
            assert writer.answer_under("f" * 64) == KeptAnswer(2, "f" * 64)
            writer.put_answer(told)
            writer.put_answer(_KEPT)
            check(writer)
        with ledger.reading() as reader:
            check(reader)
        with ledger.writing("later") as writer:
            writer.put_answer(replace(owed, response="{}", recorded=13))
            assert writer.answer_under("a" * 64) == KeptAnswer(12, "a" * 64, "{}", 13)

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
                writer.put_answer(_KEPT)
                writer.append("charge", {})
                raise Stop

        with pytest.raises(Stop):
            write_and_stop()
        with ledger.reading() as reader:
            assert reader.tail().number == 1
            assert reader.shares() == [Share(None, amount(1), amount(0))]
            assert (reader.tables(), reader.streams(), reader.secrets()) == ({}, [], [])
            assert (reader.ties(), reader.stream("flu")) == ({}, None)
            assert (reader.answers(), reader.answer_under("f" * 64)) == ([], None)
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
            [("visits", None), ("labs", None), ("staff", "staff")],
            {"labs": TableIdentity("pid")},
            [Share(None, amount(1), amount(0)), Share("ana", amount("1/3"), amount("1/7"))],
            [_STATE, replace(_STATE, id=2, name="gout")],
            [1, 2],
            [_KEPT.sealed, (5, "a" * 64, None, None), (7, None, 9, digest("{}"))],
        )
        with ledger.writing("fill") as writer:
            for table, people in due.tables:
                writer.add_table(table, people)
            for table, identity in due.ties.items():
                writer.put_tie(table, identity)
            for share in due.shares:
                writer.put_share(share)
            for state in due.streams:
                writer.put_stream(state)
                writer.put_secret(state.id, b"secret")
            for kept in (_KEPT, KeptAnswer(5, "a" * 64), KeptAnswer(7, None, "{}", 9)):
                writer.put_answer(kept)

        def unlike(expected: Contents) -> list[str]:
            with ledger.reading() as reader:
                compared = list(reader.stored_and_due(expected))
            return [what for what, stored, as_due in compared if stored != as_due]

        assert unlike(due) == []
        for tables in (due.tables[1::-1], [("visits", None), ("labs", None), ("staff", None)]):
            assert "the tables it covers" in unlike(due._replace(tables=tables))
        assert unlike(due._replace(ties={})) == ["whose rows they hold"]
        assert unlike(due._replace(shares=due.shares[:1])) == ["what was spent and shared"]
        changed = [_STATE, replace(_STATE, id=2, name="gout", binding={"recipe": "book "})]
        assert unlike(due._replace(streams=changed)) == ["its streams"]
        assert unlike(due._replace(with_secret=[1])) == ["which streams have a secret"]
        for other in (
            replace(_KEPT, response=f"{_KEPT.response} "),
            *(replace(_KEPT, key="e" * 64), replace(_KEPT, recorded=4)),
        ):
            changed_answers = [other.sealed, *due.answers[1:]]
            assert unlike(due._replace(answers=changed_answers)) == ["the answers that were kept"]
        assert unlike(due._replace(answers=due.answers[:2])) == ["the answers that were kept"]

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
        """A stream that is garbage collected may be suspended at any moment."""
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
    """One thread for each ledger, which spends 1 five times."""

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
