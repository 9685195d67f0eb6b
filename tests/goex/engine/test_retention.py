"""Undo of programs on folders is kept for the days that the plan said, and given up then, in the journal's words."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from goex.config import Config
from goex.config import Files as Folders
from goex.daemon.app import App
from goex.engine import retention
from goex.engine.core import Principal, Request
from goex.engine.grant_issue import Choice, Yes
from goex.engine.retention import undo_ends
from goex.journal.actions import ActionRow
from goex.journal.chain import moment, utc_now
from goex.journal.schema import actions
from goex.journal.search import Wanted, find_rows
from goex.journal.states import State
from goex.paths import Paths
from policies.actions import Action, Code, Files, Outcome, Plan, Revert
from policies.errors import Conflict, Unavailable
from policies.grants import PERSON
from runtimes.base import Context
from runtimes.files import records
from runtimes.files.runtime import FilesRuntime
from runtimes.files.snapshot import Repository
from runtimes.files.tree import Manifest
from runtimes.files.workers import FolderLocks
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.goex.engine.conftest import APPROVAL, MEMORY, VAULT, Desk, HeldRuntime
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret


async def carried_out(app: App, action: Action) -> ActionRow:
    id = app.engine.begin(
        Request(action=action, detach=True), Principal(agent=PERSON, session="conn-1", source="a test")
    )
    asked = True
    for _ in range(60_000):
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

    with tempfile.TemporaryDirectory(prefix="goex-t-", dir=MEMORY) as name:
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
        app.retention.clock, late = utc_now, app.retention.clock
        await app.retention.end_overdue()
        assert app.engine.core.actions.get(gone.id).state is State.DONE, "its time may not be over"
        app.retention.clock = late
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
            for _ in range(30_000):
                if first.id in app.engine.reverting.giving_up:
                    break
                await asyncio.sleep(0.01)
            with pytest.raises(Conflict, match="kept for as long as it was to be"):
                await carried_out(app, Revert(verb="undo", target=first.id))
            assert (await carried_out(app, Revert(verb="undo", target=second.id))).state is State.DONE
        await sweep
        assert app.engine.core.actions.get(first.id).state is State.COMMITTED
        assert app.engine.core.actions.get(second.id).state is State.UNDONE
        assert (folders[1] / "a").read_text() == "precious"
        assert (await carried_out(app, Revert(verb="redo", target=second.id))).state is State.DONE
        assert (folders[1] / "a").read_text() == "ruined\n"


async def test_what_failed_and_changed_nothing_keeps_no_snapshot_and_what_may_have_does(place: Path) -> None:
    folder = place / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, later):
        runtime = app.engine.core.runtimes["files"]
        assert isinstance(runtime, FilesRuntime)
        failed = await carried_out(app, Files(folder=str(folder), language="shell", program="exit 1"))
        doubtful = await carried_out(app, Files(folder=str(folder), language="shell", program="exit 2"))
        assert failed.state is doubtful.state is State.FAILED
        records.write_state(app.engine.core.records(doubtful), records.State(at="between", name="x"))
        for label in ("after", "target"):  # its records don't say that it changed nothing
            app.engine.core.records(doubtful).put(label, b'{"manifest":"x","outcome":null}')
        await app.retention.end_overdue()

        def kept() -> set[str]:
            return {label.split("/")[2] for label in runtime._repository(str(folder)).labels()}

        assert kept() == {doubtful.id}
        assert app.engine.core.actions.get(failed.id).state is State.FAILED
        kinds = [each.kind for each in reversed(find_rows(app.journal, Wanted(action_id=failed.id, limit=100)))]
        assert kinds.index("fail") < kinds.index("undo-over") < kinds.index("forget")
        rows = len(find_rows(app.journal, Wanted(action_id=failed.id, limit=100)))
        await app.retention.end_overdue()
        assert len(find_rows(app.journal, Wanted(action_id=failed.id, limit=100))) == rows, "once"
        later.append(timedelta(days=8))
        await app.retention.end_overdue()
        assert not list(snapshots.glob("*.git"))


async def test_what_fails_while_it_is_prepared_keeps_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _):
        prepare = FilesRuntime.prepare

        async def cut(self: FilesRuntime, *arguments: object) -> None:
            await prepare(self, *arguments)  # type: ignore[arg-type]
            raise Conflict("The second folder isn't there.")

        monkeypatch.setattr(FilesRuntime, "prepare", cut)
        failed = await carried_out(app, Files(folder=str(folder), language="shell", program="true"))
        assert failed.state is State.FAILED
        assert not list(snapshots.glob("*.git"))


async def test_a_failure_waits_for_the_next_look_while_its_folder_is_worked_on(place: Path) -> None:
    folder = place / "folder"
    folder.mkdir()
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _):
        await carried_out(app, Files(folder=str(folder), language="shell", program="exit 1"))
        busy = app.engine.running._folders.setdefault(str(folder), asyncio.Lock())
        async with busy:
            await app.retention.end_overdue()
            assert list(snapshots.glob("*.git"))
        await app.retention.end_overdue()
        assert not list(snapshots.glob("*.git"))


async def test_a_failure_that_is_of_use_still_does_not_have_the_log_read_again_and_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / "folder"
    folder.mkdir()
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _):
        row = await carried_out(app, Files(folder=str(folder), language="shell", program="exit 1"))
        own = app.engine.core.records(row)
        own.put("after", b'{"manifest":"x","outcome":null}')  # its records don't say that it changed nothing
        monkeypatch.setattr(retention, "confirmed", lambda *arguments: pytest.fail("the log is read"))
        await app.retention.end_overdue()
        assert list(snapshots.glob("*.git"))


async def test_a_failure_whose_plan_is_damaged_keeps_nothing_else_from_its_end(place: Path) -> None:
    folders = [place / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, _, later):
        failed, done = [
            await carried_out(app, Files(folder=str(folder), language="shell", program=program))
            for folder, program in zip(folders, ("exit 1", "true"), strict=True)
        ]
        with app.journal.transaction() as transaction:
            damaged = failed.plan.replace("exit 1", "exit 0")
            assert damaged != failed.plan
            transaction.connection.execute(update(actions).where(actions.c.id == failed.id).values(plan=damaged))
        later.append(timedelta(days=8))
        await app.retention.end_overdue()
        assert app.engine.core.actions.get(done.id).state is State.COMMITTED


@pytest.mark.parametrize("when", ["it waits for its folder", "its snapshot is taken"])
async def test_what_is_withdrawn_while_it_is_prepared_ends_at_once_and_keeps_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    folder = place / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _), AsyncExitStack() as elsewhere:
        runtime = app.engine.core.runtimes["files"]
        assert isinstance(runtime, FilesRuntime) and isinstance(runtime._locks, FolderLocks)
        going = asyncio.get_running_loop()
        came = asyncio.Event()
        save = Repository.save

        def slowly(self: Repository, *arguments: Any, **options: Any) -> tuple[str, Manifest]:
            going.call_soon_threadsafe(came.set)
            time.sleep(0.5)
            return save(self, *arguments, **options)

        monkeypatch.setattr(Repository, "save", slowly)
        if when == "it waits for its folder":
            await elsewhere.enter_async_context(runtime._locks.hold(str(place)))  # a program runs there for long
        doing = asyncio.create_task(carried_out(app, Files(folder=str(folder), language="shell", program="true")))
        while not (came.is_set() or runtime._locks._waiting):
            assert not doing.done()
            await asyncio.sleep(0.005)
        if when == "its snapshot is taken":
            await came.wait()
        (id,) = app.engine._journeys
        row = await asyncio.wait_for(app.engine.cancel(id, why="it isn't wanted any more"), 300)
        assert row.state is State.FAILED
        await doing
        assert not list(snapshots.glob("*.git"))


async def test_what_failed_on_several_folders_and_was_taken_back_keeps_no_snapshot(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [place / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _):
        execute = FilesRuntime.execute

        async def failing(self: FilesRuntime, plan: Plan, context: Context) -> Outcome:
            outcome = await execute(self, plan, context)
            if plan.resolved["folder"] == str(folders[1]):
                raise Unavailable("The disk fails.")
            return outcome

        monkeypatch.setattr(FilesRuntime, "execute", failing)
        action = Files(folder=str(folders[0]), language="shell", program="touch one/a two/a", more=(str(folders[1]),))
        failed = await carried_out(app, action)
        assert failed.state is State.FAILED and "were taken back" in failed.problem
        assert list(snapshots.glob("*.git"))
        await app.retention.end_overdue()
        assert not list(snapshots.glob("*.git"))


async def test_what_failed_in_a_service_or_a_database_keeps_no_records(desk: Desk) -> None:
    """Nothing takes it back, and no quota counts them."""

    class Failing(HeldRuntime):
        async def prepare(self, plan: Plan, context: Context) -> None:
            context.records.put("answers", b"what the service said")

        async def execute(self, plan: Plan, context: Context) -> Outcome:
            return Outcome(ok=False, summary="It failed.", touched=False)

    def kept(id: str) -> bool:
        return desk.core.records(desk.core.actions.get(id)).get("answers") is not None

    desk.core.runtimes = {"code": Failing(), "files": HeldRuntime()}
    question = await desk.asked(Code(language="python", program="pass", services=()))
    desk.answer(question)
    row = await desk.until(question.action_id, State.FAILED)
    done = await desk.done()
    desk.core.records(desk.core.actions.get(done)).put("answers", b"x")
    assert kept(row.id)
    await desk.app.retention.end_overdue()
    assert not kept(row.id) and kept(done)
    assert desk.core.actions.get(row.id).state is State.FAILED


async def test_what_cannot_be_given_up_is_said_once_and_goes_when_it_can(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = place / "folder"
    folder.mkdir()
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, snapshots, _):
        failed = await carried_out(app, Files(folder=str(folder), language="shell", program="exit 1"))

        async def damaged(self: FilesRuntime, plan: Plan, context: Context) -> None:
            raise Unavailable("It is damaged.")

        with monkeypatch.context() as patch:
            patch.setattr(FilesRuntime, "forget", damaged)
            for _ in range(3):
                await app.retention.end_overdue()
        await app.retention.end_overdue()
        assert not list(snapshots.glob("*.git"))
        kinds = [each.kind for each in find_rows(app.journal, Wanted(action_id=failed.id, limit=100))]
        assert kinds.count("undo-over") == 1
        assert sum("can't be given up" in each.getMessage() for each in caplog.records) == 1


async def test_others_have_their_turn_while_many_failures_are_looked_at(desk: Desk) -> None:
    class Failing(HeldRuntime):
        async def prepare(self, plan: Plan, context: Context) -> None:
            context.records.put("answers", b"what the service said")

        async def execute(self, plan: Plan, context: Context) -> Outcome:
            return Outcome(ok=False, summary="It failed.", touched=False)

    desk.core.runtimes = {"code": Failing(), "files": HeldRuntime()}
    for _ in range(10):
        question = await desk.asked(Code(language="python", program="pass", services=()))
        desk.answer(question)
        await desk.until(question.action_id, State.FAILED)
    turns = 0
    looking = asyncio.create_task(desk.app.retention.end_overdue())
    while not looking.done():
        await asyncio.sleep(0)
        turns += not desk.app.retention._said
    useless = desk.app.retention._failed()
    assert not useless and turns >= 20


async def test_a_failed_revert_keeps_no_records_and_what_it_reverts_keeps_its_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    async with kept_for_a_week() as (app, _, _):
        done = await carried_out(app, Files(folder=str(folder), language="shell", program="rm -f a"))

        async def failing(
            self: FilesRuntime, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
        ) -> Outcome:
            context.records.put("answers", b"x")
            raise Conflict("Someone changed it.")

        with monkeypatch.context() as patch:
            patch.setattr(FilesRuntime, "execute_revert", failing)
            failed = await carried_out(app, Revert(verb="undo", target=done.id))
        assert failed.state is State.FAILED
        own = app.engine.core.records(failed)
        assert own.get("answers") is not None
        await app.retention.end_overdue()
        assert own.get("answers") is None
        assert (await carried_out(app, Revert(verb="undo", target=done.id))).state is State.DONE
        assert (folder / "a").read_text() == "a"
