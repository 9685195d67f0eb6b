"""SQLite under `versioning`: the whole file is what undo puts back, so whatever GoEx wrote there later stands on it."""

from __future__ import annotations

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.databases.conftest import Shop
from tests.support.daemon import APPROVAL_PASSPHRASE

FIRST, SECOND = ("UPDATE orders SET status = 'sent' WHERE id = 1", "UPDATE orders SET status = 'sent' WHERE id = 2")
ELSEWHERE = "UPDATE customers SET name = 'x' WHERE id = 3"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("later", [SECOND, ELSEWHERE])
@pytest.mark.parametrize("policy", ["versioning", "reversal"])
def test_an_undo_names_the_later_action_on_other_rows(shop: Shop, later: str, policy: str) -> None:
    first = shop.run(FIRST, policy="versioning").action.id
    second = shop.run(later, policy=policy).action.id
    refused = shop.client.revert(first).ended().problem
    assert refused.code == "conflict" and second in refused.message
    assert f"goex undo --to {first}" in refused.next_step
    way = shop.client.daemon.call(
        shop.client.daemon.user_socket, "Actions", "WayBack", pb.WayBackRequest(verb="undo", action_id=first)
    )
    assert [(step.action.id, step.can) for step in way.steps] == [(second, True), (first, True)]
    for id in (second, first):
        assert not shop.client.revert(id).approve().HasField("problem")
    assert [row[1] for row in shop.orders()] == ["open", "open", "paid", "paid"]


def test_rows_of_another_database_are_in_nobodys_way(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Shop(shop.client, f"{shop.name}other", tmp_path_factory.mktemp("other") / "shop.db")
    other.change("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)", "INSERT INTO orders VALUES (2, 'open')")
    other.file.chmod(0o600)
    shop.client.add(other.name, f"sqlite:///{other.file}")
    first = shop.run(FIRST, policy="versioning").action.id
    other.run(SECOND, policy="versioning")
    assert not shop.client.revert(first).approve().HasField("problem")


def test_a_commit_says_what_is_dropped(shop: Shop) -> None:
    copied, kept = shop.run(FIRST, policy="versioning").action.id, shop.run(SECOND, policy="reversal").action.id
    for id, words in ((copied, "The copy of the file that is kept"), (kept, "What is kept")):
        asked = shop.client.revert(id, "commit")
        question = asked.question()
        assert f"{words} for the undo of {id} is dropped" in "\n".join(question.lines)
        (listed,) = shop.client.daemon.person("Approvals", pb.ApprovalsRequest(brief=True)).approvals
        assert listed.question.undo == question.question.undo == "IT CAN'T BE UNDONE"
        asked.deny_known(question.id)


def test_what_isnt_there_is_said_with_the_entry_to_look_at(shop: Shop) -> None:
    for statements in (
        "SELECT * FROM ordrs",
        "UPDATE orders SET stats = 1 WHERE id = 1",
        "SELECT stats FROM orders",
        "DROP INDEX nothing",
        "DROP VIEW orders",
    ):
        assert f"goex db show {shop.name}" in shop.sql(statements).ended().problem.next_step


@pytest.mark.parametrize("when", ["added", "used"])
def test_a_file_that_is_no_database_is_a_mistake_of_the_request(shop: Shop, when: str) -> None:
    file = shop.file.with_name("notes.db")
    file.write_text("Not a database at all. " * 200)
    file.chmod(0o600)
    daemon = shop.client.daemon
    if when == "used":
        shop.file.write_bytes(file.read_bytes())
        ran = daemon.goex("exec", "--db", shop.name, "--sql", FIRST)
    else:
        with daemon.terminal("db", "add", "notes", str(file)) as terminal:
            terminal.expect("passphrase: ")
            terminal.type(APPROVAL_PASSPHRASE)
            assert terminal.wait() == 2
        assert "The file isn't a SQLite database." in terminal.text
        return
    assert ran.returncode == 2 and "The file isn't a SQLite database." in ran.stderr
