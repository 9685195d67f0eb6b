"""What is made of a statement means what was sent: literals, types and operators, one by one. On SQLite both texts run
and are compared; for PostgreSQL and MariaDB the text is what their manuals say is the same, or it is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import apsw
import pytest

from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.sql.checking.check import check
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect
from tests.runtimes.sql.checking.schemas import shop

P, M, S = Dialect.POSTGRESQL, Dialect.MARIADB, Dialect.SQLITE

LITERALS = (
    "0", "1", "-1", "0x10", "0X1f", "0xFFFFFFFFFFFFFFFF", "-0x10", "9223372036854775807", "9223372036854775808", "1e3",
    "1.5E+3", "1.e2", ".5", ".5e1", "1.", "007", "x'41'", "X'4142'", "x''", "'a'", "'it''s'", "'0x10'", "''", "NULL",
    "TRUE", "FALSE", "CURRENT_DATE", "-.5", "- -5", "~5",
)  # fmt: skip
TYPES = (
    "INTEGER", "INT", "int", "Integer", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT", "INT2", "INT8", "BOOLEAN", "BOOL",
    "DATE", "DATETIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "TEXT", "CLOB", "CHAR(3)", "VARCHAR(10)",
    "NCHAR(5)", "NVARCHAR(100)", "REAL", "DOUBLE", "DOUBLE PRECISION", "DOUBLE_PRECISION", "FLOAT", "BLOB", "NUMERIC",
    "DECIMAL(10,2)", "DEC(3)", "UUID", "JSON", "VARBINARY(5)", "BINARY", "MONEY",
)  # fmt: skip
VALUES = ("'5'", "'05'", "5", "5.0", "0.1", "x'35'", "'a'", "'1e2'", "NULL", "9007199254740993")


def made_of(text: str, dialect: Dialect = S) -> str:
    (tree,) = read(text, dialect)
    return write(tree, dialect)


def rows(db: apsw.Connection, query: str) -> list[str]:
    return [repr(row) for row in db.execute(query)]


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    made = apsw.Connection(":memory:")
    made.execute(
        "CREATE TABLE t (i INTEGER, r REAL, s TEXT, n NUMERIC, b BLOB, z); INSERT INTO t VALUES (1, 1.5, 'a', 5, x'41',"
        " NULL), (5, 0.0, '5', 'x', NULL, 5), (NULL, NULL, NULL, NULL, x'00', 'A'), (-3, 2.0, 'A', 0.1, 't', 16)"
    )
    yield made
    made.close()


# ---- SQLite


@pytest.mark.sampled(7)
@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_is_the_same_value(db: apsw.Connection, literal: str) -> None:
    for query in (
        f"SELECT {literal}, typeof({literal})",
        f"SELECT i FROM t WHERE i < {literal}",
        f"SELECT s FROM t WHERE s = {literal}",
        f"SELECT {literal} || 'x', {literal} + 1, CAST({literal} AS TEXT)",
    ):
        assert rows(db, made_of(query)) == rows(db, query)
    for changed in (f"UPDATE t SET z = {literal}", f"INSERT INTO t (z) VALUES ({literal})"):
        found = []
        for text in (changed, made_of(changed)):
            db.execute("SAVEPOINT before")
            db.execute(text)
            found.append(rows(db, "SELECT z, typeof(z) FROM t"))
            db.execute("ROLLBACK TO before")
        assert found[0] == found[1]


def test_a_hexadecimal_number_finds_the_rows_that_it_says(db: apsw.Connection) -> None:
    assert made_of("DELETE FROM t WHERE i < 0x2") == "DELETE FROM t WHERE i < 0x2"
    db.execute(made_of("DELETE FROM t WHERE i < 0x2"))
    assert rows(db, "SELECT i FROM t") == ["(5,)", "(None,)"]


@pytest.mark.sampled(19)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tail", ["", " PRIMARY KEY", " NOT NULL DEFAULT 7", " UNIQUE"])
def test_a_column_has_the_type_that_was_written(db: apsw.Connection, kind: str, tail: str) -> None:
    text = f"CREATE TABLE one (a {kind}{tail}, b)"
    found = []
    for each in (text, made_of(text)):
        db.execute("SAVEPOINT before")
        db.execute(each)
        for number, value in enumerate(VALUES):
            try:
                db.execute(f"INSERT OR REPLACE INTO one VALUES ({value}, {number})")
            except apsw.Error as error:  # an INTEGER PRIMARY KEY takes numbers alone
                found.append([repr(error)])
        found.append(rows(db, "SELECT a, typeof(a), b FROM one"))
        found.append(rows(db, "SELECT a = rowid FROM one"))
        found.append(rows(db, "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('one')"))
        db.execute("ROLLBACK TO before")
    plain = [[line.replace(", ", ",") for line in each] for each in found]  # DECIMAL(10,2), or DECIMAL(10, 2)
    assert plain[: len(plain) // 2] == plain[len(plain) // 2 :]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", TYPES)
def test_a_cast_gives_the_same_value(db: apsw.Connection, kind: str) -> None:
    for value in (*VALUES, "s", "n", "r"):
        query = f"SELECT CAST({value} AS {kind}), typeof(CAST({value} AS {kind})), CAST({value} AS {kind}) = '5' FROM t"
        assert rows(db, made_of(query)) == rows(db, query)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT +n FROM t",
        "SELECT i FROM t WHERE +n = '5'",
        "SELECT i FROM t ORDER BY +1",
        "SELECT 1_000",
        "SELECT 1_000 FROM t",
        "SELECT 5x",
        "SELECT 1e5x",
        "SELECT 0b11",
        "SELECT date 'x' FROM t",
        "SELECT s NOT GLOB 'a' = 5 FROM t",
        "SELECT i = n NOT IN (1, 5) FROM t",
        "SELECT i = n IS NULL < 3 FROM t",
        "CREATE TABLE one (a TIMESTAMP(3) WITH TIME ZONE)",
    ],
)
def test_what_would_become_something_else_is_refused(text: str) -> None:
    with pytest.raises((InvalidInput, Unsupported)) as raised:
        made_of(text)
    assert raised.value.next_step


@pytest.mark.parametrize(
    "what",
    [
        "i == 5", "i != 5", "i <> 5", "i IS 5", "i IS NOT 5", "s IS DISTINCT FROM n", "s IS NOT DISTINCT FROM n",
        "s ISNULL", "s NOTNULL", "s NOT NULL", "s IS NOT NULL", "i NOT IN (1, 2)", "i NOT BETWEEN 1 AND 3",
        "s NOT LIKE 'a'", "s NOT GLOB 'a'", "NOT i = 1 AND NOT s = 'a'", "(i NOT IN (1)) = 0", "s || i || 'x'",
        "i + n || 'x'", "i * (s || 1)", "'{\"a\": 1}' -> '$.a' || 'x'", "s COLLATE NOCASE = 'A'", "- i % 2",
        "i / 2 * 2", "CASE WHEN i NOT IN (1) THEN NOT i END", "i << 1 | 1 & 3", "1 < i < 3", "-~i",
        "i BETWEEN 1 AND 3 AND n",
    ],
)  # fmt: skip
def test_operators_bind_as_they_did(db: apsw.Connection, what: str) -> None:
    for query in (f"SELECT {what} FROM t", f"SELECT i FROM t WHERE {what}"):
        assert rows(db, made_of(query)) == rows(db, query)


@pytest.mark.parametrize("order", ["i", "i DESC", "i ASC", "s COLLATE NOCASE, i"])
@pytest.mark.parametrize("nulls", ["", " NULLS FIRST", " NULLS LAST"])
def test_null_keeps_its_place(db: apsw.Connection, order: str, nulls: str) -> None:
    query = f"SELECT i, s FROM t ORDER BY {order}{nulls} LIMIT 2"
    assert rows(db, made_of(query)) == rows(db, query)


_BINARY = (
    "+", "-", "*", "/", "%", "||", "<", "<=", ">", ">=", "=", "==", "<>", "!=", "&", "|", "<<", ">>", "AND", "OR", "IS",
    "LIKE", "GLOB", "->", "->>", "IS NOT", "NOT LIKE", "NOT GLOB", "IS DISTINCT FROM", "IS NOT DISTINCT FROM",
)  # fmt: skip
_ATOMS = (
    "i", "r", "s", "n", "b", "z", "1", "0", "5", "'5'", "'a'", "x'41'", "NULL", "1.5", "0x10", "TRUE", "-1", "(i)",
)  # fmt: skip
_KINDS = ("INT", "TEXT", "NUMERIC", "REAL", "DECIMAL(3, 1)", "DATE", "VARCHAR(3)")


def _expression(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(_ATOMS)
    one, two, three = (_expression(chance, depth - 1) for _ in range(3))
    return chance.choice(
        [
            *[f"{one} {chance.choice(_BINARY)} {two}"] * 9,
            f"NOT {one}",
            f"- {one}",
            f"{one} {chance.choice(['ISNULL', 'NOTNULL', 'NOT NULL', 'IS NULL', 'IS NOT NULL'])}",
            f"{one} {chance.choice(['IN', 'NOT IN'])} ({two}, {three})",
            f"{one} {chance.choice(['BETWEEN', 'NOT BETWEEN'])} {two} AND {three}",
            f"{one} COLLATE NOCASE",
            f"CAST({one} AS {chance.choice(_KINDS)})",
            f"CASE WHEN {one} THEN {two} ELSE {three} END",
            f"({one})",
        ]
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_any_expression_gives_the_same_or_is_refused(db: apsw.Connection, seed: int) -> None:
    chance, compared = random.Random(seed), 0
    for _ in range(150):
        query = f"SELECT {_expression(chance, 3)} FROM t"
        try:
            wanted = rows(db, query)
            made = made_of(query)
        except (apsw.Error, GoexError):
            continue
        assert rows(db, made) == wanted, query
        compared += 1
    assert compared > 40


# ---- PostgreSQL and MariaDB


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("dialect", "sent", "made"),
    [
        (P, "SELECT 0x1F, 0xff, 0b11", "SELECT 31, 255, 3"),
        (P, "SELECT 0x7FFFFFFFFFFFFFFF", "SELECT 9223372036854775807"),
        (P, "SELECT x'1f', b'101', E'\\x41', 1.e2, .5", "SELECT x'1f', b'101', 'A', 1.e2, 0.5"),
        (P, "SELECT interval '1' day, interval '1 day'", "SELECT INTERVAL '1 DAY', INTERVAL '1 DAY'"),
        (P, "SELECT CURRENT_TIMESTAMP(3), LOCALTIME(2)", "SELECT CURRENT_TIMESTAMP(3), LOCALTIME(2)"),
        (P, "SELECT CURRENT_TIMESTAMP, current_time", "SELECT CURRENT_TIMESTAMP, CURRENT_TIME"),
        (P, "SELECT 1::int2, 1::int4, 1::int8", "SELECT CAST(1 AS SMALLINT), CAST(1 AS INT), CAST(1 AS BIGINT)"),
        (P, "SELECT 1::float4, 1::real, 1::float8, 1::float",
         "SELECT CAST(1 AS REAL), CAST(1 AS REAL), CAST(1 AS DOUBLE PRECISION), CAST(1 AS DOUBLE PRECISION)"),
        (P, "SELECT 1::dec(3,1), 1::numeric", "SELECT CAST(1 AS DECIMAL(3, 1)), CAST(1 AS DECIMAL)"),
        (P, "CREATE TABLE t (a timestamp(3) with time zone, b character varying(5), c bool, d time)",
         'CREATE TABLE "public"."t" (a TIMESTAMPTZ(3), b VARCHAR(5), c BOOLEAN, d TIME)'),
        (P, "SELECT id FROM users ORDER BY id DESC NULLS FIRST, name NULLS LAST, email NULLS FIRST",
         'SELECT id FROM "public"."users" ORDER BY id DESC, name, email NULLS FIRST'),
        (M, "SELECT 0x31, 0b11, x'31', b'11'", "SELECT 0x31, 0b11, x'31', b'11'"),
        (M, "UPDATE orders SET total = 0x31 WHERE id < 0x10", "UPDATE `orders` SET total = 0x31 WHERE id < 0x10"),
        (M, "CREATE TABLE t (a REAL, b DOUBLE PRECISION, c FLOAT, d FLOAT(24), e INT8, f INTEGER, g NUMERIC(5,1))",
         "CREATE TABLE t (a DOUBLE, b DOUBLE, c FLOAT, d FLOAT(24), e BIGINT, f INT, g DECIMAL(5, 1))"),
        (M, "SELECT CAST(id AS REAL), CAST(id AS INTEGER), CAST(id AS UNSIGNED INTEGER) FROM users",
         "SELECT CAST(id AS DOUBLE), CAST(id AS SIGNED), CAST(id AS UNSIGNED) FROM `users`"),
        (M, "SELECT POSITION('a' IN name), LOCATE('a', name) FROM users",
         "SELECT POSITION('a' IN name), LOCATE('a', name) FROM `users`"),
        (M, "SELECT INTERVAL(5, id, 2) + 1 FROM users", "SELECT INTERVAL(5, id, 2) + 1 FROM `users`"),
        (M, "SELECT placed + INTERVAL (id + 1) DAY FROM orders", "SELECT placed + INTERVAL (id + 1) DAY FROM `orders`"),
        (M, "SELECT placed + INTERVAL 1.5 DAY, placed - INTERVAL -2 HOUR, placed + INTERVAL '1.5' DAY FROM orders",
         "SELECT placed + INTERVAL 1.5 DAY, placed - INTERVAL -2 HOUR, placed + INTERVAL '1.5' DAY FROM `orders`"),
        (M, "SELECT 'a' \"b\" 'c', N'a' 'b' FROM users WHERE name = 'it''s' 'x'",
         "SELECT 'abc', N'ab' FROM `users` WHERE name = 'it''sx'"),
        (M, "CREATE TABLE t AS (SELECT N'a' 'b')", "CREATE TABLE t AS (SELECT N'ab')"),
        (M, "(SELECT N'a' 'b' \"c\") UNION SELECT 'd'", "(SELECT N'abc') UNION SELECT 'd'"),
        (M, "SET @x = (SELECT N'a' 'b')", "SET @x = (SELECT N'ab')"),
        (M, "SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01'",
         "SELECT CAST('2024-01-01' AS DATE), TIMESTAMP('2024-01-01')"),
        (M, "CREATE INDEX i ON users (name(10), `email`(3) DESC)",
         "CREATE INDEX i ON `users`(name(10), `email`(3) DESC)"),
        (M, "SELECT !id = 5, id MOD 2, id AS 'x y' FROM users",
         "SELECT (NOT id) = 5, id % 2, id AS `x y` FROM `users`"),
        (M, "INSERT INTO users SET id = 1, name = 'x'", "INSERT INTO `users` (id, name) VALUES (1, 'x')"),
    ],
)  # fmt: skip
def test_another_spelling_is_of_the_same(dialect: Dialect, sent: str, made: str) -> None:
    (statement,) = check(sent, shop(dialect), database="shop").statements
    assert statement.sql == made
    assert check(made, shop(dialect), database="shop").statements[0].sql == made


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (P, "SELECT 0xFFFFFFFFFFFFFFFF"),
        (P, "SELECT 1_000"),
        (P, "SELECT 0o17"),
        (P, "SELECT id FROM users ORDER BY +1"),
        (P, "SELECT interval '1.5' day"),
        (P, "SELECT interval '2 days' hour"),
        (P, "SELECT interval '3 4' hour"),
        (P, "CREATE TABLE t (a datetime)"),
        (P, "CREATE TABLE t (a blob)"),
        (P, "CREATE TABLE t (a tinyint)"),
        (P, "SELECT id FROM users WHERE id NOT IN (1) = TRUE"),
        (P, "SELECT 1 UNION ALL SELECT CURRENT_TIMESTAMP(id) FROM users UNION SELECT 3_0"),
        (M, "CREATE TABLE t (a NCHAR(3))"),
        (M, "SELECT CAST(id AS TEXT) FROM users"),
        (M, "SELECT id FROM users WHERE name NOT REGEXP 'x' = 5"),
        (M, "SELECT id FROM users WHERE id = name NOT IN (1, 2)"),
        (M, "CREATE INDEX i ON users (nowhere(10))"),
        (M, "CREATE INDEX i ON users (sleep(id))"),
        (M, "SELECT INTERVAL(1, SLEEP(5))"),
        (M, "SELECT DATE '2024-01-01' 'x'"),  # a name for it
        (M, "SELECT id 'a' 'b' FROM users"),
        (M, "SELECT id AS 'a' 'b' FROM users"),
        (M, "SELECT GROUP_CONCAT(name SEPARATOR 'a' 'b') FROM users"),
        (M, "CREATE TABLE t (a ENUM('a' 'b'))"),
        (M, "CREATE TABLE t (a INT COMMENT 'a' 'b')"),
    ],
)
def test_no_other_type_number_or_unit_is_made(dialect: Dialect, text: str) -> None:
    with pytest.raises((InvalidInput, Unsupported)):
        check(text, shop(dialect), database="shop")


# ---- what people write, and what says nothing

KEPT = [
    (S, "SELECT x'00ff', X'', 0x10 + 1", "SELECT x'00ff', x'', 0x10 + 1"),
    (S, "SELECT n FROM t LIMIT 2 * 3, 4 + 5", "SELECT n FROM t LIMIT 4 + 5 OFFSET 2 * 3"),
    (S, "INSERT INTO t VALUES (+1, -2, +3)", "INSERT INTO t VALUES (1, -2, 3)"),
    (M, "CREATE TABLE n (id INT, CONSTRAINT PRIMARY KEY (id))", "PRIMARY KEY (id)"),
    (M, "CREATE TABLE n (id INT, k INT, CONSTRAINT UNIQUE (k))", "UNIQUE (k)"),
    (M, "ALTER TABLE n ADD CONSTRAINT PRIMARY KEY (id)", "PRIMARY KEY (id)"),
    (M, "CREATE TABLE n (id INT SIGNED)", "id INT"),
    (M, "CREATE TABLE n (id INT) DEFAULT CHARACTER SET utf8mb4 DEFAULT COLLATE utf8mb4_bin", "COLLATE=utf8mb4_bin"),
    (M, "SELECT CONVERT(t.a, INT), CONVERT(a, VARCHAR(10)) FROM t", "CAST(t.a AS SIGNED), CAST(a AS CHAR(10))"),
    (M, "SELECT DATE_ADD(a, INTERVAL +7 DAY) FROM t WHERE b BETWEEN -1 AND +1", "BETWEEN -1 AND 1"),
    (P, "UPDATE t SET n = +1 WHERE id = +2", "UPDATE t SET n = 1 WHERE id = 2"),
]


@pytest.mark.parametrize(("dialect", "text", "part"), KEPT, ids=[text for _, text, _ in KEPT])
def test_ordinary_spellings_are_taken(dialect: Dialect, text: str, part: str) -> None:
    assert part in made_of(text, dialect)


@pytest.mark.parametrize("dialect", [P, M, S])
@pytest.mark.parametrize("text", ["SELECT n FROM t ORDER BY +1", "SELECT n FROM t GROUP BY n, +1", "SELECT +n FROM t"])
def test_a_plus_that_says_something_is_refused(dialect: Dialect, text: str) -> None:
    with pytest.raises(GoexError, match=r"[+]|plainer|bracket"):
        made_of(text, dialect)


@pytest.mark.parametrize("dialect", [P, M, S])
def test_a_long_chain_is_read(dialect: Dialect) -> None:
    text = "SELECT " + " + ".join(["n"] * 450) + " FROM t"
    assert made_of(text, dialect).count("n") >= 450
