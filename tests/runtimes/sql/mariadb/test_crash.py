"""The server dies, or the connection does, at every round trip and at every note: nothing lost, nothing doubled.

`Point` counts them. At number N either the server is killed (-9, and started again) before it is asked, or its answer
is lost after it did what it was asked, or GoEx itself dies: then its connection stays open for a while, as a killed
process's may. Whatever happened, `settle` says what the rows show, twice the same, and all of it can be taken back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest

from policies.errors import GoexError
from runtimes.sql.contract import Doubtful, Job, Policy, Session
from runtimes.sql.drivers import MariaDbDriver
from runtimes.sql.mariadb import errors, settle
from runtimes.sql.mariadb.wire import ServerError, Wire
from tests.runtimes.sql.mariadb.support import PASSWORD, Base, Notes
from tests.services.mariadb import MariaDb, find_server
from vault.secret import Secret

How = Literal["server", "answer", "goex", "disk"]
HOWS: tuple[How, ...] = ("answer", "server", "goex", "disk")
EVERY = 20  # of so many points one

TABLES = """
CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(20)); CREATE TABLE c (id INT PRIMARY KEY, p INT,
 FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE);
INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO c VALUES (1, 1), (2, 1), (3, 2);
"""
SQL = "DELETE FROM p WHERE id = 1; INSERT INTO p VALUES (7, 'n'); UPDATE p SET s = 'u' WHERE id > 1"


class Killed(BaseException):
    """GoEx's process ended here."""


class Point:
    """Counts round trips and notes, and strikes at one."""

    def __init__(self, base: Base, at: int, how: How) -> None:
        self.base, self.at, self.how, self.count, self.left = base, at, how, 0, []  # type: ignore[var-annotated]

    def here(self) -> bool:
        self.count += 1
        return self.count == self.at

    def run(self, wire: Wire, real: Any, asked: tuple[Any, ...]) -> Any:
        if not self.here():
            return real(*asked)
        if self.how == "server":
            self.base.server.restart()
            return real(*asked)
        real(*asked)
        if self.how == "goex":
            raise Killed
        wire.drop()
        raise ServerError(2013, errors.lost())

    def put(self, records: Notes, name: str, data: bytes) -> None:
        struck = self.here()
        if struck and self.how == "disk":
            raise OSError(28, "No space left on device")
        Notes.put(records, name, data)
        if struck and self.how == "goex":
            raise Killed
        if struck and self.how == "server":
            self.base.server.restart()


class Struck(Notes):
    point: Point

    def put(self, name: str, data: bytes) -> None:
        self.point.put(self, name, data)


def struck(base: Base, job: Job, point: Point, kept: list[Session]) -> tuple[Session, Job]:
    """A session and a job that meet the point."""
    session = MariaDbDriver().open(base.place, Secret(PASSWORD), base.limits)
    kept.append(session)
    wire: Wire = session._wire  # type: ignore[attr-defined]
    for name in ("run", "lines"):
        real = getattr(wire, name)
        setattr(wire, name, lambda *asked, real=real: point.run(wire, real, asked))
    records = Struck()
    records.kept, records.order, records.point = job.records.kept, job.records.order, point  # type: ignore[attr-defined]
    return session, replace(job, records=records)


@pytest.fixture(scope="module")
def frail() -> Iterator[MariaDb]:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb() as server:
        yield server


@pytest.fixture
def base(frail: MariaDb) -> Iterator[Base]:
    with frail.database(user="goex", password=PASSWORD) as name:
        yield Base(frail, name, "goex")


def points(step: str, how: How, every: int) -> list[int]:
    last = {"run": 60, "undo": 32, "commit": 8, "rollback": 9, "redo": 36}[step]
    every = min(every, last // 2)  # a commit and a rollback are short
    return [number for number in range(1, last) if (number - 1 + HOWS.index(how) * 3) % every == 0]


CASES = [
    (policy, step, how)
    for policy in ("reversal", "versioning")
    for step in (("run", "undo") if policy == "reversal" else ("run", "commit", "rollback", "redo"))
    for how in HOWS
]


@pytest.mark.promise(78)
@pytest.mark.parametrize(("policy", "step", "how"), CASES)
def test_every_point(base: Base, policy: Policy, step: str, how: How, thorough: bool) -> None:
    base.run(TABLES)
    before = base.dump()
    reached = False
    for at in points(step, how, 1 if thorough else EVERY):
        job = base.job(SQL, policy)
        if step != "run":
            with base.session() as session:
                session.run(job)
        if step == "redo":
            with base.session() as session:
                session.revert(job, "undo")
        point, kept = Point(base, at, how), []  # type: ignore[var-annotated]
        said: BaseException | None = None
        try:
            session, meeting = struck(base, job, point, kept)
            if step == "run":
                session.run(meeting)
            elif step == "commit":
                session.commit(meeting)
            else:
                session.revert(meeting, "redo" if step == "redo" else "undo")
        except (GoexError, OSError, Killed) as error:
            said = error
        reached = reached or point.count >= at
        after_strike(base, job, policy, step, said, before, at)
        for one in kept:
            one.close()
        assert base.held() == []
        assert base.dump() == before, (step, how, at)
    assert reached


def after_strike(
    base: Base, job: Job, policy: Policy, step: str, said: BaseException | None, before: dict[str, list[str]], at: int
) -> None:
    """What is there has to be one of the two states, and `settle` has to say which; then everything is undone."""
    with base.session() as session:
        found = session.settle(job)
        assert session.settle(job).state == found.state
        assert found.state != "unknown", (step, at, found.evidence)
        now = base.dump()
        changed = now != before
        if found.state == "held":
            assert policy == "versioning"
            assert not changed
            assert len(base.held()) == 1
            session.commit(job)
            assert base.dump() != before
        else:
            assert base.held() == []
            assert changed == (found.state == "done"), (step, at, found.state, said)
        # An error that isn't doubtful says that nothing was touched.
        if step == "run" and said is not None and not isinstance(said, Doubtful | Killed):
            assert found.state == "nothing", (at, said)
        if step == "run" and said is None:
            assert found.state in ("done", "held")
        if step == "redo":
            assert found.state == "held" if said is None else found.state in ("held", "undone")
        if found.state in ("done", "held"):
            session.revert(job, "undo")
        assert base.dump() == before
        if found.state == "undone":
            assert not session.revert(job, "undo").reached


@pytest.mark.promise(77)
def test_held_rows_are_named_as_ours_after_a_restart(base: Base, thorough: bool) -> None:
    base.run(TABLES)
    before = base.dump()
    held = base.job("UPDATE c SET p = 3 WHERE id = 3", "versioning")
    for verb in ("run", "undo", "redo"):
        with base.session() as session:
            session.run(held) if verb == "run" else session.revert(held, verb)  # type: ignore[arg-type]
    for restarted in (False, True):
        if restarted:
            base.server.restart()
        for number, sql in enumerate(
            (
                "UPDATE c SET p = 2 WHERE id = 3",
                "DELETE FROM c",  # it waits while its rows are being read
                "UPDATE c JOIN p ON p.id = c.p SET c.p = 1",
                "DELETE FROM p WHERE id = 2",  # what is held pointed to it
            )
        ):
            policies = ("reversal", "versioning")
            for policy in policies if thorough else (policies[(number + restarted) % 2],):
                with base.session() as session, pytest.raises(GoexError, match=held.id) as caught:
                    session.run(base.job(sql, policy))  # type: ignore[arg-type]
                assert caught.value.code == "conflict" and held.id in caught.value.next_step
    with base.session() as session:
        session.revert(held, "undo")
    assert base.dump() == before and base.held() == []


@pytest.mark.promise(77)
def test_a_rollback_of_what_was_held_outlives_a_kill_right_after_it(thorough: bool) -> None:
    """With a server that really writes: it flushes its log at a commit, and for a rollback only once a second."""
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb(fsync=True) as server, server.database(user="goex", password=PASSWORD) as name:
        own = Base(server, name, "goex")
        own.run(TABLES)
        before = own.dump()
        for _ in range(3 if thorough else 1):
            job = own.job(SQL, "versioning")
            with own.session() as session:
                session.run(job)
            with own.session() as session:
                session.revert(job, "undo")
            server.kill()
            server.start()
            assert own.held() == []
            assert own.dump() == before


class Unnoted(Notes):
    """Records of a process that dies when it would note how its statement ended."""

    def put(self, name: str, data: bytes) -> None:
        if b'"committed"' in data:
            raise Killed
        super().put(name, data)


DEFINED = """
CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(20), n INT CHECK (n > 0), KEY by_s (s));
CREATE TABLE c (id INT PRIMARY KEY AUTO_INCREMENT, p INT, t TEXT, FOREIGN KEY (p) REFERENCES p(id)) COMMENT 'it''s';
INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 2); INSERT INTO c VALUES (1, 1, 'x'), (2, 1, 'y');
"""


@pytest.mark.sampled(5)
@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("CREATE TABLE more (id INTEGER PRIMARY KEY, what TEXT)", "CREATE TABLE more (id BIGINT PRIMARY KEY)"),
        ("CREATE TABLE more (a VARCHAR(9) CHARACTER SET latin1 DEFAULT 'x', KEY (a), CHECK (a <> ''))", ""),
        ("CREATE TABLE more LIKE p", "CREATE TABLE more LIKE c"),
        ("ALTER TABLE c ADD COLUMN more INT", "ALTER TABLE c ADD COLUMN more INT NOT NULL DEFAULT 3"),
        ("ALTER TABLE p RENAME COLUMN n TO m", "ALTER TABLE p RENAME COLUMN n TO o"),
        ("ALTER TABLE p MODIFY COLUMN s VARCHAR(40)", "ALTER TABLE p MODIFY COLUMN s VARCHAR(50)"),
        ("CREATE INDEX by_n ON p (n)", "CREATE INDEX by_n ON p (n, s)"),
        ("DROP INDEX by_s ON p", "ALTER TABLE p DROP COLUMN s"),
        ("ALTER TABLE p RENAME TO q", ""),
        ("ALTER TABLE c RENAME TO q", ""),
        ("ALTER TABLE c RENAME COLUMN p TO q", "ALTER TABLE c RENAME COLUMN p TO r"),
        (
            "CREATE VIEW v AS SELECT * FROM p WHERE n > 1 ORDER BY s",
            "CREATE DEFINER='goex'@'%' VIEW v AS SELECT * FROM p WHERE n > 2 ORDER BY s",
        ),
        (
            "CREATE VIEW v (a, v) AS SELECT id, CONCAT(s, 'it''s') FROM p UNION SELECT 1, 'x'",
            "CREATE VIEW v (a, v) AS SELECT id, CONCAT(s, 'it''s') FROM p UNION SELECT 1, 'x'",  # of somebody else's
        ),
        (
            "ALTER TABLE p ADD CONSTRAINT k FOREIGN KEY (ID) REFERENCES c (Id) ON DELETE RESTRICT ON UPDATE NO ACTION",
            "ALTER TABLE p ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES c (id) ON DELETE CASCADE ON UPDATE NO ACTION",
        ),
        (
            "ALTER TABLE c ADD CONSTRAINT `k``k` FOREIGN KEY (id) REFERENCES c (id)",
            "ALTER TABLE c ADD CONSTRAINT `k``k` FOREIGN KEY (id) REFERENCES p (id)",
        ),
        (
            "CREATE TABLE more (id INT PRIMARY KEY REFERENCES p (id), o INT, CONSTRAINT k FOREIGN KEY (o) REFERENCES c"
            " (id) ON DELETE SET NULL, FOREIGN KEY (o) REFERENCES more (id))",
            "CREATE TABLE more (id INT PRIMARY KEY REFERENCES p (id), o INT, CONSTRAINT k FOREIGN KEY (o) REFERENCES c"
            " (id) ON DELETE CASCADE, FOREIGN KEY (o) REFERENCES more (id))",
        ),
    ],
)
def test_a_definition_of_which_nobody_lived_to_note_the_end(base: Base, sql: str, other: str) -> None:
    """It is done where the table is as was foreseen, nothing where it is as before, and else nobody claims to know."""
    base.run(DEFINED)
    before = base.dump()
    for meanwhile in ("", other) if other else ("",):
        job = replace(base.job(sql), records=Unnoted())
        with base.session() as session, pytest.raises(Killed):
            session.run(job)
        if meanwhile:
            base.run(undone(base, sql))
            base.run(meanwhile)
        kept = Notes()
        kept.kept, kept.order = job.records.kept, job.records.order  # type: ignore[attr-defined]
        job = replace(job, records=kept)
        with base.session() as session:
            assert session.settle(job).state == session.settle(job).state == ("unknown" if meanwhile else "done")
            if not meanwhile:
                assert session.revert(job, "undo").reached
                assert base.dump() == before
                assert session.settle(job).state == "undone"
                assert session.revert(job, "redo").reached
                assert session.revert(job, "undo").reached
        assert not base.run("SHOW TABLES LIKE 'goex%'")


def undone(base: Base, sql: str) -> str:
    """What takes one of the statements back by hand."""
    if sql.startswith("CREATE TABLE"):
        return "DROP TABLE more"
    if sql.startswith("CREATE VIEW"):
        return "DROP VIEW v"
    return {
        "ALTER TABLE c REN": "ALTER TABLE c RENAME COLUMN q TO p",
        "ALTER TABLE p ADD": "ALTER TABLE p DROP FOREIGN KEY k",
        "ALTER TABLE c ADD": f"ALTER TABLE c DROP {'COLUMN more' if 'COLUMN' in sql else 'FOREIGN KEY `k``k`'}",
        "ALTER TABLE p REN": "ALTER TABLE p RENAME COLUMN m TO n",
        "ALTER TABLE p MOD": "ALTER TABLE p MODIFY COLUMN s VARCHAR(20)",
        "CREATE INDEX by_n": "DROP INDEX by_n ON p",
        "DROP INDEX by_s O": "CREATE INDEX by_s ON p (s)",
    }[sql[:17]]


class Unbegun(Notes):
    """Records of a process that dies right before its statement."""

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        raise Killed


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("CREATE VIEW v AS SELECT id FROM p", "nothing"),
        ("ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES p (id)", "nothing"),
        ("CREATE TABLE more (id INT PRIMARY KEY REFERENCES p (id))", "nothing"),
        ("ALTER TABLE p MODIFY COLUMN s VARCHAR(20)", "unknown"),  # it is defined after it as it was before
    ],
)
def test_a_definition_that_was_about_to_be_made(base: Base, sql: str, state: str) -> None:
    base.run(DEFINED)
    job = replace(base.job(sql), records=Unbegun())
    with base.session() as session, pytest.raises(Killed):
        session.run(job)
    with base.session() as session:
        assert session.settle(job).state == session.settle(job).state == state


@pytest.mark.sampled(4)
@pytest.mark.promise(78)
@pytest.mark.parametrize("ran", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT id FROM p",
        "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES p (id)",
        "CREATE TABLE more (id INT PRIMARY KEY REFERENCES p (id))",
        "DROP TABLE c",
    ],
)
def test_a_server_killed_at_the_moment_of_a_definition(base: Base, sql: str, ran: bool) -> None:
    base.run(DEFINED)
    before = defined(base)
    job = base.job(sql)
    with base.session() as session:
        wire = session._wire  # type: ignore[attr-defined]
        real = wire.run

        def run(text: str) -> Any:
            if not text.startswith(sql[:11]):
                return real(text)
            if ran:
                real(text)
            base.server.restart()
            raise ServerError(2013, errors.lost())

        wire.run = run
        with pytest.raises(GoexError) as caught:
            session.run(job)
        assert isinstance(caught.value, Doubtful)
    with base.session() as session:
        assert session.settle(job).state == session.settle(job).state == ("done" if ran else "nothing")
        assert (defined(base) != before) == ran
        if ran:
            assert session.revert(job, "undo").reached
            assert session.settle(job).state == "undone"
        assert defined(base) == before


def defined(base: Base) -> list[str]:
    """How each table and view is defined."""
    return list(base.definitions().values())


def test_what_a_look_at_a_view_was_cut_off_at_is_dropped_by_the_next(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.run(DEFINED)
    records = Unnoted()
    job = replace(base.job("CREATE VIEW v AS SELECT id FROM p"), records=records)
    with base.session() as session, pytest.raises(Killed):
        session.run(job)
    job = replace(job, records=Notes(dict(records.kept)))
    with base.session() as session:
        wire = session._wire  # type: ignore[attr-defined]
        real = wire.run

        def cut(sql: str) -> Any:
            if sql.startswith("DROP VIEW") and base.run("SHOW TABLES LIKE 'goex%'"):
                raise Killed
            return real(sql)

        monkeypatch.setattr(wire, "run", cut)
        with pytest.raises(Killed):
            session.settle(job)
    assert base.run("SHOW TABLES LIKE 'goex%'")
    with base.session() as session:
        assert session.settle(job).state == "done"
    assert not base.run("SHOW TABLES LIKE 'goex%'")


@pytest.mark.promise(78)
@pytest.mark.parametrize("again", [False, True])
def test_an_undo_whose_commit_is_under_way_is_ended_before_it_is_judged(
    base: Base, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup holds the commit up; whoever asked for it is gone, and this machine's clock was set."""
    base.run(TABLES)
    before = base.dump()
    job = base.job(SQL)
    with base.session() as session:
        session.run(job)
        if again:
            session.revert(job, "undo")
            session.revert(job, "redo")
    after = base.dump()
    ended: list[BaseException] = []

    def undo() -> None:
        try:
            with base.session() as session:
                session.revert(job, "undo")
        except GoexError as error:
            ended.append(error)

    lock = base.server.connect(base.name)
    cursor = lock.cursor()
    for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"):
        cursor.execute(f"BACKUP STAGE {stage}")
    running = threading.Thread(target=undo)
    running.start()
    try:
        until = time.monotonic() + 300
        while not base.run("SELECT 1 FROM information_schema.processlist WHERE user = 'goex' AND info = 'COMMIT'"):
            assert time.monotonic() < until
            time.sleep(0.02)
        now = time.time
        monkeypatch.setattr("time.time", lambda: now() + 5)
        with base.session() as session:
            state = session.settle(job).state
    finally:
        cursor.execute("BACKUP STAGE END")
        lock.close()
        running.join(300)
    assert state == "done" and base.dump() == after and len(ended) == 1
    with base.session() as session:
        assert session.settle(job).state == "done" and session.revert(job, "undo").reached
    assert base.dump() == before


def test_a_server_is_known_by_when_it_started(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    with base.session() as session:
        wire = session._wire  # type: ignore[attr-defined]
        first = settle.started(wire)
        assert abs(first - time.time()) < 3600
        monkeypatch.setattr("time.time", lambda: 0.0)
        time.sleep(1.1)
        assert settle.started(wire) == first
