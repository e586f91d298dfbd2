"""Everything that a browser can be shown, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from tacit.page import asking, desk, history, overview, releases
from tacit.page.rendering import statics
from tacit.page.signing import SignIn, Signing, shown_wrong
from tacit.server import messages
from tacit.server.endpoints import (
    ANALYST,
    ANYBODY,
    ASKS,
    STEWARD,
    Content,
    Endpoint,
    by_key,
    by_stream,
)
from tacit.server.service import Service
from tacit.server.tokens import Role

_Answer = Callable[..., Content]


def pages(service: Service, encrypted: bool) -> tuple[Endpoint, ...]:
    """The pages of a service, the parts that they load again, and their files."""
    service.paid.read(service.underway.shown())
    signing = Signing(service, encrypted)
    return (
        _page("/", "The overview.", overview.overview),
        _part("/page/live", "What changes.", overview.live, method="GET", quiet=True),
        _page("/ask", "Ask a stream.", asking.ask_page, ASKS),
        _part(
            "/page/stream",
            "One stream.",
            asking.stream_panel,
            takes=messages.StreamNamed,
            roles=ASKS,
        ),
        _part(
            "/page/check",
            "What is promised about a question.",
            asking.check_typed,
            takes=asking.Typed,
            roles=ASKS,
            kind="check",
        ),
        _part(
            "/page/plan",
            "What a stream would be like.",
            asking.plan_stream,
            takes=messages.OpenOf,
            roles=ASKS,
            kind="plan",
        ),
        _part(
            "/page/ask",
            "Ask one question.",
            asking.ask,
            takes=messages.AskOf,
            roles=ASKS,
            kind="ask",
            line=by_stream,
        ),
        _page("/history", "Who spent what when.", history.history_page, ASKS),
        _part("/page/verify", "Verify the history.", history.verified, roles=STEWARD, kind="plan"),
        *_releases(),
        *_desks(),
        _part("/sign-in", "Sign in.", signing.sign_in, takes=SignIn, roles=None),
        _part("/sign-out", "Sign out.", signing.sign_out),
        *(_file(path, content) for path, content in statics().items()),
    )


def _releases() -> Iterator[Endpoint]:
    """What is planned, paid for and shown, a path for each kind of release."""
    yield _page("/release", "Release something, and see what was.", releases.release_page)
    yield _part("/page/earlier", "What was released.", releases.earlier)
    yield _part("/page/form", "A form.", releases.release_form, takes=releases.FormOf, roles=ASKS)
    for kind in releases.KINDS:
        path = f"/page/release/{kind.call}"
        yield _part(
            f"{path}/plan",
            "What a release would be like.",
            releases.planner(kind),
            takes=kind.takes,
            roles=ASKS,
            kind="plan",
        )
        yield _part(
            path,
            "Release something.",
            releases.payer(kind),
            takes=kind.takes,
            roles=ASKS,
            kind=kind.clock,
            line=by_key,
        )
    model = releases.MODEL
    path = "/page/release/watched"
    opens: dict[str, Any] = {"takes": model.takes, "roles": ASKS}
    planning = releases.planner(model)
    yield _part(f"{path}/plan", "What a model would be like.", planning, kind="plan", **opens)
    yield _part(
        path, "Open a watched model.", releases.open_model, kind="synthetic", line=by_key, **opens
    )
    shown: dict[str, Any] = {"kind": "plan"}  # a large one takes a while to be read
    yield _part(
        "/page/released", "A release.", releases.show_release, takes=releases.Numbered, **shown
    )
    yield _part(
        "/page/save", "A release as a file.", releases.save_release, takes=releases.Saved, **shown
    )


def _desks() -> Iterator[Endpoint]:
    """What stewards and analysts change, each form once."""
    once = desk.Once()

    def change(path: str, summary: str, answer: desk.Change, takes: type[Any]) -> Endpoint:
        roles = ANALYST if takes is desk.KeyedRequest else STEWARD
        return _part(path, summary, once(answer), takes=takes, roles=roles, line=by_key)

    yield _page("/steward", "The steward's desk.", desk.steward_page, STEWARD)
    yield change("/page/share", "Set a share.", desk.change_share, desk.KeyedShare)
    yield change("/page/token", "Make a token.", desk.make_token, desk.KeyedToken)
    yield change("/page/revoke", "Revoke a token.", desk.revoke_token, desk.KeyedName)
    yield change("/page/decide", "Decide on a request.", desk.decide_request, desk.KeyedDecision)
    yield change("/page/stop", "Stop something.", desk.stop_or_go_on, desk.KeyedStop)
    yield _page("/budget", "One's own share.", desk.budget_page, ANALYST)
    yield change("/page/request", "Ask for more.", desk.request_more, desk.KeyedRequest)
    yield _part(
        "/page/try",
        "Try a question on a made-up table.",
        desk.try_question,
        takes=desk.Tried,
        roles=ASKS,
        kind="plan",
    )


def _page(path: str, summary: str, answer: _Answer, roles: frozenset[Role] = ANYBODY) -> Endpoint:
    """A whole page; if something is wrong, that is a page, too."""
    return Endpoint(
        method="GET",
        path=path,
        summary=summary,
        roles=roles,
        gives=Content,
        answer=answer,
        shown_wrong=shown_wrong,
    )


def _part(
    path: str,
    summary: str,
    answer: _Answer,
    *,
    method: Literal["GET", "POST"] = "POST",
    roles: frozenset[Role] | None = ANYBODY,
    **more: Any,
) -> Endpoint:
    """What a page asks for later."""
    return Endpoint(
        method=method,
        path=path,
        summary=summary,
        roles=roles,
        gives=Content,
        answer=answer,
        **more,
    )


def _file(path: str, content: Content) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        summary="A file that pages need.",
        roles=None,
        gives=Content,
        answer=partial(_same, content),
        quiet=True,
    )


def _same(content: Content) -> Content:
    return content
