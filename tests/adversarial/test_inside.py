"""An attacker's program in the real container, at the real gateway's socket: what it tries is refused, and reported.

Each attack is shown to succeed in a control where the one defence (or, where several stand behind each other, each of
them) is taken away: the gateway's by unsafe_gateway.py, the container's by `unsafe_without` or by a mount that no job
gets. The last test does it within a container that a real daemon made, and finds the refusals in `goex log`.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.server import ActionServer
from runtimes.sandbox.contract import Job, Limits, Profile
from runtimes.sandbox.defences import Defence
from runtimes.sandbox.docker import DockerSandbox
from tests.adversarial import unsafe_gateway as unsafe
from tests.adversarial.canary_scene import Scene as DaemonScene
from tests.adversarial.canary_scene import scene_fixture  # noqa: F401  a fixture
from tests.runtimes.gateway.support import CANARY, Server, Watch, account, lease, opened, plan, planned, serving
from tests.runtimes.gateway.support import TestCA as CertificateAuthority

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="the controls reach what belongs to root"),
]

PROBES = Path(__file__).with_name("inside_probes.py").read_bytes()
PROFILE = Profile(limits=Limits(seconds=120))
CA = CertificateAuthority()
Got = dict[str, dict[str, str]]


@dataclass
class Inside:
    """Two servers of one account, the first of which the plan names; and containers at the action's socket."""

    good: Server
    other: Server
    run_dir: Path
    env: dict[str, str]
    account: Account
    watch: Watch = field(default_factory=Watch)

    @property
    def plan(self) -> GatewayPlan:
        return plan(planned(Origin.parse(self.env["GOOD"])), seconds=60.0)

    async def run(self, *probes: str, **more: Any) -> Got:
        """The probes in a container at the shipped gateway, which is a process of its own."""
        gateway = GatewayClient(self.run_dir / "gateway")
        self.watch = Watch()
        try:
            folder = await gateway.open(self.plan, [lease(self.account)], self.watch.observer())
            return await self.contained(*probes, socket_dir=folder, ca_pem=gateway.ca_pem, **more)
        finally:
            await gateway.stop()

    async def control(self, server: type[ActionServer], *probes: str) -> Got:
        """The probes in the same container, at a gateway with a part taken away."""
        (self.run_dir / "control").mkdir(exist_ok=True)
        async with opened(self.plan, [lease(self.account)], self.run_dir / "control", server) as (box, self.watch):
            place = Path(box.container.socket).parent
            return await self.contained(*probes, socket_dir=str(place), ca_pem=box.container.ca_pem)

    async def contained(
        self,
        *probes: str,
        socket_dir: str | None = None,
        ca_pem: str = "",
        folder: str | None = None,
        without: frozenset[Defence] = frozenset(),
        env: dict[str, str] | None = None,
    ) -> Got:
        sandbox = DockerSandbox(f"inside-{os.getpid()}", scratch_dir=self.run_dir / "scratch", unsafe_without=without)
        job = Job(
            action_id="a1",
            argv=["/usr/bin/python3", "-I", "/goex/job/probes.py", *probes],
            files={"probes.py": PROBES, "ca.pem": ca_pem.encode()},
            env=self.env | (env or {}),
            socket_dir=socket_dir,
            folder=folder,
        )
        try:
            result = await sandbox.run(job, PROFILE)
        finally:
            await sandbox.close()
        assert result.exit_code == 0, result
        found: Got = json.loads(result.stdout)
        assert set(found) == set(probes)
        return found


@pytest.fixture(scope="module")
def listeners() -> Iterator[dict[str, str]]:
    """The host's own listeners: TCP, UDP and an abstract Unix socket. Each says "the host" to whoever comes."""
    tcp, udp, unix = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    name = f"goex-inside-{secrets.token_hex(4)}"
    tcp.bind(("127.0.0.1", 0))
    udp.bind(("127.0.0.1", 0))
    unix.bind(f"\0{name}")

    def greet(listener: socket.socket) -> None:
        while True:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            with wire:
                wire.sendall(b"the host")

    def resolve() -> None:
        while True:
            try:
                _, sender = udp.recvfrom(512)
                if sender is None:  # it was closed meanwhile
                    return
                udp.sendto(b"the host", sender)
            except OSError:
                return

    for listener in (tcp, unix):
        listener.listen()
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
    threading.Thread(target=resolve, daemon=True).start()
    yield {
        "DIRECT": f"127.0.0.1:{tcp.getsockname()[1]}",
        "RESOLVER": f"127.0.0.1:{udp.getsockname()[1]}",
        "ABSTRACT": name,
    }
    for listener in (tcp, udp, unix):
        listener.close()


@pytest.fixture
async def inside(sandbox_image: str, listeners: dict[str, str], tmp_path: Path) -> AsyncIterator[Inside]:
    context = CA.context("localhost", "127.0.0.1", "169.254.169.254")
    async with serving(context) as good, serving(context) as other:
        env = listeners | {
            "GOOD": f"https://localhost:{good.port}",
            "OTHER": f"https://localhost:{other.port}",
            "RAW": f"https://127.0.0.1:{good.port}",
        }
        origins = [Origin.parse(env[name]) for name in ("GOOD", "OTHER", "RAW")]
        yield Inside(good, other, tmp_path, env, account(*origins, ca_pem=CA.pem))


def refused(found: Got, *names: str) -> None:
    assert {name: said for name, said in found.items() if "refused" not in said} == {}
    assert set(names) <= set(found)


async def test_the_planned_request_passes(inside: Inside) -> None:
    found = await inside.run("planned")
    assert json.loads(found["planned"]["got"]) == {"ok": True, "id": "m-1"}
    assert inside.good.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert not inside.watch.refusals


# ---- past the plan

_NO_HOSTS = unsafe.server(unsafe.UnsafeWithoutHosts)
PLAN: dict[str, tuple[str, type[ActionServer]]] = {
    "another_host": ("the plan has no request to", _NO_HOSTS),
    "raw_address": ("the plan has no request to", _NO_HOSTS),
    "metadata_address": (
        "the plan has no request to",
        unsafe.server(unsafe.UnsafeWithoutHosts, unsafe.UnsafeWithoutAddressCheck()),
    ),
    "another_path": ("", unsafe.server(unsafe.UnsafeWithoutPaths)),
    "another_method": ("the plan has POST here", unsafe.server(unsafe.UnsafeWithoutMethods)),
    "another_body": ("body", unsafe.server(unsafe.UnsafeWithoutBodies)),
    "second_use": ("sent already", unsafe.server(unsafe.UnsafeWithoutOnce)),
    "own_token": ("a credential that isn't the vault's", unsafe.server(unsafe.UnsafeWithoutCredentialCheck)),
}


@pytest.mark.promise(45)
async def test_what_the_plan_does_not_hold_is_refused_and_reported(inside: Inside) -> None:
    attacks = [name for name in PLAN if name != "second_use"]
    found = await inside.run(*attacks, "planned", "second_use")
    assert "got" in found.pop("planned"), "what was refused before stops nothing that is planned"
    refused(found, *PLAN)
    reasons = [refusal.reason for refusal in inside.watch.refusals]
    assert len(reasons) >= len(PLAN)
    for name, (reason, _) in PLAN.items():
        assert [said for said in reasons if reason in said], (name, reasons)
    assert (len(inside.good.seen), len(inside.other.seen)) == (1, 0)
    assert "attackers-own" not in repr(inside.watch.events)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLAN)
async def test_control_without_that_part_of_the_gateway(inside: Inside, name: str) -> None:
    found = await inside.control(PLAN[name][1], name)
    assert "got" in found[name], (found, inside.watch.refusals)
    seen = inside.good.seen + inside.other.seen
    assert seen, "it arrived"
    assert all(CANARY in request.headers["authorization"] for request in seen) or name == "own_token"


async def test_the_address_check_alone_refuses_a_metadata_address(inside: Inside) -> None:
    behind = unsafe.server(unsafe.UnsafeWithoutHosts, unsafe.NetworkUpstream())
    refused(await inside.control(behind, "metadata_address"), "metadata_address")
    assert not inside.good.seen


# ---- past the gateway

NETWORK = ("direct_address", "direct_metadata", "dns", "abstract_socket")


async def test_there_is_no_network_at_all(inside: Inside) -> None:
    refused(await inside.run(*NETWORK), *NETWORK)


async def test_control_with_the_hosts_network(inside: Inside) -> None:
    found = await inside.run(*NETWORK, without=frozenset({Defence.NETWORK}))
    if not _has_route():
        del found["direct_metadata"]
    assert {name: said for name, said in found.items() if "got" not in said} == {}
    assert found["dns"]["got"] == found["direct_address"]["got"] == found["abstract_socket"]["got"] == "the host"


def _has_route() -> bool:
    """Whether packets to anywhere would leave this machine; connecting by UDP sends none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        try:
            wire.connect(("169.254.169.254", 80))
        except OSError:
            return False
    return True


# ---- sockets of others


@contextmanager
def listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield


@pytest.mark.promise(45)
async def test_another_actions_socket(inside: Inside) -> None:
    gateway = GatewayClient(inside.run_dir / "gateway")
    others = GatewayPlan(action_id="a2", requests=inside.plan.requests, seconds=60.0)
    try:
        mine = await gateway.open(inside.plan, [lease(inside.account)], inside.watch.observer())
        theirs = await gateway.open(others, [lease(inside.account, "a2")], Watch().observer())
        common: dict[str, Any] = {"socket_dir": mine, "ca_pem": gateway.ca_pem}
        for path in (f"{theirs}/gw.sock", f"/goex/gateway/../{Path(theirs).name}/gw.sock", "/work/gw.sock"):
            found = await inside.contained("another_actions_socket", **common, env={"ANOTHER": path})
            refused(found, "another_actions_socket")
        refused(await inside.contained("search_for_sockets", "gateway_parent", **common), "search_for_sockets")
        assert not inside.good.seen
        mounted = await inside.contained(
            "another_actions_socket", **common, folder=theirs, env={"ANOTHER": "/work/gw.sock"}
        )
        assert "got" in mounted["another_actions_socket"], mounted
        (shown := inside.run_dir / "shown").mkdir()
        with listening(shown / "some.sock"):
            found = await inside.contained("search_for_sockets", **common, folder=str(shown))
        assert found["search_for_sockets"] == {"got": "/work/some.sock"}
    finally:
        await gateway.stop()


@pytest.mark.promise(45)
async def test_the_sockets_of_the_daemon_and_of_the_engine(inside: Inside, scene: DaemonScene) -> None:
    engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    run_dir = scene.daemon.run_dir
    places = {
        "agent_socket": run_dir / "agent.sock",
        "user_socket": run_dir / "user.sock",
        "engine_socket": Path(engine),
    }
    variables = ("AGENT_SOCKET", "USER_SOCKET", "ENGINE_SOCKET")
    assert [path for path in places.values() if not path.is_socket()] == []
    where = dict(zip(variables, map(str, places.values()), strict=True))
    refused(await inside.run(*places, env=where), *places)

    daemons = [name for name in places if name != "engine_socket"]
    for folder, names in ((run_dir, daemons), (Path(engine).parent, ["engine_socket"])):
        mounted = dict(zip(variables, (f"/work/{path.name}" for path in places.values()), strict=True))
        # Modes and owners still refuse the container's user; without that too, nothing does.
        refused(await inside.run(*names, env=mounted, folder=str(folder)), *names)
        without = frozenset({Defence.NON_ROOT, Defence.SECCOMP})
        found = await inside.run(*names, env=mounted, folder=str(folder), without=without)
        assert {name for name, said in found.items() if said == {"got": "connected"}} == set(names), found


# ---- what another left


async def test_another_containers_tmp(inside: Inside) -> None:
    assert "got" in (await inside.contained("leave_in_tmp"))["leave_in_tmp"]
    refused(await inside.contained("anothers_tmp"), "anothers_tmp")
    twice = await inside.contained("leave_in_tmp", "anothers_tmp")
    assert twice["anothers_tmp"] == {"got": "left by another"}, "the control: a container that is used twice"


async def test_the_folder_of_the_socket_can_not_be_written(inside: Inside) -> None:
    for without in (frozenset[Defence](), frozenset({Defence.NON_ROOT}), frozenset({Defence.READ_ONLY_JOB})):
        refused(await inside.run("gateway_folder", without=without), "gateway_folder")
    found = await inside.run("gateway_folder", without=frozenset({Defence.NON_ROOT, Defence.READ_ONLY_JOB}))
    assert found["gateway_folder"] == {"got": "planted"}


# ---- the whole system


@pytest.mark.promise(45)
def test_refusals_within_a_daemons_action_are_in_its_log(scene: DaemonScene, sandbox_image: str) -> None:
    service, daemon = scene.service, scene.daemon
    attacks = ("another_path", "another_method", "another_body", "another_host", "metadata_address", "own_token")
    elsewhere = ("direct_address", "agent_socket", "user_socket", "engine_socket", "search_for_sockets")
    env = {
        "GOOD": service.url,
        "OTHER": "https://attacker.example:443",
        "DIRECT": f"127.0.0.1:{service.port}",
        "AGENT_SOCKET": str(daemon.agent_socket),
        "USER_SOCKET": str(daemon.user_socket),
        "ENGINE_SOCKET": "/var/run/docker.sock",
    }
    with scene.held() as (journey, container):
        before = len(service.got)
        command = ["/usr/bin/python3", "-I", "-c", PROBES.decode(), *attacks, *elsewhere]
        made = scene.client.exec_create(container.id, command, user="65534:65534", environment=env)
        found: Got = json.loads(scene.client.exec_start(made["Id"]))
        refused(found, *attacks, *elsewhere)
        assert len(service.got) == before, "nothing of it arrived"
        service.release()
        finished = journey.finished()
    assert finished.action.state == "done", finished
    outcome = json.loads(finished.action.outcome_json)
    rows = json.loads(daemon.goex("log", "--rows", "--action", journey.action_id, "--json").stdout)["rows"]
    facts = [row["facts"] for row in rows if row["kind"] == "refused"]
    assert len(facts) == len(attacks), facts
    assert {fact["method"] for fact in facts} >= {"POST", "DELETE", "CONNECT"}
    targets = " ".join(fact["target"] for fact in facts)
    for part in ("attacker.example", "169.254.169.254", "/api/admin"):
        assert part in targets
    assert "attackers-own" not in json.dumps([rows, outcome])
    said = daemon.goex("log", "--rows", "--action", journey.action_id).stdout
    assert said.count(" refused ") == len(attacks)
    assert "attacker.example" in said
