"""What the objects that a program made have, where several ways part and meet.

Rules: two names can stand for one object, so that what an object has is changed in its place. Each change is in a
journal: a way is taken back at its end, and where ways meet, an object has what any of them left it. What an object is
given where it was made belongs to it, on whatever way that was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mapper.code.abstract_values import UNKNOWN, Made, Value, joined, same

Changes = dict[tuple[Made, str], Value | None]  # None: it has no such attribute


class Objects:
    """The changes of all objects' attributes, in order."""

    def __init__(self) -> None:
        self._journal: list[tuple[Made, str, Value | None]] = []
        self._begun = [0]  # where the journal was as each function that is running began
        self.ended: list[Changes] = []  # what was changed on ways that nothing follows: they return, or go on in a loop

    def born(self, made: Made) -> Made:
        """An object that is made here. Returns it."""
        self._journal.append((made, "", None))
        return made

    def put(self, made: Made, name: str, value: Value | None) -> None:
        """`made.name` is this from now on."""
        self._journal.append((made, name, made.attributes.get(name)))
        _set(made, name, value)

    def forget(self, made: Made) -> None:
        """Nothing is known any more of what an object has; what it is besides (`\\0…`) stays."""
        for name in [one for one in made.attributes if not one.startswith("\0")]:
            self.put(made, name, UNKNOWN)

    def mark(self) -> int:
        """Where a way begins, for `taken_back`."""
        return len(self._journal)

    def since(self, mark: int) -> Changes:
        """What was changed since then of objects that were there, as it is now."""
        entries = self._journal[mark:]
        new = {made for made, name, _ in entries if not name}
        return {(made, name): made.attributes.get(name) for made, name, _ in entries if made not in new}

    def taken_back(self, mark: int) -> Changes:
        """Make everything as it was then, and return what it had become."""
        entries = self._journal[mark:]
        changes = self.since(mark)
        del self._journal[mark:]
        for made, name, old in reversed(entries):
            if (made, name) in changes:
                _set(made, name, old)
        self._journal += [entry for entry in entries if not entry[1]]
        return changes

    def meet(self, ways: Sequence[Changes]) -> int:
        """Ways meet that parted from what there is now. Returns how much there was to look at."""
        keys = {key: None for way in ways for key in way}
        work = len(keys) * (2 + len(ways))
        for made, name in keys:
            old = made.attributes.get(name)
            found = [way.get((made, name), old) for way in ways]
            values = [value if value is not None else UNKNOWN for value in found]
            plainly = all(same(values[0], other) for other in values[1:])
            self.put(made, name, found[0] if plainly else joined(values))
        return work

    def moved(self, ways: Sequence[Changes], widened: Callable[[Value | None, Value], Value]) -> bool:
        """Ways are rounds of a loop that goes on: whatever one of them changes may be any of its values. Returns
        whether there is such."""
        changed = False
        for made, name in {key: None for way in ways for key in way}:
            for way in ways:
                old, value = made.attributes.get(name), way.get((made, name))
                if value is not None and (old is None or not same(old, value)):
                    self.put(made, name, widened(old, value))
                    changed = True
        return changed

    def end(self) -> int:
        """Nothing follows here on this way. Returns how much there was to look at."""
        changes: Changes = {}
        for made, name, _ in self._journal[self._begun[-1] :]:
            if name:
                changes[made, name] = made.attributes.get(name)
            else:
                changes |= {(made, own): value for own, value in made.attributes.items()}
        if changes:
            self.ended.append(changes)
        return len(self._journal) - self._begun[-1] + len(changes)

    def enter(self) -> tuple[int, int]:
        """A function begins."""
        self._begun.append(self.mark())
        return self.mark(), len(self.ended)

    def leave(self, begun: tuple[int, int]) -> int:
        """A function ends that began there: on one of the ways that ended in it. Returns how much there was to do."""
        self._begun.pop()
        work = self.rejoin(*begun)
        del self.ended[begun[1] :]
        return work

    def rejoin(self, mark: int, ended: int) -> int:
        """What follows here follows the ways, too, that ended since then."""
        ways = self.ended[ended:]
        return self.meet([self.taken_back(mark), *ways]) if ways else 0


def _set(made: Made, name: str, value: Value | None) -> None:
    if value is None:
        made.attributes.pop(name, None)
    else:
        made.attributes[name] = value
