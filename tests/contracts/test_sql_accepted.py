"""Forms that people write, on the real servers: done, undone, redone, undone, each time exactly; and beside each form
one that stays refused before it runs."""

from __future__ import annotations

import pytest

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect
from tests.contracts.test_sql import engine, ground, there_and_back  # noqa: F401 (fixtures)
from tests.sampling import left_out
from tests.support.databases import Asked, Ground, session

_LOG = (
    "CREATE TABLE log (id int, at date NOT NULL, what text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
    "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
    "CREATE TYPE place AS (street text, city text)",
    "CREATE TABLE kinds (id int PRIMARY KEY, tags text[], j jsonb, home place, spot point)",
    "INSERT INTO kinds VALUES (1, '{a,b}', '{\"a\": {\"b\": 1}}', ('s', 'c'), '(1,2)'), (2, NULL, NULL, NULL, NULL)",
    "CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text)",
    "CREATE SEQUENCE tickets",
    "CREATE TABLE archive (LIKE items)",
    "CREATE VIEW look AS SELECT id, status FROM orders",
    "CREATE TABLE base (id int PRIMARY KEY, what text)",
    "CREATE TABLE heir (more int) INHERITS (base)",
    "INSERT INTO base VALUES (1, 'a')",
    "INSERT INTO heir VALUES (2, 'b', 3)",
    "INSERT INTO log VALUES (1, '2024-02-02', 'a')",
)
SETUP = {
    Dialect.POSTGRESQL: _LOG,
    Dialect.MARIADB: (
        "CREATE TABLE shapes (id int PRIMARY KEY, g point)",
        "INSERT INTO shapes VALUES (1, POINT(1, 2))",
        "CREATE TABLE up (id int PRIMARY KEY)",
        "INSERT INTO up VALUES (1), (2)",
        "CREATE TABLE plain (id int PRIMARY KEY, n int, t varchar(20) NOT NULL, u varchar(20),"
        " UNIQUE u (u), KEY by_n (n))",
        "INSERT INTO plain VALUES (1, 1, 'a', 'a'), (2, NULL, 'b', NULL)",
        "CREATE TABLE aria (id int PRIMARY KEY) ENGINE=Aria",
        "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10),"
        " PARTITION high VALUES LESS THAN MAXVALUE)",
        "INSERT INTO parted VALUES (1), (20)",
    ),
    Dialect.SQLITE: (
        "CREATE VIRTUAL TABLE docs USING fts5(title, body)",
        "INSERT INTO docs VALUES ('a', 'a fat cat'), ('b', 'a dog')",
        "CREATE VIRTUAL TABLE boxes USING rtree(id, minx, maxx)",
        "INSERT INTO boxes VALUES (1, 0, 1)",
    ),
}
ACCEPTED = {
    Dialect.POSTGRESQL: (
        "MERGE INTO orders o USING customers c ON c.id = o.customer WHEN MATCHED AND c.id = 1 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET status = c.name",
        "MERGE INTO places p USING (VALUES (3, 33), (4, 44)) v(id, place) ON p.id = v.id"
        " WHEN MATCHED THEN UPDATE SET place = v.place WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.place)",
        "WITH gone AS (DELETE FROM items WHERE line = 1 RETURNING *) INSERT INTO archive SELECT * FROM gone",
        "WITH a AS (UPDATE orders SET status = 'w' WHERE id = 5 RETURNING customer) UPDATE customers SET name = 'w'"
        " WHERE id IN (SELECT customer FROM a)",
        "WITH d AS (DELETE FROM notes WHERE customer = 1 RETURNING note) SELECT count(*) FROM d",
        "WITH d AS (VALUES (5, 'w')) UPDATE orders SET status = d.column2 FROM d WHERE id = d.column1",
        "UPDATE orders SET status = 'w' WHERE id = (SELECT id FROM orders ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE kinds SET tags[2] = 'z', j['a']['b'] = '5', home.city = 'Rome' WHERE id = 1",
        "UPDATE kinds SET spot = point(3, 4)",
        "INSERT INTO counted (id, what) OVERRIDING SYSTEM VALUE VALUES (50, 'o')",
        "INSERT INTO places VALUES (nextval('tickets') + 100, 900)",
    ),
    Dialect.MARIADB: (
        "CREATE TABLE fresh (id int AUTO_INCREMENT PRIMARY KEY, t varchar(20)) ENGINE=InnoDB",
        "CREATE VIEW seen AS SELECT id FROM orders",
        "CREATE INDEX by_status ON orders (status)",
        "ALTER TABLE orders ADD COLUMN more int NOT NULL DEFAULT 7",
        "ALTER TABLE orders ADD COLUMN more varchar(9) AFTER id",
        "ALTER TABLE orders RENAME COLUMN status TO state",
        "TRUNCATE TABLE items",
        "UPDATE shapes SET g = ST_GeomFromText('POINT(3 4)') WHERE ST_X(g) = 1",
        "CREATE TABLE fresh LIKE plain",
        "DROP INDEX by_n ON plain",
        "RENAME TABLE plain TO plainer",
        "ALTER TABLE plain MODIFY COLUMN t varchar(50)",
        "ALTER TABLE plain MODIFY COLUMN t text NOT NULL",
        "ALTER TABLE plain ADD CONSTRAINT plain_up FOREIGN KEY (id) REFERENCES up (id)",
        "DELETE FROM parted PARTITION (low)",
        "ALTER TABLE orders ADD COLUMN more int NOT NULL",
        "DROP TABLE items",
        "DROP TABLE shapes",
        "CREATE TABLE fresh AS SELECT id, status FROM orders",
        "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = 1, status = 'x'",
        "CREATE TABLE fresh (id int PRIMARY KEY, t text); INSERT INTO fresh SELECT id, status FROM orders",
        "ALTER TABLE plain DROP COLUMN t, ADD COLUMN more int",
        "ALTER TABLE plain CHANGE COLUMN t words varchar(5) NOT NULL",
        "ALTER TABLE plain MODIFY COLUMN t varchar(50) CHARACTER SET latin1",
        "ALTER TABLE plain ADD CONSTRAINT plain_up FOREIGN KEY (n) REFERENCES up (id), DROP COLUMN u",
        "ALTER TABLE shapes ADD COLUMN more int, ADD CONSTRAINT f FOREIGN KEY (more) REFERENCES up (id)",
        "ALTER TABLE shapes DROP COLUMN g",
        "DROP INDEX u ON plain",
        "UPDATE orders o JOIN customers c ON c.id = o.customer SET o.status = c.name, c.name = 'w' WHERE c.id = 1",
        "DELETE i, o FROM orders o LEFT JOIN items i ON i.orders_id = o.id WHERE o.customer = 1",
        "SET @id = (SELECT MIN(id) FROM orders); UPDATE orders SET status = 'w' WHERE id = @id",
    ),
    Dialect.SQLITE: (
        "INSERT INTO docs VALUES ('c', 'new words')",
        "UPDATE docs SET body = 'other words' WHERE rowid = 1",
        "DELETE FROM docs WHERE docs MATCH 'cat'",
        "INSERT INTO docs (docs) VALUES ('optimize')",
        "INSERT INTO boxes VALUES (2, 5, 6)",
        "UPDATE boxes SET maxx = 9 WHERE minx >= 0",
        "UPDATE OR IGNORE places SET place = 2 WHERE id = 1",
        "UPDATE OR REPLACE places SET id = 2 WHERE id = 1",
        "UPDATE odd SET b = zeroblob(3)",
        "UPDATE odd SET b = randomblob(3)",
        "WITH d(a, b) AS (VALUES (1, 'w')) UPDATE orders SET status = (SELECT b FROM d) WHERE id IN (SELECT a FROM d)",
        "ANALYZE",
        "PRAGMA user_version = 9",
        "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = 1",
        "CREATE TABLE fresh (id INTEGER PRIMARY KEY, s TEXT); INSERT INTO fresh SELECT id, status FROM orders;"
        " DELETE FROM fresh WHERE s IS NULL; ALTER TABLE fresh RENAME TO states; CREATE INDEX by_s ON states (s)",
    ),
}
HELD = {  # of PostgreSQL: what can't be set back row by row; the tables that the plan names
    "UPDATE look SET status = 'v' WHERE id = 5": {"look", "orders"},
    "DELETE FROM look": {"look", "orders", "items"},
    "UPDATE look SET status = 'v' WHERE id = -1": {"look", "orders"},
    "DELETE FROM log_1": {"log_1", "log"},
    "UPDATE base SET what = 'x'": {"base", "heir"},
    "UPDATE ONLY base SET what = 'x'": {"base", "heir"},
    "TRUNCATE customers CASCADE": {"customers", "orders", "items", "notes"},
    "CREATE MATERIALIZED VIEW seen AS SELECT id FROM orders": {"seen"},
    "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = 1": {"orders"},
    "ALTER TABLE orders ADD COLUMN more int, ADD CONSTRAINT many CHECK (more > 0)": {"orders"},
    "ALTER TABLE orders ADD CONSTRAINT few CHECK (id < 3) NOT VALID": {"orders"},
    "COMMENT ON TABLE orders IS 'x'; COMMENT ON COLUMN orders.status IS 'y'": {"orders"},
    "CREATE TABLE fresh (id int, t text); INSERT INTO fresh VALUES (1, 'a')": {"fresh"},
}
READS = {
    Dialect.POSTGRESQL: (
        "EXPLAIN SELECT * FROM orders",
        "EXPLAIN DELETE FROM orders",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
        "SELECT id FROM orders FOR UPDATE",
    ),
    Dialect.MARIADB: (
        "EXPLAIN SELECT * FROM orders",
        "EXPLAIN DELETE FROM orders",
        "SHOW TABLES",
        "DESCRIBE orders",
        "SELECT id FROM orders FOR UPDATE",
    ),
    Dialect.SQLITE: (
        "EXPLAIN QUERY PLAN SELECT * FROM orders",
        "EXPLAIN DELETE FROM orders",
        "SELECT name FROM sqlite_master",
        "PRAGMA table_info(orders)",
        "PRAGMA foreign_key_list(orders)",
        "SELECT p.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) p WHERE m.name = 'orders'",
        "SELECT title, snippet(docs, 1, '[', ']', '…', 5) FROM docs WHERE docs MATCH 'cat' ORDER BY rank",
    ),
}
REFUSED = {
    Dialect.POSTGRESQL: (
        "EXPLAIN ANALYZE DELETE FROM orders",
        "MERGE INTO orders o USING customers c ON c.id = o.customer WHEN MATCHED THEN UPDATE SET nowhere = 1",
        "WITH x AS (WITH d AS (DELETE FROM items RETURNING *) SELECT * FROM d) SELECT * FROM x",
        "INSERT INTO places VALUES (nextval('counted_id_seq'), 900)",
        "SELECT * FROM information_schema.role_table_grants",
    ),
    Dialect.MARIADB: (
        "CREATE INDEX by_customer ON orders (customer)",  # the foreign key's own index would go
        "ALTER TABLE orders ADD COLUMN more timestamp DEFAULT current_timestamp()",
        "ALTER TABLE orders ADD COLUMN more int; UPDATE customers SET id = id + 1",
        "CREATE TABLE orders (id int)",
        "CREATE TABLE fresh (id int) ENGINE=Aria",
        "TRUNCATE TABLE customers",  # others point to it
        "DROP TABLE customers",
        "DROP TABLE aria",
        "DROP TABLE parted",
        "ALTER TABLE parted ADD COLUMN n int, DROP COLUMN id",
        "CREATE TABLE fresh (id int); INSERT INTO fresh SELECT id FROM orders; DELETE FROM orders",
        "RENAME TABLE plain TO up",
        "RENAME TABLE plain TO plainer, up TO plain",
        "CREATE TABLE fresh LIKE aria",
        "SELECT table_rows FROM information_schema.tables",
    ),
    Dialect.SQLITE: (
        "INSERT INTO docs (docs) VALUES ('delete-all')",
        "INSERT INTO docs (docs, rank) VALUES ('rank', 'bm25(10.0)')",
        "UPDATE sqlite_master SET sql = ''",
        "PRAGMA writable_schema(1)",
        "SELECT * FROM pragma_writable_schema(1)",
        "UPDATE odd SET b = zeroblob(1000000)",
        "PRAGMA schema_version = 1",
        "VACUUM",
    ),
}


def _some(texts: tuple[str, ...], thorough: bool) -> list[str]:
    """The same third of them each time, or all."""
    left = set() if thorough else left_out(list(texts), len(texts) // 3)
    return [text for text in texts if text not in left]


@pytest.mark.promise(75)
def test_what_people_write_is_undone_and_redone_exactly(ground: Ground, thorough: bool) -> None:  # noqa: F811
    ground.execute(*SETUP[ground.dialect])
    for text in _some(ACCEPTED[ground.dialect], thorough):
        there_and_back(ground, text, "")


@pytest.mark.promise(75)
def test_what_rows_cant_take_back_is_held_and_named(ground: Ground, thorough: bool) -> None:  # noqa: F811
    if ground.dialect is not Dialect.POSTGRESQL:
        pytest.skip("PostgreSQL alone holds transactions and definitions")
    ground.execute(*SETUP[ground.dialect])
    before = ground.dump()
    for text in _some(tuple(HELD), thorough):
        tables = HELD[text]
        asked = Asked(ground, text, "versioning")
        with session(ground) as at:
            program = check(text, at.schema(), database=ground.database)
            assert tables <= {one.table for one in at.survey(program, "versioning", asked.limits).reached}, text
        asked.run()
        assert asked.state == ("done" if "-1" in text else "held"), text  # what wrote nothing holds nothing
        asked.revert("undo")
        assert ground.dump() == before, text


def test_reads_change_nothing(ground: Ground) -> None:  # noqa: F811
    ground.execute(*SETUP[ground.dialect])
    before = ground.dump()
    for text in READS[ground.dialect]:
        asked = Asked(ground, text)
        (result,) = asked.run().results
        assert result.rows, text
        assert asked.planned().program.reads_only
    assert ground.dump() == before


@pytest.mark.promise(75)
def test_what_would_not_be_exact_is_refused_before_it_runs(ground: Ground) -> None:  # noqa: F811
    ground.execute(*SETUP[ground.dialect])
    before = ground.dump()
    for text in REFUSED[ground.dialect]:
        with pytest.raises((Unsupported, InvalidInput)) as caught:
            Asked(ground, text).plan()
        assert caught.value.next_step, text
    assert ground.dump() == before


@pytest.mark.promise(76)
def test_undo_of_a_definition_loses_nobodys_rows(ground: Ground) -> None:  # noqa: F811
    if ground.dialect is not Dialect.MARIADB:
        pytest.skip("the others keep rows or hold the transaction")
    made = Asked(ground, "CREATE TABLE fresh (id int PRIMARY KEY)")
    added = Asked(ground, "ALTER TABLE orders ADD COLUMN more int")
    made.run()
    added.run()
    ground.execute("CREATE TABLE plain (id int PRIMARY KEY, t varchar(3) NOT NULL)")
    wider = Asked(ground, "ALTER TABLE plain MODIFY COLUMN t varchar(9)")
    wider.run()
    ground.execute("INSERT INTO fresh VALUES (1)", "UPDATE orders SET more = 3 WHERE id = 5")
    ground.execute("INSERT INTO plain VALUES (1, 'long')", "INSERT INTO plain VALUES (2, NULL)")
    for asked in (made, added, wider):
        with pytest.raises(Conflict) as caught:
            asked.revert("undo")
        assert caught.value.difference
    ground.execute("DELETE FROM fresh", "UPDATE orders SET more = NULL", "DELETE FROM plain WHERE id = 1")
    with pytest.raises(Conflict):
        wider.revert("undo")  # for the NULL
    ground.execute("UPDATE plain SET t = 'abc'")
    wider.revert("undo")
    assert ground.rows("SELECT id, t FROM plain") == [(2, "abc")]
    ground.execute("ALTER TABLE fresh ADD COLUMN others int")
    with pytest.raises(Conflict, match="isn't defined as it was left"):
        made.revert("undo")
    added.revert("undo")
    assert added.state == "undone"


def test_a_trigger_that_writes_the_time_is_not_taken_for_exact(ground: Ground) -> None:  # noqa: F811
    if ground.dialect is not Dialect.MARIADB:
        pytest.skip("triggers are kept off there")
    ground.execute(
        "CREATE TABLE stamped (id int PRIMARY KEY, at datetime)",
        "CREATE TRIGGER stamp BEFORE INSERT ON stamped FOR EACH ROW SET NEW.at = NOW()",
    )
    before = ground.dump()
    with pytest.raises(Unsupported, match="wouldn't be exact"):
        Asked(ground, "INSERT INTO stamped (id) VALUES (1)").run()
    assert ground.dump() == before
    held = Asked(ground, "INSERT INTO stamped (id) VALUES (1)", "versioning")
    held.run()
    held.revert("undo")
    assert ground.dump() == before
