"""Tables that modules and triggers stand beside, literals of bytes, deferred keys: done, undone and done again."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import Conflict, Unsupported
from runtimes.sql.checking.check import check, refuse_referenced
from runtimes.sql.contract import Dialect, Policy, Ran
from tests.support.databases import LIMITS, Asked, SqliteGround, session

_INDEXED = (
    "CREATE TABLE docs (id INTEGER PRIMARY KEY, title TEXT, body TEXT)",
    "CREATE VIRTUAL TABLE found USING fts5(title, body, content='docs', content_rowid='id')",
    "CREATE TRIGGER docs_ai AFTER INSERT ON docs BEGIN"
    " INSERT INTO found(rowid, title, body) VALUES (new.id, new.title, new.body); END",
    "CREATE TRIGGER docs_ad AFTER DELETE ON docs BEGIN"
    " INSERT INTO found(found, rowid, title, body) VALUES ('delete', old.id, old.title, old.body); END",
    "CREATE TRIGGER docs_au AFTER UPDATE ON docs BEGIN"
    " INSERT INTO found(found, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);"
    " INSERT INTO found(rowid, title, body) VALUES (new.id, new.title, new.body); END",
    "INSERT INTO docs(title, body) VALUES ('one', 'first words'), ('two', 'second words'), ('three', 'third')",
)
_OWN_CONTENT = (
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)",
    "CREATE VIRTUAL TABLE words USING fts5(text)",
    "CREATE TRIGGER notes_ai AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, text) VALUES (new.id, new.text); END",
    "CREATE TRIGGER notes_ad AFTER DELETE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END",
    "CREATE TRIGGER notes_au AFTER UPDATE ON notes BEGIN UPDATE words SET text = new.text WHERE rowid = old.id; END",
    "INSERT INTO notes(text) VALUES ('alpha beta'), ('gamma')",
)
_PLACES = (
    "CREATE TABLE places (id INTEGER PRIMARY KEY, x REAL, y REAL)",
    "CREATE VIRTUAL TABLE boxes USING rtree(id, x1, x2, y1, y2)",
    "CREATE TRIGGER places_ai AFTER INSERT ON places BEGIN"
    " INSERT INTO boxes VALUES (new.id, new.x, new.x + 1, new.y, new.y + 1); END",
    "CREATE TRIGGER places_ad AFTER DELETE ON places BEGIN DELETE FROM boxes WHERE id = old.id; END",
    "INSERT INTO places(x, y) VALUES (0, 0), (5, 5)",
)


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    return made


def there_and_back(ground: SqliteGround, text: str, policy: Policy = "reversal") -> Ran:
    before = ground.dump()
    asked = Asked(ground, text, policy)
    ran = asked.run()
    after = ground.dump()
    assert after != before
    asked.revert("undo")
    assert ground.dump() == before and asked.state == "undone"
    asked.revert("redo")
    assert ground.dump() == after
    assert ground.rows("PRAGMA integrity_check") == [("ok",)]
    return ran


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
@pytest.mark.parametrize(
    ("made", "text", "rows"),
    [
        (_INDEXED, "INSERT INTO docs(title, body) VALUES ('four', 'fourth words')", 1),
        (_INDEXED, "UPDATE docs SET body = 'other words' WHERE id = 1", 1),
        (_INDEXED, "DELETE FROM docs WHERE id = 2", 1),
        (_INDEXED, "DELETE FROM docs", 3),
        (_OWN_CONTENT, "INSERT INTO notes(text) VALUES ('delta')", 1),
        (_OWN_CONTENT, "UPDATE notes SET text = 'epsilon' WHERE id = 2", 1),
        (_OWN_CONTENT, "DELETE FROM notes WHERE id = 1", 1),
        (_PLACES, "INSERT INTO places(x, y) VALUES (9, 9)", 1),
        (_PLACES, "DELETE FROM places WHERE id = 1", 1),
    ],
)
def test_a_table_with_triggers_into_a_modules(
    ground: SqliteGround, made: tuple[str, ...], text: str, rows: int, policy: Policy
) -> None:
    ground.execute(*made)
    ran = there_and_back(ground, text, policy)
    table = text.replace("FROM ", "").replace("INTO ", "").split()[1].partition("(")[0]
    told = {one.table: one.rows for one in ran.reached}
    assert told == {table: rows}, "a module's own tables aren't counted as anybody's rows"
    if made is _INDEXED:
        ground.execute("INSERT INTO found(found) VALUES ('integrity-check')")


def test_the_rows_of_a_table_beside_a_module_stay_bound(ground: SqliteGround) -> None:
    ground.execute(*_INDEXED)
    asked = Asked(ground, "DELETE FROM docs WHERE id < 2")
    asked.plan()
    ground.execute(*(f"INSERT INTO docs(id, title, body) VALUES (-{n}, 'x', 'y')" for n in range(1, 40)))
    before = ground.dump()
    with pytest.raises(Conflict, match="more than"):
        asked.run()
    assert ground.dump() == before


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (2, x'ff')",
        "INSERT INTO t VALUES (2, X'00fF80c3')",
        "UPDATE t SET b = x'fffe' WHERE b = x'c328'",
        "UPDATE t SET b = x''",
        "DELETE FROM t WHERE b = x'c328'",
        "INSERT INTO t VALUES (2, CAST(x'ff' AS BLOB))",
    ],
)
def test_bytes_that_are_no_text(ground: SqliteGround, text: str) -> None:
    ground.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)", "INSERT INTO t VALUES (1, x'c328')")
    there_and_back(ground, text)


def test_bytes_that_are_no_text_are_read(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (b BLOB)", "INSERT INTO t VALUES (x'ff')")
    ran = Asked(ground, "SELECT b, x'fe' FROM t WHERE b = x'ff'").run()
    assert ran.results[0].rows == (("x'ff'", "x'fe'"),)


def test_a_deferred_key_that_breaks_at_the_commit_says_so(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE p (id INTEGER PRIMARY KEY)",
        "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)",
    )
    before = ground.dump()
    with pytest.raises(Conflict, match="point to one that isn't there") as refused:
        Asked(ground, "INSERT INTO c VALUES (1, 7)").run()
    assert "Nothing was changed" in refused.value.message and ground.dump() == before
    there_and_back(ground, "INSERT INTO c VALUES (1, 7); INSERT INTO p VALUES (7)")


_FAMILY = (
    "CREATE TABLE p (id INTEGER PRIMARY KEY)",
    "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p(id))",
    "INSERT INTO p VALUES (1)",
    "INSERT INTO c VALUES (1, 1)",
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("DROP TABLE p", True),
        ("INSERT INTO other VALUES (1); DROP TABLE p", True),
        ("DROP TABLE c", False),
        ("DROP TABLE c; DROP TABLE p", False),
        ("DELETE FROM c; DROP TABLE p", False),
        ("DROP TABLE other", False),
    ],
)
def test_a_drop_that_must_break_a_key_is_refused_before_it_is_asked_for(
    ground: SqliteGround, text: str, refused: bool
) -> None:
    ground.execute(*_FAMILY, "CREATE TABLE other (id)")
    with session(ground, LIMITS) as at:
        schema = at.schema()
    program = check(text, schema, database=ground.database)
    if not refused:
        refuse_referenced(program, schema)
        there_and_back(ground, text)
        return
    with pytest.raises(Unsupported, match="c points to p"):
        refuse_referenced(program, schema)
    with pytest.raises(Conflict, match="point to one that isn't there"):
        Asked(ground, text).run()


@pytest.mark.parametrize("dialect", [Dialect.POSTGRESQL, Dialect.MARIADB])
@pytest.mark.parametrize(
    ("text", "refused"), [("DROP TABLE p", True), ("DELETE FROM c; DROP TABLE p", True), ("DROP TABLE c", False)]
)
def test_where_a_key_stands_against_a_drop_whatever_the_rows(
    ground: SqliteGround, dialect: Dialect, text: str, refused: bool
) -> None:
    ground.execute(*(line.replace("p(id)", "p(id) ON DELETE CASCADE") for line in _FAMILY))
    with session(ground, LIMITS) as at:
        schema = replace(at.schema(), dialect=dialect)
    program = check(text, schema, database=ground.database)
    with pytest.raises(Unsupported, match="Drop c first") if refused else nullcontext():
        refuse_referenced(program, schema)


def test_a_drop_that_takes_rows_with_it_by_a_cascade(ground: SqliteGround) -> None:
    ground.execute(*(line.replace("p(id)", "p(id) ON DELETE CASCADE") for line in _FAMILY))
    there_and_back(ground, "DROP TABLE p")
