"""Pairs of an action and its undo, tried on made-up rows in a real container: right ones pass, wrong ones don't, and
nothing that the person has is in what the container gets."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator

import pytest

from policies.errors import InvalidInput, Unsupported
from runtimes.sandbox import images
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Column, Dialect, ForeignKey, Program, Schema, Table
from runtimes.sql.pairs.trial import SEEDS, job, pair_key, prove
from runtimes.sql.pairs.verdict import judge

P, M, S = Dialect.POSTGRESQL, Dialect.MARIADB, Dialect.SQLITE

_TYPES = {
    P: ("integer", "character varying(40)", "numeric(10,2)", "boolean", "timestamp with time zone", "mood"),
    M: ("int(11)", "varchar(40)", "decimal(10,2)", "tinyint(1)", "datetime", "enum('glad','sad')"),
    S: ("INTEGER", "TEXT", "INTEGER", "BOOLEAN", "TEXT", "TEXT"),
}


def shop(dialect: Dialect, **of_orders: object) -> Schema:
    whole, text, number, flag, stamp, mood = _TYPES[dialect]
    columns = (
        Column(name="id", type=whole, nullable=False, counter=True),
        Column(name="user_id", type=whole),
        Column(name="note", type=text),
        Column(name="total", type=number, nullable=False),
        Column(name="paid", type=flag, nullable=False),
        Column(name="placed", type=stamp),
        Column(name="mood", type=mood),
    )
    users = Table(
        name="users",
        columns=(Column(name="id", type=whole, nullable=False), Column(name="name", type=text, nullable=False)),
        key=("id",),
        unique=(("name",),),
    )
    to_users = ForeignKey(name="f", columns=("user_id",), parent="users", parent_columns=("id",), on_delete="SET NULL")
    orders = Table(name="orders", columns=columns, key=("id",), foreign_keys=(to_users,), **of_orders)  # type: ignore[arg-type]
    secret = Table(name="salaries", columns=(Column(name="amount", type=number),))
    return Schema(dialect=dialect, version="1", tables={one.name: one for one in (users, orders, secret)}, hash="h")


def pair(action: str, undo: str, schema: Schema) -> tuple[Program, Program]:
    return check(action, schema, database="shop"), check(undo, schema, database="shop")


RIGHT = [
    ("UPDATE orders SET total = total + 5 WHERE id = 3", "UPDATE orders SET total = total - 5 WHERE id = 3"),
    ("INSERT INTO orders (id, total, paid) VALUES (900, 1, true)", "DELETE FROM orders WHERE id = 900"),
    ("INSERT INTO users (id, name) VALUES (901, 'A new one'); UPDATE orders SET total = total * 2 WHERE id > 20",
     "UPDATE orders SET total = total / 2 WHERE id > 20; DELETE FROM users WHERE id = 901"),
    ("UPDATE orders SET paid = NOT paid WHERE note = 'x'", "UPDATE orders SET paid = NOT paid WHERE note = 'x'"),
]  # fmt: skip
WRONG = [
    # It puts back a value that it can't know, or only for some rows.
    ("UPDATE orders SET note = 'paid' WHERE id = 3", "UPDATE orders SET note = 'new' WHERE id = 3"),
    ("UPDATE orders SET paid = true WHERE id = 3", "UPDATE orders SET paid = false WHERE id = 3"),
    ("UPDATE orders SET total = total + 5", "UPDATE orders SET total = total - 5 WHERE id > 2"),
    # It touches what the action didn't.
    ("INSERT INTO orders (id, total, paid) VALUES (900, 1, true)", "DELETE FROM orders WHERE id = 900 OR note IS NULL"),
    ("UPDATE orders SET total = total + 5 WHERE total > 1", "UPDATE orders SET total = total - 5; DELETE FROM users"),
    ("INSERT INTO users (id, name) VALUES (900, 'x9')", "DELETE FROM users"),
    # What is deleted is gone; a cascade took more.
    ("DELETE FROM orders WHERE id = 3", "INSERT INTO orders (id, total, paid) VALUES (3, 1, true)"),
    ("DELETE FROM users WHERE id = 3", "INSERT INTO users (id, name) VALUES (3, 'x')"),
    # The action never meets a row: nothing is known.
    ("UPDATE orders SET total = 1 WHERE id = 3 AND id = 4", "UPDATE orders SET total = 1 WHERE id = -77"),
    # The undo can't run.
    ("UPDATE orders SET total = total + 5 WHERE id = 3", "INSERT INTO users (id, name) VALUES (1, NULL)"),
]  # fmt: skip


@pytest.fixture
async def sandbox() -> AsyncIterator[DockerSandbox]:
    made = DockerSandbox(f"pairs-{os.getpid()}")
    yield made
    await made.close()


async def _try(sandbox: DockerSandbox, dialect: Dialect, pairs: list[tuple[str, str]]) -> list[bool]:
    schema = shop(dialect)
    found = []
    for number, (action, undo) in enumerate(pairs):
        proof = await prove(*pair(action, undo, schema), schema, sandbox, action_id=f"a{number}")
        assert proof.lines, (action, undo)
        found.append(proof.ok)
        if proof.ok:
            assert proof.changed > 0
    return found


@pytest.mark.promise(79)
@pytest.mark.docker
async def test_pairs_on_sqlite(sandbox: DockerSandbox, sandbox_image: str, thorough: bool) -> None:
    right, wrong = (RIGHT, WRONG) if thorough else (RIGHT[2:], WRONG[::3])
    assert await _try(sandbox, S, right) == [True] * len(right)
    assert await _try(sandbox, S, wrong) == [False] * len(wrong)


@pytest.mark.promise(79)
@pytest.mark.docker
@pytest.mark.parametrize("dialect", [P, M])
async def test_pairs_on_a_server_in_the_container(dialect: Dialect, sandbox: DockerSandbox, thorough: bool) -> None:
    images.build("postgresql" if dialect is P else "mariadb")
    right, wrong = (RIGHT[:3], [WRONG[0], WRONG[3], WRONG[7]]) if thorough else ([RIGHT[2]], [WRONG[7]])
    assert await _try(sandbox, dialect, right) == [True] * len(right)
    assert await _try(sandbox, dialect, wrong) == [False] * len(wrong)


# ---- what the container gets


@pytest.mark.parametrize("dialect", [P, M, S])
def test_the_container_gets_the_tables_that_the_pair_reaches_and_made_up_rows(dialect: Dialect) -> None:
    schema = shop(dialect)
    work = job(
        *pair("DELETE FROM users WHERE id = 3", "INSERT INTO users (id, name) VALUES (3, 'x')", schema), schema, 2
    )
    assert set(work["look"]) == {"users", "orders"}  # type: ignore[arg-type] # the cascade's table too
    assert "salaries" not in json.dumps(work)
    assert work == job(
        *pair("DELETE FROM users WHERE id = 3", "INSERT INTO users (id, name) VALUES (3, 'x')", schema), schema, 2
    )


@pytest.mark.parametrize(
    ("why", "of_orders"),
    [
        ("triggers", {"triggers": ("t",)}),
        ("computed", {}),
        ("plain table", {"kind": "view"}),
        ("ON CONFLICT", {"facts": {"replaces": True}}),
        ("ON CONFLICT", {"facts": {"ignores": True}}),
    ],
)
def test_what_a_copy_cannot_have_is_refused_with_the_reason(why: str, of_orders: dict[str, object]) -> None:
    schema = shop(S, **of_orders)
    if why == "computed":
        orders = schema.tables["orders"]
        made = Table(
            name="orders", columns=(*orders.columns, Column(name="double", type="int", generated=True)), key=("id",)
        )
        schema = Schema(dialect=S, version="1", tables={**schema.tables, "orders": made}, hash="h")
    with pytest.raises(Unsupported, match=why):
        job(*pair(*RIGHT[0], schema), schema, 1)


def test_definitions_are_no_pair() -> None:
    schema = shop(S)
    with pytest.raises(Unsupported, match="definitions"):
        job(*pair("CREATE TABLE t (x int)", "DROP TABLE users", schema), schema, 1)


async def test_an_undo_that_writes_nothing_is_refused() -> None:
    schema = shop(S)
    action, undo = pair("DELETE FROM orders", "SELECT 1", schema)
    with pytest.raises(InvalidInput, match="writes nothing"):
        await prove(action, undo, schema, DockerSandbox("never-used"), action_id="a")


def test_a_pair_is_named_by_its_statements_and_its_tables() -> None:
    schema, other = shop(S), shop(S, triggers=())
    one, two = pair(*RIGHT[0], schema), pair(*RIGHT[1], schema)
    assert pair_key(*one, schema) == pair_key(*pair(*RIGHT[0], other), other)
    assert pair_key(*one, schema) != pair_key(*two, schema)
    assert pair_key(*one, schema) != pair_key(one[1], one[0], schema)
    assert pair_key(*one, schema) != pair_key(
        *pair(*RIGHT[0], shop(S, unique=(("note",),))), shop(S, unique=(("note",),))
    )


# ---- the verdict


def _seen(before: object, after: object, undone: object, **more: object) -> bytes:
    return json.dumps({"before": {"t": before}, "after": {"t": after}, "undone": {"t": undone}, **more}).encode()


@pytest.mark.promise(79)
def test_the_verdict_is_of_the_states_alone() -> None:
    moved = _seen([["1"], ["2"]], [["1"], ["3"]], [["2"], ["1"]])
    assert judge(moved, ["t"], 1).ok
    assert not judge(_seen([["1"]], [["2"]], [["3"]]), ["t"], 1).ok
    assert not judge(_seen([["1"]], [["1"]], [["1"]]), ["t"], 1).ok  # never seen to change anything
    assert not judge(_seen([["1"]], [["2"]], [["1"], ["1"]]), ["t"], 1).ok  # a row twice
    assert not judge(_seen([[None]], [["2"]], [["None"]]), ["t"], 1).ok  # NULL isn't a word
    assert not judge(moved + b"\n" + _seen([["1"]], [["2"]], [["2"]], undo_refused="no"), ["t"], 2).ok
    assert not judge(_seen([["1"]], [["2"]], [["1"]], action_refused="no"), ["t"], 1).ok


@pytest.mark.parametrize(
    "output", [b"", b"{}", b"[]", b"null", b'{"before": {}}', b'{"ok": true}', b"\xff", _seen([["1"]], [["2"]], 7)]
)
def test_output_that_is_not_whole_proves_nothing(output: bytes) -> None:
    with pytest.raises(InvalidInput):
        judge(output, ["t"], 1)
    with pytest.raises(InvalidInput):
        judge(_seen([["1"]], [["2"]], [["1"]]), ["t"], SEEDS)


@pytest.mark.docker
async def test_rows_are_made_that_meet_all_conditions_at_once(sandbox: DockerSandbox, sandbox_image: str) -> None:
    """A foreign key's value, a text, a range and a flag together: some made-up row is what they ask for."""
    asked = "user_id = 77 AND note = 'to do' AND paid = true AND placed < '2024-02-03'"
    tried = [(f"UPDATE orders SET total = total + 5 WHERE {asked} AND {also}",
              f"UPDATE orders SET total = total - 5 WHERE {asked} AND {also}") for also in (
        "total > 500", "total > -500", "500 >= total", "total <> 7")]  # fmt: skip
    # The third leaves out what the action lifted over 500.
    assert await _try(sandbox, S, tried) == [True, True, False, False]
