"""The plan's order, its references, and what is composed from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.accounts import Origin
from policies.jsonpath import value_at
from policies.services import Expect
from runtimes.gateway.admission import AskedHead, No, Ready
from runtimes.gateway.head import Head
from runtimes.gateway.plan import PlannedRequest, Ref
from runtimes.gateway.plan_match import Asked, PlanPolicy
from runtimes.gateway.response_values import readable
from tests.runtimes.gateway.support import plan, planned

ORIGIN = Origin("https", "api.example", 443)
JSON = (("content-type", "application/json"),)


def asked(target: str = "/api/messages", method: str = "POST", body: Any = None, **headers: str) -> Asked:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    head = Head(
        method=method, target=target, version="1.1", headers=fields, length=len(data), chunked=False, continues=False
    )
    return Asked(origin=ORIGIN, head=head, target=target, body=data)


def judge(policy: PlanPolicy, what: Asked) -> Ready | No:
    return policy.read(policy.admit(AskedHead(origin=what.origin, head=what.head, target=what.target)), what.body)


def run(policy: PlanPolicy, what: Asked, body: Any = None, status: int = 200) -> str | No:
    """Admit, answer with JSON, settle. Returns what failed."""
    decision = judge(policy, what)
    if isinstance(decision, No):
        return decision
    failed = policy.judge(decision.admission, status, body, "json")
    policy.settle(decision.admission, failed)
    return failed


def get(name: str, **changes: Any) -> PlannedRequest:
    return planned(ORIGIN, id=name, method="GET", path=(name,), **changes)


def read(name: str) -> Asked:
    return asked(f"/api/{name}", "GET")


def test_requests_go_in_order_and_once() -> None:
    policy = PlanPolicy(plan(get("a"), get("b"), get("c")))
    assert run(policy, read("b")) == No("it isn't b's turn yet", 409)
    assert run(policy, read("a")) == ""
    assert run(policy, read("a")) == No("a was sent already, and the plan has it once")
    assert run(policy, read("c")) == No("it isn't c's turn yet", 409)
    assert run(policy, read("b")) == ""
    assert run(policy, read("c")) == ""
    refused = run(policy, read("x"))
    assert isinstance(refused, No)
    assert "sent already" in refused.reason


def test_one_request_is_under_way_at_a_time() -> None:
    policy = PlanPolicy(plan(get("a"), get("b")))
    assert isinstance(judge(policy, read("a")), Ready)
    second = judge(policy, read("b"))
    assert isinstance(second, No)
    assert second.status == 409


def test_a_failure_stops_what_follows() -> None:
    policy = PlanPolicy(plan(get("a"), get("b")))
    assert run(policy, read("a"), {}, 500) == "the server answered with status 500"
    stopped = run(policy, read("b"))
    assert isinstance(stopped, No)
    assert (stopped.status, "500" in stopped.reason) == (409, True)


@pytest.mark.parametrize("status", [301, 302, 304, 400, 404, 500])
def test_anything_but_2xx_is_not_well(status: int) -> None:
    assert run(PlanPolicy(plan(get("a"))), read("a"), {}, status)


def test_an_expected_status_decides_alone() -> None:
    gone = (Expect(op="status", value=[404, 410], says="it is still there"),)
    assert run(PlanPolicy(plan(get("a", expect=gone))), read("a"), {}, 404) == ""
    assert run(PlanPolicy(plan(get("a", expect=gone))), read("a"), {}, 200) == "it is still there"


def test_an_optional_failure_stops_nothing() -> None:
    policy = PlanPolicy(plan(get("a", optional=True), get("b")))
    assert run(policy, read("a"), {}, 500)
    assert run(policy, read("b")) == ""


def test_an_optional_read_may_be_given_up_before_its_last_attempt() -> None:
    policy = PlanPolicy(plan(get("a", optional=True, attempts=3), get("b")))
    assert isinstance(run(policy, read("b")), No)
    assert run(policy, read("a"), {}, 500)
    assert run(policy, read("b")) == ""
    assert isinstance(run(policy, read("a")), No)


def test_a_read_may_be_repeated_until_it_holds() -> None:
    settled = (Expect(op="equals", path="$.state", value="done", says="not done"),)
    policy = PlanPolicy(plan(get("a", attempts=3, expect=settled), get("b")))
    assert run(policy, read("a"), {"state": "wait"}) == "not done"
    assert isinstance(run(policy, read("b")), No)
    assert run(policy, read("a"), {"state": "done"}) == ""
    assert isinstance(run(policy, read("a"), {}), No)
    assert run(policy, read("b")) == ""


def test_attempts_end() -> None:
    policy = PlanPolicy(plan(get("a", attempts=2)))
    assert run(policy, read("a"), {}, 500)
    assert run(policy, read("a"), {}, 500)
    assert isinstance(run(policy, read("a")), No)


@pytest.mark.parametrize(
    ("expect", "body", "holds"),
    [
        (Expect(op="equals", path="$.a", value=1), {"a": 1}, True),
        (Expect(op="equals", path="$.a", value=1), {"a": True}, False),
        (Expect(op="equals", path="$.a", value=1), {"a": "1"}, False),
        (Expect(op="equals", path="$.a", value=None), {}, False),
        (Expect(op="contains", path="$.a", value=[1, "x"]), {"a": ["x", 2, 1]}, True),
        (Expect(op="contains", path="$.a", value=[1, "x"]), {"a": ["x", 2, True]}, False),
        (Expect(op="contains", path="$.a", value=[]), {}, True),
        (Expect(op="contains", path="$.a", value=[1]), {}, False),
        (Expect(op="contains", path="$.a", value=[1]), {"a": 1}, False),
        (Expect(op="contains", path="$.a", value=1), {"a": [1]}, False),
        (Expect(op="lacks", path="$.a", value=[{"t": 1}]), {"a": [{"t": 2}]}, True),
        (Expect(op="lacks", path="$.a", value=[{"t": 1}]), {"a": [{"t": 2}, {"t": 1}]}, False),
        (Expect(op="lacks", path="$.a", value=[{"t": 1}]), {"a": [{"t": 1, "u": 2}]}, False),
        (Expect(op="lacks", path="$.a", value=[{"t": {"v": 1}}]), {"a": [{"t": {"v": 1, "u": 2}}]}, False),
        (Expect(op="lacks", path="$.a", value=[{"t": 1, "u": None}]), {"a": [{"t": 1}]}, False),
        (Expect(op="lacks", path="$.a", value=[{"t": 1, "u": None}]), {"a": [{"t": 1, "u": 2}, 1]}, True),
        (Expect(op="contains", path="$.a", value=[{"t": 1}, 2]), {"a": [{"t": 1, "u": 2}, 2]}, False),
        (Expect(op="contains", path="$.a", value=[{"t": 1}, 2]), {"a": [{"t": 1}, 2]}, True),
        (Expect(op="lacks", path="$.a", value=[1]), {}, True),
        (Expect(op="lacks", path="$.a", value=[1]), {"a": "2"}, False),
        (Expect(op="not_equals", path="$.a", value=1), {}, True),
        (Expect(op="not_equals", path="$.a", value=1), {"a": 1}, False),
        (Expect(op="exists", path="$.a"), {"a": None}, True),
        (Expect(op="exists", path="$.a"), {}, False),
        (Expect(op="absent", path="$.a"), {}, True),
        (Expect(op="absent", path="$.a"), {"a": None}, False),
        (Expect(op="equals", path="not a path", value=1), {"a": 1}, False),
        (Expect(op="equals", path="$.a", value=Ref("missing", "$")), {"a": 1}, False),
        (Expect(op="status", value="200"), {}, False),
    ],
)
def test_conditions(expect: Expect, body: Any, holds: bool) -> None:
    failed = run(PlanPolicy(plan(get("a", expect=(expect,)))), read("a"), body)
    assert (failed == "") is holds


@pytest.mark.parametrize("op", ["equals", "not_equals", "exists", "absent", "contains", "lacks"])
def test_an_answer_that_cannot_be_read_meets_no_condition(op: Any) -> None:
    policy = PlanPolicy(plan(get("a", expect=(Expect(op=op, path="$.a", value=[1]),))))
    decision = judge(policy, read("a"))
    assert isinstance(decision, Ready)
    assert policy.judge(decision.admission, 200, None, "other")


def test_a_condition_may_compare_two_answers() -> None:
    same = (Expect(op="equals", path="$.v", value=Ref("a", "$.v")),)
    policy = PlanPolicy(plan(get("a"), get("b", expect=same)))
    assert run(policy, read("a"), {"v": [1, {"x": "y"}]}) == ""
    assert run(policy, read("b"), {"v": [1, {"x": "y"}]}) == ""


def test_values_of_answers_fill_path_query_and_body() -> None:
    ref = Ref("a", "$.id")
    filled = planned(ORIGIN, id="b", path=("x", ref, "y"), query={"q": ref, "n": [1, True]}, body={"to": [ref]})
    policy = PlanPolicy(plan(get("a"), filled))
    assert run(policy, read("a"), {"id": "m/1 é?&"}) == ""
    wrong = judge(policy, asked("/api/x/m-2/y?q=m-2&n=1&n=true", body={"to": ["m-2"]}, content_type="application/json"))
    assert isinstance(wrong, No)
    target = "/api/x/m%2f1%20%C3%A9%3f%26/y?n=true&q=m%2F1+%C3%A9%3F%26&n=1"
    right = judge(
        policy, asked(target, body=b'{"to" : [ "m\\/1 \\u00e9?&" ]}', content_type="application/json; charset=utf-8")
    )
    assert isinstance(right, Ready), right
    assert right.admission.target == "/api/x/m%2F1%20%C3%A9%3F%26/y?q=m%2F1%20%C3%A9%3F%26&n=1&n=true"
    assert right.body == '{"to":["m/1 é?&"]}'.encode()
    assert right.admission.line == "POST https://api.example/api/x/m%2F1%20%C3%A9%3F%26/y"


@pytest.mark.parametrize(
    "value", [None, [], {}, ["a"], {"a": 1}, "", ".", "..", "a/..", "..\\a", "a\r\nb", "a\x00", "x" * 2000]
)
def test_values_that_cannot_be_a_segment(value: Any) -> None:
    policy = PlanPolicy(plan(get("a"), planned(ORIGIN, id="b", method="GET", path=(Ref("a", "$.id"),))))
    assert run(policy, read("a"), {"id": value}) == ""
    for target in ("/api/", "/api/x", "/api/%2E", f"/api/{value}"):
        assert isinstance(judge(policy, asked(target, "GET")), No)


def test_a_value_that_is_missing_refuses() -> None:
    policy = PlanPolicy(plan(get("a"), planned(ORIGIN, id="b", body={"x": Ref("a", "$.nothing")})))
    assert run(policy, read("a"), {}) == ""
    refused = judge(policy, asked(body={"x": None}))
    assert isinstance(refused, No)
    assert "nothing at $.nothing" in refused.reason


def test_what_is_sent_is_the_plans() -> None:
    request = planned(ORIGIN, headers={"Accept": "application/vnd.x+json", "X-Version": "1"})
    decision = judge(
        PlanPolicy(plan(request)),
        asked(
            body={"text": "hi"}, accept="evil/evil", user_agent="evil", x_version="2", content_type="application/json"
        ),
    )
    assert isinstance(decision, Ready)
    assert dict(decision.admission.headers) == {
        "User-Agent": "goex", "Accept": "application/vnd.x+json", "X-Version": "1", "Content-Type": "application/json",
    }  # fmt: skip
    assert "evil" not in repr([decision.admission.target, decision.admission.headers, decision.body])


def test_forms() -> None:
    form = planned(ORIGIN, body={"a": "x y", "b": ["1", "2"], "c": None}, body_format="form")
    kind = "application/x-www-form-urlencoded"
    for body in (b"a=x+y&b=1", b"a=x+y&b=1&b=2&c=", b"a=x;b=1", b"", b"\xff", b"a=x+y&b=1&b=2&b=2"):
        assert isinstance(judge(PlanPolicy(plan(form)), asked(body=body, content_type=kind)), No), body
    assert isinstance(judge(PlanPolicy(plan(form)), asked(body=b"a=x+y&b=1&b=2", content_type="application/json")), No)
    decision = judge(PlanPolicy(plan(form)), asked(body=b"b=2&a=x%20y&b=1", content_type=kind))
    assert isinstance(decision, Ready)
    assert decision.body == b"a=x%20y&b=1&b=2"


@pytest.mark.parametrize(
    "body",
    [b'{"text":"hi","text":"hi"}', b'{"text":"hi"} ', b'\xef\xbb\xbf{"text":"hi"}', b"{", b"", b'{"text":"h\xff"}'],
)
def test_bodies_that_can_be_read_in_two_ways(body: bytes) -> None:
    decision = judge(PlanPolicy(plan(planned(ORIGIN))), asked(body=body))
    assert isinstance(decision, Ready if body == b'{"text":"hi"} ' else No)


def test_a_body_where_the_plan_has_none() -> None:
    assert isinstance(judge(PlanPolicy(plan(get("a"))), asked("/api/a", "GET", body={"x": 1})), No)


def test_a_filled_body_stays_within_its_bound() -> None:
    policy = PlanPolicy(plan(get("a"), planned(ORIGIN, id="b", body={"x": Ref("a", "$.x")}), max_request_bytes=100))
    assert run(policy, read("a"), {"x": "y" * 200}) == ""
    assert isinstance(judge(policy, asked(body={"x": "y" * 200})), No)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"", "empty"), (b"{}", "json"), (b"null", "json"), (b"<x>", "other"), (b'{"a":1,"a":2}', "other"),
     (b"NaN", "other"), (b"1e999", "other"), (b'"\\ud800"', "other"), (b"\xff\xfe{\x00}\x00", "other"),
     (b"[" * 500 + b"]" * 500, "other"), (b"[" * 100_000, "other"), (b"1" * 5000, "other")],
)  # fmt: skip
def test_answers_are_read_strictly(body: bytes, kind: str) -> None:
    assert readable(body, 10_000_000)[1] == kind


NAMED = planned(
    ORIGIN, id="b", path=("rows", Ref("a", "$.rows[?@.t=='x'].id")), body={"n": Ref("a", "$.rows[?@.t=='x'].n")}
)


def test_a_request_with_values_of_answers_is_asked_for_by_its_name() -> None:
    policy = PlanPolicy(plan(get("a"), NAMED))
    assert run(policy, read("a"), {"rows": [{"t": "w", "id": "1", "n": 1}, {"t": "x", "id": "2", "n": 2}]}) == ""
    for other in (
        asked("/", x_goex_request="a"),
        asked("/", x_goex_request="c"),
        asked("/", "GET", x_goex_request="b"),
        asked("/", body={}, x_goex_request="b"),
        asked("/?x=1", x_goex_request="b"),
        asked("/api/rows/2", x_goex_request="b"),
        asked("/api/rows/1", body={"n": 1}),
    ):
        assert isinstance(judge(policy, other), No)
    ready = judge(policy, asked("/", x_goex_request="b"))
    assert isinstance(ready, Ready)
    assert (ready.admission.target, ready.body) == ("/api/rows/2", b'{"n":2}')


@pytest.mark.parametrize(("rows", "says"), [([], "nothing at"), ([{"t": "x", "id": "2", "n": 2}] * 2, "2 values fit")])
def test_a_filter_that_fits_none_or_several_sends_nothing(rows: list[Any], says: str) -> None:
    policy = PlanPolicy(plan(get("a"), NAMED))
    assert run(policy, read("a"), {"rows": rows}) == ""
    refused = judge(policy, asked("/", x_goex_request="b"))
    assert isinstance(refused, No)
    assert says in refused.reason


def test_a_filter_is_looked_up_once_however_often_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counting(value: Any, path: str) -> Any:
        looked.append(path)
        return value_at(value, path)

    monkeypatch.setattr("runtimes.gateway.response_values.value_at", counting)
    policy = PlanPolicy(plan(get("a"), NAMED))
    run(policy, read("a"), {"rows": [{"t": "x", "id": "2"}]})  # there is no n
    for _ in range(100):
        assert isinstance(judge(policy, asked("/", x_goex_request="b")), No)
        assert isinstance(judge(policy, asked("/api/rows/3", body={"n": 1})), No)
    assert len(looked) == 2
