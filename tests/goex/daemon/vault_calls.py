"""The Vault service from outside, as tests call it."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import problem


def call(daemon: Daemon, method: str, request: Any, *, socket: str = "user", seconds: float = 300.0) -> Any:
    """One call of the service Vault; a stream is read to its end. Raises grpc.RpcError."""
    described = vpb.DESCRIPTOR.services_by_name["Vault"].methods_by_name[method]
    reply = getattr(vpb, described.output_type.name, None) or getattr(pb, described.output_type.name)
    channel = daemon.channel(daemon.user_socket if socket == "user" else daemon.agent_socket)
    kind = channel.unary_stream if described.server_streaming else channel.unary_unary
    made = kind(
        f"/goex.v1.Vault/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    answer = made(request, timeout=seconds)
    return list(answer) if described.server_streaming else answer


def refused(work: Any) -> pb.Problem:
    """The problem that the call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        work()
    return problem(caught.value)


def rotate(daemon: Daemon, **facts: Any) -> list[vpb.RotateStep]:
    request = vpb.RotateRequest(**{"approval_passphrase": APPROVAL_PASSPHRASE, **facts})
    return list(call(daemon, "Rotate", request))


def put(daemon: Daemon, account: str, secret: str = "a secret", **facts: Any) -> None:
    daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack", account=account, secret=secret.encode(), passphrase=APPROVAL_PASSPHRASE, **facts
        ),
    )


def accounts(daemon: Daemon) -> list[str]:
    return [one.account for one in daemon.person("VaultList", pb.VaultListRequest()).accounts]


def status(daemon: Daemon) -> pb.StatusReply:
    return daemon.person("Status", pb.StatusRequest())
