"""What reading may do besides: functions that views and triggers call, tables that lead elsewhere, what was put in
their place meanwhile. The database was prepared by somebody who may do anything there; GoEx only reads, or takes back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pymysql
import pytest

from policies.errors import Conflict, GoexError, Unsupported
from runtimes.sql.contract import Policy
from runtimes.sql.mariadb import read_functions
from runtimes.sql.mariadb.trigger_text import stays_in_row
from tests.policies.test_http_heads import said
from tests.runtimes.sql.mariadb.support import PASSWORD, Base
from tests.services.mariadb import MariaDb

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), d DATETIME, FULLTEXT (b));
INSERT INTO t (id, a) VALUES (1, 1);
CREATE TABLE u (id INT PRIMARY KEY, n INT); CREATE TABLE log (id INT) ENGINE=MyISAM; CREATE SEQUENCE s
"""
LOUD = "CREATE FUNCTION loud(x INT) RETURNS INT {} BEGIN INSERT INTO log VALUES (x); RETURN x; END"
BOTH: tuple[Policy, ...] = ("reversal", "versioning")


def make(base: Base, *statements: str, own: bool = False) -> None:
    """Run these one by one: as root, or (`own`) as GoEx's user."""
    user = {"user": "goex", "password": PASSWORD} if own else {}
    with base.server.connect(base.name, **user) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def out(base: Base, name: str) -> Path:
    return base.server.folder / "tmp" / f"{base.name}_{name}"


def errors_of_connecting(base: Base) -> int:
    ((number,),) = base.run("SELECT @@GLOBAL.max_connect_errors")
    return int(number)


ACTS = {
    "a file": "SELECT 1 INTO OUTFILE '{out}'",
    "a file of bytes": "SELECT 1 INTO DUMPFILE '{out}'",
    "a file in a procedure": "CALL writes_a_file()",
    "a setting": "SET GLOBAL max_connect_errors = 77",
    "a setting, otherwise": "SET @@GLOBAL.max_connect_errors = 77",
    "a connection's end": "KILL CONNECTION {other}",
    "another table": "INSERT INTO log VALUES (1)",
}


@pytest.mark.promise(69)
@pytest.mark.parametrize("how", ["run", "trial"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("what", sorted(ACTS))
def test_a_view_that_is_read_acts_on_nothing(base: Base, what: str, own: bool, how: Literal["run", "trial"]) -> None:
    """`own`: GoEx's user sees what the function says, and what it does is done with somebody else's rights."""
    base.run(TABLES)
    file, settings = out(base, "file"), errors_of_connecting(base)
    with base.server.connect(base.name) as other, other.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        body = ACTS[what].format(out=file, other=cursor.fetchone()[0])
        make(base, f"CREATE PROCEDURE writes_a_file() SELECT 1 INTO OUTFILE '{file}'")
        function = f"CREATE FUNCTION f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN {body}; RETURN x; END"
        make(base, function, own=own)
        make(
            base, "CREATE VIEW inner_view AS SELECT id, f(id) AS z FROM t", "CREATE VIEW v AS SELECT z FROM inner_view"
        )
        for sql in ("SELECT * FROM v", "EXPLAIN SELECT * FROM v"):
            with pytest.raises(Unsupported), base.session() as session:
                getattr(session, how)(base.job(sql))
        assert not file.exists() and base.run("SELECT * FROM log") == []
        assert errors_of_connecting(base) == settings
        cursor.execute("SELECT 1")


def test_control_what_such_a_view_does(base: Base) -> None:
    base.run(TABLES)
    make(base, f"CREATE FUNCTION f() RETURNS INT BEGIN SELECT 1 INTO OUTFILE '{out(base, 'control')}'; RETURN 1; END")
    make(base, "CREATE VIEW v AS SELECT f() AS z", "START TRANSACTION READ ONLY", "SELECT * FROM v")
    assert out(base, "control").exists()


@pytest.mark.parametrize(
    "body",
    [
        "RETURN x + 1",
        "RETURN CONCAT('KILL ', x, \" `create` INTO OUTFILE\")",
        "BEGIN DECLARE n INT; SELECT MAX(o.n) INTO n FROM u o JOIN t ON t.id = o.id; RETURN n; END",
        "RETURN helper(x) + helper(2)",
    ],
)
def test_a_function_that_is_seen_to_compute_is_read(base: Base, body: str) -> None:
    base.run(TABLES)
    make(base, "CREATE FUNCTION helper(x INT) RETURNS INT RETURN x", own=True)
    make(base, f"CREATE FUNCTION f(x INT) RETURNS VARCHAR(99) READS SQL DATA {body}", own=True)
    make(base, "CREATE VIEW v AS SELECT f(id) AS z FROM t")
    with base.session() as session:
        assert len(session.run(base.job("SELECT * FROM v")).results[0].rows) == 1
    with pytest.raises(Unsupported, match="a function that somebody made"):
        base.job("UPDATE t SET a = (SELECT COUNT(*) FROM v)")


def test_what_a_function_calls_in_turn_is_looked_at(base: Base) -> None:
    base.run(TABLES)
    make(base, "CREATE FUNCTION g() RETURNS INT BEGIN KILL QUERY 1; RETURN 1; END", own=True)
    make(base, "CREATE FUNCTION f() RETURNS INT RETURN g()", "CREATE VIEW v AS SELECT f() AS z", own=True)
    make(base, "CREATE FUNCTION h() RETURNS INT RETURN (SELECT MAX(z) FROM v)", "CREATE VIEW w AS SELECT h()", own=True)
    for view in ("v", "w"):
        with pytest.raises(Unsupported, match=r"The function g, .* may do something outside"):
            base.job(f"SELECT * FROM {view}")


def test_a_view_whose_function_writes_keeps_no_other_table_from_being_read(base: Base) -> None:
    """Where only reading is allowed the server doesn't tell the columns of such a view."""
    base.run(TABLES)
    make(base, LOUD.format(""), "CREATE VIEW v AS SELECT loud(1) AS z", "CREATE VIEW w AS SELECT NEXTVAL(s) AS z")
    with base.session() as session:
        assert session.run(base.job("SELECT a FROM t")).results[0].rows == ((1,),)


# ---- what writes


@pytest.mark.promise(75)
@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("call", ["NEXTVAL(s)", "NEXT VALUE FOR s", "SETVAL(s, 90)"])
def test_no_view_moves_a_sequence(base: Base, call: str, policy: Policy) -> None:
    base.run(TABLES)
    make(base, f"CREATE VIEW v AS SELECT {call} AS z")
    for sql in ("SELECT * FROM v", "UPDATE t SET a = (SELECT z FROM v)", "CREATE TABLE n AS SELECT z FROM v"):
        with pytest.raises(Unsupported, match=r"moves a sequence|can't be held"):
            base.job(sql, policy)


def test_a_default_that_sets_a_sequence_is_named(base: Base) -> None:
    base.run(TABLES)
    base.run("CREATE TABLE c (id INT PRIMARY KEY, n INT DEFAULT (SETVAL(s, 90)), m INT DEFAULT (NEXTVAL(s)))")
    assert base.survey("INSERT INTO c (id) VALUES (1)").counters == ("c.n", "c.m")
    base.run("CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW INSERT INTO c (id) VALUES (NEW.id)")
    assert base.survey("UPDATE t SET a = 2", "versioning").counters == ("c.n", "c.m")


@pytest.mark.promise(75)
@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(
    "body",
    [
        "SELECT 1 INTO OUTFILE '{out}'",
        "BEGIN IF NEW.a > 0 THEN SELECT NEW.a INTO DUMPFILE '{out}'; END IF; END",
        "BEGIN KILL CONNECTION 1; SET NEW.a = 3; END",
        "SHUTDOWN",
        "CHANGE MASTER TO master_host = 'elsewhere'",
        "STOP ALL SLAVES",
        "PURGE BINARY LOGS BEFORE '2020-01-01'",
        "CREATE TEMPORARY TABLE u SELECT 1 AS id, 2 AS n",
    ],
)
def test_a_trigger_that_acts_beside_the_tables(base: Base, body: str, policy: Policy) -> None:
    base.run(TABLES)
    make(base, f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW {body.format(out=out(base, 'by_trigger'))}")
    with pytest.raises(Unsupported, match="trigger"):
        base.job("UPDATE t SET a = 2", policy)
    assert not stays_in_row(body)


def test_names_of_columns_act_on_nothing(base: Base) -> None:
    assert stays_in_row("SET NEW.master = OLD.`kill`, NEW.slave = CONCAT('drop', `create`)")
    assert not stays_in_row("SET NEW.a = `x`; KILL 5")


@pytest.mark.promise(75)
@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(
    "trigger",
    [
        "SET NEW.a = (SELECT MAX(z) FROM {other}.w)",
        "SET NEW.a = (SELECT COUNT(*) FROM u x JOIN {other}.w AS y)",
        "SET NEW.a = (SELECT COUNT(*) FROM u AS x, `{other}` . `w`)",
        "BEGIN DECLARE n INT; SELECT MAX(z) INTO n FROM {other}.w {other}; SET NEW.a = n; END",
        "SET NEW.a = (SELECT COUNT(*) FROM u x, {other}.w {other})",
        "SET NEW.a = (SELECT COUNT(*) FROM u `{other}` JOIN (u y USE INDEX FOR ORDER BY (PRIMARY), {other}.w z))",
        "SET NEW.a = (SELECT COUNT(*) + 1. FROM u AS `"
        + "a" * 70
        + " where`, u x JOIN u {other} ON x.`where` = 1, {other}.w z)",
    ],
)
def test_a_trigger_that_reads_what_is_not_seen(base: Base, mariadb: MariaDb, trigger: str, policy: Policy) -> None:
    base.run(TABLES)
    with mariadb.database() as other:
        mariadb.run("CREATE TABLE log (id INT) ENGINE=MyISAM", other)
        make(base, LOUD.format("").replace("loud(", f"{other}.loud(").replace("INTO log", f"INTO {other}.log"))
        make(base, f"CREATE VIEW {other}.w AS SELECT {other}.loud(1) AS z")
        make(base, f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW {trigger.format(other=other)}")
        with pytest.raises(Unsupported, match=r"another database|outside|rolled back"):
            base.job("UPDATE t SET a = 2", policy)
        make(base, "DROP TRIGGER g", f"CREATE VIEW v AS SELECT * FROM {other}.w")
        for sql in ("UPDATE t SET a = (SELECT COUNT(*) FROM v)", "SELECT COUNT(*) FROM v"):
            with pytest.raises(Unsupported, match="can't see whether w calls"):
                base.job(sql, policy)
        assert mariadb.run("SELECT * FROM log", other) == []


@pytest.mark.parametrize(
    "body",
    [
        "SET NEW.a = EXTRACT(YEAR FROM NEW.d), NEW.b = TRIM(LEADING 'x' FROM NEW.b)",
        "SET NEW.b = SUBSTRING(NEW.b FROM 2 FOR 3)",
        "SET NEW.a = (SELECT COUNT(*) FROM u x, u y WHERE EXTRACT(DAY FROM NEW.d) = x.n AND y.n IN (1, 2))",
        "IF EXISTS (SELECT 1 FROM dual) THEN SET NEW.a = 5; END IF",
    ],
)
@pytest.mark.parametrize("by_table", [False, True])
def test_from_also_stands_where_no_table_is_read(base: Base, body: str, by_table: bool) -> None:
    base.run(TABLES)
    make(base, f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW {body}")
    if by_table:
        rights_by_table(base, "t", "u")
    base.survey("UPDATE t SET a = 2", "versioning")


def rights_by_table(base: Base, *tables: str) -> None:
    make(
        base,
        f"REVOKE ALL PRIVILEGES ON {base.name}.* FROM goex@'%'",
        *(f"GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER, SHOW VIEW ON {one} TO goex@'%'" for one in tables),
    )


@pytest.mark.promise(75)
@pytest.mark.parametrize(
    "hides", ["UPDATE u x, hidden SET m = 5", "UPDATE LOW_PRIORITY u x JOIN (u y, hidden) SET m = 5"]
)
def test_a_trigger_that_writes_what_is_not_seen_behind_an_alias(base: Base, hides: str) -> None:
    base.run(TABLES)
    make(base, "CREATE TABLE hidden (m INT) ENGINE=MyISAM", f"CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW {hides}")
    rights_by_table(base, "t", "u")
    with pytest.raises(Unsupported, match="more than can be rolled back"):
        base.job("UPDATE t SET a = 2", "versioning")


def test_a_foreign_key_that_rights_by_table_hide_has_a_next_step_that_works(base: Base) -> None:
    base.run(TABLES)
    make(base, "CREATE TABLE h (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t(id) ON UPDATE CASCADE)")
    rights_by_table(base, "t", "u", "h")
    with pytest.raises(Unsupported, match=r"can't see hangs on t.* rights by table") as caught:
        base.job("UPDATE t SET id = 9")
    assert f"GRANT the rights on `{base.name}`.*" in caught.value.next_step
    make(base, f"GRANT ALL ON {base.name}.* TO goex@'%'")
    base.job("UPDATE t SET id = 9")


def test_a_trigger_that_reads_by_other_names_is_followed(base: Base) -> None:
    base.run(TABLES)
    make(
        base,
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW BEGIN DECLARE r ROW TYPE OF u;"
        " IF r.n > 0 THEN SET NEW.a = (SELECT MAX(x.n) + `y`.n FROM u x, u AS `y` WHERE x.id = NEW.id); END IF; END",
    )
    with base.session() as session:
        job = base.job("UPDATE t SET a = 2")
        session.run(job)
        session.revert(job, "undo")
    assert base.run("SELECT a FROM t") == [(1,)]


def test_a_view_of_a_seen_table_of_another_database_is_read(base: Base, mariadb: MariaDb) -> None:
    base.run(TABLES)
    with mariadb.database() as other:
        mariadb.run("CREATE TABLE h (id INT); CREATE VIEW w AS SELECT id FROM h", other)
        make(base, f"CREATE VIEW v AS SELECT h.id FROM {other}.h JOIN {other}.w")
        with pytest.raises(Unsupported, match="can't see"):
            base.job("SELECT COUNT(*) FROM v")
        mariadb.run(f"GRANT SELECT ON {other}.h TO goex@'%'; GRANT SELECT, SHOW VIEW ON {other}.w TO goex@'%'")
        with base.session() as session:
            assert session.run(base.job("SELECT COUNT(*) FROM v")).results[0].rows == ((0,),)


def test_what_triggers_in_turn_read_is_looked_at(base: Base) -> None:
    base.run(TABLES)
    make(
        base,
        LOUD.format(""),
        "CREATE VIEW v AS SELECT loud(1) AS z",
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW INSERT INTO u VALUES (7, 7)",
        "CREATE TRIGGER h BEFORE INSERT ON u FOR EACH ROW SET NEW.n = (SELECT MAX(z) FROM v)",
    )
    with pytest.raises(Unsupported, match="a function that somebody made"):
        base.job("UPDATE t SET a = 2", "versioning")
    base.run("DROP TRIGGER h")
    base.job("UPDATE t SET a = 2", "versioning")


@pytest.mark.promise(75)
@pytest.mark.parametrize("follows", ["SET NULL", "CASCADE"])
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET id = 9",
        "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 9",
        "ALTER TABLE t ADD COLUMN c INT; UPDATE t SET id = 9",
    ],
)
def test_a_foreign_key_that_nobody_shows_follows_an_update(
    base: Base, mariadb: MariaDb, follows: str, sql: str
) -> None:
    base.run(TABLES)
    with mariadb.database() as other:
        mariadb.run(
            f"CREATE TABLE h (id INT, FOREIGN KEY (id) REFERENCES {base.name}.t(id) ON UPDATE {follows});"
            " INSERT INTO h VALUES (1)",
            other,
        )
        with pytest.raises(Unsupported, match="can't see hangs on t"):
            base.job(sql)
        with base.session() as session:
            job = base.job("UPDATE t SET a = 2")  # nothing points to that
            session.run(job)
            session.revert(job, "undo")
        assert mariadb.run("SELECT * FROM h", other) == [(1,)]


@pytest.mark.promise(75)
@pytest.mark.parametrize("sql", ["DELETE FROM t", "UPDATE t SET id = 9"])
def test_triggers_hide_no_foreign_key_that_nobody_shows(base: Base, mariadb: MariaDb, sql: str) -> None:
    base.run(TABLES)
    events = ("UPDATE", "DELETE")
    trigger = "CREATE TRIGGER g{0} BEFORE {0} ON t FOR EACH ROW DO OLD.a + (SELECT COUNT(*) FROM log)"
    make(base, *(trigger.format(event) for event in events))
    with base.session() as session:
        job = base.job(sql)  # the control
        session.run(job)
        session.revert(job, "undo")
    with mariadb.database() as other:
        mariadb.run(
            f"CREATE TABLE h (id INT, FOREIGN KEY (id) REFERENCES {base.name}.t(id) ON DELETE SET NULL"
            " ON UPDATE SET NULL); INSERT INTO h VALUES (1)",
            other,
        )
        with pytest.raises(Unsupported, match="can't see hangs on t"):
            base.job(sql)
        assert mariadb.run("SELECT * FROM h", other) == [(1,)]


# ---- tables that lead elsewhere


def test_a_table_that_asks_another_server_is_not_read(base: Base, mariadb: MariaDb) -> None:
    try:
        mariadb.run("INSTALL SONAME 'ha_federatedx'")
    except pymysql.err.MySQLError as error:
        if error.args[0] != 1968:  # it is there already
            pytest.skip("no FEDERATED here")
    base.run(TABLES)
    with mariadb.database(user="far", password="x") as other:
        mariadb.run("CREATE TABLE log (id INT) ENGINE=MyISAM; CREATE TABLE h (id INT); INSERT INTO h VALUES (1)", other)
        with mariadb.connect(other) as connection, connection.cursor() as cursor:
            cursor.execute(LOUD.format(""))
            cursor.execute("CREATE VIEW w AS SELECT id, loud(id) AS z FROM h")
        make(
            base,
            "CREATE TABLE there (id INT, z INT) ENGINE=FEDERATED"
            f" CONNECTION='mysql://far:x@127.0.0.1:{mariadb.port}/{other}/w'",
            "CREATE VIEW v AS SELECT z FROM there",
        )
        for sql in ("SELECT * FROM there", "SELECT * FROM v", "INSERT INTO u SELECT id, z FROM there"):
            with pytest.raises(Unsupported, match="there is kept by FEDERATED"):
                base.job(sql)
        assert mariadb.run("SELECT * FROM log", other) == []
        base.run("SELECT * FROM there")  # the control
        assert mariadb.run("SELECT * FROM log", other) == [(1,)]
        base.run("DROP VIEW v; DROP TABLE there")


# ---- meanwhile


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("new", ["SELECT loud(1) AS z", "SELECT 5 AS z"])
@pytest.mark.parametrize("sql", ["SELECT * FROM v", "UPDATE t SET a = (SELECT z FROM v)"])
def test_a_view_that_was_replaced_since_is_not_even_begun(base: Base, sql: str, new: str, policy: Policy) -> None:
    """The server computes what a view says of constants also where no row is asked for."""
    base.run(TABLES)
    make(base, LOUD.format("DETERMINISTIC"), "CREATE VIEW v AS SELECT 1 AS z")
    job = base.job(sql, policy)
    make(base, f"CREATE OR REPLACE VIEW v AS {new}")
    for how in ("trial", "run"):
        with base.session() as session, pytest.raises((Conflict, Unsupported)):
            getattr(session, how)(job)
    assert base.run("SELECT * FROM log") == [] and base.run("SELECT a FROM t") == [(1,)] and base.held() == []


@pytest.mark.promise(75)
def test_undo_fires_no_trigger_that_reads_otherwise_by_now(base: Base) -> None:
    base.run(TABLES)
    make(
        base,
        LOUD.format(""),
        "CREATE VIEW v AS SELECT 1 AS z",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN IF (SELECT MAX(z) FROM v) < 0 THEN SET NEW.a = 5;"
        " END IF; END",
    )
    job = base.job("DELETE FROM t")
    with base.session() as session:
        session.run(job)
    make(base, "CREATE OR REPLACE VIEW v AS SELECT loud(1) AS z")
    with base.session() as session, pytest.raises(Unsupported, match="a function that somebody made"):
        session.revert(job, "undo")
    assert base.run("SELECT * FROM log") == [] == base.run("SELECT * FROM t")
    make(base, "CREATE OR REPLACE VIEW v AS SELECT 2 AS z")
    with base.session() as session:
        session.revert(job, "undo")
    assert base.run("SELECT id, a FROM t") == [(1, 1)]


@pytest.mark.promise(75)
def test_values_that_come_back_fire_no_trigger_that_reads_otherwise_by_now(base: Base) -> None:
    base.run(TABLES)
    make(
        base,
        LOUD.format(""),
        "CREATE VIEW v AS SELECT loud(1) AS z",
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW BEGIN IF (SELECT MAX(z) FROM v) < 0 THEN SET NEW.b = 'x';"
        " END IF; END",
    )
    with pytest.raises(Unsupported, match="a function that somebody made"):
        base.job("ALTER TABLE t DROP COLUMN a")
    make(base, "CREATE OR REPLACE VIEW v AS SELECT 1 AS z")
    job = base.job("ALTER TABLE t DROP COLUMN a")
    with base.session() as session:
        session.run(job)
        make(base, "CREATE OR REPLACE VIEW v AS SELECT loud(1) AS z")
        with pytest.raises(Unsupported, match="a function that somebody made"):
            session.revert(job, "undo")
        assert base.run("SELECT * FROM log") == []
        make(base, "CREATE OR REPLACE VIEW v AS SELECT 2 AS z")
        session.revert(job, "undo")
    assert base.run("SELECT id, a FROM t") == [(1, 1)]


def test_undo_computes_nothing_of_a_view_that_has_its_table_s_name(base: Base) -> None:
    base.run(TABLES)
    make(base, LOUD.format("DETERMINISTIC"))
    job = base.job("INSERT INTO u VALUES (1, 1)")
    with base.session() as session:
        session.run(job)
    make(base, "DROP TABLE u", "CREATE VIEW u AS SELECT 1 AS id, loud(1) AS n")
    with base.session() as session, pytest.raises(GoexError):
        session.revert(job, "undo")
    assert base.run("SELECT * FROM log") == []


# ---- the server's own functions


VIEWS = (
    "SELECT COUNT(DISTINCT a, id), GROUP_CONCAT(a ORDER BY b SEPARATOR ','), STD(a), JSON_ARRAYAGG(b) FROM t",
    "SELECT LAG(a) OVER (ORDER BY id), NTILE(2) OVER (ORDER BY id), MEDIAN(a) OVER () FROM t",
    "SELECT CAST(a AS DECIMAL(10, 2)), CONVERT(b USING latin1), BINARY b, CHAR(65 USING utf8mb4), IF(a, b, d) FROM t",
    "SELECT TRIM(LEADING 'x' FROM b), EXTRACT(YEAR FROM d), POSITION('a' IN b), d + INTERVAL 1 DAY, NOW(3) FROM t",
    "SELECT x.id FROM t x LEFT JOIN (t y JOIN u z USING (id)) ON x.id = y.id WHERE x.a IN (1, 2) LIMIT 3",
    "SELECT a FROM t WHERE MATCH (b) AGAINST ('x' IN BOOLEAN MODE) OR MATCH (b) AGAINST ('x' WITH QUERY EXPANSION)",
    "SELECT j.x FROM t, JSON_TABLE('[1]', '$[*]' COLUMNS (x INT PATH '$')) j",
    "WITH RECURSIVE c (n, m) AS (SELECT 1, 2 UNION ALL SELECT n + 1, m FROM c WHERE n < 3) SELECT n FROM c",
    "SELECT 'loud(1) ''it`s`(' AS `odd(`, b AS `b``(` FROM t WHERE b <> '\\\\'",
    "SELECT table_name FROM information_schema.tables",
    "SELECT seq FROM seq_1_to_10 JOIN seq_2_to_8_step_2 USING (seq)",
    "SELECT GROUP_CONCAT(b ORDER BY a LIMIT 2), CAST(b AS INET6), DEFAULT(a) FROM t",
    "SELECT x FROM t, JSON_TABLE('[1]', '$[*]' COLUMNS (x INT PATH '$', NESTED PATH '$' COLUMNS (y INT PATH '$'))) j",
    "SELECT ST_ASTEXT(POINT(1, 2)), ST_UNION(POINT(1, 2), POINT(1, 1)), USER(), PASSWORD('x'), LAST_INSERT_ID()",
)


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_the_servers_own_functions_are_read(base: Base, view: str) -> None:
    base.run(TABLES)
    make(base, f"CREATE VIEW v AS {view}")
    base.survey("SELECT COUNT(*) FROM v")
    base.survey("UPDATE t SET a = (SELECT COUNT(*) FROM v)")


@pytest.mark.promise(69)
def test_what_stands_behind_what_the_grammar_does_not_read(base: Base) -> None:
    base.run(TABLES)
    make(base, LOUD.format(""), "CREATE VIEW w AS SELECT loud(1) AS z")
    make(base, "CREATE VIEW v AS SELECT CAST(x.b AS INET6) FROM (t AS x JOIN u), w AS `a from`, u AS y")
    with pytest.raises(Unsupported, match="can't see what the function loud does"):
        base.job("SELECT COUNT(*) FROM v")
    rights_by_table(base, "v", "t", "u")
    with pytest.raises(Unsupported, match=r"can't see whether the view w calls|whether w calls"):
        base.job("SELECT COUNT(*) FROM v")


@pytest.mark.promise(69)
@pytest.mark.parametrize("view", ["SELECT JSON_DETAILED(b) AS z FROM t", "SELECT b FROM t WHERE JSON_DETAILED (b) = 1"])
def test_a_function_of_a_library_is_not_called(base: Base, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that isn't the server's own stands in a view just as its own do."""
    base.run(TABLES)
    make(base, f"CREATE VIEW v AS {view}")
    own = read_functions._own
    monkeypatch.setattr(read_functions, "_own", lambda wire, schema: own(wire, schema) - {"json_detailed"})
    for sql in ("SELECT COUNT(*) FROM v", "UPDATE t SET a = (SELECT COUNT(*) FROM v)"):
        with pytest.raises(Unsupported, match="json_detailed, which isn't a function of the server's own"):
            base.job(sql)


LONG = """
from runtimes.sql.checking.views import _MATCH, _UNREAD
from runtimes.sql.contract import Dialect, Schema
from runtimes.sql.mariadb.read_functions import _CALL, _STORED, _WITH
from runtimes.sql.mariadb.trigger_text import elsewhere, only_looks, without_texts
schema = Schema(dialect=Dialect.MARIADB, version="", tables={}, hash="")
for odd in ("a", "`", "`a``", "a(", "a.", "`a`.`b`,", "from a,", "join ", "(match `", "(match `a`,",
            "a(`,`,", " using ", "'", "(", "from (a,", ")")[START::2]:
    text = odd * (30_000 // len(odd)) + "("
    for body in (text, f"SELECT 1 FROM {text}"):
        only_looks(body, "", frozenset()), elsewhere(body, "d", schema, unseen=True), without_texts(body)
        for each in (_CALL, _STORED, _WITH, _MATCH, _UNREAD):
            each.findall(body)
    print("read")
"""


@pytest.mark.parametrize(("start", "many"), [(0, 8), (1, 8)])
def test_a_long_definition_is_read_in_one_go(start: int, many: int) -> None:
    assert said(LONG.replace("START", str(start))) == ["read"] * many
