"""Statements through a real daemon, on SQLite: what is asked, what runs, what comes back, how it is taken back."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from goex.rpc import databases_pb2 as db
from goex.rpc import goex_pb2 as pb
from tests.goex.databases.conftest import Shop
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.entries import Client, changes, results
from tests.support.journey import decide, problem


def test_a_change_is_shown_whole_and_undone_and_redone_exactly(shop: Shop) -> None:
    before = shop.orders()
    asked = shop.sql("UPDATE orders SET status = 'sent' WHERE customer = 1")
    question = asked.question()
    text = "\n".join(question.lines)
    assert str(shop.file) in text and "status = 'sent' WHERE customer = 1" in text
    assert "updates orders (columns status)" in text and "At most 2 rows of orders updated." in text
    assert {(need.scope, need.risk) for need in question.needs} == {
        ("orders:update", "write"),
        ("orders:select", "read"),
    }
    assert question.undo_class == "exact" and question.presence
    decide(shop.client.daemon, question)
    done = asked.finished()
    assert changes(done) == ["orders: 2 rows updated"]
    after = shop.orders()
    assert [row[1] for row in after] == ["sent", "sent", "paid", "paid"]
    undone = shop.client.revert(done.action.id).approve()
    assert not undone.HasField("problem") and shop.orders() == before
    shop.client.revert(done.action.id, "redo").approve()
    assert shop.orders() == after


def test_an_undo_of_an_undo_says_what_to_do(shop: Shop) -> None:
    daemon = shop.client.daemon
    ran = shop.run("UPDATE orders SET status = 'sent' WHERE customer = 1")
    undone = shop.client.revert(ran.action.id).approve()
    for id, code in ((undone.action.id, 10), (ran.action.id, 6)):
        refused = daemon.goex("undo", id)
        assert (refused.returncode, f"goex redo {ran.action.id}" in refused.stderr) == (code, True)
    shop.client.revert(ran.action.id, "redo").approve()
    assert f"goex undo {ran.action.id}" in daemon.goex("undo", undone.action.id).stderr


@pytest.mark.promise(69)
def test_what_a_cascade_reaches_is_a_permission_of_its_own(shop: Shop) -> None:
    before = shop.orders()
    asked = shop.sql("DELETE FROM customers WHERE id = 1")
    question = asked.question()
    assert {need.scope for need in question.needs} == {"customers:delete", "customers:select", "orders:delete"}
    assert question.risk == "delete"
    assert any("orders deleted, by a foreign key's cascade" in line for line in question.lines)
    decide(shop.client.daemon, question)
    done = asked.finished()
    assert shop.look("SELECT count(*) FROM orders") == [(2,)]
    shop.client.revert(done.action.id).approve()
    assert shop.orders() == before and shop.look("SELECT count(*) FROM customers") == [(3,)]


def test_a_write_without_where_counts_as_deleting_and_says_so(shop: Shop) -> None:
    question = (asked := shop.sql("UPDATE orders SET total = 0")).question()
    assert question.risk == "delete"
    assert any("THERE IS NO WHERE: it is for every row of orders." in line for line in question.lines)
    asked.leave()


def test_upkeep_of_a_file_is_asked_for_and_taken_back(shop: Shop) -> None:
    asked = shop.sql("ANALYZE orders; PRAGMA user_version = 7")
    question = asked.question()
    assert {need.scope for need in question.needs} == {"orders:alter", "sqlite_schema:alter"}
    decide(shop.client.daemon, question)
    done = asked.finished()
    assert results(shop.run("PRAGMA user_version"))[0]["rows"] == [[7]]
    assert not shop.client.revert(done.action.id).approve().HasField("problem")
    assert results(shop.run("PRAGMA user_version"))[0]["rows"] == [[0]]


def test_explain_of_a_write_asks_for_reading_alone(shop: Shop) -> None:
    before = shop.orders()
    asked = shop.sql("EXPLAIN QUERY PLAN DELETE FROM orders WHERE customer = 1")
    question = asked.question()
    assert {need.scope for need in question.needs} == {"orders:select"} and not question.presence
    decide(shop.client.daemon, question)
    assert results(asked.finished())[0]["rows"] and shop.orders() == before


def test_an_undo_is_refused_when_somebody_changed_a_row_since(shop: Shop) -> None:
    done = shop.run("UPDATE orders SET status = 'sent' WHERE id = 1")
    shop.change("UPDATE orders SET total = 6 WHERE id = 1")
    refused = shop.client.revert(done.action.id).ended()
    assert refused.problem.code == "conflict" and refused.problem.details
    assert shop.orders()[0] == (1, "sent", 6, 1)


def test_a_select_gives_rows_and_asks_without_a_passphrase(shop: Shop) -> None:
    asked = shop.sql("SELECT name FROM customers WHERE id < 3 ORDER BY id")
    question = asked.question()
    assert question.risk == "read" and question.undo_class == "nothing" and not question.presence
    decide(shop.client.daemon, question, passphrase="")
    (result,) = results(asked.finished())
    assert result == {"columns": ["name"], "rows": [["one"], ["two"]], "cut": 0}


def test_more_than_was_planned_isnt_done(shop: Shop) -> None:
    asked = shop.sql("UPDATE orders SET status = 'sent' WHERE status = 'open'")
    question = asked.question()
    shop.change("INSERT INTO orders SELECT 100 + id, 'open', 1, 1 FROM orders")
    decide(shop.client.daemon, question)
    refused = asked.finished()
    assert refused.problem.code in ("denied", "conflict")
    assert shop.look("SELECT count(*) FROM orders WHERE status = 'sent'") == [(0,)]


def test_a_definition_that_changed_meanwhile_isnt_run_on(shop: Shop) -> None:
    asked = shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1")
    question = asked.question()
    shop.change("CREATE TRIGGER noted AFTER UPDATE ON orders BEGIN DELETE FROM customers; END")
    decide(shop.client.daemon, question)
    assert asked.finished().HasField("problem")
    assert shop.look("SELECT count(*) FROM customers") == [(3,)]


@pytest.mark.parametrize(
    "statements",
    [
        "ATTACH DATABASE '/tmp/other.db' AS other",
        "SELECT load_extension('/tmp/evil.so')",
        "UPDATE nowhere SET a = 1",
        "PRAGMA writable_schema = 1",
        "SELEC",
        "",
    ],
    ids=["attach", "function", "table", "pragma", "syntax", "nothing"],
)
def test_what_isnt_listed_never_asks(shop: Shop, statements: str) -> None:
    try:
        refused = shop.sql(statements).ended().problem
    except grpc.RpcError as error:
        refused = problem(error)
    assert refused.code in ("invalid", "unsupported") and refused.message


def test_the_policy_is_the_requests_then_the_tables_then_the_databases(shop: Shop) -> None:
    shop.client.set_policy(shop.name, "versioning", table="orders")
    listed = shop.client.listed()[shop.name]
    assert listed.terms.policy == "reversal"
    assert [(one.table, one.policy) for one in listed.terms.tables] == [("orders", "versioning")]
    held = (asked := shop.sql("UPDATE orders SET total = 0 WHERE id = 1")).question()
    assert "A copy of the file" in held.undo_text
    asked.leave()
    own = (asked := shop.sql("UPDATE orders SET total = 0 WHERE id = 1", policy="reversal")).question()
    assert "The rows are kept" in own.undo_text
    asked.leave()
    other = (asked := shop.sql("UPDATE customers SET name = 'x' WHERE id = 1")).question()
    assert "The rows are kept" in other.undo_text
    asked.leave()
    shop.client.set_policy(shop.name, table="orders", unset=True)
    assert not shop.client.listed()[shop.name].terms.tables


def test_a_dry_run_shows_rows_and_changes_nothing(shop: Shop) -> None:
    before = shop.orders()
    shown = shop.client.daemon.goex(
        "exec", "--db", shop.name, "--sql", "DELETE FROM customers WHERE id = 1", "--dry-run"
    )
    assert shown.returncode == 0, shown.stderr
    assert "was rolled back: 3 rows changed" in shown.stdout and "id=1, name=one" in shown.stdout
    assert shop.orders() == before


def test_a_dry_run_of_an_undo_names_what_would_be_refused(shop: Shop) -> None:
    done = shop.run("UPDATE orders SET status = 'sent' WHERE id = 1")
    shown = shop.client.daemon.goex("undo", done.action.id, "--dry-run")
    assert shown.returncode == 0 and "as it was before" in shown.stdout, shown.stderr
    shop.change("UPDATE orders SET total = 6 WHERE id = 1")
    shown = shop.client.daemon.goex("undo", done.action.id, "--dry-run")
    assert shown.returncode == 6 and "total" in shown.stderr
    assert shop.orders()[0] == (1, "sent", 6, 1)


def test_a_commit_drops_what_undo_would_need(shop: Shop) -> None:
    done = shop.run("UPDATE orders SET status = 'sent' WHERE id = 1")
    kept = shop.client.revert(done.action.id, "commit").approve()
    assert not kept.HasField("problem")
    with pytest.raises(grpc.RpcError) as refused:
        shop.client.revert(done.action.id).ended()
    assert problem(refused.value).code == "conflict"
    assert shop.orders()[0][1] == "sent"


def test_the_log_and_the_story_say_what_was_done(shop: Shop) -> None:
    done = shop.run("UPDATE orders SET status = 'sent' WHERE id = 1")
    logged = shop.client.daemon.goex("log", "--kind", "sql")
    assert logged.returncode == 0 and f"{shop.name}: UPDATE orders SET status" in logged.stdout, logged.stderr
    story = shop.client.story(done.action.id)
    assert f"db/{shop.name}" in story and "orders: 1 row updated" in story


def test_agents_have_standing_permissions_for_a_table_and_a_verb(shop: Shop) -> None:
    token = shop.client.daemon.add_agent(f"a{shop.name}")
    shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1", token=token).approve("session")
    asked = shop.sql("UPDATE orders SET total = 1 WHERE id = 2", token=token)
    assert asked.ended().action.state == "done", "the same table, the same verbs"
    other = shop.sql("UPDATE customers SET name = 'x' WHERE id = 1", token=token)
    assert {need.scope for need in other.question().needs if not need.granted} == {
        "customers:update",
        "customers:select",
    }
    other.leave()
    reading = shop.sql("UPDATE orders SET total = (SELECT count(*) FROM customers) WHERE id = 2", token=token)
    assert [need.scope for need in reading.question().needs if not need.granted] == ["customers:select"]
    reading.leave()


def test_databases_are_added_as_they_are_named_or_not_at_all(client: Client, tmp_path: Path) -> None:
    for url, code in (
        (f"sqlite:///{tmp_path}/nothing.db", "invalid"),
        (f"sqlite:///{client.daemon.state_dir}/state.db", "invalid"),
        ("postgresql://user@127.0.0.1:1/none", "unavailable"),
        ("postgresql://user@127.0.0.1:1/none?sslmode=disable", "invalid"),
        ("oracle://x/y", "invalid"),
        ("postgresql://user@db.example.org/x y", "invalid"),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            client.add("bad", url)
        assert problem(refused.value).code == code, (url, problem(refused.value))
    assert "bad" not in client.listed()


def test_only_the_person_sees_databases(shop: Shop) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        shop.client.call("ListDatabases", db.ListDatabasesRequest(), socket=shop.client.daemon.agent_socket)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_adding_changing_and_removing_need_presence(shop: Shop) -> None:
    for method, request in (
        ("AddDatabase", db.AddDatabaseRequest(name="other", url=f"sqlite:///{shop.file}")),
        ("SetPolicy", db.SetPolicyRequest(name=shop.name, policy="versioning")),
        ("RemoveDatabase", db.RemoveDatabaseRequest(name=shop.name)),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            Client(shop.client.daemon).call(method, request)
        assert problem(refused.value).code == "presence", method
    assert shop.name in shop.client.listed()


def test_an_entry_that_leads_elsewhere_isnt_what_was_approved(shop: Shop, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(shop.file.read_bytes())
    asked = shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1")
    question = asked.question()
    shop.client.add(shop.name, f"sqlite:///{other}", replace=True)
    decide(shop.client.daemon, question)
    assert asked.finished().HasField("problem")
    assert shop.orders()[0][1] == "open"


def test_removing_an_entry_ends_its_grants(shop: Shop) -> None:
    token = shop.client.daemon.add_agent(f"b{shop.name}")
    shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1", token=token).approve("permanent")
    shop.client.remove(shop.name)
    shop.client.add(shop.name, f"sqlite:///{shop.file}")
    asked = shop.sql("UPDATE orders SET total = 1 WHERE id = 2", token=token)
    assert asked.asked()
    asked.leave()


def test_a_refusal_is_one_json_document_with_its_exit_status(shop: Shop) -> None:
    done = shop.client.daemon.goex("exec", "--db", shop.name, "--sql", "PRAGMA writable_schema = 1", "--json")
    last = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 10 and last["finished"]["problem"]["code"] == "unsupported"


def test_an_entry_is_removed_by_the_databases_command_alone(shop: Shop) -> None:
    daemon = shop.client.daemon
    request = pb.VaultRemoveRequest(service="db", account=shop.name, passphrase=APPROVAL_PASSPHRASE)
    with pytest.raises(grpc.RpcError) as refused:
        daemon.person("VaultRemove", request)
    assert f"goex db remove {shop.name}" in problem(refused.value).next_step
    assert shop.name in shop.client.listed()
    listed = daemon.goex("vault", "list")
    assert f"sqlite:///{shop.file}" in listed.stdout.replace("\n", "") or shop.name in listed.stdout
    assert shop.name not in daemon.goex("auth", "list").stdout


def test_doctor_tells_of_databases(shop: Shop) -> None:
    said = json.loads(shop.client.daemon.goex("doctor", "--quick", "--json").stdout)
    (check,) = [check for check in said["checks"] if check["name"] == "databases"]
    assert check["ok"] and "entr" in check["says"] and not check["needed"]


def test_changes_of_different_rows_are_undone_in_any_order(shop: Shop) -> None:
    first = shop.run("UPDATE orders SET total = 1 WHERE id = 1")
    second = shop.run("UPDATE orders SET total = 2 WHERE id = 2")
    assert not shop.client.revert(first.action.id).approve().HasField("problem")
    assert [row[2] for row in shop.orders()] == [5, 2, 9, 11]
    third = shop.run("UPDATE orders SET total = total + 1 WHERE status = 'open'")
    refused = shop.client.revert(second.action.id).ended()
    assert refused.problem.code == "conflict" and third.action.id in str(refused.problem)
    assert [row[2] for row in shop.orders()] == [6, 3, 9, 11]
