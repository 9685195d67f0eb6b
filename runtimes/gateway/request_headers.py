"""What the head of code's request carries beside its target: headers, and a credential that isn't one. Pure.

Headers are an allow-list, written anew in an order of ours. What could give the request another method, host or
credential is refused; what else isn't on the list is left out. A placeholder counts in one place alone: the one that
the rule's service wants its credential in. A request that is signed with the secret can't be helped by swapping
anything, so it is refused with that as its reason.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterable, Mapping

from runtimes.gateway.admission import No, Refused
from runtimes.gateway.head import CREDENTIALS, OVERRIDES, Head
from runtimes.gateway.plan import MethodRule

Account = tuple[str, str]
Pairs = tuple[tuple[str, str], ...]

# In the order in which they are sent. Of these a list may stand in several lines.
_LISTS = ("accept", "accept-language", "prefer", "if-match", "if-none-match")
_PASSED = (
    "accept", "accept-language", "user-agent", "content-type", "content-language", "content-disposition",
    "content-range", "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    "prefer", "idempotency-key", "x-idempotency-key", "x-github-media-type", "x-goog-fieldmask", "x-goog-if-match",
    "x-upload-content-type", "x-upload-content-length", "anthropic-beta", "openai-beta", "consistencylevel",
)  # fmt: skip
_KINDS = re.compile(r"[a-z0-9\-]{1,60}-version|x-goog-upload-[a-z\-]{1,40}")
_WEBSOCKET = ("sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")
_METHOD = re.compile(r"x-.*method|.*-method-override|_method")
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
OVERRIDE_NAMES = frozenset({"_method", "$method", "$httpmethod", "$.xgafv", "x-http-method-override", "x-http-method"})

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


def overrides(name: str) -> bool:
    return name.strip().lower().partition("[")[0] in OVERRIDE_NAMES


def carries_credential(name: str, *more: str) -> bool:
    """Whether a query's parameter or a body's field by that name is a credential, wherever the service looks first."""
    plain = re.sub(r"[\s_\-.]", "", name.partition("[")[0].casefold())
    return plain in _CREDENTIAL_NAMES or plain in more


def headers_of(head: Head, rule: MethodRule, *, body: bool, websocket: bool) -> tuple[Pairs, tuple[str, ...]]:
    """The headers that are sent, and the names of those that were left out. Raises Refused."""
    own = rule.credential_name.lower() if rule.credential_at == "header" else ""
    more = tuple(sorted(name.lower() for name in rule.headers))
    found: dict[str, list[str]] = {}
    dropped: list[str] = []
    for name, value in head.headers:
        if name == own:
            continue
        listed = name in _PASSED or name in more
        if not listed and (name in CREDENTIALS or _SECRET_WORDS.search(name)):
            raise refuse("credential", f"a credential that isn't the vault's, in the header {name}")
        if not (listed or _KINDS.fullmatch(name) or (websocket and name in _WEBSOCKET)):
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
