"""Finding actions and rows: by when, who, on what, how risky, and in which state.

Rules: newest first, in the chain's own order, a page at a time; what is looked for is matched as a value, never as a
pattern; text is looked for as it stands, whatever the case of its ASCII letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from json.encoder import encode_basestring
from typing import Any

from sqlalchemy import ColumnElement, Select, desc, func, or_, select

from goex.journal.actions import ActionRow, action_row
from goex.journal.chain import Journal, Row, stamp
from goex.journal.schema import ROW, actions, journal, touched
from goex.journal.walk import GENESIS
from policies.services import Risk

AT_ONCE = 500  # rows that a walk over many reads at a time: nothing holds the file between


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for; an empty field asks for nothing. `until` itself isn't in it; `before` is a number."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str = ""
    service: str = ""
    risk: Risk | None = None  # at least
    session: str = ""
    state: str = ""
    kind: str = ""
    action_id: str = ""
    text: str = ""
    grants: tuple[str, ...] | None = None  # actions that were allowed on one of these
    before: int = 0
    limit: int = 50

    @property
    def of_actions(self) -> bool:
        """Whether an action's own properties are asked for."""
        return bool(self.service or self.risk or self.session or self.state)


def find_actions(journal_: Journal, wanted: Wanted) -> tuple[ActionRow, ...]:
    """Actions, newest first. Raises JournalBroken for one that GoEx didn't write."""
    with journal_.read() as connection:
        found = connection.execute(_found(select(actions), wanted)).all()
    return tuple(action_row(row) for row in found)


def find_ids(journal_: Journal, wanted: Wanted) -> tuple[str, ...]:
    """The ids of actions, newest first."""
    with journal_.read() as connection:
        return tuple(connection.execute(_found(select(actions.c.id), wanted)).scalars())


def _found(query: Select[Any], wanted: Wanted) -> Select[Any]:
    found = _of_actions(wanted)
    if wanted.agent:
        found.append(actions.c.agent == wanted.agent)
    if wanted.kind:
        found.append(actions.c.kind == wanted.kind)
    if wanted.action_id:
        found.append(actions.c.id == wanted.action_id)
    if wanted.since:
        found.append(actions.c.created >= stamp(wanted.since))
    if wanted.until:
        found.append(actions.c.created < stamp(wanted.until))
    if wanted.text:
        columns = (actions.c.intent, actions.c.request, actions.c.plan, actions.c.outcome, actions.c.problem)
        found.append(or_(*(_holds(column, wanted.text) for column in columns)))
    if wanted.grants is not None:
        named = or_(False, *(func.instr(journal.c.facts, f'"{id}"') > 0 for id in wanted.grants))
        found.append(actions.c.id.in_(select(journal.c.action_id).where(journal.c.kind == "allow", named)))
    if wanted.before:
        found.append(actions.c.number < wanted.before)
    return query.where(*found).order_by(desc(actions.c.number)).limit(wanted.limit)


def find_rows(journal_: Journal, wanted: Wanted) -> tuple[Row, ...]:
    """Rows of the chain, newest first."""
    query = _rows(wanted).order_by(desc(journal.c.number)).limit(wanted.limit)
    if wanted.before:
        query = query.where(journal.c.number < wanted.before)
    with journal_.read() as connection:
        return tuple(Row(*row) for row in connection.execute(query))


def walk_rows(journal_: Journal, wanted: Wanted, until: int) -> Iterator[list[tuple[Row, bytes]]]:
    """Rows up to number `until`, oldest first, some at a time, each with the hash of the row before it.

    Nothing is held between two portions: they may be far apart, and the chain never changes behind its end.
    """
    after = 0
    earlier = journal.alias("earlier")
    whole = _rows(wanted).add_columns(earlier.c.hash.label("previous"))
    whole = whole.outerjoin(earlier, earlier.c.number == journal.c.number - 1)
    while True:
        query = whole.where(journal.c.number > after, journal.c.number <= until)
        with journal_.read() as connection:
            found = connection.execute(query.order_by(journal.c.number).limit(AT_ONCE)).all()
        if not found:
            return
        after = found[-1].number
        yield [(Row(*row[:-1]), GENESIS if row.number == 1 else row.previous or b"") for row in found]


def _rows(wanted: Wanted) -> Select[Any]:
    found: list[ColumnElement[bool]] = []
    if wanted.agent:
        found.append(journal.c.agent == wanted.agent)
    if wanted.kind:
        found.append(journal.c.kind == wanted.kind)
    if wanted.action_id:
        found.append(journal.c.action_id == wanted.action_id)
    if wanted.since:
        found.append(journal.c.at >= stamp(wanted.since))
    if wanted.until:
        found.append(journal.c.at < stamp(wanted.until))
    if wanted.text:
        found.append(_holds(journal.c.facts, wanted.text))
    if wanted.of_actions:
        found.append(journal.c.action_id.in_(select(actions.c.id).where(*_of_actions(wanted))))
    return select(*ROW).where(*found)


def _of_actions(wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.service:
        found.append(actions.c.number.in_(select(touched.c.number).where(touched.c.service == wanted.service)))
    if wanted.risk:
        # By its index alone: in a row it comes after the texts.
        numbers, least = select(actions.c.number), int(wanted.risk)
        if wanted.risk is Risk.READ:  # as nearly all have at least
            found.append(actions.c.number.not_in(numbers.where(actions.c.risk < least)))
        else:
            found.append(actions.c.number.in_(numbers.where(actions.c.risk >= least)))
    if wanted.session:
        found.append(actions.c.session == wanted.session)
    if wanted.state:
        found.append(actions.c.state == wanted.state)
    return found


def _holds(column: Any, text: str) -> ColumnElement[bool]:
    """Whether the column holds the text as it is, or as it is written within JSON."""
    ascii_lower = "".join(char.lower() if char.isascii() else char for char in text)  # as SQLite's lower() does
    forms = dict.fromkeys((ascii_lower, encode_basestring(ascii_lower)[1:-1]))
    return or_(*(func.instr(func.lower(column), form) > 0 for form in forms))
