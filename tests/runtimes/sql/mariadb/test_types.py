"""Every type comes back by its bytes: as a value, and as the key that names its row."""

from __future__ import annotations

import pytest

from tests.runtimes.sql.mariadb.support import Base

# (type, whether it can be a key, values)
TYPES: dict[str, tuple[str, bool, list[str]]] = {
    "bigint": ("BIGINT UNSIGNED", True, ["0", "18446744073709551615"]),
    "zerofill": ("INT(8) ZEROFILL", True, ["7", "4294967295"]),
    "decimal": ("DECIMAL(65,30)", True, ["-0.000000000000000000000000000001", "12345678901234567890123456789012345"]),
    "float": ("FLOAT", True, ["0.1", "-1.1e-38", "3.4028234e38", "16777217"]),
    "float-digits": ("FLOAT(7,3)", True, ["0.1", "-9999.999", "1.0005"]),
    "double": ("DOUBLE", True, ["0.1", "2.2250738585072014e-308", "1.7976931348623157e308", "5e-324", "1/3"]),
    "bit": ("BIT(64)", True, ["b'0'", "b'1'", "18446744073709551615"]),
    "bool": ("BOOLEAN", True, ["TRUE", "FALSE", "5"]),
    "year": ("YEAR", True, ["0", "1901", "2155", "'00'"]),
    "date": ("DATE", True, ["'0000-00-00'", "'2024-02-29'", "'2024-00-10'", "'9999-12-31'"]),
    "datetime": ("DATETIME(6)", True, ["'0000-00-00'", "'2024-03-31 02:30:00.123456'"]),
    "timestamp": ("TIMESTAMP(3) NULL", False, ["'1970-01-01 00:00:01'", "'2024-10-27 01:30:00.5'", "0"]),
    "time": ("TIME(6)", True, ["'-838:59:59.999999'", "'838:59:59'", "'00:00:00.000001'"]),
    "char": ("CHAR(9)", True, ["''", "'a '", "'N'", "'~'", "'a,b|c'"]),
    "varchar": ("VARCHAR(30)", True, ["'a'", "'\\\\ \\' \" % :x'", "'line\\nline\\0'", "'é中😀'"]),
    "latin1": ("VARCHAR(30) CHARSET latin1", True, ["'é€'", "_latin1 X'81'"]),
    "ucs2": ("VARCHAR(30) CHARSET ucs2", True, ["'é'", "''"]),
    "utf16le": ("VARCHAR(30) CHARSET utf16le", True, ["'😀'"]),
    "sjis": ("VARCHAR(30) CHARSET sjis", True, ["'表ソ'"]),
    "utf8mb3": ("VARCHAR(30) CHARSET utf8mb3", True, ["'é中'"]),
    "compressed": ("VARCHAR(300) COMPRESSED", False, ["REPEAT('x', 300)", "''"]),
    "text": ("LONGTEXT", False, ["REPEAT('long ', 30000)", "''"]),
    "json": ("JSON", False, ["'{\"b\": 1.0, \"a\": [null]}'", "'\"N\"'"]),
    "binary": ("BINARY(4)", True, ["X'00'", "X'2C7C7E0A'", "X'FFFFFFFF'"]),
    "varbinary": ("VARBINARY(9)", True, ["X''", "X'00'", "X'20'", "X'2020'"]),
    "blob": ("BLOB", False, ["X'00FF'", "''"]),
    "enum": ("ENUM('b','a','','1')", True, ["'a'", "''", "'1'", "1"]),
    "set": ("SET('x','y','z')", True, ["''", "'x,z'", "7"]),
    "uuid": ("UUID", True, ["'12345678-9abc-def0-1234-56789abcdef0'", "UUID()"]),
    "inet6": ("INET6", True, ["'::'", "'::ffff:1.2.3.4'", "'fe80::1'"]),
    "inet4": ("INET4", True, ["'0.0.0.0'", "'255.1.2.3'"]),
    "geometry": ("GEOMETRY", False, ["ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('LINESTRING(0 0,1 1)')"]),
    "point": ("POINT", False, ["POINT(0.1, -1e300)"]),
}  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("which", sorted(TYPES))
def test_its_bytes_come_back(base: Base, which: str) -> None:
    kind, can_be_key, values = TYPES[which]
    lenient = "SET sql_mode = '';"
    base.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {kind}, w INT) CHARSET utf8mb4")
    for number, value in enumerate(["NULL", *values]):
        base.run(f"{lenient} INSERT INTO t VALUES ({number}, {value}, 0)")
    there_and_back(base, ["UPDATE t SET w = w + 1", "DELETE FROM t", "UPDATE t SET v = NULL WHERE id > 0"])
    if can_be_key:
        base.run(f"CREATE TABLE k (v {kind} PRIMARY KEY, w INT) CHARSET utf8mb4")
        for value in values:
            base.run(f"{lenient} INSERT IGNORE INTO k VALUES ({value}, 0)")
        base.run("CREATE TABLE l LIKE k")
        there_and_back(base, ["UPDATE k SET w = w + 1", "DELETE FROM k", "INSERT INTO l SELECT * FROM k"])


def there_and_back(base: Base, statements: list[str]) -> None:
    for sql in statements:
        before = base.dump()
        job = base.job(sql)
        with base.session() as session:
            session.run(job)
            after = base.dump()
            assert after != before
            session.revert(job, "undo")
            assert base.dump() == before, sql
            session.revert(job, "redo")
            assert base.dump() == after, sql
            session.revert(job, "undo")
        assert base.dump() == before, sql


def test_generated_invisible_and_checked_columns(base: Base) -> None:
    base.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, p INT AS (a * 3) STORED,"
        " hidden VARCHAR(20) INVISIBLE DEFAULT 'h', made VARCHAR(36) DEFAULT UUID(),"
        " at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),"
        " UNIQUE (p), CHECK (a > 0))"
    )
    base.run("INSERT INTO t (id, a, hidden) VALUES (1, 1, 'x'), (2, 2, 'y')")
    base.run("SET check_constraint_checks = 0; INSERT INTO t (id, a) VALUES (3, -3)")
    there_and_back(
        base,
        [
            "UPDATE t SET a = a + 10",
            "DELETE FROM t",
            "INSERT INTO t (id, a) VALUES (9, 9)",
            "REPLACE INTO t (id, a) VALUES (1, 2)",
        ],
    )


def test_a_zero_is_a_value_of_a_counter(base: Base) -> None:
    base.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
    base.run("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; INSERT INTO t VALUES (0, 1), (1, 2), (-1, 3)")
    there_and_back(base, ["UPDATE t SET a = a + 10", "DELETE FROM t WHERE id < 1"])


def test_partitions(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY HASH(id) PARTITIONS 3")
    base.run("INSERT INTO t SELECT seq, seq FROM seq_1_to_20")
    there_and_back(
        base,
        [
            "UPDATE t SET a = a + 1",
            "UPDATE t SET id = id + 100 WHERE id < 5",
            "DELETE FROM t WHERE id > 5",
            "REPLACE INTO t VALUES (1, 7), (99, 7)",
            "INSERT INTO t VALUES (1, 1), (77, 1) ON DUPLICATE KEY UPDATE a = 50",
        ],
    )


def test_long_unique_values_and_prefixes(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, b TEXT, c VARCHAR(50), UNIQUE (b), UNIQUE (c(3)))")
    base.run("INSERT INTO t VALUES (1, REPEAT('a', 5000), 'abcdef'), (2, 'b', 'xyz'), (3, NULL, NULL)")
    there_and_back(
        base,
        ["REPLACE INTO t VALUES (9, 'b', 'abcZZZ')", "UPDATE t SET b = CONCAT(b, 'x')", "DELETE FROM t WHERE id = 1"],
    )
