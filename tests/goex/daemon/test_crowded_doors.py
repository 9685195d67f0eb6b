"""Others fill what there is little of, from processes of their own, and stay: connections, processes that read
commands, the daemon's own loop, and its log. An agent with a name is answered meanwhile."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from goex.daemon.acceptor import MOST_CONNECTIONS
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

_BURST = 120
_SETTLED = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(8) + b"\x04\x01" + bytes(4)

# Each is given the socket's path, and says "ready" once it has asked for all that it asks for. Then it stays.
_HOLDS = f"""
import socket, sys, time
held = []
for _ in range({MOST_CONNECTIONS} + 44):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(sys.argv[1])
    try:
        held[-1].sendall(bytes.fromhex("{_SETTLED.hex()}"))
    except OSError:
        pass  # it was ended
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.read()
"""
_CALLS = """
import asyncio, sys
import grpc
from goex.rpc import goex_pb2 as pb, goex_pb2_grpc as rpc

async def call(stub, number, metadata):
    {call}

async def ask(stub, number, metadata):
    try:
        await call(stub, number, metadata)
    except grpc.aio.AioRpcError:
        pass
    print("ended", flush=True)

async def main():
    metadata = tuple(("authorization", "Bearer " + token) for token in sys.argv[2:])
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
    channels = [grpc.aio.insecure_channel("unix:" + sys.argv[1], options=options) for _ in range({channels})]
    for channel in channels:
        await channel.channel_ready()
    asked = [asyncio.create_task(ask(rpc.ActionsStub(channels[n % {channels}]), n, metadata)) for n in range({calls})]
    await {ready}
    print("ready", flush=True)
    await asyncio.gather(*asked)

begun = asyncio.Event()
asyncio.run(main())
"""
_JUDGE = """
    lines = range(6_800)  # the parser takes four times as long for twice as many
    program = "cat " + " ".join(f"<<A{i}" for i in lines) + "\\n" + "".join(f"A{i}\\n" for i in lines)
    await stub.Judge(pb.JudgeRequest(tool="Bash", kind="shell", folder="/tmp", program=program), metadata=metadata)
"""
_EXECUTE = """
    said = '{"channel": "#ops", "text": "%d"}' % number
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json=said)
    events = stub.Execute(pb.ExecuteRequest(calls=pb.Calls(calls=[call])), metadata=metadata)
    await events.read()
    begun.set()
    await events.code()
"""


@contextmanager
def attacking(daemon: Daemon, program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """While a process of its own does that, from when it is ready on."""
    command = [sys.executable, "-c", program, str(daemon.agent_socket), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def calls(call: str, *, channels: int, count: int, ready: str = "asyncio.sleep(1)") -> str:
    """The program that makes so many of these calls at once, on so many connections, and is `ready` after that."""
    program = _CALLS.replace("    {call}", call).replace("{ready}", ready)
    return program.replace("{channels}", str(channels)).replace("{calls}", str(count))


def nothing_ended(process: subprocess.Popen[str]) -> bool:
    """Whether all calls of an attack are still open."""
    return process.poll() is None and not select.select([process.stdout], [], [], 0)[0]


@pytest.fixture
def crowded() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


def whoami(channel: grpc.Channel, token: str = "") -> str:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    stub = rpc.ActionsStub(channel)  # type: ignore[no-untyped-call]
    return str(stub.Whoami(pb.WhoamiRequest(), metadata=metadata, timeout=300, wait_for_ready=True).agent)


@pytest.mark.promise(16)
def test_a_process_that_holds_every_connection_keeps_no_other_out(crowded: Daemon) -> None:
    """Nor does it end those of others, with a name or without, that were there before or come now."""
    token = crowded.add_agent("good")
    crowded.disconnect()
    before = crowded.connect(crowded.agent_socket)
    assert whoami(before) == "anonymous"
    session = rpc.ActionsStub(before).Whoami(pb.WhoamiRequest()).session
    with attacking(crowded, _HOLDS):
        others = [crowded.connect(crowded.agent_socket) for _ in range(20)]
        for place, channel in enumerate(others * 2):  # the second time they are there already
            assert whoami(channel, token if place % 2 else "") == ("good" if place % 2 else "anonymous")
        assert rpc.ActionsStub(before).Whoami(pb.WhoamiRequest(), timeout=300).session == session
        for channel in (*others, before):
            channel.close()
    assert "process" in crowded.tail() and f"{MOST_CONNECTIONS} were on the agent socket" in crowded.tail()


@pytest.mark.promise(16)
def test_commands_that_take_long_to_read_keep_no_other_agents_waiting(crowded: Daemon) -> None:
    token, program = crowded.add_agent("good"), "echo " + "x" * 400
    request = pb.JudgeRequest(tool="Bash", kind="shell", folder="/tmp", program=program)
    with attacking(crowded, calls(_JUDGE, channels=2, count=16)) as attack:
        crowded.actions("Judge", request, token=token)
        assert nothing_ended(attack)


@pytest.mark.promise(16)
def test_a_burst_of_one_agent_is_not_worked_off_before_anothers_request(crowded: Daemon) -> None:
    secret = pb.VaultPutRequest(service="slack", account="work", secret=b"xoxb-1", passphrase=APPROVAL_PASSPHRASE)
    crowded.person("VaultPut", secret)
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json='{"channel": "#ops", "text": "x"}')
    request = pb.ExecuteRequest(calls=pb.Calls(calls=[call]))
    before = [_BURST]
    while before[-1] >= _BURST / 2 and len(before) < 5:  # a busy machine may come between, once or twice
        good, busy = (crowded.add_agent(f"{name}-{len(before)}") for name in ("good", "busy"))
        with attacking(crowded, calls(_EXECUTE, channels=4, count=_BURST, ready="begun.wait()"), busy):
            journey = Journey(crowded, request, token=good)
            journey.asked()
            waiting = crowded.person("Approvals", pb.ApprovalsRequest(brief=True))
            mine = [one.agent == f"busy-{len(before)}" for one in waiting.approvals]
            before.append(sum(mine) + waiting.left_out)
            journey.leave()
    assert before[-1] < _BURST / 2, before


@pytest.mark.promise(16)
@pytest.mark.parametrize(
    "method", ["grpc.health.v1.Health/Check", "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"]
)
def test_bytes_that_are_no_request_fill_no_log(crowded: Daemon, method: str) -> None:
    with crowded.connect(crowded.agent_socket) as channel:
        before = len(crowded.tail(10**6))
        for _ in range(30):
            with pytest.raises(grpc.RpcError) as caught:
                call = channel.stream_stream(f"/{method}", request_serializer=bytes)
                list(call(iter([b"\xff" * 4]), timeout=300))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(crowded.tail(10**6)) == before
