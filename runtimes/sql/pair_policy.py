"""Policy "pairs": a change comes with statements that are said to take it back; tried on made-up rows before it runs.

Rules: what is said is never believed. Both are checked as any statement is; the pair is tried in a container before
anybody is asked; and where it is used, GoEx compares the rows with those that it kept: an undo that doesn't bring them
back is taken back itself, and the pair is never used again. What takes it back then are the rows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Literal

from policies.errors import Conflict, InvalidInput
from policies.grants import PERSON
from policies.jsonvalue import JsonObject, canonical, parse
from policies.typed_json import to_json
from runtimes.base import Records
from runtimes.sandbox.contract import Sandbox
from runtimes.sql.contract import Job, Program, Ran, Schema, Session
from runtimes.sql.pairs.failed import FailedPairs

_REMEMBERED = 200
_NOTE = "pair"


class PairRefused(InvalidInput):
    """The pair didn't hold where it was tried, or failed before. `difference`: what was seen, of made-up rows alone."""

    code = "pair"

    def __init__(self, message: str, difference: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step="Use --policy reversal: then the rows themselves take it back.")
        self.difference = difference


@dataclass(slots=True)
class Pairs:
    """Tries pairs, one at a time of all agents' and one of the person's, and remembers what came of it."""

    sandbox: Sandbox
    failed: FailedPairs
    runtime: Literal["runc", "runsc"] = "runc"
    _known: OrderedDict[str, JsonObject] = field(default_factory=OrderedDict)
    _agents: asyncio.Lock = field(default_factory=asyncio.Lock)
    _persons: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def proven(self, action: Program, undo: Program, schema: Schema, action_id: str, agent: str) -> JsonObject:
        """What trying the pair showed. Raises PairRefused, Unsupported, Unavailable, InvalidInput."""
        from runtimes.sql.pairs.trial import pair_key, prove  # with the first pair, not with the daemon

        key = pair_key(action, undo, schema)
        if await asyncio.to_thread(self.failed.has, key):
            raise PairRefused("This pair of statements failed before, so it isn't used.")
        async with self._persons if agent == PERSON else self._agents:  # a trial may last, and is before any question
            found = self._known.get(key)
            if found is None:
                proof = await prove(action, undo, schema, self.sandbox, action_id=action_id, runtime=self.runtime)
                if not proof.ok:
                    if proof.changed:  # else nothing is known about it
                        await asyncio.to_thread(self.failed.add, key)
                    raise PairRefused(
                        "Where it was tried on made-up rows, the undo didn't take the change back.", proof.lines
                    )
                found = self._known[key] = to_json(proof)
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class _Under:
    """Records below a name of their own."""

    records: Records
    prefix: str

    def put(self, name: str, data: bytes) -> None:
        self.records.put(f"{self.prefix}.{name}", data)

    def get(self, name: str) -> bytes | None:
        return self.records.get(f"{self.prefix}.{name}")


@dataclass(frozen=True, slots=True)
class PairRevert:
    """Undo and redo of one action that came with its undo. `failed` gets the pair's key when it turns out wrong."""

    job: Job
    undo: Program
    key: str
    failed: FailedPairs

    def state(self, session: Session) -> Literal["done", "undone", "nothing", "unknown"]:
        """What became of the action."""
        if self._undone:
            return "undone"
        found = session.settle(self.job).state
        return "done" if found == "held" else found

    def compare(self, session: Session, verb: Literal["undo", "redo"]) -> Ran:
        """What a revert would do. Only reads. Raises Conflict."""
        if verb == "undo":
            return session.compare(self.job, "undo")
        return session.compare(self._taking_back(session), "undo")

    def revert(self, session: Session, verb: Literal["undo", "redo"]) -> Ran:
        """Bring the before-state or the after-state back. Raises Conflict, having changed nothing. Idempotent."""
        back = self._taking_back(session)
        if verb == "redo":
            again = session.revert(back, "undo")
            self._write(undone=False, turn=self._turn + 1)
            return again
        if self.failed.has(self.key):
            return session.revert(self.job, "undo")
        before = session.settle(back)
        ran = before.ran  # where it ran before a crash
        if before.state != "done":
            session.compare(self.job, "undo")
            ran = session.run(back)
        try:
            found = session.compare(self.job, "undo")
            well = bool(found.notes)  # it is so already
        except Conflict:
            well = False
        if not well:
            self.failed.add(self.key)
            session.revert(back, "undo")
            self._write(undone=False, turn=self._turn + 1)
            raise Conflict(
                "The statements that were to take it back didn't bring the rows back: what they did was rolled back.",
                next_step="Undo it again: now the rows that were kept take it back.",
            )
        self._write(undone=True, turn=self._turn)
        return replace(ran or found, notes=())

    def _taking_back(self, session: Session) -> Job:
        """The undo's statements as a job of their own, whose rows are kept, too."""
        turn = self._turn
        schema = session.schema()
        if schema.hash != self.job.schema_hash:
            raise Conflict("The tables aren't defined any more as they were.", next_step="Look at what changed.")
        # No more rows than the action changed: were there as many and all of those are as before, no other was touched.
        ran = session.settle(self.job).ran
        return replace(
            self.job,
            id=f"{self.job.id}-u{turn}",
            program=self.undo,
            policy="reversal",
            rows=sum(one.rows for one in ran.reached) if ran is not None else self.job.rows,
            records=_Under(self.job.records, f"{_NOTE}{turn}"),
            strategy=session.survey(self.undo, "reversal", self.job.limits).strategy,
        )

    @property
    def _turn(self) -> int:
        """How often it was undone and redone: each undo keeps rows of its own."""
        found = self.job.records.get(_NOTE)
        return int(parse(found)["turn"]) if found is not None else 0

    @property
    def _undone(self) -> bool:
        found = self.job.records.get(_NOTE)
        return found is not None and parse(found)["undone"] is True

    def _write(self, *, undone: bool, turn: int) -> None:
        self.job.records.put(_NOTE, canonical({"undone": undone, "turn": turn}))
