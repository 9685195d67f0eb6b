"""Actions as the log shows them: in words, each on its own line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from goex.daemon.action_views import held_until, is_left, log_row
from goex.engine.reverts import REVERTIBLE
from goex.journal.actions import ActionRow
from goex.journal.chain import Row
from goex.journal.states import State
from goex.journal.story import Decided, Exchanged, Story, UsedGrant
from goex.rpc import audit_pb2 as audit
from goex.rpc import goex_pb2 as pb
from policies.actions import UndoClass
from policies.display_text import counted, quoted, shorten
from policies.errors import GoexError
from policies.jsonvalue import canonical
from policies.services import Risk

LONGEST_WHAT = 300
LONGEST_OUTCOME = 300


def logged(row: ActionRow, decided: Decided, reverts: tuple[ActionRow, ...]) -> audit.LoggedAction:
    """One action in a line. `reverts`: what took it back, or tried to, oldest first."""
    plan = _object(row.plan)
    said, cut = shorten(what(row), LONGEST_WHAT)
    undo_class = _undo_class(row)
    takes_back = undo_class in (UndoClass.EXACT, UndoClass.COMPENSATING) and row.kind != "revert"
    undone = [revert.id for revert in reverts if revert.state is State.DONE and _verb(revert) == "undo"]
    return audit.LoggedAction(
        number=row.number,
        id=row.id,
        created=row.created,
        updated=row.updated,
        agent=row.agent,
        session=row.session,
        kind=row.kind,
        state=row.state,
        what=said,
        what_cut=cut,
        risk=Risk(row.risk).word if row.risk in set(Risk) else "",
        services=sorted({str(need.get("service", "")) for need in _objects(plan.get("needs"))}),
        decided=decided_view(decided),
        outcome=_ended(row),
        undo_class=undo_class,
        can_undo=takes_back and row.state in REVERTIBLE["undo"] and not is_left(row),
        can_redo=takes_back and row.kind != "code" and row.state in REVERTIBLE["redo"],
        taken_back_by=undone[-1] if undone and row.state is State.UNDONE else "",
        target=row.target,
        held_until=held_until(row),
    )


def _undo_class(row: ActionRow) -> str:
    """How this version of GoEx would take an action back; "" where it can't read the plan."""
    try:
        plan = row.readable_plan()
    except GoexError:  # which verifying tells
        return ""
    return plan.undo_class if plan else ""


def decided_view(decided: Decided) -> audit.Decided:
    return audit.Decided(
        verdict=decided.verdict,
        by=decided.by,
        person=decided.person,
        grants=[_grant(grant) for grant in decided.grants],
        rules=decided.rules,
        reason=decided.reason,
        at=decided.at,
    )


def story_view(
    view: pb.ActionView, logged_as: audit.LoggedAction, source: str, told: Story, rows: list[Row], left_out: int
) -> audit.StoryReply:
    """`rows`: newest first."""
    return audit.StoryReply(
        action=view,
        logged=logged_as,
        source=source,
        mapping_json=told.mapping,
        asked_at=told.asked_at,
        leases=[
            audit.Leased(
                at=at,
                service=str(facts.get("service", "")),
                account=str(facts.get("account", "")),
                facts_json=canonical(dict(facts)).decode(),
            )
            for at, facts in told.leases
        ],
        exchanges=[_exchange(exchange) for exchange in told.exchanges],
        rows=[log_row(row) for row in rows],
        rows_left_out=left_out,
    )


def _grant(grant: UsedGrant) -> audit.UsedGrant:
    return audit.UsedGrant(
        id=grant.id,
        service=grant.service,
        account=grant.account,
        scope=grant.scope,
        width=grant.width,
        by=grant.by,
        at=grant.at,
        for_action=grant.action_id,
    )


def _exchange(exchange: Exchanged) -> audit.Exchanged:
    return audit.Exchanged(
        at=exchange.at,
        request=exchange.request,
        call=exchange.call,
        method=exchange.method,
        host=exchange.host,
        path=exchange.path,
        status=exchange.status if exchange.status < 2**32 else 0,
        bytes=min(exchange.bytes, 2**63),
        well=exchange.well,
        refused=exchange.refused,
        failed=exchange.failed,
    )


def what(row: ActionRow) -> str:
    """What an action is about: the words that asked for it, and what they became."""
    done = runs(row)
    if row.kind == "revert":
        return done
    return f"{json.dumps(row.intent, ensure_ascii=False)}: {done}".removesuffix(": ") if row.intent else done


def runs(row: ActionRow) -> str:
    """What an action runs, in one line."""
    request = _object(row.request)
    if row.kind == "revert":
        return f"{request.get('verb', 'revert')} {row.target}"
    if row.kind == "files":
        folders = _one_line(", ".join(map(str, (request.get("folder", ""), *_list(request.get("more"))))))
        if request.get("preview"):
            return f"apply a dry run in {folders}: {request['preview']}"
        return f"{request.get('language', 'program')} in {folders}: {_one_line(request.get('program', ''))}"
    if row.kind == "code":
        services = ", ".join(map(str, _list(request.get("services"))))
        program = _one_line(request.get("program", ""))
        return f"{request.get('language', 'program')} for {services or 'no service'}: {program}"
    if row.kind == "task":
        named = [f"{each.get('service')}.{each.get('method')}" for each in _objects(request.get("allows"))]
        title = str(request.get("title", ""))
        return f"{f'{json.dumps(title, ensure_ascii=False)}: ' if title else 'task: '}{', '.join(named)}"
    if row.kind in ("sql", "mongo"):
        said = "; ".join(map(str, _list(request.get("operations")))) or request.get("statements", "")
        return f"{request.get('database', '')}: {_one_line(said)}"
    return "; ".join(_call(call) for call in _objects(request.get("calls")))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _one_line(text: object) -> str:
    """A text with its lines behind each other, and still told apart: what follows a comment is none."""
    return " ⏎ ".join(" ".join(line.split()) for line in str(text).splitlines() if line.strip())


def _call(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments")
    shown = [
        f"{_word(name)}={_word(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in (arguments.items() if isinstance(arguments, dict) else ())
    ]
    called = ".".join(_word(str(call.get(name, ""))) for name in ("service", "method"))
    return " ".join([called, *shown])


def _word(value: str) -> str:
    """A text as it is where it is one word; else quoted, or it could be read as more arguments, or as another call."""
    if value and not re.search(r'[\s;\u037e\ufe54\uff1b"]', value):
        return value
    return quoted(value)


def _ended(row: ActionRow) -> str:
    """The last word on it: why it didn't end well, else the outcome's summary."""
    said = _object(row.problem).get("message") or _object(row.outcome).get("summary") or ""
    text, cut = shorten(" ".join(str(said).split()), LONGEST_OUTCOME)
    return f"{text}… ({counted(cut, 'more character')})" if cut else text


def _verb(row: ActionRow) -> str:
    return str(_object(row.request).get("verb", ""))


def _object(text: str) -> Mapping[str, Any]:
    """A stored text as an object; {} for anything else, which verifying tells."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
