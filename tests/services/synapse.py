"""A real Matrix homeserver for tests and the demo: Synapse on a loopback port, in a temporary folder, on its own.

Rules: it federates with nobody, keeps SQLite beside its configuration, and ends with the process that started it.
Only the standard library is used here, so that a script can import this file alone. The helpers speak with the server
directly, never through GoEx: they are what assertions stand on.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

_ROOT = Path(__file__).resolve().parents[2]

# Limits meant for the public internet would make a test suite wait.
_FAST = "{per_second: 10000, burst_count: 10000}"

_CONFIG = """\
server_name: goex.test
public_baseurl: http://127.0.0.1:{port}/
pid_file: {folder}/synapse.pid
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
log_config: {folder}/log.yaml
registration_shared_secret: {shared}
macaroon_secret_key: {macaroon}
form_secret: {form}
report_stats: false
suppress_key_server_warning: true
trusted_key_servers: []
federation_domain_whitelist: []
enable_registration: false
bcrypt_rounds: 4
presence: {{enabled: false}}
url_preview_enabled: false
listeners:
  - port: {port}
    type: http
    bind_addresses: ["127.0.0.1"]
    resources: [{{names: [client], compress: false}}]
database:
  name: sqlite3
  args: {{database: {folder}/homeserver.db}}
rc_message: {fast}
rc_registration: {fast}
rc_login: {{address: {fast}, account: {fast}, failed_attempts: {fast}}}
rc_admin_redaction: {fast}
rc_joins: {{local: {fast}, remote: {fast}}}
rc_joins_per_room: {fast}
rc_invites: {{per_room: {fast}, per_user: {fast}, per_issuer: {fast}}}
rc_room_creation: {fast}
"""

_LOG = """\
version: 1
formatters: {{short: {{format: "%(asctime)s %(levelname)s %(name)s %(message)s"}}}}
handlers: {{file: {{class: logging.FileHandler, formatter: short, filename: {folder}/homeserver.log}}}}
root: {{level: WARNING, handlers: [file]}}
disable_existing_loggers: false
"""


# Ends the server when its standard input closes, so also when whoever started it was killed.
_PROGRAM = """\
import os, runpy, sys, threading
def watch():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module("synapse.app.homeserver", run_name="__main__", alter_sys=True)
"""


class SynapseError(RuntimeError):
    """The homeserver didn't start, or answered with an error; the text holds what it said."""


def find_python() -> str | None:
    """The interpreter that has matrix-synapse: `GOEX_SYNAPSE_PYTHON`, else `.cache/synapse` of this repository."""
    named = os.environ.get("GOEX_SYNAPSE_PYTHON", "")
    if named:
        return named if Path(named).exists() else None
    usual = _ROOT / ".cache" / "synapse" / "bin" / "python"
    return str(usual) if usual.exists() else None


@dataclass
class Synapse:
    """One homeserver. A context manager: started on entry, gone (folder and all) on exit."""

    python: str
    seconds: float = 300.0  # how long a start may take
    port: int = 0
    folder: Path = field(default_factory=Path)
    shared: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The origin that clients use."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises SynapseError with the end of its log."""
        for attempt in range(3):
            try:
                self._start()
                return
            except SynapseError as error:
                # Between finding a free port and binding it, somebody else may take it.
                if attempt == 2 or "in use" not in str(error):
                    raise

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="goex-synapse-"))
        self.port = _free_port()
        (self.folder / "homeserver.yaml").write_text(
            _CONFIG.format(
                port=self.port,
                folder=self.folder,
                shared=self.shared,
                macaroon=secrets.token_hex(16),
                form=secrets.token_hex(16),
                fast=_FAST,
            )
        )
        (self.folder / "log.yaml").write_text(_LOG.format(folder=self.folder))
        # An ed25519 signing key in the server's own one-line form: name, version, unpadded base64 of 32 bytes.
        seed = secrets.token_bytes(32)
        (self.folder / "signing.key").write_text(f"ed25519 a_goex {_unpadded(seed)}\n")
        self._launch()

    def kill(self) -> None:
        """End it at once, with -9; what it had on disk stays."""
        assert self._process is not None and self._process.stdin is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()

    def again(self) -> None:
        """Start one that was killed, with what it has on disk. Raises SynapseError."""
        self._launch()

    def _launch(self) -> None:
        with (self.folder / "stderr.log").open("wb") as stderr:
            self._process = subprocess.Popen(
                [self.python, "-c", _PROGRAM, "-c", str(self.folder / "homeserver.yaml")],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
            )
        deadline = time.monotonic() + self.seconds
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self._tail()
                self.stop()
                raise SynapseError(f"The homeserver didn't start: {said}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it and remove its folder. Idempotent."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self.folder.name.startswith("goex-synapse-"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Synapse:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def register(self, name: str) -> str:
        """Make a user (not an admin) and return an access token of theirs."""
        nonce = self._ask("GET", "/_synapse/admin/v1/register")["nonce"]
        password = secrets.token_urlsafe(12)
        proof = hmac.new(
            self.shared.encode(),
            b"\0".join(part.encode() for part in (nonce, name, password, "notadmin")),
            hashlib.sha1,
        ).hexdigest()
        body = {"nonce": nonce, "username": name, "password": password, "admin": False, "mac": proof}
        return str(self._ask("POST", "/_synapse/admin/v1/register", body)["access_token"])

    def create_room(self, token: str, name: str = "", *, alias: str = "", public: bool = False) -> str:
        """Make a room and return its id. With `public`, others may join by its id."""
        body: dict[str, Any] = {"preset": "public_chat" if public else "private_chat"}
        if name:
            body["name"] = name
        if alias:
            body["room_alias_name"] = alias
        return str(self._ask("POST", "/_matrix/client/v3/createRoom", body, token=token)["room_id"])

    def join(self, token: str, room: str) -> None:
        """Join a public room."""
        self._ask("POST", f"/_matrix/client/v3/join/{quote(room, safe='')}", {}, token=token)

    def send(self, token: str, room: str, text: str, **more: Any) -> str:
        """Send a text message past GoEx; returns the event's id. `more` is merged into the content."""
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/send/m.room.message/{secrets.token_hex(8)}"
        return str(self._ask("PUT", path, {"msgtype": "m.text", "body": text, **more}, token=token)["event_id"])

    def redact(self, token: str, room: str, event: str) -> None:
        """Redact an event past GoEx."""
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/redact/{quote(event, safe='')}/{secrets.token_hex(8)}"
        self._ask("PUT", path, {}, token=token)

    def event(self, token: str, room: str, event: str) -> dict[str, Any]:
        """One event as the server has it now."""
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/event/{quote(event, safe='')}"
        return dict(self._ask("GET", path, token=token))

    def messages(self, token: str, room: str) -> list[dict[str, Any]]:
        """The room's `m.room.message` events, oldest first; a redacted one has an empty `content`."""
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/messages?dir=b&limit=200"
        chunk = self._ask("GET", path, token=token)["chunk"]
        return [event for event in reversed(chunk) if event["type"] == "m.room.message"]

    def texts(self, token: str, room: str) -> list[str]:
        """What stands in the room: the bodies of the messages that weren't redacted, oldest first."""
        return [event["content"]["body"] for event in self.messages(token, room) if "body" in event["content"]]

    def _ask(self, method: str, path: str, body: Any = None, *, token: str = "") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            if token:
                headers["Authorization"] = f"Bearer {token}"
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise SynapseError(f"{method} {path} answered {answer.status}: {data[:300]!r}")
        return json.loads(data)

    def _answers(self) -> bool:
        try:
            self._ask("GET", "/_matrix/client/versions")
        except (OSError, http.client.HTTPException, SynapseError):
            return False
        return True

    def _tail(self) -> str:
        said = ""
        for name in ("stderr.log", "homeserver.log"):
            path = self.folder / name
            if path.exists():
                said += path.read_text(errors="replace")[-1500:]
        return said.strip() or "it said nothing"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unpadded(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
