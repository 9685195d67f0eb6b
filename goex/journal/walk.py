"""Recomputing the chain row by row, and comparing each action, and what is sealed of it, with what its rows say.

Rules: what is hashed is `Row.seal`'s text, put together here without a detour through the general encoder, since this
runs over every row there is; a row whose columns aren't of our types isn't one that we wrote; facts are looked into
only once their row's hash is right.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any

from sqlalchemy import Connection

from goex.journal.head import Mark
from goex.journal.openable import KEY_CHANGES, Opener, Sealed, unopened
from goex.journal.schema import driver as driver_of
from goex.journal.schema import facets
from goex.journal.verify import Assessed, Signatures
from policies.digest import fits
from policies.jsonvalue import canonical

GENESIS = hashlib.sha256(b"goex.v1.journal").digest()

# (number, at, action_id, agent, kind, from_state, to_state, facts, hash), as the table has them
Raw = tuple[Any, ...]

_ROWS = (
    "SELECT number, at, action_id, agent, kind, from_state, to_state, facts, hash FROM journal"
    " WHERE number > ? ORDER BY number"
)
_AT_ONCE = 1000
_NEVER_RAN = ("failed", "denied", "withdrawn")
_RECORDS = "SELECT action_id, name, sealed FROM records"


def body(
    number: int, at: str, action_id: str, agent: str, kind: str, from_state: str, to_state: str, facts: str
) -> bytes:
    """What a row's hash covers after the hash before it: the canonical JSON of its columns as a list.

    Raises TypeError for a column that isn't text, ValueError for text that isn't Unicode.
    """
    q = encode_basestring
    text = f"[{number},{q(at)},{q(action_id)},{q(agent)},{q(kind)},{q(from_state)},{q(to_state)},{q(facts)}]"
    return text.encode("utf-8")


def sealed(previous: bytes, raw: Raw) -> bytes:
    """The hash that a row must have after a row with `previous`; b"" when its columns can't be ours."""
    try:
        return hashlib.sha256(previous + body(*raw[:8])).digest()
    except (TypeError, ValueError):
        return b""


@dataclass(slots=True)
class Said:
    """What the chain says of one action. Texts by their hashes, since there may be very many actions."""

    state: str = ""
    updated: str = ""  # when it came into that state
    digest: str = ""
    number: int = 0
    created: str = ""
    texts: dict[str, str] = field(default_factory=dict)  # of the action's columns: the text itself, or its hash
    risk: int | None = None  # None: not assessed, or by a GoEx that didn't write it down
    services: tuple[str, ...] = ()
    shortened: bool = False  # its request, which was long, isn't kept: it never ran
    read: str = ""  # the digest that its stored plan was found to have


# What a row of these kinds says beside the new state.
_TELLING = frozenset(
    {"receive", "map", "assess", "deny", "expire", "withdraw", "reject", "finish", "part", "fail", "lose"}
)


class Walk:
    """The chain as far as it was recomputed, and what it says of each action."""

    def __init__(self, progress: Callable[[int], None] | None = None) -> None:
        self.end = Mark(0, GENESIS)
        self.signatures = Signatures(whole=True, assessed=self._assessed)
        self._actions: dict[str, Said] = {}
        # By action and name: the hash of what is sealed, and the number of the row that has it.
        self._records: dict[str, dict[str, tuple[str, int]]] = {}
        self._key_changes: list[int] = []  # the numbers of rows
        # Of each action, the records that weren't compared since a row spoke of them; None: all of it.
        self._unread: dict[str, set[str] | None] = {}
        self._all_unread = True
        self._plans_read = False
        self._progress = progress

    def on(self, connection: Connection) -> str:
        """Go on to the newest row. Returns what is wrong, or ""."""
        cursor = driver_of(connection).execute(_ROWS, (self.end.count,))
        try:
            while rows := cursor.fetchmany(_AT_ONCE):
                if problem := self.over(rows):
                    return problem
                if self._progress is not None:
                    self._progress(self.end.count)
        except sqlite3.OperationalError as error:
            if "decode" in str(error):  # text that isn't UTF-8, which we never write
                return f"Row {self.end.count + 1}, or one soon after it, isn't what was written."
            raise
        finally:
            cursor.close()
        return ""

    def over(self, rows: Iterable[Raw]) -> str:
        """Go over the next rows. Returns what is wrong, or ""."""
        count, last = self.end.count, self.end.hash
        try:
            for raw in rows:
                if raw[0] != count + 1:
                    return f"Row {count + 1} is missing: row {raw[0]} follows."
                made = sealed(last, raw)
                if not made or made != raw[8]:
                    return f"Row {raw[0]} isn't what was written."
                count, last = raw[0], made
                if raw[6]:
                    self.step(raw)
                elif raw[4] in ("record", "forget"):
                    self._noted(raw)
                elif raw[4] in KEY_CHANGES:
                    self._key_changes.append(raw[0])
                if self.signatures.concerns(raw[4], raw[2]) and (problem := self._signed(raw)):
                    return problem
        finally:
            self.end = Mark(count, last)
        return ""

    def _noted(self, raw: Raw) -> None:
        if raw[4] == "forget":
            self._unread[raw[2]] = None
            self._records.pop(raw[2], None)
            return
        facts = json.loads(raw[7])
        self._records.setdefault(raw[2], {})[facts["name"]] = facts["sha256"], raw[0]
        names = self._unread.setdefault(raw[2], set())
        if names is not None:
            names.add(facts["name"])

    def _signed(self, raw: Raw) -> str:
        problem = self.signatures.row(raw[0], raw[1], raw[4], raw[2], json.loads(raw[7]))
        return f"Row {raw[0]} {problem}." if problem else ""

    def _assessed(self, action: str) -> Assessed:
        said = self._actions.get(action, Said())
        return Assessed(said.digest, tuple(said.services))

    def step(self, raw: Raw) -> None:
        """Take in a row that changes an action's state, and whose hash is right."""
        said = self._actions.get(raw[2])
        if said is None:
            said = self._actions[raw[2]] = Said()
        said.state, said.updated = raw[6], raw[1]
        if raw[4] not in _TELLING:
            return
        facts = json.loads(raw[7])  # its hash is right, so it is what we wrote
        if raw[4] == "receive":
            said.number, said.created = raw[0], raw[1]
            said.texts |= {"agent": raw[3], "session": facts["session"], "source": facts["source"]}
            said.texts["intent"] = _hash(facts["intent"])  # whole, as an older GoEx wrote it
        elif raw[4] == "assess":
            said.digest = facts.get("digest", "")
            said.risk = facts.get("risk")
            said.services = tuple(facts.get("services", ()))
        for name in ("intent", "request", "outcome"):
            if f"{name}_sha256" in facts:
                said.texts[name] = facts[f"{name}_sha256"]
        said.shortened = said.shortened or "request_begins" in facts
        if "problem" in facts:
            said.texts["problem"] = _hash(canonical(facts["problem"]).decode())

    def compare_records(self, connection: Connection) -> str:
        """Whether what is sealed is what the rows say: all of it at first, which may be long, then those alone of
        which rows spoke since. Its snapshot must be that of `on`. Returns what is wrong, or ""."""
        driver = driver_of(connection)
        missing = {
            (id, name)
            for id, names in self._unread.items()
            for name in self._records.get(id, ())
            if names is None or name in names
        }
        found = driver.execute(_RECORDS) if self._all_unread else _of_each(driver, self._unread)
        try:
            for id, name, kept in found:
                wanted, _ = self._records.get(id, {}).get(name, ("", 0))
                if not isinstance(kept, bytes) or hashlib.sha256(kept).hexdigest() != wanted:
                    return f"What is sealed of action {id} ({name}) isn't what was written."
                missing.discard((id, name))
        except sqlite3.OperationalError as error:
            if "decode" in str(error):
                return "The table of what is sealed holds text that was never written to it."
            raise
        if missing:
            return "What was sealed of action {} ({}) is missing.".format(*min(missing))
        self._all_unread = False
        self._unread.clear()
        return ""

    def unopened(self, connection: Connection, opener: Opener) -> str:
        """What of the records that were compared can't be opened, in words; "" for nothing. Its snapshot must be that
        of `on`."""

        def records() -> Iterator[Sealed]:
            return (
                Sealed(number, id, name) for id, named in self._records.items() for name, (_, number) in named.items()
            )

        return unopened(connection, records, self._key_changes, opener)

    def compare_plans(self, connection: Connection) -> str:
        """Whether each plan that is stored is the one that was decided on: all of them at first, then those alone that
        weren't there yet. Its snapshot must be that of `on`. Returns what is wrong, or ""."""
        driver = driver_of(connection)
        found: Iterable[tuple[Any, ...]]
        if self._plans_read:
            new = [id for id, said in self._actions.items() if said.read != said.digest]
            found = (row for id in new for row in driver.execute(f"{_PLANS} WHERE id = ?", (id,)))
        else:
            found = driver.execute(_PLANS)
        try:
            for id, plan in found:
                said = self._actions.get(id)
                if said is None:
                    continue  # which `compare` tells
                if not _is_plan(plan, said):
                    return f"The plan of action {id} isn't the one that was decided on."
                said.read = said.digest
        except sqlite3.OperationalError as error:
            if "decode" in str(error):
                return "The table of actions holds text that was never written to it."
            raise
        self._plans_read = True
        return ""

    def compare(self, connection: Connection) -> str:
        """Whether each action is what its rows say, and none is missing. Returns what is wrong, or ""."""
        driver, found = driver_of(connection), 0
        touched: dict[str, list[str]] = {}
        try:
            for id, service in driver.execute("SELECT action_id, service FROM touched ORDER BY action_id, service"):
                touched.setdefault(id, []).append(service)
            for row in driver.execute(_ACTIONS):
                id, found = row[0], found + 1
                if not self._left(row):
                    return f"Action {id} isn't in the state that the journal left it in."
                if not _tells(self._actions[id], row, tuple(touched.pop(id, ()))):
                    return f"Action {id} isn't described as the journal says."
        except sqlite3.OperationalError as error:
            if "decode" in str(error):
                return "The table of actions holds text that was never written to it."
            raise
        if touched or found != len(self._actions):
            return "The table of actions doesn't hold the actions that the journal speaks of."
        return ""

    def describes(self, action: object) -> bool:
        """Whether an action, by its attributes, is what the rows that were taken in say of it."""
        row = tuple(getattr(action, name) for name in _COLUMNS)
        return self._left(row) and _tells(self._actions[row[0]], row)

    def _left(self, row: tuple[Any, ...]) -> bool:
        said = self._actions.get(row[0])
        return said is not None and (said.state, said.updated, said.digest) == row[1:4]


def _of_each(driver: sqlite3.Connection, records: Mapping[str, Collection[str] | None]) -> Iterator[tuple[Any, ...]]:
    for id, names in records.items():
        if names is None:
            yield from driver.execute(f"{_RECORDS} WHERE action_id = ?", (id,))
        for name in names or ():
            yield from driver.execute(f"{_RECORDS} WHERE action_id = ? AND name = ?", (id, name))


_COLUMNS = (
    *("id", "state", "updated", "digest", "number", "created", "risk", "agent", "session", "source"),
    *("kind", "target", "detached", "intent", "request", "outcome", "problem", "plan"),
)
_ACTIONS = f"SELECT {', '.join(_COLUMNS)} FROM actions"  # noqa: S608  names of columns
_PLANS = "SELECT id, plan FROM actions"


def _tells(said: Said, row: tuple[Any, ...], services: tuple[str, ...] | None = None) -> bool:
    """`services`: those that the action is found by; None: that isn't looked at."""
    number, created, risk, agent, session, source, kind, target, detached, *texts, plan = row[4:]
    if (number, created) != (said.number, said.created):
        return False
    wanted = said.texts
    if (agent, session, source) != (wanted.get("agent"), wanted.get("session"), wanted.get("source")):
        return False
    for name, text in zip(("intent", "request", "outcome", "problem"), texts, strict=True):
        if name in wanted and (not isinstance(text, str) or _hash(text) != wanted[name]):
            return False
        if name not in wanted and text:
            return False
    if detached not in (0, 1) or not _is_about(kind, target, texts[1], said):
        return False
    if said.risk is None:  # written by an older GoEx: the plan says it, and the digest of that is in the chain
        wanted_risk, wanted_services = facets(plan)
    else:
        wanted_risk, wanted_services = said.risk, said.services
    return risk == wanted_risk and services in (None, wanted_services)


def _is_about(kind: object, target: object, request: str, said: Said) -> bool:
    """Whether an action's kind, and what it takes back, are those of its request, whose hash is right."""
    if not request:
        return target == "" and (kind == "intent" or said.shortened)
    asked = json.loads(request)
    return kind == asked["kind"] and target == (asked["target"] if kind == "revert" else "")


def _is_plan(plan: object, said: Said) -> bool:
    """Whether a stored plan is the one whose digest the chain has; a long one isn't kept of what never ran."""
    if plan == "":
        return not said.digest or said.state in _NEVER_RAN
    return isinstance(plan, str) and fits(plan, said.digest, agent=said.texts.get("agent", ""))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
