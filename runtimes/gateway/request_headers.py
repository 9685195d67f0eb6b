"""What the head of code's request carries beside its target: headers, and a credential that isn't one. Pure.

Headers are an allow-list, written anew in an order of ours. What could give the request another method, host or
credential is refused; what else isn't on the list is left out. A placeholder counts in one place alone: the one that
the rule's service wants its credential in. A request that is signed with the secret can't be helped by swapping
anything, so it is refused with that as its reason.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Container, Iterable, Mapping

from policies.services import outer_name, overrides
from runtimes.gateway.admission import No, Refused
from runtimes.gateway.head import CREDENTIALS, OVERRIDES, Head
from runtimes.gateway.plan import MethodRule
from runtimes.idempotency import action_key, is_key

Account = tuple[str, str]
Pairs = tuple[tuple[str, str], ...]

# In the order in which they are sent. Of these a list may stand in several lines.
_LISTS = ("accept", "accept-language", "prefer", "if-match", "if-none-match")
# Lists of what a request asks for beside what it says: each of them may change what is done.
ASKING = ("Prefer", "Anthropic-Beta", "OpenAI-Beta")
ASKING_NAMES = frozenset(name.lower() for name in ASKING)
# By these a service knows that a request was sent before, and answers with what is there already. An id of a request
# is one where a document has it; else it may be, unless it is of those that only ever name a request in a log.
KEYS = ("idempotency-key", "x-idempotency-key")
_REQUEST_ID = re.compile(r"(.*-)?request-?id")
_VENDORS_ID = re.compile(r"(?!(x|ms|amz|amzn|cf|client|fly|function|rndr)-)[a-z][a-z0-9\-]{0,40}-request-id")
_PASSED = (
    "accept", "accept-language", "user-agent", "content-type", "content-language", "content-disposition",
    "content-range", "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    "prefer", *KEYS, "x-github-media-type", "x-goog-fieldmask", "x-goog-if-match",
    "x-upload-content-type", "x-upload-content-length", "anthropic-beta", "openai-beta", "consistencylevel",
)  # fmt: skip
_KINDS = re.compile(r"[a-z0-9\-]{1,60}-version|revision|x-goog-upload-[a-z\-]{1,40}")
# What libraries and browsers say about themselves, or for those on the way: without it a request means the same.
_NOISE = re.compile(
    r"sec-.*|dnt|origin|referer|date|via|cache-control|pragma|accept-charset|priority|save-data|max-forwards|http2-settings"
    r"|upgrade-insecure-requests|x-requested-with|baggage|sentry-trace|b3|x-b3-.*|x-datadog-.*|newrelic|elastic-apm-.*"
    r"|uber-trace-id|uberctx-.*|jaeger-.*|ot-tracer-.*|x-ot-span-context|x-(newrelic|instana|dynatrace)(-.*)?"
    r"|x-honeycomb-trace|x-cloud-trace-context|x-amzn-(trace-id|requestid)|x-span-id|x-ms-correlation-id|request-context"
    r"|amz-sdk-.*|x-ms-return-client-request-id|(content-)?digest|content-transfer-encoding|from|http-referer|x-title"
    r"|x-forwarded-.*|x-real-ip|x-client-data|purpose|x-allowed-locations|x-identity-trust-boundary|access-control-.*"
    r"|anthropic-dangerous-direct-browser-access|x-discord-locale|x-super-properties|x-attempt|x-retry(-.*)?"
    r"|paypal-partner-attribution-id|x-shopify-api-features|apollo-require-preflight"
    r"|content-md5|x-stainless-.*|x-goog-(api-client|request-params|request-reason|quota-user)|sdkversion|odata-maxversion"
    r"|(.*-)?(user-agent|telemetry|client-(info|name|sku|ver|os|cpu|metadata)|sdk(-(name|info|lang|language|variant))?)"
    r"|(.*-)?request-id|(x-)?retry-(count|attempt)|x-ms-client-(request|session|transaction)-id|x-ratelimit-precision"
    r"|(x-)?[a-z]+-client(-lib(rary)?)?|x-fern-.*|x-box-ua|x-algolia-agent|x-airtable-application-id|x-server-timeout"
)
# What looks like a credential, and with these values is none: a check of a browser's form that isn't asked for.
_HARMLESS = {"x-atlassian-token": ("no-check", "nocheck")}
LOGGED = "x-audit-log-reason"  # a text that people read in a log, and no more: it is told, as any header
# What Supabase's clients always say, which is what is done anyway.
_USUAL = {"content-profile": "public", "accept-profile": "public", "x-upsert": "false"}
# Media types that say what an answer is written as; those of a vendor may say a version. GitHub has one of those.
_GITHUBS_JSON = re.compile(r"application/vnd\.github(\.v3)?\+json")
_FORMATS = re.compile(
    r"\*|(\*|[a-z]+)/(\*|(?!vnd\.|prs\.|x\.)[a-z0-9][a-z0-9.+\-]*)"
    r"|application/vnd\.github(\.v3)?(\.[a-z\-]+)?(\+json)?"
    r"|application/vnd\.(openxmlformats-officedocument|oasis\.opendocument|google-apps|ms-excel|ms-powerpoint)[a-z.\-]*"
)
_OF_A_FORMAT = re.compile(
    r"|(q|charset|level|indent|odata|odata\.(metadata|streaming))=[\w.\-\"]{1,20}|ieee754compatible=(true|false)|v=b3"
    r"|(boundary|profile)=[\w.\-\"/:#]{1,120}"
)
# Media types of an answer that is JSON as usual: what a way back reads stands there.
_AS_USUAL = re.compile(
    r"(\*|\*/\*|application/\*|application/json|application/vnd\.github(\.[a-z0-9\-]+)*\+json)"
    r"(;(q=1(\.0{1,3})?|(charset|indent)=[\w.\-\"]{1,20}|odata\.metadata=(minimal|full)|odata\.streaming=(true|false)"
    r"|ieee754compatible=(true|false)))*"
)
# By these an answer may lack what it would have without them.
_LEFT_OUT = re.compile(r"return\s*=\s*\"?(minimal|headers-only)", re.IGNORECASE)
LEAVING_OUT = ("fields", "$fields", "$select")
_LISTING = re.compile(r"[$_]?fields|\w{1,40}_fields|\$?select", re.IGNORECASE)  # a query's list of what to show
_SHAPING = re.compile(r"\$?format|(response|output)_?format|output|_?envelope|callback|exclude\w{0,40}", re.IGNORECASE)
_UNSHAPED = re.compile(r".*(format|output)=(application/)?json|(_?envelope|exclude.*)=(false|0)", re.IGNORECASE)
FIELD_MASK = "x-goog-fieldmask"
ADDED_TO = re.compile(r"[\w.\-/]+( ?, ?[\w.\-/]+)*")  # a list of fields that others can be added to
_VERSION = re.compile(r"[a-z0-9\-]{1,60}-version|revision")
# Of a client's own parts, which a service counts at most.
_CLIENT_VERSION = re.compile(
    r"mime-version|x-stainless-.*|(.*-)?(client|sdk|package|runtime|library|lib|app|agent|os|device|lang)-version"
)
# What libraries send by themselves: the versions that they were made for. Stripe's and Google's are
# named with each of their releases.
LIBRARY_VERSIONS = {
    "anthropic-version": re.compile(r"2023-06-01|2026-10-21"),
    "notion-version": re.compile(r"2022-06-28|2025-09-03"),
    "stripe-version": re.compile(r"\d{4}-\d\d-\d\d\.[a-z]{3,20}"),
    "x-goog-api-version": re.compile(r"\d{4}-\d\d-\d\d(-preview)?"),
    "x-github-api-version": re.compile(r"2022-11-28|2026-03-10"),
}
# Preferences (RFC 7240, OData, PostgREST) that say how the answer is written, or how much is done at most.
_OF_THE_ANSWER = re.compile(
    r"return=(minimal|representation|headers-only)|count=(exact|planned|estimated)|wait(=\d{1,4})?|idtype=\"immutableid\""
    r"|odata\.maxpagesize=\d{1,6}|odata\.include-annotations=\"?[\w.*@#\-]{1,80}\"?|outlook\.timezone=\"[^\";=]{1,80}\""
    r"|outlook\.body-content-type=\"(text|html)\"|handling=strict|max-affected=\d{1,9}"
)
# As each service's own library asks, unasked, for the resources that it has a class for.
_OF_THE_LIBRARY = {
    "openai-beta": re.compile(r"agents=v1|assistants=v2|chatkit_beta=v1|realtime=v1"),
    "anthropic-beta": re.compile(
        r"admin-user-sign-out-2026-10-08|agent-memory-2026-07-22|analytics-usage-cost-2026-08-24"
        r"|ce-claude-code-managed-settings-2026-10-06|ce-plugins-2026-09-01|dreaming-2026-04-21|efs-2026-10-01"
        r"|experimental-claude-tag-2026-10-21|files-api-2025-04-14|google-managed-data-controls-2026-09-01"
        r"|managed-agents-2026-04-01|mcp-tunnels-2026-06-22|message-batches-2024-09-24|message-threads-2026-08-12"
        r"|skills-2025-10-02|spend-limit-reads-2026-09-26|structured-outputs-2025-11-13"
        r"|telemetry-destinations-2026-08-11|token-counting-2024-11-01|user-profiles-2026-0(8-18|9-04)"
        r"|webhooks-2026-10-07"
    ),
}
# What names a request in a log.
_TRACES = re.compile(r"(x-)?((client-)?request|correlation|trace)-?id|traceparent|tracestate")
# Several annotations are within one preference, however a service splits it.
_ANNOTATION = r"[\w@#\-]{0,80}[.*][\w.*@#\-]{0,80}"
_ANNOTATIONS = re.compile(rf'odata\.include-annotations="{_ANNOTATION}(?:, ?{_ANNOTATION})*"', re.IGNORECASE)
_WEBSOCKET = ("sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")
_METHOD = re.compile(r"x-.*method|.*-method-override|_method")
# By which a server on the way may take the request for one to another place.
_LEADS = re.compile(
    r"(x-)?(original|rewrit[a-z]*|forwarded|override|proxy|envoy|route|target)(-.*)?|.*-(url|uri|path|host|route|prefix)"
)
_SECRET_WORDS = re.compile(
    r"auth(?!or(?!i[sz]))|token|secret|api-?_?key|cookie|passw|credential|bearer|access-?key|jwt|-sid\Z"
)
_SIGNED_HEADER = re.compile(
    r"x-amz-.*|dpop|(.*-)?(signature|hmac)(-[a-z0-9]+)?|x-(ca|acs|tc|oss|cos|bce)-.*|x-ms-authorization.*"
)
_SIGNED_SCHEME = re.compile(
    r"aws\d?(-.*)?|.*hmac.*|.*sha(1|256|512).*|signature|digest|hawk|mac|sharedkey(lite)?|sharedaccesssignature"
    r"|dpop|acs|oss|vapid|ntlm|negotiate|kerberos|scram-.*|gss.*"
)
_SIGNED_VALUE = re.compile(r"oauth_signature|\bsignature=|\bmac=", re.IGNORECASE)
_SIGNED_QUERY = re.compile(
    r"x-(amz|goog|oss|cos|bce)-.*|oauth_(signature|consumer_key|nonce).*|awsaccesskeyid|googleaccessid|ossaccesskeyid"
)
_SIGNED_MAYBE = frozenset({"signature", "sig", "hmac", "sign"})
_CREDENTIAL_NAMES = frozenset(
    {
        "accesstoken", "oauthtoken", "authtoken", "idtoken", "bearertoken", "apitoken", "apikey", "clientsecret",
        "authorization", "jwt", "sessionid",
    }
)  # fmt: skip

MAX_VALUE = 2048
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9\-]{0,30}")
_PROTOCOLS = re.compile(r"[A-Za-z0-9._\-]{1,60}(, ?[A-Za-z0-9._\-]{1,60}){0,7}")

SIGNED = "is signed with the secret, which isn't here"


def refuse(kind: str, reason: str, *, hint: str = "", status: int = 403) -> Refused:
    return Refused(No(reason, status, kind, hint=hint))


def check_signed(head: Head, pairs: Pairs, known: Container[str]) -> None:
    """Raise Refused for a request whose sender means to prove that it has the secret, instead of sending it."""
    hint = "Use a client that sends the token itself."
    for name, value in head.headers:
        scheme, _, rest = value.strip().partition(" ")
        signs = name == "authorization" and (_SIGNED_SCHEME.fullmatch(scheme.lower()) or _SIGNED_VALUE.search(rest))
        if signs or _SIGNED_HEADER.fullmatch(name):
            raise refuse("signed", f"this request {SIGNED} (header {name})", hint=hint)
    for name, _ in pairs:
        lowered = name.lower()
        if _SIGNED_QUERY.fullmatch(lowered) or (lowered in _SIGNED_MAYBE and name not in known):
            raise refuse("signed", f"this request {SIGNED} (parameter {name})", hint=hint)


def check_overrides(head: Head, names: Iterable[str]) -> None:
    """Raise Refused for what would give the request another method, host or path. `names`: of query or body."""
    for name, _ in head.headers:
        if name in OVERRIDES or _METHOD.fullmatch(name):
            raise refuse("override", f"the header {name} would change what the request means", hint="Leave it out.")
    for name in names:
        if overrides(name):
            raise refuse("override", f"the parameter {name} would change what the request means", hint="Leave it out.")


def carries_credential(name: str, *more: str) -> bool:
    """Whether a query's parameter or a body's field by that name is a credential, wherever the service looks first.
    `more`: names that are one here, too."""
    plain = _bare_field(name)
    return plain in _CREDENTIAL_NAMES or plain in map(_bare_field, more)


def _bare_field(name: str) -> str:
    return re.sub(r"[\s_\-.]", "", outer_name(name).casefold())


def has_meaning(name: str) -> bool:
    """Whether a header by that name says what a request means: its value has to be told (`MethodRule.written`)."""
    return name.lower() in ASKING_NAMES or bool(_VERSION.fullmatch(name.lower()))


def may_change(name: str) -> bool:
    """Whether a header by that name may change what a request does."""
    lowered = name.lower()
    return has_meaning(lowered) or not (
        lowered in (*_PASSED, LOGGED) or _TRACES.fullmatch(lowered) or _names_again(lowered)
    )


def is_own_key(name: str, rule: MethodRule) -> bool:
    """Whether a header is sent with a key that is GoEx's own, whatever the program says."""
    lowered = name.lower()
    if rule.any_query:
        return False
    declared = any(lowered == one.lower() for one in rule.headers)
    return lowered in KEYS or (_names_again(lowered) if declared else _is_vendors_key(lowered, rule))


def _names_again(name: str) -> bool:
    """Whether a header that a document has may be one by which the service knows a request again."""
    return name in KEYS or is_key(name.removeprefix("x-")) or _REQUEST_ID.fullmatch(name) is not None


def _is_vendors_key(name: str, rule: MethodRule) -> bool:
    return not rule.read and _VENDORS_ID.fullmatch(name) is not None


def asked_for(name: str, value: str) -> tuple[str, ...]:
    """What a header of ASKING asks for beyond how the answer is written, and what a library always asks for."""
    if name.lower() == "prefer":
        return _beyond(_ANNOTATIONS.sub(",", value), _OF_THE_ANSWER)
    known = _OF_THE_LIBRARY.get(name.lower())
    return _beyond(value, known) if known is not None else ()


def _beyond(value: str, known: re.Pattern[str]) -> tuple[str, ...]:
    parts = (part.strip() for part in value.split(","))
    return tuple(part for part in parts if part and not known.fullmatch(part.lower()))


def leaves_out(name: str, value: str) -> bool:
    """Whether a header may have something left out of the answer."""
    return name.lower() == FIELD_MASK or (name.lower() == "prefer" and _LEFT_OUT.search(value) is not None)


def lists_fields(name: str) -> bool:
    """Whether a query's parameter by that name (`fields[articles]`, too) lists what the answer is to have."""
    return _LISTING.fullmatch(outer_name(name).strip()) is not None


def shapes_answer(name: str, value: str | None = None) -> bool:
    """Whether a query's parameter may leave something out of the answer, or have it written as what isn't JSON; without
    a value: whether any value of it may."""
    if lists_fields(name):
        return True
    name = outer_name(name).strip()
    return _SHAPING.fullmatch(name) is not None and (value is None or not _UNSHAPED.fullmatch(f"{name}={value}"))


def as_usual(accept: str, own: Container[str] = ()) -> str:
    """The header Accept with those of its media types alone that are JSON as usual, or the service's `own`; "" where
    there is none."""
    return ", ".join(media for media in media_of(accept) if media in own or _AS_USUAL.fullmatch(media))


def with_shown(query: Pairs, rule: MethodRule) -> Pairs:
    """The query, whose lists of what the answer is to have also say what the rule's way back reads there."""
    if not rule.shown:
        return query
    return tuple(
        (name, ",".join(dict.fromkeys([*re.split(" ?, ?", value), *rule.shown])))
        if name in LEAVING_OUT and ADDED_TO.fullmatch(value)
        else (name, value)
        for name, value in query
    )


def media_of(value: str) -> tuple[str, ...]:
    """The media types that a header names, each with its parameters."""
    parts = (";".join(one.strip() for one in part.lower().split(";")) for part in value.split(","))
    return tuple(part for part in parts if part)


def other_meaning(name: str, media: str) -> bool:
    """Whether a media type (as `media_of` has it), for a body of JSON or for an answer, may say more than a format."""
    plain, *more = media.split(";")
    if name.lower() == "content-type":
        return plain.endswith("+json") and not _GITHUBS_JSON.fullmatch(plain)
    return not (_FORMATS.fullmatch(plain) and all(_OF_A_FORMAT.fullmatch(one) for one in more))


def is_own_version(name: str, version: str) -> bool:
    """Whether it is a version that a library says by itself in that header, or one of a client's own."""
    lowered = name.lower().replace("_", "-")
    known = LIBRARY_VERSIONS.get(lowered)
    return bool((known and known.fullmatch(version)) or _CLIENT_VERSION.fullmatch(lowered))


def is_told_alone(name: str) -> bool:
    """Whether a header that no document has may pass where the program has it written out, so that it was told."""
    lowered = name.lower()
    return "_" not in lowered and not (
        lowered in _PASSED
        or lowered in CREDENTIALS | OVERRIDES
        or any(one.fullmatch(lowered) for one in (_KINDS, _METHOD, _LEADS, _SIGNED_HEADER, _VENDORS_ID))
        or _SECRET_WORDS.search(lowered)
        or _says_nothing(lowered)
    )


def _says_nothing(name: str) -> bool:
    return name in _FRAMING or any(one.fullmatch(name) for one in (_NOISE, _TRACES))


def bare_name(name: str) -> str:
    """A header's name as programs may spell it: `apiVersion`, `api_version` and `Api-Version` are one."""
    return re.sub(r"[_\-]", "", name.lower())


def headers_of(
    head: Head, rule: MethodRule, *, body: bool, websocket: bool, action: str = ""
) -> tuple[Pairs, tuple[str, ...]]:
    """The headers that are sent, and the names of those that were left out. Raises Refused.

    Keys by which a service knows a request again are another for each `action`, method and target (and body:
    `for_body`): what another request made is never taken for what this one did.
    """
    own = rule.credential_name.lower() if rule.credential_at == "header" else ""
    more = tuple(sorted(name.lower() for name in rule.headers))
    found: dict[str, list[str]] = {}
    dropped: list[str] = []
    for name, value in head.headers:
        if name == own:
            continue
        listed = name in _PASSED or name in more or (not rule.any_query and _is_vendors_key(name, rule))
        listed = listed or value.lower() in _HARMLESS.get(name, ())
        if not listed and (name in CREDENTIALS or _SECRET_WORDS.search(name)):
            raise refuse("credential", f"a credential that isn't the vault's, in the header {name}")
        if not rule.any_query:
            _check_meaning(name, value, rule, declared=name in more)
            if name == "accept" and rule.answered:  # another answer would be none that a way back can be read in
                usual = as_usual(value, rule.written.get(name, ()))
                dropped += [] if usual or name in dropped else [name]
                value = usual or "application/json"
            if is_own_key(name, rule):
                whose = ("program", *rule.account, str(rule.origin))
                turn = "\0".join((*whose, head.method, head.target, name, value))
                value = action_key(action, 0, turn)
        if name not in more and not rule.any_query:
            if name in ASKING_NAMES:
                _check_asked(name, value, rule.written.get(bare_name(name), ()))
            elif _VERSION.fullmatch(name) and name not in _WEBSOCKET and not _is_told(name, value, rule):
                dropped += [] if name in dropped else [name]
                continue
        if not (listed or _KINDS.fullmatch(name) or (websocket and name in _WEBSOCKET)):
            if not rule.read and is_told_alone(name) and value in rule.written.get(bare_name(name), ()):
                found.setdefault(name, []).append(value)
                continue
            if not (rule.read or rule.any_query or _USUAL.get(name) == value or _says_nothing(name)):
                raise refuse(
                    "header",
                    f"the header {name} isn't one of {rule.method_id}, so a request that changes something would be "
                    "sent without it",
                    hint="Leave it out, if the request means the same without it, or write it out with its value in "
                    f'the program: "{_spelled(name)}": "…".',
                )
            dropped += [] if name in _FRAMING or name in dropped else [name]
        elif name != "content-type" or body:
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        if len(values) > 1 and name not in _LISTS:
            raise refuse("header", f"two {name} headers")
        if any(len(value) > MAX_VALUE for value in values):
            raise refuse("header", f"the header {name} is too long")
    if websocket:
        _check_websocket(found)
    order = {name: place for place, name in enumerate((*_PASSED, *_WEBSOCKET))}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return tuple((_spelled(name), ", ".join(found[name])) for name in names), tuple(dropped)


def for_body(headers: Pairs, rule: MethodRule, action: str, body: bytes) -> Pairs:
    """The headers of a request, its keys as those of one with that body."""
    turn = f"body\0{hashlib.sha256(body).hexdigest()}"
    return tuple(
        (name, action_key(action, 0, f"{turn}\0{value}") if is_own_key(name, rule) else value)
        for name, value in headers
    )


def _check_meaning(name: str, value: str, rule: MethodRule, *, declared: bool) -> None:
    """Raise Refused for a header by which the rule's request, or its answer, would be another than what is meant."""
    if rule.answered and leaves_out(name, value):
        raise refuse(
            "header",
            f"the header {name} may leave out of the answer what its way back reads there",
            hint="Leave it out.",
        )
    if name == "content-range" and rule.body_format != "any" and not declared:
        raise refuse("header", "a part of a body, where all of it is meant")
    if rule.read or name not in ("accept", "content-type"):
        return
    written = rule.written.get(bare_name(name), ())
    for media in media_of(value):
        plain = media.partition(";")[0]
        if other_meaning(name, media) and (media if name == "accept" else plain) not in written:
            raise refuse(
                "header",
                f"the header {name} would have {media[:60]} read as it wasn't told",
                hint=f'Write it out in the program: "{_spelled(name)}": "{media[:60]}".',
            )


def _check_asked(name: str, value: str, written: Container[str]) -> None:
    """Raise Refused for what would change what is done (an insert that overwrites, one that is rolled back), unless the
    program has it written out, so that it was told."""
    for one in asked_for(name, value):
        if one not in written:
            raise refuse(
                "header",
                f"the header {name} would change what the request does by {one[:60]}, which wasn't told",
                hint=f'Write it out in the program: "{_spelled(name)}": "{one[:60]}".',
            )


def _is_told(name: str, value: str, rule: MethodRule) -> bool:
    """Whether a version of an API is one that the program has written out as this header's or as its client's, or that
    the service or a library says by itself. Raises Refused for any other; False for what is a client's own version."""
    known = LIBRARY_VERSIONS.get(name)
    bare = bare_name(name)
    names = {bare, bare.removeprefix("x")}
    keys = {*names, *(f"{one.removesuffix('version')}apiversion" for one in names), "apiversion"}
    written = {one for key in keys for one in rule.written.get(key, ())}
    version, *previews = (part.strip() for part in value.split(";"))
    told = version in written or (known is not None and known.fullmatch(version) is not None)
    if value in written or (told and all(preview in written for preview in previews)):
        return True
    if _CLIENT_VERSION.fullmatch(name):
        return False
    raise refuse(
        "header",
        f"the header {name} would have the service read the request as of another version, which wasn't told",
        hint=f'Write it out in the program: "{_spelled(name)}": "{value[:60]}".',
    )


# Of the way to us, or said anew by whoever sends it on.
_FRAMING = frozenset(
    {
        "host", "content-length", "transfer-encoding", "accept-encoding", "connection", "keep-alive", "te", "trailer",
        "proxy-connection", "upgrade", "expect", "sec-websocket-extensions", "content-encoding",
    }
)  # fmt: skip


def placeholder_in(value: str, rule: MethodRule, placeholders: Mapping[str, Account]) -> str | None:
    """The placeholder that `value` is: bare, after a scheme, or as user or password of `Basic`. None: it isn't one."""
    value = value.strip()
    for placeholder in placeholders:
        if value in (placeholder, rule.credential_format.replace("{secret}", placeholder)):
            return placeholder
    scheme, _, rest = value.partition(" ")
    rest = rest.strip()
    if not _BARE.fullmatch(scheme):
        return None
    if scheme.lower() != "basic":
        return rest if rest in placeholders else None
    try:
        pair = base64.b64decode(rest, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    parts = [part for part in (pair, *pair.split(":", 1)) if part in placeholders]
    return parts[0] if len(set(parts)) == 1 else None


def token_variable(account: Account) -> str:
    """The variable that a program finds its placeholder in, for a hint."""
    return "GOEX_TOKEN_" + re.sub(r"[^A-Za-z0-9]", "_", account[0]).upper()


def _check_websocket(found: Mapping[str, list[str]]) -> None:
    key = "".join(found.get("sec-websocket-key", []))
    if not re.fullmatch(r"[A-Za-z0-9+/]{22}==", key) or found.get("sec-websocket-version") != ["13"]:
        raise refuse("upgrade", "this isn't the opening of a WebSocket")
    protocols = "".join(found.get("sec-websocket-protocol", []))
    if protocols and (not _PROTOCOLS.fullmatch(protocols) or _SECRET_WORDS.search(protocols.lower())):
        raise refuse("credential", "a credential that isn't the vault's, in the header sec-websocket-protocol")


def _spelled(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))
