"""Templates, the files that pages need, and what a browser is told about them."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tacit.book.answer import Answer
from tacit.budget.accountants import Amount
from tacit.numbers import show, spaced
from tacit.server.endpoints import Content
from tacit.server.tokens import TokenRecord

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE = {"content-security-policy": _POLICY}
_FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"}  # its address has its digest
_MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
UNITS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

_WITHIN_NUMBERS = re.compile(
    r"(?<=\d) (?=\d{3}(?!\d))|(?<=±) | (?=%)|(?<=[εδρα]) (?==)|(?<==) (?=\d)"
)

Statics = Mapping[str, Content]
"""Files by their addresses."""


@cache
def _stored() -> dict[str, bytes]:
    folder = files("tacit.page") / "static"
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir(), key=str)}


@cache
def _folder() -> str:
    """Where the files lie: another place when one of them changes, so that browsers keep them."""
    digest = hashlib.sha256()
    for name, body in _stored().items():
        digest.update(name.encode() + b"\0" + body)
    return f"/static/{digest.hexdigest()[:16]}"


def statics() -> Statics:
    """The stylesheet, the scripts and the icon."""
    return {
        f"{_folder()}/{name}": Content(body, _MEDIA[name[name.rindex(".") :]], _FOR_EVER)
        for name, body in _stored().items()
    }


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("tacit.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {
        "amount": amount,
        "cell": cell,
        "moment": moment,
        "number": number,
        "spaced": spaced,
        "top": top,
        "unbroken": unbroken,
    }
    found.globals |= {"static": lambda name: f"{_folder()}/{name}", "new_key": new_key}
    return found


def new_key() -> str:
    """An idempotency key for a form: however often it is sent, it is paid once."""
    return secrets.token_urlsafe(16)


def fragment(template: str, **values: object) -> Content:
    """A part of a page."""
    body = _templates().get_template(template).render(values)
    return Content(body.encode("utf-8", "replace"), "text/html; charset=utf-8", _PAGE)


def page(template: str, who: TokenRecord | None, **values: object) -> Content:
    """A whole page for whoever has signed in, or for nobody yet."""
    return fragment(template, who=who, **values)


# How things are written ---------------------------------------------------------------------


def number(value: Fraction | float) -> str:
    """A number in a few digits, with its thousands separated if it is whole."""
    exact = Fraction(value)
    return spaced(exact) if exact.denominator == 1 else show(exact)


def cell(value: object) -> str:
    """A value of a released row.

    >>> cell(1204), cell(True), cell(0.5)
    ('1 204', 'true', '0.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, int | float) else str(value)


def unbroken(text: str) -> str:
    r"""Words whose numbers stay on one line.

    >>> unbroken("each ± 1 204 (95 %)") == "each ±\xa01\xa0204 (95\xa0%)"
    True
    """
    return _WITHIN_NUMBERS.sub("\xa0", text)


def amount(given: Amount) -> str:
    """An amount as people read it; a δ that is nowhere promised is left out.

    >>> amount(Amount.of(epsilon=Fraction(1, 4), delta=Fraction(0)))
    'ε = 0.25'
    """
    shown = [
        f"{UNITS[unit]} = {show(value)}" for unit, value in given.values if value or unit != "delta"
    ]
    return ", ".join(shown)


def moment(at: str) -> Markup:
    """A time in UTC, which the page shows in the reader's zone."""
    try:
        readable = f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return escape(at)
    return Markup('<time datetime="{}">{}</time>').format(at, readable)


def top(answer: Answer) -> Markup:
    """⊤ or ⊥ with its words, for eyes and for screen readers."""
    if not answer.above:
        return Markup('<span class="below"><span aria-hidden="true">⊥</span> below</span>')
    value = unbroken(str(answer).removeprefix("⊤").strip(" ,"))
    return Markup('<span class="above"><span aria-hidden="true">⊤</span> above</span> {}').format(
        value
    )
