"""Bad requests, past the command: what any client can put on the wire."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.unbroken import unbroken, well_said
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, problem, shell

pytestmark = pytest.mark.docker

BIG = "x" * (10 * 2**20)
LARGE = "x" * (3 * 2**20)  # what an agent's request can hold at all


@pytest.fixture(autouse=True, scope="module")
def nothing_was_lost(daemon: Daemon) -> Iterator[None]:
    """With an account, so that calls get as far as they can; nothing is ever sent."""
    account = pb.VaultPutRequest(service="slack", secret=b"nothing", passphrase=APPROVAL_PASSPHRASE)
    daemon.person("VaultPut", account)
    yield
    unbroken(daemon)


def call(arguments: str, *, service: str = "slack", method: str = "chat.postMessage", account: str = "") -> Any:
    made = pb.Call(service=service, method=method, arguments_json=arguments, account=account)
    return pb.ExecuteRequest(calls=pb.Calls(calls=[made]))


def refusal(daemon: Daemon, request: Any, *, person: bool = False) -> pb.Problem:
    """Why it was refused: as the call's error, or as the action's end."""
    try:
        return Journey(daemon, request, person=person).finished().problem
    except grpc.RpcError as error:
        return problem(error)


HI = {"channel": "#ops", "text": "hi"}
REQUESTS: dict[str, tuple[Any, int, tuple[str, ...]]] = {
    "nothing": (pb.ExecuteRequest(), 2, ("nothing",)),
    "no calls": (pb.ExecuteRequest(calls=pb.Calls()), 2, ("no call",)),
    "33 calls": (pb.ExecuteRequest(calls=pb.Calls(calls=[pb.Call()] * 33)), 2, ("33",)),
    "3 MB of words": (pb.ExecuteRequest(intent=LARGE), 2, ("10000",)),
    "3 MB of program": (pb.ExecuteRequest(files=pb.FilesProgram(folder="/tmp", language="shell", program=LARGE)), 2,
                         ("200000",)),
    "3 MB of folder": (pb.ExecuteRequest(files=pb.FilesProgram(folder=f"/{LARGE}", language="shell", program="x")), 2,
                        ()),
    "3 MB of language": (pb.ExecuteRequest(files=pb.FilesProgram(folder="/tmp", language=LARGE, program="x")), 2,
                          ("shell or python",)),
    "3 MB of arguments": (call(json.dumps({**HI, "text": LARGE})), 2, ("1000000",)),
    "3 MB of service": (call("{}", service=LARGE), 2, ()),
    "3 MB of method": (call("{}", method=LARGE), 2, ()),
    "3 MB of account": (call(json.dumps(HI), account=LARGE), 2, ()),
    "3 MB of proposal": (pb.ExecuteRequest(proposal=LARGE), 2, ("1000000",)),
    "3 MB of an action's id": (pb.RevertRequest(action_id=LARGE, verb="undo"), 2, ("300",)),
    "3 MB of a verb": (pb.RevertRequest(action_id="a-1", verb=LARGE), 2, ("300",)),
    "a verb that isn't": (pb.RevertRequest(action_id="a-1", verb="undoo"), 2, ("undo, redo or commit",)),
    "900 KB of arguments": (call(json.dumps({**HI, "text": "x" * 900_000})), 2, ("200000",)),
    "NUL in words": (pb.ExecuteRequest(intent="send \0 hi"), 2, ("NUL",)),
    "NUL in a program": (pb.ExecuteRequest(files=pb.FilesProgram(folder="/tmp", language="shell", program="a\0b")), 2,
                         ("NUL",)),
    "NUL in a folder": (pb.ExecuteRequest(files=pb.FilesProgram(folder="/tmp\0", language="shell", program="x")), 2,
                        ("NUL",)),
    "NUL in a service": (call("{}", service="slack\0"), 2, ("slack",)),
    "NUL in arguments": (call('{"channel": "#o\\u0000ps", "text": "hi"}'), 2, ("NUL",)),
    "half a character in arguments": (call('{"channel": "#ops", "text": "\\ud800"}'), 2, ()),
    "half a character as a key": (call('{"\\udc00": 1, "channel": "#ops", "text": "x"}'), 2, ()),
    "arguments that aren't JSON": (call("{"), 2, ("JSON",)),
    "arguments that are a list": (call("[]"), 2, ("object",)),
    "a key twice": (call('{"channel":"#a","channel":"#b","text":"x"}'), 2, ("twice",)),
    "NaN": (call('{"channel":"#a","text":NaN}'), 2, ("NaN",)),
    "infinity": (call('{"channel":"#a","text":1e999}'), 2, ()),
    "a huge number": (call('{"channel":"#a","text":' + "9" * 5000 + "}"), 2, ()),
    "deep nesting": (call('{"channel":' + "[" * 3000 + "]" * 3000 + "}"), 2, ("nested",)),
    "very deep nesting": (call('{"a":' * 19_000 + "1" + "}" * 19_000), 2, ("nested",)),
    "nesting without end": (call('{"a":' * 160_000 + "1" + "}" * 160_000), 2, ("160000 values",)),
    "moderate nesting": (call('{"channel":"#a","text":' + "[" * 70 + "]" * 70 + "}"), 2, ("nested|levels",)),
    "a forged reference": (call('{"channel":"#a","text":{"$ref":["call-0","$.x"]}}'), 2, ()),
    "a reference to itself": (call('{"channel":"#a","text":{"$from":0,"path":"$.x"}}'), 2, ()),
    "a negative reference": (call('{"channel":"#a","text":{"$from":-1,"path":"$.x"}}'), 2, ()),
    "a proposal that isn't one": (pb.ExecuteRequest(proposal="rm -rf /"), 2, ()),
    "a proposal of many brackets": (pb.ExecuteRequest(proposal="[" * 900_000), 2, ()),
    "a proposal of many calls": (pb.ExecuteRequest(proposal="f(" * 90_000 + ")" * 90_000), 2, ()),
    "a language that isn't": (pb.ExecuteRequest(files=pb.FilesProgram(folder="/tmp", language="perl", program="x")), 2,
                              ("shell or python",)),
    "a relative folder": (pb.ExecuteRequest(files=pb.FilesProgram(folder="tmp", language="shell", program="x")), 2, ()),
    "no folder": (pb.ExecuteRequest(files=pb.FilesProgram(folder="", language="shell", program="x")), 2, ()),
    "a choice of nothing": (pb.ExecuteRequest(intent="send slack msg hi to #ops", choice=7), 2, ("candidate",)),
    "a time without end": (pb.ExecuteRequest(intent="zzzqqq vvvxxx", ask_seconds=2**31), 5, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request(daemon: Daemon, name: str) -> None:
    request, status, words = REQUESTS[name]
    well_said(refusal(daemon, request), status, *words)


@pytest.mark.parametrize(("person", "megabytes"), [(True, 40), (False, 40), (False, 5)])
def test_a_message_beyond_every_limit(daemon: Daemon, person: bool, megabytes: int) -> None:
    socket = daemon.user_socket if person else daemon.agent_socket
    with pytest.raises(grpc.RpcError) as caught:
        list(daemon.actions("Execute", pb.ExecuteRequest(intent="x" * (megabytes * 2**20)), socket=socket))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


PERSONS: dict[str, tuple[str, Any, int]] = {
    "an agent's odd name": ("AddAgent", pb.AddAgentRequest(name="a\x1b[2Jb", passphrase=APPROVAL_PASSPHRASE), 2),
    "an agent's long name": ("AddAgent", pb.AddAgentRequest(name=BIG, passphrase=APPROVAL_PASSPHRASE), 2),
    "an agent that is the person": ("AddAgent", pb.AddAgentRequest(name="person", passphrase=APPROVAL_PASSPHRASE), 2),
    "no such approval": ("Decide", pb.DecideRequest(approval_id=BIG, approve=True, width="once"), 2),
    "an odd width": ("Decide", pb.DecideRequest(approval_id="p", approve=True, width="forever"), 2),
    "a wrong passphrase": ("AddAgent", pb.AddAgentRequest(name="a", passphrase="wrong"), 3),
    "a long passphrase": ("AddAgent", pb.AddAgentRequest(name="a", passphrase=BIG), 3),
    "no such grant": ("Revoke", pb.RevokeRequest(grant_ids=[BIG]), 2),
    "no such service": ("Services", pb.ServicesRequest(service=BIG), 2),
    "no such account": ("VaultRemove", pb.VaultRemoveRequest(service="github", passphrase=APPROVAL_PASSPHRASE), 7),
    "an account's odd name": (
        "VaultPut",
        pb.VaultPutRequest(service="slack", account="a\x1b[2J\n", secret=b"x", passphrase=APPROVAL_PASSPHRASE), 2,
    ),
    "an empty credential": ("VaultPut", pb.VaultPutRequest(service="slack", passphrase=APPROVAL_PASSPHRASE), 2),
    "a credential of 10 MB": (
        "VaultPut", pb.VaultPutRequest(service="slack", secret=BIG.encode(), passphrase=APPROVAL_PASSPHRASE), 2,
    ),
    "a CA that isn't one": (
        "VaultPut",
        pb.VaultPutRequest(service="slack", secret=b"x", ca_pem="x" * 9000, passphrase=APPROVAL_PASSPHRASE), 2,
    ),
    "a second vault": (
        "VaultInit", pb.VaultInitRequest(keyed_by="passphrase", passphrase="a" * 20, approval_passphrase="b" * 20), 2,
    ),
    "an odd key for a vault": ("VaultInit", pb.VaultInitRequest(keyed_by="\x1b[2J"), 2),
    "a log beyond the end": ("Log", pb.LogRequest(before=2**62, limit=2**31), 0),
    "a log of 10 MB of agent": ("Log", pb.LogRequest(agent=BIG, action_id=BIG), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PERSONS)
def test_a_request_of_the_persons(daemon: Daemon, name: str) -> None:
    method, request, status = PERSONS[name]
    if not status:
        daemon.person(method, request)
        return
    with pytest.raises(grpc.RpcError) as caught:
        daemon.person(method, request)
    well_said(problem(caught.value), status)


# ---- bytes that aren't messages


def raw(daemon: Daemon, method: str, data: bytes, *, path: Path | None = None, **more: Any) -> grpc.RpcError:
    wire = grpc.insecure_channel(f"unix:{path or daemon.user_socket}", (("grpc.default_authority", "localhost"),))
    with wire, pytest.raises(grpc.RpcError) as caught:
        call: Any = wire.unary_unary(method)
        call(data, timeout=300, **more)
    return caught.value


BYTES = {
    "broken": b"\xff\xff\xff\xff",
    "a length beyond the end": b"\x0a\xff\xff\xff\xff\x07abc",
    "an endless number": b"\x0a" + b"\xff" * 30,
    "a text that isn't UTF-8": b"\x0a\x02\xc3\x28",
    "half a character": b"\x0a\x03\xed\xa0\x80",
    "an unclosed group": b"\x0b" * 200,
    "noise": bytes(range(256)) * 40,
}


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("method", ["Actions/Map", "Actions/Execute", "Person/Decide", "Person/VaultPut"])
def test_bytes_that_are_no_message(daemon: Daemon, name: str, method: str) -> None:
    error = raw(daemon, f"/goex.v1.{method}", BYTES[name])
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error
    well_said(problem(error), 2, "goex.v1")
    daemon.person("Status", pb.StatusRequest())


@pytest.mark.parametrize("method", ["Actions/Approve", "Person/Sudo", "Nobody/Asks", "\x7f", "Actions/" + "x" * 5000])
def test_an_unknown_method(daemon: Daemon, method: str) -> None:
    assert raw(daemon, f"/goex.v1.{method}", b"").code() in (
        grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL,
    )  # fmt: skip


def test_the_persons_methods_do_not_exist_on_the_agents_socket(daemon: Daemon) -> None:
    for method in ("Decide", "VaultPut", "Revoke", "AddAgent", "Shutdown"):
        error = raw(daemon, f"/goex.v1.Person/{method}", b"\xff\xff", path=daemon.agent_socket)
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PROTOCOLS = {
    "nothing": b"",
    "a NUL": b"\0",
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01" + bytes(500),
    "noise": bytes(range(256)) * 400,
    "noise after the preface": _PREFACE + b"\xff" * 9000,
    "frames of no stream": _PREFACE + bytes.fromhex("000000040000000000") + bytes.fromhex("00000408000000000000") * 900,
}


@pytest.mark.parametrize("data", PROTOCOLS.values(), ids=PROTOCOLS)
def test_bytes_that_are_no_protocol(daemon: Daemon, data: bytes) -> None:
    for path in (daemon.agent_socket, daemon.user_socket):
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(10)
            wire.connect(str(path))
            try:
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
                while wire.recv(65536):
                    pass
            except (ConnectionError, TimeoutError):
                pass
    daemon.person("Status", pb.StatusRequest())


def test_nobody_comes_past_the_acceptors(daemon: Daemon) -> None:
    """The sockets that gRPC itself listens on can't be found by a name."""
    assert sorted(path.name for path in daemon.run_dir.iterdir() if path.is_socket()) == ["agent.sock", "user.sock"]


@pytest.mark.parametrize("token", ["x", "goex_" + "0" * 40, "A" * 4000, "a b", "Bearer"])
def test_a_token_that_is_none(daemon: Daemon, token: str) -> None:
    error = raw(
        daemon,
        "/goex.v1.Actions/Whoami",
        b"",
        path=daemon.agent_socket,
        metadata=(("authorization", f"Bearer {token}"),),
    )
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    well_said(problem(error), 3, "agents add")


# ---- folders


def test_a_folder_that_is_a_link(daemon: Daemon, folder: Path) -> None:
    """The person is told which; an agent isn't told anything of what is there."""
    told = set()
    for name, target in (("root", "/"), ("etc", "/etc"), ("own", "."), ("loop", "loop"), ("gone", "nowhere")):
        link = folder.parent / name
        link.symlink_to(target)
        well_said(refusal(daemon, shell(link, "echo x > x"), person=True), 2, re.escape(name))
        told.add(refusal(daemon, shell(link, "echo x > x")).message)
    for tail in ("work/..", "work/../root", "root/etc", "etc/../etc"):
        request = shell(folder.parent / tail, "echo x > x")
        found = refusal(daemon, request, person=True)
        assert found.exit_status == 2, (tail, found)
        told.add(refusal(daemon, request).message)
    assert len(told) == 1


def test_a_folder_of_the_daemons_own(daemon: Daemon) -> None:
    for place in (daemon.state_dir, daemon.state_dir / "snapshots", daemon.run_dir, daemon.config_dir, daemon.home):
        found = refusal(daemon, shell(place, "cat vault.db"))
        assert found.exit_status in (2, 3), (place, found)
