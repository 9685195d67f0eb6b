"""Manifests: the bundled ones are good, and every mistake is refused with the file, the key and the line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mapper import manifest
from mapper.catalog import Catalog, _service_facts
from mapper.json_schema import problem, short_form
from mapper.templates import references
from mapper.toml_tables import ManifestError
from policies.services import CallTemplate, Method, Risk, Scope, Service

GOOD = """\
name = "chat"
title = "Chat"
description = "Team chat."
base_url = "https://chat.example.org/api/"
words = ["chat"]
success = [{ path = "$.ok", equals = true, says = "no" }]

[shared.channel]
type = "string"
required = true
pattern = "^[A-Z]+$"

[scopes."chat:write"]
description = "Send and delete messages."
risk = "delete"

[scopes."chat:read"]
description = "Read messages."
risk = "read"

[methods."messages.send"]
http = "POST /channels/{channel}/messages"
description = "Post a message."
scopes = ["chat:write"]
risk = "write"
words = ["send"]
defaults = { priority = "low" }
fixed = { nonce = "$action.key" }
[methods."messages.send".parameters]
channel = "@channel"
text = { type = "string", required = true, maxLength = 40, description = "The message." }
priority = "string How urgent."
tags = "query string:tag[] Tags."
[methods."messages.send".undo]
note = "Others may have read it."
calls = [{ method = "messages.delete", arguments = { channel = "$request.channel", id = "$response.id" } }]
[methods."messages.send".undo.guard]
method = "messages.get"
arguments = { channel = "$request.channel", id = "$response.id" }
expect = [{ path = "$.text", equals = "$request.text", says = "It was changed." }]
[methods."messages.send".undo.verify]
method = "messages.get"
arguments = { channel = "$request.channel", id = "$response.id" }
expect = [{ status = [404] }]

[methods."messages.delete"]
http = "DELETE /channels/{channel}/messages/{id}"
description = "Delete a message."
scopes = ["chat:write"]
risk = "delete"
irreversible = "it is gone."
[methods."messages.delete".parameters]
channel = "@channel"
id = "string!"

[methods."messages.get"]
http = "GET /channels/{channel}/messages/{id}"
description = "Show a message."
scopes = ["chat:read", "chat:write"]
risk = "read"
[methods."messages.get".parameters]
channel = "@channel"
id = "string!"
"""


def load(text: str) -> Any:
    return manifest.load(text, file="chat.toml")


def test_a_good_manifest() -> None:
    service = load(GOOD)
    assert service.base_url == "https://chat.example.org/api" and service.source == "bundled"
    send = service.methods["messages.send"]
    assert (send.http, send.path, send.body) == ("POST", "/channels/{channel}/messages", "json")
    assert send.parameters == {
        "type": "object",
        "properties": {
            "channel": {"type": "string", "pattern": "^[A-Z]+$"},
            "text": {"type": "string", "maxLength": 40, "description": "The message."},
            "priority": {"type": "string", "description": "How urgent."},
            "tags": {"type": "array", "items": {"type": "string", "format": "tag"}, "description": "Tags."},
        },
        "required": ["channel", "text"],
        "additionalProperties": False,
    }
    assert dict(send.locations) == {
        "channel": "path", "text": "body", "priority": "body", "tags": "query", "nonce": "body",
    }  # fmt: skip
    assert send.defaults == {"priority": "low", "nonce": "$action.key"}
    assert send.undo is not None and send.undo.guard is not None and send.undo.verify is not None
    assert send.undo.guard.expect[0].op == "equals" and send.undo.verify.expect[0].value == [404]
    delete = service.methods["messages.delete"]
    assert delete.undo is None and delete.description.endswith("Can't be taken back: it is gone.")
    assert delete.body == "none" and delete.locations["id"] == "path"


SEND, GET, SCOPE = '[methods."messages.send"]', '[methods."messages.get"]', '[scopes."chat:read"]'

# What is replaced, by what, and what the error must say.
BAD = [
    ('name = "chat"', 'name = "Chat"', "name: must be lower-case"),
    ('name = "chat"', 'name = "other"', "other.toml"),
    ('name = "chat"', "name = 3", "name: must be text"),
    ('title = "Chat"', "", "'title' is missing"),
    ('title = "Chat"', 'title = "Chat"\ncolour = "red"', "'colour' isn't a key"),
    ("https://chat.example.org/api/", "http://chat.example.org", "https"),
    ("https://chat.example.org/api/", "https://u:p@chat.example.org", "base_url"),
    ("https://chat.example.org/api/", "https://chat.example.org/?x=1", "base_url"),
    ('words = ["chat"]', 'words = "chat"', "words: must be a list"),
    ('words = ["chat"]', "words = [1]", "words: must be a list of texts"),
    ('path = "$.ok", equals = true', 'path = "ok", equals = true', "isn't a path"),
    ('path = "$.ok", equals = true', 'path = "$.ok"', "needs one of"),
    ('path = "$.ok", equals = true', 'path = "$.ok", equals = true, op = 1', "'op' isn't a key"),
    ('path = "$.ok", equals = true', 'path = "$.ok", exists = false', "must be true"),
    ('path = "$.ok", equals = true', 'path = "$.ok", equals = "$request.text"', "isn't known at that point"),
    (f'risk = "read"\n\n{SEND}', f'risk = "harmless"\n\n{SEND}', "must be read, write"),
    ('http = "DELETE /channels', 'http = "GET /channels', "GET and a risk of delete don't go together"),
    ('risk = "delete"\nirreversible = "it is gone."', 'risk = "read"', "DELETE and a risk of read don't go together"),
    (f'risk = "delete"\n\n{SCOPE}', f'risk = "read"\n\n{SCOPE}', "is said to be read, but unlocks"),
    (SCOPE, f'[scopes."chat:unused"]\ndescription = "x"\nrisk = "read"\n{SCOPE}', "unlocks no method"),
    ('scopes = ["chat:read", "chat:write"]', 'scopes = ["chat:reed"]', "'chat:reed' isn't a scope"),
    ('scopes = ["chat:read", "chat:write"]', "scopes = []", "without scopes"),
    ('"POST /channels', '"SEND /channels', "must read like"),
    ('"POST /channels/{channel}/messages"', '"POST channels/{channel}"', "must read like"),
    ('"POST /channels/{channel}/messages"', '"POST /channels/c{channel}"', "isn't a path segment"),
    ('"POST /channels/{channel}/messages"', '"POST /{channel}/../admin"', "isn't a path segment"),
    ('"POST /channels/{channel}/messages"', '"POST /{channel}?x=1"', "isn't a path segment"),
    ('"POST /channels/{channel}/messages"', '"POST /{channel}/{thread}"', "names {thread}"),
    ('"POST /channels/{channel}/messages"', '"POST /{channel}/{channel}"', "twice"),
    (f'id = "string!"\n\n{GET}', f'id = "string"\n\n{GET}', "is in the path, so it is required"),
    (f'id = "string!"\n\n{GET}', f'id = "query string!"\n\n{GET}', "can't be in the query"),
    ('priority = "string How urgent."', 'priority = "path string"', "can't be in the path"),
    ('priority = "string How urgent."', 'priority = "text How urgent."', "must begin with a type"),
    ('priority = "string How urgent."', "priority = 3", "must be text or a table"),
    ('priority = "string How urgent."', 'priority = "@nothing"', "isn't among the shared"),
    ('priority = "string How urgent."', 'priority = { type = "strong" }', "type must be one of"),
    ('priority = "string How urgent."', 'priority = { type = "string", maxlength = 3 }', "isn't a schema keyword"),
    ('priority = "string How urgent."', 'priority = { type = "string", maxLength = -3 }', "maxLength must be a count"),
    ('priority = "string How urgent."', 'priority = { type = "string", pattern = "(" }', "pattern must be"),
    ('priority = "string How urgent."', 'priority = { type = "array", items = { kind = 1 } }', "items.kind"),
    ('priority = "string How urgent."', 'priority = { description = "x" }', "'type' is missing"),
    ('priority = "string How urgent."', 'priority = { "$ref" = "http://evil/" }', "'type' is missing"),
    ('defaults = { priority = "low" }', 'defaults = { text = "x" }', "may be left out"),
    ('defaults = { priority = "low" }', 'defaults = { speed = "x" }', "may be left out"),
    ('defaults = { priority = "low" }', 'defaults = { priority = "$response.x" }', "isn't known before the call"),
    ('defaults = { priority = "low" }', 'defaults = { priority = "$nothing" }', "isn't a reference"),
    ("fixed = {", "fixed = { text = 'x',", "is a parameter, so it can't be fixed"),
    ('risk = "write"\nwords', 'risk = "write"\nbody = "none"\nwords', "must be json or form"),
    ('risk = "write"\nwords', 'risk = "write"\nbody = "xml"\nwords', "must be json or form"),
    ('irreversible = "it is gone."', "", "needs 'undo', or 'irreversible'"),
    ('irreversible = "it is gone."\n', 'irreversible = "x"\nundo = { calls = [] }\n', "needs a call"),
    ('words = ["send"]', 'words = ["send"]\nirreversible = "no"', "untrue or needless"),
    ('method = "messages.delete"', 'method = "messages.remove"', "isn't a method of this service"),
    ('id = "$response.id" } }]', 'nr = "$response.id" } }]', "has no parameter 'nr'"),
    ('channel = "$request.channel", id = "$response.id" } }]', 'channel = "$request.channel" } }]', "needs 'id'"),
    ('id = "$response.id" } }]', 'id = "$pre.id" } }]', "isn't known at that point"),
    ('id = "$response.id" } }]', 'id = "$responses.id" } }]', "isn't a reference"),
    ('id = "$response.id" } }]', 'id = "$response..id" } }]', "isn't a path"),
    ('id = "$response.id" } }]', 'id = "$request.tags" } }]', "always there"),
    ('id = "$response.id" } }]', 'id = "$request.nothing" } }]', "always there"),
    ('.undo.guard]\nmethod = "messages.get"', '.undo.guard]\nmethod = "messages.delete"', "must be a read"),
    ("expect = [{ status = [404] }]", "expect = [{ status = [4040] }]", "HTTP status codes"),
    ("expect = [{ status = [404] }]", "expect = [{ status = [404], path = '$' }]", "'path' isn't a key"),
    ("expect = [{ status = [404] }]", "expect = [3]", "list of tables"),
    ('note = "Others', 'notes = "Others', "'notes' isn't a key"),
    ('[methods."messages.get"]', '[methods."messages get"]', "a method's name"),
    ('title = "Chat"', 'title = "Chat"\nheaders = { "X-Y\\n" = "z" }', "header"),
    ('title = "Chat"', 'title = "Chat"\nplacement = { format = "Bearer" }', "must hold {secret} once"),
    ('title = "Chat"', 'title = "Chat"\nplacement = { header = "A b" }', "isn't a header's name"),
    ('equals = "$request.text", says', 'contains = 3, says', "must be a list, or a reference to one"),
    ('equals = "$request.text", says', 'lacks = true, says', "must be a list, or a reference to one"),
    ('id = "$response.id" } }]', 'id = "$request.nothing?" } }]', "always there"),
    ('id = "$response.id" } }]', 'id = "$response.?" } }]', "isn't a path"),
    ('equals = "$request.text", says', 'lacks = ["$request.tags?"], says', "only where it is the whole value"),
    ('equals = "$request.text", says', 'lacks = [{ a = ["$request.tags?"] }], says', "it is the whole value"),
    ('note = "Others', 'made = "$.items"\nnote = "Others', "is told by pre and after"),
    ('note = "Others', 'fields = ["text"]\nnote = "Others', "names arguments that are always there"),
    ('channel = "@channel"\ntext', 'channel = "string"\ntext', "required: end its type with '!', or give it a default"),
    ("fixed = {", "fixed_query = { text = 'x' }\nfixed = {", "is a parameter, so it can't be fixed"),
    ("fixed = {", "fixed_query = { nonce = 'x' }\nfixed = {", "is a parameter, so it can't be fixed"),
    ('risk = "write"\nwords', 'risk = "write"\nmail = "raw"\nwords', "exactly where there are mail parameters"),
    ('priority = "string How urgent."', 'subject = "mail string"\npriority = "string"', "exactly where there are mail"),
    ('title = "Chat"', "title = ", "not TOML"),
    ('title = "Chat"', 'title = "Chat"\ntitle = "Again"', "not TOML"),
]  # fmt: skip


CODE = """
[code]
tokens = ["CHAT_TOKEN"]
prefix = "chat-"
sdk = "chat:v1"
query = ["alt", "$format"]
either = true
bases = ["https://upload.example.org/chat/"]
"""


def test_what_programs_expect_of_a_service() -> None:
    code = manifest.load(GOOD + CODE, file="chat.toml").code
    assert (code.tokens, code.prefix, code.sdk, code.either) == (("CHAT_TOKEN",), "chat-", "chat:v1", True)
    assert (code.query, code.bases) == (("alt", "$format"), ("https://upload.example.org/chat",))
    assert manifest.load(GOOD, file="chat.toml").code.tokens == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["CHAT_TOKEN"]', '["chat token"]', "isn't a variable"),
        ('["CHAT_TOKEN"]', '["GOEX_TOKEN_SLACK"]', "isn't a variable"),
        ('"chat-"', '"chat: "', "is at most 20"),
        ('"alt"', '"a b"', "isn't a parameter's name"),
        ("https://upload", "http://upload", "must be an https URL"),
        ("/chat/", "/{chat}/", "must be an https URL"),
        ("either", "both", "both"),
    ],
)
def test_mistakes_in_what_programs_expect(old: str, new: str, says: str) -> None:
    with pytest.raises(ManifestError, match=says):
        manifest.load(GOOD + CODE.replace(old, new, 1), file="chat.toml")


@pytest.mark.parametrize(("old", "new", "says"), BAD)
def test_mistakes(old: str, new: str, says: str) -> None:
    assert GOOD.count(old) >= 1, old
    with pytest.raises(ManifestError) as caught:
        load(GOOD.replace(old, new, 1))
    assert says in str(caught.value) and "chat.toml" in str(caught.value)


def test_what_a_manifest_may_say_beyond_that() -> None:
    text = GOOD.replace('channel = "@channel"\ntext', 'channel = "string A channel."\ntext')
    text = text.replace('defaults = { priority = "low" }', 'defaults = { priority = "low", channel = "GENERAL" }')
    text = text.replace("fixed = {", 'fixed_query = { "wait" = true }\nfixed = {')
    text = text.replace('equals = "$request.text", says', 'lacks = ["$request.text", "$response.x?"], says')
    send = load(text).methods["messages.send"]
    assert send.parameters["required"] == ["text"] and send.defaults["channel"] == "GENERAL"
    assert send.locations["wait"] == "query" and send.defaults["wait"] is True and send.locations["nonce"] == "body"
    assert send.undo.guard.expect[0].op == "lacks"
    fields = GOOD.replace('equals = "$request.text", says', 'lacks = [{ a = "$request.tags?", b = 1 }], says')
    assert load(fields).methods["messages.send"].undo.guard.expect[0].value == [{"a": "$request.tags?", "b": 1}]


def test_a_letter_is_made_of_its_parts_alone() -> None:
    text = GOOD.replace('risk = "write"\nwords', 'risk = "write"\nmail = "message.raw"\nwords')
    parts = 'subject = "mail string"\nto = "mail string[]"\npriority = "string"'
    text = text.replace('priority = "string How urgent."', parts)
    send = load(text).methods["messages.send"]
    assert (send.mail, send.body) == ("message.raw", "json")
    assert {name for name, place in send.locations.items() if place == "mail"} == {"subject", "to"}
    for old, new in [
        ("subject =", "sender ="),
        ('"mail string[]"', '"mail string"'),
        ('"mail string[]"', '"mail integer[]"'),
    ]:
        with pytest.raises(ManifestError, match="isn't a part of a letter"):
            load(text.replace(old, new))


def test_the_line_is_named() -> None:
    text = GOOD.replace('method = "messages.delete"', 'method = "messages.remove"')
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith("calls = "))
    with pytest.raises(ManifestError, match=f"^chat.toml:{line}: "):
        load(text)
    text = GOOD.replace('risk = "write"', 'risk = "none"')
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row == 'risk = "none"')
    with pytest.raises(ManifestError, match=f'^chat.toml:{line}: methods."messages.send".risk'):
        load(text)


def test_a_huge_or_deep_manifest_is_refused() -> None:
    for text in ("#" * 1_000_001, "a = " + "[" * 100_000, "a" + ".a" * 5000 + " = 1"):
        with pytest.raises(ManifestError):
            load(text)


def test_methods_are_needed() -> None:
    with pytest.raises(ManifestError, match="without methods"):
        load('name = "chat"\ntitle = "x"\ndescription = "y"\n')


# ---- the bundled ones ----

CATALOG = Catalog.bundled()
METHODS = sorted(CATALOG.methods(), key=lambda method: method.id)


def templates(method: Method) -> list[CallTemplate]:
    undo = method.undo
    found = [*undo.calls, undo.pre, undo.guard, undo.verify] if undo else []
    return [template for template in (*found, method.probe) if template is not None]


def test_bundled_services_are_there() -> None:
    google = {"gmail", "google_calendar", "google_drive"}
    assert set(CATALOG.services) == {"slack", "github", "matrix", "discord", "dropbox", "spotify"} | google
    assert max(len(service.methods) for service in CATALOG.services.values()) <= 45, "what nobody needs isn't bundled"
    assert CATALOG.service("matrix").base_url == "" and CATALOG.service("slack").success[0].path == "$.ok"
    assert all(scope.virtual for scope in CATALOG.service("matrix").scopes.values())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.id)
def test_bundled_methods(method: Method) -> None:
    Draft202012Validator.check_schema(dict(method.parameters))
    assert method.words and method.description.endswith(".") and method.scopes
    if method.risk > Risk.READ:
        assert method.undo is not None or "Can't be taken back" in method.description
    for schema in method.parameters["properties"].values():
        lookup = schema.get("x-lookup")
        if lookup:
            assert lookup["argument"] in CATALOG.method(f"{method.service}.{lookup['method']}").parameters["properties"]
    for template in templates(method):
        target = CATALOG.method(f"{method.service}.{template.method}")
        validator = Draft202012Validator(dict(target.parameters))
        for error in validator.iter_errors(dict(template.arguments)):
            # What a reference will be isn't known here; everything literal must fit.
            assert isinstance(error.instance, str) and any(references(error.instance)), error.message


def test_opening_takes_work_by_the_line() -> None:
    """Counted in calls, which are the same on every machine: a catalog is opened by each command."""
    texts = {entry.name: entry.read_text() for entry in (files("mapper") / "services").iterdir()}
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for name, text in texts.items():
            manifest.load(text, file=name)
    finally:
        sys.setprofile(None)
    assert calls < 60 * sum(text.count("\n") for text in texts.values())


def test_templates_name_only_what_the_least_scopes_can_show() -> None:
    """Undoing a message must not need a scope that reads whole channels."""
    undo = CATALOG.method("slack.chat.postMessage").undo
    assert undo is not None
    for template in (*undo.calls, undo.guard, undo.verify):
        assert template is not None and "chat:write" in CATALOG.method(f"slack.{template.method}").scopes


def test_schemas() -> None:
    assert problem({"type": "string"}) == ""
    assert "table" in problem([])
    deep: dict[str, Any] = {"type": "array"}
    for _ in range(20):
        deep = {"type": "array", "items": deep}
    assert "deeper" in problem(deep)
    assert "required" in problem({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})
    assert "x-lookup" in problem({"type": "string", "x-lookup": {"pattern": "("}})
    assert "anyOf" in problem({"anyOf": []})
    assert short_form("string:email!") == ({"type": "string", "format": "email"}, True)
    assert short_form("integer[]") == ({"type": "array", "items": {"type": "integer"}}, False)
    assert short_form("String") is None and short_form("null") is None


# ---- the hash over entries ----


def test_entry_hash_changes_with_every_field() -> None:
    base = CATALOG.entry_hash(["slack.chat.postMessage"])
    assert base == CATALOG.entry_hash(["slack.chat.postMessage", "slack.chat.postMessage"])
    service = CATALOG.service("slack")
    method = service.methods["chat.postMessage"]
    assert method.undo is not None
    changed: list[Method] = [
        replace(method, description="x"),
        replace(method, http="GET"),
        replace(method, path="/x"),
        replace(method, mail="raw"),
        replace(method, parameters={**method.parameters, "required": []}),
        replace(method, locations={**method.locations, "text": "query"}),
        replace(method, scopes=("channels:read",)),
        replace(method, risk=Risk.ADMIN),
        replace(method, body="form"),
        replace(method, words=()),
        replace(method, undo=None),
        replace(method, undo=replace(method.undo, source="model")),
        replace(method, undo=replace(method.undo, guard=None)),
        replace(method, probe=method.undo.guard),
        replace(method, defaults={"text": "x"}),
    ]
    services = [replace(service, methods={**service.methods, method.name: made}) for made in changed]
    services += [
        replace(service, base_url="https://evil.example"),
        replace(service, success=()),
        replace(service, headers={"X": "y"}),
        replace(service, source="imported"),
        replace(service, placement=replace(service.placement, header="X-Key")),
        replace(service, scopes={}),
        # A method that only the undo calls belongs to the entry too.
        replace(
            service,
            methods={**service.methods, "chat.delete": replace(service.methods["chat.delete"], path="/elsewhere")},
        ),
    ]
    hashes = [Catalog.of([made]).entry_hash(["slack.chat.postMessage"]) for made in services]
    assert len({base, *hashes}) == len(hashes) + 1
    assert len(base) == 64 and json.dumps(base)


def test_entry_hash_ignores_order_and_what_is_not_used() -> None:
    one = CATALOG.entry_hash(["slack.chat.postMessage", "github.issues.get"])
    assert one == CATALOG.entry_hash(["github.issues.get", "slack.chat.postMessage"])
    service = CATALOG.service("slack")
    other = replace(
        service, methods={**service.methods, "users.list": replace(service.methods["users.list"], path="/x")}
    )
    assert Catalog.of([other]).entry_hash(["slack.chat.postMessage"]) == CATALOG.entry_hash(["slack.chat.postMessage"])


VECTORS = {
    "both": "699c54ca7baed26d3c12fe221a538fca31b131b4956b8e5c6fa4bee2d3aa2ee0",
    "one": "4af84b9bd0315ce012c94200727bb61268e8ea4c9a6a2c8d3cb6d88720db8dbc",
    "none": "5263666b781d0a808a2e2b27e127d673c49a814896a33a66ae914bcc9df3cee5",
}


def _two(text: str) -> Catalog:
    """Two imported services of one method, whose scopes say this."""
    scopes = {
        name: Scope(service="zoo", name=name, description=text, risk=Risk.WRITE, virtual=name == "b") for name in "cab"
    }
    post = Method(
        service="zoo", name="post", description="Post “it”.", http="POST", path="{room}/post",
        parameters={"type": "object", "properties": {"room": {"type": "string"}}}, locations={"room": "path"},
        scopes=("a",), risk=Risk.WRITE,
    )  # fmt: skip
    zoo = Service(
        name="zoo", title="Zoo", description="", base_url="https://zoo.example/", methods={"post": post}, scopes=scopes,
        source="imported",
    )  # fmt: skip
    return Catalog.of([zoo, replace(zoo, name="Café", methods={"post": replace(post, service="Café")})])


def test_the_hash_of_an_entry_is_what_standing_grants_and_plans_hold() -> None:
    """A vector: another hash for the same entry would ask for everything anew. Two services, letters beyond ASCII."""
    catalog = _two("Sehen, ändern: “all” – 全部.")
    for _ in range(2):  # what was kept of a service gives the same
        assert catalog.entry_hash(["zoo.post", "Café.post"]) == VECTORS["both"]
        assert catalog.entry_hash(["Café.post"]) == VECTORS["one"]
    assert catalog.entry_hash([]) == VECTORS["none"]
    assert _two("Something else.").entry_hash(["Café.post"]) != VECTORS["one"]


def test_a_services_facts_are_written_once_for_all_its_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may have hundreds of scopes and methods, and each method's hash holds all of those scopes."""
    service = _two("x").service("zoo")
    names = [f"post{n}" for n in range(20)]
    methods = {name: replace(service.methods["post"], name=name) for name in names}
    catalog, written = Catalog.of([replace(service, methods=methods)]), list[str]()

    def facts(service: Service) -> Any:
        written.append(service.name)
        return _service_facts(service)

    monkeypatch.setattr("mapper.catalog._service_facts", facts)
    assert len({catalog.entry_hash([f"zoo.{name}"]) for name in names}) == len(names)
    assert written == ["zoo"]
