"""A gRPC server on a private socket, which only our acceptors join to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from goex.daemon.acceptor import private
from goex.daemon.arrivals import Arrivals
from goex.daemon.rpc_context import Behind, Readable

LARGEST_MESSAGE = 32 * 2**20  # bytes; requests have limits of their own below it, with a clearer error
LARGEST_OF_AGENTS = 4 * 2**20  # bytes of a request: a million characters of a proposal have that many at most
MOST_CALLS = 512  # of one connection of agents at once: twice what one may follow
LOOKAHEAD = 4096  # bytes that gRPC itself takes of a request of agents which nobody reads yet


async def serve(
    path: Path,
    services: Mapping[str, Callable[[Any], None]],
    behind: Callable[[Any], Behind] | None = None,
    hang_up: Callable[[str], object] = lambda _: None,
) -> tuple[Any, str]:
    """The server, which has begun, and its address. `behind`: it is for agents, of whose requests little may lie here
    before they have arrived whole, and nothing of one whose caller `behind` refuses; `hang_up` ends a connection."""
    interceptors: tuple[grpc.aio.ServerInterceptor, ...] = (Readable(),)
    options = [("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.http2.lookahead_bytes", 2**20)]
    if behind is not None:
        interceptors = (Readable(), Arrivals(behind, hang_up))
        options = [
            ("grpc.max_receive_message_length", LARGEST_OF_AGENTS),
            ("grpc.max_concurrent_streams", MOST_CALLS),
            ("grpc.http2.lookahead_bytes", LOOKAHEAD),
            # Packed, a small message could become a large one.
            ("grpc.compression_enabled_algorithms_bitset", 1),
        ]
    server = grpc.aio.server(
        interceptors=interceptors,
        options=(
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
            ("grpc.so_reuseport", 0),
            # A Unix socket has no bandwidth to find out: the pings for that would be as many as the messages.
            ("grpc.http2.bdp_probe", 0),
            *options,
        ),
    )
    names = [f"goex.v1.{name}" for name in services]
    names.append(health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
    for add in services.values():
        add(server)
    health = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    for name in ("", *names):
        await health.set(name, health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), server)
    server.add_insecure_port(f"unix:{path}")
    address = private(path)
    await server.start()
    return server, address
