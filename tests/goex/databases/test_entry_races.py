"""What happens to a database, or to its entry, while the person proves who they are for changing that entry."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.databases_service import DatabasesService
from goex.engine.engine import Engine
from goex.journal.states import State
from goex.rpc import databases_pb2 as db
from policies.accounts import Account
from policies.databases import SERVICE, Terms
from policies.errors import Conflict
from tests.goex.databases.test_holds import HELD, Desk, desk
from tests.services.postgres import Postgres
from vault.database import DatabaseSecret
from vault.errors import RecordReplaced
from vault.secret import Secret

__all__ = ["desk"]


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> Postgres:
    """Nobody ends it here."""
    return postgres


@dataclass
class Entries:
    """The service, at a person to whom `meanwhile` happens before their presence is proven."""

    desk: Desk
    meanwhile: Callable[[], Awaitable[object]]

    async def call(self, method: str, request: Any) -> Any:
        app = self.desk.app
        peer = SimpleNamespace(describe=lambda: "a test")

        async def present(*_: Any, **__: Any) -> Any:
            await self.meanwhile()
            return peer

        person: Any = SimpleNamespace(
            engine=app.engine,
            vault_state=app.vault_state,
            callers=SimpleNamespace(peer=lambda _: peer),
            present=present,
        )
        service = DatabasesService(person, app._lend_database, app.holds, 12)
        return await getattr(DatabasesService, method).__wrapped__(service, request, None)

    def account(self) -> Account:
        return self.desk.app.vault_state.vault.resolve(SERVICE, "shop")

    def change(self, method: str) -> Any:
        if method == "RemoveDatabase":
            return db.RemoveDatabaseRequest(name="shop")
        url = self.account().base_url
        return db.AddDatabaseRequest(
            name="shop", url=url, password=self.desk.made.secret.reveal(), no_tls=True, replace=True
        )


@pytest.mark.parametrize("method", ["RemoveDatabase", "AddDatabase"])
async def test_what_is_held_meanwhile_keeps_its_entry(desk: Desk, method: str) -> None:
    entries = Entries(desk, lambda: desk.carried_out(HELD))
    with pytest.raises(Conflict, match="holds the transaction"):
        await entries.call(method, entries.change(method))
    assert entries.account() and len(desk.app.holds.held("shop")) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["RemoveDatabase", "AddDatabase"])
async def test_what_begins_while_others_are_ended_keeps_its_entry(
    desk: Desk, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It isn't held yet, and may be as soon as nobody looks."""
    running: list[asyncio.Task[Any]] = []

    async def begin() -> str:
        """An action that runs, and waits for a lock."""
        before = {row.id for row in desk.app.engine.core.actions.in_states([State.RUNNING])}
        running.append(asyncio.create_task(desk.carried_out(replace(HELD), State.FAILED, State.PARTIAL)))
        while True:
            now = {row.id for row in desk.app.engine.core.actions.in_states([State.RUNNING])} - before
            if now:
                return now.pop()
            await asyncio.sleep(0.005)

    cancel = Engine.cancel

    async def then_begin(self: Engine, id: str, *, why: str) -> Any:
        row = await cancel(self, id, why=why)
        if len(running) == 1:
            await begin()
        return row

    monkeypatch.setattr(Engine, "cancel", then_begin)
    entries = Entries(desk, begin)
    with closing(desk.made.connect(autocommit=False)) as other:
        other.execute("UPDATE orders SET total = 5 WHERE id = 1")
        with pytest.raises(Conflict, match="began to use"):
            await entries.call(method, entries.change(method))
        other.rollback()
    await asyncio.gather(*running, return_exceptions=True)
    assert len(running) == 2 and entries.account()


@pytest.mark.parametrize("method", ["RemoveDatabase", "AddDatabase"])
async def test_an_entry_that_nothing_uses_is_changed(desk: Desk, method: str) -> None:
    entries = Entries(desk, lambda: asyncio.sleep(0))
    await entries.call(method, entries.change(method))
    kinds = [row.kind for row in desk.app.journal.rows(limit=3)]
    assert ("database-remove" if method == "RemoveDatabase" else "database-add") in kinds


async def test_a_policy_isnt_set_on_an_entry_that_was_replaced_meanwhile(desk: Desk) -> None:
    """Its new password belongs to its new address alone."""
    vault = desk.app.vault_state.vault
    moved = replace(vault.resolve(SERVICE, "shop"), base_url="postgresql://new@db.example:5432/prod", private=False)
    secret = DatabaseSecret(password=Secret(b"of the new server"), terms=Terms()).to_secret()

    async def replaced() -> None:
        vault.put(moved, secret, replace=True)

    entries = Entries(desk, replaced)
    with pytest.raises(RecordReplaced):
        await entries.call("SetPolicy", db.SetPolicyRequest(name="shop", policy="versioning"))
    assert vault.open_record(SERVICE, "shop").account == moved
    assert DatabaseSecret.from_secret(vault.open_record(SERVICE, "shop").secret).terms == Terms()


async def test_a_policy_is_set_and_all_else_stays(desk: Desk) -> None:
    vault = desk.app.vault_state.vault
    before = vault.open_record(SERVICE, "shop")
    await Entries(desk, lambda: asyncio.sleep(0)).call("SetPolicy", db.SetPolicyRequest(name="shop", hold_hours=3))
    after = vault.open_record(SERVICE, "shop")
    sealed = DatabaseSecret.from_secret(after.secret)
    assert after.account == before.account
    assert (sealed.password.reveal(), sealed.terms.hold_hours) == (desk.made.secret.reveal(), 3)
