"""What a program may leave behind, and what may happen while it is taken back: nothing outside is ever touched."""

# The tests set their scenes with blocking calls: nothing else runs in their loop.
# ruff: noqa: PTH101, PTH123, PTH208

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import Conflict, GoexError, Unavailable
from runtimes.files import restore as restoring
from runtimes.files.packs import PackWriter
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for folders of several owners")


@pytest.fixture(params=["owned", "roots"])
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


@pytest.fixture
def outside(place: Path) -> Path:
    made = place / "outside"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "file").write_text("precious")
    (made / "file").write_text("precious")
    (made / "empty").mkdir()
    return made


async def test_links_out_of_the_folder_where_folders_were(folder: Path, outside: Path, state: Path) -> None:
    (folder / "dir" / "sub").mkdir(parents=True)
    (folder / "dir" / "sub" / "file").write_text("mine")
    (folder / "dir" / "file").write_text("mine")
    before, theirs = photo(folder), photo(outside)

    def deed(top: Path) -> None:
        shutil.rmtree(top / "dir")
        (top / "dir").symlink_to(outside)
        (top / "other").symlink_to(outside / "sub")

    way = Way(runtime(state, UnsafeNoSandbox(deed)), folder)
    outcome = await way.do()
    assert f"created other → {outside}/sub" in outcome.changes
    after = photo(folder)
    for verb, goal in (("undo", before), ("redo", after), ("undo", before)):
        assert (await way.revert(verb)).ok
        assert photo(folder) == goal
        assert photo(outside) == theirs


@pytest.mark.parametrize("lure", ["sub", "empty"])
async def test_a_link_put_in_a_folder_s_place_while_it_is_restored(
    folder: Path, outside: Path, state: Path, monkeypatch: pytest.MonkeyPatch, lure: str
) -> None:
    """Right before names are moved into place, a folder becomes a link that leads out."""
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("mine")
    theirs = photo(outside)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "sub" / "file").unlink())), folder)
    await way.do()
    apply = restoring.Restore.apply

    def racing(self: restoring.Restore, todo: restoring.Steps) -> None:
        (folder / "sub").rename(folder / "away")
        (folder / "sub").symlink_to(outside / lure)
        apply(self, todo)

    monkeypatch.setattr(restoring.Restore, "apply", racing)
    outcome = await way.revert("undo")
    assert not outcome.ok and outcome.touched
    assert photo(outside) == theirs

    monkeypatch.undo()  # once the interference is taken away, the undo is finished
    with pytest.raises(Conflict):
        await way.revert("undo")
    (folder / "sub").unlink()
    (folder / "away").rename(folder / "sub")
    assert (await way.revert("undo")).ok
    assert (folder / "sub" / "file").read_text() == "mine"


async def test_a_file_replaced_while_it_is_restored_is_kept(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the comparison and the removal somebody else writes to what undo would remove."""
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "new").write_text("made"))), folder)
    await way.do()
    apply = restoring.Restore.apply

    def racing(self: restoring.Restore, todo: restoring.Steps) -> None:
        (folder / "new").unlink()
        (folder / "new").write_text("theirs")
        apply(self, todo)

    monkeypatch.setattr(restoring.Restore, "apply", racing)
    outcome = await way.revert("undo")
    assert not outcome.ok and "changed by someone else" in outcome.summary
    assert (folder / "new").read_text() == "theirs"


@root_only
async def test_an_inode_linked_from_outside_later_is_not_written_by_undo(
    owned: Path, outside: Path, state: Path
) -> None:
    (owned / "a").write_text("a")
    os.chown(owned / "a", 1000, 1000)
    before = photo(owned)
    way = Way(runtime(state), owned, "chmod 600 a")
    await way.do()
    os.link(owned / "a", outside / "backup")
    theirs = photo(outside)
    assert (await way.revert("undo")).ok
    assert photo(owned) == before
    assert photo(outside) == theirs


async def test_two_files_that_became_one_inode_are_two_again(folder: Path, state: Path) -> None:
    for name in ("a", "b"):
        (folder / name).write_text("same")
        os.utime(folder / name, ns=(0, 5))
    before = photo(folder)

    def deed(top: Path) -> None:
        (top / "b").unlink()
        os.link(top / "a", top / "b")

    way = Way(runtime(state, UnsafeNoSandbox(deed)), folder)
    outcome = await way.do()
    assert outcome.touched
    after = photo(folder)
    for verb, goal in (("undo", before), ("redo", after), ("undo", before)):
        assert (await way.revert(verb)).ok
        assert photo(folder) == goal


async def test_a_busy_racer_never_gets_anything_out(owned: Path, outside: Path, state: Path) -> None:
    """A thread swaps a folder for a link out of the root, over and over, during undo and redo."""
    for number in range(30):
        (owned / "sub").mkdir(exist_ok=True)
        (owned / "sub" / f"file{number}").write_text("mine")
    theirs = photo(outside)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: shutil.rmtree(top / "sub"))), owned)
    await way.do()
    stop = threading.Event()

    def race() -> None:
        while not stop.is_set():
            try:
                (owned / "sub").rename(owned / "away")
                (owned / "sub").symlink_to(outside)
                (owned / "sub").unlink()
                (owned / "away").rename(owned / "sub")
            except OSError:
                continue

    racer = threading.Thread(target=race)
    racer.start()
    try:
        for _ in range(5):
            for verb in ("undo", "redo"):
                try:
                    await way.revert(verb)
                except GoexError:
                    continue
    finally:
        stop.set()
        racer.join()
    assert photo(outside) == theirs


async def test_the_set_user_id_bit_is_not_applied(folder: Path, state: Path) -> None:
    def deed(top: Path) -> None:
        (top / "tool").write_text("#!/bin/sh")
        os.chmod(top / "tool", 0o6755)

    way = Way(runtime(state, UnsafeNoSandbox(deed)), folder)
    outcome = await way.do()
    assert stat.S_IMODE((folder / "tool").stat().st_mode) == 0o755
    assert any("set-user-id" in line and "tool" in line for line in outcome.changes)


@root_only
async def test_a_set_user_id_bit_that_was_there_stays_and_is_restored(folder: Path, state: Path) -> None:
    (folder / "tool").write_text("#!/bin/sh")
    os.chmod(folder / "tool", 0o4755)
    before = photo(folder)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "new").write_text("x"))), folder)
    await way.do()
    assert photo(folder)[b"/tool"] == before[b"/tool"]
    await way.revert("undo")
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "tool").unlink())), folder, action_id="a2")
    await way.do()
    await way.revert("undo")
    assert photo(folder) == before


@root_only
async def test_devices_are_not_applied_and_those_there_are_kept_and_restored(roots: Path, state: Path) -> None:
    try:
        os.mknod(roots / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("may not make devices here")
    (roots / "sub").mkdir()
    os.mknod(roots / "sub" / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    before = photo(roots)

    def deed(top: Path) -> None:
        assert not (top / "null").exists()
        os.mknod(top / "mem", stat.S_IFCHR | 0o666, os.makedev(1, 1))
        shutil.rmtree(top / "sub")

    way = Way(runtime(state, UnsafeNoSandbox(deed)), roots)
    outcome = await way.do()
    assert (roots / "null").is_char_device() and not (roots / "mem").exists() and not (roots / "sub").exists()
    assert "not applied: mem is a device" in outcome.changes
    assert (await way.revert("undo")).ok
    assert photo(roots) == before


async def test_an_inode_linked_from_outside_is_never_written(owned: Path, outside: Path, state: Path) -> None:
    os.link(outside / "file", owned / "inside")
    theirs = photo(outside)
    before = photo(owned)
    way = Way(runtime(state), owned, "echo changed > inside; chmod 600 inside; touch -d @5 inside")
    outcome = await way.do()
    assert outcome.ok, outcome.stderr
    assert way.plan is not None and way.plan.resolved["mode"] == "copy"
    assert (owned / "inside").read_text() == "changed\n"
    assert photo(outside) == theirs
    await way.revert("undo")
    assert photo(owned) == before
    assert photo(outside) == theirs


async def test_a_socket_in_the_folder_does_not_reach_the_program(owned: Path, state: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(owned / "sock"))
    server.listen()
    os.mkfifo(owned / "pipe")
    if os.geteuid() == 0:
        for name in ("sock", "pipe"):
            os.chown(owned / name, 1000, 1000)
    before = photo(owned)
    program = (
        "import socket, stat, os\n"
        "assert stat.S_ISFIFO(os.stat('pipe').st_mode)\n"
        "client = socket.socket(socket.AF_UNIX)\n"
        "try: client.connect('sock')\n"
        "except ConnectionRefusedError: open('refused', 'w')\n"
    )
    way = Way(runtime(state), owned, program, language="python")
    outcome = await way.do()
    assert outcome.ok and (owned / "refused").exists(), outcome.stderr
    await way.revert("undo")
    assert photo(owned) == before
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(owned / "sock"))  # it still is the one that is listened at
    client.close()
    server.close()


async def test_a_damaged_snapshot_is_noticed_and_touches_nothing(folder: Path, state: Path) -> None:
    (folder / "a").write_text("a" * 1000)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "a").unlink())), folder)
    await way.do()
    after = photo(folder)
    for pack in (state / "snapshots").rglob("*.pack"):
        pack.chmod(0o600)
        data = bytearray(pack.read_bytes())
        data[len(data) // 3 : len(data) // 3 + 20] = bytes(20)
        pack.write_bytes(bytes(data))
    with pytest.raises(Unavailable):
        await way.revert("undo")
    assert photo(folder) == after


async def test_a_file_that_grows_while_it_is_read(folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot is of one moment, or there is none. It grows at each read: a thread may not get to it."""
    (folder / "log").write_bytes(b"x" * 20_000_000)
    stream = PackWriter.stream

    def growing(self: PackWriter, size: int, read: Callable[[int], bytes]) -> str:
        def piece(most: int) -> bytes:
            with open(folder / "log", "ab") as file:
                file.write(b"y")
            return read(most)

        return stream(self, size, piece)

    monkeypatch.setattr(PackWriter, "stream", growing)
    with pytest.raises(Conflict, match="changed while it was being read"):
        await Way(runtime(state), folder).prepared()


async def test_two_actions_on_one_folder_wait_for_each_other(folder: Path, state: Path) -> None:
    async def slow(top: Path) -> None:
        (top / "one").write_text("1")
        await asyncio.sleep(0.3)
        (top / "two").write_text("2")

    made = runtime(state, UnsafeNoSandbox(slow))
    first = await Way(made, folder, action_id="a1").prepared()
    second = await Way(made, folder, action_id="a2").prepared()
    assert first.plan is not None and second.plan is not None
    results = await asyncio.gather(
        made.execute(first.plan, first.context), made.execute(second.plan, second.context), return_exceptions=True
    )
    assert [isinstance(result, Conflict) for result in results] == [False, True]


async def test_git_s_own_environment_is_not_listened_to(
    folder: Path, state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_text("a")
    config = place / "config"
    config.write_text(f"[core]\n\thooksPath = {place}\n\tfsmonitor = touch {place}/ran\n[gc]\n\tauto = 1\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(place / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(place / "objects"))
    monkeypatch.setenv("GIT_TRACE", str(place / "trace"))
    for name in ("reference-transaction", "post-checkout"):
        (place / name).write_text(f"#!/bin/sh\ntouch {place}/ran\n")
        (place / name).chmod(0o755)
    before = photo(folder)
    way = Way(runtime(state), folder, "rm a")
    await way.do()
    await way.revert("undo")
    assert photo(folder) == before
    assert not {"ran", "elsewhere", "objects", "trace"} & set(os.listdir(place))


async def test_the_snapshots_are_private(folder: Path, state: Path) -> None:
    os.umask(0o022)
    await Way(runtime(state), folder).do()
    for path in (state / "snapshots", *(state / "snapshots").glob("*.git")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
