"""A daemon whose vault holds a canary, and the service that the canary is for."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.echo_service import CA, EchoService, echoing
from tests.adversarial.hunting import Found, Hunt, Planted, family, token, told, written
from tests.adversarial.hunting_docker import ContainerHunt, of_action
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide

PROGRAM = """\
import json, os, urllib.error, urllib.request
BAIT = "PLANTED"
def send(text):
    told = {"channel": "#ops", "text": text}
    headers = {"Authorization": "Bearer " + os.environ["GOEX_TOKEN_SLACK"], "Content-Type": "application/json"}
    request = urllib.request.Request("BASE/chat.postMessage", json.dumps(told).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return f"{answer.status} {answer.headers} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.headers} {error.read().decode()}"
    except OSError as error:
        return repr(error)
"""

# Where a container holds what its job was told.
HOLDS = ("memory", "mounted filesystems", "archive of the job's files")


@dataclass
class Scene:
    """A daemon whose vault holds the canary, the service that it is for, and the bait that goes the same ways."""

    daemon: Daemon
    service: EchoService
    client: docker.APIClient
    image: str
    agent: str
    canary: str
    bait: Planted = field(default_factory=Planted)
    shown: dict[str, bytes] = field(default_factory=dict)  # what anybody was told, by what told it

    def hunt(self, *baits: Planted) -> Hunt:
        return Hunt(self.canary, baits=baits)

    def calls(self, *texts: str) -> pb.ExecuteRequest:
        made = [
            pb.Call(
                service="slack",
                method="chat.postMessage",
                arguments_json=json.dumps({"channel": "#ops", "text": text}),
                account="work",
            )
            for text in texts
        ]
        return pb.ExecuteRequest(calls=pb.Calls(calls=made))

    def program(self, *lines: str, account: str = "work") -> pb.ExecuteRequest:
        """Code whose lines may call `send(text)`, which returns all that it was answered, and `BAIT`."""
        start = PROGRAM.replace("BASE", self.service.url).replace("PLANTED", self.bait.text)
        code = pb.CodeProgram(
            language="python", program=start + "\n".join(lines), services=[f"slack/{account}"],
            methods=["slack.chat.postMessage"], profile="base",
        )  # fmt: skip
        return pb.ExecuteRequest(code=code)

    @contextmanager
    def held(self, request: pb.ExecuteRequest | None = None) -> Iterator[tuple[Journey, ContainerHunt]]:
        """An action whose first call was answered with echoes, and whose second the service holds."""
        self.service.hold()
        calls = request or self.calls(self.bait.text, f"hold {self.bait.text}")
        journey = Journey(self.daemon, calls, token=self.agent)
        approval = journey.asked()
        self.shown["prompt"] = approval.SerializeToString()
        decide(self.daemon, approval)
        self.service.wait_until_held()
        try:
            yield journey, of_action(self.client, journey.action_id, self.daemon.run_dir)
        finally:
            self.service.release()

    @property
    def gateway(self) -> int:
        found = [pid for pid in family(self.daemon.pid) if b"runtimes.gateway.process" in told(pid, "cmdline")]
        assert len(found) == 1, found
        return found[0]

    def clean(self, found: Found, where: str, bait: Planted | None = None) -> None:
        """The canary wasn't found; and all of the bait was, when there was some."""
        if bait is not None:
            assert bait.missed(found) == [], f"the search of {where} doesn't find what lies there"
        assert found[self.canary] == set(), f"the canary is in {where}"

    def container_is_clean(self, container: ContainerHunt, *places: str, holds: Collection[str] = HOLDS) -> None:
        """These places in it, all when none is named; the bait is looked for where it lies: in those of `holds`."""
        for place in places or container.searches:
            bait = self.bait if place in holds else None
            hunt = self.hunt(*([bait] if bait else ()))
            self.clean(container.searches[place](hunt), f"the container: {place}", bait)

    def files_are_clean(self) -> None:
        """Everything below the daemon's home, databases and snapshots by their contents too."""
        hunt, state = self.hunt(), self.daemon.state_dir
        self.clean(hunt.tree(self.daemon.home), "the daemon's files")
        self.clean(self.hunt(self.bait).database(state / "state.db"), "state.db", self.bait)
        self.clean(hunt.database(state / "vault.db"), "vault.db")
        self.clean(hunt.git(state / "snapshots"), "the snapshots")


@pytest.fixture(name="scene", scope="module")
def scene_fixture(sandbox_image: str) -> Iterator[Scene]:
    canary, bait = token(), Planted()
    # The model is never asked, since no request here is in words; its name is shown by `daemon status`.
    # Looking everywhere may take longer than an action has by default.
    limits = '[sandbox]\nseconds = 600\nwaiting = 1\n[log]\nlevel = "debug"\n'
    config = f'{limits}[model]\nbase_url = "https://127.0.0.1:9/v1"\nname = "{bait.text}"\n'
    with echoing() as service, Daemon(config=config) as daemon:
        daemon.restart(fresh=True)  # its vault was made by a fork, so that its passphrases cost little
        for name, path in (("work", ""), ("bait", "/".join(written(value)[form] for form, value in in_urls(bait)))):
            daemon.person(
                "VaultPut",
                pb.VaultPutRequest(
                    service="slack",
                    account=name,
                    base_url=f"{service.url}/{path}".rstrip("/"),
                    private=True,
                    ca_pem=CA.pem,
                    secret=canary.encode(),
                    passphrase=APPROVAL_PASSPHRASE,
                ),
            )
        made = Scene(daemon, service, docker.APIClient(), sandbox_image, daemon.add_agent("scout"), canary, bait)
        yield made
        made.client.close()


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    """A folder of an ordinary user's."""
    made = tmp_path / "work"
    made.mkdir()
    os.chown(made, 65534, 65534)
    return made


def in_urls(bait: Planted) -> list[tuple[str, str]]:
    """What of the bait can stand in a URL's path as it is."""
    return [(form, value) for form, value in bait.tokens.items() if form in ("hex", "HEX", "base64url")]
