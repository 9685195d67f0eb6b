"""What a plan's list of requests lets pass: each once, in its order, to the letter. Pure, no I/O.

Requests go strictly in the plan's order, each once (a read up to its `attempts`), each only after the ones before it
were answered well. A request must *be* the planned one: origin, method, decoded path, decoded query, body; so it is
judged as a whole, when its body is there. Where its values come from answers it may be asked for by its name instead
(`x-goex-request`), with nothing else in it. What is sent is then composed from the plan and from answers that the
gateway saw itself, never from the container's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse
from policies.media_types import FORM
from runtimes.gateway.admission import Admission, AskedHead, No, Policy, Ready
from runtimes.gateway.head import Head, check_credentials, check_overrides, parse_head
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from runtimes.gateway.response_values import Answers, Kind, NoValue, compose_body, judge
from runtimes.gateway.urls import BadTarget, decode_path, decode_query, encode_path, encode_query, split_target

_NAME = "x-goex-request"  # as `sandbox-images/base/goex/run_calls.py` writes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(AskedHead):
    """A whole request as it came."""

    body: bytes


class PlanPolicy(Policy):
    """The plan of one action and how far it has come. One request is under way at a time."""

    rules = "request"

    def __init__(self, plan: GatewayPlan) -> None:
        self._plan = plan
        self._answers = Answers()
        self._next = 0
        self._tries = 0
        self._tickets = 0
        self._under_way = 0  # the ticket of the request that is; 0: none
        self._broken = ""

    def parse(self, raw: bytes) -> Head:
        head = parse_head(raw)
        check_overrides(head)
        self.check_credentials(head)
        return head

    def check_credentials(self, head: Head) -> None:
        check_credentials(head, *{place.name for request in self._plan.requests for place in request.credential_places})

    def knows(self, origin: Origin) -> bool:
        return any(request.origin == origin for request in self._plan.requests)

    def admit(self, asked: AskedHead) -> Admission:
        """Any request, since it is judged when its body is there."""
        self._tickets += 1
        return Admission(
            id="",
            ticket=self._tickets,
            rule=self._plan.requests[min(self._next, len(self._plan.requests) - 1)],
            asked=asked,
            target=asked.target,
            limit=self._plan.max_request_bytes,
            answer_limit=self._plan.max_response_bytes,
            judged=True,
        )

    def read(self, admission: Admission, body: bytes) -> Ready | No:
        """Judge a whole request. `Ready` makes it the one that is under way, until `settle`."""
        asked = Asked(
            origin=admission.asked.origin, head=admission.asked.head, target=admission.asked.target, body=body
        )
        if self._broken:
            return No(f"nothing more is sent, since an earlier request didn't go well: {self._broken}", 409)
        if self._under_way:
            return No("another request of this action is under way", 409)
        reason = "every request of the plan was sent already"
        for index in self._candidates():
            planned = self._plan.requests[index]
            try:
                differs = self.differs(planned, asked)
                ready = None if differs else self.compose(planned, admission, asked)
            except (NoValue, BadTarget) as error:
                differs, ready = error.message, None
            if ready is not None:
                if index != self._next:
                    self._next, self._tries = index, 0
                self._tries += 1
                self._under_way = admission.ticket
                return ready
            reason = differs if index == self._next else reason
        return self._explain(asked, reason)

    def judge(self, admission: Admission, status: int, body: JsonValue, kind: Kind) -> str:
        planned = self._plan.requests[self._next]
        if kind == "json":
            self._answers.keep(planned.id, body)
        return judge(planned.expect, status, body, kind, self._answers)

    def settle(self, admission: Admission, failed: str) -> None:
        """The request is over. Of one that isn't under way, nothing changes."""
        if admission.ticket != self._under_way:
            return
        planned = self._plan.requests[self._next]
        self._under_way = 0
        if failed and self._tries < planned.attempts:
            return
        if failed and not planned.optional:
            self._broken = failed
        self._next += 1
        self._tries = 0

    def stop(self, why: str) -> None:
        self._broken = self._broken or why

    def differs(self, planned: PlannedRequest, asked: Asked) -> str:
        """In what `asked` isn't `planned`; "" when it is. Raises NoValue, BadTarget."""
        return (
            self.origin_differs(planned, asked)
            or self.method_differs(planned, asked)
            or self.written_differs(planned, asked)
        )

    def written_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        name = asked.head.get(_NAME)
        if name is not None:
            bare = split_target(asked.target) == ("/", "") and not asked.body
            return "" if bare and name == planned.id else "the plan has another request here"
        return (
            self.path_differs(planned, asked) or self.query_differs(planned, asked) or self.body_differs(planned, asked)
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
            if planned.body_format != "form":
                # The container says every other body as the plan's JSON: what is sent is written here.
                if kind not in ("", "application/json"):
                    return "the plan has a JSON body"
                text = asked.body.decode("utf-8")
                same = canonical(parse(text, limit=self._plan.max_request_bytes)) == canonical(wanted)
            else:
                if kind not in ("", FORM):
                    return "the plan has a form as its body"
                pairs = decode_query(asked.body.decode("ascii"), form=True)
                same = pairs == tuple(sorted(self._answers.pairs(planned.body)))
        except (InvalidInput, UnicodeError):
            return "the body can't be read in exactly one way"
        return "" if same else "the plan has another body"

    def compose(self, planned: PlannedRequest, admission: Admission, asked: Asked) -> Ready:
        """What is sent: the plan's own. `asked` has no part in it. Raises NoValue."""
        target = self.compose_path(planned, asked)
        query = encode_query(self._answers.pairs(planned.query))
        body, content_type = self.compose_body(planned, asked)
        named = {name.lower() for name in planned.headers}
        headers = [("User-Agent", "goex"), ("Accept", "application/json")]
        headers = [(name, value) for name, value in headers if name.lower() not in named]
        headers += list(planned.headers.items())
        if body:
            headers.append(("Content-Type", content_type))
        made = replace(
            admission,
            id=planned.id,
            rule=planned,
            target=f"{target}?{query}" if query else target,
            headers=tuple(headers),
            body=bool(body),
        )
        return Ready(admission=made, body=body)

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        return encode_path(self._segments(planned))

    def compose_body(self, planned: PlannedRequest, asked: Asked) -> tuple[bytes, str]:
        body, content_type = compose_body(planned, self._answers)
        if len(body) > self._plan.max_request_bytes:
            raise NoValue("the body, with its values, is longer than the plan allows")
        return body, content_type

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
            if index != self._next and self._fits(planned, asked):
                if index < self._next:
                    return No(f"{planned.id} was sent already, and the plan has it once")
                return No(f"it isn't {planned.id}'s turn yet", 409)
        return No(reason)

    def _fits(self, planned: PlannedRequest, asked: Asked) -> bool:
        try:
            return not self.differs(planned, asked)
        except (NoValue, BadTarget):
            return False
