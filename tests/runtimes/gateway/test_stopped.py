"""A gateway that is stopped while something is being opened: nothing begins any more, and the event loop ends.

The process is held by SIGSTOP, so that an `open` is under way for as long as a test wants.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from policies.accounts import Origin
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.contract import GatewayFailed
from tests.runtimes.gateway.support import Watch, account, lease, plan, planned
from tests.support.freezing import freeze
from tests.support.waiting import SECONDS

_ORIGIN = Origin("https", "localhost", 1)


async def _opening(client: GatewayClient, text: str = "hi") -> asyncio.Task[str]:
    assert client.pid is not None
    freeze(client.pid)
    what = plan(planned(_ORIGIN, body={"text": text}))
    task = asyncio.create_task(client.open(what, [lease(account(_ORIGIN))], Watch().observer()))
    for _ in range(5):
        await asyncio.sleep(0)  # until it has asked, and waits for the answer
    assert not task.done()
    return task


@pytest.mark.parametrize("text", ["hi", "x" * 2**22], ids=["small", "more than a socket holds"])
async def test_what_is_being_opened_fails_and_starts_no_other_process(tmp_path: Path, text: str) -> None:
    client = GatewayClient(tmp_path / "run")
    await client.start()
    task = await _opening(client, text)

    await asyncio.wait_for(client.stop(), SECONDS)

    with pytest.raises(GatewayFailed, match="stopped"):
        await task
    assert client.pid is None
    with pytest.raises(GatewayFailed, match="stopped"):
        await client.open(plan(planned(_ORIGIN)), [lease(account(_ORIGIN))], Watch().observer())
    await client.start()  # the control: whoever starts it anew has it again
    assert client.pid is not None
    assert await client.open(plan(planned(_ORIGIN)), [lease(account(_ORIGIN))], Watch().observer())
    await client.stop()


class _Slow(GatewayClient):
    """Its process starts when it is let."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(run_dir)
        self.starting, self.go = asyncio.Event(), asyncio.Event()

    async def _start(self) -> None:
        self.starting.set()
        await self.go.wait()
        await super()._start()


@pytest.mark.parametrize("starting", [False, True])
async def test_what_was_lent_before_the_vault_was_sealed_is_handed_to_no_gateway(
    tmp_path: Path, starting: bool
) -> None:
    client = _Slow(tmp_path / "run")
    asked = (plan(planned(_ORIGIN)), [lease(account(_ORIGIN))], Watch().observer())
    if starting:
        task = asyncio.create_task(client.open(*asked))
        await client.starting.wait()
        ending = asyncio.create_task(client.end())
        await asyncio.sleep(0)  # until it waits for what starts
        client.go.set()
        await ending
    else:
        client.go.set()
        await client.start()
        task = await _opening(client)
        await client.end()

    with pytest.raises(GatewayFailed, match="sealed"):
        await task
    assert client.pid is None
    assert await client.open(*asked)  # the control: what is asked for after that
    await client.stop()


def test_the_loop_ends_in_which_something_was_being_opened(tmp_path: Path) -> None:
    """In a process of its own, which hangs for good where another gateway is started in the loop's last tick."""
    script = """
import asyncio, sys
from pathlib import Path
from runtimes.gateway.client import GatewayClient
from tests.runtimes.gateway.test_stopped import _opening
async def main():
    client = GatewayClient(Path(sys.argv[1]))
    await client.start()
    main.task = await _opening(client)
    await client.stop()
asyncio.run(main())
print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "ended\n", done.stderr


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    """Cancelled at each of its first steps: whatever was forked by then is gone."""
    for steps in range(12):
        client = GatewayClient(tmp_path / "run")
        task = asyncio.create_task(client.start())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=20)
        assert task.done(), f"after {steps} steps"
        await client.stop()
    for _ in range(15_000):
        if not _children():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(_children())


def _children() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended meanwhile
            for child in (task / "children").read_text().split():
                with suppress(FileNotFoundError, ProcessLookupError):  # the process
                    if b"runtimes.gateway.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(child)
    return found
