"""What one answer settles: itself; with a no, the identical ones that were named; with a standing grant, whatever it
covers; and what a grant is held to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goex.engine import authorize, grant_lookup
from goex.engine.approvals import AlreadySettled
from goex.engine.events import Approval
from goex.engine.grant_issue import Choice, Yes, bindable, bounds, freeable
from goex.journal.states import State
from policies.actions import Action, Files, Need, Plan, Revert, UndoClass
from policies.decisions import Allow, Ask
from policies.errors import InvalidInput
from policies.grants import ANONYMOUS, Width
from policies.services import Risk
from tests.goex.engine.conftest import ASKER, Desk

OTHER = replace(ASKER, session="conn-2")


def need(
    account: str = "/x", *arguments: dict[str, Any], scope: str = "run", methods: tuple[str, ...] = ("run",)
) -> Need:
    return Need(service="files", account=account, scope=scope, risk=Risk.WRITE, methods=methods, arguments=arguments)


@pytest.fixture
def needing(desk: Desk) -> Callable[[Callable[[Action], tuple[Need, ...]]], None]:
    """Makes the runtime's plans need what a function of the action says."""
    plain = desk.runtime.plan

    def set_to(needs: Callable[[Action], tuple[Need, ...]]) -> None:
        desk.runtime.plan = lambda action: replace(plain(action), needs=needs(action))  # type: ignore[method-assign]

    return set_to


def program(number: object) -> Files:
    return Files(folder="/x", language="shell", program=f"echo {number}")


def by_program(action: Action) -> tuple[Need, ...]:
    return (need("/x", {"program": getattr(action, "program", "")}),)


def states(desk: Desk, *questions: Approval) -> list[str]:
    return [desk.core.approvals.get(question.id).state for question in questions]


# ---- twins


@pytest.mark.promise(19)
async def test_identical_requests_stand_in_one_place_and_once_is_for_one(desk: Desk) -> None:
    duplicates = [await desk.asked() for _ in range(3)]
    (shown,) = desk.core.approvals.pending()
    assert shown.id == duplicates[0].id
    assert desk.core.approvals.queue.duplicates(shown.id) == tuple(twin.id for twin in duplicates)
    desk.answer(shown)
    await desk.until(shown.action_id, State.DONE)
    assert states(desk, *duplicates) == ["approved", "pending", "pending"]
    assert [question.id for question in desk.core.approvals.pending()] == [duplicates[1].id]
    assert desk.runtime.ran == [shown.action_id]


@pytest.mark.promise(19)
async def test_a_no_is_for_the_identical_ones_that_are_named_and_for_no_others(desk: Desk) -> None:
    first, second, third = [await desk.asked() for _ in range(3)]
    other = await desk.asked(program(1))
    elsewhere = await desk.asked(principal=OTHER)
    done = desk.engine.asking.deny(
        first.id, by="me", reason="no", same_as=[second.id, other.id, elsewhere.id, "q-unknown"]
    )
    assert done.also == (second.id,)
    assert states(desk, first, second, third, other, elsewhere) == ["denied", "denied", "pending", "pending", "pending"]
    for question in (first, second):
        row = await desk.until(question.action_id, State.DENIED)
        assert "denied it: no." in row.problem


async def test_a_no_to_what_is_settled_settles_none_of_its_twins(desk: Desk) -> None:
    first, second = await desk.asked(), await desk.asked()
    desk.answer(first, approve=False)
    with pytest.raises(AlreadySettled):
        desk.engine.asking.deny(first.id, by="me", same_as=[second.id])
    assert states(desk, second) == ["pending"]


@pytest.mark.sampled(1)
@pytest.mark.promise(19)
@pytest.mark.parametrize("choice", [Choice.SESSION, Choice.PERMANENT])
async def test_a_standing_yes_runs_all_twins_each_once(desk: Desk, choice: Choice) -> None:
    duplicates = [await desk.asked() for _ in range(5)]
    elsewhere = await desk.asked(principal=OTHER)
    done = desk.engine.asking.approve(duplicates[0].id, shown=duplicates[0].digest, yes=Yes(choice=choice, by="me"))
    wide = choice is Choice.PERMANENT  # which is for the agent's other sessions too
    assert set(done.also) == {twin.id for twin in duplicates[1:]} | ({elsewhere.id} if wide else set())
    covered = [*duplicates, *([elsewhere] if wide else [])]
    for twin in covered:
        await desk.until(twin.action_id, State.DONE)
    assert sorted(desk.runtime.ran) == sorted(twin.action_id for twin in covered)
    assert states(desk, elsewhere) == ["approved" if wide else "pending"]


async def test_what_a_grant_settles_is_journaled_as_that(desk: Desk) -> None:
    first, second = await desk.asked(program(1)), await desk.asked(program(2))
    done = desk.engine.asking.approve(first.id, shown=first.digest, yes=Yes(choice=Choice.SESSION, by="me"))
    assert done.also == (second.id,)
    await desk.until(second.action_id, State.DONE)
    (grant,) = desk.core.grant_store.grants()
    (covered,) = desk.core.journal.rows(kind="covered")
    assert covered.action_id == second.action_id
    facts = json.loads(covered.facts)
    assert (facts["by"], facts["grants"], facts["question"]) == ("goex", [grant.id], second.id)
    assert desk.core.approvals.get(second.id).settled_by == f"grant {grant.id}"


async def test_what_a_grant_does_not_cover_stays_asked(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    needing(by_program)
    same, other = await desk.asked(program(1)), await desk.asked(program(2))
    done = desk.engine.asking.approve(same.id, shown=same.digest, yes=Yes(choice=Choice.ARGUMENTS, by="me"))
    assert done.also == ()
    assert states(desk, other) == ["pending"]


async def test_what_cannot_be_taken_back_is_not_settled_by_a_grant(desk: Desk) -> None:
    plain = desk.runtime.plan

    def plan(action: Action) -> Plan:
        hard = isinstance(action, Files) and action.program == "echo hard"
        return replace(plain(action), undo_class=UndoClass.IRREVERSIBLE if hard else UndoClass.COMPENSATING)

    desk.runtime.plan = plan  # type: ignore[method-assign]
    hard, soft = await desk.asked(program("hard")), await desk.asked(program("soft"))
    assert desk.core.approvals.get(hard.id).widths == ("once",)
    desk.engine.asking.approve(soft.id, shown=soft.digest, yes=Yes(choice=Choice.PERMANENT, by="me"))
    await desk.until(soft.action_id, State.DONE)
    assert states(desk, hard) == ["pending"]


async def test_a_grant_of_one_agent_settles_nothing_of_another(desk: Desk) -> None:
    mine, other = await desk.asked(), await desk.asked(principal=replace(ASKER, agent="other"))
    nobody = await desk.asked(principal=replace(ASKER, agent=ANONYMOUS))
    desk.answer(mine, choice=Choice.PERMANENT)
    assert states(desk, other, nobody) == ["pending", "pending"]


async def test_a_grant_that_is_revoked_before_it_is_used_runs_nothing(desk: Desk) -> None:
    first, second = await desk.asked(program(1)), await desk.asked(program(2))
    desk.engine.asking.approve(first.id, shown=first.digest, yes=Yes(choice=Choice.SESSION, by="me"))
    desk.core.grant_store.revoke([grant.id for grant in desk.core.grant_store.grants()], by="me")
    row = await desk.until(first.action_id, State.DENIED)
    assert "doesn't cover all of it any more" in row.problem
    # Nobody said yes to the other one: it is asked for once more, and runs when they do.
    again = await asked_again(desk, second)
    assert not desk.runtime.ran
    desk.answer(again)
    await desk.until(second.action_id, State.DONE)


async def test_what_a_rule_wants_asked_by_then_is_asked_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grant may cover many at once; how many may run unasked is for the rules to say as they run."""
    questions = [await desk.asked(program(number)) for number in range(3)]
    decision, answers = desk.engine.asking.decision, [0]

    def strict(self: Any, row: Any, plan: Plan) -> Any:
        found = decision(row, plan)
        if row.id == questions[2].action_id and isinstance(found, Allow):
            answers[0] += 1
            if answers[0] == 2:  # the first time it was settled by the grant, the second it is about to run
                return Ask(plan.required, (Width.ONCE,), True, "Rule burst wants it asked.", ("burst",))
        return found

    monkeypatch.setattr(authorize.Asking, "decision", strict)
    done = desk.engine.asking.approve(
        questions[0].id, shown=questions[0].digest, yes=Yes(choice=Choice.SESSION, by="me")
    )
    assert len(done.also) == 2
    again = await asked_again(desk, questions[2])
    assert (again.widths, again.reason) == (("once",), "Rule burst wants it asked.")
    assert questions[2].action_id not in desk.runtime.ran
    assert [row.action_id for row in desk.core.journal.rows(kind="asked-again")] == [questions[2].action_id]
    desk.answer(again, approve=False)
    await desk.until(questions[2].action_id, State.DENIED)


async def asked_again(desk: Desk, question: Approval) -> Approval:
    for _ in range(60_000):
        found = desk.core.approvals.of_action(question.action_id)
        if len(found) == 2:
            assert (found[0].state, found[1].state) == ("approved", "pending")
            return found[1]
        await asyncio.sleep(0.005)
    raise AssertionError(f"It isn't asked again: {found}")


# ---- denying much at once


async def test_all_of_an_agent_or_of_a_session_is_denied_and_nothing_else(desk: Desk) -> None:
    mine, twin, later = await desk.asked(), await desk.asked(), await desk.asked(principal=OTHER)
    other = await desk.asked(principal=replace(ASKER, agent="other"))
    deny_all = desk.engine.asking.deny_all
    assert set(deny_all(agent="", session="conn-2", by="me")) == {later.id}
    assert deny_all(agent="bot", session="conn-2", by="me") == ()
    assert set(deny_all(agent="bot", session="", by="me", reason="enough")) == {mine.id, twin.id}
    assert states(desk, mine, twin, later, other) == ["denied", "denied", "denied", "pending"]
    assert "enough" in (await desk.until(mine.action_id, State.DENIED)).problem
    with pytest.raises(InvalidInput):
        deny_all(agent="", session="", by="me")


# ---- what a grant is held to


@pytest.mark.promise(19)
async def test_always_with_these_arguments_is_for_exactly_these(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    needing(by_program)
    question = await desk.asked(program(1))
    assert desk.core.approvals.get(question.id).widths == ("once", "session", "arguments", "permanent")
    desk.answer(question, choice=Choice.ARGUMENTS)
    await desk.until(question.action_id, State.DONE)
    await desk.until(desk.ask(program(1)), State.DONE)
    await desk.until(desk.ask(program(2)), State.ASKING)
    (grant,) = desk.core.grant_store.grants()
    assert (grant.width, grant.methods, grant.only, grant.uses) == (Width.PERMANENT, ("run",), True, 2)
    for wrong in (
        need("/x", {"program": "echo 1", "more": "x"}),
        need("/x", {"program": "echo 1"}, {"program": "echo 2"}),
        need("/x", {"program": "echo 1"}, methods=("run", "other")),
        need("/x", {}),
        need("/x"),
        need("/y", {"program": "echo 1"}),
    ):
        assert not grant.covers(wrong, agent="bot", digest="", session="", now=desk.core.clock()), wrong
    assert grant.covers(need("/x", {"program": "echo 1"}), agent="bot", digest="", session="", now=desk.core.clock())


async def test_a_value_that_was_let_go_may_be_anything_of_that_method(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    needing(lambda action: (need("/x", {"to": "ops", "text": getattr(action, "program", "")}),))
    question = await desk.asked(program(1))
    desk.answer(question, choice=Choice.ARGUMENTS, bound=("to",))
    await desk.until(desk.ask(program(2)), State.DONE)
    (grant,) = desk.core.grant_store.grants()
    assert (dict(grant.constraints), grant.free) == ({"to": "ops"}, ("text",))
    for other in (
        need("/x", {"to": "ops", "text": "x"}, methods=("delete",)),
        need("/x", {"to": "ops", "text": "x", "bcc": "eve"}),  # which nobody was shown
        need("/x", {"to": "ops"}, {"to": "ops", "text": "x", "bcc": "eve"}),
    ):
        assert not grant.covers(other, agent="bot", digest="", session="", now=desk.core.clock()), other
    assert grant.covers(need("/x", {"to": "ops"}), agent="bot", digest="", session="", now=desk.core.clock())


async def test_nothing_is_bound_to_what_has_no_one_value(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    needing(lambda action: (need("/x", {"to": "a"}, {"to": "b"}),))
    question = await desk.asked()
    assert desk.core.approvals.get(question.id).widths == ("once", "session", "permanent")
    for bound in (("to",), ("unknown",)):
        with pytest.raises(InvalidInput, match="can't be bound"):
            desk.answer(question, choice=Choice.PERMANENT, bound=bound)
    with pytest.raises(InvalidInput, match="can't be granted as"):
        desk.answer(question, choice=Choice.ARGUMENTS)
    assert states(desk, question) == ["pending"]


def test_each_need_is_bound_to_its_own_values() -> None:
    mail, chat = need("/a", {"to": "x", "text": "y"}), need("/b", {"channel": "c"}, {"channel": "c", "text": "z"})
    plan = Plan(
        action=Revert(verb="undo", target="a"), needs=(mail, chat), undo_class=UndoClass.NOTHING, undo_text="",
        resolved={}, bounds={}, catalog_hash="", image_id="", limits={}, lines=(),
    )  # fmt: skip
    assert bindable(plan) == ("channel", "text", "to")
    assert bindable(replace(plan, needs=(mail, need("/c")))) == ()
    assert freeable(replace(plan, needs=(need("/a", {"operation": "o", "to": "x"}),))) == ("to",)
    names = bindable(plan)
    assert bounds(mail, names) == {"constraints": {"to": "x", "text": "y"}, "methods": ["run"], "free": []}
    assert bounds(chat, names) == {"constraints": {"channel": "c"}, "methods": ["run"], "free": ["text"]}


async def test_a_grant_is_for_what_was_not_granted_yet(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    needing(lambda action: (need("/x", scope="a"),))
    desk.answer(await desk.asked(program(1)), choice=Choice.PERMANENT)
    needing(lambda action: (need("/x", scope="a"), need("/x", scope="b")))
    desk.answer(await desk.asked(program(2)), choice=Choice.SESSION)
    assert sorted((grant.scope, grant.width) for grant in desk.core.grant_store.grants()) == [
        ("a", "permanent"),
        ("b", "session"),
    ]


async def test_no_grant_lasts_longer_than_its_width_may(desk: Desk) -> None:
    for number, (choice, longest) in enumerate(
        [(Choice.SESSION, timedelta(hours=8)), (Choice.PERMANENT, timedelta(days=365))]
    ):
        question = await desk.asked(program(number), replace(ASKER, agent=f"bot-{number}"))
        desk.answer(question, choice=choice, lasts=timedelta(days=4000))
        (grant,) = [grant for grant in desk.core.grant_store.grants() if grant.agent == f"bot-{number}"]
        assert grant.expires is not None and grant.expires - grant.created == longest


@pytest.mark.sampled(2)
@pytest.mark.parametrize("choice", Choice)
async def test_a_standing_grant_is_bound_to_the_catalog_of_now(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None],
    choice: Choice,
) -> None:  # fmt: skip
    needing(by_program)
    seen = {"run": "e" * 64}
    monkeypatch.setattr(authorize, "entries", lambda catalog, need: dict(seen) if catalog is desk.core.catalog else {})
    monkeypatch.setattr(grant_lookup, "entry", lambda catalog, service, method: seen[method])
    question = await desk.asked()
    desk.answer(question, choice=choice)
    await desk.until(question.action_id, State.DONE)
    (grant,) = desk.core.grant_store.grants(everything=True)
    assert dict(grant.entries) == ({} if choice is Choice.ONCE else seen)
    if choice is not Choice.ONCE:
        await desk.until(desk.ask(), State.DONE)
        seen["run"] = "f" * 64  # an import came
        again = await desk.asked()
        assert "files.run changed since then in the imported catalog" in desk.core.approvals.get(again.id).reason


# ---- the deadline and the queue


async def test_a_question_that_ran_out_makes_place_for_its_twin(desk: Desk) -> None:
    desk.core.settings = replace(desk.core.settings, ask_seconds=0.3)
    first = desk.ask()
    await desk.until(first, State.ASKING, State.DENIED)  # it may have run out before anybody looked
    desk.core.settings = replace(desk.core.settings, ask_seconds=300.0)
    second = await desk.asked()
    await desk.until(first, State.DENIED)
    await asyncio.sleep(0)
    assert [question.id for question in desk.core.approvals.pending()] == [second.id]
    decided = desk.engine.asking.decision(*_row_and_plan(desk, second))
    assert not isinstance(decided, Allow)


def _row_and_plan(desk: Desk, question: Approval) -> Any:
    row = desk.core.actions.get(question.action_id)
    return row, row.the_plan()


# ---- what answers fill in


@pytest.mark.promise(6)
async def test_no_standing_yes_where_an_answer_fills_in_an_argument(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    """Also not where the question's own row says that it may be: that file can be written by others."""
    needing(lambda action: (need("/x", {"text": [{"$ref": ["call-0", "$.a"]}]}),))
    question = await desk.asked()
    assert question.widths == ("once",)
    plan = desk.core.actions.get(question.action_id).the_plan()
    assert bindable(plan) == ()
    with desk.core.journal.transaction() as transaction:
        transaction.connection.exec_driver_sql(
            'UPDATE approvals SET widths = \'["arguments","once","permanent","session"]\''
        )
    for choice in (Choice.SESSION, Choice.ARGUMENTS, Choice.PERMANENT):
        with pytest.raises(InvalidInput, match="nobody has seen yet fills in text of files"):
            desk.answer(question, choice=choice)
    assert not desk.core.grant_store.grants()
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)


@pytest.mark.promise(6)
async def test_actions_whose_references_stand_on_other_calls_are_no_twins(
    desk: Desk, needing: Callable[[Callable[[Action], tuple[Need, ...]]], None]
) -> None:
    """What they need is the same to the letter; what differs is the call before."""
    needing(lambda action: (need("/x", {"text": {"$ref": ["call-0", "$.a"]}}),))
    good, bad = await desk.asked(program("good")), await desk.asked(program("bad"))
    assert desk.core.approvals.queue.duplicates(good.id) == (good.id,)
    desk.answer(good)
    await desk.until(good.action_id, State.DONE)
    assert states(desk, bad) == ["pending"]
    assert desk.runtime.ran == [good.action_id]
