"""A request from its head to what leaves: the nouns between an action's rules and whoever sends. Pure.

A policy judges a request by its head, and, where it has something to say about the body, by its body. Its decisions
are values: `Admission`, `Local`, `Ready`, or `No`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from policies.accounts import Origin
from policies.display_text import escape, shorten
from policies.errors import GoexError
from policies.jsonvalue import JsonValue, canonical
from runtimes.gateway.head import Head, parse_head
from runtimes.gateway.plan import Rule, SentRequest, TokenEndpoint
from runtimes.gateway.response_values import Kind

BodyKind = Literal["", "json", "form", "multipart", "text", "other"]


@dataclass(frozen=True, slots=True)
class No:
    """Refused: why, and the HTTP status that says so. `kind` is a word for what it is about; of a program also
    `method_id`, the catalogued method that came closest, and `hint`, what to do."""

    reason: str
    status: int = 403
    kind: str = ""
    method_id: str = ""
    hint: str = ""


class Refused(GoexError):
    """A request isn't sent, or not any further. Carries the `No` out of a check."""

    code = "refused"

    def __init__(self, no: No) -> None:
        super().__init__(no.reason)
        self.no = no


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedHead:
    """A request's head as it came, on a connection to `origin`. `target` is in origin form, raw."""

    origin: Origin
    head: Head
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A request whose head passes. It is under way until `Policy.settle`.

    `headers` are those that are sent, apart from framing (Host, Content-Length, Transfer-Encoding, Accept-Encoding,
    Connection), which is the sender's, and from the credential, which `with_credential` adds. `inspect`: the body is
    read whole, at most `limit` bytes, and given to `Policy.read`; else `limit` bounds what is streamed. `body`: whether
    there is one at all. `judged`: the answer is read whole and judged by `Policy.judge` before any of it is given, also
    when the container goes away meanwhile.
    """

    id: str  # "rule-0#3", "call-0"
    ticket: int = 0  # by which it is under way
    rule: Rule
    asked: AskedHead
    target: str  # as it is sent, without a credential
    headers: tuple[tuple[str, str], ...] = ()
    inspect: bool = True
    body: bool = False
    limit: int  # bytes of the request's body
    answer_limit: int  # bytes of the answer's body
    judged: bool = False
    websocket: bool = False
    slots: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    kind: BodyKind = ""  # what its body says it is
    dropped: tuple[str, ...] = ()  # names of headers that were left out
    rivals: tuple[Admission, ...] = ()  # by further rules that the head fits, should the body not fit the first

    @property
    def line(self) -> str:
        """Method and URL without query, for the journal."""
        return f"{self.rule.method} {self.rule.origin}{self.target.partition('?')[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A request that is answered here: its body, at most `limit` bytes, goes to `Policy.answer`. It isn't under way,
    and nothing of it is sent."""

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
    sent: SentRequest | None = None
    body: bytes | None = None


class BodyWatch(Protocol):
    """Looks at a body that is streamed. What it refuses isn't sent, and the request is broken off."""

    def feed(self, data: bytes) -> None:
        """Look at the next piece, before it is sent. Raises Refused."""
        ...

    def finish(self) -> None:
        """The last piece was fed; the end of the message isn't sent yet. Raises Refused."""
        ...


class Policy:
    """The rules of one action, and how far it has come. Everything that a subclass doesn't allow is refused."""

    rules = "rule"  # what an action has to have for an origin, in words

    def parse(self, raw: bytes) -> Head:
        """The head of a request, checked as far as this doesn't depend on a rule. Raises BadHead."""
        return parse_head(raw)

    def knows(self, origin: Origin) -> bool:
        """Whether anything may be sent there."""
        return False

    def covers(self, url: str) -> bool:
        """Whether an answer may lead to that address."""
        return False

    def admit(self, asked: AskedHead) -> Admission | Local | No:
        """Judge a request by its head."""
        raise NotImplementedError

    def read(self, admission: Admission, body: bytes) -> Ready | No:
        """Judge the whole body of an admission that says `inspect`."""
        raise NotImplementedError

    def stream(self, admission: Admission, length: int) -> tuple[Ready, BodyWatch] | No:
        """An admission without `inspect`, and what looks at its body. `length` in bytes, -1: not known."""
        raise NotImplementedError

    def answer(self, local: Local, body: bytes) -> Answered:
        """What the code gets for a request that is answered here."""
        raise NotImplementedError

    def judge(self, admission: Admission, status: int, body: JsonValue, kind: Kind) -> str:
        """Take the (redacted) answer to a request that is `judged`. Returns what doesn't hold, "" when all is well."""
        return ""

    def settle(self, admission: Admission, failed: str) -> None:
        """The request is over, whatever came of it; `failed` says why it isn't well, "" when it is."""

    def stop(self, why: str) -> None:
        """Admit nothing more."""
        raise NotImplementedError


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
