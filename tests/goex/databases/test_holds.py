"""What is held ends: by a commit, an undo, or GoEx itself when its time is over. A real PostgreSQL, a clock of ours."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from goex.config import Config
from goex.daemon.app import App
from goex.engine.core import Principal, Request
from goex.engine.grant_issue import Choice, Yes
from goex.engine.recovery import recover
from goex.journal.actions import ActionRow
from goex.journal.chain import utc_now
from goex.journal.search import Wanted, find_rows
from goex.journal.states import State
from goex.paths import Paths
from policies.accounts import Account
from policies.actions import Action, Revert, Sql, UndoPolicy
from policies.databases import Terms
from policies.grants import PERSON
from tests.goex.databases.servers import ORDERS, TABLES
from tests.goex.engine.conftest import APPROVAL, VAULT
from tests.services.postgres import Made, Postgres, find_binaries
from tests.support.passphrases import cheap_passphrases
from vault.database import DatabaseSecret
from vault.secret import Secret

HELD = Sql(database="shop", statements="UPDATE orders SET status = 'sent' WHERE customer = 1", policy="versioning")


@dataclass
class Desk:
    """An App whose vault is open, on a database of its own, at a time that a test can move."""

    app: App
    made: Made
    later: list[timedelta] = field(default_factory=list)

    def rows(self) -> list[Any]:
        with self.made.connect() as connection:
            return connection.execute(ORDERS).fetchall()

    async def carried_out(self, action: Action, *ends: State) -> ActionRow:
        engine = self.app.engine
        principal = Principal(agent=PERSON, session="conn-1", source="a test")
        id = engine.begin(Request(action=action, detach=True), principal)
        row = await self.reaches(id, State.ASKING)
        (question,) = engine.core.approvals.of_action(id)
        engine.asking.approve(question.id, shown=row.digest, yes=Yes(choice=Choice.ONCE, by="the person"))
        return await self.reaches(id, State.DONE, *ends)

    async def reaches(self, id: str, *states: State) -> ActionRow:
        for _ in range(60_000):
            row = self.app.engine.core.actions.get(id)
            if row.state in states:
                return row
            assert row.state not in (State.FAILED, State.DENIED), row.problem
            await asyncio.sleep(0.005)
        raise AssertionError(f"It is {row.state}: {row.problem}")

    def state(self, id: str) -> State:
        return self.app.engine.core.actions.get(id).state

    def kinds(self, id: str) -> list[str]:
        return [row.kind for row in reversed(find_rows(self.app.journal, Wanted(action_id=id, limit=100)))]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """One that a test may take away."""
    if find_binaries() is None:
        pytest.skip("no PostgreSQL: run make services")
    with Postgres(durable=True) as running:
        yield running


@pytest.fixture
async def desk(server: Postgres) -> AsyncIterator[Desk]:
    made = server.make(*TABLES)
    later: list[timedelta] = []

    def clock() -> datetime:
        return utc_now() + sum(later, timedelta())

    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:  # a socket's path is short
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None, clock=clock)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        account = Account(
            service="db",
            name="shop",
            origins=(),
            base_url=f"postgresql://{made.user}@{quote(str(server.folder), safe='')}:{server.port}/{made.database}",
            format="database",
            private=True,
        )
        sealed = DatabaseSecret(password=made.secret, terms=Terms(hold_hours=12))
        app.vault_state.vault.put(account, sealed.to_secret())
        yield Desk(app, made, later)
        await app.close()


@pytest.mark.promise(77)
async def test_a_hold_that_nobody_asked_for_in_time_is_rolled_back(desk: Desk) -> None:
    before = desk.rows()
    done = await desk.carried_out(HELD)
    (held,) = desk.app.holds.held("shop")
    assert held.row.id == done.id and held.until - held.since == timedelta(hours=12)
    await desk.app.holds.end_overdue()
    desk.later.append(timedelta(hours=11, minutes=59))
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.DONE, "its time isn't over"
    desk.later.append(timedelta(minutes=2))
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.UNDONE and not desk.app.holds.held()
    assert desk.rows() == before
    kinds = desk.kinds(done.id)
    assert kinds.index("hold-over") < kinds.index("lease", kinds.index("hold-over")) < kinds.index("undo")
    with desk.made.connect() as connection:  # no lock is left
        connection.execute("UPDATE orders SET status = 'free'")


async def test_what_was_committed_in_time_stays(desk: Desk) -> None:
    done = await desk.carried_out(HELD)
    kept = await desk.carried_out(Revert(verb="commit", target=done.id))
    assert kept.state is State.DONE
    desk.later.append(timedelta(hours=13))
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.COMMITTED
    assert [row[1] for row in desk.rows()] == ["sent", "sent", "paid", "paid"]


async def test_what_cant_be_rolled_back_is_said_and_tried_again(desk: Desk, server: Postgres) -> None:
    before = desk.rows()
    done = await desk.carried_out(HELD)
    desk.later.append(timedelta(hours=13))
    server.kill()
    try:
        await desk.app.holds.end_overdue()
        await desk.app.holds.end_overdue()
        (held,) = desk.app.holds.held()
        assert held.trouble and desk.state(done.id) is State.DONE
        assert desk.kinds(done.id).count("hold-stays") == 1, "the same trouble is written once"
    finally:
        server.start()
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.UNDONE and desk.rows() == before


async def test_a_hold_that_was_ended_at_the_server_is_found_out(desk: Desk) -> None:
    before = desk.rows()
    done = await desk.carried_out(HELD)
    with desk.made.connect() as connection:
        ((gid,),) = connection.execute(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        ).fetchall()
        connection.execute(f"ROLLBACK PREPARED '{gid}'")
    desk.later.append(timedelta(hours=13))
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.UNDONE and desk.rows() == before
    assert not desk.app.holds.held()


async def test_a_sealed_vault_ends_nothing(desk: Desk) -> None:
    done = await desk.carried_out(HELD)
    desk.later.append(timedelta(hours=13))
    desk.app.vault_state.seal()
    with pytest.raises(Exception, match="sealed"):
        await desk.app.holds.end_overdue()
    await desk.app.vault_state.unlock(Secret(VAULT.encode()))
    await desk.app.holds.end_overdue()
    assert desk.state(done.id) is State.UNDONE


@pytest.mark.promise(77)
async def test_a_hold_outlives_the_servers_crash(desk: Desk, server: Postgres) -> None:
    before = desk.rows()
    done = await desk.carried_out(HELD)
    server.kill()
    server.start()
    assert desk.rows() == before
    kept = await desk.carried_out(Revert(verb="commit", target=done.id))
    assert kept.state is State.DONE
    assert [row[1] for row in desk.rows()] == ["sent", "sent", "paid", "paid"]


@pytest.mark.promise(78)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
async def test_a_server_that_is_killed_while_it_runs_leaves_all_or_nothing(
    desk: Desk, server: Postgres, policy: UndoPolicy
) -> None:
    """Somebody else's lock keeps the statement waiting until then."""
    before = desk.rows()
    connection = desk.made.connect(autocommit=False)
    try:
        connection.execute("UPDATE orders SET total = 5 WHERE id = 2")
        waiting = asyncio.create_task(desk.carried_out(replace(HELD, policy=policy), State.FAILED, State.UNKNOWN))
        for _ in range(30_000):
            with desk.made.admin() as looking:
                if looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() != (0,):
                    break
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.kill)
        row = await waiting
    finally:
        connection.close()
        await asyncio.to_thread(server.start)
    assert row.state in (State.FAILED, State.UNKNOWN) and desk.rows() == before
    if row.state is State.UNKNOWN:
        await recover(desk.app.engine)
        assert desk.state(row.id) is State.FAILED
    assert not desk.app.holds.held()
