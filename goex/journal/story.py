"""What became of actions, told from their rows: who decided, on what, which requests went out.

Rules: only rows of the chain are believed, which verifying proves, never a table that anybody could edit; facts that an
older GoEx didn't write are left empty, nothing is guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select

from goex.journal.chain import Journal, Row
from goex.journal.schema import ROW, journal
from goex.journal.schema import grants as grants_table
from policies.errors import GoexError
from policies.jsonvalue import canonical, parse

GOEX = "goex"
NOBODY = frozenset({"", GOEX, "the rules", "the deadline"})  # who decides by themselves
_LIMIT = 64 * 2**20  # our own rows come back whole
_DECIDING = ("grant", "allow", "deny", "expire", "withdraw", "reject", "fail")
_DECISIVE = {"allow": "allowed", "deny": "denied", "expire": "expired", "withdraw": "withdrawn"}
_MOST_NAMED = 500  # values in one query


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedGrant:
    """A grant that an action ran on, as it was given."""

    id: str
    service: str = ""
    account: str = ""
    scope: str = ""
    width: str = ""
    by: str = ""
    at: str = ""
    action_id: str = ""  # that it was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """How it was decided whether an action runs. `verdict` is "" while it isn't, or when it never came to that."""

    verdict: str = ""  # allowed, denied, expired, withdrawn
    by: str = ""
    person: bool = False  # they were asked for this action, and answered
    grants: tuple[UsedGrant, ...] = ()
    rules: tuple[str, ...] = ()
    reason: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """One request through the gateway, or one that it refused."""

    at: str
    request: str = ""
    call: str = ""  # service.method
    method: str = ""
    host: str = ""
    path: str = ""
    status: int = 0
    bytes: int = 0
    well: bool = False
    refused: str = ""
    failed: str = ""


@dataclass(slots=True)
class Story:
    """One action from beginning to end."""

    decided: Decided = field(default_factory=Decided)
    mapping: str = ""  # the vote's facts
    asked_at: str = ""
    leases: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    exchanges: list[Exchanged] = field(default_factory=list)


def decisions(journal_: Journal, ids: Iterable[str]) -> dict[str, Decided]:
    """How each of these actions was decided, by its id."""
    wanted = list(dict.fromkeys(ids))
    rows: dict[str, list[Row]] = defaultdict(list)
    with journal_.read() as connection:
        for start in range(0, len(wanted), _MOST_NAMED):
            query = select(*ROW).where(
                journal.c.action_id.in_(wanted[start : start + _MOST_NAMED]), journal.c.kind.in_(_DECIDING)
            )
            for raw in connection.execute(query.order_by(journal.c.number)):
                rows[raw.action_id].append(Row(*raw))
    found = {id: _decided(rows[id]) for id in wanted}
    given = _given(journal_, {grant.id for each in found.values() for grant in each.grants if not grant.by})
    return {id: _told(each, given) for id, each in found.items()}


def story(journal_: Journal, rows: Iterable[Row]) -> Story:
    """The story that an action's own rows (oldest first) tell."""
    rows = tuple(rows)
    told = Story()
    sent: dict[str, int] = {}
    for row in rows:
        facts = _facts(row)
        match row.kind:
            case "votes" | "choice":
                told.mapping = row.facts
            case "ask":
                told.asked_at = row.at
            case "lease":
                told.leases.append((row.at, facts))
            case "request":
                sent[_text(facts, "request")] = len(told.exchanges)
                told.exchanges.append(_sent(row.at, facts))
            case "answer" | "unanswered":
                place = sent.get(_text(facts, "request"))
                if place is not None:
                    told.exchanges[place] = _answered(told.exchanges[place], facts)
            case "refused":
                told.exchanges.append(_refused(row.at, facts))
    decided = _decided([row for row in rows if row.kind in _DECIDING])
    told.decided = _told(decided, _given(journal_, {grant.id for grant in decided.grants if not grant.by}))
    return told


def _decided(rows: Iterable[Row]) -> Decided:
    """From the rows of one action, oldest first."""
    given: dict[str, UsedGrant] = {}
    answered_by = ""
    found = Decided()
    for row in rows:
        facts = _facts(row)
        if row.kind == "grant":
            answered_by = _text(facts, "by")
            given |= {grant.id: grant for grant in _grants(row, facts)}
        elif row.kind in _DECISIVE:
            used = tuple(given.get(id, UsedGrant(id=id)) for id in _texts(facts, "grants"))
            by = _text(facts, "by") or (answered_by if row.kind == "allow" else "")
            found = Decided(
                verdict=_DECISIVE[row.kind],
                by=by or GOEX,
                person=by not in NOBODY and row.kind in ("allow", "deny"),
                grants=used,
                rules=_texts(facts, "rules"),
                reason=_text(facts, "reason") or _message(facts),
                at=row.at,
            )
        elif not found.verdict and (reason := _message(facts)):
            found = replace(found, reason=reason, at=row.at)
    return found


def _told(decided: Decided, given: Mapping[str, UsedGrant]) -> Decided:
    return replace(decided, grants=tuple(grant if grant.by else given.get(grant.id, grant) for grant in decided.grants))


def _given(journal_: Journal, ids: set[str]) -> dict[str, UsedGrant]:
    """Grants of earlier actions. The table says only where to look: what they allow is told by the chain."""
    wanted = sorted(ids)
    found: dict[str, UsedGrant] = {}
    with journal_.read() as connection:
        for start in range(0, len(wanted), _MOST_NAMED):
            named = select(grants_table.c.why).where(grants_table.c.id.in_(wanted[start : start + _MOST_NAMED]))
            query = select(*ROW).where(journal.c.kind == "grant", journal.c.action_id.in_(named))
            for raw in connection.execute(query):
                row = Row(*raw)
                found |= {grant.id: grant for grant in _grants(row, _facts(row))}
    return {id: grant for id, grant in found.items() if id in ids}


def _grants(row: Row, facts: Mapping[str, Any]) -> list[UsedGrant]:
    by, listed = _text(facts, "by"), facts.get("grants")
    return [
        UsedGrant(
            id=_text(each, "id"),
            service=_text(each, "service"),
            account=_text(each, "account"),
            scope=_text(each, "scope"),
            width=_text(each, "width"),
            by=by,
            at=row.at,
            action_id=row.action_id,
        )
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]


def _sent(at: str, facts: Mapping[str, Any]) -> Exchanged:
    host, path = _place(_text(facts, "url"))
    return Exchanged(
        at=at,
        request=_text(facts, "request"),
        call=_text(facts, "call"),
        method=_text(facts, "method"),
        host=host,
        path=path,
    )


def _answered(sent: Exchanged, facts: Mapping[str, Any]) -> Exchanged:
    return replace(
        sent,
        status=_number(facts, "status"),
        bytes=_number(facts, "bytes"),
        well=facts.get("well") is True,
        failed=_text(facts, "why"),
    )


def _refused(at: str, facts: Mapping[str, Any]) -> Exchanged:
    target = _text(facts, "target")
    host, path = _place(target if "://" in target else f"//{target}")
    return Exchanged(
        at=at, method=_text(facts, "method"), host=host, path=path, refused=_text(facts, "reason") or "refused"
    )


def _place(url: str) -> tuple[str, str]:
    """Host and path of an address, without its query, which may hold what was searched for."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.netloc, parts.path


def _facts(row: Row) -> Mapping[str, Any]:
    try:
        found = parse(row.facts, limit=_LIMIT)
    except GoexError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(facts: Mapping[str, Any]) -> str:
    problem = facts.get("problem")
    return _text(problem, "message") if isinstance(problem, dict) else ""


def _text(facts: Mapping[str, Any], name: str) -> str:
    found = facts.get(name, "")
    return found if isinstance(found, str) else canonical(found).decode()


def _texts(facts: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = facts.get(name)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _number(facts: Mapping[str, Any], name: str) -> int:
    found = facts.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else 0
