"""Working on a copy, where the folder itself mustn't be handed to a program.

That is so for a folder of root's (no program runs as root), for one with names that lead elsewhere (an inode that is
also linked from outside the folder, a socket, a FIFO that somebody listens at), and for devices.

The copy belongs to the unprivileged user that the program runs as. What the program made of it is compared with what
it was given, and the difference, under the rules below, becomes the folder's new state:

* what isn't changed keeps its owner; what is new gets the folder's owner;
* set-user-id and set-group-id bits are kept where they were on the same content, and never made;
* devices aren't copied, made or changed; one goes only together with the folder that held it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from runtimes.files.handles import opened_path, remove_path
from runtimes.files.restore import Copy, Restore, steps
from runtimes.files.snapshot import Repository, make_private
from runtimes.files.tree import Bounds, Entry, Manifest, Walk
from runtimes.files.words import shown

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
        path: entry._replace(uid=uid, gid=gid, xattrs=_carried(entry))
        for path, entry in before.entries.items()
        if entry.kind not in "cb"
    }
    return replace(before, entries=entries)


def target(before: Manifest, handed: Manifest, left: Manifest) -> tuple[Manifest, list[str]]:
    """The folder's new state, and what of the program's doing isn't applied, in words.

    `handed` is the copy as the program got it, `left` as it left it.
    """
    owner = before.entries[b""]
    made: dict[bytes, Entry] = {}
    refused: list[str] = []
    for path, entry in left.entries.items():
        if entry.kind in "cb":
            refused.append(f"not applied: {shown(path)} is a device")
            continue
        old, was = before.entries.get(path), handed.entries.get(path)
        if old is not None and was is not None and was.essence == entry.essence:
            made[path] = old
            continue
        new = _owned(entry, old, owner)
        allowed = old.mode & 0o6000 if old is not None and old.body == entry.body else 0
        if new.mode & 0o6000 & ~allowed:
            new = new._replace(mode=new.mode & (0o1777 | allowed))
            refused.append(f"not applied: the set-user-id or set-group-id bit of {shown(path)}")
        made[path] = new
    for path, entry in before.entries.items():
        above = path.rpartition(b"/")[0]
        if entry.kind in "cb" and path not in made and above in made and made[above].kind == "d":
            made[path] = entry
    return Manifest(entries=_grouped(made), taken=left.taken, settled=False), refused


def hand_out(
    work: Path, before: Manifest, uid: int, gid: int, contents: Callable[[], AbstractContextManager[Copy]]
) -> Manifest:
    """Make the copy, `work/tree`, from the snapshot. Returns it as the program gets it. Raises OSError (disk full)."""
    goal = given(before, uid, gid)
    lay_out(work, goal, contents)
    return goal


def lay_out(
    work: Path,
    goal: Manifest,
    contents: Callable[[], AbstractContextManager[Copy]],
    *,
    clone: Callable[[str, int], bool] = lambda oid, file: False,
    durable: bool = True,
) -> None:
    """Make `work/tree` what `goal` says; see `Restore` for `clone` and `durable`. Raises OSError (disk full)."""
    make_private(work.parent)
    remove_path(work)
    make_private(work)
    tree = work / "tree"
    tree.mkdir(mode=0o700)
    with opened_path(tree) as root:
        now = Walk(bounds=Bounds()).run(root)
        restore = Restore(root=root, now=now, goal=goal, name=_STAGE, contents=contents, clone=clone, durable=durable)
        todo = steps(now, goal)
        restore.stage(todo)
        restore.apply(todo)


def take_in(
    work: Path, before: Manifest, handed: Manifest, repository: Repository, action_id: str, bounds: Bounds
) -> tuple[str, Manifest, list[str]]:
    """Keep what the program made of the copy as the folder's new state.

    Returns the manifest's object id, the manifest, and what isn't applied. Raises TooLarge, Unavailable.
    """
    with opened_path(work / "tree") as root:
        walk = Walk(bounds=bounds.grown(), force=True)
        left = repository.store(walk, root)
    made, refused = target(before, handed, left)
    return repository.keep(f"{action_id}/after", made), made, refused


def _owned(entry: Entry, old: Entry | None, owner: Entry) -> Entry:
    if old is None or old.kind != entry.kind:
        return entry._replace(uid=owner.uid, gid=owner.gid)
    # What the kernel keeps for root alone goes with a changed content, as a write would make it go.
    kept = () if old.body != entry.body else tuple(pair for pair in old.xattrs if not pair[0].startswith(_CARRIED))
    labels = tuple(pair for pair in old.xattrs if pair[0] == "security.selinux" and pair not in kept)
    return entry._replace(uid=old.uid, gid=old.gid, xattrs=tuple(sorted((*_carried(entry), *kept, *labels))))


def _carried(entry: Entry) -> tuple[tuple[str, bytes], ...]:
    return tuple(pair for pair in entry.xattrs if pair[0].startswith(_CARRIED))


def _grouped(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """Names of one inode are one: what the first of them is, all are. A group of one is none."""
    groups: dict[bytes, list[bytes]] = {}
    for path, entry in entries.items():
        if entry.group:
            groups.setdefault(entry.group, []).append(path)
    made = dict(entries)
    for paths in groups.values():
        first = min(paths)
        for path in paths:
            made[path] = entries[first]._replace(group=first if len(paths) > 1 else b"")
    return dict(sorted(made.items()))
