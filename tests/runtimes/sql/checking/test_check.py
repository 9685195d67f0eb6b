"""`check`: what is refused, what each statement is said to use, the limits, and that its output is its own fixpoint."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.sql.checking.check import check
from runtimes.sql.checking.parse import MAX_DEPTH, MAX_STATEMENTS, MAX_TEXT
from runtimes.sql.checking.round_trip import quoted
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Column, Dialect, Schema, Statement, Table
from tests.runtimes.sql.checking import allowed, hostile
from tests.runtimes.sql.checking.schemas import shop

P, M, S = Dialect.POSTGRESQL, Dialect.MARIADB, Dialect.SQLITE
DIALECTS = pytest.mark.parametrize("dialect", [P, M, S])
_OWN = {P: "POSTGRESQL", M: "MARIADB", S: "SQLITE"}


def _lines(module: object, dialect: Dialect) -> list[str]:
    both = str(module.EVERYWHERE) + str(getattr(module, _OWN[dialect]))  # type: ignore[attr-defined]
    return [line for line in both.splitlines() if line.strip()]


def one(text: str, dialect: Dialect) -> Statement:
    (statement,) = check(text, shop(dialect), database="shop").statements
    return statement


@pytest.mark.promise(68)
@DIALECTS
def test_hostile_sql_is_refused_with_a_reason(dialect: Dialect) -> None:
    let_through, crashed = [], []
    for text in _lines(hostile, dialect):
        try:
            program = check(text, shop(dialect), database="shop")
            let_through.append((text, [statement.sql for statement in program.statements]))
        except (InvalidInput, Unsupported) as error:
            assert error.message and error.next_step, text
        except Exception as error:
            crashed.append((text, repr(error)))
    assert not let_through
    assert not crashed


@pytest.mark.promise(68)
@DIALECTS
def test_what_is_made_anew_is_made_into_itself(dialect: Dialect, thorough: bool) -> None:
    for text in _lines(allowed, dialect)[:: 1 if thorough else 3]:
        statement = one(text, dialect)
        again = one(statement.sql, dialect)
        assert again == statement, text


@DIALECTS
def test_several_statements_come_in_their_order_and_each_by_itself(dialect: Dialect) -> None:
    program = check(
        "INSERT INTO archive (id) VALUES (1); ;\nUPDATE orders SET total = 2 WHERE id = 1; SELECT ';' FROM users;",
        shop(dialect),
        database="shop",
    )
    assert [statement.verb for statement in program.statements] == ["insert", "update", "select"]
    assert all(quoted(statement.sql, dialect) for statement in program.statements)
    assert not program.reads_only
    assert check("SELECT 1; SELECT id FROM users", shop(dialect), database="shop").reads_only


_AROUND = {
    P: ("BEGIN", "begin work", "BEGIN TRANSACTION", "START TRANSACTION"),
    M: ("BEGIN", "begin work", "START TRANSACTION"),
    S: ("BEGIN", "begin transaction", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE TRANSACTION"),
}


@DIALECTS
def test_a_transaction_around_all_statements_is_the_one_that_goex_begins_and_ends(dialect: Dialect) -> None:
    inside = "UPDATE orders SET total = 2 WHERE id = 1; DELETE FROM archive WHERE id = 3"
    plain = check(inside, shop(dialect), database="shop")
    for begin in _AROUND[dialect]:
        for end in ("COMMIT", "commit;", *(("END",) if dialect is not M else ())):
            assert check(f"{begin};\n{inside};\n{end}", shop(dialect), database="shop") == plain, (begin, end)


@pytest.mark.parametrize(
    ("dialect", "setting"),
    [
        (M, "SET NAMES utf8mb4"),
        (M, "SET NAMES 'utf8mb4'"),
        (M, 'set names "UTF8MB4"'),
        (P, "SET NAMES 'utf8'"),
        (P, "SET client_encoding = 'UTF8'"),
        (P, "SET client_encoding TO 'UTF-8'"),
        (P, "SET lock_timeout = '5s'"),
    ],
)
def test_a_setting_that_holds_anyway_is_left_out(dialect: Dialect, setting: str) -> None:
    assert one(f"{setting}; SELECT 1", dialect).sql == "SELECT 1"


@pytest.mark.parametrize(
    ("dialect", "text", "says"),
    [
        (M, "SET NAMES 'latin1'; SELECT 1", "connection"),
        (M, "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'; SELECT 1", "connection"),
        (P, "SET client_encoding = 'LATIN1'; SELECT 1", "connection"),
        (M, "USE shop", "one database"),
        (P, "ANALYZE users", "past GoEx"),
        (P, "VACUUM users", "past GoEx"),
        (P, "REFRESH MATERIALIZED VIEW v", "past GoEx"),
        (M, "ANALYZE TABLE users", "past GoEx"),
        (P, "SELECT setval('users_id_seq', 5)", "counter"),
        (P, "DO $$BEGIN END$$", "plain SELECT"),
    ],
)
def test_a_refusal_says_what_to_do_instead(dialect: Dialect, text: str, says: str) -> None:
    with pytest.raises(Unsupported) as refused:
        one(text, dialect)
    assert says in refused.value.next_step


def test_do_of_mariadb_is_the_query_of_its_values() -> None:
    assert one("DO 1, (SELECT count(*) FROM users)", M).sql == "SELECT 1, (SELECT count(*) FROM `users`)"
    with pytest.raises(Unsupported, match="sleep"):
        one("DO sleep(1)", M)


@DIALECTS
@pytest.mark.parametrize("text", ["BEGIN; SELECT 1", "SELECT 1; COMMIT", "BEGIN; SELECT 1; ROLLBACK"])
def test_half_a_transaction_is_refused_with_what_to_do_instead(dialect: Dialect, text: str) -> None:
    with pytest.raises(Unsupported, match="left to GoEx") as refused:
        check(text, shop(dialect), database="shop")
    assert "Leave them out" in refused.value.next_step


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        (M, "LAST_INSERT_ID()"),
        (S, "last_insert_rowid()"),
        (P, "lastval()"),
        (P, "currval('orders_id_seq')"),
        (P, "currval(pg_get_serial_sequence('orders', 'id'))"),
    ],
)
def test_the_last_key_is_known_behind_an_insert_of_the_same_program(dialect: Dialect, call: str) -> None:
    text = f"INSERT INTO orders (status) VALUES ('x'); INSERT INTO archive (id) VALUES ({call})"
    first, second = check(text, shop(dialect), database="shop").statements
    assert call in second.sql and call not in first.sql
    with pytest.raises(Unsupported, match="anything but an INSERT before it") as refused:
        check(f"SELECT {call}", shop(dialect), database="shop")
    assert "follows the INSERT" in refused.value.next_step


@DIALECTS
def test_explain_reads_what_the_statement_names_and_writes_nothing(dialect: Dialect) -> None:
    statement = one("EXPLAIN UPDATE orders SET total = 1 WHERE user_id IN (SELECT id FROM users)", dialect)
    assert (statement.verb, statement.table, statement.returns_rows) == ("select", "", True)
    assert statement.sql.startswith("EXPLAIN UPDATE") and not statement.everywhere and not statement.count_sql
    assert {(use.table, use.verb) for use in statement.uses} == {("orders", "select"), ("users", "select")}
    deleted = one("EXPLAIN DELETE FROM orders", dialect)
    assert [(use.table, use.verb, use.columns) for use in deleted.uses] == [("orders", "select", ())]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("EXPLAIN (ANALYZE, BUFFERS) DELETE FROM orders", P),
        ("EXPLAIN ANALYZE WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d", P),
        ("ANALYZE DELETE FROM orders", M),
    ],
)
def test_what_would_run_a_write_while_it_is_explained_is_refused(text: str, dialect: Dialect) -> None:
    with pytest.raises(Unsupported, match="of a statement that writes runs it") as refused:
        one(text, dialect)
    assert "Leave ANALYZE out" in refused.value.next_step


def test_a_variable_is_read_where_the_same_program_has_set_it() -> None:
    text = "SET @a := (SELECT id FROM users WHERE id = 1), @B = 2; UPDATE orders SET total = @b WHERE user_id = @A"
    first, second = check(text, shop(M), database="shop").statements
    assert first.sql == "SET @a = (SELECT id FROM `users` WHERE id = 1), @B = 2"
    assert (first.verb, first.returns_rows, first.uses[0].table) == ("select", False, "users")
    assert second.verb == "update" and second.most is None and not second.count_sql
    text = "SELECT id, name INTO @a, @b FROM users WHERE id = 1; SELECT @a, @b"
    into, _ = check(text, shop(M), database="shop").statements
    assert into.sql.endswith("INTO @a, @b") and not into.returns_rows
    with pytest.raises(InvalidInput, match="@c isn't set in this request") as refused:
        check("SET @a = 1; DELETE FROM orders WHERE id = @c", shop(M), database="shop")
    assert "SET @c" in refused.value.next_step


def test_what_one_statement_writes_of_two_tables_is_said_of_each() -> None:
    statement = one("DELETE o, u FROM orders o JOIN users u ON u.id = o.user_id", M)
    assert (statement.table, statement.others, statement.everywhere) == ("orders", ("users",), True)
    assert [use.table for use in statement.uses if use.verb == "delete"] == ["orders", "users"]
    statement = one("UPDATE orders o JOIN users u ON u.id = o.user_id SET o.total = 1, u.name = 'x' WHERE u.id = 1", M)
    written = [(use.table, use.columns) for use in statement.uses if use.verb == "update"]
    assert written == [("orders", ("total",)), ("users", ("name",))]
    assert statement.most is None  # the key is that of one of them


@DIALECTS
def test_savepoints_that_are_released_are_left_out(dialect: Dialect) -> None:
    text = "SAVEPOINT a; UPDATE orders SET total = 1; SAVEPOINT b; DELETE FROM users; RELEASE b; RELEASE SAVEPOINT a"
    assert [one.verb for one in check(text, shop(dialect), database="shop").statements] == ["update", "delete"]
    with pytest.raises((Unsupported, InvalidInput)):
        check(text.replace("RELEASE b", "ROLLBACK TO b"), shop(dialect), database="shop")


@pytest.mark.parametrize(
    ("text", "table", "columns"),
    [
        ("SHOW INDEX FROM orders", "statistics", "index_name, non_unique, seq_in_index, column_name"),
        ("show keys in orders", "statistics", "index_name, non_unique, seq_in_index, column_name"),
        ("SHOW FULL COLUMNS FROM orders", "columns", "extra, collation_name, column_comment"),
    ],
)
def test_show_is_the_query_that_it_is_short_for(text: str, table: str, columns: str) -> None:
    statement = one(text, M)
    assert [use.table for use in statement.uses] == [f"information_schema.{table}"]
    assert columns in statement.sql and "table_name = 'orders'" in statement.sql
    with pytest.raises(Unsupported):
        one(f"{text} FROM mysql", M)


# ---- uses


def _uses(text: str, dialect: Dialect) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(use.table, use.verb, use.columns) for use in one(text, dialect).uses]


@DIALECTS
@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("SELECT 1", []),
        ("SELECT count(*) FROM orders", [("orders", "select", ())]),
        ("SELECT id FROM orders WHERE total > 1 ORDER BY placed", [("orders", "select", ("id", "total", "placed"))]),
        ("SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id",
         [("orders", "select", ("user_id",)), ("users", "select", ("id", "name"))]),
        ("SELECT x.n FROM (SELECT name AS n FROM users) AS x", [("users", "select", ("name",))]),
        ("WITH x AS (SELECT id FROM orders) SELECT * FROM x", [("orders", "select", ("id",))]),
        ("WITH users AS (SELECT id FROM orders) SELECT id FROM users", [("orders", "select", ("id",))]),
        ("SELECT (SELECT max(total) FROM orders WHERE user_id = u.id) FROM users u",
         [("orders", "select", ("user_id", "total")), ("users", "select", ("id",))]),
        ("SELECT id FROM users UNION SELECT id FROM archive",
         [("archive", "select", ("id",)), ("users", "select", ("id",))]),
        ("SELECT id FROM v", [("v", "select", ())]),
        ("UPDATE orders SET total = total + 1, placed = NULL WHERE status = 'new'",
         [("orders", "update", ("total", "placed")), ("orders", "select", ("status", "total"))]),
        ("UPDATE users SET name = 'x'", [("users", "update", ("name",))]),
        ("DELETE FROM orders WHERE user_id IN (SELECT id FROM users)",
         [("orders", "delete", ()), ("orders", "select", ("user_id",)), ("users", "select", ("id",))]),
        ("DELETE FROM orders", [("orders", "delete", ())]),
        ("INSERT INTO archive (id) SELECT id FROM orders",
         [("archive", "insert", ("id",)), ("orders", "select", ("id",))]),
        ("INSERT INTO archive VALUES (1, 'x')", [("archive", "insert", ())]),
        ("CREATE VIEW w AS SELECT name FROM users", [("w", "create", ()), ("users", "select", ("name",))]),
        ("CREATE INDEX i ON orders (total)", [("orders", "alter", ()), ("orders", "select", ("total",))]),
        ("ALTER TABLE orders DROP COLUMN extra", [("orders", "alter", ("extra",))]),
        ("DROP TABLE archive", [("archive", "drop", ())]),
    ],
)  # fmt: skip
def test_every_table_that_is_read_or_written_is_named(
    text: str, uses: list[tuple[str, str, tuple[str, ...]]], dialect: Dialect
) -> None:
    assert _uses(text, dialect) == uses


@pytest.mark.parametrize(
    ("text", "dialect", "uses"),
    [
        ("UPDATE orders o SET status = 'x' FROM users u WHERE u.id = o.user_id RETURNING u.email", P,
         [("orders", "update", ("status",)), ("orders", "select", ("user_id",)), ("users", "select", ("id", "email"))]),
        ("INSERT INTO users (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = users.email", P,
         [("users", "insert", ("id",)), ("users", "update", ("name",)), ("users", "select", ("id", "email"))]),
        ("SELECT id, (SELECT max(email) FROM generate_series(1, 2) AS g) FROM users", P,
         [("users", "select", ("id", "email"))]),
        ("SELECT id, (SELECT count(*) AS email FROM archive ORDER BY max(email || 'x')) FROM users", P,
         [("archive", "select", ()), ("users", "select", ("id", "email"))]),
        ("SELECT id, (SELECT value FROM json_each('[1]') WHERE name = 'x') FROM users", S,
         [("users", "select", ("id", "name"))]),
        ("SELECT row_to_json(o) FROM orders o", P, [("orders", "select", ())]),
        ("SELECT s.id FROM stock.items s", P, [("stock.items", "select", ("id",))]),
        ("TRUNCATE orders", P, [("orders", "truncate", ())]),
        ("DROP INDEX orders_status", P, [("orders", "alter", ())]),
        ("DROP INDEX orders_status", S, [("orders", "alter", ())]),
        ("DROP INDEX orders_status ON orders", M, [("orders", "alter", ())]),
        ("UPDATE users u JOIN orders o ON o.user_id = u.id SET o.total = 1", M,
         [("orders", "update", ("total",)), ("orders", "select", ("user_id",)), ("users", "select", ("id",))]),
        ("DELETE u FROM users u JOIN orders o ON o.user_id = u.id", M,
         [("users", "delete", ()), ("orders", "select", ("user_id",)), ("users", "select", ("id",))]),
        ("REPLACE INTO users (id) VALUES (1)", M, [("users", "insert", ("id",)), ("users", "delete", ())]),
        ("INSERT OR REPLACE INTO users (id) VALUES (1)", S, [("users", "insert", ("id",)), ("users", "delete", ())]),
        ("INSERT INTO users (id) VALUES (1) ON DUPLICATE KEY UPDATE name = VALUES(email)", M,
         [("users", "insert", ("id",)), ("users", "update", ("name",))]),
        ("CREATE TABLE t (u int REFERENCES users (id))", S, [("t", "create", ()), ("users", "select", ())]),
    ],
)  # fmt: skip
def test_each_dialect_names_what_it_has_of_its_own(
    text: str, dialect: Dialect, uses: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    assert _uses(text, dialect) == uses


@DIALECTS
@pytest.mark.parametrize(
    ("text", "everywhere"),
    [
        ("UPDATE orders SET total = 1", True),
        ("UPDATE orders SET total = 1 WHERE id = 1", False),
        ("DELETE FROM orders", True),
        ("DELETE FROM orders WHERE id = 1", False),
        ("INSERT INTO archive (id) VALUES (1)", False),
        ("SELECT id FROM orders", False),
        ("DROP TABLE archive", True),
    ],
)
def test_a_write_without_a_where_is_said(text: str, everywhere: bool, dialect: Dialect) -> None:
    assert one(text, dialect).everywhere is everywhere


@DIALECTS
@pytest.mark.parametrize(
    "text", ["DELETE FROM far WHERE id = 1", "UPDATE far SET id = 1", "INSERT INTO far (id) VALUES (1)"]
)
def test_what_is_no_plain_table_is_read_and_never_written(text: str, dialect: Dialect) -> None:
    schema = shop(dialect)
    far = Table(name="far", kind="other", columns=(Column(name="id", type="int"),))
    schema = Schema(dialect=dialect, version="1", tables={**schema.tables, "far": far}, hash="h")
    assert check("SELECT id FROM far", schema, database="shop").reads_only
    with pytest.raises(Unsupported, match="no plain table"):
        check(text, schema, database="shop")


# ---- names and quotes


def test_postgresql_is_told_each_tables_schema() -> None:
    assert one("SELECT id FROM Orders", P).sql == 'SELECT id FROM "public"."orders"'
    assert one('SELECT "Label" FROM stock.items', P).sql == 'SELECT "Label" FROM "stock"."items"'
    with pytest.raises(InvalidInput, match="no table Orders"):
        check('SELECT id FROM "Orders"', shop(P), database="shop")


@pytest.mark.parametrize("dialect", [M, S])
def test_names_take_any_case_where_the_engine_takes_it(dialect: Dialect) -> None:
    assert one("SELECT ID FROM ORDERS", dialect).uses[0].columns == ("id",)


@DIALECTS
@pytest.mark.parametrize("value", ["it''s", "a;b", "--", "/*", "*/", '"', "`", "#", "$$", "\\\\", "ünï", "%s", ":x"])
def test_a_string_says_after_it_what_it_said_before(value: str, dialect: Dialect) -> None:
    sql = one(f"UPDATE users SET name = '{value}' WHERE id = 1", dialect).sql
    strings, _names = quoted(sql, dialect)
    said = value.replace("''", "'").replace("\\\\", "\\" if dialect is M else "\\\\")
    assert list(strings) == [said]


@pytest.mark.promise(68)
@pytest.mark.parametrize(
    ("made", "dialect"),
    [
        ("SELECT 1; DROP TABLE users", P),
        ("SELECT 1 -- x", P),
        ("SELECT /* x */ 1", S),
        ("SELECT 1 # x", M),
        ("SELECT 'a", P),
        ("SELECT 'a\\' OR 1", M),
        ("SELECT $$a$$", P),
        ("SELECT `a`", P),
    ],
)
def test_text_that_a_server_would_read_otherwise_never_leaves(made: str, dialect: Dialect) -> None:
    with pytest.raises(Unsupported):
        quoted(made, dialect)


# ---- limits


@pytest.mark.sampled(7)
@DIALECTS
@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "SELECT " + "NOT " * 5000 + "1",
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + "1 + " * 30000 + "1",
        "SELECT " + "CASE WHEN 1 THEN " * 400 + "1" + " END" * 400,
        "SELECT 1 " + "UNION SELECT 1 " * 3000,
        "SELECT 'x' || " * 2 + "1 || " * 5000 + "1",
        "SELECT id FROM orders WHERE " + "id = 1 OR " * 9000 + "id = 2",
        "SELECT " + "lower(" * 3000 + "'x'" + ")" * 3000,
        "SELECT " + "1, " * (MAX_TEXT // 3 + 1) + "1",
        "SELECT 1;" * (MAX_STATEMENTS + 1),
        "SELECT '" + "x" * MAX_TEXT + "'",
        "SELECT 'a\0b'",
        "SELECT 'a\udc80b'",
        "WITH " + ", ".join(f"a{n} AS (SELECT 1)" for n in range(20000)) + " SELECT 1",
    ],
    ids=lambda text: f"{text[:18].encode('ascii', 'replace').decode()}-{len(text)}",
)
def test_what_is_too_long_or_too_deep_is_refused_before_it_can_do_harm(text: str, dialect: Dialect) -> None:
    with pytest.raises((InvalidInput, Unsupported)):
        check(text, shop(dialect), database="shop")


def _doubled(source: str, number: int) -> str:
    """Queries of which each has all columns of the one before it, twice."""
    parts = [f"a0 AS (SELECT * FROM {source})"]
    parts += [f"a{i} AS (SELECT * FROM a{i - 1}, a{i - 1} AS b{i})" for i in range(1, number)]
    return f"WITH {', '.join(parts)} SELECT * FROM a{number - 1}"


@pytest.mark.promise(16)
@DIALECTS
def test_columns_that_double_with_each_query_are_refused(dialect: Dialect) -> None:
    for query in (_doubled("orders", 22), f"SELECT {', '.join(['o.*'] * 1_000)} FROM orders AS o"):
        with pytest.raises(InvalidInput, match="columns"):
            check(query, shop(dialect), database="shop")
    assert check(_doubled("orders", 6), shop(dialect), database="shop").statements


@pytest.mark.promise(16)
@DIALECTS
def test_recursive_queries_within_each_other_are_walked_once(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    walked, query = 0, Reads.query

    def counting(self: Reads, *arguments: Any) -> tuple[str, ...] | None:
        nonlocal walked
        walked += 1
        return query(self, *arguments)

    monkeypatch.setattr(Reads, "query", counting)
    text = "SELECT id FROM orders"
    for number in range(7):
        begins = f"SELECT id FROM ({text}) AS q"
        text = f"WITH RECURSIVE a{number} AS ({begins} UNION SELECT id FROM orders) SELECT id FROM a{number}"
    assert {use.table for use in one(text, dialect).uses} == {"orders"} and walked < 200


@pytest.mark.sampled(1)
@DIALECTS
def test_what_people_really_send_is_inside_of_the_limits(dialect: Dialect) -> None:
    rows = ", ".join(f"({number}, 'name {number}')" for number in range(2000))
    assert one(f"INSERT INTO archive (id, status) VALUES {rows}", dialect).count_sql == "SELECT 2000"
    many = " OR ".join(f"id = {number}" for number in range(150))
    assert one(f"SELECT id FROM orders WHERE {many}", dialect).verb == "select"
    names = ", ".join(str(number) for number in range(3000))
    assert one(f"DELETE FROM orders WHERE id IN ({names})", dialect).verb == "delete"


# ---- anything at all


def _words(dialect: Dialect) -> list[str]:
    lines = _lines(allowed, dialect) + _lines(hostile, dialect)
    return sorted({word for line in lines for word in line.split()})


@DIALECTS
@given(data=st.data())
@settings(max_examples=30)
def test_no_text_breaks_it_and_nothing_it_makes_is_made_otherwise(dialect: Dialect, data: st.DataObject) -> None:
    """Good and hostile statements cut up and mixed: either a plain refusal, or a program that stays as it is."""
    lines = _lines(allowed, dialect)
    words = data.draw(st.sampled_from(lines)).split()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words)))
        kind = data.draw(st.sampled_from(["put", "drop", "swap"]))
        if kind == "put":
            words.insert(at, data.draw(st.sampled_from(_words(dialect)) | st.text(max_size=4)))
        elif words and kind == "drop":
            words.pop(min(at, len(words) - 1))
        elif words:
            words[min(at, len(words) - 1)] = data.draw(st.sampled_from(_words(dialect)))
    try:
        program = check(" ".join(words), shop(dialect), database="shop")
    except GoexError:
        return
    for statement in program.statements:
        quoted(statement.sql, dialect)
        assert one(statement.sql, dialect) == statement
