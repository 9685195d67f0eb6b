"""GraphQL requests of JavaScript's clients: graphql-request, and octokit's own.

Rules: these send a document to the letter as it is given to them. An option that could send it elsewhere, or another
one, makes it no request that is known; so does a document that another library made of its text (`graphql-tag`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mapper.code import http
from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Fields,
    Listed,
    Lit,
    Method,
    Named,
    Thing,
    Value,
    choices,
    parts_of,
    text,
)

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

KIND = "graphql.js"
_LIBRARY = "js:graphql-request"
_CLIENT, _TAG = f"{_LIBRARY}.GraphQLClient", f"{_LIBRARY}.gql"
_REQUESTS = frozenset({_LIBRARY, f"{_LIBRARY}.default", f"{_LIBRARY}.request", f"{_LIBRARY}.rawRequest"})
_OCTOKIT = "js:@octokit/graphql.graphql"
_OTHERS = (f"{_LIBRARY}.", "js:@octokit/graphql.")
# Options of a client that leave where it sends a document, and which.
_HARMLESS = frozenset({
    "headers", "errorPolicy", "credentials", "mode", "cache", "keepalive", "signal", "excludeOperationName",
    "responseMiddleware",
})  # fmt: skip
_NAMED = re.compile(r"\b(?:query|mutation)\s+[A-Za-z_]")  # an operation that has a name, which is sent besides
_HEADERS = ("setHeader", "setHeaders")
_GITHUB = Lit("https://api.github.com/graphql")
_OF_OCTOKIT = ("mediaType", "request", "baseUrl", "method", "url", "operationName")


def called(reader: Following, function: Value, args: Sequence[Value]) -> Value | None:
    """What a call of these libraries gives, and the request that it sends is noted; None for what is none of them."""
    match function:
        case Named(name=name) if name == _CLIENT:
            options = args[1] if len(args) > 1 else Fields()
            known = isinstance(options, Fields) and not options.more and {key for key, _ in options.items} <= _HARMLESS
            return Thing(KIND, (("url", args[0] if args and known else UNKNOWN),))
        case Named(name=name) if name == _TAG:
            return _tagged(args)
        case Named(name=name) if name in _REQUESTS:
            first = args[0] if args else UNKNOWN
            if isinstance(first, Fields):
                return _sent(reader, first.get("url") or UNKNOWN, [first.without("url")])
            return _sent(reader, first, args[1:])
        case Method(of=Thing(kind=kind) as client, name=name) if kind == KIND:
            if name in _HEADERS:
                return client
            if name in ("request", "rawRequest"):
                return _sent(reader, client["url"], args)
            reader.seen.unread.append((reader.line, f"{name} of a GraphQL client, which isn't followed"))
            return UNKNOWN
        case Named(name=name) if name == _OCTOKIT:
            return octokit(reader, args)
        case Named(name=name) if name == f"{_OCTOKIT}.defaults":
            return octokit_defaults(reader, args)
        case Named(name=name) if name.startswith(_OTHERS):
            reader.seen.unread.append(
                (reader.line, f"{name.rpartition('.')[2]} of a GraphQL library, which isn't followed")
            )
            return UNKNOWN
    return None


def octokit(reader: Following, args: Sequence[Value]) -> Value:
    """`graphql("query …", {owner, headers})`, or `graphql({query, owner})`: what isn't an option is a variable."""
    first: Value = args[0] if args else UNKNOWN
    given: Value = args[1] if len(args) > 1 else Fields()
    if isinstance(first, Fields):
        given = first.without("query")
        first = first.get("query") or UNKNOWN
    named = given.without("headers") if isinstance(given, Fields) else Fields(more=True)
    if named.without(*_OF_OCTOKIT, "query") != named:
        reader.seen.unread.append((reader.line, "a GraphQL request of octokit with options of its own"))
        return UNKNOWN
    variables = (("variables", named),) if named.items or named.more else ()
    http.noted(reader, Lit("POST"), _GITHUB, Fields(), Fields((("query", first), *variables)), "json")
    return ANSWER


def octokit_defaults(reader: Following, args: Sequence[Value]) -> Value:
    """`graphql.defaults({headers})`: the same, with other headers."""
    if all(isinstance(one, Fields) and not one.more and {key for key, _ in one.items} <= {"headers"} for one in args):
        return Thing("octokit", (("chain", ("graphql",)),))
    reader.seen.unread.append((reader.line, "graphql.defaults of octokit, which may change what is asked for"))
    return UNKNOWN


def _sent(reader: Following, url: Value, args: Sequence[Value]) -> Value:
    """`request(document, variables, headers)`, or `request({document, variables})`."""
    first: Value = args[0] if args else UNKNOWN
    variables: Value = args[1] if len(args) > 1 else Lit(None)
    if isinstance(first, Fields):
        more: Value = Fields(more=True) if first.more else Lit(None)
        variables = first.get("variables") or more
        first = first.get("document") or first.get("query") or UNKNOWN
    sent = Fields((("query", first),))
    if variables != Lit(None):
        sent = sent.merged(Fields((("variables", variables),)))
    if any(isinstance(one, Lit) and _NAMED.search(str(one.value)) for one in choices(first)):
        sent = sent.merged(Fields((("operationName", UNKNOWN),)))  # unless the library is old, or told not to
    http.noted(reader, Lit("POST"), url, Fields(), sent, "json")
    return ANSWER


def _tagged(args: Sequence[Value]) -> Value:
    """The text of a template whose tag leaves it as it is: its own texts, with what is put between them."""
    if not args or not isinstance(args[0], Listed) or args[0].more or len(args[0].items) != len(args):
        return UNKNOWN
    made = [
        part for pair in zip(args[0].items, (*args[1:], Lit("")), strict=True) for one in pair for part in parts_of(one)
    ]
    return text(made)
