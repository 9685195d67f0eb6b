"""Dry runs of programs on files: what they say is so, and nothing but their own copy is touched.

Everything around the run is tried with a program of this machine (UnsafeNoSandbox), many times; whether a hostile one
is held is tried with the real sandbox.
"""

# ruff: noqa: PTH101, PTH115, PTH118, PTH208, PTH211, ASYNC240

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.actions import Revert
from policies.errors import Conflict, GoexError, Unavailable
from runtimes.base import DryRun
from runtimes.files.difference import Most, hunks
from runtimes.files.dryrun import Room
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.contract import Limits, Profile, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.test_property import _DEED, act
from tests.runtimes.files.test_unprivileged import as_user

Times = dict[bytes, tuple[object, ...]]


def all_of_it(top: Path) -> Times:
    """Every fact of every name below `top`, all its times among them. The look itself moves none of them, apart from
    the access time of a symbolic link, which no call reads without; that one is left out."""
    found: Times = {}
    todo = [os.fsencode(top)]
    while todo:
        path = todo.pop()
        at = os.lstat(path)
        content: object = b""
        if stat.S_ISDIR(at.st_mode):
            fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
            names = sorted(os.listdir(fd))
            os.close(fd)
            todo += [os.path.join(path, os.fsencode(name)) for name in names]
            content = tuple(names)
        elif stat.S_ISREG(at.st_mode):
            fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
            with os.fdopen(fd, "rb") as file:
                content = file.read()
        elif stat.S_ISLNK(at.st_mode):
            content = os.readlink(path)
        facts = [at.st_mode, at.st_uid, at.st_gid, at.st_ino, at.st_nlink, at.st_size, at.st_mtime_ns, at.st_ctime_ns]
        if not stat.S_ISLNK(at.st_mode):
            facts.append(at.st_atime_ns)
        found[path] = (*facts, content)
    return found


async def dry(made: FilesRuntime, folder: Path, program: str = "true", *, id: str = "dry-1") -> DryRun:
    way = Way(made, folder, program)
    plan = await made.assess(way.action, way.context)
    return await made.dry_run(plan, context(id))


def text(found: DryRun) -> str:
    return "\n".join(f"{line.kind}|{line.text}" for line in found.lines)


def nothing_left(state: Path) -> bool:
    copies = state / "snapshots" / "dry"
    return not copies.exists() or not os.listdir(copies)


def give(folder: Path) -> None:
    """All of it to the folder's owner: what root wrote into it for a test is a person's own there."""
    at = folder.stat()
    for path in folder.rglob("*"):
        os.chown(path, at.st_uid, at.st_gid, follow_symlinks=False)


# ---- what it says


async def test_a_changed_text_is_shown_line_by_line(owned: Path, state: Path) -> None:
    (owned / "notes").write_text("one\ntwo\nthree\n")
    (owned / "old").write_text("gone\n")
    give(owned)
    program = (
        "printf 'one\\n2\\nthree\\n' > notes; rm old; printf 'new' > made; chmod 600 notes; echo out; echo err >&2"
    )
    found = await dry(runtime(state), owned, program)
    assert found.ok
    assert found.summary == "The program ended well: 1 created, 1 changed, 1 deleted."
    lines = [(line.kind, line.text) for line in found.lines]
    at = lines.index(("change", "changed notes, 644→600"))
    assert lines[at + 1 : at + 6] == [
        ("hunk", "@@ -1,3 +1,3 @@"),
        ("same", "one"),
        ("removed", "two"),
        ("added", "2"),
        ("same", "three"),
    ]
    assert (
        ("change", "created made") in lines
        and ("added", "new") in lines
        and ("note", "(that line has no end)") in lines
    )
    assert ("change", "deleted old") in lines and ("removed", "gone") in lines
    assert ("output", "out") in lines and ("errors", "err") in lines
    assert "on a copy at 20" in lines[0][1] and "A later run may do otherwise" in lines[1][1]


async def test_what_is_not_text_is_named_by_size_and_hash(owned: Path, state: Path) -> None:
    (owned / "b").write_bytes(b"\0" * 2048)
    give(owned)
    found = await dry(runtime(state), owned, "printf 'x' > b; printf '\\377\\376' > c")
    zeros = "e5a00aa9991ac8a5ee3109844d84a55583bd20572ad3ffcd42792f3c36b183ad"
    x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert f"note|not compared line by line: 2.0 kB, SHA-256 {zeros} → 1 bytes, SHA-256 {x}" in text(found)
    assert "note|not compared line by line: 2 bytes, SHA-256 f50e" not in text(found)  # a hash of ours, not a guess
    assert "change|created c\nnote|not compared line by line: 2 bytes, SHA-256 " in text(found)


async def test_modes_links_and_folders_are_said(owned: Path, state: Path) -> None:
    (owned / "a").write_text("a")
    (owned / "dir").mkdir()
    give(owned)
    found = await dry(runtime(state), owned, "chmod 711 dir; ln -s /etc/passwd away; mkdir deep; ln a twin")
    said = text(found)
    for line in ("mode dir 755→711", "created away → /etc/passwd", "created deep/", "created twin"):
        assert f"change|{line}" in said


async def test_nothing_changed_is_said(owned: Path, state: Path) -> None:
    found = await dry(runtime(state), owned, "exit 3")
    assert not found.ok
    assert found.summary == "The program ended with exit status 3: nothing changed."
    assert "note|Nothing in the folder would change." in text(found)


async def test_hostile_names_and_contents_are_escaped(owned: Path, state: Path) -> None:
    name = "$(printf 'n\\033]8;;x\\007')"
    program = f"printf 'a\\033[31mred\\n\\342\\200\\256x\\n[bold]b\\n' > \"{name}\"; printf '\\033[2J'"
    found = await dry(runtime(state), owned, program)
    said = text(found)
    assert not any(ord(char) < 32 and char != "\n" for char in said)
    assert "\u202e" not in said
    assert "added|a\\u{1b}[31mred" in said and "added|\\u{202e}x" in said and "output|\\u{1b}[2J" in said


async def test_what_is_left_out_is_said(owned: Path, state: Path) -> None:
    found = await dry(runtime(state), owned, "seq 30000 > a-long; for i in $(seq 250); do echo x > f$i; done; seq 1000")
    said = text(found)
    assert "warning|29,601 more lines of this difference left out." in said
    assert "51 more changed paths left out." in said
    assert "warning|800 more lines of it left out." in said
    assert len(found.lines) < Most().lines + 450


async def test_a_difference_that_would_take_for_ever_is_cut_short(owned: Path, state: Path) -> None:
    (owned / "a").write_text("".join(f"{n % 7}\n" for n in range(100_000)))
    give(owned)
    found = await dry(runtime(state), owned, "tac a > b; mv b a")
    assert "more lines of this difference left out" in text(found)


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from("abc\n"), max_size=40), st.lists(st.sampled_from("abc\n"), max_size=40), st.integers(0, 30)
)
def test_a_difference_applied_to_the_one_side_gives_the_other(one: list[str], two: list[str], most: int) -> None:
    made, place = [], 0
    for kind, line in hunks(one, two, most):
        if kind == "hunk":
            begin, count = (int(part) for part in line.split(" ")[1][1:].split(","))
            begin -= 1 if count else 0
            made += one[place:begin]
            place = begin
        else:
            made += [line] if kind in ("same", "added") else []
            assert kind == "added" or one[place] == line
            place += kind != "added"
    assert made + one[place:] == two


# ---- what it touches


@pytest.mark.promise(28)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    tree=st.lists(_DEED, max_size=20),
    deeds=st.lists(_DEED, max_size=20),
    owner=st.sampled_from([0, 1000]),
)
def test_the_folder_and_all_beside_it_stay_as_they_are(
    tree: list[tuple[str, bytes, object]], deeds: list[tuple[str, bytes, object]], owner: int
) -> None:
    with tempfile.TemporaryDirectory(prefix="place-") as place, tempfile.TemporaryDirectory(prefix="state-") as state:
        folder = Path(place) / "folder"
        folder.mkdir()
        (Path(place) / "beside").write_text("mine")
        os.link(Path(place) / "beside", folder / "shared")
        if os.geteuid() == 0:
            os.chown(folder, owner, owner)
        act(folder, tree)
        made = runtime(Path(state), UnsafeNoSandbox(lambda top: act(top, deeds)))
        before = all_of_it(Path(place))
        with suppress(GoexError):  # a tree that GoEx doesn't work on is left alone, too
            asyncio.run(dry(made, folder))
        assert all_of_it(Path(place)) == before
        assert nothing_left(Path(state))


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(tree=st.lists(_DEED, max_size=15), deeds=st.lists(_DEED, max_size=15))
def test_what_it_says_is_what_the_run_then_does(
    tree: list[tuple[str, bytes, object]], deeds: list[tuple[str, bytes, object]]
) -> None:
    with tempfile.TemporaryDirectory(prefix="place-") as place, tempfile.TemporaryDirectory(prefix="state-") as state:
        folder = Path(place) / "folder"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, 1000, 1000)
        act(folder, tree)

        async def both() -> None:
            way = Way(runtime(Path(state), UnsafeNoSandbox(lambda top: act(top, deeds))), folder)
            plan = await way.runtime.assess(way.action, way.context)
            found = await way.runtime.dry_run(plan, context("dry-1"))
            outcome = await way.do()
            said = [line.text for line in found.lines if line.kind in ("warning", "change")]  # grants are warnings
            said = [line for line in said if not line.startswith("not applied")]
            really = [line for line in outcome.changes if not line.startswith("not applied")]
            # A file that was written again as it was has another time for each run.
            assert [line for line in said if not line.startswith("touched ")] == [
                line for line in really if not line.startswith("touched ")
            ]

        asyncio.run(both())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_an_ordinary_user_runs_dry_and_moves_no_time() -> None:
    made = Path(tempfile.mkdtemp(prefix="place-"))
    os.chown(made, 65534, 65534)

    async def once() -> None:
        folder, state = made / "folder", made / "state"
        folder.mkdir()
        state.mkdir(mode=0o700)
        (folder / "a").write_text("one\n")
        (folder / "a").chmod(0o400)
        (folder / "dir").mkdir()
        (folder / "dir" / "inner").write_text("inner")
        (folder / "dir").chmod(0o500)  # a copy of it could be written to only by lifting that
        for path in (folder / "a", folder / "dir", folder):
            os.utime(path, ns=(1, 1_600_000_000_000_000_000))  # so old that any reading would move the access time
        before = all_of_it(folder)
        found = await dry(runtime(state), folder, "rm -f a; echo two > a; cat dir/inner")
        assert found.ok, found.summary
        assert "change|changed a, 400→" in text(found) and "removed|one" in text(found)
        assert all_of_it(folder) == before
        assert nothing_left(state)

    try:
        as_user(once)
    finally:
        shutil.rmtree(made)


async def test_no_access_time_moves(owned: Path, state: Path) -> None:
    (owned / "a").write_text("one\n")
    (owned / "dir").mkdir()
    (owned / "dir" / "b").write_text("two\n")
    give(owned)
    for path in (owned / "dir" / "b", owned / "dir", owned / "a", owned):
        os.utime(path, ns=(1, 1_600_000_000_000_000_000))
    before = all_of_it(owned)
    await dry(runtime(state), owned, "cat a dir/b; echo x >> a")
    assert all_of_it(owned) == before
    assert before[os.fsencode(owned)][8] == 1


async def test_the_job_gets_the_copy_and_never_the_folder(owned: Path, state: Path) -> None:
    (owned / "a").write_text("a")
    seen: list[bool] = []
    sandbox = UnsafeNoSandbox(lambda top: seen.append((top / "a").read_text() == "a"))
    await dry(runtime(state, sandbox), owned)
    assert [job.folder for job in sandbox.jobs] == [str(state / "snapshots" / "dry" / "dry-1" / "tree")]
    assert sandbox.jobs[0].action_id == "dry-1"  # ending it can't end a real run
    assert seen == [True]


# ---- how it ends


async def test_a_folder_that_was_swapped_is_refused(owned: Path, state: Path) -> None:
    made = runtime(state)
    way = Way(made, owned)
    plan = await made.assess(way.action, way.context)
    owned.rename(owned.with_name("moved"))
    owned.mkdir()
    with pytest.raises(Conflict):
        await made.dry_run(plan, context("dry-1"))
    assert nothing_left(state)


async def test_another_image_than_the_planned_one_is_refused(owned: Path, state: Path) -> None:
    made = runtime(state)
    way = Way(made, owned)
    plan = await made.assess(way.action, way.context)
    with pytest.raises(Conflict, match="image"):
        await made.dry_run(replace(plan, image_id="sha256:other"), context("dry-1"))


async def test_a_sandbox_that_fails_leaves_nothing(owned: Path, state: Path) -> None:
    (owned / "a").write_text("a")
    with pytest.raises(SandboxFailed):
        await dry(runtime(state, UnsafeNoSandbox(fail=SandboxFailed("no"))), owned)
    assert nothing_left(state)


async def test_leaving_ends_it_and_leaves_nothing(owned: Path, state: Path) -> None:
    begun = asyncio.Event()

    async def for_ever(top: Path) -> None:
        (top / "deep").mkdir()
        (top / "deep").chmod(0)
        begun.set()
        await asyncio.sleep(3600)

    task = asyncio.create_task(dry(runtime(state, UnsafeNoSandbox(for_ever)), owned))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert nothing_left(state)


async def test_too_little_room_is_said_before_anything_is_copied(owned: Path, state: Path) -> None:
    (owned / "a").write_text("a")
    made = runtime(state, room=Room(keep=10**18))
    with pytest.raises(Unavailable, match="too little room"):
        await dry(made, owned)
    assert nothing_left(state)


async def test_what_a_killed_daemon_left_goes_at_the_next_start(owned: Path, state: Path) -> None:
    left = state / "snapshots" / "dry" / "dry-old" / "tree"
    left.mkdir(parents=True)
    (left / "secret").write_text("x")
    left.chmod(0)
    await runtime(state).reap()
    assert not (state / "snapshots" / "dry").exists()
    await runtime(state).reap()


@pytest.mark.promise(28)
@pytest.mark.parametrize("folder_of", ["owned", "roots"])
def test_killed_in_the_middle_the_folder_is_untouched_and_a_start_clears(
    folder_of: str, request: pytest.FixtureRequest, state: Path
) -> None:
    folder = request.getfixturevalue(folder_of)
    (folder / "a").write_text("one\n")
    before = all_of_it(folder)

    def deed(top: Path) -> None:
        (top / "a").write_text("two\n")
        os._exit(9)

    child = os.fork()
    if child == 0:
        try:
            asyncio.run(dry(runtime(state, UnsafeNoSandbox(deed)), folder))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not nothing_left(state)
    assert all_of_it(folder) == before
    asyncio.run(runtime(state).reap())
    assert nothing_left(state)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.btrfs"), reason="needs root and mkfs.btrfs")
def test_where_the_file_system_can_a_copy_takes_no_room(tmp_path: Path) -> None:
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(300 * 2**20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(disk)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        folder, size = disk / "folder", 80 * 2**20
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "large").write_bytes(os.urandom(size))
        give(folder)
        os.sync()
        before, taken = all_of_it(folder), []
        room = os.statvfs(disk).f_bavail

        def deed(top: Path) -> None:
            os.sync()
            assert (top / "large").read_bytes() == (folder / "large").read_bytes()
            taken.append((room - os.statvfs(disk).f_bavail) * os.statvfs(disk).f_frsize)
            with (top / "large").open("r+b") as file:
                file.write(b"theirs")

        made = runtime(disk / "state", UnsafeNoSandbox(deed), room=Room(keep=2**20))
        found = asyncio.run(dry(made, folder))
        assert "change|changed large" in text(found)
        assert all_of_it(folder).keys() == before.keys()
        assert (folder / "large").read_bytes() == before[os.fsencode(folder / "large")][-1]
        assert taken[0] < size / 4
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# ---- undo, redo, commit


async def test_an_undo_is_shown_with_its_difference_and_touches_nothing(owned: Path, state: Path) -> None:
    (owned / "a").write_text("one\n")
    give(owned)
    way = Way(runtime(state), owned, "echo two > a; echo new > b")
    await way.do()
    assert way.plan is not None
    before = all_of_it(owned)
    revert = Revert(verb="undo", target="a1")
    plan = await way.runtime.assess_revert(revert, way.plan, way.context)
    found = await way.runtime.dry_revert(revert, plan, way.plan, way.context)
    assert all_of_it(owned) == before
    assert found.summary == "The folder would be as it was before the action: 1 changed, 1 deleted."
    assert "change|changed a\nhunk|@@ -1,1 +1,1 @@\nremoved|two\nadded|one" in text(found)
    assert (await way.revert("undo")).ok
    redo = Revert(verb="redo", target="a1")
    plan = await way.runtime.assess_revert(redo, way.plan, way.context)
    assert "created b\nhunk|@@ -0,0 +1,1 @@\nadded|new" in text(
        await way.runtime.dry_revert(redo, plan, way.plan, way.context)
    )
    commit = Revert(verb="commit", target="a1")
    plan = await way.runtime.assess_revert(commit, way.plan, way.context)
    assert "would be deleted" in (await way.runtime.dry_revert(commit, plan, way.plan, way.context)).summary


async def test_an_undo_of_what_changed_since_is_a_conflict_already(owned: Path, state: Path) -> None:
    way = Way(runtime(state), owned, "echo two > a")
    await way.do()
    assert way.plan is not None
    revert = Revert(verb="undo", target="a1")
    plan = await way.runtime.assess_revert(revert, way.plan, way.context)
    (owned / "theirs").write_text("x")
    found = await way.runtime.dry_revert(revert, plan, way.plan, way.context)
    assert found.summary.startswith("What the action changed would be as it was before the action: 1 deleted.")
    (owned / "a").write_text("theirs")
    with pytest.raises(Conflict) as caught:
        await way.runtime.dry_revert(revert, plan, way.plan, way.context)
    assert caught.value.difference == ("changed a",)


# ---- a hostile program, in the real sandbox


@pytest.fixture
async def real(sandbox_image: str, state: Path) -> AsyncIterator[FilesRuntime]:
    sandbox = DockerSandbox(f"tests-dry-{os.getpid()}", scratch_dir=state / "scratch")
    limits = Limits(seconds=20, output=10_000, file_size=64 * 2**20)
    yield runtime(state, sandbox, profile=Profile(limits=limits), room=Room(grow=100 * 2**20))
    await sandbox.close()


@pytest.fixture
def outside(place: Path) -> Iterator[Path]:
    made = place / "outside"
    made.mkdir()
    (made / "secret").write_text("mine")
    os.chmod(made, 0o777)
    os.chmod(made / "secret", 0o666)
    yield made


HOSTILE = {
    "deletes everything": "rm -rf ./* .[!.]*; ls -A",
    "links out": "ln -s {outside}/secret s; echo theirs > s; ln -s / top; rm -rf top/tmp/*; cat s",
    "writes through a link that is there": "echo theirs > there/secret; rm -f there/secret; chmod 000 there",
    "moves the folder's own times": "touch -d 1999-01-01 . a; chmod 000 a; touch .",
    "prints without end": "yes",
    "sleeps without end": "sleep 1000",
    "forks without end": "while :; do (sleep 9 & ) ; done",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(28)
@pytest.mark.parametrize("folder_of", ["owned", "roots"])
@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_program_reaches_the_copy_alone(
    what: str, folder_of: str, request: pytest.FixtureRequest, real: FilesRuntime, outside: Path, state: Path
) -> None:
    folder: Path = request.getfixturevalue(folder_of)
    (folder / "a").write_text("one\n")
    os.symlink(outside, folder / "there")
    give(folder)
    made = real
    if what in ("sleeps without end", "forks without end"):
        made = runtime(state, real._sandbox, profile=Profile(limits=Limits(seconds=2)))
    before = all_of_it(folder.parent)
    found = await dry(made, folder, HOSTILE[what].format(outside=outside))
    assert all_of_it(folder.parent) == before
    assert nothing_left(state)
    assert found.lines


async def test_a_program_that_fills_the_disk_is_ended(owned: Path, real: FilesRuntime, state: Path) -> None:
    program = "i=0; while :; do head -c 30000000 /dev/zero > f$i; i=$((i+1)); done"
    found = await dry(real, owned, program)
    assert not found.ok
    assert "because the copy grew too large" in found.summary
    assert nothing_left(state)
    assert not list(owned.iterdir())
