"""One trip tells an agent what is connected, offered and callable, and what a method lacks."""

from __future__ import annotations

import json

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import problem


@pytest.fixture(scope="module")
def connected(daemon: Daemon) -> Daemon:
    """Slack's account `work` is connected; GitHub isn't."""
    put = pb.VaultPutRequest(service="slack", account="work", secret=b"xoxb-canary", passphrase=APPROVAL_PASSPHRASE)
    daemon.person("VaultPut", put)
    return daemon


def find(daemon: Daemon, **asked: object) -> pb.FindReply:
    reply: pb.FindReply = daemon.actions("Find", pb.FindRequest(**asked))
    return reply


def test_names_what_is_connected(connected: Daemon) -> None:
    found = find(connected)
    assert [(one.name, list(one.accounts)) for one in found.services] == [("slack", ["work"])]
    assert found.unconnected > 5
    assert found.vault == "unsealed"


def test_a_method_comes_with_schema_risk_and_undo(connected: Daemon) -> None:
    (method,) = find(connected, method="slack.chat.postMessage").methods
    assert json.loads(method.parameters_json)["properties"]["channel"]
    assert (method.risk, method.lacks, list(method.accounts)) == ("write", "", ["work"])
    assert "chat.delete" in method.undo


def test_words_find_what_can_be_called_first(connected: Daemon) -> None:
    methods = find(connected, query="post a message to a channel").methods
    assert len(methods) == 5
    assert methods[0].id == "slack.chat.postMessage"
    assert all(json.loads(one.parameters_json) for one in methods)


def test_what_isnt_connected_says_so(connected: Daemon) -> None:
    (method,) = find(connected, method="gmail.users.messages.send").methods
    assert method.lacks == "gmail isn't connected; only the person can connect it"


def test_a_service_is_listed_in_pieces(connected: Daemon) -> None:
    first = find(connected, service="slack", limit=3)
    second = find(connected, service="slack", limit=3, offset=first.next_offset)
    assert first.next_offset == 3
    assert len({one.id for one in (*first.methods, *second.methods)}) == 6


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"query": "x", "service": "slack"}, "invalid"),
        ({"method": "slack"}, "invalid"),
        ({"service": "nosuch"}, "unknown-name"),
        ({"query": "x" * 301}, "invalid"),
    ],
)
def test_a_bad_question_says_who_mends_it(connected: Daemon, asked: dict[str, str], code: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        find(connected, **asked)
    said = problem(refused.value)
    assert (said.code, said.retry, said.who) == (code, "changed", "agent")


def test_nothing_of_a_credential_is_told(connected: Daemon) -> None:
    replies = [find(connected), find(connected, service="slack"), find(connected, query="send a message")]
    assert not any(b"xoxb" in reply.SerializeToString() for reply in replies)
