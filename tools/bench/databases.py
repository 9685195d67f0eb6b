"""`sql.reversal_200k.ratio` (PostgreSQL), `….mariadb`, `….sqlite`: an update of 200,000 rows as GoEx runs it under
*reversal*, with the rows before and after it kept, over the plain statement with its commit on the same server.

`sql.hold.added_p50_ms` (PostgreSQL) and `….mariadb`: what it costs more to hold a small change durably than to commit
it: the same action of one row under *versioning* and under *reversal*. `sql.hold.p50_ms` is the whole of it, over the
plain statement with its commit.

On GoEx's side are its sealed records, which are synced to disk one by one; servers and files sync as they do by
default. Connections are there already; checking and asking aren't part of it.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import pymysql

from goex.engine.records import SealedRecords
from goex.journal.chain import Journal, utc_now
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect, Job, Limits, Place, Policy, Session
from runtimes.sql.drivers import driver_of
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres
from tools.bench.measure import Row, Timings, in_turn, row, timed
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

NAME = "sql.reversal_200k.ratio"
ROWS = 200_000
_WARM = 3
LIMITS = Limits(seconds=600.0, image_bytes=2**32)
_ALL = "UPDATE items SET amount = amount + 1 WHERE id > 0"
_ONE = "UPDATE items SET amount = amount + 1 WHERE id = 7"
_TABLE = (
    "CREATE TABLE items (id integer PRIMARY KEY, name varchar(60) NOT NULL, amount integer NOT NULL, note varchar(200))"
)
_NOTE = "a note of an ordinary length, as it is written by hand"


@dataclass
class Ground:
    """One database with its table: GoEx's sessions, and a plain connection."""

    name: str
    session: Session
    open: Callable[[], Session]
    plain: Callable[[str], object]
    database: str

    def job(self, statement: str, policy: Policy, records: Any, id: str, rows: int) -> Job:
        schema = self.session.schema()
        program = check(statement, schema, database=self.database)
        survey = self.session.survey(program, policy, LIMITS)
        return Job(
            id=id,
            program=program,
            policy=policy,
            rows=rows,
            limits=LIMITS,
            records=records,
            schema_hash=schema.hash,
            strategy=survey.strategy,
        )


async def measure(rows: int = ROWS, rounds: int = 7, holds: int = 60) -> tuple[Row, ...]:
    return await asyncio.to_thread(_measure, rows, rounds, holds)


def _measure(rows: int, rounds: int, holds: int) -> tuple[Row, ...]:
    found: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goex-bench-")))
        records = stack.enter_context(sealed_records(folder))
        grounds = [stack.enter_context(make(folder, rows)) for make in (on_postgres, on_mariadb, _on_sqlite)]
        for ground in grounds:
            found.append(asyncio.run(_reversal(ground, records, rows, rounds)))
        for ground in grounds[:2]:
            found += _hold(ground, records, holds)
    return tuple(found)


async def _reversal(ground: Ground, records: Callable[[str], Any], rows: int, rounds: int) -> Row:
    template = ground.job(_ALL, "reversal", records("a-template"), "a-template", 2 * rows)

    async def value() -> None:
        id = f"a-{secrets.token_hex(6)}"
        ran = ground.session.run(replace(template, id=id, records=records(id)))
        assert sum(one.rows for one in ran.reached) == rows

    async def floor() -> None:
        ground.plain(_ALL)

    values, floors = await in_turn(value, floor, rounds=rounds, seconds=60, warm=1)
    name = NAME if ground.name == "postgresql" else f"{NAME}.{ground.name}"
    return Row(
        name=name,
        value=values.p50,
        floor_name=f"the plain statement and its commit, {ground.name}",
        floor=floors.p50,
        p95=values.p95,
        floor_p95=floors.p95,
        rounds=len(values.each),
    )


def _hold(ground: Ground, records: Callable[[str], Any], rounds: int) -> tuple[Row, Row]:
    held = ground.job(_ONE, "versioning", records("a-template"), "a-template", 2)
    made = ground.job(_ONE, "reversal", records("a-template"), "a-template", 2)
    holds: list[float] = []
    commits: list[float] = []
    floors: list[float] = []
    for number in range(_WARM + rounds):
        one, other = (f"a-{secrets.token_hex(6)}" for _ in range(2))
        holding = replace(held, id=one, records=records(one))
        with closing(ground.open()) as session, timed(holds):
            session.run(holding)
        with closing(ground.open()) as session:  # the one that held it may have ended with that
            session.revert(holding, "undo")
        committing = replace(made, id=other, records=records(other))
        with closing(ground.open()) as session, timed(commits):
            session.run(committing)
        with timed(floors):
            ground.plain(_ONE)
        if number < _WARM:
            for each in (holds, commits, floors):
                each.clear()
    end = "" if ground.name == "postgresql" else f".{ground.name}"
    hold, commit, plain = (Timings(tuple(each)) for each in (holds, commits, floors))
    added = Row(
        name=f"sql.hold.added_p50_ms{end}",
        value=hold.p50 - commit.p50,
        floor_name=f"the same action, committed at once, {ground.name}",
        floor=commit.p50,
        p95=hold.p95 - commit.p95,
        floor_p95=commit.p95,
        rounds=rounds,
    )
    return added, row(f"sql.hold.p50_ms{end}", hold, f"the plain statement and its commit, {ground.name}", plain)


@contextmanager
def sealed_records(folder: Path) -> Iterator[Callable[[str], Any]]:
    """Sealed records in a journal of their own, as the daemon keeps them."""
    place = folder / "private"
    place.mkdir(mode=0o700)
    vault = Vault.create(
        place / "vault.db",
        PassphraseProtector(Secret(b"the passphrase of a bench")),
        Secret(b"the approval passphrase of a bench"),
    )
    journal = Journal(place / "state.db", place / "head", utc_now)
    journal.unlock(vault.derive("journal"))
    try:
        yield lambda id: SealedRecords(journal, vault, id, "bench")
    finally:
        journal.close()
        vault.seal()


@contextmanager
def on_postgres(folder: Path, rows: int) -> Iterator[Ground]:
    with Postgres(durable=True) as server:
        made = server.make(_TABLE)
        with made.connect() as plain:
            plain.execute(
                "INSERT INTO items SELECT n, 'item ' || n, n, %s FROM generate_series(1, %s::integer) AS n",
                (_NOTE, rows),
            )
            plain.execute("VACUUM ANALYZE items")
            yield from _ground("postgresql", made.place(), made.secret, plain.execute)


@contextmanager
def on_mariadb(folder: Path, rows: int) -> Iterator[Ground]:
    password = secrets.token_hex(12)
    with MariaDb(fsync=True) as server, server.database(user="bench", password=password) as name:
        plain = pymysql.connect(
            unix_socket=server.socket, user="bench", password=password, database=name, autocommit=True
        )
        with closing(plain), closing(plain.cursor()) as cursor:
            cursor.execute(_TABLE)
            cursor.execute(
                f"INSERT INTO items SELECT seq, concat('item ', seq), seq, %s FROM seq_1_to_{rows}", (_NOTE,)
            )
            place = Place(dialect=Dialect.MARIADB, socket=server.socket, database=name, user="bench", tls="none")
            yield from _ground("mariadb", place, Secret(password), cursor.execute)


@contextmanager
def _on_sqlite(folder: Path, rows: int) -> Iterator[Ground]:
    file = folder / "shop" / "items.db"
    file.parent.mkdir(mode=0o700)
    with closing(apsw.Connection(str(file))) as plain:
        plain.execute(_TABLE)
        with plain:
            texts = ((number, f"item {number}", number, _NOTE) for number in range(1, rows + 1))
            plain.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", texts)
        yield from _ground("sqlite", Place(dialect=Dialect.SQLITE, path=str(file)), Secret(b""), plain.execute)


def _ground(name: str, place: Place, password: Secret, plain: Callable[[str], object]) -> Iterator[Ground]:
    driver = driver_of(place.dialect)

    def opened() -> Session:
        return driver.open(place, password, LIMITS)

    with closing(opened()) as session:
        yield Ground(name=name, session=session, open=opened, plain=plain, database=place.database)
