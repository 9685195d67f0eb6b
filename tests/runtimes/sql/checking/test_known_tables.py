"""What a program defines is known to its later statements, and nothing that it renames is read under another name."""

from __future__ import annotations

import pytest

from policies.errors import GoexError
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect
from tests.runtimes.sql.checking.schemas import shop

KNOWN = (
    "CREATE TABLE fresh (a int, b int); INSERT INTO fresh (a) VALUES (1); UPDATE fresh SET b = a; DELETE FROM fresh",
    "CREATE TABLE IF NOT EXISTS fresh (a int); INSERT INTO fresh VALUES (1)",
    "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = 1 WHERE more IS NULL",
    "CREATE TABLE fresh (a int); ALTER TABLE fresh RENAME TO fresher; INSERT INTO fresher VALUES (1)",
    "DROP TABLE archive; CREATE TABLE archive (other int); INSERT INTO archive (other) VALUES (1)",
)
HIDDEN = (
    "ALTER TABLE users RENAME TO x; SELECT * FROM x",
    "ALTER TABLE users RENAME TO x; SELECT * FROM users",
    "ALTER TABLE archive RENAME TO old; ALTER TABLE users RENAME TO archive; SELECT * FROM archive",
    "ALTER TABLE users RENAME TO x; CREATE TABLE IF NOT EXISTS x (email text); SELECT email FROM x",
    "CREATE TABLE x (email text); ALTER TABLE x RENAME TO y; ALTER TABLE users RENAME TO x; SELECT email FROM x",
    "ALTER TABLE users RENAME COLUMN email TO x; SELECT x FROM users",
    "ALTER TABLE users RENAME COLUMN email TO x; ALTER TABLE users ADD COLUMN x text; SELECT x FROM users",
    "ALTER TABLE users RENAME COLUMN name TO old; ALTER TABLE users RENAME COLUMN email TO name;"
    " SELECT name FROM users",
    "ALTER TABLE users ADD COLUMN x varchar(9) GENERATED ALWAYS AS (email) STORED; SELECT x FROM users",
    "CREATE TABLE x AS SELECT * FROM users; SELECT * FROM x",
    "CREATE VIEW x AS SELECT * FROM users; SELECT * FROM x",
    "DROP TABLE archive; SELECT * FROM archive",
    "CREATE TABLE fresh (a int); SELECT b FROM fresh",
    "INSERT INTO fresh VALUES (1); CREATE TABLE fresh (a int)",
)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("text", KNOWN)
def test_later_statements_know_what_earlier_ones_made(text: str, dialect: Dialect) -> None:
    program = check(text, shop(dialect), database="shop")
    assert len(program.statements) == text.count(";") + 1


@pytest.mark.sampled(14)
@pytest.mark.promise(69)
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("text", HIDDEN)
def test_nothing_is_read_under_a_name_that_it_was_given(text: str, dialect: Dialect) -> None:
    with pytest.raises(GoexError):
        check(text, shop(dialect), database="main" if dialect is Dialect.SQLITE else "shop")


def test_what_is_added_is_used_under_its_tables_name() -> None:
    program = check(
        "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = 1", shop(Dialect.SQLITE), database="main"
    )
    (use,) = (one for one in program.statements[1].uses if one.verb == "update")
    assert (use.table, use.columns) == ("orders", ("more",))
