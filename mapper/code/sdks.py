"""Libraries that speak for an API: slack_sdk, google-api-python-client, and those of `mapper.code.library_methods`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mapper.code import library_methods, texts
from mapper.code.abstract_values import UNKNOWN, Fields, Json, Lit, Method, Named, Thing, Value, each, plain
from mapper.code.sent_requests import Kind, Request, Spoken

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_SLACK = ("slack_sdk", "slack", "slack_bolt", "slackclient")
_SLACK_CLIENTS = frozenset({"WebClient", "AsyncWebClient", "LegacyWebClient", "SlackClient"})
_SLACK_HOOKS = frozenset({"WebhookClient", "AsyncWebhookClient"})
_SLACK_APPS = frozenset({"App", "AsyncApp"})
# What a Slack app decorates its listeners with; they are called with what their parameters are named after.
_SLACK_LISTENS = frozenset(
    {
        "action", "assistant", "block_action", "command", "error", "event", "function", "global_shortcut", "message",
        "message_shortcut", "middleware", "options", "shortcut", "step", "use", "view", "view_closed",
        "view_submission",
    }
)  # fmt: skip
_NOT_CALLED = frozenset({"api_test", "close", "issue_new_token_if_necessary"})
_DOWNLOAD = "_media"
_POST = Lit("POST")
_BODIES: dict[str, Kind] = {"json": "json", "data": "form"}
_MEDIA = frozenset({"media_body", "media_mime_type"})
# What google-api-python-client's resources have beside the API's own methods.
_GOOGLE_OWN = frozenset({"execute", "new_batch_http_request", "close", "with_raw_response"})


def called(reader: Following, function: Named | Method | Thing, args: list[Value], given: Fields) -> Value | None:
    """What a call of one of these libraries gives; None where it is none."""
    if isinstance(function, Named):
        root, _, leaf = function.name.partition(".")[0], "", function.name.rpartition(".")[2]
        if root in _SLACK:
            return _slack_made(leaf, args, given)
        if function.name in ("googleapiclient.discovery.build", "apiclient.discovery.build"):
            return _google_built(reader, args, given)
        return library_methods.made(reader, function.name, args, given)
    if isinstance(function, Method) and isinstance(function.of, Thing):
        owner, name = function.of, function.name
        if owner.kind == "slack.app":
            return Thing("slack.listener", owner.facts)
        if owner.kind == "slack":
            return _slack(reader, owner, name, args, given)
        if owner.kind == "hook":
            body, _kind = (given, "json") if name == "send" else (args[0] if args else Fields(more=True), "json")
            fields = body if isinstance(body, Fields) else Fields(more=True)
            if name in ("send", "send_dict"):
                reader.seen.requests.append(
                    Request(line=reader.line, verb=Lit("POST"), url=owner["url"], body=fields, kind="json")
                )
            return UNKNOWN
        if owner.kind == "google":
            return _google(reader, owner, name, args, given)
        if owner.kind == "google.request":
            return UNKNOWN
        if owner.kind == "table":
            return library_methods.called(reader, owner, name, args, given)
    if isinstance(function, Thing) and function.kind == "slack.listener" and args:
        client = Thing("slack", function.facts)
        named = Fields((("client", client), ("say", Thing("slack.say", function.facts))), True)
        reader.beside(lambda: reader.call(args[0], [], named))
        return args[0]
    if isinstance(function, Thing) and function.kind == "slack.say":  # to wherever it was that something happened
        given = given if not args else Fields((("text", args[0]),)).merged(given)
        given = given if given.get("channel") is not None else given.merged(Fields((("channel", UNKNOWN),)))
        return _slack(reader, function, "chat_postMessage", [], given)
    return None


def attribute(reader: Following, owner: Thing, name: str) -> Value | None:
    """An attribute of one of these libraries' objects; None for what is only a method."""
    if owner.kind == "slack.app":
        return Thing("slack", owner.facts) if name == "client" else None if name in _SLACK_LISTENS else UNKNOWN
    if owner.kind == "table":
        library_methods.looked_at(reader, owner, name)
        return library_methods.attribute(owner, name)
    return None


def _slack_made(leaf: str, args: list[Value], given: Fields) -> Value | None:
    if leaf in _SLACK_CLIENTS:
        return Thing("slack", (("base", given.get("base_url")), ("waits", leaf.startswith("Async"))))
    if leaf in _SLACK_HOOKS:
        return Thing("hook", (("url", given.get("url") or (args[0] if args else UNKNOWN)),))
    if leaf in _SLACK_APPS:
        return Thing("slack.app", (("base", None), ("waits", leaf.startswith("Async"))))
    return None


def _slack(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    given = given.without("token")
    # The asynchronous client sends the verb that it is told, and `params` in the query; the other one a form.
    waits: bool = owner["waits"]
    params: Kind = "none" if waits else "form"

    def say(method: str, sent: Fields, kind: Kind, verb: Value) -> None:
        reader.seen.spoken.append(
            Spoken(
                line=reader.line,
                sdk="slack",
                name=method,
                given=sent,
                kind=kind,
                verb=verb if waits else _POST,
                base=owner["base"],
            )
        )

    if name == "api_call":
        wanted = given.get("api_method") or (args[0] if args else UNKNOWN)
        sent = Fields()
        kind = params
        places: dict[str, Kind] = {"params": params, "data": "form", "json": "json"}
        for place, how in places.items():
            found = given.get(place)
            if found is not None and found != Lit(None):
                sent = sent.merged(texts.fields_of(found.value if isinstance(found, Json) else found) or Fields())
                kind = how
        if given.more or given.get("files") is not None:
            sent = Fields(sent.items, True)
        for (wanted_one,) in each(wanted):
            known, method = plain(wanted_one)
            if known and isinstance(method, str):
                say(method, sent, kind, given.get("http_verb") or _POST)
            else:
                reader.seen.unread.append((reader.line, "api_call of a method that isn't written there"))
        return UNKNOWN
    if name.startswith("_") or name in _NOT_CALLED:
        return UNKNOWN
    if name in ("files_upload_v2", "files_uploadV2"):
        names, given = ["files_getUploadURLExternal", "files_completeUploadExternal"], Fields(more=True)
    else:
        names, given = [name], Fields(given.items, given.more or bool(args))
    for one in names:
        kind = next((how for named, how in _BODIES.items() if one in library_methods.slack_names(named)), params)
        verb = Lit("GET") if one in library_methods.slack_names("get") else _POST
        say(one.replace("_", "."), given, kind, verb)
    return UNKNOWN


def _google_built(reader: Following, args: list[Value], given: Fields) -> Value:
    api = given.get("serviceName") or (args[0] if args else UNKNOWN)
    version = given.get("version") or (args[1] if len(args) > 1 else UNKNOWN)
    options = given.get("client_options")
    base = options.get("api_endpoint") if isinstance(options, Fields) else None
    made = []
    for one, other in each(api, version):
        known, name = plain(one)
        also, number = plain(other)
        if known and also and isinstance(name, str) and isinstance(number, str):
            made.append(Thing("google", (("api", f"{name}:{number}"), ("chain", ()), ("base", base))))
    if not made:
        reader.seen.unread.append((reader.line, "a Google API whose name isn't written there"))
        return UNKNOWN
    from mapper.code.abstract_values import joined

    return joined(made)


def _google(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    if name in ("__enter__", "__exit__") or (name.startswith("_") and not owner["chain"]):
        return owner
    if name == "new_batch_http_request":
        reader.note("several requests in one (a batch) aren't let through: send them one by one")
        return UNKNOWN
    if name in _GOOGLE_OWN:
        if name == "execute" and owner["chain"]:
            _google_say(reader, owner, owner["chain"], Fields())
        return UNKNOWN
    if name.endswith(_DOWNLOAD):  # the library's own name of a method that is asked for a file's content
        name, given = name.removesuffix(_DOWNLOAD), given.merged(Fields((("alt", Lit("media")),)))
    chain = (*owner["chain"], name)
    if name.endswith("_next") and len(args) + len(given.items) >= 1:
        return Thing("google.request")  # the next page, by the method that was asked before
    if not args and not given.items and not given.more:
        # A collection, or a method without arguments: what comes after it says which.
        return Thing("google", (("api", owner["api"]), ("chain", chain), ("base", owner["base"]),))  # fmt: skip
    _google_say(reader, owner, chain, Fields(given.items, given.more or bool(args)))
    return Thing("google.request")


def _google_say(reader: Following, owner: Thing, chain: tuple[str, ...], given: Fields) -> None:
    upload = any(given.get(name) is not None and given.get(name) != Lit(None) for name in _MEDIA)
    reader.seen.spoken.append(
        Spoken(
            line=reader.line,
            sdk="google",
            api=owner["api"],
            name=".".join(chain),
            given=given.without(*_MEDIA),
            upload=upload,
            base=owner["base"],
        )
    )
