"""The MCP server's link to the daemon, where a client gives up a call."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import anyio
import pytest

from goex.mcp.daemon_link import Caller, DaemonLink
from goex.rpc import goex_pb2 as pb


@pytest.mark.parametrize("what", ["get", "begin"])
async def test_a_call_that_is_cancelled_while_the_daemon_is_asked_ends_nothing_else(tmp_path: Path, what: str) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        link = DaemonLink(tmp_path / "s")
        asked = {
            "get": lambda: link.get("a-1", Caller("token")),
            "begin": lambda: link.begin(pb.ExecuteRequest(), Caller("token")),
        }
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_later(0.2, scope.cancel)
            await asked[what]()
        assert scope.cancelled_caught
        await link.close()
