"""What every driver of databases has to keep, run against real SQLite, PostgreSQL and MariaDB.

What one engine can't take back exactly it refuses beforehand: `REFUSED` lists those cases, and they are tests too.
"""

# SQL here is made of the tests' own names.

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from runtimes.sql.contract import Dialect, Limits, Policy
from tests.services.mariadb import MariaDb, find_server
from tests.services.postgres import Postgres
from tests.support.databases import (
    Asked,
    Ground,
    Kept,
    MariaDbGround,
    PostgresGround,
    SqliteGround,
    session,
    verbs,
)
from tests.support.interrupting import interrupting

ENGINES = ("sqlite", "postgres", "mariadb")

# (engine, case): the survey refuses it with the reason. Everything else is exact.
REFUSED: set[tuple[str, str]] = {
    ("sqlite", "truncate"),  # it has none
    ("mariadb", "trigger"),
    ("postgres", "ddl-add"),  # but for a CREATE TABLE alone; versioning takes the others
    ("postgres", "ddl"),
}

_TABLES = {
    Dialect.SQLITE: (
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email VARCHAR(80) UNIQUE)",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers(id) ON DELETE CASCADE ON"
        " UPDATE CASCADE, total NUMERIC, status TEXT DEFAULT 'open')",
        "CREATE TABLE items (orders_id INTEGER REFERENCES orders(id) ON DELETE CASCADE, line INTEGER, what TEXT,"
        " PRIMARY KEY (orders_id, line))",
        "CREATE TABLE notes (customer INTEGER REFERENCES customers(id) ON DELETE SET NULL ON UPDATE CASCADE,"
        " note TEXT)",
        "CREATE TABLE computed (id INTEGER PRIMARY KEY, a INTEGER, twice INTEGER GENERATED ALWAYS AS (a * 2) STORED)",
        "CREATE TABLE places (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE)",
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, t TEXT, n REAL, b BLOB, i INTEGER)",
    ),
    Dialect.POSTGRESQL: (
        "CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, email varchar(80) UNIQUE)",
        "CREATE TABLE orders (id integer PRIMARY KEY, customer integer REFERENCES customers(id) ON DELETE CASCADE ON"
        " UPDATE CASCADE, total numeric(12,2), status text DEFAULT 'open')",
        "CREATE TABLE items (orders_id integer REFERENCES orders(id) ON DELETE CASCADE, line integer, what text,"
        " PRIMARY KEY (orders_id, line))",
        "CREATE TABLE notes (customer integer REFERENCES customers(id) ON DELETE SET NULL ON UPDATE CASCADE,"
        " note text)",
        "CREATE TABLE computed (id integer PRIMARY KEY, a integer, twice integer GENERATED ALWAYS AS (a * 2) STORED)",
        "CREATE TABLE places (id integer PRIMARY KEY, place integer NOT NULL UNIQUE DEFERRABLE)",
        "CREATE TABLE odd (id integer PRIMARY KEY, t text, n double precision, b bytea, i bigint)",
    ),
    Dialect.MARIADB: (
        "CREATE TABLE customers (id int PRIMARY KEY, name varchar(100) NOT NULL, email varchar(80) UNIQUE)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, total decimal(12,2), status varchar(20) DEFAULT 'open',"
        " FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE items (orders_id int, line int, what text, PRIMARY KEY (orders_id, line), FOREIGN KEY (orders_id)"
        " REFERENCES orders(id) ON DELETE CASCADE)",
        "CREATE TABLE notes (customer int, note text, FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE SET"
        " NULL ON UPDATE CASCADE)",
        "CREATE TABLE computed (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED)",
        "CREATE TABLE places (id int PRIMARY KEY, place int NOT NULL UNIQUE)",
        "CREATE TABLE odd (id int PRIMARY KEY, t text, n double, b longblob, i bigint)",
    ),
}
_ROWS = (
    "INSERT INTO customers VALUES (1, 'Ada', 'a@example.org'), (2, 'Bo', NULL), (3, 'Cy', 'c@example.org')",
    "INSERT INTO orders VALUES (5, 1, 10.50, 'open'), (6, 1, 0, 'open'), (7, 2, 99999.99, 'closed'),"
    " (8, NULL, 1, 'open')",
    "INSERT INTO items VALUES (5, 1, 'tea'), (5, 2, 'milk'), (7, 1, 'rice')",
    "INSERT INTO notes VALUES (1, 'first'), (1, 'first'), (3, NULL)",
    "INSERT INTO computed (id, a) VALUES (1, 10), (2, NULL)",
    "INSERT INTO places VALUES (1, 1), (2, 2), (3, 3)",
)
_TRIGGERS = {
    Dialect.SQLITE: (
        "CREATE TABLE audit (what TEXT, at INTEGER)",
        "CREATE TRIGGER watch AFTER UPDATE ON orders BEGIN INSERT INTO audit VALUES (old.status || new.status, new.id);"
        " UPDATE customers SET name = name || '!' WHERE id = new.customer; END",
    ),
    Dialect.POSTGRESQL: (
        "CREATE TABLE audit (what text, at integer)",
        "CREATE FUNCTION watching() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (old.status"
        " || new.status, new.id); UPDATE customers SET name = name || '!' WHERE id = new.customer; RETURN NULL; END $$",
        "CREATE TRIGGER watch AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION watching()",
    ),
    Dialect.MARIADB: (
        "CREATE TABLE audit (what text, at int)",
        "CREATE TRIGGER watch AFTER UPDATE ON orders FOR EACH ROW BEGIN INSERT INTO audit VALUES (concat(old.status,"
        " new.status), new.id); UPDATE customers SET name = concat(name, '!') WHERE id = new.customer; END",
    ),
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One database of each kind for this file; each test starts it empty."""
    name = str(request.param)
    if name == "sqlite":
        yield SqliteGround(tmp_path_factory.mktemp("sqlite"))
    elif name == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        yield PostgresGround(server)
    else:
        if find_server() is None:
            pytest.skip("no MariaDB: run make services")
        with MariaDb() as running, running.database(user="goex", password=MariaDbGround.password) as database:
            yield MariaDbGround(running, database)


@pytest.fixture
def ground(engine: Ground) -> Ground:
    """A small shop."""
    engine.empty()
    engine.execute(*_TABLES[engine.dialect], *_ROWS)
    return engine


def refused(ground: Ground, case: str) -> bool:
    name = {"postgresql": "postgres"}.get(str(ground.dialect), str(ground.dialect))
    return (name, case) in REFUSED


# ---- exactly there and back

CASES: dict[str, tuple[str, str]] = {
    "update": ("update", "UPDATE orders SET status = 'closed', total = total + 1.25 WHERE customer = 1"),
    "delete": ("delete", "DELETE FROM items WHERE orders_id = 5"),
    "delete-all": ("delete", "DELETE FROM items"),
    "insert": ("insert", "INSERT INTO customers (id, name) VALUES (10, 'Di'), (11, 'It''s')"),
    "insert-select": ("insert", "INSERT INTO items SELECT id, 9, status FROM orders"),
    "upsert": (
        "insert",
        "INSERT INTO customers VALUES (1, 'Ada 2', 'new@example.org'), (9, 'Io', NULL) ON CONFLICT (id) DO UPDATE SET"
        " name = excluded.name",
    ),
    "cascade-delete": ("cascade", "DELETE FROM customers WHERE id = 1"),
    "cascade-key": ("cascade", "UPDATE customers SET id = id + 100 WHERE id < 3"),
    "no-key-update": ("no-key", "UPDATE notes SET note = 'changed' WHERE customer = 1"),
    "no-key-delete": ("no-key", "DELETE FROM notes WHERE customer = 1"),
    "no-key-insert": ("no-key", "INSERT INTO notes VALUES (NULL, NULL), (2, 'x')"),
    "generated": ("generated", "UPDATE computed SET a = 77"),
    "generated-delete": ("generated", "DELETE FROM computed"),
    "key-change": ("key", "UPDATE places SET id = id + 10"),
    "nothing": ("update", "UPDATE orders SET status = 'x' WHERE id = 12345"),
    "same-values": ("update", "UPDATE orders SET status = status"),
    "several": (
        "several",
        "INSERT INTO customers (id, name) VALUES (20, 'new'); UPDATE customers SET name = 'newer' WHERE id = 20;"
        " DELETE FROM customers WHERE id = 20; DELETE FROM items WHERE line = 1;"
        " INSERT INTO items VALUES (5, 1, 'again')",
    ),
}
_MARIADB = {
    "upsert": "INSERT INTO customers VALUES (1, 'Ada 2', 'new@example.org'), (9, 'Io', NULL) ON DUPLICATE KEY UPDATE"
    " name = VALUES(name)",
}


def statement(ground: Ground, case: str) -> str:
    text = CASES[case][1]
    return _MARIADB.get(case, text) if ground.dialect is Dialect.MARIADB else text


@pytest.mark.sampled(6)
@pytest.mark.promise(75)
@pytest.mark.parametrize("case", CASES)
def test_undo_and_redo_are_exact(ground: Ground, case: str) -> None:
    there_and_back(ground, statement(ground, case), CASES[case][0])


def there_and_back(ground: Ground, text: str, kind: str, policy: Policy = "reversal") -> None:
    """Do, undo, redo, undo: each state is exactly what it was; or it is refused beforehand, where that is listed."""
    before = ground.dump()
    asked = Asked(ground, text, policy)
    if refused(ground, kind):
        with pytest.raises((Unsupported, InvalidInput)) as caught:
            asked.run()
        assert caught.value.next_step, "the reason has a next step"
        assert ground.dump() == before
        return
    asked.run()
    after = ground.dump()
    assert asked.state == "done"
    assert asked.compare("undo") is not None
    asked.revert("undo")
    assert ground.dump() == before
    assert asked.state in ("undone", "done" if after == before else "undone")
    asked.revert("redo")
    assert ground.dump() == after
    assert asked.state == "done"
    asked.revert("undo")
    assert ground.dump() == before


def test_what_it_did_is_counted(ground: Ground) -> None:
    asked = Asked(ground, "DELETE FROM customers WHERE id = 1")
    found = verbs(asked.run())
    assert found["customers", "delete"] == 1
    assert found["orders", "delete"] == 2
    assert found["items", "delete"] == 2
    assert found["notes", "update"] == 2


def test_the_survey_names_every_table_and_writes_nothing(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "DELETE FROM customers WHERE id = 1")
    job = asked.plan()
    with session(ground) as at:
        found = at.survey(job.program, "reversal", job.limits)
    assert {(one.table, one.verb) for one in found.reached} == {
        ("customers", "delete"),
        ("orders", "delete"),
        ("items", "delete"),
        ("notes", "update"),
    }
    assert next(one.rows for one in found.reached if one.table == "customers") == 1
    assert ground.dump() == before
    assert asked.records == {}


def test_a_select_gives_its_rows_and_changes_nothing(ground: Ground) -> None:
    before = ground.dump()
    ran = Asked(ground, "SELECT id, name, email FROM customers ORDER BY id").run()
    assert ran.results[0].columns == ("id", "name", "email")
    assert ran.results[0].rows == ((1, "Ada", "a@example.org"), (2, "Bo", None), (3, "Cy", "c@example.org"))
    assert ground.dump() == before


def test_a_select_of_many_rows_is_cut_and_says_so(ground: Ground) -> None:
    limits = Limits(lock_seconds=0.4, seconds=30, result_rows=2)
    result = Asked(ground, "SELECT id FROM places ORDER BY id", limits=limits).run().results[0]
    assert result.rows == ((1,), (2,))
    assert result.cut == 1


def test_a_trial_leaves_nothing(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "UPDATE orders SET status = 'tried' WHERE customer = 1")
    assert verbs(asked.trial())["orders", "update"] == 2
    assert ground.dump() == before
    assert asked.records == {}


def test_keys_that_change_places(ground: Ground) -> None:
    """Each row takes the next one's unique value: put back one by one they would be in each other's way."""
    text = "UPDATE places SET place = -place; UPDATE places SET place = CASE id WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 1 END"
    there_and_back(ground, text, "key")


def test_triggers(ground: Ground) -> None:
    ground.execute(*_TRIGGERS[ground.dialect])
    there_and_back(ground, "UPDATE orders SET status = 'sent' WHERE id IN (5, 7)", "trigger")


def test_definitions(ground: Ground) -> None:
    there_and_back(ground, "CREATE TABLE fresh (id INTEGER PRIMARY KEY, t TEXT)", "ddl-create")
    there_and_back(ground, "ALTER TABLE notes ADD COLUMN more INTEGER", "ddl-add")
    there_and_back(ground, "DROP TABLE items", "ddl")


def test_truncate(ground: Ground) -> None:
    there_and_back(ground, "TRUNCATE TABLE items", "truncate")


UNUSUAL = (
    (
        "t",
        [
            "",
            " ",
            "it's",
            'say "x"',
            "%s %(a)s :name ? $1 {}",
            "back\\slash \\n \\0",
            "\u00e4\u4e2d\U0001f600",
            "a\tb\nc\r",
        ],
    ),
    ("n", [0.1, -0.0, 1e308, 5e-324, 123456789.123456789, 1.0]),
    ("i", [0, -1, 2**63 - 1, -(2**63)]),
    ("b", [b"", b"\x00", bytes(range(256)), b"\xff\xfe'\\"]),
)


def test_unusual_values_come_back_as_they_were(ground: Ground) -> None:
    number = 0
    for column, values in UNUSUAL:
        for value in values:
            number += 1
            ground.execute(_insert_odd(ground, number, column, value))
    there_and_back(ground, "UPDATE odd SET t = 'x', n = 3, b = NULL, i = 5", "update")
    there_and_back(ground, "DELETE FROM odd", "delete")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("value", [b"", b"\x00", "", 0.5], ids=["no bytes", "a byte", "no text", "a number"])
def test_a_statement_may_name_any_value(ground: Ground, value: object) -> None:
    column, text = {bytes: "b", str: "t", float: "n"}[type(value)], ground.literal(value)
    ground.execute(_insert_odd(ground, 1, column, value))
    there_and_back(ground, f"UPDATE odd SET {column} = NULL WHERE {column} = {text}", "update")
    there_and_back(ground, f"DELETE FROM odd WHERE {column} = {text}", "delete")


def _insert_odd(ground: Ground, number: int, column: str, value: object) -> str:
    text = ground.literal(value)
    if ground.dialect is not Dialect.SQLITE and value == -(2**63):
        text = f"({-(2**63) + 1} - 1)"
    return f"INSERT INTO odd (id, {column}) VALUES ({number}, {text})"


# ---- bounds, locks, ends


@pytest.mark.promise(76)
def test_more_rows_than_asked_for_are_rolled_back(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "UPDATE orders SET status = 'x'", rows=3)
    with pytest.raises(Conflict):
        asked.run()
    assert ground.dump() == before
    assert asked.state == "nothing"


@pytest.mark.promise(76)
def test_rows_of_cascades_count(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "DELETE FROM customers WHERE id = 1", rows=4)
    with pytest.raises(Conflict):
        asked.run()
    assert ground.dump() == before


def test_an_image_that_would_be_too_large_is_rolled_back(ground: Ground) -> None:
    ground.execute(*(f"INSERT INTO odd (id, t) VALUES ({n}, '{_noise(n)}')" for n in range(40)))
    before = ground.dump()
    limits = Limits(lock_seconds=0.4, seconds=30, image_bytes=4000)
    asked = Asked(ground, "UPDATE odd SET t = 'x'", limits=limits)
    with pytest.raises((Conflict, Unsupported)):
        asked.run()
    assert ground.dump() == before


def _noise(number: int) -> str:
    return "".join(hashlib.sha256(f"{number} {part}".encode()).hexdigest() for part in range(8))


def test_somebody_elses_lock_is_waited_for_and_no_longer(ground: Ground) -> None:
    asked = Asked(ground, "UPDATE orders SET status = 'x' WHERE id = 5")
    asked.plan()
    before = ground.dump()
    with ground.locked("orders"):
        began = time.monotonic()
        with pytest.raises(Conflict):
            asked.run()
        assert time.monotonic() - began < 30
    assert ground.dump() == before
    asked.run()
    with ground.locked("orders"), pytest.raises(Conflict):
        asked.revert("undo")
    asked.revert("undo")
    assert ground.dump() == before


def test_a_held_action_is_named_to_the_next_one(ground: Ground) -> None:
    if ground.dialect is Dialect.SQLITE:
        pytest.skip("SQLite holds nothing back")
    before = ground.dump()
    first = Asked(ground, "UPDATE orders SET status = 'held' WHERE id = 5", "versioning")
    first.run()
    assert first.state == "held"
    assert ground.dump() == before, "nobody sees what is held"
    second = Asked(ground, "UPDATE orders SET status = 'second' WHERE id = 5")
    with pytest.raises(Conflict) as caught:
        second.run()
    assert first.id in f"{caught.value} {caught.value.difference}"
    first.commit()
    assert ground.rows("SELECT status FROM orders WHERE id = 5") == [("held",)]


def test_a_held_action_is_committed_or_taken_back(ground: Ground) -> None:
    before = ground.dump()
    one = Asked(ground, "UPDATE orders SET status = 'held' WHERE id = 5", "versioning")
    one.run()
    assert one.state == "held"
    one.revert("undo")
    assert ground.dump() == before
    assert one.state in ("undone", "nothing")
    other = Asked(ground, "UPDATE orders SET status = 'kept' WHERE id = 5", "versioning")
    other.run()
    other.commit()
    other.commit()
    assert ground.rows("SELECT status FROM orders WHERE id = 5") == [("kept",)]


def test_interrupted_it_rolls_back(ground: Ground) -> None:
    slow = {
        Dialect.SQLITE: "UPDATE orders SET total = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 300000000) SELECT count(*) FROM n)",
        Dialect.POSTGRESQL: "UPDATE orders SET total = (SELECT count(*) FROM generate_series(1, 200000) a,"
        " generate_series(1, 200000) b WHERE a.a < b.b + orders.id)",
        Dialect.MARIADB: "UPDATE orders SET total = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 900) SELECT count(*) FROM n a, n b, n c, n d WHERE a.i + b.i + c.i + d.i > 5)",
    }
    before = ground.dump()
    asked = Asked(ground, slow[ground.dialect])
    try:
        job = asked.plan()
    except Unsupported:
        pytest.fail("the slow statement has to be allowed")
    with session(ground) as at, interrupting(at, after=0.3), pytest.raises(GoexError):
        at.run(job)
    assert ground.dump() == before
    assert asked.state == "nothing"


def test_a_deadline_rolls_back(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "UPDATE orders SET status = 'x'")
    job = asked.plan()
    late = Asked(ground, asked.text, limits=Limits(lock_seconds=5, seconds=0.3))
    late.job = type(job)(**{name: getattr(job, name) for name in job.__slots__ if name != "limits"}, limits=late.limits)
    with ground.locked("orders"), pytest.raises(GoexError):
        late.run()
    assert ground.dump() == before


# ---- somebody else, in between


@pytest.mark.sampled(6)
@pytest.mark.promise(75)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE orders SET status = 'theirs' WHERE id = 5",
        "UPDATE orders SET total = 3.25 WHERE id = 6",
        "DELETE FROM orders WHERE id = 6",
        "UPDATE orders SET id = 66 WHERE id = 6",
    ],
)
def test_somebody_elses_change_is_refused_and_nothing_is_touched(ground: Ground, change: str) -> None:
    asked = Asked(ground, "UPDATE orders SET status = 'ours' WHERE customer = 1")
    asked.run()
    ground.execute(change)
    left = ground.dump()
    for verb in ("compare", "revert"):
        with pytest.raises(Conflict) as caught:
            getattr(asked, verb)("undo")
        assert caught.value.difference
        assert any("orders" in line for line in caught.value.difference)
        assert ground.dump() == left


def test_a_key_that_was_taken_meanwhile_is_a_conflict(ground: Ground) -> None:
    asked = Asked(ground, "DELETE FROM items WHERE orders_id = 5 AND line = 1")
    asked.run()
    ground.execute("INSERT INTO items VALUES (5, 1, 'theirs')")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left


def test_a_unique_value_that_was_taken_meanwhile_is_a_conflict(ground: Ground) -> None:
    asked = Asked(ground, "UPDATE customers SET email = 'z@example.org' WHERE id = 1")
    asked.run()
    ground.execute("INSERT INTO customers VALUES (50, 'Zo', 'a@example.org')")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left


def test_rows_that_others_point_to_meanwhile_stay(ground: Ground) -> None:
    asked = Asked(ground, "INSERT INTO customers (id, name) VALUES (30, 'new')")
    asked.run()
    ground.execute("INSERT INTO orders VALUES (90, 30, 1, 'theirs')")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left


def test_a_definition_that_changed_meanwhile_is_a_conflict(ground: Ground) -> None:
    asked = Asked(ground, "UPDATE notes SET note = 'x'")
    asked.run()
    ground.execute("ALTER TABLE notes ADD COLUMN extra INTEGER")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left


def test_a_definition_that_changed_before_it_ran_is_a_conflict(ground: Ground) -> None:
    asked = Asked(ground, "UPDATE notes SET note = 'x'")
    asked.plan()
    ground.execute("ALTER TABLE notes ADD COLUMN extra INTEGER")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.run()
    assert ground.dump() == left


def test_changes_elsewhere_are_kept(ground: Ground) -> None:
    """Undo touches its own rows alone."""
    asked = Asked(ground, "UPDATE orders SET status = 'ours' WHERE id = 5")
    asked.run()
    ground.execute("UPDATE orders SET status = 'theirs' WHERE id = 7", "INSERT INTO places VALUES (9, 9)")
    asked.revert("undo")
    assert sorted(ground.rows("SELECT id, status FROM orders")) == [
        (5, "open"),
        (6, "open"),
        (7, "theirs"),
        (8, "open"),
    ]
    assert ground.rows("SELECT place FROM places WHERE id = 9") == [(9,)]


def test_undo_done_twice_says_so(ground: Ground) -> None:
    before = ground.dump()
    asked = Asked(ground, "UPDATE orders SET status = 'ours'")
    asked.run()
    asked.revert("undo")
    assert asked.revert("undo").notes
    assert ground.dump() == before


# ---- what is kept


@pytest.mark.sampled(7)
@pytest.mark.promise(75)
@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_a_damaged_image_is_refused(ground: Ground, how: str) -> None:
    asked = Asked(ground, "UPDATE orders SET status = 'ours'")
    asked.run()
    left = ground.dump()
    name = max((name for name in asked.records if name != "db.state"), key=lambda name: len(asked.records[name]))
    data = asked.records[name]
    if how == "cut":
        asked.records[name] = data[:-4]
    elif how == "flipped":
        asked.records[name] = data[:-4] + bytes([data[-4] ^ 1]) + data[-3:]
    else:
        del asked.records[name]
    with pytest.raises(GoexError):
        asked.revert("undo")
    assert ground.dump() == left


def test_without_records_nothing_is_taken_back(ground: Ground) -> None:
    asked = Asked(ground, "UPDATE orders SET status = 'ours'")
    asked.run()
    left = ground.dump()
    asked.records = Kept()
    job = asked.planned()
    asked.job = type(job)(
        **{name: getattr(job, name) for name in job.__slots__ if name != "records"}, records=asked.records
    )
    with pytest.raises(GoexError):
        asked.revert("undo")
    assert ground.dump() == left


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE customers SET email = 'a@example.org' WHERE id = 2",
        "INSERT INTO orders VALUES (91, 4711, 1, 'x')",
        "INSERT INTO customers (id, name) SELECT id, email FROM customers",
        "UPDATE odd SET i = CAST(t AS INTEGER)",
    ],
)
def test_errors_tell_no_data(ground: Ground, text: str) -> None:
    ground.execute("INSERT INTO odd (id, t) VALUES (1, 'sesame')")
    before = ground.dump()
    try:
        Asked(ground, text).run()
    except GoexError as error:
        said = f"{error} {getattr(error, 'difference', ())}"
        for value in ("sesame", "a@example.org", "4711"):
            assert value not in said
        assert ground.dump() == before
