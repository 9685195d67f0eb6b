"""Every engine, every step, everything that can be killed or can fail there: a row each, of as many points as asked."""

from __future__ import annotations

import asyncio
import random
import subprocess
import tempfile
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.crash import mongo, shim
from tests.crash.databases import STEPS, Outcome, Site, Step, perform
from tests.crash.mongo_wire import MongoSite
from tests.crash.points import NOWHERE, Counter, Moment, Point, Victim, run_until
from tests.crash.shim import Calls
from tests.services.mariadb import MariaDb, find_server
from tests.services.nx import Nx
from tests.services.nx import find_binary as find_nx
from tests.services.postgres import Postgres, find_binaries
from tests.support.databases import MariaDbGround, PostgresGround, SqliteGround, session

Report = Callable[[str], None]
T = TypeVar("T")


@dataclass
class Row:
    """One line of the table."""

    runtime: str
    step: str
    killed: str
    points: int = 0
    ended: Tally[str] = field(default_factory=Tally)
    problems: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome, where: str) -> None:
        self.points += 1
        self.ended[outcome.ended] += 1
        self.problems += [f"{self.runtime}, {self.step}, {self.killed}, {where}: {text}" for text in outcome.problems]


@dataclass
class Matrix:
    """Collects the rows. `most` points for each row of a server, `sqlite_most` for each of SQLite."""

    dice: random.Random
    most: int
    sqlite_most: int
    one: bool = False  # of four steps of an engine, one of the things that can be killed there
    report: Report = print
    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # what this machine can't do

    @property
    def points(self) -> int:
        return sum(row.points for row in self.rows)

    @property
    def problems(self) -> list[str]:
        return [problem for row in self.rows for problem in row.problems]

    def row(self, runtime: str, step: str, killed: str) -> Row:
        made = Row(runtime, step, killed)
        self.rows.append(made)
        return made

    def end(self, row: Row) -> None:
        ended = ", ".join(f"{name} {count}" for name, count in sorted(row.ended.items()))
        self.report(f"{row.runtime:12} {row.step:16} {row.killed:28} {row.points:4} points: {ended}")
        for problem in row.problems:
            self.report(f"     ! {problem[:1500]}")

    def chosen(self, count: int, most: int) -> list[int]:
        """Numbers from 1 to `count`: all, or some of them, the last ones (where it is committed) always."""
        if count <= most:
            return list(range(1, count + 1))
        if most < 4:
            return sorted(self.dice.sample(range(1, count + 1), most))
        last = list(range(max(1, count - max(2, most // 3) + 1), count + 1))
        return sorted({*self.dice.sample(range(1, count + 1 - len(last)), most - len(last)), *last})

    def steps(self) -> Sequence[Step]:
        return self.dice.sample(STEPS, 4) if self.one else STEPS

    def some_of(self, kinds: Sequence[T]) -> Sequence[T]:
        return [self.dice.choice(kinds)] if self.one else kinds

    # ---- SQLite

    def sqlite(self, folder: Path) -> None:
        (folder / "db").mkdir(parents=True)
        site = Site("SQLite", SqliteGround(folder / "db"), folder)
        for step in self.steps():
            if not site.possible(step):
                continue
            for kind in self.some_of([None, *_CALLS] if shim.loaded() else [None]):
                if kind is None:
                    self._sqlite_statements(site, step)
                else:
                    self._sqlite_calls(site, step, folder, *kind)
        if not shim.loaded():
            self.missing.append("failing calls (there is no C compiler)")

    def _sqlite_statements(self, site: Site, step: Step) -> None:
        names = site.count(step)
        row = self.row("SQLite", step.name, "process, between statements")
        for number in self.chosen(len(names), self.sqlite_most):
            row.add(site.crash(step, Point(number)), names[number - 1])
        self.end(row)

    def _sqlite_calls(self, site: Site, step: Step, folder: Path, killed: str, how: int, calls: Calls) -> None:
        row = self.row("SQLite", step.name, killed)
        for number in self.chosen(self._count_calls(site, step, folder, calls), self.sqlite_most):
            row.add(site.crash(step, NOWHERE, prepare=partial(shim.arm, folder, number, how, calls)), f"call {number}")
        self.end(row)

    def _count_calls(self, site: Site, step: Step, folder: Path, calls: Calls) -> int:
        before = site.fresh()
        asked, records = site.asked(step)

        def go(counter: Counter) -> None:
            records.counter = None
            with session(site.ground) as at:
                perform(at, asked.planned(), step.verb)
            counter.names.extend(["call"] * shim.counted(calls))

        ended = run_until(go, NOWHERE, prepare=lambda: shim.arm(folder, 0, 0, calls))
        assert ended.said == "returned", ended
        site.clean(asked, before)
        if step.verb == "commit":
            site.ground.empty()
        return ended.names.count("call")

    def small_disk(self, folder: Path) -> None:
        """A real disk that is full: a tmpfs of a megabyte, with less and less room on it."""
        with tmpfs(folder / "small", 1024) as mounted:
            if not mounted:
                self.missing.append("a small disk (tmpfs can't be mounted here)")
                return
            (mounted / "db").mkdir()
            site = Site("SQLite", SqliteGround(mounted / "db"), mounted)
            for step in self.some_of(STEPS):
                if step.verb == "commit" or not site.possible(step):
                    continue
                row = self.row("SQLite", step.name, "disk full (tmpfs)")
                for free in self.chosen(160, min(self.sqlite_most, 20)):
                    row.add(_with_room(site, step, mounted, free - 1), f"{free - 1} KiB free")
                self.end(row)

    # ---- servers

    def postgres(self, folder: Path) -> None:
        if find_binaries() is None:
            self.missing.append("PostgreSQL (it isn't installed)")
            return
        with Postgres(durable=shim.loaded()) as server:
            self._server(Site("PostgreSQL", PostgresGround(server), folder, server))

    def mariadb(self, folder: Path) -> None:
        if find_server() is None:
            self.missing.append("MariaDB (it isn't installed)")
            return
        with (
            MariaDb(fsync=shim.loaded()) as server,
            server.database(user="goex", password=MariaDbGround.password) as name,
        ):
            self._server(Site("MariaDB", MariaDbGround(server, name), folder, server))

    def _server(self, site: Site) -> None:
        """All its victims on one server, which waits for its disk where that can be made to fail."""
        victims = _VICTIMS if shim.loaded() else _VICTIMS[:2]
        for step in self.steps():
            if not site.possible(step):
                continue
            names = site.count(step)
            for victim in self.some_of(victims):
                most = self.most if victim in _VICTIMS[:2] else max(1, self.most // 4)
                row = self.row(site.name, step.name, _KILLED[victim])
                for number in self.chosen(len(names), most):
                    moment: Moment = self.dice.choice(("before", "during", "after"))
                    point = Point(number, moment, victim)
                    outcome = site.crash(step, point, seed=self.dice.randrange(2**32))
                    row.add(outcome, f"{moment} {number} of {len(names)} ({names[number - 1]})")
                self.end(row)

    # ---- MongoDB

    def mongo(self, folder: Path) -> None:
        for transactions in (True, False):
            for step in mongo.STEPS:
                count, goal = asyncio.run(mongo.count(step, transactions))
                row = self.row("MongoDB", step, f"process, {'in a transaction' if transactions else 'one by one'}")
                for number in self.chosen(count, self.sqlite_most):
                    row.add(asyncio.run(mongo.crashed(step, transactions, number - 1, goal)), f"call {number}")
                self.end(row)

    def mongo_wire(self, folder: Path) -> None:
        """A process that is really killed, and a server that is; that server has no transactions."""
        if find_nx() is None:
            self.missing.append("MongoDB over the wire (nx-27017 isn't installed)")
            return
        with Nx() as server:
            site = MongoSite(server, folder)
            site.count("do")
            for step in mongo.STEPS:
                names = site.count(step)
                for victim in self.some_of(_VICTIMS[:2]):
                    row = self.row("MongoDB", step, f"{victim}, over the wire")
                    for number in self.chosen(len(names), self.most):
                        moment: Moment = self.dice.choice(("before", "during", "after"))
                        point = Point(number, moment, victim)
                        outcome = site.crash(step, point, seed=self.dice.randrange(2**32))
                        row.add(outcome, f"{moment} {number} of {len(names)} ({names[number - 1]})")
                    self.end(row)


_KILLED: dict[Victim, str] = {
    "process": "process",
    "server": "server",
    "server's fsync": "server's fsync fails",
    "server's disk": "server's disk is full",
}
_VICTIMS = tuple(_KILLED)
_CALLS = (
    ("process, at a system call", shim.KILL, Calls.WRITE | Calls.SYNC | Calls.OTHER),
    ("fsync fails from then on", shim.SYNC_FAILS, Calls.SYNC),
    ("disk full from then on", shim.DISK_FULL, Calls.WRITE),
)


def _with_room(site: Site, step: Step, disk: Path, free: int) -> Outcome:
    """One step with `free` KiB left on the disk."""
    site.learn(step)
    before = site.fresh()
    asked, records = site.asked(step)
    filler = disk / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 1024)
            except OSError:
                pass
            file.truncate(max(0, file.seek(0, 2) - free * 1024))

    def go(counter: Counter) -> None:
        records.counter = counter
        with session(site.ground) as at:
            perform(at, asked.planned(), step.verb)

    try:
        ended = run_until(go, NOWHERE, prepare=fill)
    finally:
        records.counter = None
        filler.unlink(missing_ok=True)
    return site.judge(asked, step, ended, before)


@contextmanager
def tmpfs(at: Path, kib: int) -> Iterator[Path | None]:
    """A disk of that size, or None where that isn't allowed."""
    at.mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=700", "tmpfs", str(at)], capture_output=True, check=False
    )
    if done.returncode != 0:
        yield None
        return
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def databases(matrix: Matrix) -> None:
    """All engines, one after another."""
    with tempfile.TemporaryDirectory(prefix="goex-crash-") as scratch:
        base = Path(scratch).resolve()
        for name in ("sqlite", "small_disk", "postgres", "mariadb", "mongo", "mongo_wire"):
            getattr(matrix, name)(base / name)
