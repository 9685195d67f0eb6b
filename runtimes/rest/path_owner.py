"""Whose path a call's is: a value in a slot may make it the path of another method, which nobody was asked about.

`/files/{id}` with the id "trash" is `/files/trash`, where an API may empty the trash. A path is another method's where
that one has a word and ours has a slot, however a server reads upper and lower case, an ending like `.json` or an
encoded slash. It counts for requests of the same HTTP method, and of any where the other method may do more harm.
The templates of a service's paths are kept until its catalog changes, and found by their words: a service may have
100,000 of them.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from urllib.parse import unquote

from mapper.catalog import Catalog
from policies.errors import InvalidInput
from policies.normal_form import nfkc
from policies.services import Method, Service, believed_risk
from runtimes.gateway.routes import visible, without_suffix

HOLE = re.compile(r"\{(?P<several>\+?)(?P<name>[^{}]+)\}(?P<end>[^{}]*)")
_SLASH = re.compile(r"[/\\]")
_DECODED = 3  # times that a server may decode a path
_SERVICES = 32  # whose paths are kept
_WORD, _PARTLY, _FREE = 2, 1, 0  # what a template says of a segment
_DOTLESS = {0x130: "i", 0x131: "i"}  # the only letters that, normalised, are an ASCII one's but for case


@dataclass(frozen=True)
class _Template:
    """A method's path. `parts`: each segment as a pattern; `words`: as a value is spelled (`_key`) that fits it alone,
    or None; `exact`: how much it says; `many`: the one that stands for several, or -1."""

    name: str
    http: str
    parts: tuple[str, ...]
    words: tuple[str | None, ...]
    exact: tuple[int, ...]
    many: int
    slot: str  # the argument of `many`

    @classmethod
    def of(cls, name: str, http: str, path: str) -> _Template | None:
        """None for a path that can be divided in several ways."""
        parts: list[str] = []
        words: list[str | None] = []
        exact: list[int] = []
        many, slot = -1, ""
        # Of what can't be called a path stands as its document has it, perhaps encoded and with a query behind it.
        alone = re.split(r"[?#]", re.sub(r"\{[?&#][^{}]*\}", "", path))[0]
        for place, segment in enumerate(part for part in alone.split("/") if part):
            word: str | None = None
            hole = HOLE.fullmatch(segment) if "{" in segment else None
            if hole is not None and hole["several"]:
                if many >= 0:
                    return None
                many, slot = place, hole["name"]
                parts.append("(?P<many>.+)" + re.escape(hole["end"]))
                exact.append(_PARTLY if hole["end"] else _FREE)
            elif "{" in segment and len(texts := re.split(r"(?:\{[^{}]*\})+", segment)) > 1:
                first, *inner, last = map(_word, texts)
                # Whatever stands between two names is found where it comes first: no value has a matcher try them all.
                parts.append(first + "".join(f"(?>[^\n]+?{text})" for text in inner) + f"[^\n]+{last}")
                exact.append(_PARTLY if first or inner or last else _FREE)
            else:
                text = _spelled(segment)
                word = _key(text) if text.isascii() and "\n" not in text else None
                parts.append(re.escape(text))
                exact.append(_WORD)
            words.append(word)
        return cls(name, http, tuple(parts), tuple(words), tuple(exact), many, slot)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        # Made when a path may fit: of 100,000 templates most never are.
        return re.compile("\n".join(self.parts), re.IGNORECASE | re.DOTALL)

    def said(self, segments: Sequence[str]) -> tuple[int, ...]:
        """How much the template says of each segment of a path that fits it."""
        spare = len(segments) - len(self.exact)
        if self.many < 0:
            return self.exact
        at = self.many
        return (*self.exact[:at], *[_FREE] * spare, *self.exact[at:])

    def fits(self, segments: Sequence[str]) -> re.Match[str] | None:
        if len(segments) < len(self.exact) or (self.many < 0 and len(segments) != len(self.exact)):
            return None
        if self.many >= 0:
            behind = len(self.words) - self.many - 1
            fixed = [*zip(self.words[: self.many], segments, strict=False)]
            fixed += zip(self.words[self.many + 1 :], segments[len(segments) - behind :], strict=True)
            if any(word is not None and word != _key(segment) for word, segment in fixed):
                return None
        return self.pattern.fullmatch("\n".join(segments))


def _word(text: str) -> str:
    """A fixed text of a path as a pattern."""
    return re.escape(_spelled(text))


def _spelled(text: str) -> str:
    """A fixed text of a path, spelled as `_spellings` has a value."""
    return visible(nfkc(unquote(text)))


def _key(segment: str) -> str:
    """What spellings of a word in ASCII have in common that differ in case."""
    return (segment if segment.isascii() else segment.translate(_DOTLESS)).lower()


@dataclass(slots=True)
class _Branch:
    """The templates that begin with the same segments: those that go on with a word, with something else, and those
    that end here."""

    words: dict[str, _Branch] = field(default_factory=dict)
    other: _Branch | None = None
    ends: list[_Template] = field(default_factory=list)


class _Paths:
    """The templates of a service as a tree of segments, beside those that may have any number of them."""

    def __init__(self, templates: Iterable[_Template | None]) -> None:
        self._tree = _Branch()
        self._any: list[_Template] = []
        for template in templates:
            if template is None:
                continue
            if template.many >= 0:
                self._any.append(template)
                continue
            at = self._tree
            for word in template.words:
                if word is None:
                    at.other = at.other or _Branch()
                    at = at.other
                else:
                    at = at.words.setdefault(word, _Branch())
            at.ends.append(template)

    def fitting(self, segments: Sequence[str]) -> Iterator[tuple[_Template, re.Match[str]]]:
        """The templates that fit a path, and how."""
        branches = [self._tree]
        for segment in segments:
            key = _key(segment)
            both = [(branch.words.get(key), branch.other) for branch in branches]
            branches = [branch for pair in both for branch in pair if branch is not None]
        for template in (*(each for branch in branches for each in branch.ends), *self._any):
            if (found := template.fits(segments)) is not None:
                yield template, found


class _Known:
    """The paths of the services that were asked about last, by the catalog's generation."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, str], tuple[Catalog, int, _Paths]] = OrderedDict()

    def has(self, catalog: Catalog, service: str) -> bool:
        with self._lock:
            known = self._kept.get((id(catalog), service))
        return known is not None and known[1] == catalog.generation_of(service)

    def of(self, catalog: Catalog, service: str) -> _Paths:
        key, generation = (id(catalog), service), catalog.generation_of(service)
        with self._lock:
            known = self._kept.get(key)
        if known is None or known[1] != generation:
            known = catalog, generation, _Paths(_Template.of(*each) for each in catalog.paths(service))
        with self._lock:
            self._kept[key] = known
            self._kept.move_to_end(key)
            while len(self._kept) > _SERVICES:
                self._kept.popitem(last=False)
        return known[2]


_KNOWN = _Known()


async def learn_paths(catalog: Catalog, services: Iterable[str]) -> None:
    """Read the paths of these services in a thread, where they aren't known yet: that of 100,000 methods takes
    seconds, and others are served meanwhile. What the catalog doesn't have is passed over."""
    for service in sorted({*services} & catalog.services.keys()):
        if not _KNOWN.has(catalog, service):
            await asyncio.to_thread(_KNOWN.of, catalog, service)


def check_path_owner(catalog: Catalog, service: Service, method: Method, path: Sequence[str]) -> None:
    """Raise InvalidInput where `path`, the segments below the service's base, is another method's."""
    if "{" not in method.path or _Template.of(method.name, method.http, method.path) is None:
        return  # nothing is free, or what of it can't be told: the forms of its names hold it
    others = {
        other.name: other.http
        for segments, divided in _spellings(path)
        for other, found in _KNOWN.of(catalog, service.name).fitting(segments)
        if other.name != method.name
        and _is_closer(other, method, segments, divided)
        and _takes(other, found, method, catalog, service, divided is not None)
    }
    if others:
        there, its = "/".join(path)[:80], min(others, key=lambda name: (others[name] != method.http, name))
        raise InvalidInput(
            f"{method.id}: /{there} is the path of {service.name}.{its}, another method.",
            next_step=f"Call {service.name}.{its} itself.",
        )


def _is_closer(other: _Template, method: Method, segments: Sequence[str], divided: slice | None) -> bool:
    """Whether a path is rather the other method's: it has a word where ours has a slot, or (of what an encoded slash
    divides) within what was one value."""
    theirs = other.said(segments)
    if divided is not None:
        return _WORD in theirs[divided]
    return any(their > our for their, our in zip(theirs, _own_words(method, segments), strict=True))


def _takes(
    other: _Template, found: re.Match[str], method: Method, catalog: Catalog, service: Service, divided: bool
) -> bool:
    """Whether the other method is sent so, or does more harm, and a name of several segments is one of its own. What an
    encoded slash would divide (`group%2Fproject`) is a name of its own to most servers: there it must be both."""
    there = catalog.method(f"{service.name}.{other.name}")
    same = {"HEAD": "GET"}.get(there.http, there.http) == {"HEAD": "GET"}.get(method.http, method.http)
    more = believed_risk(service, there) > believed_risk(service, method)
    if not (same and more if divided else same or more):
        return False
    pattern = there.parameters.get("properties", {}).get(other.slot, {}).get("pattern") if other.many >= 0 else None
    return not isinstance(pattern, str) or re.search(pattern, found["many"].replace("\n", "/")) is not None


def _own_words(method: Method, segments: Sequence[str]) -> tuple[int, ...]:
    """How much the method itself says of each segment, by its path and by the form of a name of several segments
    (`^projects/[^/]+/topics/[^/]+$`)."""
    own = _Template.of(method.name, method.http, method.path)
    if own is not None and own.many < 0 and len(own.exact) == len(segments):
        return own.exact  # also where a suffix was left out
    if own is None or not own.fits(segments):
        return (_FREE,) * len(segments)
    said = list(own.said(segments))
    if own.many >= 0:
        taken = len(segments) - len(own.exact) + 1
        pattern = method.parameters.get("properties", {}).get(own.slot, {}).get("pattern", "")
        words = str(pattern).removeprefix("^").removesuffix("$").replace("[^/]+", "").split("/")
        if len(words) == taken:
            for place, word in enumerate(words, own.many):
                if re.fullmatch(r"[A-Za-z0-9_-]+", word):
                    said[place] = _WORD
    return tuple(said)


def _spellings(path: Sequence[str]) -> Iterator[tuple[list[str], slice | None]]:
    """The segments as servers may read them; with a slice, those that one of them was divided into."""
    plain = [visible(nfkc(segment)) for segment in path]
    while plain and not plain[-1]:
        plain.pop()
    yield from _with_bare(plain, None)
    for place, segment in enumerate(plain):
        decoded = segment
        for _ in range(_DECODED):
            decoded = unquote(decoded)
        parts = [part for part in _SLASH.split(decoded) if part]
        made = [*plain[:place], *parts, *plain[place + 1 :]]
        if len(parts) > 1:
            yield from _with_bare(made, slice(place, place + len(parts)))
        elif parts and parts != [segment]:
            yield from _with_bare(made, None)


def _with_bare(segments: list[str], divided: slice | None) -> Iterator[tuple[list[str], slice | None]]:
    """The segments, and once more without what servers leave out at the end."""
    yield segments, divided
    if segments and (bare := without_suffix(segments[-1])) != segments[-1] and bare:
        yield [*segments[:-1], bare], divided
