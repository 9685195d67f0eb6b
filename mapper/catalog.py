"""The catalog: every service, method and scope that can be asked for at all.

Frozen once opened. What isn't in it can't be called, and a name that is nearly right is an error which says what was
nearly meant, never a guess. Names are exact: `slack.chat.postMessage`.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mapper import manifest
from policies.actions import Call
from policies.catalog import Expect, Method, Scope, Service
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_DOMAIN = b"goex.v1.catalog\0"


class UnknownName(InvalidInput):
    """There is no service, method or scope of that name. The next step names those that are close."""

    code = "unknown-name"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Services by name. Safe to share; validators are compiled when they are first needed."""

    services: Mapping[str, Service]
    _checkers: dict[str, Draft202012Validator] = field(default_factory=dict, init=False, repr=False, compare=False)
    _tools: dict[str, Method] = field(default_factory=dict, init=False, repr=False, compare=False)

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

    def service(self, name: str) -> Service:
        """The service of that name. Raises UnknownName."""
        found = self.services.get(name)
        if found is None:
            raise _unknown(f"There is no service {name[:80]!r}.", name, self.services, "goex catalog list")
        return found

    def method(self, method_id: str) -> Method:
        """The method of that full name (`slack.chat.postMessage`). Raises UnknownName."""
        service_name, dot, method_name = method_id.partition(".")
        if not dot:
            names = [method.id for method in self.methods() if method.name == method_id]
            raise _unknown(f"{method_id[:80]!r} isn't a method's full name, like slack.chat.postMessage.",
                           method_id, names or self.services)  # fmt: skip
        service = self.service(service_name)
        found = service.methods.get(method_name)
        if found is None:
            known = [f"{service_name}.{name}" for name in service.methods]
            raise _unknown(f"{service.title} has no method {method_name[:80]!r} here.", method_id, known)
        return found

    def scope(self, service: str, name: str) -> Scope:
        """The scope of that name. Raises UnknownName."""
        scopes = self.service(service).scopes
        if name not in scopes:
            raise _unknown(f"{service} has no scope {name[:80]!r} here.", name, scopes)
        return scopes[name]

    def methods(self) -> Iterator[Method]:
        """Every method of every service."""
        for service in self.services.values():
            yield from service.methods.values()

    def unlocks(self, service: str, scope: str) -> frozenset[str]:
        """The names of the methods that this scope alone suffices for. Raises UnknownName."""
        self.scope(service, scope)
        return frozenset(m.name for m in self.services[service].methods.values() if scope in m.scopes)

    def by_tool_name(self, name: str) -> Method | None:
        """The method that models know by this name (see `tool_name`); None when there is none."""
        if not self._tools:
            self._tools.update({tool_name(method.id): method for method in self.methods()})
        return self._tools.get(name)

    def validate(self, call: Call) -> Call:
        """The call, its plain defaults filled in. Raises UnknownName, or InvalidArguments saying which argument,
        what was expected and what came. Validating twice changes nothing."""
        from mapper import validation  # compiling schemas costs start-up time, and a look at the catalog needs none

        method = self.method(call.id)
        if method.id not in self._checkers:
            self._checkers[method.id] = validation.checker(method)
        if len(call.account) > 100 or not call.account.isprintable():
            raise validation.InvalidArguments(f"{method.id}: the account's name isn't one.")
        return replace(call, arguments=validation.check(method, call.arguments, self._checkers[method.id]))

    def validate_all(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """Validate the calls of one action; values may come from *earlier* calls alone. Raises as `validate`."""
        from mapper import validation

        if not calls or len(calls) > validation.MAX_CALLS:
            raise validation.InvalidArguments(
                f"An action has 1 to {validation.MAX_CALLS} calls; this one has {len(calls)}."
            )
        for position, call in enumerate(calls):
            for index, path in validation.references(call.arguments):
                if index >= position:
                    raise validation.InvalidArguments(
                        f"{call.id} is call {position}, so it can't take {path} from call {index}.",
                        next_step="Calls are counted from 0, and a value comes from an earlier one.",
                    )
        return tuple(self.validate(call) for call in calls)

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
        services = {method.service for method in wanted.values()}
        facts = {
            "methods": {method_id: _facts(method) for method_id, method in wanted.items()},
            "services": {name: _service_facts(self.services[name]) for name in services},
        }
        return hashlib.sha256(_DOMAIN + canonical(facts)).hexdigest()


def tool_name(method_id: str) -> str:
    """The method's name as function-calling models take it: letters, digits, `_` and `-`, at most 64."""
    name = method_id.replace(".", "-")
    if len(name) <= 64:
        return name
    return f"{name[:51]}-{hashlib.sha256(method_id.encode()).hexdigest()[:12]}"


@cache
def _bundled() -> Catalog:
    folder = files("mapper") / "services"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return Catalog.of(manifest.load(entry.read_text(encoding="utf-8"), file=entry.name) for entry in found)


def _unknown(message: str, name: str, known: Iterable[str], otherwise: str = "") -> UnknownName:
    names = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name[:200].lower(), list(by_lower), n=3, cutoff=0.6)
    if close:
        return UnknownName(message, next_step=f"Did you mean {' or '.join(by_lower[c] for c in close)}?")
    some = ", ".join(names[:30])
    return UnknownName(
        message, next_step=f"There are: {some}{', …' if len(names) > 30 else ''}." if some else otherwise
    )


def _templated(method: Method) -> Iterator[str]:
    undo = method.undo
    if undo is not None:
        yield from (call.method for call in undo.calls)
        yield from (template.method for template in (undo.pre, undo.guard, undo.verify) if template is not None)
    if method.probe is not None:
        yield method.probe.method


def _facts(method: Method) -> JsonValue:
    made: dict[str, Any] = {
        name: getattr(method, name)
        for name in ("service", "name", "description", "http", "path", "parameters", "body", "defaults")
    }
    made["locations"] = dict(method.locations)
    made["scopes"] = list(method.scopes)
    made["risk"] = int(method.risk)
    made["words"] = list(method.words)
    made["undo"] = asdict(method.undo) if method.undo is not None else None
    made["probe"] = asdict(method.probe) if method.probe is not None else None
    return made


def _service_facts(service: Service) -> JsonValue:
    return {
        "base_url": service.base_url,
        "placement": asdict(service.placement),
        "headers": dict(service.headers),
        "success": [_expect(expect) for expect in service.success],
        "scopes": {name: {**asdict(scope), "risk": int(scope.risk)} for name, scope in sorted(service.scopes.items())},
        "source": service.source,
    }


def _expect(expect: Expect) -> JsonValue:
    return asdict(expect)
