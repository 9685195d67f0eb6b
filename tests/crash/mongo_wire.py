"""What is crashed with MongoDB, over the wire: each step of an action on a server without transactions, and what has to
hold afterwards. (In transactions every step is crashed on the stand-in, in tests/runtimes/mongo/test_crashes.py: the
server that there is for the wire rolls nothing back when its client dies.)"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from bson import ObjectId

from policies.errors import GoexError
from runtimes.mongo import connection
from runtimes.mongo.connection import connect
from runtimes.mongo.extjson import encode
from runtimes.mongo.job import Job
from runtimes.mongo.operations import lacking_ids, parse, with_ids
from runtimes.mongo.records import id_of, read_state
from runtimes.mongo.stepwise import Stepwise
from runtimes.sql.contract import Limits
from tests.crash.databases import Outcome
from tests.crash.points import NOWHERE, Counter, DiskRecords, Ended, Point, Victim, run_until
from tests.services.nx import Nx
from vault.secret import Secret

LIMITS = Limits(lock_seconds=2.0, seconds=200.0)
PROGRAM = (
    '{"updateMany": "orders", "filter": {"n": {"$gte": 2}}, "update": {"$inc": {"n": 10}, "$set": {"by": "goex"}}}',
    '{"deleteMany": "orders", "filter": {"_id": {"$in": [0, 1]}}}',
    '{"insertMany": "orders", "documents": [{"_id": "new", "x": 1}, {"y": {"b": 1, "a": 2}}]}',
    '{"replaceOne": "orders", "filter": {"_id": 3}, "replacement": {"whole": true}}',
    '{"updateOne": "orders", "filter": {"_id": "up"}, "update": {"$set": {"made": true}}, "upsert": true}',
)
STEPS: dict[str, tuple[str, ...]] = {"do": (), "undo": ("do",), "redo": ("do", "undo")}
Dump = dict[bytes, bytes]


class CountedUnit:
    """A unit each of whose calls is a point."""

    def __init__(self, unit: Any, counter: Counter) -> None:
        self._unit, self._counter = unit, counter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._unit, name)

        @wraps(method)
        def counted(*values: Any, **more: Any) -> Any:
            with self._counter.around(f"{name} {values[0] if values else ''}".strip()):
                made = method(*values, **more)
                return iter(list(made)) if isinstance(made, Iterator) else made

        return counted


@dataclass
class CountedBackend:
    """A backend whose units are counted."""

    backend: Any
    counter: Counter

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def plain(self, *, through: bool = False) -> Any:
        return CountedUnit(self.backend.plain(through=through), self.counter)


@dataclass
class MongoSite:
    """One server with a collection to crash."""

    server: Nx
    folder: Path
    name: str = "mongodb, one by one"
    _known: dict[str, Dump] = field(default_factory=dict)
    _round: int = 0

    def count(self, step: str) -> list[str]:
        """The points of a step, by name; what it leaves is learned."""
        job, records = self._ready(step)
        ended = run_until(lambda counter: self._go(job, records, step, counter), NOWHERE)
        assert ended.said == "returned", ended
        self._known["undone" if step == "undo" else "done"] = self._dump()
        return ended.names

    def crash(self, step: str, point: Point, *, seed: int = 0, prepare: Callable[[], None] = lambda: None) -> Outcome:
        """One point of one step, and what is left of it."""
        job, records = self._ready(step)
        before = self._known["undone"]
        downs: list[bool] = []

        def strike(victim: Victim) -> None:
            self.server.kill()
            downs.append(True)

        try:
            ended = run_until(
                lambda counter: self._go(
                    job, records, step, counter, patience=0.5 if point.victim == "server" else None
                ),
                point,
                strike=strike,
                prepare=prepare,
                seed=seed,
            )
        finally:
            records.counter = None
            if downs:
                self.server.start()
        return self._judge(job, step, ended, before)

    # ---- inside

    def _judge(self, job: Job, step: str, ended: Ended, before: Dump) -> Outcome:
        problems = []
        if ended.said == "failed":
            problems.append(f"an error that isn't ours: {ended.words[-600:]}")
        state = "nothing"
        try:
            if step == "do":
                found = self._at(lambda way: way.settle(job))
                state = ("done" if found.whole else "part") if found.changes else "nothing"
                if ended.said == "returned" and state != "done":
                    problems.append(f"the step returned, but it is {state}")
                if state != "nothing":
                    self._at(lambda way: way.revert(job, "undo"))
                if self._dump() != before:
                    problems.append(f"after {state} undo didn't bring back what was there")
            else:
                self._at(lambda way: way.revert(job, "undo" if step == "undo" else "redo"))
                state = read_state(job.records).at
                goal = before if step == "undo" else self._shape(self._known["done"])
                seen = self._dump() if step == "undo" else self._shape(self._dump())
                if seen != goal:
                    apart = sorted(key for key in seen.keys() | goal.keys() if seen.get(key) != goal.get(key))
                    problems.append(f"run again, {step} didn't finish it: {apart}")
                if step == "redo":
                    self._at(lambda way: way.revert(job, "undo"))
                    if self._dump() != before:
                        problems.append("undo after it didn't bring back what was there")
        except GoexError as error:
            problems.append(f"{type(error).__name__}: {error} {getattr(error, 'difference', '')}")
        problems = [f"{problem} [{ended.said} {ended.words[:200]}]" for problem in problems]
        return Outcome(state, problems)

    @staticmethod
    def _shape(dump: Dump) -> Dump:
        """Without the ids that are made anew for each action."""
        return {key: raw for key, raw in dump.items() if b"\x07_id\x00" not in raw}

    def _ready(self, step: str) -> tuple[Job, DiskRecords]:
        """The collection as it was, and the action with what goes before the step done."""
        self._round += 1
        folder = self.folder / "records"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        records = DiskRecords(folder)
        backend = connect(self.server.account(), Secret(""), LIMITS)
        try:
            unit = backend.plain()
            unit.delete("orders", {})
            unit.insert("orders", [encode({"_id": id, "n": id, "z": {"b": 1, "a": id}}) for id in range(6)])
        finally:
            backend.close()
        self._known["undone"] = self._dump()
        program = parse(PROGRAM)
        ids = [ObjectId() for _ in range(lacking_ids(program))]
        job = Job(id=f"a-{self._round}", program=with_ids(program, ids), rows=20, limits=LIMITS, records=records)
        for verb in STEPS[step]:
            self._at(lambda way, verb=verb: way.run(job) if verb == "do" else way.revert(job, verb))  # type: ignore[misc]
        return job, records

    def _go(
        self, job: Job, records: DiskRecords, step: str, counter: Counter, *, patience: float | None = None
    ) -> None:
        if patience is not None:  # for a server that is away; this is a process of its own
            connection._SECONDS = patience
        records.counter = counter
        backend = connect(self.server.account(), Secret(""), LIMITS)
        way = Stepwise(CountedBackend(backend, counter))
        ran = way.run(job) if step == "do" else way.revert(job, "undo" if step == "undo" else "redo")
        assert ran.whole

    def _at(self, work: Callable[[Stepwise], Any]) -> Any:
        backend = connect(self.server.account(), Secret(""), LIMITS)
        try:
            return work(Stepwise(backend))
        finally:
            backend.close()

    def _dump(self) -> Dump:
        backend = connect(self.server.account(), Secret(""), LIMITS)
        try:
            found = list(backend.plain().find("orders", {}))
        finally:
            backend.close()
        return {id_of(raw): raw for raw in found}
