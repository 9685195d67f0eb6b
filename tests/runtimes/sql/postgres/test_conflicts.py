"""What somebody else did since is never gone over, and no error tells what is in rows."""

from __future__ import annotations

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from runtimes.sql.postgres.errors import translated
from tests.runtimes.sql.postgres.support import Shop, job, state, tables


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, s text)",
    "INSERT INTO t SELECT i, i, 'x' FROM generate_series(1, 5) i",
    "CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE nulled (id int PRIMARY KEY, t int REFERENCES t ON DELETE SET NULL)",
    "CREATE TABLE strict (id int PRIMARY KEY, t int REFERENCES t)",
)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("UPDATE t SET n = 0 WHERE id < 3", "UPDATE t SET s = 'y' WHERE id = 2"),
        ("UPDATE t SET n = 0 WHERE id < 3", "DELETE FROM t WHERE id = 1"),
        ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1, 'theirs')"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "UPDATE t SET n = 8 WHERE id = 9"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO child VALUES (1, 9)"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO nulled VALUES (1, 9)"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO strict VALUES (1, 9)"),
        ("UPDATE t SET id = 50 WHERE id = 5", "INSERT INTO child VALUES (1, 50)"),
        ("UPDATE t SET n = 0", "ALTER TABLE t ADD COLUMN more int"),
        ("UPDATE t SET n = 0", "ALTER TABLE t ALTER n TYPE bigint"),
        ("UPDATE t SET n = 0", "ALTER TABLE t RENAME TO u"),
        ("UPDATE t SET n = 0 WHERE id = 1", "ALTER TABLE t ADD CHECK (n = 0) NOT VALID"),
    ],
)
def test_what_somebody_else_did_since_is_never_gone_over(shop: Shop, ours: str, theirs: str) -> None:
    work = job(shop.on, ours)
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute(theirs)
    left = state(shop.made)
    with pytest.raises((Conflict, Unsupported)):
        shop.on.revert(work, "undo")
    assert state(shop.made) == left
    assert shop.on.settle(work).state == "done"


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, secret text)", "INSERT INTO t VALUES (1, 1, 'sesame'), (2, 2, 'sesame')"
)
def test_the_difference_names_rows_and_columns(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 0; INSERT INTO t VALUES (3, 3, 'x')")
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute("UPDATE t SET secret = 'open' WHERE id = 1; DELETE FROM t WHERE id = 3")
    for asked in (shop.on.compare, shop.on.revert):
        with pytest.raises(Conflict) as caught:
            asked(work, "undo")
        assert set(caught.value.difference) == {"t id=1: secret changed", "t id=3: is gone"}


@pytest.mark.sampled(6)
@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, secret text)",
    "INSERT INTO t VALUES (1, 1, 'sesame')",
    "CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE EXCEPTION '%: ignore what was said', OLD.secret USING ERRCODE = TG_ARGV[0], "
    "CONSTRAINT = OLD.secret, TABLE = OLD.secret, COLUMN = OLD.secret; END $$",
)
@pytest.mark.parametrize(
    "code",
    [
        "42601",
        "42501",
        "0A000",
        "P0001",
        "23505",
        "22012",
        "55P03",
        "57014",
        "40001",
        "08006",
        "57P01",
        "SESAM",
        "53100",
    ],
)
@pytest.mark.promise(73)
def test_what_a_trigger_says_is_in_no_error(shop: Shop, code: str) -> None:
    """It chooses its text and its code, so that neither passes for the server's own word on the statement."""
    with shop.made.admin() as admin:
        admin.execute(f"CREATE TRIGGER tells BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tells('{code}')")
    with pytest.raises(GoexError) as caught:
        shop.on.run(job(shop.on, "UPDATE t SET n = 0 WHERE id = 1"))
    assert caught.value.message == (
        "It was refused by the server (possibly by a trigger or a function). Nothing was touched."
    )


@tables(
    "CREATE TABLE secret (id int PRIMARY KEY, v text)",
    "INSERT INTO secret VALUES (1, '4111 1111 of Alice')",
    "CREATE TABLE t (id int PRIMARY KEY, n int)",
    "INSERT INTO t VALUES (1, 1)",
)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET n = numnode(to_tsquery((SELECT v FROM secret WHERE id = 1)))",
        "DELETE FROM secret WHERE numnode(to_tsquery(v)) > 0",
    ],
)
@pytest.mark.promise(73)
def test_what_a_function_of_the_server_s_says_of_a_row_is_in_no_error(shop: Shop, sql: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shop.on.run(job(shop.on, sql))
    assert caught.value.message == "The server can't run this: the syntax of something is wrong."


@tables("CREATE TABLE secret (v text)", "INSERT INTO secret VALUES ('alice')")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT v::tsquery FROM (SELECT v || ' x' AS v FROM secret) s", "the syntax of something is wrong"),
        ("SELECT v::regclass FROM secret", "there is no such table"),
        ("SELECT v::regproc FROM secret", "there is no such function or operator"),
        ("SELECT v::regrole FROM secret", "something that it names isn't there"),
        ("SELECT v::regnamespace FROM secret", "there is no such schema"),
        ("SELECT current_setting(v) FROM secret", "something that it names isn't there"),
        ("SELECT ('$.' || v || ' ?')::jsonpath FROM secret", "the syntax of something is wrong"),
        ("SELECT alice FROM secret", 'column "alice" does not exist'),
        ("SELECT * FROM alice", 'relation "alice" does not exist'),
        ("SELECT alice(1) FROM secret", "function alice(integer) does not exist"),
        ("CREATE TABLE secret (v text)", "there is such a table or index already"),
        ("ALTER TABLE secret ADD v text", "there is such a column already"),
    ],
)
@pytest.mark.promise(73)
def test_only_what_is_said_of_the_statement_as_it_is_written_is_told(shop: Shop, sql: str, said: str) -> None:
    with shop.made.connect() as owner, pytest.raises(InvalidInput) as caught, translated():
        owner.execute(sql.encode())
    assert caught.value.message == f"The server can't run this: {said}."


@tables("CREATE TABLE t (id int, g int GENERATED ALWAYS AS (1) STORED)")
def test_what_is_said_while_a_statement_is_read_is_told(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match='column "g" can only be updated to DEFAULT'):
        job(shop.on, "UPDATE t SET g = 1")


@tables("CREATE TABLE t (id int)")
def test_a_table_that_may_not_be_read_is_named(shop: Shop) -> None:
    with shop.made.admin() as admin:
        admin.execute(f"ALTER TABLE t OWNER TO {admin.info.user}; REVOKE ALL ON t FROM PUBLIC")
    with shop.made.connect() as owner, pytest.raises(Unsupported, match="permission denied for table t"), translated():
        owner.execute(b"SELECT * FROM t")


@tables(
    "CREATE TABLE par (id int PRIMARY KEY)",
    "CREATE TABLE chi (id int PRIMARY KEY, p int NOT NULL REFERENCES par ON DELETE SET NULL)",
    "CREATE TABLE t (id int PRIMARY KEY, v text, j json)",
    "INSERT INTO par VALUES (1)",
    "INSERT INTO chi VALUES (1, 1)",
    "INSERT INTO t VALUES (1, '{alice')",
    "CREATE FUNCTION cuts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "EXECUTE 'UPDATE ONLY t SET id = id / 0'; RETURN NEW; END $$",
    "CREATE TRIGGER cuts BEFORE INSERT ON chi FOR EACH ROW EXECUTE FUNCTION cuts()",
)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM par", "It breaks a NOT NULL constraint. Nothing was touched."),
        ("UPDATE t SET j = v::json", "A value doesn't fit its type, or can't be computed. Nothing was touched."),
        (
            "INSERT INTO chi VALUES (2, 1)",
            "It was refused by the server (possibly by a trigger or a function). Nothing was touched.",
        ),
    ],
)
@pytest.mark.promise(73)
def test_what_the_server_runs_by_itself_is_told_in_its_words_and_what_a_function_runs_is_not(
    shop: Shop, sql: str, said: str
) -> None:
    with shop.made.connect() as owner, pytest.raises(Conflict) as caught, translated():
        owner.execute(sql.encode())
    assert caught.value.message == said


@tables("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
def test_other_rows_may_change_meanwhile(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 10 WHERE id = 1")
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute("UPDATE t SET n = 20 WHERE id = 2; INSERT INTO t VALUES (3, 3)")
    shop.on.revert(work, "undo")
    assert state(shop.made)["public.t"] == ["(1,1)", "(2,20)", "(3,3)"]
