"""A server in a process of its own: who gets what, and what is refused how."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cli.running import ENVIRONMENT
from tests.server.clinic import POISON, write_clinic
from tests.server.conftest import PATIENCE, Got, Running, served
from tests.signals import as_usual

import tacit
from tacit import wire
from tacit.cli.exits import run
from tacit.errors import TacitError
from tacit.server.endpoints import ENDPOINTS
from tacit.server.tokens import TokenFile

CHECK: dict[str, Any] = {"table": "visits", "questions": [{"question": "town = 'Ghent'"}]}
PLAN: dict[str, Any] = {"algorithm": "above_threshold", "questions": 10, "epsilon": 1}
SECURITY = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}


PAID: dict[str, dict[str, Any]] = {
    "/v1/count": {"question": "age > 3"},
    "/v1/sum": {"column": "cost"},
    "/v1/histogram": {"columns": ["town"], "max_rows": 1},
    "/v1/ranges": {"column": "age", "max_rows": 1},
    "/v1/running": {"column": "age", "max_rows": 1},
    "/v1/query": {"query": "SELECT COUNT(DISTINCT pid) FROM visits"},
    "/v1/top": {"n": 1, "questions": [{"question": "age > 3"}, {"question": "age > 50"}]},
    "/v1/small_db": {
        "questions": {"kind": "prefixes", "column": "age"},
        "rows": 2,
        "max_rows": 1,
    },
    "/v1/synthetic": {"columns": ["town"], "rows": 9, "max_rows": 1},
    "/v1/streams/open": {"algorithm": "above_threshold", "threshold": 5, "questions": 10},
    "/v1/watched/open": {"columns": ["age"], "bins": {"age": 4}, "max_rows": 1, "surprises": 2},
}


def body_of(path: str) -> dict[str, Any] | None:
    if path in PAID:
        return {"key": "k", "table": "visits", "epsilon": "1/100", **PAID[path]}
    if path.startswith(("/v1/streams/", "/v1/watched/")):
        asked: dict[str, Any] = (
            {"key": "k", "question": "age > 200"} if path.endswith("ask") else {}
        )
        if path.endswith("ask_all"):
            asked = {"key": "k", "questions": [{"question": "age > 200"}]}
        table = {"table": "visits"} if path.endswith("resume") else {}
        stream = "model" if path.startswith("/v1/watched/") else "watch"
        return {"stream": stream, **asked, **table}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/check": CHECK,
        "/v1/plan": PLAN,
        "/v1/price": {"epsilon": 1},
        "/v1/answers": {},
        "/v1/request": {"epsilon": 1, "reason": "why not"},
        "/v1/stop": {"kind": "token", "name": "ben"},
        "/v1/go_on": {"kind": "token", "name": "ben"},
        "/v1/refresh": {"table": "labs", "as_of": "later"},
    }
    return bodies.get(path)


@pytest.fixture(scope="module")
def watching(tmp_path_factory) -> Iterator[Running]:
    """A server with a stream and a watched model that ana opened."""
    with served(tmp_path_factory.mktemp("watching")) as running:
        opening = {**PAID["/v1/streams/open"], "algorithm": "sparse", "at_most": 9}
        body = {"key": "w", "table": "visits", "epsilon": "1/10", "name": "watch", **opening}
        assert running.ask("POST", "/v1/streams/open", body).status == 200
        body = {**(body_of("/v1/watched/open") or {}), "key": "m", "name": "model"}
        assert running.ask("POST", "/v1/watched/open", body).status == 200
        yield running


def is_problem(got: Got, status: int, kind: str) -> TacitError:
    """The error that a refusal says, and that nothing else is said."""
    assert got.status == status, got.body
    assert got.headers["content-type"] == "application/problem+json"
    told = got.json
    assert (told["type"], told["title"]) == (f"tacit:{kind}", kind)
    assert told["status"] == status
    error: TacitError = wire.from_json(told)
    assert type(error).__name__ == kind
    assert told["detail"] == str(error)
    keys = {"type", "title", "status", "detail", "tacit error", "error", "message", "advice"}
    assert told.keys() - keys <= {"exit_code", "parameter", "given", "allowed"}
    for name, value in SECURITY.items():
        assert got.headers[name] == value
    keeps_quiet(got)
    return error


def keeps_quiet(got: Got) -> None:
    """No path, trace, version or value is in a response."""
    told = got.body.decode() + json.dumps(got.headers)
    for word in (
        "Traceback",
        "/tmp",
        "clinic.budget",
        "site-packages",
        POISON,
        "uvicorn",
        "sqlite",
    ):
        assert word not in told
    assert "server" not in got.headers


# Who gets what ----------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_every_role_gets_what_it_may_and_nobody_else(watching, endpoint):
    server = watching
    roles = {"ana": "analyst", "vera": "viewer", "boss": "steward"}
    body = body_of(endpoint.path)
    if endpoint.path == "/v1/decide":
        asked = server.ask("POST", "/v1/request", body_of("/v1/request")).json["request"]
        body = {"number": asked["number"], "approve": False}
    if endpoint.path == "/v1/go_on":
        assert server.ask("POST", "/v1/stop", body, token="boss").status == 200
    for name, role in roles.items():
        got = server.ask(endpoint.method, endpoint.path, body, token=name)
        spends = endpoint.line is not None and endpoint.path != "/v1/refresh"
        if spends and role == "steward":
            assert "no share" in is_problem(got, 403, "NotAuthorised").fact
        elif endpoint.roles is None or role in endpoint.roles:
            assert got.status == 200, got.body
            for header, value in SECURITY.items():
                assert got.headers[header] == value
            keeps_quiet(got)
        else:
            is_problem(got, 403, "NotAuthorised")
    for wrong in (None, "tct_" + "A" * 43, "x"):
        got = server.ask(endpoint.method, endpoint.path, body, token=wrong)
        if endpoint.roles is None:
            assert got.status == 200
        else:
            is_problem(got, 401, "NotAuthorised")
            assert got.headers["www-authenticate"] == "Bearer"


def test_a_token_sees_its_own_tables_only(server):
    assert server.ask("GET", "/healthz", token=None).json == {"status": "ok"}
    assert server.ask("GET", "/versions", token=None).json == {"versions": [1]}
    visits, labs = server.ask("GET", "/v1/tables").json["tables"]
    assert (visits["name"], visits["person"], visits["people"]) == ("visits", "pid", 300)
    assert visits["as_of"] == "2026-11-01"
    schema = tacit.tables.read_schema(visits["schema"], name="visits", person="pid")
    with tacit.open(server.folder / "visits.csv", person="pid") as table:
        assert schema == table.schema
    assert (labs["name"], labs["person"]) == ("labs", None)
    assert [one["name"] for one in server.ask("GET", "/v1/tables", token="ben").json["tables"]] == [
        "labs"
    ]
    refusals = [
        is_problem(
            server.ask("POST", "/v1/check", {**CHECK, "table": name}, token="ben"),
            403,
            "NotCovered",
        ).fact.replace(name, "")
        for name in ("visits", "bills")
    ]
    assert refusals[0] == refusals[1]  # whether there are others is nobody's business


def test_a_check_says_what_the_table_says(server):
    asked: list[tuple[str, dict[str, Any]]] = [
        ("town = 'Ghent' and age >= 60", {}),
        ("town = :town", {"town": "Ghent"}),
        ("age in (:a, :b)", {"a": 1, "b": 2}),
        ("age / 2 > 3", {}),
        ("SELECT town, COUNT(DISTINCT pid) FROM visits GROUP BY town", {}),
        ("", {}),
        ("(" * 9000, {}),
        ("x" * 20_000, {}),
        ("a\ud800", {}),
        ("town = :town", {"town": True}),
        ("town = :town", {"other": 1}),
    ]
    body = {
        "table": "visits",
        "questions": [{"question": text, "parameters": values} for text, values in asked],
    }
    got = server.ask("POST", "/v1/check", body)
    assert got.status == 200, got.body
    statements = [wire.from_json(each) for each in got.json["statements"]]
    path = server.folder / "visits.csv"
    with tacit.open(path, person="pid", people=300, as_of="2026-11-01") as table:
        assert statements == [table.check(text, **values) for text, values in asked]


def test_many_at_once_get_each_their_own_answer(server):
    path = server.folder / "visits.csv"
    texts = [f"age >= {n} and town = 'Ghent'" for n in range(16)]
    with tacit.open(path, person="pid", people=300, as_of="2026-11-01") as table:
        expected = [table.check(text) for text in texts]

    def ask(place: int) -> list[object]:
        name = ("ana", "boss")[place % 2]
        body = {"table": "visits", "questions": [{"question": text} for text in texts[place:]]}
        got = server.ask("POST", "/v1/check", body, token=name)
        return [wire.from_json(each) for each in got.json["statements"]]

    with ThreadPoolExecutor(8) as together:
        for place, found in enumerate(together.map(ask, range(16))):
            assert found == expected[place:]


def test_a_plan_is_the_local_one(server):
    plans: dict[str, dict[str, Any]] = {
        "sparse": {"questions": 100, "at_most": 3, "epsilon": "1/2"},
        "above_threshold": {"questions": 50, "alpha": 100},
    }
    for name, numbers in plans.items():
        got = server.ask("POST", "/v1/plan", {"algorithm": name, **numbers})
        plan = getattr(tacit.plan, name)(**numbers)
        assert wire.from_json(got.json["plan"]) == plan
        assert got.json["prices"] == {
            option.name: {"epsilon": str(option.epsilon), "delta": "0"} for option in plan.options
        }


def test_a_wrong_plan_is_refused_with_the_words_of_the_local_error(server):
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("sparse", {"questions": 100, "at_most": 0, "epsilon": 1}),
        ("sparse", {"questions": 100, "at_most": 3}),
        ("sparse", {"questions": "many", "at_most": 3, "epsilon": 1}),
        ("numeric_sparse", {"questions": 100, "at_most": 3, "epsilon": -1}),
    ]
    for name, numbers in wrong:
        got = server.ask("POST", "/v1/plan", {"algorithm": name, **numbers})
        with pytest.raises(tacit.errors.BadParameter) as caught:
            getattr(tacit.plan, name)(**numbers)
        assert str(is_problem(got, 422, "BadParameter")) == str(caught.value)
    for more in ({"at_most": 3}, {"values": "fresh"}):
        got = server.ask("POST", "/v1/plan", {**PLAN, **more})
        is_problem(got, 422, "BadParameter")


def test_the_budget_shows_totals_and_the_own_share(server):
    with tacit.Budget.open(server.folder / "clinic.budget") as budget:
        whole, shares = budget.whole, budget.shares
    by_name = {}
    for name in ("ana", "ben", "vera", "boss"):
        told = server.ask("GET", "/v1/budget", token=name).json
        assert wire.from_json(told["whole"]) == whole
        assert told["promise"] == {"epsilon": "10", "delta": "0"}
        by_name[name] = told
    assert wire.from_json(by_name["ana"]["own"]) == shares[1]
    assert by_name["ben"]["own"] is by_name["vera"]["own"] is by_name["boss"]["own"] is None
    assert by_name["ben"]["covers"] == ["labs"]
    assert by_name["ana"]["shares"] == by_name["vera"]["shares"] == []
    assert tuple(map(wire.from_json, by_name["boss"]["shares"])) == shares
    assert "head" not in by_name["boss"]


def test_streams_are_seen_by_who_pays_and_the_steward(tmp_path):
    with served(tmp_path) as server:
        path = tmp_path / "visits.csv"
        with (
            tacit.open(path, person="pid") as table,
            tacit.Budget.open(tmp_path / "clinic.budget") as budget,
        ):
            given: dict[str, Any] = {"threshold": 100, "epsilon": "1/2", "budget": budget}
            table.above_threshold(name="hers", analyst="ana", **given).suspend()
            table.above_threshold(name="nobody's", **given).suspend()
            states = wire.summary(budget).streams
        found = {
            name: [
                wire.from_json(one)
                for one in server.ask("GET", "/v1/streams", token=name).json["streams"]
            ]
            for name in ("ana", "ben", "boss")
        }
        assert found == {"ana": [states[0]], "ben": [], "boss": list(states)}
        assert server.ask("GET", "/metrics", token="boss").body.decode().count('{status="') == 2


def test_tokens_are_listed_without_their_hashes(server):
    told = server.ask("GET", "/v1/tokens", token="boss").json["tokens"]
    assert [(one["name"], one["role"], one["status"]) for one in told[:4]] == [
        ("ana", "analyst", "good"),
        ("ben", "analyst", "good"),
        ("vera", "viewer", "good"),
        ("boss", "steward", "good"),
    ]
    assert all(one.keys() & {"sha256", "token"} == set() for one in told)


def test_metrics_tell_nothing_about_the_data_or_the_machine(server):
    server.ask("GET", "/v1/tables")
    got = server.ask("GET", "/metrics", token="boss")
    assert got.headers["content-type"].startswith("text/plain")
    names = {line.partition("{")[0] for line in got.body.decode().splitlines() if "{" in line}
    assert names == {"tacit_requests_total", "tacit_tokens", "tacit_budget"}
    assert 'tacit_requests_total{what="/v1/tables",status="200"}' in got.body.decode()


def test_a_revoked_token_is_refused_at_once(server):
    file = TokenFile(server.folder / "clinic.budget-tokens")
    token = file.add("eve", share="ana")
    assert server.ask("GET", "/v1/tables", token=token).status == 200
    assert run(["token", "revoke", "eve", "--config", str(server.folder / "tacit.toml")]) == 0
    is_problem(server.ask("GET", "/v1/tables", token=token), 401, "NotAuthorised")
    old = file.add("old", expires=datetime.now(UTC).isoformat())
    is_problem(server.ask("GET", "/v1/tables", token=old), 401, "NotAuthorised")


def test_tokens_that_cannot_be_read_let_nobody_in_and_name_no_path(tmp_path):
    with served(tmp_path) as server:
        (tmp_path / "clinic.budget-tokens").chmod(0o644)
        is_problem(server.ask("GET", "/v1/tables"), 503, "BadConfiguration")
        (tmp_path / "clinic.budget-tokens").chmod(0o600)
        assert server.ask("GET", "/v1/tables").status == 200


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"null", 400, "not what this path takes"),
        (b"[]", 400, "not what this path takes"),
        (b"\xff\xfe", 400, "not UTF-8"),
        (b'{"table": "visits", "questions": [{"question": "\xff"}]}', 400, "not UTF-8"),
        (b'{"table": NaN, "questions": []}', 400, "NaN or infinity"),
        (
            b'{"table":"visits","questions":[{"question":"a","parameters":{"a":1e999}}]}',
            *(400, "NaN or infinity"),
        ),
        (b'{"table": "visits", "table": "labs", "questions": []}', 400, "repeats a name"),
        (b'{"table": "visits", "questions": []}', 400, "Expected `array` of length >= 1"),
        (b'{"table": 3, "questions": []}', 400, "Expected `str`"),
        (b'{"table": "visits"}', 400, "missing required field"),
        (b'{"table":"v","questions":[{"question":"a"}],"sql":1}', 400, "unknown field `sql`"),
        (b'{"table":"v","questions":[{"question":"a","x":1}]}', 400, "unknown field `x`"),
        (b"[" * 1_000_000, 400, "nested more deeply than 20"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 400, "nested more deeply"),
        (b'{"table": "' + b"(" * 999_000 + b'", "questions": [{"question": "a"}]}', 422, "table"),
        (b'{"table":"visits","questions":[{"question":"' + b"(" * 900_000 + b'"}]}', 200, ""),
        (b" " * 1_000_001, 413, "longer than 1000000 bytes"),
        (
            b'{"table":"visits","questions":['
            + b'{"question":""},' * 10_000
            + b'{"question":""}]}',
            413,
            "at most 10000",
        ),
        (b'{"table":"visits","questions":[{"question":"a","parameters":{"self":1}}]}', 200, ""),
        (b'{"table":"v","questions":[{"question":"a","parameters":{"q":[[1]]}}]}', 400, "Expected"),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else "",
)
def test_a_body_that_is_not_what_it_should_be(server, body, status, said):
    got = server.ask("POST", "/v1/check", body)
    if status == 200:
        assert got.json["statements"][0]["refused"]
        return
    error = is_problem(got, status, "BadParameter" if status == 422 else "RequestRefused")
    assert said in str(error)
    assert len(got.body) < 3000


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Length": "5"}, None),
        ({"Authorization": "Basic YTpi"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer " + "x" * 8000}, 401),
    ],
    ids=str,
)
def test_headers_that_are_not_what_they_should_be(server, headers, status):
    got = server.ask("POST", "/v1/check", json.dumps(CHECK).encode(), headers=headers)
    if status is None:
        assert got.status == 400
    else:
        is_problem(got, status, "NotAuthorised" if status == 401 else "RequestRefused")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/tables/", 404),
        ("GET", "/v1/../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/v1/tables%00", 404),
        ("GET", "//v1/tables", 404),
        ("GET", "/docs", 404),
        ("POST", "/v1/tables", 405),
        ("DELETE", "/v1/tables", 405),
        ("TRACE", "/healthz", 405),
        ("GET", "/v1/check", 405),
        ("GET", "/v1/tables?a=1", 400),
        ("GET", "/healthz?token=tct_" + "A" * 43, 400),
    ],
)
def test_paths_that_lead_nowhere(server, method, path, status):
    is_problem(server.ask(method, path), status, "RequestRefused")


def test_a_token_in_a_url_is_refused_and_not_logged(server):
    token = server.tokens["ana"]
    got = server.ask("GET", f"/v1/tables?token={token}", token=None)
    assert "taken as leaked" in str(is_problem(got, 400, "RequestRefused"))
    server.ask("GET", f"/{token}")
    server.ask("GET", "/v1/tables")
    _wait_for(server, lambda: '"/v1/tables"' in "".join(server.log[-1:]))
    assert not any(token in line for line in server.log)
    assert token.encode() not in got.body


HEAD = b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 3, 4\r\n\r\nabcd",
        HEAD + b"Content-Length: -3\r\n\r\nabc",
        HEAD + b"Content-Length: +3\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Length : 2\r\n\r\n{}",
        HEAD + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /v1/tables HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
        b"GET /nothing HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=lambda sent: repr(sent[len(HEAD) :][:60]),
)
def test_a_request_that_two_servers_could_read_in_two_ways(server, sent):
    back = server.raw(sent)
    status = int(back.split(b" ", 2)[1])
    assert 400 <= status < 500 or status == 501
    assert back.count(b"HTTP/1.1 ") == 1  # and what follows is not taken for a second request
    for word in (b"Traceback", b"uvicorn", b"h11", b"python"):
        assert word not in back.lower()


def _wait_for(server: Running, seen) -> None:
    for _ in range(PATIENCE * 20):
        if seen():
            return
        time.sleep(0.05)
    raise AssertionError("it was not seen")


# Limits -----------------------------------------------------------------------------------------


def test_who_is_slow_to_ask_is_left(tmp_path):
    silent = (b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
    refused = b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
    with (
        served(tmp_path, limits="header_seconds = 5") as server,
        ThreadPoolExecutor(4) as together,
    ):
        *nothing, told = together.map(server.raw, (*silent, refused))  # until the server closes
        assert nothing == [b""] * 3
        assert told.startswith(b"HTTP/1.1 404")
        assert server.ask("GET", "/healthz").status == 200


def test_who_is_slow_to_go_on_is_left(tmp_path):
    with served(tmp_path, limits="idle_seconds = 1") as server:
        token = server.tokens["ana"].encode()
        head = HEAD + b"Authorization: Bearer " + token + b"\r\nContent-Length: 100\r\n\r\n{"
        assert server.raw(head).startswith(b"HTTP/1.1 408")
        idle = server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert idle.startswith(b"HTTP/1.1 200")


def test_who_does_not_read_holds_up_nobody_else_and_is_left(tmp_path):
    limits = "idle_seconds = 2\nin_flight_a_token = 1\nbody = 20_000_000"
    with served(tmp_path, limits=limits) as server:
        long = [{"question": "x" * 9_000}] * 800  # which come back: more than the system holds
        body = json.dumps({"table": "visits", "questions": long})
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.settimeout(PATIENCE)
            stuck.connect(("127.0.0.1", server.port))
            _send_check(stuck, server.tokens["ana"], body.encode())
            _wait_for(server, lambda: '"questions": 800' in "".join(server.log))
            assert server.ask("GET", "/v1/tables").status == 200
            ended = select.poll()
            ended.register(stuck, select.POLLHUP | select.POLLERR)
            assert ended.poll(PATIENCE * 1000)  # the server waits no longer


# The log, and the end ---------------------------------------------------------------------------


def test_one_line_a_request(tmp_path):
    with served(tmp_path) as server:
        server.ask(
            "POST", "/v1/check", {"table": "visits", "questions": [{"question": POISON}] * 3}
        )
        server.ask("GET", "/metrics")
        server.ask("GET", f"/{POISON}")
        _wait_for(server, lambda: len(server.log) >= 3)
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log]
        assert not any(POISON in line for line in server.log)
        for secret in server.tokens.values():
            assert not any(secret in line or secret[4:] in line for line in server.log)
    told = [{k: v for k, v in line.items() if k not in ("at", "bytes", "late")} for line in lines]
    assert told == [
        {"who": "ana", "what": "/v1/check", "questions": 3, "status": 200},
        {"who": "ana", "what": "/metrics", "questions": 0, "status": 403, "error": "NotAuthorised"},
        {"questions": 0, "status": 404, "error": "RequestRefused"},
    ]
    assert all(isinstance(line["bytes"], int) and isinstance(line["late"], bool) for line in lines)


def _begun(server: Running, token: str, body: bytes) -> socket.socket:
    """A connection on which a check was asked."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    _send_check(connection, server.tokens[token], body)
    return connection


def _send_check(connection: socket.socket, token: str, body: bytes) -> None:
    bearer = f"Authorization: Bearer {token}\r\n".encode()
    connection.sendall(HEAD + bearer + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_it_after_what_is_being_answered(tmp_path, name):
    with served(tmp_path, milliseconds=300) as server:
        many = {"table": "visits", "questions": [{"question": "age > 3"}] * 2000}  # ten periods
        asking = _begun(server, "ana", json.dumps(many).encode())
        idle = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        assert server.ask("GET", "/healthz").status == 200  # so the other has arrived, too
        server.process.send_signal(getattr(signal, name))
        back = b""
        while piece := asking.recv(65536):
            back += piece
        assert back.startswith(b"HTTP/1.1 200")
        assert server.process.wait(PATIENCE) == 0
        asking.close()
        idle.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
    with tacit.Budget.open(tmp_path / "clinic.budget") as budget:
        budget.verify()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_that_comes_before_anything_was_asked_ends_it(tmp_path, name):
    program = (
        "import os, signal, sys\n"
        "from tacit.server.config import read_config\n"
        "from tacit.server.running import run\n"
        f"ready = lambda url: os.kill(os.getpid(), signal.{name})\n"
        "run(read_config(sys.argv[1]), ready=ready)\n"
    )
    command = [sys.executable, "-c", program, str(write_clinic(tmp_path))]
    with as_usual():
        ended = subprocess.run(command, env=ENVIRONMENT, timeout=PATIENCE, check=False)
    assert ended.returncode == 0


def test_what_cannot_be_opened_is_told_and_nothing_is_served(tmp_path, capsys):
    with served(tmp_path) as server:
        config = tmp_path / "tacit.toml"
        text = config.read_text()
        config.write_text(text.replace("port = 0", f"port = {server.port}"))
        assert run(["serve", "--config", str(config)]) == 4
        assert "cannot be listened on" in capsys.readouterr().err
        for name in ("csv", "toml"):
            (tmp_path / f"bills.{name}").write_bytes((tmp_path / f"labs.{name}").read_bytes())
        config.write_text(text.replace("labs", "bills"))
        assert run(["serve", "--config", str(config)]) == 3
        assert "covers visits, labs, not 'bills'" in capsys.readouterr().err
