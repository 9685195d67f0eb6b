"""Real libraries, real names: run as `python -m tests.runtimes.code.sdk_scene FOLDER` in a network and mount namespace
of its own, where every host of the services is this process, on port 443, with a certificate of a test authority.

All the rest is the real thing: programs are read and planned as an action is, the gateway is its own process, and they
run in containers. It prints one JSON object: by program, what was planned, what it printed, what the server got.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gzip
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h11

from mapper.catalog import Catalog
from mapper.manifest import load
from policies.accounts import Account, Origin
from policies.actions import Code
from runtimes.base import Context
from runtimes.code.runtime import CodeRuntime
from runtimes.gateway.client import GatewayClient
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.runtimes.code.sdk_programs import ANTHROPIC, OPENAI, PROGRAMS, Program
from tests.runtimes.gateway.authority import TestCA
from tests.runtimes.rest.support import DiskRecords
from vault.lease import Lease
from vault.secret import Secret

URLS = {
    "slack": "https://slack.com/api",
    "gmail": "https://gmail.googleapis.com/gmail/v1",
    "google_drive": "https://www.googleapis.com/drive/v3",
    "github": "https://api.github.com",
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
HOSTS = sorted({Origin.parse(url).host for url in URLS.values()} | {"collector.example", "www.slack.com"})
LARGE = b"0123456789abcdef" * 65536 * 8  # 8 MiB


def secret_of(service: str) -> str:
    return f"real-{service}-5f0c1e9b7a3d4482"


@dataclass
class Seen:
    host: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "method": self.method,
            "target": self.target,
            "authorization": self.headers.get("authorization", ""),
            "body": self.body.decode(errors="replace")[:2000],
            "size": len(self.body),
        }


@dataclass
class Services:
    """All the services, on one port. Each answers as its API does, as far as the programs go."""

    seen: list[Seen] = field(default_factory=list)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, h11.RemoteProtocolError, ssl.SSLError):
            await self._speak(reader, writer)
        writer.close()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            http, request, body = h11.Connection(h11.SERVER), None, bytearray()
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(await reader.read(2**18))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage) and request is not None:
                    break
                else:
                    return
            headers = {name.decode(): value.decode() for name, value in request.headers}
            seen = Seen(headers["host"], request.method.decode(), request.target.decode(), headers, bytes(body))
            self.seen.append(seen)
            status, fields, content = answer(seen)
            if "gzip" in headers.get("accept-encoding", "") and len(content) < 2**20 and "content-type" in fields:
                content, fields = gzip.compress(content), {**fields, "content-encoding": "gzip"}
            fields = {**fields, "content-length": str(len(content))}
            writer.write(http.send(h11.Response(status_code=status, headers=list(fields.items()))) or b"")
            writer.write(http.send(h11.Data(data=content)) or b"")
            writer.write(http.send(h11.EndOfMessage()) or b"")
            await writer.drain()


def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    """What the service of that host says: only to its own secret."""
    service = next((name for name, url in URLS.items() if Origin.parse(url).host == seen.host), "")
    path = seen.target.partition("?")[0]
    if secret_of(service) not in seen.headers.get("authorization", ""):
        return said({"error": "not logged in"}, 401)
    if service == "slack":
        return said({"ok": True, "channel": "C024BE91L", "ts": "1700000000.000100", "message": {"text": "hi"}})
    if service == "gmail":
        return said({"id": "m-1", "threadId": "t-1", "labelIds": ["SENT"]})
    if service == "google_drive":
        if "alt=media" in seen.target:
            return 200, {"x-goog-hash": "crc32c=n03x6A=="}, LARGE
        return said({"files": [{"id": "f-1", "name": "Plan"}]})
    if service == "github":
        if seen.method == "GET" and path.endswith("/issues"):
            return _issues(seen.target)
        return said(_github(path), 201 if seen.method == "POST" else 200)
    if service == "anthropic":
        return said({"id": "msg-1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                     "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                     "content": [{"type": "text", "text": seen.headers.get("anthropic-version", "")}]})  # fmt: skip
    if path.endswith("/chat/completions") and b'"stream":true' in seen.body.replace(b" ", b""):
        return 200, {"content-type": "text/event-stream"}, _stream()
    return said({"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "forty-two"}}]})  # fmt: skip


def said(value: Any, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-type": "application/json; charset=utf-8"}, json.dumps(value).encode()


def _issues(target: str) -> tuple[int, dict[str, str], bytes]:
    """Two pages; as GitHub does, the first leads to the second by the repository's number."""
    url = "https://api.github.com/repos/octo/hello/issues"
    status, headers, content = said([{"number": 8, "title": "B", "url": f"{url}/8"}])
    if "page=2" not in target:
        _, _, content = said([{"number": 7, "title": "A", "url": f"{url}/7"}])
        next_ = "https://api.github.com/repositories/1300192/issues?state=all&page=2"
        headers["link"] = f'<{next_}>; rel="next", <{next_}>; rel="last"'
    return status, headers, content


def _github(path: str) -> Any:
    repository = {"id": 1, "name": "hello", "full_name": "octo/hello", "url": "https://api.github.com/repos/octo/hello"}
    if path.endswith("/issues"):
        issue = f"{repository['url']}/issues/7"
        return {"id": 7, "number": 7, "title": "Broken", "state": "open", "url": issue}
    return repository


def _stream() -> bytes:
    parts = [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
            {"index": 0, "delta": {"content": word}}]} for word in ("forty", "-", "two")
    ]  # fmt: skip
    return b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts) + b"data: [DONE]\n\n"


def own_network(folder: Path, names: Iterable[str] = HOSTS) -> None:
    """Loopback up, and the hosts' names on it, for this process and what it starts."""
    with socket.socket() as any_socket:
        flags = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # up and running
        fcntl.ioctl(any_socket, 0x8914, flags)
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {host}\n" for host in names))
    subprocess.run([shutil.which("mount") or "mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def context_of(program: Program, folder: Path, accounts: dict[tuple[str, str], Account], said: list[Any]) -> Context:
    records = folder / "records" / program.name
    records.mkdir(parents=True)
    return Context(
        action_id=f"a-{program.name}",
        agent="t",
        accounts=accounts,
        granted=frozenset(),
        leases=(),
        records=DiskRecords(records),
        note=lambda kind, facts: said.append((kind, facts)),
        progress=lambda text: None,
        output=lambda stream, data: None,
    )


def leases(accounts: dict[tuple[str, str], Account], action_id: str) -> tuple[Lease, ...]:
    return tuple(
        Lease(
            action_id=action_id,
            account=account,
            secret=Secret(secret_of(account.service)),
            expires=datetime.now(UTC) + timedelta(minutes=10),
        )
        for account in accounts.values()
    )


async def run(
    program: Program,
    runtime: CodeRuntime,
    folder: Path,
    all_accounts: dict[tuple[str, str], Account],
    services: Services,
) -> dict[str, Any]:
    notes: list[Any] = []
    accounts = {key: account for key, account in all_accounts.items() if key[0] in program.services}
    context = context_of(program, folder, accounts, notes)
    action = Code(
        language=program.language,
        program=program.text,
        services=tuple(f"{name}/work" for name in program.services),
        methods=program.methods,
    )
    services.seen.clear()
    plan = await runtime.assess(action, context)
    methods = sorted({method for need in plan.needs for method in need.methods if need.why == "action"})
    outcome = await runtime.execute(plan, replace(context, leases=leases(accounts, context.action_id)))
    return {
        "planned": methods,
        "ok": outcome.ok,
        "summary": outcome.summary,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "changes": list(outcome.changes),
        "refused": [facts for kind, facts in notes if kind == "refused"],
        "seen": [one.to_json() for one in services.seen],
    }


async def main(folder: Path, names: list[str]) -> dict[str, Any]:
    own_network(folder)
    ca, services = TestCA(), Services()
    server = await asyncio.start_server(services.connected, "127.0.0.1", 443, ssl=ca.context(*HOSTS))
    accounts = {
        (name, "work"): Account(
            service=name,
            name="work",
            origins=(Origin.parse(url),),
            base_url=url,
            private=True,  # the hosts are on loopback here
            ca_pem=ca.pem,
        )
        for name, url in URLS.items()
    }
    bundled = Catalog.bundled()
    others = (load(OPENAI, file="openai.toml"), load(ANTHROPIC, file="anthropic.toml"))
    catalog = Catalog.of([*bundled.services.values(), *others])
    gateway = GatewayClient(folder / "gw")
    sandbox = DockerSandbox(f"test-sdks-{os.getpid()}", scratch_dir=folder / "scratch")
    limits = Limits(memory=512 * 2**20)
    runtime = CodeRuntime(
        sandbox, gateway, catalog, Profile(), profiles=lambda name: Profile(image=name, limits=limits)
    )
    await gateway.start()
    try:
        chosen = [program for program in PROGRAMS if not names or program.name in names]
        return {program.name: await run(program, runtime, folder, accounts, services) for program in chosen}
    finally:
        await gateway.stop()
        await sandbox.close()
        server.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))))
