"""Statements that ask a database something while they wait to be allowed, by how much work it is to look at them.

Each has a guess in it, `{guess}`, of a secret in another column. The work is counted, never timed: SQLite's own steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from policies.errors import GoexError
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Job, Limits, Program, Survey
from runtimes.sql.drivers import SqliteDriver
from runtimes.sql.sqlite.session import SqliteSession
from tests.support.databases import Kept, SqliteGround
from vault.secret import Secret

RIGHT, WRONG = "violet", "purple"
LIMITS = Limits(lock_seconds=1.0, seconds=200.0)
_MANY = "SELECT count(*) FROM numbers a, numbers b"

# What each asks, where an assessment runs it. All rows of `numbers` are for making a wrong guess cheaper than a right
# one.
STATEMENTS: dict[str, str] = {
    "case": "UPDATE people SET name = name WHERE id = 1 AND"
    f" 0 < CASE WHEN secret = '{{guess}}' THEN ({_MANY}) ELSE 0 END",
    "exists": f"DELETE FROM people WHERE secret = '{{guess}}' AND EXISTS ({_MANY})",
    "recursion": "UPDATE people SET name = name WHERE secret = '{guess}' AND id IN (WITH RECURSIVE c(n) AS (SELECT 1"
    " UNION ALL SELECT n + 1 FROM c WHERE n < 3000) SELECT n FROM c)",
    "json": "UPDATE people SET name = name WHERE secret = '{guess}' AND 5 < (SELECT count(*) FROM json_each"
    "('[1,2,3,4,5,6]') a, json_each('[1,2,3,4,5,6]') b)",
    "pattern": "DELETE FROM people WHERE secret LIKE '{guess}%' AND name || name || name LIKE '%a%b%c%d%e%f%g%'",
    "error": "UPDATE people SET name = name WHERE 1 = CASE WHEN secret = '{guess}' THEN abs(-9223372036854775808)"
    " ELSE 0 END",
    "plain": "DELETE FROM people WHERE secret = '{guess}' AND name <> 'a' AND name <> 'b' AND name <> 'c'",
    "key_and_plain": "DELETE FROM people WHERE id = 1 AND secret = '{guess}' AND name <> 'a' AND name <> 'b'",
    "index": "UPDATE people SET name = 'x' WHERE city >= '{guess}'",
    "insert_select": "INSERT INTO log (said) SELECT name FROM people, numbers WHERE secret = '{guess}'",
    "join": "UPDATE people SET name = 'x' FROM numbers WHERE secret = '{guess}' AND numbers.n > id",
    "with": f"WITH w AS (SELECT id FROM people WHERE secret = '{{guess}}' AND 0 < ({_MANY}))"
    " DELETE FROM people WHERE id IN (SELECT id FROM w)",
    "returning": f"DELETE FROM people WHERE secret = '{{guess}}' AND 0 < ({_MANY}) RETURNING id",
    "upsert": "INSERT INTO people (id, name) SELECT n, 'x' FROM numbers WHERE (SELECT secret FROM people WHERE id = 1)"
    " = '{guess}' ON CONFLICT (id) DO NOTHING",
    "view": "UPDATE people SET name = 'x' WHERE id IN (SELECT id FROM slow WHERE secret = '{guess}')",
    "cascade": f"DELETE FROM people WHERE secret = '{{guess}}' AND 0 < ({_MANY})",
    "rows_together": "; ".join(["UPDATE people SET name = 'x' WHERE id = 1 AND secret = '{guess}'"] * 20),
}
TABLES = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, secret TEXT, city TEXT)",
    "CREATE INDEX by_city ON people (city)",
    "CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES people (id) ON DELETE CASCADE)",
    "CREATE TABLE log (id INTEGER PRIMARY KEY, said TEXT)",
    "CREATE TABLE numbers (n INTEGER)",
    "CREATE VIEW slow AS SELECT people.id, secret FROM people, numbers a, numbers b WHERE a.n = b.n",
    "INSERT INTO people VALUES (1, 'one', 'violet', 'violet'), (2, 'two', 'amber', 'rome'), (3, 'six', 'jade', 'qom')",
    "INSERT INTO pets VALUES (1, 1), (2, 1), (3, 2)",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 120) INSERT INTO numbers SELECT n FROM c",
)


@dataclass
class Scene:
    """One file, and how many steps SQLite made for what GoEx did to it."""

    ground: SqliteGround
    steps: int = field(default=0)

    @contextmanager
    def session(self) -> Iterator[SqliteSession]:
        opened = SqliteDriver().open(self.ground.place, Secret(""), LIMITS)
        assert isinstance(opened, SqliteSession)
        try:
            yield opened
        finally:
            opened.close()

    @contextmanager
    def counted(self, db: apsw.Connection) -> Iterator[None]:
        """Inside, each step counts."""

        def step() -> bool:
            self.steps += 1
            return False

        self.steps = 0
        db.set_progress_handler(step, 1, id="counted")
        try:
            yield
        finally:
            db.set_progress_handler(None, id="counted")

    def assessed(self, name: str, guess: str) -> tuple[Survey, int]:
        """What assessing it found, and in how many steps."""
        with self.session() as session:
            program = self._program(session, name, guess)
            with self.counted(session._connection.db):
                found = session.survey(program, "reversal", LIMITS)
            return found, self.steps

    def ran(self, name: str, guess: str) -> int:
        """In how many steps the person's dry run went, or broke off: the same statement, run over the rows."""
        with self.session() as session:
            program = self._program(session, name, guess)
            schema = session.schema()
            strategy = session.survey(program, "reversal", LIMITS).strategy
            job = Job(
                id="a", program=program, policy="reversal", rows=10**9, limits=LIMITS, records=Kept(),
                schema_hash=schema.hash, strategy=strategy,
            )  # fmt: skip
            with self.counted(session._connection.db):
                try:
                    session.trial(job)
                except GoexError:
                    self.steps += 10**9  # an error is seen, too
            return self.steps

    @staticmethod
    def _program(session: SqliteSession, name: str, guess: str) -> Program:
        return check(STATEMENTS[name].format(guess=guess), session.schema(), database="main")


def scene(folder: Path) -> Scene:
    ground = SqliteGround(folder)
    ground.execute(*TABLES)
    return Scene(ground)
