"""Rights that others gain, compared with the kernel's own answers to users in every combination of groups."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtimes.files import handles, rights, workcopy
from runtimes.files.handles import opened_path
from runtimes.files.manifest import apart
from runtimes.files.tree import Bounds, Entry, Manifest, Walk, read_xattrs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")

OWNER, NAMED, OTHER = 4000, (4001, 4002), 4003
GROUPS, NEUTRAL = (4101, 4102, 4103), 4999
Principal = tuple[int, frozenset[int]]
PRINCIPALS: tuple[Principal, ...] = tuple(
    (uid, frozenset(groups))
    for uid in (*NAMED, OTHER)
    for count in range(len(GROUPS) + 1)
    for groups in combinations(GROUPS, count)
)


def acl(owner: int, group: int, other: int, mask: int | None, named: Mapping[tuple[int, int], int]) -> bytes:
    """An ACL; `named` has the bits of (tag, id)."""
    rows = [(1, owner, -1), (4, group, -1), (32, other, -1), *((tag, bits, id) for (tag, id), bits in named.items())]
    rows += [] if mask is None else [(16, mask, -1)]
    rows.sort(key=lambda row: (row[0], row[2]))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, id & 0xFFFFFFFF) for tag, bits, id in rows)


@dataclass(frozen=True)
class Closing:
    """Who may do what with a file or a folder."""

    mode: int
    gid: int = GROUPS[0]
    acl: bytes | None = None
    default: bytes | None = None

    def put(self, path: Path, uid: int = OWNER) -> None:
        os.chown(path, uid, self.gid)
        for name, value in ((rights.ACCESS, self.acl), (rights.DEFAULT, self.default)):
            if value is not None:
                os.setxattr(path, name, value)
            elif name in os.listxattr(path):
                os.removexattr(path, name)
        if self.acl is None:
            path.chmod(self.mode)

    @property
    def twice(self) -> bool:
        """Whether the owning group is named, too: to have two bits by two entries isn't to have both at once."""
        return any((tag, id) == (8, self.gid) for tag, _, id in struct.iter_unpack("<HHI", (self.acl or b"")[4:]))


_BITS = st.integers(0, 7)
_SUBJECT = st.one_of(
    st.tuples(st.just(2), st.sampled_from(NAMED)),
    st.tuples(st.just(8), st.sampled_from(GROUPS)),
)
_ACL = st.builds(
    lambda owner, group, other, mask, named: acl(owner, group, other, mask if named else None, named),
    *(_BITS, _BITS, _BITS, _BITS),
    st.dictionaries(_SUBJECT, _BITS, max_size=4),
)
_CLOSING = st.builds(Closing, st.integers(0, 0o777), st.sampled_from(GROUPS), st.none() | _ACL)
_OPEN = Closing(0o755)
_FOLDER = st.one_of(st.just(_OPEN), st.just(Closing(0o700)), st.builds(replace, _CLOSING, default=st.none() | _ACL))


def entry_of(path: Path) -> Entry:
    at = path.stat()
    kind = "d" if path.is_dir() else "f"
    return Entry(kind, stat.S_IMODE(at.st_mode), at.st_uid, at.st_gid, 0, xattrs=read_xattrs(os.fspath(path)))


def answers(ask: Callable[[], set[tuple[str, int]]]) -> dict[Principal, set[tuple[str, int]]]:
    """What `ask` returns to each principal, who is without privileges then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = {}
            for uid, groups in PRINCIPALS:
                os.setgroups(sorted(groups))
                os.setresgid(NEUTRAL, NEUTRAL, NEUTRAL)
                os.setresuid(uid, uid, 0)
                found[uid, groups] = ask()
                os.setresuid(0, 0, 0)
            with os.fdopen(writing, "wb") as said:
                pickle.dump(found, said)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        data = said.read()
    os.waitpid(child, 0)
    result: dict[Principal, set[tuple[str, int]]] = pickle.loads(data)
    return result


def is_one(who: Principal, subject: rights.Subject, named: set[rights.Subject]) -> bool:
    """Whether what a subject has is what this principal has: a user who is named isn't asked for groups."""
    uid, groups = who
    if ("user", uid) in named or subject[0] == "user":
        return subject == ("user", uid)
    if subject == rights.EVERYONE:
        return not any(("group", group) in named for group in groups)
    return subject[1] in groups


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="rights-"))
    made.chmod(0o755)
    (made / "copies").mkdir()
    yield made
    assert stat.S_IMODE(made.stat().st_mode) == 0o755, "all was asked of those who may get there"
    shutil.rmtree(made)


def tried(top: Path, thorough: bool, check: Callable[..., None], **of: st.SearchStrategy[Any]) -> None:
    """Check some of what the strategies make, or many."""
    size = settings(max_examples=300 if thorough else 10, suppress_health_check=list(HealthCheck))
    size(given(top=st.just(top), **of)(check))()


@pytest.mark.promise(59)
def test_gained_is_what_the_kernel_gives(top: Path, thorough: bool) -> None:
    tried(top, thorough, gained_is_what_the_kernel_gives, old=_CLOSING, new=_CLOSING, folder=st.booleans())


def gained_is_what_the_kernel_gives(top: Path, old: Closing, new: Closing, folder: bool) -> None:
    path = top / ("folder" if folder else "file")
    path.mkdir(exist_ok=True) if folder else path.touch()

    wants = (1, 2, 4) if old.twice or new.twice else range(1, 8)

    def allowed() -> set[tuple[str, int]]:
        return {("", want) for want in wants if os.access(path, want)}

    old.put(path)
    then, was = rights.access(entry_of(path)), answers(allowed)
    new.put(path)
    now, is_ = rights.access(entry_of(path)), answers(allowed)
    named, found = {*then, *now}, rights.gained(then, now)
    for who in PRINCIPALS:
        for _, want in is_[who] - was[who]:
            assert any(bits & want and is_one(who, subject, named) for subject, bits in found.items()), (who, want)
    for subject, bits in found.items():
        for bit in (1, 2, 4):
            gains = [who for who in PRINCIPALS if ("", bit) in is_[who] - was[who]]
            assert not bits & bit or any(is_one(who, subject, named) for who in gains), subject


# ---- trees: what is read by which name, through which folders

_PATHS = ("a", "one/b", "one/c", "two/d", "two/e")
_CONTENTS = st.sampled_from(["X", "Y", "Z"])
_FILES = {path: st.tuples(_CONTENTS, _CLOSING) for path in _PATHS}
_FOLDERS = dict.fromkeys(("one", "two"), _FOLDER)
_TREE = st.fixed_dictionaries({"": st.just(_OPEN), **_FOLDERS}, optional=_FILES)
_CHANGES = st.fixed_dictionaries({}, optional={**_FOLDERS, **_FILES})
Tree = dict[str, Closing | tuple[str, Closing]]


def build(folder: Path, tree: Tree, link: tuple[str, str] | None = None) -> None:
    """Make the tree; of `link`, the second name becomes one file with the first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).mkdir()
    for path, what in tree.items():
        if isinstance(what, tuple):
            (folder / path).write_text(what[0])
            what[1].put(folder / path)
    if link is not None and (folder / link[0]).exists():
        (folder / link[1]).unlink(missing_ok=True)
        os.link(folder / link[0], folder / link[1])
    for path in ("two", "one", ""):
        closing = tree[path]
        assert isinstance(closing, Closing)
        closing.put(folder / path)


def walked(folder: Path) -> Manifest:
    with opened_path(folder) as root:
        return Walk(bounds=Bounds(), read=lambda file, at, path: os.pread(file, 9, 0).decode() or "-").run(root)


def opened_by(folder: Path) -> Callable[[], set[tuple[str, int]]]:
    """Asks what can be opened: contents to be read, names of files to be written."""

    def ask() -> set[tuple[str, int]]:
        found = set()
        for path in _PATHS:
            for want, flags in ((4, os.O_RDONLY), (2, os.O_WRONLY)):
                try:
                    file = os.open(folder / path, flags)
                except OSError:
                    continue
                if want == 4:
                    found.add((os.pread(file, 9, 0).decode(), 4))
                found.add((path, want))
                os.close(file)
        return found

    return ask


def all_gained(before: Manifest, after: Manifest) -> list[dict[rights.Subject, int]]:
    changed, _ = apart(before.entries, after.entries)
    base = rights.baseline(before.entries, changed, after.entries)
    return [base.gained(path, entry) for path, entry in changed.items()]


def known(before: Manifest) -> set[str]:
    """The names and contents that were there."""
    return {entry.oid for entry in before.entries.values()} | {os.fsdecode(path) for path in before.entries}


_LINK = st.none() | st.tuples(st.sampled_from(_PATHS), st.sampled_from(_PATHS)).filter(lambda two: two[0] != two[1])


@pytest.mark.promise(59)
def test_nothing_opens_that_is_not_named(top: Path, thorough: bool) -> None:
    tried(top, thorough, nothing_opens_that_is_not_named, old=_TREE, changes=_CHANGES, link=_LINK)


def nothing_opens_that_is_not_named(top: Path, old: Tree, changes: Tree, link: tuple[str, str] | None) -> None:
    """Whoever can open a content that was there, or a name, and couldn't, is among those who are told to gain."""
    folder = top / "tree"
    build(folder, old)
    before, was = walked(folder), answers(opened_by(folder))
    build(folder, {**old, **changes}, link)
    after, is_ = walked(folder), answers(opened_by(folder))
    found = [subject for gains in all_gained(before, after) for subject in gains]
    for uid, groups in PRINCIPALS:
        if {what for what, _ in is_[uid, groups] - was[uid, groups]} & known(before):
            own = {rights.EVERYONE, ("user", uid), *(("group", group) for group in groups)}
            assert own & {*found}, (uid, groups, is_[uid, groups] - was[uid, groups])


@pytest.mark.promise(59)
def test_a_copy_brings_nobody_rights(top: Path, thorough: bool) -> None:
    tried(top, thorough, a_copy_brings_nobody_rights, old=_TREE, changes=_CHANGES, link=_LINK)


def a_copy_brings_nobody_rights(top: Path, old: Tree, changes: Tree, link: tuple[str, str] | None) -> None:
    """Of any state that a program leaves, what is applied opens nothing that was there."""
    folder, work = top / "tree", top / "copies" / "work"
    build(folder, old)
    before, was = walked(folder), answers(opened_by(folder))
    handed = workcopy.given(before, OWNER, NEUTRAL)
    build(folder, {**old, **changes}, link)
    made, _ = workcopy.target(before, handed, workcopy.given(walked(folder), OWNER, NEUTRAL))
    workcopy.lay_out(work, made, lambda: nullcontext(lambda oid, write: write(oid.encode())))
    for private in (work.parent, work):
        private.chmod(0o755)
    is_ = answers(opened_by(work / "tree"))
    for who in PRINCIPALS:
        assert not {what for what, _ in is_[who] - was[who]} & known(before), who


_PLAIN = Closing(0o644)
_MEMBERS = Closing(0o750, GROUPS[1])
_DENIED = Closing(0o640, GROUPS[0], acl(6, 4, 0, 4, {(2, NAMED[0]): 0}))
SAME: dict[str, tuple[Tree, Tree]] = {
    "renamed in a folder of another group": (
        {"": _MEMBERS, "one": Closing(0o750, GROUPS[2]), "two": _OPEN, "one/b": ("X", _PLAIN)},
        {"": _MEMBERS, "one": Closing(0o750, GROUPS[2]), "two": _OPEN, "one/c": ("X", _PLAIN)},
    ),
    "copied with its ACL": (
        {"": _MEMBERS, "one": _MEMBERS, "two": _OPEN, "one/b": ("X", _DENIED)},
        {"": _MEMBERS, "one": _MEMBERS, "two": _OPEN, "one/b": ("X", _DENIED), "two/d": ("X", _DENIED)},
    ),
    "opened behind a closed folder": (
        {"": _OPEN, "one": _OPEN, "two": Closing(0o700), "one/b": ("X", Closing(0o600))},
        {"": _OPEN, "one": _OPEN, "two": Closing(0o700), "two/d": ("X", _PLAIN)},
    ),
    "as umask and chmod make it": (
        {"": _OPEN, "one": _OPEN, "two": _OPEN, "one/b": ("X", _PLAIN)},
        {"": _OPEN, "one": _OPEN, "two": _OPEN, "one/b": ("X", _OPEN), "one/c": ("Y", _OPEN), "two/d": ("Z", _PLAIN)},
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_opens_nothing_is_not_told(top: Path, name: str) -> None:
    old, new = SAME[name]
    folder = top / "tree"
    build(folder, old)
    before = walked(folder)
    build(folder, new)
    assert rights.told(before.entries, walked(folder).entries) == []


def test_the_owning_group_of_a_default_acl_is_another_than_one_of_that_name() -> None:
    """What is made in the folder has its maker's group, whichever the folder has."""
    folder = Entry("d", 0o755, OWNER, GROUPS[0], 0)
    old, new = (
        folder._replace(xattrs=((rights.DEFAULT, acl(7, owning, 0, 7, {(8, GROUPS[0]): named})),))
        for owning, named in ((0, 5), (5, 0))
    )
    assert rights.told({b"": old}, {b"": new}) == ["grants rx to the owning group by default ACL: ."]


@pytest.mark.parametrize(
    "name", ["user.virtiofsd.security.capability", "user.virtiofs.trusted.x", "user.NTACL", "user.ostreemeta"]
)
def test_what_a_server_of_files_reads_as_rights_lends_them(name: str) -> None:
    assert rights.lends(name)


# ---- undo and redo: between two states nobody has more than in both


@pytest.mark.promise(59)
def test_nothing_opens_on_the_way_from_one_state_to_the_other(top: Path, thorough: bool) -> None:
    check = nothing_opens_on_the_way_from_one_state_to_the_other
    tried(top, thorough, check, old=_CLOSING, new=_CLOSING, folder=st.booleans())


def nothing_opens_on_the_way_from_one_state_to_the_other(top: Path, old: Closing, new: Closing, folder: bool) -> None:
    path = top / ("folder" if folder else "file")
    path.mkdir(exist_ok=True) if folder else path.touch()
    new.put(path)
    goal = entry_of(path)
    old.put(path)
    was = entry_of(path)
    between: list[rights.Rights] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("chmod", "chown", "setxattr", "removexattr"):
            patch.setattr(os, name, _watched(getattr(os, name), lambda: between.append(_access(path))))
        with opened_path(top) as root:
            handles.set_metadata(root, os.fsencode(path.name), goal, path.stat().st_ino)
    assert entry_of(path) == goal
    then, now = rights.access(was), rights.access(goal)
    for there in between:
        assert not rights.gained(then, there) or not rights.gained(now, there), there


def _watched(call: Callable[..., None], look: Callable[[], None]) -> Callable[..., None]:
    def watched(*args: object, **options: object) -> None:
        call(*args, **options)
        look()

    return watched


def _access(path: Path) -> rights.Rights:
    return rights.access(entry_of(path))
