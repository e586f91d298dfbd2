"""``tacit.connect``: the same words as the local table, from a server in another process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.server.conftest import Running, served

import tacit
from tacit import errors, wire
from tacit.analyst.blocks import Block
from tacit.errors import BadParameter, NotAuthorised, NotCovered, ServerUnavailable
from tacit.remote import transport


@pytest.fixture
def clinic(server: Running) -> Iterator[Any]:
    with tacit.connect(server.url, token=server.tokens["ana"]) as connection:
        yield connection


@pytest.fixture
def local(server: Running) -> Iterator[tacit.Table]:
    path = server.folder / "visits.csv"
    with tacit.open(path, person="pid", people=300, as_of="2026-11-01") as table:
        yield table


def test_a_table_has_the_face_of_the_local_one(clinic, local):
    visits = clinic.table("visits")
    for name in ("name", "schema", "people", "as_of"):
        assert getattr(visits, name) == getattr(local, name)
    assert [table.name for table in clinic.tables] == ["visits", "labs"]
    assert clinic.table("labs").schema.person is tacit.EACH_ROW


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("town = 'Ghent' and age >= 60", {}),
        ("town = :town", {"town": "Ghent"}),
        ("age between :low and :high", {"low": 3, "high": 7.5}),
        ("town is :nothing", {"nothing": None}),
        ("town = :town", {}),
        ("town = :town", {"town": 3, "other": True}),
        ("age / 2 > 3", {}),
        ("(", {}),
        ("", {}),
        ("town = '\ud800'", {}),
        ("x" * 20_000, {}),
    ],
)
def test_a_check_says_what_the_local_one_says(clinic, local, question, values):
    assert clinic.table("visits").check(question, **values) == local.check(question, **values)


def test_columns_that_cannot_be_asked_are_told_as_there(clinic, local):
    table = clinic.table("visits")
    assert table.cannot_ask == local.cannot_ask == {"tags": "it holds lists"}
    assert "it holds lists" in str(table.check("tags = 'flu'"))


def test_what_json_cannot_carry_is_refused_here(clinic):
    visits = clinic.table("visits")
    for value in (object(), b"x", float("nan"), float("inf"), {"a": 1}, [[1]]):
        with pytest.raises(BadParameter, match="town"):
            visits.check("town = :town", town=value)
    with pytest.raises(BadParameter, match="question"):
        visits.check(3)


def test_a_dummy_is_made_here_from_the_public_schema(server, clinic):
    visits = clinic.table("visits")
    before = len(server.log)
    with visits.dummy(people=200) as made, tacit.dummy(visits.schema, people=200) as same:
        assert made.schema == visits.schema
        assert made.as_of == visits.as_of
        told = made.count("age >= 0 or age is null", epsilon=20, budget=made.budget)
        assert abs(told.value - 200) < 5
        columns = ["town", "age"]
        points = [each.engine.point_counts(columns, max_rows=3) for each in (made, same)]
        rows = [each.rows().tolist() for each in points]
        assert rows[0] == rows[1]
    clinic.budget.streams()
    while not any("/v1/streams" in line for line in server.log[before:]):
        time.sleep(0.01)
    assert not any("/v1/check" in line or "/v1/count" in line for line in server.log[before:])


def test_plans_are_the_local_ones(clinic):
    numbers: dict[str, Any] = {"questions": 20, "epsilon": Fraction(1, 3)}
    several: dict[str, Any] = {**numbers, "at_most": 2, "kind": "any", "delta": "1e-9"}
    assert clinic.plan.above_threshold(**numbers) == tacit.plan.above_threshold(**numbers)
    assert clinic.plan.sparse(**several) == tacit.plan.sparse(**several)
    again: dict[str, Any] = {**several, "rounds": 5}
    assert clinic.plan.sparse(**again) == tacit.plan.sparse(**again)
    for values in ("gap", "fresh"):
        told = clinic.plan.numeric_sparse(**several, values=values)
        assert told == tacit.plan.numeric_sparse(**several, values=values)
    assert clinic.plan.numeric_sparse(**several) == tacit.plan.numeric_sparse(**several)
    for name, value in (("values", "odd"), ("kind", "odd"), ("questions", 2.5)):
        with pytest.raises(BadParameter, match=name):
            clinic.plan.numeric_sparse(**{**several, name: value})
    with pytest.raises(TypeError, match="questions"):
        clinic.plan.sparse(at_most=2, epsilon=1)
    with pytest.raises(TypeError, match="at_most"):
        clinic.plan.above_threshold(**numbers, at_most=2)
    for wrong in ({"epsilon": -1}, {"epsilon": None}, {"questions": 0}, {"beta": 2}):
        with pytest.raises(BadParameter) as here:
            tacit.plan.sparse(**{**several, **wrong})
        with pytest.raises(BadParameter) as there:
            clinic.plan.sparse(**{**several, **wrong})
        assert there.value.parameter == here.value.parameter
        assert there.value.allowed == here.value.allowed


def test_the_budget_is_as_it_stands_now(tmp_path):
    with served(tmp_path) as server, tacit.Budget.open(tmp_path / "clinic.budget") as budget:
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            assert clinic.budget.left == budget.left
            assert clinic.budget.own == budget.shares[1]
            budget.charge(tacit.Cost.pure(1), table="visits", what="a count", analyst="ana")
            assert clinic.budget.promise == budget.promise
            assert clinic.budget.covers == budget.covers
            assert clinic.budget.whole == budget.whole
            assert (clinic.budget.spent, clinic.budget.left) == (budget.spent, budget.left)
            assert clinic.budget.own == budget.shares[1]
            with tacit.open(tmp_path / "visits.csv", person="pid") as table:
                table.above_threshold(
                    threshold=100, epsilon="1/2", budget=budget, analyst="ana", name="watch"
                ).suspend()
            assert clinic.budget.streams() == list(wire.summary(budget).streams)
        with tacit.connect(server.url, token=server.tokens["vera"]) as viewer:
            assert viewer.budget.own is None
            with pytest.raises(NotAuthorised, match="this is for the role analyst or steward"):
                viewer.budget.streams()


def test_a_price_is_what_would_be_charged(tmp_path):
    with served(tmp_path) as server, tacit.Budget.open(tmp_path / "clinic.budget") as budget:
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            for epsilon, fits in ((1, True), (2, True), ("2.000001", False), ("1/3", True)):
                price = clinic.budget.price(epsilon=epsilon)
                assert (price.fits, price.left) == (fits, budget.shares[1].left)
                assert price.price.epsilon == Fraction(epsilon)
            paid = budget.charge(tacit.Cost.pure(2), table="visits", what="it", analyst="ana")
            assert clinic.budget.price(epsilon=2).price == paid.charged
            assert not clinic.budget.price(epsilon="1e-9").fits
            much = "ε = 1, δ = 0, of ε = 0, δ = 0 that is left: too much"
            assert str(clinic.budget.price(epsilon=1)) == much
            with pytest.raises(BadParameter, match="epsilon"):
                clinic.budget.price(epsilon=-1)
        with tacit.connect(server.url, token=server.tokens["boss"]) as steward:
            price = steward.budget.price(epsilon=1)
            assert (price.left, price.fits) == (None, False)
            assert str(price) == "ε = 1, δ = 0; the token draws from no share"


def test_zcdp_prices_what_it_can_charge(tmp_path):
    with served(tmp_path, zcdp=True) as server:
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            assert clinic.budget.price(epsilon=1).price.rho == Fraction(1, 2)
        body = {"algorithm": "sparse", "questions": 10, "at_most": 2, "epsilon": 1}
        told = server.ask("POST", "/v1/plan", body).json
        assert told["prices"].keys() == {option["name"] for option in told["plan"]["recipes"]}
        assert all(price.keys() == {"rho"} for price in told["prices"].values())


def test_errors_are_those_of_the_server(server, clinic):
    with pytest.raises(NotCovered, match="this token may ask visits, labs, and not 'bills'"):
        clinic.table("bills")
    with (
        tacit.connect(server.url, token="tct_" + "A" * 43) as stranger,
        pytest.raises(NotAuthorised, match="ask the steward for a new one"),
    ):
        _ = stranger.tables


def test_the_environment_says_what_is_not_given(server, monkeypatch):
    monkeypatch.delenv("TACIT_URL", raising=False)
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    with pytest.raises(BadParameter, match="TACIT_URL"):
        tacit.connect()
    monkeypatch.setenv("TACIT_URL", server.url)
    with pytest.raises(BadParameter, match="TACIT_TOKEN"):
        tacit.connect()
    monkeypatch.setenv("TACIT_TOKEN", server.tokens["ana"])
    with tacit.connect() as clinic:
        assert clinic.table("visits").people == 300
        assert server.tokens["ana"] not in repr(clinic) + repr(vars(clinic))


def test_a_table_shows_what_is_public_about_it(server):
    with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
        visits = clinic.table("visits")
        with visits.dummy() as local:
            assert repr(visits) == repr(local).replace("'visits'", f"'visits' at {server.url}", 1)
            assert "columns pid, town" in repr(visits)
            assert visits._repr_html_() == local._repr_html_()
        assert server.url in repr(clinic.plan)


def test_a_connection_that_the_server_closed_is_opened_again(tmp_path):
    with (
        served(tmp_path, limits="idle_seconds = 1") as server,
        tacit.connect(server.url, token=server.tokens["ana"]) as clinic,
    ):
        connection = clinic._transport._connection
        assert connection is not None
        assert connection.sock is not None
        connection.sock.settimeout(120)
        assert connection.sock.recv(1) == b""  # until the server has closed it
        assert clinic.table("visits").people == 300


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("clinic.example", "give an address such as"),
        ("ftp://localhost", "give an address such as"),
        ("https://", "give an address such as"),
        ("http://localhost:x", "give an address such as"),
        ("https://ana:secret@localhost", "and the token apart"),
        ("https://localhost/?token=x", "and the token apart"),
        ("http://clinic.example", "in the open: use https"),
        ("http://192.0.2.1:80", "in the open: use https"),
        ("http://localhost/\r\nX: y", "give an address such as"),
    ],
)
def test_an_address_that_cannot_be_one(url, said):
    with pytest.raises(BadParameter, match=said) as caught:
        tacit.connect(url, token="tct_secret")
    assert "secret" not in str(caught.value)


def test_nobody_is_there():
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        tacit.connect("http://127.0.0.1:1", token="tct_x")


# Servers that are none of ours ------------------------------------------------------------------


@contextmanager
def impostor(status: int, body: bytes) -> Iterator[str]:
    """Something that answers everything with this."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{stub.server_port}"
        stub.shutdown()


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([2, 3], "speaks version 2, 3 of the protocol, and this Tacit speaks 1; install a newer"),
        ([0], "speaks version 0 .*install an older"),
        ([], "install an older"),
    ],
)
def test_a_server_of_another_time_is_told_at_connect(versions, said):
    told = json.dumps({"versions": versions}).encode()
    with impostor(200, told) as url, pytest.raises(ServerUnavailable, match=said):
        tacit.connect(url, token="tct_x")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"versions": 1}'),
        (200, b'{"versions": ["1"]}'),
        (200, b"\xff"),
        (200, b"[" * 100_000),
        (302, b"{}"),
        (502, b"<html>Bad Gateway"),
        (500, b'{"tacit error": 1, "error": "TacitError"}'),
        (500, b'{"tacit plan": 1}'),
    ],
)
def test_what_is_no_server_of_ours_is_told_at_connect(status, body):
    with impostor(status, body) as url, pytest.raises(ServerUnavailable):
        tacit.connect(url, token="tct_x")


def test_an_error_of_the_server_is_raised_as_it_was_there():
    told = wire.to_line(errors.LedgerBusy("the budget is in use", advice="wait")).encode()
    with (
        impostor(503, told) as url,
        pytest.raises(errors.LedgerBusy, match="the budget is in use; wait"),
    ):
        tacit.connect(url, token="tct_x")


def test_what_may_have_been_paid_for_is_asked_again_when_a_proxy_speaks(monkeypatch):
    """A proxy whose server is being restarted says so in its own words, until it is back."""
    monkeypatch.setattr(transport, "_PAUSES", (0, 0, 0))
    line = wire.to_line(Block(1, 1, (), True))
    told = [b"<html>Bad Gateway", b"", b'{"answer": 1}', b"Internal Server Error", line.encode()]
    keys: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            keys.append(sent["key"])
            body = told.pop(0)
            self.send_response(200 if body.startswith(b"{") else 502)
            self.send_header("Content-Length", str(len(body) + 1))
            self.end_headers()
            self.wfile.write(body + b"\n")

        def log_message(self, *given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        with transport.Transport(f"http://127.0.0.1:{stub.server_port}", "t", timeout=60) as asks:
            assert asks.pay("/v1/streams/ask", "k", {}) == {"answer": 1}
            (block,) = asks.pay_in_blocks("/v1/streams/ask_all", "b", {})
            assert wire.from_json(block, Block).done
        stub.shutdown()
    assert keys == ["k", "k", "k", "b", "b"]


def test_a_busy_server_is_asked_again_when_it_says_but_not_for_longer_than_one_waits():
    busy = wire.to_line(errors.ServerUnavailable("the server is busy")).encode()
    answer, line = b'{"answer": 1}', wire.to_line(Block(1, 1, (), True)).encode()
    told = [("0", busy), ("0", busy), ("", answer), ("0", busy), ("", line), ("60", busy)]
    told.append(("Wed, 18 Nov 2026 20:00:00 GMT", busy))
    bodies: list[bytes] = []

    class Server(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            pause, body = told.pop(0)
            self.send_response(503 if pause else 200)
            if pause:
                self.send_header("Retry-After", pause)
            self.send_header("Content-Length", str(len(body) + 1))
            self.end_headers()
            self.wfile.write(body + b"\n")

        def log_message(self, *given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as stub:
        stub.daemon_threads = True
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        with transport.Transport(f"http://127.0.0.1:{stub.server_port}", "t", timeout=59) as asks:
            assert asks.pay("/v1/count", "k", {}) == {"answer": 1}
            (block,) = asks.pay_in_blocks("/v1/streams/ask_all", "b", {})
            assert wire.from_json(block, Block).done
            for _ in range(2):
                with pytest.raises(ServerUnavailable, match="the server is busy"):
                    asks.pay("/v1/count", "c", {})
        stub.shutdown()
    assert [json.loads(body)["key"] for body in bodies] == ["k", "k", "k", "b", "b", "c", "c"]


GENT = "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?"


def test_a_misspelt_key_is_noted_with_every_answer(server, clinic):
    visits = clinic.table("visits")
    wrong, right = "town = 'Gent'", "town = 'Ghent'"
    stream = visits.numeric_sparse(threshold=150, at_most=3, epsilon="1/2", questions=10, name="n")
    for _ in range(2):  # the second time as it was told
        assert GENT in str(stream.ask(wrong, retry_key="one"))
        assert not stream.ask(right, retry_key="two").notes
        told = stream.ask_all([right, wrong], retry_key="all")
        assert [answer.notes for answer in told] == [(), (GENT,)]
        assert told.notes == (GENT,)
    asked = {"key": "raw", "stream": "n", "question": wrong, "parameters": {}}
    stream._transport.post("/v1/streams/suspend", {"stream": "n"})
    for _ in range(2):
        answer = server.ask("POST", "/v1/streams/ask", asked).json["answer"]
        assert answer["notes"] == [GENT]
    batch = {"key": "raw", "stream": "n", "questions": [{"question": wrong, "parameters": {}}]}
    for _ in range(2):
        body = server.ask("POST", "/v1/streams/ask_all", batch).body
        assert [json.loads(line)["notes"] for line in body.splitlines()] == [[GENT]]
    cells = ["town = 'Bruges'", right, wrong]
    paid = {"epsilon": "1/10", "retry_key": "top"}
    assert visits.top(1, cells, **paid).notes == visits.top(1, cells, **paid).notes == (GENT,)
    model = visits.watched_model(epsilon="1/2", columns=["town"], max_rows=1, name="model")
    for _ in range(2):
        assert model.ask(wrong, retry_key="three").notes == (GENT,)
        told = model.ask_all([right, wrong], retry_key="four")
        assert [answer.notes for answer in told] == [(), (GENT,)]
