"""One step of an action, done in a child process that is killed at a chosen point; its server may be killed instead.

A point is a moment between two things that a step does: a record is written, a statement goes to a database, a call
changes a file. A child is forked for each point, so nothing that it knew is there afterwards. The child counts its
points; at the wanted one it ends itself with -9, or asks its parent to kill the server (or to spoil its disk) and goes
on, and then what it says is part of what is checked.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import apsw
import psycopg
import pymysql.connections

from policies.errors import ExitStatus, GoexError, Unavailable

Moment = Literal["before", "during", "after"]
Victim = Literal["process", "server", "server's fsync", "server's disk"]
Said = Literal["killed", "returned", "refused", "doubtful", "failed"]


@dataclass(frozen=True, slots=True)
class Point:
    """Where something happens. `number` counts from 1; 0 never comes: the step runs through, and is counted."""

    number: int
    moment: Moment = "before"
    victim: Victim = "process"


NOWHERE = Point(0)


class Counter:
    """Counts the points of the process that it is in."""

    def __init__(self, point: Point, strike: Callable[[], None], seed: int) -> None:
        self.names: list[str] = []
        self._point, self._strike = point, strike
        self._dice = random.Random(seed)
        self._lock = threading.RLock()
        self._deep = 0

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """A step: its own steps inside don't count."""
        with self._lock:
            self._deep += 1
            outer = self._deep == 1
        try:
            if outer:
                self._reach(name)
            yield
            if outer and len(self.names) == self._point.number and self._point.moment == "after":
                self._strike()
        finally:
            self._deep -= 1

    def single(self, name: str) -> None:
        """A step whose end isn't seen."""
        with self._lock:
            if self._deep == 0:
                self._reach(name)

    def _reach(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) != self._point.number:
            return
        if self._point.moment == "before":
            self._strike()
        elif self._point.moment == "during":
            threading.Thread(target=self._soon, args=(self._dice.random() * 0.003,), daemon=True).start()

    def _soon(self, seconds: float) -> None:
        time.sleep(seconds)
        self._strike()


@dataclass
class DiskRecords:
    """Records as files, each whole or not there. What it does is counted."""

    folder: Path
    counter: Counter | None = None

    def put(self, name: str, data: bytes) -> None:
        with self.counter.around(f"record {name}") if self.counter else nullcontext():
            try:
                self._write(name, data)
            except OSError as error:
                raise Unavailable("What undo needs can't be kept.") from error

    def _write(self, name: str, data: bytes) -> None:
        part = self.folder / f"{name}.part"
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self.folder / name)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def get(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None


def watch(counter: Counter) -> None:
    """Count every statement of SQLite that writes, and every round trip to a PostgreSQL or MariaDB, in this process."""

    def traced(connection: apsw.Connection) -> None:
        def trace(_: Any, sql: str, __: Any) -> bool:
            if not sql.lower().lstrip().startswith(("select", "pragma", "explain")):
                counter.single(sql[:60])
            return True

        connection.exec_trace = trace

    apsw.connection_hooks.append(traced)

    waiting: Any = psycopg.Connection
    plain_wait = waiting.wait

    def wait(self: Any, *values: Any, **more: Any) -> Any:
        with counter.around("round trip"):
            return plain_wait(self, *values, **more)

    waiting.wait = wait

    asking: Any = pymysql.connections.Connection
    plain_query = asking.query

    def query(self: Any, sql: Any, *values: Any, **more: Any) -> Any:
        with counter.around(str(sql)[:60]):
            return plain_query(self, sql, *values, **more)

    asking.query = query


@dataclass
class Ended:
    """What became of the child. `names` are the points that it passed, where it lived to tell."""

    said: Said
    words: str = ""
    names: list[str] = field(default_factory=list)
    struck: bool = False


def run_until(
    step: Callable[[Counter], None],
    point: Point,
    *,
    strike: Callable[[Victim], None] = lambda victim: None,
    prepare: Callable[[], None] = lambda: None,
    seed: int = 0,
    seconds: float = 300.0,
) -> Ended:
    """Run `step` in a child. `strike` is called here when a server is to be hit; `prepare` in the child, first."""
    ask_read, ask_write = os.pipe()
    answer_read, answer_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ask_read)
            os.close(answer_write)
            _child(step, point, prepare, ask_write, answer_read, seed)
        finally:
            os._exit(70)
    os.close(ask_write)
    os.close(answer_read)
    heard = bytearray()
    timer = threading.Timer(seconds, lambda: os.kill(pid, signal.SIGKILL))
    timer.start()
    struck = False
    try:
        while part := os.read(ask_read, 65536):
            heard += part
            if b"\x01" in heard:
                heard = heard.replace(b"\x01", b"")
                struck = True
                strike(point.victim)
                with suppress(BrokenPipeError):  # it has ended meanwhile
                    os.write(answer_write, b"1")
    finally:
        timer.cancel()
        os.close(ask_read)
        os.close(answer_write)
        _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Ended("killed", struck=True)
    said, _, rest = heard.decode(errors="replace").partition("\n")
    words, _, names = rest.partition("\x02")
    kinds: dict[str, Said] = {"returned": "returned", "refused": "refused", "doubtful": "doubtful"}
    return Ended(kinds.get(said, "failed"), words, names.split("\x03") if names else [], struck)


def _child(
    step: Callable[[Counter], None],
    point: Point,
    prepare: Callable[[], None],
    ask: int,
    answer: int,
    seed: int,
) -> None:
    def strike() -> None:
        if point.victim == "process":
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(ask, b"\x01")
        os.read(answer, 1)

    counter = Counter(point, strike, seed)
    watch(counter)
    said, words = "returned", ""
    try:
        prepare()
        step(counter)
        counter.single("end")
    except GoexError as error:
        said = "doubtful" if error.exit_status is ExitStatus.UNKNOWN else "refused"
        words = f"{type(error).__name__}: {error}"
    except BaseException:
        said, words = "failed", traceback.format_exc()
    names = "\x03".join(name.replace("\n", " ") for name in counter.names)
    os.write(ask, f"{said}\n{words}\x02{names}".encode())
    os._exit(0)
