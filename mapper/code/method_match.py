"""From what a program sends to the catalog's methods, and to the values that its calls are held to."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from mapper.catalog import Catalog
from mapper.code.abstract_values import (
    MOST,
    PUT_IN,
    UNKNOWN,
    Fields,
    Lit,
    Value,
    choices,
    parts_of,
    plain,
    text,
    weight,
)
from mapper.code.found_calls import ANY, Finding, FoundCall, How, Unknown
from mapper.code.graphql_calls import Documents
from mapper.code.python import TOO_MUCH
from mapper.code.routes import GAP, Met, Place, Route, Routes, Segment, fit, fixed_of, plain_name
from mapper.code.sent_requests import Enough, Request, Seen, Spoken
from mapper.code.url_parts import Address
from mapper.store.import_rows import ServiceFacts
from mapper.store.service_names import part_of
from policies.display_text import escape, shorten
from policies.services import Method, Service

MAX_CALLS = 400
MAX_WORK = 300_000  # names and values that are looked at for one program
_VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SLACK = "https://slack.com/api"


class Matching:
    """What the catalog knows, for one program."""

    def __init__(self, catalog: Catalog, services: Sequence[str], bases: Mapping[str, Sequence[str]]) -> None:
        self._catalog = catalog
        self._named = tuple(dict.fromkeys(name.partition("/")[0] for name in services))
        self._bases = bases
        self._routes: dict[str, Routes] = {}
        self._others: dict[str, tuple[str, ...]] | None = None
        self._calls: dict[str, FoundCall] = {}
        self._unknown: dict[tuple[int, str], Unknown] = {}
        self._hosts: dict[str, None] = {}
        self._notes: list[str] = []
        self._work = 0
        self._documents = Documents(catalog)

    def finding(self, seen: Seen) -> Finding:
        """What was seen, as calls of the catalog's methods."""
        for address in seen.addresses:
            self._host(address)
        for line, what in seen.unread:
            self._miss(line, what)
        with contextlib.suppress(Enough):
            for request in seen.requests:
                self._spend(1 + weight(request.query) + weight(request.body))
                self._request(request, "sdk" if request.sdk else "url")
            for spoken in seen.spoken:
                self._spend(1 + weight(spoken.given))
                self._spoken(spoken)
        calls = sorted(self._calls.values(), key=lambda call: call.line)
        return Finding(
            calls=tuple(call for call in calls if call.service in self._named),
            others=tuple(call for call in calls if call.service not in self._named),
            unknown=tuple(sorted(self._unknown.values(), key=lambda one: (one.line, one.text)))[:MAX_CALLS],
            hosts=tuple(sorted(self._hosts)),
            notes=(*seen.notes, *self._notes),
            headers=tuple(seen.headers),
        )

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            self._note(TOO_MUCH)
            raise Enough

    # ---- requests by their address

    def _request(self, request: Request, how: How = "url", service: str = "") -> None:
        known, verb = plain(request.verb)
        address = Address.of(request.url)
        if address is None:
            self._miss(request.line, f"a request to an address that isn't known: {_shown(request.url)}")
            return
        self._hosts.setdefault(address.place.host)
        if not known or not isinstance(verb, str) or verb.upper() not in _VERBS:
            self._miss(request.line, f"a request whose method isn't known, to {address.shown}")
            return
        verb = verb.upper()
        what = f"{verb} {address.shown}"
        if request.signed:
            self._miss(request.line, f"{what}: is signed with the secret ({request.signed}), which isn't here")
            return
        query = address.query.merged(request.query)
        for _name, routes, base, segments in self._places(address, service):
            path, methods = routes.documents()
            if methods:
                if fit(Route.of("", verb, path), segments) is None:
                    continue
                found = list(self._documents.calls(request, verb, query, methods, base, how))
                # All of a document's root fields are calls, or none: what one allows is the whole document.
                if len(self._calls) + len(found) > MAX_CALLS:
                    self._miss(request.line, f"{what}: there are more calls in the program than are looked at")
                    return
                for call in found:
                    self._keep(call)
                for wrong in self._documents.wrong():
                    self._miss(request.line, f"{what}: {wrong}")
                return
            either = routes.service.code.either and verb in ("GET", "POST")
            met = self._best(routes.meeting(verb, segments, either=either))
            if not met:
                continue
            chosen = self._chosen(met, query, request.body, routes.service, upload="/upload/" in base)
            if chosen is None:
                names = ", ".join(sorted(one.route.method_id for one in met)[:6])
                self._miss(request.line, f"{what}: could be {names}")
            else:
                self._add(request, chosen, verb, query, base, how, nulls=how != "sdk" and not request.sdk)
            return
        self._miss(request.line, what)

    def _places(self, address: Address, only: str) -> Iterator[tuple[str, Routes, str, tuple[Segment, ...]]]:
        """The services that may be at an address, those that were named first: name, routes, base, what is below."""
        names = [only] if only else [*self._named, *self._there(address.place.host)]
        for name in dict.fromkeys(names):
            routes = self._routes_of(name)
            if routes is None:
                continue
            for place, base in sorted(routes.places, key=lambda pair: -len(pair[0].path)):
                if not _within(address.place, place, name, self._named):
                    continue
                below = address.segments[len(place.path) :]
                written = tuple(one[0] if len(one) == 1 else None for one in address.segments[: len(place.path)])
                if written == place.path or (address.place.scheme == "goex-url" and place is routes.places[0][0]):
                    yield name, routes, base, below if address.place.scheme != "goex-url" else address.segments
                    if address.place.scheme == "goex-url":
                        break

    @cached_property
    def _imported(self) -> tuple[ServiceFacts, ...]:
        """Hundreds of services, read once for a program."""
        store = self._catalog.store
        return store.facts() if store is not None else ()

    def _there(self, host: str) -> tuple[str, ...]:
        """The catalog's services at a host."""
        if self._others is None:
            found: dict[str, list[str]] = {}
            imported = {facts.name: facts.base_url for facts in self._imported}
            for name, service in self._catalog._own.items():
                for url in (service.base_url, *service.code.bases):
                    place = Place.of(url)
                    if place is not None:
                        found.setdefault(place.host, []).append(name)
            for name, url in imported.items():
                place = Place.of(url)
                if place is not None and name not in self._catalog._own:
                    found.setdefault(place.host, []).append(name)
            self._others = {host: tuple(names) for host, names in found.items()}
        return self._others.get(host, ())

    def _routes_of(self, name: str) -> Routes | None:
        if name not in self._routes:
            service = self._catalog.services.get(name)
            if service is None:
                return None
            urls = [*self._bases.get(name, ())] or ([service.base_url] if service.base_url else [])
            places = [(place, "") for url in urls if (place := Place.of(url)) is not None]
            for url in service.code.bases:
                place = Place.of(url)
                if place is not None:
                    places.append((place, url))
            if service.provider == "google":
                upload = _upload_base(service)
                place = Place.of(upload)
                if place is not None:
                    places.append((place, upload))
            self._routes[name] = Routes(self._catalog, service, tuple(places))
        return self._routes[name]

    # ---- calls by a library's name

    def _spoken(self, spoken: Spoken) -> None:
        if spoken.sdk == "slack":
            base = spoken.base if spoken.base is not None and spoken.base != Lit(None) else Lit(_SLACK)
            path = Lit(f"/{spoken.name}")
            parts = [*parts_of(base)]
            if isinstance(parts[-1], str):
                parts[-1] = parts[-1].rstrip("/")
            self._request(
                Request(
                    line=spoken.line, verb=spoken.verb, url=text((*parts, path.value)), kind=spoken.kind,
                    query=spoken.given if spoken.kind == "none" else Fields(),
                    body=Fields() if spoken.kind == "none" else spoken.given,
                ),
                "sdk",
            )  # fmt: skip
            return
        self._google(spoken)

    def _google(self, spoken: Spoken) -> None:
        what = f"{spoken.api.replace(':', ' ')} {spoken.name}"
        names = [name for name in self._named if self._is_api(name, spoken.api)]
        for name in (*names, *[one for one in self._apis(spoken.api) if one not in names]):
            routes = self._routes_of(name)
            if routes is None:
                continue
            prefix = f"{name}."
            wanted = plain_name(spoken.name)
            named = routes.named(wanted)
            # Several parts of one API may have methods of one name: the version says which is meant.
            part = part_of(spoken.api.partition(":")[2])
            route = next((one for one in named if one.method_id.startswith(f"{prefix}{part}.")), None)
            route = route or next(iter(named), None)
            if route is None:
                continue
            self._google_call(spoken, route, routes, what)
            return
        self._miss(spoken.line, f"{what} (Google's API)")

    def _google_call(self, spoken: Spoken, route: Route, routes: Routes, what: str) -> None:
        given = dict(spoken.given.items)
        body = given.pop("body", Lit(None))
        in_path = {name for segment in route.segments for name, _ in segment.slots}
        slots: dict[str, Value] = {name: given.pop(name, UNKNOWN) for name in in_path}
        for (one,) in ((each,) for each in choices(body)):
            fields = one if isinstance(one, Fields) else Fields(more=one != Lit(None))
            query = Fields.of(given, spoken.given.more)
            # The library's name says which it is; of what GoEx has cut out of one, what is sent does.
            met = [Met(route, {}, ())]
            if routes.service.source != "imported":
                met = [
                    Met(other, {}, ())
                    for other in routes.all()
                    if other.http == route.http and other.shape == route.shape
                ]
            chosen = self._chosen(met, query, fields, routes.service, upload=spoken.upload)
            if chosen is None:
                self._miss(spoken.line, f"{what}: could be {', '.join(sorted(one.route.method_id for one in met)[:6])}")
                continue
            request = Request(
                line=spoken.line, verb=Lit(route.http), url=UNKNOWN, body=fields,
                kind="none" if body == Lit(None) else "any" if spoken.upload else "json",
            )  # fmt: skip
            base = _upload_base(routes.service) if spoken.upload else ""
            for found in _products(Fields.of(slots)):
                known = {
                    name: str(value.value) if isinstance(value, Lit) and value.value is not None else None
                    for name, value in found.items
                }
                self._add(request, replace(chosen, slots=known), route.http, query, base, "sdk", nulls=True)

    def _is_api(self, name: str, api: str) -> bool:
        service = self._catalog.services.get(name)
        if service is None:
            return False
        if service.code.sdk:
            return service.code.sdk == api
        title, _, version = api.partition(":")
        return service.provider == "google" and service.provider_name == title and version in service.version.split("+")

    def _apis(self, api: str) -> Iterator[str]:
        """The services that a Google API is, beyond those that were named."""
        for name, service in self._catalog._own.items():
            if service.code.sdk == api:
                yield name
        title, _, version = api.partition(":")
        for facts in self._imported:
            if facts.provider == "google" and facts.provider_name == title and version in facts.version.split("+"):
                yield facts.name

    # ---- which of several, and with which values

    def _best(self, groups: Sequence[list[Met]]) -> list[Met]:
        """The group that fits best; the next one where the values are for none of the first as its patterns say, and
        for one of that: `{+parent}/customers` takes what `partners/{+partner}/customers` doesn't."""
        for group in groups[:2] if len(groups) > 1 else ():
            if any(_as_said(one, self._catalog.method(one.route.method_id)) for one in group):
                return group
        return groups[0] if groups else []

    def _chosen(
        self, met: Sequence[Met], query: Fields, body: Fields, service: Service, *, upload: bool = False
    ) -> Met | None:
        """The one method that these names and values are of; None where it could be two, or is none. `upload`: media
        is sent, so that it is none that says what there is to be without it."""
        methods = [(one, self._catalog.method(one.route.method_id)) for one in met]
        if len(methods) > 1:
            methods = [pair for pair in methods if _as_said(*pair)]
        plain_names = set(service.code.query)
        fixed = [
            {name: value for name, value in fixed_of(method).items() if name not in plain_names}
            for _, method in methods
        ]
        shared = (
            {name for name in fixed[0] if all(other.get(name) == fixed[0][name] for other in fixed)} if fixed else set()
        )
        held = {**dict(query.items), **dict(body.items)}
        names = {name for name, _ in (*query.items, *body.items)} - plain_names
        fitting: list[tuple[int, Met]] = []
        for (one, method), always in zip(methods, fixed, strict=True):
            own = {name: value for name, value in always.items() if name not in shared}
            if any(held.get(name) is None or _differs(held[name], value) for name, value in own.items()):
                continue
            if any(name in held and _differs(held[name], always[name]) for name in shared):
                continue
            takes = _takes(method)
            if len(methods) > 1:
                known = None if takes is None else takes | set(always)
                # A field's part, as forms write it, is its field's: `metadata[order]`.
                if known is not None and any(not {name, name.partition("[")[0]} & known for name in names):
                    continue
                if body.more and not upload and any(set(other) - shared for other in fixed):
                    continue  # what isn't known may make it another
            elif takes is not None and any(
                method.locations.get(name) == "body" and name not in held for name in shared
            ):
                # It always sends what this doesn't: then what this sends has to be among what it takes.
                sent = {name for name, _ in body.items}
                if not sent or not sent <= takes:
                    continue
            fitting.append((len(own), one))
        if not fitting:
            return None
        most = max(count for count, _ in fitting)
        best = [one for count, one in fitting if count == most]
        if len(best) > 1 and service.source == "imported":
            # One address under several names, like `organizations.locations.get` and `locations.get`: the closest.
            closest = max(_closeness(one, self._catalog.method(one.route.method_id)) for one in best)
            best = [one for one in best if _closeness(one, self._catalog.method(one.route.method_id)) == closest]
        return best[0] if len(best) == 1 else None

    def _add(
        self, request: Request, met: Met, verb: str, query: Fields, base: str, how: How, *, nulls: bool
    ) -> None:  # fmt: skip
        path = {name: value for name, value in met.slots.items() if value is not None}
        unknown = [name for name, value in met.slots.items() if value is None]
        for asked in _products(query):
            for sent in _products(request.body):
                self._spend(weight(asked) + weight(sent))
                in_query, open_query = _wire(asked, as_text=True)
                fields, open_fields = _wire(
                    sent, as_text=request.kind == "form", nulls=nulls and request.kind == "json"
                )
                ends = [ANY] if asked.more or (sent.more and request.kind != "none") else []
                call = FoundCall(
                    method_id=met.route.method_id,
                    line=request.line,
                    how=how,
                    http=verb,
                    path=path,
                    query=in_query,
                    fields=fields,
                    open=tuple(dict.fromkeys([*unknown, *open_query, *open_fields, *ends])),
                    body=request.kind,
                    base=base,
                )
                if not self._keep(call):
                    return

    def _keep(self, call: FoundCall) -> bool:
        """Note a call; False where there are too many already."""
        if len(self._calls) >= MAX_CALLS:
            self._note(f"More than {MAX_CALLS} calls were found; the rest isn't listed.")
            return False
        self._calls.setdefault(repr(call), call)
        return True

    # ---- small

    def _host(self, address: str) -> None:
        try:
            host = urlsplit(address).hostname
        except ValueError:
            return
        if host and GAP not in host and len(host) < 254:
            self._hosts.setdefault(host)

    def _miss(self, line: int, what: str) -> None:
        shown, _ = shorten(escape(what.replace(PUT_IN, "…")), 300)
        self._unknown.setdefault((line, shown), Unknown(line=line, text=shown))

    def _note(self, what: str) -> None:
        if what not in self._notes:
            self._notes.append(what)


def _within(address: Place, place: Place, name: str, named: Sequence[str]) -> bool:
    if address.scheme == "goex-url":
        wanted = address.host.replace("-", "_")
        return wanted == name.lower().replace("-", "_") or any(
            wanted.startswith(f"{one.lower().replace('-', '_')}_") for one in named if one == name
        )
    return (address.scheme, address.host) == (place.scheme, place.host)


def _upload_base(service: Service) -> str:
    """Where Google's APIs take media: the same path, under /upload."""
    if service.code.sdk and service.provider != "google":
        return next((base for base in service.code.bases if "/upload/" in base), "")
    split = urlsplit(service.base_url)
    return f"{split.scheme}://{split.netloc}/upload{split.path}"


def _as_said(met: Met, method: Method) -> bool:
    """Whether the path's values are as the catalog says that they are: `projects/…/topics/…`."""
    properties = method.parameters.get("properties", {})
    for name, value in met.slots.items():
        pattern = properties.get(name, {}).get("pattern")
        text = value if value is not None else met.written.get(name, GAP)
        if pattern and re.search(pattern, text.replace(GAP, "x")) is None:
            return False
    return True


def _closeness(met: Met, method: Method) -> int:
    """How much a method's patterns say of its path's values."""
    properties = method.parameters.get("properties", {})
    patterns = [str(properties.get(name, {}).get("pattern", "")) for name in met.slots]
    return sum(len(re.sub(r"\[.*?\][+*]?|[\^$.+*]", "", pattern)) for pattern in patterns)


def _takes(method: Method) -> set[str] | None:
    """The names that a method takes anywhere; None where its body is anything."""
    if "whole" in method.locations.values() or method.mail:
        return None
    return set(method.locations)


def _differs(there: Value, fixed: Any) -> bool:
    """Whether what is there isn't, or needn't be, the value that a method always sends."""
    known, value = plain(there)
    return not known or (value != fixed and str(value) != str(fixed))


def _products(fields: Fields) -> Iterator[Fields]:
    """The fields with each value that is one of a few made one of them."""
    made = [fields]
    for name, value in fields.items:
        found = choices(value)
        if len(found) == 1:
            continue
        if len(made) * len(found) > MOST:
            found = (UNKNOWN,)
        made = [one.merged(Fields(((name, each),))) for one in made for each in found]
    yield from made


def _wire(fields: Fields, *, as_text: bool, nulls: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The values that are known, as they are sent, and the names of the others. What is None isn't sent, or (`nulls`)
    may be sent as null: JavaScript leaves undefined out, and the two are one here."""
    found: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in fields.items:
        known, made = plain(value)
        if known and made is None:
            unknown += [name] * nulls
            continue
        if not known or (as_text and not isinstance(made, str | int | list)) or (as_text and isinstance(made, bool)):
            unknown.append(name)
        elif as_text and isinstance(made, list):
            if all(isinstance(each, str | int) and not isinstance(each, bool) for each in made):
                found[name] = [str(each) for each in made]
            else:
                unknown.append(name)
        else:
            found[name] = str(made) if as_text else made
    return found, unknown


def _shown(value: Value) -> str:
    return "".join(part if isinstance(part, str) else "…" for part in parts_of(value)) or "…"
