"""Who GoEx may be on a server, and what no default of anybody's changes about its connection."""

from __future__ import annotations

import dataclasses
import os
import socket

import pytest

from policies.errors import Unavailable, Unsupported
from runtimes.sql.contract import Limits
from runtimes.sql.drivers import PostgresDriver
from tests.runtimes.sql.postgres.support import LIMITS, job, session
from tests.services.postgres import Made, Postgres
from vault.secret import Secret


@pytest.fixture(scope="module")
def made(postgres: Postgres) -> Made:
    return postgres.make("CREATE TABLE notes (id int PRIMARY KEY, note text)", "INSERT INTO notes VALUES (1, 'one')")


@pytest.mark.sampled(5)
@pytest.mark.promise(71)
@pytest.mark.parametrize(
    "power",
    [
        "SUPERUSER",
        "CREATEROLE",
        "REPLICATION",
        "BYPASSRLS",
        "IN ROLE pg_execute_server_program",
        "IN ROLE pg_read_server_files",
        "IN ROLE pg_write_server_files",
        "IN ROLE pg_signal_backend",
        "IN ROLE postgres",
        "NOINHERIT IN ROLE postgres",
    ],
)
def test_a_user_that_may_too_much_is_refused(postgres: Postgres, power: str) -> None:
    mighty = postgres.make(role=power)
    with pytest.raises(Unsupported) as caught:
        PostgresDriver().open(mighty.place(), mighty.secret, LIMITS)
    assert mighty.user in caught.value.message
    assert "CREATE ROLE goex LOGIN" in caught.value.next_step
    assert mighty.password not in str(caught.value)


@pytest.mark.promise(71)
def test_power_through_another_role_is_refused(postgres: Postgres) -> None:
    mighty = postgres.make()
    with postgres.connect() as admin:
        admin.execute(f"CREATE ROLE between_{mighty.user} IN ROLE pg_execute_server_program")
        admin.execute(f"GRANT between_{mighty.user} TO {mighty.user}")
    with pytest.raises(Unsupported, match="pg_execute_server_program"):
        PostgresDriver().open(mighty.place(), mighty.secret, LIMITS)


@pytest.mark.promise(71)
def test_defaults_of_roles_and_databases_change_nothing(postgres: Postgres) -> None:
    hostile = postgres.make(
        "CREATE SCHEMA trap",
        "CREATE TABLE notes (id int PRIMARY KEY, note text, at timestamptz, cost money, f float8, raw bytea)",
        "CREATE TABLE trap.notes (id int)",
        "INSERT INTO notes VALUES (1, 'a\\b', '2024-02-03 04:05:06+00', 1.5, 0.1, '\\x00ff')",
    )
    settings = {
        "search_path": "trap, public",
        "standard_conforming_strings": "off",
        "client_encoding": "latin1",
        '"DateStyle"': "German, DMY",
        '"TimeZone"': "Asia/Tokyo",
        "extra_float_digits": "-10",
        "bytea_output": "escape",
        "lc_monetary": "C.UTF-8",
        "transform_null_equals": "on",
        "default_transaction_read_only": "on",
        "default_transaction_isolation": "serializable",
        "statement_timeout": "1",
        "lock_timeout": "1",
        "synchronous_commit": "off",
        "row_security": "off",
        "gin_fuzzy_search_limit": "1",
    }
    with hostile.admin() as admin:
        for name, value in settings.items():
            of = f"DATABASE {hostile.database}" if len(name) % 2 else f"ROLE {hostile.user}"
            admin.execute(
                f"ALTER {of} SET {name} = '{value}'"
                if name != "search_path"
                else f"ALTER {of} SET search_path = {value}"
            )
    with session(hostile) as on:
        ran = on.run(job(on, "SELECT note, at, cost, f, raw FROM notes WHERE note = 'a\\b'"))
        assert ran.results[0].rows == (("a\\b", "2024-02-03 04:05:06+00", "$1.50", 0.1, "\\x00ff"),)
        work = job(on, "UPDATE notes SET note = 'x'")
        on.run(work)
        on.revert(work, "undo")
        assert on.run(job(on, "SELECT note FROM notes")).results[0].rows == (("a\\b",),)


def test_time_and_locks_are_bounded(made: Made) -> None:
    with session(made, Limits(lock_seconds=0.3, seconds=7)) as on:
        asked = "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"
        found = [on._link.ask(f"SELECT setting::int FROM pg_settings WHERE name = '{name}'")[0][0] for name in asked]
    assert found == [7000, 300, 67000]


@pytest.mark.promise(71)
def test_tls_is_checked_against_the_entrys_authority(made: Made, postgres: Postgres) -> None:
    with session(made, tls=True) as on:
        assert on._link.ask("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]
    with Postgres() as other:
        stranger = dataclasses.replace(made.place(tls=True), ca_pem=other.ca_pem)
    for place in (stranger, dataclasses.replace(made.place(tls=True), ca_pem="")):
        with pytest.raises(Unavailable, match="certificate"):
            PostgresDriver().open(place, made.secret, LIMITS)


def test_tls_wants_the_hosts_own_name(made: Made) -> None:
    elsewhere = dataclasses.replace(made.place(tls=True), host="127.0.0.2")
    with pytest.raises(Unavailable):
        PostgresDriver().open(elsewhere, made.secret, LIMITS)


def test_errors_of_connecting_tell_no_secret(made: Made) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = dataclasses.replace(made.place(tcp=True), port=free.getsockname()[1])
        missing = dataclasses.replace(made.place(tcp=True), database="sesame")
        for place, secret in ((made.place(tcp=True), Secret("sesame")), (nobody, made.secret), (missing, made.secret)):
            with pytest.raises(Unavailable) as caught:
                PostgresDriver().open(place, secret, LIMITS)
            text = str(caught.value)
            assert "sesame" not in text and made.password not in text and caught.value.next_step
            assert caught.value.__cause__ is None


def test_the_environment_isnt_followed(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "192.0.2.1",
        "PGPASSWORD": "wrong",
        "PGOPTIONS": "-c search_path=trap",
        "PGSSLMODE": "require",
        "PGUSER": "root",
        "PGCLIENTENCODING": "latin1",
    }.items():
        monkeypatch.setenv(name, value)
    with session(made) as on:
        assert on._link.ask("SHOW search_path") == [("public, pg_temp",)]
    assert os.environ["PGPASSWORD"] == "wrong"


def test_a_function_that_stands_in_for_the_servers_own_is_never_called(postgres: Postgres) -> None:
    trapped = postgres.make(
        "CREATE TABLE notes (id int PRIMARY KEY, note varchar(20))",
        "INSERT INTO notes VALUES (1, 'abc')",
        "CREATE FUNCTION public.upper(varchar) RETURNS text LANGUAGE sql AS 'SELECT ''trap''::text'",
        "CREATE FUNCTION public.substring(varchar, int, int) RETURNS text LANGUAGE sql AS 'SELECT ''trap''::text'",
        "CREATE AGGREGATE public.min(varchar) (SFUNC = textcat, STYPE = text)",
        "CREATE FUNCTION public.generate_series(smallint, int) RETURNS SETOF int LANGUAGE sql AS 'SELECT 666'",
    )
    with session(trapped) as on:
        work = job(on, "UPDATE notes SET note = upper(note)")
        assert "pg_catalog.upper(note)" in work.program.statements[0].sql
        on.run(work)
        for name, sql in (  # what can't be named with its schema
            ("substring", "UPDATE notes SET note = substring(note FROM 1 FOR 2)"),
            ("min", "SELECT min(note) FILTER (WHERE id > 0) FROM notes"),
            ("generate_series", "SELECT * FROM generate_series(1::smallint, 2)"),
        ):
            with pytest.raises(Unsupported, match=f"a function {name} of its own"):
                job(on, sql)
    with trapped.connect() as owner:
        assert owner.execute("SELECT note FROM notes").fetchall() == [("ABC",)]


def test_closing_twice_and_using_it_again(made: Made) -> None:
    with session(made) as on:
        on.close()
        on.close()
        assert "notes" in on.schema().tables
