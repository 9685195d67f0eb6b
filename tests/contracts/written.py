"""Examples of everything that is digested, journaled, sealed or passed between processes as JSON: small and full.

`python -m tests.contracts.written` adds a vector for each example that has none, and changes no other.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goex.engine.events import Problem
from policies.accounts import Account, Origin
from policies.actions import (
    Action,
    ApiCalls,
    Call,
    Clarification,
    Code,
    Ended,
    Files,
    Mongo,
    Need,
    Option,
    Outcome,
    Plan,
    Revert,
    Sql,
    UndoClass,
)
from policies.databases import Terms
from policies.digest import digest
from policies.jsonvalue import canonical
from policies.services import Expect, Risk
from policies.tasks import Allowance, Task
from policies.typed_json import to_json
from runtimes.code.permits import Permit
from runtimes.code.record import Sent
from runtimes.gateway.plan import (
    CredentialPlace,
    Exchange,
    GatewayPlan,
    MethodRule,
    PlannedRequest,
    Ref,
    Refusal,
    SentRequest,
    Slot,
    TokenEndpoint,
)
from runtimes.rest.planner import Made, PlannedUndo
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.steps import Step
from runtimes.sandbox.contract import Limits
from runtimes.sql.contract import Dialect, Program, Statement, Use
from runtimes.sql.contract import Limits as SqlLimits
from runtimes.sql.pairs.trial import Proof
from vault.approval import Approval
from vault.header import Reached, Restored
from vault.oauth.provider import Client, Provider
from vault.passkeys import Passkey, Passkeys
from vault.secret import Secret

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
TEXT = 'é "q" \\ \n \u2028 🙂'
VALUE = {"z": [1, -2.5, 1e30, True, None, {"ß": {"deep": [[]]}}], "a": TEXT, "": 10**20}
ORIGIN, OTHER = Origin("https", "api.example.org", 443), Origin("http", "::1", 8080)

ACTIONS: dict[str, Action] = {
    "calls": ApiCalls(calls=(Call(service="slack", method="auth.test", arguments={}),)),
    "calls, full": ApiCalls(
        calls=(
            Call(service="slack", method="chat.postMessage", arguments=VALUE, account="acme", filled=("text", "a")),
            Call(service="github", method="issues.create", arguments={"title": {"$from": 0, "path": "$.ts"}}),
        )
    ),
    "files": Files(folder="/srv/notes", language="shell", program="ls"),
    "files, full": Files(
        folder="notes", language="python", program=TEXT, undo="rm x", preview="a-1", more=("/a", "/b"), reads=True
    ),
    "sql": Sql(database="shop", statements="SELECT 1"),
    "sql, full": Sql(database="shop", statements="DELETE FROM t", policy="pairs", undo="INSERT INTO t VALUES (1)"),
    "mongo": Mongo(database="shop", operations=()),
    "mongo, full": Mongo(database="shop", operations=('{"find": "x", "filter": {}}', TEXT)),
    "code": Code(language="python", program="print()", services=()),
    "code, full": Code(
        language="javascript",
        program=TEXT,
        services=("slack", "github/work"),
        methods=("slack.chat.postMessage",),
        profile="mine",
    ),
    "revert": Revert(verb="undo", target="a-1"),
    "revert, full": Revert(verb="commit", target="a-3", also=("a-1", "a-2"), regardless=True),
    "task": Task(title="", allows=(Allowance(service="slack", method="auth.test"),)),
    "task, full": Task(
        title=TEXT,
        allows=(
            Allowance(
                service="slack",
                method="chat.postMessage",
                account="acme",
                arguments={"channel": {"in": ["#ops", TEXT]}, "n": {"least": 1, "most": 2.5}, "text": {"any": True}},
                times=3,
            ),
            Allowance(service="db", method="orders:update", account="shop", arguments={}, times=1),
        ),
        seconds=60,
        agent="scout",
    ),
}
NEED = Need(service="slack", account="acme", scope="chat:write", risk=Risk.WRITE, methods=("chat.postMessage",))
FULL_NEED = Need(
    service="slack",
    account="acme",
    scope="chat:write",
    risk=Risk.ADMIN,
    methods=("a", "b"),
    arguments=({"channel": "#ops"}, VALUE),
    why="read-back",
    filled=("text",),
)
PLANS = {
    f"plan of {name}": Plan(
        action=action,
        needs=(NEED, FULL_NEED) if "full" in name else (),
        undo_class=UndoClass.EXACT if "full" in name else UndoClass.NOTHING,
        undo_text=TEXT if "full" in name else "",
        resolved={"verb": "do", "folder": "/x", "value": VALUE} if "full" in name else {},
        bounds={"requests": 3} if "full" in name else {},
        catalog_hash="cd" if "full" in name else "",
        image_id="sha256:ab",
        limits={"memory": 1, "cpus": 1.0, "seconds": 60.0, "image": "base"},
        lines=("one", TEXT),
        undo={"calls": [VALUE]} if "full" in name else {},
    )
    for name, action in ACTIONS.items()
}
OUTCOMES = {
    "outcome": Outcome(ok=True, summary="done"),
    "outcome, full": Outcome(
        ok=False,
        summary=TEXT,
        ended=Ended.OUTPUT_CAP,
        exit_code=3,
        results=({"status": 200, "body": VALUE}, None),
        stdout="out",
        stderr="err",
        cut=5,
        changes=("created a.txt",),
        changes_cut=1,
        refused=({"request": "GET x", "call": "", "reason": "no", "times": 2},),
        touched=False,
        unsure=True,
        next_step="not written",
        details=("not written",),
    ),
    "clarification": Clarification(text="which?"),
    "clarification, full": Clarification(
        text=TEXT,
        options=(Option(answer="a"), Option(answer="b", methods=("slack.x", "slack.y"))),
        methods=("slack.z",),
    ),
    "problem": Problem(code="denied", message="no"),
    "problem, full": Problem(code="conflict", message=TEXT, next_step="do", exit_status=6, details=("a", "b")),
}
RULE = MethodRule(
    id="rule-0", account=("slack", "acme"), origin=ORIGIN, base_path=(), method="GET", path=("auth.test",)
)
FULL_RULE = MethodRule(
    id="rule-1",
    method_id="slack.chat.postMessage",
    account=("slack", "acme"),
    origin=OTHER,
    base_path=("api", "v1"),
    method="POST",
    credential_at="cookie",
    credential_name="session",
    credential_format="{secret}",
    credential_more=(CredentialPlace("query", "key", "k {secret}"), CredentialPlace("body", "b", "{secret}")),
    path=("issues", Slot("number", form=r"\d+"), Slot("rest", ("a", "b/c"), many=True, end=":cancel", verbs=False)),
    query={"q": (), "page": ("1", "2")},
    fields={"title": (VALUE, 1, None), "free": ()},
    must=("q",),
    closed=("x",),
    only=True,
    headers=("if-match",),
    others=(("issues", "latest"), ("issues", Slot("other"))),
    body_format="form",
    calls=7,
    request_bytes=11,
    response_bytes=13,
    websocket=True,
    any_query=True,
    budget="shared",
    written={"bankversion": ("1", "2")},
    read=True,
    answered=True,
    shown=("id",),
)
REQUEST = PlannedRequest(
    id="call-0", account=("slack", "acme"), origin=ORIGIN, base_path=(), method="GET", path=("auth.test",)
)
FULL_REQUEST = PlannedRequest(
    id="undo-0-0",
    method_id="slack.chat.delete",
    account=("slack", "acme"),
    origin=OTHER,
    base_path=("api",),
    method="DELETE",
    credential_at="query",
    credential_name="token",
    credential_format="{secret}",
    credential_more=(CredentialPlace("header", "X-App", "{secret}"),),
    path=("chat", Ref("call-0", "$.ts")),
    query={"a": [Ref("pre-0", "$.a[0]"), "b"]},
    headers={"x-a": "b"},
    body={"r": Ref("call-0", "$.channel"), "list": [1, {"x": None}], "text": TEXT},
    body_format="json",
    body_type="application/json; charset=utf-8",
    expect=(
        Expect(op="status", value=[200, 404], says="It is still there."),
        Expect(op="equals", path="$.a", value=Ref("pre-0", "$.a")),
    ),
    attempts=3,
    optional=True,
)
GATEWAY = {
    "rule": RULE,
    "rule, full": FULL_RULE,
    "exchange": Exchange(request="call-0", status=200, well=True, body=None),
    "exchange, full": Exchange(
        request="rule-0#3", status=500, well=False, body=VALUE, text=TEXT, failed="it failed", replayed=True, size=12
    ),
    "sent request": SentRequest(rule="rule-0", slots={}, query=()),
    "sent request, full": SentRequest(
        rule="rule-1",
        slots={"number": "3", "rest/0": "a"},
        query=(("q", "1"), ("q", "2")),
        body=VALUE,
        size=-1,
        file=True,
        keys=("k",),
    ),
    "refusal": Refusal(reason="no", method="GET", target="x/y"),
    "refusal, full": Refusal(reason=TEXT, method="PUT", target="x", kind="path", method_id="slack.x"),
    "gateway plan": GatewayPlan(action_id="a-1", requests=(REQUEST, FULL_REQUEST)),
    "gateway plan, full": GatewayPlan(
        action_id="a-2",
        rules=(RULE, FULL_RULE),
        placeholders={"xoxb-1": ("slack", "acme")},
        tokens=(TokenEndpoint(account=("drive", "me"), origin=ORIGIN, path=("token",)),),
        max_request_bytes=1,
        max_response_bytes=2,
        seconds=3,
        code=True,
    ),
}
STEP = Step(
    call=0,
    role="undo",
    service="slack",
    method="chat.delete",
    account="acme",
    read=False,
    arguments={"ts": Ref("call-0", "$.ts"), "x": [1, {"y": Ref("pre-0", "$.y")}]},
    request=replace(FULL_REQUEST, method_id=""),
)
ANSWER = Answer(status=200, well=True, failed="", body={"ok": True}, text="")
FULL_ANSWER = Answer(
    status=500,
    well=False,
    failed=TEXT,
    body=VALUE,
    text=TEXT,
    whole=False,
    captured={"$.ts": "1.2", "$.x": VALUE},
    sha256="ab",
    unsure=True,
)
UNDO = PlannedUndo(call=0, guard=None, calls=(STEP,), verify=None, source="bundled", note="")
CALLS = {
    "step": STEP,
    "undo": UNDO,
    "undo, full": PlannedUndo(
        call=1,
        guard=STEP,
        calls=(STEP, STEP),
        verify=STEP,
        source="model",
        note=TEXT,
        pair="ab",
        standing="proven",
        guards=(STEP,),
        parts=("$.a", "$.b"),
        absent=(STEP,),
        made=Made("$.items", {"name": "n", "ref": Ref("call-0", "$.id")}),
    ),
    "answer": ANSWER,
    "answer, full": FULL_ANSWER,
    "call record": CallRecord(),
    "call record, full": CallRecord(
        turn=2,
        sent=["call-0", "call-1"],
        answers={"call-0": ANSWER, "call-1": FULL_ANSWER},
        undone=[1],
        doubtful=[0],
        undo=[VALUE],
    ),
}
PROGRAMS = {
    "sent": Sent(number=0, request="rule-0#1", permit=0, arguments={}, whole=True),
    "sent, full": Sent(
        number=3, request="rule-0#3", permit=1, arguments=VALUE, whole=False, keys=("k", "l"), more=False
    ),
    "permit": Permit(rule=RULE, service="slack", method="auth.test", read=True),
    "permit, full": Permit(
        rule=FULL_RULE,
        service="slack",
        method="chat.postMessage",
        read=False,
        lines=(1, 7),
        held={"channel": ("#ops", VALUE)},
        optional=("channel",),
        closed=("blocks",),
        free=("text",),
        more=("extra",),
        parts={"body.a": (1, None)},
    ),
}
DATABASES = {
    "terms": Terms(),
    "terms, full": Terms(policy="versioning", hold_hours=3, tables={"orders": "pairs"}),
    "program": Program(dialect=Dialect.SQLITE, statements=()),
    "program, full": Program(
        dialect=Dialect.POSTGRESQL,
        statements=(
            Statement(
                sql="INSERT INTO a SELECT * FROM b",
                verb="insert",
                table="a",
                uses=(Use(table="a", verb="insert", columns=("x", "y")), Use(table="b", verb="select")),
                everywhere=True,
                most=3,
                sources=("b",),
                count_sql="SELECT 1",
                returns_rows=True,
            ),
            Statement(sql="SELECT 1", verb="select", table="", uses=()),
        ),
    ),
    "limits of a program": SqlLimits(),
    "proof": Proof(ok=True, key="ab", changed=3, seeds=2, image_id="sha256:cd", lines=("a", TEXT)),
    "limits of a container": Limits(),
}
PASSKEY = Passkey(id="k-1", name=TEXT, credential_id=b"\0\xff", public_key=b"pk", rp_id="localhost", created=AT)
SEALED = {
    "approval": Approval(parameters={"salt": "ab", "cost": 1}, verifier=Secret(b"\0\xfe")),
    "approval, full": Approval(parameters={"salt": "ab"}, verifier=Secret(b"v"), failures=4, last=AT),
    "passkeys": Passkeys(),
    "passkeys, full": Passkeys(
        all=(
            PASSKEY,
            Passkey(
                id="k-2",
                name="b",
                credential_id=b"c",
                public_key=b"p",
                rp_id="x.org",
                created=AT,
                counter=7,
                used=datetime(2026, 1, 2, tzinfo=UTC),
            ),
        ),
        required=True,
        reset_at=AT,
    ),
    "restored": Restored(at=AT, by="person", generation=3),
    "reached": Reached(5, b"\1\2"),
    "provider": Provider(authorization_endpoint="https://a.org/auth", token_endpoint="https://a.org/token"),
    "provider, full": Provider(
        issuer="https://a.org",
        authorization_endpoint="https://a.org/auth",
        token_endpoint="https://a.org/token",
        device_endpoint="https://a.org/device",
        iss_in_answer=True,
        offline=True,
        auth_methods=("none", "client_secret_basic"),
        separator=",",
        resource="https://r.org",
    ),
    "account": Account(service="slack", name="acme", origins=(ORIGIN,), base_url="https://api.example.org"),
    "account, full": Account(
        service="chat",
        name="home",
        origins=(ORIGIN, OTHER),
        base_url="http://[::1]:8080/x",
        format="oauth",
        private=True,
        ca_pem="pem",
    ),
    "client": Client(client_id="c"),
    "client, full": Client(client_id="c", client_secret=Secret("ß"), auth_method="none", registered=True),
}
EXAMPLES: dict[str, object] = {
    **ACTIONS, **PLANS, **OUTCOMES, **GATEWAY, **CALLS, **PROGRAMS, **DATABASES, **SEALED,
    "need": NEED, "need, full": FULL_NEED,
}  # fmt: skip
VECTORS = Path(__file__).parents[1] / "vectors" / "written.json"


def written(example: Any) -> Any:
    """As JSON: by its type, or by functions of its own."""
    return example.to_json() if hasattr(example, "to_json") else to_json(example)


def main() -> None:
    vectors = json.loads(VECTORS.read_text())
    for name, example in EXAMPLES.items():
        if name not in vectors:
            vectors[name] = {"text": canonical(written(example)).decode("utf-8")}
            if name in PLANS:
                vectors[name]["digest"] = digest(PLANS[name], agent="scout")
    VECTORS.write_text(json.dumps(vectors, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
