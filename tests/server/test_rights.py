"""Rights name every table that a request, a stream or an answer touches; and so do stops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Running, started
from tests.server.test_joins import clinic

from tacit import Budget
from tacit.budget import Lease
from tacit.errors import BadParameter, NotAuthorised, NotCovered
from tacit.server import desk, messages, releases, streams
from tacit.server.config import read_config
from tacit.server.rights import tables_of_entry
from tacit.server.service import Service, list_tokens
from tacit.server.stopped import StoppedFile
from tacit.server.tokens import TokenFile

JOINED = "town = 'Bruges' and pid in (select pid from labs)"
PLAIN = "town = 'Bruges'"
CALM: dict[str, Any] = {"epsilon": 1000, "questions": 10}


def tokens_of(folder: Path) -> dict[str, str]:
    """Some for all tables, and some of the same shares and roles for one table."""
    file = TokenFile(folder / "clinic.budget-tokens")
    return {
        "ana": file.add("ana", share="ana"),
        "ann": file.add("ann", share="ana", tables=["visits"]),
        "ben": file.add("ben", share="ben", tables=["labs"]),
        "vera": file.add("vera", role="viewer"),
        "vic": file.add("vic", role="viewer", tables=["visits"]),
        "boss": file.add("boss", role="steward"),
        "bob": file.add("bob", role="steward", tables=["visits"]),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("rights")
    config = clinic(folder)
    with started(config, tokens_of(folder)) as running:
        yield running


def asked(server: Running, path: str, who: str, **body: Any) -> Any:
    return server.ask("POST", path, body, token=who)


def open_stream(server: Running, who: str, name: str, table: str = "visits") -> None:
    body = {"algorithm": "sparse", "threshold": 1, "at_most": 5, "epsilon": 1000, "questions": 10}
    told = asked(
        server, "/v1/streams/open", who, key=f"open {name}", table=table, name=name, **body
    )
    assert told.status == 200, told.body


def ask(server: Running, who: str, stream: str, question: str, key: str) -> Any:
    body = {"key": f"{stream} {key}", "stream": stream, "question": question}
    return asked(server, "/v1/streams/ask", who, **body)


def in_page(server: Running, who: str, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"Cookie": f"tacit={server.tokens[who]}", "Origin": server.url}
    method = "GET" if body is None else "POST"
    return server.ask(method, path, body, token=None, headers=headers)


# Streams ------------------------------------------------------------------------------------------


def test_a_stream_that_another_token_holds_gives_no_more_than_ones_own_rights(server):
    """One that may name labs is for nobody who may not ask about labs."""
    open_stream(server, "ana", "wide")
    assert ask(server, "ana", "wide", JOINED, "1").status == 200
    for question in (JOINED, PLAIN):
        assert ask(server, "ann", "wide", question, "2").status == 422
    calls: dict[str, dict[str, Any]] = {
        "/v1/streams/ask_all": {"key": "3", "questions": [{"question": JOINED}]},
        "/v1/streams/resume": {"table": "visits"},
        "/v1/streams/show": {},
        "/v1/streams/recorded": {},
        "/v1/streams/suspend": {},
        "/v1/streams/close": {},
    }
    for path, body in calls.items():
        told = asked(server, path, "ann", stream="wide", **body)
        assert told.status == 422, path
        assert "no stream has this name" in told.json["detail"]
        assert "labs" not in told.body.decode()
    assert in_page(server, "ann", "/page/stream", {"stream": "wide"}).status == 422
    body = {"stream": "wide", "question": PLAIN, "key": "4"}
    assert in_page(server, "ann", "/page/ask", body).status == 422
    for who in ("ann", "bob"):
        assert server.ask("GET", "/v1/streams", token=who).json == {"streams": []}
    assert len(server.ask("GET", "/v1/streams", token="boss").json["streams"]) == 1
    assert ask(server, "ana", "wide", JOINED, "5").status == 200


def test_a_stream_names_the_tables_that_it_was_opened_with(server):
    """Whoever may ask more does not widen a stream that others ask too."""
    open_stream(server, "ann", "narrow")
    for again in range(2):
        assert ask(server, "ana", "narrow", PLAIN, f"{again} 1").status == 200
        told = ask(server, "ana", "narrow", JOINED, f"{again} 2")
        assert told.status == 422
        assert "is not open together with visits" in told.json["detail"]
        assert ask(server, "ann", "narrow", PLAIN, f"{again} 3").status == 200
        assert asked(server, "/v1/streams/suspend", "ana", stream="narrow").status == 200


# Answers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paid(server) -> tuple[list[int], set[str]]:
    """Ana asks about visits, with and without labs: the numbers, and what names no labs."""
    before = len(listed(server, "boss"))
    about: dict[str, Any] = {"table": "visits", "epsilon": 1000}
    grouped = "select town, count(distinct pid) from visits where {} group by town"
    several = [{"question": f"age > 3 and {question}"} for question in (JOINED, PLAIN)]
    for key, question in {"joined": JOINED, "plain": PLAIN}.items():
        calls: dict[str, dict[str, Any]] = {
            "/v1/count": {"question": question},
            "/v1/query": {"query": grouped.format(question), "max_cells": 1},
            "/v1/top": {"n": 1, "questions": {"question": grouped.format(question)}},
        }
        for path, body in calls.items():
            told = asked(server, path, "ana", key=key, **about, **body)
            assert told.status == 200, told.body
    assert asked(server, "/v1/top", "ana", key="t", n=1, questions=several, **about).status == 200
    open_stream(server, "ana", "asked")
    assert ask(server, "ana", "asked", JOINED, "1").status == 200
    assert ask(server, "ana", "asked", PLAIN, "2").status == 200
    cells = {"question": "select count(distinct pid) from visits group by town"}
    for key, questions in {"list": several, "cells": cells}.items():
        batch = {"stream": "asked", "key": key, "threshold": 10**6, "questions": questions}
        assert asked(server, "/v1/streams/ask_all", "ana", **batch).status == 200
    numbers = [one["number"] for one in listed(server, "boss")][before:]
    assert len(numbers) == 11
    return numbers, {
        f"count: {PLAIN}",
        f"query: {grouped.format(PLAIN)}",
        "top 1 of 2 cells of town",
    }


def listed(server: Running, who: str) -> list[dict[str, Any]]:
    told = asked(server, "/v1/answers", who, most=1000)
    assert told.status == 200
    return list(told.json["answers"])


@pytest.mark.parametrize("who", ["ana", "vera", "boss"])
def test_whoever_may_ask_about_all_tables_sees_all_answers(server, paid, who):
    assert {one["number"] for one in listed(server, who)} >= set(paid[0])


@pytest.mark.parametrize("who", ["vic", "bob", "ann"])
def test_whoever_may_not_ask_about_a_table_sees_no_answer_that_names_it(server, paid, who):
    numbers, plain = paid
    everything = listed(server, who)
    assert "labs" not in str(everything)
    seen = [one for one in everything if one["number"] in numbers]
    assert {one["what"] for one in seen if one["stream"] is None} == plain
    assert len(seen) == 5  # and two of the stream
    for number in set(numbers) - {one["number"] for one in seen}:
        for path, more in {"/page/released": {}, "/page/save": {"format": "json"}}.items():
            assert in_page(server, who, path, {"number": number, **more}).status == 422
    for path in ["/", "/release", "/page/live"] + ["/history"] * (who != "vic"):
        assert "labs" not in in_page(server, who, path).body.decode(), path
    assert "labs" in in_page(server, "boss", "/history").body.decode()


@pytest.mark.parametrize(("who", "shown"), [("ana", 1), ("boss", 1), ("ann", 0), ("bob", 0)])
def test_whoever_does_not_see_all_payments_is_not_told_what_they_leave(server, paid, who, shown):
    """Added up without those that are hidden, more would be left than there is."""
    page = in_page(server, who, "/history").body.decode()
    assert page.count("<figcaption") == shown
    assert "Payments" in page


OLD = 'the "old" ones'
COVERED = ("visits", "labs", OLD)


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("count: pid in (select pid from labs)", {"labs"}),
        ("count: pid in (select pid from LABS where age > 3)", {"labs"}),
        (
            'query: select 1 from visits where pid in (select pid from "the ""OLD"" ones")',
            {OLD},
        ),
        ("count: town = 'Bruges'", set()),
        ("count: labs_done and relabs", set()),
        ("histogram of town", set()),
        ("top 3 of 20 questions", {"labs", OLD}),
        ("count: age > 3 and... (100001 characters)", {"labs", OLD}),
    ],
)
def test_what_0_2_wrote_names_what_its_words_name(what, names):
    """Entries of 0.2 do not say which tables they name; if their words cannot say it, all."""
    said = {"table": "visits", "what": what}
    assert tables_of_entry(said, None, COVERED) == {"visits", *names}
    assert tables_of_entry({**said, "names": ["labs"]}, None, COVERED) == {"visits", "labs"}


def test_what_0_2_wrote_in_a_stream_names_what_the_stream_could(server, paid):
    with Budget.open(server.folder / "clinic.budget") as budget:
        stream = budget.stream("asked")
    answer = {"answer": {"text": PLAIN}, "stream": "asked"}
    assert tables_of_entry(answer, stream, COVERED) == {"visits", "labs"}
    assert tables_of_entry({**answer, "names": []}, stream, COVERED) == {"visits"}
    alone = replace(stream, binding={"table": "visits"})  # as 0.1 and a narrower token opened it
    assert tables_of_entry(answer, alone, COVERED) == {"visits"}
    for text, names in {JOINED: {"labs"}, "age... (500 characters)": set(COVERED)}.items():
        told = {**answer, "answer": {"text": text}}
        assert tables_of_entry(told, alone, COVERED) == {"visits", *names}
    assert tables_of_entry({**answer, "answer": {"above": True}}, alone, COVERED) == set(COVERED)


# Stops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "http"])
def test_a_stop_holds_for_streams_that_are_held_however_it_was_made(server, how):
    name = f"stopped by {how}"
    open_stream(server, "ana", name)
    assert ask(server, "ana", name, PLAIN, "1").status == 200
    stopped = StoppedFile(server.folder / "clinic.budget-tokens")
    if how == "file":
        stopped.stop("table", "labs", by="us")
    else:
        assert asked(server, "/v1/stop", "boss", kind="table", name="labs").status == 200
    for key, question in {"2": JOINED, "3": PLAIN, "1": PLAIN}.items():
        told = ask(server, "ana", name, question, key)
        assert told.status == 403
        assert "table 'labs' is stopped for now" in told.json["detail"]
    with Budget.open(server.folder / "clinic.budget") as budget:
        while budget.stream(name).status != "suspended":  # it is not kept by who may not ask it
            pass
    stopped.go_on("table", "labs")
    assert ask(server, "ana", name, JOINED, "4").status == 200


def test_what_was_told_under_a_key_is_not_told_again_while_it_is_stopped(server):
    paid = {"table": "visits", "epsilon": 1000, "question": JOINED, "key": "one"}
    first = asked(server, "/v1/count", "ana", **paid)
    batch = {"key": "3", "questions": [{"question": PLAIN}], "stream": "again"}
    open_stream(server, "ana", "again")
    told = asked(server, "/v1/streams/ask_all", "ana", **batch)
    assert (first.status, told.status) == (200, 200)
    stopped = StoppedFile(server.folder / "clinic.budget-tokens")
    stopped.stop("table", "labs", by="us")
    assert asked(server, "/v1/count", "ana", **paid).status == 403
    assert asked(server, "/v1/streams/ask_all", "ana", **batch).status == 403
    body = {"algorithm": "sparse", "threshold": 1, "at_most": 5, "epsilon": 1000, "questions": 10}
    opening = {"key": "open again", "table": "visits", "name": "again", **body}
    assert asked(server, "/v1/streams/open", "ana", **opening).status == 403
    stopped.go_on("table", "labs")
    assert asked(server, "/v1/count", "ana", **paid).body == first.body
    assert asked(server, "/v1/streams/ask_all", "ana", **batch).body == told.body
    assert asked(server, "/v1/streams/open", "ana", **opening).status == 200


@pytest.fixture
def service(tmp_path) -> Iterator[Service]:
    config = clinic(tmp_path)
    tokens_of(tmp_path)
    with Service.open(read_config(config)) as opened:
        yield opened


STOPPED = {"table": "labs", "stream": "wide", "token": "ana"}


def stop(service: Service, what: Any) -> None:
    if what == "revoked":
        service.tokens.revoke("ana")
    else:
        service.stopped.stop(what, STOPPED[what], by="us")


def stopping_before(service: Service, what: str, done: Any) -> Any:
    """Something that the server does, and which waits until this is stopped."""

    def stopped_first(*given: Any, **more: Any) -> Any:
        stop(service, what)
        return done(*given, **more)

    return stopped_first


@pytest.mark.parametrize("what", [*STOPPED, "revoked"])
@pytest.mark.parametrize("when", ["between", "meanwhile"])
def test_a_batch_under_way_ends_whatever_was_stopped(service, what, when, monkeypatch):
    """Before the next block is asked; one that was asked meanwhile stays on record, untold."""
    who = service.tokens.records[0]
    opening = messages.OpenOf("1", "visits", "sparse", 10**6, 1000, name="wide")
    streams.open_stream(service, who, opening)
    several = 2 * service.timing.block
    questions = [messages.QuestionSent(f"age > {n % 100}") for n in range(several)]
    batch = streams.ask_all(service, who, messages.AskAllOf("2", "wide", questions))
    assert batch.next_line() is not None
    recorded = len(service.budget.history)
    if when == "between":
        stop(service, what)
    else:
        late = stopping_before(service, what, Lease.record_told)
        monkeypatch.setattr(Lease, "record_told", lambda *given, **more: late(*given, **more))
    with pytest.raises(NotAuthorised):
        batch.next_line()
    batch.close()
    assert len(service.budget.history) == recorded + (when == "meanwhile")


@pytest.mark.parametrize("what", [*STOPPED, "revoked"])
def test_an_answer_that_was_stopped_meanwhile_is_not_told(service, what, monkeypatch):
    """It stays on record, and is told under its key when it may go on."""
    who = service.tokens.records[0]
    opening = messages.OpenOf("1", "visits", "sparse", 10**6, 1000, name="wide")
    streams.open_stream(service, who, opening)
    recorded, asked = len(service.budget.history), messages.AskOf("2", "wide", PLAIN)
    late = stopping_before(service, what, Lease.record_told)
    monkeypatch.setattr(Lease, "record_told", lambda *given, **more: late(*given, **more))
    with pytest.raises(NotAuthorised):
        streams.ask(service, who, asked)
    assert len(service.budget.history) == recorded + 1
    if what != "revoked":
        service.stopped.go_on(what, STOPPED[what])
        assert streams.ask(service, who, asked).answer["above"] is False


def test_what_was_paid_for_under_a_key_is_told_to_nobody_who_may_not_ask_all_of_it(service):
    """As when a token was for all tables then, and is for some of them now."""
    who = service.tokens.records[0]
    asked = messages.CountOf("1", "visits", JOINED, 1000)
    releases.count(service, who, asked)
    narrower = replace(who, tables=("visits",))
    with pytest.raises(NotCovered, match="a table that this token may not ask"):
        releases.count(service, narrower, asked)
    plain = messages.CountOf("2", "visits", PLAIN, 1000)
    assert releases.count(service, narrower, plain).released["tacit estimate"] == 1


@pytest.mark.parametrize("what", ["table", "token"])
def test_what_was_drawn_when_it_was_stopped_is_told_when_it_goes_on(service, what, monkeypatch):
    who = service.tokens.records[0]
    asked = messages.CountOf("1", "visits", JOINED, 1000)
    late = stopping_before(service, what, Budget.keep)
    monkeypatch.setattr(Budget, "keep", lambda *given: late(*given))
    with pytest.raises(NotAuthorised):
        releases.count(service, who, asked)
    service.stopped.go_on(what, STOPPED[what])
    spent = service.budget.whole.spent
    assert releases.count(service, who, asked).released["tacit estimate"] == 1
    assert service.budget.whole.spent == spent


# Stewards -----------------------------------------------------------------------------------------


def test_a_steward_of_one_table_hears_of_no_other_and_gives_no_more_than_they_have(server):
    open_stream(server, "ben", "of ben", table="labs")
    for kind in ("table", "stream"):
        told = asked(server, "/v1/stop", "bob", kind=kind, name="nosuch")
        assert told.status == 422
        assert "labs" not in told.body.decode()
        assert "of ben" not in told.body.decode()
    for kind, name in {"table": "labs", "stream": "of ben"}.items():
        assert asked(server, "/v1/stop", "bob", kind=kind, name=name).status == 422
        assert asked(server, "/v1/stop", "boss", kind=kind, name=name).status == 200
        assert asked(server, "/v1/go_on", "bob", kind=kind, name=name).status == 422

    def stopped(who: str) -> set[str]:
        told = server.ask("GET", "/v1/stopped", token=who).json["stopped"]
        return {one["name"] for one in told if one["kind"] != "token"}

    assert stopped("bob") == set()
    assert stopped("boss") == {"labs", "of ben"}
    assert "labs" not in server.ask("GET", "/v1/tokens", token="bob").body.decode()
    assert "labs" not in in_page(server, "bob", "/steward").body.decode()
    made = {"key": "1", "name": "new", "role": "viewer"}
    assert in_page(server, "bob", "/page/token", made).status == 403
    assert in_page(server, "bob", "/page/token", {**made, "tables": ["labs"]}).status == 403
    assert in_page(server, "bob", "/page/token", {**made, "tables": ["visits"]}).status == 200
    assert in_page(server, "boss", "/page/token", {**made, "name": "any"}).status == 200
    for kind, name in {"table": "labs", "stream": "of ben"}.items():
        assert asked(server, "/v1/go_on", "boss", kind=kind, name=name).status == 200


def named(told: Any) -> set[str]:
    return {one["name"] for one in told.json["tokens"]}


def stops(server: Running, who: str) -> set[str]:
    told = server.ask("GET", "/v1/stopped", token=who).json["stopped"]
    return {one["name"] for one in told if one["kind"] == "token"}


@pytest.mark.parametrize("name", ["ana", "ben", "vera", "boss", "ben and ann"])
def test_a_steward_of_one_table_can_neither_see_nor_end_a_token_for_another(server, name):
    file = TokenFile(server.folder / "clinic.budget-tokens")
    if name not in named(server.ask("GET", "/v1/tokens", token="boss")):
        server.tokens[name] = file.add(name, share="ana", tables=["visits", "labs"])
    assert name not in named(server.ask("GET", "/v1/tokens", token="bob"))
    missing = in_page(server, "bob", "/page/revoke", {"key": "0", "name": "nosuch"})
    assert missing.status == 422
    told = in_page(server, "bob", "/page/revoke", {"key": name, "name": name})
    assert told.status == 422
    assert told.body.decode().replace(name, "nosuch") == missing.body.decode()
    assert f"'{name}'" not in missing.body.decode()
    told = asked(server, "/v1/stop", "bob", kind="token", name=name)
    assert told.status == 422
    assert f"'{name}'" not in told.json["detail"].partition("there are ")[2]
    assert server.ask("GET", "/v1/tables", token=name).status == 200
    if name != "boss":
        assert asked(server, "/v1/stop", "boss", kind="token", name=name).status == 200
        assert name in stops(server, "boss") - stops(server, "bob")
        assert server.ask("GET", "/v1/tables", token=name).status == 403
        for who, shown in {"boss": True, "bob": False}.items():
            page = in_page(server, who, "/steward").body.decode()
            assert (f"<tr><td>{name}</td>" in page) is shown  # among the tokens
            assert (f"</time></td><td>{name}</td>" in page) is shown  # among those refused lately
        assert asked(server, "/v1/go_on", "bob", kind="token", name=name).status == 422
        assert asked(server, "/v1/go_on", "boss", kind="token", name=name).status == 200


def test_a_steward_of_one_table_ends_tokens_for_that_one(server):
    made = {"key": "made", "name": "passing", "role": "viewer", "tables": ["visits"]}
    assert in_page(server, "bob", "/page/token", made).status == 200
    assert named(server.ask("GET", "/v1/tokens", token="bob")) >= {"ann", "vic", "bob", "passing"}
    assert asked(server, "/v1/stop", "bob", kind="token", name="passing").status == 200
    assert "passing" in stops(server, "bob")
    assert asked(server, "/v1/go_on", "bob", kind="token", name="passing").status == 200
    ended = {"key": "ended", "name": "passing"}
    assert in_page(server, "bob", "/page/revoke", ended).status == 200
    told = in_page(server, "bob", "/page/revoke", {**ended, "key": "again"})
    assert told.status == 422


def test_a_revoked_token_for_another_table_stays_hidden_under_a_name_that_was_given_again(service):
    """Its name is that of the last token that had it."""
    service.tokens.revoke("ben")
    service.tokens.add("ben", role="viewer", tables=["visits"])
    bob = next(one for one in service.tokens.records if one.name == "bob")
    facts = [one for one in list_tokens(service, bob).tokens if one.name == "ben"]
    assert [(one.role, one.tables) for one in facts] == [("viewer", ["visits"])]
    desk.revoke_token(service, bob, desk.TokenNamed("ben"))
    with pytest.raises(BadParameter, match="no token has this name"):
        desk.revoke_token(service, bob, desk.TokenNamed("ben"))


def test_shares_are_of_all_tables(server):
    """They may be spent on any, and are set aside from what is for all."""
    told = server.ask("GET", "/v1/budget", token="bob").json
    assert (told["shares"], told["own"]) == ([], None)
    assert "ben" in str(server.ask("GET", "/v1/budget", token="boss").json["shares"])
    share = {"key": "s", "analyst": "bob", "epsilon": 1}
    assert in_page(server, "bob", "/page/share", share).status == 403
    more = {"epsilon": 1, "reason": "labs of the old"}
    number = asked(server, "/v1/request", "ben", **more).json["request"]["number"]
    assert server.ask("GET", "/v1/requests", token="bob").json == {"requests": []}
    assert len(server.ask("GET", "/v1/requests", token="boss").json["requests"]) == 1
    for approve in (True, False):
        decision = {"number": number, "approve": approve}
        assert asked(server, "/v1/decide", "bob", **decision).status == 403
        assert in_page(server, "bob", "/page/decide", {"key": "d", **decision}).status == 403
    assert asked(server, "/v1/decide", "boss", number=number, approve=False).status == 200
    assert "may spend" in in_page(server, "boss", "/history").body.decode()
    for path in ("/", "/steward", "/history"):
        page = in_page(server, "bob", path).body.decode()
        for hidden in ("may spend", "Set a share", "Not shared", ">ben<", more["reason"]):
            assert hidden not in page, (path, hidden)


def test_a_steward_of_one_table_gives_their_own_share_to_others_and_no_other(server):
    server.tokens["cleo"] = TokenFile(server.folder / "clinic.budget-tokens").add(
        "cleo", role="steward", share="ana", tables=["visits"]
    )
    made = {"key": "1", "name": "of ana", "share": "ana", "tables": ["visits"]}
    for who, status in {"bob": 403, "cleo": 200}.items():
        assert in_page(server, who, "/page/token", made).status == status
    of_ben = {**made, "key": "2", "name": "of ben", "share": "ben"}
    assert in_page(server, "cleo", "/page/token", of_ben).status == 403
    assert server.ask("GET", "/v1/budget", token="cleo").json["own"]["analyst"] == "ana"
    assert "<option>ana</option>" in in_page(server, "cleo", "/steward").body.decode()


def test_metrics_count_what_concerns_every_table(server):
    told = server.ask("GET", "/metrics", token="bob")
    assert told.status == 403
    assert "all tables" in told.json["detail"]
    assert server.ask("GET", "/metrics", token="boss").status == 200
