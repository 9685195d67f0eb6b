"""A document that is imported anew, which takes no presence: what was allowed before is for what was there then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.goex.daemon.test_reversions import connect, copy_of, notes, service
from tests.goex.daemon.test_rules import REPLIES, apply, draft, refused, rules
from tests.mapper.importing.undo_specs import document
from tests.services.apis.notes import Notes
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, as_the_person_sees, decide, undo

__all__ = ["notes", "service"]

pytestmark = pytest.mark.docker

NAMES = {
    ("/notes", "post"): "makeNote",
    ("/notes/{id}", "get"): "readNote",
    ("/notes/{id}", "delete"): "removeNote",
    ("/notes", "get"): "listNotes",
}
READS = (
    '@id("reads") permit (principal == Agent::"bot", action == Action::"call", resource == Method::"notes.readNote");'
)
ALL = '@id("all") permit (principal == Agent::"bot", action == Action::"call", resource in Service::"notes");'
NEVER = '@id("never") forbid (principal, action, resource == Method::"notes.readNote");'


@pytest.fixture(scope="module")
def prepared(sandbox_image: str, service: Notes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a daemon leaves that has the notes imported and an account of them."""
    with Daemon() as running:
        imported(running, tmp_path_factory.mktemp("imported"))
        connect(running, service)
        running.stop()
        yield running.home


@pytest.fixture
def daemon(prepared: Path, notes: Notes) -> Iterator[Daemon]:
    """With the notes imported, and an account of them."""
    notes.override = lambda hit: (200, []) if (hit.method, hit.path) == ("GET", "/notes") else None
    with copy_of(prepared) as running:
        yield running


def imported(daemon: Daemon, folder: Path, moved: tuple[str, str, str] | None = None, **names: str) -> None:
    """Import the notes as an agent could: one operation moved to another path (path, verb, where), others renamed."""
    made = document("notes")
    for (path, verb), name in NAMES.items():
        made["paths"][path][verb]["operationId"] = names.get(name, name)
    if moved is not None:
        path, verb, where = moved
        about = {name: value for name, value in made["paths"][path].items() if name == "parameters"}
        made["paths"].setdefault(where, about)[verb] = made["paths"][path].pop(verb)
    (folder / "notes.json").write_text(json.dumps(made))
    done = daemon.goex("catalog", "import", "openapi", str(folder / "notes.json"), "--name", "notes")
    assert done.returncode == 0, done.stderr


def call(method: str, **arguments: Any) -> pb.ExecuteRequest:
    made = pb.Call(service="notes", method=method, arguments_json=json.dumps(arguments))
    return pb.ExecuteRequest(calls=pb.Calls(calls=[made]))


def make(daemon: Daemon) -> str:
    journey = Journey(daemon, call("makeNote", body={"title": "x"}), person=True)
    assert journey.approve().action.state == "done", journey.seen[-1]
    return journey.action_id


def asked(daemon: Daemon, request: Any, **who: Any) -> pb.Approval:
    """The question as the person sees it, answered with no."""
    journey = Journey(daemon, request, **who)
    found = as_the_person_sees(daemon, journey.asked())
    decide(daemon, found, approve=False)
    assert journey.finished().action.state == "denied"
    return found


def runs(daemon: Daemon, request: Any, **who: Any) -> bool:
    """Whether it runs unasked."""
    journey = Journey(daemon, request, **who)
    return journey.finished().action.state == "done" and not any(one.HasField("asking") for one in journey.seen)


def suggested(daemon: Daemon) -> list[str]:
    """The methods that a rule is suggested for."""
    return [one["method"] for one in json.loads(daemon.goex("rules", "suggest", "--json").stdout)["rules"]]


@pytest.mark.promise(2, 92)
def test_an_undo_is_shown_whole_where_the_catalog_says_otherwise_since(
    daemon: Daemon, notes: Notes, tmp_path: Path
) -> None:
    short = asked(daemon, undo(make(daemon)), person=True)
    assert short.question.alone and "You want to undo your last action" in short.question.sentence
    in_task = [make(daemon), make(daemon)]
    bounds = json.dumps({"target": {"in": in_task}})
    line = pb.Allowance(service="goex", method="undo", arguments_json=bounds, times=len(in_task))
    task = Journey(daemon, pb.ExecuteRequest(task=pb.Task(title="Tidy", allows=[line])), person=True)
    assert task.approve().action.state == "done"
    last = make(daemon)
    assert runs(daemon, undo(in_task[0]), person=True)

    imported(daemon, tmp_path, moved=("/notes/{id}", "delete", "/accounts/{id}"))
    notes.hits.clear()
    for target in (last, in_task[1]):
        whole = asked(daemon, undo(target), person=True)
        assert not whole.question.alone
        assert any("DELETE" in each and "/accounts/" in each for each in whole.question.payload)
        assert any("What GoEx knows of these methods changed since" in each for each in whole.question.payload)
    assert not notes.hits
    imported(daemon, tmp_path)  # as it was
    assert asked(daemon, undo(make(daemon)), person=True).question.alone


@pytest.mark.promise(14)
def test_a_permit_is_for_the_request_that_it_was_applied_for(daemon: Daemon, notes: Notes, tmp_path: Path) -> None:
    token = daemon.add_agent("bot")
    read = call("readNote", id="n1")
    for _ in range(2):
        assert Journey(daemon, call("listNotes"), token=token).approve().action.state == "done"
    apply(daemon, READS)
    assert runs(daemon, read, token=token) and "imported catalog" not in daemon.goex("rules").stderr
    imported(daemon, tmp_path, moved=("/notes/{id}", "get", "/keys/{id}"))
    notes.hits.clear()
    found = asked(daemon, read, token=token)
    assert "what the imported catalog says now of notes.readNote" in found.reason and "goex rules apply" in found.reason
    assert list(found.widths) == ["once"] and not notes.hits
    assert found.reason in found.question.notes
    assert "the imported catalog says now of notes." in daemon.goex("rules").stderr
    table = tmp_path / "cases.toml"
    table.write_text(
        '[[case]]\ncall = "notes.readNote"\narguments = { id = "n1" }\naccount = "mine"\nexpect = "allow"\n'
    )
    tried = daemon.goex("rules", "test", str(table))
    assert "the imported catalog says now of notes." in tried.stderr and "as if the rules were applied" in tried.stderr
    tried = daemon.goex("rules", "test", "--drafts", str(table))
    assert "imported catalog" not in tried.stderr  # control: drafts would be applied for what it says now
    assert (
        "ask by catalog-changed"
        in daemon.goex(
            "rules", "explain", "--call", "notes.readNote", "--arg", "id=n1", "--agent", "bot", "--account", "mine"
        ).stdout
    )

    # Nothing but the person's own `goex rules apply` puts all rules in force for another catalog, and it says so.
    (suggestion,) = json.loads(daemon.goex("rules", "suggest", "--json").stdout)["rules"]
    hash = rules(daemon, "InForce", rb.InForceRequest()).hash
    take = rb.ApplySuggestedRulesRequest(rules=[suggestion["text"]], compared_with=hash, passphrase=APPROVAL_PASSPHRASE)
    REPLIES["ApplySuggestedRules"] = rb.InForceReply
    assert "goex rules apply" in refused(lambda: rules(daemon, "ApplySuggestedRules", take)).message
    assert refused(lambda: apply(daemon, READS, passphrase="")).code == "presence"
    draft(daemon, READS)
    with daemon.terminal("rules", "apply") as terminal:
        terminal.expect("This puts them in force for what it says now")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect("In force")
        assert terminal.wait() == 0
    assert "imported catalog" not in daemon.goex("rules").stderr
    Journey(daemon, read, token=token).finished()
    assert [(hit.method, hit.path) for hit in notes.hits] == [("GET", "/keys/n1")]


@pytest.mark.promise(14)
def test_a_forbidden_method_gets_no_other_name(daemon: Daemon, notes: Notes, tmp_path: Path) -> None:
    token = daemon.add_agent("bot")
    apply(daemon, ALL + NEVER)
    assert Journey(daemon, call("readNote", id="n1"), token=token).finished().action.state == "denied"
    assert runs(daemon, call("listNotes"), token=token)
    imported(daemon, tmp_path, readNote="seeNote")
    notes.hits.clear()
    assert "goex rules apply" in asked(daemon, call("seeNote", id="n1"), token=token).reason
    assert not notes.hits

    # What the rules were compared for is what they are put in force for.
    files = [rb.RuleFile(name="mine.cedar", text=ALL)]
    compared = rules(daemon, "CheckRules", rb.CheckRulesRequest(files=files)).hash
    request = rb.ApplyRulesRequest(files=files, compared_with=compared, passphrase=APPROVAL_PASSPHRASE)
    imported(daemon, tmp_path)
    assert "the imported catalog changed" in refused(lambda: rules(daemon, "ApplyRules", request)).message
    assert apply(daemon, ALL).applied  # control: what is compared now


@pytest.mark.promise(14)
def test_nothing_is_put_in_force_for_a_catalog_that_cant_be_read(daemon: Daemon) -> None:
    apply(daemon, READS)
    files = [rb.RuleFile(name="mine.cedar", text=ALL)]
    hash = rules(daemon, "CheckRules", rb.CheckRulesRequest(files=files)).hash
    catalog = daemon.state_dir / "catalog.db"
    kept = catalog.rename(catalog.with_name("kept.db"))
    catalog.touch()
    catalog.chmod(0o644)
    said = rules(daemon, "InForce", rb.InForceRequest()).catalog
    assert "chmod 600" in said and "rules apply" not in said
    request = rb.ApplyRulesRequest(files=files, compared_with=hash, passphrase=APPROVAL_PASSPHRASE)
    for one in (lambda: rules(daemon, "ApplyRules", request), lambda: apply(daemon, ALL)):
        assert "is open to others" in refused(one).message and "chmod 600" in refused(one).next_step
    kept.rename(catalog)
    assert rules(daemon, "InForce", rb.InForceRequest()).catalog == ""
    assert rules(daemon, "ApplyRules", request).applied  # control: the same, now that it can be read


@pytest.mark.promise(14)
def test_a_yes_to_another_request_suggests_nothing(daemon: Daemon, tmp_path: Path) -> None:
    token = daemon.add_agent("bot")
    for _ in range(3):
        assert Journey(daemon, call("readNote", id="n1"), token=token).approve().action.state == "done"
    assert suggested(daemon) == ["notes.readNote"]
    imported(daemon, tmp_path, moved=("/notes/{id}", "get", "/keys/{id}"))
    assert suggested(daemon) == []
    imported(daemon, tmp_path)  # as it was
    assert suggested(daemon) == ["notes.readNote"]
