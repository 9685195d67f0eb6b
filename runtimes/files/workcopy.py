"""Working on a copy, where the folder itself mustn't be handed to a program.

That is so for a folder of root's (no program runs as root), for one with names that lead elsewhere (an inode that is
also linked from outside the folder, a socket, a FIFO that somebody listens at), and for devices.

The copy belongs to the unprivileged user that the program runs as. What the program made of it is compared with what
it was given, and the difference, under the rules below, becomes the folder's new state:

* what isn't changed keeps its owner; what is new gets the folder's owner;
* nobody gets rights that weren't there (`rights`): no wider mode, ACL, sticky bit taken off, or attribute that is read
  as rights is applied, a content that was closed isn't opened by the name that it comes under, and names of different
  owners don't become one file;
* set-user-id and set-group-id bits are kept where they were on the same content, and never made;
* devices aren't copied, made or changed; one goes only together with the folder that held it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from policies.display_text import escape
from policies.errors import GoexError, Unavailable
from runtimes.files import rights
from runtimes.files.folder import keeps_change_times
from runtimes.files.handles import Unkept, opened_path, remove_path
from runtimes.files.path_text import shown
from runtimes.files.restore import Copy, Restore, steps
from runtimes.files.snapshot import Repository, make_private
from runtimes.files.tree import UNLISTED, Bounds, Entry, Manifest, Walk

_STAGE = b".goex-copy-" + secrets.token_hex(8).encode()
_CARRIED = ("user.", "system.posix_acl_")


def special(manifest: Manifest) -> str:
    """Why this folder can't be mounted itself, in words; "" when it can."""
    members: dict[int, int] = {}
    for entry in manifest.entries.values():
        if entry.kind != "d":
            members[entry.inode] = members.get(entry.inode, 0) + 1
    for path, entry in manifest.entries.items():
        if entry.kind in "pscb":
            return f"{shown(path)} leads to other programs or devices"
        if entry.kind != "d" and entry.links > members[entry.inode]:
            return f"{shown(path)} is also linked from outside the folder"
    return ""


def given(before: Manifest, uid: int, gid: int) -> Manifest:
    """The state in which the program gets its copy."""
    entries = {
        path: Entry._make((*entry[:2], uid, gid, *entry[4:9], _carried(entry) if entry.xattrs else (), *entry[10:]))
        for path, entry in before.entries.items()
        if entry.kind not in "cb"
    }
    return replace(before, entries=entries, listings={})


def target(before: Manifest, handed: Manifest, left: Manifest) -> tuple[Manifest, list[str]]:
    """The folder's new state, and what of the program's doing isn't applied, in words.

    `handed` is the copy as the program got it, `left` as it left it.
    """
    owner = before.entries[b""]
    made: dict[bytes, Entry] = {}
    refused: list[str] = []
    base, grants = rights.baseline(before.entries, left.entries, made), rights.Grants()
    for path, entry in left.entries.items():
        if entry.kind in "cb":
            refused.append(f"not applied: {shown(path)} is a device")
            continue
        old, was = before.entries.get(path), handed.entries.get(path)
        if old is not None and (was is entry or (was is not None and was.essence == entry.essence)):
            made[path] = old
            continue
        if UNLISTED in entry.xattrs:
            refused.append(f"not applied: the attributes of {shown(path)}, which are more than can be listed")
            entry = entry._replace(xattrs=() if was is None else was.xattrs)
        new = _owned(entry, old, owner)
        allowed = old.mode & 0o6000 if old is not None and old.body == entry.body else 0
        if new.mode & 0o6000 & ~allowed:
            new = new._replace(mode=new.mode & (0o1777 | allowed))
            refused.append(f"not applied: the set-user-id or set-group-id bit of {shown(path)}")
        if new.mode & 0o1000 < (old.mode if old is not None and old.kind == "d" else 0) & 0o1000:
            new = new._replace(mode=new.mode | 0o1000)
            refused.append(f"not applied: the sticky bit of {shown(path)} taken off")
        for name, value in entry.xattrs:
            if rights.lends(name) and (name, value) not in new.xattrs:
                grants.note(1, f"attribute {escape(name)}", path)
        if old is not None and base.gained_by_owner(path, new):
            made[path] = old
            refused.append(f"not applied: what {shown(path)} holds now, which its owner couldn't read before")
            continue
        made[path] = _closed(path, new, base, grants)
    for path, entry in before.entries.items():
        above = path.rpartition(b"/")[0]
        if entry.kind in "cb" and path not in made and above in made and made[above].kind == "d":
            made[path] = entry
    if made == before.entries:  # the very same, which is compared fast
        return replace(before, taken=left.taken, settled=False), [*grants.lines("not applied: "), *refused]
    entries = _grouped(made, base, refused)
    return Manifest(entries=entries, taken=left.taken, settled=False), [*grants.lines("not applied: "), *refused]


def hand_out(
    work: Path,
    before: Manifest,
    uid: int,
    gid: int,
    repository: Repository,
    kept: Manifest | None = None,
) -> tuple[Manifest, Manifest | None]:
    """Make the copy, `work/tree`, from the snapshot: anew, or of the one that lies there, which is as `kept` says but
    for what walking it shows. Returns it as the program gets it, and what a later walk may go by.

    Raises OSError (disk full), Unavailable (a snapshot is damaged).
    """
    goal = given(before, uid, gid)
    if kept is not None:
        with suppress(GoexError, OSError):
            return _renewed(work, goal, kept, repository)
    lay_out(work, goal, repository.contents)
    return goal, None


def _renewed(work: Path, goal: Manifest, kept: Manifest, repository: Repository) -> tuple[Manifest, Manifest]:
    """Make the copy of an earlier program, as `kept` says, what `goal` says. Returns that, and how it was found.

    A file's content is taken for what it was while its inode, size, owner, mode and both times are the same (`tree`):
    the program that worked on it runs without privileges, and nobody else can enter the folder; neither can set a
    change time. What differs is replaced by another inode or gets another change time, so that a later walk which
    goes by what is returned reads it.
    """
    with opened_path(work / "tree") as root:
        walk = Walk(
            bounds=_whole(kept), read=repository.hash, known=kept, force=True, trusted=keeps_change_times(str(work))
        )
        now = walk.run(root)
        there = now.entries
        same = ((path, entry, there.get(path)) for path, entry in goal.entries.items())
        goal = replace(  # what is as it should be is the very same object, so that little has to be compared
            goal, entries={path: was if was and was[:11] == entry[:11] else entry for path, entry, was in same}
        )
        todo = steps(now, goal)
        restore = Restore(root=root, now=now, goal=goal, name=_STAGE, contents=repository.contents, durable=False)
        if todo:
            restore.stage(todo)
            restore.apply(todo)
    return goal, now


def _whole(kept: Manifest) -> Bounds:
    """Bounds within which the copy as it was is taken."""
    return Bounds(files=len(kept.entries) + 1000, bytes=kept.bytes + 10**6, depth=Bounds().grown().depth)


def lay_out(
    work: Path,
    goal: Manifest,
    contents: Callable[[], AbstractContextManager[Copy]],
    *,
    clone: Callable[[str, int], bool] = lambda oid, file: False,
) -> None:
    """Make `work/tree` what `goal` says; see `Restore` for `clone`. Raises OSError (disk full), Unavailable (an
    attribute doesn't fit)."""
    make_private(work.parent)
    remove_path(work)
    make_private(work)
    tree = work / "tree"
    tree.mkdir(mode=0o700)
    with opened_path(tree) as root:
        now = Walk(bounds=Bounds()).run(root)
        # Not durable: a crash gives the copy up.
        restore = Restore(root=root, now=now, goal=goal, name=_STAGE, contents=contents, clone=clone, durable=False)
        todo = steps(now, goal)
        try:
            restore.stage(todo)
            restore.apply(todo)
        except Unkept as error:
            raise Unavailable(
                error.message,
                next_step="The disk of GoEx's copies is full, or its file system doesn't take this attribute: free "
                "some space, or take it off (setfattr -x NAME FILE), then try again.",
            ) from error


def take_in(
    work: Path,
    before: Manifest,
    handed: Manifest,
    known: Manifest | None,
    repository: Repository,
    action_id: str,
    bounds: Bounds,
) -> tuple[str, Manifest, list[str], Manifest]:
    """Keep what the program made of the copy as the folder's new state. `known` is what `hand_out` found there.

    Returns the manifest's object id, the manifest, what isn't applied, and the copy as it was left. Raises TooLarge,
    Unavailable.
    """
    with opened_path(work / "tree") as root:
        walk = Walk(bounds=bounds.grown(), known=known, force=True, trusted=keeps_change_times(str(work)))
        left = repository.store(walk, root)
    made, refused = target(before, handed, left)
    return repository.keep(f"{action_id}/after", made), made, refused, left


def _owned(entry: Entry, old: Entry | None, owner: Entry) -> Entry:
    if old is None or old.kind != entry.kind:
        return entry._replace(uid=owner.uid, gid=owner.gid, xattrs=_unprivileged(entry))
    # What the kernel keeps for root alone goes with a changed content, as a write would make it go.
    kept = () if old.body != entry.body else tuple(pair for pair in old.xattrs if pair not in _unprivileged(old))
    labels = tuple(pair for pair in old.xattrs if pair[0] == "security.selinux" and pair not in kept)
    return entry._replace(uid=old.uid, gid=old.gid, xattrs=tuple(sorted((*_unprivileged(entry), *kept, *labels))))


def _carried(entry: Entry) -> tuple[tuple[str, bytes], ...]:
    return tuple(pair for pair in entry.xattrs if pair[0].startswith(_CARRIED))


def _unprivileged(entry: Entry) -> tuple[tuple[str, bytes], ...]:
    return tuple(pair for pair in _carried(entry) if not rights.lends(pair[0]))


def _closed(path: bytes, entry: Entry, base: rights.Baseline, grants: rights.Grants) -> Entry:
    """The entry without what it would newly grant, of which `grants` takes note."""
    old = base.old(path, entry)
    if gained := base.gained_by_default(path, entry):
        grants.rights(path, entry, gained, default=True)
        entry = _with(entry, rights.DEFAULT, base.default(path, entry))
    gained = base.gained(path, entry)
    if not gained:
        return entry
    grants.rights(path, entry, gained)
    acl = None if old is None else dict(old.xattrs).get(rights.ACCESS)
    if old is not None and acl is not None:
        as_it_was = _with(entry, rights.ACCESS, acl)._replace(mode=entry.mode & 0o7000 | old.mode & 0o777)
        if not base.gained(path, as_it_was):
            return as_it_was
    now = rights.access(entry)
    taken = {who: bits & ~gained.get(who, 0) for who, bits in now.items()}
    nine = taken.get(("group", entry.gid), 0) << 3 | taken[rights.EVERYONE]
    entry = _with(entry, rights.ACCESS, None)._replace(mode=entry.mode & 0o7700 | nine)
    return entry._replace(mode=entry.mode & 0o7700) if base.gained(path, entry) else entry


def _with(entry: Entry, name: str, value: bytes | None) -> Entry:
    rest = [pair for pair in entry.xattrs if pair[0] != name]
    return entry._replace(xattrs=tuple(sorted([*rest, (name, value)] if value is not None else rest)))


def _grouped(entries: Mapping[bytes, Entry], base: rights.Baseline, refused: list[str]) -> dict[bytes, Entry]:
    """Names of one inode are one: all are what the one is that was there, or of several the one that is least open.
    Names that had different owners stay apart, as does a new one that would open it, and a group of one is none."""
    before = base.before
    groups: dict[bytes, list[bytes]] = {}
    for path, entry in entries.items():
        if entry.group:
            groups.setdefault(entry.group, []).append(path)
    made = dict(entries)
    for paths in groups.values():
        there = [path for path in paths if path in before and before[path].kind == made[path].kind] or paths
        if len({(made[path].uid, made[path].gid) for path in there}) > 1:
            refused.append(f"not applied: {', '.join(shown(path) for path in sorted(paths)[:4])} as one file")
            for path in paths:
                made[path] = made[path]._replace(group=b"")
            continue
        whole = _least_open([made[path] for path in there])
        same = whole.size and any(path in before and before[path].oid == whole.oid for path in there)
        opens = base.opened if same else base.gained  # what was there may be linked with the rights that it had
        apart = [path for path in paths if path not in there and opens(path, whole)]
        if apart:
            refused.append(f"not applied: {', '.join(shown(path) for path in [there[0], *apart][:4])} as one file")
        for path in apart:
            made[path] = made[path]._replace(group=b"")
            paths.remove(path)
        for path in paths:
            made[path] = whole._replace(group=min(paths) if len(paths) > 1 else b"")
    return dict(sorted(made.items()))


def _least_open(entries: list[Entry]) -> Entry:
    """The entry that grants nothing which another one doesn't; where none is, the first for its owner alone."""
    each = [(entry, rights.access(entry)) for entry in entries]
    for entry, own in each:
        if not any(rights.gained(other, own) for _, other in each):
            return entry
    return _with(entries[0], rights.ACCESS, None)._replace(mode=entries[0].mode & 0o7700)
