"""A held transaction whose time is over: only what the server still holds is rolled back, whatever came in between.

A real PostgreSQL, a real MariaDB. The administrator is somebody at the server, past GoEx.
"""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote

import pymysql
import pytest

from goex.config import Config
from goex.daemon.app import App
from goex.engine.core import Core, Principal, Request
from goex.engine.records import SealedRecords
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp, utc_now
from goex.journal.states import State
from goex.paths import Paths
from policies.accounts import Account
from policies.actions import Revert, Sql
from policies.databases import Terms
from policies.errors import Conflict
from policies.grants import PERSON
from runtimes.sql.contract import Doubtful
from runtimes.sql.mariadb.session import MariaDbSession
from runtimes.sql.postgres.session import PostgresSession
from tests.goex.databases.servers import ORDERS, TABLES
from tests.goex.databases.test_holds import HELD, Desk
from tests.goex.engine.conftest import APPROVAL, VAULT
from tests.services.mariadb import MariaDb, find_server
from tests.services.postgres import Made, Postgres
from tests.support.passphrases import cheap_passphrases
from tests.support.waiting import until
from vault.database import DatabaseSecret
from vault.secret import Secret

BEFORE = ["open", "open", "paid", "paid"]
AFTER = ["sent", "sent", "paid", "paid"]
OTHER = Sql(database="shop", statements="UPDATE orders SET status = 'late' WHERE customer = 2", policy="versioning")


class Admin(Protocol):
    """Somebody at the server."""

    url: str
    secret: Secret

    def change(self, sql: str) -> None: ...

    def rows(self) -> list[Any]: ...

    def held(self) -> int:
        """How many transactions are held."""
        ...

    def end(self, verb: Literal["COMMIT", "ROLLBACK"]) -> None:
        """End what is held."""
        ...

    def trust(self, much: bool) -> None:
        """Let GoEx's user do more than GoEx takes, or no longer."""
        ...


@dataclass
class PostgresAdmin:
    made: Made

    @property
    def url(self) -> str:
        made = self.made
        return f"postgresql://{made.user}@{quote(str(made.server.folder), safe='')}:{made.server.port}/{made.database}"

    @property
    def secret(self) -> Secret:
        return self.made.secret

    def change(self, sql: str) -> None:
        with self.made.connect() as connection:
            connection.execute(sql.encode())

    def rows(self) -> list[Any]:
        with self.made.connect() as connection:
            return connection.execute(ORDERS).fetchall()

    def _gids(self) -> list[str]:
        sql = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        with self.made.connect() as connection:
            return [str(gid) for (gid,) in connection.execute(sql)]

    def held(self) -> int:
        return len(self._gids())

    def end(self, verb: Literal["COMMIT", "ROLLBACK"]) -> None:
        for gid in self._gids():
            self.change(f"{verb} PREPARED '{gid}'")

    def trust(self, much: bool) -> None:
        with self.made.admin() as connection:
            connection.execute(f'ALTER ROLE "{self.made.user}" {"SUPERUSER" if much else "NOSUPERUSER"}'.encode())


@dataclass
class MariaDbAdmin:
    server: MariaDb
    database: str
    user: str
    secret: Secret

    @property
    def url(self) -> str:
        return f"mariadb://{self.user}@{quote(self.server.socket, safe='')}/{self.database}"

    def change(self, sql: str) -> None:
        self.server.run(sql, self.database)

    def rows(self) -> list[Any]:
        return self.server.run(ORDERS, self.database)

    def held(self) -> int:
        return len(self.server.run("XA RECOVER"))

    def end(self, verb: Literal["COMMIT", "ROLLBACK"]) -> None:
        for form, one, two, data in self.server.run("XA RECOVER"):
            xid = f"X'{data[:one].hex()}',X'{data[one : one + two].hex()}',{form}"

            def ended(sql: str = f"XA {verb} {xid}") -> bool:
                with suppress(pymysql.err.OperationalError):  # until the server knows that its connection has ended
                    self.server.run(sql)
                    return True
                return False

            until(ended)

    def trust(self, much: bool) -> None:
        self.server.run(f"{'GRANT' if much else 'REVOKE'} FILE ON *.* {'TO' if much else 'FROM'} `{self.user}`@`%`")


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    if find_server() is None:
        pytest.skip("no MariaDB: run make services")
    with MariaDb() as server:
        yield server


@contextmanager
def shop_on(server: Postgres | MariaDb) -> Iterator[Admin]:
    if isinstance(server, Postgres):
        yield PostgresAdmin(server.make(*TABLES))
        return
    user, password = f"u{secrets.token_hex(3)}", secrets.token_hex(12)
    with server.database(user=user, password=password) as database:
        made = MariaDbAdmin(server, database, user, Secret(password.encode()))
        for statement in TABLES:
            made.change(statement)
        yield made
        made.end("ROLLBACK")


@dataclass
class Shop:
    """An App with one entry, on a database of its own, at a time that a test can move."""

    app: App
    admin: Admin
    desk: Desk
    later: list[timedelta] = field(default_factory=list)

    def statuses(self) -> list[str]:
        return [row[1] for row in self.admin.rows()]

    async def held(self, action: Sql = HELD) -> ActionRow:
        done = await self.desk.carried_out(action)
        assert self.statuses() == BEFORE and self.admin.held()
        return done

    async def time_is_over(self) -> None:
        self.later.append(timedelta(hours=13))
        await self.app.holds.end_overdue()


@pytest.fixture(params=["postgres", "mariadb"])
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    server: Postgres | MariaDb = request.getfixturevalue(request.param)
    later: list[timedelta] = []

    def clock() -> datetime:
        return utc_now() + sum(later, timedelta())

    with shop_on(server) as admin, tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:
        home = Path(name)  # a socket's path is short
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None, clock=clock)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        account = Account(
            service="db", name="shop", origins=(), base_url=admin.url, format="database", private=True
        )  # fmt: skip
        sealed = DatabaseSecret(password=admin.secret, terms=Terms(hold_hours=12))
        app.vault_state.vault.put(account, sealed.to_secret())
        made: Any = None  # whatever it is, the desk isn't asked for rows here
        yield Shop(app, admin, Desk(app, made, later), later)
        await app.close()


@pytest.mark.sampled(1)
@pytest.mark.promise(77)
async def test_what_cant_be_asked_stays_held_and_listed(shop: Shop) -> None:
    """Refusing to connect says nothing of what the server holds."""
    done = await shop.held()
    shop.admin.trust(True)
    try:
        await shop.time_is_over()
        assert shop.desk.state(done.id) is State.DONE and shop.admin.held()
        (held,) = shop.app.holds.held("shop")
        assert "may do more" in held.trouble and "hold-stays" in shop.desk.kinds(done.id)
    finally:
        shop.admin.trust(False)
    await shop.app.holds.end_overdue()
    assert shop.desk.state(done.id) is State.UNDONE and not shop.admin.held()
    assert shop.statuses() == BEFORE


@pytest.mark.sampled(1)
async def test_what_was_rolled_back_at_the_server_is_undone(shop: Shop) -> None:
    done = await shop.held()
    shop.admin.end("ROLLBACK")
    await shop.time_is_over()
    assert shop.desk.state(done.id) is State.UNDONE and not shop.app.holds.held()
    assert shop.statuses() == BEFORE


@pytest.mark.promise(77)
async def test_what_was_committed_at_the_server_stays(shop: Shop) -> None:
    done = await shop.held()
    shop.admin.end("COMMIT")
    await shop.time_is_over()
    assert shop.statuses() == AFTER
    assert shop.desk.state(done.id) is State.COMMITTED and not shop.app.holds.held()


@pytest.mark.sampled(1)
async def test_what_was_committed_at_the_server_and_changed_since_is_told(shop: Shop) -> None:
    done = await shop.held()
    shop.admin.end("COMMIT")
    shop.admin.change("UPDATE orders SET status = 'new' WHERE customer = 1")
    await shop.time_is_over()
    assert shop.statuses() == ["new", "new", "paid", "paid"]
    assert shop.desk.state(done.id) is State.DONE
    (held,) = shop.app.holds.held("shop")
    assert "can't be known" in held.trouble
    await shop.desk.carried_out(Revert(verb="commit", target=done.id))  # the way to let go of it
    assert shop.desk.state(done.id) is State.COMMITTED and not shop.app.holds.held()
    assert shop.statuses() == ["new", "new", "paid", "paid"]


async def test_a_commit_whose_answer_was_lost_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    done = await shop.held()
    with monkeypatch.context() as patched:
        for session in (PostgresSession, MariaDbSession):
            commit = session.commit

            def lost(self: Any, job: Any, commit: Any = commit) -> None:
                commit(self, job)
                raise Doubtful("The connection broke while it was committed.")

            patched.setattr(session, "commit", lost)
        row = await shop.desk.carried_out(Revert(verb="commit", target=done.id), State.UNKNOWN)
    assert (row.state, shop.desk.state(done.id)) == (State.UNKNOWN, State.UNKNOWN) and shop.statuses() == AFTER
    await shop.time_is_over()
    assert shop.statuses() == AFTER
    assert shop.desk.state(done.id) is State.COMMITTED and not shop.app.holds.held()


async def test_a_commit_at_the_server_just_before_the_rollback_stays(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note that it is being rolled back is the last thing before that."""
    done = await shop.held()
    put, committed = SealedRecords.put, False

    def then_commit(self: SealedRecords, name: str, data: bytes) -> None:
        nonlocal committed
        put(self, name, data)
        if not committed:
            committed = True
            shop.admin.end("COMMIT")

    monkeypatch.setattr(SealedRecords, "put", then_commit)
    await shop.time_is_over()
    assert committed and shop.statuses() == AFTER and shop.desk.state(done.id) is not State.UNDONE
    await shop.app.holds.end_overdue()
    assert shop.statuses() == AFTER and shop.desk.state(done.id) is State.COMMITTED


@pytest.mark.sampled(1)
async def test_a_commit_is_refused_while_it_is_rolled_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    done = await shop.held()
    leases, asked = Core.leases, []

    async def then_ask(self: Core, row: ActionRow, plan: Any) -> Any:
        commit = Request(action=Revert(verb="commit", target=done.id), detach=True)
        with pytest.raises(Conflict, match="being ended") as refused:
            shop.app.engine.begin(commit, Principal(agent=PERSON, session="conn-1", source="a test"))
        asked.append(refused)
        return await leases(self, row, plan)

    monkeypatch.setattr(Core, "leases", then_ask)
    await shop.time_is_over()
    assert asked and shop.desk.state(done.id) is State.UNDONE and shop.statuses() == BEFORE
    assert not shop.app.engine.reverting.giving_up


@pytest.mark.sampled(1)
async def test_what_is_to_be_committed_with_others_isnt_rolled_back(shop: Shop) -> None:
    first, second = await shop.held(), await shop.held(OTHER)
    both = Request(action=Revert(verb="commit", target=second.id, also=(first.id,)), detach=True)
    engine = shop.app.engine
    id = engine.begin(both, Principal(agent=PERSON, session="conn-1", source="a test"))
    await shop.desk.reaches(id, State.ASKING)
    await shop.time_is_over()
    assert [shop.desk.state(row.id) for row in (first, second)] == [State.DONE] * 2 and shop.admin.held() == 2
    await engine.cancel(id, why="a test")
    await shop.app.holds.end_overdue()
    assert [shop.desk.state(row.id) for row in (first, second)] == [State.UNDONE] * 2 and not shop.admin.held()


@pytest.mark.sampled(1)
@pytest.mark.promise(80)
async def test_an_edited_time_ends_no_hold_and_is_found(shop: Shop) -> None:
    done = await shop.held()
    with closing(sqlite3.connect(shop.app.paths.state_dir / "state.db")) as connection, connection:
        long_ago = stamp(utc_now() - timedelta(hours=13))
        edited = connection.execute("UPDATE actions SET updated = ? WHERE id = ?", (long_ago, done.id))
        assert edited.rowcount == 1
    await shop.app.holds.end_overdue()
    assert shop.desk.state(done.id) is State.DONE and shop.admin.held() == 1
    assert not shop.app.journal.verify().good
