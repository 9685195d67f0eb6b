"""What a person reads of an undo and a redo: what these do, and not what the action did."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.goex.databases.conftest import Shop
from tests.goex.databases.servers import Served, on_mariadb, on_postgres
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.entries import Client, changes
from tests.support.person import QUESTION

CASES = {
    "DELETE FROM orders": ("4 rows put back", "4 rows deleted"),
    "UPDATE orders SET total = 0 WHERE id < 3": ("2 rows set back", "2 rows updated"),
    "INSERT INTO orders VALUES (9, 'new', 1, 1)": ("1 row removed", "1 row inserted"),
}


@pytest.fixture(params=["postgresql", "mariadb"])
def served(request: pytest.FixtureRequest, client: Client) -> Iterator[Served]:
    if request.param == "postgresql":
        with on_postgres(request.getfixturevalue("postgres"), client) as made:
            made.add()
            yield made
    else:
        with on_mariadb(request.getfixturevalue("mariadb"), client) as made:
            made.add()
            yield made


def said(shop: Shop | Served, verb: str, id: str) -> str:
    """The screen of a revert, from its question, with all that is behind it, to its end."""
    with shop.client.daemon.terminal(verb, id) as terminal:
        terminal.expect(QUESTION)
        terminal.type("?")
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0, terminal.text
        return terminal.text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sql", CASES)
def test_an_undo_says_what_it_does(shop: Shop, sql: str) -> None:
    back, again = CASES[sql]
    done = shop.run(sql)
    assert changes(done) == [f"orders: {again}"]
    dry = shop.client.daemon.goex("undo", done.action.id, "--dry-run")
    assert f"before the action: {back}." in dry.stdout
    screen = said(shop, "undo", done.action.id)
    assert f"At most {_stepped(back)}" in screen, "the question says the same"
    assert f"as it was before the action: {back}." in screen and f"orders: {back}" in screen
    assert again not in screen
    assert f"orders: {back}" in shop.client.daemon.goex("show").stdout
    assert back in shop.client.daemon.goex("log").stdout
    outcome = json.loads(shop.client.daemon.goex("show", "--json").stdout)["action"]["outcome"]
    assert outcome["changes"] == [f"orders: {back}"]
    screen = said(shop, "redo", done.action.id)
    assert f"as it was after the action: {again}." in screen and back not in screen


def _stepped(back: str) -> str:
    number, noun, how = back.split(" ", 2)
    bound = {"4": "5"}.get(number, number)
    return f"{bound} {noun} of orders {how}"


def test_an_undo_of_a_definition_names_tables(shop: Shop) -> None:
    done = shop.run("DROP TABLE orders")
    assert "1 table dropped" in done.action.outcome_json and "0 rows" not in done.action.outcome_json
    screen = said(shop, "undo", done.action.id)
    assert "before the action: 1 table put back." in screen and "0 rows" not in screen
    made = shop.run("CREATE TABLE more (id INTEGER PRIMARY KEY)")
    assert "before the action: 1 table removed." in said(shop, "undo", made.action.id)
    assert "after the action: 1 table created." in said(shop, "redo", made.action.id)


def test_a_cascade_is_put_back_by_the_undo_itself(shop: Shop) -> None:
    done = shop.run("DELETE FROM customers WHERE id = 1")
    assert any("cascade" in line for line in changes(done))
    undone = shop.client.revert(done.action.id).approve()
    assert sorted(changes(undone)) == ["customers: 1 row put back", "orders: 2 rows put back"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
@pytest.mark.parametrize("sql", CASES)
def test_on_a_server_too_and_of_a_held_change(served: Served, sql: str, policy: str) -> None:
    back, again = CASES[sql]
    done = served.run(sql, policy=policy)
    undone = served.client.revert(done.action.id).approve()
    assert changes(undone)[0] == f"orders: {back}"
    assert f"before the action: {back}." in json.loads(undone.action.outcome_json)["summary"]
    if policy == "reversal":
        redone = served.client.revert(done.action.id, "redo").approve()
        assert changes(redone)[0] == f"orders: {again}"


@pytest.mark.docker
def test_a_pair_says_what_its_statements_did(shop: Shop) -> None:
    up, down = (f"UPDATE orders SET total = total {sign} 10 WHERE status = 'open'" for sign in "+-")
    done = shop.run(up, policy="pairs", undo=down)
    undone = shop.client.revert(done.action.id).approve()
    assert "nothing changed" not in undone.action.outcome_json
    assert changes(undone) == ["orders: 2 rows set back"]


def test_versioning_of_a_file_is_not_said_to_hold(shop: Shop) -> None:
    """It changes the file at once, and another action may write to it: question, outcome, screen and commit say so."""
    sql = "UPDATE orders SET total = 0 WHERE id = 1"
    asked = shop.sql(sql, policy="versioning")
    undo_text = asked.question().undo_text
    assert "changed at once" in undo_text and "transaction is held" not in undo_text
    asked.leave()
    done = shop.run(sql, policy="versioning")
    assert shop.look("SELECT total FROM orders WHERE id = 1") == [(0,)], "everybody sees it"
    summary = json.loads(done.action.outcome_json)["summary"]
    screen = shop.client.daemon.goex("show", done.action.id).stdout
    assert not done.action.held_until and "Held" not in summary and "Held" not in screen
    commit = shop.client.revert(done.action.id, "commit")
    kept = commit.question()
    assert not any("which is held" in line for line in kept.lines), "others saw it at once"
    commit.leave()
    shop.run("UPDATE orders SET total = 1 WHERE id = 2")
    refused = shop.client.revert(done.action.id).ended()
    assert refused.problem.code == "conflict"
