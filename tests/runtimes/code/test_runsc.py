"""A program in `runsc`: its proxy, its variables and its end are the same there.

It takes an engine of its own: `make attacks` runs it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest

from runtimes.code import environment
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.engine import Engine
from tests.runtimes.gateway.authority import TestCA
from tests.services.engine import PrivateEngine, can_run

pytestmark = [
    pytest.mark.docker,
    pytest.mark.thorough,
    pytest.mark.skipif(not can_run() or shutil.which("runsc") is None, reason="no runsc, or no engine of one's own"),
    pytest.mark.timeout(600),
]

RUNSC = {"path": shutil.which("runsc"), "runtimeArgs": ["--host-uds=open", "--network=none", "--oci-seccomp"]}
PROGRAM = """
import threading
import urllib.request

got = []

def get(number):
    got.append(len(urllib.request.urlopen(f"http://service.test/{number}").read()))

threads = [threading.Thread(target=get, args=(number,)) for number in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(got == [1_000_000] * 10)
raise SystemExit(4)
"""


def place() -> Path:
    made = Path(tempfile.mkdtemp(prefix="goex-r-", dir="/var/tmp"))  # an overlay can't hold another
    made.chmod(0o711)
    (made / "gw").mkdir()
    return made


async def test_a_program_in_runsc(sandbox_image: str) -> None:
    folder = place()
    gateway = folder / "gw"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\nconnection: close\r\n\r\n" + b"x" * 1_000_000)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, str(gateway / "gw.sock"))
    await asyncio.to_thread((gateway / "gw.sock").chmod, 0o666)
    job = environment.job(
        action_id="a", language="python", program=PROGRAM, ca_pem=TestCA().pem, socket_dir=str(gateway), env={}
    )
    limits = Limits(memory=400 * 2**20, pids=256)  # its own kernel takes of both
    try:
        with PrivateEngine(folder / "e", runtimes={"runsc": RUNSC}) as engine:
            engine.give(sandbox_image)
            sandbox = DockerSandbox("code-runsc", scratch_dir=folder / "scratch", engine=Engine(engine.client))
            result = await sandbox.run(job, Profile(runtime="runsc", limits=limits))
            await sandbox.close()
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)
    assert (result.stdout, result.exit_code) == (b"True\n", 4), result
