"""Suggested rules as messages."""

from __future__ import annotations

from goex.rpc import rules_pb2 as pb
from policies.rules.facts import Catalogued
from policies.rules.suggestions import Suggested


def suggestions_view(found: Suggested, catalog: Catalogued) -> pb.SuggestRulesReply:
    """What is suggested, with how much each opens."""
    return pb.SuggestRulesReply(
        rules=[
            pb.SuggestedRule(
                name=one.name,
                text=one.text,
                agent=one.agent,
                method=one.method,
                account=one.account,
                risk=one.risk,
                free=one.free,
                values=[pb.SuggestedValue(argument=name, values=values) for name, values in one.values.items()],
                answers=one.answers,
                unanswered=one.unanswered,
                combinations=one.new,
                methods=len(catalog.services[one.method.partition(".")[0]].methods),
            )
            for one in found.rules
        ],
        text=found.text,
        asked=found.asked,
        answered=found.answered,
        denied=found.denied,
        unanswered=found.unanswered,
    )
