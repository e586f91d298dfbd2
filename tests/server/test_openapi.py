"""The OpenAPI document: it matches the routes, and whatever it allows is answered or refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.routing import Route
from tests.server import http_page
from tests.server.clinic import POISON
from tests.server.conftest import PATIENCE, Running, served

from tacit.server.app import Application
from tacit.server.endpoints import ENDPOINTS
from tacit.server.openapi import document

QUIET = re.compile(rf"Traceback|/tmp|clinic\.budget|site-packages|{POISON}|uvicorn|starlette")


def test_the_document_matches_the_routes(server):
    served = server.ask("GET", "/openapi.json", token=None).json
    assert served == json.loads(json.dumps(document(ENDPOINTS)))
    listed = {
        (path, method.upper()) for path, methods in served["paths"].items() for method in methods
    }
    assert listed == {(one.path, one.method) for one in ENDPOINTS}
    named = [one["operationId"] for each in served["paths"].values() for one in each.values()]
    assert len(set(named)) == len(named)


def test_every_route_of_the_application_is_in_the_document(tmp_path):
    from tacit import Budget
    from tacit.server.config import Limits, Timing
    from tacit.server.service import Service
    from tacit.server.tokens import TokenFile

    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    service = Service({}, budget, TokenFile(tmp_path / "tokens"), Limits())
    application = Application(service, Timing())
    starlette: Any = application._routes
    found = {
        (route.path, method)
        for route in starlette.routes
        for method in (route.methods or () if isinstance(route, Route) else ())
        if method != "HEAD"
    }
    assert application.close()
    assert found == {(one.path, one.method) for one in ENDPOINTS}
    assert len(starlette.routes) == len(ENDPOINTS)


def test_every_reference_leads_somewhere_and_requests_are_closed():
    told = document(ENDPOINTS)
    schemas = told["components"]["schemas"]
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(told)))
    assert references == {f"#/components/schemas/{name}" for name in schemas}
    for one in ENDPOINTS:
        if one.takes is not None:
            assert schemas[one.takes.__name__]["additionalProperties"] is False


def test_the_page_is_made_from_the_document():
    assert http_page.PAGE.read_text() == http_page.page()  # python -m tests.server.http_page


# Whatever is sent -------------------------------------------------------------------------------

ODD = st.sampled_from(["", "visits", "labs", "\0", "\ud800", "../..", "x" * 300, "⊤", ":a"])
TEXT = st.one_of(
    ODD,
    st.text(max_size=20),
    st.sampled_from(["town = 'Ghent'", "age >= :a", "town = :a and age > :b", "((((", "a' or 1=1"]),
)
NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["1/2", "x"])
)
SCALARS = st.one_of(TEXT, NUMBERS, st.booleans(), st.none())
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)


def following(schema: dict[str, Any], schemas: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values as a schema of the document describes them, with odd ones among the texts."""
    if "$ref" in schema:
        return following(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([following(each, schemas) for each in schema["anyOf"]])
    match schema.get("type"):
        case "object" if "properties" in schema:
            parts = {name: following(each, schemas) for name, each in schema["properties"].items()}
            needed = {name: parts.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional=parts)
        case "object":
            return st.dictionaries(TEXT, following(schema["additionalProperties"], schemas))
        case "array":
            inner = following(schema["items"], schemas)
            return st.lists(inner, min_size=schema.get("minItems", 0), max_size=3)
        case "string":
            return TEXT
        case "integer":
            return st.integers()
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    raise AssertionError(f"the document says what this test does not know: {schema}")


def requests() -> st.SearchStrategy[tuple[str, str, Any]]:
    """Requests to every endpoint; plans take long to find, and are fewer."""
    schemas = document(ENDPOINTS)["components"]["schemas"]
    kinds = []
    for one in ENDPOINTS:
        if one.takes is not None and one.kind not in ("plan", "open"):
            described = following(schemas[one.takes.__name__], schemas)
            kinds += [st.tuples(st.just(one.method), st.just(one.path), described)] * 6
        kinds.append(st.tuples(st.sampled_from(["GET", "POST"]), st.just(one.path), ANY))
    kinds.append(st.tuples(st.just("POST"), TEXT.map(lambda text: f"/{text!a}"), ANY))
    return st.one_of(kinds)


def variants(body: Any) -> list[bytes]:
    """A body, and what it may become on its way or in bad hands."""
    text = json.dumps(body).encode()
    middle = len(text) // 2
    return [
        text,
        text[:-1],
        text[:middle] + b"\xff" + text[middle:],
        text + text,
        b"[" + text + b"]",
        text.replace(b"{", b'{"more": NaN, ', 1),
        text.replace(b"{", b'{"table": "visits", ', 1),
    ]


class Kept:
    """Connections that are opened again when the server closed them, one for each variant.

    All of an example are sent before one is answered, since most of the time goes by until the
    clock lets a response leave.
    """

    def __init__(self, server: Running, count: int) -> None:
        self._connections = [
            HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE) for _ in range(count)
        ]
        self._headers = {
            "Authorization": f"Bearer {server.tokens['ana']}",
            "Content-Type": "application/json",
        }

    def ask(self, method: str, path: str, bodies: list[bytes]) -> list[tuple[int, bytes]]:
        safe = path.replace(" ", "%20").replace("\t", "%09")
        pairs = list(zip(self._connections, bodies, strict=True))
        for connection, body in pairs:
            connection.request(method, safe, body, self._headers)
        got = [connection.getresponse() for connection, _ in pairs]
        return [(each.status, each.read()) for each in got]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def drive(server: Running, examples: int, **more: Any) -> None:
    """Send each example in every variant."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    @given(requests())
    @example(("GET", "/v1/tables", None))
    @example(("POST", "/v1/tables", {}))
    @example(("POST", "/nowhere", {}))
    def sent(request):
        method, path, body = request
        for status, told in kept.ask(method, path, variants(body)):
            seen[status] += 1
            assert status < 500, told
            assert not QUIET.search(told.decode())  # what was sent holds no such word

    with closing(Kept(server, len(variants(None)))) as kept:
        sent()
    assert {200, 400, 404, 405} <= seen.keys()
    assert 429 not in seen  # each was read
    assert server.process.poll() is None


@pytest.fixture(scope="module")
def spent(tmp_path_factory) -> Iterator[Running]:
    """A server whose budget may be spent, and that reads all variants of a plan at once."""
    limits = "in_flight_a_token = 100\nplans_a_token = 100"
    with served(tmp_path_factory.mktemp("spent"), limits=limits) as running:
        yield running


def test_whatever_is_sent_is_answered_or_refused(spent):
    drive(spent, 300)  # seven requests each


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))  # for several processors
def test_whatever_is_sent_is_answered_or_refused_for_long(spent, part):
    drive(spent, 3_000, derandomize=False)  # else each part would send the same
