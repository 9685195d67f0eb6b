"""What is refused beforehand, with the reason and what would do instead; and nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.checking.functions import MARIADB_SINCE
from runtimes.sql.contract import Policy
from runtimes.sql.mariadb import errors
from runtimes.sql.mariadb.trigger_text import stays_in_row
from runtimes.sql.mariadb.wire import Wire
from tests.policies.test_http_heads import said
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
        # What tests/contracts/test_sql_accepted.py takes back under reversal stands alone.
        ("TRUNCATE TABLE up", "reversal"),
        ("CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO t VALUES (2)", "reversal"),
        ("ALTER TABLE t ADD COLUMN b INT; UPDATE up SET id = 1", "reversal"),
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
    base.run(
        "CREATE TABLE t (id INT PRIMARY KEY); CREATE VIEW v AS SELECT id, COUNT(*) AS n FROM t GROUP BY id;"
        " CREATE SEQUENCE s"
    )
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
    base.run("CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id + LENGTH(CURRENT_USER()))")
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


@pytest.mark.parametrize("letter", ["\u00e9", "\u20ac", "$", "1"])
def test_names_are_read_from_their_first_letter(base: Base, letter: str) -> None:
    """`\u00e9abs` is somebody's function, not the server's `abs`, and `\u00e9table` a table that doesn't roll back."""
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run(SNEAKY.replace("sneaky", f"{letter}abs"))
    base.run(f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = {letter}abs(NEW.a)")
    base.run(f"CREATE TABLE {letter}log (id INT) ENGINE=MyISAM; CREATE TABLE u (id INT PRIMARY KEY)")
    base.run(f"CREATE TRIGGER h AFTER INSERT ON u FOR EACH ROW INSERT INTO {letter}log VALUES (1)")
    with pytest.raises(Unsupported, match="writes elsewhere"):
        base.survey("UPDATE t SET a = 2")
    for held in ("UPDATE t SET a = 2", "INSERT INTO u VALUES (1)"):
        with pytest.raises(Unsupported, match="rolled back"):
            base.survey(held, "versioning")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "trigger",
    [
        "SET NEW.b = 'a\\\\', NEW.a = sneaky('1')",
        "SET NEW.b = CONCAT('`', (SELECT MAX(id) FROM through), '`')",
        "INSERT INTO u VALUES (1)",
        "INSERT INTO unseen VALUES (1)",
        "INSERT IGNORE unseen SET id = 1",
        "UPDATE v, unseen SET n = 1",
        "UPDATE v JOIN unseen SET n = 1",
        "DELETE unseen FROM v JOIN unseen",
        "REPLACE .`unseen` VALUES (1)",
    ],
)
def test_what_a_trigger_leads_to_is_followed(base: Base, trigger: str) -> None:
    """A string with a backslash, of which the server tells another; a view between two quotes; triggers of what is
    written; a table that GoEx's user doesn't see."""
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT); CREATE TABLE log (id INT) ENGINE=MyISAM")
    base.run("INSERT INTO t VALUES (1, 1, ''); CREATE TABLE u (id INT); CREATE TABLE v (id INT)")
    base.run(SNEAKY)
    base.run("CREATE VIEW through AS SELECT sneaky(1) AS id")
    base.run("CREATE TRIGGER h AFTER INSERT ON u FOR EACH ROW INSERT INTO log VALUES (1)")
    base.run("CREATE TABLE unseen (id INT, n INT) ENGINE=MyISAM")
    base.run(f"REVOKE ALL PRIVILEGES ON `{base.name}`.* FROM goex@'%'")
    for seen in ("t", "u", "v", "log", "through"):
        base.run(f"GRANT ALL PRIVILEGES ON `{base.name}`.{seen} TO goex@'%'")
    base.run(f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW {trigger}")
    for policy in ("reversal", "versioning"):
        with pytest.raises(Unsupported):
            base.survey("UPDATE t SET a = 2", policy)


def test_a_trigger_that_writes_what_rolls_back_is_held(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE u (id INT PRIMARY KEY, n INT)")
    base.run("INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1, 1), (7, 1)")
    base.run(
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW BEGIN DECLARE x INT; SELECT n INTO x FROM u WHERE id = 1"
        " FOR UPDATE; INSERT INTO u (id) VALUES (1) ON DUPLICATE KEY UPDATE n = x + 1; DELETE FROM u WHERE id = 7; END"
    )
    base.run("CREATE TRIGGER h BEFORE UPDATE ON u FOR EACH ROW SET NEW.n = NEW.n + 1")
    before = base.dump()
    job = base.job("UPDATE t SET a = 2", "versioning")
    with base.session() as session:
        session.run(job)
    with base.session() as session:
        session.revert(job, "undo")
    assert base.dump() == before


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


def refused_by_a_trigger(base: Base, signal: str, sql: str) -> tuple[str, str, str, int]:
    """All that is told when a trigger of t's does that for a row that holds a secret."""
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40)); INSERT INTO t VALUES (1, 'top-secret')")
    with base.server.connect(base.name) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW BEGIN DECLARE said VARCHAR(900) DEFAULT '';"
            f" DECLARE n, i INT DEFAULT 1; {signal}; END"
        )
    job = base.job(sql, "versioning")
    with base.session() as session, pytest.raises(GoexError) as refused:
        session.run(job)
    assert base.run("SELECT a FROM t") == [("top-secret",)]
    told = refused.value
    assert not getattr(told, "difference", ())
    return told.message, told.next_step, told.code, int(told.exit_status)


TOLD = (errors.refused().message, errors.refused().next_step, errors.refused().code, int(errors.refused().exit_status))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "number", [1020, 1054, 1062, 1064, 1114, 1142, 1146, 1205, 1213, 1227, 1290, 1305, 1317, 1644, 1969, 2013, 4999]
)
def test_what_a_trigger_says_with_a_number_of_the_servers_is_told_nobody(base: Base, number: int) -> None:
    signal = (
        "SET said = CONCAT('Unknown column ''', OLD.a, ''' in ''top_secret'' of ', OLD.a);"
        f" SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = said"
    )
    assert refused_by_a_trigger(base, signal, "UPDATE t SET a = 'new' WHERE id = 1") == TOLD


def test_the_number_that_a_trigger_makes_of_a_row_is_told_nobody(base: Base) -> None:
    signal = (
        "SET n = 256 * ASCII(OLD.a) + ASCII(SUBSTR(OLD.a, 2));"
        " SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = n, MESSAGE_TEXT = 'x'"
    )
    assert refused_by_a_trigger(base, signal, "UPDATE t SET a = 'new' WHERE id = 1") == TOLD


def test_a_trigger_chooses_no_words_of_the_statement(base: Base) -> None:
    words = " ".join(f"p{place}_{code:02x}" for place in range(1, 11) for code in (0x2D, *range(0x61, 0x7B)))
    signal = (
        "WHILE i <= LENGTH(OLD.a) DO"
        " SET said = CONCAT(said, '''p', i, '_', LOWER(HEX(SUBSTR(OLD.a, i, 1))), ''''), i = i + 1; END WHILE;"
        " SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1054, MESSAGE_TEXT = said"
    )
    assert refused_by_a_trigger(base, signal, f"UPDATE t SET a = 'new' WHERE id = 1 AND '{words}' <> ''") == TOLD


def test_what_no_trigger_can_say_is_told_in_words_where_another_table_has_one(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)")
    base.run("CREATE TABLE other (id INT); CREATE TRIGGER g BEFORE UPDATE ON other FOR EACH ROW SET NEW.id = 1")
    with base.session() as session, pytest.raises(GoexError, match="unique"):
        session.run(base.job("INSERT INTO t VALUES (1, 2)"))


@pytest.mark.parametrize(
    ("sql", "fires"),
    [
        ("UPDATE t SET a = 2", True),
        ("UPDATE `t` SET a = 2", True),
        ("UPDATE shop.t SET a = 2", True),
        ("UPDATE other, T SET a = 2", True),
        ("INSERT INTO t VALUES (1, 1)", False),
        ("INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 2", True),
        ("REPLACE INTO t VALUES (1, 1)", True),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 2", True),
        ("DELETE FROM t FOR PORTION OF p FROM 1 TO 2", True),
        ("DELETE FROM t", False),
        ("UPDATE blog_post SET a = 2", False),
        ("UPDATE t2 SET at = 2", False),
        ("UPDATE /*!50000t*/ SET a = 2", True),
        ("UPDATE größe SET a = 2", True),
        ("UPDATE `a-b` SET a = 2", True),
    ],
)
def test_a_statement_fires_what_stands_for_its_kind_on_a_table_that_it_names(sql: str, fires: bool) -> None:
    wire: Any = SimpleNamespace(triggered=frozenset({("t", "UPDATE"), ("a-b", "UPDATE")}))
    assert Wire._fires(wire, sql) is fires


@pytest.mark.promise(73)
def test_a_unique_value_that_is_taken_is_told_where_there_are_triggers_too(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(9), at DATETIME, UNIQUE (k, s))")
    base.run("INSERT INTO t VALUES (1, 1, 'a', NULL), (2, NULL, 'b', NULL)")
    base.run("CREATE TRIGGER u BEFORE INSERT ON t FOR EACH ROW SET NEW.at = NEW.at")
    job = base.job("UPDATE t SET k = 5")
    with base.session() as session:
        session.run(job)
        base.run("INSERT INTO t VALUES (9, 1, 'A', NULL)")
        with pytest.raises(Conflict, match="A unique value of a row that would come back is another row's"):
            session.revert(job, "undo")
        base.run("DELETE FROM t WHERE id = 9")
        session.revert(job, "undo")
    assert base.run("SELECT id, k FROM t ORDER BY id") == [(1, 1), (2, None)]


def test_who_may_hold_the_rows_is_told_where_a_trigger_may_have_spoken(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)")
    base.run("CREATE TRIGGER i BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a")
    held = base.job("UPDATE t SET a = 2", "versioning")
    with base.session() as session:
        session.run(held)
    with base.session() as session, pytest.raises(Conflict, match="possibly by a trigger") as refused:
        session.run(base.job("INSERT INTO t VALUES (1, 3)"))
    assert refused.value.difference == (f"may be held by the action {held.id}",)
    assert f"goex undo {held.id}" in refused.value.next_step
    with base.session() as session:
        session.revert(held, "undo")


def test_what_is_wrong_with_a_statement_is_told_before_its_triggers_can_run(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    base.run("CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = 1")
    with pytest.raises(InvalidInput, match=r"more or fewer values than it takes \(concat\)"):
        base.survey("UPDATE t SET a = concat()")


@pytest.mark.parametrize(
    ("number", "text", "sql", "name"),
    [
        (1054, "Unknown column 'nope' in 'SET'", "UPDATE t SET a = nope", "nope"),
        (1054, "Unknown column 't.nope' in 'WHERE'", "DELETE FROM t WHERE t.nope = 1", "nope"),
        (1054, "Unknown column 'no-pe' in 'WHERE'", "DELETE FROM t WHERE `no-pe` = 1", "no-pe"),
        (1054, "Unknown column 'größe' in 'SELECT'", "SELECT größe FROM t", "größe"),
        (1054, "Unknown column 'gone' in 'SELECT'", "SELECT `select` FROM t", ""),
        (1054, "Unknown column 'gone' in 'field list'", "SELECT list FROM field", ""),
        (1054, "Unknown column 'gone' in 'SET'", "UPDATE t SET a = 'gone' /* gone */", ""),
        (1142, "UPDATE command denied to user 'me'@'a' for table `db`.`t`", "UPDATE t SET me = 1", "t"),
        (1055, "'db.t.a' isn't in GROUP BY", "SELECT a, t.b FROM t GROUP BY b", "a"),
        (1305, "FUNCTION db.nope does not exist", "SELECT nope(1)", "nope"),
    ],
)
def test_what_is_wrong_with_a_statement_is_told_by_one_name_of_its_own(
    number: int, text: str, sql: str, name: str
) -> None:
    said = errors.translated(number, text, sql).message
    assert said.endswith(f" ({name})." if name else "there is no such column.")


@pytest.mark.parametrize("number", [1055, 1072, 1136, 1193, 1221, 1235, 1273, 1305, 1318, 1327, 1582])
def test_what_is_wrong_with_a_statement_has_words(number: int) -> None:
    assert isinstance(errors.translated(number), InvalidInput)
    assert errors.translated(4999).message == "The server refused it. Nothing was changed."


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
        ("SET NEW.a = \u00e9abs(1)", False),  # the name of a function begins before what is ASCII, or a letter
        ("SET NEW.a = \u20acabs(1)", False),
        ("SET NEW.a = \u017fign(1)", False),  # its capital letters are those of SIGN
        ("SET NEW.a = 1abs(1)", False),
        ("SET NEW.a = $abs(1)", False),
        ("SET NEW.a = POINT(1, 2)", True),
        ("SET NEW.a = `b`+abs(1)+`c`", True),
        ("SET NEW.a = 1 SET NEW.b = (2), foreign_key_checks = 0", False),
        ("SET NEW.`a'b` = sneaky(1), NEW.`c'` = 1", False),
        ("SET NEW.b = 'a\\', NEW.a = sneaky('1')", False),  # so the server tells 'a\\\\'
        ('SET NEW.b = "a\\", NEW.a = sneaky("1")', False),
        ("SET NEW.b = REGEXP_REPLACE(NEW.b, '\\d', '')", True),
        ("SET NEW.a = until(1)", False),
        ("SET NEW.a = returns(1)", False),
        ("BEGIN REPEAT SET NEW.a = 1; UNTIL (NEW.a > 0) END REPEAT; END", True),
        ("SET NEW.a = NEXT VALUE FOR s", False),
        ("", True),
    ],
)
def test_what_stays_in_its_row(body: str, stays: bool) -> None:
    assert stays_in_row(body) is stays


LONG = """
resource.setrlimit(resource.RLIMIT_CPU, (SIZE // 5_000, 20))
from runtimes.sql.mariadb.built_on import names
from runtimes.sql.mariadb.trigger_text import _NO_TABLE, _QUALIFIED, _TARGET, _WRITTEN, _known_calls, stays_in_row
for odd in ("a", "`", "`a``", "SET ", "SET NEW.a = 1 ", "point(", "point( ", " ", "a ", ".", ".` ", "/* ", "'\\\\", '"',
            "(", "into ", "into a", "1", "@", "1.", "a.", "update ", "a, ", "update (", "next ", "; ",
            "\\\\")[START::3]:
    for end in ("", "("):
        text = odd * (SIZE // len(odd)) + end
        for body in (text, f"SET NEW.a = point({text}", f"SET NEW.a = '{text}"):
            stays_in_row(body), names(body)
        _WRITTEN.findall(f"UPDATE {text}"), _NO_TABLE.findall(text)
        _QUALIFIED.findall(text), _TARGET.sub("into (", text), _known_calls("a" * SIZE + text)
        assert not stays_in_row(f"{text} INSERT INTO x VALUES (1)")
    print("read")
"""


@pytest.mark.parametrize("start", range(3))
def test_a_long_trigger_is_read_in_one_go(start: int, thorough: bool) -> None:
    size = "100_000" if thorough else "40_000"
    assert said(LONG.replace("START", str(start)).replace("SIZE", size)) == ["read"] * 9


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
def test_a_function_that_a_view_calls_writes_nothing(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE log (id INT); INSERT INTO t VALUES (1, 1)")
    base.run(SNEAKY)
    base.run("CREATE VIEW v AS SELECT id, sneaky(id) AS z FROM t; CREATE VIEW VV AS SELECT z FROM v")
    base.run("CREATE VIEW plain AS SELECT id, LOWER(a) AS z FROM t; CREATE TABLE r (id INT PRIMARY KEY, a INT)")
    base.run("CREATE TRIGGER g BEFORE INSERT ON r FOR EACH ROW SET NEW.a = (SELECT MAX(z) FROM VV)")
    policies: tuple[Policy, ...] = ("reversal", "versioning")
    for sql in (
        "UPDATE t SET a = (SELECT MAX(z) FROM v)",
        "INSERT INTO t SELECT z + 5, 9 FROM VV",
        "SELECT * FROM v; UPDATE t SET a = 2",
        "INSERT INTO r VALUES (1, 1)",
    ):
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


@pytest.mark.parametrize(
    ("number", "surely"),
    [(1054, True), (1062, True), (1205, True), (1142, True), (3, False), (1026, False), (2013, False)],
)
def test_only_an_error_that_is_known_says_surely_that_nothing_was_done(number: int, surely: bool) -> None:
    """A definition commits by itself: where its server's disk fails it may have been done all the same."""
    assert errors.is_refusal(errors.translated(number)) is surely
