"""What the person bounds: confinement in config.toml, and rules that see how a change is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.goex.daemon.test_rules import apply
from tests.goex.databases.conftest import SHOP, Shop
from tests.support.daemon import Daemon
from tests.support.entries import Client

CONFINED = """
[confine]
databases = ["shop"]
tables = ["orders", "visits"]
rows = 5
"""


def opened(daemon: Daemon, folder: Path, name: str = "shop") -> Shop:
    client = Client(daemon)
    made = Shop(client, name, folder / f"{name}.db")
    made.change(*SHOP)
    client.add(name, f"sqlite:///{made.file}")
    return made


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, Shop]]:
    folder = tmp_path_factory.mktemp("confined")
    with Daemon(config=CONFINED) as daemon:
        yield opened(daemon, folder), opened(daemon, folder, "other")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE customers SET name = 'x' WHERE id = 1", "customers isn't one of the tables"),
        (
            "UPDATE orders SET total = (SELECT count(*) FROM customers) WHERE id = 1",
            "customers isn't one of the tables",
        ),
        ("DELETE FROM customers WHERE id = 1", "customers isn't one of the tables"),
        ("SELECT name FROM customers", "customers isn't one of the tables"),
        ("INSERT INTO orders SELECT id + 10, status, total, customer FROM orders", ""),
        ("INSERT INTO orders SELECT a.id + 10 * b.id, a.status, 1, 1 FROM orders a, orders b", "more than the 5 rows"),
    ],
)
def test_what_is_outside_is_denied_without_a_question(confined: tuple[Shop, Shop], statement: str, says: str) -> None:
    shop = confined[0]
    asked = shop.sql(statement)
    if not says:
        assert asked.question()
        asked.leave()
        return
    refused = asked.ended()
    assert refused.problem.code == "denied" and says in refused.problem.message
    assert len(shop.orders()) == 4


def test_another_database_is_outside(confined: tuple[Shop, Shop]) -> None:
    refused = confined[1].sql("UPDATE orders SET total = 1 WHERE id = 1").ended()
    assert refused.problem.code == "denied" and "other isn't one of the databases" in refused.problem.message


@pytest.fixture
def ruled(daemon: Daemon, tmp_path: Path) -> Iterator[Shop]:
    """An entry of its own for each test, with no rules yet."""
    shop = opened(daemon, tmp_path)
    yield shop
    apply(daemon, "")
    shop.client.remove(shop.name)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Shop]:
    """At a daemon of its own."""
    with Daemon() as daemon:
        yield opened(daemon, tmp_path)


def test_a_rule_forbids_asks_and_permits_by_table_verb_and_way_back(ruled: Shop) -> None:
    daemon = ruled.client.daemon
    token = daemon.add_agent("mason")
    apply(
        daemon,
        '@id("kept") forbid (principal, action == Action::"sql", resource == Method::"db.update")\n'
        'when { context.tables.contains("orders") && context has policy && context.policy == "reversal" };\n'
        '@id("no-customers") forbid (principal, action, resource in Service::"db")\n'
        'when { context.tables.contains("customers") && context.risk != Risk::"read" };\n'
        '@id("reads") permit (principal == Agent::"mason", action == Action::"sql",\n'
        'resource == Method::"db.select");\n',
    )
    read = ruled.sql("SELECT id FROM customers", token=token).ended()
    assert read.action.state == "done", "a rule permits it"
    refused = ruled.sql("DELETE FROM customers WHERE id = 1", token=token).ended()
    assert refused.problem.code == "denied" and "no-customers" in refused.problem.message
    outright = ruled.sql("UPDATE orders SET total = 1 WHERE id = 1", policy="reversal", token=token).ended()
    assert outright.problem.code == "denied" and "kept" in outright.problem.message
    asked = ruled.sql("UPDATE orders SET total = 1 WHERE id = 1", token=token)
    question = asked.question()
    assert "A copy of the file" in question.undo_text, "the rule leaves versioning, so that is taken"
    asked.leave()


@pytest.mark.promise(13)
def test_what_a_rule_forbids_is_not_done_again_either(ruled: Shop) -> None:
    daemon = ruled.client.daemon
    done = ruled.run("DELETE FROM orders WHERE id = 1")
    assert len(ruled.orders()) == 3
    assert not ruled.client.revert(done.action.id).approve().HasField("problem")
    apply(
        daemon,
        '@id("no-deleting") forbid (principal, action == Action::"sql", resource)\n'
        'when { context.risk == Risk::"delete" };\n',
    )
    refused = ruled.client.revert(done.action.id, "redo").ended()
    assert refused.problem.code == "denied" and "no-deleting" in refused.problem.message
    assert len(ruled.orders()) == 4


@pytest.mark.sampled(2)
@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("UPDATE orders SET status = 'gone'", 'context.risk == Risk::"delete"'),
        (
            "UPDATE orders SET status = 'secret' WHERE id = 1",
            'context.arguments has statement && context.arguments.statement like "*secret*"',
        ),
    ],
)
@pytest.mark.parametrize("kind", ["sql", "redo"])
def test_statements_are_done_again_as_what_they_were_asked_for(
    ruled: Shop, statement: str, condition: str, kind: str
) -> None:
    done = ruled.run(statement)
    before = ruled.orders()
    assert not ruled.client.revert(done.action.id).approve().HasField("problem")
    rule = f'@id("no") forbid (principal, action == Action::"{kind}", resource) when {{ {condition} }};'
    apply(ruled.client.daemon, rule)
    refused = ruled.client.revert(done.action.id, "redo").ended()
    assert refused.problem.code == "denied" and "Rule no" in refused.problem.message
    assert ruled.orders() != before
    apply(ruled.client.daemon, "")
    assert not ruled.client.revert(done.action.id, "redo").approve().HasField("problem")
    assert ruled.orders() == before


@pytest.mark.sampled(5)
@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "rest",
    [
        ') when { context.databases.contains("shop") };',
        ') when { context.tables.contains("orders") };',
        ") when { context.bounds has rows && context.bounds.rows > 0 };",
        ' in Service::"db");',
        ' == Method::"db.update");',
        ' in Service::"db") when { context.account == "shop" && context.risk_level > 1 };',
        ' == Method::"db.update") when { context.arguments has statement };',
    ],
)
def test_commits_are_held_to_rules_about_what_they_are_of(ruled: Shop, rest: str) -> None:
    ids = [ruled.run(f"UPDATE orders SET status = 'x' WHERE id = {id}").action.id for id in (1, 2)]
    apply(ruled.client.daemon, f'@id("kept") forbid (principal, action == Action::"commit", resource{rest}')
    for target, also in ((ids[1], ()), (ids[1], ids[:1]), (ids[0], ids[1:])):
        refused = ruled.client.revert(target, "commit", also=also).ended()
        assert refused.problem.code == "denied" and "kept" in refused.problem.message
    apply(
        ruled.client.daemon,
        '@id("dropped") permit (principal, action == Action::"commit", resource in Service::"db");',
    )
    assert ruled.client.revert(ids[1], "commit", also=ids[:1]).approve().action.state == "done", "no permit of these"


@pytest.mark.promise(13)
def test_an_agent_s_commits_are_confined_as_each_is(alone: Shop) -> None:
    daemon = alone.client.daemon
    token = daemon.add_agent("mason")
    ids = [
        alone.run(f"UPDATE orders SET status = 'x' WHERE id = {id}", token=token).action.id for id in (1, 2)
    ]  # fmt: skip
    for bounds, says in (
        ('databases = ["other"]', "isn't one of the databases"),
        ('tables = ["customers"]', "isn't one of the tables"),
    ):
        daemon.configure(f"[confine]\n{bounds}\n")
        daemon.restart()
        for also in ((), ids[:1]):
            refused = Client(daemon).revert(ids[1], "commit", also=also, token=token).ended()
            assert refused.problem.code == "denied" and says in refused.problem.message


def test_rules_are_tried_on_cases_of_statements(alone: Shop) -> None:
    daemon = alone.client.daemon
    apply(
        daemon,
        '@id("kept") forbid (principal, action == Action::"sql", resource == Method::"db.update")\n'
        'when { context has policy && context.policy == "reversal" };\n',
    )
    table = daemon.home / "cases.toml"
    table.write_text(
        '[[case]]\nname = "reversal"\ndatabase = "shop"\nscopes = ["orders:update"]\nexpect = "deny"\nrule = "kept"\n'
        '[[case]]\nname = "held"\ndatabase = "shop"\nscopes = ["orders:update"]\npolicy = "versioning"\n'
        'expect = "ask"\n'
        '[[case]]\nname = "granted"\ndatabase = "shop"\nscopes = ["orders:select"]\ngranted = ["orders:select"]\n'
        'expect = "allow"\n'
    )
    done = daemon.goex("rules", "test", str(table))
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = daemon.config_dir / "rules"
    wrong.mkdir(exist_ok=True)
    (wrong / "odd.cedar").write_text('@id("odd") forbid (principal, action, resource == Method::"db.destroy");\n')
    checked = daemon.goex("rules", "check")
    assert "db.destroy" in checked.stdout + checked.stderr
