"""Libraries whose functions are called after the addresses that they ask for: stripe and sendgrid.

Rules: a function that isn't one of a few kinds is none that is known. What a library sends beside what it is given
(its own headers) isn't looked at here; a value with parts of its own may become several fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from mapper.code.abstract_values import UNKNOWN, Fields, Form, Listed, Lit, Thing, Value, choices, parts_of, text
from mapper.code.sent_requests import Request

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_STRIPE = "https://api.stripe.com/v1"
_STRIPE_FUNCTION = re.compile(r"stripe\.((?:[a-z_]+\.)*)([A-Z][A-Za-z]+)\.([a-z_]+)")
_STRIPE_OWN = frozenset({"api_key", "stripe_version", "stripe_account", "idempotency_key", "options"})
_STRIPE_ITEM = {"retrieve": "GET", "modify": "POST", "update": "POST", "delete": "DELETE"}
_STRIPE_ACTIONS = {
    name: name.split("_")[0] if name != "mark_uncollectible" else name
    for name in (
        "approve", "cancel", "capture", "close", "confirm", "expire", "finalize_invoice", "mark_uncollectible", "pay",
        "reject", "send_invoice", "void_invoice",
    )
}  # fmt: skip
_SENDGRID = "https://api.sendgrid.com/v3"
_SENDGRID_MADE = frozenset({"sendgrid.SendGridAPIClient", "sendgrid.sendgrid.SendGridAPIClient"})
_VERBS = frozenset({"get", "post", "put", "patch", "delete"})


def made(reader: Following, name: str, args: Sequence[Value], given: Fields) -> Value | None:
    """What a call of something imported gives, where it is of these libraries."""
    if name == "stripe.StripeClient":
        return _thing("stripe", (), _STRIPE)
    if name in _SENDGRID_MADE:
        host = given.get("host")
        return _thing("sendgrid", (), _SENDGRID) if host is None else UNKNOWN
    found = _STRIPE_FUNCTION.fullmatch(name)
    if found is None:
        return None
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found[2]).lower()
    where = (*(part for part in found[1].split(".") if part), "balance" if kind == "balance" else f"{kind}s")
    return _stripe(reader, where, found[3], list(args), given)


def attribute(owner: Thing, name: str) -> Value | None:
    """An attribute of an object; None for what is only a function."""
    chain: tuple[Value, ...] = owner["chain"]
    if owner["lib"] == "stripe":
        if name in _STRIPE_ITEM or name in _STRIPE_ACTIONS or name in ("create", "list", "search"):
            return None
        return owner if name == "v1" and not chain else owner.but(chain=(*chain, Lit(name)))
    if not chain:
        return owner.but(chain=(Lit(""),)) if name == "client" else None
    return None if name in _VERBS or name == "_" else owner.but(chain=(*chain, Lit(name)))


def called(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    """A function of an object."""
    chain: tuple[Value, ...] = owner["chain"]
    if owner["lib"] == "stripe":
        last = {"params", "options"}
        params = given.get("params") or (args[-1] if args and isinstance(args[-1], Fields) else None)
        ids = [one for one in args if one is not params]
        sent = params if isinstance(params, Fields) else Fields(more=params is not None)
        return _stripe(reader, chain, name, ids, sent.merged(given.without(*last)))
    if not chain and name == "send":
        _sent(reader, "POST", _SENDGRID, (Lit("mail"), Lit("send")), Fields(more=True), "json")
    elif chain and name == "_" and args:
        return owner.but(chain=(*chain, args[0]))
    elif chain and name in _VERBS:
        body = given.get("request_body")
        query = given.get("query_params")
        asked = query if isinstance(query, Fields) else Fields(more=query is not None or bool(args))
        fields = body if isinstance(body, Fields) else Fields(more=body is not None or bool(args))
        _sent(reader, name.upper(), _SENDGRID, chain[1:], fields, "none" if name == "get" else "json", asked)
    return UNKNOWN


def _stripe(reader: Following, where: Sequence[Value | str], name: str, ids: list[Value], given: Fields) -> Value:
    base = tuple(Lit(part) if isinstance(part, str) else part for part in where)
    if not ids and given.get("id") is not None:
        ids, given = [given.get("id") or UNKNOWN], given.without("id")
    given = given.without(*_STRIPE_OWN)
    given = _in_parts(given)
    match name:
        case "create" | "list":
            path, verb = base, "POST" if name == "create" else "GET"
        case "search":
            path, verb = (*base, Lit("search")), "GET"
        case "retrieve" if base == (Lit("balance"),):
            path, verb = base, "GET"
        case "cancel" if ids and base == (Lit("subscriptions"),):
            path, verb = (*base, ids[0]), "DELETE"
        case _ if ids and name in _STRIPE_ITEM:
            path, verb = (*base, ids[0]), _STRIPE_ITEM[name]
        case _ if ids and name in _STRIPE_ACTIONS:
            path, verb = (*base, ids[0], Lit(_STRIPE_ACTIONS[name])), "POST"
        case _:
            return UNKNOWN
    asks = verb in ("GET", "DELETE")
    _sent(reader, verb, _STRIPE, path, Fields() if asks else given, "none" if asks else "form", given if asks else None)
    return UNKNOWN


def _in_parts(given: Fields) -> Fields:
    """Each part of a value as the field of its own that stripe makes of it: `metadata[order]`, `items[0][price]`."""
    made: dict[str, Value] = {}
    left = list(reversed(given.items))
    while left:
        name, value = left.pop()
        match value:
            case Fields(items=items, more=more):
                parts = [(f"{name}[{key}]", part) for key, part in items]
            case Listed(items=listed, more=more):
                parts = [(f"{name}[{place}]", part) for place, part in enumerate(listed)]
            case _:
                parts, more = [], False
                made[name] = value if all(isinstance(one, Lit) for one in choices(value)) else UNKNOWN
        left.extend(reversed(parts))
        if more:
            made[name] = UNKNOWN
    return Fields.of(made, given.more)


def _sent(
    reader: Following, verb: str, base: str, path: Sequence[Value], body: Fields, kind: Literal["json", "form", "none"],
    query: Fields | None = None,
) -> None:  # fmt: skip
    where: list[str | Form | None] = [base]
    for segment in path:
        where += ["/", *parts_of(segment)]
    asked = query or Fields()
    reader.seen.requests.append(
        Request(line=reader.line, verb=Lit(verb), url=text(where), query=asked, body=body, kind=kind, sdk=True)
    )


def _thing(lib: str, chain: tuple[Value, ...], base: str) -> Thing:
    return Thing("table", (("lib", lib), ("chain", chain), ("base", Lit(base))))
