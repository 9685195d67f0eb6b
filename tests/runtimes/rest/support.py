"""Parts for the tests of REST: contexts with real records on disk, and HTTPS services that keep state.

The services speak TLS with a certificate of their own authority, which the account entry names; they implement just the
meaning of the calls that are tested. Faults are switched on one by one.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call
from policies.jsonvalue import JsonObject
from policies.services import Location
from runtimes.base import Context
from vault.lease import Lease
from vault.secret import Secret

TOKEN = "xoxb-canary-51a6e0f2c9"


def account(service: str, url: str, *, name: str = "work", ca_pem: str = "", private: bool = False) -> Account:
    return Account(
        service=service,
        name=name,
        origins=(Origin.parse(url),),
        base_url=url,
        private=private,
        ca_pem=ca_pem,
    )


def declaring(*headers: str) -> Catalog:
    """A catalog that says that a message is posted to Slack with these headers."""
    slack = Catalog.bundled().service("slack")
    method = slack.methods["chat.postMessage"]
    properties = {**method.parameters["properties"], **{name: {"type": "string"} for name in headers}}
    places: dict[str, Location] = {**method.locations}
    for name in headers:
        places[name] = "header"
    posting = replace(method, parameters={**method.parameters, "properties": properties}, locations=places)
    return Catalog.of([replace(slack, methods={**slack.methods, "chat.postMessage": posting})])


def calls(*made: tuple[str, JsonObject], account: str = "") -> ApiCalls:
    """`calls(("slack.chat.postMessage", {…}), …)`."""
    return ApiCalls(
        calls=tuple(
            Call(service=id.partition(".")[0], method=id.partition(".")[2], arguments=arguments, account=account)
            for id, arguments in made
        )
    )


@dataclass
class DiskRecords:
    """Records in a folder, each write complete before `put` returns. `fail_at` makes the n-th write fail."""

    folder: Path
    fail_at: int = 0
    writes: int = 0
    error: Callable[[], Exception] | None = None

    def put(self, name: str, data: bytes) -> None:
        self.writes += 1
        if self.error is not None and self.writes == self.fail_at:
            raise self.error()
        (self.folder / f"{name}.new").write_bytes(data)
        (self.folder / f"{name}.new").rename(self.folder / name)

    def get(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None


@dataclass
class Bench:
    """One action's surroundings: what the engine would give, and what it would have heard."""

    folder: Path
    accounts: tuple[Account, ...]
    secrets: Mapping[str, str] = field(default_factory=dict)
    granted: frozenset[tuple[str, str, str]] = frozenset()
    notes: list[tuple[str, str, JsonObject]] = field(default_factory=list)
    records: dict[str, DiskRecords] = field(default_factory=dict)
    on_note: Callable[[str, JsonObject], None] | None = None

    def context(self, action_id: str, *, leased: bool = True) -> Context:
        if action_id not in self.records:
            place = self.folder / action_id
            place.mkdir(parents=True, exist_ok=True)
            self.records[action_id] = DiskRecords(place)

        def note(kind: str, facts: JsonObject) -> None:
            json.dumps(facts)  # what can't be journaled must not pass here either
            if self.on_note is not None:
                self.on_note(kind, facts)
            self.notes.append((action_id, kind, facts))

        return Context(
            action_id=action_id,
            agent="tester",
            accounts={(account.service, account.name): account for account in self.accounts},
            granted=self.granted,
            leases=tuple(self._lease(action_id, account) for account in self.accounts) if leased else (),
            records=self.records[action_id],
            note=note,
            progress=lambda text: None,
            output=lambda stream, data: None,
        )

    def kinds(self, action_id: str) -> list[str]:
        return [kind for id, kind, _ in self.notes if id == action_id]

    def _lease(self, action_id: str, account: Account) -> Lease:
        return Lease(
            action_id=action_id,
            account=account,
            secret=Secret(self.secrets.get(account.service, TOKEN)),
            expires=datetime.now(UTC) + timedelta(minutes=5),
        )


@dataclass(frozen=True)
class Hit:
    """One request as a service received it."""

    method: str
    path: str  # raw
    query: dict[str, str]
    body: Any
    headers: dict[str, str]
    raw_query: str = ""


class Service:
    """An HTTPS service on loopback. Subclasses answer in `handle`; `broken` and `lost` make faults."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.lock = threading.Lock()
        self.override: Callable[[Hit], tuple[int, Any] | None] = lambda hit: None
        self.after: Callable[[Hit], None] = lambda hit: None
        self.drop: Callable[[Hit], bool] = lambda hit: False  # handle it, then close without an answer
        self.url = ""
        self.ca_pem = ""

    def handle(self, hit: Hit) -> tuple[int, Any]:
        raise KeyError(hit.path)

    def answer(self, hit: Hit) -> tuple[int, Any] | None:
        with self.lock:
            self.hits.append(hit)
            said = self.override(hit) or self.handle(hit)
            self.after(hit)
            return None if self.drop(hit) else said

    def writes(self) -> list[Hit]:
        return [hit for hit in self.hits if hit.method != "GET"]


class FakeSlack(Service):
    """The meaning of a few Slack methods: messages and channels, with answers shaped as Slack's are."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[tuple[str, str], str] = {}
        self.channels: dict[str, dict[str, Any]] = {
            "C0OPS": {"id": "C0OPS", "name": "ops", "is_archived": False, "topic": {"value": "calm"}}
        }
        self.clock = 1_700_000_000

    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.headers.get("authorization") != f"Bearer {TOKEN}":
            return 200, {"ok": False, "error": "invalid_auth"}
        given = hit.query if hit.method == "GET" else hit.body
        match unquote(hit.path).removeprefix("/api/"):
            case "chat.postMessage":
                channel = self._channel(given["channel"])
                if channel is None:
                    return 200, {"ok": False, "error": "channel_not_found"}
                self.clock += 1
                ts = f"{self.clock}.000100"
                self.messages[channel, ts] = given["text"]
                return 200, {"ok": True, "channel": channel, "ts": ts, "message": {"text": given["text"]}}
            case "chat.delete":
                if self.messages.pop((given["channel"], given["ts"]), None) is None:
                    return 200, {"ok": False, "error": "message_not_found"}
                return 200, {"ok": True, "channel": given["channel"], "ts": given["ts"]}
            case "chat.getPermalink":
                key = given["channel"], given["message_ts"]
                if key not in self.messages:
                    return 200, {"ok": False, "error": "message_not_found"}
                return 200, {"ok": True, "permalink": f"https://x.slack.com/archives/{key[0]}/p{key[1]}"}
            case "conversations.create":
                made = {"id": f"C0{given['name'].upper()}", "name": given["name"], "is_archived": False}
                self.channels[made["id"]] = {**made, "topic": {"value": ""}}
                return 200, {"ok": True, "channel": made}
            case "conversations.archive":
                self.channels[given["channel"]]["is_archived"] = True
                return 200, {"ok": True}
            case "conversations.info":
                return 200, {"ok": True, "channel": self.channels[given["channel"]]}
            case "conversations.setTopic":
                self.channels[given["channel"]]["topic"] = {"value": given["topic"]}
                return 200, {"ok": True, "channel": self.channels[given["channel"]]}
            case "users.list":
                return 200, {"ok": True, "members": []}
        return 404, {"ok": False, "error": "unknown_method"}

    def _channel(self, named: str) -> str | None:
        for channel in self.channels.values():
            if named in (channel["id"], f"#{channel['name']}"):
                return str(channel["id"])
        return None


class FakeGitHub(Service):
    """Issues of one repository, shaped as GitHub's."""

    def __init__(self) -> None:
        super().__init__()
        self.issues: dict[int, dict[str, Any]] = {
            7: {"number": 7, "title": "Old title", "state": "open", "comments": 0, "body": ""}
        }

    def handle(self, hit: Hit) -> tuple[int, Any]:
        parts = unquote(hit.path).strip("/").split("/")
        if parts[:3] == ["repos", "acme", "tool"] and parts[3:4] == ["issues"]:
            if hit.method == "POST" and len(parts) == 4:
                number = max(self.issues) + 1
                self.issues[number] = {"number": number, "state": "open", "comments": 0, **hit.body}
                return 201, self.issues[number]
            issue = self.issues.get(int(parts[4]))
            if issue is None:
                return 404, {"message": "Not Found"}
            if hit.method == "PATCH":
                issue.update(hit.body)
            return 200, issue
        return 404, {"message": "Not Found"}


@contextmanager
def serving(service: Service, folder: Path, *, base: str = "") -> Iterator[Service]:
    """Serve on a loopback port until the block ends. Sets `url` and `ca_pem`."""
    ca_pem, chain = certificates(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            parts = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            kind = self.headers.get("content-type", "")
            body: Any = json.loads(data) if data and "json" in kind else dict(parse_qsl(data.decode()))
            headers = {name.lower(): value for name, value in self.headers.items()}
            hit = Hit(self.command, parts.path, dict(parse_qsl(parts.query)), body, headers, parts.query)
            said = service.answer(hit)
            if said is None:
                self.close_connection = True
                return
            status, value = said
            payload = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    service.url = f"https://127.0.0.1:{server.server_port}{base}"
    service.ca_pem = ca_pem
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certificates(folder: Path) -> tuple[str, Path]:
    """An authority (as PEM text) and a file with a key and a certificate of it for 127.0.0.1."""
    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        builder(x509.Name([]), key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = folder / "server.pem"
    chain.write_bytes(private + leaf.public_bytes(pem))
    return ca.public_bytes(pem).decode(), chain
