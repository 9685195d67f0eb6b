"""Which folders and programs are refused, each by its own check."""

# The tests set their scenes with blocking calls: nothing else runs in their loop.
# ruff: noqa: PTH101, ASYNC221, ASYNC240

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Files, Revert, UndoClass
from policies.errors import Conflict, InvalidInput, Unavailable
from policies.services import Risk
from runtimes.files import folder as folders
from runtimes.files.folder import keeps_change_times, resolve
from runtimes.files.plans import told
from runtimes.files.run import SAME_FOLDER
from runtimes.files.tree import Bounds, Entry, Manifest, TooLarge
from runtimes.sandbox.contract import Job, Profile, Result, SandboxFailed
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo, without_left

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to set the scene")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/", "the whole system"),
        ("///", "the whole system"),
        ("/etc", "belongs to the system"),
        ("/etc/ssl", "belongs to the system"),
        ("/usr", "belongs to the system"),
        ("/usr/local", "belongs to the system"),
        ("/proc/self", ""),
        ("/proc/1", "belongs to the system"),
        ("/dev", "belongs to the system"),
        ("/sys/kernel", "belongs to the system"),
        ("/run", "belongs to the system"),
        ("/boot", "belongs to the system"),
        ("/var", "top folder"),
        ("/var/lib", "belongs to the system"),
        ("/home", "top folder"),
        ("/tmp", "top folder"),
        ("/root", "top folder"),
        ("relative/path", "absolute"),
        ("", "absolute"),
        ("/nowhere/at/all", "can't be found"),
        ("/tmp/a\0b", "NUL"),
        ("/tmp/..", "doesn't end in a folder's name"),
        ("/tmp/\udcff", "UTF-8"),
        ("/" + "a" * 5000, "4000"),
    ],
)
async def test_what_is_no_person_s_folder_is_refused(state: Path, path: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await runtime(state).assess(Files(folder=path, language="shell", program="true"), context())
    assert why in str(caught.value)


async def refused(state: Path, folder: Path, **options: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        await Way(runtime(state, **options), folder).prepared()  # type: ignore[arg-type]
    return str(caught.value)


async def test_a_link_is_refused_and_names_where_it_leads(state: Path, owned: Path, place: Path) -> None:
    (place / "link").symlink_to(owned)
    assert str(owned) in await refused(state, place / "link")
    assert str(owned) in await refused(state, Path(f"{place}/link/"))
    (place / "root").symlink_to("/")
    assert "is a link" in await refused(state, place / "root")


async def test_a_link_further_up_is_resolved_and_shown(state: Path, owned: Path, place: Path) -> None:
    (place / "up").symlink_to(place)
    way = Way(runtime(state), place / "up" / "owned")
    await way.prepared()
    assert way.plan is not None and way.plan.resolved["folder"] == str(owned)
    assert way.plan.needs[0].account == str(owned)


async def test_a_file_is_refused(state: Path, owned: Path) -> None:
    (owned / "file").write_text("x")
    assert "isn't a folder" in await refused(state, owned / "file")


async def test_goex_s_own_folders_are_refused(state: Path, owned: Path, place: Path) -> None:
    inner = owned / "state"
    (inner / "x").mkdir(parents=True)
    assert "GoEx's own" in await refused(inner, inner)
    assert "GoEx's own" in await refused(inner, inner / "x")
    assert "lies in it" in await refused(inner, owned)
    (owned / "config").mkdir()
    assert "GoEx's own" in await refused(state, owned / "config", protected=(owned / "config",))


async def test_a_whole_home_is_refused(state: Path, owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(owned))
    assert "home" in await refused(state, owned)


@root_only
async def test_a_path_that_others_could_swap_is_refused(state: Path, place: Path) -> None:
    folder = place / "up" / "folder"
    folder.mkdir(parents=True)
    os.chown(folder, 1000, 1000)
    os.chmod(place / "up", 0o777)
    assert "swap" in await refused(state, folder)
    os.chmod(place / "up", 0o1777)
    await Way(runtime(state), folder).prepared()
    os.chmod(place / "up", 0o755)
    os.chown(place / "up", 1001, 1001)
    assert "another user" in await refused(state, folder)


@root_only
async def test_a_path_that_a_user_named_by_an_acl_could_swap_is_refused(state: Path, place: Path) -> None:
    """The mode says g+w then, of a group that is numbered as the owner."""
    folder = place / "up" / "folder"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        os.chown(each, 1000, 1000)
    os.chmod(folder.parent, 0o775)
    await Way(runtime(state), folder).prepared()
    entries = ((1, 7, -1), (2, 7, 1234), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, id & 0xFFFFFFFF) for tag, bits, id in entries)
    os.setxattr(folder.parent, "system.posix_acl_access", acl)
    assert "could swap it" in await refused(state, folder)
    os.chmod(folder.parent, 0o755)  # as the refusal says: an ACL's mask goes with it
    await Way(runtime(state), folder).prepared()


@root_only
async def test_mounts_below_are_refused(state: Path, owned: Path) -> None:
    (owned / "mnt").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(owned / "mnt")], check=False).returncode:
        pytest.skip("may not mount here")
    try:
        assert "mounted" in await refused(state, owned)
    finally:
        subprocess.run(["umount", str(owned / "mnt")], check=True)
    await Way(runtime(state), owned).prepared()


async def test_a_folder_that_is_too_large_is_refused(state: Path, owned: Path) -> None:
    for number in range(5):
        (owned / str(number)).write_bytes(b"x" * 100)
    files = await refused(state, owned, bounds=Bounds(files=3))
    assert "more than 3 files" in files and "raise [files] max_entries" in files
    size = await refused(state, owned, bounds=Bounds(bytes=300))
    assert "more than 300 bytes" in size and "raise [files] max_bytes" in size
    (owned / "a" / "b" / "c").mkdir(parents=True)
    assert "deeper than 2" in await refused(state, owned, bounds=Bounds(depth=2))


async def test_a_dry_run_of_an_undo_that_is_too_large_offers_no_other_folder(state: Path, owned: Path) -> None:
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "x").touch())), owned)
    assert (await way.do()).ok and way.plan is not None
    undo = Revert(verb="undo", target="a1")
    plan = await way.runtime.assess_revert(undo, way.plan, way.context)
    small = runtime(state, bounds=Bounds(files=-500))  # grown: none
    with pytest.raises(TooLarge, match=r"Move away what came into it since, or raise \[files\] max_entries"):
        await small.dry_revert(undo, plan, way.plan, way.context)


@pytest.mark.parametrize(
    ("language", "program", "why"),
    [
        ("shell", "x" * 200_001, "200001"),
        ("shell", "a\0b", "NUL"),
        ("shell", " \n", "empty"),
        ("perl", "print 1", "language"),
        ("shell", "echo \ud800", "UTF-8"),
    ],
)
async def test_programs_that_cannot_be_are_refused(
    state: Path, owned: Path, language: str, program: str, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        await Way(runtime(state), owned, program, language=language).prepared()


async def test_the_plan_says_all_of_it_and_assessing_has_no_effect(state: Path, owned: Path) -> None:
    (owned / "a").write_text("abc")
    seen = photo(owned)
    program = "echo one\necho '\x1b[2Khidden \u202e'\n# [bold]" + "x" * 5000
    plan = await runtime(state).assess(Files(folder=str(owned), language="shell", program=program), context())
    assert photo(owned) == seen and not (state / "snapshots").exists()
    text = "\n".join(plan.lines)
    assert "\x1b" not in text and "\u202e" not in text and "\\u{1b}[2Khidden \\u{202e}" in text
    assert "x" * 5000 in text, "a program is shown whole"
    assert str(owned) in text and "1 file, 3 bytes" in text
    assert plan.undo_class is UndoClass.EXACT and "inode" in plan.undo_text
    (need,) = plan.needs
    assert (need.service, need.scope, need.risk) == ("files", "files.write", Risk.DELETE)
    assert need.arguments[0]["program_sha256"] == plan.resolved["program_sha256"]
    at = owned.stat()
    assert (plan.resolved["device"], plan.resolved["inode"]) == (at.st_dev, at.st_ino)


async def test_a_folder_swapped_after_it_was_shown_is_a_conflict(state: Path, owned: Path, place: Path) -> None:
    for step in ("prepare", "execute"):
        way = Way(runtime(state), owned, "echo x > new")
        way.plan = await way.runtime.assess(way.action, way.context)
        if step == "execute":
            await way.runtime.prepare(way.plan, way.context)
        owned.rename(place / f"old-{step}")
        shutil.copytree(place / f"old-{step}", owned)
        if os.geteuid() == 0:
            os.chown(owned, 1000, 1000)
        with pytest.raises(Conflict, match="isn't the folder any more"):
            await getattr(way.runtime, step)(way.plan, way.context)
        assert not (owned / "new").exists()


@root_only
async def test_a_container_with_a_kernel_of_its_own_gets_a_copy(state: Path, owned: Path, place: Path) -> None:
    """Whether it got the folder that was meant is compared by inode, and such a kernel numbers those anew: the folder
    itself could be swapped before the engine finds it by its path, and nobody would see it."""
    ours, another = owned / "a", place / "another"
    ours.write_text("mine")
    another.mkdir()

    class Swapped(UnsafeNoSandbox):
        async def run(self, job: Job, profile: Profile, output: Any = None) -> Result:
            owned.rename(place / "aside")
            another.rename(owned)
            try:
                return await super().run(job, profile, output)
            finally:
                owned.rename(another)
                (place / "aside").rename(owned)

    for kind in ("runc", "runsc"):
        sandbox = Swapped()
        way = Way(runtime(state / kind, sandbox, profile=Profile(runtime=kind)), owned, "echo x > new")
        way.plan = await way.runtime.assess(way.action, way.context)
        assert way.plan.resolved["mode"] == ("direct" if kind == "runc" else "copy")
        await way.runtime.prepare(way.plan, way.context)
        await way.runtime.execute(way.plan, way.context)
        assert not (another / "new").exists(), "what was put in its place wasn't worked on"
        assert (tuple(sandbox.jobs[0].argv[:3]) == SAME_FOLDER) == (kind == "runc")


@pytest.mark.parametrize("which", ["owned", "roots"])
async def test_a_change_between_snapshot_and_run_is_a_conflict(
    state: Path, which: str, request: pytest.FixtureRequest
) -> None:
    folder = Path(request.getfixturevalue(which))
    sandbox = UnsafeNoSandbox()
    way = await Way(runtime(state, sandbox), folder).prepared()
    (folder / "theirs").write_text("x")
    assert way.plan is not None
    with pytest.raises(Conflict) as caught:
        await way.runtime.execute(way.plan, way.context)
    assert "created theirs" in caught.value.difference and not sandbox.jobs


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are worked on as a copy")
async def test_a_change_while_the_copy_is_worked_on_is_a_conflict(state: Path, roots: Path) -> None:
    (roots / "a").write_text("a")

    def deed(copy: Path) -> None:
        (copy / "mine").write_text("m")
        (roots / "theirs").write_text("t")

    with pytest.raises(Conflict):
        await Way(runtime(state, UnsafeNoSandbox(deed)), roots).do()
    assert sorted(path.name for path in roots.iterdir()) == ["a", "theirs"]
    assert not list((state / "snapshots" / "work").iterdir())


async def test_a_sandbox_that_does_not_start_leaves_everything(state: Path, owned: Path) -> None:
    way = Way(runtime(state, UnsafeNoSandbox(fail=SandboxFailed("no engine"))), owned)
    with pytest.raises(Unavailable, match="no engine"):
        await way.do()
    assert way.plan is not None
    settled = await way.runtime.settle(way.plan, way.context)
    assert settled.outcome is not None and not settled.outcome.touched


async def test_more_than_the_bounds_is_left_or_not_applied(state: Path, request: pytest.FixtureRequest) -> None:
    for which in ("owned", "roots"):
        folder = Path(request.getfixturevalue(which))
        (folder / "kept").write_text("kept")
        (folder / "sub").mkdir()
        if os.geteuid() == 0:
            for path in folder.iterdir():
                os.chown(path, folder.stat().st_uid, folder.stat().st_gid)
        before = photo(folder)
        program = (
            "import os\nopen('kept','w').write('x' * 900)\nos.rmdir('sub')\n"
            "for n in range(1500): open(f'f{n}', 'w').close()\n"
            "for n in range(400):\n    os.mkdir('d'); os.chdir('d')\n"
        )
        way = Way(runtime(state, bounds=Bounds(files=100)), folder, program, language="python", action_id=which)
        outcome = await way.do()
        direct = way.plan is not None and way.plan.resolved["mode"] == "direct"
        assert not outcome.ok and outcome.touched == direct, outcome.summary
        if direct:
            assert (folder / "kept").read_text() == "x" * 900
            assert (await way.revert("undo")).ok
        assert without_left(folder) == before
        for left in folder.glob(".goex-left-*"):
            assert len(list(left.glob("f*"))) == 1500
            subprocess.run(["rm", "-r", left], check=True)


async def test_an_outcome_holds_the_real_path_and_a_question_tells_spellings_apart(state: Path, owned: Path) -> None:
    """An agent looks for the file by what its outcome says; the marks are for the person."""
    name = "re\u0301sume\u0301.pdf"
    way = Way(runtime(state), owned, f"touch '{name}'")
    outcome = await way.do()
    assert outcome.ok and f"created {name}" in outcome.changes
    before, after = (
        Manifest(entries=entries, taken=0, settled=True)
        for entries in ({}, {name.encode(): Entry("f", 0o600, 0, 0, 0)})
    )
    assert told(before, after) == ["created r\u00e9sum\u00e9.pdf \\u{decomposed}"]


def test_too_large_is_bad_input() -> None:
    assert issubclass(TooLarge, InvalidInput)


@pytest.mark.parametrize(
    ("expire", "writeback", "soon"),
    [("3000", "500", True), ("6000", "6000", False), ("3000", "6000", False), ("3000", "0", False), ("", "500", False)],
)
def test_change_times_count_where_what_was_written_is_soon_on_the_disk(
    owned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expire: str, writeback: str, soon: bool
) -> None:
    """Until then a program may write through a mapping without moving one. Tools that save power wait for minutes."""
    (tmp_path / "dirty_expire_centisecs").write_text(expire)
    (tmp_path / "dirty_writeback_centisecs").write_text(writeback)
    kept = keeps_change_times(str(owned))
    monkeypatch.setattr(folders, "_VM", tmp_path)
    assert resolve(str(owned)).settles == keeps_change_times(str(owned)) == (kept and soon)
