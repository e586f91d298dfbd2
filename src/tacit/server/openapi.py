"""The OpenAPI document, from the table of endpoints and the types of messages."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

from tacit.server.endpoints import Endpoint
from tacit.server.live import AskedBatch
from tacit.server.messages import VERSIONS, Problem

_JSON = "application/json"
_PROBLEM = "application/problem+json"
LINES = "application/x-ndjson"


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The document, as an object of JSON."""
    listed = tuple(endpoints)
    types = {one.takes for one in listed if one.takes is not None}
    types |= {one.gives for one in listed}
    named = [kind for kind in types if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    _, schemas = msgspec.json.schema_components(
        sorted([*named, Problem], key=lambda kind: kind.__name__),
        ref_template="#/components/schemas/{name}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tacit",
            "description": "Private questions to sensitive tables.  Names are never in paths.",
            "version": str(max(VERSIONS)),
        },
        "paths": {one.path: {one.method.lower(): _operation(one)} for one in listed},
        "components": {
            "schemas": {name: _described(schemas[name]) for name in sorted(schemas)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    # Python 3.13 takes the indentation out of docstrings by itself, and older ones do not.
    return {**schema, "description": cleandoc(schema["description"])}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    roles = (
        "anybody, without a token" if endpoint.roles is None else ", ".join(sorted(endpoint.roles))
    )
    told: dict[str, Any] = {
        "operationId": endpoint.path.strip("/").replace("/", "_").replace(".", "_"),
        "summary": endpoint.summary,
        "description": f"For {roles}.",
        "security": [] if endpoint.roles is None else [{"token": []}],
        "responses": {
            "200": {"description": "Answered.", "content": _content(endpoint.gives)},
            "default": {
                "description": "What is wrong.",
                "content": {_PROBLEM: {"schema": _reference(Problem)}},
            },
        },
    }
    if endpoint.takes is not None:
        body = {"required": True, "content": {_JSON: {"schema": _reference(endpoint.takes)}}}
        told["requestBody"] = body
    return told


def _content(kind: Any) -> dict[str, Any]:
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    if kind is AskedBatch:
        said = "Lines, each an object as tacit.wire writes it: blocks, or an error as the last."
        return {LINES: {"schema": {"type": "string", "description": said}}}
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return {_JSON: {"schema": _reference(kind) if is_struct else {"type": "object"}}}


def _reference(kind: type[Any]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
