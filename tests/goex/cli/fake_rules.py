"""The rules part of the scripted daemon: what is in force is scripted; checking and testing are the real ones."""

from __future__ import annotations

import json
from typing import Any

from goex.daemon import rules_service as real
from goex.daemon.rule_views import suggestions_view
from goex.rpc import rules_pb2 as pb
from goex.rpc import rules_pb2_grpc as rpc
from mapper.catalog import Catalog
from policies.rules import cases
from policies.rules.book import RuleBook, default_text
from policies.rules.drafts import changes
from policies.rules.rule_errors import check
from policies.rules.suggestions import Suggested
from tests.goex.cli.fake import PASSPHRASE, refuse


def in_force(**changed: Any) -> pb.InForceReply:
    facts: dict[str, Any] = {
        "rules": [real._view(policy) for policy in RuleBook.of({}).policies[:2]],
        "hash": "ab" * 32,
        "folder": "/home/you/.config/goex/rules",
    }
    return pb.InForceReply(**{**facts, **changed})


class FakeRules(rpc.RulesServicer):
    """`reply` is what is in force; `presence` wants the passphrase."""

    def __init__(self) -> None:
        self.reply = in_force()
        self.presence = False
        self.suggested = Suggested(asked=3)
        self.applied: list[pb.ApplyRulesRequest] = []

    def InForce(self, request: Any, context: Any) -> pb.InForceReply:
        return pb.InForceReply(**{"default_text": default_text()} | {f.name: v for f, v in self.reply.ListFields()})

    def CheckRules(self, request: Any, context: Any) -> pb.CheckRulesReply:
        found, findings = check({file.name: file.text for file in request.files}, Catalog.bundled(), {"bot"})
        return pb.CheckRulesReply(
            findings=[real._finding(one) for one in findings],
            changes=[real._change(one) for one in changes(RuleBook.of({}).policies, found)],
            rules=len(found),
            hash="ab" * 32,
        )

    def ApplyRules(self, request: Any, context: Any) -> pb.InForceReply:
        if self.presence and request.passphrase != PASSPHRASE:
            refuse(context, "presence", "Show yourself.")
        self.applied.append(request)
        book = RuleBook.of({file.name: file.text for file in request.files}, Catalog.bundled())
        rules = [real._view(policy) for policy in book.policies]
        return in_force(rules=rules, applied="2026-01-02T03:04:05+00:00", by="user 1000")

    def TestRules(self, request: Any, context: Any) -> pb.TestRulesReply:
        files = {file.name: file.text for file in request.files} if request.drafts else {}
        try:
            found = cases.run(json.loads(request.cases_json), RuleBook.of(files, Catalog.bundled()), Catalog.bundled())
        except cases.BadCase as error:
            return refuse(context, error.code, error.message, error.next_step, 2)
        results = [
            pb.CaseResult(
                name=one.name,
                expected=one.expected,
                expected_rule=one.wanted_rule,
                came=one.came,
                rules=one.rules,
                reason=one.reason,
                good=one.good,
            )
            for one in found
        ]
        return pb.TestRulesReply(results=results, failed=sum(not one.good for one in results))

    def ExplainRules(self, request: Any, context: Any) -> pb.ExplainRulesReply:
        verdicts = [pb.RuleVerdict(rule="irreversible-asks", effect="ask"), pb.RuleVerdict(rule="ops", effect="permit")]
        return pb.ExplainRulesReply(
            agent="bot",
            calls=[
                pb.ExplainedCall(what="slack.chat.delete", kind="call", verdicts=verdicts),
                pb.ExplainedCall(what="slack.users.list", kind="call"),
            ],
            decision="ask",
            rules=["irreversible-asks"],
            grants=["g-1"],
            reason="Rule irreversible-asks wants each such action to be asked for.",
            asked=["slack:chat:write"],
            then="allow at 2026-01-02T03:04:05 UTC, by grant g-1" if request.action_id else "",
        )

    def SuggestRules(self, request: Any, context: Any) -> pb.SuggestRulesReply:
        return suggestions_view(self.suggested, Catalog.bundled())

    def WakeAgent(self, request: Any, context: Any) -> pb.WakeAgentReply:
        return pb.WakeAgentReply(rested=request.agent == "bot")
