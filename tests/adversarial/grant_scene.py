"""A daemon with an agent, and a service shaped as Slack and GitHub that has something to keep secret.

An attack here comes as an agent would bring it: over `agent.sock`, to a daemon in a process of its own, through its
gateway, to the service. It succeeds when the service got something that no person was asked about.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.runtimes.gateway.authority import TestCA
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide

CA = TestCA()
SECRET = "the merger is on Friday"
SAID = {"C0LUNCH": "pizza at noon", "C0BOARD": SECRET}
UNSAFE = Path(__file__).parent / "unsafe_daemon"


def answer_to(number: int, path: str) -> dict[str, Any]:
    """What an earlier call's answer fills in."""
    return {"$from": number, "path": path}


def call(id: str, **arguments: Any) -> pb.Call:
    service, _, method = id.partition(".")
    return pb.Call(service=service, method=method, account="work", arguments_json=json.dumps(arguments))


def several(*calls: pb.Call, **more: Any) -> pb.ExecuteRequest:
    return pb.ExecuteRequest(calls=pb.Calls(calls=calls), **more)


# Stands before what takes values of answers, so that nothing is read before all of it is decided on.
FIRST = call("slack.reactions.add", channel="C0ALL", timestamp="1.1", name="eyes")


def relay(channel: str, **more: Any) -> pb.ExecuteRequest:
    """Read a channel, and post what was said in it for everybody, all of it decided on at once."""
    return several(
        FIRST,
        call("slack.conversations.history", channel=channel, limit=1),
        call("slack.chat.postMessage", channel="C0ALL", text=answer_to(1, "$.messages[0].text")),
        **more,
    )


def read_and_post(channel: str, **more: Any) -> pb.ExecuteRequest:
    """The same, where what is read is decided on first, and the post when its words are known."""
    return several(
        call("slack.conversations.history", channel=channel, limit=1),
        call("slack.chat.postMessage", channel="C0ALL", text=answer_to(0, "$.messages[0].text")),
        **more,
    )


@dataclass
class Service:
    """What it got, in order."""

    port: int = 0
    got: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)  # messages
    first: str = "C0LUNCH"  # the channel that stands first in the list of channels

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def posted(self) -> list[str]:
        return [given.get("text", "") for verb, path, given in self.got if path == "/chat.postMessage"]

    def answer(self, verb: str, path: str, given: dict[str, Any]) -> dict[str, Any]:
        match path.rsplit("/", 1)[-1]:
            case "conversations.history":
                return {"ok": True, "messages": [{"text": SAID.get(given["channel"], ""), "ts": "1.1"}]}
            case "conversations.list":
                return {"ok": True, "channels": [{"id": self.first, "name": "first"}]}
            case "chat.postMessage":
                return {"ok": True, "channel": given["channel"], "ts": f"1700000000.{len(self.got):06}"}
            case "chat.delete":
                self.deleted.add(given["ts"])
                return {"ok": True}
            case "chat.getPermalink" if given["message_ts"] in self.deleted:
                return {"ok": False, "error": "message_not_found"}
            case "chat.getPermalink":
                return {"ok": True, "permalink": "https://x/1"}
        number = 7 if self.first == "C0LUNCH" else 666
        return {"ok": True, "number": number, "title": "A", "state": "open", "user": {"login": "ann"}}


@contextmanager
def serving() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            parts = urlsplit(self.path)
            given = dict(parse_qsl(parts.query)) | (json.loads(data) if data else {})
            service.got.append((self.command, parts.path, given))
            body = json.dumps(service.answer(self.command, parts.path, given)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = CA.context("127.0.0.1", "localhost").wrap_socket(server.socket, server_side=True)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Scene:
    """One daemon. Each attack has an agent of its own, so that no grant of another helps it."""

    daemon: Daemon
    service: Service
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    agent: str = ""
    token: str = ""
    rules: dict[str, str] = field(default_factory=dict)

    def new_agent(self) -> None:
        self.agent = f"scout-{next(self.numbers)}"
        self.token = self.daemon.add_agent(self.agent)
        self.service.got.clear()
        self.service.first = "C0LUNCH"

    def ask(self, request: Any) -> Journey:
        return Journey(self.daemon, request, token=self.token)

    def allow(self, request: Any, width: str) -> pb.Finished:
        """The person says yes as widely as is offered, up to that width."""
        journey = self.ask(request)
        approval = journey.asked()
        decide(self.daemon, approval, width=width if width in approval.widths else "once")
        finished = journey.finished()
        assert finished.action.state == "done", finished
        return finished

    def unasked(self, request: Any) -> bool:
        """Whether it runs to its end without a question. A question is answered with no."""
        journey = self.ask(request)
        for event in journey._events:
            kind = event.WhichOneof("what")
            if kind == "asking":
                decide(self.daemon, event.asking, approve=False)
            if kind == "finished":
                return bool(event.finished.action.state == "done")
        raise AssertionError("The stream ended.")

    def approval(self, id: str) -> pb.Approval:
        request = pb.ApprovalsRequest(approval_id=id)
        (found,) = self.daemon.person("Approvals", request).approvals
        return found

    def apply(self, text: str) -> None:
        """Add rules about this attack's own agent."""
        self.rules[f"{self.agent}.cedar"] = text.replace("AGENT", f'Agent::"{self.agent}"')
        files = [rb.RuleFile(name=name, text=each) for name, each in self.rules.items()]
        checked = self._rules("CheckRules", rb.CheckRulesRequest(files=files))
        request = rb.ApplyRulesRequest(files=files, compared_with=checked.hash, passphrase=APPROVAL_PASSPHRASE)
        self._rules("ApplyRules", request)

    def _rules(self, method: str, request: Any) -> Any:
        replies: dict[str, Any] = {"CheckRules": rb.CheckRulesReply, "ApplyRules": rb.InForceReply}
        ask = self.daemon.channel(self.daemon.user_socket).unary_unary(
            f"/goex.v1.Rules/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=replies[method].FromString,
        )
        return ask(request, timeout=300)


@contextmanager
def scene(*without: str, config: str = "", env: Mapping[str, str] | None = None) -> Iterator[Scene]:
    """A daemon, whose defences of these names are taken away."""
    with serving() as service, Daemon(env={**unsafe(*without), **(env or {})}, config=config) as daemon:
        for name in ("slack", "github"):
            daemon.person(
                "VaultPut",
                pb.VaultPutRequest(
                    service=name,
                    account="work",
                    base_url=service.url,
                    private=True,
                    ca_pem=CA.pem,
                    secret=b"a-token-of-the-tests-own",
                    passphrase=APPROVAL_PASSPHRASE,
                ),
            )
        yield Scene(daemon, service)


def unsafe(*without: str) -> dict[str, str]:
    return {"PYTHONPATH": str(UNSAFE), "GOEX_TEST_WITHOUT": ",".join(without)} if without else {}
