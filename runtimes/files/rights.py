"""Rights that others have in a folder, and which of them a program has granted.

Rules:

* Rights are read from the mode and the POSIX ACLs together. Who is in a group isn't asked, it changes: a user who isn't
  named may be in any of the groups that are, and counts with the least of it before and with the most after.
* A name that was there may keep the rights it had. A new one may have what its folder's default ACL gave before, or,
  without one, reading for everyone; a content that was there under another name stays as closed as it was, also under
  a name that was there.
* Grants are also a default ACL, a set-group-id folder, a sticky bit that is taken off, another owner, and attributes
  that the system or a file server reads as rights.
"""

from __future__ import annotations

import grp
import pwd
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import and_, or_

from policies.display_text import escape
from runtimes.files.manifest import apart
from runtimes.files.path_text import named
from runtimes.files.tree import Entry

Subject = tuple[str, int]
Rights = Mapping[Subject, int]  # r 4, w 2, x 1
Walls = tuple[frozenset[tuple[Subject, int]], ...]  # the folders on a way that stop some: each one's rights, 7 or 0
EVERYONE: Subject = ("everyone", 0)
_ANYBODY: Subject = ("user", -1)  # whom nothing names
_OWNING = -1  # the group, in a default ACL, of whatever is made

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_ACLS = frozenset({ACCESS, DEFAULT})
# Container storage, overlay mounts, QEMU, virtiofsd, OSTree and Samba read owners, modes and whole contents from these.
_READ_AS_RIGHTS = (
    "user.overlay.",
    "user.fuseoverlayfs.",
    "user.containers.",
    "user.rootlesscontainers",
    "user.virtfs.",
    "user.virtiofs",  # also "virtiofsd."
    "user.ostreemeta",
    "user.DOSATTRIB",
    "user.NTACL",
)
_USER, _GROUP_OWNER, _GROUP, _MASK, _OTHER = 0x02, 0x04, 0x08, 0x10, 0x20
_ENTRY = struct.Struct("<HHI")
_LINES = 20
_NEW: Rights = {EVERYONE: 5}
_SET_ID = 0o6000


def lends(name: str) -> bool:
    """Whether an extended attribute other than an ACL lends rights."""
    if name in _ACLS or name == "security.selinux":
        return False
    return name.startswith(("security.", "trusted.", "system.", *_READ_AS_RIGHTS))


def access(entry: Entry) -> Rights:
    """What others may do with an entry. Its owner may do everything, since an owner can change its mode."""
    acl = dict(entry.xattrs).get(ACCESS)
    if acl is None:
        found = {("group", entry.gid): entry.mode >> 3 & 7, EVERYONE: entry.mode & 7}
    else:
        found = _parsed(acl, entry.gid)
    return {**found, ("user", entry.uid): 7}


def by_default(entry: Entry) -> Rights | None:
    """What the default ACL of a folder gives to what is made in it; None without one."""
    acl = dict(entry.xattrs).get(DEFAULT)
    return None if acl is None else _parsed(acl, _OWNING)


def gained(old: Rights, new: Rights) -> dict[Subject, int]:
    """Who may have which rights in `new` that they hadn't in `old`, whatever groups they are in.

    Members of a group that only `new` names may be in those of `old` too. That suffices: who gains by several groups
    gains by one of them, or by everyone's.
    """
    found = {who: _most(new, who) & ~_least(old, who) for who in {*old, *new}}
    return {who: bits for who, bits in found.items() if bits}


def _least(rights: Rights, who: Subject) -> int:
    """What a user, or a member of a group, has at least: of who isn't named, in whatever groups."""
    return rights[who] if who in rights else reduce(and_, _unnamed(rights))


def _most(rights: Rights, who: Subject) -> int:
    """What a user has at most, in whatever groups, and what a group's members have who are in no other."""
    if who not in rights and who[0] == "user":
        return reduce(or_, _unnamed(rights))
    return rights.get(who, rights[EVERYONE])


def _unnamed(rights: Rights) -> Iterator[int]:
    """The rights of everyone and of each group: a user who isn't named has those of one or more of them."""
    return (bits for (kind, _), bits in rights.items() if kind != "user")


def _parsed(acl: bytes, gid: int) -> dict[Subject, int]:
    """The effective rights of an ACL's bytes, as the kernel gives them."""
    try:
        entries = list(_ENTRY.iter_unpack(acl[4:]))
    except struct.error:
        return {EVERYONE: 7}
    mask = next((bits for tag, bits, _ in entries if tag == _MASK), 7)
    found: dict[Subject, int] = {EVERYONE: 0}
    for tag, bits, id in entries:
        if tag == _OTHER:
            found[EVERYONE] = bits & 7
        elif not mask and tag in (_USER, _GROUP):
            continue  # the kernel doesn't look at an ACL whose mask is empty
        elif tag == _USER:
            found["user", id] = bits & mask
        elif tag in (_GROUP, _GROUP_OWNER):
            who = ("group", gid if tag == _GROUP_OWNER else id)
            found[who] = found.get(who, 0) | (bits & mask)
    return found


def _either(one: Rights, other: Rights) -> dict[Subject, int]:
    """The least that somebody has to whom either is enough."""
    return {who: _least(one, who) | _least(other, who) for who in {*one, *other}}


def _within(rights: Rights, walls: Walls) -> dict[Subject, int]:
    """The least that is left of rights to what lies behind `walls`."""
    found = dict(rights)
    for wall in map(dict, walls):
        found = {who: _least(found, who) & _least(wall, who) for who in {*found, *wall}}
    return found


def _at_most_within(rights: Rights, walls: Walls) -> dict[Subject, int]:
    """The most that is left: a member of one group may pass a wall as that of another."""
    found = dict(rights)
    for wall in map(dict, walls):
        found = {
            who: _most(found, who) & _most(wall, _ANYBODY if who[0] == "group" else who) for who in {*found, *wall}
        }
    return found


@dataclass(slots=True)
class Baseline:
    """The rights that may be there after a program, as far as the folder's state before it says. `after` are the
    entries that it is asked about, parents first; it may still grow."""

    before: Mapping[bytes, Entry]
    after: Mapping[bytes, Entry]
    contents: frozenset[str] = frozenset()  # of names that are new or had another
    _known: dict[tuple[str, Walls | None], Rights] = field(default_factory=dict)  # of contents, also by where they were
    _ways: dict[tuple[bool, bytes], Walls] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, entry in self.before.items() if self.contents else ():
            if entry.oid in self.contents and entry.size:
                own, walls = access(entry), self._way(False, _above(path))
                for within, found in ((walls, own), (None, _within(own, walls))):
                    was = self._known.get((entry.oid, within))
                    self._known[entry.oid, within] = found if was is None else _either(was, found)

    def old(self, path: bytes, entry: Entry) -> Entry | None:
        """What was there under that name, as the same kind."""
        old = self.before.get(path)
        return old if old is not None and old.kind == entry.kind else None

    def gained(self, path: bytes, entry: Entry) -> dict[Subject, int]:
        """Who has rights to an entry that they may not have."""
        if entry.kind == "l":
            return {}
        now, old = access(entry), self.old(path, entry)
        own: Subject = ("user", entry.uid)
        if old is not None:
            found = gained(_executable(access(old), entry), now)
            if old.oid == entry.oid:
                return found
        else:
            default = self.default(path, entry, fresh=True)
            allowed = _parsed(default, entry.gid) if default else _NEW
            found = gained({**_executable(allowed, entry), own: 7}, now)
        further = self.opened(path, entry)
        return {who: found.get(who, 0) | further.get(who, 0) for who in {*found, *further}}

    def opened(self, path: bytes, entry: Entry) -> dict[Subject, int]:
        """Who has rights to a content that was there, of those that they hadn't by its names and their folders."""
        if (entry.oid, None) not in self._known:
            return {}
        now, old, walls = access(entry), self.old(path, entry), self._way(True, _above(path))
        own: Rights = {("user", entry.uid): 7} if old is None or self._may_read_all(entry.uid) else {}
        known = self._known[entry.oid, None]
        found = gained({**_executable(known, entry), **own}, {**_at_most_within(now, walls), **own})
        behind = self._known.get((entry.oid, walls)) if found else None
        if behind is not None and not gained({**_executable(behind, entry), **own}, now):
            return {}  # the same walls as before, and no more rights behind them
        if old is not None:
            found = {who: bits & 4 for who, bits in found.items() if bits & 4}  # it may be changed as it was
        return found

    def gained_by_owner(self, path: bytes, entry: Entry) -> bool:
        """Whether an entry's owner, from whom no mode takes anything, gets a content that was closed to them."""
        return entry.kind != "l" and ("user", entry.uid) in self.gained(path, entry)

    def _may_read_all(self, uid: int) -> bool:
        """Whether a user is root, or the folder's owner, for whom the program works."""
        return uid in (0, self.before[b""].uid)

    def gained_by_default(self, path: bytes, entry: Entry) -> dict[Subject, int]:
        """Who gets rights to what will be made in a folder, beyond what its default ACL gave before."""
        if entry.kind != "d":
            return {}
        then, now = self.default(path, entry), by_default(entry)
        if now is None:
            return gained(_parsed(then, _OWNING), _NEW) if then else {}
        return gained(_parsed(then, _OWNING) if then else {EVERYONE: 0}, now)

    def default(self, path: bytes, entry: Entry, *, fresh: bool = False) -> bytes | None:
        """The default ACL that a folder had, or that a new entry (always, if `fresh`) got from the one above it."""
        old = None if fresh else self.old(path, entry)
        while old is None and path:
            path = _above(path)
            old = self.before.get(path)
            old = old if old is not None and old.kind == "d" else None
        return dict(old.xattrs).get(DEFAULT) if old is not None else None

    def _way(self, now: bool, path: bytes) -> Walls:
        """What stops some on the way into a folder."""
        if (now, path) not in self._ways:
            entry = (self.after if now else self.before).get(path)
            own = {EVERYONE: 0} if entry is None else {who: 7 * (bits & 1) for who, bits in access(entry).items()}
            walls = self._way(now, _above(path)) if path else ()
            wall = frozenset(own.items())
            self._ways[now, path] = walls if all(own.values()) or wall in walls else (*walls, wall)
        return self._ways[now, path]


def baseline(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry], grown: Mapping[bytes, Entry]) -> Baseline:
    """The baseline for `after`; `grown` holds the entries of folders as they will be."""
    made = frozenset(
        entry.oid
        for path, entry in after.items()
        if entry.oid and ((old := before.get(path)) is None or (old is not entry and old.oid != entry.oid))
    )
    return Baseline(before, grown, made)


@dataclass(slots=True)
class Grants:
    """Grants, gathered so that however many names they are made on nobody who gets one is left out."""

    _found: dict[tuple[int, str], list[bytes]] = field(default_factory=dict)

    def rights(self, path: bytes, entry: Entry, gained: Mapping[Subject, int], *, default: bool = False) -> None:
        """Note who gains rights to an entry, or to what will be made in it: of a user or group all that it has then."""
        everyone = gained.get(EVERYONE, 0)
        now = (by_default(entry) if default else access(entry)) or _NEW
        for who, bits in gained.items():
            further = bits if who == EVERYONE else bits & ~everyone
            if further:
                has = further if who == EVERYONE else _most(now, who)
                self.note(0 if further & 2 else 2, _granted(who, has, entry.kind, default), path)

    def note(self, rank: int, what: str, path: bytes) -> None:
        self._found.setdefault((rank, what), []).append(path)

    def lines(self, prefix: str = "") -> list[str]:
        """One line for each grant, what lets others write first; what is left out is counted."""
        made = [f"{prefix}{what}: {named(paths)}" for (_, what), paths in sorted(self._found.items())]
        more = [f"{prefix}{len(made) - _LINES} further grants to others"] if len(made) > _LINES else []
        return [*made[:_LINES], *more]


def told(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]) -> list[str]:
    """One line for each grant of rights that `before` hadn't."""
    changed, _ = apart(before, after)
    base, found = baseline(before, changed, after), Grants()
    for path, entry in changed.items():
        found.rights(path, entry, base.gained(path, entry))
        found.rights(path, entry, base.gained_by_default(path, entry), default=True)
        above = before.get(_above(path))
        for what in _otherwise(base.old(path, entry), entry, above.mode if above is not None else 0):
            found.note(1, what, path)
    return found.lines()


def _otherwise(old: Entry | None, entry: Entry, above: int) -> Iterator[str]:
    """Grants that are neither in the mode's nine bits nor in an ACL; `above` is the mode of the folder it lies in."""
    was_set = old.mode if old is not None else above if entry.kind == "d" else 0  # which a new folder gets
    if entry.kind != "l" and entry.mode & _SET_ID & ~was_set:
        yield (
            "set-group-id, which gives its group to what is made in it"
            if entry.kind == "d"
            else "set-user-id or -group-id"
        )
    if old is not None and old.kind == "d" and old.mode & ~entry.mode & 0o1000:
        yield "sticky bit taken off, so that whoever can write to it can delete others' files"
    was = dict(old.xattrs) if old is not None else {}
    yield from (f"attribute {escape(name)}" for name, value in entry.xattrs if lends(name) and was.get(name) != value)


def _executable(rights: Rights, entry: Entry) -> Rights:
    """To run a file that can be read anyway is no further right, unless it lends its owner's."""
    if entry.kind != "f" or entry.mode & _SET_ID:
        return rights
    return {who: bits | (1 if bits & 4 else 0) for who, bits in rights.items()}


def _granted(who: Subject, bits: int, kind: str, default: bool) -> str:
    letters = "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if bits & bit)
    if default:
        return f"grants {letters} to {_name(who)} by default ACL"
    if who != EVERYONE:
        return f"grants {letters} to {_name(who)}"
    use = "can be entered" if kind == "d" else "executable"
    words = [word for word, bit in (("readable", 4), ("writable", 2), (use, 1)) if bits & bit]
    return f"{' and '.join(words)} by everyone"


@cache
def _name(who: Subject) -> str:
    kind, id = who
    if who == EVERYONE:
        return kind
    if id == _OWNING:
        return "the owning group"
    try:
        name = pwd.getpwuid(id).pw_name if kind == "user" else grp.getgrgid(id).gr_name
    except KeyError:
        return f"{kind} {id}"
    return f"{kind} {escape(name)} ({id})"


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]
