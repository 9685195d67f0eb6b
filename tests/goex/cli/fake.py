"""A daemon's gRPC surface with scripted answers, for what the command line shows.

It keeps the proto and the convention for errors (`goex-problem-bin`), and nothing else of the daemon.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from goex.rpc import accounts_pb2_grpc as accounts_rpc
from goex.rpc import audit_pb2 as audit
from goex.rpc import audit_pb2_grpc as audit_rpc
from goex.rpc import databases_pb2_grpc as databases_rpc
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from goex.rpc import reversions_pb2_grpc as reversions_rpc
from goex.rpc import rules_pb2_grpc as rules_rpc
from goex.rpc import vault_pb2_grpc as vault_rpc

PASSPHRASE = "open sesame"


def refuse(context: Any, code: str, message: str, step: str = "", status: int = 3, details: Sequence[str] = ()) -> Any:
    problem = pb.Problem(code=code, message=message, next_step=step, exit_status=status, details=details)
    context.set_trailing_metadata((("goex-problem-bin", problem.SerializeToString()),))
    return context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)


def approval(**changes: Any) -> pb.Approval:
    facts: dict[str, Any] = {
        "id": "ap-0001",
        "action_id": "ac-0001",
        "agent": "helper",
        "digest": "d" * 64,
        "lines": ["slack.chat.postMessage", 'channel = "#ops"', 'text = "hi"'],
        "needs": [
            pb.NeedView(
                service="slack",
                account="work",
                scope="chat:write",
                risk="write",
                description="send messages as you",
                also=["slack.chat.update"],
                methods=["slack.chat.postMessage"],
                why="action",
            )
        ],
        "undo_class": "compensating",
        "undo_text": "deletes the message; others may have read it",
        "risk": "write",
        "widths": ["once", "session", "arguments", "permanent"],
        "reason": "slack:chat:write is not granted to helper.",
        "deadline": "2999-01-01T00:00:00+00:00",
        "intent": "send slack msg hi to #ops",
        "state": "pending",
        "arguments": ["channel", "text"],
        "source": "agent.sock, user 1000, process 7, /usr/bin/python3",
    }
    made = pb.Approval(**{**facts, **changes})
    if "question" not in changes:
        made.question.CopyFrom(short_question(made))
    return made


ANSWERS = (
    ("y", "once", "once"),
    ("a", "arguments", "always so"),
    ("s", "session", "session"),
    ("", "permanent", "permanent"),
    ("n", "no", "no"),
    ("", "later", "later"),
    ("?", "more", "more"),
)


def short_question(made: pb.Approval) -> pb.Question:
    """The short question about it, in the form that the daemon gives it."""
    duplicates = [f"Asked {made.count} times: a yes is for one of them, a no for all."] if made.count > 1 else []
    return pb.Question(
        sentence=f"“{made.agent}” wants to post a message on Slack (work): #ops.",
        payload=[part for line in made.lines for part in line.split("\n")],
        asks=made.source,
        worst="what is shown, once",
        undo=made.undo_text,
        fresh="first slack:chat:write",
        notes=duplicates,
        irreversible=made.undo_class == "irreversible",
        answers=[
            pb.Answer(key=key, name=name, label=label)
            for key, name, label in ANSWERS
            if name in (*made.widths, "no", "later", "more")
        ],
    )


def view(**changes: Any) -> pb.ActionView:
    facts: dict[str, Any] = {
        "id": "ac-0001",
        "agent": "person",
        "state": "done",
        "kind": "calls",
        "request_json": '{"intent": "send"}',
        "undo_class": "compensating",
        "undo_text": "deletes the message",
        "lines": ["slack.chat.postMessage"],
        "outcome_json": '{"ok": true, "summary": "Sent.", "results": [{"status": 200, "body": {"ts": "1"}}]}',
        "created": "2026-01-02T03:04:05+00:00",
        "updated": "2026-01-02T03:04:06+00:00",
        "can_undo": True,
        "risk": "write",
    }
    return pb.ActionView(**{**facts, **changes})


def logged(**changes: Any) -> audit.LoggedAction:
    once = audit.UsedGrant(
        id="g-1", service="slack", account="work", scope="chat:write", width="once", by="user 1000, process 7 (goex)",
        at="2026-01-02T03:04:05.600000+00:00", for_action="ac-0001",
    )  # fmt: skip
    facts: dict[str, Any] = {
        "number": 3,
        "id": "ac-0001",
        "created": "2026-01-02T03:04:05+00:00",
        "agent": "helper",
        "kind": "calls",
        "state": "done",
        "what": '"send hi": slack.chat.postMessage channel=#ops text=hi',
        "risk": "write",
        "services": ["slack"],
        "decided": audit.Decided(
            verdict="allowed", by=once.by, person=True, grants=[once], at="2026-01-02T03:04:05.700000+00:00"
        ),
        "outcome": "Sent.",
        "undo_class": "compensating",
        "can_undo": True,
    }
    return audit.LoggedAction(**{**facts, **changes})


def log_row() -> pb.LogRow:
    return pb.LogRow(
        number=3,
        at="2026-01-02T03:04:05.123456+00:00",
        action_id="ac-0001",
        agent="helper",
        kind="finish",
        to="done",
        facts_json='{"ok": true}',
        hash="ef" * 32,
        **{"from": "running"},
    )


def state(before: str, event: str, after: str) -> pb.Event:
    return pb.Event(action_id="ac-0001", state=pb.StateChange(**{"from": before, "event": event, "to": after}))


def finished(**changes: Any) -> pb.Event:
    return pb.Event(action_id="ac-0001", finished=pb.Finished(**{"action": view(), **changes}))


def problem(code: str, status: int, message: str = "It didn't work.", step: str = "Try another.") -> pb.Problem:
    return pb.Problem(code=code, message=message, next_step=step, exit_status=status)


def mapped(sure: bool = False) -> pb.Event:
    calls = [
        pb.Call(service="slack", method="chat.postMessage", arguments_json='{"channel": "#ops"}'),
        pb.Call(service="matrix", method="rooms.send", arguments_json='{"room": "#ops"}'),
    ]
    candidates = [pb.Candidate(calls=[c], scopes=[f"{c.service}:write"], votes=3, score=0.3) for c in calls]
    return pb.Event(
        action_id="ac-0001",
        mapped=pb.MapReply(candidates=candidates, agreement=0.3, samples=10, proposer="embedded", sure=sure),
    )


class Fake(audit_rpc.AuditServicer, rpc.ActionsServicer, rpc.PersonServicer):
    """Scripts, and what came in. `events` is what a stream sends; its item WAIT waits for a decision."""

    WAIT = "wait"

    def __init__(self) -> None:
        from tests.goex.cli.fake_accounts import FakeAccounts
        from tests.goex.cli.fake_databases import FakeDatabases
        from tests.goex.cli.fake_reversions import FakeReversions
        from tests.goex.cli.fake_rules import FakeRules
        from tests.goex.cli.fake_vault import FakeVault

        self.accounts = FakeAccounts()
        self.rules = FakeRules()
        self.reversions = FakeReversions()
        self.vault = FakeVault()
        self.databases = FakeDatabases()
        self.events: list[Any] = []
        self.scripts: list[list[Any]] = []
        self.pending: list[pb.Approval] = [approval()]
        self.looked: list[pb.ApprovalsRequest] = []
        self.watched: list[Any] = []  # what WatchApprovals sends, where it isn't `pending`
        self.decided: list[pb.DecideRequest] = []
        self.settled: queue.Queue[pb.DecideRequest] = queue.Queue()
        self.requests: list[Any] = []
        self.cancelled: list[str] = []
        self.presence = False
        self.failure: grpc.StatusCode | None = None
        self.metadata: list[dict[str, Any]] = []
        self.list: list[pb.ActionView] = [view()]
        self.story_problem: pb.Problem | None = None
        self.way: list[pb.WayStep] = [
            pb.WayStep(action=view(id="ac-0002"), can=True, what="shell in /home/you/docs: echo \x1b[2J up"),
            pb.WayStep(
                action=view(id="ac-0003"),
                can=True,
                what="slack.chat.delete",
                why="it depends on ac-0001: both changed /home/you/docs",
            ),
            pb.WayStep(action=view(id="ac-0004", undo_class="irreversible"), can=False, why="it can't be taken back"),
            pb.WayStep(action=view(), can=True, what="slack.chat.postMessage"),
        ]
        self.logged: list[audit.LoggedAction] = [logged()]
        self.granted: list[pb.GrantView] = [
            pb.GrantView(
                id="gr-1",
                agent="helper",
                service="slack",
                account="work",
                scope="chat:write",
                width="permanent",
                constraints_json='{"channel": "#ops"}',
                expires="2026-02-01T00:00:00+00:00",
            )
        ]
        self.exported: list[audit.ExportChunk] = [audit.ExportChunk(lines=b'{"goex":"journal"}\n', rows=0, of=7)]
        self.verify = pb.VerifyLogReply(good=True, rows=7, head="ab" * 32, authenticated=True)
        self.status = pb.StatusReply(version="0.1.0", pid=77, vault="unsealed", keyed_by="passphrase")
        self.source = "bundled"  # of every service

    # ---- Actions

    def Execute(self, request: Any, context: Any) -> Iterator[pb.Event]:
        self.requests.append(request)
        yield from self._play(context)

    Revert = Execute

    def WayBack(self, request: Any, context: Any) -> pb.WayBackReply:
        return pb.WayBackReply(steps=self.way)

    def Watch(self, request: Any, context: Any) -> Iterator[pb.Event]:
        self.requests.append(request)
        yield from self._play(context)

    def _play(self, context: Any) -> Iterator[pb.Event]:
        script = self.scripts.pop(0) if self.scripts else self.events
        for item in script:
            if item == self.WAIT:
                while context.is_active():
                    try:
                        self.settled.get(timeout=0.05)
                        break
                    except queue.Empty:
                        continue
            elif isinstance(item, grpc.StatusCode):
                context.abort(item, "socket closed")
            elif isinstance(item, pb.Problem):
                refuse(context, item.code, item.message, item.next_step, item.exit_status)
            else:
                yield item

    def Map(self, request: Any, context: Any) -> pb.MapReply:
        self.requests.append(request)
        return mapped().mapped

    def Get(self, request: Any, context: Any) -> pb.ActionView:
        if request.id != "ac-0001":
            return refuse(context, "invalid", "There is no such action.", "See: goex log", 2)
        return self.list[0]

    def List(self, request: Any, context: Any) -> pb.ListReply:
        if self.failure is not None:
            context.abort(self.failure, "because")
        return pb.ListReply(actions=self.list)

    def Whoami(self, request: Any, context: Any) -> pb.WhoamiReply:
        self.metadata.append(dict(context.invocation_metadata()))
        return pb.WhoamiReply(agent="helper")

    def Cancel(self, request: Any, context: Any) -> pb.ActionView:
        self.cancelled.append(request.id)
        return view(state="withdrawn")

    # ---- Person

    def Services(self, request: Any, context: Any) -> pb.ServicesReply:
        return pb.ServicesReply(services=[pb.ServiceView(name=request.service, source=self.source)])

    def DryRun(self, request: Any, context: Any) -> Iterator[pb.DryRunEvent]:
        self.requests.append(request)
        yield pb.DryRunEvent(progress="Running the program on the copy…")
        lines = (("note", "On a copy."), ("change", "changed a"), ("removed", "old"), ("added", "new\x1b[2J"))
        made = pb.DryRunReply(ok=True, summary="The program ended well: 1 changed.", plan=["Folder: /home/me/notes"])
        made.lines.extend(pb.DryLine(kind=kind, text=text) for kind, text in lines)
        yield pb.DryRunEvent(done=made)

    def Status(self, request: Any, context: Any) -> pb.StatusReply:
        return self.status

    def Approvals(self, request: Any, context: Any) -> pb.ApprovalsReply:
        self.looked.append(request)
        wanted = request.approval_id
        return pb.ApprovalsReply(approvals=[one for one in self.pending if wanted in ("", one.id)])

    def Decide(self, request: Any, context: Any) -> pb.DecideReply:
        if request.approve:
            self._present(request.passphrase, context)
        self.decided.append(request)
        self.settled.put(request)
        return pb.DecideReply(approval=approval(state="approved" if request.approve else "denied"))

    def DenyAll(self, request: Any, context: Any) -> pb.DenyAllReply:
        self.requests.append(request)
        return pb.DenyAllReply(approval_ids=[one.id for one in self.pending if request.agent in ("", one.agent)])

    def _present(self, passphrase: str, context: Any) -> None:
        if self.presence and passphrase != PASSPHRASE:
            refuse(context, "presence", "That isn't the approval passphrase." if passphrase else "Show yourself.")

    def Grants(self, request: Any, context: Any) -> pb.GrantsReply:
        return pb.GrantsReply(grants=self.granted)

    def Revoke(self, request: Any, context: Any) -> pb.RevokeReply:
        self.requests.append(request)
        return pb.RevokeReply(grants=[pb.GrantView(id=one) for one in request.grant_ids])

    def AddAgent(self, request: Any, context: Any) -> pb.AddAgentReply:
        self._present(request.passphrase, context)
        return pb.AddAgentReply(name=request.name, token="goex_token")

    def ListAgents(self, request: Any, context: Any) -> pb.ListAgentsReply:
        return pb.ListAgentsReply(agents=[pb.AgentView(name="helper", created="2026-01-02T03:04:05+00:00")])

    def RemoveAgent(self, request: Any, context: Any) -> pb.RemoveAgentReply:
        return pb.RemoveAgentReply()

    def VaultInit(self, request: Any, context: Any) -> pb.VaultStatus:
        self.requests.append(request)
        return pb.VaultStatus(state="unsealed", keyed_by=request.keyed_by)

    def VaultUnlock(self, request: Any, context: Any) -> pb.VaultStatus:
        self.requests.append(request)
        return pb.VaultStatus(state="unsealed", keyed_by="passphrase", records=2)

    def VaultSeal(self, request: Any, context: Any) -> pb.VaultStatus:
        return pb.VaultStatus(state="sealed", keyed_by="passphrase")

    def VaultPut(self, request: Any, context: Any) -> pb.AccountView:
        if not request.secret:
            return refuse(
                context, "secret", "The credential is empty.", "Type it.", 2, [request.base_url or "https://slack.com"]
            )
        self._present(request.passphrase, context)
        self.requests.append(request)
        return pb.AccountView(service=request.service, account=request.account, origins=["https://slack.com"])

    def VaultList(self, request: Any, context: Any) -> pb.VaultListReply:
        return pb.VaultListReply(
            accounts=[pb.AccountView(service="slack", account="work", format="string", origins=["https://slack.com"])]
        )

    def VaultRemove(self, request: Any, context: Any) -> pb.VaultRemoveReply:
        self._present(request.passphrase, context)
        return pb.VaultRemoveReply()

    def Log(self, request: Any, context: Any) -> pb.LogReply:
        return pb.LogReply(rows=[log_row()])

    def VerifyLog(self, request: Any, context: Any) -> pb.VerifyLogReply:
        return self.verify

    # ---- Audit

    def Actions(self, request: Any, context: Any) -> audit.ActionsPage:
        self.requests.append(request)
        return audit.ActionsPage(actions=self.logged, before=3 if len(self.logged) >= request.limit else 0)

    def Rows(self, request: Any, context: Any) -> pb.LogReply:
        self.requests.append(request)
        return pb.LogReply(rows=[log_row()])

    def Story(self, request: Any, context: Any) -> audit.StoryReply:
        lease = '{"account": "work", "narrowed": "token", "scopes": ["chat:write"], "service": "slack"}'
        return audit.StoryReply(
            action=self.Get(request, context),
            logged=self.logged[0] if self.logged else None,
            source="user 1000, process 9 (agent), on the agent socket",
            mapping_json='{"candidates": [{"calls": ["slack.chat.postMessage"], "scopes": ["slack:chat:write"],'
            ' "votes": 3}], "proposer": "embedded", "samples": 3}',
            asked_at="2026-01-02T03:04:05+00:00",
            leases=[audit.Leased(at="", service="slack", account="work", facts_json=lease)],
            exchanges=[
                audit.Exchanged(
                    at="2026-01-02T03:04:06+00:00", request="call-0", call="slack.chat.postMessage", method="POST",
                    host="slack.com", path="/api/chat.postMessage", status=200, bytes=17, well=True,
                ),
                audit.Exchanged(
                    at="2026-01-02T03:04:06+00:00", method="GET", host="evil.test", path="/", refused="not in the plan"
                ),
            ],
            reverts=[logged(id="ac-0002", what="undo ac-0001", state="failed")],
            rows=[log_row()],
            problem=self.story_problem,
        )  # fmt: skip

    def LookAgain(self, request: Any, context: Any) -> pb.ActionView:
        if self.story_problem is None:
            return refuse(context, "conflict", "Action ac-0001 is done: there is nothing to find out.", "goex show", 6)
        self.list, self.story_problem = [view()], None
        return view()

    def Verify(self, request: Any, context: Any) -> Iterator[audit.VerifyProgress]:
        yield audit.VerifyProgress(checked=3, rows=7)
        yield audit.VerifyProgress(checked=7, rows=7, result=self.verify)

    def Export(self, request: Any, context: Any) -> Iterator[audit.ExportChunk]:
        self.requests.append(request)
        yield from self.exported

    def Scopes(self, request: Any, context: Any) -> audit.ScopesReply:
        grants = [
            pb.GrantView(
                id=id, agent="helper", service="slack", account="work", scope="chat:write", width="permanent",
                created="2026-01-01T00:00:00+00:00",
            )
            for id in ("g-1", "g-2")
        ]  # fmt: skip
        return audit.ScopesReply(
            scopes=[
                audit.UsedScope(grant=grants[0], methods_unused=["chat.delete", "chat.update"], methods_open=2),
                audit.UsedScope(
                    grant=grants[1], uses=2, last_used="2026-01-02T03:04:05+00:00", methods=["chat.update"],
                    methods_unused=["chat.delete"], methods_open=2,
                ),
            ]
        )  # fmt: skip

    def WatchApprovals(self, request: Any, context: Any) -> Iterator[pb.Approval]:
        for item in self.watched or self.pending:
            if item == self.WAIT:
                self.settled.get(timeout=300)
            else:
                yield item


def serve(socket: Path, fake: Fake) -> grpc.Server:
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ActionsServicer_to_server(fake, server)
    rpc.add_PersonServicer_to_server(fake, server)
    audit_rpc.add_AuditServicer_to_server(fake, server)
    accounts_rpc.add_AccountsServicer_to_server(fake.accounts, server)
    rules_rpc.add_RulesServicer_to_server(fake.rules, server)
    reversions_rpc.add_ReversionsServicer_to_server(fake.reversions, server)
    vault_rpc.add_VaultServicer_to_server(fake.vault, server)
    databases_rpc.add_DatabasesServicer_to_server(fake.databases, server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    socket.chmod(0o600)
    return server
