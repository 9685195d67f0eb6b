"""What agents ask a daemon for in `make soak`: small programs that use a service, and among them all that goes wrong.

Rules: each says how it must end, and is held to it; each leaves something: files, a process that sleeps on, a
connection. Nine of ten are plain. An agent's connection is its own for every second one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey
from tools.bench.upstream import Upstream

# Enough for any of these; the deadline is waited for in one of a hundred.
CONFIG = """\
[sandbox]
memory = "64 MiB"
pids = 32
tmp = "16 MiB"
seconds = 10.0
output = 20000
waiting = 8
waiting_most = 16
"""
METHODS = ("slack.users.list", "slack.chat.postMessage")
SECONDS = 120.0  # that an agent waits for an action's end

# Two requests through one tunnel, as a client that keeps its connection makes them.
PLAIN = """\
import http.client, json, os, ssl
from urllib.parse import urlsplit
url, proxy = urlsplit(os.environ["GOEX_URL_SLACK"]), urlsplit(os.environ["https_proxy"])
kept = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=ssl.create_default_context())
kept.set_tunnel(url.hostname, url.port)
def ask(method, name, fields=None):
    headers = {"Authorization": "Bearer " + os.environ["GOEX_TOKEN_SLACK"], "Content-Type": "application/json"}
    kept.request(method, f"{url.path}/{name}", fields and json.dumps(fields), headers)
    answer = kept.getresponse()
    assert answer.status == 200 and json.load(answer)["ok"], answer.status
ask("GET", "users.list")
if NUMBER % 2:
    ask("POST", "chat.postMessage", {"channel": "#ops", "text": "NUMBER" * 50})
for place in ("/tmp/left", "/dev/shm/left"):
    open(place, "x").write("left")
if os.fork() == 0:
    os.setsid()
    os.execv("/bin/sleep", ["MARKER", "600"])
print(NUMBER)
"""
REFUSED = """\
import urllib.error, urllib.request
try:
    urllib.request.urlopen("https://elsewhere.example/NUMBER")
except urllib.error.URLError:
    print(NUMBER)
"""
CURL = """\
curl --silent --fail --header "Authorization: Bearer $GOEX_TOKEN_SLACK" "$GOEX_URL_SLACK/users.list" > /tmp/left
echo NUMBER
"""


@dataclass(frozen=True, slots=True)
class Sort:
    """A program, and how it must end. `NUMBER` and `MARKER` stand for the action's own."""

    program: str
    ended: str = "exited"
    exit_code: int = 0  # of one that ended by itself
    says: str = "NUMBER\n"  # what its output begins with
    refused: int = 0
    language: str = "python"
    profile: str = "base"
    left: str = ""  # what the agent does when it has begun: "cancel" it, or go "away"


ODD = (
    Sort(REFUSED, refused=1),
    Sort("import sys\nprint(NUMBER)\nsys.exit(3)", exit_code=3),
    Sort("while True: print('x' * 4000)", "output cap", says="xxx"),
    Sort("print(NUMBER)\nx = bytearray(200 * 2**20)", "out of memory"),
    Sort("import time\nprint(NUMBER)\ntime.sleep(60)", "timeout"),
    Sort("import time\nprint(NUMBER)\ntime.sleep(60)", left="cancel"),
    Sort("import time\nprint(NUMBER)\ntime.sleep(0.2)\n" + PLAIN, left="away"),
    Sort(CURL, language="shell", profile="code"),
)


class Agents:
    """Ask for actions on standing grants. `count` of them, which divides 80. `act` may be called in several threads at
    once."""

    def __init__(self, daemon: Daemon, service: Upstream, marker: str, count: int) -> None:
        self._daemon, self._marker = daemon, marker
        account = pb.VaultPutRequest(
            service="slack", account="work", base_url=service.url, private=True, ca_pem=service.ca_pem,
            secret=b"xoxb-soak", passphrase=APPROVAL_PASSPHRASE,
        )  # fmt: skip
        daemon.person("VaultPut", account)
        self._tokens = [daemon.add_agent(f"soak-{number}") for number in range(count)]
        for token in self._tokens:
            self._grant(Sort(PLAIN), token)
        self._grant(ODD[-1], self._tokens[-1])  # whose it always is: its number is the last of each 80
        daemon.disconnect()  # what was decided over
        self._kept = daemon.connect(daemon.agent_socket)

    def close(self) -> None:
        self._kept.close()

    def act(self, number: int) -> None:
        """Have action `number` done, and see that it ended as it must."""
        sort = ODD[number // 10 % len(ODD)] if number % 10 == 9 else Sort(PLAIN)
        with self._connection(number) as stub:
            finished = None
            for event in self._events(number, stub.Execute, self._request(sort, number)):
                if event.HasField("output") and sort.left == "cancel":
                    stub.Cancel(pb.ActionId(id=event.action_id), metadata=self._metadata(number), timeout=SECONDS)
                elif event.HasField("output") and sort.left == "away":
                    break
                if event.HasField("finished"):
                    finished = event.finished
        if finished is None:  # it goes on without whoever asked for it
            watched = self._events(number, rpc.ActionsStub(self._kept).Watch, pb.ActionId(id=event.action_id))
            finished = next(event.finished for event in watched if event.HasField("finished"))
        self._check(sort, number, finished)

    def _events(self, number: int, method: Any, request: Any) -> Iterator[pb.Event]:
        seen = []
        try:
            for event in method(request, metadata=self._metadata(number), timeout=SECONDS):
                seen.append(event.WhichOneof("what"))
                assert not event.HasField("asking"), f"action {number} is asked about: {event.asking.reason}"
                yield event
        except grpc.RpcError as error:
            raise AssertionError(f"action {number}: {error.details()} after {', '.join(seen)}") from error

    def _check(self, sort: Sort, number: int, finished: pb.Finished) -> None:
        told = f"action {number}: {finished}"
        if sort.left == "cancel":
            assert finished.action.state == "failed" and "cancelled" in finished.problem.message, told
            return
        outcome = json.loads(finished.action.outcome_json)
        assert outcome["ended"] == sort.ended, told
        assert sort.ended != "exited" or outcome["exit_code"] == sort.exit_code, told
        assert outcome["stdout"].startswith(sort.says.replace("NUMBER", str(number))), told
        assert len(outcome.get("refused", ())) == sort.refused, told
        well = sort.ended == "exited" and sort.exit_code == 0
        assert finished.action.state == ("done" if well else "failed"), told

    def _request(self, sort: Sort, number: int) -> pb.ExecuteRequest:
        text = sort.program.replace("NUMBER", str(number)).replace("MARKER", self._marker)
        code = pb.CodeProgram(
            language=sort.language, program=text, services=["slack/work"], methods=METHODS, profile=sort.profile
        )  # fmt: skip
        return pb.ExecuteRequest(code=code)

    def _grant(self, sort: Sort, token: str) -> None:
        granted = Journey(self._daemon, self._request(sort, 0), token=token).approve("permanent")
        assert granted.action.state == "done", granted

    def _metadata(self, number: int) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._tokens[number % len(self._tokens)]}"),)

    @contextmanager
    def _connection(self, number: int) -> Iterator[Any]:
        """The connection that all share for every second action, one that ends with it for the others."""
        if number % 2 == 0:
            yield rpc.ActionsStub(self._kept)
            return
        with self._daemon.connect(self._daemon.agent_socket) as own:
            yield rpc.ActionsStub(own)
