"""What rules and confinement know of the targets of a redo or a commit, and of a folder that has several paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.actions import ANY_VALUE, Action, ApiCalls, Call, Code, Files, Need, Plan, Revert, Sql, UndoClass
from policies.commits import together
from policies.decisions import Allow, Ask, Decision, Deny, Request, decide
from policies.digest import digest
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, canonical, parse
from policies.limits import Confinement
from policies.rules.book import DEFAULT_FILE, RuleBook
from policies.rules.cases import outcome, read
from policies.rules.facts import OF_TARGET, Situation, of_target, questions, with_target
from policies.rules.rule_errors import check
from policies.services import Risk

CATALOG = Catalog.bundled()
NOW = datetime(2026, 1, 2, tzinfo=UTC)
MOST = 2**20
NO_COMMIT = '@id("kept") forbid (principal, action == Action::"commit", resource'


def plan_of(
    action: Action, *needs: Need, bounds: Mapping[str, int] | None = None, undo: str = "exact", **resolved: Any
) -> Plan:
    return Plan(
        action=action,
        needs=needs,
        undo_class=UndoClass(undo),
        undo_text="",
        resolved=resolved,
        bounds=bounds or {},
        catalog_hash="",
        image_id="",
        limits={},
        lines=("what it does",),
        undo={},
    )


def need(service: str, account: str, method: str, *, risk: Risk = Risk.WRITE, **arguments: str) -> Need:
    return Need(
        service=service, account=account, scope=method, risk=risk, methods=(method,), arguments=(arguments,)
    )  # fmt: skip


def stored(plan: Plan) -> Plan:
    """The plan as it comes back from the journal, whose objects have their keys in order."""
    return replace(plan, resolved=parse(canonical(plan.resolved)))


def decided(rules: str, plan: Plan, *, default: bool = True) -> Decision:
    texts = {"a.cedar": rules} if default else {"a.cedar": rules, DEFAULT_FILE: ""}
    decisions = [
        decide(
            Request(agent="bot", session="s", digest=digest(one, agent="bot"), plan=one),
            (),
            RuleBook.of(texts, CATALOG),
            NOW,
        )
        for one in (plan, stored(plan))
    ]
    assert decisions[0] == decisions[1]
    return decisions[0]


def commit(id: str, own: Need, target: Plan | None = None, **facts: Any) -> Plan:
    """The plan of one commit, as a runtime and the engine make it."""
    made = plan_of(Revert(verb="commit", target=id), own, undo="irreversible", **facts)
    return with_target(made, target, most=MOST, catalog=CATALOG) if target is not None else made


def in_folder(id: str, folder: str, **more: Any) -> Plan:
    own = Need(
        service="files", account=folder, scope="files.write", risk=Risk.DELETE, methods=("files.run",),
        arguments=({"verb": "commit"},),
    )  # fmt: skip
    return commit(id, own, folder=folder, **more)


def in_database(id: str, name: str, table: str, rows: int) -> Plan:
    own = need("goex", id, "commit", action=id)
    return commit(id, own, databases=[name], tables=[table], bounds={"rows": rows})


def several(*plans: Plan) -> Plan:
    """The plan of all these commits, as the engine makes it."""
    ids = [one.action.target for one in plans if isinstance(one.action, Revert)]
    return replace(
        plans[-1],
        action=Revert(verb="commit", target=ids[-1], also=tuple(ids[:-1])),
        needs=tuple(need for one in plans for need in one.needs),
        resolved={"verb": "commit", "each": together(dict(zip(ids, plans, strict=True)))},
        bounds={},
    )


# The later of two comes last, and the journal has them by id: "a-1" stands first in one of them only.
FIRST, SECOND = in_folder("a-9", "/p/docs"), in_folder("a-1", "/q")
SHOP, HR = in_database("a-8", "shop", "orders", 3), in_database("a-2", "hr", "people", 40)


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("rest", "plans"),
    [
        (' in Folder::"/p");', (FIRST, SECOND)),
        (') when { context has folder && context.folder like "/p*" };', (FIRST, SECOND)),
        (' in Folder::"/q");', (FIRST, SECOND)),
        (') when { context.databases.contains("hr") };', (SHOP, HR)),
        (') when { context.tables.contains("orders") };', (SHOP, HR)),
        (") when { context.bounds has rows && context.bounds.rows > 30 };", (SHOP, HR)),
        (') when { context.databases.contains("shop") };', (FIRST, SHOP)),
    ],
)
def test_a_rule_holds_for_each_of_several_commits(rest: str, plans: tuple[Plan, Plan]) -> None:
    alone = [decided(NO_COMMIT + rest, one) for one in plans]
    assert {type(one) for one in alone} <= {Deny, Ask} and any(isinstance(one, Deny) for one in alone)
    for both in (several(*plans), several(*reversed(plans))):
        found = decided(NO_COMMIT + rest, both)
        assert isinstance(found, Deny) and found.rules == ("kept",), found
    assert isinstance(decided("", several(*plans)), Ask)


def test_several_commits_count_together() -> None:
    rule = NO_COMMIT + ") when { context.calls > 1 };"
    assert isinstance(decided(rule, FIRST), Ask)
    assert isinstance(decided(rule, several(FIRST, SECOND)), Deny)


def test_a_permit_has_to_hold_for_each_of_several_commits() -> None:
    rule = '@id("p") permit (principal, action == Action::"commit", resource in Folder::"/p");\n'
    other = '@id("q") permit (principal, action == Action::"commit", resource in Folder::"/q");'
    assert isinstance(decided(rule, FIRST, default=False), Allow)
    assert isinstance(decided(rule, several(FIRST, SECOND), default=False), Ask)
    assert isinstance(decided(rule + other, several(FIRST, SECOND), default=False), Allow)


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("bounds", "plans"),
    [
        (Confinement(folders=("/q",)), (FIRST, SECOND)),
        (Confinement(databases=("shop",)), (SHOP, HR)),
        (Confinement(tables=("orders",)), (SHOP, HR)),
        (Confinement(rows=10), (SHOP, HR)),
        (Confinement(hosts=("a.example",)), (SHOP, commit("a-3", HR.needs[0], reach=["https://b.example"]))),
    ],
)
def test_several_commits_are_confined_as_each_is(bounds: Confinement, plans: tuple[Plan, Plan]) -> None:
    said = [bounds.refusal(one, agent="bot", situation=Situation(), catalog=CATALOG) for one in plans]
    assert [bool(one) for one in said].count(True) == 1
    for both in (several(*plans), several(*reversed(plans))):
        assert bounds.refusal(both, agent="bot", situation=Situation(), catalog=CATALOG) == "".join(said)


def test_several_commits_of_an_older_version_are_denied() -> None:
    plan = several(FIRST, SECOND)
    older = {one: dict(each["resolved"]) for one, each in plan.resolved["each"].items()}
    for each in (older, {"a-9": plan.resolved["each"]["a-9"]}, None):
        plan = replace(plan, resolved={"verb": "commit", "each": each})
        assert isinstance(decided("", plan), Deny)
        with pytest.raises(InvalidInput):
            Confinement(folders=("/p",)).refusal(plan, agent="bot", situation=Situation())


# ---- what the target was asked about

UPDATE = "UPDATE orders SET status = 'secret'"
STATEMENTS = plan_of(
    Sql(database="shop", statements=UPDATE),
    Need(
        service="db", account="shop", scope="orders:update", risk=Risk.DELETE, methods=("update",),
        arguments=({"statement": UPDATE},),
    ),
    need("db", "shop", "select", risk=Risk.READ, statement=UPDATE),
    undo="compensating",
    databases=["shop"],
    tables=["orders"],
)  # fmt: skip


def redo(**resolved: Any) -> Plan:
    own = need("db", "shop", "update", verb="redo", target="a-1")
    return plan_of(Revert(verb="redo", target="a-1"), own, databases=["shop"], tables=["orders"], **resolved)


@pytest.mark.promise(13)
@pytest.mark.parametrize("kind", ["sql", "redo"])
@pytest.mark.parametrize(
    "condition",
    [
        'context.risk == Risk::"delete"',
        'context.arguments has statement && context.arguments.statement like "*secret*"',
    ],
)
def test_statements_are_made_again_as_what_they_were_asked_for(kind: str, condition: str) -> None:
    rule = f'@id("no") forbid (principal, action == Action::"{kind}", resource) when {{ {condition} }};'
    again = with_target(redo(schema_hash="x"), STATEMENTS, most=MOST)
    assert isinstance(decided(rule, again), Deny)
    assert isinstance(decided(rule, redo(schema_hash="x")), Deny), "of an older version nobody knows what it makes"
    assert isinstance(decided('@id("o") permit (principal, action == Action::"sql", resource);', again), Ask)


@pytest.mark.parametrize("condition", ['context.undo == Undo::"compensating"', "context.calls > 1"])
def test_statements_are_made_again_with_the_way_back_and_number_that_they_had(condition: str) -> None:
    rule = f'@id("no") forbid (principal, action == Action::"sql", resource) when {{ {condition} }};'
    assert isinstance(decided(rule, STATEMENTS), Deny)
    assert isinstance(decided(rule, with_target(redo(), STATEMENTS, most=MOST)), Deny)


def posts(*texts: str) -> Plan:
    made = [{"channel": "#legal", "text": text} for text in texts]
    return plan_of(
        ApiCalls(calls=tuple(Call(service="slack", method="chat.postMessage", arguments=one) for one in made)),
        *(replace(need("slack", "w", "chat.postMessage"), arguments=(one,)) for one in made),
        steps=[{"service": "slack", "method": "chat.postMessage", "account": "w", "arguments": one} for one in made],
    )


POST = posts("x")
PROGRAM = plan_of(
    Code(language="python", program="x", services=("slack",)),
    need("slack", "w", "chat.postMessage"),
    steps=[{"service": "slack", "method": "chat.postMessage", "account": "w", "arguments": {}}],
)


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("rest", "target", "denied"),
    [
        (' in Service::"slack");', POST, True),
        (' == Method::"slack.chat.postMessage");', POST, True),
        (' == Method::"slack.chat.delete");', POST, False),
        (' in Service::"slack") when { context.account == "w" };', POST, True),
        (' == Method::"slack.chat.postMessage") when { context.arguments.channel == "#legal" };', POST, True),
        (' == Method::"slack.chat.postMessage") when { context.arguments.channel == "#ops" };', POST, False),
        (' == Method::"slack.chat.postMessage") when { context.arguments.channel == "#ops" };', PROGRAM, True),
        (' in Service::"slack");', PROGRAM, True),
        (' in Service::"db");', STATEMENTS, True),
        (' == Method::"db.update") when { context.risk == Risk::"delete" };', STATEMENTS, True),
        (' == Method::"db.delete");', STATEMENTS, False),
        (' in Service::"goex");', STATEMENTS, True),
    ],
)
def test_a_commit_is_held_to_what_forbids_it_by_what_its_target_called(rest: str, target: Plan, denied: bool) -> None:
    one = commit("a-5", need("goex", "a-5", "commit", action="a-5"), target)
    for plan in (one, several(one, SECOND), several(SECOND, one)):
        assert isinstance(decided(NO_COMMIT + rest, plan), Deny if denied else Ask)


def test_what_a_target_called_permits_no_commit() -> None:
    one = commit("a-1", need("goex", "a-1", "commit", action="a-1"), POST)
    rule = '@id("p") permit (principal, action == Action::"commit", resource in Service::"slack");'
    assert isinstance(decided(rule, one, default=False), Ask)
    assert isinstance(decided(rule.replace("slack", "goex"), one, default=False), Allow)


def test_arguments_that_are_too_many_to_be_kept_may_be_anything() -> None:
    rule = NO_COMMIT + ' == Method::"slack.chat.postMessage") when { context.arguments.channel == "#ops" };'
    own = need("goex", "a-1", "commit", action="a-1")
    for most, came in ((6000, Ask), (5000, Deny)):
        said = of_target(posts("x" * 5000), most=most)
        assert isinstance(decided(rule, commit("a-1", own, None, **{OF_TARGET: said})), came)
    many = of_target(posts(*map(str, range(500))), most=5000)
    assert len(canonical(many)) < 10_000
    assert many["parts"][-1]["arguments"] == {"channel": ANY_VALUE, "text": ANY_VALUE}
    scopes = replace(STATEMENTS, needs=tuple(replace(STATEMENTS.needs[0], scope=f"t{n}:update") for n in range(500)))
    (one,) = of_target(scopes, most=0)["parts"]
    assert len(one["scopes"]) == 500 and one["risk"] == "delete"


def test_what_many_commits_have_in_common_is_judged_once() -> None:
    ids = [f"a-{number}" for number in range(100)]
    plan = several(*(commit(id, need("goex", id, "commit", action=id), POST) for id in ids))
    asked = questions(plan, agent="bot", situation=Situation(), now=NOW, catalog=CATALOG)
    assert [one.resource[1] for one in asked].count("slack.chat.postMessage") == 1
    assert frozenset().union(*(one.needs for one in asked)) == frozenset(range(100))


# ---- partitions


def through(count: int, partitions: int) -> Plan:
    """So many statements that insert into a partitioned table, by that alone."""
    parts = [f"parts_{number}" for number in range(partitions)]
    made = [f"INSERT INTO parts VALUES ({number})" for number in range(count)]
    own = Need(
        service="db", account="shop", scope="parts:insert", risk=Risk.WRITE, methods=("insert",),
        arguments=tuple({"statement": sql} for sql in made),
    )  # fmt: skip
    return plan_of(
        Sql(database="shop", statements="; ".join(made)), own, database="shop", databases=["shop"],
        tables=["parts", *parts], within=parts, program={"statements": [{"sql": sql} for sql in made]},
        besides=[[part, "insert", list(range(count))] for part in parts],
    )  # fmt: skip


@pytest.mark.promise(13)
def test_a_partition_that_is_forbidden_is_for_its_parent_too_whichever_way_a_rule_names_it() -> None:
    for condition in ('context.scopes.contains("parts_1:insert")', 'context.tables.contains("parts_1")'):
        rule = f'@id("no") forbid (principal, action, resource) when {{ {condition} }};'
        plan = through(2, 3)
        assert isinstance(decided(rule, plan), Deny)
        again = replace(redo(), resolved={"databases": ["shop"], "tables": plan.resolved["tables"]})
        assert isinstance(decided(rule, with_target(again, plan, most=MOST)), Deny)


def test_a_permit_of_a_parent_by_its_table_covers_its_partitions() -> None:
    permit = '@id("o") permit (principal, action, resource) when {{ ["parts"{}].containsAll(context.tables) }};'
    assert isinstance(decided(permit.format(""), through(2, 3), default=False), Allow)
    other = through(2, 3)
    other = replace(other, resolved={**other.resolved, "tables": [*other.resolved["tables"], "hr"]})
    assert isinstance(decided(permit.format(""), other, default=False), Ask)


@pytest.mark.promise(16)
def test_a_hundred_partitions_are_asked_about_together() -> None:
    """For each by itself the daemon would be busy for half a minute."""
    plan = through(20, 100)
    asked = questions(plan, agent="bot", situation=Situation(), now=NOW, catalog=CATALOG)
    assert len(asked) <= 20 * 2
    assert len(of_target(plan, most=MOST)["parts"]) <= 20 * 2


# ---- a folder with several paths

ALSO = [{"folder": "/a/notes", "mount": "/a", "paths": ["/b/notes"]}]
STEP: JsonObject = {"service": "notes", "method": "write", "account": "x", "arguments": {}}
CALLED = plan_of(
    ApiCalls(calls=(Call(service="notes", method="write", arguments={}, account="x"),)),
    need("notes", "x", "write"),
    folder="/a/notes",
    also=ALSO,
    steps=[STEP],
)


@pytest.mark.promise(13)
@pytest.mark.parametrize("path", ["/a/notes", "/b/notes"])
@pytest.mark.parametrize("verb", ["", "redo", "commit"])
def test_calls_in_a_folder_are_held_to_what_forbids_it_by_any_of_its_paths(path: str, verb: str) -> None:
    plan = replace(CALLED, action=Revert(verb=verb, target="a-1")) if verb else CALLED  # type: ignore[arg-type]
    condition = f'context has folder && context.folder == "{path}"'
    for kind in {verb or "call", "call" if verb == "redo" else verb or "call"}:
        rule = f'@id("no") forbid (principal, action == Action::"{kind}", resource is Method) when {{ {condition} }};'
        assert isinstance(decided(rule, plan), Deny), kind


@pytest.mark.promise(13)
@pytest.mark.parametrize("kind", ["call", "redo"])
def test_what_calls_made_of_a_folder_is_brought_back_as_what_they_were_asked_for(kind: str) -> None:
    own = Need(service="files", account="/a/notes", scope="files.write", risk=Risk.DELETE, methods=("files.run",))
    made = replace(CALLED, action=Revert(verb="redo", target="a-1"), needs=(own,))
    rule = f'@id("no") forbid (principal, action == Action::"{kind}", resource == Method::"notes.write")'
    again = with_target(made, CALLED, most=MOST)
    assert isinstance(decided(rule + ' when { context.risk == Risk::"write" };', again), Deny)
    assert isinstance(decided(rule + ' when { context.risk == Risk::"admin" };', again), Ask)


def test_calls_of_a_service_are_asked_about_as_they_are_made_again() -> None:
    made = replace(POST, action=Revert(verb="redo", target="a-1"))
    assert with_target(made, posts("x", "which wasn't sent"), most=MOST) is made
    undo = replace(made, action=Revert(verb="undo", target="a-1"))
    assert with_target(undo, STATEMENTS, most=MOST) is undo


@pytest.mark.parametrize(("path", "came"), [("/a/notes", Allow), ("/b/notes", Ask)])
def test_a_folder_s_other_paths_permit_no_calls(path: str, came: type) -> None:
    condition = f'context has folder && context.folder == "{path}"'
    rule = f'@id("yes") permit (principal, action == Action::"call", resource) when {{ {condition} }};'
    assert isinstance(decided(rule, CALLED), came)


def test_a_program_in_a_folder_is_held_to_it_by_any_of_its_paths() -> None:
    own = Need(service="files", account="/a/notes", scope="files.write", risk=Risk.DELETE, methods=("files.run",))
    plan = plan_of(Files(folder="/a/notes", language="shell", program="x"), own, folder="/a/notes", also=ALSO)
    for rest in (' in Folder::"/b");', ') when { context has folder && context.folder == "/b/notes" };'):
        rule = '@id("no") forbid (principal, action == Action::"files", resource' + rest
        assert isinstance(decided(rule, plan), Deny)


# ---- what a person tries and checks their rules with


def came(rules: str, case: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    request, grants, now = read(case, CATALOG)
    return outcome(decide(request, grants, RuleBook.of({"a.cedar": rules}, CATALOG), now))[:2]


STATEMENT = {"database": "shop", "scopes": ["orders:update"], "program": UPDATE}


def test_cases_of_commits_and_redos_come_to_what_the_daemon_comes_to() -> None:
    call = {"call": "slack.chat.postMessage", "arguments": {"channel": "#ops", "text": "x"}}
    for case, rest in ((call, ' in Service::"slack");'), (STATEMENT, ' == Method::"db.update");')):
        assert came(NO_COMMIT + rest, {**case, "kind": "commit"}) == ("deny", ("kept",))
    secret = 'when { context.arguments has statement && context.arguments.statement like "*secret*" };'
    for kind, says in (("sql", "deny"), ("mongo", "ask"), ("call", "ask")):
        rule = f'@id("no") forbid (principal, action == Action::"{kind}", resource) {secret}'
        assert came(rule, {**STATEMENT, "kind": "redo"})[0] == says


def test_a_rule_about_what_a_commit_drops_isn_t_said_to_apply_never() -> None:
    for rest in (' in Service::"goex");', ' == Method::"goex.commit");', ' in Service::"slack");'):
        assert check({"a.cedar": NO_COMMIT + rest}, CATALOG)[1] == ()
