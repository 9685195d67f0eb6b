"""The real process behind the real client: its life, its death, and what can be seen of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from policies.errors import InvalidInput
from policies.typed_json import to_json
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.contract import GatewayFailed
from runtimes.gateway.lease_json import lease_to_json
from runtimes.gateway.rpc_frames import encode
from tests.runtimes.gateway.running import HI, Up, begin, client_fixture, upstream_fixture  # noqa: F401  fixtures
from tests.runtimes.gateway.support import (
    CANARY,
    Reply,
    Seen,
    Watch,
    account,
    json_reply,
    lease,
    plan,
    planned,
)
from tests.support.waiting import until_async


async def gone(pid: int) -> None:
    await until_async(lambda: not exists(f"/proc/{pid}"))


def exists(path: str) -> bool:
    return Path(path).exists()


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_planned_request_reaches_the_server_with_the_secret(client: GatewayClient, upstream: Up) -> None:
    watch = Watch()
    box, folder = await begin(client, upstream, watch)
    got = await box.request("POST", f"{upstream[1]}/api/messages", HI)
    assert (got.status, got.json, got.headers["x-goex-well"]) == (200, {"ok": True, "id": "m-1"}, "1")
    assert upstream[0].seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert watch.sent == [f"POST {upstream[1]}/api/messages"]
    assert [kind for kind, _ in watch.events] == ["sending", "answered"]
    await client.close("a1")
    assert not exists(folder)
    await client.close("a1")


async def test_nothing_leaves_before_the_daemon_took_note(client: GatewayClient, upstream: Up) -> None:
    watch = Watch(hold=asyncio.Event())
    box, _ = await begin(client, upstream, watch)
    asked = asyncio.create_task(box.request("POST", f"{upstream[1]}/api/messages", HI))
    await until_async(lambda: watch.events)
    await asyncio.sleep(0.2)
    assert not upstream[0].seen
    assert watch.hold is not None
    watch.hold.set()
    assert (await asked).status == 200
    assert upstream[0].seen


async def test_a_daemon_that_cannot_note_refuses(client: GatewayClient, upstream: Up) -> None:
    watch = Watch(refuse_sending=True)
    box, _ = await begin(client, upstream, watch)
    got = await box.request("POST", f"{upstream[1]}/api/messages", HI)
    assert got.status == 403
    assert not upstream[0].seen
    assert "didn't take note" in watch.refusals[0].reason


async def test_two_actions_cannot_use_each_other(client: GatewayClient, upstream: Up) -> None:
    one, two = Watch(), Watch()
    box_one, folder_one = await begin(client, upstream, one, "a1", secret="secret-of-one")
    box_two, folder_two = await begin(client, upstream, two, "a2", secret="secret-of-two", path=("other",))
    assert folder_one != folder_two
    assert (await box_two.request("POST", f"{upstream[1]}/api/messages", HI)).status == 403
    assert (len(one.refusals), len(two.refusals)) == (0, 1)
    assert (await box_one.request("POST", f"{upstream[1]}/api/messages", HI)).status == 200
    assert (await box_two.request("POST", f"{upstream[1]}/api/other", HI)).status == 200
    assert [seen.headers["authorization"] for seen in upstream[0].seen] == [
        "Bearer secret-of-one",
        "Bearer secret-of-two",
    ]
    with pytest.raises(InvalidInput, match="another action"):
        await client.open(
            plan(planned(upstream[1]), action_id="a3"), [lease(account(upstream[1]), "a1")], Watch().observer()
        )
    with pytest.raises(InvalidInput, match="served already"):
        await begin(client, upstream, Watch(), "a1")


async def test_a_kill_is_told_to_whoever_waits_and_another_is_started(client: GatewayClient, upstream: Up) -> None:
    hanging = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(seen: Seen) -> Reply:
        loop.call_soon_threadsafe(hanging.set)
        time.sleep(1.5)
        return None

    upstream[0].answer = answer
    watch = Watch()
    box, folder = await begin(client, upstream, watch)
    asked = asyncio.create_task(box.request("POST", f"{upstream[1]}/api/messages", HI))
    await hanging.wait()
    pid, ca_pem = client.pid, client.ca_pem
    assert pid is not None
    client.check("a1")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises((ConnectionError, OSError)):
        await asked
    await until_async(lambda: watch.exchanges)
    assert (watch.exchanges[0].request, watch.exchanges[0].status, watch.exchanges[0].well) == ("call-0", 0, False)
    assert "isn't known" in watch.exchanges[0].failed
    with pytest.raises(GatewayFailed, match="died"):
        client.check("a1")
    assert not exists(folder)
    await client.close("a1")
    upstream[0].answer = lambda seen: json_reply({})
    box, _ = await begin(client, upstream, Watch(), "a2")
    assert client.pid != pid
    assert client.ca_pem != ca_pem
    client.check("a2")
    assert (await box.request("POST", f"{upstream[1]}/api/messages", HI)).status == 200


async def test_open_right_after_a_kill_starts_another(client: GatewayClient, upstream: Up) -> None:
    for number in range(5):
        assert client.pid is not None
        os.kill(client.pid, signal.SIGKILL)
        box, _ = await begin(client, upstream, Watch(), f"a{number}")
        assert (await box.request("POST", f"{upstream[1]}/api/messages", HI)).status == 200


async def test_many_opens_at_once_share_one_process(tmp_path: Path, upstream: Up) -> None:
    client = GatewayClient(tmp_path / "run")
    await asyncio.gather(*(begin(client, upstream, Watch(), f"a{number}") for number in range(10)))
    assert client.pid is not None
    await client.stop()
    with pytest.raises(GatewayFailed):
        _ = client.ca_pem


@pytest.mark.promise(33)
async def test_the_end_of_the_daemon_is_its_end(tmp_path: Path, upstream: Up) -> None:
    """The daemon is killed, so that nothing but the kernel closes its end."""
    script = """
import asyncio, os, signal, sys
from pathlib import Path
from runtimes.gateway.client import GatewayClient
from tests.runtimes.gateway.support import *
async def main():
    client = GatewayClient(Path(sys.argv[1]))
    origin = Origin("https", "localhost", 1)
    folder = await client.open(plan(planned(origin)), [lease(account(origin))], Watch().observer())
    print(client.pid, folder, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path / "run"),
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert daemon.stdout is not None
    pid, folder = (await daemon.stdout.readline()).decode().split()
    os.kill(int(pid), 0)
    assert exists(folder)
    daemon.kill()
    await daemon.wait()
    await gone(int(pid))
    assert not exists(folder)


async def test_it_lives_apart_from_the_terminal_and_hides_its_memory(client: GatewayClient) -> None:
    pid = client.pid
    assert pid is not None
    assert os.getsid(pid) == pid
    os.kill(pid, signal.SIGINT)
    await asyncio.sleep(0.3)
    os.kill(pid, 0)
    limits = read(f"/proc/{pid}/limits").decode()
    assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] == ["0", "0"]
    status = read(f"/proc/{pid}/status").decode()
    assert "NoNewPrivs:\t1" in status


@pytest.mark.promise(32)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
async def test_its_own_user_cannot_read_its_memory() -> None:
    """Two processes of one unprivileged user: only the hardened one is closed to a third. It can still mint leaves."""
    script = """
import ctypes, os, time
from runtimes.gateway.process import harden
from runtimes.gateway.certificates import Authority
Authority().context("localhost", [])  # an unprivileged user may not be able to import what this needs
def child(work):
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # a change of user closes a process too: open it again
        try:
            work()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os.write(tell, b"x")
        time.sleep(20)
        os._exit(0)
    os.close(tell)
    assert os.read(ready, 1) == b"x"
    return pid
def hard():
    harden()
    Authority().context("localhost", [])
def readable(pid):
    try:
        open(f"/proc/{pid}/environ").read()
        open(f"/proc/{pid}/mem", "rb").close()
        return True
    except PermissionError:
        return False
pids = child(lambda: None), child(hard)
def look():
    print(*(readable(pid) for pid in pids), flush=True)
pids += (child(look),)
for pid in pids:
    os.kill(pid, 9)
"""
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, problem = await made.communicate()
    assert out.decode().split() == ["True", "False"], problem.decode()


async def test_the_secret_is_seen_nowhere(client: GatewayClient, upstream: Up, tmp_path: Path) -> None:
    upstream[0].answer = lambda seen: json_reply({"echo": seen.headers["authorization"]})
    watch = Watch()
    box, _ = await begin(client, upstream, watch)
    got = await box.request("POST", f"{upstream[1]}/api/messages", HI)
    pid = client.pid
    (tmp_path / "run" / "file").write_bytes(b"planted")
    if os.geteuid() != 0:
        # The process is closed to debuggers, so its own user can't even look.
        with pytest.raises(PermissionError):
            read(f"/proc/{pid}/environ")
    places = {
        "environ": read(f"/proc/{pid}/environ") if os.geteuid() == 0 else b"LC_ALL=C.UTF-8\0",
        "argv": read(f"/proc/{pid}/cmdline"),
        "events": repr(watch.events).encode(),
        "answer": got.body + repr(got.headers).encode(),
        "files": everything(tmp_path),
    }
    planted = {"environ": b"LC_ALL", "argv": b"runtimes.gateway.process", "events": b"[redacted]",
               "answer": b"[redacted]", "files": b"planted"}  # fmt: skip
    for place, data in places.items():
        assert planted[place] in data, f"the search in {place} finds nothing at all"
        assert CANARY.encode() not in data, place
    assert watch.exchanges[0].body == {"echo": "Bearer [redacted]"}
    assert set(places["environ"].split(b"\0")) <= {b"LC_ALL=C.UTF-8", b""}


async def test_the_conversation_never_gives_a_secret_back(tmp_path: Path, upstream: Up) -> None:
    """Everything the process ever writes, on its socket, stdout and stderr, byte for byte."""
    ours, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "runtimes.gateway.process", str(theirs.fileno()),
        pass_fds=(theirs.fileno(),), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    theirs.close()
    _, origin, _ = upstream
    good = [lease_to_json(lease(account(origin)))]
    bad_secret = [lease_to_json(lease(account(origin), secret=f"{CANARY}\nX: y"))]
    frames: list[dict[str, Any]] = [
        {"op": "hello", "run_dir": str(tmp_path)},
        {"op": "open", "plan": to_json(plan(planned(origin))), "leases": good},
        {"op": "open", "plan": to_json(plan(planned(origin))), "leases": good},
        {"op": "open", "plan": to_json(plan(planned(origin), action_id="a2")), "leases": good},
        {"op": "open", "plan": to_json(plan(planned(origin))), "leases": bad_secret},
        {"op": "open", "plan": {"action_id": CANARY}, "leases": good},
        {"op": "open", "plan": to_json(plan(planned(origin))), "leases": [{"secret": CANARY}]},
    ]
    loop = asyncio.get_running_loop()
    ours.setblocking(False)
    for number, frame in enumerate(frames):
        await loop.sock_sendall(ours, encode({**frame, "n": number}))
    said = b""
    while said.count(b'"n":') < len(frames):
        said += await asyncio.wait_for(loop.sock_recv(ours, 65536), 300)
    ours.close()
    out, _ = await process.communicate()
    assert b"failed" in said
    assert CANARY.encode() not in said + out
    assert out == b""
    await gone(process.pid)


@pytest.mark.parametrize("junk", [b"\xff\xff\xff\xff", b"\0\0\0\x02[]", b"\0\0\0\x04junk", b"\0\0\0\x02{}"])
async def test_a_broken_frame_ends_it(junk: bytes) -> None:
    ours, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "runtimes.gateway.process", str(theirs.fileno()), pass_fds=(theirs.fileno(),)
    )
    theirs.close()
    with ours:
        ours.sendall(junk)
        assert await asyncio.wait_for(process.wait(), 300) == 1


def test_it_never_loads_what_holds_the_keys() -> None:
    script = "import sys, runtimes.gateway.process; print(*sorted(sys.modules))"
    made = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(made.stdout.split())
    assert {"vault.secret", "vault.lease", "h11"} <= loaded
    forbidden = {"vault.store", "vault.keys", "vault.aead", "goex", "docker", "grpc", "sqlalchemy", "keyring"}
    assert not forbidden & loaded


async def test_what_the_process_says_wrongly_is_a_failure_of_the_gateway(client: GatewayClient, upstream: Up) -> None:
    with pytest.raises(GatewayFailed, match="open failed: FileNotFoundError"):
        shutil.rmtree(client._run_dir)
        await begin(client, upstream, Watch())
