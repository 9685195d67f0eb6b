"""A canary is an account's credential. It is looked for everywhere that it must not be, while actions run and after.

Every search finds what lies there: that is shown beside it by bait that goes the same way (a request's text, an answer,
a denial's reason), or in test_canary_searches.py by bait that is laid out. The service itself, which is given the
credential, tries to give it back in its answers. Only the vault (sealed), the daemon's memory and the gateway's may
hold it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.canary_scene import Scene, folder_fixture, in_urls, scene_fixture  # noqa: F401  fixtures
from tests.adversarial.hunting import Hunt, Planted, token, told, written
from tests.adversarial.hunting_docker import image
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE
from tests.support.journey import Journey, decide, shell, undo
from tests.support.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into every process and container"),
]


@pytest.mark.promise(29)
def test_nowhere_while_an_action_runs(scene: Scene) -> None:
    with scene.held() as (journey, container):
        hunt = scene.hunt(scene.bait)
        scene.container_is_clean(container)
        assert container.inspected["HostConfig"]["LogConfig"]["Type"] == "none"
        for what, pid in (("daemon", scene.daemon.pid), ("gateway", scene.gateway)):
            said = told(pid)
            assert len(said) > 200, said
            scene.clean(hunt.pieces(said), f"/proc of the {what}")
        for number in (0, 1, 2):
            assert Path(f"/proc/{scene.gateway}/fd/{number}").readlink() == Path("/dev/null")
        assert Path(f"/proc/{scene.gateway}/environ").read_bytes() == b"LC_ALL=C.UTF-8\0"
        scene.files_are_clean()
        assert scene.service.got[-1].headers["authorization"] == f"Bearer {scene.canary}", "it is used at this moment"
        scene.service.release()
        finished = journey.finished()
    assert finished.action.state == "done", finished
    scene.shown["outcome"] = finished.SerializeToString()
    scene.shown["events"] = b"".join(event.SerializeToString() for event in journey.seen)
    for what in ("prompt", "outcome", "events"):
        scene.clean(hunt.pieces(scene.shown[what]), f"the {what}", scene.bait)
    scene.files_are_clean()


@pytest.mark.promise(29)
def test_nowhere_in_the_image(scene: Scene) -> None:
    scene.clean(image(scene.client, scene.image)(scene.hunt()), "the image")


@pytest.mark.promise(29)
@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate"])
def test_nowhere_in_what_an_echoing_service_answers(scene: Scene, coding: str) -> None:
    scene.service.coding, scene.service.more = coding, {"mine": scene.bait.text}
    try:
        journey = Journey(scene.daemon, scene.calls("an echo"), token=scene.agent)
        finished = journey.approve()
    finally:
        scene.service.coding, scene.service.more = "identity", {}
    assert finished.action.state == "done", finished
    told_all = [finished.SerializeToString(), finished.action.outcome_json.encode()]
    scene.clean(scene.hunt(scene.bait).pieces(*told_all), "the outcome", scene.bait)
    assert "redacted" in finished.action.outcome_json, "the echo arrived, and was taken out"


def test_nowhere_in_errors(scene: Scene) -> None:
    said = b""
    for form, text in written(scene.canary).items():
        if form == "backwards":
            continue
        scene.service.more = {"ok": False, "error": text}
        try:
            finished = Journey(scene.daemon, scene.calls("it fails"), token=scene.agent).approve()
        finally:
            scene.service.more = {}
        assert finished.action.state in ("failed", "partial"), finished
        said += finished.SerializeToString()
    for form, value in scene.bait.tokens.items():
        call = pb.Call(service="slack", method=written(value)[form], arguments_json="{}")
        wrong = Journey(scene.daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call]))).finished()
        assert wrong.problem.exit_status == 2, wrong
        said += wrong.problem.SerializeToString()
    scene.clean(scene.hunt(scene.bait).pieces(said), "an error", scene.bait)


@pytest.mark.promise(29)
def test_nowhere_in_what_the_command_prints(scene: Scene, folder: Path) -> None:
    (folder / "bait").write_text(scene.bait.text)
    standing = Journey(scene.daemon, scene.calls(scene.bait.text), token=scene.agent)
    asked = standing.asked()
    decide(scene.daemon, asked, width="permanent", bind_arguments=list(asked.arguments))
    assert standing.finished().action.state == "done"
    denied = Journey(scene.daemon, undo(standing.action_id), token=scene.agent)
    decide(scene.daemon, denied.asked(), approve=False, reason=scene.bait.text)
    assert denied.finished().action.state == "denied"
    files = Journey(scene.daemon, shell(folder, "cat bait"), person=True).approve()
    assert files.action.state == "done", files
    open_question = Journey(scene.daemon, scene.calls(f"open {scene.bait.text}"), person=True)
    open_question.asked()

    bait = scene.bait
    of_urls = Planted({form: value for form, value in bait.tokens.items() if form in dict(in_urls(bait))})
    commands: dict[tuple[str, ...], Planted | None] = {
        ("log", "--limit", "1000"): bait,
        ("log", "--rows", "--limit", "2000"): bait,
        ("log", "--scopes"): None,
        ("log", "--verify"): None,
        ("show", standing.action_id): bait,
        ("show", files.action.id): bait,
        ("grants",): bait,
        ("approve",): bait,
        ("vault", "list"): of_urls,
        ("daemon", "status"): bait,
        ("agents", "list"): None,
        ("catalog", "list"): None,
        ("doctor",): None,
    }
    for command, lies in commands.items():
        for more in ((), ("--json",)):
            done = scene.daemon.goex(*command, *more)
            assert done.stdout, (command, done)
            there = lies if more or command[0] in ("show", "grants", "daemon") else None
            found = scene.hunt(bait).pieces(done.stdout.encode(), done.stderr.encode())
            scene.clean(found, f"goex {' '.join((*command, *more))}", there)
    open_question.leave()
    scene.files_are_clean()
    scene.clean(scene.hunt(bait).git(scene.daemon.state_dir / "snapshots"), "the snapshots", bait)


@pytest.mark.promise(83)
def test_nowhere_in_what_is_exported(scene: Scene) -> None:
    """On stdout, in the file, and in what the page of the log says, whatever asked for it."""
    ran = Journey(scene.daemon, scene.calls(f"kept {scene.bait.text}"), token=scene.agent)
    decide(scene.daemon, ran.asked(), approve=False, reason=scene.bait.text)
    assert ran.finished().action.state == "denied"
    file = scene.daemon.home / "journal.jsonl"
    said = scene.daemon.goex("log", "--export", "-")
    written_to = scene.daemon.goex("log", "--export", str(file))
    assert (said.returncode, written_to.returncode) == (0, 0), (said.stderr, written_to)
    hunt = scene.hunt(scene.bait)
    scene.clean(hunt.pieces(said.stdout.encode()), "the export on stdout", scene.bait)
    scene.clean(hunt.pieces(file.read_bytes()), "the exported file", scene.bait)
    scene.clean(hunt.pieces(said.stderr.encode(), written_to.stdout.encode(), written_to.stderr.encode()), "the words")
    checked = scene.daemon.goex("log", "--verify-export", str(file), "--json")
    assert checked.returncode == 0, checked
    file.unlink()


@pytest.mark.promise(83)
def test_passphrases_typed_into_each_others_fields_are_nowhere(scene: Scene) -> None:
    """And so is one that is wrong: what was typed where a passphrase belongs is compared, and never written down."""
    wrong = token("typed")
    person = scene.daemon.person
    bait = scene.calls(f"typed {scene.bait.text}")
    journey = Journey(scene.daemon, bait, token=scene.agent)
    asked = journey.asked()
    yes = pb.DecideRequest(approval_id=asked.id, approve=True, width="once", digest=asked.digest, passphrase=wrong)
    for method, request in (
        ("Present", pb.PresentRequest(passphrase=VAULT_PASSPHRASE)),
        ("Decide", yes),  # not a third one: from then on there would be a wait
        ("VaultUnlock", pb.VaultUnlockRequest(passphrase=APPROVAL_PASSPHRASE)),
    ):
        with pytest.raises(grpc.RpcError):
            person(method, request)
    person("Present", pb.PresentRequest(passphrase=APPROVAL_PASSPHRASE))
    decide(scene.daemon, asked, approve=False, reason=scene.bait.text)
    assert journey.finished().action.state == "denied"
    hunt = Hunt(VAULT_PASSPHRASE, APPROVAL_PASSPHRASE, wrong, baits=[scene.bait])
    exported = scene.daemon.goex("log", "--export", "-").stdout.encode()
    found = hunt.merge(hunt.pieces(exported), hunt.database(scene.daemon.state_dir / "state.db"))
    assert scene.bait.missed(found) == [], "the search finds what lies there"
    found = hunt.merge(found, hunt.tree(scene.daemon.home))
    for typed in (VAULT_PASSPHRASE, APPROVAL_PASSPHRASE, wrong):
        assert found[typed] == set()


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nowhere_in_what_exec_prints(scene: Scene, more: tuple[str, ...]) -> None:
    said: list[subprocess.CompletedProcess[str]] = []
    command = ("exec", "--call", "slack.chat.postMessage", "channel=#ops", f"text={scene.bait.text}", "--account",
               "work", *more)  # fmt: skip
    thread = threading.Thread(target=lambda: said.append(scene.daemon.goex(*command)))
    thread.start()
    waiting = until(lambda: scene.daemon.person("Approvals", pb.ApprovalsRequest()).approvals, "the question")
    decide(scene.daemon, waiting[0])
    thread.join()
    assert said[0].returncode == 0, said[0]
    found = scene.hunt(scene.bait).pieces(said[0].stdout.encode(), said[0].stderr.encode())
    scene.clean(found, "what exec prints", scene.bait)


# ---- what a violent end leaves


def test_nowhere_after_the_gateway_was_killed(scene: Scene) -> None:
    with scene.held() as (journey, _):
        gateway = scene.gateway
        assert _core_limits(gateway) == ("0", "0")
        os.kill(gateway, signal.SIGSEGV)  # what would dump core, if anything could
        finished = journey.finished()
        assert finished.action.state in ("unknown", "partial", "failed"), finished
        scene.service.release()
    scene.clean(scene.hunt().pieces(finished.SerializeToString()), "the outcome")
    assert not list(Path("/").glob("core*"))
    scene.files_are_clean()


@pytest.mark.promise(29)
def test_nowhere_after_the_daemon_was_killed(scene: Scene) -> None:
    with scene.held() as (journey, container):
        pid, gateway = scene.daemon.pid, scene.gateway
        assert _core_limits(pid) == ("0", "0")
        os.kill(pid, signal.SIGSEGV)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status)
        assert not os.WCOREDUMP(status)
        scene.daemon.kill()
        deadline = time.monotonic() + 300
        while Path(f"/proc/{gateway}").exists() and b"gateway" in told(gateway, "cmdline"):
            assert time.monotonic() < deadline, "the gateway outlives the daemon"
            time.sleep(0.02)
        left = ("exported filesystem", "inspect", "logs", "the engine's folder")  # it may have ended by itself
        scene.container_is_clean(container, *left, holds=())
    scene.files_are_clean()
    scene.daemon.start()
    scene.daemon.unlock()
    view = scene.daemon.actions("Get", pb.ActionId(id=journey.action_id), socket=scene.daemon.user_socket)
    scene.clean(scene.hunt().pieces(view.SerializeToString()), "the action")
    scene.files_are_clean()
    assert scene.daemon.person("VerifyLog", pb.VerifyLogRequest()).good


def test_a_program_without_that_limit_dumps_core(tmp_path: Path) -> None:
    """The control: here a signal like that leaves a core file, so its absence says something."""
    if Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"):
        pytest.skip("this machine hands core dumps to a program")

    child = subprocess.Popen(
        [sys.executable, "-c", "import os, resource, signal as s\n"
         "resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\nos.kill(os.getpid(), s.SIGSEGV)"],
        cwd=tmp_path,
    )  # fmt: skip
    _, status = os.waitpid(child.pid, 0)
    child.returncode = 0
    assert os.WCOREDUMP(status)


def _core_limits(pid: int) -> tuple[str, str]:
    line = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max core"))
    soft, hard = line.split()[4:6]
    return soft, hard
