"""Connecting: TLS, what a session may, and that the server's own settings change nothing of what a text means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.sql.contract import Dialect, Limits, Place
from runtimes.sql.drivers import MariaDbDriver
from runtimes.sql.mariadb.wire import ServerError, Wire
from tests.runtimes.sql.mariadb.support import PASSWORD, Base
from tests.services.mariadb import MariaDb, find_server
from vault.secret import Secret


def wire(base: Base, place: Place | None = None) -> Wire:
    return Wire(place or base.place, Secret(PASSWORD), base.limits)


def over_tcp(base: Base, **more: str) -> Place:
    return replace(base.place, socket="", host="127.0.0.1", port=base.server.port, **more)  # type: ignore[arg-type]


@pytest.mark.promise(71)
def test_tls_is_verified(base: Base) -> None:
    for host in ("127.0.0.1", "localhost"):
        at = wire(base, replace(over_tcp(base, ca_pem=base.server.ca_pem), host=host))
        assert at.one("SHOW STATUS LIKE 'Ssl_version'")[1].startswith("TLS")
        at.close()
    with pytest.raises(Unavailable, match="certificate"):
        wire(base, over_tcp(base))
    with MariaDb() as other, pytest.raises(Unavailable, match="certificate"):
        wire(base, over_tcp(base, ca_pem=other.ca_pem))
    with pytest.raises(Unavailable):
        wire(base, over_tcp(base, ca_pem="nothing"))


def test_the_name_is_verified() -> None:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with (
        MariaDb(options=("--bind-address=127.0.0.2",)) as server,
        server.database(user="goex", password=PASSWORD) as name,
    ):
        base = Base(server, name, "goex")
        with pytest.raises(Unavailable, match="certificate"):
            wire(base, replace(over_tcp(base, ca_pem=server.ca_pem), host="127.0.0.2"))


def test_a_server_without_tls_is_not_spoken_to() -> None:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb(options=("--skip-ssl",)) as server, server.database(user="goex", password=PASSWORD) as name:
        base = Base(server, name, "goex")
        with pytest.raises(Unavailable, match="TLS"):
            wire(base, over_tcp(base, ca_pem=server.ca_pem))
        wire(base, over_tcp(base, tls="none")).close()


def test_a_plain_connection_is_for_this_machine(base: Base) -> None:
    at = wire(base, over_tcp(base, tls="none"))
    assert at.one("SHOW STATUS LIKE 'Ssl_version'")[1] == ""
    at.close()


@pytest.mark.promise(72)
def test_no_error_tells_the_password(base: Base) -> None:
    for place in (replace(base.place, user="x"), replace(base.place, database="x"), over_tcp(base)):
        with pytest.raises(Unavailable) as refused:
            wire(base, place)
        told = f"{refused.value} {refused.value.__cause__} {refused.value.__context__!r}"
        assert PASSWORD not in told
    with base.session() as session:
        assert PASSWORD not in repr(session) + repr(vars(session))


HOSTILE = """
SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE';
SET GLOBAL init_connect = 'SET time_zone = ''+05:00'', foreign_key_checks = 0, sql_safe_updates = 1,
 sql_select_limit = 1, tx_read_only = 1, completion_type = 1, sql_if_exists = 1, autocommit = 0,
 timestamp = 5, insert_id = 77';
SET GLOBAL time_zone = '-03:00'; SET GLOBAL tx_isolation = 'READ-UNCOMMITTED';
"""
CALM = """
SET GLOBAL sql_mode = DEFAULT; SET GLOBAL init_connect = ''; SET GLOBAL time_zone = 'SYSTEM';
SET GLOBAL tx_isolation = 'REPEATABLE-READ';
"""


@pytest.mark.promise(71)
def test_the_servers_settings_change_nothing(base: Base) -> None:
    base.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20), at TIMESTAMP NULL)")
    base.run(HOSTILE)
    try:
        at = wire(base)
        assert at.one("SELECT \"a\", 'a\\'b', 1 || 0, @@time_zone, @@tx_isolation, @@autocommit") == (
            *("a", "a'b", 1, "+00:00", "REPEATABLE-READ", 1),
        )
        assert at.one("SELECT @@foreign_key_checks, @@sql_select_limit > 10, @@tx_read_only, @@completion_type") == (
            *(1, 1, 0, "NO_CHAIN"),
        )
        assert at.one("SELECT NOW() > '2020-01-01'") == (1,)
        at.close()
        job = base.job("INSERT INTO t (s, at) VALUES ('a\\'b', '2024-01-01 12:00:00')")
        with base.session() as session:
            session.run(job)
        assert base.run("SET time_zone = '+00:00'; SELECT * FROM t")[0][:2] == (1, "a'b")
    finally:
        base.run(CALM)


def test_one_statement_at_a_time_and_no_file_of_ours(base: Base, tmp_path: Path) -> None:
    base.run("CREATE TABLE t (s TEXT)")
    at = wire(base)
    with pytest.raises(ServerError):
        at.run("SELECT 1; DELETE FROM t")
    secret = tmp_path / "secret"
    secret.write_text("mine")
    base.run("SET GLOBAL local_infile = 1")
    with pytest.raises(ServerError):
        at.run(f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE t")
    at.close()
    assert base.run("SELECT * FROM t") == []


def test_it_is_mariadb_and_closes_twice(base: Base) -> None:
    session = MariaDbDriver().open(base.place, Secret(PASSWORD), Limits())
    assert session.schema().dialect is Dialect.MARIADB
    session.close()
    session.close()
    with pytest.raises(Unavailable):
        session.schema()


def test_the_schema_tells_names_and_no_rows(base: Base) -> None:
    base.run("CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(20) UNIQUE); INSERT INTO p VALUES (1, 'needle')")
    base.run(
        "CREATE TABLE c (id BIGINT AUTO_INCREMENT PRIMARY KEY, p INT, v INT AS (p + 1) VIRTUAL,"
        " w INT INVISIBLE DEFAULT 5,"
        " CONSTRAINT f FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE)"
    )
    with base.session() as session:
        schema = session.schema()
        again = session.schema()
        base.run("INSERT INTO c (p) VALUES (1)")
        assert session.schema().hash == again.hash == schema.hash
        c = schema.tables["c"]
        assert [(column.name, column.counter, column.generated) for column in c.columns] == [
            ("id", True, False),
            ("p", False, False),
            ("v", False, True),
            ("w", False, False),
        ]
        (link,) = c.foreign_keys
        assert (link.parent, link.columns, link.on_delete) == ("p", ("p",), "CASCADE")
        assert schema.tables["p"].unique == (("s",),)
        assert "needle" not in repr(schema)
        for change in (
            "ALTER TABLE c ADD COLUMN x INT",
            "ALTER TABLE p ADD CHECK (id > 0)",
            "CREATE INDEX i ON p (id)",
            "CREATE TRIGGER g BEFORE INSERT ON p FOR EACH ROW SET NEW.id = 1",
            "ALTER TABLE c DROP FOREIGN KEY f",
            "ALTER TABLE p MODIFY s VARCHAR(20) COLLATE utf8mb4_bin",
        ):
            was = session.schema().hash
            base.run(change)
            assert session.schema().hash != was, change
