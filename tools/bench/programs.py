"""`exec.warm.p50_ms`: one line of Python that may use a service (`exec --code`), as an agent's gRPC client sees it:
GoEx's own for Python, on a connection that is there already. XDG_RUNTIME_DIR is in memory, as on a desktop; state and
journal are on the disk.

It is the whole path, in a real daemon, on a standing grant: received, assessed, decided, the gateway opened for it, run
in a container that waited, recorded. It is asked for again as soon as the place of that container is filled and the
machine is quiet. The floor is a bare interpreter with the same line, started as a process.
"""

# Waiting by looking, and a process that is waited for, disturb nothing that is measured here.
# ruff: noqa: ASYNC110, ASYNC221
from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from goex.client import Client
from goex.rpc import goex_pb2 as pb
from runtimes.sandbox import images
from tests.support.containers import waiting
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey
from tools.bench.measure import Row, Timings, in_turn, quiet, row

NAME = "exec.warm.p50_ms"
LINE = "print(sum(range(10)))"


async def measure() -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "code")
    values: list[float] = []
    floors: list[float] = []
    with Daemon(in_memory=True) as daemon:
        token = daemon.add_agent("bench")
        account = pb.VaultPutRequest(service="slack", account="work", secret=b"xoxb-1", passphrase=APPROVAL_PASSPHRASE)
        daemon.person("VaultPut", account)
        program = pb.CodeProgram(language="python", program=LINE, services=["slack/work"])
        request = pb.ExecuteRequest(code=program)
        granted = Journey(daemon, request, token=token).approve("permanent")
        assert granted.action.state == "done", granted
        client = Client(daemon.agent_socket, token=token)

        async def settled() -> None:
            while waiting(daemon.run_dir) < 2:
                await asyncio.sleep(0.05)
            await quiet()  # one that says so still loads what programs are likely to need

        async def value() -> None:
            await settled()
            began = time.perf_counter_ns()
            *_, last = client.execute(request)
            values.append((time.perf_counter_ns() - began) / 1e6)
            assert last.finished.action.state == "done", last

        async def floor() -> None:
            began = time.perf_counter_ns()
            subprocess.run([sys.executable, "-I", "-c", LINE], check=True, stdout=subprocess.PIPE)
            floors.append((time.perf_counter_ns() - began) / 1e6)

        timings, _ = await in_turn(value, floor, rounds=30, seconds=60)
        count = len(timings.each)
        client.close()
    return (row(NAME, Timings(tuple(values[-count:])), "a bare python process", Timings(tuple(floors[-count:]))),)
