"""Services, their methods and scopes: what can be asked for at all.

A scope has a description and unlocks a set of methods; a method names the scopes of which *any one* suffices.
What isn't in the catalog can't be called. All of this is frozen; `mapper.catalog` loads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

from policies.jsonvalue import JsonObject, JsonValue

# "query" joins the items of a list by commas, "pipes" and "spaces" by those, "repeat" is a query that names the
# parameter once for each item; of an object "deep" sends name[key]=value and "spread" key=value, and "text" sends any
# value as JSON. "body" is one key of the body's object, "file" a file of a multipart body, "whole" the body itself;
# "mail" is a part of a letter (see `Method.mail`), "variable" one of `Method.document`'s variables.
Location = Literal[
    "path", "query", "repeat", "pipes", "spaces", "deep", "spread", "text", "body", "file", "whole", "header", "mail",
    "variable",
]  # fmt: skip
# "text" is the body itself, "bytes" the same written in base64 as an argument.
BodyFormat = Literal["json", "form", "multipart", "text", "bytes", "none"]
CredentialAt = Literal["header", "query", "cookie"]
Source = Literal["bundled", "developer", "imported", "derived", "model"]


ARGUMENTS = "*"  # of `UndoTemplate.restores`

# Names of a query or a form that give a request another method or another spelling.
OVERRIDE_NAMES = frozenset(
    {
        "_method", "$method", "$httpmethod", "_httpmethod", "_http_method", "$.xgafv", "x-http-method-override",
        "x-http-method", "x-method-override", "_charset_",
    }
)  # fmt: skip


class Risk(IntEnum):
    """How much harm a method or scope can do. Unknown risk counts as DELETE."""

    READ = 1
    WRITE = 2
    DELETE = 3
    ADMIN = 4

    @classmethod
    def parse(cls, text: str) -> Risk:
        """The risk of that name; anything unknown is DELETE, since absence of knowledge isn't safety."""
        return cls.__members__.get(text.upper(), cls.DELETE)

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One permission as the provider cuts it (or a *virtual* one, cut by us and enforced at the gateway)."""

    service: str
    name: str
    description: str  # plain words: what it lets someone see, change, destroy
    risk: Risk
    virtual: bool = False


ExpectOp = Literal["equals", "not_equals", "exists", "absent", "contains", "lacks", "status", "data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """A condition on one answer, checked by the gateway, never by the code in the container.

    `op`: `equals`, `not_equals` (missing counts as not equal), `exists`, `absent`, `status` (value: list of ints),
    `contains` and `lacks` (a list holds every one, or none, of the list `value`, and no item that has all fields of an
    object in it; a missing list holds nothing), `data`
    (a GraphQL answer, see `policies.graphql`).
    `value` may be a template string (see `CallTemplate`).
    """

    op: ExpectOp
    path: str = "$"
    value: JsonValue = None
    says: str = ""  # what it means to the person when this doesn't hold


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTemplate:
    """A call whose arguments are filled from what happened.

    A string argument that starts with `$request.`, `$response.`, `$pre.`, `$undo.`, `$made` or equals `$action.key` is
    a reference: the arguments of the action's call, the answer to it, the answer to its pre-read, the answer to the
    last call of its undo (for the read-back alone), what a list shows that the action made (`UndoTemplate.made`), and a
    key that is unique to this action. `$$` at the start stands for a
    literal `$`. Everything else is a literal. A reference that ends in `?` may lead nowhere: what the request didn't
    have is then left out, what an answer didn't have is null (and where it was expected to be equal, nothing is
    expected). One that ends in `?-` is left out, too, where an answer didn't have it.
    """

    method: str  # of the same service
    arguments: JsonObject
    expect: tuple[Expect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoTemplate:
    """How a method is taken back: an entry of the reversion set (thesis, 4.3).

    `pre` is read before the action; `guard` and `guards` are read before the undo, and their expectations are the
    compare of compare-and-set; `calls` undo, newest first; `verify` reads back. `source` says who claims that this
    works.

    `restores` names an argument, an object, of the action (`ARGUMENTS`: all of its arguments but those that the last
    of `calls` has anyway): the last of `calls` then gets an argument of that name with
    the old value (from `pre`) of exactly the fields that the action wrote, the guard compares that these are as the
    action left them, and the read-back that they are as before. `answered`: what the action left is what its answer
    says; else what its request said. `shown`: what a read doesn't show isn't taken for nothing. `rest`: the other
    `fields` are compared, too, with what was read before. `fields`: it is known of these alone that they can be read
    (none: of all).
    `mask`: an argument that names the fields, joined by commas. `select`: an argument of the reads that takes a list of
    the fields to show; each must then be shown. `tags`: fields that say the thing's type, which the undo repeats as the
    call gave them. `around`: where in the answers the object is ("data.",
    an envelope; "" for the whole). `unless`: a path into the request where nothing may be,
    like an id of the caller's own choice, under which something may have been there before. `absent`: what is sent
    instead of `calls` where `pre` found nothing (404, 410), so that the call made what it else would have changed; the
    read-back is then that it is gone. `after` is read right after the action, as `pre` was before it: the one thing
    that is new in their list at the path `made` is `$made`, if it has the `fields` (paths into the request) as sent.
    `created`: it holds only for an answer with status 201; with another, what is answered may have been there before.
    """

    calls: tuple[CallTemplate, ...]
    pre: CallTemplate | None = None
    guard: CallTemplate | None = None
    guards: tuple[CallTemplate, ...] = ()  # what is compared beside `guard`
    verify: CallTemplate | None = None
    source: Source = "bundled"
    note: str = ""  # what remains all the same, in plain words ("others may have read it")
    restores: str = ""
    answered: bool = False
    shown: bool = False
    rest: bool = False
    fields: tuple[str, ...] = ()
    mask: str = ""
    select: str = ""
    tags: tuple[str, ...] = ()
    around: str = ""
    unless: str = ""
    absent: CallTemplate | None = None
    after: CallTemplate | None = None
    made: str = ""
    created: bool = False

    @property
    def reads(self) -> tuple[CallTemplate, ...]:
        """All that is only read."""
        return tuple(one for one in (self.pre, self.after, self.guard, *self.guards, self.verify) if one is not None)

    @property
    def sends(self) -> tuple[CallTemplate, ...]:
        """All that may be sent to take it back."""
        return (*self.calls, *((self.absent,) if self.absent is not None else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who gets something by a call, as one of its arguments says.

    `of` is the argument's dotted path, or a template of several (`{owner}/{repo}`). Where it is absent, `absent` gets
    it: a name like `anyone`, "" for nobody, None for somebody unknown. `means` translates values that aren't names
    (`default` of a sharing rule is `anyone`; "" is nobody); a value that it doesn't have is unknown. `own` are values
    that stand for the account's owner. A `place` is no address: a value with an @ in it would pass for one, and is
    unknown.
    """

    of: str
    absent: str | None = None
    means: Mapping[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    place: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The dotted paths of the arguments that it looks at."""
        return tuple(re.findall(r"\{([^{}]+)\}", self.of)) if "{" in self.of else tuple(filter(None, (self.of,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One callable operation. `service` and `name` together are its identity (`slack.chat.postMessage`)."""

    service: str
    name: str
    description: str
    http: str  # GET, POST, ...
    path: str  # below the service's base URL; {name} is one encoded segment, {+name} one or several
    parameters: JsonObject  # JSON Schema of the arguments object
    locations: Mapping[str, Location]
    scopes: tuple[str, ...]  # any one suffices; empty: not callable
    risk: Risk
    body: BodyFormat = "none"
    media: str = ""  # the body's content type; "": the usual one of its format
    mail: str = ""  # where in the JSON body the letter goes that the "mail" arguments make, like `message.raw`
    words: tuple[str, ...] = ()  # how people ask for it
    undo: UndoTemplate | None = None  # None: irreversible unless risk is READ
    probe: CallTemplate | None = None  # after a crash: expectations hold if the effect happened
    defaults: JsonObject = field(default_factory=dict)  # arguments filled when absent (templates, as above)
    # The argument (in a header or anywhere) that makes a repetition harmless; "" where the API has none. Its default is
    # `$action.key`: unique to one call of one action, and the same when it is sent again.
    idempotency: str = ""
    origin_id: str = ""  # the provider's own id, of an imported method (`directory.users.insert`)
    unsupported: str = ""  # why GoEx can't make this call, in plain words; "": it can
    audience: tuple[Audience, ...] | None = None  # who gets something by it; (): nobody; None: nobody said
    document: str = ""  # the GraphQL document that is sent; its arguments are the variables

    @property
    def id(self) -> str:
        return f"{self.service}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a credential goes: the header, query parameter or cookie called `header`, written as `format` with
    `{secret}` in it.

    `more`: further places, of an account whose credential is several values (`vault.secret.values_of`): each of them
    goes to the place of its name, and all of them into every request.
    """

    header: str = "Authorization"
    format: str = "Bearer {secret}"
    at: CredentialAt = "header"
    more: tuple[Placement, ...] = ()

    @property
    def places(self) -> tuple[Placement, ...]:
        """Each place by itself."""
        return (replace(self, more=()), *self.more)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Placement:
        """What `asdict` made of one. Raises TypeError for anything else."""
        return cls(**{**raw, "more": tuple(cls.from_json(one) for one in raw.get("more", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """How tokens for a service are asked for (RFC 6749). What is "" isn't said here; an issuer's metadata may say it.

    A scope has its catalog name at the server too, after `prefix`, unless `spelled` says otherwise: another name, or
    the several that one of ours stands for. `always` are asked for beside them (`offline_access`), and `parameters`
    go to the authorization endpoint. `resource`: what the tokens are for alone (RFC 8707). `source`: who says all this.
    What an import says is shown to the person, who agrees to it, before a token goes there.
    """

    issuer: str = ""
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    device_endpoint: str = ""
    revocation_endpoint: str = ""
    client: Literal["", "public", "confidential"] = ""  # the kind of client that the provider registers for a desktop
    client_id: str = ""
    prefix: str = ""
    separator: Literal[" ", ","] = " "
    always: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    spelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resource: str = ""
    source: Source = "bundled"

    def spell(self, scope: str) -> tuple[str, ...]:
        """What a scope of the catalog is called at the server."""
        return self.spelled.get(scope) or (f"{self.prefix}{scope}",)

    def held(self, scopes: Iterable[str], granted: Iterable[str]) -> frozenset[str]:
        """Those of the catalog's `scopes` that are among what the server `granted`."""
        there = frozenset(granted)
        return frozenset(scope for scope in scopes if there.issuperset(self.spell(scope)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFacts:
    """What programs that use a service expect of it.

    `tokens` are the environment variables that they read its credential from, `prefix` what a placeholder for it begins
    with, where libraries look at that. `sdk` is the API's name at a library that names APIs (`gmail:v1`). `query` are
    parameters that libraries add to any call and that change nothing but the answer's form. `either`: the API takes GET
    and POST alike, and arguments in the query as in the body. `bases`: further addresses that its methods are below.
    """

    tokens: tuple[str, ...] = ()
    prefix: str = ""
    sdk: str = ""
    query: tuple[str, ...] = ()
    either: bool = False
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A provider's API. `base_url` may be "" where only an account can know it (a homeserver of one's own)."""

    name: str
    title: str
    description: str
    base_url: str
    methods: Mapping[str, Method]
    scopes: Mapping[str, Scope]
    placement: Placement = Placement()
    success: tuple[Expect, ...] = ()  # what every good answer shows, for services that fail with status 200
    words: tuple[str, ...] = ()  # how people speak about it ("inbox", "channel")
    headers: Mapping[str, str] = field(default_factory=dict)  # fixed ones that this API wants
    source: Source = "bundled"
    provider: str = ""  # who publishes an imported service ("google"), and how they call it ("admin") and its version
    provider_name: str = ""
    version: str = ""  # several, joined by "+", where documents are merged ("directory_v1+reports_v1")
    main: bool = True  # the version that is meant when none is named
    oauth: OAuth | None = None  # None: nothing is known about logins
    code: CodeFacts = CodeFacts()


def believed_risk(service: Service, method: Method) -> Risk:
    """The method's risk, as what it is asked and granted for. That a POST only reads is taken from a document of GoEx's
    own, never from an imported one: whoever wrote that, or wrote into the catalog's file, could call any change so, and
    a read is allowed with less. A GraphQL query is one as a GET is: no server runs a mutation where `query` stands."""
    asks = method.http in ("GET", "HEAD") or method.document.startswith("query ")
    if service.source == "imported" and not asks:
        return max(method.risk, Risk.WRITE)
    return method.risk


def overrides(name: str) -> bool:
    """Whether a value by this name would make another request of the one that it stands in."""
    plain = outer_name(name).strip().lower()
    whole = name.lstrip("[]").partition("\0")[0].strip().lower()
    by_php = {re.sub(r"[ .\[]", "_", one) for one in (plain, whole)}  # `_http_method` of `.http method`, `_http[method`
    return not OVERRIDE_NAMES.isdisjoint({plain} | by_php)


def outer_name(name: str) -> str:
    """The name that servers take a parameter or a form's field for: without brackets before it, up to the first bracket
    (`[a]`, `a]` and `a[b]` are `a`) or NUL."""
    return re.split(r"[\[\]\0]", name.lstrip("[]"), maxsplit=1)[0]
