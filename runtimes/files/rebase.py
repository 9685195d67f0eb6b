"""The two states of an action, rebased on what others did in its folder since: an undo is of what the action changed.

Rules: what the action changed must be as it left it, or nothing is touched; all else stays as it is now. The time of a
folder isn't a change of its own: where others made or removed names in it, it keeps theirs. Nor is a mode that a
restore lifted before it was cut off. Names of one inode are one thing. A folder that the action made isn't removed
while it holds what others put there, and nothing is put back into one that is gone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set

from runtimes.files.manifest import apart
from runtimes.files.tree import Entry, Manifest

Entries = Mapping[bytes, Entry]


def rebased(
    now: Manifest, sides: tuple[Manifest, Manifest], expected: Manifest | None
) -> tuple[tuple[Manifest, Manifest], Manifest | None]:
    """The states before and after the action, as they are among what others did meanwhile, and `expected` (one of them;
    None: half way between the two), which `now` is when nobody touched what the action changed. Pure."""
    before, after = (side.entries for side in sides)
    own = own_paths(before, after)
    made: tuple[dict[bytes, Entry], dict[bytes, Entry]] = ({}, {})
    left = None if expected is None else expected.entries
    ways = _ways(own) if expected is None and os.geteuid() != 0 else frozenset[bytes]()
    for path in own | now.entries.keys():
        there = now.entries.get(path)
        for side, entries in zip(made, (before, after), strict=True):
            entry = entries.get(path) if path in own else there
            if path in ways and path not in own:
                entry = _closed(there, entries.get(path))
            if entry is not None:
                side[path] = _timed(entry, entries.get(path), there, None if left is None else left.get(path))
    before_now, after_now = (
        Manifest(entries=dict(sorted(side.items())), taken=now.taken, settled=False) for side in made
    )
    if expected is None:
        return (before_now, after_now), None
    return (before_now, after_now), before_now if expected is sides[0] else after_now


def own_paths(before: Entries, after: Entries) -> Set[bytes]:
    """What an action changed, with every name of an inode of which it changed one."""
    changed, own = apart(before, after)
    own |= {path for path, entry in changed.items() if _differs(before.get(path), entry)}
    groups = {side[path].group for side in (before, after) for path in own if path in side} - {b""}
    if groups:
        own |= {path for side in (before, after) for path, entry in side.items() if entry.group in groups}
    return own


def _ways(paths: Set[bytes]) -> Set[bytes]:
    """The folders that these paths lie in."""
    return {path[:end] for path in paths for end, byte in enumerate(path) if byte == 0x2F} | {b""}


def _closed(there: Entry | None, recorded: Entry | None) -> Entry | None:
    """A folder with its recorded mode, where a restore that was cut off has let its owner in, and did no more to it."""
    if there is None or recorded is None or not there.kind == recorded.kind == "d":
        return there
    lifted = there.mode & 0o700 != recorded.mode & 0o700 and there.mode == recorded.mode | (there.mode & 0o700)
    return there._replace(mode=recorded.mode) if lifted else there


def orphans(goal: Manifest) -> list[bytes]:
    """What a state holds that has no folder to be in."""
    return [
        path
        for path in goal.entries
        if path and ((above := goal.entries.get(path.rpartition(b"/")[0])) is None or above.kind != "d")
    ]


def _differs(old: Entry | None, new: Entry) -> bool:
    if old is None or old.kind != new.kind or new.kind != "d":
        return old is None or old.essence != new.essence
    return old._replace(mtime=0).essence != new._replace(mtime=0).essence


def _timed(entry: Entry, recorded: Entry | None, there: Entry | None, left: Entry | None) -> Entry:
    """A folder with the time of its recorded self, or its own of now where that isn't as it was left: others worked in
    it. Of one whose restore was cut off (`left` is None) the time says nothing."""
    if entry.kind != "d" or there is None or there.kind != "d":
        return entry
    if left is not None and left.mtime != there.mtime:
        return entry if entry.mtime == there.mtime else entry._replace(mtime=there.mtime)
    if recorded is not None and recorded.kind == "d" and recorded.mtime != entry.mtime:
        return entry._replace(mtime=recorded.mtime)
    return entry
