"""What is done, undone and done again, by the bytes of every row of every table."""

from __future__ import annotations

import pytest

from policies.errors import Conflict
from runtimes.sql.contract import Policy
from runtimes.sql.mariadb import rows
from tests.runtimes.sql.mariadb.support import Base

SHOP = """
CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) UNIQUE, city VARCHAR(20),
  changed TIMESTAMP(3) NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP(3)) COLLATE utf8mb4_general_ci;
CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount DECIMAL(10,2), twice DECIMAL(12,2) AS (amount * 2) STORED,
  CONSTRAINT o FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE items (orders INT, n INT, what VARCHAR(20), PRIMARY KEY (orders, n),
  CONSTRAINT i FOREIGN KEY (orders) REFERENCES orders(id) ON DELETE CASCADE);
CREATE TABLE notes (id INT PRIMARY KEY, orders INT, note TEXT,
  CONSTRAINT n FOREIGN KEY (orders) REFERENCES orders(id) ON DELETE SET NULL);
CREATE TABLE tags (tag CHAR(10) PRIMARY KEY, uses INT DEFAULT 0) COLLATE utf8mb4_general_ci;
CREATE TABLE log (line VARCHAR(20), at INT);
INSERT INTO customers (id, name, city) VALUES (1,'Ann','Rome'),(2,'Bob','Oslo'),(3,'Cid',NULL),(4,NULL,''),
  (5,NULL,'Rome');
INSERT INTO orders (id, customer, amount) VALUES (10,1,1.50),(11,1,2.25),(12,2,3),(13,NULL,4),(14,5,0);
INSERT INTO items VALUES (10,1,'pen'),(10,2,'ink'),(11,1,'cup'),(12,1,'hat'),(14,1,'x');
INSERT INTO notes VALUES (1,10,'a'),(2,11,'b'),(3,12,'c'),(4,NULL,'d');
INSERT INTO tags VALUES ('a',1),('b',2),('c',3);
INSERT INTO log VALUES ('x',1),('x',1),('x',1),('y',2),(NULL,NULL);
"""

STATEMENTS = {
    "update": "UPDATE customers SET city = 'Bern' WHERE city = 'Rome'",
    "update-everywhere": "UPDATE orders SET amount = amount + 1",
    "update-limit": "UPDATE customers SET city = 'x' LIMIT 2",
    "update-ordered": "UPDATE customers SET city = 'x' ORDER BY id DESC LIMIT 2",
    "update-nothing": "UPDATE customers SET city = 'x' WHERE id = 99",
    "update-same": "UPDATE customers SET city = 'Rome' WHERE id = 1",
    "update-key-cascades": "UPDATE customers SET id = id + 100 WHERE id < 3",
    "update-key-case": "UPDATE tags SET tag = 'A' WHERE tag = 'a'",
    "update-keys-move": "UPDATE tags SET uses = uses + 1, tag = CONCAT(tag, tag)",
    "update-case": "UPDATE customers SET name = UPPER(name)",
    "update-of-a-key-of-two": "UPDATE items SET what = 'pen' WHERE n > 0",
    "update-subquery": "UPDATE orders SET amount = 9 WHERE customer IN (SELECT id FROM customers WHERE city = 'Rome')",
    "delete-cascades": "DELETE FROM customers WHERE city = 'Rome'",
    "delete-everywhere": "DELETE FROM customers",
    "delete-limit": "DELETE FROM orders ORDER BY amount LIMIT 2",
    "delete-set-null": "DELETE FROM orders WHERE id = 11",
    "insert": "INSERT INTO customers (name) VALUES ('Dan'), ('Eve')",
    "insert-select": "INSERT INTO orders (id, customer, amount) SELECT id + 100, customer, amount FROM orders",
    "insert-ignore": "INSERT IGNORE INTO customers (name) VALUES ('ann'), ('New')",
    "insert-returning": "INSERT INTO customers (name) VALUES ('Dan') RETURNING id, name",
    "insert-zero": "INSERT INTO customers (id, name) VALUES (-5, 'minus')",
    "upsert": "INSERT INTO customers (name, city) VALUES ('ANN','Ulm'),('New','Ulm')"
    " ON DUPLICATE KEY UPDATE city=VALUES(city)",
    "upsert-twice": "INSERT INTO tags (tag) VALUES ('A'),('z'),('z') ON DUPLICATE KEY UPDATE uses = uses + 1",
    "upsert-key": "INSERT INTO tags (tag) VALUES ('a') ON DUPLICATE KEY UPDATE tag = 'q'",
    "replace": "REPLACE INTO tags VALUES ('A', 7), ('n', 8)",
    "replace-cascades": "REPLACE INTO customers (id, name, city) VALUES (1, 'bob', 'Rome'), (9, 'Cid', 'Nice')",
    "replace-twice": "REPLACE INTO tags VALUES ('n', 1), ('N', 2), ('n', 3)",
    "keyless-insert": "INSERT INTO log VALUES ('x', 1), ('z', 1)",
    "keyless-update": "UPDATE log SET at = 3 WHERE line = 'x' LIMIT 2",
    "keyless-delete": "DELETE FROM log WHERE line = 'x' LIMIT 1",
    "several": "DELETE FROM orders WHERE id = 10; INSERT INTO orders (id, customer, amount) VALUES (10, 2, 5);"
    "UPDATE orders SET amount = 6 WHERE id >= 10; INSERT INTO items VALUES (10, 7, 'new')",
    "delete-and-insert": "DELETE FROM tags WHERE tag = 'a'; INSERT INTO tags VALUES ('A', 1)",
    "swap": "UPDATE customers SET name = 'tmp' WHERE id = 1; UPDATE customers SET name = 'Ann' WHERE id = 2;"
    "UPDATE customers SET name = 'Bob' WHERE id = 1",
    "insert-then-refer": "INSERT INTO customers (id, name) VALUES (50, 'P');"
    "UPDATE orders SET customer = 50 WHERE id > 11",
}


CASES = [
    pytest.param(which, policy, marks=pytest.mark.thorough if policy == "versioning" and number % 3 else ())
    for policy in ("reversal", "versioning")
    for number, which in enumerate(sorted(STATEMENTS))
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("which", "policy"), CASES)
def test_undo_and_redo_are_exact(base: Base, which: str, policy: Policy) -> None:
    base.run(SHOP)
    before = base.dump()
    job = base.job(STATEMENTS[which], policy)
    with base.session() as session:
        trial = session.trial(job)
    assert base.dump() == before
    assert job.records.get("db.state") is None
    with base.session() as session:
        ran = session.run(job)
    assert ran.reached == trial.reached
    if policy == "versioning":
        assert base.dump() == before
        with base.session() as session:
            session.commit(job)
            session.commit(job)
    after = base.dump()
    assert (after != before) == bool(ran.reached)
    with base.session() as session:
        assert session.settle(job).state == "done"
        session.compare(job, "undo")
    with base.session() as session:
        session.revert(job, "undo")
        assert base.dump() == before
        assert not session.revert(job, "undo").reached
        assert base.dump() == before
        assert session.settle(job).state == ("undone" if ran.reached else "done")
        session.revert(job, "redo")
        assert base.dump() == after
        session.revert(job, "redo")
        assert base.dump() == after
    assert base.held() == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("which", sorted(STATEMENTS))
def test_held_is_rolled_back_and_held_again(base: Base, which: str) -> None:
    base.run(SHOP)
    before = base.dump()
    job = base.job(STATEMENTS[which], "versioning")
    with base.session() as session:
        ran = session.run(job)
    if not ran.reached:
        return
    with base.session() as session:
        assert session.settle(job).state == "held"
        session.revert(job, "undo")
        assert base.held() == []
        assert base.dump() == before
        assert session.settle(job).state == "undone"
        session.revert(job, "redo")
    assert base.dump() == before and len(base.held()) == 1
    with base.session() as session:
        assert session.settle(job).state == "held"
        assert session.revert(job, "redo").notes, "once more changes nothing"
        with pytest.raises(Conflict):
            base.run("SELECT 1")
            session.commit(base.job(STATEMENTS[which], "versioning"))
        session.commit(job)
    assert base.dump() != before and base.held() == []
    with base.session() as session:
        session.revert(job, "undo")
    assert base.dump() == before


@pytest.mark.sampled(6)
@pytest.mark.parametrize("which", sorted(name for name in STATEMENTS if "update" in name or "delete" in name))
def test_the_way_of_very_many_rows_is_the_same(base: Base, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From `MANY` rows on a table is read as a whole, and only in its changed columns: here from one row on."""
    monkeypatch.setattr(rows, "MANY", 1)
    base.run(SHOP + "ANALYZE TABLE customers, orders, items, notes, tags")
    before = base.dump()
    job = base.job(STATEMENTS[which])
    with base.session() as session:
        ran = session.run(job)
        after = base.dump()
        assert all(change.after is None or len(change.after) > 1 for change in ran.sample)
        session.revert(job, "undo")
        assert base.dump() == before
        session.revert(job, "redo")
        assert base.dump() == after


def test_rows_that_hang_on_each_other_are_within_the_bound(base: Base) -> None:
    base.run(
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t(id) ON DELETE CASCADE);"
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2), (4, 3), (9, NULL)"
    )
    before = base.dump()
    survey = base.survey("DELETE FROM t WHERE id = 1")
    job = base.job("DELETE FROM t WHERE id = 1", rows=sum(one.rows for one in survey.reached))
    with base.session() as session:
        session.run(job)
        assert base.run("SELECT id FROM t") == [(9,)]
        session.revert(job, "undo")
    assert base.dump() == before


def test_a_key_that_moves_beside_other_statements_is_within_the_bound(base: Base) -> None:
    base.run(SHOP)
    before = base.dump()
    sql = (
        "UPDATE tags SET tag = 'A' WHERE tag = 'a'; DELETE FROM tags WHERE tag = 'b'; INSERT INTO tags VALUES ('n', 1)"
    )
    job = base.job(sql, rows=sum(one.rows for one in base.survey(sql).reached))
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert base.dump() == before


def test_what_an_insert_got_is_told_to_the_statements_behind_it(base: Base) -> None:
    base.run(
        "CREATE TABLE d (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20), first INT) AUTO_INCREMENT = 40;"
        "CREATE TABLE p (id INT AUTO_INCREMENT PRIMARY KEY, d INT, FOREIGN KEY (d) REFERENCES d (id));"
        "INSERT INTO d (title) VALUES ('old')"
    )
    before = base.dump()
    job = base.job(
        "START TRANSACTION; INSERT INTO d (title) VALUES ('new'); INSERT INTO p (d) VALUES (LAST_INSERT_ID());"
        " INSERT INTO d (title) VALUES ('newer'); UPDATE d SET first = 1 WHERE id = LAST_INSERT_ID(); COMMIT"
    )
    with base.session() as session:
        session.run(job)
        after = base.dump()
        assert base.run("SELECT d FROM p") == [(41,)]
        assert base.run("SELECT id, first FROM d ORDER BY id") == [(40, None), (41, None), (42, 1)]
        session.revert(job, "undo")
        assert base.dump() == before
        session.revert(job, "redo")
        assert base.dump() == after
