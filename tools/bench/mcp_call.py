"""`mcp.added.p50_ms`: a tool call to `goex mcp` on standard input (`goex_actions`), by the SDK's own client.

The floor is the same call by gRPC (`Actions/List`), with the same token.
"""

from __future__ import annotations

from goex.client import Client
from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import Daemon
from tools.bench.measure import Row, in_turn, row

NAME = "mcp.added.p50_ms"


async def measure(rounds: int = 200) -> tuple[Row, ...]:
    with Daemon() as daemon:
        token = daemon.add_agent("bench")
        with Client(daemon.agent_socket, token=token) as client:
            async with mcp.stdio(daemon, token) as session:

                async def by_mcp() -> None:
                    assert not (await session.call_tool("goex_actions", {})).is_error

                async def by_grpc() -> None:
                    client.call("Actions/List", pb.ListRequest(limit=10, brief=True), pb.ListReply)

                timings = await in_turn(by_mcp, by_grpc, rounds=rounds, seconds=10)
    return (row(NAME, timings[0], "the same by gRPC", timings[1]),)
