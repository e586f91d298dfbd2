"""Ctrl-C at every bytecode of a charge, of an answer above and of closing: nothing stays locked.

After each, the budget is used from another object first (as another process would), and from the
same one first (while the traceback still holds every frame, as it does at the prompt).
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, PROCESSES, start
from tests.budget.common import ask, open_stream, resume, resume_when_free
from tests.budget.interrupts import (
    Interrupter,
    in_a_thread_of_its_own,
    spread,
    steps_of,
    steps_within,
)

from tacit.budget import Budget
from tacit.budget.memory import MemoryLedger
from tacit.budget.postgres import PostgresLedger
from tacit.budget.sqlite import SqliteLedger
from tacit.budget.turns import Line
from tacit.errors import BudgetError, StreamEnded
from tacit.privacy import Cost

GRAIN = Fraction(1, 10**6)
FEW, ALL = 60, 10**9
WAIT = 5  # seconds; a lock that is left makes a test fail, not hang


def everywhere(where: str | None) -> int:
    """At how many places it is struck in a long run; a server is slower than a file."""
    return 200 if where is not None and "://" in where else ALL


pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # closed by being dropped


class Two:
    """A budget that is open twice: in memory, once and looked at from another thread."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        if self._path is None:
            self.mine = self.other = Budget.in_memory(epsilon=1, covers=["visits"])
        else:
            self.mine = Budget.create(self._path, epsilon=1, covers=["visits"], wait=WAIT)
            self.other = Budget.open(self._path, wait=WAIT)

    def open_again(self) -> None:
        if self._path is not None:
            self.mine = Budget.open(self._path, wait=WAIT)

    def elsewhere(self, act: Callable[[Budget], object]) -> None:
        """Do something where the interrupted thread's locks count."""
        failed = []

        def run() -> None:
            try:
                act(self.other)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "it hangs"
        assert not failed, failed


@pytest.fixture(autouse=True)
def _drop_everything_here():
    """A connection that is dropped in a later test would be a warning there."""
    yield
    gc.collect()


@pytest.fixture
def quick(tmp_path):
    """A folder in memory, where there is one: nothing is to survive a power cut here."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def where(request, quick):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_budget")
    return None if request.param == "memory" else str(quick / "clinic.budget")


@pytest.fixture
def two(where):
    return Two(where)


def charge(budget: Budget) -> None:
    budget.charge(Cost.pure(GRAIN), table="visits", what="a grain")


def _grains(budget: Budget) -> int:
    """How many grains are spent; the history must say the same."""
    spent = budget.spent.epsilon / GRAIN
    assert spent == sum(entry.kind == "charge" for entry in budget.history[1:]) or spent == 0
    return int(spent)


@in_a_thread_of_its_own
def _strike_charges(two: Two, most: int) -> int:
    charge(two.mine)
    steps = steps_of(lambda: charge(two.mine))
    struck = 0
    for at in spread(steps, most):
        before = two.other.spent.epsilon / GRAIN
        interrupter = Interrupter(at)
        kept = interrupter.run(lambda: charge(two.mine))
        struck += kept is not None
        if at % 2:
            kept = None
            two.elsewhere(charge)
        else:
            charge(two.mine)
        after = two.other.spent.epsilon / GRAIN
        assert after - before in (1, 2), interrupter.struck_in
        assert kept is None or after - before >= 1
        charge(two.mine)
        two.elsewhere(charge)
        assert _no_line_is_left(two), interrupter.struck_in
    assert two.mine.verify().entries == len(two.other.history)
    assert _grains(two.mine) == len(two.mine.history) - 1
    return struck


def _no_line_is_left(two: Two) -> bool:
    return all(not _line_of(budget)._places for budget in (two.mine, two.other))


def _line_of(budget: Budget) -> Line:
    ledger = budget._ledger
    assert isinstance(ledger, MemoryLedger | SqliteLedger | PostgresLedger)
    return ledger.line


def test_a_charge_that_is_interrupted_happened_or_did_not(two):
    assert _strike_charges(two, FEW) > FEW // 2


@pytest.mark.long
def test_a_charge_that_is_interrupted_anywhere_happened_or_did_not(two):
    assert _strike_charges(two, everywhere(two._path)) > 100


@in_a_thread_of_its_own
def _strike_tops(two: Two, most: int) -> int:
    """Whoever saw a question drawn has used up one of the answers above."""
    tiny = Cost.pure(GRAIN)
    for number in range(6):  # a driver prepares what is asked often, and then takes fewer steps
        ask(open_stream(two.mine, f"warm {number}", cost=tiny), "q")
    steps = steps_of(lambda: ask(open_stream(two.mine, "to count", cost=tiny), "q"))
    steps -= steps_of(lambda: open_stream(two.mine, "to count as well", cost=tiny))
    struck = 0
    for at in spread(steps, most):
        name = f"stream {at}"
        lease = open_stream(two.mine, name, at_most=3, cost=tiny)
        drawn: list[int] = []

        def draw(lease=lease, drawn=drawn) -> None:
            with lease.turn():
                drawn.append(1)
                lease.record_top({"above": True}, question_key="q")
            drawn.append(2)

        interrupter = Interrupter(at)
        kept = interrupter.run(draw)
        struck += kept is not None
        if at % 2:
            kept = None
            two.elsewhere(charge)
        ended_well = drawn == [1, 2]
        lease.suspend()
        _check_stream(two, name, lease, bool(drawn), ended_well, interrupter.struck_in)
        del lease, kept
        two.elsewhere(charge)
        assert _no_line_is_left(two), interrupter.struck_in
    two.mine.verify()
    return struck


def _check_stream(two: Two, name: str, lease, drawn: bool, ended_well: bool, where: str) -> None:
    assert lease._line._places == {}, where
    again = resume(two.mine, name)
    state = two.mine.stream(name)
    assert state.tops + state.lost >= drawn, where  # an answer above is never free
    assert state.tops == 1 or not ended_well, where
    assert state.tops_used <= 2, where
    if "q" in again.answers:
        assert state.tops == 1
    ask(again, "another")
    again.close()
    with pytest.raises(StreamEnded):
        resume(two.mine, name)


def test_an_answer_above_that_is_interrupted_is_counted_or_lost(two):
    assert _strike_tops(two, FEW) > FEW // 2


@pytest.mark.long
def test_an_answer_above_that_is_interrupted_anywhere_is_counted_or_lost(two):
    assert _strike_tops(two, everywhere(two._path)) > 100


@in_a_thread_of_its_own
def _strike_closing(where: str | None, most: int) -> int:
    """Whatever was interrupted: closing again returns, and the stream is free."""
    tiny, struck, steps = Cost.pure(GRAIN), 0, None
    two = Two(where)
    at = 0
    while steps is None or at <= steps:
        two.open_again()
        name = f"stream {at}"
        lease = open_stream(two.mine, name, cost=tiny)
        if steps is None:
            steps = steps_of(two.mine.close)
        else:
            interrupter = Interrupter(at)
            kept = interrupter.run(two.mine.close)
            struck += kept is not None
            if at % 2:
                kept = None
                if where is not None:
                    two.elsewhere(charge)
            two.mine.close()
            del kept
            assert not lease.alive
        del lease
        if where is None:
            two = Two(where)
        else:
            assert resume(two.other, name).tops_left >= 2
            two.elsewhere(charge)
            assert _no_line_is_left(two)
        at += max(1, steps // most)
    two.other.verify()
    return struck


def test_closing_that_is_interrupted_can_be_done_again(where):
    assert _strike_closing(where, FEW) > FEW // 2


@pytest.mark.long
def test_closing_that_is_interrupted_anywhere_can_be_done_again(where):
    assert _strike_closing(where, everywhere(where)) > 100


@in_a_thread_of_its_own
def _strike_opening(where: str, most: int) -> int:
    """Opening, and opening a stream: another one can be opened, and holds nothing back."""

    def begin() -> None:
        with Budget.open(path, wait=WAIT) as budget:
            open_stream(budget, None, cost=Cost.pure(GRAIN)).suspend()

    path = f"{where}-to-count"
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    begin()
    struck = 0
    for number, at in enumerate(spread(steps_of(begin), most)):
        if number % 50 == 0:  # listing the streams takes longer with each of them
            path = f"{where}-{number}"
            Budget.create(path, epsilon=1, covers=["visits"]).close()
        interrupter = Interrupter(at)
        struck += interrupter.run(begin) is not None
        with Budget.open(path, wait=WAIT) as budget:
            charge(budget)
            for state in budget.streams()[-1:]:
                if not state.ended:
                    resume_when_free(budget, state.name).close()
            budget.verify()
    return struck


@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
def test_opening_that_is_interrupted_leaves_nothing_locked(where):
    assert _strike_opening(where, FEW) > FEW // 2


@in_a_thread_of_its_own
def _strike_leaving(path: str) -> None:
    def begin() -> None:
        Budget.open(path, wait=WAIT).close()

    begin()
    steps = steps_within(begin, "__exit__", "budget/postgres.py")
    assert steps
    for at in steps:
        assert Interrupter(at).run(begin) is not None
        begin()


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
def test_opening_that_is_interrupted_while_it_ends_says_so(where):
    """And not that it is in the middle of a transaction."""
    path = f"{where}-left"
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    _strike_leaving(path)


@pytest.mark.long
@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
def test_opening_that_is_interrupted_anywhere_leaves_nothing_locked(where):
    assert _strike_opening(where, everywhere(where)) > 100


def test_signals_at_any_time_lose_nothing_that_was_told(place):
    results, other = PROCESSES.Queue(), Budget.open(place, wait=60)
    child = start(children.charge_under_a_clock, place, 150, results)
    told, entries, verified, _ = results.get(timeout=JOIN_SECONDS)
    child.join(JOIN_SECONDS)
    assert child.exitcode == 0
    assert 1 + told <= entries == verified <= 151
    charge(other)


def test_a_place_in_the_line_ends_with_its_frame():
    """The next in line undoes what was begun, wherever it was left and whoever comes."""
    from tacit.budget.memory import MemoryLedger

    ledger = MemoryLedger()
    frames = []

    def walk_away() -> None:
        use = ledger.writing("charge")
        use.__enter__().append("charge", {})
        frames.append(use)  # alive, and never left

    thread = threading.Thread(target=walk_away)
    thread.start()
    thread.join()
    assert len(ledger.line._places) == 1
    with ledger.reading() as reader:
        assert reader.tail().number == 0
    assert ledger.line._places == {}


def test_nobody_is_put_aside_who_is_at_work():
    line, inside, go_on = Line(), threading.Event(), threading.Event()
    from tacit.budget.memory import MemoryLedger

    ledger = MemoryLedger()
    ledger.line = line

    def work() -> None:
        with ledger.writing("charge"):
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    assert line.block(0.05) is None
    go_on.set()
    thread.join(60)
    assert line._places == {}
    with pytest.raises(BudgetError, match="this very thread"), ledger.reading(), ledger.reading():
        pass
    assert line._places == {}


def test_nothing_of_an_interrupt_is_left_in_this_thread():
    """See `in_a_thread_of_its_own`: other tests look at ``__context__``."""
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    assert caught.value.__context__ is None
    assert sys.exception() is None
