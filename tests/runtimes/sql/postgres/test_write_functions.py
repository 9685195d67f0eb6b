"""What runs where rows are written and would do something outside of the tables is refused: no undo knows of it."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Unsupported
from runtimes.sql.contract import Policy
from tests.services.postgres import Postgres
from tests.support.databases import Asked, PostgresGround, session

_CALL = "dblink_exec('URL', 'INSERT INTO left_behind VALUES (1)')"  # by another connection: no undo knows of it
_ARGUMENTS = _CALL.removeprefix("dblink_exec")
_HIDDEN = f"EXECUTE 'SELECT db' || $q$link_exec{_ARGUMENTS}$q$"
_XML = f"query_to_xml($q$SELECT {_CALL}$q$, true, true, '')"
_FAR = f"CREATE FUNCTION far(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN {_CALL}; END $$"
_SURE = f"{_FAR} IMMUTABLE"  # it isn't
_UPDATE = "UPDATE t SET n = 5 WHERE id = 1"
_INSERT = "INSERT INTO t VALUES (7, 7)"
_CHILD = "CREATE TABLE child (n int REFERENCES t (n) ON UPDATE CASCADE); INSERT INTO child VALUES (1)"


def _fires(does: str, on: str = "AFTER UPDATE ON t FOR EACH ROW") -> tuple[str, ...]:
    return (
        f"CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {does}; RETURN NULL; END $f$",
        f"CREATE TRIGGER fires {on} EXECUTE FUNCTION fires()",
    )


WAYS: dict[str, tuple[str, Policy, tuple[str, ...]]] = {
    "a text that a trigger makes": (_UPDATE, "reversal", _fires(_HIDDEN)),
    "a text that a trigger makes, held": (_UPDATE, "versioning", _fires(_HIDDEN)),
    "a text that a default makes": (
        _INSERT,
        "reversal",
        (
            f"CREATE FUNCTION makes() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN {_HIDDEN}; RETURN 'x'; END $f$",
            "ALTER TABLE t ALTER n SET DEFAULT length(makes())",
        ),
    ),
    "a name in escapes": (_UPDATE, "reversal", _fires(f'PERFORM U&"\\0064blink_exec"{_ARGUMENTS}')),
    "a default that runs a text": (
        _INSERT,
        "reversal",
        (
            "ALTER TABLE t ADD COLUMN said text",
            f"ALTER TABLE t ALTER said SET DEFAULT {_XML}::text",
        ),
    ),
    "a CHECK that runs a text": (
        _UPDATE,
        "reversal",
        (f"ALTER TABLE t ADD CHECK ({_XML} IS NOT NULL) NOT VALID",),
    ),
    "a trigger's condition that runs a text": (
        _UPDATE,
        "reversal",
        _fires(
            "NULL",
            f"AFTER UPDATE ON t FOR EACH ROW WHEN ({_XML} IS NOT NULL)",
        ),
    ),
    "a view that a trigger reads": (
        _UPDATE,
        "reversal",
        (_FAR, "CREATE VIEW beneath AS SELECT far(1)", *_fires("PERFORM far FROM beneath")),
    ),
    "an operator in a trigger": (
        _UPDATE,
        "reversal",
        (
            _FAR,
            "CREATE OPERATOR === (FUNCTION = far, RIGHTARG = int)",
            *_fires("PERFORM === 1"),
        ),
    ),
    "an aggregate in a trigger": (
        _UPDATE,
        "reversal",
        (
            _FAR.replace("far(int)", "far(text, int)"),
            "CREATE AGGREGATE all_of(int) (SFUNC = far, STYPE = text)",
            *_fires("PERFORM all_of(id) FROM t"),
        ),
    ),
    "a function that looks like a column": (
        _UPDATE,
        "reversal",
        (_FAR.replace("far(int)", "far(t)"), *_fires("PERFORM t.far FROM t")),
    ),
    "a cast in a trigger": (
        _UPDATE,
        "reversal",
        (
            "CREATE TYPE pair AS (a int)",
            _FAR.replace("far(int)", "far(pair)"),
            "CREATE CAST (pair AS text) WITH FUNCTION far(pair)",
            *_fires("PERFORM ROW(1)::pair::text"),
        ),
    ),
    "an index of a table that a cascade reaches": (
        _UPDATE,
        "reversal",
        (_CHILD, _SURE, "CREATE INDEX ON child (far(n))"),
    ),
    "a policy of a table that a cascade reaches": (
        _UPDATE,
        "versioning",
        (
            _CHILD,
            _FAR,
            "ALTER TABLE child ENABLE ROW LEVEL SECURITY; ALTER TABLE child FORCE ROW LEVEL SECURITY",
            "CREATE POLICY held ON child USING (true) WITH CHECK (far(n) <> '')",
        ),
    ),
    "a policy that runs a text": (
        _UPDATE,
        "versioning",
        (
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY held ON t USING (true) WITH CHECK ({_XML} IS NOT NULL)",
        ),
    ),
    "a row that moves to another partition": (
        "UPDATE parts SET id = 11 WHERE id = 1",
        "reversal",
        _fires(f"PERFORM {_CALL}", "AFTER INSERT ON parts FOR EACH ROW"),
    ),
    "a row that leaves its partition": (
        "UPDATE parts SET id = 11 WHERE id = 1",
        "versioning",
        _fires(f"PERFORM {_CALL}", "AFTER DELETE ON low FOR EACH ROW"),
    ),
    "a trigger of TRUNCATE": (
        "TRUNCATE t",
        "versioning",
        _fires(f"PERFORM {_CALL}", "AFTER TRUNCATE ON t FOR EACH STATEMENT"),
    ),
    "a rule": (
        _UPDATE,
        "versioning",
        (f"CREATE RULE also AS ON UPDATE TO t DO ALSO SELECT {_XML}",),
    ),
    "a domain that a trigger turns to": (
        _UPDATE,
        "reversal",
        (f"CREATE DOMAIN far AS text CHECK ({_CALL} <> '')", *_fires("PERFORM 'x'::far")),
    ),
    "a call with a comment in it": (_UPDATE, "reversal", (_FAR, *_fires("PERFORM far/**/(1)"))),
    "an operator that a word stands for": (
        _UPDATE,
        "reversal",
        (
            "CREATE TYPE pair AS (a int)",
            _FAR.replace("far(int) RETURNS text", "far(pair, int) RETURNS bool").replace("RETURN d", "RETURN '' <> d"),
            "CREATE OPERATOR ~~ (FUNCTION = far, LEFTARG = pair, RIGHTARG = int)",
            *_fires("PERFORM ROW(1)::pair LIKE 1"),
        ),
    ),
    "a materialized view that a trigger refreshes": (
        _UPDATE,
        "versioning",
        (
            _FAR,
            "CREATE MATERIALIZED VIEW beneath AS SELECT far(1)",
            *_fires("REFRESH MATERIALIZED VIEW beneath", "AFTER UPDATE ON t FOR EACH STATEMENT"),
        ),
    ),
    "a range's differences": (
        "INSERT INTO spans VALUES ('[k,l]')",
        "reversal",
        (
            _SURE.replace("far(int) RETURNS text", "far(text, text) RETURNS float8")
            .replace("RETURN d", "RETURN length(d")
            .replace("; END", "); END"),
            "CREATE TYPE span AS RANGE (subtype = text, subtype_diff = far)",
            "CREATE TABLE spans (r span); CREATE INDEX ON spans USING gist (r)",
        ),
    ),
    "a message that no transaction holds back": (
        _UPDATE,
        "reversal",
        _fires("PERFORM pg_logical_emit_message(false, 'a', 'b')"),
    ),
    "a domain's default": (
        "INSERT INTO t (id) VALUES (7)",
        "reversal",
        (
            f"CREATE DOMAIN said AS text DEFAULT {_XML}::text",
            "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, n said)",
        ),
    ),
}


_MADE = "EXECUTE format('INSERT INTO %I VALUES (1)', 'left_behind')"
_NEAR = "CREATE FUNCTION near() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN 1; END $$"
_MAKES = "CREATE FUNCTION makes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN NEW; END $$"


REACHABLE = {
    "an extension": ("CREATE EXTENSION dblink", "dblink"),
    "a table of another server": (
        "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE SCHEMA hidden;"
        "CREATE FOREIGN TABLE hidden.far (id int) SERVER files OPTIONS (filename '/dev/null')",
        "far, which another server keeps",
    ),
    "a function with a superuser's rights": (
        _NEAR.replace("near()", "near_by()") + " SECURITY DEFINER",
        "near_by, which runs with another user's rights",
    ),
    "what such a function calls": (
        "CREATE FUNCTION near_by() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT near()'",
        "near, which runs with another user's rights",
    ),
    "a trigger of a superuser's table that a key writes": (
        "CREATE TABLE child (n int REFERENCES t (n) ON UPDATE CASCADE); GRANT ALL ON child TO PUBLIC;"
        f"{_MAKES}; CREATE TRIGGER makes BEFORE UPDATE ON child FOR EACH ROW EXECUTE FUNCTION makes()",
        "makes, which runs with another user's rights",
    ),
    "a trigger of what such a function writes": (
        f"CREATE TABLE audit (id int); {_MAKES};"
        "CREATE TRIGGER makes AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION makes();"
        "CREATE FUNCTION near_by() RETURNS int LANGUAGE sql SECURITY DEFINER AS"
        " 'INSERT INTO audit VALUES (1) RETURNING 1'",
        "makes, which runs with another user's rights",
    ),
    "one of the server's own": ("GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO PUBLIC", "lo_export"),
    "an event trigger that a text may fire": (
        "CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN EXECUTE 'SELECT 1'; END $$; CREATE EVENT TRIGGER watches ON ddl_command_end"
        " WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION event()",
        "event, which runs with another user's rights",
    ),
}
_INTO = (
    "CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
    " $$BEGIN INSERT INTO hid.audit VALUES (1); RETURN NULL; END$$;"
    "CREATE TRIGGER fires AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fires()"
)
HIDDEN = {
    "a view of another server's table": (
        "CREATE EXTENSION postgres_fdw; CREATE SERVER near FOREIGN DATA WRAPPER postgres_fdw;"
        "CREATE FOREIGN TABLE hid.far (id int) SERVER near; CREATE VIEW hid.v AS SELECT id FROM hid.far;"
        "CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$BEGIN INSERT INTO hid.v VALUES (1); RETURN NULL; END$$;"
        "CREATE TRIGGER fires AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fires()"
    ),
    "a table that a trigger writes": (
        "CREATE TABLE hid.audit (id int); CREATE FUNCTION hid.goes() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN PERFORM public.{_CALL}; RETURN NULL; END$$;"
        "CREATE TRIGGER goes AFTER INSERT ON hid.audit FOR EACH ROW EXECUTE FUNCTION hid.goes();"
        "CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$BEGIN INSERT INTO hid.audit VALUES (1); RETURN NULL; END$$;"
        "CREATE TRIGGER fires AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fires()"
    ),
    "a table that a key writes": (
        "CREATE TABLE hid.child (n int REFERENCES t (n) ON UPDATE CASCADE); INSERT INTO hid.child VALUES (1);"
        "CREATE FUNCTION hid.fires() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN PERFORM public.{_CALL}; RETURN NULL; END$$;"
        "CREATE TRIGGER fires AFTER UPDATE ON hid.child FOR EACH ROW EXECUTE FUNCTION hid.fires()"
    ),
    "what a table's default calls": (f"CREATE TABLE hid.audit (id int, x text DEFAULT public.{_CALL});" + _INTO),
    "what a table's CHECK calls": (f"CREATE TABLE hid.audit (id int CHECK (public.{_CALL} <> ''));" + _INTO),
    "what a table's rule calls": (
        "CREATE TABLE hid.audit (id int);"
        f"CREATE RULE also AS ON INSERT TO hid.audit DO ALSO SELECT public.{_CALL};" + _INTO
    ),
    "what a table's default runs": (f"CREATE TABLE hid.audit (id int, x text DEFAULT {_XML}::text);" + _INTO),
    "a view that a trigger reads": (
        f"CREATE VIEW hid.audit AS SELECT public.{_CALL};"
        + _INTO.replace("INSERT INTO hid.audit VALUES (1)", "PERFORM FROM hid.audit")
    ),
    "a partition": (
        "DROP TABLE high; CREATE TABLE hid.high PARTITION OF parts DEFAULT;"
        "CREATE FUNCTION hid.goes() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN PERFORM public.{_CALL}; RETURN NULL; END$$;"
        "CREATE TRIGGER goes AFTER INSERT ON hid.high FOR EACH ROW EXECUTE FUNCTION hid.goes()"
    ),
    "a table that a key of such a table writes": (
        "CREATE TABLE hid.audit (id int PRIMARY KEY);"
        "CREATE TABLE hid.child (id int REFERENCES hid.audit ON DELETE CASCADE);"
        "INSERT INTO hid.audit VALUES (1); INSERT INTO hid.child VALUES (1);"
        "CREATE FUNCTION hid.goes() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN PERFORM public.{_CALL}; RETURN NULL; END$$;"
        "CREATE TRIGGER goes AFTER DELETE ON hid.child FOR EACH ROW EXECUTE FUNCTION hid.goes();"
        + _INTO.replace("INSERT INTO hid.audit VALUES (1)", "DELETE FROM hid.audit")
    ),
}
_REFUSED = "outside of the tables that nothing takes back"


@pytest.fixture
def plain(postgres: Postgres) -> PostgresGround:
    """Where nothing that acts outside is within reach."""
    made = PostgresGround(postgres)
    made.execute(
        "CREATE TABLE left_behind (id int)",
        "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10); CREATE TABLE high PARTITION OF parts DEFAULT",
        "INSERT INTO parts VALUES (1, 1)",
    )
    return made


@pytest.fixture
def ground(plain: PostgresGround) -> PostgresGround:
    _as_admin(plain, "CREATE EXTENSION dblink")
    return plain


def _as_admin(ground: PostgresGround, statement: str) -> None:
    with ground.made.admin() as admin:
        admin.execute(statement.encode())


@pytest.mark.promise(75)
@pytest.mark.parametrize("way", WAYS)
def test_a_write_that_reaches_out_is_refused(ground: PostgresGround, way: str) -> None:
    text, policy, made = WAYS[way]
    ground.execute(*(one.replace("URL", ground.made.url) for one in made))
    ground.execute("TRUNCATE left_behind")  # making an index computes, too
    with pytest.raises(Unsupported, match="outside of the tables"):
        Asked(ground, text, policy).run()
    assert ground.rows("SELECT * FROM left_behind") == []


@pytest.mark.parametrize("extension", ["pgcrypto", "hstore", "plpgsql", "lo", "refint", "tcn", "pgrowlocks", "sslinfo"])
def test_a_text_that_can_reach_nothing_outside_is_no_hindrance(plain: PostgresGround, extension: str) -> None:
    _as_admin(plain, f"CREATE EXTENSION IF NOT EXISTS {extension}")
    _as_admin(plain, "CREATE FUNCTION of_admin() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'")
    plain.execute(*_fires(_MADE), _NEAR, "CREATE VIEW seen AS SELECT near() AS near, id FROM t")
    plain.execute("CREATE VIEW shown AS SELECT query_to_xml('SELECT 1', true, true, '') AS said")
    before = plain.dump()
    asked = Asked(plain, _UPDATE, rows=9)
    with session(plain) as at:
        notes = at.survey(asked.plan().program, "reversal", asked.limits).notes
    assert any("runs SQL that it makes: what that tells listeners" in note for note in notes)
    asked.run()
    assert plain.rows("SELECT id FROM left_behind") == [(1,)]
    asked.revert("undo")
    assert plain.dump() == before
    assert Asked(plain, "SELECT near FROM seen WHERE id = 1").run().results[0].rows == ((1,),)
    Asked(plain, "SELECT said FROM shown").plan()


@pytest.mark.promise(75)
@pytest.mark.parametrize("what", REACHABLE)
@pytest.mark.parametrize("text", [_UPDATE, "SELECT near FROM seen"])
def test_a_text_that_can_reach_something_is_refused(plain: PostgresGround, what: str, text: str) -> None:
    reachable, named = REACHABLE[what]
    plain.execute(*_fires(_MADE), _NEAR, "CREATE VIEW seen AS SELECT near() AS near, id FROM t")
    _as_admin(plain, reachable)
    with pytest.raises(Unsupported, match=f"{_REFUSED} .*may reach {named}"):
        Asked(plain, text, "versioning").plan()


def test_an_extension_that_nobody_may_call_is_out_of_reach(ground: PostgresGround) -> None:
    ground.execute(*_fires(_MADE))
    with pytest.raises(Unsupported, match=_REFUSED):
        Asked(ground, _UPDATE).plan()
    _as_admin(ground, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC")
    Asked(ground, _UPDATE, rows=9).run()
    other = ground.made.server.make().user
    _as_admin(ground, f"{_NEAR} SECURITY DEFINER; ALTER FUNCTION near OWNER TO {other}")
    Asked(ground, _UPDATE).plan()
    _as_admin(ground, f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {other}")
    with pytest.raises(Unsupported, match="may reach near, which runs with another user's rights"):
        Asked(ground, _UPDATE).plan()


@pytest.mark.promise(75)
@pytest.mark.parametrize("how", HIDDEN)
def test_what_a_schema_hides_that_goexs_user_may_not_use(ground: PostgresGround, how: str) -> None:
    """Written there all the same, it is counted and rolled back, but what acts outside would have acted."""
    _as_admin(ground, f"CREATE SCHEMA hid; {HIDDEN[how].replace('URL', ground.made.url)}")
    text = "UPDATE parts SET id = 11 WHERE id = 1" if how == "a partition" else _UPDATE
    with pytest.raises(Unsupported, match=r"outside of the tables|isn't a table of this database"):
        Asked(ground, text, rows=9).run()
    assert ground.rows("SELECT * FROM left_behind") == []


EXTENSIONS = {
    "tablefunc": "crosstab($q$SELECT {}, 'x'::text, 1$q$) AS c(r text, a int)",
    "xml2": "xpath_table('k', 'x', $q$(SELECT 1 AS k, {} AS x) q$q$, '/a', 'true') AS c(k int, p text)",
}


@pytest.mark.promise(75)
@pytest.mark.parametrize("text", [_UPDATE, "SELECT * FROM seen"])
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_an_extensions_function_that_runs_a_text(plain: PostgresGround, extension: str, text: str) -> None:
    _as_admin(plain, f"CREATE EXTENSION {extension}; CREATE EXTENSION dblink")
    call = EXTENSIONS[extension].format(_CALL.replace("URL", plain.made.url))
    plain.execute(*_fires(f"PERFORM FROM {call.replace('dblink_exec', 'db$q$ || $q$link_exec')}"))
    plain.execute(f"CREATE VIEW seen AS SELECT c.* FROM {call}; TRUNCATE left_behind")
    with pytest.raises(Unsupported, match=f"{_REFUSED} .it runs SQL that it makes, and may reach dblink"):
        Asked(plain, text).run()
    assert plain.rows("SELECT * FROM left_behind") == []
    if extension == "tablefunc":  # of the other one more functions act
        _as_admin(plain, "DROP EXTENSION dblink")
        Asked(plain, text).plan()


def test_event_triggers_run_with_what_changes_definitions(ground: PostgresGround) -> None:
    event = "CREATE OR REPLACE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {}; END $$;"
    watch = "CREATE EVENT TRIGGER watches ON ddl_command_end EXECUTE FUNCTION event()"
    _as_admin(ground, event.format("RAISE NOTICE 'made'") + watch)
    asked = Asked(ground, "CREATE TABLE made (id int)", "versioning")
    with session(ground) as at:
        notes = at.survey(asked.plan().program, "versioning", asked.limits).notes
    assert any("Event triggers watch this database: they run with what changes definitions" in note for note in notes)
    _as_admin(ground, event.format(f"PERFORM {_CALL.replace('URL', ground.made.url)}"))
    ground.execute("DELETE FROM left_behind")  # it watched that, too
    with pytest.raises(Unsupported, match=_REFUSED):
        asked.run()
    assert ground.rows("SELECT * FROM left_behind") == []


def test_a_partition_of_another_server_has_rows_that_nothing_counts(plain: PostgresGround) -> None:
    plain.execute("CREATE TABLE far (id int) PARTITION BY RANGE (id)")
    _as_admin(
        plain,
        "CREATE EXTENSION postgres_fdw; CREATE SERVER near FOREIGN DATA WRAPPER postgres_fdw;"
        "CREATE FOREIGN TABLE far_off PARTITION OF far DEFAULT SERVER near",
    )
    with pytest.raises(Unsupported, match="far is kept by another server, too"):
        Asked(plain, "INSERT INTO far VALUES (5)").plan()


def test_the_servers_own_functions_that_look_are_within_reach_of_whoever_watches_it(plain: PostgresGround) -> None:
    plain.execute(*_fires(_MADE))
    _as_admin(plain, f"GRANT pg_monitor TO {plain.made.user}")
    Asked(plain, _UPDATE).plan()


@pytest.mark.parametrize("tags", ["", "WHEN TAG IN ('CREATE FUNCTION')"])
def test_an_event_trigger_that_grants_runs_no_text(ground: PostgresGround, tags: str) -> None:
    event = "CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {}; END $$;"
    grants = "IF false THEN GRANT EXECUTE\nON FUNCTION nowhere.made TO PUBLIC; END IF"
    watch = f"CREATE EVENT TRIGGER watches ON ddl_command_end {tags} EXECUTE FUNCTION event()"
    _as_admin(ground, event.format(grants) + watch)
    Asked(ground, _UPDATE, rows=9).run()


@pytest.mark.parametrize("name", ["on$x", "on\u00a0x", '"on"'])
def test_a_text_in_a_variable_that_begins_as_a_grant_does(ground: PostgresGround, name: str) -> None:
    ground.execute(*_fires(f"DECLARE {name} text := 'SELECT 1'; BEGIN EXECUTE {name} ; END"))
    with pytest.raises(Unsupported, match=_REFUSED):
        Asked(ground, _UPDATE).plan()


@pytest.mark.parametrize("does", ["EXECUTE 'SELECT 1'", "GRANT EXECUTE ON FUNCTION dblink_exec(text) TO PUBLIC"])
def test_an_event_trigger_of_extensions_alone_runs_with_no_other_change(ground: PostgresGround, does: str) -> None:
    event = f"CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {does}; END $$;"
    watch = "CREATE EVENT TRIGGER watches ON ddl_command_end WHEN TAG IN ({}) EXECUTE FUNCTION event()"
    _as_admin(ground, event + watch.format("'CREATE EXTENSION', 'DROP EXTENSION'"))
    Asked(ground, _UPDATE, rows=9).run()
    _as_admin(ground, "DROP EVENT TRIGGER watches")
    _as_admin(ground, watch.format("'CREATE EXTENSION', 'CREATE TABLE'"))
    with pytest.raises(Unsupported, match=_REFUSED):
        Asked(ground, _UPDATE).plan()
