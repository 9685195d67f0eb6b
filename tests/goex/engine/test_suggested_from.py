"""What rules are suggested from, where a denied call's plan was too long to be kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goex.engine.answers import answers
from goex.journal.states import State
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call, Need, Plan
from policies.errors import Conflict
from policies.services import Risk
from tests.goex.engine.conftest import ASKER, Desk
from vault.secret import Secret

HOME = "https://service.example"
CALLS = {"slack": "chat.postMessage", "github": "issues.create"}
BESIDE = {"slack": {"channel": "#ops"}, "github": {"owner": "a", "repo": "b", "title": "c"}}


@pytest.fixture
def asks(desk: Desk) -> Any:
    """Has a call of a service asked for by an agent, and answered."""
    plain = desk.runtime.plan

    def plan(action: Any) -> Plan:
        (call,) = action.calls
        need = Need(
            service=call.service,
            account=call.account,
            scope=call.method,
            risk=Risk.WRITE,
            methods=(call.method,),
            arguments=(call.arguments,),
        )
        return replace(plain(action), needs=(need,))

    desk.runtime.plan = plan  # type: ignore[method-assign]
    desk.core.runtimes = {**desk.core.runtimes, "calls": desk.core.runtimes["files"]}
    for agent in ("bot", "other"):
        desk.core.grant_store.add_agent(agent, by="the person")
    for service in CALLS:
        account = Account(service=service, name="work", origins=(Origin.parse(HOME),), base_url=HOME)
        desk.app.vault_state.vault.put(account, Secret(b"a token"))

    async def ask(service: str, text: str, *, yes: bool, agent: str = "bot") -> str:
        given = {**BESIDE[service], "text" if service == "slack" else "body": text}
        call = Call(service=service, method=CALLS[service], account="work", arguments=given)
        principal = replace(ASKER, agent=agent, since=desk.core.grant_store.named_since(agent))
        question = await desk.asked(ApiCalls(calls=(call,)), principal)
        desk.answer(question, approve=yes)
        await desk.until(question.action_id, State.DONE if yes else State.DENIED)
        return str(question.action_id)

    return ask


def told(desk: Desk) -> set[tuple[str, str, str]]:
    return {(one.agent, one.plan.needs[0].service, one.answer) for one in answers(desk.core)}


async def test_nothing_is_suggested_beside_what_was_denied_and_not_kept(desk: Desk, asks: Any) -> None:
    for service in CALLS:
        for agent in ("bot", "other"):
            await asks(service, "a", yes=True, agent=agent)
    assert len(told(desk)) == 4
    denied = await asks("slack", "a long text " * 3000, yes=False)
    assert desk.core.actions.get(denied).plan == ""
    assert told(desk) == {("bot", "github", "yes"), ("other", "slack", "yes"), ("other", "github", "yes")}
    await asks("github", "b", yes=False)
    assert ("bot", "github", "no") in told(desk), "what was denied and kept is told as it was"


async def test_a_yes_to_an_earlier_agent_of_the_name_says_nothing_of_this_one(desk: Desk, asks: Any) -> None:
    await asks("slack", "a", yes=True)
    await asks("github", "a", yes=False)
    desk.core.grant_store.remove_agent("bot", by="the person")
    assert told(desk) == {("bot", "github", "no")}
    desk.core.grant_store.add_agent("bot", by="the person")
    assert told(desk) == {("bot", "github", "no")}


async def test_a_denied_plan_that_another_took_the_place_of_is_no_answer(desk: Desk, asks: Any) -> None:
    await asks("slack", "a", yes=True)
    denied = await asks("slack", "a long text " * 3000, yes=False)
    with desk.core.journal.transaction() as transaction:
        transaction.connection.exec_driver_sql("UPDATE actions SET digest = 'x' WHERE id = ?", (denied,))
    with pytest.raises(Conflict, match="isn't what was written"):
        answers(desk.core)
