"""The server as an ASGI application: who asks, whether they may, and when the answer leaves.

Everything that may be refused is refused before a question is read, and every response, refusals
and errors too, leaves on the clock.  No exception gets out of here: its words might be data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.errors import NotAuthorised
from tacit.failures import where_it_happened
from tacit.server.clock import PERIODS, QUICK, Departures, MonotonicClock, RequestKind, ServerClock
from tacit.server.config import Timing
from tacit.server.cookies import NO_TOKEN, from_cookie, refuse_forged
from tacit.server.endpoints import ENDPOINTS, Content, Endpoint
from tacit.server.limits import InFlight, InFlightByToken, Lines, Rate, RequestLine, Room, too_deep
from tacit.server.live import AskedBatch
from tacit.server.log import LogLine, to_standard_error, why_it_happened
from tacit.server.messages import questions_in
from tacit.server.openapi import LINES
from tacit.server.problems import Busy, Refusal, found_wrong, problem, refused
from tacit.server.service import Service
from tacit.server.tokens import PREFIX, TokenRecord, utc_now
from tacit.server.underway import FREE
from tacit.wire import parsed

_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ONLY_ENCRYPTED = {"strict-transport-security": "max-age=31536000"}
_LONGEST_WORDS = 300
_LONGEST_HEADERS = 16_384
_READ_AT_ONCE = 4096  # bytes of a body: fewer are read sooner than a thread would be found
KNOWN = "known"  # in a request's state: what to call when its token is a good one
_NOTED = "tacit"  # where a request's notes are kept in its scope


@dataclass(slots=True)
class Notes:
    """What is learnt about a request on its way: all of it public."""

    # Of all of it, and not before what it waits for had left: whoever could end a request late, or
    # choose when its turn comes, would choose what is late.
    arrival: int
    kind: RequestKind = "look"
    questions: int = 0
    what: str | None = None  # the route; a path that is none may hold anything
    endpoint: Endpoint | None = None
    who: TokenRecord | None = None
    error: str | None = None
    where: str | None = None  # for an error that nobody expected
    why: str | None = None
    unread: bool = True  # whether more of the request may come
    waited: bool = False  # for it, long enough
    batch: AskedBatch | None = None  # what is sent in blocks
    turn: AsyncExitStack = field(default_factory=AsyncExitStack)  # kept until it has left
    line: RequestLine = field(default_factory=RequestLine)  # in which it stands
    messages: list[Message] = field(default_factory=list)
    until_departure: ExitStack = field(default_factory=ExitStack)  # what it counts against


class Application:
    """What uvicorn runs."""

    def __init__(
        self,
        service: Service,
        timing: Timing,
        *,
        clock: ServerClock | None = None,
        log: Callable[[LogLine], None] = to_standard_error,
        encrypted: bool = False,
        pages: Sequence[Endpoint] = (),
    ) -> None:
        self.service = service
        self._pages = pages
        self._clock = MonotonicClock() if clock is None else clock
        self._departures = Departures(timing)
        self._retry_seconds = -(-timing.milliseconds // 1000)  # a period, in whole seconds
        service.timing = timing
        self._log = log
        self._encrypted = encrypted
        self._headers = _HEADERS | (_ONLY_ENCRYPTED if encrypted else {})
        limits = service.limits
        self._in_flight = InFlight(limits.in_flight)  # with a good token
        rooms = {kind: Room(timing.room, timing.waiting(PERIODS[kind])) for kind in PERIODS}
        self._rooms = rooms | dict.fromkeys(QUICK, rooms["look"])
        self._of_a_token = InFlightByToken(limits.in_flight_a_token, "requests")
        self._plans_of_a_token = InFlightByToken(limits.plans_a_token, "plans")
        self._rate = Rate(limits)
        self._lines = Lines()
        self._threads = ThreadPoolExecutor(limits.threads, "tacit")
        self._planners = ThreadPoolExecutor(limits.plans, "tacit-plans")
        self._working = 0
        self._routes = self._starlette()

    def close(self) -> bool:
        """Close the tables and the budget; whether no thread is still at work."""
        for pool in (self._threads, self._planners):
            pool.shutdown(wait=not self._working, cancel_futures=True)
        self.service.close()
        return not self._working

    def _starlette(self) -> ASGIApp:
        found = Starlette(
            routes=[self._route(endpoint) for endpoint in (*ENDPOINTS, *self._pages)],
            exception_handlers={HTTPException: self._no_route},
        )
        found.router.redirect_slashes = False  # to wherever the Host header says
        return found

    def _route(self, endpoint: Endpoint) -> Route:
        async def answered(request: Request) -> Response:
            return await self._answer(endpoint, request)

        return Route(endpoint.path, answered, methods=[endpoint.method])

    # From arrival to departure --------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, when its time has come."""
        if scope["type"] != "http":  # uvicorn is told to offer nothing else
            return
        notes = Notes(self._clock.now())
        scope[_NOTED] = notes
        with notes.until_departure:
            try:
                await self._routes(scope, receive, _collect(notes))
                late = await self._depart(notes)
                if notes.batch is not None:
                    late |= await self._send_blocks(notes, notes.batch, send)
            finally:
                await notes.turn.aclose()
        await self._drain(notes, receive)
        if notes.batch is None:
            for message in notes.messages:
                await send(message)
        self._note_down(notes, late)

    async def _send_blocks(self, notes: Notes, batch: AskedBatch, send: Send) -> bool:
        """Send what is there, and each further block on a tick of its own; whether one was late.

        A block is computed when the one before has left.  If that fails, the failure is the last
        line: the status has been sent.
        """
        (start, first), late, tick = notes.messages, False, self._departures.tick
        await send(start)
        line: bytes | None = first["body"]
        while line is not None:
            sent = notes.line.left = self._clock.now()
            await send({"type": "http.response.body", "body": line, "more_body": True})
            try:
                line = await self._in_thread(self._threads, batch.next_line)
            except Exception as error:
                told = self._told(found_wrong(error), notes, error)
                line, batch.blocks = bytes(told.body) + b"\n", iter(())
            if line is not None:
                departure = self._departures.departure(sent, self._clock.now(), tick)
                await self._clock.wait_until(departure)
                late |= departure - sent > tick
                notes.messages.append({"body": line})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return late

    async def _drain(self, notes: Notes, receive: Receive) -> None:
        """Take in what a refused request still brings, or its sender would not hear why.

        A connection that is closed before all was read is reset.  Who sends more than is allowed,
        or slowly, is not waited for; nor does anybody else wait meanwhile.
        """
        taken = 0
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(self.service.limits.header_seconds):
                while notes.unread and not notes.waited and taken <= self.service.limits.body:
                    taken += len(await _piece(notes, receive))

    async def _depart(self, notes: Notes) -> bool:
        """Wait until the response may leave; whether it was late."""
        delay = self._departures.delay(notes.kind, notes.questions)
        departure = self._departures.departure(notes.arrival, self._clock.now(), delay)
        await self._clock.wait_until(departure)
        notes.line.left = departure
        return departure - notes.arrival > delay

    def _note_down(self, notes: Notes, late: bool) -> None:
        status = next(each["status"] for each in notes.messages if "status" in each)
        self.service.answered[notes.what or "", status] += 1
        if notes.endpoint is not None and notes.endpoint.quiet and status == 200 and not late:
            return
        line = LogLine(
            who=None if notes.who is None else notes.who.name,
            what=notes.what,
            questions=notes.questions,
            status=status,
            bytes=sum(len(each.get("body", b"")) for each in notes.messages),
            late=late,
            error=notes.error,
            where=notes.where,
            why=notes.why,
        )
        if notes.error is not None and status >= 400:  # where one signs in, nothing is refused
            self.service.refusals.append((notes.who, line))
        self._log(line)

    # One request ----------------------------------------------------------------------------

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        """The response, or the problem; whatever is raised ends here."""
        notes: Notes = request.scope[_NOTED]
        notes.what, notes.kind, notes.endpoint = endpoint.path, endpoint.kind, endpoint
        try:
            _refuse_unclear(request)
            if endpoint.gives is Content:
                refuse_forged(request)
            notes.unread = _has_body(request)
            arguments = [] if endpoint.roles is None else self._admitted(endpoint, request, notes)
            if endpoint.takes is not None:
                sent = await self._body(request, notes)
                reading = ("reading", notes.who and notes.who.sha256)  # in order of arrival
                async with self._lines.turn(reading):
                    notes.arrival = self._clock.now()
                    if len(sent) <= _READ_AT_ONCE:
                        asked = self._read(sent, endpoint.takes)
                    else:
                        asked = await self._in_thread(
                            self._threads, self._read, sent, endpoint.takes
                        )
                notes.questions = questions_in(asked)
                arguments.append(asked)
            pool = self._planners if endpoint.kind == "plan" else self._threads
            waiting = self._lines.turn(_line(endpoint, arguments))
            notes.line = await notes.turn.enter_async_context(waiting)
            notes.arrival = max(notes.arrival, notes.line.left)
            if endpoint.roles is not None:
                await self._enter_room(notes)
            if endpoint.gives is AskedBatch:
                return await self._begun(endpoint, notes, arguments)
            made = await self._in_thread(pool, self._work, endpoint, notes, arguments)
        except Busy as busy:
            notes.kind, notes.questions = "look", 0  # it leaves at the next tick
            return self._told(busy, notes)
        except Exception as error:
            return self._told(found_wrong(error), notes, error)
        return Response(made.body, 200, self._headers | made.headers, made.media)

    async def _enter_room(self, notes: Notes) -> None:
        """Wait until it can be worked on, which counts as its arrival; it makes room by leaving."""
        room = self._rooms[notes.kind]
        notes.arrival = max(notes.arrival, await room.enter())
        notes.until_departure.callback(lambda: room.leave(notes.line.left))

    async def _begun(self, endpoint: Endpoint, notes: Notes, arguments: list[Any]) -> Response:
        """The first block of a batch; the others follow when it has left.

        It keeps the stream until all of it has.
        """
        notes.until_departure.callback(self.service.underway.begin())
        try:
            batch: AskedBatch = await self._in_thread(self._threads, endpoint.answer, *arguments)
            notes.until_departure.callback(batch.close)
            line = await self._in_thread(self._threads, batch.next_line)
        except Exception as error:
            if found_wrong(error).status >= 500:  # it may be after a look at any number of cells
                notes.questions = self.service.limits.questions
            raise
        notes.batch, notes.questions = batch, batch.questions
        response = Response(line or b"", 200, self._headers, LINES)
        del response.headers["content-length"]  # more is to come
        return response

    def _work(self, endpoint: Endpoint, notes: Notes, arguments: list[Any]) -> Content:
        """The answer as it leaves, in ASCII, since a question may hold half a character."""
        if endpoint.kind not in FREE:
            notes.until_departure.callback(self.service.underway.begin())
        try:
            answer = endpoint.answer(*arguments)
        finally:  # what failed may have been paid for, too
            if endpoint.kind not in FREE:
                self.service.note_head()
        if isinstance(answer, Content):
            return answer
        if isinstance(answer, str):
            return Content(answer.encode(), "text/plain; version=0.0.4")
        told = json.dumps(msgspec.to_builtins(answer), allow_nan=False)
        return Content(told.encode(), "application/json")

    async def _in_thread(
        self, pool: ThreadPoolExecutor, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Where the event loop is not held up; once begun it cannot be cancelled."""
        loop = asyncio.get_running_loop()
        self._working += 1
        working = loop.run_in_executor(pool, function, *arguments)
        working.add_done_callback(self._worked)
        return await asyncio.shield(working)

    def _worked(self, done: asyncio.Future[Any]) -> None:
        self._working -= 1
        if not done.cancelled():
            done.exception()  # looked at, or asyncio would print it if nobody waits any more

    def _admitted(self, endpoint: Endpoint, request: Request, notes: Notes) -> list[Any]:
        """Who asks, if they may and have not asked too often."""
        try:
            who = self.service.tokens.bearer(_presented(request, self._encrypted), utc_now())
        except NotAuthorised as error:
            raise Refusal(401, error) from None
        request.scope.get("state", {}).get(KNOWN, lambda: None)()
        self._in_flight.enter()
        notes.until_departure.callback(self._in_flight.leave)
        plans = (self._plans_of_a_token,) if endpoint.kind == "plan" else ()
        for counted in (self._of_a_token, *plans):
            counted.enter(who.sha256)
            notes.until_departure.callback(counted.leave, who.sha256)
        notes.who = who
        self._rate.count(who.sha256, notes.arrival)
        if endpoint.roles is not None and who.role not in endpoint.roles:
            roles = " or ".join(sorted(endpoint.roles))
            raise NotAuthorised(f"this is for the role {roles}, and this token's is {who.role}")
        self.service.stopped.refuse("token", who.name)
        return [self.service, who]

    async def _body(self, request: Request, notes: Notes) -> bytes:
        """The whole body, if it is not too long and arrives in time."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise refused(415, "the body must be application/json")
        if request.headers.get("content-encoding"):
            raise refused(415, "the body must not be compressed")
        most, body = self.service.limits.body, bytearray()
        notes.unread = True
        try:
            async with asyncio.timeout(self.service.limits.idle_seconds):
                while notes.unread and len(body) <= most:
                    body += await _piece(notes, request.receive)
        except TimeoutError:
            notes.waited = True
            raise refused(408, "the body did not arrive in time") from None
        if len(body) > most:
            raise refused(413, f"the body is longer than {most} bytes")
        return bytes(body)

    def _read(self, body: bytes, kind: type[Any]) -> Any:
        """The body as what it should be: strictly, and nothing of it is quoted but names."""
        if too_deep(body, self.service.limits.depth):
            raise refused(400, f"the JSON is nested more deeply than {self.service.limits.depth}")
        try:
            return msgspec.convert(parsed(body.decode()), kind)
        except UnicodeDecodeError:
            raise refused(400, "the body is not UTF-8") from None
        except msgspec.ValidationError as error:
            raise refused(
                400, f"the body is not what this path takes: {str(error)[:_LONGEST_WORDS]}"
            ) from None
        except (ValueError, RecursionError):
            raise refused(
                400, "the body is not JSON, or repeats a name, or has NaN or infinity in it"
            ) from None

    # Problems -------------------------------------------------------------------------------

    def _told(self, refusal: Refusal, notes: Notes, error: BaseException | None = None) -> Response:
        """The problem document, and a note for the log."""
        told = problem(refusal, self.service.place)
        notes.error = told["error"]
        if refusal.status >= 500 and error is not None:
            notes.where, notes.why = where_it_happened(error), why_it_happened(error)
        headers = self._headers | ({"connection": "close"} if notes.unread else {})
        if refusal.status == 401:
            headers["www-authenticate"] = "Bearer"
        if isinstance(refusal, Busy):
            headers["retry-after"] = str(self._retry_seconds)
        if refusal.allow:
            headers["allow"] = refusal.allow
        page = notes.endpoint and notes.endpoint.shown_wrong
        if page:
            shown, usual = page(told), refusal.status
            return Response(shown.body, shown.status or usual, headers | shown.headers, shown.media)
        body = json.dumps(told, allow_nan=False).encode()
        return Response(body, refusal.status, headers, "application/problem+json")

    async def _no_route(self, request: Request, error: Exception) -> Response:
        """Starlette found no route, or none for this method."""
        assert isinstance(error, HTTPException)
        notes: Notes = request.scope[_NOTED]
        words = {404: "there is nothing at this path", 405: "this path does not take this method"}
        refusal = refused(error.status_code, words.get(error.status_code, "it is refused"))
        refusal.allow = (error.headers or {}).get("allow", "")
        return self._told(refusal, notes)


async def _piece(notes: Notes, receive: Receive) -> bytes:
    """What comes next of a body, and whether there is more."""
    message = await receive()
    notes.unread = message.get("more_body", False)
    if message["type"] == "http.disconnect":
        raise refused(400, "the body did not arrive whole")
    body: bytes = message.get("body", b"")
    return body


def _line(endpoint: Endpoint, arguments: list[Any]) -> Hashable | None:
    """In which queue a request waits, if in one."""
    if endpoint.line is None:
        return None
    _, who, asked = arguments
    return endpoint.line(who, asked)


def _collect(notes: Notes) -> Send:
    async def collect(message: Message) -> None:
        notes.messages.append(message)

    return collect


def _refuse_unclear(request: Request) -> None:
    """What two servers might read in two ways, and what would end up in a log."""
    query = request.scope["query_string"]
    if PREFIX.encode() in query:
        raise refused(
            400,
            "a token in a URL ends up in logs: it must be taken as leaked",
            "revoke it, and send the new one as Authorization: Bearer",
        )
    if query:
        raise refused(400, "a URL has no query here: send what is asked in the body")
    headers = request.scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > _LONGEST_HEADERS:
        raise refused(431, f"the headers are longer than {_LONGEST_HEADERS} bytes")
    names = [name for name, _ in headers]
    for name in (b"content-length", b"transfer-encoding", b"content-type", b"authorization"):
        if names.count(name) > 1:
            raise refused(400, f"the header {name.decode()} stands twice")
    if b"content-length" in names and b"transfer-encoding" in names:
        raise refused(400, "content-length and transfer-encoding exclude each other")


def _has_body(request: Request) -> bool:
    headers = request.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _presented(request: Request, encrypted: bool) -> str:
    """The token of a request: in a header, or in the cookie of whoever signed in."""
    kept = from_cookie(request, encrypted=encrypted)
    if kept is not None and "authorization" not in request.headers:
        refuse_forged(request)
        return kept
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthorised(NO_TOKEN, advice="send it as Authorization: Bearer")
    return token.strip()
