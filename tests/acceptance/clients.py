"""What every agent's client must be able to do, and must not: the same checks for each language.

A client is a command that speaks with the daemon by stubs made from the proto alone, and prints a JSON object a line.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.person import approve

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "protos" / "goex" / "v1" / "goex.proto"


@dataclass(frozen=True)
class Client:
    """`head` comes before SOCKET TOKEN COMMAND …; `env` is added to a bare environment."""

    head: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, socket: Path, *words: str, token: str = "") -> list[dict[str, Any]]:
        """Run one command to its end; what it printed. The exit status is the client's own business."""
        done = subprocess.run(
            [*self.head, str(socket), token, *words],
            env=dict(self.env),
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
        assert done.stdout, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @contextmanager
    def running(self, socket: Path, *words: str, token: str = "") -> Iterator[Iterator[dict[str, Any]]]:
        """The lines of a command while it runs."""
        with subprocess.Popen(
            [*self.head, str(socket), token, *words], env=dict(self.env), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield (json.loads(line) for line in process.stdout)
            finally:
                process.kill()


def person_methods() -> list[str]:
    """The methods of the Person service, read from the proto's own text."""
    body = re.search(r"^service Person \{(.*?)^\}", PROTO.read_text(), re.MULTILINE | re.DOTALL)
    assert body
    return re.findall(r"rpc (\w+)\(", body[1])


def an_agent_runs_what_its_person_approves(client: Client, daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("helper")
    with client.running(
        daemon.agent_socket, "execute", str(folder), "echo from the agent > made.txt", "60", token=token
    ) as lines:
        asking = next(lines)
        assert asking.get("asking"), asking
        assert not (folder / "made.txt").exists()
        screen = approve([str(GOEX)], asking["asking"], APPROVAL_PASSPHRASE, env=daemon.env)
        assert "helper" in screen
        assert "echo from the agent > made.txt" in screen
        finished = [line for line in lines if "finished" in line]
    assert [(line["finished"], line["problem"], line["agent"]) for line in finished] == [("done", "", "helper")]
    assert (folder / "made.txt").read_text() == "from the agent\n"


def an_agent_decides_nothing(client: Client, daemon: Daemon) -> None:
    """Every method of Person, by the same client on the agent's socket; on the person's own it is there (control)."""
    refused = {line["method"]: line["code"] for line in client.run(daemon.agent_socket, "person")}
    assert refused == dict.fromkeys(person_methods(), "UNIMPLEMENTED")
    assert daemon.person("Status", pb.StatusRequest()).vault == "unsealed"


def the_person_can_reach_what_an_agent_cannot(client: Client, daemon: Daemon) -> None:
    """The control: the same client and calls that change nothing, with the one defence (another socket) removed."""
    harmless = ["Status", "Approvals", "Grants", "ListAgents", "VaultList", "Log", "Services"]
    codes = {line["method"]: line["code"] for line in client.run(daemon.user_socket, "person", *harmless)}
    assert codes == dict.fromkeys(harmless, "OK")


def what_nobody_approves_does_not_run(client: Client, daemon: Daemon, folder: Path) -> None:
    lines = client.run(daemon.agent_socket, "execute", str(folder), "echo no > made.txt", "2")
    finished = [line for line in lines if "finished" in line]
    assert [(line["finished"], line["agent"]) for line in finished] == [("denied", "anonymous")]
    assert finished[0]["problem"]
    assert not (folder / "made.txt").exists()


def an_agent_sees_its_own_actions_alone(client: Client, daemon: Daemon, folder: Path) -> None:
    mine, other = daemon.add_agent("one"), daemon.add_agent("two")
    lines = client.run(daemon.agent_socket, "execute", str(folder), "true", "1", token=mine)
    action = next(line["action"] for line in lines if "finished" in line)
    assert client.run(daemon.agent_socket, "get", action, token=mine)[0]["id"] == action
    assert "error" in client.run(daemon.agent_socket, "get", action, token=other)[0]
    assert "error" in client.run(daemon.agent_socket, "get", action)[0]


def a_wrong_token_is_refused(client: Client, daemon: Daemon) -> None:
    token = daemon.add_agent("known")
    assert client.run(daemon.agent_socket, "whoami", token=token)[0]["agent"] == "known"
    assert client.run(daemon.agent_socket, "whoami")[0]["agent"] == "anonymous"
    wrong = client.run(daemon.agent_socket, "whoami", token=token[:-4] + "AAAA")[0]
    assert wrong.get("error") in ("UNAUTHENTICATED", "PERMISSION_DENIED")
