"""One request to an authorization server (or a homeserver), through Authlib's requests client, and nothing else of the
two.

Rules: one connection a request, to an address that was looked up once and checked, with the certificate verified for
the name; no proxy, cookie, netrc or redirect; an end to everything: to the look-up, the answer's length, all that is
read around it (interim answers, headers, sizes of chunks, trailers) and the whole request. requests' own errors hold
the request, and with it the secret: what happened leaves this file as words.

This module imports requests and Authlib, which takes a while: whoever needs it imports it when the time comes.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote_plus

import requests
import urllib3
from authlib.integrations.requests_client import OAuth2Session
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from policies.addresses import refusal

_CHUNK = 65_536
_AROUND = 65_536  # bytes that an answer may have around its body, beside as many as that may have
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "goex", "Connection": "close"}

Resolve = Callable[[str, int], list[str]]
Kind = Literal["unreachable", "address", "answer"]


class Failed(Exception):
    """The request came to nothing. `why` is in words; `sent`: the server may have seen it. Never leaves the package."""

    def __init__(self, why: str, *, sent: bool, kind: Kind = "unreachable") -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whole: `body` is at most as long as was allowed."""

    status: int
    content_type: str
    retry_after: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How requests go: to which addresses, with which certificates, for how long (seconds) and how much (bytes)."""

    private: bool
    context: ssl.SSLContext
    resolve: Resolve
    seconds: float
    limit: int


def system_resolve(host: str, port: int) -> list[str]:
    """Every address of a name, by the system's resolver. Raises OSError."""
    return list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


def get(way: Way, url: str) -> Reply:
    """GET. Raises Failed."""
    return _send(way, requests.Request("GET", url, headers=_HEADERS), requests.Session())


def post(way: Way, url: str, form: Mapping[str, str], *, client_id: str, secret: str, method: str) -> Reply:
    """POST a form as a client that proves itself by `method`; without an id the form proves itself. Raises Failed."""
    session = OAuth2Session(client_id, secret or None, token_endpoint_auth_method=method)
    session.register_client_auth_method(("client_secret_basic", _basic))
    return _send(
        way,
        requests.Request(
            "POST", url, headers=_HEADERS, data=dict(form), auth=session.client_auth(method) if client_id else None
        ),
        session,
    )


def send_json(way: Way, method: str, url: str, body: bytes, *, token: str = "") -> Reply:
    """PUT or POST JSON, with a bearer token where there is one. Raises Failed."""
    headers = {**_HEADERS, "Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return _send(way, requests.Request(method, url, headers=headers, data=body), requests.Session())


def authorization_url(
    url: str, *, client_id: str, redirect_uri: str, scope: str, state: str, verifier: str, extra: Mapping[str, str]
) -> str:
    """The address where the person's browser begins, with the challenge of `verifier` by S256."""
    session = OAuth2Session(client_id, redirect_uri=redirect_uri, scope=scope or None, code_challenge_method="S256")
    made, _ = session.create_authorization_url(url, state=state, code_verifier=verifier, **extra)
    return str(made)


def _basic(client: Any, method: str, uri: str, headers: Any, body: Any) -> tuple[str, Any, Any]:
    """RFC 6749 section 2.3.1: id and secret are form-encoded first, which Authlib's own way leaves out."""
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode('ascii')).decode('ascii')}"
    return uri, headers, body


class _Line:
    """The one connection of a request: it can be cut from outside at any time, also within a TLS handshake."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.sent = False
        self.cut = False
        self._handle: socket.socket | None = None
        self._lock = threading.Lock()

    def connect(self, host: str, port: int) -> socket.socket:
        error = "it has no address"
        for address in self._addresses(host, port):
            if self.cut:
                break
            try:
                link = socket.create_connection((address, port), timeout=self.way.seconds)
            except OSError as problem:
                error = _said(problem)
                continue
            with self._lock:
                # A copy of the descriptor: the TLS layer takes the socket's own away.
                self._handle = socket.socket(fileno=os.dup(link.fileno()))
            if self.cut:
                self.end()
            return link
        raise Failed(error, sent=False)

    def end(self) -> None:
        """Cut it. From any thread."""
        self.cut = True
        with self._lock, contextlib.suppress(OSError):
            if self._handle is not None:
                self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def _addresses(self, host: str, port: int) -> list[str]:
        found = _within(self.way.seconds / 2, lambda: self.way.resolve(host.strip("[]"), port))
        if isinstance(found, Exception) or found is None:
            why = "looking up its name took too long" if found is None else "its name isn't known"
            raise Failed(why, sent=False)
        for address in found:
            reason = refusal(address, host=host.strip("[]"), private=self.way.private)
            if reason:
                raise Failed(reason, sent=False, kind="address")
        return list(found)


def _within(seconds: float, work: Callable[[], list[str]]) -> list[str] | Exception | None:
    """What `work` gives, its error, or None when it takes longer: a look-up can't be called off, only left alone."""
    answer: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put(work())
        except (OSError, UnicodeError) as error:
            answer.put(error)

    threading.Thread(target=run, name="goex-resolve", daemon=True).start()
    try:
        return answer.get(timeout=seconds)
    except queue.Empty:
        return None


class _Meter(io.RawIOBase):
    """What a socket gives, up to `most` bytes. Then it raises Failed."""

    def __init__(self, below: io.RawIOBase, most: int) -> None:
        self._below, self._most, self._read = below, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        count = self._below.readinto(buffer)
        self._read += count or 0
        if self._read > self._most:
            raise Failed(f"it is longer than {self._most} bytes with what is around it", sent=True, kind="answer")
        return count

    def close(self) -> None:
        self._below.close()
        super().close()


def _adapter(line: _Line) -> HTTPAdapter:
    class Metered(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *how: Any, **more: Any) -> None:
            super().__init__(sock, *how, **more)
            self.fp = io.BufferedReader(_Meter(self.fp.detach(), 2 * line.way.limit + _AROUND))

    class Pinned(HTTPConnection):
        """Goes through the line, and tells it when something was sent."""

        response_class = Metered

        def _new_conn(self) -> socket.socket:
            return line.connect(self.host, self.port)

        def send(self, data: Any) -> None:
            if self.sock is None:
                self.connect()
            line.sent = True
            super().send(data)

    class PinnedSecurely(Pinned, HTTPSConnection):
        pass

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Pinned

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = PinnedSecurely

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *_: Any, **__: Any) -> None:
            self.poolmanager = urllib3.PoolManager(num_pools=1, maxsize=1, retries=False, ssl_context=line.way.context)
            self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

        def cert_verify(self, *_: Any, **__: Any) -> None:
            """The context has the authorities; requests would add its own bundle to them."""

    return Adapter(max_retries=0)


def _send(way: Way, request: requests.Request, session: requests.Session) -> Reply:
    session.trust_env = False
    line = _Line(way)
    timer = threading.Timer(way.seconds, line.end)
    timer.daemon = True
    timer.start()
    failure: Failed | None = None
    reply: Reply | None = None
    try:
        with contextlib.closing(_adapter(line)) as adapter:
            # Past Session.send: that follows redirects, keeps cookies and runs hooks.
            answer = adapter.send(session.prepare_request(request), stream=True, timeout=way.seconds, proxies={})
            with contextlib.closing(answer):
                reply = _read(answer, way.limit)
    except Failed as error:
        failure = Failed(error.why, sent=error.sent or line.sent, kind=error.kind)
    except requests.exceptions.SSLError as error:
        failure = Failed(f"its certificate isn't valid: {_said(error)}", sent=line.sent)
    except (
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        http.client.HTTPException,
        OSError,
        ValueError,
    ) as error:
        failure = Failed(_said(error), sent=line.sent)
    finally:
        timer.cancel()
        line.close()
    if line.cut:
        failure = Failed("it didn't answer in time", sent=line.sent)
    if failure is not None:
        raise failure
    assert reply is not None
    return reply


def _read(answer: requests.Response, limit: int) -> Reply:
    if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise Failed("it is compressed, which wasn't asked for", sent=True, kind="answer")
    body = bytearray()
    while True:
        chunk = answer.raw.read(_CHUNK, decode_content=False)
        if not chunk:
            break
        body += chunk
        if len(body) > limit:
            raise Failed(f"it is longer than {limit} bytes", sent=True, kind="answer")
    return Reply(
        status=answer.status_code,
        content_type=answer.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        retry_after=answer.headers.get("Retry-After", ""),
        body=bytes(body),
    )


def _said(error: BaseException) -> str:
    """What kind of failure that was, in words that hold nothing of the request."""
    seen = error
    for _ in range(8):
        if isinstance(seen, ssl.SSLCertVerificationError):
            return str(seen.verify_message).rstrip(".")
        if isinstance(seen, TimeoutError | urllib3.exceptions.TimeoutError):
            return "it didn't answer in time"
        if isinstance(seen, ConnectionRefusedError):
            return "nothing listens there"
        if isinstance(seen, ssl.SSLError):
            return "it doesn't speak TLS as it should"
        if isinstance(seen, http.client.RemoteDisconnected | ConnectionResetError | http.client.IncompleteRead):
            return "it broke the connection off"
        if isinstance(seen, http.client.LineTooLong):
            return "a line of its answer is too long"
        if type(seen) is http.client.HTTPException:
            return "its answer has too many headers"
        inner = [each for each in (*seen.args, getattr(seen, "reason", None)) if isinstance(each, BaseException)]
        following = inner[0] if inner else seen.__cause__ or seen.__context__
        if following is None:
            break
        seen = following
    return f"the connection failed ({type(seen).__name__})"
