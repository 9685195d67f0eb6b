"""Virtual scopes hold: who was granted one class of methods gets no method of a worse one, whatever a container tries.

The provider's token can do everything here, so nobody but GoEx stands between a grant for reading and a change.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call, Plan
from policies.decisions import Allow, Decision, Request, decide
from policies.digest import digest
from policies.grants import Grant, Width
from policies.rules.book import RuleBook
from policies.services import Method, Risk, Scope, Service
from runtimes.gateway.admission import AskedHead, No, Ready
from runtimes.gateway.head import Head
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.plan_match import PlanPolicy
from runtimes.rest.plans import assess_calls
from runtimes.rest.undo import planned_steps
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.support import Bench

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORIGIN = Origin("https", "notes.example", 443)
ACCOUNT = Account(service="notes", name="me", origins=(ORIGIN,), base_url="https://notes.example")
HTTP = {Risk.READ: "GET", Risk.WRITE: "POST", Risk.DELETE: "DELETE", Risk.ADMIN: "PUT"}


def method(risk: Risk) -> Method:
    return Method(
        service="notes",
        name=f"notes.{risk.word}",
        description=f"Does a {risk.word}.",
        http=HTTP[risk],
        path="/notes",
        parameters={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        locations={},
        scopes=(risk.word,),
        risk=risk,
    )


SCOPES = {risk.word: Scope(service="notes", name=risk.word, description="", risk=risk, virtual=True) for risk in Risk}
CATALOG = Catalog.of(
    [
        Service(
            name="notes",
            title="Notes",
            description="",
            base_url="https://notes.example",
            methods={f"notes.{risk.word}": method(risk) for risk in Risk},
            scopes=SCOPES,
        )
    ]
)


def assess(risk: Risk, granted: Risk, folder: Path) -> Plan:
    action = ApiCalls(calls=(Call(service="notes", method=f"notes.{risk.word}", arguments={}, account="me"),))
    held = frozenset({("notes", "me", granted.word)})
    return assess_calls(action, Bench(folder, (ACCOUNT,), granted=held).context("a1"), CATALOG, Profile(), "sha256:x")


def decided(plan: Plan, granted: Risk) -> Decision:
    grant = Grant(
        id="g1",
        agent="bot",
        service="notes",
        account="me",
        scope=granted.word,
        width=Width.PERMANENT,
        created=NOW - timedelta(hours=1),
        expires=None,
        by="me",
        why="a-1",
    )
    request = Request(agent="bot", session="s1", digest=digest(plan, agent="bot"), plan=plan)
    return decide(request, [grant], RuleBook.of({}), NOW)


@pytest.mark.parametrize("granted", list(Risk))
@pytest.mark.parametrize("wanted", [Risk.READ, Risk.WRITE])
def test_a_grant_allows_its_class_and_what_is_less(wanted: Risk, granted: Risk, tmp_path: Path) -> None:
    plan = assess(wanted, granted, tmp_path)
    allowed = isinstance(decided(plan, granted), Allow)
    if granted >= wanted:
        assert [need.scope for need in plan.required] == [granted.word]
        # What can't be taken back is asked for each time, standing grant or not.
        assert allowed == (wanted is Risk.READ)
    else:
        assert [need.scope for need in plan.required] == [wanted.word]
        assert not allowed


@pytest.mark.parametrize("granted", list(Risk))
@pytest.mark.parametrize("wanted", [Risk.DELETE, Risk.ADMIN])
def test_no_standing_grant_deletes_or_shares_by_itself(wanted: Risk, granted: Risk, tmp_path: Path) -> None:
    assert not isinstance(decided(assess(wanted, granted, tmp_path), granted), Allow)


@pytest.mark.promise(11)
@pytest.mark.parametrize("tried", [risk for risk in Risk if risk is not Risk.READ])
def test_an_action_for_reading_can_not_change_anything(tried: Risk, tmp_path: Path) -> None:
    """The container of an allowed read sends another method of the same service: the gateway has no such request."""
    plan = assess(Risk.READ, Risk.READ, tmp_path)
    assert isinstance(decided(plan, Risk.READ), Allow)
    requests = tuple(step.request for step in planned_steps(plan))
    policy = PlanPolicy(GatewayPlan(action_id="a1", requests=requests))
    refused = judge(policy, HTTP[tried])
    assert isinstance(refused, No)
    assert "GET" in refused.reason
    assert isinstance(judge(policy, "GET"), Ready)  # control: what was planned is sent


def judge(policy: PlanPolicy, http: str, body: Any = None) -> Ready | No:
    data = b"" if body is None else json.dumps(body).encode()
    head = Head(
        method=http, target="/notes", version="1.1", headers=(), length=len(data), chunked=False, continues=False
    )
    return policy.read(policy.admit(AskedHead(origin=ORIGIN, head=head, target="/notes")), data)
