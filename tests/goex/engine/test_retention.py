"""Undo of programs on folders is kept for the days that the plan said, and given up then, in the journal's words."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from goex.config import Config
from goex.config import Files as Folders
from goex.daemon.app import App
from goex.engine.core import Principal, Request
from goex.engine.grant_issue import Choice, Yes
from goex.engine.retention import undo_ends
from goex.journal.actions import ActionRow
from goex.journal.chain import moment, utc_now
from goex.journal.search import Wanted, find_rows
from goex.journal.states import State
from goex.paths import Paths
from policies.actions import Action, Files, Revert
from policies.errors import Conflict
from policies.grants import PERSON
from runtimes.files.runtime import FilesRuntime
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.goex.engine.conftest import APPROVAL, VAULT
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret


async def carried_out(app: App, action: Action) -> ActionRow:
    id = app.engine.begin(
        Request(action=action, detach=True), Principal(agent=PERSON, session="conn-1", source="a test")
    )
    asked = True
    for _ in range(4000):
        row = app.engine.core.actions.get(id)
        if row.state is State.ASKING and asked:
            asked = False
            (question,) = app.engine.core.approvals.of_action(id)
            app.engine.asking.approve(question.id, shown=row.digest, yes=Yes(choice=Choice.ONCE, by="the person"))
        elif row.state in (State.DONE, State.FAILED, State.UNKNOWN):
            return row
        await asyncio.sleep(0.005)
    raise AssertionError(f"It is {row.state}: {row.problem}")


@pytest.fixture
def place() -> Iterator[Path]:
    """Where folders may be worked on."""
    made = Path(tempfile.mkdtemp(prefix="place-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@asynccontextmanager
async def kept_for_a_week() -> AsyncIterator[tuple[App, Path, list[timedelta]]]:
    """A daemon's app whose undo of folders is kept for 7 days; its snapshots; and by what its clock is later."""
    later: list[timedelta] = []

    def clock() -> datetime:
        return utc_now() + sum(later, timedelta())

    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:  # a socket's path is short
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(files=Folders(keep_days=7)), lambda: None, clock=clock)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        app.engine.core.runtimes = {"files": FilesRuntime(UnsafeNoSandbox(), paths.snapshots, keep_days=7)}
        yield app, paths.snapshots, later
        await app.close()


async def test_undo_ends_after_its_days_and_the_folder_stays_as_it_is(place: Path) -> None:
    folder = place / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, later):
        program = Files(folder=str(folder), language="shell", program="rm -f a; echo x > b; echo y >> c")
        gone = await carried_out(app, program)
        assert "kept for 7 days" in gone.the_plan().undo_text
        assert undo_ends(gone) == moment(gone.updated) + timedelta(days=7)
        undone = await carried_out(app, program)
        assert (await carried_out(app, Revert(verb="undo", target=undone.id))).state is State.DONE
        now = sorted(path.name for path in folder.iterdir())

        later.append(timedelta(days=6, hours=23))
        await app.retention.end_overdue()
        assert app.engine.core.actions.get(gone.id).state is State.DONE, "its time isn't over"
        later.append(timedelta(hours=2))
        await app.retention.end_overdue()
        for row in (gone, undone):
            assert app.engine.core.actions.get(row.id).state is State.COMMITTED
            kinds = [each.kind for each in reversed(find_rows(app.journal, Wanted(action_id=row.id, limit=100)))]
            assert kinds.index("undo-over") < len(kinds) - 1 and kinds[-1] == "commit"
        assert not list(snapshots.glob("*.git"))
        assert sorted(path.name for path in folder.iterdir()) == now


@pytest.mark.promise(66)
async def test_what_is_undone_while_another_ones_folder_is_waited_for_is_not_given_up(place: Path) -> None:
    folders = [place / "one", place / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "a").write_text("precious")
        if os.geteuid() == 0:
            for path in (folder, folder / "a"):
                os.chown(path, 1000, 1000)
    async with kept_for_a_week() as (app, _, later):
        runtime = app.engine.core.runtimes["files"]
        assert isinstance(runtime, FilesRuntime)
        first, second = [
            await carried_out(app, Files(folder=str(folder), language="shell", program="echo ruined > a"))
            for folder in folders
        ]
        later.append(timedelta(days=8))
        async with runtime._locks.hold(str(folders[0])):  # a program runs there for long
            sweep = asyncio.create_task(app.retention.end_overdue())
            for _ in range(1000):
                if first.id in app.engine.reverting.giving_up:
                    break
                await asyncio.sleep(0.01)
            with pytest.raises(Conflict, match="is being deleted"):
                await carried_out(app, Revert(verb="undo", target=first.id))
            assert (await carried_out(app, Revert(verb="undo", target=second.id))).state is State.DONE
        await sweep
        assert app.engine.core.actions.get(first.id).state is State.COMMITTED
        assert app.engine.core.actions.get(second.id).state is State.UNDONE
        assert (folders[1] / "a").read_text() == "precious"
        assert (await carried_out(app, Revert(verb="redo", target=second.id))).state is State.DONE
        assert (folders[1] / "a").read_text() == "ruined\n"
