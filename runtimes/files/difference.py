"""What differs between two trees, line by line where both sides are text.

Rules: whatever was in a file is foreign, so it is escaped; everything is bounded (files, lines, bytes, time), and what
was left out is said; contents that aren't text, or are too large, are named by size and SHA-256.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Protocol

from policies.display_text import counted, escape, shorten
from policies.errors import Conflict
from runtimes.base import DryKind, DryLine
from runtimes.files import plan_text
from runtimes.files.tree import Entry, Manifest

Op = tuple[str, int, int, int, int]  # as difflib says it: what, and the lines of both sides
_CONTEXT = 3


class Contents(Protocol):
    """Reads the files of one side. Both raise Conflict for one that isn't what the manifest says."""

    def read(self, path: bytes) -> bytes: ...

    def sha256(self, path: bytes) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """How much of a difference is shown."""

    paths: int = 200
    lines: int = 2000
    characters: int = 400_000
    of_a_file: int = 400  # lines
    text: int = 256 * 1024  # bytes of a side; larger files are compared by their hashes
    compared: int = 1000  # lines of a side, apart from what both begin and end with
    hashed: int = 256 * 1024 * 1024  # bytes in all that are read once more for their SHA-256
    seconds: float = 5.0


@dataclass(slots=True, kw_only=True)
class Difference:
    """One comparison. `old` and `new` read the contents of the two sides; either may be the same."""

    before: Manifest
    after: Manifest
    old: Contents
    new: Contents
    most: Most = field(default_factory=Most)
    clock: Callable[[], float] = time.monotonic
    _lines: list[DryLine] = field(default_factory=list)
    _characters: int = 0
    _hashed: int = 0
    _full: bool = False

    def run(self) -> tuple[list[DryLine], list[str]]:
        """All of it, and the changed paths in one line each. Pure but for reading."""
        until = self.clock() + self.most.seconds
        old, new = self.before.entries, self.after.entries
        changed = [
            (path, line)
            for path in sorted(old.keys() | new.keys())
            if (line := plan_text.change(path, old.get(path), new.get(path)))
        ]
        for number, (path, line) in enumerate(changed):
            if number == self.most.paths or self._full:
                self._say("warning", f"{counted(len(changed) - number, 'more changed path')} left out.")
                break
            self._add("change", line)
            self._contents(path, old.get(path), new.get(path), self.clock() < until)
        return self._lines, [line for _, line in changed]

    def _contents(self, path: bytes, old: Entry | None, new: Entry | None, in_time: bool) -> None:
        """What became of a file's content, below the line that names the path."""
        was = old if old is not None and old.kind == "f" else None
        now = new if new is not None and new.kind == "f" else None
        if (was is None and now is None) or (was and now and was.oid == now.oid):
            return
        try:
            if in_time and max(side.size for side in (was, now) if side is not None) <= self.most.text:
                one = _text(self.old.read(path)) if was is not None else []
                two = _text(self.new.read(path)) if now is not None else []
                if one is not None and two is not None:
                    self._unified(one, two)
                    return
            self._add("note", self._named(path, was, now))
        except (Conflict, OSError):
            self._say("warning", "It was changed meanwhile, so its contents can't be compared.")

    def _named(self, path: bytes, was: Entry | None, now: Entry | None) -> str:
        sides = [
            f"{plan_text.size(entry.size)}, {self._hash(side, path, entry)}"
            for side, entry in ((self.old, was), (self.new, now))
            if entry is not None
        ]
        return f"not compared line by line: {' → '.join(sides)}"

    def _hash(self, side: Contents, path: bytes, entry: Entry) -> str:
        self._hashed += entry.size
        return f"SHA-256 {side.sha256(path)}" if self._hashed <= self.most.hashed else "too large to be hashed here"

    def _unified(self, one: Sequence[str], two: Sequence[str]) -> None:
        lines = list(hunks(one, two, self.most.compared))
        for kind, text in lines[: self.most.of_a_file]:
            self._add(kind, text)
            if text and not text.startswith("@@") and not text.endswith("\n"):
                self._add("note", "(that line has no end)")
        if (left := len(lines) - self.most.of_a_file) > 0:
            self._say("warning", f"{counted(left, 'more line')} of this difference left out.")

    def _add(self, kind: DryKind, text: str) -> None:
        """A line, as long as there is room; the paths' own lines are escaped already, which escaping leaves alone."""
        if self._full:
            return
        shown, cut = shorten(escape(text.removesuffix("\n")), 2000)
        shown += f"… ({counted(cut, 'more character')})" if cut else ""
        self._characters += len(shown)
        if len(self._lines) >= self.most.lines or self._characters > self.most.characters:
            self._full = True
            self._say("warning", "The difference is longer than what is shown here.")
            return
        self._lines.append(DryLine(kind, shown))

    def _say(self, kind: DryKind, text: str) -> None:
        self._lines.append(DryLine(kind, text))


def _text(data: bytes) -> list[str] | None:
    """The lines of a text, each with its end; None for what isn't text."""
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def hunks(one: Sequence[str], two: Sequence[str], most: int) -> Iterator[tuple[DryKind, str]]:
    """A unified difference of two texts. Sides of more than `most` lines in which they differ are shown as replaced
    whole: looking for what they share could take for ever. Pure."""
    for group in _grouped(_operations(one, two, most)):
        first, last = group[0], group[-1]
        yield "hunk", f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for what, begin, end, new_begin, new_end in group:
            if what == "equal":
                yield from (("same", line) for line in one[begin:end])
            else:
                yield from (("removed", line) for line in one[begin:end])
                yield from (("added", line) for line in two[new_begin:new_end])


def _operations(one: Sequence[str], two: Sequence[str], most: int) -> list[Op]:
    shorter = min(len(one), len(two))
    head = next((n for n in range(shorter) if one[n] != two[n]), shorter)
    tail = next((n for n in range(shorter - head) if one[-1 - n] != two[-1 - n]), shorter - head)
    old, new = one[head : len(one) - tail], two[head : len(two) - tail]
    if max(len(old), len(new)) > most:
        middle: list[Op] = [("replace", 0, len(old), 0, len(new))]
    else:
        # With its automatic junk: two alternating lines, a thousand times, would else take minutes.
        middle = list(SequenceMatcher(None, old, new).get_opcodes())
    return [
        *([("equal", 0, head, 0, head)] if head else []),
        *((what, a + head, b + head, c + head, d + head) for what, a, b, c, d in middle),
        *([("equal", len(one) - tail, len(one), len(two) - tail, len(two))] if tail else []),
    ]


def _grouped(operations: Sequence[Op]) -> Iterator[list[Op]]:
    """The operations with a few equal lines around each change; what is far apart becomes groups of its own."""
    group: list[Op] = []
    for number, (what, a, b, c, d) in enumerate(operations):
        if what != "equal":
            group.append((what, a, b, c, d))
            continue
        after = min(_CONTEXT if number else 0, b - a)
        before = min(_CONTEXT if number < len(operations) - 1 else 0, b - a)
        if number and number < len(operations) - 1 and b - a <= 2 * _CONTEXT:
            group.append((what, a, b, c, d))
            continue
        if after:
            group.append((what, a, a + after, c, c + after))
        if any(op[0] != "equal" for op in group):
            yield group
        group = [(what, b - before, b, d - before, d)] if before else []
    if any(op[0] != "equal" for op in group):
        yield group


def _range(begin: int, end: int) -> str:
    return f"{begin + 1 if end > begin else begin},{end - begin}"
