"""Services' own libraries in JavaScript, called as their Python siblings are: openai, Anthropic's, Notion's, stripe,
Slack's, Google's, and addresses that octokit is given.

Rules: a client that is made for another address, and options that could make another request of a call, make it no
call that is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mapper.code import http, library_methods
from mapper.code import javascript_graphql as graphql
from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Class,
    Fields,
    Function,
    Lit,
    Made,
    Method,
    Named,
    Thing,
    Value,
    choices,
    each,
    plain,
    text,
)
from mapper.code.sent_requests import Spoken

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

# The function that makes a client here, and in Python.
_MADE = {
    **dict.fromkeys(("openai", "openai.default", "openai.OpenAI"), "openai.OpenAI"),
    **dict.fromkeys(
        ("@anthropic-ai/sdk", "@anthropic-ai/sdk.default", "@anthropic-ai/sdk.Anthropic"), "anthropic.Anthropic"
    ),
    "@notionhq/client.Client": "notion_client.Client",
    **dict.fromkeys(("stripe", "stripe.default", "stripe.Stripe"), "stripe.StripeClient"),
}
_SLACK = "@slack/web-api.WebClient"
_KEYED = frozenset({_SLACK, "stripe", "stripe.default", "stripe.Stripe"})  # what takes its key before its options
_OCTOKIT = frozenset({"@octokit/rest.Octokit", "@octokit/core.Octokit", "octokit.Octokit"})
# Plugins of octokit that make no other request of a call.
_PLUGIN = re.compile(
    r"js:@octokit/plugin-(?:retry|throttling|paginate-rest|paginate-graphql|rest-endpoint-methods|request-log)\.\w+"
)
# `google.drive` of googleapis, or `drive` of a package of its own; and `drive_v3.Drive`.
_GOOGLE = re.compile(
    r"js:(?:googleapis(?:\.default)?\.google|@googleapis/\w+(?:\.default)?)\.(?P<api>[a-z]\w*)", re.ASCII
)
_GOOGLE_CLASS = re.compile(
    r"js:(?:googleapis|@googleapis/\w+)\.(?P<api>[a-z]\w*)_(?P<version>v\d\w*)\.[A-Z]\w*", re.ASCII
)
_NO_API = frozenset({"auth", "options", "getSupportedAPIs", "GoogleApis", "addAPIs", "discoverAPI"})
# Options of a client, or of one call, of Google's that make no other request of it.
_GOOGLE_OPTIONS = frozenset({
    "version", "auth", "headers", "timeout", "signal", "retry", "retryConfig", "http2", "responseType",
    "quotaProjectId", "userAgentDirectives", "maxRedirects", "validateStatus", "onUploadProgress", "maxContentLength",
})  # fmt: skip
_ELSEWHERE = ("baseURL", "baseUrl", "slackApiUrl", "host", "port", "protocol", "defaultQuery")
# Options of one call that make no other request of it.
_HARMLESS = frozenset(
    {"headers", "timeout", "maxRetries", "idempotencyKey", "signal", "apiVersion", "maxNetworkRetries"}
)
_NO_ID = frozenset({"create", "list", "search"})  # of stripe's functions
_ROUTE = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) ((?:https://api\.github\.com)?/[\w\-.~/{}]*)")
_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[\w\-.~]{1,100}")
# What a function that asks for page after page adds, to all but the first of them.
_PAGE, _CURSOR = Fields((("page", UNKNOWN),)), Fields((("cursor", UNKNOWN),))
_SIZE = Fields((("limit", Lit(200)),))  # of Slack's pages, unless the program says it
_ONE = Fields()  # nothing, where one page is asked for
_SENDS_NOTHING = frozenset({"log", "auth"})
_OF_OCTOKIT = ("headers", "mediaType", "request", "baseUrl")


def attribute(owner: Thing, name: str) -> Value | None:
    """An attribute of a client; None for what is no client of these."""
    if owner.kind == "slack.js":
        return owner.but(chain=(*owner["chain"], name))
    if owner.kind in ("octokit", "google.js"):
        return owner.but(chain=(*owner["chain"], name))
    if not owner["js"]:
        return None
    found = library_methods.attribute(owner, _snake(name)) if name != "del" else None
    return found if found is not None else Method(owner, name)


def is_client(value: Value) -> bool:
    """Whether it is one of these, or of axios."""
    return isinstance(value, Thing) and (
        value.kind in ("slack.js", "octokit", "google.js", "got", "axios", graphql.KIND) or bool(value["js"])
    )


def made(reader: Following, function: Named, args: Sequence[Value]) -> Value | None:
    """What making something gives; None for what is no client of these."""
    name = function.name.removeprefix("js:")
    if name.rpartition(".")[0] in _OCTOKIT:
        return _octokit_made(reader, function, args)
    if name.startswith(("googleapis", "@googleapis/")):
        return _google_made(reader, function, args)
    if not function.name.startswith("js:") or not (name in _MADE or name == _SLACK or name in _OCTOKIT):
        return None
    for option in args[1:] if name in _KEYED else args:
        if not isinstance(option, Fields) or option.more or any(option.get(one) is not None for one in _ELSEWHERE):
            return UNKNOWN
    if name == _SLACK:
        return Thing("slack.js", (("chain", ()),))
    if name in _OCTOKIT:
        return Thing("octokit", (("chain", ()),))
    client = library_methods.made(reader, _MADE[name], (), Fields())
    return client.but(js=True) if isinstance(client, Thing) else UNKNOWN


def called(reader: Following, owner: Thing, name: str, args: Sequence[Value]) -> Value | None:
    """A function of a client (or the client's part itself, `name` is "" then); None for what is none."""
    if owner.kind == "slack.js":
        _slack(reader, owner["chain"] if not name else (*owner["chain"], name), args)
        return ANSWER
    if owner.kind == "octokit":
        chain = owner["chain"] if not name else (*owner["chain"], name)
        if chain == ("graphql", "defaults"):
            return graphql.octokit_defaults(reader, args)
        _of_octokit(reader, chain, args)
        return ANSWER if len(args) < 3 else UNKNOWN  # the third is a function, which makes of it what it likes
    if owner.kind == "google.js":
        return _google(reader, owner, owner["chain"] if not name else (*owner["chain"], name), args)
    if not owner["js"] or not name:
        return None
    own = "delete" if name == "del" else _snake(name)
    if own in ("with_options", "copy"):
        return UNKNOWN
    places = library_methods.places(owner, own) if owner["lib"] != "stripe" else int(own not in _NO_ID)
    ids: list[Value] = []
    rest = list(args)
    while rest and len(ids) < places and not isinstance(rest[0], Fields):
        ids.append(rest.pop(0))
    given, *options = rest or [Fields()]
    for option in options:
        if not isinstance(option, Fields) or option.more or not {key for key, _ in option.items} <= _HARMLESS:
            return UNKNOWN
    sent = given if isinstance(given, Fields) else Fields(more=given != Lit(None))
    return library_methods.called(reader, owner, own, ids, sent)


def _slack(reader: Following, chain: tuple[str, ...], args: Sequence[Value]) -> None:
    first: Value = Lit(".".join(chain))
    if chain in (("apiCall",), ("paginate",)):
        first, args = (args[0], args[1:]) if args else (UNKNOWN, ())
    given = args[0] if args else Fields()
    fields = given if isinstance(given, Fields) else Fields(more=given != Lit(None))
    if chain == ("paginate",):
        fields = (Fields() if fields.more else _SIZE).merged(fields).merged(_CURSOR)
    sent = Fields(
        tuple(
            (key, value if all(isinstance(one, Lit) for one in choices(value)) else UNKNOWN)
            for key, value in fields.items
            if key != "token"
        ),
        fields.more,
    )
    for (one,) in each(first):
        known, method = plain(one)
        if not known or not isinstance(method, str):
            reader.seen.unread.append((reader.line, "apiCall of a method that isn't written there"))
        elif method.lower() in ("filesuploadv2", "files.uploadv2"):
            for each_of in ("files.getUploadURLExternal", "files.completeUploadExternal"):
                _say(reader, each_of, Fields(more=True))
        else:
            _say(reader, method, sent)


def _say(reader: Following, method: str, sent: Fields) -> None:
    reader.seen.spoken.append(
        Spoken(line=reader.line, sdk="slack", name=method, given=sent, kind="form", verb=Lit("POST"), base=None)
    )


def _octokit_made(reader: Following, function: Named, args: Sequence[Value]) -> Value:
    """`Octokit.plugin(retry)` or `Octokit.defaults({…})`: a class that makes the same requests."""
    made, _, name = function.name.rpartition(".")
    if name == "plugin" and all(isinstance(one, Named) and _PLUGIN.fullmatch(one.name) for one in args):
        return Named(made)
    if name == "defaults" and all(
        isinstance(one, Fields) and not one.more and all(one.get(other) is None for other in _ELSEWHERE) for one in args
    ):
        return Named(made)
    if name in ("plugin", "defaults"):
        reader.seen.unread.append((reader.line, f"Octokit.{name}, which may change what is asked for"))
    return UNKNOWN


def _google_made(reader: Following, function: Named, args: Sequence[Value]) -> Value:
    """`google.drive({version: "v3", auth})`, and what else googleapis makes."""
    given = args[0] if args else Fields()
    named = _GOOGLE_CLASS.fullmatch(function.name)
    found = named or _GOOGLE.fullmatch(function.name)
    if found is None:
        return UNKNOWN
    fields = given if isinstance(given, Fields) else Fields() if isinstance(given, Lit) else Fields(more=True)
    elsewhere = fields.more or not {name for name, _ in fields.items} <= _GOOGLE_OPTIONS
    if found["api"] in _NO_API:
        if found["api"] == "discoverAPI" or (found["api"] == "options" and elsewhere):
            reader.seen.unread.append((reader.line, f"googleapis' {found['api']}, which isn't followed"))
        return UNKNOWN
    version = Lit(named["version"]) if named else given if isinstance(given, Lit) else fields.get("version")
    known, number = plain(version or UNKNOWN)
    if elsewhere or not known or not isinstance(number, str):
        reader.seen.unread.append((reader.line, "a Google API whose name or address isn't written there"))
        return UNKNOWN
    return Thing("google.js", (("api", f"{found['api']}:{number}"), ("chain", ())))


def _google(reader: Following, owner: Thing, chain: tuple[str, ...], args: Sequence[Value]) -> Value:
    """`drive.files.create({requestBody, media, fields}, options, callback)`."""
    what = f"{owner['api']} {'.'.join(chain)}"
    called_back = [isinstance(one, Function | Class | Made) for one in args]
    rest = args[: called_back.index(True)] if True in called_back else args
    given = rest[0] if rest else Fields()
    for option in rest[1:]:
        known = isinstance(option, Fields) and not option.more and {name for name, _ in option.items} <= _GOOGLE_OPTIONS
        if not known and option != Lit(None):
            reader.seen.unread.append((reader.line, f"{what} with options of its own"))
            return UNKNOWN
    for one in choices(given):
        fields = one if isinstance(one, Fields) else Fields(more=one != Lit(None))
        bodies = [value for name in ("requestBody", "resource") if (value := fields.get(name)) not in (None, Lit(None))]
        if len(bodies) > 1:
            reader.seen.unread.append((reader.line, f"{what} with two bodies"))
            continue
        media = fields.get("media")
        sent = fields.without("requestBody", "resource", "media", "headers", "auth")
        reader.seen.spoken.append(
            Spoken(
                line=reader.line, sdk="google", api=owner["api"], name=".".join(chain),
                given=sent.merged(Fields((("body", bodies[0]),))) if bodies else sent,
                upload=media is not None and media != Lit(None),
            )
        )  # fmt: skip
    return UNKNOWN if True in called_back else ANSWER


def _of_octokit(reader: Following, chain: tuple[str, ...], args: Sequence[Value], later: Fields = _ONE) -> None:
    """What a function of octokit asks for, by its name. `later`: what the queries of later pages have besides."""
    if chain in (("paginate",), ("paginate", "iterator")):
        first, *rest = args or (UNKNOWN,)
        if isinstance(first, Thing) and first.kind == "octokit":
            _of_octokit(reader, first["chain"], rest[:1], _PAGE)
        else:
            _octokit(reader, [first, *rest[:1]], _PAGE)
    elif chain == ("request",):
        _octokit(reader, args, later)
    elif chain == ("graphql",):
        graphql.octokit(reader, args)
    else:
        route = library_methods.octokit_routes().get(".".join(chain[1:] if chain[:1] == ("rest",) else chain))
        if route is not None:
            _octokit(reader, [Lit(route), *args[:1]], later)
        elif len(chain) > 1 and chain[0] not in _SENDS_NOTHING:
            reader.seen.unread.append((reader.line, f"{'.'.join(chain)} of octokit, which isn't known"))


def _octokit(reader: Following, args: Sequence[Value], later: Fields) -> None:
    """`request("POST /repos/{owner}/{repo}/issues", {owner, repo, title})`."""
    given = args[1] if len(args) > 1 else Fields()
    fields = given if isinstance(given, Fields) else Fields(more=True)
    route = _ROUTE.fullmatch(str(plain(args[0])[1])) if args else None
    if route is None or fields.get("baseUrl") is not None:
        reader.seen.unread.append((reader.line, "a request of octokit whose address isn't written there"))
        return
    where: list[str | None] = []
    for part in re.split(r"(\{[^{}]*\})", route[2] if "://" in route[2] else f"https://api.github.com{route[2]}"):
        if part.startswith("{"):
            _, value = plain(fields.get(part[1:-1]) or UNKNOWN)
            where.append(str(value) if isinstance(value, str | int) and _SEGMENT.fullmatch(str(value)) else None)
            fields = fields.without(part[1:-1])
        else:
            where.append(part)
    sent = fields.without(*_OF_OCTOKIT)
    if sent.get("data") is not None:
        sent = Fields(more=True)
    asks = route[1] in ("GET", "HEAD")
    query, body = (sent.merged(later), Fields()) if asks else (Fields(), sent)
    bare = asks or not (body.items or body.more)
    http.noted(reader, Lit(route[1]), text(where), query, body, "none" if bare else "json")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
