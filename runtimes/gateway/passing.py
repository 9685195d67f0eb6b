"""What code may send: its requests against the rules of its action. Pure, no I/O.

A request is judged twice: by its head, before anything of its body is read (`admit`), and by its body, where a rule
has something to say about that (`read`). What a rule doesn't name is refused: another host, method, path, query name,
a value that it doesn't list. The code's placeholder chooses the account, and is looked for in the one place where the
service wants its credential; anywhere else it is refused. Several requests may be under way at once.

What is sent is written anew from what was decoded (path, query, headers in our order, an inspected body), so that no
server reads it in another way than it was judged. Decisions are values: `Admission`, `Local`, or `No`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies.accounts import Origin
from runtimes.gateway.head import Head
from runtimes.gateway.plan import GatewayPlan, Passed, Rule, TokenEndpoint
from runtimes.gateway.policy import No
from vault.lease import Lease

MAX_UNDER_WAY = 64
MAX_INSPECTED = 16 * 2**20


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
    rule: Rule
    target: str  # as it is sent, without a credential
    headers: tuple[tuple[str, str], ...]
    inspect: bool
    body: bool
    limit: int  # bytes of the request's body
    websocket: bool = False
    slots: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    kind: str = ""  # of its body: "json", "form", "multipart", "other", ""
    rivals: tuple[Rule, ...] = ()  # further rules that the head fits, should the body not fit the first

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


class Watch:
    """Looks at a body that is streamed, across the borders of its pieces."""

    def feed(self, data: bytes) -> No | None:
        """Look at the next piece, before it is sent. `No`: it isn't sent, and the request is broken off."""
        raise NotImplementedError


class RulePolicy:
    """The rules of one action, and how often each was used."""

    def __init__(self, plan: GatewayPlan) -> None:
        self._plan = plan

    def knows(self, origin: Origin) -> bool:
        """Whether any rule or token endpoint is there."""
        return any(one.origin == origin for one in (*self._plan.rules, *self._plan.tokens))

    def admit(self, asked: AskedHead) -> Admission | Local | No:
        """Judge a request by its head. An `Admission` is under way until `settle`."""
        raise NotImplementedError

    def read(self, admission: Admission, body: bytes) -> Ready | No:
        """Judge the whole body of an admission that says `inspect`. After a `No`, settle with status 0."""
        raise NotImplementedError

    def ready(self, admission: Admission, length: int) -> Ready:
        """An admission without `inspect`, whose body (if any) is streamed; `length` in bytes, -1: not known."""
        raise NotImplementedError

    def watch(self, admission: Admission) -> Watch:
        raise NotImplementedError

    def answer(self, local: Local, body: bytes) -> Answered:
        """What the code gets from a token endpoint."""
        raise NotImplementedError

    def settle(self, admission: Admission, status: int) -> None:
        """The request is over, whatever came of it (0: no answer). Once for each admission."""
        raise NotImplementedError

    def stop(self, why: str) -> None:
        """Admit nothing more."""
        raise NotImplementedError


def dress(ready: Ready, lease: Lease) -> Dressed:
    """The request with the credential in its one place. Raises InvalidInput where it can't be written there."""
    raise NotImplementedError


def refusal_body(no: No, method: str, where: str) -> bytes:
    """What the code gets of a refusal: JSON that names what was refused and what to do, in the shapes SDKs read."""
    raise NotImplementedError
