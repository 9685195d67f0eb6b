"""What is crashed with databases: each step of an action on each engine, and what has to hold afterwards."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from policies.errors import GoexError, Unsupported
from runtimes.sql.contract import Dialect, Job, Limits, Policy, Session
from tests.contracts.test_sql import _ROWS, _TABLES
from tests.crash import shim
from tests.crash.points import Counter, DiskRecords, Ended, Point, Victim, run_until
from tests.services.mariadb import MariaDb, MariaDbError
from tests.services.postgres import Postgres, PostgresError
from tests.support.databases import Asked, Dump, Ground, session

LIMITS = Limits(lock_seconds=2.0, seconds=200.0)
CHANGE = (
    "DELETE FROM customers WHERE id = 1; UPDATE places SET place = place + 10; INSERT INTO orders (id, customer, total)"
    " VALUES (50, 2, 7); UPDATE orders SET status = 'sent' WHERE id >= 7"
)
HELD = "UPDATE orders SET status = 'held', total = total + 1; DELETE FROM items WHERE orders_id = 7"
DEFINE = "CREATE TABLE more (id INTEGER PRIMARY KEY, what TEXT)"
ALTER = "ALTER TABLE notes ADD COLUMN more INTEGER"


@dataclass(frozen=True, slots=True)
class Step:
    """`earlier` is done first, in peace; then `verb` is what is crashed."""

    name: str
    text: str
    policy: Policy
    verb: str
    earlier: tuple[str, ...] = ()


STEPS = (
    Step("do", CHANGE, "reversal", "do"),
    Step("undo", CHANGE, "reversal", "undo", ("do",)),
    Step("redo", CHANGE, "reversal", "redo", ("do", "undo")),
    Step("hold", HELD, "versioning", "do"),
    Step("undo of held", HELD, "versioning", "undo", ("do",)),
    Step("redo of held", HELD, "versioning", "redo", ("do", "undo")),
    Step("commit of held", HELD, "versioning", "commit", ("do",)),
    Step("define", DEFINE, "reversal", "do"),
    Step("undo of define", DEFINE, "reversal", "undo", ("do",)),
    Step("alter", ALTER, "reversal", "do"),
    Step("undo of alter", ALTER, "reversal", "undo", ("do",)),
)


@dataclass
class Outcome:
    """One point: `ended` as the probe says, and what is wrong."""

    ended: str
    problems: list[str] = field(default_factory=list)


@dataclass
class Site:
    """One engine with a database to crash."""

    name: str
    ground: Ground
    folder: Path
    server: Postgres | MariaDb | None = None
    _base: Dump | None = None
    _known: dict[str, Dump] = field(default_factory=dict)  # what a step leaves, by its text and policy
    _round: int = 0

    # ---- making

    def fresh(self) -> Dump:
        """The shop as it was, made anew only when it isn't."""
        if self._base is not None:
            with contextlib.suppress(Exception):
                if self.ground.dump() == self._base:
                    return self._base
        self.ground.empty()
        self.ground.execute(*_TABLES[self.ground.dialect], *_ROWS)
        found = self.ground.dump()
        assert self._base is None or found == self._base
        self._base = found
        return found

    def asked(self, step: Step) -> tuple[Asked, DiskRecords]:
        """The action of a step, planned, with what goes before it done."""
        self._round += 1
        folder = self.folder / "records"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        records = DiskRecords(folder)
        asked = Asked(self.ground, step.text, step.policy, limits=LIMITS)
        asked.job = replace(asked.plan(), records=records)
        for verb in step.earlier:
            with session(self.ground, LIMITS) as at:
                perform(at, asked.job, verb)
        return asked, records

    def possible(self, step: Step) -> bool:
        """Whether this engine does that at all: what it refuses beforehand can't be crashed."""
        self.fresh()
        try:
            Asked(self.ground, step.text, step.policy, limits=LIMITS).plan()
        except Unsupported:
            return False
        return True

    def count(self, step: Step) -> list[str]:
        """The points of a step, by name. What it leaves is learned, too."""
        before = self.fresh()
        asked, records = self.asked(step)
        ended = run_until(lambda counter: self._go(asked, records, step, counter), Point(0))
        assert ended.said == "returned", ended
        if (
            step.verb == "do" and (step.policy == "reversal" or self.ground.dialect is Dialect.SQLITE)
        ) or step.verb == "commit":
            self._known[step.text] = self.ground.dump()
        self.clean(asked, before)
        return ended.names

    def learn(self, step: Step) -> None:
        """What the action of a step leaves, if that isn't known yet."""
        if step.text in self._known:
            return
        before = self.fresh()
        asked, _ = self.asked(replace(step, earlier=()))
        job = asked.planned()
        with session(self.ground, LIMITS) as at:
            perform(at, job, "do")
        if step.policy == "versioning" and self.ground.dialect is not Dialect.SQLITE:
            with session(self.ground, LIMITS) as at:
                perform(at, job, "commit")
        self._known[step.text] = self.ground.dump()
        self.clean(asked, before)

    def clean(self, asked: Asked, before: Dump) -> None:
        """Take back what is left, by force where it must be."""
        with contextlib.suppress(GoexError), session(self.ground, LIMITS) as at:
            at.revert(asked.planned(), "undo")

    def _go(self, asked: Asked, records: DiskRecords, step: Step, counter: Counter) -> None:
        records.counter = counter
        with session(self.ground, LIMITS) as at:
            perform(at, asked.planned(), step.verb)

    # ---- crashing

    def crash(self, step: Step, point: Point, *, seed: int = 0, prepare: Callable[[], None] = lambda: None) -> Outcome:
        """One point of one step, and what is left of it."""
        self.learn(step)
        before = self.fresh()
        asked, records = self.asked(step)
        switches: list[shim.Switch] = []
        downs: list[bool] = []

        def strike(victim: Victim) -> None:
            if victim == "server":
                assert self.server is not None
                self.server.kill()
                downs.append(True)
                return
            switch = shim.Switch("fsync-fails" if victim == "server's fsync" else "disk-full")
            switch.on()
            switches.append(switch)

        try:
            ended = run_until(
                lambda counter: self._go(asked, records, step, counter),
                point,
                strike=strike,
                prepare=prepare,
                seed=seed,
            )
        finally:
            records.counter = None
            for switch in switches:
                switch.off()
            if self.server is not None and (downs or switches):
                if switches:
                    with contextlib.suppress(Exception):
                        self.server.kill()
                self._start()
        return self.judge(asked, step, ended, before)

    def _start(self) -> None:
        """Start the server. One whose disk failed was just starting itself anew, and a child of that may end last."""
        assert self.server is not None
        for left in reversed(range(10)):
            try:
                self.server.start()
            except (PostgresError, MariaDbError):
                if not left:
                    raise
                with contextlib.suppress(Exception):
                    self.server.kill()
                time.sleep(0.3)
            else:
                return

    def judge(self, asked: Asked, step: Step, ended: Ended, before: Dump) -> Outcome:
        """Settle it anew, and hold what is said against the real data."""
        problems = []
        if ended.said == "failed":
            problems.append(f"an error that isn't ours: {ended.words[-600:]}")
        after = self._known[step.text]
        job = asked.planned()
        try:
            with session(self.ground, LIMITS) as at:
                settled = at.settle(job)
        except GoexError as error:
            return Outcome("no answer", [*problems, f"the probe: {type(error).__name__}: {error}"])
        seen = self.ground.dump()
        where = "before" if seen == before else "after" if seen == after else "neither"
        holds = step.policy == "versioning" and self.ground.dialect is not Dialect.SQLITE
        allowed = {
            "nothing": "before",
            "undone": "before",
            "done": "after",
            "held": "before" if holds else "after",
        }
        if allowed.get(settled.state) != where:
            problems.append(f"said to be {settled.state}, but the data are as {where} it ({settled.evidence})")
        problems += _against_what_was_said(step, ended, settled.state)
        if not problems:
            problems += self._bring_back(step, job, settled.state, before, after)
        problems += self._left_over()
        if problems:
            self._base = None
            with contextlib.suppress(Exception):
                self.ground.empty()
            problems = [f"{problem} [{ended.said} {ended.words[:200]}]" for problem in problems]
        return Outcome(settled.state, problems)

    def _bring_back(self, step: Step, job: Job, state: str, before: Dump, after: Dump) -> list[str]:
        """What is done can be taken back, exactly; what is held can be, or be committed."""
        try:
            with session(self.ground, LIMITS) as at:
                if step.verb == "commit":
                    if state == "held":
                        at.commit(job)
                    if self.ground.dump() != after:
                        return ["what was committed isn't there"]
                    if state == "done":
                        at.commit(job)  # said twice, it is the same
                    self._base = None  # it can't be taken back: made anew
                    self.ground.empty()
                    return []
                if state in ("done", "held"):
                    at.revert(job, "undo")
        except GoexError as error:
            return [f"{state}, but it can't be taken back: {error} {getattr(error, 'difference', '')}"]
        return [] if self.ground.dump() == before else ["undo didn't bring back what was there"]

    def _left_over(self) -> list[str]:
        """Nothing of ours is left that would be in somebody's way."""
        deadline = time.monotonic() + 300
        while True:
            left = list(self._leftovers())
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def _leftovers(self) -> Iterator[str]:
        if self.ground.dialect is Dialect.POSTGRESQL:
            rows = self.ground.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
            if rows:
                yield f"prepared transactions are left: {rows}"
        elif self.ground.dialect is Dialect.MARIADB:
            rows = self.ground.rows("XA RECOVER")
            if rows:
                yield f"prepared transactions are left: {rows}"
        else:
            # A journal that holds nothing to play back stays until somebody writes next: SQLite's own way.
            names = {path.name for path in self.ground.path.parent.iterdir()}  # type: ignore[attr-defined]
            if names - {"shop.db", "shop.db-journal"}:
                yield f"files are left: {sorted(names)}"


def _against_what_was_said(step: Step, ended: Ended, state: str) -> list[str]:
    """A step that came back has said what it did; that has to be true."""
    wanted: dict[tuple[str, str], Any] = {
        ("do", "returned"): ("done", "held"),
        ("do", "refused"): ("nothing",),
        ("undo", "returned"): ("undone", "nothing"),
        ("undo", "refused"): ("done", "held"),
        ("redo", "returned"): ("done",) if step.policy == "reversal" else ("held",),
        ("redo", "refused"): ("undone",),
        ("commit", "returned"): ("done",),
        ("commit", "refused"): ("held", "done"),  # its one effect is a record, and that may have failed at its end
    }
    allowed = wanted.get((step.verb, ended.said))
    if allowed is not None and state not in allowed:
        return [f"the step {ended.said}, but it is {state}"]
    return []


def perform(at: Session, job: Job, verb: str) -> None:
    if verb == "do":
        at.run(job)
    elif verb == "undo":
        at.revert(job, "undo")
    elif verb == "redo":
        at.revert(job, "redo")
    else:
        at.commit(job)
