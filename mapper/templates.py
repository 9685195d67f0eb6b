"""Template references: how a manifest says "the value from there".

Rules: a string that starts with `$request.`, `$response.`, `$pre.`, `$undo.` or `$made.` (`[` may stand for the dot),
or that equals `$response`, `$made` or `$action.key`, is a reference; `$$` at the start stands for a literal `$`; any
other string that starts with `$` is a mistake and refused, so that a typing error never goes out as text. A `?` at a
reference's end says that it may lead nowhere, `?-` that it is left out then. Everything else is a literal. Only
manifests and undo pairs hold templates: what a caller or a service wrote is never parsed here, however much it looks
like a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, MissingValue, find, steps
from policies.services import CallTemplate, Expect, Method, Service

Source = OneOf["request", "response", "pre", "undo", "made", "action"]

SOURCES: tuple[Source, ...] = ("request", "response", "pre", "undo", "made", "action")


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands for itself."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Reference:
    """The value at `path` (as `policies.jsonvalue.find` reads it) of a source.

    `request`: the arguments of the action's call, defaults filled in; `response`: the answer to it; `pre`: the answer
    to its pre-read; `undo`: the answer to the last call of its undo; `made`: what is new in a list since the pre-read;
    `action`: facts of this action, of which there is one, `$.key`, unique to it. `optional`: nothing need be there;
    `omitted`: what isn't there is then left out.
    """

    source: Source
    path: str
    optional: bool = False
    omitted: bool = False

    def __str__(self) -> str:
        return f"${self.source}{self.path[1:]}{'?' if self.optional else ''}{'-' if self.omitted else ''}"


def parse(value: JsonValue) -> Literal | Reference:
    """What one leaf of a template means. Raises InvalidInput for a string that only begins like a reference."""
    if not isinstance(value, str) or not value.startswith("$"):
        return Literal(value)
    if value.startswith("$$"):
        return Literal(value[1:])
    if value == "$action.key":
        return Reference("action", "$.key")
    for source in SOURCES[:5]:
        if value.startswith((f"${source}.", f"${source}[")) or value == f"${source}" in ("$response", "$made"):
            omitted = value.endswith("?-")
            optional = omitted or value.endswith("?")
            path = "$" + value[len(source) + 1 :].removesuffix("-" if omitted else "").removesuffix("?")
            try:
                steps(path)
            except ValueError as error:  # an escape in a quoted step that JSON doesn't know
                raise InvalidInput(f"{value[:60]!r} isn't a reference: {error}.") from error
            return Reference(source, path, optional, omitted)
    raise InvalidInput(
        f"{value[:60]!r} isn't a reference.",
        next_step="Write $request.…, $response.…, $pre.…, $undo.… or $action.key; $$ stands for a literal dollar sign.",
    )


def substitute(value: JsonValue, lookup: Callable[[Reference], Any]) -> Any:
    """`value` with each reference replaced by what `lookup` gives for it, and each literal by its value. A field that
    is what the request needn't have is left out where `lookup` raises MissingValue for it."""
    if isinstance(value, Mapping):
        made = {}
        for key, child in value.items():
            try:
                made[key] = substitute(child, lookup)
            except MissingValue:
                if not may_be_left_out(child):
                    raise
        return made
    if isinstance(value, list | tuple):
        return [substitute(child, lookup) for child in value]
    leaf = parse(value)
    return lookup(leaf) if isinstance(leaf, Reference) else leaf.value


def fill(arguments: JsonObject, sources: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """`arguments` with every reference resolved in `sources` (a source's name to its JSON value).

    An argument that is an optional reference into the request is left out where the request has no such value; one
    into an answer becomes null. Raises MissingValue where another path leads nowhere, InvalidInput where a source
    isn't there.
    """

    def lookup(reference: Reference) -> JsonValue:
        if reference.source not in sources:
            raise InvalidInput(f"{reference} can't be filled: there is no {reference.source} here.")
        try:
            return find(sources[reference.source], reference.path)
        except MissingValue:
            if not reference.optional or reference.source == "request":
                raise
            return None

    filled: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        try:
            filled[name] = substitute(value, lookup)
        except MissingValue:
            if not may_be_left_out(value):
                raise
    return filled


def may_be_left_out(value: JsonValue) -> bool:
    """Whether `value` is one reference to what the request needn't have."""
    leaf = parse(value)
    return isinstance(leaf, Reference) and leaf.source == "request" and leaf.optional


def references(value: JsonValue) -> Iterator[Reference]:
    """Every reference in `value`, at any depth."""
    if isinstance(value, Mapping):
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from references(child)
    else:
        leaf = parse(value)
        if isinstance(leaf, Reference):
            yield leaf


def complete(method: Method, arguments: JsonObject, action_key: str) -> dict[str, JsonValue]:
    """The whole argument set of a call: `arguments`, and the method's defaults where they are absent.

    Only the defaults are templates; `arguments` are taken as they are. This is also what `$request` means.
    """
    whole = dict(arguments)
    for name, default in method.defaults.items():
        if name not in whole:
            whole.update(fill({name: default}, {"request": whole, "action": {"key": action_key}}))
    return whole


def expectations(service: Service, template: CallTemplate | None = None) -> tuple[Expect, ...]:
    """What an answer must show: the template's own conditions, and the service's for every other path.

    A template that says something about a path (or the status) speaks instead of the service there: a read-back can
    then expect that a message is *not* found, from a service whose good answers all say `ok`.
    """
    own = template.expect if template is not None else ()
    named = {_place(expect) for expect in own}
    if any(expect.op == "status" for expect in own):
        # A status that was asked for by number is the verdict: an error answer needn't look like a good one.
        return own
    return (*own, *(expect for expect in service.success if _place(expect) not in named))


def _place(expect: Expect) -> tuple[bool, str]:
    return expect.op == "status", expect.path
