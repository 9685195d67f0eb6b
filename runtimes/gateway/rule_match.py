"""What code may send: its requests against the rules of its action. Pure, no I/O.

A request is judged twice: by its head, before anything of its body is read (`admit`), and by its body, where a rule
has something to say about that (`read`). What a rule doesn't name is refused: another host, method, path, query name,
a value that it doesn't list. The code's placeholder chooses the account, and is looked for in the one place where the
service wants its credential; anywhere else it is refused. Several requests may be under way at once.

What is sent is written anew from what was decoded (path, query, headers in our order, an inspected body), so that no
server reads it in another way than it was judged. Decisions are values: `Admission`, `Local`, or `No`.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical
from runtimes.gateway import bodies
from runtimes.gateway.admission import (
    Admission,
    Answered,
    AskedHead,
    BodyKind,
    Local,
    No,
    Policy,
    Ready,
    Refused,
)
from runtimes.gateway.head import Head, parse_head
from runtimes.gateway.plan import GatewayPlan, MethodRule, SentRequest
from runtimes.gateway.request_headers import (
    Pairs,
    carries_credential,
    check_overrides,
    check_signed,
    for_body,
    headers_of,
    is_own_key,
    placeholder_in,
    refuse,
    shapes_answer,
    token_variable,
    with_shown,
)
from runtimes.gateway.routes import Taken, is_graphql, rivals_of, routed, slot_values, whole
from runtimes.gateway.token_endpoints import answer_token, placeholder_of
from runtimes.gateway.urls import (
    BadTarget,
    decode_path,
    decode_query,
    encode_path,
    encode_query,
    split_target,
    unclosed,
)

MAX_UNDER_WAY = 64
MAX_INSPECTED = 16 * 2**20
MAX_HELD = 4 * MAX_INSPECTED  # bytes of bodies that are held at once, of one action


@dataclass(frozen=True, slots=True)
class _Target:
    segments: tuple[str, ...]
    query: Pairs


class RulePolicy(Policy):
    """The rules of one action's program, and how often each was used."""

    rules = "rule that leads"

    def __init__(self, plan: GatewayPlan) -> None:
        self._plan = plan
        self._rivals = rivals_of(plan.rules)
        self._used: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._unread: set[int] = set()
        self._under_way: dict[int, int] = {}  # by ticket: bytes of it that may have to be held at once
        self._lock = threading.Lock()
        self._ticket = 0
        self._stopped = ""

    def parse(self, raw: bytes) -> Head:
        return parse_head(raw, upgrades=True)  # the rules look at the rest, and say more about it

    def knows(self, origin: Origin) -> bool:
        """Whether any rule or token endpoint is there."""
        return origin in {*(rule.origin for rule in self._plan.rules), *(token.origin for token in self._plan.tokens)}

    def covers(self, url: str) -> bool:
        """Whether a rule, of whatever verb, has this address: its origin, its path, and each name of its query."""
        try:
            parts = urlsplit(url)
            origin = Origin.parse(f"{parts.scheme}://{parts.netloc}")
            segments = decode_path(parts.path or "/")
            query = decode_query(parts.query, ordered=True)
        except (BadTarget, InvalidInput, ValueError):
            return False
        if parts.fragment or "#" in url:
            return False
        for rule in self._plan.rules:
            if rule.origin != origin:
                continue
            try:
                if routed([rule], self._rivals, rule.method, segments):
                    _check_query(rule, query)
                    bodies.check_fields(rule, None, query, ())
                    return True
            except Refused:
                continue
        return False

    def admit(self, asked: AskedHead) -> Admission | Local | No:
        """Judge a request by its head. An `Admission` is under way until `settle`."""
        try:
            return self._admit(asked)
        except Refused as refused:
            return refused.no

    def read(self, admission: Admission, body: bytes) -> Ready | No:
        """Judge the whole body of an admission that says `inspect`. After a `No`, settle.

        A large body takes a while, so this may be called in a thread; nothing else here may.
        """
        with self._lock:
            if admission.ticket in self._unread:
                # It was counted by its head; it counts for the rule that has its body too, and not at all without one.
                self._unread.discard(admission.ticket)
                self._used[_rule(admission).counted_as] -= 1
        try:
            content = _content(admission, body)
        except Refused as refused:
            return replace(refused.no, method_id=admission.rule.method_id)
        first: No | None = None
        for one in (admission, *admission.rivals):
            try:
                return self._ready(one, self._check_body(one, content))
            except Refused as refused:
                first = first or replace(refused.no, method_id=one.rule.method_id)
        return first or No("no rule fits", kind="field")

    def stream(self, admission: Admission, length: int) -> tuple[Ready, bodies.Watch] | No:
        """An admission without `inspect`, and what looks at its body (if any) across the borders of its pieces."""
        content_type = dict(admission.headers).get("Content-Type", "")
        try:
            watch = bodies.Watch(admission.kind, content_type, _rule(admission), self._plan.placeholders)
        except Refused as refused:
            return refused.no
        sent = self._sent_request(admission, None, length if admission.body else 0)
        return Ready(admission=admission, sent=sent), watch

    def answer(self, local: Local, body: bytes) -> Answered:
        """What the code gets from a token endpoint."""
        status, headers, said = answer_token(local.placeholder, body, form=local.form)
        return Answered(status=status, headers=headers, body=said)

    def settle(self, admission: Admission, failed: str) -> None:
        """The request is over. Once for each admission, by any of its rules."""
        with self._lock:
            self._under_way.pop(admission.ticket, None)
            self._unread.discard(admission.ticket)

    def stop(self, why: str) -> None:
        """Admit nothing more."""
        self._stopped = self._stopped or why

    def _admit(self, asked: AskedHead) -> Admission | Local:
        if self._stopped:
            raise refuse("stopped", f"nothing more is sent: {self._stopped}", status=409)
        if len(self._under_way) >= MAX_UNDER_WAY:
            raise refuse("busy", f"{MAX_UNDER_WAY} requests are under way", status=429, hint="Wait for their answers.")
        target = _target(asked)
        if (local := self._local(asked, target)) is not None:
            return local
        rules = [rule for rule in self._plan.rules if rule.origin == asked.origin]
        if not rules:
            raise refuse("host", f"nothing is allowed at {asked.origin}")
        known = {name for rule in rules for name in rule.query}
        check_signed(asked.head, target.query, known)
        check_overrides(asked.head, (name for name, _ in target.query))
        fitting, worst = [], None
        for rule, taken in routed(rules, self._rivals, asked.head.method, target.segments):
            try:
                fitting.append(self._by(rule, taken, asked, target))
            except Refused as refused:
                no = replace(refused.no, method_id=rule.method_id)
                if worst is None or (worst.kind == "placeholder" and no.kind != "placeholder"):
                    worst = no
        if worst is not None and not fitting:
            raise Refused(worst)
        with self._lock:
            return self._take(fitting, asked.head.length)

    def _take(self, fitting: list[Admission], length: int | None) -> Admission:
        """The first of the admissions that fit, counted and under way. Raises Refused."""
        first = fitting[0]
        rule = _rule(first)
        self._check_calls(rule)
        held = 0 if not first.inspect else first.limit if length is None else length
        if sum(self._under_way.values()) + held > MAX_HELD:
            raise refuse("busy", "too many large requests are under way", status=429, hint="Wait for their answers.")
        self._ticket += 1
        self._under_way[self._ticket] = held
        self._used[rule.counted_as] += 1
        if first.inspect:
            self._unread.add(self._ticket)
        rivals = tuple(replace(one, ticket=self._ticket) for one in fitting[1:]) if first.inspect else ()
        return replace(first, id=self._number(rule), ticket=self._ticket, rivals=rivals)

    def _local(self, asked: AskedHead, target: _Target) -> Local | None:
        for endpoint in self._plan.tokens:
            if (endpoint.origin, endpoint.path) != (asked.origin, target.segments):
                continue
            kind = bodies.kind_of(asked.head.get("content-type"))
            if asked.head.method != "POST" or kind not in ("form", "json") or target.query:
                raise refuse(
                    "token", "a token endpoint takes a POST of a form", hint="Use the credential file's library."
                )
            return Local(endpoint=endpoint, placeholder=placeholder_of(self._plan, endpoint), form=kind == "form")
        return None

    def _by(self, rule: MethodRule, taken: Taken, asked: AskedHead, target: _Target) -> Admission:
        """The request by this rule, which has its path. Raises Refused."""
        head = asked.head
        query = self._without_credential(rule, head, target)
        self._check_misplaced(rule, head, target.segments, query)
        if head.upgrade and not rule.websocket:
            raise refuse("upgrade", f"{rule.method_id} was allowed without a WebSocket", hint="Make a plain request.")
        _check_query(rule, query)
        body = head.chunked or bool(head.length)
        kind = bodies.kind_of(head.get("content-type")) if body else ""
        if body and (rule.method in ("GET", "HEAD") or rule.body_format == "none"):
            raise refuse("body", f"{rule.method_id} takes no body here")
        inspect = body and _inspected(rule, kind, query)
        unread = kind == "other" or (kind == "text" and rule.body_format != "json")
        if inspect and (unread or (kind == "multipart" and rule.credential_at == "body")):
            raise refuse("body", f"the body of {rule.method_id} is JSON or a form, since it is looked at")
        bodies.check_fields(rule, None, query, () if inspect else rule.must)
        _check_graphql(rule)
        limit = min(rule.request_bytes, MAX_INSPECTED) if inspect else rule.request_bytes
        if head.length is not None and head.length > limit:
            raise refuse("size", f"the body is longer than {limit} bytes", status=413)
        headers, dropped = headers_of(
            head, rule, body=body, websocket=bool(head.upgrade), action=self._plan.action_id
        )  # fmt: skip
        if body and not kind:
            # A server may take a body that doesn't say what it is for a form.
            headers = (*headers, ("Content-Type", "application/octet-stream"))
        self._check_calls(rule)
        encoded = encode_query(with_shown(query, rule))
        path = encode_path(target.segments)
        return Admission(
            id="",
            rule=rule,
            asked=asked,
            target=f"{path}?{encoded}" if encoded else path,
            headers=headers,
            inspect=inspect,
            body=body,
            limit=limit,
            answer_limit=rule.response_bytes,
            websocket=bool(head.upgrade),
            slots=slot_values(whole(rule), taken),
            query=query,
            kind=kind,
            dropped=dropped,
        )

    def _without_credential(self, rule: MethodRule, head: Head, target: _Target) -> Pairs:
        """The query, sorted by names, without the placeholder. Raises Refused unless it is where the rule wants it,
        and is its account's. (In a body it is looked for when the body is there.)"""
        query = tuple(sorted(target.query, key=lambda pair: pair[0]))
        if rule.credential_at == "body":
            return query
        name = rule.credential_name
        if rule.credential_at == "query":
            found = [value for one, value in query if one == name]
            query = tuple(pair for pair in query if pair[0] != name)
        else:
            found = [value for one, value in head.headers if one == name.lower()]
        self._check_credential(rule, found)
        return query

    def _check_credential(self, rule: MethodRule, found: list[str]) -> None:
        where = {"header": "the header", "query": "the parameter", "body": "the field"}[rule.credential_at]
        where = f"{where} {rule.credential_name}"
        hint = f"Send there what {token_variable(rule.account)} holds."
        if not found:
            raise refuse("placeholder", f"this request has no placeholder in {where}", hint=hint, status=401)
        if len(found) > 1:
            raise refuse("credential", f"{where} stands twice", hint=hint)
        placeholder = placeholder_in(found[0], rule, self._plan.placeholders)
        if placeholder is None:
            raise refuse("credential", f"a credential that isn't the vault's, in {where}", hint=hint)
        account = self._plan.placeholders[placeholder]
        if account != rule.account:
            raise refuse(
                "placeholder", f"the placeholder of {'/'.join(account)} isn't for {rule.origin.host}", hint=hint
            )

    def _check_misplaced(self, rule: MethodRule, head: Head, segments: tuple[str, ...], query: Pairs) -> None:
        """Raise Refused for a placeholder anywhere but in its place. The body's turn comes when it is there."""
        own = rule.credential_name.lower() if rule.credential_at == "header" else ""
        places = [("the path", "/".join(segments))]
        places += [(f"the parameter {name[:60]}", f"{name}={value}") for name, value in query]
        places += [(f"the header {name}", f"{name}: {value}") for name, value in head.headers if name != own]
        for where, text in places:
            if self._holds(text.encode()):
                raise bodies.misplaced(where)

    def _holds(self, data: bytes) -> bool:
        """Whether a placeholder stands anywhere. None of its characters is ever written otherwise in what we send."""
        return any(placeholder.encode("ascii") in data for placeholder in self._plan.placeholders)

    def _ready(self, admission: Admission, content: bodies.Content) -> Ready:
        headers = tuple((name, content.type if name == "Content-Type" else text) for name, text in admission.headers)
        with self._lock:
            rule = _rule(admission)
            self._check_calls(rule)
            self._used[rule.counted_as] += 1
            if not admission.id:  # another rule than the head's
                admission = replace(admission, id=self._number(rule))
        if any(is_own_key(name, rule) for name, _ in headers):
            said = content.body if content.value is None else canonical(content.value)
            headers = for_body(headers, rule, self._plan.action_id, said)
        admission = replace(admission, headers=headers, rivals=())
        sent = self._sent_request(admission, content.value, len(content.body), content.file)
        return Ready(admission=admission, sent=sent, body=content.body)

    def _sent_request(self, admission: Admission, body: JsonValue, size: int, file: bool = False) -> SentRequest:
        rule = _rule(admission)
        keys = tuple(value for name, value in admission.headers if is_own_key(name, rule))
        return SentRequest(
            rule=rule.id,
            slots=dict(admission.slots),
            query=admission.query,
            body=body,
            size=size,
            file=file,
            keys=keys,
        )

    def _check_calls(self, rule: MethodRule) -> None:
        if self._used[rule.counted_as] >= rule.calls:
            raise refuse("calls", f"{rule.method_id} was allowed {rule.calls} times, and was called that often")

    def _number(self, rule: MethodRule) -> str:
        self._numbers[rule.id] += 1
        return f"{rule.id}#{self._numbers[rule.id]}"

    def _check_body(self, admission: Admission, content: bodies.Content) -> bodies.Content:
        """The body without its placeholder, where that is its place. Raises Refused."""
        rule = _rule(admission)
        names = [name for name, _ in content.fields or ()]
        if content.size > admission.limit:
            raise refuse("size", f"the body is longer than {admission.limit} bytes", status=413)
        if rule.credential_at == "body":
            found = [value for name, value in content.fields or () if name == rule.credential_name]
            self._check_credential(rule, [value if isinstance(value, str) else "" for value in found])
            content = bodies.without_field(content, rule.credential_name)
        if self._holds(content.body):
            raise bodies.misplaced("the body")
        bodies.check_names(rule, names, typed=content.typed)
        bodies.check_fields(rule, content, admission.query, rule.must)
        if is_graphql(rule):
            bodies.check_graphql(names)
        return content


def _rule(admission: Admission) -> MethodRule:
    rule = admission.rule
    assert isinstance(rule, MethodRule)
    return rule


def _target(asked: AskedHead) -> _Target:
    """Raises Refused for a target that can't be read in exactly one way."""
    try:
        path, query = split_target(asked.target)
        return _Target(decode_path(path), decode_query(query, ordered=True))
    except BadTarget as error:
        raise refuse("path", error.message, status=400) from error


def _content(admission: Admission, body: bytes) -> bodies.Content:
    """Raises Refused for a body that can't be read in exactly one way."""
    content_type = dict(admission.headers).get("Content-Type", "")
    if not body:
        return bodies.Content(fields=(), value=None, body=b"", type=content_type, size=0)
    rule = _rule(admission)
    unsaid = admission.kind in ("form", "text", "") and rule.body_format == "json" and rule.credential_at != "body"
    if unsaid and body[:1] == b"{":
        # curl calls any body that it isn't told of a form (`-d '{…}'`), fetch and aiohttp call one a text, and Python's
        # requests say nothing of it (`data=json.dumps(…)`). It is sent as what it is read as here.
        return bodies.read_content("json", "application/json", body, MAX_INSPECTED)
    if admission.kind in ("text", ""):
        raise refuse("body", "a body without a content-type, or a text", hint="Say whether it is JSON or a form.")
    return bodies.read_content(admission.kind, content_type, body, MAX_INSPECTED)


def _check_query(rule: MethodRule, query: Pairs) -> None:
    own = (rule.credential_name,) if rule.credential_at in ("query", "body") else ()
    for name, value in query:
        if unclosed(name):
            raise refuse("query", f"the bracket of the parameter {name} isn't closed: it could be taken for another")
        if (carries_credential(name) and not rule.query.get(name)) or (
            carries_credential(name, "token", "key", *own) and name not in rule.query
        ):
            raise refuse("credential", f"a credential that isn't the vault's, in the parameter {name}")
        if name not in rule.query and not rule.any_query:
            raise refuse("query", f"the parameter {name} isn't one of {rule.method_id} as it was allowed")
        if rule.answered and shapes_answer(name, value) and not rule.query.get(name):
            raise refuse("query", f"the parameter {name} may leave out of the answer what its way back reads there")


def _inspected(rule: MethodRule, kind: BodyKind, query: Pairs) -> bool:
    """Whether a body must be read whole before anything of it is sent."""
    if rule.body_format != "any" or bodies.held(rule.fields):
        return True
    if set(rule.must) - {name for name, _ in query}:
        return True
    return kind in ("json", "form")  # where a credential or an override could stand


def _check_graphql(rule: MethodRule) -> None:
    """A language of its own: without the queries that are allowed, the rule would allow everything."""
    if is_graphql(rule) and not (rule.query if rule.method == "GET" else rule.fields).get("query"):
        raise refuse("graphql", "GraphQL, and no query of it was allowed")
