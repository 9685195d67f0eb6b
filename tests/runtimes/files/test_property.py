"""Random trees, random deeds: undo(do(x)) == x and redo(undo(do(x))) == do(x), by `photo`; and with deeds of others in
between, undo takes back what the action changed and nothing else, or touches nothing.

The deeds are done by this process in the folder (UnsafeNoSandbox), since what is asked here is whether any state can
be left and reached again, a few hundred times in seconds.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH114, PTH118, PTH123, PTH211

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.errors import Conflict
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import Photo, photo

_NAMES = st.sampled_from([b"a", b"b", b"A", b"\xff", b".git", b"n\nl", b"d/a", b"d/b", b"d", b"d/e/f", b"d/e", b"z"])
_BYTES = st.sampled_from([b"", b"x", b"y\r\n", b"\0" * 70_000, b"$Id$"])
_OWNERS = st.sampled_from([1000, 1001, 65534])
_DEED = st.one_of(
    st.tuples(st.just("write"), _NAMES, _BYTES),
    st.tuples(st.just("mkdir"), _NAMES, st.none()),
    st.tuples(st.just("remove"), _NAMES, st.none()),
    st.tuples(st.just("chmod"), _NAMES, st.sampled_from([0, 0o644, 0o755, 0o600, 0o1777, 0o500])),
    st.tuples(st.just("chown"), _NAMES, _OWNERS),
    st.tuples(st.just("symlink"), _NAMES, st.sampled_from([b"a", b"/etc", b"..", b"nowhere", b"\xfe"])),
    st.tuples(st.just("link"), _NAMES, _NAMES),
    st.tuples(st.just("rename"), _NAMES, _NAMES),
    st.tuples(st.just("fifo"), _NAMES, st.none()),
    st.tuples(st.just("touch"), _NAMES, st.sampled_from([0, 5, 1_234_567_890_123_456_789])),
    st.tuples(st.just("xattr"), _NAMES, st.sampled_from([b"", b"v\0w"])),
)


def act(top: Path, deeds: list[tuple[str, bytes, object]]) -> None:
    """Do what can be done; what can't is left out."""
    for verb, name, value in deeds:
        path = os.path.join(os.fsencode(top), name)
        with suppress(OSError):
            _act(verb, path, value, os.fsencode(top))


def _act(verb: str, path: bytes, value: object, top: bytes) -> None:
    if verb == "write":
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            return
        with open(path, "wb") as file:
            file.write(value)  # type: ignore[arg-type]
    elif verb == "mkdir":
        os.mkdir(path)
    elif verb == "remove":
        shutil.rmtree(path) if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink(path)
    elif verb == "chmod" and not os.path.islink(path):
        os.chmod(path, value)  # type: ignore[arg-type]
    elif verb == "chown" and os.geteuid() == 0:
        os.chown(path, value, value, follow_symlinks=False)  # type: ignore[arg-type]
    elif verb == "symlink":
        os.symlink(value, path)  # type: ignore[arg-type]
    elif verb == "link":
        os.link(path, os.path.join(top, value), follow_symlinks=False)  # type: ignore[arg-type]
    elif verb == "rename":
        os.rename(path, os.path.join(top, value))  # type: ignore[arg-type]
    elif verb == "fifo":
        os.mkfifo(path)
    elif verb == "touch":
        os.utime(path, ns=(0, value), follow_symlinks=False)  # type: ignore[arg-type]
    elif verb == "xattr" and not os.path.islink(path):
        os.setxattr(path, b"user.x", value)  # type: ignore[arg-type]


def test_undo_is_the_inverse_and_redo_the_inverse_of_that(thorough: bool) -> None:
    size = settings(max_examples=100 if thorough else 15, suppress_health_check=list(HealthCheck))
    size(inverse)()


@given(
    tree=st.lists(_DEED, max_size=20),
    deeds=st.lists(_DEED, max_size=20),
    theirs=st.lists(_DEED, max_size=3),
    owner=st.sampled_from([0, 1000]),
)
def inverse(
    tree: list[tuple[str, bytes, object]],
    deeds: list[tuple[str, bytes, object]],
    theirs: list[tuple[str, bytes, object]],
    owner: int,
) -> None:
    with tempfile.TemporaryDirectory(prefix="place-") as place, tempfile.TemporaryDirectory(prefix="state-") as state:
        folder = Path(place) / "folder"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, owner, owner)
        act(folder, tree)
        asyncio.run(_check(folder, Path(state), deeds, theirs))


async def _check(folder: Path, state: Path, deeds: list, theirs: list) -> None:  # type: ignore[type-arg]
    before = photo(folder)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: act(top, deeds))), folder)
    outcome = await way.do()
    after = photo(folder)
    assert outcome.ok, outcome.summary
    assert outcome.touched == (before != after)
    for goal, verb in ((before, "undo"), (after, "redo"), (before, "undo"), (after, "redo")):
        reverted = await way.revert(verb)
        assert reverted.ok, reverted.summary
        assert photo(folder) == goal
    act(folder, theirs)
    now = photo(folder)
    own = changed(before, after)
    try:
        assert (await way.revert("undo")).ok
    except Conflict as refused:
        assert refused.difference
        assert photo(folder) == now
        assert now != after and (own & changed(after, now) or homeless(own, before, now))
    else:
        reached = photo(folder)
        assert not own & changed(before, reached), "what the action changed is as it was"
        assert changed(now, reached) <= own, "what others did is as it is"


def changed(one: Photo, other: Photo) -> set[bytes]:
    """The paths that differ, with all names of their inodes; a folder's own time alone is no difference."""
    found = {path for path in one.keys() | other.keys() if _timeless(one.get(path)) != _timeless(other.get(path))}
    return found | {name for side in (one, other) for path in found & side.keys() for name in side[path][6]}  # type: ignore[attr-defined]


def _timeless(facts: tuple[object, ...] | None) -> tuple[object, ...] | None:
    if facts is None or not stat.S_ISDIR(facts[0]):  # type: ignore[arg-type]
        return facts
    return (*facts[:3], *facts[4:])


def homeless(own: set[bytes], before: Photo, now: Photo) -> bool:
    """Whether something would be in no folder if what is `own` were as before and the rest as now."""
    goal = {path: before[path] for path in own & before.keys()}
    goal |= {path: facts for path, facts in now.items() if path not in own}
    return any(
        path and not stat.S_ISDIR(goal.get(path.rpartition(b"/")[0], (0,))[0])  # type: ignore[arg-type]
        for path in goal
    )
