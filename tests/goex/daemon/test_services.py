"""What each socket offers: health and reflection on both, the Person service on one; also from within a container."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import docker
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon

ACTIONS = {"goex.v1.Actions", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}

PERSONS = {
    f"goex.v1.{name}"
    for name in ("Accounts", "Audit", "Databases", "Passkeys", "Person", "Reversions", "Rules", "Vault")
}


def services(daemon: Daemon, socket: Path) -> set[str]:
    stub = reflection_pb2_grpc.ServerReflectionStub(daemon.channel(socket))
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    reply = next(iter(stub.ServerReflectionInfo(iter([request]))))
    return {service.name for service in reply.list_services_response.service}


def test_reflection_shows_each_socket_its_own_services(daemon: Daemon) -> None:
    assert services(daemon, daemon.agent_socket) == ACTIONS
    assert services(daemon, daemon.user_socket) == ACTIONS | PERSONS


@pytest.mark.parametrize("service", ["", "goex.v1.Actions"])
def test_health_is_serving(daemon: Daemon, service: str) -> None:
    for socket in (daemon.agent_socket, daemon.user_socket):
        stub = health_pb2_grpc.HealthStub(daemon.channel(socket))
        reply = stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("service", sorted(PERSONS))
def test_the_person_is_not_known_to_the_agents_health(daemon: Daemon, service: str) -> None:
    stub = health_pb2_grpc.HealthStub(daemon.channel(daemon.agent_socket))
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service=service))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.promise(10)
def test_whoever_comes_past_the_sockets_is_nobody(daemon: Daemon) -> None:
    """gRPC's own sockets have no name, and are of no use to whoever reaches them all the same (here: root)."""
    found = {}
    for handle in Path(f"/proc/{daemon.pid}/fd").iterdir() if os.geteuid() == 0 else ():
        with suppress(OSError):
            found[handle.readlink().name.removesuffix(" (deleted)")] = handle
    for name, service, method, request in (
        ("grpc-agent.sock", "Actions", "Whoami", pb.WhoamiRequest()),
        ("grpc-user.sock", "Person", "Approvals", pb.ApprovalsRequest()),
    ):
        assert not (daemon.run_dir / name).exists()
        if os.geteuid() != 0:
            continue
        with pytest.raises(grpc.RpcError) as caught:
            daemon.call(found[name], service, method, request)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert daemon.actions("Whoami", pb.WhoamiRequest()).agent == "anonymous"  # the control: through the front door


# What a client in the container needs is no gRPC library: the first frames of HTTP/2 tell whether it is served.
KNOCK = """
import socket
knock = socket.socket(socket.AF_UNIX)
knock.settimeout(60)
knock.connect("/goex-agent.sock")
try:
    knock.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\x04" + bytes(5))
    answer = knock.recv(9)
except ConnectionError:
    answer = b""
print("served" if len(answer) == 9 and answer[3] == 4 else "closed")
"""


@pytest.mark.docker
@pytest.mark.parametrize(("uid", "says"), [(4242, "served"), (4243, "closed")])
def test_a_socket_mounted_into_an_agents_container(
    sandbox_image: str, tmp_path_factory: pytest.TempPathFactory, uid: int, says: str
) -> None:
    open_socket = tmp_path_factory.mktemp("agents") / "agent.sock"
    config = f'[[agent_socket]]\npath = "{open_socket}"\nusers = [4242]\n'
    with Daemon(config=config), closing(docker.from_env()) as engine:
        output = engine.containers.run(
            sandbox_image,
            entrypoint=["python3", "-c", KNOCK],
            user=f"{uid}:{uid}",
            network_mode="none",
            remove=True,
            volumes={str(open_socket): {"bind": "/goex-agent.sock", "mode": "rw"}},
        )
    assert output.decode().strip() == says


def test_the_daemon_says_who_it_sees(daemon: Daemon) -> None:
    seen = daemon.actions("Whoami", pb.WhoamiRequest(), socket=daemon.user_socket)
    assert (seen.agent, seen.uid, seen.pid, seen.socket) == ("person", os.geteuid(), os.getpid(), "user")


def test_a_second_daemon_is_told_and_the_first_goes_on(daemon: Daemon) -> None:
    done = daemon.goex("daemon", "run")
    assert done.returncode == 8
    assert f"process {daemon.pid}" in done.stderr
    assert daemon.person("Status", pb.StatusRequest()).pid == daemon.pid


def test_the_daemon_shows_up_once_in_the_process_list() -> None:
    """No secret is ever in an argument: its command line is the plain one."""
    with Daemon(init=False, fresh=True) as daemon:
        command = Path(f"/proc/{daemon.pid}/cmdline").read_bytes().split(b"\0")
        assert command[1:] == [b"-P", b"-m", b"goex.daemon", b""]
        assert subprocess.run(["kill", "-0", str(daemon.pid)], check=False).returncode == 0
