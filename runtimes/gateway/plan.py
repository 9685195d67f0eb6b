"""What an action may send, fixed before the first byte of untrusted data is read.

A plan is rules: of a program a set of them, each for any number of requests; of calls an ordered list of exact ones,
each for one request, and only after the ones before it were answered well.
Values may come from earlier answers (`Ref`), and only values: never a host, a method, or the shape of a path.
The gateway resolves the references itself from what *it* saw; the container asks for a request that holds one by its
name. A request that is written out is compared; what is sent is the plan's, not what the container wrote.

On its way to the gateway a value that may hold a `Ref` is tagged (`{"r": …}` a reference, `{"m": …}` a mapping,
`{"l": …}` a list), so that no literal of a plan can pose as a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue
from policies.services import Expect, ExpectOp
from policies.typed_json import NEWER, SPARSE


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in the JSON answer to an earlier request of this plan, by path (`policies.jsonpath.value_at`).

    `optional`: nothing need be there; `omitted`: what isn't there is left out. Only an undo says so, whose references
    are filled before it is planned: to the gateway, a missing value is a missing value.
    """

    request: str
    path: str
    optional: bool = False
    omitted: bool = False

    def to_json(self) -> JsonValue:
        how = ["?-"] if self.omitted else ["?"] if self.optional else []
        return {"$ref": [self.request, self.path, *how]}


OMITTED: Any = object()


def fill(value: Any, found: Callable[[Ref], Any]) -> Any:
    """`value` with each Ref in it replaced by what `found` says. OMITTED leaves a name out of its object."""
    if isinstance(value, Ref):
        made = found(value)
        return None if made is OMITTED else made
    if isinstance(value, Mapping):
        filled = {key: found(item) if isinstance(item, Ref) else fill(item, found) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not OMITTED}
    if isinstance(value, list | tuple):
        return [fill(item, found) for item in value]
    return value


_LITERALS = (str, int, float, bool, type(None))


def tagged(value: Any) -> Any:
    """`value` with each `Ref`, mapping and list in it tagged. Raises InvalidInput for what isn't JSON."""
    if isinstance(value, Ref):
        return {"r": [value.request, value.path]}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidInput("A plan holds an object whose key isn't a string.")
        return {"m": {key: tagged(child) for key, child in value.items()}}
    if isinstance(value, list | tuple):
        return {"l": [tagged(child) for child in value]}
    if isinstance(value, _LITERALS):
        return value
    raise InvalidInput(f"A plan holds a {type(value).__name__}, which isn't a JSON value.")


def untagged(value: Any) -> Any:
    """What `tagged` was given. Raises InvalidInput, ValueError or TypeError for anything else."""
    if not isinstance(value, dict):
        return value
    ((tag, held),) = value.items()
    if tag == "r":
        return Ref(*held)
    if tag == "m":
        return {key: untagged(child) for key, child in held.items()}
    if tag == "l":
        return [untagged(child) for child in held]
    raise InvalidInput("A plan holds an unknown tag.")


def _expectation(expect: Expect) -> list[Any]:
    return [expect.op, expect.path, tagged(expect.value), expect.says]


def _expected(parts: tuple[Any, str, Any, str]) -> Expect:
    op, path, value, says = parts
    return Expect(op=op, path=path, value=untagged(value), says=says)


def _origin(parts: tuple[str, str, int]) -> Origin:
    return Origin(*parts)


class CredentialPlace(NamedTuple):
    """A place of a credential, and how it is written there."""

    at: Literal["header", "query", "body", "cookie"]
    name: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What every rule says: requests of one method to one origin, as one account, whose credential stands in one place.

    `credential_name` is that place: the header, the query's parameter, the body's field or the cookie. A planned
    request may have `credential_more`: the account's credential is then several values, one for each place's name.
    """

    id: str
    method_id: str = ""  # "slack.chat.postMessage", for what is said of it
    account: tuple[str, str]  # (service, name): whose credential
    origin: Origin
    base_path: tuple[str, ...]
    method: str
    credential_at: Literal["header", "query", "body", "cookie"] = "header"
    credential_name: str = "Authorization"
    credential_format: str = "Bearer {secret}"
    credential_more: tuple[CredentialPlace, ...] = field(default=(), metadata=NEWER)

    @property
    def credential_places(self) -> tuple[CredentialPlace, ...]:
        """Every place of the credential."""
        first = CredentialPlace(self.credential_at, self.credential_name, self.credential_format)
        return (first, *self.credential_more)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest(Rule):
    """A rule with exact values, for one request at its turn. `path` is a tuple of segments, unencoded; each is encoded
    as exactly one.

    `query` and `body` may hold `Ref`s at any depth (`body` for `json`; for `form` a flat mapping; for `text` a string,
    for `bytes` one in base64; for `multipart` a list of objects with `name` and `value`, or of a file with `name`,
    `file`, `type` and `text` or `base64`). `body_type` is the body's content type, "" for the usual one. `expect` is
    checked on the answer; when it doesn't hold, no later request of the plan is sent. Expect values may be Refs.
    `attempts` > 1 lets a read be repeated until `expect` holds (read-back of a service that is slow to settle).
    `optional` (probes): its failure doesn't stop what follows. Its `id` is "call-0", "pre-0", "guard-0", "undo-0",
    "verify-0" or "probe-0"; its credential stands in no body.
    """

    origin: Annotated[Origin, tuple[str, str, int], astuple, _origin]
    path: tuple[Annotated[str | Ref, Any, tagged, untagged], ...]
    query: Annotated[Mapping[str, Any], Any, tagged, untagged] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Annotated[Any, Any, tagged, untagged] = None
    body_format: Literal["json", "form", "multipart", "text", "bytes", "none"] = "none"
    body_type: str = ""
    expect: tuple[Annotated[Expect, tuple[ExpectOp, str, Any, str], _expectation, _expected], ...] = ()
    attempts: int = 1
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a rule's path: exactly one segment, or with `many` one or several. `values` (decoded) are all that it
    may be; () is anything that is plain segments: no slash within one, nothing that decodes a second time. The last of
    its segments ends with `end` (":cancel"), which isn't part of the value; without `verbs` the value doesn't itself
    end like that (a colon and a word), which would be another method of the same path. `form` is a pattern that the
    value has to have, where its type is known: what isn't a number is no issue, and may well be another method."""

    name: str
    values: tuple[str, ...] = ()
    many: bool = False
    end: str = ""
    verbs: bool = True
    form: str = field(default="", metadata=NEWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRule(Rule):
    """Requests that code may make, in any order: one catalogued method of one account. Its `id` is "rule-0".

    What the code sends is passed on, apart from its headers (an allow-list) and its placeholder, which is swapped for
    the credential in the one place that the service wants it in. `query`: the names that may stand there, each with its
    allowed values, () for any; another name is refused. `fields`: values that top-level fields of the body are held to
    where they stand there, () for one that is known, and free; `closed` may not stand there, nor with `only` any that
    isn't among `fields`; `must`: the names of `query` or `fields` that have to. With `body_format` "json" or "form" a
    body is either of them, and is read whole before anything is sent; with "any" it is streamed. `calls`,
    `request_bytes`, `response_bytes` bound all its requests, each request, each answer; the requests of all rules with
    one `budget` count together. `headers`: names that are
    passed on beside the usual ones. `others`: the paths of other methods of this origin, whatever their verb; what fits
    one of them more exactly is that method's, and this rule doesn't let it pass. `any_query`: other names may stand in
    the query, but those of credentials, and headers may say any preference and version. `written`: without it, the
    values that these have, by the header's bare name ("bankversion"); "apiversion" is for any of the versions. `read`:
    none of its requests changes anything; `answered`: its way back reads the answer, so nothing may be left out there,
    and `shown` is added to a list of what the answer is to have.
    """

    path: tuple[str | Slot, ...]
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    must: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    only: bool = False
    headers: tuple[str, ...] = ()
    others: tuple[tuple[str | Slot, ...], ...] = ()  # templates after `base_path`, as `path`
    body_format: Literal["json", "form", "any", "none"] = "any"
    calls: int = 100
    request_bytes: int = 100 * 2**20
    response_bytes: int = 4 * 2**30
    websocket: bool = False
    any_query: bool = field(default=False, metadata=NEWER)
    budget: str = field(default="", metadata=SPARSE)
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=SPARSE)
    read: bool = field(default=False, metadata=SPARSE)
    answered: bool = field(default=False, metadata=SPARSE)
    shown: tuple[str, ...] = field(default=(), metadata=SPARSE)

    @property
    def counted_as(self) -> str:
        """What its requests count for."""
        return self.budget or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """Where a file credential says that tokens are to be had: the gateway answers there itself, with the account's
    placeholder as the access token. Nothing is sent on."""

    account: tuple[str, str]
    origin: Origin
    path: tuple[str, ...]


def _token_endpoint(parts: tuple[tuple[str, str], tuple[str, str, int], tuple[str, ...]]) -> TokenEndpoint:
    account, origin, path = parts
    return TokenEndpoint(account=account, origin=Origin(*origin), path=path)


_Endpoint = Annotated[
    TokenEndpoint, tuple[tuple[str, str], tuple[str, str, int], tuple[str, ...]], astuple, _token_endpoint
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan:
    """Everything the gateway needs for one action, apart from the leases: either `requests`, or `rules` for code, with
    the placeholder that stands for each account. `code` says so where there is no rule either: all is refused then."""

    action_id: str
    requests: tuple[PlannedRequest, ...] = ()
    rules: tuple[MethodRule, ...] = ()
    placeholders: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    tokens: tuple[_Endpoint, ...] = ()
    max_request_bytes: int = 1_000_000
    max_response_bytes: int = 10_000_000
    seconds: float = 60.0
    code: bool = False

    @property
    def by_rules(self) -> bool:
        """Whether requests are judged by rules, one by one, instead of against a list."""
        return self.code or bool(self.rules or self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request that a rule let pass, as it leaves, without its credential. `body` is None where it isn't JSON or a
    form that was read whole; `size` counts its bytes as far as they are known (-1: not yet). `file`: a part of it is a
    file, which isn't in `body`. `keys`: by which the service knows it again, in its headers."""

    rule: str
    slots: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    body: JsonValue = None
    size: int = 0
    file: bool = False
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answered request, as the gateway saw it: redacted, parsed, before the container got it.

    `body` is None when the answer wasn't JSON (then `text` holds its beginning). `well` says whether the status
    was 2xx (or what an expectation on the status allows) and every expectation held; `failed` names the first that
    didn't, in words.
    """

    request: str
    status: int
    well: bool
    body: JsonValue
    text: str = ""
    failed: str = ""
    replayed: bool = False  # the service says that it answered so before, to a request with the same key
    size: int = 0  # bytes of the answer's body as it came, before anything was taken out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that the plan doesn't hold was tried. Goes to the log, and (as a 4xx) to the container.

    `kind` and `method_id` are known for code alone: what it is about, and which rule's method it would have been.
    Kinds: host, path, method, query, field, body, header and size (what was asked for); placeholder, credential and
    signed (whose it was); override, batch, graphql and upgrade (what it would have become); calls, busy, stopped, lease
    and daemon (not now); token, address, redirect, framing and head.
    """

    reason: str
    method: str
    target: str  # host and path as they came, escaped and shortened, without query
    kind: str = ""
    method_id: str = ""
