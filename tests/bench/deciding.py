"""`decide.p50_ms`: the decision on one call while 1,000 standing grants of 100 agents are live.

It is what the engine asks for each action: the grants that could concern it, then rules and grants. The floor is one
look-up of the same grant in a plain dict, and a comparison of its expiry.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

from goex.engine.ledger import Ledger
from goex.journal.chain import Journal, utc_now
from policies.actions import ApiCalls, Call, Need, Plan, UndoClass
from policies.catalog import Risk
from policies.decisions import DEFAULT_RULES, Allow, Request, decide
from policies.grants import Grant, Width
from tests.bench.measure import Row, in_turn, row

NAME = "decide.p50_ms"
AGENTS, SCOPES = 100, 10
OPERATIONS = 100


async def measure() -> tuple[Row, ...]:
    now = utc_now()
    grants = tuple(_grant(f"agent-{agent}", f"scope-{scope}") for agent in range(AGENTS) for scope in range(SCOPES))
    known = {(grant.agent, grant.service, grant.account, grant.scope): grant for grant in grants}
    request = Request(agent="agent-50", session="s-1", digest="d" * 64, plan=_plan())
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        journal = Journal(Path(folder) / "state.db", Path(folder) / "journal.head")
        journal.unlock(b"j" * 32)
        ledger = Ledger(journal, utc_now)
        ledger.load(b"l" * 32)
        with ledger.changing() as transaction:
            ledger.grant(transaction, grants, by="bench")

        def decided() -> object:
            return decide(request, ledger.matching(request.agent, request.plan.required), DEFAULT_RULES, now)

        assert isinstance(decided(), Allow)

        async def value() -> None:
            for _ in range(OPERATIONS):
                decided()

        async def floor() -> None:
            for _ in range(OPERATIONS):
                grant = known["agent-50", "slack", "work", "scope-5"]
                assert grant.expires is not None and now < grant.expires

        timings = await in_turn(value, floor, rounds=200, seconds=5, operations=OPERATIONS)
        journal.close()
    return (row(NAME, timings[0], "one look-up in a dict", timings[1]),)


def _grant(agent: str, scope: str) -> Grant:
    now = utc_now()
    return Grant(
        id=f"g-{agent}-{scope}",
        agent=agent,
        service="slack",
        account="work",
        scope=scope,
        width=Width.PERMANENT,
        created=now,
        expires=now + timedelta(days=1),
        by="bench",
        why="a-1",
    )


def _plan() -> Plan:
    arguments = {"channel": "#ops", "text": "hi"}
    call = Call(service="slack", method="chat.postMessage", arguments=arguments, account="work")
    need = Need(
        service="slack",
        account="work",
        scope="scope-5",
        risk=Risk.WRITE,
        methods=("chat.postMessage",),
        arguments=(arguments,),
    )
    return Plan(
        action=ApiCalls(calls=(call,)),
        needs=(need,),
        undo_class=UndoClass.COMPENSATING,
        undo_text="",
        resolved={},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )
