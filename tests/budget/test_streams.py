"""Leases: what a stream may do, and when it may not."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget.common import BINDING, abandon, ask, lost_by_resuming, open_stream, resume

from tacit.budget import Budget, Lease, RetryKey
from tacit.budget.answers import Telling
from tacit.errors import (
    BadParameter,
    BudgetError,
    StreamEnded,
    StreamHeld,
    StreamMismatch,
)
from tacit.privacy import Cost


def test_a_stream_is_paid_in_full_when_it_is_opened(budget):
    lease = open_stream(budget, at_most=2)
    assert budget.spent.epsilon.limit_denominator() == Cost.pure("1/10").privacy.epsilon
    assert (lease.tops_left, lease.halted, lease.alive) == (2, False, True)
    assert budget.stream("flu").reserved
    lease.close()
    assert budget.spent == budget.whole.spent
    assert budget.left.epsilon == 1 - Cost.pure("1/10").privacy.epsilon  # nothing is refunded


def test_it_halts_at_its_last_answer_and_stays_so(budget):
    lease = open_stream(budget, at_most=2)
    ask(lease, "a")
    ask(lease, "b", above=False)
    halted_early = lease.halted
    assert not halted_early
    ask(lease, "c")
    assert lease.halted
    assert lease.tops_left == 0
    with pytest.raises(StreamEnded, match="last answer above"):
        ask(lease, "d", above=False)
    with pytest.raises(StreamEnded, match="halted and stays so"):
        resume(budget)
    lease.suspend()  # no harm
    lease.close()
    assert budget.stream("flu").status == "halted"
    budget.verify()


def test_suspend_returns_the_reservation_and_resume_takes_it_again(budget):
    lease = open_stream(budget, at_most=2)
    ask(lease, "a", secret=b"threshold 1")
    lease.suspend()
    assert (budget.stream("flu").status, budget.stream("flu").reserved) == ("suspended", False)
    with pytest.raises(StreamEnded, match="suspended; resume it"):
        ask(lease, "b", above=False)
    for _ in range(5):
        lease = resume(budget)
        assert lease.secret == b"threshold 1"
        assert lease.answers == {"a": {"above": True}}
        ask(lease, "b", above=False)
        lease.suspend()
        lease.suspend()
    assert lost_by_resuming(budget) == 0
    assert budget.stream("flu").tops == 1
    budget.verify()


def test_a_recorded_answer_is_shown_again_and_not_recorded_twice(budget):
    lease = open_stream(budget)
    assert lease.answers == {}
    with lease.turn():
        lease.record_top({"value": "1204", "gap": None}, question_key="a")
    assert lease.answers == {"a": {"value": "1204", "gap": None}}
    lease.suspend()
    lease = resume(budget)
    assert lease.answers == {"a": {"value": "1204", "gap": None}}
    with pytest.raises(BadParameter, match="on record already"):
        ask(lease, "a")
    with pytest.raises(TypeError):
        lease.answers["b"] = {}  # type: ignore[index]


def test_an_unclean_end_loses_the_reserved_answer(budget):
    lease = open_stream(budget, at_most=3)
    ask(lease, "a", secret=b"threshold 1")
    abandon(lease)
    lease = resume(budget)
    assert (budget.stream("flu").lost, lease.tops_left) == (1, 1)
    assert lease.secret == b"threshold 2"  # the lost answer is taken to have been given
    lease.suspend()
    assert resume(budget).secret == b"threshold 2"  # and that is durable
    budget.verify()


def test_when_the_last_one_is_lost_the_stream_halts(budget):
    lease = open_stream(budget, at_most=1)
    abandon(lease)
    with pytest.raises(StreamEnded, match="0 of 1 answers above were given, 1 lost"):
        resume(budget)
    assert budget.stream("flu").status == "halted"
    with pytest.raises(StreamEnded):
        resume(budget)
    budget.verify()


def test_no_number_of_unclean_ends_grants_more_than_was_paid_for(budget):
    abandon(open_stream(budget, at_most=5))
    granted = 0
    while True:
        try:
            lease = resume(budget)
        except StreamEnded:
            break
        granted += 1
        abandon(lease)
    assert granted == 4  # the first went with the opening


def test_a_lease_that_is_dropped_is_free_again(budget):
    open_stream(budget)
    assert lost_by_resuming(budget) == 1  # it did not leave cleanly


def test_an_error_inside_a_turn_ends_the_lease(budget):
    lease = open_stream(budget, at_most=3)
    with pytest.raises(KeyboardInterrupt), lease.turn():
        raise KeyboardInterrupt  # after the coin, before the record: who knows what it told
    assert not lease.alive
    with pytest.raises(StreamEnded, match="at the price of the answer that was reserved"):
        ask(lease, "b", above=False)
    lease.suspend()  # must not return what may have been seen
    assert budget.stream("flu").reserved
    with pytest.raises(StreamEnded):
        lease.close()
    assert lost_by_resuming(budget) == 1
    budget.verify()


@pytest.mark.parametrize(
    ("error", "evaluated", "lost"),
    [
        (ValueError, False, 1),  # whether it failed may depend on somebody's row
        (KeyboardInterrupt, False, 0),  # which depends on whoever sent it
        (ValueError, True, 1),
        (KeyboardInterrupt, True, 1),  # the coin may have been tossed
    ],
)
def test_what_ends_an_evaluation(budget, error, evaluated, lost):
    lease = open_stream(budget, at_most=3)

    def stumble() -> None:
        with lease.turn(evaluating=True) as turn:
            if evaluated:
                turn.evaluated()
            raise error

    with pytest.raises(error):
        stumble()
    assert lease.alive is not bool(lost)
    lease.suspend()
    assert lost_by_resuming(budget) == lost
    budget.verify()


def test_an_answer_is_recorded_with_its_time_and_label(budget):
    lease = open_stream(budget)
    for key, as_of in (("a", None), ("b", "2026-11-01")):
        with lease.turn():
            lease.record_top({"above": True}, question_key=key, as_of=as_of)
    tops = [entry.body for entry in budget.history if entry.kind == "top"]
    assert ["as_of" in top for top in tops] == [False, True]
    kept = {"a": (tops[0]["at"], None), "b": (tops[1]["at"], "2026-11-01")}
    assert dict(lease.recorded) == kept
    lease.suspend()
    assert dict(resume(budget).recorded) == kept
    budget.verify()


def test_an_error_that_is_swallowed_inside_a_turn_ends_it_too(budget):
    lease = open_stream(budget)
    with lease.turn():
        with pytest.raises(BadParameter, match="answer"):
            lease.record_top({"not json": object()}, question_key="a")
        with pytest.raises(BudgetError):
            lease.record_top({}, question_key="b")
    assert not lease.alive
    assert lost_by_resuming(budget) == 1


def test_an_error_after_the_last_answer_loses_nothing(budget):
    lease = open_stream(budget, at_most=1)

    def ask_and_stumble() -> None:
        with lease.turn():
            lease.record_top({}, question_key="a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_and_stumble()
    assert lease.halted
    assert (budget.stream("flu").tops, budget.stream("flu").lost) == (1, 0)


@pytest.mark.parametrize(
    "wrong", [{"question_key": 5}, {"question_key": ""}, {"question_key": "a", "secret": 5}]
)
def test_an_answer_that_cannot_be_recorded_ends_the_lease(budget, wrong):
    lease = open_stream(budget)

    def ask_wrongly() -> None:
        with lease.turn():
            lease.record_top({"above": True}, **wrong)

    with pytest.raises(BadParameter):
        ask_wrongly()
    assert not lease.alive
    assert lost_by_resuming(budget) == 1


def test_answers_are_recorded_in_turn_only(budget):
    lease = open_stream(budget)
    with pytest.raises(BudgetError, match=r"inside lease.turn"):
        lease.record_top({}, question_key="a")
    assert lease.alive
    with pytest.raises(BudgetError, match="at a time"), lease.turn(), lease.turn():
        pass


def test_a_batch_may_record_several_answers_in_one_turn(budget):
    lease = open_stream(budget, at_most=3)
    with lease.turn():
        for key in "abc":
            lease.record_top({"above": True}, question_key=key)
        with pytest.raises(BudgetError):
            lease.record_top({"above": True}, question_key="d")
    assert lease.halted
    assert list(lease.answers) == ["a", "b", "c"]
    budget.verify()


def test_one_holder(budget):
    lease = open_stream(budget)
    with pytest.raises(StreamHeld, match="held by another"):
        resume(budget)
    assert lease.alive
    ask(lease, "a")
    assert budget.stream("flu").lost == 0


def test_a_stolen_stream_refuses_its_old_holder(budget):
    """Should a hold ever fail, compare-and-swap still lets nobody see more than was paid for."""
    first = open_stream(budget, at_most=3)
    assert first._hold is not None
    first._hold.release()  # as if somebody had removed the lock file
    second = resume(budget)
    assert budget.stream("flu").lost == 1  # what the first holder could still see is paid for
    with pytest.raises(StreamHeld, match="taken over"):
        ask(first, "a")
    assert not first.alive
    ask(second, "b")
    ask(second, "c")
    assert second.halted
    budget.verify()


@pytest.mark.parametrize(
    "binding",
    [
        {"table": "visits"},
        {"table": "visits", "recipe": "best"},
        {"table": "visits", "recipe": "book", "kind": "any"},
        {},
    ],
)
def test_it_resumes_with_what_it_was_opened_with_and_nothing_else(budget, binding):
    open_stream(budget).suspend()
    before = budget.head
    with pytest.raises(StreamMismatch, match="opened with"):
        budget.resume_stream("flu", binding=binding, after_loss=bytes)
    assert budget.head == before
    resume(budget)
    assert budget.stream("flu").binding == BINDING


def test_a_stream_that_is_not_there(budget):
    with pytest.raises(BadParameter, match="no stream has this name"):
        resume(budget, "measles")


def test_names_are_unique_for_ever_and_made_up_if_not_given(budget):
    first = open_stream(budget, None)
    assert first.name == "stream-1"
    first.close()
    with pytest.raises(BadParameter, match="exists"):
        open_stream(budget, "stream-1")
    open_stream(budget, "stream-3")
    assert open_stream(budget, None).name == "stream-3'"
    assert [state.name for state in budget.streams()] == ["stream-1", "stream-3", "stream-3'"]
    assert [state.status for state in budget.streams()] == ["closed", "live", "live"]


def test_a_failing_after_loss_changes_nothing(budget):
    abandon(open_stream(budget))
    before = budget.head

    def fail(secret):
        raise RuntimeError("no coins")

    with pytest.raises(RuntimeError):
        resume(budget, after_loss=fail)
    assert budget.head == before
    assert lost_by_resuming(budget) == 1


def test_secrets_are_forgotten_when_a_stream_ends(budget):
    halts, closes = open_stream(budget, "a", at_most=1), open_stream(budget, "b")
    ask(halts, "q")
    closes.close()
    with budget._ledger.reading() as reader:
        assert reader.secrets() == []
    for lease in (halts, closes):
        with pytest.raises(StreamEnded):
            lease.secret  # noqa: B018


def test_many_streams_interleaved(budget):
    leases = [open_stream(budget, f"s{i}", at_most=2) for i in range(5)]
    for turn in range(2):
        for lease in leases:
            ask(lease, f"q{turn}")
    assert all(lease.halted for lease in leases)
    assert budget.spent.epsilon * 2 == 1
    budget.verify()


def test_a_stream_in_a_share(budget):
    budget.share("ana", epsilon="1/8")
    lease = open_stream(budget, analyst="ana")
    assert budget.stream(lease.name).analyst == "ana"
    assert budget.shares[1].spent.epsilon == Cost.pure("1/10").privacy.epsilon


def test_closing_the_budget_suspends_its_streams(budget):
    lease = open_stream(budget)
    budget.close()
    assert not lease.alive
    assert "visits: suspended" in repr(lease)


def test_below_writes_nothing(tmp_path, make):
    budget = make()
    lease = open_stream(budget)
    head, seen = budget.head, []
    budget._ledger.writing = lambda what: seen.append(what)  # any write would show
    sizes = {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in tmp_path.iterdir()}
    for number in range(1000):
        ask(lease, f"q{number}", above=False)
    assert seen == []
    assert budget.head == head
    after = {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in tmp_path.iterdir()}
    assert after == sizes
    del budget._ledger.writing


def test_threads_ask_each_question_once_and_halt_once(budget):
    lease = open_stream(budget, at_most=10)
    outcomes: list[str] = []

    def ask_many(number: int) -> None:
        for i in range(6):
            key = f"{number}-{i}"
            try:
                ask(lease, key, above=i % 2 == 0)
                outcomes.append("above" if i % 2 == 0 else "below")
            except StreamEnded:
                outcomes.append("ended")

    threads = [threading.Thread(target=ask_many, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes.count("above") == 10
    assert len(outcomes) == 48
    assert lease.halted
    state = budget.stream("flu")
    assert (state.tops, state.lost) == (10, 0)
    tops = [entry.body["top"] for entry in budget.history if entry.kind == "top"]
    assert tops == list(range(1, 11))
    budget.verify()


def test_a_lease_shows_no_secret(budget):
    lease = open_stream(budget, secret=b"very secret 7")
    assert "very secret" not in repr(lease) + str(lease) + repr(budget.stream("flu"))
    assert "very secret" not in "".join(entry.text for entry in budget.history)


# As they stood earlier ----------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(["top", "told", "leave", "vanish", "close", "charge"]), max_size=12)
)
@settings(max_examples=60, deadline=None)
def test_streams_can_be_shown_as_they_stood_after_any_entry(steps):
    """Against what was seen after each entry, of two streams that take turns."""
    with Budget.in_memory(epsilon=9, covers=["visits"]) as budget:
        seen = {len(budget.history): budget.streams()}
        leases: dict[str, Lease] = {}
        for number, step in enumerate(steps):
            name = "odd" if number % 2 else "even"
            known = {state.name: state for state in budget.streams()}
            if step == "charge":
                budget.charge(Cost.pure("1/100"), table="visits", what="count")
            elif name not in known:
                leases[name] = open_stream(budget, name, at_most=2)
            elif name not in leases:
                if not known[name].ended:
                    with suppress(StreamEnded):
                        leases[name] = resume(budget, name)
            else:
                move(leases, name, step, str(number))
            seen[len(budget.history)] = budget.streams()
        for after, states in seen.items():
            assert budget.streams(up_to=after) == states


def move(leases: dict[str, Lease], name: str, step: str, key: str) -> None:
    lease = leases[name]
    match step:
        case "top":
            ask(lease, key)
        case "told":
            retry = RetryKey(key, None, "ask", key)
            with lease.turn():
                telling = Telling(retry, {"above": False}, room=600)
                lease.record_told({"above": False}, question_key=key, telling=telling)
        case "leave":
            lease.suspend()
        case "vanish":
            abandon(lease)
        case "close":
            lease.close()
    if step in ("leave", "vanish", "close") or lease.halted:
        del leases[name]


def test_up_to_must_be_a_number_of_entries(budget):
    with pytest.raises(BadParameter, match="up_to"):
        budget.streams(up_to=-1)
    assert budget.streams(up_to=0) == []
