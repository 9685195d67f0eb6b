"""How much room snapshots may take: what goes for it, what never does, and a disk that has little more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policies.errors import Unsupported
from policies.jsonvalue import JsonObject
from runtimes.files.quota import Full, Quota
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
