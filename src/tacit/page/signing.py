"""Signing in with a token, and out again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from tacit.errors import NotAuthorised
from tacit.page.rendering import page
from tacit.server.cookies import NO_TOKEN, cookie, no_cookie
from tacit.server.endpoints import Content
from tacit.server.problems import Refusal
from tacit.server.service import Service
from tacit.server.tokens import TokenRecord, utc_now


class SignIn(Struct, forbid_unknown_fields=True):
    """Who wants to sign in."""

    token: str


@dataclass(frozen=True, slots=True)
class Signing:
    """The door of one server."""

    service: Service
    encrypted: bool

    def sign_in(self, asked: SignIn) -> Content:
        """Let a browser keep a token, if it is a good one."""
        try:
            who = self.service.tokens.bearer(asked.token.strip(), utc_now())
        except NotAuthorised as error:
            raise Refusal(403, error) from None
        kept = cookie(asked.token.strip(), who, encrypted=self.encrypted)
        return Content(b"{}", "application/json", {"set-cookie": kept})

    def sign_out(self, service: Service, who: TokenRecord) -> Content:
        """Let the browser forget it."""
        gone = no_cookie(encrypted=self.encrypted)
        return Content(b"{}", "application/json", {"set-cookie": gone})


def shown_wrong(problem: dict[str, Any]) -> Content:
    """What is wrong, as a page; where a token is missing, the place to give one."""
    if problem["status"] == 401:
        if problem["message"] == NO_TOKEN:  # nothing is wrong: this is where one begins
            return replace(page("sign_in.html", None, why="", here=""), status=200)
        return page("sign_in.html", None, why=problem["detail"], here="")
    return page("problem.html", None, problem=problem, here="")
