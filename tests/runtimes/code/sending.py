"""A program's request at the gateway, by the rules of its plan."""

from __future__ import annotations

import json
from collections.abc import Sequence

from policies.accounts import Account
from policies.actions import Plan
from runtimes.code.record import permits_of
from runtimes.gateway.admission import Admission, AskedHead, No, Ready, Refused
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.rule_match import RulePolicy

MARK = "xx-goex-mark-abcdefghijklmnopqrstuv"
_SCHEMES = {"discord": "Bot"}


def sent(
    made: Plan,
    to: Account,
    line: str,
    body: object = None,
    *,
    kind: str = "application/json",
    headers: Sequence[str] = (),
) -> str:
    """ "" where the gateway lets a request pass, else the kind of its refusal."""
    rules = tuple(permit.rule for permit in permits_of(made))
    policy = RulePolicy(GatewayPlan(action_id="a", rules=rules, placeholders={MARK: (to.service, to.name)}, code=True))
    method, _, target = line.partition(" ")
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    origin = rules[0].origin
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {origin.host}",
        f"Authorization: {_SCHEMES.get(to.service, 'Bearer')} {MARK}",
        *headers,
    ]
    lines += [f"Content-Type: {kind}", f"Content-Length: {len(data)}"] if data else []
    admitted = policy.admit(
        AskedHead(origin=origin, head=parse_head("\r\n".join([*lines, "", ""]).encode()), target=target)
    )
    if isinstance(admitted, No):
        return admitted.kind
    assert isinstance(admitted, Admission)
    if admitted.inspect:
        read = policy.read(admitted, data)
        assert isinstance(read, Ready | No)
        return read.kind if isinstance(read, No) else ""
    streamed = policy.stream(admitted, len(data))
    assert not isinstance(streamed, No)
    try:
        streamed[1].feed(data)
        streamed[1].finish()
    except Refused as refused:
        return refused.no.kind
    return ""
