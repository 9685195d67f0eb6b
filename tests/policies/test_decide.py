"""Decisions as a table, with the denials first: whatever isn't said is no."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actions import ApiCalls, Call, Files, Need, Plan, Revert, UndoClass
from policies.decisions import Allow, Ask, Deny, Request, Ruling, decide
from policies.digest import digest
from policies.grants import ANONYMOUS, Grant, Width
from policies.rules.book import RuleBook
from policies.services import Risk
from policies.typed_json import from_json, to_json

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NEED = Need(
    service="chat",
    account="work",
    scope="write",
    risk=Risk.WRITE,
    methods=("post",),
    arguments=({"channel": "#ops", "text": "hi"},),
)
PLAN = Plan(
    action=ApiCalls(calls=(Call(service="chat", method="post", arguments={"channel": "#ops"}, account="work"),)),
    needs=(NEED,),
    undo_class=UndoClass.COMPENSATING,
    undo_text="deletes it",
    resolved={"requests": [1]},
    bounds={"requests": 1},
    catalog_hash="c",
    image_id="i",
    limits={"memory": 1},
    lines=("a", "b"),
    undo={"calls": ["delete"]},
)
DIGEST = digest(PLAN, agent="bot")
RULES = RuleBook.of({})
REQUEST = Request(agent="bot", session="s1", digest=DIGEST, plan=PLAN)


@dataclass(frozen=True)
class Fixed:
    ruling: Ruling

    def judge(self, request: Request, now: datetime) -> Ruling:
        return self.ruling


def grant(**changes: Any) -> Grant:
    made = Grant(
        id="g1",
        agent="bot",
        service="chat",
        account="work",
        scope="write",
        width=Width.PERMANENT,
        created=NOW - timedelta(hours=1),
        expires=None,
        by="me",
        why="a-1",
    )
    return replace(made, **changes)


ONCE = grant(width=Width.ONCE, digest=DIGEST)
SESSION = grant(width=Width.SESSION, session="s1")

COVERING = {
    "permanent": grant(),
    "once": ONCE,
    "session": SESSION,
    "not yet expired": grant(expires=NOW + timedelta(seconds=1)),
    "bound to these arguments": grant(constraints={"channel": "#ops"}, only=True, free=("text",)),
    "bound to both": grant(constraints={"channel": "#ops", "text": "hi"}, only=True),
}
NOT_COVERING = {
    "another agent": grant(agent="other"),
    "another service": grant(service="mail"),
    "another account": grant(account="home"),
    "another scope": grant(scope="read"),
    "expired": grant(expires=NOW - timedelta(seconds=1)),
    "expires now": grant(expires=NOW),
    "revoked": grant(revoked=NOW - timedelta(seconds=1)),
    "revoked in the future": grant(revoked=NOW + timedelta(days=1)),
    "another digest": replace(ONCE, digest="f" * 64),
    "no digest": replace(ONCE, digest=""),
    "used": replace(ONCE, used=NOW),
    "another session": replace(SESSION, session="s2"),
    "no session": replace(SESSION, session=""),
    "another value": grant(constraints={"channel": "#all"}, only=True, free=("text",)),
    "an argument that isn't there": grant(constraints={"thread": "1"}, only=True, free=("channel", "text")),
    "another type": grant(constraints={"channel": 1}, only=True, free=("text",)),
    "for arguments that nobody was shown": grant(constraints={"channel": "#ops"}),
    "for methods with any arguments": grant(methods=NEED.methods),
}


@pytest.mark.parametrize("name", COVERING)
def test_covering_grants_allow(name: str) -> None:
    assert decide(REQUEST, [COVERING[name]], RULES, NOW) == Allow((COVERING[name],))


@pytest.mark.parametrize("name", NOT_COVERING)
def test_grants_that_do_not_cover_leave_the_question(name: str) -> None:
    decision = decide(REQUEST, [NOT_COVERING[name]], RULES, NOW)
    assert isinstance(decision, Ask)
    assert decision.needs == (NEED,)
    assert decision.presence


def test_no_grant_asks_and_never_allows() -> None:
    assert isinstance(decide(REQUEST, [], Fixed(Ruling()), NOW), Ask)


def test_a_plan_without_needs_is_denied() -> None:
    assert isinstance(decide(replace(REQUEST, plan=replace(PLAN, needs=())), [grant()], Fixed(Ruling()), NOW), Deny)


UNDO = replace(NEED, scope="erase", risk=Risk.DELETE, why="undo")


@pytest.mark.promise(9)
def test_what_undo_needs_is_neither_required_nor_granted_with_the_action() -> None:
    plan = replace(PLAN, needs=(NEED, UNDO, replace(UNDO, why="read-back")))
    assert plan.required == (NEED,)
    assert plan.risk is Risk.WRITE
    assert isinstance(decide(replace(REQUEST, plan=plan), [grant()], RULES, NOW), Allow)
    asked = decide(replace(REQUEST, plan=plan), [], RULES, NOW)
    assert isinstance(asked, Ask)
    assert asked.needs == (NEED,)


def test_an_undo_requires_all_that_it_needs() -> None:
    plan = replace(PLAN, action=Revert(verb="undo", target="a-1"), needs=(UNDO,))
    asked = decide(replace(REQUEST, plan=plan), [grant()], RULES, NOW)
    assert isinstance(asked, Ask)
    assert asked.needs == (UNDO,)


def test_an_action_whose_only_needs_are_its_undo_s_is_denied() -> None:
    plan = replace(PLAN, needs=(UNDO,))
    assert isinstance(decide(replace(REQUEST, plan=plan), [grant(scope="erase")], Fixed(Ruling()), NOW), Deny)


def test_a_request_without_digest_is_denied() -> None:
    assert isinstance(decide(replace(REQUEST, digest=""), [grant()], Fixed(Ruling()), NOW), Deny)


@pytest.mark.promise(6)
@pytest.mark.parametrize("width", [Width.SESSION, Width.PERMANENT])
def test_anonymous_is_never_covered_by_a_standing_grant(width: Width) -> None:
    standing = grant(agent=ANONYMOUS, width=width, session="s1" if width is Width.SESSION else "")
    decision = decide(replace(REQUEST, agent=ANONYMOUS), [standing], RULES, NOW)
    assert isinstance(decision, Ask)
    assert decision.widths == (Width.ONCE,)


@pytest.mark.promise(9)
def test_what_cannot_be_taken_back_is_asked_for_each_time() -> None:
    plan = replace(PLAN, undo_class=UndoClass.IRREVERSIBLE)
    request = replace(REQUEST, plan=plan, digest=digest(plan, agent="bot"))
    decision = decide(request, [grant()], RULES, NOW)
    assert isinstance(decision, Ask)
    assert decision.widths == (Width.ONCE,)
    once = grant(width=Width.ONCE, digest=request.digest)
    assert isinstance(decide(request, [once], RULES, NOW), Allow)


def test_giving_up_the_way_back_is_asked_for_each_time() -> None:
    plan = replace(PLAN, action=Revert(verb="commit", target="a-1"), undo_class=UndoClass.NOTHING)
    request = replace(REQUEST, plan=plan, digest=digest(plan, agent="bot"))
    assert isinstance(decide(request, [grant()], RULES, NOW), Ask)
    undo = replace(plan, action=Revert(verb="undo", target="a-1"))
    assert isinstance(decide(replace(request, plan=undo), [grant()], RULES, NOW), Allow)


def test_a_grant_for_one_of_two_needs_asks_for_the_other() -> None:
    other = replace(NEED, scope="admin", risk=Risk.ADMIN)
    decision = decide(replace(REQUEST, plan=replace(PLAN, needs=(NEED, other))), [grant()], Fixed(Ruling()), NOW)
    assert isinstance(decision, Ask)
    assert decision.needs == (other,)


class Failing:
    def judge(self, request: Request, now: datetime) -> Ruling:
        raise LookupError("no such attribute")


FORBIDS = Ruling(forbid=("no",), ask=("each",), permits={0: ("all",)})


def test_a_rule_that_forbids_wins_over_any_grant_and_any_other_rule() -> None:
    decision = decide(REQUEST, [grant(), ONCE], Fixed(FORBIDS), NOW)
    assert decision == Deny("Rule no forbids it.", ("no",))


def test_a_rule_that_fails_denies() -> None:
    assert isinstance(decide(REQUEST, [grant()], Failing(), NOW), Deny)


def test_what_cannot_be_judged_is_denied_and_the_rule_named() -> None:
    decision = decide(REQUEST, [grant()], Fixed(Ruling(forbid=("odd",), problem="it looks at nothing.")), NOW)
    assert isinstance(decision, Deny)
    assert decision.reason.startswith("By Rule odd: It looks at nothing.")


def test_ask_always_takes_once_grants_only() -> None:
    asks = Fixed(Ruling(ask=("each",), permits={0: ("all",)}))
    decision = decide(REQUEST, [grant()], asks, NOW)
    assert isinstance(decision, Ask)
    assert (decision.widths, decision.rules) == ((Width.ONCE,), ("each",))
    assert decide(REQUEST, [ONCE], asks, NOW) == Allow((ONCE,), ("each",))


def test_a_permit_allows_without_a_grant_and_is_named() -> None:
    assert decide(REQUEST, [], Fixed(Ruling(permits={0: ("all",)})), NOW) == Allow((), ("all",))


def test_a_permit_is_nothing_to_an_agent_without_a_name() -> None:
    anonymous = replace(REQUEST, agent=ANONYMOUS)
    assert isinstance(decide(anonymous, [], Fixed(Ruling(permits={0: ("all",)})), NOW), Ask)


def test_a_permit_of_one_need_leaves_the_other_to_grants() -> None:
    other = replace(NEED, scope="admin", risk=Risk.WRITE)
    request = replace(REQUEST, plan=replace(PLAN, needs=(NEED, other)))
    permits = Fixed(Ruling(permits={1: ("second",)}))
    assert decide(request, [grant()], permits, NOW) == Allow((grant(),), ("second",))
    asked = decide(request, [], permits, NOW)
    assert isinstance(asked, Ask)
    assert asked.needs == (NEED,)


def test_a_once_grant_is_not_spent_where_a_standing_one_suffices() -> None:
    assert decide(REQUEST, [ONCE, grant(id="g2")], Fixed(Ruling()), NOW) == Allow((grant(id="g2"),))


@pytest.mark.promise(1)
@given(st.lists(st.sampled_from(sorted(NOT_COVERING)), max_size=16))
def test_no_number_of_grants_that_do_not_cover_ever_allows(names: list[str]) -> None:
    assert isinstance(decide(REQUEST, [NOT_COVERING[name] for name in names], RULES, NOW), Ask)


@given(st.permutations(sorted(COVERING)))
def test_the_order_of_grants_never_matters(names: list[str]) -> None:
    known = {name: replace(covering, id=f"g-{name}") for name, covering in COVERING.items()}
    first = decide(REQUEST, [known[name] for name in sorted(known)], RULES, NOW)
    assert decide(REQUEST, [known[name] for name in names], RULES, NOW) == first
    assert isinstance(decide(REQUEST, [known[name] for name in names], Fixed(FORBIDS), NOW), Deny)


# ---- the digest: each field of what was shown is in it

CHANGED: dict[str, Any] = {
    "action": Files(folder="/", language="shell", program="true"),
    "needs": (replace(NEED, account="home"),),
    "undo_class": UndoClass.EXACT,
    "undo_text": "something else",
    "resolved": {"requests": [2]},
    "bounds": {"requests": 2},
    "catalog_hash": "d",
    "image_id": "j",
    "limits": {"memory": 2},
    "lines": ("a", "c"),
    "undo": {"calls": []},
}


@pytest.mark.promise(2)
@pytest.mark.parametrize("name", [field.name for field in fields(Plan)])
def test_each_field_of_a_plan_changes_the_digest(name: str) -> None:
    assert digest(replace(PLAN, **{name: CHANGED[name]}), agent="bot") != DIGEST


@pytest.mark.parametrize("name", [field.name for field in fields(Need)])
def test_each_field_of_a_need_changes_the_digest(name: str) -> None:
    other: dict[str, Any] = {"risk": Risk.ADMIN, "methods": ("x",), "arguments": ({"channel": "#all"},), "why": "undo"}
    changed = replace(NEED, **{name: other.get(name, "other")})
    assert digest(replace(PLAN, needs=(changed,)), agent="bot") != DIGEST


def test_the_agent_is_in_the_digest() -> None:
    assert digest(PLAN, agent="other") != DIGEST


def test_a_plan_survives_the_journal_with_its_digest() -> None:
    assert digest(from_json(Plan, to_json(PLAN), "It"), agent="bot") == DIGEST


# ---- values that answers fill in

ANSWER = {"$from": 0, "path": "$.messages[0].text"}
PLANNED = {"$ref": ["call-0", "$.messages[0].text"]}


def resting(value: Any) -> Plan:
    return replace(PLAN, needs=(replace(NEED, arguments=({"channel": "#ops", "text": value},)),))


@pytest.mark.promise(6)
@pytest.mark.parametrize("value", [ANSWER, PLANNED, [PLANNED], {"a": {"b": [{"c": PLANNED}]}}, {"a": 1, **PLANNED}])
@pytest.mark.parametrize("constraints", [{}, {"channel": "#ops"}, "the same"])
@pytest.mark.parametrize("width", [Width.SESSION, Width.PERMANENT])
def test_no_standing_grant_and_no_rule_covers_what_an_answer_fills_in(
    value: Any, constraints: Any, width: Width
) -> None:
    plan = resting(value)
    held = {"channel": "#ops", "text": value} if constraints == "the same" else constraints
    given = grant(width=width, session="s1" if width is Width.SESSION else "", constraints=held, only=bool(held))
    given = replace(given, free=("text",))
    request = replace(REQUEST, plan=plan, digest=digest(plan, agent="bot"))
    said = decide(request, [given], Fixed(Ruling(permits={0: ("a rule",)})), NOW)
    assert isinstance(said, Ask)
    assert (said.widths, said.needs) == ((Width.ONCE,), plan.required)
    assert "An answer that nobody has seen yet fills in text of chat.post" in said.reason
    assert "not granted" not in said.reason
    # The same grant, the same rule: the value is written out.
    seen = resting("hi")
    known = replace(REQUEST, plan=seen, digest=digest(seen, agent="bot"))
    free = grant(width=width, session=given.session)
    assert isinstance(decide(known, [free], RULES, NOW), Allow)
    assert isinstance(decide(known, [], Fixed(Ruling(permits={0: ("a rule",)})), NOW), Allow)


def test_a_once_grant_covers_it_since_it_is_bound_to_the_whole_plan() -> None:
    plan = resting(PLANNED)
    request = replace(REQUEST, plan=plan, digest=digest(plan, agent="bot"))
    assert isinstance(decide(request, [grant(width=Width.ONCE, digest=request.digest)], RULES, NOW), Allow)
    other = replace(request, digest="another plan, whose first call reads something else")
    assert isinstance(decide(other, [grant(width=Width.ONCE, digest=request.digest)], RULES, NOW), Ask)


def test_what_no_answer_fills_in_of_the_same_action_is_named_apart() -> None:
    read = replace(NEED, scope="read", methods=("history",), risk=Risk.READ)
    plan = replace(resting(PLANNED), needs=(read, *resting(PLANNED).needs))
    said = decide(replace(REQUEST, plan=plan), [], RULES, NOW)
    assert isinstance(said, Ask)
    assert said.reason.startswith("chat:read is not granted to bot. An answer that nobody has seen yet")
    assert said.widths == (Width.ONCE,)
