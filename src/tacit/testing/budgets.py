"""What a budget promises on every ledger, as a pytest class to subclass.

::

    class TestMyBudgets(BudgetContract):
        ledger_class = MyLedger

        @pytest.fixture
        def address(self, tmp_path):
            return f"mine://{tmp_path}/new"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from tacit.budget import Budget, BudgetRequest, Lease, Receipt, RetryKey
from tacit.budget.accountants import SumAccountant
from tacit.budget.answers import Telling
from tacit.budget.ledger import PRICED, TableIdentity
from tacit.budget.spending import beginning
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    KeyReused,
    LedgerUnwritable,
    StreamEnded,
    StreamHeld,
    TableMismatch,
)
from tacit.privacy import Cost, Privacy
from tacit.testing.ledgers import OnALedger, amount
from tacit.testing.watched_ledger import POINTS, WatchedLedger, failing_at

_BINDING = {"table": "visits", "recipe": "book"}
_PRICED = {**_BINDING, PRICED: "4"}  # where each ⊤ has a price


class BudgetContract(OnALedger):
    """What a budget promises, whatever ledger it is kept in.  A subclass gives the ledger."""

    @pytest.fixture
    def watched(self, address: str) -> Iterator[WatchedLedger]:
        """The ledger of a budget that promises ε = 1 to the people of visits and labs."""
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
        """Use a stream to its end on a disk that fails at one point every other time."""
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

    def test_a_price_is_reserved_before_it_is_paid(self, budget: Budget) -> None:
        lease = _opened(budget, at_most=12, binding=_PRICED)
        assert (lease.reserved, lease.tops_left) == (1, 12)
        _ask(lease, "one", price=5)
        assert (lease.reserved, lease.tops_left, lease.tops_used) == (5, 7, 5)
        _ask(lease, "two", price=3)  # less than is reserved, which is lowered with the record
        assert (lease.reserved, lease.tops_left) == (3, 4)
        lease.suspend()
        lease = _resumed(budget, binding=_PRICED)
        assert (lease.reserved, lease.tops_left) == (1, 4)
        with lease.turn(), pytest.raises(BadParameter):
            lease.reserve(5)  # more than is left
        _ask(lease, "three", price=4)
        assert lease.halted
        assert list(lease.answers) == ["one", "two", "three"]
        prices = [entry.body.get("price") for entry in budget.history if entry.kind == "top"]
        assert prices == [5, 3, 4]
        budget.verify()

    def test_an_unclean_end_loses_all_that_is_reserved(self, budget: Budget) -> None:
        lease = _opened(budget, at_most=12, binding=_PRICED)
        with lease.turn():
            lease.reserve(7)
        with pytest.raises(BadParameter), lease.turn():
            lease.record_top({"above": True}, question_key="q", price=8)  # not reserved
        assert not lease.alive
        lease = _resumed(budget, binding=_PRICED)
        state = budget.stream("flu")
        assert (state.tops, state.lost, state.reserved, lease.tops_left) == (0, 7, 1, 5)
        budget.verify()

    @pytest.mark.parametrize("fails_at", POINTS)
    @pytest.mark.parametrize("act", ["reserve", "record top", "resume", "suspend"])
    def test_wherever_a_write_fails_no_price_is_forgotten(
        self, budget: Budget, watched: WatchedLedger, act: str, fails_at: str
    ) -> None:
        """Whatever was drawn is on record or lost, with its price, and all of it was paid for."""
        calls = 0
        fail = failing_at(f"{act}: {fails_at}")

        def fail_now_and_then(point: str) -> None:
            nonlocal calls
            calls += point == f"{act}: {fails_at}"
            if calls % 2:
                fail(point)

        lease: Lease | None = _opened(budget, at_most=20, binding=_PRICED)
        watched.reached = fail_now_and_then
        drawn: dict[str, int] = {}
        for number in range(100):
            try:
                if lease is None:
                    lease = _resumed(budget, binding=_PRICED)
                key, price = f"q{number}", min(1 + number % 3, lease.tops_left)
                with lease.turn():
                    lease.reserve(price)
                    drawn[key] = price  # its coin; from here on somebody may know that it is above
                    lease.record_top({"above": True}, question_key=key, price=price)
                lease.suspend()
                lease = None
            except LedgerUnwritable:
                lease = None
            except StreamEnded:
                break
        watched.reached = lambda point: None
        state = budget.stream("flu")
        on_record = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
        assert state.tops == sum(drawn[key] for key in on_record)
        assert state.lost >= sum(price for key, price in drawn.items() if key not in on_record)
        assert sum(drawn.values()) <= state.at_most == state.tops_used
        budget.verify()

    def test_the_same_key_brings_the_same_answer_and_costs_nothing(self, budget: Budget) -> None:
        first = _charge(budget, "monday")
        assert first.before is None
        assert budget.keep(first.number, {"told": 12}) == {"told": 12}
        again = _charge(budget, "monday")
        assert again.number == first.number
        assert again.before is not None
        assert again.before.response == {"told": 12}
        assert budget.keep(first.number, {"told": 13}) == {"told": 12}  # the first stays
        assert _charge(budget, "tuesday").before is None
        assert _charge(budget, "monday", caller="bob").before is None
        assert _charge(budget, "monday", call="visits.sum").before is None
        assert budget.spent == amount("4/10")
        head = budget.head
        with pytest.raises(KeyReused):
            _charge(budget, "monday", request="another")
        assert budget.head == head
        budget.verify()

    @pytest.mark.parametrize("fails_at", POINTS)
    @pytest.mark.parametrize("act", ["charge", "answer"])
    def test_wherever_a_keyed_write_fails_it_is_paid_once_and_told_once(
        self, budget: Budget, watched: WatchedLedger, act: str, fails_at: str
    ) -> None:
        calls, told = 0, []
        fail = failing_at(f"{act}: {fails_at}")

        def fail_at_first(point: str) -> None:
            nonlocal calls
            calls += point == f"{act}: {fails_at}"
            if calls == 1:
                fail(point)

        watched.reached = fail_at_first
        for draw in range(3):
            try:
                paid = _charge(budget, "monday")
                before = None if paid.before is None else paid.before.response
                told.append(before or budget.keep(paid.number, {"told": draw}))
            except LedgerUnwritable:
                continue
        assert len(told) == 2
        assert told[0] == told[1]
        assert budget.spent == amount("1/10")
        assert [answer.response for answer in budget.answers] == told[:1]
        budget.verify()

    @pytest.mark.parametrize("fails_at", POINTS)
    @pytest.mark.parametrize("above", [True, False])
    def test_what_a_stream_tells_under_a_key_is_kept_or_the_stream_ends(
        self, budget: Budget, watched: WatchedLedger, *, above: bool, fails_at: str
    ) -> None:
        lease = _opened(budget, at_most=4)
        telling = Telling(_key("first"), {"above": above}, room=900)

        def tell(key: str) -> None:
            with lease.turn():
                record = lease.record_top if above else lease.record_told
                record({"above": above}, question_key=key, telling=telling)

        tell("one")
        paid = lease.asked(telling.retry)
        assert paid is not None
        assert (paid.response, paid.stream) == ({"above": above}, "flu")
        telling = replace(telling, retry=_key("second"))
        watched.reached = failing_at(f"record {'top' if above else 'told'}: {fails_at}")
        with pytest.raises(LedgerUnwritable):
            tell("two")
        watched.reached = lambda point: None
        assert not lease.alive
        lease = _resumed(budget)
        recorded = fails_at == "committed"
        again = lease.asked(telling.retry)
        assert (again is not None) is recorded
        state = budget.stream("flu")
        assert (state.tops, state.lost) == ((1 + recorded) * above, 1)
        with pytest.raises(KeyReused):
            lease.asked(_key("first", request="another"))
        budget.verify()

    @pytest.mark.parametrize("fails_at", POINTS)
    def test_wherever_its_write_fails_a_request_for_more_is_granted_once(
        self, budget: Budget, watched: WatchedLedger, fails_at: str
    ) -> None:
        def at_last(act: str, *given: object, **more: object) -> BudgetRequest:
            """Do it while its write fails, and then until it is done, and once more."""
            point = {"ask": "request", "approve": "share"}.get(act, act)
            do: Callable[..., BudgetRequest] = getattr(budget.requests, act)
            watched.reached = failing_at(f"{point}: {fails_at}")
            with pytest.raises(LedgerUnwritable):
                do(*given, **more)
            watched.reached = lambda point: None
            done = do(*given, **more)
            assert do(*given, **more) == done
            return done

        for reason, act in (("first", "approve"), ("second", "decline"), ("third", "approve")):
            asked = at_last("ask", "ana", epsilon="1/10", reason=reason)
            assert at_last(act, asked.number).status.startswith(act)
        assert [one.limit for one in budget.shares if one.analyst == "ana"] == [amount("1/5")]
        assert [one.reason for one in budget.requests] == ["first", "second", "third"]
        budget.verify()

    def test_a_key_opens_one_stream(self, budget: Budget) -> None:
        lease = _opened(budget, at_most=3, retry=_key("first"))
        with pytest.raises(KeyReused, match="'flu'"):
            _opened(budget, at_most=3, retry=_key("first"))
        assert budget.spent == amount("1/10")
        found = budget.answers.under(_key("first"))
        assert found is not None
        assert (found.stream, found.response) == (lease.name, None)
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


def _key(
    key: str, *, caller: str = "ana", call: str = "visits.count", request: str = "smoker"
) -> RetryKey:
    return RetryKey(key, caller, call, {"question": request})


def _charge(budget: Budget, key: str, **scope: str) -> Receipt:
    retry = _key(key, **scope)
    return budget.charge(Cost.pure("1/10"), table="visits", what="a count", retry=retry)


def _opened(
    budget: Budget,
    *,
    at_most: int,
    retry: RetryKey | None = None,
    binding: Mapping[str, str] | None = None,
) -> Lease:
    return budget.open_stream(
        "flu",
        cost=Cost.pure("1/10"),
        table="visits",
        at_most=at_most,
        binding=_BINDING if binding is None else binding,
        secret=b"threshold 0",
        retry=retry,
    )


def _resumed(budget: Budget, *, binding: Mapping[str, str] | None = None) -> Lease:
    bound = _BINDING if binding is None else binding
    return budget.resume_stream("flu", binding=bound, after_loss=lambda secret: secret + b"'")


def _ask(lease: Lease, key: str, *, secret: bytes | None = None, price: int = 1) -> None:
    """Record a question that is above the threshold."""
    with lease.turn():
        if price > lease.reserved:
            lease.reserve(price)
        lease.record_top({"above": True}, question_key=key, secret=secret, price=price)


def _asked_until_it_ends(budget: Budget) -> tuple[list[str], list[str]]:
    """The questions whose coins were drawn, and those whose answers were shown, over all leases."""
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
            lease = None  # dropped without being suspended, as after a crash
        except StreamEnded:
            return drawn, released
    pytest.fail("the stream never ended")
