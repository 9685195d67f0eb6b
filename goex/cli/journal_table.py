"""Rows of the journal for a person: a table with every fact; on a screen a line each, the rest below."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from goex.cli.output import Output, local, shown
from policies.display_text import quoted

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

_AGENT_WIDTH = 16
# In a text, which is quoted then: it could be read as facts, or as items, behind it. Lookalikes count as what they are
# taken for.
_MORE_FACTS = re.compile(r'"|[;\u037e\ufe54\uff1b]\s*\w+\s*[:\u2236\ua789\ufe55\uff1a]|\s\w+[=\ua78a\ufe66\uff1d]')
_MORE_ITEMS = re.compile(f"{_MORE_FACTS.pattern}|, ")
_OF_GRANT = ("id", "width", "service", "scope")
# What a reader on a screen doesn't need of a row: hashes, which verifying looks at, and what other columns show.
_UNREAD_FACTS = frozenset(
    {
        "asked_sha256",
        "digest",
        "intent_sha256",
        "ledger",
        "manifest",
        "outcome_sha256",
        "process",
        "request_sha256",
        "session",
        "sha256",
        "standing",
    }
)


def show_rows(out: Output, rows: Sequence[pb.LogRow], *, of_one: bool = False) -> None:
    """Print rows; `of_one`: they all belong to one action, which stands above them."""
    if not out.on_terminal:
        out.table(
            ("row", "at", "action", "agent", "what", "step", "facts"),
            [
                (str(row.number), local(row.at), row.action_id, row.agent, row.kind, _step(row), _all_facts(row))
                for row in rows
            ],
        )
        return
    agents = min(max((len(row.agent) for row in rows), default=0), _AGENT_WIDTH)
    for row in rows:
        where = "" if of_one else f"{row.action_id or '-':<14} {row.agent or '-':<{agents}} "
        out.say(shown(f"{row.number:>4} {local(row.at)} {where}{row.kind} {_step(row)}".rstrip()))
        facts = _worth_reading(row)
        if facts:
            out.block(facts, indent=5)


def _step(row: pb.LogRow) -> str:
    before = getattr(row, "from")
    return f"{before} → {row.to}" if before else row.to


def _facts(row: pb.LogRow) -> dict[str, Any] | None:
    try:
        found = json.loads(row.facts_json) if row.facts_json else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _all_facts(row: pb.LogRow) -> str:
    facts = _facts(row)
    if facts is None:
        return row.facts_json
    return " ".join(f"{name}={_plain(value)}" for name, value in facts.items())


def _worth_reading(row: pb.LogRow) -> str:
    facts = _facts(row)
    if facts is None:
        return row.facts_json
    kept = {name: value for name, value in facts.items() if name not in _UNREAD_FACTS and value not in ("", [], {})}
    problem = kept.get("problem")
    if isinstance(problem, dict) and isinstance(problem.get("message"), str):
        kept["problem"] = problem["message"]
        if kept.get("summary") == problem["message"]:
            del kept["summary"]
    return "; ".join(f"{name}: {_brief(value)}" for name, value in kept.items())


def _brief(value: Any) -> str:
    """A fact for a screen: grants by what they allow, anything else plain."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(_plain(one, _MORE_ITEMS) for one in value)
    if isinstance(value, list) and all(isinstance(one, dict) and "width" in one for one in value):
        grants = ([_plain(one.get(name, ""), _MORE_ITEMS) for name in _OF_GRANT] for one in value)
        return ", ".join("{} {} {}:{}".format(*grant) for grant in grants)
    return _plain(value)


def _plain(value: Any, more: re.Pattern[str] = _MORE_FACTS) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not more.search(value):
        return value
    return quoted(value)
