"""``docs/reference/http.md``, from the OpenAPI document: ``python -m tests.server.http_page``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit.server.endpoints import ENDPOINTS
from tacit.server.openapi import document

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"

HEAD = """\
# HTTP

This page lists every request that a [server](../how-to/serve.md) accepts. It is generated from
`/openapi.json`, which says the same for programs.

Send the token as `Authorization: Bearer tct_...`, and bodies as `application/json` in UTF-8. Names
appear in bodies and never in paths. Unknown or repeated fields, and requests that are too large
are refused. A refusal is `application/problem+json` (RFC 9457) with the class and message of the
[error](errors.md). Tacit's own objects have the form of [the wire](wire.md): their first key says
what they are.

| request | who may send it | what it does |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    told = document(ENDPOINTS)
    rows = [
        f"| `{method.upper()} {path}` | {_for(one)} | {one['summary']} |"
        for path, methods in told["paths"].items()
        for method, one in methods.items()
    ]
    parts = [HEAD + "\n".join(rows)]
    for name, schema in told["components"]["schemas"].items():
        fields = [
            f"| `{field}` | {_kind(kind)} | {_default(schema, field, kind)} |"
            for field, kind in schema["properties"].items()
        ]
        table = "\n".join(["| field | type | default |", "|---|---|---|", *fields])
        parts.append(f"## {name}\n\n{schema['description']}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _for(operation: dict[str, Any]) -> str:
    who: str = operation["description"].removeprefix("For ").removesuffix(".")
    return who


def _default(schema: dict[str, Any], field: str, kind: dict[str, Any]) -> str:
    if field in schema.get("required", ()):
        return "required"
    return f"`{json.dumps(kind['default'])}`" if "default" in kind else "none"


def _kind(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in kind:
        return ", ".join(f"`{word}`" for word in kind["enum"])
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(map(_kind, kind["anyOf"])))
    if kind.get("type") == "array":
        return f"list of {_kind(kind['items'])}"
    return str(kind.get("type", "anything"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
