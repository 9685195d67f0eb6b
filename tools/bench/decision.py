"""`decide.p50_ms`: the decision on one call under 1,000 rules and 10,000 standing grants of 100 agents.

It is what the engine asks for each action: how things stand, the grants that could concern it, then rules and grants.
Forty agents and methods take turns, so that no answer could be one that was kept. A tenth of the rules is about
everybody and everything, and so has to be evaluated each time. The floor is one evaluation of one rule by Cedar.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import cedarpy

from goex.engine.grant_store import GrantStore
from goex.engine.rulebook import Rulebook
from goex.journal.chain import Journal, utc_now
from mapper.catalog import Catalog
from policies.decisions import Allow, Request, decide
from policies.grants import Grant, Width
from policies.rules.cases import read
from policies.services import Method, Risk
from tools.bench.measure import Row, in_turn, row

NAME = "decide.p50_ms"
AGENTS, SCOPES, RULES = 100, 100, 1000
OPERATIONS = 40


async def measure(*, seconds: float = 8) -> tuple[Row, ...]:
    catalog = Catalog.bundled()
    methods = [m for s in catalog.services.values() for m in s.methods.values() if m.risk is Risk.WRITE and m.undo]
    requests = [_request(f"agent-{index}", methods[index % len(methods)], catalog) for index in range(OPERATIONS)]
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        journal = Journal(Path(folder) / "state.db", Path(folder) / "journal.head")
        journal.unlock(b"j" * 32)
        grant_store = GrantStore(journal, utc_now)
        grant_store.load(b"l" * 32)
        with grant_store.changing() as transaction:
            grant_store.grant(transaction, tuple(_grants(requests)), by="bench")
        rules = Rulebook(journal, utc_now, catalog)
        rules.load(b"r" * 32)
        rules.apply({"bench.cedar": "\n".join(_rules(methods))}, by="bench")
        assert len(rules.book.policies) >= RULES
        now = utc_now()
        turns = cycle(requests)

        def decided() -> object:
            request = next(turns)
            rules.counts.situation(request.agent, request.session)
            return decide(request, grant_store.matching(request.agent, request.plan.required), rules, now)

        assert all(isinstance(decided(), Allow) for _ in requests)

        async def value() -> None:
            for _ in range(OPERATIONS):
                decided()

        policy = cedarpy.PolicySet.from_str("permit (principal, action, resource) when { context.risk_level > 1 };")
        entities = cedarpy.Entities.from_json_str("[]")
        one = {
            "principal": {"type": "Agent", "id": "agent-1"},
            "action": {"type": "Action", "id": "call"},
            "resource": {"type": "Method", "id": methods[0].id},
            "context": {"risk_level": 2},
        }

        async def floor() -> None:
            for _ in range(OPERATIONS):
                cedarpy.is_authorized(one, policy, entities)

        timings = await in_turn(value, floor, rounds=200, seconds=seconds, operations=OPERATIONS)
        journal.close()
    return (row(NAME, timings[0], "one rule, evaluated by Cedar", timings[1]),)


def _request(agent: str, method: Method, catalog: Catalog) -> Request:
    arguments = {name: _value(schema) for name, schema in method.parameters["properties"].items()}
    return read({"agent": agent, "call": method.id, "arguments": arguments}, catalog)[0]


def _value(schema: object) -> object:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return {"integer": 5, "boolean": True, "array": [], "object": {}}.get(str(kind), "some words")


def _grants(requests: list[Request]) -> Iterator[Grant]:
    """10,000 of them, among which those that the requests are allowed on."""
    now = utc_now()
    wanted = {request.agent: request.plan.required[0] for request in requests}
    for agent in (f"agent-{number}" for number in range(AGENTS)):
        for scope in range(SCOPES):
            need = wanted.get(agent) if scope == 0 else None
            yield Grant(
                id=f"g-{agent}-{scope}",
                agent=agent,
                service=need.service if need else "slack",
                account=need.account if need else "default",
                scope=need.scope if need else f"scope-{scope}",
                width=Width.PERMANENT,
                created=now,
                expires=now + timedelta(days=1),
                by="bench",
                why="a-1",
            )


def _rules(methods: list[Method]) -> Iterator[str]:
    """As a person with many agents would have them: most about one agent and method, some about a service, a tenth
    about everything."""
    for number in range(RULES):
        method = methods[number % len(methods)]
        agent = f'Agent::"agent-{number % AGENTS}"'
        match number % 10:
            case 0:
                how, head = '@effect("ask") forbid', "principal, action, resource"
                when = f'context.account == "account-{number}" && context.risk_level > 2'
            case 1 | 2 | 3:
                how, head = "forbid", f'principal, action, resource in Service::"{method.service}"'
                when = f"context.rate.minute > {1000 + number}"
            case 4 | 5:
                how, head = "forbid", f"principal == {agent}, action, resource"
                when = f"context.time.hour == {number % 24} && context.session.actions > {number}"
            case _:
                how, head = "permit", f'principal == {agent}, action, resource == Method::"{method.id}"'
                name = next(iter(method.parameters["properties"]))
                when = f'context.arguments has {name} && context.arguments.{name} == "value {number}"'
        yield f'@id("r{number}") {how} ({head}) when {{ {when} }};'
