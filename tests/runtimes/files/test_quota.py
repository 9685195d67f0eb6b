"""How much room snapshots may take: what goes for it, what never does, and a disk that has little more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from policies.actions import Revert
from policies.errors import GoexError, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.files.quota import Full, Quota
from runtimes.files.snapshot import Repository
from runtimes.files.workers import FolderLocks
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo

MB = 10**6


def _into(heard: list[object]) -> Callable[[str, JsonObject], None]:
    def note(kind: str, facts: JsonObject) -> None:
        heard.append((kind, facts.get("action")))

    return note


def used(state: Path) -> int:
    return Quota(snapshots=state / "snapshots", most=0).used()


@pytest.mark.promise(66)
async def test_beyond_the_quota_nothing_runs_and_no_undo_is_lost(owned: Path, state: Path) -> None:
    made = runtime(state, quota=3 * MB)
    (owned / "a").write_bytes(os.urandom(2 * MB))
    before = photo(owned)
    first = Way(made, owned, "mv a b", action_id="a1")
    assert (await first.do()).ok
    after = photo(owned)
    (owned / "c").write_bytes(os.urandom(2 * MB))
    now = photo(owned)
    second = Way(made, owned, "rm b c", action_id="a2")
    with pytest.raises(Full, match=r"Snapshots may take 3\.0 MB") as refused:
        await second.do()
    assert "goex commit" in refused.value.next_step
    assert photo(owned) == now
    (owned / "c").unlink()
    os.utime(owned, ns=(0, after[b""][3]))  # type: ignore[arg-type]
    assert (await first.revert("undo")).ok
    assert photo(owned) == before
    assert used(state) < 3 * MB


@pytest.mark.promise(66)
async def test_what_is_undone_makes_room_the_oldest_first_and_the_journal_hears_of_it(place: Path, state: Path) -> None:
    made = runtime(state, quota=5 * MB)
    ways = []
    for number in range(3):
        folder = place / f"f{number}"
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(2 * MB))
        way = Way(made, folder, "rm a", action_id=f"a{number}")
        heard: list[object] = []
        plain = context(f"a{number}")
        way.context = type(plain)(
            **{name: getattr(plain, name) for name in plain.__slots__ if name != "note"},
            note=_into(heard),
        )
        assert (await way.do()).ok
        dropped = [fact for fact in heard if fact[0] == "snapshots-dropped"]  # type: ignore[index]
        assert dropped == ([("snapshots-dropped", "a0")] if number == 2 else [])
        if number < 2:
            assert (await way.revert("undo")).ok
        ways.append(way)
    assert used(state) < 5 * MB
    with pytest.raises(Unsupported, match="made room"):
        await ways[0].revert("redo")
    assert (await ways[1].revert("redo")).ok
    assert not (place / "f1" / "a").exists()
    assert (await ways[2].revert("undo")).ok


async def test_a_commit_gives_room_and_what_a_program_leaves_may_go_beyond(owned: Path, state: Path) -> None:
    made = runtime(state, quota=3 * MB)
    before = photo(owned)
    first = Way(made, owned, "head -c 4000000 /dev/urandom > big", action_id="a1")
    assert (await first.do()).ok, "an action that has run is recorded, so that it can be undone"
    after = photo(owned)
    assert (await first.revert("undo")).ok
    assert photo(owned) == before
    assert (await first.revert("redo")).ok
    second = Way(made, owned, "echo x > small", action_id="a2")
    with pytest.raises(Full):
        await second.do()
    assert photo(owned) == after
    await first.revert("commit")
    third = Way(runtime(state, quota=9 * MB), owned, "echo x > small", action_id="a3")
    assert (await third.do()).ok


async def test_what_was_refused_leaves_nothing_behind(owned: Path, state: Path) -> None:
    made = runtime(state, quota=3 * MB, large=MB)
    (owned / "large").write_bytes(os.urandom(2 * MB))
    (owned / "larger").write_bytes(os.urandom(2 * MB))
    with pytest.raises(Full):
        await Way(made, owned, "rm large").do()
    assert used(state) < MB


@pytest.fixture
def tight(place: Path) -> Iterator[Path]:
    """A file system of 24 MB."""
    made = place / "tight"
    made.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(made)]).returncode:
        pytest.skip("may not mount here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


async def test_a_collection_needs_little_more_than_what_there_is(tight: Path, owned: Path) -> None:
    """Snapshots of 16 MB, of which all but 3 MB are given up, on a disk that has 6 MB left."""
    made = runtime(tight / "state")
    ways = []
    for number in range(8):
        (owned / f"kept{number}").write_bytes(os.urandom(400_000))
        (owned / f"gone{number}").write_bytes(os.urandom(1_600_000))
        way = Way(made, owned, f"rm gone{number}", action_id=f"a{number}")
        assert (await way.do()).ok
        ways.append(way)
    filler = tight / "filler"
    at = os.statvfs(tight)
    filler.write_bytes(b"x" * (at.f_bavail * at.f_frsize - 6 * MB))
    after = photo(owned)
    for way in ways[:-1]:
        await way.revert("commit")
    assert used(tight / "state") < 6 * MB
    assert (await ways[-1].revert("undo")).ok
    assert (await ways[-1].revert("redo")).ok
    assert photo(owned) == after


@pytest.mark.promise(66)
async def test_a_collection_that_finds_no_room_loses_nothing(tight: Path, owned: Path) -> None:
    made = runtime(tight / "state")
    (owned / "kept").write_bytes(os.urandom(5 * MB))
    (owned / "gone").write_bytes(os.urandom(6 * MB))
    first = Way(made, owned, "rm gone; echo x > y", action_id="a1")
    assert (await first.do()).ok
    second = Way(made, owned, "rm kept", action_id="a2")
    between = photo(owned)
    assert (await second.do()).ok
    at = os.statvfs(tight)
    filler = tight / "filler"
    filler.write_bytes(b"x" * (at.f_bavail * at.f_frsize - MB))
    taken = used(tight / "state")
    assert (await first.revert("commit")).ok, "it is given up all the same"
    assert used(tight / "state") >= taken - MB
    assert (await second.revert("undo")).ok
    assert photo(owned) == between
    filler.unlink()
    third = Way(made, owned, "true", action_id="a3")
    assert (await third.do()).ok
    await third.revert("commit")
    assert used(tight / "state") < 7 * MB
    assert (await second.revert("redo")).ok


@pytest.mark.promise(66)
async def test_no_redo_goes_where_all_of_them_would_not_do(place: Path, state: Path) -> None:
    made = runtime(state, quota=6 * MB)
    ways = []
    for number in range(3):
        folder = place / f"u{number}"
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(MB // 2))
        way = Way(made, folder, "rm a", action_id=f"u{number}")
        assert (await way.do()).ok
        assert (await way.revert("undo")).ok
        ways.append(way)
    large = place / "large"
    large.mkdir()
    os.chown(large, 1000, 1000)
    for number in range(7):
        (large / str(number)).write_bytes(os.urandom(MB))
    with pytest.raises(Full):
        await Way(made, large, "true", action_id="a1").do()
    for way in ways:
        assert (await way.revert("redo")).ok


@pytest.mark.promise(66)
@pytest.mark.parametrize("large", [0, MB], ids=["packed", "large"])
async def test_what_is_kept_already_needs_no_room(owned: Path, place: Path, state: Path, large: int) -> None:
    made = runtime(state, quota=12 * MB, **({"large": large} if large else {}))
    other = place / "other"
    other.mkdir()
    os.chown(other, 1000, 1000)
    undone = Way(made, other, "echo t > t", action_id="a0")
    assert (await undone.do()).ok
    assert (await undone.revert("undo")).ok
    (owned / "big").write_bytes(os.urandom(9 * MB))
    assert (await Way(made, owned, "echo y > y", action_id="a1").do()).ok
    os.utime(owned / "big", ns=(0, 0))  # it is read again
    assert (await Way(made, owned, "echo z > z", action_id="a2").do()).ok
    assert used(state) < 10 * MB
    assert (await undone.revert("redo")).ok


@pytest.mark.promise(66)
async def test_a_redo_that_was_refused_is_still_one_that_may_go(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(state)
    way = Way(made, owned, "echo y > b", action_id="a1")
    assert (await way.do()).ok
    after = photo(owned)
    assert (await way.revert("undo")).ok
    redo = Revert(verb="redo", target="a1")
    assert way.plan is not None
    plan = await made.assess_revert(redo, way.plan, way.context)

    async def refused(match: str) -> None:
        assert way.plan is not None
        with pytest.raises(GoexError, match=match):
            await made.execute_revert(redo, plan, way.plan, way.context, context("r1"))
        found = Quota(snapshots=state / "snapshots", most=0).undone()
        assert [each.action for each in found] == ["a1"]

    (owned / "b").write_text("somebody's own")
    await refused("Someone changed")
    (owned / "b").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "missing", lambda self, oids: set(oids))
        await refused("lacks contents")
    assert (await way.revert("redo")).ok
    assert photo(owned).keys() == after.keys()
    assert Quota(snapshots=state / "snapshots", most=0).undone() == []


async def test_a_preview_that_has_no_room_is_not_kept_and_says_so(owned: Path, state: Path) -> None:
    made = runtime(state, quota=3 * MB)
    way = Way(made, owned, "head -c 4000000 /dev/urandom > big")
    plan = await made.assess(way.action, way.context)
    found = await made.dry_run(plan, replace(way.context, keep=True))
    assert found.ok and not found.preview
    assert any(line.kind == "warning" and "isn't kept" in line.text for line in found.lines)
    assert used(state) < MB


async def test_previews_that_are_over_make_room(owned: Path, place: Path, state: Path) -> None:
    made = runtime(state, quota=5 * MB)
    seen = place / "seen"
    seen.mkdir()
    os.chown(seen, 1000, 1000)
    way = Way(made, seen, "head -c 3000000 /dev/urandom > big", action_id="d1")
    plan = await made.assess(way.action, way.context)
    found = await made.dry_run(plan, replace(way.context, keep=True))
    assert found.preview
    (owned / "a").write_bytes(os.urandom(3 * MB))
    with pytest.raises(Full):
        await Way(made, owned, "rm a", action_id="a1").do()
    (note,) = (state / "snapshots").glob("*.git/previews/*")
    os.utime(note, (0, 0))
    assert (await Way(made, owned, "rm a", action_id="a2").do()).ok
    assert not note.exists()


@pytest.mark.promise(66)
async def test_a_redo_whose_snapshots_made_room_while_it_waited_deletes_nothing(owned: Path, state: Path) -> None:
    made = runtime(state)
    assert (await Way(made, owned, "echo y > y", action_id="a0").do()).ok
    (owned / "x").write_text("the only copy")
    way = Way(made, owned, "rm x", action_id="a1")
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    now = photo(owned)
    redo = Revert(verb="redo", target="a1")
    assert way.plan is not None
    plan = await made.assess_revert(redo, way.plan, way.context)
    repository = made._repository(str(owned))
    repository.drop("a1")
    repository.collect()
    with pytest.raises(Unsupported, match="made room"):
        await made.execute_revert(redo, plan, way.plan, way.context, context("r1"))
    assert photo(owned) == now


@pytest.mark.promise(66)
async def test_what_is_done_again_while_its_folder_is_asked_for_keeps_its_snapshots(
    owned: Path, place: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(state, quota=3 * MB)
    other = place / "other"
    other.mkdir()
    os.chown(other, 1000, 1000)
    (other / "a").write_bytes(os.urandom(2 * MB))
    before = photo(other)
    way = Way(made, other, "rm a", action_id="u1")
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    hold_now = FolderLocks.hold_now

    @asynccontextmanager
    async def late(self: FolderLocks, path: str) -> AsyncIterator[bool]:
        assert (await way.revert("redo")).ok
        async with hold_now(self, path) as held:
            yield held

    monkeypatch.setattr(FolderLocks, "hold_now", late)
    (owned / "a").write_bytes(os.urandom(2 * MB))
    with pytest.raises(Full):
        await Way(made, owned, "rm a", action_id="a1").do()
    assert (await way.revert("undo")).ok
    assert photo(other) == before


@pytest.mark.promise(66)
async def test_of_several_folders_all_make_room_or_none(owned: Path, place: Path, state: Path) -> None:
    made = runtime(state, quota=5 * MB)
    folders = [place / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(2 * MB))
    way = Way(made, folders[0], "rm one/a two/a", action_id="a9")
    way.action = replace(way.action, more=(str(folders[1]),))
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    (owned / "a").write_bytes(os.urandom(2 * MB))
    async with made._locks.hold(str(folders[1])):
        with pytest.raises(Full):
            await Way(made, owned, "rm a", action_id="a2").do()
    assert used(state) > 4 * MB
    assert (await Way(made, owned, "rm a", action_id="a3").do()).ok
    assert used(state) < 3 * MB
    with pytest.raises(Unsupported, match="made room"):
        await way.revert("redo")


@pytest.mark.promise(66)
async def test_no_redo_goes_where_more_is_kept_than_may_be(owned: Path, place: Path, state: Path) -> None:
    made = runtime(state, quota=2 * MB)
    ways = {}
    for name, size in (("undone", MB // 2), ("asked", 1)):
        folder = place / name
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(size))
        ways[name] = Way(made, folder, "rm a", action_id=name)
    assert (await ways["undone"].do()).ok
    assert (await ways["undone"].revert("undo")).ok
    assert (await Way(made, owned, "head -c 4000000 /dev/urandom > big", action_id="a1").do()).ok
    with pytest.raises(Full):
        await ways["asked"].do()
    assert (await ways["undone"].revert("redo")).ok


async def two_undone(place: Path, state: Path) -> list[Path]:
    """The repositories of two folders, in each of which an action was undone; together they take most of the quota."""
    made = runtime(state, quota=5 * MB)
    repositories = []
    for name in ("one", "two"):
        folder = place / name
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(2 * MB))
        way = Way(made, folder, "rm a", action_id=name)
        assert (await way.do()).ok
        assert (await way.revert("undo")).ok
        repositories.append(made._repository(str(folder)).path)
    return repositories


@pytest.mark.promise(66)
@pytest.mark.parametrize("how", ["pack", "config", "mark"])
async def test_a_damaged_repository_keeps_no_other_from_making_room(
    owned: Path, place: Path, state: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    repositories = await two_undone(place, state)
    match how:
        case "pack":
            for pack in repositories[0].glob("objects/pack/*.idx"):
                pack.unlink()
        case "config":
            (repositories[0] / "config").write_text("[core]\n\tfsmonitor = evil\n")
        case "mark":
            (repositories[0] / "undone" / "one").write_bytes(b"\xff\n\xff")
    made = runtime(state, quota=5 * MB)
    (owned / "a").write_bytes(os.urandom(2 * MB))
    for number in range(2):
        way = Way(made, owned, "true", action_id=f"a{number}")
        assert (await way.do()).ok
        (owned / "b").write_bytes(os.urandom(MB // 8))
    assert not any(repositories[1].glob("refs/goex/two/*")), "it made room"
    said = [each.getMessage() for each in caplog.records if "passed over" in each.getMessage()]
    assert all(each.endswith("passed over") for each in said), "a library's words may hold what it read"
    assert len(said) == (how != "mark") and all(str(repositories[0]) in each for each in said)


@pytest.mark.sampled(2)
@pytest.mark.promise(66)
@pytest.mark.parametrize("text", [b"one\n/place/o\0\0\0", b"one\nrelative", b"../../x\n/tmp", b"one\n/" + b"x" * 5000])
async def test_a_damaged_mark_or_preview_keeps_no_action_from_its_room(
    owned: Path, place: Path, state: Path, text: bytes
) -> None:
    repositories = await two_undone(place, state)
    (repositories[0] / "undone" / "one").write_bytes(text)
    (repositories[0] / "previews").mkdir()
    for number, noted in enumerate((b'{"folder":"/a\\u0000b"}', b'{"folder":["/a"]}', b'["folder"]')):
        note = repositories[0] / "previews" / f"d{number}"
        note.write_bytes(noted)
        os.utime(note, (0, 0))
    (owned / "a").write_bytes(os.urandom(2 * MB))
    assert (await Way(runtime(state, quota=5 * MB), owned, "true", action_id="a9").do()).ok
    assert not any(repositories[1].glob("refs/goex/two/*")), "it made room"


def packs(state: Path) -> set[Path]:
    return set(state.rglob("*.pack"))


@pytest.mark.promise(66)
async def test_damage_that_only_a_collection_meets_has_all_that_go_from_there_go_and_told(
    owned: Path, place: Path, state: Path
) -> None:
    """Of two undone actions the younger one's manifest is lost: nothing reads it but the collection after the older
    one went."""
    made = runtime(state, quota=5 * MB)
    folder = place / "one"
    folder.mkdir()
    os.chown(folder, 1000, 1000)
    before: set[Path] = set()
    for name in ("u1", "u2"):
        before = packs(state)
        (folder / name).write_bytes(os.urandom(MB))
        way = Way(made, folder, f"rm {name}", action_id=name)
        assert (await way.do()).ok
        assert (await way.revert("undo")).ok
    for pack in packs(state) - before:
        for suffix in (".idx", ".pack", ".rev"):
            pack.with_suffix(suffix).unlink(missing_ok=True)
    made = runtime(state, quota=5 * MB)  # which remembers nothing of it
    (owned / "a").write_bytes(os.urandom(4 * MB))
    told: list[object] = []
    way = Way(made, owned, "rm a", action_id="a1")
    way.context = replace(way.context, note=lambda kind, facts: told.append((kind, facts.get("action"))))
    assert (await way.do()).ok
    assert [each for each in told if each[0] == "snapshots-dropped"] == [  # type: ignore[index]
        ("snapshots-dropped", "u1"),
        ("snapshots-dropped", "u2"),
    ]


@pytest.mark.promise(66)
async def test_what_cannot_be_dropped_is_told_and_left_and_the_others_make_room(
    owned: Path, place: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(state, quota=5 * MB)
    for name in ("one", "two"):
        folder = place / name
        folder.mkdir()
        os.chown(folder, 1000, 1000)
        (folder / "a").write_bytes(os.urandom(2 * MB))
        way = Way(made, folder, "rm a", action_id=name)
        assert (await way.do()).ok
        assert (await way.revert("undo")).ok
    drop = Repository.drop

    def failing(self: Repository, action_id: str) -> None:
        if action_id == "one":
            raise OSError(5, "Input/output error")
        drop(self, action_id)

    monkeypatch.setattr(Repository, "drop", failing)
    told: list[object] = []
    (owned / "a").write_bytes(os.urandom(2 * MB))
    way = Way(made, owned, "rm a", action_id="a1")
    way.context = replace(way.context, note=lambda kind, facts: told.append(facts.get("action")))
    assert (await way.do()).ok
    assert {"one", "two"} <= set(told)
    (owned / "b").write_bytes(os.urandom(4 * MB))
    with pytest.raises(Full):
        await Way(made, owned, "rm b", action_id="a2").do()
