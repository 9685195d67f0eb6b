"""A request of code, from its head to what leaves: the nouns between the rules and whoever sends. Pure.

Nothing here holds a secret but `Dressed`, which is made last and kept nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from policies.accounts import Origin
from policies.display_text import escape, shorten
from policies.jsonvalue import JsonValue, canonical
from runtimes.gateway.bodies import Kind
from runtimes.gateway.head import Head
from runtimes.gateway.plan import Passed, Rule, TokenEndpoint
from runtimes.gateway.plan_check import credential_text
from runtimes.gateway.policy import No
from runtimes.gateway.urls import encode_query
from vault.lease import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedHead:
    """A request's head as it came, on a connection to `origin`. `target` is in origin form, raw."""

    origin: Origin
    head: Head
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A request whose head passes. It is under way until `RulePolicy.settle`.

    `headers` are those of the code that are sent, apart from framing (Host, Content-Length, Transfer-Encoding,
    Accept-Encoding, Connection), which is the sender's, and from the credential, which `dress` adds. `inspect`: the
    body is read whole, at most `limit` bytes, and given to `RulePolicy.read`; else `limit` bounds what is streamed,
    and each piece goes by `RulePolicy.watch` first. `body`: whether there is one at all.
    """

    id: str  # "rule-0#3"
    ticket: int = 0  # by which it is under way
    rule: Rule
    target: str  # as it is sent, without a credential
    headers: tuple[tuple[str, str], ...]
    inspect: bool
    body: bool
    limit: int  # bytes of the request's body
    websocket: bool = False
    slots: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    kind: Kind = ""  # what its body says it is
    dropped: tuple[str, ...] = ()  # names of headers that were left out
    rivals: tuple[Admission, ...] = ()  # by further rules that the head fits, should the body not fit the first

    @property
    def account(self) -> tuple[str, str]:
        return self.rule.account

    @property
    def origin(self) -> Origin:
        return self.rule.origin

    @property
    def line(self) -> str:
        """Method and URL without query, for the journal."""
        return f"{self.rule.method} {self.rule.origin}{self.target.partition('?')[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A request that is answered here: its body, at most `limit` bytes, goes to `RulePolicy.answer`. It isn't under
    way, and nothing of it is sent."""

    endpoint: TokenEndpoint
    placeholder: str
    form: bool
    limit: int = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the code gets for a `Local`."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A request that may be sent: by which rule (an inspected body may have chosen another than the head had), what is
    told of it, and its body as it is sent (None: it is streamed as it comes, or there is none)."""

    admission: Admission
    passed: Passed
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dressed:
    """A request with its credential: never shown, never kept."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def dress(ready: Ready, lease: Lease) -> Dressed:
    """The request with the credential in its one place. Raises InvalidInput where it can't be written there."""
    rule, admission = ready.admission.rule, ready.admission
    secret = credential_text(rule.credential_format, lease)
    target, headers, body = admission.target, admission.headers, ready.body
    if rule.credential_at == "header":
        headers = (*headers, (rule.credential_name, secret))
    elif rule.credential_at == "query":
        target += ("&" if "?" in target else "?") + encode_query([(rule.credential_name, secret)])
    elif admission.kind == "form":
        pair = encode_query([(rule.credential_name, secret)]).encode("ascii")
        body = pair if not body else body + b"&" + pair
    else:
        value = {**json.loads(body or b"{}"), rule.credential_name: secret}
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return Dressed(target=target, headers=headers, body=body)


def refusal_body(no: No, method: str, where: str) -> bytes:
    """What the code gets of a refusal: JSON that names what was refused, why, and what to do about it.

    `error.message`, `message` and `ok` are where the common SDKs look for an error's words.
    """
    refused = shorten(escape(f"{method} {where}".strip()), 500)[0]
    reason = shorten(escape(no.reason), 500)[0]
    words = f"GoEx refused {refused}: {reason}." + (f" {escape(no.hint)}" if no.hint else "")
    error: dict[str, JsonValue] = {
        "type": "goex-refused",
        "code": no.status,
        "message": words,
        "reason": reason,
        "refused": refused,
        "kind": no.kind,
    }
    if no.method_id:
        error["method"] = no.method_id
    if no.hint:
        error["next_step"] = no.hint
    return canonical({"ok": False, "error": error, "message": words})
