"""What holds of all rules, grants and requests: over those of the table, mixed at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from policies.decisions import Allow, Ask, Decision, Deny, Request, decide
from policies.grants import ANONYMOUS, PERSON, Grant, Width
from policies.rules.book import Answer, RuleBook, fits
from policies.rules.cases import read
from policies.rules.facts import Question, questions
from policies.rules.source import Effect, Policy, each
from tests.policies.rules.table import CATALOG, cases, default_names, rules
from tests.support.examples import sized

NAMES = sorted(rules())
names = st.lists(st.sampled_from(NAMES), unique=True, max_size=8)
methods = sorted(method.id for service in CATALOG.services.values() for method in service.methods.values())

# Requests: those of the table with other agents, kinds, accounts and times.
requests = st.builds(
    lambda case, changes: read({**case.case, **changes}, CATALOG),
    st.sampled_from(cases()),
    st.fixed_dictionaries(
        {},
        optional={
            "agent": st.sampled_from(["bot", "helper", PERSON, ANONYMOUS]),
            "account": st.sampled_from(["home", "work"]),
            "at": st.datetimes(datetime(2026, 1, 1), datetime(2026, 4, 1), timezones=st.just(UTC)),
            "risk": st.sampled_from(["read", "write", "delete", "admin"]),
            "undo": st.sampled_from(["exact", "compensating", "irreversible", "nothing"]),
            "rate": st.fixed_dictionaries({"minute": st.integers(0, 200)}),
            "granted": st.just([]),
        },
    ),
)


def book(chosen: list[str], order: list[int] | None = None) -> RuleBook:
    texts = [rules()[name].text for name in chosen]
    return RuleBook.of(
        {"some.cedar": "\n".join(texts if order is None else [texts[index] for index in order])}, CATALOG
    )


def grants_of(request: Request, now: datetime, widths: list[Width]) -> list[Grant]:
    """Grants that together cover all of a request."""
    return [
        Grant(
            id=f"g-{place}-{index}",
            agent=request.agent,
            service=need.service,
            account=need.account,
            scope=need.scope,
            width=width,
            created=now,
            expires=None,
            by="a test",
            why="a-1",
            digest=request.digest if width is Width.ONCE else "",
            session=request.session if width is Width.SESSION else "",
        )
        for place, width in enumerate(widths)
        for index, need in enumerate(request.plan.required)
    ]


def rank(decision: Decision) -> int:
    return {Deny: 0, Ask: 1, Allow: 2}[type(decision)]


widths = st.lists(st.sampled_from(list(Width)), max_size=3)


@pytest.mark.promise(13)
@sized(30, 400, names, requests, widths)
def test_no_grant_widens_a_forbid(chosen: list[str], asked: Any, given_: list[Width]) -> None:
    request, _, now = asked
    alone = decide(request, [], book(chosen), now)
    granted = decide(request, grants_of(request, now, given_), book(chosen), now)
    assert isinstance(granted, Deny) == isinstance(alone, Deny)
    if isinstance(alone, Deny):
        assert granted == alone


@pytest.mark.promise(13)
@sized(30, 400, names, requests, st.lists(st.sampled_from([Width.SESSION, Width.PERMANENT]), min_size=1, max_size=3))
def test_no_standing_grant_answers_a_rule_that_asks(chosen: list[str], asked: Any, given_: list[Width]) -> None:
    request, _, now = asked
    decision = decide(request, grants_of(request, now, given_), book(chosen), now)
    if book(chosen).judge(request, now).ask:
        assert not isinstance(decision, Allow)
    if request.agent == ANONYMOUS:
        assert not isinstance(decision, Allow)


@pytest.mark.promise(13)
@sized(30, 400, names, requests, st.randoms(use_true_random=False))
def test_the_order_of_rules_never_matters(chosen: list[str], asked: Any, random: Any) -> None:
    request, grants, now = asked
    order = list(range(len(chosen)))
    random.shuffle(order)
    assert decide(request, grants, book(chosen), now) == decide(request, grants, book(chosen, order), now)


@sized(30, 400, names, requests, st.lists(st.sampled_from(list(Width)), min_size=1, max_size=3), st.randoms())
def test_the_order_of_grants_never_matters(chosen: list[str], asked: Any, given_: list[Width], random: Any) -> None:
    request, _, now = asked
    grants = grants_of(request, now, given_)
    shuffled = list(grants)
    random.shuffle(shuffled)
    assert decide(request, grants, book(chosen), now) == decide(request, shuffled, book(chosen), now)


@sized(30, 400, names, st.sampled_from(NAMES), requests)
def test_adding_a_forbid_or_an_ask_never_allows_more(chosen: list[str], added: str, asked: Any) -> None:
    if added in chosen or rules()[added].effect is Effect.PERMIT:
        return
    request, grants, now = asked
    assert rank(decide(request, grants, book([*chosen, added]), now)) <= rank(
        decide(request, grants, book(chosen), now)
    )


@pytest.mark.promise(13)
@sized(30, 400, names, st.sampled_from(NAMES), requests)
def test_adding_a_permit_never_overrides_a_forbid_or_an_ask(chosen: list[str], added: str, asked: Any) -> None:
    if added in chosen or rules()[added].effect is not Effect.PERMIT:
        return
    request, _, now = asked
    before, after = (book(some).judge(request, now) for some in (chosen, [*chosen, added]))
    # A permit that can't be evaluated forbids by itself, and is told alone.
    assert set(before.forbid) <= set(after.forbid) or (after.forbid == (added,) and after.problem)
    if before.forbid or before.ask:
        assert not isinstance(decide(request, [], book([*chosen, added]), now), Allow)


@sized(30, 400, names, requests)
def test_a_permit_is_the_only_rule_that_allows(chosen: list[str], asked: Any) -> None:
    request, _, now = asked
    without = [name for name in chosen if rules()[name].effect is not Effect.PERMIT]
    assert not isinstance(decide(request, [], book(without), now), Allow)


@sized(
    30, 400, requests, st.lists(st.sampled_from([Width.SESSION, Width.PERMANENT]), min_size=1, max_size=3), st.data()
)
def test_taking_one_grant_away_takes_exactly_that_away(asked: Any, given_: list[Width], data: Any) -> None:
    request, _, now = asked
    grants = grants_of(request, now, given_)
    taken = data.draw(st.sampled_from(grants))
    gone = replace(taken, revoked=now - timedelta(seconds=1))
    after = [gone if grant is taken else grant for grant in grants]
    without = [grant for grant in grants if grant is not taken]
    assert decide(request, after, RuleBook.of({}), now) == decide(request, without, RuleBook.of({}), now)


# ---- what is left out of an evaluation never matters


def unsliced(rule_book: RuleBook, question: Question) -> Answer:
    """What `answer` has to say, too: over every policy, none left out by its head."""
    return rule_book._judged(question, tuple(range(len(rule_book.policies))), rule_book._chosen(question)[1])


def one_by_one(chosen: list[str], question: Question) -> tuple[Effect | None, frozenset[str]]:
    """The answer as it is defined: each rule alone, with no index and no other rule about."""
    said: dict[Effect, set[str]] = {effect: set() for effect in Effect}
    for name in (*default_names(), *chosen):
        policy = rules().get(name) or next(p for p in RuleBook.of({}).policies if p.name == name)
        answer = unsliced(RuleBook((policy,), CATALOG), question)
        if answer.effect is not None:
            said[answer.effect].add(name)
    for effect in (Effect.FORBID, Effect.ASK, Effect.PERMIT):
        if said[effect]:
            return effect, frozenset(said[effect])
    return None, frozenset()


@pytest.mark.promise(13)
@sized(30, 400, names, requests)
def test_an_answer_is_the_same_by_slice_by_the_whole_set_and_rule_by_rule(chosen: list[str], asked: Any) -> None:
    request, _, now = asked
    rule_book = book(chosen)
    for question in questions(request.plan, agent=request.agent, situation=request.situation, now=now, catalog=CATALOG):
        sliced, whole = rule_book.answer(question), unsliced(rule_book, question)
        assert (sliced.effect, sorted(sliced.rules)) == (whole.effect, sorted(whole.rules))
        effect, by = one_by_one(chosen, question)
        assert sliced.effect is effect
        assert sliced.problem or frozenset(sliced.rules) == by


HEADS = st.tuples(
    st.sampled_from(
        ["principal", 'principal == Agent::"bot"', 'principal in Agent::"bot"', "principal is Agent",
         'principal is Agent in Agent::"bot"', 'principal == Agent::"other"', 'principal == Robot::"bot"']
    ),
    st.sampled_from(
        ["action", 'action == Action::"call"', 'action in Action::"revert"', 'action in [Action::"files"]',
         'action == Action::"revert"', 'action in Action::"call"', 'action in []']
    ),
    st.sampled_from(
        ["resource", 'resource == Method::"slack.users.list"', 'resource in Service::"slack"', "resource is Method",
         'resource is Method in Service::"slack"', 'resource is Folder', 'resource == Service::"slack"',
         'resource in Folder::"/home"', 'resource is Folder in Folder::"/"', 'resource in Method::"slack.users.list"',
         'resource is Service in Service::"slack"', 'resource == Folder::"/home/you"', 'resource in Folder::"/home/"']
    ),
)  # fmt: skip
TARGETS: tuple[Mapping[str, Any], ...] = (
    {"call": "slack.users.list"},
    {"call": "slack.conversations.list", "kind": "undo"},
    {"call": "matrix.rooms.list"},
    {"folder": "/home/you"},
    {"folder": "/home/you", "kind": "redo"},
    {"folder": "/"},
    {"folder": "/home"},
)


@pytest.mark.promise(13)
@sized(
    100,
    2000,
    HEADS,
    st.sampled_from(["permit", "forbid"]),
    st.sampled_from(TARGETS),
    st.sampled_from(["bot", "helper"]),
)
def test_a_rule_that_could_apply_is_never_left_out(head: Any, effect: str, target: Any, agent: str) -> None:
    """Cedar's own answer without any index, for every shape that a head can have."""
    text = f'@id("x") {effect} ({", ".join(head)});'
    (policy,) = each({"x.cedar": text})
    assert isinstance(policy, Policy)
    request, _, now = read({"agent": agent, **target}, CATALOG)
    (question,) = questions(request.plan, agent=agent, situation=request.situation, now=now, catalog=CATALOG)
    alone = RuleBook((policy,), CATALOG)
    applies = unsliced(alone, question).effect is not None
    assert applies == (alone.answer(question).effect is not None)
    assert not applies or fits(policy, question)


attributes = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=12)


@pytest.mark.promise(13)
@sized(30, 400, st.sampled_from(methods), attributes)
def test_an_attribute_that_is_not_there_denies(method: str, attribute: str) -> None:
    """Cedar skips a forbid that errs; here it denies, whatever the attribute and the method are."""
    quoted = attribute.replace("\\", "").replace('"', "")
    request, _, now = read({"call": method}, CATALOG)
    (question,) = questions(request.plan, agent="bot", situation=request.situation, now=now, catalog=CATALOG)
    there = {
        "context": {*question.context, "arguments"},
        "context.arguments": set(),
        "context.session": {"seconds", "actions"},
    }
    for base, known in there.items():
        if quoted in known:
            continue
        text = f'@id("x") forbid (principal, action, resource) when {{ {base}["{quoted}"] == "1" }};'
        rule_book = RuleBook.of({"x.cedar": text, "y.cedar": '@id("y") permit (principal, action, resource);'}, CATALOG)
        decision = decide(request, [], rule_book, now)
        assert isinstance(decision, Deny)
        assert "x" in decision.rules
