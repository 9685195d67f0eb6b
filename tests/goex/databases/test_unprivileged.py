"""The whole path as an ordinary user, on their own file and on somebody else's: root passes checks that they don't."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from goex.config import Config
from goex.daemon import person_threads
from goex.daemon.app import App
from goex.engine.core import Principal, Request
from goex.engine.grant_issue import Choice, Yes
from goex.journal.actions import ActionRow
from goex.journal.states import State
from goex.paths import Paths
from policies.accounts import Account
from policies.actions import Action, Revert, Sql
from policies.grants import PERSON
from runtimes.sql import session_thread
from tests.goex.databases.conftest import SHOP
from tests.goex.engine.conftest import APPROVAL, VAULT
from tests.runtimes.files.test_unprivileged import as_user
from tests.support.passphrases import cheap_passphrases
from vault.database import DatabaseSecret
from vault.secret import Secret

_UID = 65534
_ENDS = (State.DONE, State.FAILED, State.DENIED, State.UNKNOWN)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")


async def carried_out(app: App, action: Action) -> ActionRow:
    engine = app.engine
    id = engine.begin(Request(action=action, detach=True), Principal(agent=PERSON, session="conn-1", source="a test"))
    answered = False
    for _ in range(60_000):
        row = engine.core.actions.get(id)
        if row.state in _ENDS:
            return row
        if row.state is State.ASKING and not answered:
            (question,) = engine.core.approvals.of_action(id)
            engine.asking.approve(question.id, shown=row.digest, yes=Yes(choice=Choice.ONCE, by="the person"))
            answered = True
        await asyncio.sleep(0.005)
    raise AssertionError(f"It is {row.state}.")


def look(file: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM orders ORDER BY id").fetchall()


async def cycle(home: Path, file: Path, other: Path) -> None:
    """A change, its undo and redo on the user's own file; then somebody else's."""
    for pools in (session_thread, person_threads):
        pools._threads = ThreadPoolExecutor(2)  # those of before the fork are its parent's
    paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
    paths.create()
    app = App(paths, Config(), lambda: None)
    try:
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        sealed = DatabaseSecret(password=Secret(b"")).to_secret()
        for name, path in (("shop", file), ("other", other)):
            account = Account(
                service="db", name=name, origins=(), base_url=f"sqlite:///{path}", format="database", private=True
            )
            app.vault_state.vault.put(account, sealed)
        before = look(file)
        done = await carried_out(app, Sql(database="shop", statements="UPDATE orders SET total = 0 WHERE customer = 1"))
        assert done.state is State.DONE, done.problem
        after = look(file)
        assert after != before
        for verb, expected in (("undo", before), ("redo", after)):
            row = await carried_out(app, Revert(verb=verb, target=done.id))  # type: ignore[arg-type]
            assert row.state is State.DONE and look(file) == expected, row.problem
        refused = await carried_out(app, Sql(database="other", statements="UPDATE orders SET total = 0 WHERE id = 1"))
        assert refused.state is State.FAILED and refused.problem
    finally:
        await app.close()


@pytest.fixture
def home() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="goex-t-", dir="/tmp"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def furnish(folder: Path, uid: int) -> Path:
    folder.mkdir(mode=0o755)
    file = folder / "shop.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in SHOP:
            connection.execute(statement)
    file.chmod(0o644)
    os.chown(file, uid, uid)
    os.chown(folder, uid, uid)
    return file


def test_a_users_own_file_is_changed_and_restored_and_nobody_elses(home: Path) -> None:
    mine, other = furnish(home / "mine", _UID), furnish(home / "other", 0)
    rows = look(other)
    warm = home / "warm"
    warm.mkdir()
    # Another user may not be able to read this interpreter's modules: what is imported late is imported now.
    asyncio.run(_once(warm, furnish(home / "own", 0)))
    users = home / "user"
    users.mkdir()
    os.chown(users, _UID, _UID)
    as_user(lambda: cycle(users, mine, other), _UID)
    assert look(other) == rows
    assert stat.S_IMODE((users / "state").stat().st_mode) == 0o700
    assert (mine.stat().st_uid, stat.S_IMODE(mine.stat().st_mode)) == (_UID, 0o644)


async def _once(home: Path, file: Path) -> None:
    paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
    paths.create()
    app = App(paths, Config(), lambda: None)
    try:
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        account = Account(
            service="db", name="shop", origins=(), base_url=f"sqlite:///{file}", format="database", private=True
        )
        app.vault_state.vault.put(account, DatabaseSecret(password=Secret(b"")).to_secret())
        done = await carried_out(app, Sql(database="shop", statements="UPDATE orders SET total = 0 WHERE customer = 1"))
        for verb in ("undo", "redo"):
            await carried_out(app, Revert(verb=verb, target=done.id))
    finally:
        await app.close()
