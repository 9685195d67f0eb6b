"""An imported operation as far as its undo is concerned: its place, its needs, the thing that it takes and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies.services import Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a thing, as a schema has it. `kinds` are JSON's types, none where anything may stand; `inner` are
    the names that an object called metadata holds. `parts` of an object, those of them that it can't do without, and
    `items` of a list, and `alternatives`, are known a few levels deep; none where nothing plain is said of them."""

    kinds: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    parts: Mapping[str, Field] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    items: Field | None = None
    alternatives: tuple[Field, ...] = ()  # what it may be, where that is one of several
    choices: frozenset[str] = frozenset()  # the texts that it may be; none: any
    read_only: bool = False
    write_only: bool = False  # not shown by a read
    tag: bool = False  # says the thing's type, the same as long as there is the thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An object: the name of its schema ("" where it has none), its fields, and which of these it can't do without.
    `open`: its document says that it has others, too. `varies`: it says that there are several kinds of it, which may
    have others."""

    name: str
    fields: Mapping[str, Field]
    needed: frozenset[str] = frozenset()
    open: bool = False
    varies: bool = False

    @property
    def partial(self) -> bool:
        """Whether one of these may have fields that aren't known."""
        return self.open or self.varies


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation, as far as its undo is concerned.

    `forms` are the patterns of its path's names; `needed` the arguments that it can't do without; `codes` the answers
    that its document speaks of (none: it doesn't say).
    """

    id: str
    name: str
    http: str
    path: str
    risk: Risk
    scopes: frozenset[str]
    virtual: bool  # its scopes are our own
    needed: frozenset[str]
    optional: frozenset[str] = frozenset()
    holes: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names in the path, and their types
    forms: Mapping[str, str] = field(default_factory=dict)
    body: Shape | None = None  # of the argument called body, or of the arguments that a form is made of
    spread: bool = False  # the body's fields are arguments themselves
    has_body: bool = False
    body_around: str = ""  # "data." where the body is an envelope around the thing
    answer: Shape | None = None
    around: str = ""  # the same of its answer
    select: str = ""  # the argument that takes a list of the fields to show
    shows: frozenset[str] = frozenset()  # what may stand in it; none: anything
    lists: str = ""  # where in its answer the list is, of one that answers with one
    items: Shape | None = None  # what is in that list
    untold: bool = False  # its document doesn't say what it answers with
    codes: frozenset[int] = frozenset()
    said: str = ""  # its document's words about it
    given: Mapping[str, str] = field(default_factory=dict)  # names in the path that a field of its body gives alone

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The thing: its path, and what may stand in it."""
        return self.path, tuple(sorted(self.forms.items()))

    @property
    def apart(self) -> frozenset[str]:
        """The arguments that it can't do without, beside its body."""
        return self.needed - {"body"} - self._spread

    @property
    def others(self) -> frozenset[str]:
        """The arguments that it can do without, beside its body."""
        return self.optional - self._spread

    @property
    def _spread(self) -> frozenset[str]:
        return frozenset(self.body.fields) if self.spread and self.body is not None else frozenset()

    def there(self, names: Iterable[str]) -> dict[str, str]:
        """Arguments of these names with the request's values."""
        return {one: f"$request.{self.asked(self.given[one]) if one in self.given else one}" for one in sorted(names)}

    def asked(self, name: str) -> str:
        """Where the request has a field of the body, without its `$request.`."""
        return name if self.spread else f"body.{self.body_around}{name}"
