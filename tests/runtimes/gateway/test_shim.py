"""The shim: programs that know nothing of Unix sockets reach the gateway through it, and it carries what they send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Origin
from runtimes.code.environment import CA, PORT, VARIABLES
from tests.runtimes.gateway.support import TestCA, account, lease, opened, plan, planned, serving
from tests.support.waiting import until

GOEX = Path(__file__).parents[3] / "sandbox-images" / "base" / "goex"

LAUNCH = """
import json, os, sys
sys.path.insert(0, sys.argv[2])
import shim
if sys.argv[1] == "prepared":
    shim.prepare(sys.argv[3])
port = shim.start(0, sys.argv[3])
told = json.loads(sys.argv[4])
os.environ.update({name: value.replace(":%d" % told["was"], ":%d" % port) for name, value in told["env"].items()})
os.execvp(sys.argv[5], sys.argv[5:])
"""

URLLIB = """
import json, sys, urllib.request
request = urllib.request.Request(sys.argv[1], json.dumps({"text": "hi"}).encode(), {"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request) as answer:
        print(answer.status, answer.headers["x-goex-well"], answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed", error)
"""


def launch(path: str, argv: list[str], ca: str = "/nonexistent", made: str = "") -> list[str]:
    """A command that becomes `argv` behind the shim, which leads to the socket at `path`. `made`: "prepared", when the
    shim's process was there before."""
    env = {name: ca if value == CA else value for name, value in VARIABLES.items() if name != "NODE_OPTIONS"}
    return [sys.executable, "-I", "-c", LAUNCH, made, str(GOEX), path, json.dumps({"was": PORT, "env": env}), *argv]


async def program(*argv: str) -> tuple[int | None, str]:
    made = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out, _ = await asyncio.wait_for(made.communicate(), 300)
    return made.returncode, out.decode()


async def through(tmp_path: Path, command: list[str], *, made: str = "", **changes: Any) -> tuple[Any, Any]:
    """Run a command behind the shim, against a gateway whose plan has one POST. {url} is filled in."""
    ca = TestCA()
    async with serving(ca.context("localhost")) as server:
        origin = Origin("https", "localhost", server.port)
        async with opened(plan(planned(origin, **changes)), [lease(account(origin, ca_pem=ca.pem))], tmp_path) as (
            box,
            watch,
        ):
            pem = tmp_path / "ca.pem"
            pem.write_text(box.container.ca_pem)
            argv = [part.replace("{url}", f"{origin}/api/messages") for part in command]
            return await program(*launch(box.container.socket, argv, str(pem), made)), watch


@pytest.mark.parametrize("made", ["", "prepared"])
async def test_a_program_that_takes_the_proxy_from_its_variables(tmp_path: Path, made: str) -> None:
    (code, out), watch = await through(tmp_path, [sys.executable, "-c", URLLIB, "{url}"], made=made)
    assert (code, out.split(" ", 2)[:2]) == (0, ["200", "1"]), out
    assert json.loads(out.split(" ", 2)[2]) == {"ok": True, "id": "m-1"}
    assert len(watch.exchanges) == 1


async def test_a_refusal_reaches_the_program(tmp_path: Path) -> None:
    (_, out), watch = await through(tmp_path, [sys.executable, "-c", URLLIB, "{url}"], path=("other",))
    assert out.startswith("403 ")
    assert "goex-refused" in out
    assert len(watch.refusals) == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl isn't installed")
async def test_curl(tmp_path: Path) -> None:
    command = ["curl", "-sS", "--json", '{"text":"hi"}', "{url}"]
    (code, out), _ = await through(tmp_path, command)
    assert code == 0, out
    assert json.loads(out)["ok"] is True


async def test_a_socket_that_is_gone_is_an_error_not_a_hang(tmp_path: Path) -> None:
    command = launch(str(tmp_path / "nothing"), [sys.executable, "-c", URLLIB, "https://localhost/x"])
    code, out = await program(*command)
    assert (code, "502" in out) == (0, True), out


@pytest.mark.parametrize("made", ["", "prepared"])
@pytest.mark.parametrize("how", ["exit 7", "kill -9 $$"])
async def test_it_ends_with_the_program(tmp_path: Path, how: str, made: str) -> None:
    path = str(tmp_path / "nothing")
    command = launch(path, ["sh", "-c", f"echo up; read line; {how}"], made=made)
    running = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert await running.stdout.readline() == b"up\n"
    assert len(_pumps(path)) == 1
    await running.communicate(b"\n")
    assert running.returncode == (7 if "exit" in how else -9)
    for _ in range(6_000):
        if not _pumps(path):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the pump still runs")


async def test_it_is_no_child_of_the_program(tmp_path: Path) -> None:
    """A program may wait for all of its children."""
    waits = "import os\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('none')"
    assert await program(*launch(str(tmp_path / "nothing"), [sys.executable, "-c", waits])) == (0, "none\n")


HELD = ["/dev/null", "/dev/null", "/dev/null", "anon_inode", "socket"]  # whom it watches, who will hand it a socket
PREPARED = """
import os, signal, socket, sys, time
sys.path.insert(0, sys.argv[1])
import shim
opened = socket.socket()
shim.prepare(sys.argv[2])
(helper,) = map(int, open(f"/proc/self/task/{os.getpid()}/children").read().split())
for _ in range(100):
    try:
        held = [os.readlink(f"/proc/{helper}/fd/{each}").partition(":")[0] for each in os.listdir(f"/proc/{helper}/fd")]
    except FileNotFoundError:  # one was closed between the listing and the look
        continue
    if sorted(held) == sys.argv[4].split(","):
        break
    time.sleep(0.05)
print(*sorted(held))
if sys.argv[3] == "ended":
    os.kill(helper, signal.SIGKILL)
    os.waitpid(helper, 0)
port = shim.start(0, sys.argv[2])
with socket.create_connection(("127.0.0.1", port)) as connection:
    connection.sendall(b"x")
    print(connection.recv(12))
"""


@pytest.mark.parametrize("how", ["waits", "ended"])
def test_one_that_was_prepared_holds_nothing_until_it_is_handed_the_socket(tmp_path: Path, how: str) -> None:
    """One that is gone by then is replaced."""
    command = [sys.executable, "-I", "-c", PREPARED, str(GOEX), str(tmp_path / "nothing"), how, ",".join(HELD)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    held, answer = done.stdout.splitlines()
    assert held.split() == HELD
    assert answer == "b'HTTP/1.1 502'"


def _pumps(path: str) -> list[int]:
    """The processes whose command line still names the socket."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.encode() in place.read_bytes():
                found.append(int(place.parent.name))
    return found


# From here on: bytes, against a server on a Unix socket that does as each test says.

Serving = Callable[[socket.socket], None]


class Shim:
    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def fact(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name + ":")).split()[1])

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextlib.contextmanager
def shim_before(tmp_path: Path, serve: Serving, backlog: int = 64) -> Iterator[Shim]:
    """A shim whose other side calls `serve` in a thread for each connection."""
    path = tmp_path / "gw.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(backlog)

    def one(end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):
            end.settimeout(300)
            serve(end)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                end, _ = listener.accept()
                threading.Thread(target=one, args=(end,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    say = "echo $https_proxy; read line"
    running = subprocess.Popen(launch(str(path), ["sh", "-c", say]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout is not None
    try:
        port = int(running.stdout.readline().decode().strip().rpartition(":")[2])
        (pump,) = _pumps(str(path))
        yield Shim(port, pump)
    finally:
        running.communicate(b"\n", timeout=300)
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def everything(end: socket.socket) -> bytes:
    got = bytearray()
    while chunk := end.recv(2**16):
        got += chunk
    return bytes(got)


def test_half_closed_either_way_the_other_way_goes_on(tmp_path: Path) -> None:
    def serve(end: socket.socket) -> None:
        first = end.recv(5)
        if first == b"late:":
            end.sendall(b"<" + everything(end) + b">")  # answers only when it has seen the end
        else:
            end.sendall(b"early")
            end.shutdown(socket.SHUT_WR)
            size.append(len(everything(end)))

    size: list[int] = []
    with shim_before(tmp_path, serve) as shim:
        with shim.connect() as end:
            end.sendall(b"late:abc")
            end.shutdown(socket.SHUT_WR)
            assert everything(end) == b"<abc>"
        with shim.connect() as end:
            end.sendall(b"first")
            assert everything(end) == b"early"
            end.sendall(b"x" * 3_000_000)
        for _ in range(15_000):
            if size:
                break
            time.sleep(0.02)
        assert size == [3_000_000]


def test_an_answer_in_the_middle_of_an_upload_arrives(tmp_path: Path) -> None:
    def serve(end: socket.socket) -> None:
        end.recv(10)
        end.sendall(b"413 enough")  # and hangs up, with more on its way

    with shim_before(tmp_path, serve) as shim, shim.connect() as end:
        for _ in range(100):
            end.sendall(b"x" * 2**16)  # raises when the connection is reset
        assert everything(end) == b"413 enough"
        before = shim.descriptors
        end.close()
        until(lambda: shim.descriptors < before)


def test_a_program_that_breaks_off_ends_the_other_side(tmp_path: Path) -> None:
    def serve(end: socket.socket) -> None:
        end.sendall(b"go")
        while end.recv(2**16):  # and without an end of the program's, this waits
            pass
        seen.append("end")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                end.sendall(b"nobody takes this" * 1000)
        seen.append("gone")

    seen: list[str] = []
    with shim_before(tmp_path, serve) as shim:
        before = shim.descriptors
        end = shim.connect()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert end.recv(2) == b"go"
        end.close()  # a reset
        until(lambda: seen == ["end", "gone"])
        end = shim.connect()
        assert end.recv(2) == b"go"
        end.close()  # an end, and nobody who could read
        until(lambda: seen == ["end", "gone"] * 2)
        until(lambda: shim.descriptors == before)


def test_many_connections_at_once_each_with_its_own_bytes(tmp_path: Path) -> None:
    most = [0, 0]
    lock = threading.Lock()

    def serve(end: socket.socket) -> None:
        with lock:
            most[0] += 1
            most[1] = max(most)
        data = everything(end)
        end.sendall(data[::-1])
        with lock:
            most[0] -= 1

    # A backlog of two: connections that find no room there wait, and are served in time.
    with shim_before(tmp_path, serve, backlog=2) as shim:
        ends = [shim.connect() for _ in range(150)]
        bodies = [os.urandom(1000 + number) for number in range(150)]
        for end, body in zip(ends, bodies, strict=True):
            end.sendall(body)
        for end, body in zip(ends, bodies, strict=True):
            end.shutdown(socket.SHUT_WR)
            assert everything(end) == body[::-1]
            end.close()
        assert 2 < most[1] <= 64
        assert shim.fact("Threads") == 1
        until(lambda: shim.descriptors < 10)


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_large_body_takes_no_memory_even_when_nobody_reads(tmp_path: Path, way: str) -> None:
    block, blocks = bytes(2**20), 400
    go = threading.Event()

    def serve(end: socket.socket) -> None:
        if way == "down":
            for _ in range(blocks):
                end.sendall(block)
            end.shutdown(socket.SHUT_WR)
            everything(end)
        else:
            go.wait(300)
            end.sendall(b"%d" % _count(end))

    with shim_before(tmp_path, serve) as shim, shim.connect() as end:
        before, cpu = shim.fact("VmRSS"), _ticks(shim.pid)
        if way == "down":
            time.sleep(0.3)  # nobody reads: what fits in the sockets is all that is taken
            assert _ticks(shim.pid) - cpu < 15  # and nothing spins
            assert _count(end) == len(block) * blocks
        else:
            threading.Timer(0.3, go.set).start()
            for _ in range(blocks):
                end.sendall(block)
            end.shutdown(socket.SHUT_WR)
            assert int(everything(end)) == len(block) * blocks
        assert shim.fact("VmHWM") - before < 16_384  # KiB, of 409,600


def test_waiting_costs_nothing(tmp_path: Path) -> None:
    """Ends that are half gone are told of again and again by a poll that asks for them."""

    def serve(end: socket.socket) -> None:
        if end.recv(1) == b"x":
            end.sendall(b"bye")
            return
        end.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            while True:  # until it is full from here to the program, which doesn't read
                end.sendall(b"y" * 2**12)

    with shim_before(tmp_path, serve) as shim:
        ends = [shim.connect() for _ in range(5)]
        for end in ends[:3]:
            end.sendall(b"x")  # answered, hung up; the program keeps its end
        ends[3].sendall(b"y")
        ends[4].shutdown(socket.SHUT_WR)
        time.sleep(0.6)
        before = _ticks(shim.pid)
        time.sleep(0.5)
        assert _ticks(shim.pid) - before <= 1
        for end in ends:
            end.close()


def _count(end: socket.socket) -> int:
    size, buffer = 0, bytearray(2**18)
    while got := end.recv_into(buffer):
        size += got
    return size


def _ticks(pid: int) -> int:
    """Processor time, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
