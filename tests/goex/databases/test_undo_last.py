"""`goex undo` without an id: which action it takes, what it passes over, and that it asks before an older one."""

from __future__ import annotations

import pytest

from tests.goex.databases.conftest import Shop
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.person import QUESTION

FIRST, SECOND = ("UPDATE orders SET status = 'sent' WHERE id = 1", "UPDATE orders SET status = 'sent' WHERE id = 2")


@pytest.fixture
def ids(shop: Shop) -> tuple[str, str]:
    """Two actions, of which the newer one was committed."""
    older, newer = shop.run(FIRST).action.id, shop.run(SECOND).action.id
    assert not shop.client.revert(newer, "commit").approve().HasField("problem")
    return older, newer


def test_without_a_terminal_an_older_action_is_never_taken(shop: Shop, ids: tuple[str, str]) -> None:
    older, newer = ids
    for more in ((), ("--json",)):
        ran = shop.client.daemon.goex("undo", *more)
        assert ran.returncode == 10, ran.stderr
        for words in (newer, SECOND, "it was committed: what undo would need is gone", f"goex undo {older}"):
            assert words in ran.stderr
    assert [row[1] for row in shop.orders()] == ["sent", "sent", "paid", "paid"]


@pytest.mark.parametrize("said", ["", "no"])
def test_at_a_terminal_it_asks_first(shop: Shop, ids: tuple[str, str], said: str) -> None:
    older, newer = ids
    with shop.client.daemon.terminal("undo") as terminal:
        terminal.expect(f"undo isn't possible for {newer}: ")
        terminal.expect("it was committed")
        terminal.expect(f"The newest action that undo is possible for is {older}: ")
        terminal.expect(rf"Undo {older} \(yes or no\) \[no\]: ")
        terminal.type(said)
        assert terminal.wait() == 3
    assert "? more" not in terminal.text, "nothing was asked for"
    assert [row[1] for row in shop.orders()] == ["sent", "sent", "paid", "paid"]


def test_after_a_yes_it_takes_the_older_one(shop: Shop, ids: tuple[str, str]) -> None:
    older, _ = ids
    with shop.client.daemon.terminal("undo") as terminal:
        terminal.expect(rf"Undo {older} \(yes or no\) \[no\]: ")
        terminal.type("yes")
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0, terminal.text
    assert [row[1] for row in shop.orders()] == ["open", "sent", "paid", "paid"]


def test_a_commit_asks_too_and_a_dry_run_only_says(shop: Shop, ids: tuple[str, str]) -> None:
    older, newer = ids
    dry = shop.client.daemon.goex("undo", "--dry-run")
    assert dry.returncode == 0 and newer in dry.stderr and "1 row set back" in dry.stdout
    waiting = shop.sql("UPDATE orders SET total = 0 WHERE id = 3")
    question = waiting.question()
    ran = shop.client.daemon.goex("commit")
    assert ran.returncode == 10 and f"commit isn't possible for {waiting.action_id}" in ran.stderr
    assert "it waits for your decision" in ran.stderr and f"goex commit {older}" in ran.stderr
    waiting.deny_known(question.id)


def test_a_read_and_what_is_undone_already_are_not_in_the_way(shop: Shop) -> None:
    older, newer = shop.run(FIRST).action.id, shop.run(SECOND).action.id
    shop.run("SELECT id FROM orders")
    assert not shop.client.revert(newer).approve().HasField("problem")
    with shop.client.daemon.terminal("undo") as terminal:
        terminal.expect(QUESTION)
        terminal.type("no")
        assert terminal.wait() == 3
    assert f'"target": "{older}"' in shop.client.daemon.goex("show", "--json").stdout
    assert "isn't possible" not in terminal.text
