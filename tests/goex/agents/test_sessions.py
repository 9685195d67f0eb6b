"""A session belongs to an agent's token and the name that it gives it, not to a connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import Daemon
from tests.support.journey import decide


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    mcp.connect_slack(daemon)
    return daemon.add_agent("sessions")


def events(daemon: Daemon, token: str, session: str) -> Iterator[pb.Event]:
    """A request of a connection of its own, in a session of that name."""
    call = pb.Call(service="slack", method="users.list", arguments_json="{}")
    metadata = (("authorization", f"Bearer {token}"), ("goex-session", session))
    options = (("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1))
    with closing(grpc.insecure_channel(f"unix:{daemon.agent_socket}", options)) as channel:
        execute = channel.unary_stream(
            "/goex.v1.Actions/Execute",
            request_serializer=pb.ExecuteRequest.SerializeToString,
            response_deserializer=pb.Event.FromString,
        )
        yield from execute(pb.ExecuteRequest(calls=pb.Calls(calls=[call])), metadata=metadata, timeout=300)


def is_asked(daemon: Daemon, token: str, session: str, width: str = "") -> bool:
    """Whether the person is asked; their answer is `width`, else no."""
    for event in events(daemon, token, session):
        if event.HasField("asking"):
            decide(daemon, event.asking, approve=bool(width), width=width)
            return True
        if event.HasField("finished") or (event.HasField("state") and event.state.to == "allowed"):
            return False
    raise AssertionError("The stream ended.")


@pytest.mark.docker
def test_what_was_allowed_for_a_session_holds_on_its_next_connection_alone(daemon: Daemon, token: str) -> None:
    assert is_asked(daemon, token, "one", "session")
    assert not is_asked(daemon, token, "one")
    assert is_asked(daemon, token, "two")
    other = daemon.add_agent("sessions-too")
    assert is_asked(daemon, other, "one")
