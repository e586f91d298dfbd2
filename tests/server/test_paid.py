"""Answers that were paid for: who sees which, and not before they have left."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.conftest import served
from tests.server.test_departures import World, play

__all__ = ["play"]  # a fixture

import tacit
from tacit import Budget, wire
from tacit.budget import RetryKey
from tacit.errors import BadParameter
from tacit.privacy import Cost
from tacit.server import app, messages
from tacit.server.clock import PERIODS
from tacit.server.endpoints import ENDPOINTS, Endpoint
from tacit.server.paid import PaidIndex
from tacit.server.tokens import Role, TokenRecord


def bearer(role: Role, share: str | None = None, *tables: str) -> TokenRecord:
    made = datetime.now(UTC).isoformat()
    of = tables or None
    return TokenRecord(
        name="x", sha256="0" * 64, role=role, tables=of, share=share, made=made, expires=None
    )


# Which are whose --------------------------------------------------------------------------------


def spend(budget: Budget, step: str, number: int) -> None:
    analyst = ("ana", "ben", None)[number % 3]
    table = ("visits", "labs")[number % 2]
    keyed = "keyed" in step
    retry = RetryKey(str(number), analyst, "count", number) if keyed else None
    paid = budget.charge(
        Cost.pure("1/1000"), table=table, what="count", analyst=analyst, retry=retry
    )
    if "kept" in step:
        budget.keep(paid.number, {"number": number})
    elif "late" in step and number > 1:  # an earlier charge is answered after this one
        earlier = next(one for one in budget.history if one.kind == "charge")
        budget.keep(earlier.number, {"late": True})


@given(st.lists(st.sampled_from(["charge", "kept", "keyed", "keyed and kept", "late"])))
@settings(max_examples=60, deadline=None)
def test_the_index_agrees_with_all_answers_of_the_budget(steps):
    with Budget.in_memory(epsilon=9, covers=["visits", "labs"]) as budget:
        for analyst in ("ana", "ben"):
            budget.share(analyst, epsilon=1)
        index = PaidIndex(budget)
        for number, step in enumerate(steps):
            spend(budget, step, number)
            if number % 4 == 0:  # it grows with the history
                index.after(0, shown=len(budget.history), who=bearer("steward"))
        end = len(budget.history)
        answers = list(budget.answers)
        for after in (0, 5, end):
            for who, mine in (
                (bearer("steward"), lambda one: True),
                (bearer("viewer", None, "labs"), lambda one: one.table == "labs"),
                (bearer("analyst", "ana"), lambda one: one.analyst == "ana"),
                (bearer("analyst", None), lambda one: False),
                (
                    bearer("analyst", "ben", "visits"),
                    lambda one: one.analyst == "ben" and one.table == "visits",
                ),
            ):
                due = [one.number for one in answers if mine(one) and one.number > after]
                assert index.after(after, shown=end, who=who) == due


def as_line(value: Any) -> str | None:
    return None if value is None else wire.to_line(value)


# Over HTTP --------------------------------------------------------------------------------------


def test_everybody_is_shown_what_they_may_see(tmp_path):
    with (
        served(tmp_path) as server,
        Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.open(tmp_path / "visits.csv", person="pid", as_of="2026-11-01") as visits,
        tacit.open(tmp_path / "labs.csv", person=tacit.EACH_ROW) as labs,
    ):
        budget.share("ben", epsilon=1)
        pays: dict[str, Any] = {"epsilon": "1/10", "budget": budget}
        count = visits.count("age > 30", analyst="ana", **pays)
        histogram = visits.histogram("town", max_rows=1, **pays)
        other = labs.count("age > 40", analyst="ben", **pays)
        stream = visits.sparse(
            threshold=100, at_most=2, name="watch", analyst="ana", budget=budget, epsilon=1
        )
        below = stream.ask("age > 200", retry_key="first")
        stream.suspend()
        key = RetryKey("never", "ana", "count", 1)
        budget.charge(Cost.pure("1/10"), table="labs", what="lost", analyst="ana", retry=key)

        def told(name: str) -> list[Any]:
            with tacit.connect(server.url, token=server.tokens[name]) as clinic:
                return [(one.analyst, as_line(one.value)) for one in clinic.answers]

        paid = ("ana", count), (None, histogram), ("ben", other), ("ana", below), ("ana", None)
        due = [(analyst, as_line(value)) for analyst, value in paid]
        assert told("ana") == [due[0], due[3], due[4]]
        assert told("ben") == [due[2]]
        assert told("vera") == [(None, line) for _, line in due[:-1]]
        assert told("boss") == due
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            first, *_ = clinic.answers
            assert first == wire.paid_summary(budget.answers[first.number])
            assert clinic.answers[first.number] == first
            elsewhere = [one.number for one in budget.answers.of("ben")]
            for number in (*elsewhere, 0, 10**6, -1, "1", 2**70):
                with pytest.raises(BadParameter, match="number"):
                    clinic.answers[number]  # type: ignore[index]


def test_they_come_in_pages(tmp_path):
    with served(tmp_path) as server, Budget.open(tmp_path / "clinic.budget") as budget:
        for number in range(7):
            paid = budget.charge(Cost.pure("1/100"), table="visits", what="it", analyst="ana")
            budget.keep(paid.number, {"tacit verified": 1, "entries": number, "head": ""})
        numbers = [one.number for one in budget.answers]
        for most in (1, 3, 7, 8):
            found: list[int] = []
            more = True
            while more:
                asked = {"after": found[-1] if found else 0, "most": most}
                got = server.ask("POST", "/v1/answers", asked).json
                more = got["more"]
                assert len(got["answers"]) == most or not more
                found += [one["number"] for one in got["answers"]]
            assert found == numbers
        large = budget.charge(Cost.pure("1/100"), table="visits", what="large", analyst="ana")
        budget.keep(large.number, {"text": "x" * 3_000_000})
        budget.keep(
            budget.charge(Cost.pure("1/100"), table="visits", what="it", analyst="ana").number,
            {"text": "after it"},
        )
        got = server.ask("POST", "/v1/answers", {"after": numbers[-1]}).json
        assert (len(got["answers"]), got["more"]) == (1, True)  # alone, since it is large
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            assert [one.number for one in clinic.answers][:7] == numbers
            assert len(list(clinic.answers)) == 9
        for wrong in ({"after": -1}, {"most": 0}, {"most": 1001}, {"of": "ben"}):
            assert server.ask("POST", "/v1/answers", wrong).status == 400


# Not before they have left ----------------------------------------------------------------------


def spending(service: Any, who: TokenRecord, asked: messages.PriceOf) -> messages.Healthy:
    """Something that charges and tells, as a release would."""
    key = RetryKey(str(asked.epsilon), "ana", "count", 1)
    paid = service.budget.charge(
        Cost.pure("1/100"), table="visits", what="it", analyst="ana", retry=key
    )
    service.budget.keep(paid.number, {"tacit verified": 1, "entries": 1, "head": ""})
    return messages.Healthy()


def test_an_answer_is_in_no_list_before_it_has_left(play, monkeypatch):
    toy = Endpoint(
        method="POST",
        path="/v1/toy",
        summary="",
        kind="toy",  # type: ignore[arg-type]
        takes=messages.PriceOf,
        gives=messages.Healthy,
        answer=spending,
    )
    monkeypatch.setattr(app, "ENDPOINTS", (*ENDPOINTS, toy))
    monkeypatch.setitem(PERIODS, "toy", 1)

    async def scene(world: World) -> None:
        budget = world.app.service.budget
        budget.share("ana", epsilon="1/2")
        assert (await world.ask("POST", "/v1/toy", {"epsilon": 1}))[0] == 200
        world.clock.held = True
        asked = asyncio.ensure_future(world.ask("POST", "/v1/toy", {"epsilon": 2}))
        while len(list(budget.answers)) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert not asked.done()  # it is on the disk, and has not left

        look = asyncio.ensure_future(world.ask("POST", "/v1/answers", {}))
        await asyncio.sleep(0.05)
        world.clock.release()
        _, _, said = await look
        assert len(said["answers"]) == 1
        await asked
        _, _, said = await world.ask("POST", "/v1/answers", {})
        assert len(said["answers"]) == 2
        assert all(one["response"] for one in said["answers"])

    play(scene)


def test_what_was_charged_before_and_told_meanwhile_is_not_shown_as_told():
    from tacit.server.paid import _shown
    from tacit.server.underway import Underway

    with Budget.in_memory(epsilon=1, covers=["visits"]) as budget:
        underway = Underway(budget)
        paid = budget.charge(Cost.pure("1/10"), table="visits", what="it")
        left = underway.begin()
        also_left = underway.begin()
        budget.keep(paid.number, {"tacit verified": 1, "entries": 1, "head": ""})
        assert _shown(budget, paid.number, underway.shown()).response is None
        left()
        left()  # twice does no harm
        assert underway.shown() == paid.number
        also_left()
        assert underway.shown() == len(budget.history)
        assert _shown(budget, paid.number, underway.shown()).response is not None
