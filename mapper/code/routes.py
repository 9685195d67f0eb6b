"""Which of a service's methods an address is: by host, base path, HTTP method and path template.

Rules: a written segment beats a placeholder, and a written `:verb` at the end all else; of several methods at one
address (an API's PATCH, cut into what it changes) it is the one whose fixed values are there and which has all the
names that are. What could be two is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from mapper.catalog import Catalog
from policies.services import Method, Service

_SLOT = re.compile(r"\{(\+?)([^{}]+)\}")
_LONGEST = 40  # segments of a path


@dataclass(frozen=True, slots=True)
class Hole:
    """A part of a path that isn't known; it may hold several segments, or none that it seems."""


HOLE = Hole()
GAP = "\ue000"  # stands for a part of a text that isn't known
Segment = tuple[str | Hole, ...]  # the parts of one segment


@dataclass(frozen=True, slots=True)
class Template:
    """One segment of a path as the catalog has it: written out, or with placeholders in it."""

    text: str
    slots: tuple[tuple[str, bool], ...] = ()  # name, and whether it may be several segments

    @property
    def verb(self) -> bool:
        """Whether it ends in a verb behind a placeholder, as `{id}:cancel`."""
        return bool(self.slots) and re.search(r"\}:\w+$", self.text) is not None

    @property
    def alone(self) -> str:
        """The placeholder's name where it is all of the segment."""
        return self.slots[0][0] if len(self.slots) == 1 and _SLOT.fullmatch(self.text) else ""


@dataclass(frozen=True, slots=True)
class Route:
    """One method's address, below its service's base URL."""

    method_id: str
    http: str
    segments: tuple[Template, ...]
    origin: str = ""  # the provider's own id

    @classmethod
    def of(cls, method_id: str, http: str, path: str, origin: str = "") -> Route:
        made = []
        for segment in path.strip("/").split("/") if path.strip("/") else ():
            slots = tuple((match[2], match[1] == "+") for match in _SLOT.finditer(segment))
            made.append(Template(segment, slots))
        return cls(method_id, http, tuple(made), origin)

    @property
    def shape(self) -> tuple[str, ...]:
        return tuple("{}" if one.alone else one.text for one in self.segments)


@dataclass(frozen=True, slots=True)
class Met:
    """A route that fits an address: the values of its placeholders as far as they are known, and how well it fits."""

    route: Route
    slots: Mapping[str, str | None]
    rank: tuple[int, ...]
    written: Mapping[str, str] = field(default_factory=dict)  # of those that are known in part, with GAP for the rest


def fit(route: Route, segments: Sequence[Segment], spanning: bool = False) -> Met | None:
    """How an address's segments fit a route; None when they don't. `spanning`: a hole may be several placeholders."""
    slots: dict[str, str | None] = {}
    partly: dict[str, str] = {}
    place = 0
    written = 0
    for number, template in enumerate(route.segments):
        if place >= len(segments):
            return None
        several = next((name for name, many in template.slots if many), "")
        if several and template.alone:
            left = len(route.segments) - number - 1
            end = len(segments) - left
            if end <= place:
                return None
            taken = segments[place:end]
            known = all(isinstance(part, str) for one in taken for part in one)
            whole = "/".join(unquote("".join(part if isinstance(part, str) else GAP for part in one)) for one in taken)
            slots[several] = whole if known else None
            if not known:
                partly[several] = whole
            place = end
            continue
        segment = segments[place]
        if spanning and segment == (HOLE,) and template.alone:
            # As many placeholders as there are in a row, all in this one part that isn't known.
            row = number
            while row < len(route.segments) and route.segments[row].alone:
                slots[route.segments[row].alone] = None
                row += 1
            rest = fit(Route(route.method_id, route.http, route.segments[row:]), segments[place + 1 :])
            if rest is None:
                return None
            return Met(route, {**slots, **rest.slots}, (rest.rank[0], written + rest.rank[1]))
        if several and place < len(segments) - (len(route.segments) - number):
            # `{+name}:verb`: the name's first segments, and the last with the verb behind it.
            end = len(segments) - (len(route.segments) - number - 1)
            before = segments[place : end - 1]
            last = _segment(template, segments[end - 1])
            if last is None or several not in last:
                return None
            front = "/".join(unquote("".join(part if isinstance(part, str) else GAP for part in one)) for one in before)
            whole = f"{front}/{last[several] if last[several] is not None else GAP}"
            slots.update(last)
            slots[several] = whole if GAP not in whole else None
            if GAP in whole:
                partly[several] = whole
            written += 1
            place = end
            continue
        found = _segment(template, segment)
        if found is None:
            return None
        slots.update(found)
        written += not template.alone
        place += 1
    if place != len(segments):
        return None
    return Met(route, slots, (bool(route.segments) and route.segments[-1].verb, written), partly)


def _segment(template: Template, segment: Segment) -> dict[str, str | None] | None:
    known = all(isinstance(part, str) for part in segment)
    written = "".join(str(part) for part in segment) if known else ""
    if not template.slots:
        return {} if known and unquote(written) == unquote(template.text) else None
    if template.alone:
        if known and not written:
            return None
        return {template.alone: unquote(written) if known else None}
    # Placeholders beside text, like `{id}:cancel`.
    ends = _SLOT.split(template.text)
    before, after = ends[0], ends[-1]
    if known:
        pattern = "".join(
            re.escape(one) if place % 3 == 0 else "(.+)" if place % 3 == 2 else "" for place, one in enumerate(ends)
        )
        match = re.fullmatch(pattern, written)
        if match is None:
            return None
        return {name: unquote(value) for (name, _), value in zip(template.slots, match.groups(), strict=True)}
    first, last = segment[0], segment[-1]
    if before and not (isinstance(first, str) and first.startswith(before)):
        return None
    if after and not (isinstance(last, str) and last.endswith(after)):
        return None
    return {name: None for name, _ in template.slots}


@dataclass(frozen=True, slots=True)
class Place:
    """A base URL under which a service's methods are: host (with a port that isn't the scheme's own) and path."""

    scheme: str
    host: str
    path: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Place | None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return None
        if not parts.hostname or parts.scheme not in ("http", "https", "goex-url"):
            return None
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        host = parts.hostname.lower() + (f":{port}" if port and port != usual else "")
        return cls(parts.scheme, host, tuple(one for one in parts.path.strip("/").split("/") if one))


@dataclass(slots=True)
class Routes:
    """A service's methods by where they are; read when they are first asked for."""

    catalog: Catalog
    service: Service
    places: tuple[tuple[Place, str], ...]  # and the base that it is, "" for the service's own
    _routes: tuple[Route, ...] | None = field(default=None)
    _names: dict[str, list[Route]] = field(default_factory=dict)

    def all(self) -> tuple[Route, ...]:
        if self._routes is None:
            self._routes = tuple(self._read())
        return self._routes

    def documents(self) -> tuple[str, dict[str, str]]:
        """Where a GraphQL service takes its documents, and its methods by what they are (`query.issue`)."""
        store = self.catalog.store
        rows = store.routes_of(self.service.name) if store is not None and self.service.provider == "graphql" else ()
        return (rows[0][3] if rows else ""), {origin: f"{self.service.name}.{name}" for name, origin, _, _ in rows}

    def named(self, name: str) -> list[Route]:
        """The methods of that name below the service, or by their provider's ids (see `plain_name`)."""
        if not self._names:
            for route in self.all():
                own = plain_name(route.method_id.partition(".")[2])
                for known in {own, plain_name(route.origin.partition(".")[2])} - {""}:
                    self._names.setdefault(known, []).append(route)
        return self._names.get(name, [])

    def _read(self) -> Iterable[Route]:
        if self.service.provider == "graphql":
            return  # all of them are at one address, which says nothing of what a document does (`documents`)
        store = self.catalog.store
        if self.service.source == "imported" and store is not None:
            for name, origin, http, path in store.routes_of(self.service.name):
                if http:
                    yield Route.of(f"{self.service.name}.{name}", http, path, origin)
            return
        for method in self.service.methods.values():
            if method.http and not method.unsupported:
                yield Route.of(method.id, method.http, method.path)

    def meeting(self, http: str, segments: Sequence[Segment], either: bool) -> list[list[Met]]:
        """The routes that fit, the best first: in each group one, or those that share an address."""
        if len(segments) > _LONGEST:
            return []
        routes = [
            route for route in self.all() if route.http == http or (either and {route.http, http} <= {"GET", "POST"})
        ]
        plainly = [met for route in routes if (met := fit(route, segments)) is not None]
        found = plainly
        if any(HOLE in segment for segment in segments):
            # What isn't known may be several segments: `/repos/{full_name}/issues` isn't the repository "issues".
            spanning = [met for route in routes if (met := fit(route, segments, spanning=True)) is not None]
            most = max((met.rank for met in plainly), default=(-1,))
            found = plainly if all(met.rank <= most for met in spanning) else spanning
        ranks = sorted({met.rank for met in found}, reverse=True)
        return [[met for met in found if met.rank == rank] for rank in ranks]


def plain_name(name: str) -> str:
    """A method's name as Google's library and its documents both have it: the library's are names of Python."""
    return ".".join(part.replace("-", "_").rstrip("_") for part in name.split("."))


def fixed_of(method: Method) -> dict[str, object]:
    """What a method always sends, and nobody can choose."""
    free = method.parameters.get("properties", {})
    return {
        name: value
        for name, value in method.defaults.items()
        if name not in free and method.locations.get(name) in ("query", "body", "repeat") and value != "$action.key"
    }
