"""What variables hold, and what the objects that a program made have, where several ways part and meet.

Rules: each change of a variable or an attribute is in a journal: a way is taken back at its end, and where ways meet,
a place holds what any of them left there. What an object is given where it was made belongs to it, on whatever way that
was. Two places can hold one list or mapping: one that is changed is another in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Listed,
    Made,
    Method,
    OneOf,
    Stream,
    Thing,
    Value,
    choices,
    joined,
    same,
    sends,
    weight,
)


@dataclass(slots=True, eq=False)
class Names:
    """The variables of one scope."""

    attributes: dict[str, Value] = field(default_factory=dict)
    shared: bool = False  # something may read them after the scope has ended


Holder = Names | Made
H = TypeVar("H", bound=Names | Made)
Changes = dict[tuple[Holder, str], Value | None]  # None: there is no such variable or attribute
End = Literal["function", "loop", "round"]  # what a way leaves that goes no further
Endings = dict[tuple[End, int], int]
_Held = Listed | Fields | Stream | Thing | Method
_HOLDERS = 64  # places that hold one list or mapping, after which a change of it isn't followed


@dataclass(slots=True)
class Touched:
    """What was put anywhere since a time, as far as that was looked at (`at`), beside what was made since then."""

    at: int
    places: dict[tuple[Holder, str], None] = field(default_factory=dict)
    new: set[Holder] = field(default_factory=set)


class Objects:
    """The changes of all variables and attributes, in order."""

    def __init__(self) -> None:
        self._journal: list[tuple[Holder, str, Value | None]] = []
        self._log: list[tuple[Holder, str, Value | None]] = []  # all that was ever put anywhere, on whatever way
        self._begun: dict[End, list[int]] = {"function": [0], "loop": [0], "round": [0]}
        # By how many of them lie around each other: what was changed on ways that leave one.
        self._ended: dict[tuple[End, int], list[Changes]] = {}
        self._own: list[Names | None] = [None]  # the variables of the functions that are running
        self._any: set[tuple[Holder, str]] = set()  # places that something may change at any time
        # Lists and mappings by their identity: where they were put, and what they are within.
        self._places: dict[int, dict[tuple[Holder, str], None]] = {}
        self._within: dict[int, dict[int, _Held]] = {}
        self._held: dict[int, _Held] = {}

    def born(self, made: H) -> H:
        """An object, or a scope, that is made here. Returns it."""
        self._journal.append((made, "", None))
        self._log.append((made, "", None))
        for name, value in made.attributes.items():
            self._hold(made, name, value)
        return made

    def put(self, made: Holder, name: str, value: Value | None) -> None:
        """`made.name` is this from now on."""
        if (made, name) in self._any:
            value = UNKNOWN
        self._journal.append((made, name, made.attributes.get(name)))
        self._log.append((made, name, value))
        self._hold(made, name, value)
        _set(made, name, value)

    def forget(self, made: Made) -> None:
        """Nothing is known any more of what an object has; what it is besides (`\\0…`) stays."""
        for name in [one for one in made.attributes if not one.startswith("\0")]:
            self.put(made, name, UNKNOWN)

    def loosen(self, places: Iterable[tuple[Holder, str]]) -> None:
        """What these hold may be anything from now on, whatever is put there. What sends requests stays what it is: of
        something unknown none would be told."""
        for made, name in places:
            if (there := made.attributes.get(name)) is None or not sends(there):
                self._any.add((made, name))
                self.put(made, name, UNKNOWN)

    def mark(self) -> int:
        """Where a way begins, for `taken_back`."""
        return len(self._journal)

    def since(self, mark: int) -> Changes:
        """What was changed since then of what was there, as it is now."""
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
        there: dict[tuple[Holder, str], list[tuple[int, Value | None]]] = {}
        for place, way in enumerate(ways):
            for key, value in way.items():
                there.setdefault(key, []).append((place, value))
        work = len(ways)
        for (made, name), set_there in there.items():
            found = [value for _, value in set_there]
            if len(found) < len(ways):  # on the others it is as it was
                as_before = next((at for at, (place, _) in enumerate(set_there) if place != at), len(found))
                found.insert(as_before, made.attributes.get(name))
            work += 1 + sum(weight(value) for value in found if value is not None) // 8
            self.put(made, name, _met(made, found))
        return work

    def moved(self, ways: Sequence[Changes], widened: Callable[[Value | None, Value], Value]) -> bool:
        """Ways are rounds of a loop that goes on: whatever one of them changes may be any of its values. Returns
        whether there is such."""
        changed = False
        known: dict[tuple[int, int], Value] = {}  # what two places hold stays one
        for made, name in {key: None for way in ways for key in way}:
            for way in ways:
                old, value = made.attributes.get(name), way.get((made, name))
                if value is not None and (old is None or not same(old, value)):
                    wider = known.setdefault((id(old), id(value)), widened(old, value))
                    if old is None or not same(old, wider):
                        self.put(made, name, wider)
                        changed = True
        return changed

    # ---- ways that end early

    def end(self, of: End, out: int = 0) -> int:
        """Nothing follows here on this way, in the round, loop or function, or in one `out` of it. Returns how much
        there was to look at."""
        place = len(self._begun[of]) - 1 - out
        if place < 1:
            return 1  # it is the program's end
        changes: Changes = {}
        entries = self._journal[self._begun[of][place] :]
        for made, name, _ in entries:
            if name and (of != "function" or made is not self._own[-1]):
                changes[made, name] = made.attributes.get(name)
            elif not name and isinstance(made, Made):
                changes |= {(made, own): value for own, value in made.attributes.items()}
        self._ended.setdefault((of, place), []).append(changes)
        return len(entries) + len(changes)

    def endings(self) -> Endings:
        """How many ways left each function, loop and round that runs, for `ended_with`."""
        return {key: len(ways) for key, ways in self._ended.items()}

    def ended_with(self, changes: Changes, before: Endings, now: Endings) -> int:
        """The ways that left one between these changed this, too, at their end. Returns how much there was to do."""
        ways = [way for key, there in self._ended.items() for way in there[before.get(key, 0) : now.get(key, 0)]]
        for way in ways:
            way |= changes
        return len(ways) * len(changes)

    def enter(self, own: Names) -> None:
        """A function begins whose variables these are."""
        self._own.append(own)
        self.begin("function")
        self.born(own)

    def leave(self, open_end: bool) -> int:
        """The function ends: on one of the ways that ended in it. Returns how much there was to do."""
        mark = self._begun["function"][-1]
        own = self._own.pop()
        if own is not None and not own.shared:
            for name, value in own.attributes.items():
                for one in choices(value):
                    self._places.get(id(one), {}).pop((own, name), None)
        ways = self.left("function")
        if not ways:
            return 0
        here = self.taken_back(mark)
        return self.meet([*([here] if open_end else []), *ways])

    def begin(self, of: End) -> None:
        """A function, a loop or a round begins."""
        self._begun[of].append(self.mark())

    def left(self, of: End) -> list[Changes]:
        """It ends. Returns the ways that left it."""
        self._begun[of].pop()
        return self._ended.pop((of, len(self._begun[of])), [])

    def logged(self) -> int:
        """Where what is logged from now on begins, for `ever`."""
        return len(self._log)

    def ever(self, since: int) -> Changes:
        """What was put anywhere since then, beside what is there: all that it may have held at some time."""
        found: dict[tuple[Holder, str], list[Value]] = {}
        new: set[Holder] = set()
        for made, name, value in self._log[since:]:
            if not name:
                new.add(made)
            elif made not in new:
                values = found.setdefault((made, name), [])
                if value is not None and not any(value is one for one in values[-3:]):
                    values.append(value)
        changes: Changes = {}
        for (made, name), values in found.items():
            old = made.attributes.get(name)
            several = [*([old] if old is not None else []), *values]
            changes[made, name] = joined(several) if several else None
        return changes

    def again(self, since: int) -> list[tuple[Holder, str]]:
        """What was put anywhere more than once since then."""
        found: dict[tuple[Holder, str], int] = {}
        for made, name, _ in self._log[since:]:
            found[made, name] = found.get((made, name), 0) + bool(name)
        return [place for place, count in found.items() if count > 1]

    def forget_since(self, touched: Touched) -> int:
        """What was put anywhere since then isn't known any more. Returns how much there was to do."""
        entries = self._log[touched.at :]
        for made, name, _ in entries:
            if not name:
                touched.new.add(made)
            elif made not in touched.new:
                touched.places[made, name] = None
        for made, name in touched.places:
            if made.attributes.get(name) is not UNKNOWN:
                self.put(made, name, UNKNOWN)
        touched.at = len(self._log)
        return (len(entries) + len(touched.places)) // 4

    # ---- lists and mappings that are changed in their place

    def replaced(self, old: Value, new: Value) -> int:
        """A list, a mapping or a library's object is this now, wherever it is. Returns how much there was to do."""
        if id(old) not in self._held:
            return 1
        above = {id(old): None}  # and what it is within
        waiting = [id(old)]
        while waiting:
            for one in self._within.get(waiting.pop(), ()):
                if one not in above:
                    above[one] = None
                    waiting.append(one)
        known: dict[int, Value] = {id(old): new}
        places = {key: None for one in above for key in self._places.get(one, ())}
        held = [(made, name, there) for made, name in places if (there := made.attributes.get(name)) is not None
                and any(id(one) in above for one in choices(there))]  # fmt: skip
        for made, name, there in held:
            self.put(made, name, _renewed(there, above, known) if len(held) <= _HOLDERS else UNKNOWN)
        renewed = sum(weight(one) for key, one in known.items() if key != id(old)) // 8
        return len(places) + len(above) + renewed

    def _hold(self, made: Holder, name: str, value: Value | None) -> None:
        for one in choices(value) if value is not None else ():
            if isinstance(one, _Held):
                self._register(one)
                self._places.setdefault(id(one), {})[made, name] = None

    def _register(self, value: _Held) -> None:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if id(one) in self._held:
                continue
            self._held[id(one)] = one
            for inner in _inner(one):
                self._within.setdefault(id(inner), {})[id(one)] = one
                waiting.append(inner)


def fresh(value: Value, deep: bool = False) -> Value:
    """Another list or mapping that has the same in it."""
    match value:
        case OneOf(values=values):
            return OneOf(tuple(fresh(one, deep) for one in values))
        case Listed(items=items, more=more):
            return Listed(tuple(fresh(one, deep) for one in items) if deep else items, more)
        case Fields(items=pairs, more=more):
            return Fields(tuple((key, fresh(one, deep)) for key, one in pairs) if deep else pairs, more)
        case Stream(of=of):
            return Stream(fresh(of, deep) if deep else of)
    return value


def _inner(value: _Held) -> Iterator[_Held]:
    """The lists and mappings within one."""
    match value:
        case Listed(items=items):
            found: Iterable[Value] = items
        case Fields(items=pairs):
            found = [one for _, one in pairs]
        case Stream(of=of) | Method(of=of):
            found = (of,)
        case _:
            found = ()
    return (each for one in found for each in choices(one) if isinstance(each, _Held))


def _renewed(value: Value, above: dict[int, None], known: dict[int, Value]) -> Value:
    """A value in which some are others now (`known`); `above` are those that have them within."""
    if isinstance(value, OneOf):
        made = tuple(_renewed(one, above, known) for one in value.values)
        return value if all(one is other for one, other in zip(made, value.values, strict=True)) else joined(made)
    if id(value) not in above:
        return value
    if id(value) not in known:
        match value:
            case Listed(items=items):
                known[id(value)] = replace(value, items=tuple(_renewed(one, above, known) for one in items))
            case Fields(items=pairs):
                known[id(value)] = replace(value, items=tuple((key, _renewed(one, above, known)) for key, one in pairs))
            case Stream(of=of) | Method(of=of):
                known[id(value)] = replace(value, of=_renewed(of, above, known))
    return known[id(value)]


def _met(made: Holder, found: Sequence[Value | None]) -> Value | None:
    """What a place holds where ways meet that left these there: a variable that isn't set on one of them is what it is
    on the others."""
    if isinstance(made, Made):
        values = [value if value is not None else UNKNOWN for value in found]
    else:
        values = [value for value in found if value is not None]
    plainly = all(same(values[0], other) for other in values[1:]) if values else True
    return found[0] if plainly and len(values) == len(found) else joined(values) if values else None


def _set(made: Holder, name: str, value: Value | None) -> None:
    if value is None:
        made.attributes.pop(name, None)
    else:
        made.attributes[name] = value
