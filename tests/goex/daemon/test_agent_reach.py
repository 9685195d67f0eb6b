"""An agent reaches no call that decides, by any request: every method of every service by name, paths that are almost
theirs, bodies that are theirs, metadata that claims things, and bytes that are nothing. After each round the question
that waits still waits, and nothing was granted, named, opened or changed."""

from __future__ import annotations

import importlib
import pkgutil
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import goex.rpc
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, shell

pytestmark = pytest.mark.docker

OPEN_TO_AGENTS = "goex.v1.Actions"
FILES = [
    importlib.import_module(f"goex.rpc.{found.name}")
    for found in pkgutil.iter_modules(goex.rpc.__path__)
    if found.name.endswith("_pb2")
]
SERVICES = {service.full_name: service for module in FILES for service in module.DESCRIPTOR.services_by_name.values()}
PRIVATE = [
    (service.full_name, method.name)
    for service in SERVICES.values()
    if service.full_name != OPEN_TO_AGENTS
    for method in service.methods
]
CLAIMS: dict[str, tuple[tuple[str, str | bytes], ...]] = {
    "nothing": (),
    "a token of its own": (),  # filled in below
    "to be the person": (("authorization", "Bearer person"), ("goex-agent", "person"), ("x-goex-socket", "user")),
    "another path": (("x-original-url", "/goex.v1.Person/Decide"), ("x-http-method-override", "Decide")),
    "a proxy": (("forwarded", "for=unix:user.sock"), ("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1")),
    "the passphrase": (("passphrase", APPROVAL_PASSPHRASE), ("goex-presence-bin", APPROVAL_PASSPHRASE.encode())),
}


class Scene:
    """A daemon with one question that waits, and what must stay as it is."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon = daemon
        self.token = daemon.add_agent("bot")
        self._journey = Journey(daemon, shell(folder, "echo x > x", detach=True), token=self.token)
        self.question = self._journey.asked()
        self._journey.leave()
        self.folder = folder

    def decision(self) -> pb.DecideRequest:
        """The best request that an agent could hope for: it knows all but how to reach us."""
        return pb.DecideRequest(
            approval_id=self.question.id,
            digest=self.question.digest,
            approve=True,
            width="permanent",
            passphrase=APPROVAL_PASSPHRASE,
        )

    def send(self, path: str, body: bytes, metadata: tuple[tuple[str, str | bytes], ...] = ()) -> grpc.StatusCode:
        """One call on agent.sock with any path and body; its status."""
        call = self.daemon.channel(self.daemon.agent_socket, "fuzz").unary_unary(path)
        try:
            call(body, metadata=metadata, timeout=300)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        return grpc.StatusCode.OK

    def unharmed(self) -> None:
        daemon = self.daemon
        assert [one.id for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals] == [self.question.id]
        assert not daemon.person("Grants", pb.GrantsRequest(all=True)).grants
        assert [agent.name for agent in daemon.person("ListAgents", pb.ListAgentsRequest()).agents] == ["bot"]
        assert not daemon.person("VaultList", pb.VaultListRequest()).accounts
        assert daemon.person("Status", pb.StatusRequest()).vault == "unsealed"
        assert daemon.running and not list(self.folder.iterdir())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    import os

    folder = tmp_path_factory.mktemp("reach") / "work"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    with Daemon(config="[ask]\nseconds = 3600\n") as daemon:
        yield Scene(daemon, folder)


def full(message: Message, words: dict[str, object]) -> bytes:
    """A request with every field set to something, the known ones to what would decide."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or field.message_type is not None:
            continue
        value = words.get(field.name)
        if value is None:
            value = {field.TYPE_STRING: "x", field.TYPE_BYTES: b"x", field.TYPE_BOOL: True}.get(field.type, 1)
        setattr(message, field.name, value)
    return message.SerializeToString()


def test_there_is_something_to_try() -> None:
    names = {service for service, _ in PRIVATE}
    assert "goex.v1.Person" in names
    assert {("goex.v1.Person", name) for name in ("Decide", "DenyAll", "Revoke", "AddAgent", "Present")} <= set(PRIVATE)


@pytest.mark.promise(18)
@pytest.mark.parametrize("claim", CLAIMS)
def test_every_call_of_every_service_by_name(scene: Scene, claim: str) -> None:
    metadata = CLAIMS[claim] or ((("authorization", f"Bearer {scene.token}"),) if "token" in claim else ())
    words = {
        "approval_id": scene.question.id,
        "digest": scene.question.digest,
        "passphrase": APPROVAL_PASSPHRASE,
        "approval_passphrase": APPROVAL_PASSPHRASE,
        "width": "permanent",
        "agent": "bot",
        "name": "forged",
    }
    for service, method in PRIVATE:
        described = SERVICES[service].methods_by_name[method]
        body = full(GetMessageClass(described.input_type)(), words)
        code = scene.send(f"/{service}/{method}", body, metadata)
        assert code is grpc.StatusCode.UNIMPLEMENTED, (service, method, code)
    scene.unharmed()


def test_it_is_told_of_no_other_service(scene: Scene) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(scene.daemon.channel(scene.daemon.agent_socket, "reflection"))
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    (reply,) = stub.ServerReflectionInfo(iter([asked]), timeout=300)
    listed = {service.name for service in reply.list_services_response.service}
    assert listed == {OPEN_TO_AGENTS, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
    # Whatever reflection describes, calling it is another thing: the methods of all that it knows are tried.
    asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=OPEN_TO_AGENTS)
    (reply,) = stub.ServerReflectionInfo(iter([asked]), timeout=300)
    for raw in reply.file_descriptor_response.file_descriptor_proto:
        file = descriptor_pb2.FileDescriptorProto.FromString(raw)
        for service in file.service:
            if f"{file.package}.{service.name}" == OPEN_TO_AGENTS:
                continue
            for method in service.method:
                code = scene.send(f"/{file.package}.{service.name}/{method.name}", scene.decision().SerializeToString())
                assert code is grpc.StatusCode.UNIMPLEMENTED, method.name
    scene.unharmed()


NEARLY = [
    "//goex.v1.Person/Decide",
    "/goex.v1.Person//Decide",
    "/goex.v1.Person/Decide/",
    "/goex.v1.Person/Decide?",
    "/goex.v1.Person/Decide#",
    "/goex.v1.Person/Decide%00",
    "/goex.v1.Person/%44ecide",
    "/goex.v1.%50erson/Decide",
    "/goex%2ev1.Person/Decide",
    "/goex.v1.Actions/../goex.v1.Person/Decide",
    "/goex.v1.Actions/../../goex.v1.Person/Decide",
    "/goex.v1.Actions/Decide",
    "/goex.v1.Actions/Person.Decide",
    "/goex.v1.Actions;/goex.v1.Person/Decide",
    "/./goex.v1.Person/Decide",
    "/GOEX.V1.PERSON/DECIDE",
    "/goex.v1.person/decide",
    "goex.v1.Person/Decide",
    "http://user/goex.v1.Person/Decide",
    "/goex.v1.Person/Decide /goex.v1.Actions/Whoami",
    "/goex.v1.Person/Decide\t",
    "/.goex.v1.Person/Decide",
    "/goex.v1/Person/Decide",
    "/Person/Decide",
    "*",
    "/",
]


@pytest.mark.promise(18)
@pytest.mark.parametrize("path", NEARLY)
def test_paths_that_are_almost_theirs(scene: Scene, path: str) -> None:
    assert scene.send(path, scene.decision().SerializeToString()) is not grpc.StatusCode.OK
    scene.unharmed()


@pytest.mark.promise(18)
def test_paths_and_bodies_by_chance(scene: Scene) -> None:
    chance = random.Random(4)
    pieces = [
        "/",
        "goex.v1.",
        "Person",
        "Actions",
        "Decide",
        "Revoke",
        "..",
        "%2f",
        ".",
        "Accounts",
        "Rules",
        "\\",
        " ",
    ]
    decision = scene.decision().SerializeToString()
    for _ in range(400):
        path = "/" + "".join(chance.choice(pieces) for _ in range(chance.randint(1, 7)))
        body = decision if chance.random() < 0.5 else chance.randbytes(chance.randint(0, 200))
        scene.send(path, body)
    scene.unharmed()


def test_bodies_that_decide_sent_to_what_an_agent_may_call(scene: Scene) -> None:
    """Fields that a message doesn't have are ignored, and bytes that are no message are an error: neither decides."""
    chance = random.Random(5)
    decision = scene.decision().SerializeToString()
    bodies = [decision, decision[::-1], decision * 50, b"", *(chance.randbytes(60) for _ in range(20))]
    bodies += [
        bytes(chance.choice(decision) if chance.random() < 0.1 else byte for byte in decision) for _ in range(20)
    ]
    for method in SERVICES[OPEN_TO_AGENTS].methods:
        for body in bodies:
            if method.name not in ("Execute", "Revert"):  # whose requests are actions, and have tests of their own
                scene.send(f"/{OPEN_TO_AGENTS}/{method.name}", body, (("authorization", f"Bearer {scene.token}"),))
    scene.unharmed()


@pytest.mark.promise(18)
def test_bytes_that_are_no_http(scene: Scene) -> None:
    chance = random.Random(6)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    starts = [b"", preface, b"POST /goex.v1.Person/Decide HTTP/1.1\r\nHost: x\r\n\r\n", preface + bytes(9)]
    for number in range(60):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
            raw.settimeout(2)
            raw.connect(str(scene.daemon.agent_socket))
            try:
                raw.sendall(starts[number % len(starts)] + chance.randbytes(chance.randint(1, 2000)))
                raw.recv(100)
            except OSError:
                pass
    scene.unharmed()


@pytest.mark.promise(18)
def test_the_control_the_same_request_decides_on_the_persons_socket(scene: Scene) -> None:
    """Last in this file: what every round above sent would have done it."""
    decide(scene.daemon, scene.question, approve=False)
    assert not scene.daemon.person("Approvals", pb.ApprovalsRequest()).approvals
