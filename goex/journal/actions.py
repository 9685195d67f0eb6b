"""The rows of actions: their present state, changed only together with a row of the chain."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, bindparam, desc, insert, select, update

from goex.journal.action_columns import altered, check
from goex.journal.chain import Journal, Transaction
from goex.journal.errors import JournalBroken
from goex.journal.schema import Prepared, actions, facets, touched
from goex.journal.states import Event, State, step
from policies.actions import Action, Outcome, Plan
from policies.digest import digest, fits
from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject, canonical, parse
from policies.typed_json import from_json, to_json

log = logging.getLogger("goex.journal")

_MOST_NAMED = 500  # ids in one query
_KEPT_INTENT, _KEPT_REQUEST, _KEPT_PLAN = 300, 4_000, 20_000  # characters of what never ran
_NEVER_RAN = frozenset({State.FAILED, State.DENIED, State.WITHDRAWN})
_LIMIT = 64 * 2**20  # our own texts come back from the database whole

_CREATE = Prepared(insert(actions))
_STEP = Prepared(update(actions).where(actions.c.id == bindparam("wanted"), actions.c.state == bindparam("before")))
_TOUCH = Prepared(insert(touched))
_BY_ID = Prepared(select(actions).where(actions.c.id == bindparam("wanted")))
_COLUMNS = tuple(actions.c.keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose actions are read; an empty field narrows nothing. `since`: when the agent got its name."""

    agent: str = ""
    session: str = ""
    since: str = ""

    def narrow(self, query: Select[Any]) -> Select[Any]:
        if self.agent:
            query = query.where(actions.c.agent == self.agent)
        if self.session:
            query = query.where(actions.c.session == self.session)
        if self.since:
            query = query.where(actions.c.created >= self.since)
        return query


EVERYBODYS = Whose()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRow:
    """One action as it is now. `source` says who asked, as the daemon saw it."""

    id: str
    number: int
    agent: str
    session: str
    kind: str
    state: State
    created: str
    updated: str
    intent: str
    request: str
    plan: str
    digest: str
    outcome: str
    problem: str
    target: str
    source: str
    detached: bool
    risk: int = 0  # a policies.services.Risk; 0: not assessed

    @property
    def size(self) -> int:
        """How long its texts are."""
        return len(self.intent) + len(self.request) + len(self.plan) + len(self.outcome) + len(self.problem)

    def action(self) -> Action | None:
        """What was asked for; None while an intent isn't mapped yet. Raises JournalBroken when the stored text is no
        action, Unsupported when it may be one of another version of GoEx."""
        if not self.request:
            return None
        try:
            action: Action = from_json(Action, parse(self.request, limit=_LIMIT), "The action")
        except (GoexError, AttributeError):
            if self.readable_plan() is None:  # then only the chain tells whether it is what was written
                raise Unsupported(
                    f"This version of GoEx can't read what was asked for with action {self.id}.",
                    next_step="Use the version that was asked, or see whether it was altered: goex log --verify",
                ) from None
            raise altered(self.id, "request") from None
        return action

    def reverts(self) -> tuple[str, tuple[str, ...]]:
        """The verb of a revert, and the ids of what it is about, its target last; ("", ()) for any other action. Of
        what another version of GoEx was asked for nothing else is read. Raises JournalBroken."""
        if self.kind != "revert":
            return "", ()
        try:
            asked = parse(self.request, limit=_LIMIT)
            also: tuple[str, ...] = from_json(tuple[str, ...], asked.get("also", []), "The targets")
            verb: str = from_json(str, asked.get("verb"), "The verb")
        except (GoexError, AttributeError):
            raise altered(self.id, "request") from None
        return verb, (*also, self.target)

    def the_plan(self) -> Plan:
        """The plan as it was decided on. Raises JournalBroken and Conflict when the stored text isn't what was
        journaled, Unsupported when it is, and another version of GoEx made it."""
        if not self.plan:
            raise InvalidInput(f"Action {self.id} has no plan.")
        try:
            plan = from_json(Plan, parse(self.plan, limit=_LIMIT), "The plan")
        except (GoexError, AttributeError):
            if not fits(self.plan, self.digest, agent=self.agent):
                raise altered(self.id, "plan") from None
            raise Unsupported(
                f"Action {self.id} was planned by another version of GoEx: this one can't read its plan.",
                next_step="Use the version that planned it, or a newer one.",
            ) from None
        if digest(plan, agent=self.agent) != self.digest:
            raise Conflict(
                f"The stored plan of action {self.id} isn't the one that was decided on.",
                next_step="goex log --verify",
            )
        return plan

    def readable_plan(self) -> Plan | None:
        """`the_plan`; None where there is none, and for one of another version."""
        try:
            return self.the_plan() if self.plan else None
        except Unsupported:
            return None


class Actions:
    """Reads and steps actions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def create(
        self,
        transaction: Transaction,
        *,
        id: str,
        agent: str,
        session: str,
        intent: str,
        action: Action | None,
        source: str,
        detached: bool,
        process: str = "",
        asked: str = "",
    ) -> ActionRow:
        """Record an action as received. `process` names who asked, so that a restart can tell whether it is gone;
        `asked` is a hash of all that was said, of a request with a key."""
        request = _text(to_json(action)) if action else ""
        intent_sha256, request_sha256 = request_hashes(intent, action)
        number = transaction.append(
            "receive",
            action_id=id,
            agent=agent,
            to_state=State.RECEIVED,
            facts={
                "intent": intent[:_KEPT_INTENT],
                "intent_sha256": intent_sha256,
                "request_sha256": request_sha256,
                "source": source,
                "session": session,
                "process": process,
                **({"asked_sha256": asked} if asked else {}),
            },
        )
        row = ActionRow(
            id=id,
            number=number,
            agent=agent,
            session=session,
            kind=action.kind if action else "intent",
            state=State.RECEIVED,
            created=transaction.now,
            updated=transaction.now,
            intent=intent,
            request=request,
            plan="",
            digest="",
            outcome="",
            problem="",
            target=getattr(action, "target", ""),
            source=source,
            detached=detached,
        )
        _CREATE.run(transaction.connection, {name: getattr(row, name) for name in ActionRow.__dataclass_fields__})
        return row

    def step(
        self,
        transaction: Transaction,
        row: ActionRow,
        event: Event,
        *,
        facts: JsonObject | None = None,
        action: Action | None = None,
        plan: Plan | None = None,
        outcome: Outcome | None = None,
        problem: JsonObject | None = None,
        anchored: bool = False,
    ) -> ActionRow:
        """Take one step of the table; `anchored` as in `Transaction.append`. Raises IllegalStep for any other, Conflict
        when the row moved meanwhile."""
        after = step(row.state, event)
        changed: dict[str, Any] = {"state": after, "updated": transaction.now}
        noted: dict[str, Any] = dict(facts or {})
        if action is not None:
            changed |= {"request": _text(to_json(action)), "kind": action.kind}
            noted["request_sha256"] = _hash(changed["request"])
        if plan is not None:
            changed |= {"plan": _text(to_json(plan)), "digest": digest(plan, agent=row.agent)}
            risk, services = facets(changed["plan"])
            changed["risk"] = risk
            noted |= {"digest": changed["digest"], "risk": risk, "services": list(services)}
            for service in services:
                row_of = {"service": service, "number": row.number, "action_id": row.id}
                _TOUCH.run(transaction.connection, row_of)
        if outcome is not None:
            changed["outcome"] = _text(to_json(outcome))
            noted |= {"outcome_sha256": _hash(changed["outcome"]), "ok": outcome.ok, "summary": outcome.summary}
        if problem is not None:
            changed["problem"] = _text(dict(problem))
            noted["problem"] = dict(problem)
        if after in _NEVER_RAN and row.state is not State.RUNNING:
            changed |= _beginnings(row, noted)
        transaction.append(
            event,
            action_id=row.id,
            agent=row.agent,
            from_state=row.state,
            to_state=after,
            facts=noted,
            anchored=anchored,
        )
        moved = _STEP.run(transaction.connection, {**changed, "wanted": row.id, "before": row.state})
        if moved.rowcount != 1:
            raise Conflict(f"Action {row.id} is no longer {row.state}.")
        # Not read back: whoever can write the file could give a running action another agent's name.
        return replace(row, **changed)

    def get(self, id: str) -> ActionRow:
        """The action of that id. Raises InvalidInput when there is none, JournalBroken when GoEx didn't write it so."""
        with self._journal.read() as connection:
            found = _BY_ID.run(connection, {"wanted": id}).fetchone()
        if found is None:
            raise InvalidInput(f"There is no action {id[:60]!r}.", next_step="goex log lists them.")
        return _row(dict(zip(_COLUMNS, found, strict=True)), whole=True)

    def find(self, id: str, whose: Whose) -> ActionRow | None:
        """The action of that id; None where it is somebody else's, too, of which no text is read then."""
        with self._journal.read() as connection:
            found = connection.execute(whose.narrow(select(actions).where(actions.c.id == id))).first()
        return action_row(found, whole=True) if found is not None else None

    def those(self, ids: Iterable[str]) -> dict[str, ActionRow]:
        """The actions of these ids, by id; one that isn't there is left out."""
        wanted = list(dict.fromkeys(ids))
        found: list[Any] = []
        with self._journal.read() as connection:
            for start in range(0, len(wanted), _MOST_NAMED):
                query = select(actions).where(actions.c.id.in_(wanted[start : start + _MOST_NAMED]))
                found += connection.execute(query).all()
        return {row.id: action_row(row) for row in found}

    def in_states(self, states: Iterable[State], *, kind: str = "") -> tuple[ActionRow, ...]:
        """Oldest first; of one kind, or all. One that can't be read is left out, and so left as it is: of the others
        nothing is wrong."""
        query = select(actions).where(actions.c.state.in_([*states])).order_by(actions.c.number)
        if kind:
            query = query.where(actions.c.kind == kind)
        rows = []
        for found in self._all(query):
            try:
                rows.append(action_row(found))
            except JournalBroken as error:
                log.error("%s", error)
        return tuple(rows)

    def reverts_of(self, target: str) -> tuple[ActionRow, ...]:
        query = select(actions).where(actions.c.target == target).order_by(actions.c.number)
        return tuple(action_row(found) for found in self._all(query))

    def newest(
        self, *, agent: str = "", session: str = "", before: str = "", since: str = "", limit: int = 50
    ) -> tuple[ActionRow, ...]:
        """Newest first; `before` is an action's id, `since` a stamp."""
        query = select(actions).order_by(desc(actions.c.number)).limit(limit)
        if before:
            query = query.where(actions.c.number < self.get(before).number)
        query = Whose(agent=agent, session=session, since=since).narrow(query)
        return tuple(action_row(found) for found in self._all(query))

    def newest_ids(
        self, whose: Whose, *, before: int = 0, until: str = "", risk: int = 0, limit: int = 50
    ) -> tuple[str, ...]:
        """Newest first, and no text is read: `before` is a number, `until` a stamp, `risk` what it has at least."""
        query = whose.narrow(select(actions.c.id)).order_by(desc(actions.c.number)).limit(limit)
        if risk:  # by its index alone: in a row it comes after the texts
            query = query.where(actions.c.number.in_(select(actions.c.number).where(actions.c.risk >= risk)))
        if before:
            query = query.where(actions.c.number < before)
        if until:
            query = query.where(actions.c.created <= until)
        with self._journal.read() as connection:
            return tuple(connection.execute(query).scalars())

    def _all(self, query: Select[Any]) -> Sequence[Any]:
        """All rows at once: an error in the middle of reading would leave the connection with what was there then."""
        with self._journal.read() as connection:
            return connection.execute(query).all()


def action_row(found: Any, *, whole: bool = False) -> ActionRow:
    """A row of the table as it was read. Raises JournalBroken for one that GoEx didn't write (see `check`)."""
    return _row(dict(found._mapping), whole=whole)


def _row(values: dict[str, Any], *, whole: bool) -> ActionRow:
    check(values, whole=whole)
    values["state"], values["detached"] = State(values["state"]), bool(values["detached"])
    return ActionRow(**values)


def request_hashes(intent: str, action: Action | None) -> tuple[str, str]:
    """What is noted of a request when it is received: the hashes of its words and of its action."""
    return _hash(intent), _hash(_text(to_json(action)) if action else "")


def _beginnings(row: ActionRow, noted: dict[str, Any]) -> dict[str, str]:
    """What is left of the texts of an action that never ran, which anybody may ask for: short ones whole, of long ones
    the beginning, whose hash is noted; that of the whole is in an earlier row. A long request or plan isn't kept."""
    changed: dict[str, str] = {}
    if len(row.intent) > _KEPT_INTENT:
        changed["intent"] = f"{row.intent[:_KEPT_INTENT]}…"
        noted["intent_sha256"] = _hash(changed["intent"])
    if len(row.request) > _KEPT_REQUEST:
        changed["request"] = ""
        noted |= {"request_sha256": _hash(""), "request_begins": row.request[:_KEPT_INTENT]}
    if len(row.plan) > _KEPT_PLAN:
        changed["plan"] = ""
    return changed


def _text(value: Any) -> str:
    return canonical(value).decode("utf-8")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
