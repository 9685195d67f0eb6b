"""Rules of a made-up service in all their kinds, and requests of code in raw bytes against them."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from policies.accounts import Account, Origin
from runtimes.gateway.admission import Admission, AskedHead, Local, No, Ready, Refused
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot, TokenEndpoint
from runtimes.gateway.rule_match import RulePolicy
from tests.runtimes.gateway.support import lease
from vault.lease import Lease

CHAT = Origin("https", "chat.example", 443)
KEYED = Origin("https", "keyed.example", 443)
FORMS = Origin("https", "forms.example", 443)
OTHER = Origin("https", "other.example", 443)
AUTH = Origin("https", "auth.example", 443)

WORK, HOME = ("chat", "work"), ("chat", "home")
MAPS, FORM, MORE = ("maps", "me"), ("forms", "me"), ("other", "me")

MARKS = {account: f"xx-goex-{'-'.join(account)}-abcdefghijklmnopqrstuv" for account in (WORK, HOME, MAPS, FORM, MORE)}
SECRETS = {account: f"real-{'-'.join(account)}-4f9a8c7b6d5e" for account in MARKS}


def rule(number: int, method: str, *path: str | Slot, **more: Any) -> MethodRule:
    fields: dict[str, Any] = {
        "id": f"rule-{number}",
        "method_id": f"chat.method{number}",
        "account": WORK,
        "origin": CHAT,
        "base_path": ("api",),
        "read": method == "GET",
    }
    return MethodRule(method=method, path=path, **{**fields, **more})


POST = rule(
    0, "POST", "messages",
    query={"pretty": ()}, fields={"channel": ("C1", "C2"), "count": (3, True), "text": ()}, must=("channel",),
    closed=("as_user",), body_format="json", headers=("X-Wanted", "X-Token-Kind"),
)  # fmt: skip
LIST = rule(
    1, "GET", "channels", Slot("id"), "messages", query={"limit": (), "kind": ("a", "b"), "after": (), "sig": ()}
)  # fmt: skip
USER = rule(2, "GET", "users", Slot("id"), others=(("users", "me"), ("users", Slot("id", end=":secret"))))
PUT = rule(3, "PUT", "files", Slot("path", many=True), request_bytes=1000, query={"mode": ("safe",)})
DROP = rule(4, "DELETE", "messages", Slot("id", ("m1", "a/b")), body_format="none", calls=2)
CANCEL = rule(5, "POST", "jobs", Slot("name", end=":cancel"), body_format="none")
JOB = rule(6, "POST", "jobs", Slot("name", verbs=False))
LIVE = rule(7, "GET", "live", websocket=True)
GRAPH = rule(8, "POST", "graphql", fields={"query": ("{ viewer { login } }",)}, must=("query",), body_format="json")
UPLOAD = rule(9, "POST", "uploads", fields={"note": ()}, query={"dir": ("in",)})
BLIND = rule(10, "POST", "v2", "graphql", body_format="json")
THINGS = rule(11, "POST", "things", Slot("name"))
ACT = rule(12, "POST", "act", fields={"do": ("look",)}, must=("do",), body_format="form")
ACT_TOO = rule(13, "POST", "act", fields={"do": ("list",), "of": ("C1",)}, must=("do", "of"), body_format="form")
HOME_POST = replace(POST, id="rule-14", account=HOME, fields={"channel": ("H1",)})
SEARCH = rule(
    15, "GET", "search", account=MAPS, origin=KEYED, base_path=(), query={"q": ()},
    credential_at="query", credential_name="key", credential_format="{secret}",
)  # fmt: skip
SEND = rule(
    16, "POST", "send", account=FORM, origin=FORMS, base_path=(), fields={"to": ("ann",)}, body_format="form",
    credential_at="body", credential_name="token", credential_format="{secret}",
)  # fmt: skip
ELSE = rule(17, "GET", "x", account=MORE, origin=OTHER, base_path=(), credential_name="X-Api-Key",
            credential_format="{secret}")  # fmt: skip
RULES = (
    POST, LIST, USER, PUT, DROP, CANCEL, JOB, LIVE, GRAPH, UPLOAD, BLIND, THINGS, ACT, ACT_TOO, HOME_POST, SEARCH,
    SEND, ELSE,
)  # fmt: skip

PLAN = GatewayPlan(
    action_id="a1",
    rules=RULES,
    placeholders={placeholder: account for account, placeholder in MARKS.items()},
    tokens=(TokenEndpoint(account=WORK, origin=AUTH, path=("token",)),),
)


def leases(plan: GatewayPlan = PLAN) -> list[Lease]:
    found: dict[tuple[str, str], set[Origin]] = {}
    for one in plan.rules:
        found.setdefault(one.account, set()).add(one.origin)
    return [
        lease(
            Account(service=key[0], name=key[1], origins=tuple(sorted(origins)), base_url=str(min(origins))),
            secret=SECRETS[key],
        )
        for key, origins in found.items()
    ]


def bearer(account: tuple[str, str] = WORK) -> str:
    return f"Authorization: Bearer {MARKS[account]}"


def basic(user: str, password: str) -> str:
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def asked(line: str, *headers: str, origin: Origin = CHAT) -> AskedHead:
    """`line` is "GET /path"; a Host is added."""
    method, _, target = line.partition(" ")
    raw = "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {origin.host}", *headers, "", ""])
    return AskedHead(origin=origin, head=parse_head(raw.encode("latin-1"), upgrades=True), target=target)


def admit(line: str, *headers: str, origin: Origin = CHAT, plan: GatewayPlan = PLAN) -> Admission | Local | No:
    return RulePolicy(plan).admit(asked(line, *headers, origin=origin))


def judge(
    line: str, *headers: str, body: bytes | None = None, kind: str = "application/json", origin: Origin = CHAT,
    plan: GatewayPlan = PLAN,
) -> Ready | No:  # fmt: skip
    """What becomes of a whole request."""
    policy = RulePolicy(plan)
    more = () if body is None else (f"Content-Length: {len(body)}", *([f"Content-Type: {kind}"] if kind else []))
    admission = policy.admit(asked(line, *headers, *more, origin=origin))
    if isinstance(admission, No):
        return admission
    assert isinstance(admission, Admission)
    if admission.inspect:
        return policy.read(admission, body or b"")
    streamed = policy.stream(admission, len(body or b""))
    if isinstance(streamed, No):
        return streamed
    ready, watch = streamed
    try:
        for at in range(0, len(body or b""), 7):
            watch.feed((body or b"")[at : at + 7])
        watch.finish()
    except Refused as refused:
        return refused.no
    return ready


class Watched:
    """What looks at the body of an admission that is streamed; a refusal is returned."""

    def __init__(self, policy: RulePolicy, admission: Admission) -> None:
        streamed = policy.stream(admission, -1)
        assert not isinstance(streamed, No)
        self._watch = streamed[1]

    def feed(self, data: bytes) -> No | None:
        try:
            self._watch.feed(data)
        except Refused as refused:
            return refused.no
        return None

    def finish(self) -> No | None:
        try:
            self._watch.finish()
        except Refused as refused:
            return refused.no
        return None
