"""What scripts for an issue tracker are made of: variables between statements, several tables written at once, views
that are written. Done, undone, done again and undone, with every row compared by its bytes each time."""

from __future__ import annotations

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from tests.runtimes.sql.mariadb.support import Base

TRACKER = """
CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, login VARCHAR(40) NOT NULL UNIQUE, locked TINYINT(1) DEFAULT 0);
CREATE TABLE projects (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL, owner INT,
 FOREIGN KEY (owner) REFERENCES users (id) ON DELETE SET NULL);
CREATE TABLE issues (id INT AUTO_INCREMENT PRIMARY KEY, project INT NOT NULL, assignee INT, title VARCHAR(80),
 state ENUM('open','closed') NOT NULL DEFAULT 'open', priority TINYINT NOT NULL DEFAULT 2, place INT,
 changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, slug VARCHAR(90) AS
 (LOWER(REPLACE(title, ' ', '-'))) STORED, CHECK (priority BETWEEN 0 AND 5),
 FOREIGN KEY (project) REFERENCES projects (id) ON DELETE CASCADE,
 FOREIGN KEY (assignee) REFERENCES users (id) ON DELETE SET NULL);
CREATE TABLE comments (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, issue INT NOT NULL, body TEXT NOT NULL,
 FOREIGN KEY (issue) REFERENCES issues (id) ON DELETE CASCADE);
CREATE TABLE clicks (issue INT, at INT);
CREATE VIEW open_issues AS SELECT id, title, state, priority, assignee FROM issues WHERE state <> 'closed';
CREATE VIEW names AS SELECT id, login FROM users;
CREATE VIEW checked AS SELECT id, title, priority FROM issues WHERE priority < 4 WITH CHECK OPTION;
CREATE VIEW renamed AS SELECT id AS number, title FROM issues;
CREATE VIEW owned AS SELECT i.id, i.title, p.name FROM issues i JOIN projects p ON p.id = i.project;
CREATE VIEW counted AS SELECT project, COUNT(*) AS n FROM issues GROUP BY project;
CREATE VIEW chosen AS SELECT id, title FROM issues WHERE id IN (SELECT issue FROM comments);
INSERT INTO users (login, locked) VALUES ('ann', 0), ('bob', 0), ('cyd', 1);
INSERT INTO projects (name, owner) VALUES ('core', 1), ('web', 2), ('old', NULL);
INSERT INTO issues (project, assignee, title, state, priority, changed) VALUES
 (1, 2, 'Crash on start', 'open', 4, '2024-01-01 10:00:00'), (1, NULL, 'Slow query', 'open', 3, '2024-01-02 10:00:00'),
 (2, 3, 'Button', 'closed', 2, '2024-01-03 10:00:00'), (2, 3, 'Login loop', 'open', 5, '2024-01-04 10:00:00'),
 (3, NULL, 'Old bug', 'open', 0, '2019-01-01 00:00:00');
INSERT INTO comments (issue, body) VALUES (1, 'me too'), (1, '+1'), (3, 'done'), (5, 'spam'), (5, 'more');
INSERT INTO clicks VALUES (1, 1), (1, 1), (4, 2);
"""
FORMS = {
    "the key that was counted up": "INSERT INTO projects (name) VALUES ('api'); SET @p = LAST_INSERT_ID();"
    " INSERT INTO issues (project, title) VALUES (@p, 'First'), (@p, 'Second');"
    " SET @i := LAST_INSERT_ID(); INSERT INTO comments (issue, body) VALUES (@i, 'hello'), (@i + 1, 'there')",
    "a value that is looked up": "SET @me = (SELECT id FROM users WHERE login = 'ann'), @least = 3;"
    " UPDATE issues SET assignee = @me WHERE assignee IS NULL AND priority >= @least",
    "into": "SELECT id, owner INTO @p, @o FROM projects WHERE name = 'core';"
    " DELETE FROM issues WHERE project = @p AND NOT assignee <=> @o",
    "places": "SET @place := 0; UPDATE issues SET place = (@place := @place + 10) ORDER BY priority DESC, id",
    "a text with its own collation": "SET @t = 'CRASH ON START'; DELETE FROM issues WHERE title = @t",
    "changed between": "SET @n = 1; UPDATE issues SET priority = @n WHERE id = 1; SET @n = @n + 1;"
    " UPDATE issues SET priority = @n WHERE id = 4; SELECT @n",
    "numbers for what is put in": "SET @n := 100; INSERT INTO clicks (issue, at) SELECT id, (@n := @n + 1) FROM issues",
    "two tables": "DELETE i, c FROM issues i LEFT JOIN comments c ON c.issue = i.id WHERE i.project = 3",
    "two tables, updated": "UPDATE issues i JOIN projects p ON p.id = i.project SET i.priority = 1, p.name ="
    " CONCAT(p.name, '!') WHERE i.state = 'open' AND p.owner IS NOT NULL",
    "two tables among others": "DELETE FROM comments WHERE id = 3; DELETE i, p FROM issues i JOIN projects p ON p.id ="
    " i.project WHERE p.name = 'web'; INSERT INTO projects (id, name) VALUES (2, 'web again')",
    "texts in parts, and times": "UPDATE issues SET title = CONCAT('Bug ' \"in \", N'the ' 'core'), changed = changed +"
    " INTERVAL 1.5 DAY WHERE title = 'Old ' 'bug' OR changed < DATE '2024-01-02' + INTERVAL -1 HOUR",
    "a view": "UPDATE open_issues SET priority = priority + 1 WHERE assignee IS NULL",
    "a view by another name": "UPDATE open_issues AS o SET o.title = CONCAT('[', o.id, '] ', o.title)",
    "rows of a view": "DELETE FROM open_issues WHERE priority = 0",
    "into a view": "INSERT INTO names (login) VALUES ('dan'), ('eve')",
    "a view that checks what it doesn't look at": "UPDATE checked SET title = CONCAT(title, '!') WHERE id < 4",
    "rows of a view that checks": "DELETE FROM checked WHERE title = 'Button'",
    "all that a view shows": "UPDATE names SET login = UPPER(login)",
    "rows from JSON": """INSERT INTO users (id, login) SELECT t.id, t.login FROM JSON_TABLE(
 '[{"id": 3, "login": "cyd2"}, {"id": 9, "login": "new"}]', '$[*]'
 COLUMNS (id INT PATH '$.id', login VARCHAR(40) PATH '$.login')) AS t
 ON DUPLICATE KEY UPDATE login = VALUES(login)""",
    "ignoring what collides": "UPDATE IGNORE users SET login = 'bob' WHERE id <> 3; UPDATE IGNORE users SET login ="
    " 'dan' WHERE locked",
    "a view and a variable": "SET @who = 3; UPDATE open_issues SET assignee = NULL WHERE assignee = @who",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_it_is_taken_back_and_done_again(base: Base, form: str, policy: str) -> None:
    base.run(TRACKER)
    before = base.dump()
    job = base.job(FORMS[form], policy)  # type: ignore[arg-type]
    with base.session() as session:
        session.run(job)
    after = base.dump()
    assert (after != before) == (policy == "reversal")
    for verb, wanted in (("undo", before), ("redo", after), ("undo", before)):
        with base.session() as session:
            session.revert(job, verb)  # type: ignore[arg-type]
        assert base.dump() == wanted
        assert len(base.held()) == (verb == "redo" and policy == "versioning")


@pytest.mark.parametrize(
    ("form", "theirs", "said"),
    [
        ("two tables", "INSERT INTO issues (id, project, title) VALUES (5, 1, 'theirs')", "issues id=5"),
        ("two tables, updated", "UPDATE projects SET name = 'theirs' WHERE id = 2", "projects id=2"),
        ("the key that was counted up", "UPDATE issues SET title = 'theirs' WHERE id = 6", "issues id=6"),
        ("a view", "UPDATE issues SET priority = 5 WHERE id = 2", "issues id=2"),
    ],
)
def test_what_others_did_since_is_left_alone(base: Base, form: str, theirs: str, said: str) -> None:
    base.run(TRACKER)
    job = base.job(FORMS[form])
    with base.session() as session:
        session.run(job)
    base.run(theirs)
    there = base.dump()
    with base.session() as session, pytest.raises(Conflict) as caught:
        session.revert(job, "undo")
    assert any(said in line for line in caught.value.difference)
    assert base.dump() == there


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SET @n = 1; UPDATE issues SET place = (@n := @n + 1) WHERE id > @n", "depends on @n"),
        ("SET @n = 1; DELETE FROM issues WHERE id = (@n := @n + 1)", "depends on @n"),
        ("UPDATE issues SET priority = @n", "@n isn't set in this request"),
        ("UPDATE checked SET priority = 5", "isn't a plain table"),
        ("INSERT INTO checked (id, title) VALUES (9, 'x')", "isn't a plain table"),
        ("UPDATE renamed SET title = 'x'", "isn't a plain table"),
        ("UPDATE owned SET title = 'x'", "isn't a plain table"),
        ("DELETE FROM counted", "isn't a plain table|can't be found"),
        ("UPDATE chosen SET title = 'x'", "isn't a plain table"),
        ("UPDATE open_issues SET place = 1", "no column place"),
        ("DELETE FROM open_issues WHERE project = 1", "no column project"),
        ("UPDATE issues i JOIN clicks k ON k.issue = i.id SET i.priority = 1, k.at = 0", "it has no key"),
        ("DELETE i, k FROM issues i JOIN clicks k ON k.issue = i.id", "it has no key"),
        ("UPDATE users u JOIN issues i ON i.assignee = u.id SET u.id = u.id + 10, i.priority = 1", "told apart"),
    ],
)
def test_what_cant_be_kept_is_refused_beforehand(base: Base, sql: str, said: str) -> None:
    base.run(TRACKER)
    before = base.dump()
    with pytest.raises((Unsupported, InvalidInput), match=said) as caught:
        base.job(sql)
    assert isinstance(caught.value, GoexError) and caught.value.next_step
    assert base.dump() == before


@pytest.mark.parametrize(
    ("view", "refused"),
    [
        ("CREATE VIEW v AS SELECT id, name FROM projects WHERE name = 'core'", False),  # the control
        ("CREATE VIEW v AS SELECT id, name FROM beside.projects WHERE name = 'core'", True),
        ("CREATE VIEW v AS SELECT id, n FROM parted PARTITION (low)", True),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin; CREATE VIEW v AS SELECT id, name FROM projects WHERE name = 'core'",
         False),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin; CREATE VIEW v AS SELECT id, name FROM projects"
         " WHERE LOWER('A') = 'A' OR name = 'core'", True),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin; CREATE VIEW v AS SELECT id, name FROM projects"
         " WHERE IF(id = 1, 'a', 'b') IN ('A')", True),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin; CREATE VIEW v AS SELECT id, name FROM projects"
         " WHERE name = LOWER('CORE')", True),
    ],
)  # fmt: skip
def test_a_view_that_chooses_otherwise_stays_one(base: Base, view: str, refused: bool) -> None:
    """Of another database, of parts of a table, or one that compares texts by another collation than the session."""
    base.run(f"{TRACKER} CREATE TABLE parted (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id)"
             " (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE);"
             " INSERT INTO parted VALUES (1, 1), (20, 2)")  # fmt: skip
    beside = f"{base.name}_beside"
    base.run(f"CREATE DATABASE `{beside}`; CREATE TABLE `{beside}`.projects (id INT PRIMARY KEY, name VARCHAR(40));"
             f" INSERT INTO `{beside}`.projects VALUES (1, 'core')")  # fmt: skip
    try:
        base.run(view.replace("beside.", f"`{beside}`."))
        before, shown = base.dump(), base.run("SELECT * FROM v")
        if not refused:
            assert {use.table for use in base.job("DELETE FROM v").program.statements[0].uses} == {"projects"}
            return
        with pytest.raises(GoexError, match="isn't a plain table"):
            base.job("DELETE FROM v")
        assert (base.dump(), base.run("SELECT * FROM v")) == (before, shown)
    finally:
        base.run(f"DROP DATABASE `{beside}`")


def test_what_a_trigger_does_by_a_variable_is_rehearsed_without_it(base: Base) -> None:
    """Undo comes on another connection, where the variable isn't set."""
    base.run("CREATE TABLE b (id INT PRIMARY KEY, v INT); INSERT INTO b VALUES (1, 1), (2, 2)")
    base.run("CREATE TRIGGER t BEFORE INSERT ON b FOR EACH ROW SET NEW.v = IF(@keep = 1, NEW.v, 777)")
    before = base.dump()
    for sql in (
        "SET @keep = 1; DELETE FROM b WHERE id = 2",
        "SELECT 1 INTO @keep; DELETE FROM b WHERE id = 2",
        "SELECT @keep := 1; DELETE FROM b WHERE id = 2",
    ):
        job = base.job(sql)
        with base.session() as session, pytest.raises(Unsupported, match="triggers of b change rows"):
            session.run(job)
        assert base.dump() == before


def test_what_ignore_leaves_isnt_counted_and_beside_another_table_it_is_refused(base: Base) -> None:
    base.run(
        "CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1), (2);"
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT UNIQUE, FOREIGN KEY (p) REFERENCES p (id));"
        "INSERT INTO c VALUES (1, 1, 1), (2, 1, 2), (3, 2, 5);"
        "CREATE TABLE d (id INT PRIMARY KEY, n INT CHECK (n < 9)); INSERT INTO d SELECT id, n FROM c"
    )
    for sql in (
        "UPDATE IGNORE c JOIN p ON p.id = c.p SET c.p = c.id * c.id",
        "UPDATE IGNORE d JOIN c ON c.id = d.id SET d.n = d.id * d.id",
        "UPDATE IGNORE c JOIN p ON p.id = c.p SET c.n = c.id + 1",
    ):
        with pytest.raises(Unsupported, match="UPDATE IGNORE") as caught:
            base.job(sql)
        assert caught.value.next_step
    before = base.dump()
    for sql in (
        "UPDATE IGNORE c SET n = id + 1",  # one collides
        "UPDATE IGNORE d SET n = id * id",  # one is against the CHECK
        "UPDATE IGNORE c SET p = id",  # one points to nothing
    ):
        job = base.job(sql)
        with base.session() as session:
            session.run(job)
            assert base.dump() != before
            session.revert(job, "undo")
        assert base.dump() == before


def test_a_view_writes_what_it_shows_and_no_more(base: Base) -> None:
    """The view's condition stands beside the statement's own, in brackets."""
    base.run(TRACKER)
    job = base.job("UPDATE open_issues SET priority = 1 WHERE id = 3 OR id = 4")
    assert {use.table for use in job.program.statements[0].uses} == {"issues"}
    with base.session() as session:
        session.run(job)
    assert base.run("SELECT id, priority FROM issues WHERE id IN (3, 4) ORDER BY id") == [(3, 2), (4, 1)]


def test_explain_of_a_write_writes_nothing(base: Base) -> None:
    base.run(TRACKER)
    before = base.dump()
    for sql in (
        "EXPLAIN UPDATE issues SET priority = 1",
        "EXPLAIN DELETE i, c FROM issues i JOIN comments c ON c.issue = i.id",
        "EXPLAIN EXTENDED INSERT INTO users (login) SELECT title FROM issues",
        "EXPLAIN REPLACE INTO users (id, login) VALUES (1, 'x')",
        "EXPLAIN FORMAT=JSON SELECT * FROM issues",
        "ANALYZE FORMAT=JSON SELECT * FROM issues",
        "DESC SELECT * FROM issues",
    ):
        job = base.job(sql)
        assert job.program.reads_only
        with base.session() as session:
            ran = session.run(job)
        assert not ran.reached and ran.results[0].rows
    assert base.dump() == before
    assert base.run("SELECT MAX(id) FROM users") == [(3,)]
