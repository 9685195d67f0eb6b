"""What triggers of PostgreSQL write, and what they call: taken back exactly, or refused beforehand."""

from __future__ import annotations

import pytest

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Policy
from tests.runtimes.sql.postgres.support import Shop, again, job, session, state, tables
from tests.services.postgres import Made

_AUDITED = (
    "CREATE TABLE t (id int PRIMARY KEY, n int, touched int DEFAULT 0)",
    "CREATE TABLE audit (id serial PRIMARY KEY, what text)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO audit (what) VALUES ('old')",
)


@pytest.mark.promise(75)
@tables(
    *_AUDITED,
    "CREATE FUNCTION before_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.touched := OLD.touched + 1; "
    "IF NEW.id = 3 THEN RETURN NULL; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER a_before BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION before_()",
    "CREATE FUNCTION after_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (what) VALUES (TG_OP); "
    "IF TG_OP = 'UPDATE' AND NEW.n < 100 THEN UPDATE t SET n = 100 WHERE id = NEW.id; END IF; RETURN NULL; END $$",
    "CREATE TRIGGER b_after AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "CREATE TRIGGER c_each AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION after_()",
    "CREATE CONSTRAINT TRIGGER d_late AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t ENABLE ALWAYS TRIGGER a_before",
    "CREATE TRIGGER e_off AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t DISABLE TRIGGER e_off",
    "CREATE TRIGGER f_replica AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t ENABLE REPLICA TRIGGER f_replica",
)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = n + 1", "DELETE FROM t WHERE id < 3", "INSERT INTO t VALUES (4, 4)"])
def test_what_triggers_write_is_taken_back_and_they_are_as_they_were(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
    "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (10) TO (20)",
    "CREATE TABLE audit (what text)",
    "INSERT INTO t VALUES (1, 1), (11, 2)",
    "CREATE FUNCTION after_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (TG_OP); "
    "RETURN NULL; END $$",
    "CREATE TRIGGER each AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 9", "UPDATE t SET id = id + 11 WHERE id = 1", "DELETE FROM t"])
def test_triggers_of_partitions(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@pytest.mark.promise(75)
@tables(
    *_AUDITED,
    "CREATE FUNCTION hidden() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "EXECUTE 'INSERT INTO ' || 'aud' || 'it (what) VALUES (''hidden'')'; RETURN NULL; END $$",
    "CREATE TRIGGER hides AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION hidden()",
    "CREATE FUNCTION emptied() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN EXECUTE 'TRUNCATE ' || 'audit'; RETURN NULL; END $$",
    "CREATE TRIGGER empties AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION emptied()",
    "CREATE FUNCTION defines() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN EXECUTE 'CRE' || 'ATE TABLE x' || NEW.id || '()'; RETURN NULL; END $$",
    "CREATE TRIGGER defines AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION defines()",
)
@pytest.mark.parametrize(
    "sql", ["UPDATE t SET n = 5 WHERE id = 1", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 7)"]
)
def test_what_a_trigger_hides_rolls_everything_back(shop: Shop, sql: str) -> None:
    before = state(shop.made)
    work = job(shop.on, sql)
    with pytest.raises(Conflict, match="Nothing was touched"):
        shop.on.run(work)
    assert state(shop.made) == before
    assert shop.on.settle(work).state == "nothing"


@tables(
    "CREATE TABLE counted (id int PRIMARY KEY, n int)",
    "INSERT INTO counted VALUES (1, 0)",
    "CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE counted SET n = n + 1; RETURN 5; END $$",
    "CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT sneaky())",
)
def test_a_default_that_writes_rolls_everything_back(shop: Shop) -> None:
    before = state(shop.made)
    with pytest.raises(Conflict, match="counted"):
        shop.on.run(job(shop.on, "INSERT INTO t (id) VALUES (1)"))
    assert state(shop.made) == before


_HELPER = "CREATE FUNCTION {} LANGUAGE plpgsql AS $$ BEGIN {}; END $$"
_FIRES = (
    _HELPER.format("fires() RETURNS trigger", "PERFORM helps(); RETURN NULL"),
    "CREATE TRIGGER fires AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION fires()",
)
_DEEPER = (_HELPER.format("helps() RETURNS void", 'PERFORM "Deep"()'), *_FIRES)
_DEEP = '"Deep"() RETURNS void'


@tables(
    *_AUDITED,
    *_DEEPER,
    _HELPER.format(_DEEP, "INSERT INTO audit (what) VALUES ('deep')"),
)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 5", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 7)"])
def test_what_a_triggers_helper_writes_is_taken_back(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
@pytest.mark.parametrize(
    "does",
    [
        "PERFORM dblink_exec('x', 'y')",
        "PERFORM http_post('https://example.org')",
        "GRANT SELECT ON t TO PUBLIC",
        "INSERT INTO far VALUES (1)",
        "PERFORM foreign_program()",
    ],
)
@pytest.mark.parametrize("where", ["trigger", "when", "default", "domain", "check", "partition"])
def test_what_reaches_outside_through_a_helper_is_refused(made: Made, does: str, where: str, policy: Policy) -> None:
    wrapper = _HELPER.format("helps() RETURNS int", 'PERFORM "Deep"(); RETURN 1')
    again(made, _HELPER.format(_DEEP, does), wrapper)
    column = {"default": "n int DEFAULT helps()", "domain": "n num", "check": "n int CHECK (helps() > n)"}
    with made.admin() as admin:
        admin.execute("DROP EXTENSION IF EXISTS file_fdw CASCADE; CREATE EXTENSION file_fdw")
        admin.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE SCHEMA IF NOT EXISTS hidden")
        admin.execute("CREATE FOREIGN TABLE hidden.far (id int) SERVER files OPTIONS (filename '/dev/null')")
        admin.execute(
            "CREATE FUNCTION public.foreign_program() RETURNS int LANGUAGE c AS '$libdir/tsm_system_rows', "
            "'tsm_system_rows_handler'"
        )
    with made.connect() as owner:
        if where == "domain":
            owner.execute("CREATE DOMAIN num AS int DEFAULT helps()")
        owner.execute(f"CREATE TABLE t (id int PRIMARY KEY, {column.get(where, 'n int')}) PARTITION BY RANGE (id)")
        owner.execute("CREATE TABLE low PARTITION OF t DEFAULT; CREATE TABLE plain (id int PRIMARY KEY)")
        on_ = "low" if where == "partition" else "t"
        owner.execute(_HELPER.format("late() RETURNS trigger", "PERFORM helps(); RETURN NULL"))
        owner.execute(_HELPER.format("idle() RETURNS trigger", "RETURN NULL"))
        if where in ("trigger", "partition"):
            owner.execute(f"CREATE TRIGGER late AFTER INSERT ON {on_} FOR EACH ROW EXECUTE FUNCTION late()")
        if where == "when":
            owner.execute(
                "CREATE TRIGGER late AFTER INSERT ON t FOR EACH ROW WHEN (helps() > 0) EXECUTE FUNCTION idle()"
            )
    with session(made) as on:
        with pytest.raises(Unsupported, match=r"outside|another server"):
            job(on, "INSERT INTO t (id) VALUES (1)", policy)
        job(on, "INSERT INTO plain VALUES (1)", policy)
    with made.admin() as admin:
        admin.execute("DROP EXTENSION file_fdw CASCADE; DROP SCHEMA hidden")


@tables(
    "CREATE SEQUENCE numbers",
    "CREATE FUNCTION address() RETURNS text LANGUAGE sql AS $$"
    " SELECT 'https://example.org/' || nextval('numbers') -- a copy goes to http_post(), once\n$$",
    "CREATE TABLE t (id int PRIMARY KEY, n int, at text UNIQUE DEFAULT address())",
    _HELPER.format("stamps() RETURNS trigger", "/* no program */ NEW.at := 'http://a/' || NEW.id; RETURN NEW"),
    "CREATE TRIGGER stamps BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION stamps()",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 5", "INSERT INTO t VALUES (7, 7)", "DELETE FROM t WHERE id = 1"])
def test_an_address_or_a_comment_in_a_functions_text_reaches_nothing(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables("CREATE TABLE t (id int PRIMARY KEY, what text)", "INSERT INTO t VALUES (1, 'x')")
def test_a_listed_function_that_an_older_server_hasnt_is_nobody_elses(shop: Shop) -> None:
    sql = "UPDATE t SET what = unistr(what)"
    with shop.made.admin() as admin:
        admin.execute("ALTER FUNCTION pg_catalog.unistr(text) RENAME TO newer")  # as before PostgreSQL 14
        try:
            with pytest.raises(InvalidInput, match="unistr"):
                job(shop.on, sql)
            with shop.made.connect() as owner:
                owner.execute("CREATE FUNCTION unistr(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
            with pytest.raises(InvalidInput, match=r"function pg_catalog\.unistr\(text\) does not exist"):
                job(shop.on, sql)
        finally:
            admin.execute("ALTER FUNCTION pg_catalog.newer(text) RENAME TO unistr")


@pytest.mark.sampled(4)
@tables(
    "CREATE TABLE t (id int PRIMARY KEY, name varchar(9))",
    _HELPER.format("same(a varchar, b varchar) RETURNS boolean", "RETURN true"),
)
@pytest.mark.parametrize(
    ("sign", "condition"),
    [
        ("~~", "name LIKE 'a%'"),
        ("!~~", "name NOT LIKE 'a%'"),
        ("~~*", "name ILIKE 'a%'"),
        ("!~~*", "name NOT ILIKE 'a%'"),
        ("~", "name SIMILAR TO 'a'"),
        ("=", "name IN ('a', 'b')"),
        ("<>", "name NOT IN ('a', 'b')"),
        ("<=", "name BETWEEN 'a' AND 'b'"),
        (">", "name NOT BETWEEN 'a' AND 'b'"),
        ("=", "name IS DISTINCT FROM 'a'"),
        ("=", "NULLIF(name, 'a') IS NULL"),
        ("=", "CASE name WHEN 'a' THEN true END"),
        ("=", "EXISTS (SELECT 1 FROM t AS a JOIN t AS b USING (name))"),
        ("=", "EXISTS (SELECT 1 FROM t AS a NATURAL JOIN t AS b)"),
    ],
)
def test_a_word_calls_no_operator_that_somebody_made(shop: Shop, sign: str, condition: str) -> None:
    with shop.made.connect() as owner:
        owner.execute(f"CREATE OPERATOR {sign} (leftarg = varchar, rightarg = varchar, function = same)".encode())
    with pytest.raises(Unsupported, match=r"an operator .* of its own"):
        job(shop.on, f"DELETE FROM t WHERE {condition}")
    job(shop.on, "DELETE FROM t WHERE true")


@tables(*_AUDITED, *_DEEPER, _HELPER.format(_DEEP, "PERFORM pg_notify('a', 'b')"))
def test_what_a_helper_tells_listeners_is_said(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 5")
    notes = shop.on.survey(work.program, "reversal", work.limits).notes
    assert any("notifies listeners" in note for note in notes)
    with pytest.raises(Unsupported, match="notifies listeners"):
        job(shop.on, "UPDATE t SET n = 5", "versioning")


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, at timestamptz) PARTITION BY RANGE (id)",
    "CREATE TABLE low PARTITION OF t DEFAULT",
    _HELPER.format("stamps() RETURNS trigger", "NEW.at := clock_timestamp(); RETURN NEW"),
    "CREATE TRIGGER stamps BEFORE UPDATE ON low FOR EACH ROW EXECUTE FUNCTION stamps()",
    "INSERT INTO t VALUES (1, 1)",
)
def test_a_trigger_of_a_partitions_own_is_kept_off(shop: Shop) -> None:
    shop.there_and_back("UPDATE t SET n = 2")


def test_a_default_of_an_extension_that_computes(made: Made) -> None:
    again(made)
    with made.admin() as admin:
        admin.execute('CREATE EXTENSION "uuid-ossp"')
    with made.connect() as owner:
        owner.execute("CREATE TABLE t (id uuid PRIMARY KEY DEFAULT uuid_generate_v4(), n int)")
    with session(made) as on:
        Shop(made, on).there_and_back("INSERT INTO t (n) VALUES (1)")
