"""The Cedar schema that a rule is checked against, made from the catalog.

Types of arguments differ from method to method, and Cedar has one type of context for an action, so a rule is checked
against the arguments of the methods that its head names: those of one method with their own types, those of several
where the types agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.databases import SERVICE
from policies.rules.arguments import BOOLEAN, LONG, STRING, TypesOf
from policies.rules.facts import KINDS, REVERTS, TOOL, WEEKDAYS, Catalogued
from policies.rules.source import Policy
from policies.services import Method, Risk

ENUMS: Mapping[str, tuple[str, ...]] = {
    "Risk": tuple(risk.word for risk in Risk),
    "Undo": ("exact", "compensating", "irreversible", "nothing"),
    "Weekday": WEEKDAYS,
}
ACTIONS = (*KINDS, "revert")
TYPES = ("Agent", "Service", "Method", "Folder", "Action", *ENUMS)
# Of methods of the service `db`: `db.update` and so on.
DATABASES: Mapping[str, Any] = {"statement": {**STRING, "required": False}}
FILES: Mapping[str, Any] = {
    name: {**STRING, "required": False}
    for name in ("language", "program", "tool", "kind")  # the last two of a client's own tool
}


def _record(**attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "Record", "attributes": {name: dict(kind) for name, kind in attributes.items()}}


_TEXTS = {"type": "Set", "element": STRING}
_MAYBE = {**LONG, "required": False}

# Every fact there is, beside `arguments`. README.md and docs say what they mean.
FACTS: Mapping[str, Mapping[str, Any]] = {
    "account": STRING,
    "risk": {"type": "Entity", "name": "Risk"},
    "risk_level": LONG,
    "scopes": _TEXTS,
    "recipients": _TEXTS,
    "recipient_count": LONG,
    "imported": BOOLEAN,
    "undo": {"type": "Entity", "name": "Undo"},
    "calls": LONG,
    "hosts": _TEXTS,
    "databases": _TEXTS,
    "tables": _TEXTS,
    "folder": {**STRING, "required": False},
    "policy": {**STRING, "required": False},  # how a change of a database is taken back; a read has none
    "bounds": _record(files=_MAYBE, bytes=_MAYBE, rows=_MAYBE, requests=_MAYBE),
    "time": _record(
        hour=LONG,
        minute=LONG,
        weekday={"type": "Entity", "name": "Weekday"},
        utc={"type": "Extension", "name": "datetime"},
    ),
    "session": _record(seconds=LONG, actions=LONG),
    "rate": _record(minute=LONG, hour=LONG),
}


def schema_text(arguments: Mapping[str, Any]) -> str:
    """The schema (Cedar's JSON format) where calls have these arguments."""
    context = {
        "type": "Record",
        "attributes": {
            **{name: dict(kind) for name, kind in FACTS.items()},
            "arguments": {"type": "Record", "attributes": dict(arguments)},
        },
    }

    def action(resources: list[str], groups: list[str]) -> dict[str, Any]:
        return {
            "appliesTo": {"principalTypes": ["Agent"], "resourceTypes": resources, "context": context},
            "memberOf": [{"id": group} for group in groups],
        }

    actions: dict[str, Any] = {"revert": {}}
    for kind in KINDS:
        if kind in REVERTS:
            actions[kind] = action(["Method", "Folder"], ["revert"])
        else:
            actions[kind] = action(["Folder"] if kind in ("files", TOOL) else ["Method"], [])
    entities: dict[str, Any] = {
        "Agent": {},
        "Service": {},
        "Method": {"memberOfTypes": ["Service"]},
        "Folder": {"memberOfTypes": ["Folder"]},
        **{name: {"enum": list(values)} for name, values in ENUMS.items()},
    }
    return json.dumps({"": {"entityTypes": entities, "actions": actions}})


@dataclass(slots=True)
class Arguments:
    """Which arguments the methods of a rule's head have, and of what type."""

    catalog: Catalogued
    _types: TypesOf = field(default_factory=lambda: TypesOf(100_000))
    _own: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)

    def methods(self, policy: Policy) -> tuple[Method, ...] | None:
        """The methods that a head names; None when it names none, and any may be meant."""
        how, kind, id = policy.head.resource
        if kind == "Folder":
            return ()
        if how == "eq" and kind == "Method":
            service = self.catalog.services.get(id.partition(".")[0])
            found = service.methods.get(id.partition(".")[2]) if service is not None else None
            return (found,) if found is not None else ()
        if kind == "Service":
            service = self.catalog.services.get(id)
            return tuple(service.methods.values()) if service is not None else ()
        return None

    def of(self, policy: Policy) -> tuple[dict[str, Any], dict[str, tuple[str, str]], frozenset[str]]:
        """Types by name; of what has several types two methods that differ; and every name that there is."""
        methods = self.methods(policy)
        one = methods is not None and len(methods) == 1
        files = policy.head.resource[1] in ("", "Folder") and not one
        found: dict[str, dict[str, Any]] = {}
        first: dict[str, str] = {}
        differ: dict[str, tuple[str, str]] = {}
        own: Mapping[str, Any] = {**(FILES if files else {}), **(DATABASES if _of_databases(policy) else {})}
        names: set[str] = set(own)
        for method_id, name, kind in self._each(methods):
            names.add(name)
            if policy.reads is not None and name not in policy.reads:
                continue
            plain = {key: value for key, value in kind.items() if key != "required"}
            known = found.get(name)
            if known is None:
                found[name], first[name] = plain, method_id
            elif known != plain:
                differ.setdefault(name, (first[name], method_id))
            if one and kind["required"]:
                found[name] = {**plain, "required": True}
        made = {name: {"required": False, **kind} for name, kind in found.items()}
        return {**made, **own}, differ, frozenset(names)

    def _each(self, methods: tuple[Method, ...] | None) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Method, argument, type. Of no method in particular: those of the services that come with GoEx, since an
        imported catalog has tens of thousands."""
        if methods is not None:
            for method in methods:
                for name, kind in self._types(method).items():
                    yield method.id, name, kind
            return
        if not self._own:
            for service in self.catalog.services.values():
                if service.source == "imported":
                    continue
                for method in service.methods.values():
                    for name, kind in self._types(method).items():
                        self._own.setdefault(name, []).append((method.id, kind))
        for name, uses in self._own.items():
            for method_id, kind in uses:
                yield method_id, name, kind


def _of_databases(policy: Policy) -> bool:
    """Whether a rule's head can be about what is done in a database."""
    how, kind, id = policy.head.resource
    return not how or (kind == "Service" and id == SERVICE) or (kind == "Method" and id.startswith(f"{SERVICE}."))
