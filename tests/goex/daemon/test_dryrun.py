"""Dry runs through a real daemon: only the person gets one, it decides nothing, and nothing of it stays."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.runtimes.files.test_dryrun import all_of_it
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, as_the_person_sees, decide, problem, shell, undo
from tests.support.waiting import until

pytestmark = pytest.mark.docker


def dry(daemon: Daemon, request: pb.DryRunRequest, socket: Path | None = None) -> pb.DryRunReply:
    events = list(daemon.call(socket or daemon.user_socket, "Person", "DryRun", request))
    assert [event.WhichOneof("what") for event in events[:-1]] == ["progress"] * (len(events) - 1)
    done: pb.DryRunReply = events[-1].done
    return done


def of(approval: pb.Approval, **changes: str) -> pb.DryRunRequest:
    facts = {"approval_id": approval.id, "digest": approval.digest, **changes}
    return pb.DryRunRequest(question=pb.DryRunQuestion(**facts))


def said(reply: pb.DryRunReply) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in reply.lines]


def left(daemon: Daemon) -> list[str]:
    copies = daemon.state_dir / "snapshots" / "dry"
    return [each.name for each in copies.iterdir()] if copies.exists() else []


def rows(daemon: Daemon, kind: str) -> list[Any]:
    found = daemon.person("Log", pb.LogRequest(limit=200)).rows
    return [row for row in found if row.kind == kind]


@pytest.mark.promise(28)
def test_a_question_is_run_dry_and_still_waits(daemon: Daemon, folder: Path) -> None:
    (folder / "kept.txt").write_text("as it was\n")
    (folder / "kept.txt").chmod(0o666)
    journey = Journey(daemon, shell(folder, "echo changed > kept.txt; echo new > new.txt; echo hello"))
    approval = as_the_person_sees(daemon, journey.asked())
    before = all_of_it(folder)
    reply = dry(daemon, of(approval))
    assert reply.ok
    assert reply.summary == "The program ended well: 1 created, 1 changed."
    assert {("removed", "as it was"), ("added", "changed"), ("added", "new"), ("output", "hello")} <= {*said(reply)}
    assert all_of_it(folder) == before
    assert left(daemon) == []
    pending = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=approval.id)).approvals[0]
    assert pending.state == "pending"
    begun, ended = rows(daemon, "dry-run")[0], rows(daemon, "dry-run-ended")[0]
    facts = json.loads(begun.facts_json)
    assert (begun.action_id, facts["question"], facts["digest"]) == (journey.action_id, approval.id, approval.digest)
    assert "user.sock" in facts["by"] or "user" in facts["by"]
    assert json.loads(ended.facts_json)["ok"] is True
    decide(daemon, approval)
    assert journey.finished().action.state == "done"
    assert (folder / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize("what", ["digest", "settled", "unknown", "nothing"])
def test_only_what_was_shown_and_waits_is_run_dry(daemon: Daemon, folder: Path, what: str) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    request = of(approval)
    if what == "digest":
        request = of(approval, digest="0" * 64)
    elif what == "settled":
        decide(daemon, approval, approve=False)
    elif what == "unknown":
        request = of(approval, approval_id="q-none")
    else:
        request = pb.DryRunRequest()
    with pytest.raises(grpc.RpcError) as caught:
        dry(daemon, request)
    assert problem(caught.value).code in ("conflict", "invalid")
    assert left(daemon) == []
    journey.leave()


@pytest.mark.promise(28)
def test_an_agent_gets_none(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    with pytest.raises(grpc.RpcError) as caught:
        dry(daemon, of(approval), daemon.agent_socket)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert not [row for row in rows(daemon, "dry-run") if row.action_id == journey.action_id]
    journey.leave()


def test_what_is_not_asked_for_yet_is_planned_and_run_dry(daemon: Daemon, folder: Path) -> None:
    before = daemon.actions("List", pb.ListRequest(), socket=daemon.user_socket).actions
    pending = len(daemon.person("Approvals", pb.ApprovalsRequest()).approvals)
    reply = dry(daemon, pb.DryRunRequest(request=shell(folder, "mkdir made; exit 4")))
    assert not reply.ok
    assert reply.summary == "The program ended with exit status 4: 1 created."
    assert ("change", "created made/") in said(reply)
    assert f"Folder: {folder}" in reply.plan
    assert not list(folder.iterdir())
    after = daemon.actions("List", pb.ListRequest(), socket=daemon.user_socket).actions
    assert [view.id for view in before] == [view.id for view in after]
    assert len(daemon.person("Approvals", pb.ApprovalsRequest()).approvals) == pending
    assert rows(daemon, "dry-run")[0].action_id.startswith("dry-")
    assert daemon.person("VerifyLog", pb.VerifyLogRequest()).good


def test_an_undo_is_shown_before_it_is_asked_for(daemon: Daemon, folder: Path) -> None:
    done = Journey(daemon, shell(folder, "echo one > a"), person=True)
    id = done.approve().action.id
    before = all_of_it(folder)
    reply = dry(daemon, pb.DryRunRequest(revert=undo(id)))
    assert reply.summary == "The folder would be as it was before the action: 1 deleted."
    assert ("change", "deleted a") in said(reply) and ("removed", "one") in said(reply)
    shown = daemon.goex("undo", id, "--dry-run")
    assert shown.returncode == 0 and "• deleted a\n" in shown.stdout and "  - │ one\n" in shown.stdout
    assert all_of_it(folder) == before
    (folder / "theirs").write_text("x")
    beside = dry(daemon, pb.DryRunRequest(revert=undo(id)))
    assert beside.summary == "What the action changed would be as it was before the action: 1 deleted."
    (folder / "a").write_text("theirs")
    with pytest.raises(grpc.RpcError) as caught:
        dry(daemon, pb.DryRunRequest(revert=undo(id)))
    assert problem(caught.value).code == "conflict"


def test_dry_runs_take_the_slots_of_real_runs(daemon: Daemon, folder: Path) -> None:
    calls = []
    for number in range(8):
        place = folder / str(number)  # one folder is copied for one action at a time
        place.mkdir()
        os.chown(place, folder.stat().st_uid, folder.stat().st_gid)
        calls.append(daemon.person("DryRun", pb.DryRunRequest(request=shell(place, "sleep 50"))))
    for call in calls:
        assert any(event.progress.startswith("Running") for event in call)
    ninth = daemon.person("DryRun", pb.DryRunRequest(request=shell(folder, "true")))
    assert next(event.progress for event in ninth).startswith("Waiting until another action has ended")
    calls[0].cancel()
    assert [event.done.ok for event in ninth if event.HasField("done")] == [True]
    for call in calls:
        call.cancel()
    until(lambda: left(daemon) == [])


def test_leaving_a_dry_run_ends_it(daemon: Daemon, folder: Path) -> None:
    call = daemon.person("DryRun", pb.DryRunRequest(request=shell(folder, "sleep 60")))
    for event in call:
        if event.progress.startswith("Running"):
            break
    assert left(daemon) != []
    call.cancel()
    until(lambda: left(daemon) == [])


def test_a_daemon_that_is_killed_leaves_a_copy_until_it_starts_again(folder: Path, sandbox_image: str) -> None:
    (folder / "a").write_text("one\n")
    before = all_of_it(folder)
    with Daemon() as daemon:
        call = daemon.person("DryRun", pb.DryRunRequest(request=shell(folder, "echo two > b; sleep 60")))
        for event in call:
            if event.progress.startswith("Running"):
                break
        daemon.kill()
        assert left(daemon) != []
        daemon.start()
        assert left(daemon) == []
        assert all_of_it(folder) == before


def test_a_sealed_vault_makes_no_dry_run(folder: Path, sandbox_image: str) -> None:
    with Daemon() as daemon:
        daemon.person("VaultSeal", pb.VaultSealRequest())
        with pytest.raises(grpc.RpcError) as caught:
            dry(daemon, pb.DryRunRequest(request=shell(folder, "true")))
        assert problem(caught.value).exit_status == 7


def test_calls_are_written_out_and_not_sent(daemon: Daemon) -> None:
    daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack", account="dry", secret=b"xoxb-canary", format="string", passphrase=APPROVAL_PASSPHRASE
        ),
    )
    call = pb.Call(
        service="slack",
        method="chat.postMessage",
        arguments_json='{"channel": "#ops", "text": "hi \\u001b[31m"}',
        account="dry",
    )
    reply = dry(daemon, pb.DryRunRequest(request=pb.ExecuteRequest(calls=pb.Calls(calls=[call]))))
    lines = [text for _, text in said(reply)]
    assert "1 request would be sent" in reply.summary
    assert "POST https://slack.com/api/chat.postMessage" in lines
    assert "Authorization: Bearer ‹the credential slack/dry›" in lines
    assert any('"channel":"#ops"' in line for line in lines)
    assert not any("xoxb" in line or "\x1b" in line for line in lines)
    assert not rows(daemon, "request")
    assert not rows(daemon, "lease")
    words = dry(daemon, pb.DryRunRequest(request=pb.ExecuteRequest(intent='send slack msg "hi" to #ops')))
    assert "POST https://slack.com/api/chat.postMessage" in [text for _, text in said(words)]
    with pytest.raises(grpc.RpcError) as caught:
        dry(daemon, pb.DryRunRequest(request=pb.ExecuteRequest(intent="xyzzy plugh")))
    assert problem(caught.value).exit_status == 5
    assert not rows(daemon, "request")


def test_the_command_shows_it_and_decides_nothing(daemon: Daemon, folder: Path) -> None:
    (folder / "a").write_text("one\n")
    (folder / "a").chmod(0o666)
    shown = daemon.goex("exec", "--dry-run", "--shell", "echo two > a", "--folder", str(folder))
    assert shown.returncode == 0, shown.stderr
    assert "What would run" in shown.stdout and "  - │ one\n  + │ two\n" in shown.stdout
    assert "Nothing was decided, and nothing was changed." in shown.stderr
    assert (folder / "a").read_text() == "one\n"
    lines = daemon.goex("exec", "--dry-run", "--json", "--shell", "exit 3", "--folder", str(folder))
    assert lines.returncode == 1
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    assert events[-1]["done"]["ok"] is False and events[-1]["done"]["summary"].startswith("The program ended with exit")
    journey = Journey(daemon, shell(folder, "rm a"))
    approval = journey.asked()
    waiting = daemon.goex("approve", "--dry-run", approval.id)
    assert waiting.returncode == 0 and "• deleted a" in waiting.stdout
    assert daemon.goex("exec", "--dry-run", "--detach", "--shell", "x", "--folder", str(folder)).returncode == 2
    assert daemon.goex("approve", "--dry-run").returncode == 2
    journey.leave()


def test_what_was_kept_of_a_dry_run_is_applied_and_undone(daemon: Daemon, folder: Path) -> None:
    (folder / "kept.txt").write_text("as it was\n")
    before = all_of_it(folder)
    request = shell(folder, "od -An -N16 -tx1 /dev/urandom > chance")
    assert not dry(daemon, pb.DryRunRequest(request=request)).preview
    reply = dry(daemon, pb.DryRunRequest(request=request, keep=True))
    assert reply.ok and reply.preview
    (chance,) = [text for kind, text in said(reply) if kind == "added"]
    assert all_of_it(folder) == before
    request.files.preview = reply.preview
    journey = Journey(daemon, request)
    approval = as_the_person_sees(daemon, journey.asked())
    assert any("isn't run again" in line for line in approval.lines)
    decide(daemon, approval)
    assert journey.finished().action.state == "done"
    assert (folder / "chance").read_text().strip() == chance.strip()
    undone = Journey(daemon, undo(journey.action_id))
    decide(daemon, undone.asked())
    assert undone.finished().action.state == "done"
    assert sorted(path.name for path in folder.iterdir()) == ["kept.txt"]


def test_one_program_on_two_folders_is_asked_for_both_and_taken_back_in_both(daemon: Daemon, folder: Path) -> None:
    pair = [folder / "one", folder / "two"]
    for each in pair:
        each.mkdir()
        os.chown(each, *(folder.stat()[4:6]))
    request = shell(pair[0], "echo 1 > one/file; echo 2 > two/file")
    request.files.more.append(str(pair[1]))
    journey = Journey(daemon, request)
    approval = as_the_person_sees(daemon, journey.asked())
    assert sum(any(f"Folder: {each}" in line for line in approval.lines) for each in pair) == 2
    decide(daemon, approval)
    assert journey.finished().action.state == "done"
    assert [(each / "file").read_text() for each in pair] == ["1\n", "2\n"]
    undone = Journey(daemon, undo(journey.action_id))
    decide(daemon, undone.asked())
    assert undone.finished().action.state == "done"
    assert [list(each.iterdir()) for each in pair] == [[], []]
