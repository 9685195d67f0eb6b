"""One folder by two paths: bind mounts make no two of it, neither for the locks nor for what may be worked on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goex.engine.timeline import meeting
from policies.actions import Files, Revert, other_paths_of
from policies.decisions import Deny, Request, decide
from policies.digest import digest
from policies.errors import InvalidInput, Unavailable
from policies.limits import Confinement
from policies.rules.book import RuleBook
from policies.rules.facts import Situation
from runtimes.files import folder as folders
from runtimes.files import location, plans, workers
from runtimes.files.folder import Folder, resolve
from runtimes.files.location import Location, Mount, locate
from runtimes.files.runtime import FilesRuntime
from runtimes.files.workers import FolderLocks
from tests.runtimes.files.desk import Way, runtime

Bind = Callable[[Path, Path], None]


@pytest.fixture
def bind(place: Path) -> Iterator[Bind]:
    """Mounts one folder at another, which is made."""
    made: list[Path] = []

    def mount(what: Path, at: Path) -> None:
        at.mkdir(parents=True)
        if os.geteuid() != 0 or subprocess.run(["mount", "--bind", str(what), str(at)], check=False).returncode:
            pytest.skip("may not mount here")
        made.append(at)

    yield mount
    for at in reversed(made):
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@pytest.fixture
def tree(place: Path) -> Path:
    """Folders in one another that belong to an ordinary user."""
    top = place / "top"
    (top / "middle" / "deep").mkdir(parents=True)
    for path in (top, top / "middle", top / "middle" / "deep"):
        os.chown(path, 1000 if os.geteuid() == 0 else -1, 1000 if os.geteuid() == 0 else -1)
    return top


def unmount(*at: str) -> None:
    for each in at:
        subprocess.run(["umount", each], check=True)


def remount(what: Path, *at: str) -> None:
    for each in at:
        subprocess.run(["mount", "--bind", str(what), each], check=True)


def several(made: FilesRuntime, *folders: Path) -> Way:
    way = Way(made, folders[0])
    more = tuple(str(folder) for folder in folders[1:])
    way.action = Files(folder=str(folders[0]), language="shell", program="true", more=more)
    return way


def pairs(place: Path, tree: Path, bind: Bind) -> list[tuple[Path, Path]]:
    """By whichever paths they are reached, these overlap."""
    same, inside, both = place / "same", place / "inside", place / "both"
    bind(tree, same)
    bind(tree / "middle", inside)
    bind(same / "middle", both)
    return [
        (tree, same),
        (tree, inside),
        (tree, inside / "deep"),
        (tree / "middle", inside),
        (tree / "middle" / "deep", inside),
        (tree / "middle" / "deep", inside / "deep"),
        (tree / "middle", same),
        (same, inside / "deep"),
        (same / "middle", inside),
        (both, inside),
        (both / "deep", tree),
    ]


@pytest.mark.promise(67)
async def test_one_folder_by_two_paths_is_no_two_folders(place: Path, state: Path, tree: Path, bind: Bind) -> None:
    made = runtime(state)
    other = place / "other"
    other.mkdir()
    os.chown(other, 1000, 1000)
    for one, two in pairs(place, tree, bind):
        for order in ((one, other, two), (two, one, other)):
            with pytest.raises(InvalidInput, match="lie in one another, or are one folder"):
                await several(made, *order).prepared()
    await several(made, place / "inside", other).prepared()


@pytest.mark.promise(67)
async def test_what_became_one_folder_since_runs_nothing(place: Path, state: Path, tree: Path, bind: Bind) -> None:
    """Both paths still lead to the folders that were looked at, but one of these lies in the other by now."""
    made = runtime(state)
    other = place / "other"
    other.mkdir()
    os.chown(other, 1000, 1000)
    way = await several(made, tree, other).prepared()
    assert way.plan is not None
    other.rename(tree / "middle" / "deep" / "other")
    bind(tree / "middle" / "deep" / "other", other)
    with pytest.raises(InvalidInput, match="lie in one another"):
        await made.execute(way.plan, way.context)
    assert not made._sandbox.jobs  # type: ignore[attr-defined]


@pytest.mark.promise(16)
async def test_the_lock_is_the_folders_by_whichever_path(place: Path, tree: Path, bind: Bind) -> None:
    locks = FolderLocks()
    for one, two in pairs(place, tree, bind):
        for held, wanted in ((one, two), (two, one)):
            async with locks.hold(str(held)), locks.hold_now(str(wanted)) as got:
                assert not got, (held, wanted)
    async with AsyncExitStack() as held:
        await held.enter_async_context(locks.hold(str(place / "inside" / "deep")))
        (tree / "beside").mkdir()
        assert await held.enter_async_context(locks.hold_now(str(tree / "beside")))
        assert await held.enter_async_context(locks.hold_now(str(place / "gone")))


@pytest.mark.promise(16)
async def test_an_action_waits_for_one_that_reaches_its_folder_otherwise(
    place: Path, state: Path, tree: Path, bind: Bind
) -> None:
    inside = place / "inside"
    bind(tree / "middle", inside)
    made = runtime(state)
    way = Way(made, inside, "touch made")
    async with made._locks.hold(str(tree)):
        doing = asyncio.create_task(way.do())
        while not made._locks._waiting:  # type: ignore[union-attr]
            assert not doing.done()
            await asyncio.sleep(0.01)
        assert not (inside / "made").exists()
    assert (await doing).ok
    assert (tree / "middle" / "made").exists()


async def test_what_is_refused_is_refused_by_another_path_too(
    place: Path, state: Path, tree: Path, bind: Bind, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = state / "snapshots"
    snapshots.mkdir()
    monkeypatch.setenv("HOME", str(tree / "middle"))
    for what, name in ((state, "state"), (snapshots, "own"), (Path("/etc"), "etc"), (Path("/"), "all")):
        bind(what, place / name)
    bind(tree / "middle", place / "home")
    names = ("state", "own", "etc", "etc/ssl", "all", "all/etc", "home")
    for path in (*(place / name for name in names), place / "all" / str(snapshots)[1:]):
        with pytest.raises(InvalidInput, match=r"doesn't work on .*: by another path it is"):
            resolve(str(path), protected=[snapshots])
    for path in (place / "home" / "deep", place / "all" / str(tree)[1:]):
        assert resolve(str(path), protected=[snapshots]).inode == path.stat().st_ino


async def test_a_lock_on_what_cannot_be_found_out_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(workers, "locate", failing)
    locks = FolderLocks()
    with pytest.raises(Unavailable):
        async with locks.hold("/p/a"):
            raise AssertionError
    async with locks.hold_now("/p/a") as got:
        assert not got
    assert not locks._held and not locks._waiting


@pytest.mark.promise(16)
@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_a_lock_whose_folder_is_not_found_out_is_in_nobodys_way(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    answer = threading.Event()

    def looked_up(path: str) -> Location:
        if path == "/p":
            assert answer.wait(300)
            raise OSError(5, "Input/output error")
        return Location(path=path)

    monkeypatch.setattr(workers, "locate", looked_up)
    locks = FolderLocks()
    got = asyncio.Event()

    async def hold(path: str) -> None:
        async with locks.hold(path):
            got.set()

    whole = asyncio.create_task(hold("/p"))
    await asyncio.sleep(0)
    part = asyncio.create_task(hold("/p/a"))
    async with locks.hold("/q"):  # which doesn't wait for it
        assert not got.is_set() and len(locks._waiting) == 2
        if how == "is cancelled":
            whole.cancel()
        answer.set()
        with pytest.raises(Unavailable if how == "fails" else asyncio.CancelledError):
            await whole
        await asyncio.wait_for(part, 300)
    assert got.is_set() and not locks._held and not locks._waiting


def test_another_spelling_of_a_name_is_the_same_folder() -> None:
    """As where a file system takes capitals for small letters: the kernel says which folder it is, not the path."""
    top = Location(path="/p/Top", ids=((1, 20), (1, 2)), device="8:1", within="/Top")
    same = Location(path="/p/top", ids=((1, 20), (1, 2)), device="8:1", within="/top")
    inside = Location(path="/p/top/in", ids=((1, 30), (1, 20), (1, 2)), device="8:1", within="/top/in")
    beside = Location(path="/p/beside", ids=((1, 40), (1, 2)), device="8:1", within="/beside")
    elsewhere = Location(path="/q", ids=((2, 20), (1, 2)), device="8:2", within="/Top")
    for one in (top, same):
        assert one.overlaps(inside) and inside.overlaps(one) and one.overlaps(top)
        assert not any(one.overlaps(other) or other.overlaps(one) for other in (beside, elsewhere))


def test_of_a_folder_that_is_not_there_the_path_is_known(place: Path) -> None:
    (place / "a").mkdir()
    gone, there, within = locate(str(place / "b")), locate(str(place / "a")), locate(str(place / "b" / "c"))
    assert gone.overlaps(within) and within.overlaps(gone) and gone.overlaps(gone)
    assert not gone.overlaps(there) and not there.overlaps(gone)
    assert not there.overlaps(locate(str(place.parent / (place.name + "b"))))


@pytest.mark.promise(15)
async def test_a_mount_in_an_allowed_folder_leads_out_of_no_confinement(
    place: Path, state: Path, tree: Path, bind: Bind
) -> None:
    """`allowed` is itself mounted from elsewhere, which is its owner's doing; what is mounted in it isn't within it."""
    allowed, kept = place / "allowed", place / "kept"
    (kept / "own").mkdir(parents=True)
    for path in (kept, kept / "own"):
        os.chown(path, 1000, 1000)
    bind(kept, allowed)
    bind(tree / "middle", allowed / "in")
    bind(tree, place / "another")

    async def refused(*folders: Path, within: tuple[Path, ...] = (allowed,)) -> bool:
        way = several(runtime(state), *folders) if folders[1:] else Way(runtime(state), folders[0])
        plan = await way.runtime.assess(way.action, way.context)
        confinement = Confinement(folders=tuple(map(str, within)))
        return bool(confinement.refusal(plan, agent="bot", situation=Situation()))

    assert await refused(allowed / "in")
    assert await refused(allowed / "in" / "deep")
    assert await refused(allowed / "own", allowed / "in")
    assert await refused(allowed / "in", within=(allowed, tree)), "it is in `another` as well"
    assert not await refused(allowed / "in", within=(allowed, tree, place / "another", kept))
    assert not await refused(allowed / "own")
    assert not await refused(tree / "middle", within=(tree,))


@pytest.mark.promise(13)
async def test_what_a_rule_forbids_by_one_path_it_forbids_by_another(
    place: Path, state: Path, tree: Path, bind: Bind
) -> None:
    bind(tree / "middle", place / "other")
    book = RuleBook.of({"a.cedar": f'@id("no") forbid (principal, action, resource in Folder::"{tree}");'})
    for folder, forbidden in ((place / "other" / "deep", True), (tree / "middle", True), (place / "fine", False)):
        folder.mkdir(exist_ok=True)
        os.chown(folder, 1000, 1000)
        way = Way(runtime(state), folder)
        plan = await way.runtime.assess(way.action, way.context)
        asked = Request(agent="bot", session="s", digest="d", plan=plan)
        assert isinstance(decide(asked, (), book, datetime(2026, 1, 1, tzinfo=UTC)), Deny) == forbidden


async def test_a_folder_that_alone_is_not_forbidden_is_so_where_all_is_mounted_again(
    place: Path, state: Path, tree: Path, bind: Bind
) -> None:
    kept = place / "kept"
    kept.mkdir()
    os.chown(kept, 1000, 1000)
    bind(tree, place / "again")
    bind(kept, tree / "middle" / "in")
    rule = f'@id("only") forbid (principal, action, resource) unless {{ resource in Folder::"{tree / "middle"}" }};'
    book = RuleBook.of({"a.cedar": rule})
    for folder, forbidden in (
        (tree / "middle" / "deep", False),
        (tree / "middle" / "in", True),
        (place / "again" / "middle" / "deep", True),
    ):
        way = Way(runtime(state), folder)
        plan = await way.runtime.assess(way.action, way.context)
        asked = Request(agent="bot", session="s", digest="d", plan=plan)
        assert isinstance(decide(asked, (), book, datetime(2026, 1, 1, tzinfo=UTC)), Deny) == forbidden


@pytest.mark.parametrize(("name", "said"), [(b"m\xe9dia", "m\\xe9dia"), (b"m\rdia", "m\rdia")])
async def test_a_mount_whose_name_is_not_unicode_or_no_line_is_a_path_as_any(
    place: Path, state: Path, tree: Path, bind: Bind, name: bytes, said: str
) -> None:
    at = place / "media" / os.fsdecode(name)
    bind(tree, at)
    way = Way(runtime(state), tree / "middle")
    plan = await way.runtime.assess(way.action, way.context)
    assert other_paths_of(plan, str(tree / "middle"))[1] == (f"{place}/media/{said}/middle",)
    assert digest(plan, agent="bot") and plan.lines[0].endswith("dia/middle, too")
    asked = Request(agent="bot", session="s", digest="d", plan=plan)
    for within, forbidden in ((place / "media", True), (place / "other", False)):
        book = RuleBook.of({"a.cedar": f'@id("no") forbid (principal, action, resource in Folder::"{within}");'})
        assert isinstance(decide(asked, (), book, datetime(2026, 1, 1, tzinfo=UTC)), Deny) == forbidden
    for within, refused in ((tree, False), (place / "media", True)):  # of which it lies in the first, on its own mount
        confinement = Confinement(folders=(str(within),))
        assert bool(confinement.refusal(plan, agent="bot", situation=Situation())) == refused
    inner = Way(runtime(state), place / "top" / "middle" / "in")
    bind(at / "middle" / "deep", place / "top" / "middle" / "in")
    plan = await inner.runtime.assess(inner.action, inner.context)
    confinement = Confinement(folders=(str(tree / "middle" / "in"), str(tree / "middle" / "deep")))
    assert digest(plan, agent="bot")
    assert not confinement.refusal(plan, agent="bot", situation=Situation())
    confinement = Confinement(folders=(str(tree / "middle"),))
    assert confinement.refusal(plan, agent="bot", situation=Situation()), "it is in the mount of that name, too"


def test_the_table_tells_which_mount_is_over_which(place: Path) -> None:
    def there(number: int, on: int, point: str, root: str = "/", device: str = "8:1", kind: str = "ext4") -> Mount:
        made = {"device": device, "root": root, "point": point, "kind": kind, "options": "rw"}
        return Mount(id=str(number), parent=str(on), **made)

    top, inner = there(10, 1, "/"), there(11, 10, "/a/b", root="/kept")
    for mounts, path, told in (
        ((top,), "/kept/x", ("/", ())),
        ((top, inner), "/kept/x", ("/", ("/a/b/x",))),
        ((top, inner), "/a/b/x", ("/a/b", ("/kept/x",))),
        ((top, inner, there(12, 10, "/a", device="8:2")), "/kept/x", ("/", ())),
        ((top, inner, there(12, 10, "/a", device="8:2")), "/a/b/x", ("/a", ())),
        ((top, inner, there(12, 11, "/a/b", device="8:2")), "/kept/x", ("/", ())),
        ((there(2, 1, "/", device="0:2"), there(10, 2, "/"), inner), "/a/b/x", ("/a/b", ("/kept/x",))),
    ):
        for order in (mounts, mounts[::-1]):
            assert location.elsewhere(path, {each.id: each for each in order}) == told
    with pytest.raises(OSError, match="Stale"):
        location.elsewhere("/a/b", {"11": inner})
    ones = [there(number, 10, f"{place}/{number}", device="0:40", kind="nfs4") for number in (11, 12)]
    for one in ones:
        (Path(one.point) / "x").mkdir(parents=True)
    table = {each.id: each for each in (top, *ones)}
    assert location.elsewhere(f"{place}/11/x", table) == (f"{place}/11", ()), "both begin somewhere on the server"
    assert location.elsewhere(f"{place}/11/x", table, look=False) == (f"{place}/11", (f"{place}/12/x",))


async def test_what_two_actions_did_to_one_folder_by_two_paths_meets(
    place: Path, state: Path, tree: Path, bind: Bind
) -> None:
    bind(tree / "middle", place / "other")
    made = runtime(state)
    first, second = Way(made, tree, "touch x"), Way(made, place / "other" / "deep", "touch y", action_id="a2")
    found = []
    for way in (first, second):
        assert (await way.do()).ok
        assert way.plan is not None
        found.append(await made.footprint(way.plan, way.context))
    assert meeting(found[1].writes, found[0].writes)


@pytest.mark.parametrize("kind", ["nfs4", "virtiofs", "lustre", "glusterfs", "fuse.s3fs"])
@pytest.mark.parametrize("devices", [("0:40", "0:40"), ("0:40", "0:41")])
def test_two_mounts_from_a_network_may_be_one_folder(devices: tuple[str, str], kind: str) -> None:
    """Of both the kernel says that they begin at the root: here the first is a folder in what the second lies in."""

    def there(path: str, device: str, inode: int, mount: str, kind: str = kind) -> Location:
        point = "/" + path.split("/")[1]
        made = Mount(id=mount, device=device, root="/", point=point, kind=kind, options="rw")
        return Location(path=path, ids=((40, inode),), device=device, within=path[len(point) :] or "/", mount=made)

    outer, inner = there("/export/a", devices[0], 10, "1"), there("/inner/c", devices[1], 12, "2")
    assert not outer.overlaps(inner) and outer.may_overlap(inner) and inner.may_overlap(outer)
    assert not outer.may_overlap(there("/export/b", devices[0], 11, "1")), "by one mount the paths tell"
    assert not outer.may_overlap(there("/disk/c", "8:1", 12, "3", "ext4"))


@pytest.mark.promise(13)
@pytest.mark.parametrize("number", [1, 2])
async def test_a_revert_goes_by_where_the_folder_is_mounted_now(
    place: Path, state: Path, tree: Path, bind: Bind, number: int
) -> None:
    made = runtime(state)
    other = place / "other"
    other.mkdir()
    os.chown(other, 1000, 1000)
    bind(tree / "middle", place / "before")
    if number == 1:
        way = Way(made, tree / "middle", "touch made")
    else:
        way = several(made, tree / "middle", other)
        way.action = replace(way.action, program="touch middle/made other/made")
    assert (await way.do()).ok
    assert way.plan is not None
    assert other_paths_of(way.plan, str(tree / "middle"))[1] == (str(place / "before"),)
    bind(tree / "middle", place / "after")
    undo = Revert(verb="undo", target="a1")
    plan = await made.assess_revert(undo, way.plan, way.context)
    assert other_paths_of(plan, str(tree / "middle"))[1] == (str(place / "after"), str(place / "before"))
    assert str(place / "after") in plan.lines[0]
    held = [str(place / name) for name in ("after", "before")]
    unmount(*held)
    plan = await made.assess_revert(undo, way.plan, way.context)
    assert "also" not in plan.resolved
    remount(other, *held)  # for `bind`, which unmounts them


@pytest.mark.promise(15)
async def test_a_path_where_nobody_may_look_counts(
    place: Path, tree: Path, bind: Bind, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind(tree / "middle", place / "in")
    lstat, closed = os.lstat, {str(tree / "middle"): PermissionError(13, "Permission denied")}

    def refusing(path: str) -> os.stat_result:
        if str(path) in closed:
            raise closed[str(path)]
        return lstat(path)

    monkeypatch.setattr(os, "lstat", refusing)
    table = location.mounts()
    assert str(tree / "middle") in location.elsewhere(str(place / "in"), table)[1]


def test_what_is_mounted_is_read_once(place: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    mounts = location.mounts

    def counted() -> dict[str, Mount]:
        read.append(1)
        return mounts()

    for module in (location, folders):
        monkeypatch.setattr(module, "mounts", counted)
    resolve(str(tree), protected=[place / "own"])
    assert len(read) == 1


def test_of_many_paths_a_plan_says_a_few() -> None:
    also = tuple(f"/m/{number:03}" for number in range(500))
    found = Folder(path="/p", device=1, inode=2, uid=0, gid=0, mode=0o755, settles=True, mount="/p", also=also)
    line = plans._folder_line(found)
    assert len(line) < 400 and line.endswith(", and 492 more")
    assert plans._pinned(found)["also"][0]["paths"] == list(also)
