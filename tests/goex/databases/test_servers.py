"""PostgreSQL and MariaDB through a real daemon: reversal, holds, their end, crashes, and the password nowhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.databases.servers import Served, on_mariadb, on_postgres
from tests.services.mariadb import MariaDb
from tests.support.entries import Client, changes
from tests.support.journey import decide, problem

UPDATE = "UPDATE orders SET status = 'sent' WHERE customer = 1"


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest, client: Client) -> Iterator[Served]:
    if request.param == "postgresql":
        with on_postgres(request.getfixturevalue("postgres"), client) as made:
            made.add()
            yield made
    else:
        with on_mariadb(request.getfixturevalue("mariadb"), client) as made:
            made.add()
            yield made


def held_by(shop: Served) -> list[Any]:
    return list(shop.client.listed()[shop.name].held)


@pytest.mark.sampled(1)
def test_reversal_is_exact_both_ways(shop: Served) -> None:
    before = shop.look()
    done = shop.run(UPDATE)
    assert changes(done)[0] == "orders: 2 rows updated"
    after = shop.look()
    assert [row[1] for row in after] == ["sent", "sent", "paid", "paid"]
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    assert shop.look() == before
    assert not shop.client.revert(done.action.id, "redo").approve().HasField("problem")
    assert shop.look() == after


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE orders o JOIN customers c ON c.id = o.customer SET o.status = c.name WHERE c.id < 3",
        "UPDATE orders, customers SET orders.total = 0 WHERE orders.customer = customers.id AND customers.name = 'one'",
        "UPDATE customers c LEFT JOIN orders o ON o.customer = c.id AND total > 9 SET secret = 'x' WHERE total IS NULL",
        "UPDATE orders a JOIN orders b ON b.id = a.id + 1 SET a.total = b.total",
        "DELETE o FROM orders o JOIN customers c ON c.id = o.customer WHERE c.name = 'one'",
        "DELETE FROM c USING customers AS c JOIN orders AS o ON o.customer = c.id WHERE o.status = 'paid'",
        "UPDATE orders o, customers c SET o.total = 0, c.name = 'x' WHERE o.customer = c.id AND c.id < 3",
        "DELETE o, c FROM orders o JOIN customers c ON o.customer = c.id WHERE c.id = 1",
        "SET @who = (SELECT id FROM customers WHERE name = 'one'); UPDATE orders SET total = 0 WHERE customer = @who",
    ],
)
def test_joins_as_mariadb_writes_them(mariadb: MariaDb, client: Client, sql: str) -> None:
    """Asked for over the wire, run, taken back, done again, taken back."""
    with on_mariadb(mariadb, client) as shop:
        shop.add()

        def both() -> tuple[Any, Any]:
            return shop.look(), shop.look("SELECT * FROM customers ORDER BY id")

        before = both()
        done = shop.run(sql)
        assert done.action.state == "done", done.problem
        after = both()
        assert after != before
        for verb, wanted in (("undo", before), ("redo", after), ("undo", before)):
            assert not shop.client.revert(done.action.id, verb).approve().HasField("problem")
            assert both() == wanted


def test_a_join_that_writes_a_table_by_two_names_is_refused_before_it_is_asked(
    mariadb: MariaDb, client: Client
) -> None:
    with on_mariadb(mariadb, client) as shop:
        shop.add()
        refused = shop.sql("UPDATE orders a, orders b SET a.total = 0, b.total = 1 WHERE a.id = b.id + 1").ended()
        assert refused.problem.code == "unsupported" and "under two names" in refused.problem.message
        assert refused.problem.next_step


@pytest.mark.sampled(1)
def test_a_cascade_is_taken_back_with_it(shop: Served) -> None:
    before = shop.look(), shop.look("SELECT * FROM customers ORDER BY id")
    done = shop.run("DELETE FROM customers WHERE id = 1")
    assert [row[0] for row in shop.look()] == [3, 4]
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    assert (shop.look(), shop.look("SELECT * FROM customers ORDER BY id")) == before


@pytest.mark.sampled(1)
def test_a_held_change_is_seen_by_nobody_until_it_is_committed(shop: Served) -> None:
    before = shop.look()
    done = shop.run(UPDATE, policy="versioning")
    assert done.action.held_until and "Held in" in done.action.outcome_json
    assert shop.look() == before
    (held,) = held_by(shop)
    assert held.action_id == done.action.id and "UPDATE" in held.what
    hours = datetime.fromisoformat(held.until) - datetime.fromisoformat(held.since)
    assert hours.total_seconds() == 24 * 3600
    asked = shop.client.revert(done.action.id, "commit")
    question = asked.question()
    assert question.undo_class == "irreversible" and {need.scope for need in question.needs} == {"orders:update"}
    decide(shop.client.daemon, question)
    assert not asked.finished().HasField("problem")
    assert [row[1] for row in shop.look()] == ["sent", "sent", "paid", "paid"] and not held_by(shop)
    listed = shop.client.daemon.goex("log", "--limit", "5")
    assert "kept for good" in listed.stdout


@pytest.mark.sampled(1)
def test_a_held_change_is_rolled_back_by_an_undo(shop: Served) -> None:
    before = shop.look()
    done = shop.run(UPDATE, policy="versioning")
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    assert shop.look() == before and not held_by(shop)
    shop.change("UPDATE orders SET status = 'free' WHERE id = 1")
    assert shop.look()[0][1] == "free", "no lock is left"


def prepared(shop: Served) -> int:
    if shop.url.startswith("postgresql"):
        return len(shop.look("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))
    return len(shop.look("XA RECOVER"))


@pytest.mark.promise(77)
def test_redo_of_a_held_change_holds_it_again(shop: Served) -> None:
    """Its words, its permission and what is said of it are a hold's; only a commit shows it to others."""
    before = shop.look()
    done = shop.run(UPDATE, policy="versioning")
    undo = shop.client.revert(done.action.id)
    question = undo.question()
    assert "redo of the same action holds them again" in question.undo_text
    decide(shop.client.daemon, question)
    assert not undo.finished().HasField("problem") and prepared(shop) == 0
    for killed in (True, False):  # the same again, after it was rolled back once more
        redo = shop.client.revert(done.action.id, "redo")
        question = redo.question()
        assert any("held again: nobody else sees it, for 24 hours" in line for line in question.lines)
        assert "commit makes it last" in question.undo_text and {need.scope for need in question.needs} == {
            "orders:update"
        }
        decide(shop.client.daemon, question)
        ended = redo.finished()
        assert not ended.HasField("problem"), ended.problem
        assert "Held again in" in ended.action.outcome_json
        assert shop.look() == before and prepared(shop) == 1, "others see nothing of it"
        assert [held.action_id for held in held_by(shop)] == [done.action.id]
        if killed:
            shop.client.daemon.kill()
            shop.client.daemon.start()
            shop.client.daemon.unlock()
        assert not shop.client.revert(done.action.id).approve().HasField("problem")
        assert shop.look() == before and prepared(shop) == 0 and not held_by(shop)
    assert not shop.client.revert(done.action.id, "redo").approve().HasField("problem")
    assert not shop.client.revert(done.action.id, "commit").approve().HasField("problem")
    assert [row[1] for row in shop.look()] == ["sent", "sent", "paid", "paid"]
    assert prepared(shop) == 0 and not held_by(shop)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_what_changed_nothing_is_neither_held_nor_taken_back(shop: Served, policy: str) -> None:
    done = shop.run("UPDATE orders SET status = 'x' WHERE id = 99", policy=policy)
    assert not done.action.held_until and not held_by(shop) and prepared(shop) == 0
    assert "Done in" in done.action.outcome_json
    refused = shop.client.revert(done.action.id).ended()
    assert refused.problem.code == "unsupported" and "changed nothing" in refused.problem.message


@pytest.mark.sampled(1)
def test_other_actions_on_held_rows_are_told_by_whom(shop: Served) -> None:
    done = shop.run(UPDATE, policy="versioning")
    other = shop.client.daemon.add_agent(f"a{shop.name}")
    asked = shop.sql("UPDATE orders SET total = 0 WHERE id = 1", token=other)
    refused = asked.approve()
    assert refused.problem.code == "conflict" and done.action.id in refused.problem.message
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    again = shop.sql("UPDATE orders SET total = 0 WHERE id = 1", token=other).approve()
    assert not again.HasField("problem")


@pytest.mark.sampled(1)
def test_an_entry_that_holds_something_stays(shop: Served) -> None:
    done = shop.run(UPDATE, policy="versioning")
    with pytest.raises(grpc.RpcError) as refused:
        shop.client.remove(shop.name)
    assert problem(refused.value).code == "conflict" and done.action.id in problem(refused.value).message
    shop.client.revert(done.action.id).approve()
    shop.client.remove(shop.name)
    assert shop.name not in shop.client.listed()


@pytest.mark.sampled(1)
@pytest.mark.promise(77)
def test_a_held_change_outlives_the_daemon(shop: Served) -> None:
    daemon, before = shop.client.daemon, shop.look()
    done = shop.run(UPDATE, policy="versioning")
    daemon.kill()
    daemon.start()
    daemon.unlock()
    assert [held.action_id for held in held_by(shop)] == [done.action.id] and shop.look() == before
    assert not shop.client.revert(done.action.id, "commit").approve().HasField("problem")
    assert [row[1] for row in shop.look()] == ["sent", "sent", "paid", "paid"]


@pytest.mark.promise(78)
def test_a_daemon_killed_while_it_ran_leaves_all_or_nothing(shop: Served) -> None:
    """A row is locked by somebody else, so that the statement waits when the daemon dies."""
    policy = "versioning" if shop.url.startswith("postgresql") else "reversal"
    daemon, before = shop.client.daemon, shop.look()
    asked = shop.sql(UPDATE, policy=policy)
    question = asked.question()
    connection = shop.connect()
    if hasattr(connection, "autocommit") and callable(connection.autocommit):
        connection.autocommit(False)
    else:
        connection.autocommit = False
    cursor = connection.cursor()
    cursor.execute("UPDATE orders SET total = 5 WHERE id = 2")
    decide(daemon, question)
    deadline = time.monotonic() + 300
    while daemon.person_action(asked.action_id) != "running" and time.monotonic() < deadline:
        time.sleep(0.02)
    daemon.kill()
    connection.rollback()
    connection.close()
    daemon.start()
    daemon.unlock()
    state = daemon.person_action(asked.action_id)
    rows = shop.look()
    assert (state, rows) == ("failed", before) and not held_by(shop)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_user_that_may_do_too_much_is_refused(client: Client, kind: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgres" if kind == "postgresql" else "mariadb")
    user, database = ("postgres", "postgres") if kind == "postgresql" else ("root", "mysql")
    where = f"127.0.0.1:{server.port}" if kind == "postgresql" else quote(server.socket, safe="")
    with pytest.raises(grpc.RpcError) as refused:
        client.add("root", f"{kind}://{user}@{where}/{database}", server.password.encode())
    assert problem(refused.value).code == "unsupported" and problem(refused.value).next_step, problem(refused.value)
    assert "root" not in client.listed()


@pytest.mark.promise(72)
def test_the_password_is_nowhere(shop: Served) -> None:
    """Not in what GoEx wrote, not in what it said, not in a process's arguments or environment."""
    daemon = shop.client.daemon
    token = daemon.add_agent(f"p{shop.name}")
    done = shop.sql(UPDATE, token=token).approve()
    shop.client.revert(done.action.id).approve()
    daemon.goex("exec", "--db", shop.name, "--sql", "SELECT * FROM orders", "--dry-run")
    shown = daemon.goex("db", "show", shop.name).stdout + daemon.goex("db", "list", "--json").stdout
    wrong = shop.client
    said = ""
    for url in (shop.url, shop.url.replace(shop.user, "nobody")):
        with pytest.raises(grpc.RpcError) as refused:
            wrong.add(f"x{shop.name}", url, shop.password.encode() + b"-wrong")
        said += str(problem(refused.value))
    needle = shop.password.encode()
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                assert needle not in (process / name).read_bytes(), process
    for file in daemon.home.rglob("*"):
        if file.is_file() and not file.is_symlink():
            assert needle not in file.read_bytes(), file
    assert shop.password not in shown + said


def test_nothing_runs_while_the_vault_is_sealed(shop: Served) -> None:
    daemon = shop.client.daemon
    daemon.person("VaultSeal", pb.VaultSealRequest())
    try:
        refused = shop.sql("SELECT 1 FROM orders").ended()
        assert refused.problem.code == "vault-sealed"
        listed = shop.client.listed()[shop.name]
        assert listed.url == shop.url and not listed.HasField("terms")
    finally:
        daemon.unlock()


def test_two_agents_that_change_the_same_row_dont_lose_a_change(shop: Served) -> None:
    first, second = (shop.client.daemon.add_agent(f"{name}{shop.name}") for name in ("q", "r"))
    one = shop.sql("UPDATE orders SET total = total + 1 WHERE id = 1", token=first)
    two = shop.sql("UPDATE orders SET total = total + 1 WHERE id = 1", token=second)
    questions = one.question(), two.question()
    for question in questions:
        decide(shop.client.daemon, question)
    ended = one.finished(), two.finished()
    assert [each.action.state for each in ended] == ["done", "done"] and shop.look()[0][2] == 7
    # Which of two that were allowed at once comes first is the server's to say.
    earlier, token = min(zip(ended, (first, second), strict=True), key=lambda each: each[0].action.updated)
    refused = shop.client.revert(earlier.action.id, token=token).ended()
    assert refused.problem.code == "conflict", "somebody changed the row since"
