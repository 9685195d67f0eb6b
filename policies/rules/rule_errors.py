"""What is wrong with a file of rules, in its place and in plain words.

Rules: an error is what would make a rule deny by itself, or not do what it says; a warning is a rule that can never
apply as things stand (its service may be imported tomorrow). Cedar's validator names what is wrong, not where: the
place is looked for in the rule's text.
"""

from __future__ import annotations

import difflib
import os.path
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from policies.databases import OTHERWISE, PAIRS, RISKS, SERVICE
from policies.display_text import escape
from policies.grants import ANONYMOUS, PERSON
from policies.rules.book import DEFAULT_FILE, default_text
from policies.rules.cedar_schema import ACTIONS, ENUMS, FACTS, TYPES, Arguments, schema_text
from policies.rules.facts import GOEX, Catalogued
from policies.rules.source import BadRule, Chunk, Effect, Policy, each, joined, nodes_of, path_of, type_name

_ALL_AT_ONCE = "Name the arguments one by one, or the method in the rule's head."


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong. `line` and `column` from 1; `rule` is "" where there is none yet."""

    file: str
    line: int
    column: int
    rule: str
    error: bool
    says: str
    next_step: str = ""


def check(
    files: Mapping[str, str], catalog: Catalogued, agents: Collection[str] = ()
) -> tuple[tuple[Policy, ...], tuple[Finding, ...]]:
    """The rules that these files and the default ones make, and what is wrong with those of the files, in order."""
    texts = files if DEFAULT_FILE in files else {DEFAULT_FILE: default_text(), **files}
    policies: list[Policy] = []
    findings: set[Finding] = set()
    for one in each(texts):
        if isinstance(one, BadRule):
            findings.add(Finding(one.file, one.line, one.column, "", True, one.says, one.next_step))
        else:
            policies.append(one)
    arguments = Arguments(catalog)
    checked = [policy for policy in policies if policy.chunk.file in files]
    by_schema: dict[str, list[Policy]] = {}
    known: dict[str, frozenset[str]] = {}
    for policy in checked:
        findings.update(_names(policy, catalog, agents))
        types, differ, names = arguments.of(policy)
        known[policy.name] = names
        wrong = set(_arguments(policy, arguments, differ, names))
        findings |= wrong | set(_facts(policy))
        if not wrong:
            used = types if policy.reads is None else {n: t for n, t in types.items() if n in policy.reads}
            by_schema.setdefault(schema_text(used), []).append(policy)
    for schema, members in by_schema.items():
        findings.update(_validated(schema, members, known))
    return tuple(policies), tuple(sorted(findings))


def close(name: str, among: Iterable[str]) -> str:
    """Names that are nearly this one, as a next step; "" when there is none."""
    by_lower = {one.lower(): one for one in among}
    found = difflib.get_close_matches(name.lower()[:200], list(by_lower), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(by_lower[one] for one in found)}?" if found else ""


def _found(policy: Policy, says: str, next_step: str = "", *, at: str = "", error: bool = True) -> Finding:
    line, column = policy.chunk.place(_offset(policy.chunk, at))
    return Finding(policy.chunk.file, line, column, policy.name, error, says, next_step)


def _offset(chunk: Chunk, word: str) -> int:
    """Where a word first stands by itself; 0 where it doesn't."""
    if not word:
        return 0
    match = re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", chunk.text)
    return match.start() if match else max(chunk.text.find(word), 0)


def _names(policy: Policy, catalog: Catalogued, agents: Collection[str]) -> Iterator[Finding]:
    """Things that a rule names and that aren't there, so that it never applies."""
    never = "so this rule never applies"
    for node in nodes_of((policy.node.principal, policy.node.action, policy.node.resource, policy.node.clauses)):
        if type(node).__name__ != "EntityUid":
            continue
        kind, id = type_name(node.type), node.id
        match kind:
            case "Agent" if id not in (PERSON, ANONYMOUS, *agents):
                step = close(id, (PERSON, *agents)) or "goex agents list lists them; goex agents add makes one."
                yield _found(policy, f"There is no agent {escape(id)!r}, {never}.", step, at=id, error=False)
            case "Service" if id not in (SERVICE, GOEX, *catalog.services):
                step = close(id, catalog.services) or "goex catalog lists them."
                yield _found(policy, f"There is no service {escape(id)!r}, {never}.", step, at=id, error=False)
            case "Method":
                service, _, name = id.partition(".")
                if id == f"{GOEX}.commit":
                    continue
                if service == SERVICE:
                    listed = (*RISKS, PAIRS, OTHERWISE)
                    if name not in listed:
                        step = close(name, listed) or f"There are: {', '.join(listed)}."
                        yield _found(
                            policy,
                            f"Nothing is done in a database by {escape(id)!r}, {never}.",
                            step,
                            at=id,
                            error=False,
                        )
                    continue
                known = catalog.services.get(service)
                if known is None or name not in known.methods:
                    names = catalog.services if known is None else (f"{service}.{one}" for one in known.methods)
                    step = close(id if known is not None else service, names) or "goex catalog lists them."
                    yield _found(policy, f"There is no method {escape(id)!r}, {never}.", step, at=id, error=False)
            case "Folder" if not id.startswith("/") or (id != "/" and id.rstrip("/") != id) or "/../" in f"{id}/":
                says = f"{escape(id)!r} isn't a folder's whole path, {never}."
                yield _found(policy, says, "Write it like /home/you/docs.", at=id, error=False)
            case "Folder" if "\0" not in id and (real := os.path.realpath(id)) != id:
                says = f"{escape(id)!r} leads through a link, and a folder is judged by where it is, {never} there."
                yield _found(policy, says, f"Write: {escape(real)}", at=id, error=False)
    how, kind, id = policy.head.resource
    if kind == "Service" and how == "eq":
        yield _found(
            policy, f"Nothing is itself a service, {never}.", f'Write: resource in Service::"{id}"', error=False
        )
    if policy.effect is Effect.PERMIT and policy.head.principal == ("eq", "Agent", ANONYMOUS):
        says = "Agents without a name are asked about each time, so this permit never applies."
        yield _found(policy, says, "Give the agent a name: goex agents add NAME", at=ANONYMOUS, error=False)
    for node in nodes_of(policy.node.clauses):
        if type(node).__name__ == "When" and type(node.expr).__name__ == "BoolLit" and not node.expr.value:
            yield _found(policy, f"`when {{ false }}` never holds, {never}.", at="false", error=False)
    yield from _scopes(policy, catalog)


def _scopes(policy: Policy, catalog: Catalogued) -> Iterator[Finding]:
    """Scopes that the service in the head doesn't have."""
    _, kind, id = policy.head.resource
    service = catalog.services.get(id.partition(".")[0]) if kind in ("Service", "Method") else None
    if service is None:
        return
    for node in nodes_of(policy.node.clauses):
        if type(node).__name__ != "BinaryOp" or node.op != "contains" or path_of(node.left) != ("scopes",):
            continue
        name = getattr(node.right, "value", "")
        if isinstance(name, str) and name not in service.scopes:
            says = f"{service.name} has no scope {escape(name)!r}, so this never holds."
            yield _found(policy, says, close(name, service.scopes), at=name, error=False)


def _arguments(
    policy: Policy, arguments: Arguments, differ: Mapping[str, tuple[str, str]], names: frozenset[str]
) -> Iterator[Finding]:
    """Arguments that no method of the head takes, or that two take differently."""
    methods = arguments.methods(policy)
    if policy.reads is None:
        if methods is None or len(methods) != 1:
            yield _found(policy, "This looks at all arguments at once.", _ALL_AT_ONCE, at="arguments")
        return
    if methods is not None and not methods and policy.head.resource[1] != "Folder":
        return  # that there is no such method was said
    for name in sorted(policy.reads):
        if name not in names:
            where = policy.head.resource[2] or "any service that comes with GoEx"
            step = close(name, names) or "Name the method in the rule's head; goex catalog show lists its arguments."
            yield _found(policy, f"There is no argument {escape(name)!r} of {escape(where)}.", step, at=name)
        elif name in differ:
            one, other = differ[name]
            says = f"The argument {escape(name)!r} isn't of one kind: {one} and {other} differ."
            yield _found(policy, says, "Name the method in the rule's head.", at=name)


def _facts(policy: Policy) -> Iterator[Finding]:
    """Facts that are asked for with `has` and can never be there: Cedar takes that for a plain no."""
    for name in sorted(policy.facts - FACTS.keys() - {"arguments", "*"}):
        step = close(name, (*FACTS, "arguments")) or f"There are: {', '.join(sorted((*FACTS, 'arguments')))}."
        yield _found(policy, f"There is no context.{escape(name)}.", step, at=name)


def _validated(schema: str, members: list[Policy], known: Mapping[str, frozenset[str]]) -> Iterator[Finding]:
    import cedarpy

    for error in cedarpy.validate_policies(joined(members), schema).errors:
        match = re.fullmatch(r"policy(\d+)", error.policy_id)
        policy = members[int(match[1])] if match else members[0]
        said = _said(policy, error.error, known.get(policy.name, frozenset()))
        if said is not None:
            yield said


def _said(policy: Policy, text: str, known: frozenset[str]) -> Finding | None:
    """A validator's sentence in plain words; None for what was said already."""
    text = re.sub(r"^for policy `policy\d+`, ", "", text)
    if match := re.match(r"unable to guarantee safety of access to optional attribute `([^`]+)`", text):
        *before, last = match[1].split(".")
        base = ".".join(("context", *before))
        return _found(policy, f"{base}.{last} may be missing.", f"Test it first: {base} has {last} && …", at=last)
    if match := re.match(r"attribute `([^`]+)`.* not found", text):
        path = match[1].split(".")
        if path[0] not in FACTS and path[0] != "arguments":
            return None  # `_facts` said it
        return _found(policy, f"There is no context.{match[1]}.", close(path[-1], known), at=path[-1])
    if match := re.match(r"unrecognized entity type `([^`]+)`", text):
        return _found(policy, f"There is no type {match[1]}.", close(match[1], TYPES), at=match[1])
    if match := re.match(r"unrecognized action `Action::\"([^`]+)\"`", text):
        step = close(match[1], ACTIONS) or f"There are: {', '.join(ACTIONS)}."
        return _found(policy, f"There is no action {match[1]!r}.", step, at=match[1])
    if "unable to find an applicable action" in text:
        says = "No action of this kind is on such a resource, so this rule never applies."
        return _found(policy, says, error=False)
    if match := re.search(r"entity `(\w+)::\"([^`]*)\"`", text):
        values = ENUMS.get(match[1], ())
        step = close(match[2], values) or (f"There are: {', '.join(values)}." if values else "")
        return _found(policy, f'There is no {match[1]}::"{escape(match[2])}".', step, at=match[2])
    text = re.sub(r" (in|for) (context for )?Action::\"[^\"]*\"", "", text)
    return _found(policy, f"{escape(text[:1].upper() + text[1:300]).rstrip('.')}.", at=_named_in(policy, text))


def _named_in(policy: Policy, text: str) -> str:
    """The first thing in backticks that stands in the rule."""
    for word in re.findall(r"`([^`]+)`", text):
        if word in policy.text:
            return str(word)
    return ""
