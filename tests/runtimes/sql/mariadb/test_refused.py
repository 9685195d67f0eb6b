"""What is refused beforehand, with the reason and what would do instead; and nothing is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.errors import GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.checking.functions import MARIADB_SINCE
from runtimes.sql.contract import Policy
from runtimes.sql.mariadb.survey import stays_in_row
from tests.runtimes.sql.mariadb.support import PASSWORD, Base
from tests.services.mariadb import MariaDb


@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY", "CSV"])
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_rows_that_do_not_roll_back(base: Base, engine: str, policy: Policy) -> None:
    base.run(f"CREATE TABLE t (id INT NOT NULL) ENGINE={engine}; INSERT INTO t VALUES (1)")
    for sql in ("DELETE FROM t", "INSERT INTO t VALUES (2)", "UPDATE t SET id = 3"):
        with pytest.raises(Unsupported, match="don't roll back"):
            base.survey(sql, policy)
    assert base.run("SELECT * FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "policy"),
    [
        ("CREATE TABLE n (id INT PRIMARY KEY)", "versioning"),
        ("ALTER TABLE t ADD COLUMN b INT", "versioning"),
        ("DROP TABLE t", "versioning"),
        ("TRUNCATE TABLE up", "versioning"),
        # What tests/contracts/test_sql_accepted.py takes back under reversal stands alone, and loses no rows.
        ("DROP TABLE t", "reversal"),
        ("TRUNCATE TABLE up", "reversal"),
        ("CREATE TABLE n AS SELECT * FROM t", "reversal"),
        ("CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO t VALUES (2)", "reversal"),
        ("ALTER TABLE t ADD COLUMN b INT, DROP COLUMN a", "reversal"),
    ],
)
def test_definitions_commit_at_once(base: Base, sql: str, policy: Policy) -> None:
    base.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1);"
        " CREATE TABLE up (id INT PRIMARY KEY); CREATE TABLE down (id INT, FOREIGN KEY (id) REFERENCES up (id))"
    )
    before = base.dump()
    with pytest.raises(Unsupported, match="at once"):
        base.survey(sql, policy)
    assert base.dump() == before


def test_views_and_sequences_are_not_written(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY); CREATE VIEW v AS SELECT * FROM t; CREATE SEQUENCE s")
    for name in ("v", "s"):
        with pytest.raises((Unsupported, InvalidInput)):
            base.survey(f"DELETE FROM {name}")


def test_a_history_is_held_and_not_reversed(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING; INSERT INTO t VALUES (1, 1)")
    before = base.dump()
    with pytest.raises(Unsupported, match="history") as refused:
        base.survey("UPDATE t SET a = 2")
    assert "versioning" in refused.value.next_step
    job = base.job("UPDATE t SET a = 2", "versioning")
    with base.session() as session:
        session.run(job)
        session = session
    with base.session() as session:
        assert session.settle(job).state == "held"
        session.revert(job, "undo")
        assert session.settle(job).state == "undone"
        with pytest.raises(Unsupported, match="redo"):
            session.revert(job, "redo")
        assert not session.revert(job, "undo").reached
    assert base.dump() == before


TRIGGERS = {
    "after-insert-log": "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
    "after-update-log": "CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
    "after-delete": "CREATE TRIGGER g BEFORE DELETE ON t FOR EACH ROW DELETE FROM log WHERE id = OLD.id",
    "hidden-in-a-call": "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = sneaky(1)",
    "hidden-in-a-comment": "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW BEGIN"
    " /*!50000 INSERT INTO log VALUES (9); */ SET NEW.a = 1; END",
}


@pytest.mark.parametrize("which", sorted(TRIGGERS))
def test_triggers_that_write_elsewhere(base: Base, which: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run(
        "CREATE FUNCTION sneaky(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END"
    )
    with base.server.connect(base.name) as connection, connection.cursor() as cursor:
        cursor.execute(TRIGGERS[which])
    before = base.dump()
    with pytest.raises(Unsupported, match="trigger") as refused:
        base.survey("UPDATE t SET a = 2")
    assert "versioning" in refused.value.next_step
    if which == "hidden-in-a-call":
        with pytest.raises(Unsupported, match="trigger"):
            base.survey("UPDATE t SET a = 2", "versioning")
    assert base.dump() == before


def test_a_trigger_that_writes_is_held_with_its_statement(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run("CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)")
    before = base.dump()
    job = base.job("UPDATE t SET a = 2", "versioning")
    with base.session() as session:
        session.run(job)
    with base.session() as session:
        session.revert(job, "undo")
    assert base.dump() == before
    base.run("CREATE TABLE loud (id INT) ENGINE=MyISAM; DROP TRIGGER g")
    base.run("CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO loud VALUES (NEW.id)")
    with pytest.raises(Unsupported, match="rolled back"):
        base.survey("UPDATE t SET a = 2", "versioning")


def test_triggers_that_stay_in_their_row_are_followed(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), at DATETIME(6)); INSERT INTO t VALUES (1, 'x', NULL)")
    base.run("CREATE TRIGGER u BEFORE UPDATE ON t FOR EACH ROW SET NEW.at = NOW(6), NEW.a = UPPER(NEW.a)")
    base.run("CREATE TRIGGER i BEFORE INSERT ON t FOR EACH ROW SET NEW.a = TRIM(NEW.a)")
    before = base.dump()
    job = base.job("UPDATE t SET a = 'y'")
    with base.session() as session:
        session.run(job)
        assert base.run("SELECT a, at IS NOT NULL FROM t") == [("Y", 1)]
        session.revert(job, "undo")
    assert base.dump() == before


def test_a_trigger_that_spoils_the_way_back_is_found_before_the_commit(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), n INT); INSERT INTO t VALUES (1, 'low', 5)")
    base.run("CREATE TRIGGER i BEFORE INSERT ON t FOR EACH ROW SET NEW.a = UPPER(NEW.a)")
    before = base.dump()
    job = base.job("UPDATE t SET n = 6")
    with base.session() as session, pytest.raises(Unsupported, match="trigger"):
        session.run(job)
    assert base.dump() == before
    assert base.held() == []


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_a_foreign_key_that_nobody_shows(base: Base, mariadb: MariaDb, action: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)")
    base.survey("DELETE FROM t")
    with mariadb.database() as other:
        mariadb.run(
            f"CREATE TABLE h (id INT, FOREIGN KEY (id) REFERENCES {base.name}.t(id) ON DELETE {action});"
            "INSERT INTO h VALUES (1)",
            other,
        )
        with pytest.raises(Unsupported, match="can't see"):
            base.survey("DELETE FROM t")
        assert mariadb.run("SELECT * FROM h", other) == [(1,)]


def test_what_points_here_from_elsewhere_keeps_undo_from_taking_a_row_out(base: Base, mariadb: MariaDb) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    job = base.job("INSERT INTO t VALUES (1, 1)")
    with base.session() as session:
        session.run(job)
        with mariadb.database() as other:
            mariadb.run(
                f"CREATE TABLE h (id INT, FOREIGN KEY (id) REFERENCES {base.name}.t(id)); INSERT INTO h VALUES (1)",
                other,
            )
            before = base.dump()
            with pytest.raises(Exception, match="another database"):
                session.revert(job, "undo")
            assert base.dump() == before
        session.revert(job, "undo")
    assert base.run("SELECT * FROM t") == []


@pytest.mark.promise(75)
def test_triggers_have_to_be_visible(base: Base, mariadb: MariaDb) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    mariadb.run("CREATE OR REPLACE USER few@'%' IDENTIFIED BY '" + PASSWORD + "'")
    mariadb.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {base.name}.* TO few@'%'")
    few = replace(base, user="few")
    with pytest.raises(Unsupported, match="triggers") as refused:
        few.survey("DELETE FROM t")
    assert refused.value.next_step == f"GRANT TRIGGER ON `{base.name}`.* TO `few`@'%'"
    mariadb.run(refused.value.next_step)
    few.survey("DELETE FROM t")


@pytest.mark.promise(71)
@pytest.mark.parametrize(
    "right",
    ["SUPER", "FILE", "PROCESS", "RELOAD", "SELECT", "CREATE USER", "SET USER", "REPLICATION SLAVE", "ALL PRIVILEGES"],
)
def test_users_that_may_too_much(base: Base, mariadb: MariaDb, right: str) -> None:
    mariadb.run("CREATE OR REPLACE USER much@'%' IDENTIFIED BY '" + PASSWORD + "'")
    mariadb.run(f"GRANT ALL ON {base.name}.* TO much@'%'; GRANT {right} ON *.* TO much@'%'")
    with pytest.raises(Unsupported, match="more than GoEx") as refused, replace(base, user="much").session():
        pass
    assert "GRANT SELECT" in refused.value.next_step
    assert PASSWORD not in str(refused.value)


def test_users_that_may_too_much_by_a_role_or_by_everyone(base: Base, mariadb: MariaDb) -> None:
    mariadb.run("CREATE OR REPLACE USER much@'%' IDENTIFIED BY '" + PASSWORD + "'; CREATE OR REPLACE ROLE boss")
    mariadb.run(f"GRANT ALL ON {base.name}.* TO much@'%'; GRANT FILE ON *.* TO boss; GRANT boss TO much@'%'")
    mariadb.run("SET DEFAULT ROLE boss FOR much@'%'")
    with pytest.raises(Unsupported, match="FILE"), replace(base, user="much").session():
        pass
    mariadb.run("DROP ROLE boss; GRANT SELECT ON mysql.* TO PUBLIC")
    try:
        with pytest.raises(Unsupported, match="own tables"), base.session():
            pass
    finally:
        mariadb.run("REVOKE SELECT ON mysql.* FROM PUBLIC")


def test_nobody_and_the_wrong_password(base: Base) -> None:
    with pytest.raises(Unavailable), base.session(replace(base.place, socket="/nowhere/s")):
        pass
    with pytest.raises(Unavailable, match="doesn't let"), base.session(replace(base.place, user="nobody_here")):
        pass
    with pytest.raises(Unavailable), base.session(replace(base.place, database="nothing_here")):
        pass


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("SET NEW.a = 1", True),
        ("BEGIN IF NEW.a > 1 THEN SET NEW.a = LEAST(NEW.a, 5); END IF; END", True),
        ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'", True),
        ("SET NEW.a = 1, foreign_key_checks = 0", False),
        ("SET NEW.a = IF(1, 2, 3), NEW.b = 4", True),
        ("SET sql_log_bin = 0, NEW.a = 1", False),
        ("BEGIN SET @x = 1; END", False),
        ("BEGIN SET NEW.a = 1; SET GLOBAL x = 1; END", False),
        ("SET NEW.a = `other`.`f`(1)", False),
        ("SET NEW.a = 'INSERT INTO x'", True),
        ("-- SET NEW.a\nINSERT INTO x VALUES (1)", False),
        ("CALL p()", False),
        ("SET NEW.a = NEXTVAL(s)", False),
        ("SET NEW.a = other.lower(1)", False),
        ("SET NEW.a = other . `lower` (1)", False),
        ("SET NEW.a = NOW ()", False),
        ("SET NEW.a = LOWER ('A')", True),
        ("SET NEW.a = POINT(1)", False),
        ("SET NEW.a = 1--sneaky(1)", False),
        ("SET NEW.a = 1 -- sneaky(1)", True),
        ("SET NEW.`a'b` = sneaky(1), NEW.`c'` = 1", False),
        ("", True),
    ],
)
def test_what_stays_in_its_row(body: str, stays: bool) -> None:
    assert stays_in_row(body) is stays


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("ANSI_QUOTES", 'SET NEW.a = "sneaky"(1)'),
        ("NO_BACKSLASH_ESCAPES", r"SET NEW.b = '\', NEW.a = sneaky(1), NEW.b = '\'"),
    ],
)
def test_a_trigger_that_reads_otherwise_in_its_own_mode(base: Base, mode: str, body: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT); CREATE TABLE log (id INT)")
    base.run("INSERT INTO t VALUES (1, 1, '')")
    base.run(SNEAKY)
    with base.server.connect(base.name) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET sql_mode = '{mode}'")
        cursor.execute(f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW {body}")
    policies: tuple[Policy, ...] = ("reversal", "versioning")
    for policy in policies:
        with pytest.raises(Unsupported, match="trigger"):
            base.survey("UPDATE t SET id = 1", policy)


SNEAKY = "CREATE FUNCTION sneaky(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END"


@pytest.mark.promise(69)
@pytest.mark.parametrize(
    ("made", "sql"),
    [
        ("any_value(x INT)", "SELECT any_value(1)"),
        ("months_between(x INT, y INT)", "SELECT months_between(1, 2)"),
        ("point(x INT)", "SELECT point(1)"),
        ("polygon()", "SELECT polygon()"),
        ("lower(x INT)", "SELECT lower('A')"),
        ("Point(x INT, y INT)", "UPDATE t SET a = 2 WHERE ST_X(POINT(1, 2)) = 1"),
    ],
)
def test_a_function_that_somebody_made_is_never_called(base: Base, made: str, sql: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run(f"CREATE FUNCTION {made} RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (1); RETURN 1; END")
    with pytest.raises(Unsupported):
        base.job(sql)
    assert base.run("SELECT * FROM log") == []


@pytest.mark.promise(69)
def test_a_function_that_an_older_server_has_not(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT to_char(NOW(), 'YYYY'), add_months(NOW(), 1)"
    base.run("CREATE TABLE t (id INT PRIMARY KEY)")
    base.job(sql)
    monkeypatch.setitem(MARIADB_SINCE, "add_months", (99, 0, 0))  # type: ignore[misc]
    with pytest.raises(Unsupported, match="no function add_months"):
        base.job(sql)


@pytest.mark.promise(75)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = (SELECT MAX(z) FROM v)",
        "INSERT INTO t SELECT z + 5, 9 FROM VV",
        "SELECT * FROM v; UPDATE t SET a = 2",
        "INSERT INTO r VALUES (1, 1)",
    ],
)
def test_a_function_that_a_view_calls_writes_nothing(base: Base, sql: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run(SNEAKY)
    base.run("CREATE VIEW v AS SELECT id, sneaky(id) AS z FROM t; CREATE VIEW VV AS SELECT z FROM v")
    base.run("CREATE VIEW plain AS SELECT id, LOWER(a) AS z FROM t; CREATE TABLE r (id INT PRIMARY KEY, a INT)")
    base.run("CREATE TRIGGER g BEFORE INSERT ON r FOR EACH ROW SET NEW.a = (SELECT MAX(z) FROM VV)")
    policies: tuple[Policy, ...] = ("reversal", "versioning")
    for policy in policies:
        with pytest.raises(Unsupported, match="calls a function that somebody made"):
            base.job(sql, policy)
    with base.session() as session:
        job = base.job("UPDATE t SET a = (SELECT MAX(id) + 4 FROM plain)")
        session.run(job)
        session.revert(job, "undo")
        with pytest.raises(GoexError):  # in a transaction that only reads
            session.run(base.job("SELECT * FROM v"))
    assert base.run("SELECT * FROM log") == []
