"""The catalog: every service, method and scope that can be asked for at all.

Two layers: the services that come with GoEx, frozen, and those that were imported (`mapper.store`), read when they are
looked at, so that tens of thousands of methods cost neither time nor memory. An imported service never shadows one of
ours. What isn't in the catalog can't be called, and a name that is nearly right is an error which says what was nearly
meant, never a guess. Names are exact: `slack.chat.postMessage`.
"""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mapper.reach import Reach
from mapper.store.catalog_reader import Store, StoreUnreadable
from mapper.store.import_rows import Entry
from mapper.store.tools import tool_name
from policies.actions import Call
from policies.errors import InvalidInput, Unavailable, Unsupported
from policies.jsonvalue import JsonValue, canonical
from policies.services import Expect, Method, Risk, Scope, Service, believed_risk
from policies.stages import MOST_EACH, first_stage

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

__all__ = ["Catalog", "UnknownName", "tool_name"]

_DOMAIN = b"goex.v1.catalog\0"
_CHECKERS = 64  # compiled validators that are kept
_COMPARED = 50_000  # letters of names that an unknown one is compared with; of longer lists these are beside it:
_BESIDE = 150  # names before it, and after it
_WRITTEN = 16  # services whose facts are kept as they are hashed


class UnknownName(InvalidInput):
    """There is no service, method or scope of that name. The next step names those that are close."""

    code = "unknown-name"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Services by name. Safe to share; validators are compiled when they are first needed.

    `services` holds the imported ones too, lazily: going through it is cheap for names, not for methods. `store` is
    where they are, None where there is nothing but what came with GoEx.
    """

    services: Mapping[str, Service]
    store: Store | None = None
    _own: Mapping[str, Service] = field(init=False, repr=False, compare=False)
    _checkers: OrderedDict[str, tuple[Method, Draft202012Validator]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _tools: dict[str, Method] = field(default_factory=dict, init=False, repr=False, compare=False)
    _written: OrderedDict[str, tuple[Service, bytes]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_own", self.services)
        if self.store is not None:
            object.__setattr__(self, "services", _Layers(self._own, self.store))

    @classmethod
    def of(cls, services: Iterable[Service]) -> Catalog:
        """A catalog of these services. Raises InvalidInput when two have one name."""
        made: dict[str, Service] = {}
        for service in services:
            if service.name in made:
                raise InvalidInput(f"Two services are called {service.name!r}.")
            made[service.name] = service
        return cls(MappingProxyType(made))

    @classmethod
    def bundled(cls) -> Catalog:
        """The services that come with GoEx. Read once a process."""
        return _bundled()

    @classmethod
    def open(cls, path: Path, *, alone: bool = False) -> Catalog:
        """The services that come with GoEx, and those imported into the file at `path`, which needn't be there yet.
        `alone`: only the imported ones, so that none of them is hidden by one of ours.

        Never raises: a file that can't be used is said by `trouble`, and by whatever asks for what it may hold.
        """
        return cls(MappingProxyType({}) if alone else _bundled().services, Store(path))

    @property
    def trouble(self) -> Unavailable | None:
        """Why the imported services can't be read; None when they can, or there are none."""
        try:
            if self.store is not None:
                self.store.generation  # noqa: B018 # asking is what opens the file
        except StoreUnreadable as error:
            return error
        return None

    @property
    def generation(self) -> int:
        """Another number after each import and removal; 0 while nothing is imported. Raises StoreUnreadable."""
        return self.store.generation if self.store is not None else 0

    def generation_of(self, service: str) -> int:
        """`generation`, as far as it matters for this service: one of ours doesn't change with an import."""
        return 0 if service in self._own else self.generation

    def service(self, name: str) -> Service:
        """The service of that name. Raises UnknownName; StoreUnreadable where the imported ones can't be read."""
        found = self._own.get(name)
        if found is None and self.store is not None:
            found = self.store.service(name)
        if found is None:
            message, more = f"There is no service {name[:80]!r}.", "Another one is imported: goex catalog import --help"
            raise _unknown(message, name, self.services, more)
        return found

    def method(self, method_id: str) -> Method:
        """The method of that full name (`slack.chat.postMessage`). Raises UnknownName, StoreUnreadable."""
        service_name, dot, method_name = method_id.partition(".")
        if not dot:
            names = [
                f"{service.name}.{method_id}" for service in self._own.values() if method_id in service.methods
            ] + list(self.store.named(method_id) if self.store is not None else ())
            raise _unknown(f"{method_id[:80]!r} isn't a method's full name, like slack.chat.postMessage.",
                           method_id, names or self.services)  # fmt: skip
        service = self.service(service_name)
        found = service.methods.get(method_name)
        if found is None:
            known = [f"{service_name}.{name}" for name in service.methods]
            raise _unknown(f"{service.title} has no method {method_name[:80]!r} here.", method_id, known)
        return found

    def scope(self, service: str, name: str) -> Scope:
        """The scope of that name. Raises UnknownName, StoreUnreadable."""
        scopes = self.service(service).scopes
        if name not in scopes:
            raise _unknown(f"{service} has no scope {name[:80]!r} here.", name, scopes)
        return scopes[name]

    def methods(self) -> Iterator[Method]:
        """Every method of every service, each with its schemas: slow over an imported catalog (see `entries`)."""
        for service in self.services.values():
            yield from service.methods.values()

    def entries(self, *, main: bool = True) -> Iterator[Entry]:
        """Every imported method in short: of main versions alone, unless `main` is False. Raises StoreUnreadable."""
        if self.store is not None:
            yield from (entry for entry in self.store.entries(main=main) if entry.service not in self._own)

    def paths(self, service: str) -> tuple[tuple[str, str, str], ...]:
        """(name, HTTP method, path) of each method of a service that has an address. Raises UnknownName."""
        found = self.service(service)
        if service not in self._own and self.store is not None:
            return tuple(row for row in self.store.paths_of(service) if row[1])
        return tuple((each.name, each.http, each.path) for each in found.methods.values() if each.http)

    def of_origin(self, provider_name: str, origin_id: str, version: str = "") -> Method | None:
        """The imported method that its provider calls so: of that version if one is named, else of the main one."""
        for method_id in self.store.of_origin(origin_id) if self.store is not None else ():
            service = self.services.get(method_id.partition(".")[0])
            if service is None or service.provider_name != provider_name or service.name in self._own:
                continue
            if version in service.version.split("+") if version else service.main:
                return self.method(method_id)
        return None

    def unlocks(self, service: str, scope: str) -> frozenset[str]:
        """The names of the methods that this scope alone suffices for. Raises UnknownName."""
        self.scope(service, scope)
        if service not in self._own and self.store is not None:
            return self.store.unlocks(service, scope)
        return frozenset(m.name for m in self.services[service].methods.values() if scope in m.scopes)

    def reaches(self, service: str, scopes: Iterable[str]) -> Mapping[str, Reach] | None:
        """What these scopes of an imported service open over all that its provider offers; None for one of ours."""
        if service in self._own or self.store is None:
            return None
        return self.store.reaches(service, scopes)

    def outlines(self, service: str, scope: str = "") -> tuple[tuple[str, str, Risk], ...]:
        """(name, description, risk) of a service's methods, or of those that a scope unlocks. Raises UnknownName."""
        found = self.service(service)
        if scope:
            self.scope(service, scope)
        if service not in self._own and self.store is not None:
            return self.store.outlines(service, scope)
        return tuple((m.name, m.description, m.risk) for m in found.methods.values() if not scope or scope in m.scopes)

    def by_tool_name(self, name: str) -> Method | None:
        """The method that models know by this name (see `tool_name`); None when there is none."""
        if not self._tools:
            self._tools.update({tool_name(m.id): m for service in self._own.values() for m in service.methods.values()})
        found = self._tools.get(name)
        if found is None and self.store is not None:
            found = self.store.by_tool_name(name)
            if found is not None and found.service in self._own:
                return None
        return found

    def validate(self, call: Call) -> Call:
        """The call, its plain defaults filled in. Raises UnknownName, or InvalidArguments saying which argument,
        what was expected and what came, or Unsupported. Validating twice changes nothing."""
        from mapper import validation  # compiling schemas costs start-up time, and a look at the catalog needs none

        method = self.method(call.id)
        if method.http:  # a function without an address can be proposed and scored all the same
            self.check_callable(method.id)
        if len(call.account) > 100 or not call.account.isprintable():
            raise validation.InvalidArguments(f"{method.id}: the account's name isn't one.")
        try:
            return replace(call, arguments=validation.check(method, call.arguments, self._checker(method)))
        except validation.WrongForm as error:
            # What lists things like it shows their ids; what it must be told itself, it can't show.
            name = f"{method.name.rpartition('.')[0]}.list"
            found = self.service(call.service).methods.get(name)
            if found is None or found is method or error.argument in found.parameters.get("properties", {}):
                raise
            step = f"{error.next_step} Find it: {found.id}."
            raise validation.WrongForm(error.message, next_step=step) from None

    def check_callable(self, method_id: str) -> None:
        """Raise Unsupported when GoEx can't make such a call at all, UnknownName when there is none."""
        method = self.method(method_id)
        if method.unsupported:
            raise Unsupported(f"{method.id} can't be called through GoEx: {method.unsupported}")

    def check_connectable(self, name: str) -> None:
        """Raise Unsupported for an imported service of which nothing can be called: a credential would be of no use.
        Raises StoreUnreadable."""
        if name not in self._own and self.store is not None and (why := self.store.uncallable(name)):
            raise Unsupported(
                f"No method of {name} can be called through GoEx: {why}",
                next_step="So it takes no credential for it. What it has: goex catalog show " + name,
            )

    def _checker(self, method: Method) -> Draft202012Validator:
        """The method's compiled schema, as long as it is the same method: an import may have replaced it."""
        from mapper import validation

        known = self._checkers.pop(method.id, None)
        if known is None or known[0] is not method:
            known = method, validation.checker(method)
        self._checkers[method.id] = known
        while len(self._checkers) > _CHECKERS:
            self._checkers.popitem(last=False)
        return known[1]

    def validate_all(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """Validate the calls of one action; values may come from *earlier* calls alone. Raises as `validate`."""
        from mapper import validation

        most = MOST_EACH if any(call.filled for call in calls) else validation.MAX_CALLS
        if not calls or len(calls) > most:
            raise validation.InvalidArguments(f"An action has 1 to {most} calls; this one has {len(calls)}.")
        for position, call in enumerate(calls):
            for index, path in validation.references(call.arguments):
                if index >= position:
                    raise validation.InvalidArguments(
                        f"{call.id} is call {position}, so it can't take {path} from call {index}.",
                        next_step="Calls are counted from 0, and a value comes from an earlier one.",
                    )
        checked = tuple(self.validate(call) for call in calls)
        try:
            first_stage(checked, self.is_read)
        except InvalidInput as error:
            raise validation.InvalidArguments(error.message, next_step=error.next_step) from error
        return checked

    def is_read(self, call: Call) -> bool:
        """Whether a call is sure to change nothing."""
        return believed_risk(self.service(call.service), self.method(call.id)) is Risk.READ

    def entry_hash(self, method_ids: Iterable[str]) -> str:
        """SHA-256 (hex) over the whole entries of these methods, of what their templates call, and of their services.

        Equal sets give equal hashes, in whatever order; any change to an entry changes it.
        """
        wanted: dict[str, Method] = {}
        queue = list(method_ids)
        while queue:
            method = self.method(queue.pop())
            if method.id not in wanted:
                wanted[method.id] = method
                queue.extend(f"{method.service}.{name}" for name in _templated(method))
        methods = canonical({method_id: _facts(method) for method_id, method in wanted.items()})
        services = b",".join(map(self._written_facts, sorted({method.service for method in wanted.values()})))
        # The canonical form of {"methods": …, "services": …}, put together.
        return hashlib.sha256(_DOMAIN + b'{"methods":' + methods + b',"services":{' + services + b"}}").hexdigest()

    def _written_facts(self, name: str) -> bytes:
        """A service's name and facts in the canonical form: written once for all its methods, and anew where it is
        another object, as after an import."""
        service = self.service(name)
        known = self._written.pop(name, None)
        if known is None or known[0] is not service:
            known = service, canonical({name: _service_facts(service)})[1:-1]
        self._written[name] = known
        while len(self._written) > _WRITTEN:
            self._written.popitem(last=False)
        return known[1]


class _Layers(Mapping[str, Service]):
    """Our services, and below them the imported ones. Names that can't be read aren't there."""

    def __init__(self, own: Mapping[str, Service], store: Store) -> None:
        self._own = own
        self._store = store

    def __getitem__(self, name: str) -> Service:
        found = self._own.get(name)
        if found is None:
            try:
                found = self._store.service(name)
            except StoreUnreadable:
                raise KeyError(name) from None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._imported() if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._imported()

    def _imported(self) -> tuple[str, ...]:
        try:
            return self._store.names()
        except StoreUnreadable:
            return ()


class _Manifests(Mapping[str, Service]):
    """The services of a folder of manifests: each is read when it is first asked for, which takes 20 ms. A manifest's
    file has the name of its service."""

    def __init__(self, folder: Traversable) -> None:
        found = (entry for entry in folder.iterdir() if entry.name.endswith(".toml"))
        self._files = {entry.name.removesuffix(".toml"): entry for entry in sorted(found, key=lambda entry: entry.name)}
        self._read: dict[str, Service] = {}

    def __getitem__(self, name: str) -> Service:
        found = self._read.get(name)
        if found is None:
            from mapper import manifest

            file = self._files[name]
            made = manifest.load(file.read_text(encoding="utf-8"), file=file.name)
            found = self._read.setdefault(name, made)  # one for all, whoever else has read it meanwhile
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@cache
def _bundled() -> Catalog:
    return Catalog(_Manifests(files("mapper") / "services"))


def _unknown(message: str, name: str, known: Iterable[str], otherwise: str = "") -> UnknownName:
    names = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in names}
    wanted, spelled = name[:200].lower(), sorted(by_lower)
    if sum(map(len, spelled)) > _COMPARED:  # comparing letters takes long, and a document's author chose them
        at = bisect_left(spelled, wanted)
        spelled = spelled[max(0, at - _BESIDE) : at + _BESIDE]
    close = difflib.get_close_matches(wanted, spelled, n=3, cutoff=0.6)
    if close:
        return UnknownName(message, next_step=f"Did you mean {' or '.join(by_lower[c] for c in close)}?")
    some = ", ".join(names[:30])
    there = f"There are: {some}{', …' if len(names) > 30 else ''}." if some else ""
    return UnknownName(message, next_step=" ".join(part for part in (there, otherwise) if part))


def _templated(method: Method) -> Iterator[str]:
    undo = method.undo
    if undo is not None:
        yield from (template.method for template in (*undo.sends, *undo.reads))
    if method.probe is not None:
        yield method.probe.method


def _facts(method: Method) -> JsonValue:
    made: dict[str, Any] = {
        name: getattr(method, name)
        for name in ("service", "name", "description", "http", "path", "parameters", "body", "defaults", "unsupported")
    }
    if method.mail:
        made["mail"] = method.mail
    if method.media:
        made["media"] = method.media
    if method.document:
        made["document"] = method.document
    made["locations"] = dict(method.locations)
    made["scopes"] = list(method.scopes)
    made["risk"] = int(method.risk)
    made["words"] = list(method.words)
    made["undo"] = asdict(method.undo) if method.undo is not None else None
    made["probe"] = asdict(method.probe) if method.probe is not None else None
    if method.audience is not None:
        made["audience"] = [asdict(one) for one in method.audience]
    return made


def _service_facts(service: Service) -> JsonValue:
    return {
        "base_url": service.base_url,
        "placement": asdict(service.placement),
        "headers": dict(service.headers),
        "success": [_expect(expect) for expect in service.success],
        "scopes": {name: {**asdict(scope), "risk": int(scope.risk)} for name, scope in sorted(service.scopes.items())},
        "source": service.source,
        # What runs for an MCP server's methods, and where, is told by this alone.
        **({"version": service.version} if service.provider == "mcp" else {}),
    }


def _expect(expect: Expect) -> JsonValue:
    return asdict(expect)
