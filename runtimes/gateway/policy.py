"""What may be sent: a request from the container against the plan. Pure, no I/O.

Requests go strictly in the plan's order, each once (a read up to its `attempts`), each only after the ones before it
were answered well. A request must *be* the planned one: origin, method, decoded path, decoded query, body. What is
sent is then composed from the plan and from answers that the gateway saw itself, never from the container's bytes.
Decisions are values: `Composed` or `No`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse
from runtimes.gateway.head import Head
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from runtimes.gateway.response_values import Answers, Kind, NoValue, judge
from runtimes.gateway.urls import BadTarget, decode_path, decode_query, encode_path, encode_query, split_target

_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A whole request as it came, on a connection to `origin`. `target` is in origin form, raw."""

    origin: Origin
    head: Head
    target: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What will be sent for `planned`, apart from the credential."""

    planned: PlannedRequest
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def line(self) -> str:
        """Method and URL without query, for the journal."""
        return f"{self.planned.method} {self.planned.origin}{self.target.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class No:
    """Refused: why, and the HTTP status that says so. Of code also `kind`, a word for what it is about, `method_id`,
    the catalogued method that came closest, and `hint`, what to do."""

    reason: str
    status: int = 403
    kind: str = ""
    method_id: str = ""
    hint: str = ""


class Policy:
    """The plan of one action and how far it has come. One request is under way at a time."""

    def __init__(self, plan: GatewayPlan) -> None:
        self._plan = plan
        self._answers = Answers()
        self._next = 0
        self._tries = 0
        self._busy = False
        self._broken = ""

    def knows(self, origin: Origin) -> bool:
        """Whether any request of the plan goes to that origin."""
        return any(request.origin == origin for request in self._plan.requests)

    def admit(self, asked: Asked) -> Composed | No:
        """Judge a request. `Composed` makes it the one that is under way, until `settle`."""
        if self._broken:
            return No(f"nothing more is sent, since an earlier request didn't go well: {self._broken}", 409)
        if self._busy:
            return No("another request of this action is under way", 409)
        reason = "every request of the plan was sent already"
        for index in self._candidates():
            planned = self._plan.requests[index]
            try:
                differs = self.differs(planned, asked)
                composed = self.compose(planned, asked)
            except (NoValue, BadTarget) as error:
                differs = error.message
            if not differs:
                if index != self._next:
                    self._next, self._tries = index, 0
                self._tries += 1
                self._busy = True
                return composed
            reason = differs if index == self._next else reason
        return self._explain(asked, reason)

    def take(self, composed: Composed, status: int, body: JsonValue, kind: Kind) -> str:
        """Keep the (redacted) answer to the request under way. Returns what doesn't hold, "" when all is well."""
        planned = composed.planned
        if kind == "json":
            self._answers.keep(planned.id, body)
        return judge(planned.expect, status, body, kind, self._answers)

    def settle(self, composed: Composed, failed: str) -> None:
        """The request under way is over; `failed` says why it isn't well, "" when it is."""
        planned = composed.planned
        self._busy = False
        if failed and self._tries < planned.attempts:
            return
        if failed and not planned.optional:
            self._broken = failed
        self._next += 1
        self._tries = 0

    def stop(self, why: str) -> None:
        """Admit nothing more."""
        self._broken = self._broken or why

    def differs(self, planned: PlannedRequest, asked: Asked) -> str:
        """In what `asked` isn't `planned`; "" when it is. Raises NoValue, BadTarget."""
        return (
            self.origin_differs(planned, asked)
            or self.method_differs(planned, asked)
            or self.path_differs(planned, asked)
            or self.query_differs(planned, asked)
            or self.body_differs(planned, asked)
        )

    def origin_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return "" if asked.origin == planned.origin else "the plan has no such request to this host"

    def method_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return "" if asked.head.method == planned.method else f"the plan has {planned.method} here"

    def path_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        path, _ = split_target(asked.target)
        return "" if decode_path(path) == self._segments(planned) else "the plan has another path"

    def query_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        _, query = split_target(asked.target)
        wanted = tuple(sorted(self._answers.pairs(planned.query)))
        return "" if decode_query(query) == wanted else "the plan has another query"

    def body_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        kind = (asked.head.get("content-type") or "").partition(";")[0].strip().lower()
        wanted = self._answers.resolve(planned.body)
        if planned.body_format == "none" or planned.body is None:
            return "the plan has no body" if asked.body else ""
        try:
            if planned.body_format == "json":
                if kind not in ("", "application/json"):
                    return "the plan has a JSON body"
                text = asked.body.decode("utf-8")
                same = canonical(parse(text, limit=self._plan.max_request_bytes)) == canonical(wanted)
            else:
                if kind not in ("", _FORM):
                    return "the plan has a form as its body"
                pairs = decode_query(asked.body.decode("ascii"), form=True)
                same = pairs == tuple(sorted(self._answers.pairs(planned.body)))
        except (InvalidInput, UnicodeError):
            return "the body can't be read in exactly one way"
        return "" if same else "the plan has another body"

    def compose(self, planned: PlannedRequest, asked: Asked) -> Composed:
        """What is sent: the plan's own. `asked` has no part in it. Raises NoValue."""
        target = self.compose_path(planned, asked)
        query = encode_query(self._answers.pairs(planned.query))
        body = self.compose_body(planned, asked)
        headers = [("User-Agent", "goex"), ("Accept", "application/json"), ("Accept-Encoding", "identity")]
        named = {name.lower() for name in planned.headers}
        headers = [(name, value) for name, value in headers if name.lower() not in named]
        headers += list(planned.headers.items())
        if body:
            headers.append(("Content-Type", "application/json" if planned.body_format == "json" else _FORM))
        if body or planned.method in ("POST", "PUT", "PATCH"):
            headers.append(("Content-Length", str(len(body))))
        return Composed(
            planned=planned,
            target=f"{target}?{query}" if query else target,
            headers=tuple(headers),
            body=body,
        )

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        return encode_path(self._segments(planned))

    def compose_body(self, planned: PlannedRequest, asked: Asked) -> bytes:
        if planned.body_format == "none" or planned.body is None:
            return b""
        if planned.body_format == "form":
            body = encode_query(self._answers.pairs(planned.body)).encode("ascii")
        else:
            body = canonical(self._answers.resolve(planned.body))
        if len(body) > self._plan.max_request_bytes:
            raise NoValue("the body, with its values, is longer than the plan allows")
        return body

    def _segments(self, planned: PlannedRequest) -> tuple[str, ...]:
        return (*planned.base_path, *(self._answers.segment(part) for part in planned.path))

    def _candidates(self) -> list[int]:
        """The request whose turn it is; and the one after it, where the first is optional and was tried."""
        found: list[int] = []
        for index in range(self._next, len(self._plan.requests)):
            found.append(index)
            if not (self._plan.requests[index].optional and index == self._next and self._tries):
                break
        return found

    def _explain(self, asked: Asked, reason: str) -> No:
        """Say more exactly why nothing fits: a second use and a wrong order are other news than a wrong path."""
        for index, planned in enumerate(self._plan.requests):
            if self._fits(planned, asked):
                if index < self._next:
                    return No(f"{planned.id} was sent already, and the plan has it once")
                return No(f"it isn't {planned.id}'s turn yet", 409)
        return No(reason)

    def _fits(self, planned: PlannedRequest, asked: Asked) -> bool:
        try:
            return not self.differs(planned, asked)
        except (NoValue, BadTarget):
            return False


def readable(body: bytes, limit: int) -> tuple[JsonValue, Kind]:
    """An answer's body, parsed strictly (UTF-8, no duplicate keys, nothing that JSON can't hold again)."""
    if not body:
        return None, "empty"
    try:
        value: Any = parse(body.decode("utf-8"), limit=limit, what="This answer")
        canonical(value)
    except (InvalidInput, UnicodeError):
        return None, "other"
    return value, "json"
