"""Pairs: a change with the statements that are said to take it back, tried in a container before anybody is asked."""

from __future__ import annotations

import pytest

from tests.goex.databases.conftest import Shop
from tests.support.journey import decide

pytestmark = pytest.mark.docker

RAISE = "UPDATE orders SET total = total + 10 WHERE status = 'open'"
LOWER = "UPDATE orders SET total = total - 10 WHERE status = 'open'"


def test_a_pair_that_holds_is_asked_about_and_takes_it_back(shop: Shop) -> None:
    before = shop.orders()
    asked = shop.sql(RAISE, policy="pairs", undo=LOWER)
    question = asked.question()
    text = "\n".join(question.lines)
    assert "are said to take it back" in text and "total - 10" in text
    assert question.undo_class == "compensating"
    assert "pairs" in {need.scope for need in question.needs}
    decide(shop.client.daemon, question)
    done = asked.finished()
    assert not done.HasField("problem"), done.problem
    after = shop.orders()
    assert [row[2] for row in after] == [15, 17, 9, 11]
    for _ in range(2):
        undone = shop.client.revert(done.action.id).approve()
        assert not undone.HasField("problem"), undone.problem
        assert shop.orders() == before
        redone = shop.client.revert(done.action.id, "redo").approve()
        assert not redone.HasField("problem"), redone.problem
        assert shop.orders() == after


def test_a_pair_that_doesnt_hold_is_refused_unasked_and_never_tried_again(shop: Shop) -> None:
    wrong = "UPDATE orders SET total = total - 9 WHERE status = 'open'"
    refused = shop.sql(RAISE, policy="pairs", undo=wrong).ended()
    assert refused.problem.code == "pair" and refused.problem.details
    again = shop.sql(RAISE, policy="pairs", undo=wrong).ended()
    assert again.problem.code == "pair" and "failed before" in again.problem.message
    assert [row[2] for row in shop.orders()] == [5, 7, 9, 11]


@pytest.mark.promise(79)
def test_a_pair_that_turns_out_wrong_is_rolled_back_and_the_rows_take_it_back(shop: Shop) -> None:
    """The undo leaves out one value, which no made-up row had."""
    shop.change("UPDATE orders SET total = 30 WHERE id = 1")
    before = shop.orders()
    done = shop.run(RAISE, policy="pairs", undo=f"{LOWER} AND total * 1 <> 40")
    after = shop.orders()
    refused = shop.client.revert(done.action.id).approve()
    assert refused.problem.code == "conflict" and shop.orders() == after, refused.problem
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    assert shop.orders() == before
    again = shop.sql(RAISE, policy="pairs", undo=f"{LOWER} AND total * 1 <> 40").ended()
    assert again.problem.code == "pair" and "failed before" in again.problem.message


def test_a_pair_that_would_touch_another_row_is_rolled_back(shop: Shop) -> None:
    done = shop.run(RAISE, policy="pairs", undo=LOWER)
    shop.change("INSERT INTO orders VALUES (9, 'open', 50, 3)")
    rows = shop.orders()
    refused = shop.client.revert(done.action.id).approve()
    assert refused.problem.code == "conflict" and shop.orders() == rows, refused.problem


def test_a_pair_whose_rows_somebody_changed_touches_nothing(shop: Shop) -> None:
    done = shop.run(RAISE, policy="pairs", undo=LOWER)
    shop.change("UPDATE orders SET status = 'gone' WHERE id = 1")
    rows = shop.orders()
    refused = shop.client.revert(done.action.id).ended()
    assert refused.problem.code == "conflict" and shop.orders() == rows


def test_a_pair_needs_its_undo_and_nothing_else_takes_one(shop: Shop) -> None:
    assert shop.sql(RAISE, policy="pairs").ended().problem.code == "invalid"
    assert shop.sql(RAISE, policy="reversal", undo=LOWER).ended().problem.code == "invalid"


def test_a_standing_permission_for_a_table_is_none_for_a_models_undo(shop: Shop) -> None:
    token = shop.client.daemon.add_agent(f"d{shop.name}")
    shop.sql(RAISE, token=token).approve("session")
    asked = shop.sql(RAISE, policy="pairs", undo=LOWER, token=token)
    missing = [need.scope for need in asked.question().needs if not need.granted and need.why == "action"]
    assert missing == ["pairs"]
    asked.leave()
