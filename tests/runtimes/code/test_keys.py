"""A program's idempotency keys: each is one request's alone, and what two answers to one key name is one thing."""

from __future__ import annotations

import pytest

from policies.actions import Plan
from policies.jsonvalue import JsonValue
from policies.reversions import NoReversions
from runtimes.code import record
from runtimes.code.plans import read_in_answer
from runtimes.code.record import Record, Sent, permits_of
from runtimes.code.undo import reversed_
from runtimes.gateway.admission import Admission, AskedHead, Ready
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import Exchange, GatewayPlan
from runtimes.gateway.rule_match import RulePolicy
from tests.runtimes.code.sending import MARK
from tests.runtimes.code.support import CATALOG, GITHUB, context, plan

PROGRAM = """import requests
for repo in ("mine", "theirs"):
    requests.post(f"https://api.github.com/repos/o/{repo}/issues", json={"title": title})
"""


def key_of(made: Plan, repo: str, body: bytes, action: str = "a-1") -> str:
    """The key by which the service knows a request that the program sends with the key `k`."""
    rules = tuple(permit.rule for permit in permits_of(made))
    policy = RulePolicy(GatewayPlan(action_id=action, rules=rules, placeholders={MARK: ("github", "work")}, code=True))
    target = f"/repos/o/{repo}/issues"
    lines = (
        f"POST {target} HTTP/1.1", "Host: api.github.com", f"Authorization: Bearer {MARK}", "Idempotency-Key: k",
        "Content-Type: application/json", f"Content-Length: {len(body)}", "", "",
    )  # fmt: skip
    head = parse_head("\r\n".join(lines).encode())
    found = policy.admit(AskedHead(origin=rules[0].origin, head=head, target=target))
    assert isinstance(found, Admission), found
    ready = policy.read(found, body)
    assert isinstance(ready, Ready) and ready.sent is not None, ready
    key = dict(ready.admission.headers)["Idempotency-Key"]
    assert ready.sent.keys == (key,) and key.startswith("goex-")
    return key


@pytest.mark.promise(57)
def test_a_key_is_another_for_each_target_and_body() -> None:
    """The service answers a key with what it made for it: that has to be what this very request asked for."""
    made = plan(PROGRAM, accounts=(GITHUB,))
    first = key_of(made, "mine", b'{"title": "a"}')
    assert first == key_of(made, "mine", b'{"title":"a"}')  # the control: it is sent again
    others = {
        key_of(made, "theirs", b'{"title": "a"}'),
        key_of(made, "mine", b'{"title": "b"}'),
        key_of(made, "mine", b'{"title": "a"}', "a-2"),
    }
    assert len(others) == 3 and first not in others


ISSUE = {"number": 12, "node_id": "I_12", "id": 12, "title": "t", "state": "open"}


@pytest.mark.promise(57)
@pytest.mark.parametrize(
    ("keys", "second", "made"),
    [
        (("k", "k"), {**ISSUE}, {0}),  # one issue, though nothing says that it was answered again
        (("k", "k"), {**ISSUE, "updated_at": "later"}, {0}),
        (("k", "k"), {**ISSUE, "number": 13, "id": 13}, {0, 1}),  # the service doesn't know keys: both are taken back
        (("k", "l"), {**ISSUE}, {0, 1}),
        (("", ""), {**ISSUE}, {0, 1}),
    ],
)
def test_what_two_answers_to_one_key_name_is_taken_back_once(
    keys: tuple[str, str], second: JsonValue, made: set[int]
) -> None:
    planned = plan(PROGRAM, accounts=(GITHUB,))
    permit = permits_of(planned)[0]
    kept = Record()
    for number, (key, body) in enumerate(zip(keys, (ISSUE, second), strict=True)):
        arguments: dict[str, JsonValue] = {"owner": "o", "repo": "mine", "title": "t"}
        held = (key,) if key else ()
        kept.sent.append(Sent(number=number, request="", permit=0, arguments=arguments, whole=True, keys=held))
        wanted = tuple(read_in_answer(permit, CATALOG, NoReversions()))
        assert "$.number" in wanted
        answer = record.answer_of(Exchange(request="", status=201, well=True, body=body), permit, CATALOG, wanted)
        kept.answers.update(record.answers_of(kept, number, answer, replayed=False, wanted=wanted))
    assert {one.number for one in kept.sent if kept.done(one.number)} == made
    assert kept.unsettled == ()
    back = reversed_(planned, kept, context(GITHUB), CATALOG, NoReversions())
    assert not back.stuck and {step.call for step in back.steps} == made


@pytest.mark.promise(57)
@pytest.mark.parametrize("permits", [(0, 0), (0, 1)])
def test_two_answers_that_name_nothing_are_of_two_requests(permits: tuple[int, int]) -> None:
    """A service that knows no keys says `ok` to both: nothing shows that the second did nothing."""
    kept = Record(
        sent=[
            Sent(number=n, request="", permit=permit, arguments={}, whole=True, keys=("k",))
            for n, permit in enumerate(permits)
        ]
    )
    permit = permits_of(plan(PROGRAM, accounts=(GITHUB,)))[0]
    ok = record.answer_of(Exchange(request="", status=200, well=True, body={"ok": True}), permit, CATALOG)
    for number in (0, 1):
        kept.answers.update(record.answers_of(kept, number, ok, replayed=False, wanted=("$.number",)))
    assert kept.done(0) and kept.done(1)


@pytest.mark.promise(57)
def test_what_names_the_same_for_another_permit_is_another_thing() -> None:
    kept = Record(
        sent=[Sent(number=n, request="", permit=n, arguments={}, whole=True, keys=("k",)) for n in (0, 1)]
    )  # fmt: skip
    permit = permits_of(plan(PROGRAM, accounts=(GITHUB,)))[0]
    one = record.answer_of(Exchange(request="", status=201, well=True, body={**ISSUE}), permit, CATALOG, ("$.number",))
    for number in (0, 1):
        kept.answers.update(record.answers_of(kept, number, one, replayed=False, wanted=("$.number",)))
    assert kept.done(0) and kept.done(1)


@pytest.mark.promise(57)
def test_what_another_permits_request_was_answered_with_is_nothing_of_this_one() -> None:
    kept = Record(
        sent=[Sent(number=n, request="", permit=n, arguments={}, whole=True, keys=("k",)) for n in (0, 1)]
    )  # fmt: skip
    permit = permits_of(plan(PROGRAM, accounts=(GITHUB,)))[0]
    well = record.answer_of(Exchange(request="", status=201, well=True, body={**ISSUE}), permit, CATALOG)
    found = record.answers_of(kept, 1, well, replayed=True)
    assert set(found) == {1} and not found[1].well
