"""Rules from the person's folder to what a real daemon does: drafts, applying with presence, decisions, tampering."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, problem, shell, undo

pytestmark = pytest.mark.docker

REPLIES = {
    "InForce": rb.InForceReply,
    "CheckRules": rb.CheckRulesReply,
    "ApplyRules": rb.InForceReply,
    "TestRules": rb.TestRulesReply,
    "ExplainRules": rb.ExplainRulesReply,
    "WakeAgent": rb.WakeAgentReply,
}


@pytest.fixture
def fresh() -> Iterator[Daemon]:
    """A daemon of its own: rules are for the whole of it."""
    with Daemon() as running:
        yield running


def rules(daemon: Daemon, method: str, request: Any, *, socket: Path | None = None) -> Any:
    call = daemon.channel(socket or daemon.user_socket).unary_unary(
        f"/goex.v1.Rules/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=REPLIES[method].FromString,
    )
    return call(request, timeout=300)


def draft(daemon: Daemon, text: str, name: str = "mine.cedar") -> None:
    folder = daemon.config_dir / "rules"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def apply(daemon: Daemon, text: str, *, passphrase: str = APPROVAL_PASSPHRASE) -> rb.InForceReply:
    files = [rb.RuleFile(name="mine.cedar", text=text)]
    checked = rules(daemon, "CheckRules", rb.CheckRulesRequest(files=files))
    request = rb.ApplyRulesRequest(files=files, compared_with=checked.hash, passphrase=passphrase)
    reply: rb.InForceReply = rules(daemon, "ApplyRules", request)
    return reply


def deny(daemon: Daemon, folder: Path, token: str) -> pb.Approval:
    """Have an agent ask for something that only a question settles, and say no."""
    journey = Journey(daemon, shell(folder, "true"), token=token)
    approval = journey.asked()
    decide(daemon, approval, approve=False)
    assert journey.finished().action.state == "denied"
    return approval


def refused(call: Any) -> pb.Problem:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return problem(caught.value)


def test_a_permit_runs_without_asking_and_a_forbid_denies_by_name(fresh: Daemon, folder: Path) -> None:
    token = fresh.add_agent("bot")
    allows = (
        f'@id("here") permit (principal == Agent::"bot", action == Action::"files", resource in Folder::"{folder}");'
    )
    apply(fresh, allows)
    finished = Journey(fresh, shell(folder, "echo x > x"), token=token).finished()
    assert finished.action.state == "done"
    assert (folder / "x").read_text() == "x\n"
    story = fresh.goex("rules", "explain", finished.action.id)
    assert "here  runs without asking" in story.stdout
    assert "allow at" in story.stdout
    assert "by rule here" in story.stdout

    # Another agent, the agent without a name, and taking it back aren't what the rule is about.
    for request, more in ((shell(folder, "true"), {}), (undo(finished.action.id), {"token": token})):
        journey = Journey(fresh, request, **more)
        decide(fresh, journey.asked(), approve=False)
        assert journey.finished().action.state == "denied"

    secret = '@id("not-here") @note("because ann said so") forbid (principal, action, resource);'
    apply(fresh, allows + secret)
    finished = Journey(fresh, shell(folder, "rm x"), token=token).finished()
    assert finished.action.state == "denied"
    assert "not-here" in finished.problem.message
    assert "ann said" not in finished.problem.message
    assert (folder / "x").exists()
    finished = Journey(fresh, shell(folder, "rm x"), person=True).finished()  # forbidden is forbidden
    assert finished.action.state == "denied"


def test_asking_each_time_asks_despite_a_permanent_grant(fresh: Daemon, folder: Path) -> None:
    token = fresh.add_agent("bot")
    assert Journey(fresh, shell(folder, "true"), token=token).approve("permanent").action.state == "done"
    assert Journey(fresh, shell(folder, "true"), token=token).finished().action.state == "done"
    apply(fresh, '@id("each") @effect("ask") forbid (principal, action == Action::"files", resource);')
    approval = Journey(fresh, shell(folder, "true"), token=token).asked()
    assert list(approval.widths) == ["once"]
    assert "each" in approval.reason


def test_a_difference_of_files_with_an_error_is_none(fresh: Daemon) -> None:
    draft(fresh, '@id("all") permit (principal, action, resource);\nbroken(')
    found = fresh.goex("rules", "diff")
    assert (found.returncode, "can't be put in force" in found.stderr) == (2, True)
    assert "error" in found.stdout and "No rule differs" not in found.stdout


def test_taking_back_nothing_is_said(fresh: Daemon) -> None:
    for found in (fresh.goex("revoke", "--task", "a-mistyped"), fresh.goex("revoke", "--agent", "nobody")):
        assert (found.returncode, "nothing was revoked" in found.stderr) == (2, True)


@pytest.mark.promise(14)
def test_editing_a_file_changes_nothing_until_it_is_applied(fresh: Daemon, folder: Path) -> None:
    token = fresh.add_agent("bot")
    draft(fresh, '@id("all") permit (principal, action, resource);')
    fresh.restart()
    deny(fresh, folder, token)
    listed = fresh.goex("rules")
    assert "all" not in listed.stdout.split()
    assert "differ from what is in force in 1 rule" in listed.stderr
    assert "in 1 rule" in fresh.goex("daemon", "status").stderr
    assert "rules" in fresh.goex("doctor", "--quick").stdout

    # Applying wants the person: a terminal, the difference, a yes and the passphrase.
    assert fresh.goex("rules", "apply").returncode == 3
    with fresh.terminal("rules", "apply") as terminal:
        terminal.expect("added all: runs without asking")
        terminal.expect("in force\\? \\[y/N\\]")
        terminal.type("n")
        assert terminal.wait() == 3
    deny(fresh, folder, token)
    with fresh.terminal("rules", "apply") as terminal:
        terminal.expect("in force\\? \\[y/N\\]")
        terminal.type("y")
        terminal.expect("Approval passphrase")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect("In force: 6 rules")
        assert terminal.wait() == 0
    assert Journey(fresh, shell(folder, "true"), token=token).finished().action.state == "done"

    # A difference longer than the screen is shown to its end before anybody can agree, with --json too.
    each = 'forbid (principal, action == Action::"sql", resource);'
    long = "".join(f'@id("r{number:03}") {each}\n' for number in range(40))
    draft(fresh, f'{long}@id("all") permit (principal, action, resource);')
    with fresh.terminal("rules", "apply", "--json") as terminal:
        terminal.expect("of \\d+ lines; Enter shows more")
        terminal.type("q")
        assert terminal.wait() == 3
    draft(fresh, '@id("all") permit (principal, action, resource);')
    fresh.restart()
    assert Journey(fresh, shell(folder, "true"), token=token).finished().action.state == "done"
    assert fresh.goex("rules").stderr == ""


def test_applying_is_refused_without_presence_for_what_is_wrong_and_for_what_was_not_compared(fresh: Daemon) -> None:
    good = '@id("a") forbid (principal, action, resource in Service::"slack");'
    assert refused(lambda: apply(fresh, good, passphrase="")).code == "presence"
    assert refused(lambda: apply(fresh, good, passphrase="guessed")).exit_status == 3
    wrong = refused(lambda: apply(fresh, "forbid (principal, action resource);"))
    assert "mine.cedar:1:27" in wrong.message
    stale = rb.ApplyRulesRequest(
        files=[rb.RuleFile(name="mine.cedar", text=good)], compared_with="0" * 64, passphrase=APPROVAL_PASSPHRASE
    )
    assert refused(lambda: rules(fresh, "ApplyRules", stale)).code == "conflict"
    odd = rb.ApplyRulesRequest(files=[rb.RuleFile(name="../x.cedar", text=good)], passphrase=APPROVAL_PASSPHRASE)
    assert refused(lambda: rules(fresh, "ApplyRules", odd)).code == "invalid"
    assert rules(fresh, "InForce", rb.InForceRequest()).applied == ""


def test_what_is_in_force_already_takes_no_passphrase_and_any_other_text_does(fresh: Daemon) -> None:
    good = '@id("a") forbid (principal, action, resource in Service::"slack");'
    assert apply(fresh, good).applied
    before = rules(fresh, "InForce", rb.InForceRequest())
    assert apply(fresh, good, passphrase="") == before
    for other in (f"{good} // a remark", good.replace("slack", "github")):
        assert refused(lambda text=other: apply(fresh, text, passphrase="")).code == "presence"
    files = [rb.RuleFile(name="mine.cedar", text=good)]
    for compared in ("", "0" * 64):
        blind = rb.ApplyRulesRequest(files=files, compared_with=compared)
        assert refused(lambda asked=blind: rules(fresh, "ApplyRules", asked)).code == "presence"
    assert rules(fresh, "InForce", rb.InForceRequest()) == before


def test_altered_rules_are_said_and_everything_is_asked(fresh: Daemon, folder: Path) -> None:
    token = fresh.add_agent("bot")
    never = '@id("never") forbid (principal, action, resource);'
    apply(fresh, never)
    fresh.stop()
    with sqlite3.connect(fresh.state_dir / "state.db") as connection:
        connection.execute("UPDATE rulebook SET files = replace(files, 'forbid', 'permit')")
    fresh.start()
    fresh.unlock()
    # Also what was in force is put there again by the person alone.
    assert refused(lambda: apply(fresh, never, passphrase="")).code == "presence"
    approval = deny(fresh, folder, token)
    assert "were altered" in approval.reason
    assert list(approval.widths) == ["once"]
    listed = fresh.goex("rules")
    assert "were altered" in listed.stderr
    doctor = fresh.goex("doctor", "--quick").stdout
    assert "were altered" in doctor
    apply(fresh, '@id("never") forbid (principal, action, resource);')
    assert Journey(fresh, shell(folder, "true"), token=token).finished().action.state == "denied"


def test_before_the_vault_is_open_nobody_knows_the_rules(fresh: Daemon) -> None:
    fresh.restart(unlock=False)
    done = fresh.goex("rules")
    assert (done.returncode, "goex vault unlock" in done.stderr) == (7, True)
    assert fresh.goex("daemon", "status").returncode == 0
    for command in ("diff", "apply"):  # nor what of them would change
        done = fresh.goex("rules", command)
        assert (done.returncode, "goex vault unlock" in done.stderr, done.stdout) == (7, True, "")


def test_where_comments_alone_differ_it_is_said_what_the_passphrase_is_for(fresh: Daemon) -> None:
    good = '@id("a") forbid (principal, action, resource in Service::"slack");'
    assert apply(fresh, good).applied
    draft(fresh, f"{good} // a remark")
    with fresh.terminal("rules", "apply") as terminal:
        terminal.expect("No rule differs from what is in force")
        terminal.expect("Comments, and the order and names of your files, are put in force too")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0


@pytest.mark.promise(14)
@pytest.mark.parametrize("method", REPLIES)
def test_an_agent_reaches_no_call_about_rules(daemon: Daemon, method: str) -> None:
    request = {
        "InForce": rb.InForceRequest(),
        "CheckRules": rb.CheckRulesRequest(),
        "ApplyRules": rb.ApplyRulesRequest(passphrase=APPROVAL_PASSPHRASE),
        "TestRules": rb.TestRulesRequest(),
        "ExplainRules": rb.ExplainRulesRequest(),
        "WakeAgent": rb.WakeAgentRequest(agent="bot", passphrase=APPROVAL_PASSPHRASE),
    }[method]
    with pytest.raises(grpc.RpcError) as caught:
        rules(daemon, method, request, socket=daemon.agent_socket)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_confinement_and_the_breaker_are_set_in_config(folder: Path) -> None:
    config = f'[confine]\nfolders = ["{folder}"]\nsession_actions = 2\n[breaker]\ndenials = 3\n'
    with Daemon(config=config) as daemon:
        token = daemon.add_agent("bot")
        apply(daemon, '@id("all") permit (principal, action, resource);')
        other = folder.with_name("other")
        other.mkdir(mode=0o777)
        denied = Journey(daemon, shell(other, "true"), token=token).finished()
        assert "confined" in denied.problem.message
        assert "confined" in Journey(daemon, shell(other, "true"), person=True).finished().problem.message
        states = [Journey(daemon, shell(folder, "true"), token=token).finished().action.state for _ in range(3)]
        assert states == ["done", "done", "denied"]
        assert Journey(daemon, shell(folder, "true"), token=token).finished().action.state == "denied"
        # Three denials: now nothing is even taken.
        resting = refused(lambda: list(daemon.actions("Execute", shell(folder, "true"), token=token)))
        assert resting.code == "resting"
        assert "bot rests" in daemon.goex("rules").stderr
        assert Journey(daemon, shell(folder, "true"), person=True).finished().action.state == "done"
        woken = rb.WakeAgentRequest(agent="bot", passphrase=APPROVAL_PASSPHRASE)
        assert rules(daemon, "WakeAgent", woken).rested
        assert Journey(daemon, shell(folder, "true"), token=token).finished().action.state == "denied"  # the cap


def test_cases_and_calls_are_tried_on_what_is_in_force(fresh: Daemon, tmp_path: Path) -> None:
    fresh.add_agent("bot")
    apply(fresh, '@id("ops") permit (principal == Agent::"bot", action, resource in Service::"slack");')
    table = tmp_path / "cases.toml"
    table.write_text(
        '[[case]]\ncall = "slack.users.list"\nexpect = "allow"\nrule = "ops"\n'
        '[[case]]\ncall = "matrix.rooms.list"\nexpect = "ask"\n'
    )
    done = fresh.goex("rules", "test", str(table))
    assert (done.returncode, done.stdout) == (0, "As expected: 2 of 2 cases.\n")
    table.write_text('[[case]]\nname = "no"\ncall = "slack.users.list"\nexpect = "deny"\n')
    done = fresh.goex("rules", "test", str(table))
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "no: expected deny, but it is")
    said = fresh.goex("rules", "explain", "--call", "slack.users.list", "--agent", "bot").stdout
    assert "ops  runs without asking" in said
    said = fresh.goex("rules", "explain", "--call", "slack.chat.delete", "--arg", "channel=#a", "--arg", "ts=1").stdout
    assert "irreversible-asks  asked for each time" in said
    assert "asked for  slack:chat:write" in said
