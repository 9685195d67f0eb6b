"""What the tests of logins share: a person who logs in at the real server, and a server that does anything."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from policies.accounts import Account, Origin
from tests.services.oidc import Browser, Landed, OidcServer
from tests.vault.support import account
from vault.oauth.code import CodeLogin
from vault.oauth.discovery import discover
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

GOEX = Client(client_id="goex")
LIFE = timedelta(minutes=10)
CANARY = "canary-31d7e0a94b"


def scopes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def soon() -> datetime:
    return datetime.now(UTC) + LIFE


def http(**how: Any) -> Http:
    return Http(private=True, **how)


def begin(server: OidcServer, wanted: str, client: Client = GOEX, **how: Any) -> CodeLogin:
    return CodeLogin.begin(discover(server.issuer, http()), client, scopes(wanted), http(), **how)


def log_in(server: OidcServer, wanted: str, client: Client = GOEX, login: str = "ada", **page: Any) -> TokenSet:
    """A person logs in with their browser, and allows what `page` says."""
    started = begin(server, wanted, client)
    with visiting(server, started.url, login=login, **page):
        return started.wait(300)


@contextlib.contextmanager
def visiting(server: OidcServer, url: str, *, login: str = "ada", **page: Any) -> Iterator[Future[Landed]]:
    """A browser that goes through the pages meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(Browser(server, login).visit, url, **page)
        yield visit
        visit.result(300)


def oauth_account(name: str = "work") -> Account:
    return account(service="notes", name=name, format="oauth", origins=(API,), base_url=str(API))


API = Origin.parse("https://api.example.org")


@dataclass(slots=True)
class Visit:
    """One request as the hostile server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body, keep_blank_values=True).items()}


Reply = Callable[[socket.socket, Visit], None]


def answer(
    body: Any = b"", *, status: int = 200, kind: str = "application/json", headers: dict[str, str] | None = None
) -> Reply:
    """An ordinary HTTP answer; JSON unless `body` is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return raw(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)


def raw(data: bytes) -> Reply:
    """These bytes, then the end of the connection."""

    def send(link: socket.socket, _: Visit) -> None:
        link.sendall(data)

    return send


def hang(link: socket.socket, _: Visit) -> None:
    """Nothing, until the other side goes."""
    with contextlib.suppress(OSError):
        link.settimeout(30)
        link.recv(1)


def drip(link: socket.socket, _: Visit) -> None:
    """A head that never ends, one byte at a time."""
    with contextlib.suppress(OSError):
        link.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not _CLOSED.wait(0.05):
            link.sendall(b"a")


_CLOSED = threading.Event()


def tokens(**changed: Any) -> dict[str, Any]:
    """A token endpoint's success."""
    made = {"access_token": f"{CANARY}-access", "token_type": "Bearer", "expires_in": 3600, "scope": "notes.read"}
    return {key: value for key, value in {**made, **changed}.items() if value is not None}


@dataclass
class Hostile:
    """A server on loopback that answers each path with what is set for it: one reply, or a list of them in turn."""

    replies: dict[str, Reply | list[Reply]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=socket.socket)
    port: int = 0

    def __enter__(self) -> Hostile:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def provider(self, **changed: Any) -> Provider:
        made = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "device_endpoint": f"{self.issuer}/device",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "jwks_uri": f"{self.issuer}/jwks",
        }
        return Provider(**{**made, **changed})

    def metadata(self, **changed: Any) -> dict[str, Any]:
        made = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
        }
        return {key: value for key, value in {**made, **changed}.items() if value is not None}

    def asked(self, path: str) -> list[Visit]:
        return [each for each in self.visits if urlsplit(each.path).path == path]

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.closing(link), contextlib.suppress(OSError):
            visit = _read(link)
            self.visits.append(visit)
            found = self.replies.get(urlsplit(visit.path).path, answer({}, status=404))
            reply = found.pop(0) if isinstance(found, list) else found
            reply(link, visit)
            link.shutdown(socket.SHUT_WR)


def _read(link: socket.socket) -> Visit:
    link.settimeout(300)
    data = b""
    while b"\r\n\r\n" not in data:
        more = link.recv(65_536)
        if not more:
            raise OSError("gone")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += link.recv(65_536)
    return Visit(method, path, headers, body.decode())


def token_set(hostile: Hostile, **changed: Any) -> TokenSet:
    """A login at the hostile server, as if it had gone well."""
    from vault.oauth.token_set import Access

    now = datetime.now(UTC)
    made: dict[str, Any] = {
        "provider": hostile.provider(),
        "client": GOEX,
        "flow": "code",
        "family": "f" * 32,
        "access": Access(
            token=Secret(f"{CANARY}-first"),
            scopes=scopes("notes.read notes.write"),
            obtained=now,
            expires=now + timedelta(hours=1),
            stated=True,
        ),
        "refresh": Secret(f"{CANARY}-refresh-1"),
        "asked": scopes("notes.read notes.write"),
        "granted": scopes("notes.read notes.write"),
        "private": True,
    }
    return TokenSet(**{**made, **changed})
