"""An undo of a definition takes nothing from under what somebody else built on it since, and isn't refused for what
they built beside it."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Conflict
from tests.runtimes.sql.mariadb.support import Base

TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1);"
    "CREATE TABLE other (id INT PRIMARY KEY, w INT);"
    "CREATE VIEW before_it AS SELECT id, v FROM t;"
    "CREATE TRIGGER before_it BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 7"
)
ON_T, ON_OTHER = "BEFORE INSERT ON t FOR EACH ROW", "BEFORE INSERT ON other FOR EACH ROW"


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.promise(76)
@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("CREATE TABLE nn (id INT PRIMARY KEY)", "CREATE TRIGGER tr BEFORE INSERT ON nn FOR EACH ROW SET NEW.id = 1"),
        ("CREATE TABLE nn (id INT PRIMARY KEY)", "CREATE VIEW w AS SELECT * FROM nn"),
        ("CREATE TABLE nn (id INT PRIMARY KEY)", f"CREATE TRIGGER tr {ON_OTHER} INSERT INTO NN VALUES (NEW.id)"),
        ("CREATE VIEW nn AS SELECT id FROM t", "CREATE VIEW w AS SELECT * FROM nn"),
        ("CREATE VIEW nn AS SELECT id FROM t", f"CREATE TRIGGER tr {ON_OTHER} SET NEW.w = (SELECT max(id) FROM nn)"),
        ("ALTER TABLE t ADD COLUMN n INT", f"CREATE TRIGGER tr {ON_T} SET NEW.n = 3"),
        ("ALTER TABLE t ADD COLUMN n INT", "CREATE VIEW w AS SELECT * FROM t"),
        ("ALTER TABLE t ADD COLUMN n INT", "CREATE OR REPLACE VIEW before_it AS SELECT id, n FROM t"),
        ("ALTER TABLE t ADD COLUMN n INT", f"CREATE TRIGGER tr {ON_OTHER} INSERT INTO t VALUES (NEW.id, 1, 1)"),
        ("ALTER TABLE other RENAME COLUMN w TO n", "CREATE VIEW v AS SELECT n FROM other"),
        ("RENAME TABLE t TO nn", "CREATE VIEW w AS SELECT * FROM nn"),
        ("RENAME TABLE t TO nn", "CREATE TRIGGER tr BEFORE UPDATE ON nn FOR EACH ROW SET NEW.v = 1"),
        ("CREATE INDEX nn ON t (v)", "CREATE VIEW w AS SELECT id FROM t FORCE INDEX (nn) WHERE v = 1"),
    ],
)
def test_what_others_built_on_a_definition_keeps_it(base: Base, text: str, theirs: str) -> None:
    base.run(TABLES)
    job = base.job(text)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = base.run("SHOW TABLES"), base.run("SHOW TRIGGERS"), base.run("SELECT * FROM information_schema.columns")
        for asked in (session.compare, session.revert):
            with pytest.raises(Conflict, match="undo would break it") as caught:
                asked(job, "undo")
            assert len(caught.value.difference) == 1 and "since" in caught.value.difference[0]
        assert (
            base.run("SHOW TABLES"),
            base.run("SHOW TRIGGERS"),
            base.run("SELECT * FROM information_schema.columns"),
        ) == left
        assert session.settle(job).state == "done"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("CREATE TABLE nn (id INT PRIMARY KEY)", f"CREATE TRIGGER tr {ON_T} SET NEW.v = 8"),
        ("CREATE TABLE nn (id INT PRIMARY KEY)", "CREATE VIEW w AS SELECT * FROM t"),
        ("CREATE VIEW nn AS SELECT id FROM t", "CREATE VIEW w AS SELECT id FROM t"),
        ("ALTER TABLE t ADD COLUMN n INT", "CREATE VIEW w AS SELECT id, v FROM t"),
        ("ALTER TABLE t ADD COLUMN n INT", f"CREATE TRIGGER tr {ON_OTHER} SET NEW.w = 3"),
        ("ALTER TABLE t ADD COLUMN n INT", f"CREATE TRIGGER tr {ON_T} SET NEW.v = 8"),
        ("CREATE INDEX nn ON t (v)", f"CREATE TRIGGER tr {ON_T} SET NEW.v = 8"),
        ("ALTER TABLE other RENAME COLUMN w TO n", "CREATE VIEW w AS SELECT id FROM other"),
        ("RENAME TABLE t TO nn", "CREATE VIEW w AS SELECT * FROM other"),
        ("CREATE INDEX nn ON t (v)", "CREATE VIEW w AS SELECT v FROM t"),
        ("CREATE INDEX nn ON t (v)", f"CREATE TRIGGER tr {ON_OTHER} SET NEW.w = 3"),
    ],
)
def test_what_others_built_beside_it_is_in_nobodys_way(base: Base, text: str, theirs: str) -> None:
    base.run(TABLES)
    before = base.run("SHOW CREATE TABLE t"), base.run("SHOW CREATE TABLE other")
    job = base.job(text)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        assert session.revert(job, "undo").reached
        assert session.settle(job).state == "undone"
        assert (base.run("SHOW CREATE TABLE t"), base.run("SHOW CREATE TABLE other")) == before
        session.revert(job, "redo")
        session.revert(job, "undo")
    assert base.run("SELECT id FROM before_it") == [(1,)]
