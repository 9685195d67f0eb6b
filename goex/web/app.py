"""The page as a Starlette application: static files for everybody, calls of the daemon for a session.

Rules: each request is for exactly the page's own host, which ends DNS rebinding; one that comes from a page comes from
ours at that very host, by Origin and Sec-Fetch-Site, so nobody beyond the tunnel speaks as this machine's page. Nothing
is loaded from elsewhere, nothing is shown in a frame, a body has a bound.
Who has no session may come with a link's code or, at the public origin alone, sign in with a passkey: that is asked
seldom enough, learns nothing of what is there, and the daemon judges it.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from goex.client import Refused
from goex.web.access import Access, Session, Strangers
from goex.web.daemon_calls import STREAMED, UNARY, DaemonCalls
from policies.display_text import escape
from policies.errors import Denied, GoexError, InvalidInput

STATIC = Path(__file__).with_name("static")
LARGEST_BODY = 2**20
LARGEST_STRANGERS = 2**16  # of a body by whoever has no session
LOOK_SECONDS = 10.0  # after which it is asked anew which passkeys there are
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "publickey-credentials-get=(self), publickey-credentials-create=(self)",
    "Cache-Control": "no-store",
}

Handler = Callable[[Request], Awaitable[Response]]


class Guard:
    """Refuses what isn't for this page or doesn't come from it, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, origins: frozenset[str]) -> None:
        self._app = app
        self._at = {origin.partition("://")[2]: origin for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no WebSocket is taken: uvicorn answers with 403

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            self._check(Request(scope))
        except GoexError as error:
            await _problem(error)(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)

    def _check(self, request: Request) -> None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._at:
            raise _Misdirected
        if request.method in ("GET", "HEAD"):
            return
        if request.headers.getlist("origin") != [self._at[hosts[0]]]:
            raise Denied("This request comes from another page.")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Denied("This request comes from another page.")
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise InvalidInput("The body must be JSON.")


class Page:
    """What the page answers. It is reached at the origin `here` on this machine, and at `public` unless that is ""."""

    def __init__(self, here: str, public: str, access: Access, calls: DaemonCalls) -> None:
        self._here = here
        self._origins = frozenset({here, public} - {""})
        self._access = access
        self._calls = calls
        self._strangers, self._holders = Strangers(), Strangers()
        self._passkeys: frozenset[str] = frozenset()  # the ids of those that are registered, as of `_looked`
        self._looked = -math.inf
        self._signed_in: set[asyncio.Task[None]] = set()

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", _file(STATIC / "index.html")),
            *(Route(f"/{file.name}", _file(file)) for file in sorted(STATIC.iterdir())),
            Route("/enter", self._enter, methods=["POST"]),
            Route("/sign-in/challenge", self._challenge, methods=["POST"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/leave", self._leave, methods=["POST"]),
            Route("/call/{service}/{method}", self._call, methods=["POST"]),
        ]
        handlers: Mapping[Any, ExceptionHandler] = {GoexError: _on_problem, ClientDisconnect: _on_disconnect}
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False  # it would lead from https to http
        return Guard(app, self._origins)

    async def _enter(self, request: Request) -> Response:
        origin = request.headers["origin"]
        if not self._access.enter(await _text_in(request, "code"), origin):
            raise _NoSession("This link was used already, or is too old.")
        if origin == self._here:
            return _token(self._access.begin(origin))
        return _token(self._token_for(origin, *await self._calls.begin_by_link()))

    async def _challenge(self, request: Request) -> Response:
        """Options for an assertion that begins a session here; to whoever asks."""
        origin = await self._may_sign_in(request, await _text_in(request, "passkey", ""))
        asked = json.dumps({"sign_in": {}, "origin": origin}).encode()
        try:
            answer = json.loads(await self._calls.call("Passkeys/Challenge", asked))
        except GoexError:  # why is none of a stranger's business
            raise _NoSession("No passkey begins a session here now.") from None
        return Response(json.dumps({"options_json": answer["options_json"]}), media_type="application/json")

    async def _sign_in(self, request: Request) -> Response:
        assertion = await _text_in(request, "assertion_json")
        origin = await self._may_sign_in(request, _credential_in(assertion))
        try:
            session, ended = await self._calls.sign_in(assertion)
        except GoexError:
            raise _NoSession("This passkey begins no session here now.") from None
        return _token(self._token_for(origin, session, ended))

    def _token_for(self, origin: str, session: str, ended: Callable[[], Coroutine[Any, Any, None]]) -> str:
        """The token of a tab's session, which ends with the daemon's, and the daemon's with it."""
        token = self._access.begin(origin, session)
        mine = self._access.of(token, origin)
        assert mine is not None

        async def hold() -> None:
            either = {asyncio.create_task(ended()), asyncio.create_task(self._access.lasting(mine))}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in either:
                    each.cancel()
                self._access.leave(token)

        task = asyncio.create_task(hold())
        self._signed_in.add(task)
        task.add_done_callback(self._signed_in.discard)
        return token

    async def _may_sign_in(self, request: Request, passkey: str) -> str:
        """The origin. Whoever names a registered passkey, whose id no stranger is told, is counted apart from those."""
        origin = request.headers["origin"]
        if origin == self._here:
            raise _NoSession("On this machine the page is opened by its link.")
        holds = passkey != "" and passkey in await self._registered()
        if not (holds and self._holders.may()) and not self._strangers.may():
            raise _TooOften("Too many try to sign in.", next_step="Wait a minute.")
        return origin

    async def _registered(self) -> frozenset[str]:
        """The ids of the passkeys, which the daemon is asked for seldom, whoever asks how often."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            try:
                found = json.loads(await self._calls.call("Passkeys/List", b""))["passkeys"]
            except GoexError:  # the vault is sealed, or no daemon is there: nobody signs in then
                found = []
            self._passkeys = frozenset(one["credential_id"] for one in found)
        return self._passkeys

    async def _leave(self, request: Request) -> Response:
        token, _ = self._session(request)
        self._access.leave(token)
        return Response("{}", media_type="application/json")

    async def _call(self, request: Request) -> Response:
        _, session = self._session(request)
        method = f"{request.path_params['service']}/{request.path_params['method']}"
        body = await _body(request)
        if method in STREAMED:
            stream = self._lasting(self._calls.stream(method, body, session.page_session), session)
            return StreamingResponse(_lines(stream), media_type="application/x-ndjson")
        if method not in UNARY:
            raise _Unknown("The page doesn't offer this call.")
        return Response(await self._calls.call(method, body, session.page_session), media_type="application/json")

    async def _lasting(self, stream: AsyncGenerator[bytes], session: Session) -> AsyncIterator[bytes]:
        """What is streamed, until the session ends."""
        over = asyncio.create_task(self._access.lasting(session))
        try:
            while True:
                line = asyncio.create_task(anext(stream, b""))
                try:
                    await asyncio.wait({line, over}, return_when=asyncio.FIRST_COMPLETED)
                    if over.done():
                        raise _NoSession("This tab's session has ended.")
                    if not (found := await line):
                        return
                finally:
                    line.cancel()
                    await asyncio.wait({line})
                yield found
        finally:
            over.cancel()
            await stream.aclose()

    def _session(self, request: Request) -> tuple[str, Session]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._access.of(token, request.headers["origin"]) if scheme == "Bearer" else None
        if found is None:
            raise _NoSession("This tab has no session.")
        return token, found


class _Misdirected(Denied):
    code = "host"

    def __init__(self) -> None:
        super().__init__("This page isn't reached by that name.", next_step="Open it with: goex web")


class _NoSession(Denied):
    code = "session"

    def __init__(self, message: str) -> None:
        super().__init__(message, next_step="Open the page anew: goex web")


class _Unknown(InvalidInput):
    code = "unknown-call"


class _TooOften(Denied):
    code = "too-often"


_STATUS = {"too-often": 429, "host": 421, "session": 401, "unknown-call": 404, "too-large": 413}


async def _lines(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What is streamed; a failure is its last line."""
    try:
        async for line in stream:
            yield line
    except GoexError as error:
        yield _said(error) + b"\n"


def _problem(error: GoexError) -> Response:
    status = _STATUS.get(error.code)
    if status is None:
        status = 403 if isinstance(error, Denied) else 400
    return Response(_said(error), status_code=status, media_type="application/json")


def _said(error: GoexError) -> bytes:
    message, next_step = (escape(text, newlines=True) for text in (error.message, error.next_step))
    found = {"code": error.code, "message": message, "next_step": next_step}
    if isinstance(error, Refused) and error.code == "passkey" and error.details:
        found["waiting"] = error.details[0]  # the id of the call that was refused, for a passkey to confirm
    return json.dumps({"problem": found}, ensure_ascii=False).encode()


class _TooLarge(InvalidInput):
    code = "too-large"


async def _text_in(request: Request, name: str, otherwise: str | None = None) -> str:
    """A text in the body of somebody who has no session. Raises InvalidInput without it, unless there is another."""
    try:
        found = json.loads(await _body(request, LARGEST_STRANGERS)).get(name, otherwise)
        found.encode()  # no half of a character
    except (ValueError, AttributeError, RecursionError):
        found = None
    if not isinstance(found, str):
        raise InvalidInput(f"The body must be an object with {name}, a text.")
    return found


def _credential_in(assertion: str) -> str:
    """The id of the passkey that an assertion says it is of, unproven; ""."""
    try:
        found = json.loads(assertion).get("id", "")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _token(token: str) -> Response:
    return Response(json.dumps({"token": token}), media_type="application/json")


async def _body(request: Request, most: int = LARGEST_BODY) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise _TooLarge(f"The body is longer than {most} bytes.")
    return bytes(body)


def _file(file: Path) -> Handler:
    async def answer(_: Request) -> Response:
        return FileResponse(file, headers={"Content-Type": _TYPES[file.suffix]})

    return answer


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, GoexError)
    return _problem(error)


async def _on_disconnect(_: Request, error: Exception) -> Response:
    return Response(status_code=400)
