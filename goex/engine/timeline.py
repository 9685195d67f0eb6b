"""What came after what: whether an action can be taken back by itself, and what it takes to go back to a point.

Rules: an action's place in time is where its effect began: its last `run`, or the `redo` that brought it back. A
later action depends on an earlier one when it changed something, and read or wrote what the earlier one wrote, as far
as their footprints say (`Runtime.footprint`; what can't be known counts as dependent). Then the earlier one isn't
taken back alone, unless the person says so: the comparison before an undo wouldn't see what was only read. What is
taken back is compared all the same, whatever is decided here. While one question is answered each action is read once,
one at a time, with others' calls in between, and none of their texts is kept: there may be very many.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import TYPE_CHECKING

from sqlalchemy import Select, case, func, or_, select

from goex.journal.actions import EVERYBODYS, ActionRow, Whose
from goex.journal.schema import actions, journal, touched
from goex.journal.states import State
from policies.actions import Plan, Revert, UndoClass
from policies.errors import Conflict, GoexError, InvalidInput
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import parse
from runtimes.base import Footprint

if TYPE_CHECKING:
    from goex.engine.core import Core

log = logging.getLogger("goex.engine")

_REVERTIBLE = frozenset({State.DONE, State.PARTIAL, State.UNKNOWN})
IN_EFFECT = frozenset({State.DONE, State.PARTIAL, State.UNKNOWN, State.COMMITTED})
_GOES_ON = frozenset({State.ALLOWED, State.PREPARED, State.RUNNING})  # whatever is taken back meanwhile
MOST_STEPS = 500
_NAMED = 5  # dependents that a refusal names
_KEPT = {State.COMMITTED: ", which was committed,", State.RUNNING: ", which hasn't ended yet,"}
_WHOLE_SERVICE = re.compile(r"calls/[^/]+/[^/]+")  # as `runtimes.rest.footprint` has it
_EFFECTS = ("run", "redo")
_ENDS = ("finish", "part", "lose")  # of an effect
_LIMIT = 64 * 2**20  # our own rows come back whole


@dataclass(frozen=True, slots=True)
class Dependent:
    """A later action (without its texts) that stands on an earlier one, and why, in words."""

    row: ActionRow
    why: str
    runs: str = ""  # what has to end first: itself, or the redo that brings it back


@dataclass(frozen=True, slots=True)
class Step:
    """One action on the way to a point, without its texts. `why` says why it can't be taken, or, of one that belongs to
    others than were asked for, why it has to be."""

    row: ActionRow
    undo_class: UndoClass
    can: bool
    why: str = ""


@dataclass(slots=True)
class _Read:
    """What was read of actions while one question is answered."""

    rows: dict[str, ActionRow] = field(default_factory=dict)  # without their texts
    classes: dict[str, UndoClass] = field(default_factory=dict)
    services: dict[str, frozenset[str]] = field(default_factory=dict)
    changing: dict[str, bool] = field(default_factory=dict)  # whether there may be something that they changed
    footprints: dict[str, Footprint | None] = field(default_factory=dict)  # of those that were asked about, or change

    def reversible(self, row: ActionRow) -> bool:
        return self.classes[row.id] is not UndoClass.IRREVERSIBLE

    def takes_back(self, row: ActionRow) -> bool:
        """Whether there is something that an undo could take back, or would have to."""
        return row.state in _REVERTIBLE and self.classes[row.id] is not UndoClass.NOTHING

    def wrote(self, row: ActionRow) -> bool:
        if not self.changing[row.id]:
            return False
        footprint = self.footprints[row.id]
        return footprint is None or bool(footprint.writes)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Looks at actions in the order of their effects. Nothing here changes anything."""

    core: Core

    async def refuse_moved(self, revert: Revert, target: ActionRow, row: ActionRow) -> None:
        """`refuse_dependent` once more for the revert `row`, of actions whose effect began or ended since it was asked
        for, or goes on: until none did while it looked."""
        if revert.verb == "commit" or revert.regardless:
            return
        read = _Read()
        await self._read(target, read, whole=True)
        after, running = self._last(row.id, ("receive",)), True
        while True:
            newest = self._newest()
            among = self._moved(after, read.services[target.id], running=running) - {target.id}
            if not among:
                return
            for id in among:
                read.rows.pop(id, None)
            await self.refuse_dependent(revert, target, row.agent, read, among)
            after, running = newest, False

    async def refuse_dependent(
        self, revert: Revert, target: ActionRow, agent: str, read: _Read | None = None, among: Set[str] | None = None
    ) -> None:
        """Raise Conflict when a later action depends on the target of an undo or redo that `agent` asks for; `among`
        these alone, of which one may still run. An agent isn't told of others' actions."""
        if revert.verb == "commit" or revert.regardless:
            return
        found = await self.dependents(target, revert.verb, read, running=among is not None, among=among)
        if not found:
            return
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        names = ", ".join(each.row.id for each in found[:_NAMED])
        back = "taken back" if revert.verb == "undo" else "brought back"
        runs = next((each.runs for each in found if each.runs), "")
        if agent != PERSON and any(each.row.agent != agent or agent == ANONYMOUS for each in found):
            raise Conflict(
                f"{target.id} can't be {back} by itself: a later action stands on it.",
                next_step="Ask again later; only the person can take it back alone."
                if runs and revert.verb == "undo"
                else "",
            )
        steps = []
        if revert.verb == "undo" and all(each.row.state is not State.COMMITTED for each in found):
            first = f"Wait until {runs} has ended, then" if runs else "To undo them as well"
            steps.append(f"{first}: goex undo --to {target.id}")
        if agent == PERSON or not steps:
            steps.append(f"To {revert.verb} this one alone: goex {revert.verb} {target.id} --regardless")
        raise Conflict(
            f"{target.id} can't be {back} by itself: later actions may depend on it ({names}{more}).",
            next_step="; ".join(steps),
            difference=tuple(f"{each.row.id}: {each.why}" for each in found),
        )

    async def dependents(
        self,
        row: ActionRow,
        verb: str = "undo",
        read: _Read | None = None,
        *,
        running: bool = False,
        among: Set[str] | None = None,
    ) -> tuple[Dependent, ...]:
        """The actions in effect (`running`: also those that run now, or are being brought back) that came after `row`
        and depend on it, newest first; `among` these alone. For redo: those that came after its undo, unless they were
        in effect when it ran: what it then saw was only brought back."""
        read = read or _Read()
        if row.id not in read.footprints:
            await self._read(row, read, whole=True)
        own = read.footprints[row.id]
        if own is None:
            return ()  # its own runtime says so when it is asked to take it back
        ran = self._last(row.id, _EFFECTS)
        since = ran if verb == "undo" else self._last(row.id, ("undo",))
        found = []
        states = {*IN_EFFECT, State.RUNNING} if running else IN_EFFECT
        back = self._being_brought_back() if running else {}
        async for other in self._later(since, read.services[row.id], read, states, back, among):
            if other.id == row.id or (verb == "redo" and self._was_in_effect(other.id, ran)):
                continue
            if why := self._stands_on(other, own, row, read):
                runs = other.id if other.state is State.RUNNING else back.get(other.id, "")
                found.append(Dependent(other, why, runs))
        return tuple(found)

    async def back(self, chosen: Iterable[ActionRow]) -> tuple[Step, ...]:
        """The way back over `chosen` and whatever else depends on one of them, newest effect first. Raises InvalidInput
        for more than `MOST_STEPS`."""
        read = _Read()
        wanted: dict[str, ActionRow] = {}
        for whole in chosen:
            await asyncio.sleep(0)
            row = await self._read(whole, read)
            goes_on = row.state in _GOES_ON and read.classes[row.id] is not UndoClass.NOTHING
            if goes_on or (read.takes_back(row) and read.wrote(row)):
                wanted[row.id] = row
            if len(wanted) > MOST_STEPS:
                break
        others: dict[str, str] = {}  # ids of those that weren't asked for, and why they have to go
        stays = {row.id: "it can't be taken back" for row in wanted.values() if not read.reversible(row)}
        stays |= {row.id: "it hasn't ended yet" for row in wanted.values() if row.state in _GOES_ON}
        standing: dict[str, tuple[Dependent, ...]] = {}
        queue = [row for row in wanted.values() if row.id not in stays]
        while queue:
            row = queue.pop()
            if len(wanted) > MOST_STEPS:
                raise InvalidInput(
                    f"More than {MOST_STEPS} actions would have to be taken back.",
                    next_step="Choose a later point. Of a task, take back the newest first: goex undo --to TIME",
                )
            standing[row.id] = await self.dependents(row, read=read, running=True)
            for each in standing[row.id]:
                if each.row.id not in wanted and read.takes_back(each.row) and read.reversible(each.row):
                    wanted[each.row.id] = each.row
                    others[each.row.id] = f"it depends on {row.id}: {each.why}"
                    queue.append(each.row)
        order = sorted(wanted.values(), key=lambda row: self._last(row.id, _EFFECTS), reverse=True)
        for row in order:  # newest first: what stands on a row was looked at before it
            held = [each for each in standing.get(row.id, ()) if each.row.id in stays or each.row.id not in wanted]
            if held:
                kept = _KEPT.get(State.RUNNING if held[0].runs else held[0].row.state, "")
                stays[row.id] = f"a later action ({held[0].row.id}){kept} depends on it: {held[0].why}"
        return tuple(
            Step(row, read.classes[row.id], can=row.id not in stays, why=stays.get(row.id) or others.get(row.id, ""))
            for row in order
        )

    async def again(self, chosen: Iterable[ActionRow]) -> tuple[Step, ...]:
        """What was taken back of `chosen`, in the order in which it is brought back: undone last comes first. What came
        since, and one that stays, keep those that would stand on them."""
        read = _Read()
        undone = []
        for row in chosen:
            await asyncio.sleep(0)
            if row.state is State.UNDONE:
                undone.append(await self._read(row, read, whole=True))
        undone.sort(key=lambda row: self._last(row.id, ("undo",)), reverse=True)
        steps: list[Step] = []
        stays: list[ActionRow] = []
        for row in undone[:MOST_STEPS]:
            since = await self.dependents(row, "redo", read)
            why = f"{since[0].row.id} came since: {since[0].why}" if since else self._stood_on(row, stays, read)
            if why:
                stays.append(row)
            steps.append(Step(row, read.classes[row.id], can=not why, why=why))
        return tuple(steps)

    async def kept(self, chosen: Iterable[ActionRow]) -> tuple[Step, ...]:
        """What a commit of `chosen` keeps for good, oldest first."""
        able = []
        for row in chosen:
            await asyncio.sleep(0)
            if row.kind == "revert" or row.state not in (*_REVERTIBLE, State.UNDONE):
                continue
            if (undo_class := _class(row)) is not UndoClass.NOTHING:
                able.append(Step(_without_texts(row), undo_class, can=True))
        return tuple(sorted(able, key=lambda step: step.row.number))

    def since(self, row: ActionRow, whose: Whose = EVERYBODYS) -> tuple[str, ...]:
        """The ids of `row` and of every action whose effect began after its own, that is in effect or was taken back
        since."""
        return self._after(self._last(row.id, _EFFECTS) - 1, whose=whose)

    def after(self, moment: str, whose: Whose = EVERYBODYS) -> tuple[str, ...]:
        """The ids of every action whose effect began at or after that moment (a stamp)."""
        query = select(func.min(journal.c.number)).where(journal.c.at >= moment)
        with self.core.journal.read() as connection:
            number = connection.execute(query).scalar()
        return self._after(number - 1, whose=whose) if number is not None else ()

    # ---- inside

    def _last(self, id: str, kinds: tuple[str, ...]) -> int:
        """The number of the action's newest row of these kinds; 0 when it has none."""
        query = select(func.max(journal.c.number)).where(journal.c.action_id == id, journal.c.kind.in_(kinds))
        with self.core.journal.read() as connection:
            return int(connection.execute(query).scalar() or 0)

    def _newest(self) -> int:
        with self.core.journal.read() as connection:
            return int(connection.execute(select(func.max(journal.c.number))).scalar() or 0)

    def _moved(self, number: int, services: Iterable[str], *, running: bool) -> set[str]:
        """The ids of the actions that touched one of the services, and whose effect, or what takes it back or brings it
        back, began or ended after that row; `running`: or goes on now."""
        about = case((actions.c.kind == "revert", actions.c.target), else_=actions.c.id)
        moved = select(journal.c.action_id).where(journal.c.number > number, journal.c.kind.in_((*_EFFECTS, *_ENDS)))
        goes_on = (actions.c.state == State.RUNNING,) if running else ()
        query = select(about).where(or_(actions.c.id.in_(moved), *goes_on))
        if services:
            query = query.where(about.in_(_touching(services)))
        with self.core.journal.read() as connection:
            return set(connection.execute(query).scalars())

    def _being_brought_back(self) -> dict[str, str]:
        """What a redo brings back now, and which does."""
        running = self.core.actions.in_states({State.RUNNING}, kind="revert")
        return {row.target: row.id for row in running if row.reverts()[0] == "redo"}

    def _was_in_effect(self, id: str, number: int) -> bool:
        """Whether the action was in effect when that row was written."""
        query = (
            select(journal.c.kind)
            .where(journal.c.action_id == id, journal.c.kind.in_((*_EFFECTS, "undo")), journal.c.number < number)
            .order_by(journal.c.number.desc())
            .limit(1)
        )
        with self.core.journal.read() as connection:
            return connection.execute(query).scalar() in _EFFECTS

    def _after(self, number: int, services: Iterable[str] = (), whose: Whose = EVERYBODYS) -> tuple[str, ...]:
        """The ids of the actions whose effect began after that row, newest first: all that ran, or those that touched
        one of the services; never what took others back. Two actions without a service in common can't meet."""
        newest = func.max(journal.c.number)
        query = (
            select(journal.c.action_id)
            .join(actions, actions.c.id == journal.c.action_id)
            .where(journal.c.kind.in_(_EFFECTS), journal.c.number > number, actions.c.kind != "revert")
            .group_by(journal.c.action_id)
            .order_by(newest.desc())
        )
        if services:
            query = query.where(journal.c.action_id.in_(_touching(services)))
        with self.core.journal.read() as connection:
            return tuple(connection.execute(whose.narrow(query)).scalars())

    async def _later(
        self,
        number: int,
        services: Iterable[str],
        read: _Read,
        states: Set[State],
        back: Iterable[str] = (),
        among: Set[str] | None = None,
    ) -> AsyncIterator[ActionRow]:
        """Those that are on their way `back`, and the actions of `_after` that are in one of these states, without
        their texts; `among` these alone."""
        await asyncio.sleep(0)
        for id in dict.fromkeys((*back, *self._after(number, services))):
            if among is not None and id not in among:
                continue
            if (row := read.rows.get(id)) is None:
                await asyncio.sleep(0)
                found = self.core.actions.find(id, EVERYBODYS)
                if found is None:
                    continue
                row = await self._read(found, read)
            if not services or row.state in states or id in back:
                yield row

    async def _read(self, row: ActionRow, read: _Read, *, whole: bool = False) -> ActionRow:
        """Note what is looked at of a row, and return it without its texts. `whole`: its footprint, too, where it
        changed nothing."""
        if row.id not in read.rows:
            plan = _plan(row)
            read.classes[row.id] = _class_of(plan)
            read.services[row.id] = frozenset(need.service for need in plan.needs) if plan else frozenset()
            read.changing[row.id] = read.classes[row.id] is not UndoClass.NOTHING and not untouched(row)
            read.rows[row.id] = _without_texts(row)
            if whole or read.changing[row.id]:
                read.footprints[row.id] = await self._footprint(row, plan)
        return read.rows[row.id]

    @staticmethod
    def _stands_on(other: ActionRow, own: Footprint, row: ActionRow, read: _Read) -> str:
        """Why `other`, which is later, depends on what `own` wrote; "" when it doesn't."""
        if not read.changing[other.id]:
            return ""
        footprint = read.footprints[other.id]
        if footprint is None:
            return "what it read and wrote isn't known"
        if not footprint.writes:
            return ""
        reads, writes = footprint.reads, footprint.writes
        if other.state is State.RUNNING:  # what it named: whoever runs all the time would keep all from an undo
            reads, writes = (frozenset(filterfalse(_WHOLE_SERVICE.fullmatch, paths)) for paths in (reads, writes))
        if place := meeting(writes, own.writes):
            sure = place in writes and place in own.writes
            return f"both {'' if sure else 'may have '}changed {_words(place)}"
        if place := meeting(reads, own.writes):
            return f"it could read {_words(place)}, which {row.id} changed"
        return ""

    def _stood_on(self, row: ActionRow, stays: Iterable[ActionRow], read: _Read) -> str:
        """Why a row can't be brought back when these aren't; "" when it can."""
        for earlier in stays:
            own = read.footprints[earlier.id]
            if own is None or (why := self._stands_on(row, own, earlier, read)):
                return f"{earlier.id}, which stays, came before it" + ("" if own is None else f": {why}")
        return ""

    async def _footprint(self, row: ActionRow, plan: Plan | None) -> Footprint | None:
        if plan is None:
            return None
        try:
            return await self.core.runtime_of(plan.action).footprint(plan, self.core.context(row))
        except GoexError:
            return None
        except Exception as error:  # noqa: BLE001  no other action's undo may fail for it
            log.error("What %s read and wrote can't be told: %s", row.id, type(error).__name__)
            return None


def _touching(services: Iterable[str]) -> Select[tuple[str]]:
    """The ids of the actions that touched one of them."""
    return select(touched.c.action_id).where(touched.c.service.in_(services))


def meeting(some: Set[str], others: Set[str]) -> str:
    """A path of one side that is at, above or below a path of the other, the deeper of the two; "" when none is."""
    some, others = ({path.rstrip("/") for path in paths} for paths in (some, others))
    for one, other in ((some, others), (others, some)):
        for path in sorted(one):
            if any(above in other for above in _upwards(path)):
                return path
    return ""


def _upwards(path: str) -> Iterator[str]:
    """The path itself, and each one above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _words(path: str) -> str:
    """A footprint's path as a person reads it."""
    kind, _, rest = path.partition("/")
    if kind == "files":
        return f"/{rest}"
    if kind == "db":
        database, _, table = rest.partition("/")
        return f"{table} in {database}" if table else database
    return rest


def _class(row: ActionRow) -> UndoClass:
    return _class_of(_plan(row))


def _class_of(plan: Plan | None) -> UndoClass:
    return plan.undo_class if plan is not None else UndoClass.IRREVERSIBLE


def _without_texts(row: ActionRow) -> ActionRow:
    return replace(row, intent="", request="", plan="", outcome="", problem="")


def untouched(row: ActionRow) -> bool:
    """Whether it is known that the action changed nothing, whatever it might have."""
    return bool(row.outcome) and parse(row.outcome, limit=_LIMIT).get("touched") is False


def _plan(row: ActionRow) -> Plan | None:
    try:
        return row.the_plan()
    except GoexError:
        return None
