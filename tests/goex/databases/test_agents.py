"""What an agent learns: nothing from a plan, a question, a refusal or a dry run that it hasn't run."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from goex.rpc import goex_pb2 as pb
from tests.goex.databases.conftest import Shop
from tests.support.daemon import Daemon
from tests.support.entries import Client
from tests.support.journey import decide, problem

_OVERFLOW = "abs(-9223372036854775808)"


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    return daemon.add_agent("mason")


def texts(message: Message) -> str:
    return str(message)


def told(shop: Shop, statements: str, token: str) -> str:
    """Everything that an agent gets of an action until it is decided, and of its denial."""
    asked = shop.sql(statements, token=token)
    question = asked.asked()
    seen = [texts(event) for event in asked.seen]
    mine = shop.client.daemon.actions("Get", pb.ActionId(id=asked.action_id), token=token)
    listed = shop.client.daemon.actions("List", pb.ListRequest(limit=1), token=token)
    ended = asked.deny_known(question.id)
    after = shop.client.daemon.actions("Get", pb.ActionId(id=asked.action_id), token=token)
    kept = [*seen, texts(mine), texts(listed), texts(ended), texts(after)]
    return "\n".join(_plain(text, asked.action_id, question.id) for text in kept)


def _plain(text: str, action: str, question: str) -> str:
    """Without what differs from one action to the next: ids and times."""
    import re

    text = text.replace(action, "ID").replace(question, "Q")
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "TIME", text)


@pytest.mark.promise(73)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "UPDATE customers SET name = name WHERE secret LIKE 'v%'",
            "UPDATE customers SET name = name WHERE secret LIKE 'q%'",
        ),
        (
            "DELETE FROM customers WHERE id = 1 AND secret = 'violet'",
            "DELETE FROM customers WHERE id = 1 AND secret = 'purple'",
        ),
        (
            f"UPDATE customers SET name = 'x' WHERE 1 = CASE WHEN secret = 'violet' THEN {_OVERFLOW} ELSE 0 END",
            f"UPDATE customers SET name = 'x' WHERE 1 = CASE WHEN secret = 'purple' THEN {_OVERFLOW} ELSE 0 END",
        ),
    ],
    ids=["some or none", "one or none", "an error or none"],
)
def test_a_plan_is_no_answer(shop: Shop, token: str, one: str, other: str) -> None:
    """A guess that is right and one that is wrong look alike to whoever guesses, until it is allowed."""
    first, second = told(shop, one, token), told(shop, other, token)
    guess, wrong = ("violet", "purple") if "violet" in one else ("v%", "q%")
    assert first.replace(guess, "GUESS") == second.replace(wrong, "GUESS")


@pytest.mark.promise(73)
def test_a_question_tells_an_agent_no_line_and_no_digest(shop: Shop, token: str) -> None:
    asked = shop.sql("UPDATE customers SET name = 'x' WHERE secret = 'violet'", token=token)
    question = asked.asked()
    assert not question.lines and not question.digest and not question.undo_text and not question.choices
    mine = shop.client.daemon.actions("Get", pb.ActionId(id=asked.action_id), token=token)
    assert not mine.lines and not mine.digest
    shown = shop.client.daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question.id)).approvals[0]
    assert shown.lines and shown.digest, "the person sees all of it"
    decide(shop.client.daemon, shown)
    done = asked.finished()
    assert done.action.lines and json.loads(done.action.outcome_json)["changes"] == ["customers: 1 row updated"]


@pytest.mark.promise(73)
def test_a_refused_undo_tells_an_agent_no_row(shop: Shop, token: str) -> None:
    asked = shop.sql("UPDATE customers SET name = 'x' WHERE id = 1", token=token)
    done = asked.approve()
    shop.change("UPDATE customers SET secret = 'scarlet' WHERE id = 1")
    refused = shop.client.revert(done.action.id, token=token).ended()
    assert refused.problem.code == "conflict" and not refused.problem.details
    assert "scarlet" not in texts(refused) and "violet" not in texts(refused)
    person = shop.client.revert(done.action.id).ended()
    assert list(person.problem.details) == ["customers id=1: secret changed since"], "the person sees what differs"


def test_rows_of_a_change_arent_handed_to_who_asked_for_it(shop: Shop, token: str) -> None:
    """An update isn't a way to read: its outcome says how many rows, never which."""
    done = shop.sql("UPDATE customers SET name = 'x' WHERE id = 1", token=token).approve()
    assert "violet" not in texts(done) and "one" not in json.loads(done.action.outcome_json)["changes"][0].split()


@pytest.mark.parametrize("method", ["DryRun", "Approvals"])
def test_agents_reach_no_dry_run(shop: Shop, token: str, method: str) -> None:
    daemon = shop.client.daemon
    request: Any = {
        "DryRun": pb.DryRunRequest(
            request=pb.ExecuteRequest(sql=pb.SqlProgram(database=shop.name, statements="DELETE FROM orders"))
        ),
        "Approvals": pb.ApprovalsRequest(),
    }[method]
    with pytest.raises(grpc.RpcError) as refused:
        found = daemon.call(daemon.agent_socket, "Person", method, request, token=token)
        list(found)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_an_agent_sees_no_other_agents_statements(shop: Shop, token: str) -> None:
    other = shop.client.daemon.add_agent(f"c{shop.name}")
    done = shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1", token=other).approve()
    with pytest.raises(grpc.RpcError) as refused:
        shop.client.revert(done.action.id, token=token).ended()
    assert problem(refused.value).code == "invalid"
    assert shop.orders()[0][1] == "sent"


@pytest.mark.docker
@pytest.mark.promise(15, 73)
def test_what_is_refused_without_a_question_counts_for_the_breaker(daemon: Daemon, shop: Shop) -> None:
    """Else an agent could try statements on a database for ever, and nobody would hear of it."""
    guess = (
        "UPDATE orders SET total = total WHERE id = 1 AND 0 < CASE WHEN (SELECT secret FROM customers WHERE id = 1)"
        " LIKE 'v%' THEN (SELECT count(*) FROM customers a, customers b, customers c) ELSE 0 END"
    )
    with Daemon(config="[breaker]\ndenials = 3\n") as other:
        own = Client(other)
        own.add("guessed", f"sqlite:///{shop.file}")
        token = other.add_agent("prober")
        for _ in range(3):
            refused = own.sql("guessed", guess, policy="pairs", undo="SELECT 1", token=token).ended()
            assert refused.action.state == "failed", refused
        with pytest.raises(grpc.RpcError) as caught:
            own.sql("guessed", guess, policy="pairs", undo="SELECT 1", token=token).ended()
        assert problem(caught.value).code == "resting"
