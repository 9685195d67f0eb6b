"""The variables of a scope, in layers: each of several ways that part has one of its own.

Rules: a way costs what it changes, not what there is; where ways meet, what they changed goes into the layer below
them, so that as many layers lie on each other as statements lie in each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mapper.code.abstract_values import Value, joined, same, weight


class Names:
    """Variables by name. Values are never None: that stands for a name which a layer takes away."""

    __slots__ = ("_below", "_own", "ever")

    def __init__(self, own: Mapping[str, Value] | None = None, *, below: Names | None = None) -> None:
        self._own: dict[str, Value | None] = dict(own or {})
        self._below = below
        # All that was ever put anywhere, where that is asked for.
        self.ever: dict[str, list[Value]] | None = below.ever if below is not None else None

    def get(self, name: str) -> Value | None:
        """The value of that name; None where there is none."""
        layer: Names | None = self
        while layer is not None:
            if name in layer._own:
                return layer._own[name]
            layer = layer._below
        return None

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: str) -> Value:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, value: Value) -> None:
        self.update({name: value})

    def update(self, values: Mapping[str, Value] | Mapping[str, Value | None]) -> None:
        self._own.update(values)
        for name, value in values.items() if self.ever is not None else ():
            there = self.ever.setdefault(name, []) if self.ever is not None else []
            if value is not None and not (there and there[-1] is value):
                there.append(value)

    def drop(self, name: str) -> None:
        """There is nothing of that name any more. Idempotent."""
        self._own[name] = None

    def items(self) -> Iterator[tuple[str, Value]]:
        """All of them: costs what there is."""
        found = self.since(None)
        return ((name, value) for name, value in found.items() if value is not None)

    @property
    def on_a_way(self) -> bool:
        """Whether these are of one of several ways."""
        return self._below is not None

    def layer(self) -> Names:
        """A way of its own, above these."""
        return Names(below=self)

    def since(self, base: Names | None) -> dict[str, Value | None]:
        """What was changed in the layers above `base`, as it is now."""
        layers = []
        layer: Names | None = self
        while layer is not None and layer is not base:
            layers.append(layer._own)
            layer = layer._below
        found: dict[str, Value | None] = {}
        for own in reversed(layers):
            found.update(own)
        return found

    def settle(self, base: Names) -> Names:
        """`base` with what was changed above it: one way goes on. Returns `base`."""
        base._own.update(self.since(base))
        return base


@dataclass(slots=True)
class Around:
    """A function or a loop that runs: what its variables are above, and what was changed on ways that left it."""

    function: bool
    above: Names
    left: list[dict[str, Value | None]] = field(default_factory=list)
    rounds: list[dict[str, Value | None]] = field(default_factory=list)  # that left a round of the loop


def met(base: Names, ways: Sequence[Names]) -> tuple[dict[str, Value], int]:
    """What differs from `base` where ways meet that parted from it: what isn't set on one of them is what it is on the
    others. Returns it, and how much there was to look at."""
    work = 0
    changed: dict[str, list[tuple[int, Value]]] = {}
    for place, way in enumerate(ways):
        since = way.since(base)
        work += 1 + len(since)
        for name, value in since.items():
            if value is not None:
                changed.setdefault(name, []).append((place, value))
    made: dict[str, Value] = {}
    for name, there in changed.items():
        found = [value for _, value in there]
        as_before = next((at for at, (place, _) in enumerate(there) if place != at), len(there))
        old = base.get(name)
        if len(there) < len(ways) and old is not None:
            found.insert(as_before, old)
        work += sum(map(weight, found)) // 8
        made[name] = found[0] if all(same(found[0], other) for other in found[1:]) else joined(found)
    return made, work


def meet(base: Names, ways: Sequence[Names]) -> int:
    """Make `base` what it is where ways meet that parted from it. Returns how much there was to look at."""
    if len(ways) == 1:
        ways[0].settle(base)
        return 1
    made, work = met(base, ways)
    base.update(made)
    return work
