"""Another user of the machine holds more connections to the MCP server than it may have files open."""

from __future__ import annotations

import json
import resource
import socket
import urllib.request
from contextlib import ExitStack

import pytest

from tests.support import mcp
from tests.support.daemon import Daemon

FILES = 512


@pytest.mark.promise(16)
def test_an_agent_is_answered(daemon: Daemon, token: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * FILES), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        server = mcp.begun(daemon, "", "--http", "--port", "0")
        stack.callback(server.wait)
        stack.callback(server.terminate)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        assert server.stdout is not None
        address = server.stdout.readline().decode().strip()
        port = int(address.partition("//")[2].partition("/")[0].rpartition(":")[2])
        for _ in range(FILES + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
        }}  # fmt: skip
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        request = urllib.request.Request(address, data=json.dumps(asked).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert answer.status == 200
