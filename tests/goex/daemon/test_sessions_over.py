"""What was allowed for a session ends with the daemon: none of the next one has that session's id."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from goex.config import Config
from goex.daemon.app import App
from goex.engine.grant_issue import Choice
from goex.engine.peers import Sessions
from goex.journal.states import State
from goex.paths import Paths
from policies.actions import Files
from tests.goex.engine.conftest import APPROVAL, ASKER, VAULT, Desk
from tests.goex.engine.test_peers import PERSON as PEER
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret

PREFIXES = ("conn-1-bot", "id-0-bot", "tty-0-34816")


async def test_no_grant_of_a_session_is_left_after_a_restart() -> None:
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name, cheap_passphrases():
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None)
        await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        desk = Desk(app)
        for number, session in enumerate(PREFIXES):
            question = await desk.asked(
                Files(folder=f"/{number}", language="shell", program="true"), replace(ASKER, session=f"{session}-1")
            )
            desk.answer(question, choice=Choice.SESSION)
            await desk.until(question.action_id, State.DONE)
        standing = await desk.asked(Files(folder="/x", language="shell", program="true"))
        desk.answer(standing, choice=Choice.PERMANENT)
        await desk.until(standing.action_id, State.DONE)
        assert len(desk.core.grant_store.sessions()) == len(PREFIXES)
        await app.close()
        again = App(paths, Config(), lambda: None)
        await again.vault_state.unlock(Secret(VAULT.encode()))
        store = again.engine.core.grant_store
        assert not store.sessions() and [grant.width for grant in store.grants()] == ["permanent"]
        await again.close()


def test_the_same_terminal_has_another_session_with_another_daemon() -> None:
    """Why nothing that was allowed for it holds any more."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    first = Sessions(lambda: now[0], lambda id: None).of(PEER, "person")
    now[0] += timedelta(minutes=1)
    assert Sessions(lambda: now[0], lambda id: None).of(PEER, "person") != first
