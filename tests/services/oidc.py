"""A real OAuth 2.0 and OpenID server for tests: npm's oidc-provider on loopback, on its own, and a person's browser.

Rules: it listens on 127.0.0.1 alone, keeps what it remembers in a temporary folder (so that it can be killed and
started again), and ends with the process that started it. PKCE is required of every client, refresh tokens rotate and
the use of an old one revokes the family; scopes that it doesn't know are dropped without a word. Token exchange is
the one grant that isn't the library's own: `server.mjs` has the part that narrows the caller's own access token.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html.parser
import http.client
import http.cookiejar
import json
import os
import queue
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

_ROOT = Path(__file__).resolve().parents[2]
_SOURCE = Path(__file__).with_name("oidc")
_CACHE = _ROOT / ".cache" / "oidc"

SCOPES = ("notes.read", "notes.write", "notes.delete")
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"

# A secret with marks in it that RFC 6749 wants form-encoded within Basic authentication.
WEB_SECRET = "s3cr3t/with+marks %and:more"
SERVICE_SECRET = "a service's own secret, longer than most"


class OidcError(RuntimeError):
    """The server didn't start, or answered the person's browser with an error page."""


def node() -> str | None:
    """A node that is new enough, or None."""
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=300, check=False).stdout
    major = said.lstrip("v").partition(".")[0]
    return found if major.isdigit() and int(major) >= 20 else None


def modules() -> Path:
    """The folder with oidc-provider in it, installed when the lock has changed. Raises OidcError."""
    lock = (_SOURCE / "package-lock.json").read_bytes()
    folder = _CACHE / hashlib.sha256(lock).hexdigest()[:16]
    if folder.exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise OidcError("npm isn't installed: run .ci/services")
    _CACHE.mkdir(parents=True, exist_ok=True)
    # Made elsewhere and named at the end: whoever else installs it at the same time gets there first, or second.
    fresh = Path(tempfile.mkdtemp(dir=_CACHE, prefix="new-"))
    fresh.chmod(0o755)
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_SOURCE / name, fresh)
        subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=fresh,
            check=True,
            timeout=550,
            stdin=subprocess.DEVNULL,
        )
        with contextlib.suppress(OSError):
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def default_clients(redirects: Iterable[str] = ("http://127.0.0.1/callback",)) -> list[dict[str, Any]]:
    """The registered clients: `goex` (native, public), `web` (confidential, own loopback), `service` (no person)."""
    native = {"application_type": "native", "response_types": ["code"], "redirect_uris": list(redirects)}
    usual = ["authorization_code", "refresh_token", DEVICE]
    return [
        {**native, "client_id": "goex", "token_endpoint_auth_method": "none", "grant_types": usual},
        {
            **native,
            "client_id": "web",
            "client_secret": WEB_SECRET,
            "token_endpoint_auth_method": "client_secret_basic",
            "grant_types": usual,
        },
        {
            "client_id": "service",
            "client_secret": SERVICE_SECRET,
            "token_endpoint_auth_method": "client_secret_post",
            "grant_types": ["client_credentials"],
            "response_types": [],
            "redirect_uris": [],
            "scope": " ".join(SCOPES),
        },
    ]


@dataclass
class OidcServer:
    """One server. A context manager: started on entry, gone (folder and all) on exit.

    `requests` holds what was asked of its endpoints, in order: dicts with path, status, grant_type, scope, client,
    error. `tls` is (key PEM, certificate chain PEM): then the issuer is https. Times are in seconds.
    """

    access_seconds: int = 3600
    refresh_seconds: int = 86_400
    device_seconds: int = 600
    rotate: bool = True
    offline: bool = False  # a refresh token only with offline_access, as is the library's own way
    exchange: bool = False
    revocation: bool = True
    device: bool = True
    registration: bool = False  # of clients, by whoever asks (RFC 7591)
    scopes: tuple[str, ...] = SCOPES
    resources: dict[str, str] = field(default_factory=dict)  # what a token may be for alone, with its scopes
    clients: list[dict[str, Any]] = field(default_factory=default_clients)
    tls: tuple[str, str] | None = None
    seconds: float = 300.0  # how long a start may take
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    _folder: Path = field(default_factory=Path, repr=False)
    _keys: dict[str, Any] = field(default_factory=dict, repr=False)
    _cookie_key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _said: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue, repr=False)
    _ordering: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def issuer(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def keys(self) -> dict[str, Any]:
        """The keys that it signs with (a JWK set)."""
        return self._keys

    def start(self) -> None:
        """Start it (again) and wait until it listens. Raises OidcError with the end of what it said."""
        found = node()
        if found is None:
            raise OidcError("node 20 or newer isn't installed: run .ci/services")
        if self._folder == Path():
            self._folder = Path(tempfile.mkdtemp(prefix="goex-oidc-"))
            self._keys = {"keys": [_signing_key()]}
        # The issuer has the port in it, and the server is told its issuer: so the port comes first.
        self.port = self.port or _free_port()
        env = {"PATH": os.environ["PATH"], "GOEX_OIDC_MODULES": str(modules())}
        with (self._folder / "stderr.log").open("ab") as stderr:
            self._process = subprocess.Popen(
                [found, str(_SOURCE / "server.mjs")],
                cwd=self._folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._said = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._said), daemon=True).start()
        self._order(
            {
                "issuer": self.issuer,
                "port": self.port,
                "store": str(self._folder / "store.json"),
                "tls": {"key": self.tls[0], "cert": self.tls[1]} if self.tls else None,
                "clients": [
                    {**each, "grant_types": [*each["grant_types"], *([EXCHANGE] if self.exchange else [])]}
                    for each in self.clients
                    if self.device or DEVICE not in each["grant_types"]
                ],
                "jwks": self._keys,
                "cookie_key": self._cookie_key,
                "scopes": list(self.scopes),
                "resources": self.resources,
                "rotate": self.rotate,
                "offline": self.offline,
                "exchange": self.exchange,
                "revocation": self.revocation,
                "device": self.device,
                "registration": self.registration,
                "access_seconds": self.access_seconds,
                "refresh_seconds": self.refresh_seconds,
                "device_seconds": self.device_seconds,
            }
        )

    def late(self, path: str, seconds: float, times: int = 1) -> None:
        """The next `times` requests of `path` are answered `seconds` late."""
        self._order({"path": path, "late": seconds, "times": times})

    def now(self, path: str) -> None:
        """What is late at `path` is answered."""
        self._order({"now": path})

    def drop(self, path: str, times: int = 1) -> None:
        """The next `times` requests of `path` are carried out, and their answer is never sent."""
        self._order({"path": path, "drop": True, "times": times})

    def forget(self, token: bytes) -> None:
        """The server takes one access token no longer; nothing else of its login changes."""
        self._order({"forget": token.decode()})

    def know(self, resources: dict[str, str]) -> None:
        """From now on a token may be for these alone; it was started with some."""
        self.resources = resources
        self._order({"resources": resources})

    def kill(self) -> None:
        """End it at once, as a crash would. What it remembers stays: `start` brings it back."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it and remove its folder. Idempotent."""
        self.kill()
        if self._folder != Path():
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = Path()

    def __enter__(self) -> OidcServer:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def asked(self, path: str = "/token", **facts: Any) -> list[dict[str, Any]]:
        """The requests of `path` that were answered by now and have these facts (a fact of None: absent)."""
        if self._process is not None and self._process.poll() is None:
            self._order({"seen": True})  # its answer comes after what was said of them
        return [
            each
            for each in list(self.requests)
            if each["path"] == path and all(each.get(key) == value for key, value in facts.items())
        ]

    def me(self, token: bytes) -> dict[str, Any]:
        """What the API says of an access token: sub, client, scope. Raises OidcError when it isn't valid."""
        status, answer = self.call("GET", "/api/me", token)
        if status != 200:
            raise OidcError(f"The API answered {status}.")
        return dict(answer)

    def call(self, method: str, path: str, token: bytes, body: Any = None) -> tuple[int, Any]:
        """A request to the API, past GoEx: status and JSON."""
        if self.tls:
            context = ssl.create_default_context(cadata=self.tls[1])
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only the tests' own look past GoEx
            link: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=300, context=context
            )
        else:
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            headers = {"Authorization": f"Bearer {token.decode()}"}
            link.request(method, path, None if body is None else json.dumps(body), headers)
            answer = link.getresponse()
            said = answer.read()
        finally:
            link.close()
        return answer.status, json.loads(said) if said else None

    def _order(self, line: dict[str, Any]) -> None:
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            with self._ordering:
                process.stdin.write(json.dumps(line).encode() + b"\n")
                process.stdin.flush()
                answer = self._said.get(timeout=self.seconds)
        except (OSError, queue.Empty):
            answer = {"ended": True}
        if "ended" in answer:
            log = self._folder / "stderr.log"
            raise OidcError(f"The server ended: {log.read_text(errors='replace')[-1500:] if log.exists() else ''}")

    def _read(self, process: subprocess.Popen[bytes], answers: queue.Queue[dict[str, Any]]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(b"{"):  # the library's own notices
                continue
            said = json.loads(line)
            if "port" in said or "ordered" in said:
                answers.put(said)
            else:
                self.requests.append(said)
        answers.put({"ended": True})


class _Forms(html.parser.HTMLParser):
    """The forms of a page: where each goes and what it sends by itself; the buttons apart."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.forms.append({"action": facts.get("action", ""), "inputs": [], "id": facts.get("id", "")})
        elif tag == "input" and self.forms and "name" in facts:
            self.forms[-1]["inputs"].append(facts)


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the browser ended: the page, or the address that it was sent to and didn't open."""

    status: int
    url: str
    text: str


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """A person's browser: it keeps cookies, signs in, ticks scopes, and follows redirects as far as it is let."""

    def __init__(self, server: OidcServer, login: str = "ada", *, context: ssl.SSLContext | None = None) -> None:
        self.server = server
        self.login = login
        handlers: list[Any] = [urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()), _Stay()]
        handlers.append(urllib.request.ProxyHandler({}))
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def visit(self, url: str, *, allow: Iterable[str] | None = None, deny: bool = False, leave: bool = True) -> Landed:
        """Open `url`, sign in and consent: to every scope, to those of `allow`, or to nothing (`deny`).

        With `leave` False the address outside of the server (the loopback redirect) isn't opened but returned.
        """
        landed = self._fetch(url)
        for _ in range(20):
            if 300 <= landed.status < 400:
                if not leave and not landed.url.startswith(self.server.issuer):
                    return landed
                landed = self._fetch(landed.url)
                continue
            forms = _Forms()
            forms.feed(landed.text)
            if landed.status >= 400 or not forms.forms or not landed.url.startswith(self.server.issuer):
                return landed
            landed = self._submit(landed, forms.forms[0], allow, deny)
        raise OidcError("The pages don't end.")

    def enter_code(self, address: str, code: str, **how: Any) -> Landed:
        """The device flow: type the code at the address that the device shows."""
        landed = self._fetch(address)
        forms = _Forms()
        forms.feed(landed.text)
        sent = [
            (each["name"], each.get("value", "")) for each in forms.forms[0]["inputs"] if each["name"] != "user_code"
        ]
        landed = self._fetch(_joined(landed.url, forms.forms[0]["action"]), [*sent, ("user_code", code)])
        confirm = _Forms()
        confirm.feed(landed.text)
        if not confirm.forms:
            return landed
        sent = [(each["name"], each.get("value", "")) for each in confirm.forms[0]["inputs"]]
        if how.pop("abort", False):
            sent.append(("abort", "yes"))
        landed = self._fetch(_joined(landed.url, confirm.forms[0]["action"]), sent)
        return self.visit(landed.url, **how) if 300 <= landed.status < 400 else landed

    def _submit(self, landed: Landed, form: dict[str, Any], allow: Iterable[str] | None, deny: bool) -> Landed:
        sent: list[tuple[str, str]] = []
        for each in form["inputs"]:
            if each["name"] == "login":
                sent.append(("login", self.login))
            elif each.get("type") != "checkbox" or allow is None or each["value"] in set(allow):
                sent.append((each["name"], each.get("value", "")))
        names = {each["name"] for each in form["inputs"]}
        if "login" not in names:
            sent.append(("answer", "deny" if deny else "allow"))
        return self._fetch(_joined(landed.url, form["action"]) if form["action"] else landed.url, sent)

    def _fetch(self, url: str, form: list[tuple[str, str]] | None = None) -> Landed:
        data = urllib.parse.urlencode(form).encode() if form is not None else None
        try:
            with self._opener.open(urllib.request.Request(url, data), timeout=300) as answer:
                return Landed(answer.status, url, answer.read().decode(errors="replace"))
        except urllib.error.HTTPError as answer:
            with answer:
                text = answer.read().decode(errors="replace")
                if 300 <= answer.code < 400:
                    return Landed(answer.code, _joined(url, answer.headers["Location"]), text)
                return Landed(answer.code, url, text)


def _joined(base: str, where: str) -> str:
    return urllib.parse.urljoin(base, where)


def _signing_key() -> dict[str, str]:
    numbers = rsa.generate_private_key(public_exponent=65_537, key_size=2048).private_numbers()
    parts = {
        "n": numbers.public_numbers.n,
        "e": numbers.public_numbers.e,
        "d": numbers.d,
        "p": numbers.p,
        "q": numbers.q,
        "dp": numbers.dmp1,
        "dq": numbers.dmq1,
        "qi": numbers.iqmp,
    }
    spelled = {name: _base64(value.to_bytes((value.bit_length() + 7) // 8, "big")) for name, value in parts.items()}
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", **spelled}


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
