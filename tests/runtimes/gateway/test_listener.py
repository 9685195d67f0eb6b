"""Who can reach an action's socket: whoever is in its container, and no other user of the host."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from runtimes.gateway.client import GatewayClient
from runtimes.gateway.contract import GatewayFailed
from tests.runtimes.gateway.running import HI, Up, begin, client_fixture, upstream_fixture  # noqa: F401  fixtures
from tests.runtimes.gateway.support import (
    Watch,
)


def mode(path: str | Path) -> int:
    return Path(path).stat().st_mode & 0o777


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
async def test_who_can_reach_a_socket(client: GatewayClient, upstream: Up, tmp_path: Path) -> None:
    """The folder itself lets any uid through, as a container's uid is any; its parent lets no other host user."""
    _, folder = await begin(client, upstream, Watch())
    modes = [mode(path) for path in (tmp_path / "run", folder, f"{folder}/gw.sock")]
    assert modes == [0o700, 0o711, 0o666]
    assert len(Path(folder).name) > 30

    def reach(path: str) -> bool:
        """Whether uid 65534 can connect. The folder is open already, as a mount would have it."""
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                os.setgid(65534)
                os.setuid(65534)
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(path)
                os._exit(0)
            os._exit(1)
        return os.waitpid(pid, 0)[1] == 0

    handle = os.open(folder, os.O_PATH)
    assert reach(f"/proc/self/fd/{handle}/gw.sock")
    assert not reach(f"{folder}/gw.sock")
    os.close(handle)


async def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o755)
    with pytest.raises(GatewayFailed, match="private"):
        await GatewayClient(tmp_path / "run").start()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(GatewayFailed, match="private"):
        await GatewayClient(tmp_path / "link").start()


async def test_a_long_path_works_too(tmp_path: Path, upstream: Up) -> None:
    client = GatewayClient(tmp_path / ("x" * 100) / "run")
    box, _ = await begin(client, upstream, Watch())
    assert (await box.request("POST", f"{upstream[1]}/api/messages", HI)).status == 200
    await client.stop()
