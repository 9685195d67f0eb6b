"""What the person reads about files. Names and programs come from outside: each is escaped first."""

from __future__ import annotations

from collections.abc import Mapping

from policies.actions import Files, Plan
from policies.display_text import escape
from runtimes.files.path_text import shown
from runtimes.files.tree import Entry

MOST_CHANGES = 200

_KIND = {
    "f": "file",
    "d": "folder",
    "l": "link",
    "p": "FIFO",
    "s": "socket",
    "c": "character device",
    "b": "block device",
}


def payload_lines(plan: Plan) -> tuple[str, ...]:
    """The program; of a dry run that is applied, what it found."""
    if plan.resolved.get("mode") == "preview" or not isinstance(plan.action, Files):
        return plan.lines
    return tuple(escape(line) for line in plan.action.program.split("\n"))


def size(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")


def changes(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]) -> list[str]:
    """One line for each path that isn't the same, in order of path. A folder's own time alone isn't a change."""
    if before is after:
        return []
    # What two manifests share is one object: a small difference of large trees is found fast.
    paths = {path for path, entry in after.items() if before.get(path) is not entry} | (before.keys() - after.keys())
    return [line for path in sorted(paths) if (line := change(path, before.get(path), after.get(path)))]


def times(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]) -> list[str]:
    """The folders of which only the time differs."""
    return [f"touched {shown(path)}/" for path, old in before.items() if old.essence != after[path].essence]


def capped(lines: list[str], limit: int = MOST_CHANGES) -> tuple[tuple[str, ...], int]:
    """The first `limit` lines, and how many were left out."""
    return tuple(lines[:limit]), max(0, len(lines) - limit)


def tally(lines: list[str]) -> str:
    """`2 created, 1 deleted`: the lines by their first word, the rarer kinds together as changed."""
    counts = {"created": 0, "changed": 0, "deleted": 0}
    for line in lines:
        word = line.split(" ", 1)[0]
        counts[word if word in counts else "changed"] += 1
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing changed"


def change(path: bytes, old: Entry | None, new: Entry | None) -> str:
    """What became of one path, in a line; "" when it is the same."""
    name = shown(path)
    if old is None and new is not None:
        return f"created {_what(name, new)}"
    if new is None and old is not None:
        return f"deleted {_what(name, old)}"
    if old is None or new is None or old.essence == new.essence:
        return ""
    if old.kind != new.kind:
        return f"changed {name}: {_KIND[old.kind]}→{_what(_KIND[new.kind], new)}{_attributes(old, new)}"
    if old.kind == "l" and old.target != new.target:
        return f"changed {name} → {shown(new.target)} (was → {shown(old.target)}){_attributes(old, new)}"
    if old.body != new.body:
        return f"changed {name}{_mode(old, new)}{_attributes(old, new)}"
    if old.mode != new.mode:
        return f"mode {name} {old.mode:o}→{new.mode:o}{_attributes(old, new)}"
    if (old.uid, old.gid) != (new.uid, new.gid):
        return f"owner {name} {old.uid}:{old.gid}→{new.uid}:{new.gid}{_attributes(old, new)}"
    if old.xattrs != new.xattrs:
        return f"attributes {name}{_attributes(old, new).replace(',', ':', 1)}"
    if old.group != new.group:
        return f"links {name}"
    return f"touched {name}" if old.kind != "d" else ""


def _mode(old: Entry, new: Entry) -> str:
    return f", {old.mode:o}→{new.mode:o}" if old.mode != new.mode else ""


def _attributes(old: Entry, new: Entry) -> str:
    """The names of the attributes that aren't the same, ", " before each."""
    names = sorted({name for name, _ in {*old.xattrs} ^ {*new.xattrs}})
    return "".join(f", {escape(name)}" for name in names[:4]) + (", …" if len(names) > 4 else "")


def _what(name: str, entry: Entry) -> str:
    if entry.kind == "l":
        return f"{name} → {shown(entry.target)}"
    if entry.kind == "d":
        return f"{name}/" if name != _KIND["d"] else name
    return name if entry.kind == "f" or name == _KIND[entry.kind] else f"{name} ({_KIND[entry.kind]})"
