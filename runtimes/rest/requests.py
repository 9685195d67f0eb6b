"""One call to one HTTP request: where each argument goes, and what may not go there.

Rules: the host, the method and the shape of the path come from the catalog and the account alone; an argument fills
one segment, one query or form value, one header value, a place in a JSON body or all of it. What could be read as more
than that by a server (dot segments, line ends) is refused here, before anyone is asked. Where the path says `{+name}`
the argument is a name of several segments; it is known before anything is sent, and each of its segments is checked
and encoded by itself. It can't end like a custom method (`:cancel`), and the path can't be another method's
(`path_owner`), which would be another call than the one granted.

A value that a service supplied is checked against the schema of the argument that it fills, as a caller's would be, and
never read as a reference. In a path it is one short segment without a slash. The gateway fills references itself; this
is the daemon's own look at the same values before it agrees to the sending, and what an undo is made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import unquote, urlsplit

from mapper.catalog import Catalog
from mapper.validation import references
from policies.accounts import Account, Origin
from policies.actions import Call
from policies.errors import InvalidInput, Unsupported
from policies.graphql import expected_of
from policies.jsonvalue import JsonObject, JsonValue, MissingValue
from policies.services import Expect, Location, Method, Placement, Risk, Service, believed_risk, overrides
from policies.stages import MAX_VALUE
from runtimes.gateway.plan import CredentialPlace, PlannedRequest, Ref
from runtimes.gateway.plan_check import overriding
from runtimes.gateway.urls import is_dots, readings
from runtimes.rest.mime import letter
from runtimes.rest.path_owner import HOLE, check_path_owner
from runtimes.rest.placed_values import each, flat, parts, queries, whole
from runtimes.rest.records import Answer
from runtimes.rest.references import as_known, is_later, is_there, literal, refs_in, value_of
from runtimes.rest.steps import Role, Step

_CUSTOM = re.compile(r":[A-Za-z][A-Za-z0-9_]*\Z")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# A read-back may be asked again while a service settles; a guard or a call is sent once.
READ_BACK_ATTEMPTS = 5


def step_for(
    *,
    id: str,
    call: int,
    role: Role,
    catalog: Catalog,
    service: Service,
    method: Method,
    account: Account,
    arguments: JsonObject,
    expect: tuple[Expect, ...],
) -> Step:
    """The step that sends `arguments` (which may hold `Ref`s) to `method` of `account`. Raises InvalidInput."""
    placed: dict[str, dict[str, Any]] = {place: {} for place in get_args(Location)}
    usual = "body" if method.body != "none" else "query"
    for name, value in arguments.items():
        placed[method.locations.get(name, usual)][name] = value
    in_body = [*placed["body"], *placed["file"], *placed["whole"], *placed["variable"]]
    if (in_body and method.body == "none") or len(placed["whole"]) + bool(placed["body"] or placed["file"]) > 1:
        raise InvalidInput(f"{method.id} has no body for all of this: {', '.join(in_body)}.")
    if method.unsupported:
        raise Unsupported(f"{method.id} can't be called through GoEx: {method.unsupported}")
    base = urlsplit(account.base_url)
    placement = placement_for(service, account)
    path = _path(method, placed["path"])
    if not any(isinstance(part, Ref) for part in path):  # one with values that are to come is looked at with these
        check_path_owner(catalog, service, method, [str(part) for part in path])
    later = role in ("guard", "undo", "verify")  # made anew, with literal values, before it is sent
    request = PlannedRequest(
        id=id,
        account=(account.service, account.name),
        origin=Origin.parse(account.base_url),
        base_path=tuple(unquote(segment) for segment in base.path.split("/") if segment),
        method=method.http,
        path=() if method.path == "/" and not base.path.strip("/") else path,
        query=queries(method, placed, later=later),
        headers={**service.headers, **{name: _header(method, name, value) for name, value in placed["header"].items()}},
        body=(
            whole(method, next(iter(placed["whole"].values()), None))
            if "whole" in method.locations.values()
            else parts(method, placed["body"], placed["file"])
            if method.body == "multipart"
            else {"query": method.document, "variables": placed["variable"]}
            if method.document
            else _body(method, placed["body"], placed["mail"])
        ),
        body_format=method.body,
        body_type=method.media,
        **credential_of(placement),
        expect=expected_of(method, expect),
        attempts=READ_BACK_ATTEMPTS if role == "verify" and method.http in ("GET", "HEAD") else 1,
        optional=role in ("after", "probe"),
    )
    if name := overriding(request):
        raise InvalidInput(
            f"{method.id}: {name[:60]!r} would make it a request of another method.", next_step="Leave it out."
        )
    return Step(
        call=call,
        role=role,
        service=service.name,
        method=method.name,
        account=account.name,
        read=believed_risk(service, method) is Risk.READ,
        arguments=arguments,
        request=request,
    )


def placement_for(service: Service, account: Account) -> Placement:
    """Where the account's credential goes: a login's token and a password have places of their own (RFC 6750, RFC 7617)
    where the service's own place is for another kind."""
    own = service.placement
    if own.more:
        return own  # one value of several is of no use by itself, and never goes to another's place
    usual = own.at == "header" and own.header.lower() == "authorization"
    basic = usual and own.format.lower().startswith("basic ")
    if account.format == "basic":
        return own if basic else Placement(format="Basic {secret}")
    if account.format == "oauth" and (basic or not usual):
        return Placement()
    return own


def credential_of(placement: Placement) -> dict[str, Any]:
    """The fields of a rule that say where the credential goes."""
    return {
        "credential_at": placement.at,
        "credential_name": placement.header,
        "credential_format": placement.format,
        "credential_more": tuple(CredentialPlace(one.at, one.header, one.format) for one in placement.more),
    }


def check_segment(where: str, text: str, *, foreign: bool = False) -> None:
    """Raise InvalidInput unless `text` is safe as one path segment.

    Servers differ in when they decode `%2F` and fold `..`, so dot segments are refused even inside an encoded value,
    also one that the caller encoded; a value that a service supplied (`foreign`) holds no slash at all, encoded or not,
    and is at most 512 long.
    """
    parts = re.split(r"[/\\]", text)
    if not all(parts) or is_dots(text) or _CONTROL.search(text):
        raise InvalidInput(f"{where}: {text[:80]!r} can't stand in a path.")
    if foreign and (len(text) > 512 or _is_divided(text)):
        raise InvalidInput(f"{where}: {text[:80]!r}, which the service supplied, can't stand in a path.")


def _is_divided(text: str) -> bool:
    """Whether a server may find several segments in it."""
    return any({"/", "\\"} & set(each) for each in readings(text))


def _path(method: Method, arguments: Mapping[str, Any]) -> tuple[str | Ref, ...]:
    made: list[str | Ref] = []
    segments = method.path.removeprefix("/").split("/")
    for place, segment in enumerate(segments, 1):
        hole = HOLE.fullmatch(segment)
        if hole is None and "{" in segment:
            made.append(mixed(method, segment, arguments, last=place == len(segments)))
        elif hole is None:
            made.append(segment)
        else:
            made.extend(_filled(method, hole, arguments, last=place == len(segments)))
    return tuple(made)


def mixed(method: Method, segment: str, arguments: Mapping[str, Any], *, last: bool) -> str:
    """A segment with text before a name, or with several names (`{name}-{version}.zip`).

    A server divides it by the signs around the names, so that no value may hold one of these.
    """
    pieces = re.split(r"\{([^{}]+)\}", segment)
    texts, names = pieces[::2], pieces[1::2]
    # One name at the end is all that follows the text before it.
    signs = set("".join(texts)) - _LETTERS if len(names) > 1 or texts[-1] else set()
    made = texts[0]
    for name, text in zip(names, texts[1:], strict=True):
        where = f"{method.id}, {name}"
        value = arguments.get(name)
        if isinstance(value, Ref):
            raise InvalidInput(
                f"{where} is a part of a segment, so it can't come from an answer.",
                next_step="Make the first call by itself, then this one with the value written out.",
            )
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidInput(f"{where} goes into the path, so it must be a text or a whole number.")
        check_segment(where, str(value))
        if signs & set(str(value)) or (last and _CUSTOM.search(str(value))):
            raise InvalidInput(f"{where}: {str(value)[:80]!r} would be divided in another way by the service.")
        made += str(value) + text
    check_segment(method.id, made)
    return made


def _filled(method: Method, hole: re.Match[str], arguments: Mapping[str, Any], *, last: bool) -> list[str | Ref]:
    """The segments that an argument makes in the place of a hole."""
    name, end = hole["name"], hole["end"]
    where = f"{method.id}, {name}"
    if name not in arguments:
        raise InvalidInput(f"{where} is missing.")
    value = arguments[name]
    if isinstance(value, list) and value and method.origin_id and not hole["several"] and not refs_in(value):
        value = flat(method, name, value)
    if isinstance(value, Ref):
        if hole["several"] or end:
            raise InvalidInput(
                f"{where} may hold several parts of a path, so it can't come from an answer.",
                next_step="Make the first call by itself, then this one with the value written out.",
            )
        return [value]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{where} goes into the path, so it must be a text or a whole number.")
    text = str(value)
    parts = text.split("/") if hole["several"] else [text]
    for part in parts:
        check_segment(where, part)
        if hole["several"]:
            _check_part(where, part)
    if method.origin_id and last and not end and _CUSTOM.search(parts[-1]):
        raise InvalidInput(f"{where}: {text[:80]!r} ends like another method of the same path.")
    return [*parts[:-1], parts[-1] + end]


def _check_part(where: str, part: str) -> None:
    """A part of a name that is sent with its slashes: nothing in it may end the path, or read as a dot segment."""
    if set(part) & set("?#\\") or _is_divided(part):
        raise InvalidInput(f"{where}: {part[:80]!r} can't stand in a path.")


def _header(method: Method, name: str, value: Any) -> str:
    if method.origin_id and isinstance(value, list):
        value = flat(method, name, value)
    if method.origin_id and isinstance(value, bool | int | float):
        value = flat(method, name, value)
    if not isinstance(value, str) or _CONTROL.search(value) or not value.isascii():
        raise InvalidInput(f"{method.id}, {name} goes into a header: it must be ASCII text that is known beforehand.")
    return value


def _body(method: Method, arguments: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:
    if method.body == "none":
        return None
    if method.body == "form":
        # A document's form names a list's field once for each item; a manifest's is parted by commas.
        write = each if method.origin_id else flat
        return {name: write(method, name, value) for name, value in arguments.items()}
    body: dict[str, Any] = dict(arguments)
    if method.mail:
        *outer, last = method.mail.split(".")
        place = body
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = letter(method.id, parts)
    return body


def check_values(step: Step, answers: Mapping[str, Answer], catalog: Catalog) -> dict[str, Any]:
    """The arguments of `step` with every reference filled. Raises InvalidInput when one may not be what it is."""
    for ref in refs_in(step.arguments):
        _check_size(step, literal(ref, answers))
    filled = [value_of(part, answers) if isinstance(part, Ref) else part for part in step.request.path]
    for part, value in zip(step.request.path, filled, strict=True):
        if isinstance(part, Ref):
            _check_path_value(step, value)
    method = catalog.method(step.method_id)
    if filled != list(step.request.path):
        path = [str(part) for part in filled]
        if method.origin_id and isinstance(step.request.path[-1], Ref) and _CUSTOM.search(path[-1]):
            raise InvalidInput(f"{method.id}: what a service supplied ends like another method of the same path.")
        with _unquoted(step):
            check_path_owner(catalog, catalog.service(step.service), method, path)
    arguments: dict[str, Any] = _in_path(method, step.arguments, literal(step.arguments, answers))
    if refs_in(arguments):
        raise MissingValue(f"{step.method_id} needs an answer that isn't there.")
    if refs_in(step.arguments) and any(references(arguments)):
        raise InvalidInput(f"{step.method_id}: a service supplied something that reads as a reference.")
    for name, value in arguments.items():
        if method.locations.get(name) == "whole" and isinstance(value, Mapping) and any(map(overrides, value)):
            raise InvalidInput(f"{step.method_id}: a service supplied what would make it a request of another method.")
    own = method.parameters["properties"]
    call = replace(step.as_call(), arguments={name: value for name, value in arguments.items() if name in own})
    with _unquoted(step):
        catalog.validate(call)
    return arguments


@contextmanager
def _unquoted(step: Step) -> Iterator[None]:
    """Errors about what a service supplied, without it: an agent reads them, and may not be allowed to read that."""
    try:
        yield
    except MissingValue:
        raise
    except InvalidInput as error:
        names = ", ".join(name for name, value in step.arguments.items() if refs_in(value))
        raise InvalidInput(f"{step.method_id}: what a service supplied for {names} doesn't fit.") from error


def _in_path(method: Method, asked: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """`arguments`, with what a service supplied for the path as the type that its document says: it is a text there
    anyway, and many documents call a number one that is a text in the path, or the other way round."""
    made = dict(arguments)
    for name, value in arguments.items():
        if isinstance(asked.get(name), Ref) and method.origin_id and method.locations.get(name) == "path":
            kind = method.parameters["properties"].get(name, {}).get("type")
            if kind == "string" and isinstance(value, int) and not isinstance(value, bool):
                made[name] = str(value)
            elif kind == "integer" and isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,17}|0", value):
                made[name] = int(value)
    return made


def check_filled(method: Method, call: Call) -> None:
    """Raise InvalidInput where an argument whose value came from an answer stands where a service's word may not."""
    for name in call.filled:
        holes = f"{{{name}}}", f"{{+{name}}}"
        segments = [segment for segment in method.path.split("/") if any(hole in segment for hole in holes)]
        where = f"{method.id}, {name}"
        if any(segment != f"{{{name}}}" for segment in segments):
            raise InvalidInput(f"{where} may be a part of a path, or several, so it can't come from an answer.")
        if method.locations.get(name) == "header":
            raise InvalidInput(f"{where} goes into a header: it must be ASCII text that is known beforehand.")
        if segments:
            check_segment(where, str(call.arguments.get(name, "")), foreign=True)


def check_known(step: Step, answers: Mapping[str, Answer], catalog: Catalog) -> None:
    """Raise InvalidInput where `step` couldn't be sent as far as its values are known: a reference to a request that
    has no answer yet may become anything."""
    known = [ref for ref in refs_in(step.arguments) if ref.request in answers]
    for ref in known:
        if not ref.optional or is_there(ref, answers):
            value = value_of(ref, answers)
            _check_size(step, value)
            if any(references(value)):
                raise InvalidInput(f"{step.method_id}: a service supplied something that reads as a reference.")
    for part in step.request.path:
        if isinstance(part, Ref) and part.request in answers:
            _check_path_value(step, value_of(part, answers))
    method = catalog.method(step.method_id)
    own = method.parameters["properties"]
    known_now = _in_path(method, step.arguments, as_known(step.arguments, answers))
    arguments = {name: value for name, value in known_now.items() if name in own}
    with _unquoted(step):
        catalog.validate(replace(step.as_call(), arguments=arguments))


def bind(step: Step, answers: Mapping[str, Answer], catalog: Catalog, account: Account) -> Step:
    """`step` with literal values in place of its references. Raises InvalidInput (MissingValue where one is absent)."""
    later = [ref for ref in refs_in(step.arguments) if is_later(ref, answers)]
    # What is to come is checked when it is there, before it is sent on.
    arguments = literal(step.arguments, answers) if later else check_values(step, answers, catalog)
    expect = tuple(_expected(expect, answers) for expect in step.request.expect)
    with _unquoted(step):
        bound = step_for(
            id=step.id,
            call=step.call,
            role=step.role,
            catalog=catalog,
            service=catalog.service(step.service),
            method=catalog.method(step.method_id),
            account=account,
            arguments=arguments,
            expect=expect,
        )
    if (bound.request.origin, bound.request.base_path) != (step.request.origin, step.request.base_path):
        raise InvalidInput(f"The account {account.id} leads to another server than when this was planned.")
    return replace(bound, request=replace(bound.request, attempts=step.request.attempts))


def _expected(expect: Expect, answers: Mapping[str, Answer]) -> Expect:
    """`expect` with its value filled; to equal what was absent is to be absent."""
    value = literal(expect.value, answers)
    if (
        expect.op == "equals"
        and isinstance(expect.value, Ref)
        and value is None
        and not is_there(expect.value, answers)
    ):
        return replace(expect, op="absent", value=None)
    return replace(expect, value=value)


def _check_path_value(step: Step, value: JsonValue) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{step.method_id}: what a service supplied for its path isn't a text or a number.")
    with _unquoted(step):
        check_segment(step.method_id, str(value), foreign=True)


def _check_size(step: Step, value: JsonValue) -> None:
    if isinstance(value, str) and len(value) > MAX_VALUE:
        raise InvalidInput(f"{step.method_id}: a service supplied a value of {len(value)} characters.")
