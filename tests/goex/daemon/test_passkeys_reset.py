"""Losing every passkey: asked for with the passphrase, done a day later, and ended by whoever has one. With a clock of
the test's own, a real vault and a real journal."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from goex.daemon.passkeys import LASTS, RESET_AFTER, PasskeyPresence
from goex.daemon.vault_state import VaultState
from goex.daemon.webauthn import PasskeyRefused
from goex.journal.chain import Journal
from goex.page_address import KEY_BYTES, fresh_origin
from policies.errors import InvalidInput
from tests.support.authenticator import Authenticator
from tests.vault.support import create

START = datetime(2026, 11, 1, 9, tzinfo=UTC)


class Scene:
    def __init__(self, folder: Path) -> None:
        folder.chmod(0o700)
        self.now = START
        self.vault = create(folder / "vault.db")
        self.journal = Journal(folder / "state.db", folder / "journal.head", lambda: self.now)
        self.journal.unlock(self.vault.derive("journal"))
        self.key = Authenticator()
        self.page_key = folder / "web.key"
        self.presence = self.made(wanted=True)

    def made(self, *, wanted: bool) -> PasskeyPresence:
        state = cast(VaultState, SimpleNamespace(vault=self.vault, state="unsealed"))
        return PasskeyPresence(state, self.journal, lambda: self.now, wanted=wanted, page_key=self.page_key)

    async def register(self) -> None:
        answer = self.key.create(self.presence.begin("laptop", ""))
        found, rp_id = await self.presence.registered(answer)
        await self.presence.add("laptop", found, rp_id, by="the person", proof={}, first=True)

    async def show(self, statement: dict[str, Any], after: Callable[[], None] = lambda: None) -> None:
        options, _ = self.presence.challenge(statement, "")
        after()
        await self.presence.shown(self.key.get(options), statement)

    def later(self, by: timedelta) -> None:
        self.now += by

    def kinds(self) -> list[str]:
        return [row.kind for row in reversed(self.journal.rows(limit=100))]


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    await made.register()
    return made


@pytest.mark.promise(89)
async def test_all_are_removed_a_day_after_it_was_asked_for(scene: Scene) -> None:
    assert not scene.presence.warnings()
    at, done = await scene.presence.reset(by="somebody")
    assert (at, done) == (START + RESET_AFTER, False)
    assert "goex passkey reset --cancel" in scene.presence.warnings()[0]
    scene.later(RESET_AFTER - timedelta(seconds=1))
    assert (await scene.presence.reset(by="somebody"))[1] is False
    assert scene.presence.known.all
    scene.later(timedelta(seconds=1))
    assert scene.made(wanted=False).required
    assert (await scene.presence.reset(by="somebody"))[1] is True
    assert not scene.presence.known.all
    assert not scene.made(wanted=False).required
    assert scene.kinds()[-2:] == ["passkeys-reset-ask", "passkeys-reset"]
    with pytest.raises(InvalidInput, match="No passkey"):
        await scene.presence.reset(by="somebody")


@pytest.mark.promise(89)
async def test_whoever_has_a_passkey_ends_it_by_any_use(scene: Scene) -> None:
    await scene.presence.reset(by="a keylogger")
    scene.later(RESET_AFTER - timedelta(minutes=1))
    await scene.show({"kind": "presence", "terminal": ""})
    assert not scene.presence.warnings()
    scene.later(timedelta(minutes=2))
    assert (await scene.presence.reset(by="a keylogger"))[1] is False  # it begins anew
    assert "passkeys-reset-cancel" in scene.kinds()


@pytest.mark.promise(89)
async def test_anybody_can_cancel_it(scene: Scene) -> None:
    await scene.presence.reset(by="a keylogger")
    await scene.presence.cancel_reset(by="the person")
    scene.later(RESET_AFTER)
    assert (await scene.presence.reset(by="a keylogger"))[1] is False


@pytest.mark.promise(89)
async def test_a_challenge_ends_after_five_minutes(scene: Scene) -> None:
    statement = {"kind": "presence", "terminal": ""}
    await scene.show(statement, lambda: scene.later(LASTS - timedelta(seconds=1)))  # the control
    with pytest.raises(PasskeyRefused, match="no challenge that is open"):
        await scene.show(statement, lambda: scene.later(LASTS))
    options = scene.presence.begin("second", "")
    scene.later(LASTS)
    with pytest.raises(PasskeyRefused, match="no challenge that is open"):
        await scene.presence.registered(Authenticator().create(options))


@pytest.mark.promise(87)
async def test_a_challenge_is_for_the_page_that_runs_now(scene: Scene) -> None:
    """Each page has an origin of its own; a passkey serves at the next one, too, and no answer from elsewhere does."""
    presence, statement = scene.presence, {"kind": "presence", "terminal": ""}
    first, second = fresh_origin(7464), fresh_origin(7464)
    for origin in (first, second):
        page = os.open(scene.page_key, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(page, fcntl.LOCK_EX)
        os.write(page, bytes(KEY_BYTES) + origin.encode())
        options, _ = presence.challenge(statement, origin)
        await presence.shown(scene.key.get(options, origin=origin), statement)
        others = {first, second, fresh_origin(7464), "http://goex.localhost:7464", "http://localhost:7464"} - {origin}
        for other in (*others, "terminal://goex.localhost"):
            options, _ = presence.challenge(statement, origin)
            with pytest.raises(PasskeyRefused, match="Invalid origin"):
                await presence.shown(scene.key.get(options, origin=other), statement)
        for other in (*others, "terminal://localhost", f"{origin}.evil.example", origin.removesuffix(":7464")):
            with pytest.raises(InvalidInput, match="No page"):
                presence.challenge(statement, other)
        os.close(page)
        with pytest.raises(InvalidInput, match="No page"):  # nor for one that ended, whoever listens there
            presence.challenge(statement, origin)


@pytest.mark.promise(89)
async def test_a_passkey_of_plain_localhost_serves_at_the_terminal_and_is_told_of(scene: Scene) -> None:
    old = replace(scene.vault.passkeys.all[0], rp_id="localhost")
    scene.vault.change_passkeys(lambda known: known.with_(old))
    statement = {"kind": "presence", "terminal": ""}
    options, _ = scene.presence.challenge(statement, "terminal://localhost")
    answer = scene.key.get(options, rp_id="localhost", origin="terminal://localhost")
    await scene.presence.shown(answer, statement)
    assert "goex web --localhost" in scene.presence.warnings()[0]
    with pytest.raises(InvalidInput, match="No passkey is registered") as elsewhere:
        scene.presence.challenge(statement, "")
    assert "goex web --localhost" in elsewhere.value.next_step
    with pytest.raises(InvalidInput, match="for localhost is registered"):
        scene.presence.begin("another", "")
    page = os.open(scene.page_key, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(page, fcntl.LOCK_EX)
    os.write(page, bytes(KEY_BYTES) + b"http://localhost:7464")
    with pytest.raises(InvalidInput, match=r"for goex\.localhost now"):  # where it would have to be moved again
        scene.presence.begin("another", "http://localhost:7464")
    os.close(page)
    phone = replace(old, id="phone", rp_id="goex.example.org")  # which confirms it there
    scene.vault.change_passkeys(lambda known: known.with_(phone))
    assert scene.presence.begin("another", "")
    for one in (old, phone):
        await scene.presence.remove(one.id, by="the person", proof={})
    assert (scene.presence.begin("another", "") != "", scene.presence.warnings()) == (True, [])


@pytest.mark.promise(89)
async def test_a_new_daemon_knows_no_old_challenge(scene: Scene) -> None:
    options, _ = scene.presence.challenge({"kind": "presence", "terminal": ""}, "")
    answer = scene.key.get(options)
    with pytest.raises(PasskeyRefused, match="no challenge that is open"):
        await scene.made(wanted=True).shown(answer, kind="presence")


@pytest.mark.promise(89)
async def test_a_passkey_that_the_journal_lacks_is_noted(scene: Scene) -> None:
    """As after a kill between the vault and the journal."""
    journal = Journal(Path(str(scene.journal._path)).with_name("other.db"), Path(str(scene.journal._path) + ".head"))
    journal.unlock(scene.vault.derive("journal"))
    state = cast(VaultState, SimpleNamespace(vault=scene.vault, state="unsealed"))
    presence = PasskeyPresence(state, journal, lambda: scene.now, wanted=False, page_key=scene.page_key)
    for _ in range(2):
        await presence.opened(restored=False)
    assert [row.kind for row in journal.rows()] == ["passkey-add"]
    assert presence.required  # since it was asked for while there was one
